//! Table of one key: each batch is predicted, ingested and measured.

use std::path::PathBuf;
use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch};

use crate::bench::backlog::{Backlog, LoadAtATime};
use crate::bench::ingest::figures::{BatchWrite, KeyBench};
use crate::bench::ingest::options::{BenchError, BenchOptions};
use evenkeel_advisor::evaluate::{
    Candidate, EvaluateError, EvaluateOptions, Evaluator, Spread, Transform, derived_column,
};
use evenkeel_engine::Table;
use evenkeel_input::source::Export;
use evenkeel_model::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel_model::units::ByteSize;
use evenkeel_stats::skew::SkewFigures;
use evenkeel_store::ingest::IngestOptions;

/// Table of one key while it is being filled.
pub(super) struct Lane {
    key: Candidate,
    primary_key: Candidate,
    table: Table,
    /// Columns to derive from columns of the export, each by position and transform.
    derived: Vec<(usize, Transform)>,
    evaluator: Evaluator,
    batches: Vec<BatchWrite>,
}

impl Lane {
    /// Creates the table, with the derived columns of its key.
    pub(super) async fn open(
        export: &Export,
        options: &BenchOptions,
        key: &Candidate,
        directory: PathBuf,
    ) -> Result<Self, BenchError> {
        let primary_key = options.primary_key.with(key);
        let (columns, derived) = columns(export, &primary_key);
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

    /// Ingests a batch, and compares the rows per partition with the prediction.
    pub(super) async fn ingest(
        &mut self,
        batch: &RecordBatch,
        options: &BenchOptions,
    ) -> Result<(), BenchError> {
        // Predict the effect of the batch outside of the measured time.
        let (predicted_rows, bytes) = self.predict(batch)?;
        let batch = self.with_derived(batch)?;
        let ingest = IngestOptions { memory: options.memory, ..IngestOptions::default() };
        let started = Instant::now();
        let batches = futures::stream::iter([Ok::<_, std::io::Error>(batch.clone())]);
        let committed = self.table.ingest(batches, &ingest).await;
        let committed =
            committed.map_err(|source| BenchError::Table { key: self.key.to_string(), source })?;
        let seconds = started.elapsed().as_secs_f64();
        let rows_per_partition = committed.rows_per_partition();
        if committed.replaced == 0 {
            self.verify(&predicted_rows, &rows_per_partition)?;
        }
        let skew = SkewFigures::from_counts(&rows_per_partition);
        self.batches.push(BatchWrite {
            rows: batch.num_rows() as u64,
            bytes: bytes.iter().sum(),
            seconds,
            rows_per_partition,
            bytes_per_partition: bytes,
            stored_bytes_per_partition: committed.writes.iter().map(|write| write.bytes).collect(),
            seconds_per_partition: committed.writes.iter().map(|write| write.seconds).collect(),
            replaced: committed.replaced,
            portions: committed.portions(),
            share_of_fullest: skew.share_of_fullest,
            effective_partitions: skew.effective_partitions,
        });
        Ok(())
    }

    /// Counts a batch, and returns its rows and bytes per partition.
    fn predict(&mut self, batch: &RecordBatch) -> Result<(Vec<u64>, Vec<u64>), BenchError> {
        let (rows_before, bytes_before) = self.evaluator.counted();
        self.evaluator.add(batch)?;
        let (rows, bytes) = self.evaluator.counted();
        let added = |after: Vec<u64>, before: Vec<u64>| -> Vec<u64> {
            after.iter().zip(before).map(|(after, before)| after - before).collect()
        };
        Ok((added(rows, rows_before), added(bytes, bytes_before)))
    }

    /// Refuses rows per partition that differ from the prediction.
    fn verify(&self, predicted: &[u64], ingested: &[u64]) -> Result<(), BenchError> {
        match predicted
            .iter()
            .zip(ingested)
            .enumerate()
            .find(|(_, (predicted, ingested))| predicted != ingested)
        {
            Some((partition, (predicted, ingested))) => Err(BenchError::Prediction {
                key: self.key.to_string(),
                partition,
                predicted: *predicted,
                found: *ingested,
            }),
            None => Ok(()),
        }
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

    /// Returns the figures of the key.
    pub(super) fn finish(self, options: &BenchOptions) -> Result<KeyBench, BenchError> {
        let batches = self.batches;
        let evaluation = self.evaluator.finish()?;
        let layout = evaluation.primary_keys.first().map(|key| key.layout.clone());
        let layout = layout.ok_or(EvaluateError::NoRows)?;
        let sum = |figure: fn(&BatchWrite) -> u64| batches.iter().map(figure).sum::<u64>();
        let spread = |figure: fn(&BatchWrite) -> f64| {
            Spread::from_values(&batches.iter().map(figure).collect::<Vec<_>>()).ok_or(EvaluateError::NoRows)
        };
        let (rows, bytes) = (sum(|batch| batch.rows), sum(|batch| batch.bytes));
        let seconds: f64 = batches.iter().map(|batch| batch.seconds).sum();
        let per_second = |amount: u64| amount as f64 / seconds.max(f64::MIN_POSITIVE);
        let row_bytes = bytes as f64 / rows.max(1) as f64;
        let placement = evaluation.candidates.iter().flat_map(|key| &key.placements).next();
        let backlog = placement.and_then(|placement| {
            let loads: Vec<_> = batches.iter().map(|batch| batch.bytes_per_partition.clone()).collect();
            let load = LoadAtATime { partitions: &placement.capacity, windows: &placement.windows };
            let offered = options.rows_per_second.map(|rate| rate * row_bytes);
            Backlog::simulate(&loads, options.limits, load, offered)
        });
        let rows_per_partition = rows_per_partition(&batches, options.partitions.len());
        Ok(KeyBench {
            partition_key: self.key.part_names(),
            primary_key: self.primary_key.part_names(),
            rows,
            seconds,
            rows_per_second: per_second(rows),
            bytes_per_second: per_second(bytes),
            utilization: options.rows_per_second.map(|rate| seconds * rate / rows.max(1) as f64),
            stored_bytes: batches.iter().flat_map(|batch| &batch.stored_bytes_per_partition).sum(),
            replaced: sum(|batch| batch.replaced),
            portions: sum(|batch| batch.portions),
            skew: SkewFigures::from_counts(&rows_per_partition),
            rows_per_partition,
            share_of_fullest: spread(|batch| batch.share_of_fullest)?,
            effective_partitions: spread(|batch| batch.effective_partitions)?,
            layout,
            backlog,
            batches,
        })
    }
}

/// Returns the columns of the table, and those to derive for its key, each by position and
/// transform.
fn columns(export: &Export, primary_key: &Candidate) -> (Vec<Column>, Vec<(usize, Transform)>) {
    let mut columns = export.columns().to_vec();
    for column in &mut columns {
        column.column_type = column.column_type.in_table();
    }
    let mut derived = Vec::new();
    for part in primary_key.parts() {
        // The evaluator reports an unknown column, and lists the known ones.
        let Some(position) = export.columns().iter().position(|column| column.name == part.column) else {
            continue;
        };
        match part.transform {
            Transform::Identity => {
                if let Some(column) = columns.get_mut(position) {
                    column.nullable = false;
                }
            }
            transform => {
                let column_type =
                    if transform == Transform::Date { ColumnType::Date } else { ColumnType::Timestamp };
                columns.push(Column::required(part.to_string(), column_type));
                derived.push((position, transform));
            }
        }
    }
    (columns, derived)
}

/// Adds up the rows per partition of all batches.
fn rows_per_partition(batches: &[BatchWrite], partitions: usize) -> Vec<u64> {
    let mut sums = vec![0u64; partitions];
    for batch in batches {
        sums.iter_mut().zip(&batch.rows_per_partition).for_each(|(sum, rows)| *sum += rows);
    }
    sums
}
