//! The file of a portion: row groups of columns, each encoded to suit its values.

use std::sync::Arc;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use crate::portion::dictionary::DictionaryColumn;
use crate::portion::encodings::ColumnEncoding;
use crate::portion::properties::has_bloom_filter;
use evenkeel_model::table::{ROW_GROUP_BYTES, ROW_GROUP_ROWS, TableSpec};

/// A file being written.
pub(super) struct PortionFile {
    file: SerializedFileWriter<Vec<u8>>,
    factory: ArrowRowGroupWriterFactory,
    columns: Vec<Column>,
    /// Maximum bytes held by the row group being written.
    group_memory: usize,
    /// Row group being written; `None` if no rows have been added since the last one.
    group: Option<RowGroup>,
}

/// Encoding choices for a column.
struct Column {
    bloom_filter: bool,
    /// Whether to try a dictionary.
    repeats: bool,
}

struct RowGroup {
    columns: Vec<ColumnEncoder>,
    rows: usize,
}

enum ColumnEncoder {
    Dictionary(DictionaryColumn),
    Library(Box<ArrowColumnWriter>),
}

impl PortionFile {
    /// Creates an empty file with a column for each of `encodings`.
    pub(super) fn new(
        spec: &TableSpec,
        properties: WriterProperties,
        encodings: &[ColumnEncoding],
        group_memory: usize,
    ) -> Result<Self, ParquetError> {
        let writer = ArrowWriter::try_new(Vec::new(), Arc::clone(spec.schema()), Some(properties))?;
        let (file, factory) = writer.into_serialized_writer()?;
        let columns = encodings.iter().enumerate().map(|(index, encoding)| Column {
            bloom_filter: has_bloom_filter(spec, index),
            repeats: matches!(encoding, ColumnEncoding::Dictionary(_)),
        });
        Ok(Self { file, factory, columns: columns.collect(), group_memory, group: None })
    }

    /// Adds rows in the schema of the table; text and bytes may be views.
    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let group = match self.group.as_mut() {
                Some(group) => group,
                None => {
                    let number = self.file.flushed_row_groups().len();
                    let group = RowGroup::new(&self.factory, number, &self.columns, batch)?;
                    self.group.insert(group)
                }
            };
            let rows = rest.num_rows().min(ROW_GROUP_ROWS - group.rows);
            group.push(&rest.slice(0, rows))?;
            rest = rest.slice(rows, rest.num_rows() - rows);
            if group.is_full(self.group_memory) {
                self.finish_group()?;
            }
        }
        Ok(())
    }

    /// Bytes so far; the row group being written is estimated.
    pub(super) fn bytes(&self) -> usize {
        self.file.bytes_written() + self.group.as_ref().map_or(0, RowGroup::bytes)
    }

    /// Finishes the file and returns its content.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, ParquetError> {
        self.finish_group()?;
        self.file.into_inner()
    }

    fn finish_group(&mut self) -> Result<(), ParquetError> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let descriptors = self.file.schema_descr().columns().to_vec();
        let mut target = self.file.next_row_group()?;
        for ((encoder, column), descriptor) in
            group.columns.into_iter().zip(&mut self.columns).zip(&descriptors)
        {
            match encoder {
                ColumnEncoder::Dictionary(dictionary) => {
                    let encoded = dictionary.finish(descriptor)?;
                    column.repeats = encoded.repeats;
                    target.append_column(&encoded.bytes, encoded.close)?;
                }
                ColumnEncoder::Library(writer) => writer.close()?.append_to_row_group(&mut target)?,
            }
        }
        target.close()?;
        Ok(())
    }
}

impl RowGroup {
    fn new(
        factory: &ArrowRowGroupWriterFactory,
        number: usize,
        columns: &[Column],
        first: &RecordBatch,
    ) -> Result<Self, ParquetError> {
        let writers = factory.create_column_writers(number)?;
        let encoder = |((writer, column), array): ((ArrowColumnWriter, &Column), &arrow::array::ArrayRef)| {
            let dictionary =
                column.repeats.then(|| DictionaryColumn::new(array.data_type(), column.bloom_filter));
            match dictionary.flatten() {
                Some(dictionary) => ColumnEncoder::Dictionary(dictionary),
                None => ColumnEncoder::Library(Box::new(writer)),
            }
        };
        let columns = writers.into_iter().zip(columns).zip(first.columns()).map(encoder).collect();
        Ok(Self { columns, rows: 0 })
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let schema = batch.schema();
        for ((encoder, array), field) in self.columns.iter_mut().zip(batch.columns()).zip(schema.fields()) {
            match encoder {
                ColumnEncoder::Dictionary(dictionary) => dictionary.push(array)?,
                ColumnEncoder::Library(writer) => {
                    for leaf in compute_leaves(field, array)? {
                        writer.write(&leaf)?;
                    }
                }
            }
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    fn bytes(&self) -> usize {
        let of_column = |encoder: &ColumnEncoder| match encoder {
            ColumnEncoder::Dictionary(dictionary) => dictionary.bytes(),
            ColumnEncoder::Library(writer) => writer.get_estimated_total_bytes(),
        };
        self.columns.iter().map(of_column).sum()
    }

    /// Bytes in memory, except compressed pages.
    fn memory(&self) -> usize {
        self.dictionaries().map(DictionaryColumn::memory).sum()
    }

    fn dictionaries(&self) -> impl Iterator<Item = &DictionaryColumn> {
        self.columns.iter().filter_map(|encoder| match encoder {
            ColumnEncoder::Dictionary(dictionary) => Some(dictionary),
            ColumnEncoder::Library(_) => None,
        })
    }

    fn is_full(&self, most_memory: usize) -> bool {
        self.rows >= ROW_GROUP_ROWS
            || self.bytes() >= ROW_GROUP_BYTES
            || self.memory() >= most_memory
            || self.dictionaries().any(DictionaryColumn::is_full)
    }
}
