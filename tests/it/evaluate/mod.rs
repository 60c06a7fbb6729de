//! Keys judged on exports: every figure against the same figure computed another way.

mod candidates;
mod figures;
mod inputs;
mod recommendation;
mod results;
mod samples;
mod tables;

use std::path::Path;

use arrow::array::RecordBatch;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use serde_json::Value;

const FLIGHTS: &str = "data/nycflights13-flights.parquet";

/// A second engine: SQL over the raw rows of a Parquet file, as table `t`, with the number of each
/// row in `arrived`.
pub(crate) async fn raw(file: &Path) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().sql_parser.enable_ident_normalization = false;
    let context = SessionContext::new_with_config(config);
    context.register_parquet("file", file.to_str().unwrap(), ParquetReadOptions::default()).await.unwrap();
    let numbered = context.sql("SELECT *, row_number() OVER () AS arrived FROM file").await.unwrap();
    let numbered = numbered.cache().await.unwrap();
    context.register_table("t", numbered.into_view()).unwrap();
    context
}

pub(crate) async fn rows_of(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    context.sql(sql).await.unwrap().collect().await.unwrap()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// The placement of a candidate over so many partitions.
fn placement(candidate: &Value, partitions: u64) -> &Value {
    let placements = candidate["placements"].as_array().unwrap();
    placements.iter().find(|placement| placement["partitions"] == partitions).unwrap()
}
