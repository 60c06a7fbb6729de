//! ORC files.

mod footer;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use bytes::Bytes;
use orc_rust::arrow_reader::{ArrowReader, ArrowReaderBuilder};
use orc_rust::projection::ProjectionMask;
use orc_rust::reader::ChunkReader;

use crate::source::arrow_ipc::{BatchRemainder, guarded};
use crate::source::columnar::{RowCounter, failed, open_file};
use crate::source::error::SourceError;
use crate::source::format::InputFormat;
use crate::source::options::InputOptions;
use crate::source::raw::{RawBatch, RawReader};
use crate::source::selection::split_columns;
use crate::source::stream::SeekableFile;

/// Explains a failure within the decoder.
const PRE_1970: &str = "it is damaged, or has times before 1970 with fractions of a second, as C++ and Python write them; \
    write it as Parquet";

/// A file whose parts are checked against its length before memory is taken for them.
struct Bounded {
    file: File,
    length: u64,
}

impl ChunkReader for Bounded {
    type T = BufReader<File>;

    fn len(&self) -> u64 {
        self.length
    }

    fn get_read(&self, offset: u64) -> io::Result<Self::T> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(BufReader::new(file))
    }

    fn get_bytes(&self, offset: u64, length: u64) -> io::Result<Bytes> {
        if offset.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(io::Error::other("a part of the file lies beyond its end"));
        }
        let mut bytes = Vec::new();
        self.get_read(offset)?.take(length).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes.into())
    }
}

/// Reads the requested columns of an ORC file.
pub(super) struct OrcReader {
    file: String,
    reader: ArrowReader<Bounded>,
    schema: SchemaRef,
    unknown: Vec<String>,
    pieces: BatchRemainder,
    counter: RowCounter,
    /// Number of rows that the footer states.
    rows: u64,
    /// Keeps a temporary file alive until it has been read.
    _kept: SeekableFile,
}

impl OrcReader {
    pub(super) fn open(
        file: &str,
        kept: SeekableFile,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let error = |error: ArrowError| match error {
            // It names another format.
            ArrowError::IpcError(text) => failed(file, InputFormat::Orc, text),
            other => failed(file, InputFormat::Orc, other),
        };
        let source = open_file(file, &kept)?;
        let length =
            source.metadata().map_err(|source| SourceError::Read { file: file.to_owned(), source })?.len();
        let source = Bounded { file: source, length };
        let builder = guarded(|| {
            footer::check_types(&source)?;
            Ok(ArrowReaderBuilder::try_new(source)?)
        });
        let builder = builder.map_err(error)?;
        let builder = builder.with_batch_size(options.batch_rows.max(1));
        let schema = builder.schema();
        let (wanted, unknown) = split_columns(file, &schema, columns)?;
        let mut names: Vec<&str> = wanted.iter().map(|at| schema.field(*at).name().as_str()).collect();
        if names.is_empty() {
            // The number of rows comes from a column.
            names.extend(schema.fields().first().map(|field| field.name().as_str()));
        }
        let mask = ProjectionMask::named_roots(builder.file_metadata().root_data_type(), &names);
        let rows = builder.file_metadata().number_of_rows();
        let reader = guarded(|| Ok(builder.with_projection(mask).build())).map_err(error)?;
        Ok(Self {
            file: file.to_owned(),
            reader,
            schema,
            unknown,
            pieces: BatchRemainder::default(),
            counter: RowCounter { next: 1 },
            rows,
            _kept: kept,
        })
    }

    fn next_whole_batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let batch = guarded(|| self.reader.next().transpose())?;
        let read = self.counter.next - 1;
        match batch {
            None if read != self.rows => {
                Err(ArrowError::ParseError(format!("it has {read} rows, its footer says {}", self.rows)))
            }
            batch => Ok(batch),
        }
    }
}

impl RawReader for OrcReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        if self.pieces.rest.is_none() {
            let batch = self.next_whole_batch();
            self.pieces.rest = batch.map_err(|error| match error {
                ArrowError::IpcError(_) => failed(&self.file, InputFormat::Orc, PRE_1970),
                other => failed(&self.file, InputFormat::Orc, other),
            })?;
        }
        Ok(self.pieces.take().map(|batch| self.counter.raw(batch)))
    }

    fn unknown_columns(&self) -> Vec<String> {
        self.unknown.clone()
    }

    fn file_schema(&self) -> Option<&SchemaRef> {
        Some(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;
    use orc_rust::arrow_writer::ArrowWriterBuilder;

    use super::*;
    use crate::source::raw::RawCells;

    fn orc(rows: i64) -> Vec<u8> {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let texts: ArrayRef =
            Arc::new((0..rows).map(|id| (id % 3 != 0).then(|| format!("row {id}"))).collect::<StringArray>());
        let batch = RecordBatch::try_from_iter([("id", ids), ("t", texts)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriterBuilder::new(&mut bytes, batch.schema()).try_build().unwrap();
        for start in (0..rows as usize).step_by(100) {
            writer.write(&batch.slice(start, 100.min(rows as usize - start))).unwrap();
        }
        writer.close().unwrap();
        bytes
    }

    fn read(bytes: &[u8], columns: &[&str]) -> Result<Vec<(i64, Option<String>)>, SourceError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let options = InputOptions { batch_rows: 64, ..InputOptions::default() };
        let mut reader = OrcReader::open("t.orc", SeekableFile::Spooled(file), &columns, &options)?;
        let mut rows = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            let RawCells::Arrow(batch) = batch.cells else { panic!() };
            for row in 0..batch.num_rows() {
                let id = batch.column_by_name("id").and_then(|ids| ids.as_primitive_opt::<Int64Type>());
                let id = id.map_or(0, |ids| ids.value(row));
                let texts = batch.column_by_name("t").and_then(|texts| texts.as_string_opt::<i32>());
                let text = texts.filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row).to_owned());
                rows.push((id, text));
            }
        }
        Ok(rows)
    }

    #[test]
    fn rows_of_any_columns_are_read() {
        let bytes = orc(1000);
        let expected: Vec<(i64, Option<String>)> =
            (0..1000).map(|id| (id, (id % 3 != 0).then(|| format!("row {id}")))).collect();
        assert_eq!(read(&bytes, &["id", "t"]).unwrap(), expected);
        assert_eq!(read(&bytes, &["t"]).unwrap()[1], (0, Some("row 1".to_owned())));
        assert_eq!(read(&bytes, &[]).unwrap().len(), 1000);
    }

    #[test]
    fn a_file_that_is_cut_is_an_error() {
        let bytes = orc(300);
        for length in (3..bytes.len()).step_by(7) {
            assert!(read(&bytes[..length], &["id"]).is_err(), "{length} of {} bytes", bytes.len());
        }
    }

    proptest::proptest! {
        #[test]
        fn a_damaged_file_is_an_error_or_rows(at in 0usize..10_000, bit in 0u8..8) {
            let mut bytes = orc(300);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let _ = read(&bytes, &["id", "t"]);
        }
    }
}
