//! Cleaning of files, versions and the history.

use crate::common::{done, json, run};
use crate::store::{count, table};

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
