//! Writes batches to a byte stream in a file format.

mod part_file;

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow::compute::cast;
use arrow::csv::WriterBuilder;
use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::json::writer::{JsonArray, LineDelimited, WriterBuilder as JsonWriterBuilder};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use thiserror::Error;

pub use crate::sink::part_file::PartFile;

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Parquet with zstd.
    Parquet,
    /// Comma-separated values with a header line; NULL is an empty field.
    Csv,
    /// One JSON object per line; NULL is left out.
    Ndjson,
    /// One JSON array of objects; NULL is `null`.
    Json,
}

impl OutputFormat {
    /// Returns the format of a file's ending.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_string_lossy().to_ascii_lowercase();
        match ending.as_str() {
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            "json" => Some(Self::Json),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            _ => None,
        }
    }
}

/// Reason why rows cannot be written.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the variants say where the fault arose")]
pub enum SinkError {
    #[error("cannot write rows: {0}")]
    Arrow(#[from] ArrowError),
    #[error("cannot write rows as Parquet: {0}")]
    Parquet(#[from] ParquetError),
    #[error("cannot write rows: {0}")]
    Io(#[from] std::io::Error),
}

/// Writes batches of one schema. The output is complete only after [`Sink::finish`].
pub struct Sink<W: Write + Send> {
    writer: Writer<W>,
    /// Schema whose names differ, if the columns of the batches have some names twice and the
    /// format has rows by name.
    renamed: Option<SchemaRef>,
}

enum Writer<W: Write + Send> {
    Parquet(Box<ArrowWriter<W>>),
    Csv(Box<arrow::csv::Writer<W>>),
    Ndjson(arrow::json::Writer<W, LineDelimited>),
    Json(arrow::json::Writer<W, JsonArray>),
}

impl<W: Write + Send> std::fmt::Debug for Sink<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

impl<W: Write + Send> Sink<W> {
    /// Creates a sink that writes to `out`.
    ///
    /// # Errors
    /// [`SinkError`] if the format cannot represent the schema.
    pub fn new(out: W, format: OutputFormat, schema: &SchemaRef) -> Result<Self, SinkError> {
        let renamed = if format == OutputFormat::Csv { None } else { with_distinct_names(schema) };
        let schema = renamed.as_ref().unwrap_or(schema);
        let writer = match format {
            OutputFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                Writer::Parquet(Box::new(ArrowWriter::try_new(
                    out,
                    SchemaRef::clone(schema),
                    Some(properties),
                )?))
            }
            OutputFormat::Csv => {
                let mut writer = WriterBuilder::new().with_header(true).build(out);
                // The header is written with the first batch, so an empty one writes it even
                // without rows.
                writer.write(&RecordBatch::new_empty(SchemaRef::clone(schema)))?;
                Writer::Csv(Box::new(writer))
            }
            OutputFormat::Ndjson => Writer::Ndjson(JsonWriterBuilder::new().build(out)),
            OutputFormat::Json => Writer::Json(JsonWriterBuilder::new().with_explicit_nulls(true).build(out)),
        };
        Ok(Self { writer, renamed })
    }

    /// Writes the rows of a batch.
    ///
    /// # Errors
    /// [`SinkError`] if the rows cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), SinkError> {
        let renamed = self.renamed.as_ref().map(|schema| {
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(SchemaRef::clone(schema), batch.columns().to_vec(), &options)
        });
        let renamed = renamed.transpose()?;
        let batch = renamed.as_ref().unwrap_or(batch);
        match &mut self.writer {
            Writer::Parquet(writer) => writer.write(batch)?,
            Writer::Csv(writer) => writer.write(&as_text(batch)?)?,
            Writer::Ndjson(writer) => writer.write(&as_text(batch)?)?,
            Writer::Json(writer) => writer.write(&as_text(batch)?)?,
        }
        Ok(())
    }

    /// Writes the end of the format and returns the stream.
    ///
    /// # Errors
    /// [`SinkError`] if the end cannot be written.
    pub fn finish(self) -> Result<W, SinkError> {
        Ok(match self.writer {
            Writer::Parquet(writer) => writer.into_inner()?,
            Writer::Csv(writer) => writer.into_inner(),
            Writer::Ndjson(mut writer) => {
                writer.finish()?;
                writer.into_inner()
            }
            Writer::Json(mut writer) => {
                writer.finish()?;
                let mut out = writer.into_inner();
                out.write_all(b"\n")?;
                out
            }
        })
    }
}

/// Numbers names that come again, as `k:1`; `None` if all differ.
fn with_distinct_names(schema: &SchemaRef) -> Option<SchemaRef> {
    let taken: HashSet<&String> = schema.fields().iter().map(|field| field.name()).collect();
    if taken.len() == schema.fields().len() {
        return None;
    }
    let mut seen: HashMap<&String, usize> = HashMap::new();
    let mut fields = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let count = seen.entry(field.name()).or_default();
        let name = loop {
            let name = if *count == 0 { field.name().clone() } else { format!("{}:{count}", field.name()) };
            *count += 1;
            if *count == 1 || !taken.contains(&name) {
                break name;
            }
        };
        fields.push(field.as_ref().clone().with_name(name));
    }
    Some(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())))
}

/// Converts a batch to its form in text formats, so that it can be read back: byte strings as in
/// [`readable_bytes`], durations as microseconds.
fn as_text(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    replace_columns(&readable_bytes(batch)?, |column| match column.data_type() {
        DataType::Duration(_) => {
            Ok(Some(cast(&cast(column, &DataType::Duration(TimeUnit::Microsecond))?, &DataType::Int64)?))
        }
        _ => Ok(None),
    })
}

/// Converts byte strings to the text they contain, or to `\x` and hexadecimal if they are not
/// UTF-8.
///
/// # Errors
/// [`ArrowError`] if the text would exceed 2 GiB.
pub fn readable_bytes(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    replace_columns(batch, |column| match column.data_type() {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => bytes_as_text(column).map(Some),
        _ => Ok(None),
    })
}

/// Returns the batch with those columns replaced for which `replace` returns a new one.
fn replace_columns(
    batch: &RecordBatch,
    replace: impl Fn(&ArrayRef) -> Result<Option<ArrayRef>, ArrowError>,
) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let column = replace(column)?.unwrap_or_else(|| ArrayRef::clone(column));
        fields.push(field.as_ref().clone().with_data_type(column.data_type().clone()));
        columns.push(column);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

fn bytes_as_text(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let bytes = cast(column, &DataType::Binary)?;
    let text = bytes.as_binary::<i32>().iter().map(|value| {
        value.map(|value| match std::str::from_utf8(value) {
            Ok(text) => text.to_owned(),
            Err(_) => value.iter().fold("\\x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
        })
    });
    Ok(Arc::new(text.collect::<StringArray>()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, DurationMicrosecondArray, Int64Array};
    use arrow::datatypes::Field;

    use super::*;

    fn written(format: OutputFormat, batches: &[RecordBatch]) -> Vec<u8> {
        let schema = batches.first().map_or(batch().schema(), RecordBatch::schema);
        let mut sink = Sink::new(Vec::new(), format, &schema).unwrap();
        for batch in batches {
            sink.write(batch).unwrap();
        }
        sink.finish().unwrap()
    }

    fn batch() -> RecordBatch {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        RecordBatch::try_from_iter_with_nullable([("a", values, true)]).unwrap()
    }

    #[test]
    fn names_that_come_again_are_numbered_in_formats_with_rows_by_name() {
        let column = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
        let fields = ["k", "k", "k:1", "k"].map(|name| Field::new(name, DataType::Int64, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let batch = RecordBatch::try_new(schema, (0..4).map(|_| column()).collect()).unwrap();
        let json = String::from_utf8(written(OutputFormat::Ndjson, std::slice::from_ref(&batch))).unwrap();
        assert_eq!(json, "{\"k\":1,\"k:2\":1,\"k:1\":1,\"k:3\":1}\n");
        let csv = String::from_utf8(written(OutputFormat::Csv, std::slice::from_ref(&batch))).unwrap();
        assert_eq!(csv.lines().next(), Some("k,k,k:1,k"));
        let parquet = bytes::Bytes::from(written(OutputFormat::Parquet, &[batch]));
        let read = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap();
        let names: Vec<&String> = read.schema().fields().iter().map(|field| field.name()).collect();
        assert_eq!(names, ["k", "k:2", "k:1", "k:3"]);
    }

    #[test]
    fn each_format_is_complete_with_and_without_rows() {
        let text = |format, batches: &[RecordBatch]| String::from_utf8(written(format, batches)).unwrap();
        assert_eq!(text(OutputFormat::Csv, &[batch(), batch()]), "a\n1\n\"\"\n1\n\"\"\n");
        assert_eq!(text(OutputFormat::Csv, &[]), "a\n");
        assert_eq!(text(OutputFormat::Ndjson, &[batch()]), "{\"a\":1}\n{}\n");
        assert_eq!(text(OutputFormat::Json, &[batch()]), "[{\"a\":1},{\"a\":null}]\n");
        assert_eq!(text(OutputFormat::Json, &[]), "[]\n");
        assert!(written(OutputFormat::Parquet, &[]).ends_with(b"PAR1"));
    }
    #[test]
    fn bytes_and_durations_are_written_as_they_are_read() {
        let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values([b"ada".as_slice(), b"\xff\x00"]));
        let time: ArrayRef = Arc::new(DurationMicrosecondArray::from(vec![1, -5]));
        let batch = RecordBatch::try_from_iter([("b", bytes), ("d", time)]).unwrap();
        let mut sink = Sink::new(Vec::new(), OutputFormat::Csv, &batch.schema()).unwrap();
        sink.write(&batch).unwrap();
        let text = String::from_utf8(sink.finish().unwrap()).unwrap();
        assert_eq!(text, "b,d\nada,1\n\\xff00,-5\n");
    }
}
