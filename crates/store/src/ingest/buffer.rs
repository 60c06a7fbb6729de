//! Buffers rows: first as they arrive, then by partition.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::ingest::deletes::marked_schema;
use crate::ingest::error::IngestError;
use evenkeel_model::table::{TableSpec, as_view, view_schema, without_unused_bytes, without_unused_text};
use evenkeel_model::units::PartitionId;
use evenkeel_placement::placement::{Placement, PlacementError, Scatter};

/// Average rows per partition before rows are scattered, so that pieces are long enough to be worth
/// their headers.
const ROWS_PER_PIECE: usize = 1024;
/// Rows that one thread hashes at a time.
const ROWS_PER_TASK: usize = 16 * 1024;

/// Rows by partition. Every row is copied once when it is scattered, into memory that belongs to
/// its partition alone. Text is held as views: short values are stored in the view itself, and are
/// moved like numbers.
#[derive(Debug)]
pub(super) struct Buffer {
    spec: Arc<TableSpec>,
    placement: Placement,
    schema: SchemaRef,
    /// Whether the last column marks deletes.
    has_marks: bool,
    /// Batches not scattered yet.
    staged: Vec<RecordBatch>,
    staged_rows: usize,
    staged_bytes: usize,
    /// Maximum number of bytes of staged rows before they are scattered.
    most_staged_bytes: usize,
    partitions: Vec<StagedRows>,
    bytes: usize,
    /// Threads that scatter; `None` if the pushing thread does it.
    threads: Option<ThreadPool>,
}

/// The rows of one partition, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct StagedRows {
    pub(super) batches: Vec<RecordBatch>,
    pub(super) bytes: usize,
}

impl Buffer {
    /// Creates an empty buffer that scatters rows on this number of threads.
    pub(super) fn new(
        spec: &Arc<TableSpec>,
        most_staged_bytes: usize,
        threads: usize,
    ) -> Result<Self, IngestError> {
        // The encoders keep two cores busy, and handing work to other threads would only take time.
        let pool = (threads > 2).then(|| ThreadPoolBuilder::new().num_threads(threads).build());
        let threads = pool.transpose().map_err(|error| IngestError::Worker { reason: error.to_string() })?;
        Ok(Self {
            spec: Arc::clone(spec),
            placement: Placement::for_table(spec),
            schema: view_schema(spec.schema()),
            has_marks: false,
            staged: Vec::new(),
            staged_rows: 0,
            staged_bytes: 0,
            most_staged_bytes,
            partitions: spec.partitions().ids().map(|_| StagedRows::default()).collect(),
            bytes: 0,
            threads,
        })
    }

    /// Gives rows a column that marks deletes; before the first row.
    pub(super) fn with_marks(mut self) -> Self {
        self.schema = marked_schema(&self.schema);
        self.has_marks = true;
        self
    }

    /// Whether rows have a column that marks deletes.
    pub(super) fn has_marks(&self) -> bool {
        self.has_marks
    }

    /// Bytes of memory that the rows occupy.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.staged_bytes
    }

    /// Takes a batch in the schema of the table, with or without views, and with marks if rows have
    /// them.
    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<(), IngestError> {
        let batch = with_views(&batch, &self.schema).map_err(|source| IngestError::Copy { source })?;
        self.staged_rows += batch.num_rows();
        self.staged_bytes += batch.get_array_memory_size();
        self.staged.push(batch);
        let enough = ROWS_PER_PIECE.saturating_mul(self.partitions.len());
        if self.staged_rows >= enough || self.staged_bytes >= self.most_staged_bytes {
            self.scatter()?;
        }
        Ok(())
    }

    /// Scatters staged rows by partition.
    fn scatter(&mut self) -> Result<(), IngestError> {
        let copy = |source| IngestError::Copy { source };
        let staged = std::mem::take(&mut self.staged);
        (self.staged_rows, self.staged_bytes) = (0, 0);
        if staged.is_empty() {
            return Ok(());
        }
        let batch = self.together(&staged).map_err(copy)?;
        drop(staged);
        let assigned = self.assign(&batch)?;
        let scatter = Scatter::new(&assigned, self.spec.partitions());
        let piece = |partition: PartitionId| match scatter.rows(partition) {
            [] => Ok(None),
            rows => {
                let piece = take_record_batch(&batch, &UInt32Array::from(rows.to_vec()))?;
                without_unused_text(&piece).map(Some)
            }
        };
        let pieces: Vec<Option<RecordBatch>> =
            self.on_threads(self.spec.partitions().ids().collect(), piece).map_err(copy)?;
        for (piece, partition) in pieces.into_iter().zip(&mut self.partitions) {
            if let Some(piece) = piece {
                let bytes = piece.get_array_memory_size();
                partition.bytes += bytes;
                self.bytes += bytes;
                partition.batches.push(piece);
            }
        }
        Ok(())
    }

    /// Returns the rows of all batches; columns are concatenated at the same time.
    fn together(&self, batches: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
        if let [only] = batches {
            return Ok(only.clone());
        }
        let column = |index: usize| {
            let parts: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
            concat(&parts)
        };
        let columns = self.on_threads((0..self.schema.fields().len()).collect(), column)?;
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }

    /// Does some work on the threads that scatter; results are in order.
    fn on_threads<T: Send, R: Send, E: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T) -> Result<R, E> + Send + Sync,
    ) -> Result<Vec<R>, E> {
        match &self.threads {
            None => items.into_iter().map(work).collect(),
            Some(threads) => threads.install(|| items.into_par_iter().map(work).collect()),
        }
    }

    /// Returns the partition of each row. Parts of the rows are hashed at the same time.
    fn assign(&self, batch: &RecordBatch) -> Result<Vec<PartitionId>, PlacementError> {
        let key: Vec<ArrayRef> = self
            .spec
            .partition_key()
            .iter()
            .filter_map(|index| batch.columns().get(*index).cloned())
            .collect();
        let rows = batch.num_rows();
        let assign = |start: usize| {
            let length = ROWS_PER_TASK.min(rows - start);
            let key: Vec<ArrayRef> = key.iter().map(|column| column.slice(start, length)).collect();
            self.placement.assign(&key)
        };
        let starts: Vec<usize> = (0..rows).step_by(ROWS_PER_TASK).collect();
        Ok(self.on_threads(starts, assign)?.concat())
    }

    /// Takes the oldest rows of the fullest partition, about `most_bytes` at most; `None` if there
    /// are no rows.
    pub(super) fn take_fullest(&mut self, most_bytes: usize) -> Option<(PartitionId, StagedRows)> {
        // Of equally full partitions, the first is taken.
        let fullest = (0u32..).zip(&self.partitions).max_by_key(|(id, pieces)| (pieces.bytes, u32::MAX - id));
        let partition = PartitionId(fullest?.0);
        let pieces = self.partitions.get_mut(partition.index()).filter(|pieces| pieces.bytes > 0)?;
        let mut taken = std::mem::take(pieces);
        let mut kept = 0;
        let beyond = taken.batches.iter().position(|batch| {
            kept += batch.get_array_memory_size();
            kept > most_bytes
        });
        if let Some(beyond) = beyond {
            pieces.batches = taken.batches.split_off(beyond.max(1));
            pieces.bytes = pieces.batches.iter().map(RecordBatch::get_array_memory_size).sum();
            taken.bytes -= pieces.bytes;
        }
        self.bytes -= taken.bytes;
        Some((partition, taken))
    }

    /// Takes the remaining rows in partition order, in portions of about `most_bytes` at most.
    pub(super) fn take_rest(
        &mut self,
        most_bytes: usize,
    ) -> Result<Vec<(PartitionId, StagedRows)>, IngestError> {
        self.scatter()?;
        let mut rest = Vec::new();
        while let Some(taken) = self.take_fullest(most_bytes) {
            rest.push(taken);
        }
        // The sort is stable, so that the pieces of one partition stay in order of arrival.
        rest.sort_by_key(|(partition, _)| *partition);
        Ok(rest)
    }
}

/// Returns the batch with text and bytes as views.
fn with_views(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let compact = |column: &ArrayRef| Ok(without_unused_bytes(&as_view(column)?));
    let columns = batch.columns().iter().map(compact).collect::<Result<_, ArrowError>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array, StringArray};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use evenkeel_model::table::{Column, ColumnType, PlacementFunction, TableDefinition};
    use evenkeel_model::units::PartitionCount;

    fn spec() -> Arc<TableSpec> {
        Arc::new(
            TableSpec::new(TableDefinition {
                name: "t".into(),
                columns: vec![
                    Column::required("k", ColumnType::Int64),
                    Column::nullable("v", ColumnType::Utf8),
                ],
                primary_key: vec!["k".into()],
                partition_key: vec![],
                partitions: PartitionCount::new(3).unwrap(),
                placement: PlacementFunction::Ydb,
                ttl: None,
            })
            .unwrap(),
        )
    }

    type Row = (i64, Option<String>);

    fn rows_of(batch: &RecordBatch) -> Vec<Row> {
        let keys = batch.column(0).as_primitive::<arrow::datatypes::Int64Type>().values();
        let text = batch.column(1).as_string_view();
        keys.iter().zip(text).map(|(key, text)| (*key, text.map(str::to_owned))).collect()
    }

    proptest! {
        #[test]
        fn every_row_leaves_once_in_its_partition_and_in_order(
            rows in proptest::collection::vec((any::<i64>(), proptest::option::of("[a-z]{0,30}")), 1..200),
            batch_rows in 1usize..50, staged in 1usize..20_000, most in 1usize..20_000, early in 0usize..4,
            threads in 1usize..4,
        ) {
            let spec = spec();
            let mut buffer = Buffer::new(&spec, staged, threads).unwrap();
            let mut left: Vec<(PartitionId, StagedRows)> = Vec::new();
            for chunk in rows.chunks(batch_rows) {
                let keys: Int64Array = chunk.iter().map(|row| row.0).collect::<Vec<_>>().into();
                let text: StringArray = chunk.iter().map(|row| row.1.clone()).collect();
                let batch = RecordBatch::try_new(Arc::clone(spec.schema()), vec![Arc::new(keys), Arc::new(text)]);
                buffer.push(batch.unwrap()).unwrap();
                for _ in 0..early {
                    left.extend(buffer.take_fullest(most));
                }
            }
            left.extend(buffer.take_rest(most).unwrap());
            prop_assert_eq!(buffer.bytes(), 0);
            let placement = Placement::for_table(&spec);
            for partition in spec.partitions().ids() {
                let of_partition = |row: &&Row| {
                    let key = Arc::new(Int64Array::from(vec![row.0])) as ArrayRef;
                    placement.assign(&[key]).unwrap() == [partition]
                };
                let expected: Vec<Row> = rows.iter().filter(of_partition).cloned().collect();
                let pieces = left.iter().filter(|(id, _)| *id == partition);
                let found: Vec<Row> = pieces.flat_map(|(_, p)| p.batches.iter().flat_map(rows_of)).collect();
                prop_assert_eq!(found, expected);
            }
            for (_, pieces) in &left {
                let bytes: usize = pieces.batches.iter().map(RecordBatch::get_array_memory_size).sum();
                prop_assert_eq!(bytes, pieces.bytes);
                prop_assert!(pieces.bytes <= most || pieces.batches.len() == 1);
            }
        }
    }
}
