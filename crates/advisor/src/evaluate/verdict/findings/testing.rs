//! Figures without a problem, for the tests of several modules.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};

use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::over_time::OverTime;
use crate::evaluate::figures::recommendation::Recommendation;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::evaluator::Evaluator;
use evenkeel_model::table::{Candidate, Column, ColumnType};
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_stats::skew::Verdict;
use evenkeel_stats::windows::{TimeRange, Window};

pub(super) const ROWS: u64 = 10_000;

/// Evaluates an id as both keys, over 8 partitions and 200 hours. There is nothing to be found.
pub(super) fn sound() -> Evaluation {
    let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..ROWS));
    let options = EvaluateOptions {
        partition_keys: vec![Candidate::from_columns(&["id"])],
        primary_keys: vec![Candidate::from_columns(&["id"])],
        partitions: vec![PartitionCount::new(8).unwrap()],
        ..EvaluateOptions::default()
    };
    let mut evaluator = Evaluator::new(&[Column::nullable("id", ColumnType::Uint64)], options).unwrap();
    evaluator.add(&RecordBatch::try_from_iter([("id", ids)]).unwrap()).unwrap();
    let mut evaluation = evaluator.finish().unwrap();

    let window = |number: i64| Window {
        number,
        start_micros: number * Micros::HOUR.get(),
        rows_per_partition: (100..108).collect(),
    };
    let windows: Vec<Window> = (0..200).map(window).collect();
    let over_time = OverTime::from_windows(&windows, Micros::HOUR);
    evaluation.time = Some("at".to_owned());
    evaluation.time_range = Some(TimeRange {
        earliest_micros: 0,
        latest_micros: 200 * Micros::HOUR.get(),
        null_rows: 0,
        late_rows_by_more_than: [0; 4],
        average_rows_per_second: 1.0,
        busy_rows_per_second: 1.0,
    });
    let key = &mut evaluation.candidates[0];
    key.placements[0].verdict = Verdict::Even;
    key.placements[0].causes.hash_function = 0.0;
    key.placements[0].over_time = over_time.clone();
    key.over_time = over_time;
    let key = &mut evaluation.primary_keys[0];
    key.obstacles.clear();
    key.uniqueness = None;
    key.in_order_fraction = 1.0;
    key.rank_correlation = None;
    key.layout.write_amplification = 1.0;
    evaluation
}

/// The choice of the id as both keys.
pub(super) fn recommended() -> Recommendation {
    let key = || vec!["id".to_owned()];
    Recommendation { partition_key: key(), primary_key: key(), partitions: 8, ..Recommendation::default() }
}
