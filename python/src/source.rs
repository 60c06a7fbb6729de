//! Batches of any Arrow object of Python: frames, tables, readers.

use std::fs::File;
use std::io::BufWriter;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchReader};
use arrow::compute::{BatchCoalescer, cast};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::errors::{BrokenText, failed, of_source};
use crate::producer::Producer;
use crate::waiting::{Flagged, wait};

/// Rows of a batch of a spooled file.
const ROWS_OF_BATCH: usize = 65_536;

/// Reader of the batches of a Python object.
pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

/// Columns in which pandas hands over an index without a name.
const UNNAMED_INDEX: &str = "__index_level_";

/// Batches without dictionaries, whose values may differ from batch to batch, and without unnamed
/// indexes of pandas.
pub(crate) struct Plain {
    reader: Reader,
    schema: SchemaRef,
    columns: Vec<usize>,
    /// Rows of earlier batches.
    rows: u64,
}

impl Plain {
    pub(crate) fn new(reader: Reader) -> Self {
        let given = reader.schema();
        let is_column = |field: &&Arc<Field>| !field.name().starts_with(UNNAMED_INDEX);
        let columns: Vec<usize> = given
            .fields()
            .iter()
            .enumerate()
            .filter(|(_, field)| is_column(field))
            .map(|(position, _)| position)
            .collect();
        let fields = given.fields().iter().filter(is_column).map(|field| match field.data_type() {
            DataType::Dictionary(_, values) => {
                Arc::new(Field::new(field.name(), values.as_ref().clone(), field.is_nullable()))
            }
            _ => Arc::clone(field),
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Self { reader, schema, columns, rows: 0 }
    }

    /// Gives texts and bytes one form, whatever the source has: samples depend on the size of
    /// batches.
    fn with_one_form(mut self) -> Self {
        let fields = self.schema.fields().iter().map(|field| {
            let plain = match field.data_type() {
                DataType::Utf8 | DataType::Utf8View => DataType::LargeUtf8,
                DataType::Binary | DataType::BinaryView => DataType::LargeBinary,
                other => other.clone(),
            };
            Field::new(field.name(), plain, field.is_nullable())
        });
        self.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        self
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn plain(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let batch = batch.project(&self.columns)?;
        let fields = self.schema.fields().iter();
        let columns = batch.columns().iter().zip(fields).map(|(column, field)| {
            let column = match column.data_type() {
                given if given != field.data_type() => cast(column, field.data_type())?,
                _ => Arc::clone(column),
            };
            match broken_text(&column)? {
                Some(row) => {
                    let (row, column) = (self.rows + row as u64 + 1, field.name().clone());
                    Err(ArrowError::ExternalError(Box::new(BrokenText { row, column })))
                }
                None => Ok(column),
            }
        });
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<Result<_, _>>()?)
    }
}

impl Iterator for Plain {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = &mut self.reader;
        // A batch that does not fit the schema of its stream is a panic of the reader.
        let batch = std::panic::catch_unwind(AssertUnwindSafe(|| reader.next())).unwrap_or_else(|_| {
            Some(Err(ArrowError::SchemaError("a batch of the source does not fit its schema".to_owned())))
        })?;
        let plain = batch.and_then(|batch| self.plain(&batch));
        self.rows += plain.as_ref().map_or(0, RecordBatch::num_rows) as u64;
        Some(plain)
    }
}

/// Returns the first row whose text is not UTF-8.
pub(crate) fn broken_text(column: &ArrayRef) -> Result<Option<usize>, ArrowError> {
    let is_broken = |bytes: Option<&[u8]>| bytes.is_some_and(|bytes| std::str::from_utf8(bytes).is_err());
    // These casts copy nothing.
    Ok(match column.data_type() {
        DataType::Utf8 => cast(column, &DataType::Binary)?.as_binary::<i32>().iter().position(is_broken),
        DataType::LargeUtf8 => {
            cast(column, &DataType::LargeBinary)?.as_binary::<i64>().iter().position(is_broken)
        }
        DataType::Utf8View => {
            cast(column, &DataType::BinaryView)?.as_binary_view().iter().position(is_broken)
        }
        _ => None,
    })
}

/// Writes the batches of an Arrow object to a new Arrow file, up to a number of rows, and returns
/// how many rows that are. The file can then be read as often as needed, in bounded memory.
#[pyfunction]
#[pyo3(signature = (source, path, most_rows=None))]
pub(crate) fn spool(
    py: Python<'_>,
    source: AnyRecordBatch,
    path: PathBuf,
    most_rows: Option<u64>,
) -> PyResult<u64> {
    let batches = Plain::new(source.into_reader()?).with_one_form();
    let flag = Flagged::default();
    let stop = flag.clone();
    let producer = Producer::start();
    let written = wait(py, &flag, None, move || {
        // In a thread that nobody waits for after a second Ctrl-C.
        tokio::task::spawn_blocking(move || {
            let written = write(batches, &path, most_rows, &stop);
            drop(producer);
            written
        })
    })?;
    written.map_err(|error| failed(py, error.into()))?.map_err(|error| of_source(py, error))
}

fn write(batches: Plain, path: &Path, most_rows: Option<u64>, stop: &Flagged) -> Result<u64, ArrowError> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let file = BufWriter::new(File::create(path)?);
    let mut writer = FileWriter::try_new_with_options(file, &batches.schema(), options)?;
    // Samples depend on the batches of a file, and must not on those of the source.
    let mut even = BatchCoalescer::new(batches.schema(), ROWS_OF_BATCH);
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        let rest = most_rows.map_or(u64::MAX, |most| most - rows);
        let taken = batch.num_rows().min(usize::try_from(rest).unwrap_or(usize::MAX));
        even.push_batch(batch.slice(0, taken))?;
        while let Some(batch) = even.next_completed_batch() {
            writer.write(&batch)?;
        }
        rows += taken as u64;
        if stop.is_stopped() || Producer::must_end() || most_rows == Some(rows) {
            break;
        }
    }
    even.finish_buffered_batch()?;
    while let Some(batch) = even.next_completed_batch() {
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(rows)
}
