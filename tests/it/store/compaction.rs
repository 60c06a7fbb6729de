//! Compaction and expiry of rows, and portions of what does not fit into memory.

use crate::common::{done, json, run};
use crate::store::{count, portions, table};

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
