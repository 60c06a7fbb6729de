//! The store over time: compaction, cleaning, checking, altering, expiry and repartitioning, by the
//! commands that users give.

use std::path::Path;

use crate::common::{done, json, run};

/// A table of keys with so many commits of one CSV file each; `rows(i)` are the lines of the i-th.
fn table(dir: &Path, flags: &str, commits: u64, rows: impl Fn(u64) -> String) {
    done(dir, &format!("create {{}}/t --column k:int64:not-null --column v:utf8 --primary-key k {flags}"));
    for commit in 0..commits {
        std::fs::write(dir.join(format!("{commit}.csv")), format!("k,v\n{}", rows(commit))).unwrap();
        done(dir, &format!("ingest {{}}/t {{}}/{commit}.csv --compact off"));
    }
}

fn count(dir: &Path, options: &str) -> String {
    let sql = "SELECT/**/count(*),sum(k),count(DISTINCT/**/v)/**/FROM/**/t";
    done(dir, &format!("query {{}}/t --format csv -c {sql} {options}")).lines().nth(1).unwrap().to_owned()
}

/// The portion files of the table.
fn portions(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = glob::glob(&format!("{}/t/partition=*/*.parquet", dir.display()))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    files.sort();
    files
}

#[test]
fn compaction_keeps_the_rows_and_cleaning_keeps_the_versions_that_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // Every commit has every key: the deepest overlap there is.
    table(dir, "--partitions 2", 12, |commit| (0..50).map(|k| format!("{k},v{commit}\n")).collect());
    let before = count(dir, "");
    assert_eq!(before, "50,1225,1");
    let compacted = json(dir, "compact {}/t --format json");
    assert_eq!(
        (&compacted["max_depth_before"], compacted["portions_before"].as_u64()),
        (&12.into(), Some(24))
    );
    assert!(compacted["max_depth_after"].as_u64().unwrap() <= 8);
    assert!(compacted["rows_superseded"].as_u64().unwrap() > 0);
    assert_eq!(count(dir, ""), before);
    let full = json(dir, "compact {}/t --full --format json");
    assert_eq!((full["portions_after"].as_u64(), full["max_depth_after"].as_u64()), (Some(2), Some(1)));
    assert_eq!(count(dir, ""), before);
    assert!(done(dir, "compact {}/t").starts_with("nothing to compact: 2 portions"));
    // Earlier versions are still there, until they are cleaned away.
    assert_eq!(count(dir, "--version 12"), before);
    assert!(done(dir, "clean {}/t").starts_with("nothing to delete\nversions 0 to 13 can be read"));
    assert_eq!(count(dir, "--version 5"), "50,1225,1");
    let files = portions(dir).len();
    let planned = json(dir, "clean {}/t --keep 0s --dry-run --format json");
    assert_eq!(portions(dir).len(), files);
    let cleaned = json(dir, "clean {}/t --keep 0s --format json");
    for figure in ["portions", "portion_bytes", "log_files", "oldest_version"] {
        assert_eq!(planned[figure], cleaned[figure], "{figure}");
    }
    assert_eq!(portions(dir).len(), 2);
    assert_eq!(count(dir, ""), before);
    let gone = run(dir, "query {}/t --version 5 SELECT/**/1");
    assert_eq!(gone.code, 1);
    assert!(
        gone.stderr.contains("version 5 was cleaned away; the oldest that is kept is"),
        "{}",
        gone.stderr
    );
    // What was ingested is still known, the history still told, and the table still grows.
    assert!(done(dir, "ingest {}/t {}/3.csv").contains("already ingested as version 4"));
    assert_eq!(json(dir, "inspect {}/t --history --format json")["commits"].as_array().unwrap().len(), 14);
    std::fs::write(dir.join("more.csv"), "k,v\n1000,new\n").unwrap();
    done(dir, "ingest {}/t {}/more.csv");
    assert_eq!(count(dir, ""), "51,2225,2");
}

#[test]
fn files_that_no_commit_names_are_cleaned_once_they_are_old() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 1", 2, |commit| format!("{commit},x\n"));
    let stray = dir.join("t/partition=0000/stray.parquet");
    let staging = dir.join("t/_log/.staging-1");
    let notes = dir.join("t/notes.txt");
    for file in [&stray, &staging, &notes] {
        std::fs::write(file, "x").unwrap();
    }
    let young = json(dir, "clean {}/t --format json");
    assert_eq!((&young["unnamed_files"], &young["young_files"]), (&0.into(), &2.into()), "{young}");
    std::thread::sleep(std::time::Duration::from_millis(20));
    let old = json(dir, "clean {}/t --unnamed 1ms --format json");
    assert_eq!((&old["unnamed_files"], &old["portions"]), (&2.into(), &0.into()));
    assert!(!stray.exists() && !staging.exists() && notes.exists());
    assert_eq!(count(dir, ""), "2,1,1");
}

#[test]
fn an_ingest_compacts_when_portions_pile_up_unless_it_is_told_not_to() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 1", 8, |commit| format!("1,v{commit}\n2,w\n"));
    std::fs::write(dir.join("next.csv"), "k,v\n1,last\n2,w\n").unwrap();
    let report = json(dir, "ingest {}/t {}/next.csv --format json");
    assert_eq!(report["rows"], 2);
    assert_eq!(report["compaction"]["max_depth_before"], 9);
    assert_eq!(json(dir, "inspect {}/t --format json")["version"], 10);
    assert_eq!(count(dir, ""), "2,3,2");
    std::fs::write(dir.join("more.csv"), "k,v\n1,later\n").unwrap();
    let quiet = json(dir, "ingest {}/t {}/more.csv --compact off --format json");
    assert!(quiet["compaction"].is_null());
}

/// What a damage makes of the bytes of a file; none where there is no file any more.
type Damage = fn(&[u8]) -> Option<Vec<u8>>;

#[test]
fn damage_is_found_by_checksum_named_and_can_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 1", 3, |commit| {
        (0..10).map(|k| format!("{},v{commit}\n", commit * 10 + k)).collect()
    });
    assert!(done(dir, "check {}/t").contains("3 portions"));
    let whole: Vec<Vec<u8>> = portions(dir).iter().map(|file| std::fs::read(file).unwrap()).collect();
    let damages: [(&str, Damage); 3] = [
        ("its checksum differs", |bytes| {
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() / 3;
            bytes[middle] ^= 0x10;
            Some(bytes)
        }),
        ("bytes instead of", |bytes| Some(bytes[..bytes.len() / 2].to_vec())),
        ("is missing", |_| None),
    ];
    for (expected, damage) in damages {
        let file = &portions(dir)[1];
        match damage(&whole[1]) {
            Some(bytes) => std::fs::write(file, bytes).unwrap(),
            None => std::fs::remove_file(file).unwrap(),
        }
        let name = file.file_name().unwrap().to_str().unwrap();
        let check = run(dir, "check {}/t");
        assert_eq!(check.code, 1, "{expected}");
        assert!(check.stdout.contains(name) && check.stdout.contains(expected), "{}", check.stdout);
        assert!(check.stderr.contains("--skip-damaged"), "{}", check.stderr);
        let sql = "SELECT/**/count(*)/**/FROM/**/t";
        let rest = run(dir, &format!("query {{}}/t --skip-damaged --format csv -c {sql}"));
        assert_eq!((rest.code, rest.stdout.lines().nth(1)), (0, Some("20")), "{}", rest.stderr);
        assert!(
            rest.stderr.contains("left out: 10 rows of partition=0000/") && rest.stderr.contains(name),
            "{}",
            rest.stderr
        );
        // Damage is not compacted into a sound file.
        let compact = run(dir, "compact {}/t --full");
        assert_eq!(compact.code, 1);
        assert!(
            compact.stderr.contains(name) && compact.stderr.contains("was not compacted"),
            "{}",
            compact.stderr
        );
        std::fs::write(file, &whole[1]).unwrap();
        assert_eq!(portions(dir).len(), 3, "what the compaction had stored is gone");
    }
    assert!(done(dir, "check {}/t").contains("0 damaged"));
}

#[test]
fn a_damaged_commit_is_named_and_earlier_versions_are_still_readable() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 1", 3, |commit| format!("{commit},x\n"));
    let file = dir.join("t/_log/00000000000000000003.json");
    let whole = std::fs::read(&file).unwrap();
    for bytes in [whole[..whole.len() / 2].to_vec(), {
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        flipped
    }] {
        std::fs::write(&file, bytes).unwrap();
        let failed = run(dir, "query {}/t SELECT/**/1");
        assert_eq!(failed.code, 1);
        assert!(failed.stderr.contains("_log/00000000000000000003.json is damaged"), "{}", failed.stderr);
        assert_eq!(count(dir, "--version 2"), "2,1,1");
    }
    std::fs::write(&file, whole).unwrap();
    assert_eq!(count(dir, ""), "3,3,1");
}

#[test]
fn a_column_can_be_added_and_other_changes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 2", 3, |commit| (0..20).map(|k| format!("{k},v{commit}\n")).collect());
    assert!(
        done(dir, "alter {}/t --add-column country:utf8 --add-column age:uint8").contains("country Utf8")
    );
    std::fs::write(dir.join("new.csv"), "k,v,country,age\n3,new,pt,40\n99,new,de,41\n").unwrap();
    done(dir, "ingest {}/t {}/new.csv --compact off");
    let sql = "SELECT/**/count(*),count(country),min(country),sum(age)/**/FROM/**/t";
    let select = |options: &str| {
        done(dir, &format!("query {{}}/t --format csv -c {sql} {options}")).lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(select(""), "21,2,de,81");
    done(dir, "compact {}/t --full");
    assert_eq!(select(""), "21,2,de,81");
    let filtered = "SELECT/**/k/**/FROM/**/t/**/WHERE/**/age=40";
    assert_eq!(done(dir, &format!("query {{}}/t --format csv -c {filtered}")), "k\n3\n");
    assert_eq!(count(dir, "--version 3"), "20,190,1");
    for (arguments, code, message) in [
        ("alter {}/t", 2, "no change given"),
        ("alter {}/t --add-column v:utf8", 2, "column 'v' exists already"),
        ("alter {}/t --add-column w:utf8:not-null", 2, "cannot be added as NOT NULL"),
        ("alter {}/t --add-column w", 2, "--add-column 'w': has no type"),
        ("alter {}/t --ttl k=1d", 2, "'k' of type Int64; it must be a date or a point in time"),
        ("alter {}/t --ttl nosuch=1d", 2, "names column 'nosuch', which is not declared"),
        ("alter {}/t --ttl k=1", 2, "write a whole number above 0 with us, ms, s, m, h or d"),
        ("alter {}/t --ttl v=1d", 2, "not in the primary key"),
        ("alter {}/t --ttl v", 2, "write column=length"),
    ] {
        let refused = run(dir, arguments);
        assert_eq!(refused.code, code, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
    assert_eq!(json(dir, "inspect {}/t --format json")["columns"].as_array().unwrap().len(), 4);
}

#[test]
fn rows_expire_portion_by_portion_and_row_by_row() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(
        dir,
        "create {}/t --column at:timestamp:not-null --column k:int64:not-null --primary-key at,k --partitions 1 --ttl at=30d",
    );
    assert!(done(dir, "ddl {}/t").contains("TTL = Interval(\"P30D\") ON at"));
    let now = chrono::Utc::now();
    let at = |days: i64| (now - chrono::Duration::days(days)).format("%Y-%m-%dT%H:%M:%S").to_string();
    for (name, days) in [("old", [90, 80]), ("half", [70, 10]), ("new", [9, 1])] {
        let rows: String = days.iter().zip(1..).map(|(days, k)| format!("{},{k}\n", at(*days))).collect();
        std::fs::write(dir.join(format!("{name}.csv")), format!("at,k\n{rows}")).unwrap();
        done(dir, &format!("ingest {{}}/t {{}}/{name}.csv --compact off"));
    }
    let rows = || {
        done(dir, "query {}/t --format csv -c SELECT/**/count(*)/**/FROM/**/t")
            .lines()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!(rows(), "6");
    let report = json(dir, "compact {}/t --format json");
    assert_eq!((&report["portions_expired"], &report["rows_expired"]), (&1.into(), &3.into()));
    assert_eq!(rows(), "3");
    assert!(done(dir, "compact {}/t").starts_with("nothing to compact"));
    // Without a time to live nothing expires.
    done(dir, "alter {}/t --no-ttl");
    done(dir, "ingest {}/t {}/old.csv --again");
    done(dir, "compact {}/t --full");
    assert_eq!(rows(), "5");
}

#[test]
fn repartitioning_says_what_moves_and_moves_exactly_that() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 4", 5, |commit| {
        (0..4000).map(|k| format!("{},v{commit}\n", k * (commit + 1))).collect()
    });
    let before = count(dir, "");
    for (flags, to, movement) in [
        ("--partitions 8", 8, "split"),
        ("--partitions 2", 2, "join"),
        ("--partitions 5", 5, "scatter"),
        ("--placement ydb-modulo", 4, "scatter"),
    ] {
        let plan = json(dir, &format!("repartition {{}}/t {flags} --dry-run --format json"))["plan"].clone();
        let name = format!("new{to}{movement}");
        let done_ = json(dir, &format!("repartition {{}}/t {flags} --to {{}}/{name} --format json"));
        assert_eq!(done_["plan"], plan);
        assert_eq!(plan["movement"], movement);
        let (rows, moving) = (plan["rows"].as_u64().unwrap(), plan["rows_moving"].as_u64().unwrap());
        let share = moving as f64 / rows as f64;
        if movement == "scatter" {
            assert!(share > 0.5, "{plan}");
        } else {
            assert!((share - 0.5).abs() < 0.03, "{plan}");
        }
        let overview = json(dir, &format!("inspect {{}}/{name} --format json"));
        let found: Vec<&serde_json::Value> =
            overview["partitions"].as_array().unwrap().iter().map(|p| &p["rows"]).collect();
        assert_eq!(found, plan["rows_per_partition"].as_array().unwrap().iter().collect::<Vec<_>>());
        assert_eq!(found.len(), to);
        let sql = "SELECT/**/count(*),sum(k),count(DISTINCT/**/v)/**/FROM/**/t";
        let after = done(dir, &format!("query {{}}/{name} --format csv -c {sql}"));
        assert_eq!(after.lines().nth(1).unwrap(), before);
        // The inputs are known there too.
        assert!(done(dir, &format!("ingest {{}}/{name} {{}}/0.csv")).contains("already ingested"));
    }
    for (arguments, code, message) in [
        ("repartition {}/t --partitions 8", 2, "--to <NEW_DIR>"),
        (
            "repartition {}/t --partitions 4 --dry-run",
            2,
            "already has this partition key, number of partitions and placement",
        ),
        ("repartition {}/t --partitions 8 --to {}/t", 1, "is not empty; choose a new directory"),
        ("repartition {}/t --partitions 8 --to {}/t/sub", 1, "lies within the table"),
        (
            "create {}/t/partition=0000/u --column k:int64:not-null --primary-key k",
            1,
            "lies within the table",
        ),
        ("repartition {}/t --partition-key v --to {}/x", 2, "'v' is not in the primary key"),
        ("repartition {}/t --partitions 0 --to {}/x", 2, "a table has 1 to"),
    ] {
        let refused = run(dir, arguments);
        assert_eq!(refused.code, code, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
    assert_eq!(count(dir, ""), before);
}

#[test]
fn cleaning_again_with_a_longer_keep_finds_nothing_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 1", 4, |commit| format!("{commit},x\n"));
    done(dir, "compact {}/t --full");
    done(dir, "clean {}/t --keep 0s");
    for again in ["clean {}/t", "clean {}/t --keep 1h --dry-run", "clean {}/t --keep 0h"] {
        assert!(done(dir, again).starts_with("nothing to delete\nonly version 5 "), "{again}");
    }
    let none = run(dir, "query {}/t --version 99 SELECT/**/1");
    assert!(none.stderr.contains("its versions are 5 to 5"), "{}", none.stderr);
    std::fs::remove_file(dir.join("t/_log/00000000000000000005.checkpoint.json")).unwrap();
    let lost = run(dir, "inspect {}/t");
    assert!(
        lost.stderr.contains("_log/00000000000000000005.checkpoint.json, which the log begins with"),
        "{}",
        lost.stderr
    );
}

#[test]
fn the_log_and_every_version_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 1", 66, |commit| format!("{},v{commit}\n", commit % 3));
    done(dir, "compact {}/t --full");
    assert!(done(dir, "check {}/t --all").contains("versions 0 to 67, 67 portions"));
    let log = |name: &str| dir.join("t/_log").join(name);
    let damaged = |expected: &[&str], arguments: &str| {
        let check = run(dir, arguments);
        assert_eq!(check.code, 1, "{arguments}");
        for text in expected {
            assert!(check.stdout.contains(text), "{arguments}: {text}\n{}", check.stdout);
        }
    };
    let flip = |file: &Path| {
        let mut bytes = std::fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).unwrap();
    };
    flip(&log("00000000000000000064.checkpoint.json"));
    flip(&log("00000000000000000020.json"));
    std::fs::remove_file(log("00000000000000000030.json")).unwrap();
    // The table cannot be opened any more, until one of them is mended.
    assert_eq!(run(dir, "check {}/t").code, 1);
    flip(&log("00000000000000000064.checkpoint.json"));
    damaged(&["00000000000000000020.json", "00000000000000000030.json", "is missing"], "check {}/t");
    let portion = portions(dir).pop().unwrap();
    flip(&portion);
    damaged(&[portion.file_name().unwrap().to_str().unwrap(), "3 damaged"], "check {}/t --all");
}

#[test]
fn a_damaged_partition_does_not_keep_the_others_from_being_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 4", 3, |commit| (0..40).map(|k| format!("{k},v{commit}\n")).collect());
    let file = portions(dir).remove(0);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    let failed = run(dir, "compact {}/t --full");
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains(file.file_name().unwrap().to_str().unwrap()), "{}", failed.stderr);
    std::fs::write(&file, whole).unwrap();
    let overview = json(dir, "inspect {}/t --format json");
    let portions_of = |partition: usize| overview["partitions"][partition]["portions"].as_u64().unwrap();
    assert_eq!([0, 1, 2, 3].map(portions_of), [3, 1, 1, 1]);
    // A query that meets the damage says what to do about it.
    std::fs::write(&file, "no Parquet").unwrap();
    let met = run(dir, "query {}/t SELECT/**/sum(k)/**/FROM/**/t");
    assert!(met.stderr.contains("evenkeel check") && met.stderr.contains("--skip-damaged"), "{}", met.stderr);
}

/// What happens while a compaction works is found when it commits.
mod meanwhile {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
    use evenkeel::Table;
    use evenkeel::compact::{CompactionOptions, Scope};
    use evenkeel::ingest::IngestOptions;
    use evenkeel::maintenance::CleanOptions;
    use evenkeel::storage::TableStorage;
    use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
    use evenkeel::units::{Micros, PartitionCount};
    use object_store::ObjectStore;

    use crate::common::objects;
    use crate::scripted_store::ScriptedStore;

    async fn table(store: &Arc<dyn ObjectStore>, ttl: Option<&str>) -> Table {
        let definition = TableDefinition {
            name: "t".into(),
            columns: vec![
                Column::required("at", ColumnType::Timestamp),
                Column::required("k", ColumnType::Int64),
            ],
            primary_key: vec!["at".into(), "k".into()],
            partition_key: vec!["k".into()],
            partitions: PartitionCount::ONE,
            placement: PlacementFunction::Ydb,
            ttl: ttl.map(|text| text.parse().unwrap()),
        };
        let storage = TableStorage::new(store.clone(), "t".into());
        let mut table = Table::create_at(storage, &TableSpec::new(definition).unwrap()).await.unwrap();
        for start in [0, 50] {
            let day = Micros::DAY.get();
            let at = TimestampMicrosecondArray::from_iter_values((start..start + 100).map(|k| k * day));
            let batch = RecordBatch::try_from_iter([
                ("at", Arc::new(at) as ArrayRef),
                ("k", Arc::new(Int64Array::from_iter_values(start..start + 100))),
            ]);
            let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch.unwrap())]);
            table.ingest(stream, &IngestOptions::default()).await.unwrap();
        }
        table
    }

    fn everything() -> CompactionOptions {
        let now = Some(200 * Micros::DAY.get());
        CompactionOptions { scope: Scope::Everything, now, ..CompactionOptions::default() }
    }

    /// Begins a compaction, waits until it stores its first portion, does `work`, and lets the
    /// compaction go on.
    async fn compacted_while(
        store: &Arc<dyn ObjectStore>,
        work: impl AsyncFnOnce(Table),
    ) -> (evenkeel::compact::CompactionReport, Table) {
        let waiting = Arc::new(ScriptedStore::waiting(store.clone()));
        let mut slow = Table::open_at(TableStorage::new(waiting.clone(), "t".into())).await.unwrap();
        let compaction =
            tokio::spawn(async move { (slow.compact(&everything(), &|_| {}).await.unwrap(), slow) });
        waiting.reached().await;
        work(Table::open_at(TableStorage::new(store.clone(), "t".into())).await.unwrap()).await;
        waiting.go_on();
        compaction.await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn another_compaction_that_was_faster_wins() {
        let store = objects();
        table(&store, None).await;
        let (report, table) = compacted_while(&store, async |mut other: Table| {
            other.compact(&everything(), &|_| {}).await.unwrap();
            let all = CleanOptions { keep: None, unnamed_age: Micros::DAY, ..CleanOptions::default() };
            other.clean(&all).await.unwrap();
        })
        .await;
        assert_eq!((report.partitions_lost, report.versions.len()), (1, 0));
        assert_eq!((table.snapshot().version().0, table.snapshot().portion_count()), (3, 1));
        assert_eq!(table.inspect().await.unwrap().rows, 150);
        assert_eq!(table.inspect().await.unwrap().other_files, 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn rows_stay_whose_time_to_live_was_taken_away() {
        let store = objects();
        table(&store, Some("at=100d")).await;
        let (report, table) = compacted_while(&store, async |mut other: Table| {
            other.alter(|definition| definition.ttl = None).await.unwrap();
        })
        .await;
        assert_eq!((report.partitions_lost, report.rows_expired), (1, 0));
        let overview = table.inspect().await.unwrap();
        assert_eq!((overview.rows, overview.portions), (150, 1));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn files_that_were_given_up_are_not_committed() {
        let store = objects();
        table(&store, None).await;
        let waiting = Arc::new(ScriptedStore::waiting(store.clone()));
        // The second put: the portion is stored, the commit waits.
        waiting.wait_at(1);
        let mut slow = Table::open_at(TableStorage::new(waiting.clone(), "t".into())).await.unwrap();
        let compaction = tokio::spawn(async move { slow.compact(&everything(), &|_| {}).await });
        waiting.reached().await;
        let mut other = Table::open_at(TableStorage::new(store.clone(), "t".into())).await.unwrap();
        let all = CleanOptions { keep: None, unnamed_age: Micros::new(1), ..CleanOptions::default() };
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        assert_eq!(other.clean(&all).await.unwrap().unnamed_files, 1);
        waiting.go_on();
        let refused = compaction.await.unwrap().unwrap_err().to_string();
        assert!(refused.contains("was cleaned away before it was committed"), "{refused}");
        other.refresh().await.unwrap();
        assert_eq!(other.inspect().await.unwrap().rows, 150);
        other.compact(&everything(), &|_| {}).await.unwrap();
        assert_eq!(other.inspect().await.unwrap().portions, 1);
    }
}

#[test]
fn what_does_not_fit_into_memory_becomes_several_portions_of_which_the_later_ones_win() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // Rows of 1.5 KB: 120 MB in all, four times what 128 MiB leaves for them. Every key comes four
    // times, the last time in reverse, so that it is sorted in; one partition has most keys.
    let (keys, rounds) = (20_000u64, 4u64);
    let mut text = String::from("k,p,v,filling\n");
    for round in 0..rounds {
        for place in 0..keys {
            let k = if round == rounds - 1 { keys - 1 - place } else { place };
            let filling = format!("{:x}", (k ^ round << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15)).repeat(90);
            text.push_str(&format!("{k},{},{round},{filling}\n", if k % 10 == 0 { k } else { 7 }));
        }
    }
    std::fs::write(dir.join("rows.csv"), text).unwrap();
    let columns =
        "--column k:uint64:not-null --column p:uint64:not-null --column v:int64 --column filling:utf8";
    let mut portions = Vec::new();
    for name in ["a", "b"] {
        let keys = "--primary-key k,p --partition-key p --partitions 3";
        done(dir, &format!("create {{}}/{name} {columns} {keys}"));
        let ingested = json(
            dir,
            &format!("ingest {{}}/{name} {{}}/rows.csv --memory 128MiB --compact off --format json"),
        );
        assert!(ingested["portions"].as_u64().unwrap() > 5, "{ingested}");
        assert_eq!(ingested["rows"], 80_000);
        let sql = "SELECT/**/count(*),min(v),max(v),sum(k),count(DISTINCT/**/filling)/**/FROM/**/t";
        let found = done(dir, &format!("query {{}}/{name} --format csv -c {sql}"));
        assert_eq!(found.lines().nth(1), Some("20000,3,3,199990000,20000"));
        let sql = "SELECT/**/*/**/FROM/**/sys.partition_stats";
        let stored = done(dir, &format!("query {{}}/{name} --format csv -c {sql}"));
        portions.push((ingested["portions"].clone(), ingested["bytes_written"].clone(), stored));
    }
    // The same rows within the same memory make the same portions.
    assert_eq!(portions[0], portions[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cleaning_ends_the_history_and_a_writer_from_before_it_is_told_so() {
    use evenkeel::Table;
    use evenkeel::compact::{CompactionOptions, Scope};
    use evenkeel::maintenance::{CheckScope, CleanOptions};
    use evenkeel::units::Micros;

    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("t");
    let spec = evenkeel::table::parse_create_table(
        "CREATE TABLE t (k Int64 NOT NULL, v Utf8, PRIMARY KEY (k)) PARTITION BY HASH(k) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 2)",
    );
    let spec = evenkeel::table::TableSpec::new(spec.unwrap().definition).unwrap();
    let mut table = Table::create(&place, &spec).await.unwrap();
    let file = |number: u64| {
        let path = dir.path().join(format!("{number}.csv"));
        std::fs::write(&path, format!("k,v\n{number},a\n{},b\n", number + 1000)).unwrap();
        crate::common::plan(&[path])
    };
    let mut late = None;
    for number in 0..150 {
        table.ingest_files(file(number), &|_| ()).await.unwrap();
        if number == 20 {
            late = Some(table.clone());
        }
    }
    let full = CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() };
    table.compact(&full, &|_| ()).await.unwrap();
    let newest = || {
        let names = std::fs::read_dir(place.join("_log")).unwrap().map(|entry| entry.unwrap().path());
        let checkpoints = names.filter(|path| path.to_string_lossy().ends_with(".checkpoint.json"));
        std::fs::read_to_string(checkpoints.max().unwrap()).unwrap()
    };
    let history = |text: &str| text.lines().filter(|line| line.starts_with("{\"history\"")).count();
    assert_eq!(history(&newest()), 129);
    // Within a day, commits stay listed for writers that are still at work.
    let clean = CleanOptions { keep: None, ..CleanOptions::default() };
    assert_eq!(table.clean(&clean).await.unwrap().forgotten_commits, 0);
    let clean = CleanOptions { history_age: Micros::new(1), ..clean };
    // The last commit stays listed, and so does the version that is kept.
    table.ingest_files(file(200), &|_| ()).await.unwrap();
    let report = table.clean(&clean).await.unwrap();
    assert_eq!((report.forgotten_commits, report.oldest_version.0), (152, 152));
    assert_eq!(history(&newest()), 1);
    let mut table = Table::open(&place).await.unwrap();
    assert_eq!(table.snapshot().commits().len(), 1);
    assert_eq!(table.inspect().await.unwrap().rows, 302);
    // Its inputs are no longer known, those since then are.
    assert_eq!(table.ingest_files(file(0), &|_| ()).await.unwrap().rows, 2);
    assert_eq!(table.ingest_files(file(200), &|_| ()).await.unwrap().version, None);
    // A writer that slept longer than the history goes back cannot tell whose commit its own is.
    let failed = late.unwrap().ingest_files(file(300), &|_| ()).await;
    assert!(
        matches!(&failed, Err(error) if error.to_string().contains("took longer than the history")),
        "{failed:?}"
    );
    for number in 400..470 {
        table.ingest_files(file(number), &|_| ()).await.unwrap();
    }
    assert!(history(&newest()) < 60, "{}", history(&newest()));
    let table = Table::open(&place).await.unwrap();
    assert_eq!(table.inspect().await.unwrap().rows, 302 + 140);
    assert!(table.check(CheckScope::EveryVersion, &|_| ()).await.unwrap().damaged.is_empty());
    let report = table.clean(&CleanOptions { unnamed_age: Micros::new(1), ..clean }).await.unwrap();
    assert!(report.forgotten_commits > 0 && report.unnamed_files > 0, "{report:?}");
    assert_eq!(Table::open(&place).await.unwrap().inspect().await.unwrap().rows, 302 + 140);
}
