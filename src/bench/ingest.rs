//! Measures an ingest batch by batch, into one table for each partition key.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use serde::Serialize;
use thiserror::Error;

use crate::bench::backlog::{Backlog, Limits, LoadAtATime};
use evenkeel_advisor::evaluate::{
    Candidate, EvaluateError, EvaluateOptions, Evaluator, LayoutReport, Spread, Transform, derived_column,
};
use evenkeel_engine::{Table, TableError};
use evenkeel_input::source::{Export, OnUnreadable};
use evenkeel_model::bounded::quote;
use evenkeel_model::table::{Column, ColumnType, PlacementFunction, SpecError, TableDefinition, TableSpec};
use evenkeel_model::units::{ByteSize, PartitionCount};
use evenkeel_stats::skew::SkewFigures;
use evenkeel_store::ingest::{IngestOptions, PartitionWrite};

/// Options of an ingest bench.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Partition keys; each gets a table of its own.
    pub partition_keys: Vec<Candidate>,
    /// Primary key; the columns of a table's partition key that it lacks are appended.
    pub primary_key: Candidate,
    /// Partitions of each table.
    pub partitions: PartitionCount,
    /// Rows of a batch; each batch is one commit.
    pub batch_rows: u64,
    /// Rows per second offered to each table; `None` for the highest rate that it can take.
    pub rows_per_second: Option<f64>,
    /// Capacities of the backlog model.
    pub limits: Limits,
    /// Memory budget of an ingest.
    pub memory: ByteSize,
}

/// Error of a bench.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the variants say what failed")]
pub enum BenchError {
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    #[error("a table with PARTITION BY HASH({key}): {source}", key = quote(key))]
    Spec { key: String, source: SpecError },
    #[error("HASH({key}): {source}", key = quote(key))]
    Table { key: String, source: TableError },
    #[error("batches cannot be put together: {0}")]
    Batch(#[from] ArrowError),
    #[error("HASH({key}): partition {partition} has {found} rows where {predicted} were predicted", key = quote(key))]
    Prediction { key: String, partition: usize, predicted: u64, found: u64 },
    #[error("a worker stopped: {0}")]
    Worker(String),
}

/// Measurements of one batch in one table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BatchWrite {
    /// Rows of the batch.
    pub rows: u64,
    /// Bytes of values.
    pub bytes: u64,
    /// Seconds from the first row to the commit.
    pub seconds: f64,
    /// Rows per partition.
    pub rows_per_partition: Vec<u64>,
    /// Bytes of values per partition.
    pub bytes_per_partition: Vec<u64>,
    /// Bytes of files per partition.
    pub stored_bytes_per_partition: Vec<u64>,
    /// Seconds to sort, encode and store each partition; partitions overlap in time.
    pub seconds_per_partition: Vec<f64>,
    /// Rows superseded by a later row of the batch with the same primary key.
    pub replaced: u64,
    /// Portions written.
    pub portions: u64,
    /// Share of the rows in the fullest partition.
    pub share_of_fullest: f64,
    /// Effective number of partitions.
    pub effective_partitions: f64,
}

/// Measurements for one partition key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyBench {
    /// The partition key.
    pub partition_key: Vec<String>,
    /// The primary key of its table.
    pub primary_key: Vec<String>,
    /// Rows ingested.
    pub rows: u64,
    /// Seconds taken by all batches.
    pub seconds: f64,
    /// Rows per second.
    pub rows_per_second: f64,
    /// Bytes of values per second.
    pub bytes_per_second: f64,
    /// Share of the time that the table was busy, if rows were offered at a given rate; above 1 it
    /// cannot keep up.
    pub utilization: Option<f64>,
    /// Bytes of files.
    pub stored_bytes: u64,
    /// Rows superseded by a later row of their batch with the same primary key.
    pub replaced: u64,
    /// Portions written.
    pub portions: u64,
    /// Rows per partition over all batches, checked against the prediction.
    pub rows_per_partition: Vec<u64>,
    /// Skew of the rows per partition.
    pub skew: SkewFigures,
    /// Share of a batch's rows that its fullest partition gets.
    pub share_of_fullest: Spread,
    /// Effective number of partitions of a batch.
    pub effective_partitions: Spread,
    /// Overlap of the portions, and the amount that merging them would write.
    pub layout: LayoutReport,
    /// Modelled backlog.
    pub backlog: Option<Backlog>,
    /// Measurements of each batch.
    pub batches: Vec<BatchWrite>,
}

/// Result of an ingest bench.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IngestBench {
    /// Partitions of each table.
    pub partitions: PartitionCount,
    /// Rows of a batch.
    pub batch_rows: u64,
    /// Capacities of the backlog model.
    pub limits: Limits,
    /// Measurements of each key, in the given order.
    pub keys: Vec<KeyBench>,
}

/// Table of one key while it is being filled.
struct Lane {
    key: Candidate,
    primary_key: Candidate,
    table: Table,
    /// Columns to derive from those of the export, each by position and transform.
    derived: Vec<(usize, Transform)>,
    evaluator: Evaluator,
    batches: Vec<BatchWrite>,
}

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
    let mut batches = batches_of(export, options.batch_rows);
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

/// Reads the batches of the export in a separate thread, one ahead.
fn batches_of(
    export: Arc<Export>,
    batch_rows: u64,
) -> tokio::sync::mpsc::Receiver<Result<RecordBatch, BenchError>> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        let schema = Arc::clone(export.schema());
        let (mut waiting, mut rows) = (Vec::new(), 0usize);
        let batch_rows = usize::try_from(batch_rows).unwrap_or(usize::MAX).max(1);
        let together = |waiting: &mut Vec<RecordBatch>| {
            let batch = concat_batches(&schema, waiting.iter()).map_err(BenchError::from);
            waiting.clear();
            batch
        };
        let read = export.read::<BenchError>(OnUnreadable::Fail, |_, batch| {
            let mut begin = 0;
            while begin < batch.num_rows() {
                let taken = (batch_rows - rows).min(batch.num_rows() - begin);
                waiting.push(batch.slice(begin, taken));
                (begin, rows) = (begin + taken, rows + taken);
                if rows == batch_rows {
                    rows = 0;
                    if sender.blocking_send(together(&mut waiting)).is_err() {
                        return Ok(false);
                    }
                }
            }
            Ok(true)
        });
        let last = match read {
            Err(error) => Some(Err(error)),
            Ok(_) if waiting.is_empty() => None,
            Ok(_) => Some(together(&mut waiting)),
        };
        if let Some(last) = last {
            // If the receiver is gone, there is nothing left to report to.
            let _ = sender.blocking_send(last);
        }
    });
    receiver
}

impl From<evenkeel_input::source::SourceError> for BenchError {
    fn from(error: evenkeel_input::source::SourceError) -> Self {
        Self::Evaluate(error.into())
    }
}

impl Lane {
    async fn open(
        export: &Export,
        options: &BenchOptions,
        key: &Candidate,
        directory: PathBuf,
    ) -> Result<Self, BenchError> {
        let primary_key = options.primary_key.with(key);
        let mut columns = export.columns().to_vec();
        let mut derived = Vec::new();
        for part in primary_key.parts() {
            let position = export.columns().iter().position(|column| column.name == part.column);
            match (position, part.transform) {
                (Some(position), Transform::Identity) => {
                    if let Some(column) = columns.get_mut(position) {
                        column.nullable = false;
                    }
                }
                (Some(position), transform) => {
                    let column_type =
                        if transform == Transform::Date { ColumnType::Date } else { ColumnType::Timestamp };
                    columns.push(Column::required(part.to_string(), column_type));
                    derived.push((position, transform));
                }
                // The evaluation below reports the unknown column, and lists the known ones.
                (None, _) => {}
            }
        }
        let evaluator = Evaluator::new(
            export.columns(),
            EvaluateOptions {
                partition_keys: vec![key.clone()],
                primary_keys: vec![primary_key.clone()],
                partitions: vec![options.partitions],
                batch_rows: options.batch_rows,
                partition_rate: options.limits.partition_rate,
                memory: options.memory.max(ByteSize::mib(512)),
                ..EvaluateOptions::default()
            },
        )?;
        let definition = TableDefinition {
            ttl: None,
            name: "bench".to_owned(),
            columns,
            primary_key: primary_key.part_names(),
            partition_key: key.part_names(),
            partitions: options.partitions,
            placement: PlacementFunction::Ydb,
        };
        let spec =
            TableSpec::new(definition).map_err(|source| BenchError::Spec { key: key.to_string(), source })?;
        let table = Table::create(&directory, &spec).await;
        let table = table.map_err(|source| BenchError::Table { key: key.to_string(), source })?;
        Ok(Self { key: key.clone(), primary_key, table, derived, evaluator, batches: Vec::new() })
    }

    async fn ingest(&mut self, batch: &RecordBatch, options: &BenchOptions) -> Result<(), BenchError> {
        // Count the predicted effect of the batch outside of the measured time.
        let before = self.evaluator.counted();
        self.evaluator.add(batch)?;
        let after = self.evaluator.counted();
        let difference = |after: Vec<u64>, before: &[u64]| -> Vec<u64> {
            after.iter().zip(before).map(|(after, before)| after - before).collect()
        };
        let (rows_predicted, bytes) = (difference(after.0, &before.0), difference(after.1, &before.1));
        let batch = self.with_derived(batch)?;
        let ingest = IngestOptions { memory: options.memory, ..IngestOptions::default() };
        let started = Instant::now();
        let batches = futures::stream::iter([Ok::<_, std::io::Error>(batch.clone())]);
        let committed = self.table.ingest(batches, &ingest).await;
        let committed =
            committed.map_err(|source| BenchError::Table { key: self.key.to_string(), source })?;
        let seconds = started.elapsed().as_secs_f64();
        let rows_per_partition = committed.rows_per_partition();
        if committed.replaced == 0
            && let Some((partition, (predicted, found))) =
                rows_predicted.iter().zip(&rows_per_partition).enumerate().find(|(_, (a, b))| a != b)
        {
            let (predicted, found) = (*predicted, *found);
            return Err(BenchError::Prediction { key: self.key.to_string(), partition, predicted, found });
        }
        let figures = SkewFigures::from_counts(&rows_per_partition);
        let of = |figure: fn(&PartitionWrite) -> u64| committed.writes.iter().map(figure).collect();
        self.batches.push(BatchWrite {
            rows: batch.num_rows() as u64,
            bytes: bytes.iter().sum(),
            seconds,
            rows_per_partition,
            bytes_per_partition: bytes,
            stored_bytes_per_partition: of(|write| write.bytes),
            seconds_per_partition: committed.writes.iter().map(|write| write.seconds).collect(),
            replaced: committed.replaced,
            portions: committed.portions(),
            share_of_fullest: figures.share_of_fullest,
            effective_partitions: figures.effective_partitions,
        });
        Ok(())
    }

    /// Returns the batch with the derived columns of the key appended.
    fn with_derived(&self, batch: &RecordBatch) -> Result<RecordBatch, BenchError> {
        let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
        for (position, transform) in &self.derived {
            let array = batch.columns().get(*position).and_then(|array| derived_column(array, *transform));
            columns.push(array.ok_or_else(|| EvaluateError::Time { column: self.key.to_string() })?);
        }
        let names = self.table.spec().columns().iter().map(|column| column.name.clone());
        Ok(RecordBatch::try_from_iter_with_nullable(names.zip(columns).map(|(n, a)| (n, a, true)))?)
    }

    fn finish(self, options: &BenchOptions) -> Result<KeyBench, BenchError> {
        let evaluation = self.evaluator.finish()?;
        let placement = evaluation.candidates.iter().flat_map(|key| &key.placements).next();
        let backlog_at = |loads: &[Vec<u64>], rate: Option<f64>| {
            let placement = placement?;
            let load = LoadAtATime { partitions: &placement.capacity, windows: &placement.windows };
            Backlog::of(loads, options.limits, load, rate)
        };
        let layout = evaluation.primary_keys.first().map(|key| key.layout.clone());
        let layout = layout.ok_or(EvaluateError::NoRows)?;
        let partitions = options.partitions.len();
        let mut rows_per_partition = vec![0u64; partitions];
        for batch in &self.batches {
            rows_per_partition.iter_mut().zip(&batch.rows_per_partition).for_each(|(sum, rows)| *sum += rows);
        }
        let sum = |of: fn(&BatchWrite) -> u64| self.batches.iter().map(of).sum::<u64>();
        let spread =
            |of: fn(&BatchWrite) -> f64| Spread::of(&self.batches.iter().map(of).collect::<Vec<_>>());
        let (rows, bytes) = (sum(|batch| batch.rows), sum(|batch| batch.bytes));
        let seconds: f64 = self.batches.iter().map(|batch| batch.seconds).sum();
        let per_second = |amount: u64| amount as f64 / seconds.max(f64::MIN_POSITIVE);
        let row_bytes = bytes as f64 / rows.max(1) as f64;
        let loads: Vec<Vec<u64>> =
            self.batches.iter().map(|batch| batch.bytes_per_partition.clone()).collect();
        let (Some(share_of_fullest), Some(effective_partitions)) =
            (spread(|batch| batch.share_of_fullest), spread(|batch| batch.effective_partitions))
        else {
            return Err(EvaluateError::NoRows.into());
        };
        Ok(KeyBench {
            partition_key: self.key.part_names(),
            primary_key: self.primary_key.part_names(),
            rows,
            seconds,
            rows_per_second: per_second(rows),
            bytes_per_second: per_second(bytes),
            utilization: options.rows_per_second.map(|rate| seconds * rate / rows.max(1) as f64),
            stored_bytes: self.batches.iter().flat_map(|batch| &batch.stored_bytes_per_partition).sum(),
            replaced: sum(|batch| batch.replaced),
            portions: sum(|batch| batch.portions),
            skew: SkewFigures::from_counts(&rows_per_partition),
            rows_per_partition,
            share_of_fullest,
            effective_partitions,
            layout,
            backlog: backlog_at(&loads, options.rows_per_second.map(|rate| rate * row_bytes)),
            batches: self.batches,
        })
    }
}
