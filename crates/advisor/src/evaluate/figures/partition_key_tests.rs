//! JSON of the figures of a placement.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use evenkeel_model::table::{Column, ColumnType};

use super::*;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::evaluator::Evaluator;

#[test]
fn a_function_is_written_as_the_name_that_was_given() {
    let options = EvaluateOptions {
        partition_keys: vec![Candidate::from_columns(&["id"])],
        placements: ["ydb", "ydb-modulo", "kudu"].map(|name| name.parse::<Function>().unwrap()).to_vec(),
        partitions: vec![PartitionCount::new(4).unwrap()],
        ..EvaluateOptions::default()
    };
    let ids: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..100));
    let mut evaluator = Evaluator::new(&[Column::required("id", ColumnType::Uint64)], options).unwrap();
    evaluator.add(&RecordBatch::try_from_iter([("id", ids)]).unwrap()).unwrap();
    let mut key = evaluator.finish().unwrap().candidates.remove(0);
    // It takes other keys.
    key.placements[1].function = "ydb-cloud-logs:20:60".parse().unwrap();
    let written = serde_json::to_value(&key.placements).unwrap();
    let functions: Vec<&str> =
        written.as_array().unwrap().iter().filter_map(|placement| placement["function"].as_str()).collect();
    assert_eq!(functions, ["ydb", "ydb-cloud-logs:20:60", "kudu"]);
}
