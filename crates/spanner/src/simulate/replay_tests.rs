//! Replays of small exports with several strategies.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::simulate::index::parse_key_order;
use crate::simulate::key::KeyOrder;
use crate::simulate::result::{RateSource, ReadKind};
use evenkeel_input::source::{InputOptions, InputPath, OnUnreadable};
use evenkeel_model::finding::FindingCode;
use evenkeel_model::table::ColumnType;

/// Rows of a table: time in seconds, user, and note, which may be empty.
fn export(dir: &Path, rows: &[(u32, u32, &str)]) -> Export {
    let mut text = "at,user,note\n".to_owned();
    for (at, user, note) in rows {
        let (minutes, seconds) = (at / 60, at % 60);
        writeln!(text, "2024-05-06T{:02}:{:02}:{seconds:02}Z,{user},{note}", minutes / 60, minutes % 60)
            .unwrap();
    }
    let path = dir.join("rows.csv");
    std::fs::write(&path, text).unwrap();
    let types = [("at", ColumnType::Timestamp), ("user", ColumnType::Int64), ("note", ColumnType::Utf8)];
    let types = types.map(|(name, column_type)| (name.to_owned(), column_type)).into();
    Export::open(&[InputPath::File(path)], InputOptions::default(), &types).unwrap()
}

fn key(text: &str) -> Vec<KeyOrder> {
    parse_key_order(text).unwrap()
}

/// One row per second in each split is a score of 100; windows have ten seconds.
fn options(primary_key: &str, strategies: &[&str]) -> SimulateOptions {
    SimulateOptions {
        primary_key: key(primary_key),
        partition_key: Vec::new(),
        indexes: Vec::new(),
        strategies: strategies.iter().map(|name| name.parse().unwrap()).collect(),
        parameters: ModelParameters {
            split_rate: 2.0,
            window: Micros::new(10_000_000),
            ..ModelParameters::default()
        },
        judged: None,
        shard_columns: Vec::new(),
        find_scale: true,
        rate: None,
        time: None,
        owner: None,
        presplits: 0,
        transaction_rows: 1,
        on_unreadable: OnUnreadable::Fail,
    }
}

fn run(rows: &[(u32, u32, &str)], options: &SimulateOptions) -> Result<Simulation, SimulateError> {
    run_until(rows, options, &AtomicBool::new(false))
}

fn run_until(
    rows: &[(u32, u32, &str)],
    options: &SimulateOptions,
    stop: &AtomicBool,
) -> Result<Simulation, SimulateError> {
    let dir = tempfile::tempdir().unwrap();
    simulate(&export(dir.path(), rows), options, &|_| (), stop)
}

/// Eight rows in each of 600 seconds, of 97 users.
fn steady() -> Vec<(u32, u32, &'static str)> {
    (0..4800).map(|row| (row / 8, row * 7919 % 97, if row % 3 == 0 { "" } else { "x" })).collect()
}

#[test]
fn every_strategy_gets_every_row_once() {
    let rows = steady();
    let mut options =
        options("at, user, note", &["declared", "swapped", "desc", "shard-8", "uuid4", "hash-16"]);
    options.indexes = vec!["by_note(note) null_filtered".parse().unwrap(), "by_user(user)".parse().unwrap()];
    options.transaction_rows = 10;
    let simulation = run(&rows, &options).unwrap();
    assert_eq!(simulation.rows, 4800);
    // Found by the values of the last row.
    let (_, last_user, last_note) = *rows.last().unwrap();
    let with_note = rows.iter().filter(|row| !row.2.is_empty()).count() as u64;
    let same_note = rows.iter().filter(|row| row.2 == last_note).count() as u64;
    let same_user = rows.iter().filter(|row| row.1 == last_user).count() as u64;
    for report in &simulation.strategies {
        let outcome = &report.outcome;
        assert_eq!(outcome.transactions, 480);
        let splits = &outcome.spaces[0].splits;
        assert_eq!(splits.iter().map(|split| split.rows).sum::<u64>(), 4800, "{}", report.strategy);
        assert_eq!(splits.iter().filter(|split| split.starts_at.is_none()).count(), 1);
        if !report.is_range {
            assert_eq!((splits.len(), report.indexes.len()), (16, 0));
            continue;
        }
        let [by_note, by_user] = report.indexes.as_slice() else { panic!("{}", report.strategy) };
        assert_eq!((by_note.entries, by_note.matching_rows), (with_note, same_note));
        assert_eq!((by_user.entries, by_user.matching_rows, by_user.back_joins), (4800, same_user, 0));
        assert_eq!(outcome.whole.rows, 4800 * 2 + with_note);
    }
}

#[test]
fn hash_partitions_have_the_rows_that_their_placement_gives_them() {
    let rows = steady();
    let mut options = options("at, user, note", &["hash-16"]);
    options.partition_key = vec!["user".to_owned()];
    let simulation = run(&rows, &options).unwrap();
    let splits = &simulation.strategies[0].outcome.spaces[0].splits;
    // All rows of a user are in one partition, so each size is a sum of users' sizes; and the
    // largest share of a window is at least that of the largest partition.
    let mut users: BTreeMap<u32, u64> = BTreeMap::new();
    rows.iter().for_each(|row| *users.entry(row.1).or_default() += 1);
    let largest = splits.iter().map(|split| split.rows).max().unwrap();
    assert!(largest >= *users.values().max().unwrap() && largest < 4800, "{largest}");
    assert!(simulation.strategies[0].outcome.spaces[0].hottest_share >= largest as f64 / 4800.0);
    assert_eq!(simulation.strategies[0].outcome.whole.by_load, 0);
}

#[test]
fn a_key_that_follows_time_is_found_and_another_recommended() {
    let simulation = run(&steady(), &options("at, user", &["declared", "shard-16"])).unwrap();
    let [declared, shards] = simulation.strategies.as_slice() else { panic!() };
    // Eight rows per second go to the last split; two would make it hot.
    assert!((declared.outcome.whole.highest_score - 400.0).abs() < 1e-9);
    assert!(declared.outcome.spaces[0].hottest_share > 0.99 && shards.outcome.spaces[0].hottest_share < 0.5);
    assert_eq!(simulation.recommended.map(|name| name.to_string()).as_deref(), Some("shard-16"));
    assert!(simulation.findings.iter().any(|finding| finding.code == FindingCode::MonotonicKey));
    assert!((simulation.load.rows_per_second.unwrap() - 8.0).abs() < 0.1);
    assert_eq!(simulation.load.source, RateSource::Measured);
    let rows_read = |report: &StrategyReport| {
        report.reads.iter().map(|read| (read.kind, read.ranges)).collect::<Vec<_>>()
    };
    let reads = [(ReadKind::TimeRange, Some(1)), (ReadKind::History, None), (ReadKind::Row, Some(1))];
    assert_eq!(rows_read(declared), reads);
    assert_eq!(rows_read(shards)[0], (ReadKind::TimeRange, Some(16)));
}

#[test]
fn rows_out_of_order_are_replayed_in_order() {
    let rows = steady();
    let mut shuffled = rows.clone();
    shuffled.sort_by_key(|row| (row.1 * 31 % 89, row.0));
    let options = options("at, user, note", &["declared", "swapped"]);
    let (expected, found) = (run(&rows, &options).unwrap(), run(&shuffled, &options).unwrap());
    assert!(found.load.is_sorted_by_time && !expected.load.is_sorted_by_time);
    for (expected, found) in expected.strategies.iter().zip(&found.strategies) {
        assert_eq!(found.outcome.spaces[0].rows, expected.outcome.spaces[0].rows);
        // The order within a second differs, but not the rows of a window.
        assert_eq!(found.outcome.whole.windows, expected.outcome.whole.windows);
        assert_eq!(found.outcome.timeline.periods.len(), expected.outcome.timeline.periods.len());
        let rows = |report: &StrategyReport| {
            report.outcome.timeline.periods.iter().map(|period| period.rows).collect::<Vec<_>>()
        };
        assert_eq!(rows(found), rows(expected));
    }
}

#[test]
fn repeated_keys_are_counted() {
    let rows = [(0, 1, "a"), (1, 2, "b"), (2, 1, "c"), (3, 1, "d")];
    let simulation = run(&rows, &options("user", &["declared"])).unwrap();
    let repeated = |note: &&Remark| note.code() == "keys_repeated";
    let note = simulation.notes.iter().find(repeated).unwrap();
    assert!(note.text().starts_with("exactly 2 rows have a key"), "{note}");
    assert!(simulation.unsure.is_some() && simulation.recommended.is_none());
    let simulation = run(&rows, &options("at", &["declared"])).unwrap();
    assert!(!simulation.notes.iter().any(|note| repeated(&note)));
}

#[test]
fn unsuitable_options_are_refused() {
    let rows = [(0, 1, "a"), (1, 2, "b")];
    let error = |primary_key, strategy| run(&rows, &options(primary_key, &[strategy])).unwrap_err();
    assert!(matches!(error("nobody", "declared"), SimulateError::UnknownColumn { .. }));
    assert!(matches!(error("user, USER", "declared"), SimulateError::Repeated { .. }));
    assert!(matches!(error("user", "swapped"), SimulateError::Unsuited { .. }));
    assert!(matches!(error("user", "desc"), SimulateError::Unsuited { .. }));
    let mut twice = options("user", &["declared"]);
    twice.indexes = vec!["i(at)".parse().unwrap(), "i(user)".parse().unwrap()];
    assert!(matches!(run(&rows, &twice), Err(SimulateError::RepeatedIndex { .. })));
    let no_time = SimulateOptions { time: Some("note".to_owned()), ..options("user", &["declared"]) };
    assert!(matches!(run(&rows, &no_time), Err(SimulateError::Time { .. })));
    let stopped = AtomicBool::new(true);
    let stopped = run_until(&rows, &options("user", &["declared"]), &stopped);
    assert!(matches!(stopped, Err(SimulateError::Interrupted)));
}
