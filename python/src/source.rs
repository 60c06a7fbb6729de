//! Batches of any Arrow object of Python: frames, tables, readers.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::errors::failed;
use crate::waiting::{Flagged, wait};

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
        Self { reader, schema, columns }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn plain(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let batch = batch.project(&self.columns)?;
        let fields = self.schema.fields().iter();
        let columns = batch.columns().iter().zip(fields).map(|(column, field)| match column.data_type() {
            DataType::Dictionary(..) => cast(column, field.data_type()),
            _ => Ok(Arc::clone(column)),
        });
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<Result<_, _>>()?)
    }
}

impl Iterator for Plain {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        Some(batch.and_then(|batch| self.plain(&batch)))
    }
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
    let batches = Plain::new(source.into_reader()?);
    let flag = Flagged::default();
    let stop = flag.clone();
    let written = wait(py, &flag, None, move || async move { write(batches, &path, most_rows, &stop) })?;
    written.map_err(|error| failed(py, error.into()))
}

fn write(batches: Plain, path: &Path, most_rows: Option<u64>, stop: &Flagged) -> Result<u64, ArrowError> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let file = BufWriter::new(File::create(path)?);
    let mut writer = FileWriter::try_new_with_options(file, &batches.schema(), options)?;
    let mut rows = 0;
    for batch in batches {
        let batch = batch?;
        let rest = most_rows.map_or(u64::MAX, |most| most - rows);
        let taken = batch.num_rows().min(usize::try_from(rest).unwrap_or(usize::MAX));
        writer.write(&batch.slice(0, taken))?;
        rows += taken as u64;
        if stop.is_stopped() || most_rows == Some(rows) {
            break;
        }
    }
    writer.finish()?;
    Ok(rows)
}
