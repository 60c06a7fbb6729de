//! Counts of a primary key against naive ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use evenkeel_model::table::Column;
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::Function;
use evenkeel_stats::sketch::fold;

use super::*;
use crate::evaluate::figures::uniqueness::UniqueBy;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::evaluator::Evaluator;

/// A row: its time in microseconds, the id that places it, and a value that is in no key.
type Row = (i64, u64, u64);

/// Rows that arrive up to some minutes late. Some repeat, with the same value or another one.
fn rows(count: u64) -> Vec<Row> {
    let row = |row: u64| {
        let step = (row + fold(row, 1) % 50) / 3;
        (1_767_225_600_000_000 + step as i64 * 25_000_000, fold(row, 2) % 13, fold(row, 3) % 2)
    };
    (0..count).map(row).collect()
}

/// The report on the only primary key of the options, after batches of 100 rows.
fn report(columns: &[(&str, ColumnType, ArrayRef)], options: EvaluateOptions) -> PrimaryKeyReport {
    let declared: Vec<Column> =
        columns.iter().map(|(name, column_type, _)| Column::nullable(*name, *column_type)).collect();
    let arrays = columns.iter().map(|(name, _, array)| (*name, Arc::clone(array)));
    let batch = RecordBatch::try_from_iter(arrays).unwrap();
    let mut evaluator = Evaluator::new(&declared, options).unwrap();
    for begin in (0..batch.num_rows()).step_by(100) {
        evaluator.add(&batch.slice(begin, (batch.num_rows() - begin).min(100))).unwrap();
    }
    evaluator.finish().unwrap().primary_keys.remove(0)
}

/// The report on the key of time and id, placed by the id.
fn report_on(rows: &[Row], partitions: PartitionCount, batch_rows: u64) -> PrimaryKeyReport {
    let numbers =
        |of: fn(&Row) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(of))) };
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(rows.iter().map(|row| row.0)));
    let columns = [
        ("at", ColumnType::Timestamp, times),
        ("id", ColumnType::Uint64, numbers(|row| row.1)),
        ("value", ColumnType::Uint64, numbers(|row| row.2)),
    ];
    let options = EvaluateOptions {
        partition_keys: vec![Candidate::from_columns(&["id"])],
        primary_keys: vec![Candidate::from_columns(&["at", "id"])],
        partitions: vec![partitions],
        batch_rows,
        ..EvaluateOptions::default()
    };
    report(&columns, options)
}

#[test]
fn rows_that_repeat_and_rows_that_are_late_are_those_of_a_naive_count() {
    let rows = rows(1_050);
    let partitions = PartitionCount::new(4).unwrap();
    let found = report_on(&rows, partitions, 64);
    let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.1)));
    let placement = Placement::new(Function::default(), partitions, vec![ColumnType::Uint64]);
    let placed = placement.assign(&[ids]).unwrap();
    let mut last: HashMap<(i64, u64), u64> = HashMap::new();
    let (mut identical, mut conflicting) = (0u64, 0u64);
    // The greatest key of each partition; its time is the latest.
    let mut greatest: HashMap<PartitionId, (i64, u64)> = HashMap::new();
    let (mut late, mut reach, mut by) = (0u64, 0i64, [0u64; 4]);
    for ((at, id, value), partition) in rows.iter().zip(&placed) {
        match last.insert((*at, *id), *value) {
            Some(before) if before == *value => identical += 1,
            Some(_) => conflicting += 1,
            None => {}
        }
        let known = greatest.entry(*partition).or_insert((*at, *id));
        if (*at, *id) < *known {
            late += 1;
            let micros = known.0 - at;
            reach = reach.max(micros);
            for (rows, seconds) in by.iter_mut().zip([1, 60, 3_600, 86_400]) {
                *rows += u64::from(micros > seconds * 1_000_000);
            }
        }
        *known = (*known).max((*at, *id));
    }
    assert!(identical > 0 && conflicting > 0 && by[1] > 0, "{identical} {conflicting} {by:?}");
    assert_eq!((found.identical_rows, found.conflicting_rows), (identical, conflicting));
    assert_eq!((found.duplicate_rows, found.unique), (identical + conflicting, false));
    assert_eq!((found.distinct_keys, found.uniqueness), (last.len() as u64, None));
    assert_eq!((found.late.rows, found.late.at_most), (late, None));
    let found_reach = found.late.reach.unwrap();
    assert_eq!((found_reach.max_micros, found_reach.rows_by_more_than), (reach, by));
    assert_eq!(found.in_order_fraction, 1.0 - late as f64 / 1_050.0);
    assert_eq!((found.mean_key_bytes, found.max_key_bytes, found.null_rows), (16.0, 16, 0));
    assert_eq!((found.partitioned_by, found.partitions), (vec!["id".to_owned()], 4));
    let portions = placed.chunks(64).map(|batch| batch.iter().collect::<HashSet<_>>().len() as u64);
    assert_eq!(found.layout.portions, portions.sum::<u64>());
    assert_eq!((found.layout.batches, found.layout.batch_rows), (17, 64));
}

#[test]
fn many_batches_are_joined_into_those_of_more_rows() {
    let partitions = PartitionCount::new(2).unwrap();
    for (count, joined_rows) in [(4_000, 2), (4_002, 4), (5_000, 4), (16_010, 16)] {
        let rows = rows(count);
        let small = report_on(&rows, partitions, 2).layout;
        assert_eq!((small.batch_rows, small.batches), (joined_rows, count.div_ceil(joined_rows)), "{count}");
        assert_eq!(small, report_on(&rows, partitions, joined_rows).layout, "{count}");
    }
}

#[test]
fn uniqueness_is_judged_if_all_rows_and_whole_keys_are_known() {
    let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..2_000));
    let texts = |bytes: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..2_000).map(|row| format!("{row:0bytes$}"))))
    };
    let options = || EvaluateOptions {
        primary_keys: vec![Candidate::from_columns(&["key"])],
        ..EvaluateOptions::default()
    };
    let numbered = report(&[("key", ColumnType::Uint64, Arc::clone(&ids))], options());
    assert!(numbered.unique && numbered.duplicate_rows_interval.is_none());
    assert_eq!(numbered.uniqueness.map(|unique| unique.by), Some(UniqueBy::Nature));
    let short = report(&[("key", ColumnType::Utf8, texts(20))], options());
    let long = report(&[("key", ColumnType::Utf8, texts(2 * MAX_KEPT_BYTES))], options());
    assert!(short.unique && long.unique);
    assert_eq!((short.uniqueness.is_some(), long.uniqueness.is_some()), (true, false));
    let sampled = EvaluateOptions { sample: Some(0.5), ..options() };
    let sampled = report(&[("key", ColumnType::Uint64, ids)], sampled);
    assert!(sampled.unique && sampled.uniqueness.is_none());
    assert!(sampled.duplicate_rows_interval.is_some());
}

#[test]
fn obstacles_begin_beyond_the_limits_of_each_system() {
    let found = |function: &str, types: &[ColumnType], null_rows: u64, longest: usize| {
        let names: Vec<String> = (0..types.len()).map(|at| format!("c{at}")).collect();
        let candidate = Candidate::from_columns(&names);
        let function: Function = function.parse().unwrap();
        let plan = PrimaryKeyPlan {
            key: (0..types.len()).collect(),
            types: types.to_vec(),
            partition_key: candidate.clone(),
            placed: Vec::new(),
            placement: Placement::new(function, PartitionCount::ONE, types.to_vec()),
            conditions: Vec::new(),
            budget: 1 << 20,
            batch_rows: 1_000,
            candidate,
        };
        obstacles(&plan, null_rows, 100, longest as u64)
    };
    let int64 = [ColumnType::Int64; MAX_KEY_COLUMNS + 1];
    assert!(found("ydb", &int64[1..], 5, MAX_KEY_BYTES).is_empty());
    for (obstacles, words) in [
        (found("ydb", &int64, 0, 8), "it has 21 columns; YDB accepts 20"),
        (found("ydb", &int64[..1], 6, 8), "6 rows have NULL in the key"),
        (found("ydb", &int64[..1], 0, MAX_KEY_BYTES + 1), "a key has 1048577 bytes"),
        (found("ydb", &[ColumnType::Int64, ColumnType::Double], 0, 8), "c1 is of type Double"),
    ] {
        assert!(obstacles.len() == 1 && obstacles[0].starts_with(words), "{words}: {obstacles:?}");
    }
    assert!(found("mongodb", &[ColumnType::Double], 0, 8).is_empty());
}
