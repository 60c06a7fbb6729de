//! Measures an ingest batch by batch, into one table for each partition key.

mod batches;
mod figures;
mod lane;
mod options;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bench::ingest::batches::batches;
use crate::bench::ingest::lane::Lane;
use evenkeel_input::source::Export;

pub use figures::{BatchWrite, IngestBench, KeyBench};
pub use options::{BenchError, BenchOptions};

/// Ingests `export` into a table below `folder` for each key. Calls `progress` with the number of
/// rows that have been ingested into every table.
///
/// # Errors
/// [`BenchError`] if the export cannot be read, or a table cannot ingest it.
pub async fn bench_ingest(
    export: Arc<Export>,
    options: &BenchOptions,
    folder: &Path,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<IngestBench, BenchError> {
    let mut lanes = Vec::new();
    for (number, key) in options.partition_keys.iter().enumerate() {
        lanes.push(Lane::open(&export, options, key, folder.join(format!("table-{number}"))).await?);
    }
    let mut batches = batches(export, options.batch_rows);
    let started = Instant::now();
    let (mut number, mut rows) = (0usize, 0u64);
    while let Some(batch) = batches.recv().await {
        let batch = batch?;
        if let Some(rate) = options.rows_per_second {
            let due = Duration::try_from_secs_f64(rows as f64 / rate).unwrap_or_default();
            tokio::time::sleep(due.saturating_sub(started.elapsed())).await;
        }
        rows += batch.num_rows() as u64;
        // Rotate the order, so that each key is first equally often.
        let lane_count = lanes.len().max(1);
        for position in 0..lanes.len() {
            if let Some(lane) = lanes.get_mut((position + number) % lane_count) {
                lane.ingest(&batch, options).await?;
            }
            progress(
                rows.saturating_sub(batch.num_rows() as u64) * lane_count as u64
                    + batch.num_rows() as u64 * (position as u64 + 1),
            );
        }
        number += 1;
    }
    let finished = lanes.into_iter().map(|lane| lane.finish(options)).collect::<Result<_, _>>()?;
    Ok(IngestBench {
        partitions: options.partitions,
        batch_rows: options.batch_rows,
        limits: options.limits,
        keys: finished,
    })
}
