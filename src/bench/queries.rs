//! Measures the time of queries on an open table.

use std::time::Instant;

use arrow::array::RecordBatch;
use serde::Serialize;

use evenkeel_engine::query::{Params, QueryError, ScanSummary, TableSession};

/// Times of one query.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueryBench {
    /// Name of the query.
    pub name: String,
    /// Number of rows in the result.
    pub rows: u64,
    /// Milliseconds for planning, reading and computing in each run; a first run is not counted.
    pub millis: Vec<f64>,
    /// Median of the runs, in milliseconds.
    pub median_millis: f64,
    /// Summary of the data that the query reads from each table.
    pub scans: Vec<ScanSummary>,
}

/// Runs `sql` once without counting it, so that footers and files are in memory as in a running
/// service, and then `runs` times, at least once.
///
/// # Errors
/// [`QueryError`] if the SQL is not a query, its parameters do not fit, or it fails.
pub async fn bench_query(
    session: &TableSession,
    name: &str,
    sql: &str,
    params: &Params,
    runs: u32,
) -> Result<QueryBench, QueryError> {
    let scans = session.explain(sql, params).await?.scans;
    let warm = session.collect(sql, params).await?;
    let mut millis = Vec::new();
    for _ in 0..runs.max(1) {
        let started = Instant::now();
        session.collect(sql, params).await?;
        millis.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    let mut sorted = millis.clone();
    sorted.sort_by(f64::total_cmp);
    let median_millis = match (sorted.get((sorted.len() - 1) / 2), sorted.get(sorted.len() / 2)) {
        (Some(below), Some(above)) => f64::midpoint(*below, *above),
        _ => 0.0,
    };
    let rows = warm.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
    Ok(QueryBench { name: name.to_owned(), rows, millis, median_millis, scans })
}
