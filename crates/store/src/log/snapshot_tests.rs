//! Snapshots that follow from the commits of a table.

use super::*;
use crate::log::entry::{CommitInfo, Sequence};
use evenkeel_model::table::{Column, ColumnType, FORMAT_VERSION, KeyRange, KeyValue, PlacementFunction};
use evenkeel_model::units::{PartitionCount, PartitionId};

fn commit(version: u64, operation: Operation) -> LogEntry {
    let (id, version) = (format!("id {version}"), Version(version));
    LogEntry::Commit(CommitInfo { format: FORMAT_VERSION, version, id, operation, at_micros: 0 })
}

fn definition() -> TableDefinition {
    TableDefinition {
        name: "t".into(),
        columns: vec![Column::required("k", ColumnType::Int64)],
        primary_key: vec!["k".into()],
        partition_key: vec![],
        partitions: PartitionCount::new(2).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    }
}

fn first() -> Snapshot {
    let entries = vec![commit(0, Operation::Create), LogEntry::Table(definition())];
    Snapshot::first("t", entries).unwrap()
}

/// A portion of 10 rows and 100 bytes with the keys from `min` to `max`.
fn portion(path: &str, partition: u32, min: i64, max: i64) -> PortionEntry {
    let key_range = KeyRange { min: vec![KeyValue::Int(min)], max: vec![KeyValue::Int(max)] };
    PortionEntry {
        path: path.into(),
        partition: PartitionId(partition),
        sequence: Sequence { version: Version(1), ordinal: 0 },
        rows: 10,
        bytes: 100,
        column_ranges: vec![key_range.clone()],
        key_range,
        xxh3: String::new(),
        deletes: false,
    }
}

fn add(path: &str) -> LogEntry {
    LogEntry::Add(portion(path, 1, 0, 9))
}

#[test]
fn a_commit_adds_removes_and_gives_up_files_and_its_summary_counts_them() {
    let upsert = vec![commit(1, Operation::Upsert), add("a"), add("b")];
    let table = first().apply("t", Version(1), upsert).unwrap();
    let (remove, sweep) = (LogEntry::Remove { path: "a".into() }, LogEntry::Sweep { path: "lost".into() });
    let table = table.apply("t", Version(2), vec![commit(2, Operation::Compact), remove, add("c"), sweep]);
    let table = table.unwrap();
    let paths: Vec<String> = table.portions().iter().map(|portion| portion.path.clone()).collect();
    assert_eq!(paths, ["b", "c"]);
    let summary = table.commits().last().unwrap();
    assert_eq!(summary.rows_per_partition, [0, 10]);
    assert_eq!((summary.bytes, summary.portions, summary.removed), (100, 1, 1));
    assert!(table.is_swept("lost") && !table.is_swept("b"));
    assert_eq!(table.version_of("id 1"), Some(Version(1)));
    assert_eq!(table.version_of("id 3"), None);
}

#[test]
fn a_shorter_history_keeps_what_was_given_up() {
    let sweep = |version: u64, path: &str| {
        vec![commit(version, Operation::Clean), LogEntry::Sweep { path: path.into() }]
    };
    let mut table = first();
    for version in 1..6 {
        table = table.apply("t", Version(version), sweep(version, &format!("lost {version}"))).unwrap();
    }
    let shorter = table.with_history_from(Version(4));
    assert!(table.lists(Version(0)) && !shorter.lists(Version(3)) && shorter.lists(Version(4)));
    let bytes = crate::log::write_checkpoint(&shorter).unwrap();
    let read = crate::log::read_checkpoint("t", Version(5), &bytes).unwrap();
    assert_eq!(read.commits().iter().map(|commit| commit.info.version.0).collect::<Vec<_>>(), [4, 5]);
    assert!((1..6).all(|version| read.is_swept(&format!("lost {version}"))) && !read.is_swept("lost 6"));
    // The commit of the oldest kept version is kept.
    assert_eq!(table.with_history_from(Version(9)).commits().len(), 1);
}

#[test]
fn a_line_that_contradicts_the_lines_before_it_is_damage_in_that_line() {
    let remove = |path: &str| LogEntry::Remove { path: path.into() };
    let upsert = || commit(1, Operation::Upsert);
    let renamed = LogEntry::Table(TableDefinition { name: "other".into(), ..definition() });
    let outside = LogEntry::Add(portion("a", 2, 0, 9));
    for (entries, line, reason) in [
        (vec![add("a")], 1, "an entry before the commit"),
        (vec![upsert(), add("a"), add("a")], 3, "portion a is added twice"),
        (vec![upsert(), outside], 2, "there is no partition 2"),
        (vec![upsert(), remove("a")], 2, "portion a is removed but was not visible"),
        (vec![upsert(), add("a"), remove("a"), remove("a")], 4, "portion a is removed but was not visible"),
        (vec![upsert(), add("a"), LogEntry::Sweep { path: "a".into() }], 3, "given up while it is visible"),
        (vec![upsert(), renamed], 2, "the name cannot be changed"),
        (vec![upsert(), LogEntry::End { lines: 1, xxh64: String::new() }], 2, "does not belong"),
    ] {
        let error = first().apply("t", Version(1), entries).unwrap_err();
        let LogError::Damaged { line: at, reason: actual, .. } = &error else { panic!("{error}") };
        assert!(*at == line && actual.contains(reason), "{error}");
    }
    let undeclared = Snapshot::first("t", vec![commit(0, Operation::Create)]).unwrap_err();
    assert!(undeclared.to_string().contains("it declares no table"), "{undeclared}");
}

#[test]
fn the_depth_of_a_table_is_that_of_its_deepest_partition() {
    let entries = |portions: &[(u32, i64, i64)]| {
        let named = portions.iter().enumerate();
        let adds = named.map(|(at, (p, min, max))| LogEntry::Add(portion(&format!("{at}"), *p, *min, *max)));
        std::iter::once(commit(1, Operation::Upsert)).chain(adds).collect::<Vec<_>>()
    };
    for (portions, depth) in [
        (&[][..], 0),
        (&[(0, 0, 9), (1, 0, 9)], 1),
        (&[(0, 0, 4), (0, 5, 9)], 1),
        (&[(0, 0, 5), (0, 5, 9), (1, 0, 9)], 2),
        (&[(1, 0, 9), (1, 2, 3), (1, 3, 7), (1, 8, 9)], 3),
    ] {
        let table = first().apply("t", Version(1), entries(portions)).unwrap();
        assert_eq!(table.max_depth(), depth, "{portions:?}");
    }
}
