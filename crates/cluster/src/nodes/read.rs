//! Reads rows of inputs, each with the partition that it belongs to and its position among all
//! rows.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array, new_null_array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use futures::stream::{self, TryStreamExt};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::arrivals::{ManifestEntry, NOTES, arrival_schema};
use super::{Work, external, json_lines, read_assignments};
use evenkeel_input::source::{Conform, Input, InputOptions, InputPath, SourceError};
use evenkeel_model::table::{TableDefinition, TableSpec};
use evenkeel_placement::placement::Placement;
use evenkeel_store::ingest::IngestError;

/// Bits of a row's position within one input, which limit the rows of an input.
const ROWS_BITS: u32 = 40;
/// Number of batches to read ahead.
const BATCHES_AHEAD: usize = 2;

/// Specification of a read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadSpec {
    pub definition: TableDefinition,
    pub options: InputOptions,
    /// Contents that are already in the table, as XXH3-128 in hexadecimal.
    pub known: Vec<String>,
    /// Whether rows that do not fit are reported and left out, rather than being an error.
    pub reject: bool,
    /// Whether there is exactly one input in total.
    pub only_one: bool,
}

/// An input, or a part of one. The first part of each input reports its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct InputPart {
    pub input: InputPath,
    /// Position of the input among all, from 0.
    pub number: u64,
    /// Row numbers of the part, from 0; `None` for the whole input.
    pub rows: Option<Range<u64>>,
}

impl InputPart {
    fn is_first(&self) -> bool {
        self.rows.as_ref().is_none_or(|rows| rows.start == 0)
    }
}

#[derive(Debug)]
pub(super) struct Read {
    spec: Arc<ReadSpec>,
    table: Arc<TableSpec>,
    schema: SchemaRef,
}

impl Read {
    pub(super) fn new(spec: &ReadSpec) -> Result<Self> {
        let table = TableSpec::new(spec.definition.clone());
        let table = table.map_err(external)?;
        let schema = arrival_schema(&table);
        Ok(Self { spec: Arc::new(spec.clone()), table: Arc::new(table), schema })
    }
}

impl Work for Read {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn describe(&self) -> String {
        format!("TaskExec: read inputs for {}", self.table.name())
    }

    fn run(
        &self,
        input: SendableRecordBatchStream,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let reading = (Arc::clone(&self.spec), Arc::clone(&self.table), Arc::clone(&self.schema));
        let rows = async move {
            let assignments: Vec<InputPart> = read_assignments(input).await?;
            let (spec, table, schema) = reading;
            let mut batches = RecordBatchReceiverStream::builder(Arc::clone(&schema), BATCHES_AHEAD);
            let sender = batches.tx();
            batches.spawn_blocking(move || {
                let reader = Reader { spec: &spec, table: &table, schema: &schema, sender: &sender };
                for part in &assignments {
                    // The receiver is gone.
                    if !reader.read(part).map_err(external)? {
                        break;
                    }
                }
                Ok(())
            });
            Ok::<_, DataFusionError>(batches.build())
        };
        let rows = stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows)))
    }
}

struct Reader<'a> {
    spec: &'a ReadSpec,
    table: &'a TableSpec,
    schema: &'a SchemaRef,
    sender: &'a mpsc::Sender<Result<RecordBatch>>,
}

impl Reader<'_> {
    /// Reads a part; returns `false` if the receiver is gone.
    fn read(&self, part: &InputPart) -> Result<bool, IngestError> {
        let columns: Vec<String> = self.table.columns().iter().map(|column| column.name.clone()).collect();
        let options = InputOptions { rows: part.rows.clone(), ..self.spec.options.clone() };
        let opened = match part.is_first() {
            true => Input::open(&part.input, &columns, &options),
            false => Input::open_unknown(&part.input, &columns, &options),
        };
        let mut input = match opened {
            Ok(input) => input,
            // An empty file does not make the others fail.
            Err(SourceError::Empty { file }) if !self.spec.only_one => {
                return self.note(
                    part.number,
                    0,
                    &[ManifestEntry::Empty { number: part.number, name: file }],
                );
            }
            Err(error) => return Err(error.into()),
        };
        let fingerprint = input.fingerprint();
        if let Some(content) = fingerprint.as_ref().filter(|content| self.spec.known.contains(&content.xxh3))
        {
            let (name, bytes, xxh3) = (input.name().to_owned(), content.bytes, content.xxh3.clone());
            return self.note(
                part.number,
                0,
                &[ManifestEntry::Skipped { number: part.number, name, bytes, xxh3 }],
            );
        }
        let conform = Conform::new(input.name(), self.table, &options);
        if let Some(names) = input.column_names() {
            conform.check_names(&names)?;
        }
        let placement = Placement::for_table(self.table);
        let (mut rows, mut rejected) = (0, 0);
        let mut place = (part.number << ROWS_BITS) + part.rows.as_ref().map_or(0, |rows| rows.start);
        while let Some(raw) = input.next_batch()? {
            let conformed = conform.conform(raw)?;
            let read = (conformed.batch.num_rows() + conformed.rejects.len()) as u64;
            rejected += conformed.rejects.len() as u64;
            if let (false, Some(reject)) = (self.spec.reject, conformed.rejects.first()) {
                return Err(IngestError::Row { reject: Box::new(reject.clone()) });
            }
            let rejects = conformed.rejects.into_iter();
            let rejects: Vec<_> = rejects
                .map(|reject| ManifestEntry::Reject { number: part.number, reject: Box::new(reject) })
                .collect();
            if !self.note(part.number, place, &rejects)? {
                return Ok(false);
            }
            let taken = conformed.batch.num_rows() as u64;
            if taken > 0 && !self.send(self.arrival(&conformed.batch, &placement, place)) {
                return Ok(false);
            }
            rows += taken;
            place += read;
        }
        let source = ManifestEntry::Source {
            number: part.number,
            first: part.rows.as_ref().map_or(0, |rows| rows.start),
            name: input.name().to_owned(),
            content: fingerprint.map(|content| (content.bytes, content.xxh3)),
            rows,
            rejected,
            notes: evenkeel_store::ingest::notes_of(self.table, &input),
        };
        self.note(part.number, place, &[source])
    }

    fn arrival(&self, batch: &RecordBatch, placement: &Placement, place: u64) -> Result<RecordBatch> {
        let key: Vec<ArrayRef> = self
            .table
            .partition_key()
            .iter()
            .filter_map(|index| batch.columns().get(*index).cloned())
            .collect();
        let partitions = placement.assign(&key).map_err(external)?;
        let rows = batch.num_rows();
        let own: [ArrayRef; 3] = [
            Arc::new(UInt32Array::from_iter_values(partitions.iter().map(|partition| partition.0))),
            Arc::new(UInt64Array::from_iter_values(place..place + rows as u64)),
            new_null_array(&DataType::Utf8, rows),
        ];
        let columns = batch.columns().iter().cloned().chain(own).collect();
        Ok(RecordBatch::try_new(Arc::clone(self.schema), columns)?)
    }

    /// Sends entries as notes, which are no rows of the table.
    fn note(&self, number: u64, place: u64, entries: &[ManifestEntry]) -> Result<bool, IngestError> {
        if entries.is_empty() {
            return Ok(true);
        }
        let batch = || {
            let rows = entries.len();
            let columns =
                self.table.schema().fields().iter().map(|field| new_null_array(field.data_type(), rows));
            let place = place.max(number << ROWS_BITS);
            let own: [ArrayRef; 3] = [
                Arc::new(UInt32Array::from(vec![NOTES; rows])),
                Arc::new(UInt64Array::from_iter_values(place..place + rows as u64)),
                Arc::new(json_lines(entries)?),
            ];
            Ok(RecordBatch::try_new(Arc::clone(self.schema), columns.chain(own).collect())?)
        };
        Ok(self.send(batch()))
    }

    fn send(&self, batch: Result<RecordBatch>) -> bool {
        self.sender.blocking_send(batch).is_ok()
    }
}
