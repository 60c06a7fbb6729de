//! Figures of a partition key, compared with a naive count, and its heaviest values.

use arrow::array::{ArrayRef, Int8Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::compute::take_record_batch;
use evenkeel_model::table::{Candidate, Column};
use evenkeel_placement::placement::{Function, Placement};
use proptest::prelude::{prop_assert_eq, proptest};

use super::*;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::evaluator::Evaluator;

proptest! {
    #[test]
    fn runs_are_the_rows_again_unless_they_are_short(
        lengths in proptest::collection::vec((0u32..3, 1usize..30), 0..12),
    ) {
        let all = lengths.iter().flat_map(|(number, rows)| std::iter::repeat_n(*number, *rows));
        let numbers: Vec<u32> = all.collect();
        let changes = numbers.windows(2).filter(|pair| pair[0] != pair[1]).count();
        let found = runs(&numbers);
        prop_assert_eq!(found.is_some(), changes * 8 <= numbers.len());
        if let Some(found) = found {
            prop_assert_eq!(found.len(), changes + usize::from(!numbers.is_empty()));
            let again = found.iter().flat_map(|(number, rows)| std::iter::repeat_n(*number, *rows as usize));
            prop_assert_eq!(again.collect::<Vec<u32>>(), numbers);
        }
    }
}

/// Rows of keys, each of which has 20 rows more than the one before. One name is NULL.
fn sorted() -> RecordBatch {
    let keys = || (0..40u64).flat_map(|key| std::iter::repeat_n(key, key as usize * 20 + 5));
    let name = |key: u64| (key != 7).then(|| "n".repeat(key as usize % 6 + 1) + &key.to_string());
    let names: ArrayRef = Arc::new(keys().map(name).collect::<StringArray>());
    let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(keys().map(|key| key / 3)));
    RecordBatch::try_from_iter([("name", names), ("number", numbers)]).unwrap()
}

fn evaluator(columns: &[Column], key: &str, function: &str) -> Evaluator {
    let options = EvaluateOptions {
        partition_keys: vec![key.parse().unwrap()],
        placements: vec![function.parse().unwrap()],
        partitions: [5, 16].map(|count| PartitionCount::new(count).unwrap()).to_vec(),
        ..EvaluateOptions::default()
    };
    Evaluator::new(columns, options).unwrap()
}

/// The report on a key, without the values of heavy keys, after batches of `batch_rows`.
fn report(batch: &RecordBatch, key: &str, batch_rows: usize) -> PartitionKeyReport {
    let types = [("name", ColumnType::Utf8), ("number", ColumnType::Uint64)];
    let columns = types.map(|(name, column_type)| Column::nullable(name, column_type));
    let mut evaluator = evaluator(&columns, key, "ydb");
    for begin in (0..batch.num_rows()).step_by(batch_rows) {
        let rows = batch_rows.min(batch.num_rows() - begin);
        evaluator.add(&batch.slice(begin, rows)).unwrap();
    }
    let counted = evaluator.counted();
    let mut report = evaluator.finish().unwrap().candidates.remove(0);
    let first = &report.placements[0];
    assert_eq!(counted, (first.rows_per_partition.clone(), first.bytes_per_partition.clone()));
    for hitter in &mut report.heavy_hitters {
        (hitter.key, hitter.identity) = (Vec::new(), None);
    }
    report
}

#[test]
fn sorted_and_shuffled_rows_of_a_key_have_the_figures_of_a_naive_count() {
    let sorted = sorted();
    let rows = sorted.num_rows();
    let order = UInt32Array::from_iter_values(
        (0..rows as u32).map(|row| (u64::from(row) * 7_919 % rows as u64) as u32),
    );
    let shuffled = take_record_batch(&sorted, &order).unwrap();
    for key in ["name", "number", "number, name"] {
        let expected = report(&sorted, key, rows);
        for batch_rows in [rows, 333] {
            assert_eq!(report(&shuffled, key, batch_rows), expected, "{key} {batch_rows}");
            assert_eq!(report(&sorted, key, batch_rows), expected, "{key} {batch_rows}");
        }
        let parts: Vec<&str> = key.split(", ").collect();
        let columns: Vec<ArrayRef> =
            parts.iter().map(|part| Arc::clone(sorted.column_by_name(part).unwrap())).collect();
        let types: Vec<ColumnType> =
            columns.iter().map(|column| ColumnType::from_arrow(column.data_type()).unwrap()).collect();
        for (count, placement) in [5, 16].into_iter().zip(&expected.placements) {
            let partitions = PartitionCount::new(count).unwrap();
            let mut naive = vec![0u64; partitions.len()];
            let placed = Placement::new(Function::default(), partitions, types.clone());
            for partition in placed.assign(&columns).unwrap() {
                naive[partition.index()] += 1;
            }
            assert_eq!(placement.rows_per_partition, naive, "{key} {count}");
        }
        let has_name = parts.contains(&"name");
        assert_eq!(expected.null_rows, if has_name { 7 * 20 + 5 } else { 0 }, "{key}");
        let bytes = |key: u64| match (has_name, parts.len()) {
            (false, _) => 8,
            (true, parts) => {
                let name = if key == 7 { 0 } else { key % 6 + 1 + key.to_string().len() as u64 };
                name + 8 * (parts as u64 - 1)
            }
        };
        let sum: u64 = (0..40).map(|key| bytes(key) * (key * 20 + 5)).sum();
        assert_eq!(expected.mean_key_bytes, sum as f64 / rows as f64, "{key}");
        assert_eq!(Some(expected.max_key_bytes), (0..40).map(bytes).max(), "{key}");
        // Three names have each number.
        let mut of_keys: Vec<u64> = if has_name {
            (0..40).map(|key| key * 20 + 5).collect()
        } else {
            (0..40u64)
                .step_by(3)
                .map(|key| (key..(key + 3).min(40)).map(|key| key * 20 + 5).sum::<u64>())
                .collect()
        };
        assert_eq!(expected.distinct.estimate, of_keys.len() as u64, "{key}");
        of_keys.sort_unstable_by_key(|rows| std::cmp::Reverse(*rows));
        let heaviest: Vec<u64> = expected.heavy_hitters.iter().map(|hitter| hitter.rows).collect();
        assert_eq!(heaviest, of_keys[..10], "{key}");
    }
}

#[test]
fn types_that_ydb_takes_in_no_key_are_an_obstacle_there_alone() {
    let column = Column::nullable("small", ColumnType::Int8);
    let values: ArrayRef = Arc::new(Int8Array::from_iter_values(0..100));
    let batch = RecordBatch::try_from_iter([("small", values)]).unwrap();
    for (function, obstacle) in
        [("ydb", Some("small is of type Int8, which YDB does not accept in keys")), ("kudu", None)]
    {
        let mut evaluator = evaluator(std::slice::from_ref(&column), "small", function);
        evaluator.add(&batch).unwrap();
        let report = evaluator.finish().unwrap().candidates.remove(0);
        assert_eq!(report.type_obstacle.as_deref(), obstacle, "{function}");
        assert_eq!(report.candidate, Candidate::from_columns(&["small"]));
    }
}

#[test]
fn the_values_of_the_heaviest_keys_are_known_in_the_order_of_their_rows() {
    let columns = ["name", "number"].map(|name| {
        Column::nullable(name, if name == "name" { ColumnType::Utf8 } else { ColumnType::Uint64 })
    });
    let mut evaluator = evaluator(&columns, "number, name", "ydb");
    evaluator.add(&sorted()).unwrap();
    let report = evaluator.finish().unwrap().candidates.remove(0);
    let first = &report.heavy_hitters[0];
    assert_eq!(first.key, [Value::from(13), Value::from("nnnn39")]);
    assert_eq!((first.rows, first.error), (39 * 20 + 5, 0));
    // 20 x (0 + 1 + ... + 39) + 40 x 5 rows.
    assert_eq!(first.share, 785.0 / 15_800.0);
    let placement = &report.placements[1];
    assert!(placement.share_of_heaviest_partition >= first.share, "{placement:?}");
}
