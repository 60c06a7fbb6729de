//! Avro object container files.

mod framing;
mod generated;
mod schema;

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_avro::reader::ReaderBuilder;

use crate::source::arrow_ipc::{BatchRemainder, guarded};
use crate::source::avro::framing::{Blocks, write_header, write_long};
use crate::source::avro::generated::Generated;
use crate::source::columnar::{RowCounter, failed};
use crate::source::error::SourceError;
use crate::source::format::InputFormat;
use crate::source::options::{InputOptions, READ_BATCH_BYTES};
use crate::source::raw::{RawBatch, RawReader};
use crate::source::selection::split_columns;
use crate::source::stream::buffered;

pub(super) use crate::source::avro::schema::{AvroField, AvroSchema};
pub(super) use generated::can_generate;

/// Mark in the metadata of a field whose text spells numbers.
pub(super) const NUMBERS_AS_TEXT: &str = "numbers_as_text";

/// Reads the requested fields of the rows of an Avro file.
pub(super) struct AvroReader {
    file: String,
    blocks: Blocks,
    /// Header for the decoder of rows.
    header: Vec<u8>,
    /// Positions of the fields to decode.
    decoded: Vec<usize>,
    /// Names of the requested fields, in the order of the file.
    wanted: Vec<String>,
    generated: Vec<Generated>,
    numeric: Vec<String>,
    /// All columns.
    schema: SchemaRef,
    unknown: Vec<String>,
    pieces: BatchRemainder,
    counter: RowCounter,
    batch_rows: usize,
}

/// Reads the schema of a file.
///
/// # Errors
/// [`SourceError`] if it is not the header of an Avro file.
pub(super) fn read_schema(file: &str, stream: Box<dyn Read + Send>) -> Result<AvroSchema, SourceError> {
    let error = |error: String| failed(file, InputFormat::Avro, error);
    let (_, text) = Blocks::open(buffered(stream)).map_err(|reason| error(reason.to_string()))?;
    AvroSchema::parse(&text).map_err(error)
}

impl AvroReader {
    pub(super) fn open(
        file: &str,
        stream: Box<dyn Read + Send>,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let error = |error: String| failed(file, InputFormat::Avro, error);
        let (blocks, text) = Blocks::open(buffered(stream)).map_err(|reason| error(reason.to_string()))?;
        let declared = AvroSchema::parse(&text).map_err(error)?;
        let header = write_header(&declared.text);
        let decoder = ReaderBuilder::new().build(Cursor::new(&header));
        let of_rows = decoder.map_err(|reason| error(reason.to_string()))?.schema();
        let numeric: Vec<String> =
            declared.fields.iter().filter(|field| field.is_numeric).map(|field| field.name.clone()).collect();
        let generated = Generated::from_schema(&declared);
        let schema = Arc::new(presented(&of_rows, &numeric, &generated));
        let (wanted, unknown) = split_columns(file, &schema, columns)?;
        let wanted: Vec<String> = wanted.iter().map(|at| schema.field(*at).name().clone()).collect();
        let generated: Vec<Generated> =
            generated.into_iter().filter(|column| wanted.contains(&column.name)).collect();
        let is_needed = |name: &String| {
            wanted.contains(name) || generated.iter().any(|column| column.columns.contains(name))
        };
        let fields = of_rows.fields().iter().enumerate();
        let mut decoded: Vec<usize> =
            fields.filter(|(_, field)| is_needed(field.name())).map(|(at, _)| at).collect();
        if decoded.is_empty() && !of_rows.fields().is_empty() {
            // The number of rows comes from a field.
            decoded.push(0);
        }
        Ok(Self {
            file: file.to_owned(),
            blocks,
            header,
            decoded,
            wanted,
            generated,
            numeric,
            schema,
            unknown,
            pieces: BatchRemainder::default(),
            counter: RowCounter { next: 1 },
            batch_rows: options.batch_rows.max(1),
        })
    }

    /// Reads the rows of the next blocks; `None` at the end.
    fn next_whole_batch(&mut self) -> Result<Option<RecordBatch>, String> {
        let (mut rows, mut data) = (0usize, Vec::new());
        while rows < self.batch_rows && data.len() < READ_BATCH_BYTES {
            let Some(block) = self.blocks.next().map_err(|error| error.to_string())? else { break };
            rows += usize::try_from(block.rows).unwrap_or(usize::MAX);
            if data.is_empty() { data = block.data } else { data.extend_from_slice(&block.data) }
        }
        if rows == 0 {
            return match data.is_empty() {
                true => Ok(None),
                false => Err("a block has bytes and no rows".to_owned()),
            };
        }
        let batch =
            guarded(|| decode(&self.header, &self.decoded, rows, &data)).map_err(|e| e.to_string())?;
        self.present(&batch).map(Some)
    }

    /// Returns the requested columns of decoded rows.
    fn present(&self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for name in &self.wanted {
            let array = match self.generated.iter().find(|column| column.name == *name) {
                Some(column) => column.values(batch)?,
                None => {
                    let array = batch.column_by_name(name).ok_or("a column is missing")?;
                    check_precision(array, name)?;
                    if self.numeric.contains(name) { numeric_texts(array, name)? } else { Arc::clone(array) }
                }
            };
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let rows = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::new(Schema::new(fields));
        RecordBatch::try_new_with_options(schema, arrays, &rows).map_err(|error| error.to_string())
    }
}

/// Returns the columns as they are returned: numbers of any size as text, generated ones with
/// values.
fn presented(of_rows: &Schema, numeric: &[String], generated: &[Generated]) -> Schema {
    let field = |field: &Arc<Field>| {
        let name = field.name();
        if numeric.contains(name) {
            let mark = HashMap::from([(NUMBERS_AS_TEXT.to_owned(), String::new())]);
            Field::new(name, DataType::Utf8, field.is_nullable()).with_metadata(mark)
        } else if let Some(column) = generated.iter().find(|column| column.name == *name) {
            Field::new(name, column.data_type(), true)
        } else {
            let nullable = field.is_nullable() || field.data_type() == &DataType::Null;
            field.as_ref().clone().with_nullable(nullable)
        }
    };
    Schema::new(of_rows.fields().iter().map(field).collect::<Vec<_>>())
}

/// Decodes exactly `rows` rows from `data`.
fn decode(header: &[u8], columns: &[usize], rows: usize, data: &[u8]) -> Result<RecordBatch, ArrowError> {
    let mut block = Vec::new();
    // The decoder never ends if a block has more rows than its count. With a count that is never
    // reached, it returns them, and they are found below.
    write_long(i64::MAX / 2, &mut block);
    write_long(data.len() as i64, &mut block);
    let file = Cursor::new(header).chain(Cursor::new(block)).chain(data).chain(&[0; 16][..]);
    let mut reader =
        ReaderBuilder::new().with_batch_size(rows).with_projection(columns.to_vec()).build(file)?;
    let damaged = |problem: &str| ArrowError::AvroError(format!("{problem} than its blocks say"));
    let batch = reader.next().transpose()?.ok_or_else(|| damaged("it has fewer rows"))?;
    match reader.next() {
        None if batch.num_rows() == rows => Ok(batch),
        None => Err(damaged("it has fewer rows")),
        Some(_) => Err(damaged("it has more rows")),
    }
}

/// Checks that decimals have no more digits than their type declares.
fn check_precision(array: &ArrayRef, name: &str) -> Result<(), String> {
    let checked = match array.data_type() {
        DataType::Decimal128(precision, _) => {
            array.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision)
        }
        DataType::Decimal256(precision, _) => {
            array.as_primitive::<Decimal256Type>().validate_decimal_precision(*precision)
        }
        _ => Ok(()),
    };
    checked.map_err(|error| format!("column '{name}': {error}"))
}

fn numeric_texts(array: &ArrayRef, name: &str) -> Result<ArrayRef, String> {
    let bytes = array.as_binary_opt::<i32>().ok_or_else(|| format!("column '{name}' is not bytes"))?;
    let text = |bytes: Option<&[u8]>| match bytes {
        None => Ok(None),
        Some(bytes) => schema::numeric_text(bytes)
            .map(Some)
            .ok_or_else(|| format!("a value of column '{name}' is not a number of Spanner")),
    };
    Ok(Arc::new(bytes.iter().map(text).collect::<Result<StringArray, String>>()?))
}

impl RawReader for AvroReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        if self.pieces.rest.is_none() {
            let batch = self.next_whole_batch();
            self.pieces.rest = batch.map_err(|error| failed(&self.file, InputFormat::Avro, error))?;
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
    use arrow::array::BinaryArray;
    use arrow::datatypes::Int64Type;

    use super::*;

    const SCHEMA: &str = r#"{"type":"record","name":"T","fields":[{"name":"id","type":"long"},{"name":"t","type":["null","string"]}]}"#;
    const MARK: [u8; 16] = [7; 16];

    /// Writes a file of blocks: the number of rows that each states, and its actual rows.
    fn file(codec: &str, blocks: &[(i64, std::ops::Range<i64>)]) -> Vec<u8> {
        let mut file = b"Obj\x01".to_vec();
        write_long(2, &mut file);
        for text in ["avro.schema", SCHEMA, "avro.codec", codec] {
            write_long(text.len() as i64, &mut file);
            file.extend_from_slice(text.as_bytes());
        }
        write_long(0, &mut file);
        file.extend_from_slice(&MARK);
        for (count, rows) in blocks {
            let mut data = Vec::new();
            for id in rows.clone() {
                write_long(id, &mut data);
                write_long(i64::from(id % 3 != 0), &mut data);
                if id % 3 != 0 {
                    let text = format!("row {id}");
                    write_long(text.len() as i64, &mut data);
                    data.extend_from_slice(text.as_bytes());
                }
            }
            let stored = match codec {
                "deflate" => {
                    let mut packed = Vec::new();
                    let level = flate2::Compression::fast();
                    flate2::read::DeflateEncoder::new(data.as_slice(), level)
                        .read_to_end(&mut packed)
                        .unwrap();
                    packed
                }
                "snappy" => {
                    let mut packed = snap::raw::Encoder::new().compress_vec(&data).unwrap();
                    packed.extend_from_slice(&crc32fast::hash(&data).to_be_bytes());
                    packed
                }
                "zstandard" => zstd::encode_all(data.as_slice(), 1).unwrap(),
                _ => data,
            };
            write_long(*count, &mut file);
            write_long(stored.len() as i64, &mut file);
            file.extend_from_slice(&stored);
            file.extend_from_slice(&MARK);
        }
        file
    }

    fn read(bytes: &[u8], columns: &[&str]) -> Result<Vec<(i64, Option<String>)>, SourceError> {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let options = InputOptions { batch_rows: 100, ..InputOptions::default() };
        let mut reader =
            AvroReader::open("t.avro", Box::new(Cursor::new(bytes.to_vec())), &columns, &options)?;
        let mut rows = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            let crate::source::raw::RawCells::Arrow(batch) = batch.cells else { panic!() };
            let text = batch.column_by_name("t").map(|texts| texts.as_string::<i32>().clone());
            for row in 0..batch.num_rows() {
                let id =
                    batch.column_by_name("id").map_or(0, |ids| ids.as_primitive::<Int64Type>().value(row));
                let text = text
                    .as_ref()
                    .filter(|texts| texts.is_valid(row))
                    .map(|texts| texts.value(row).to_owned());
                rows.push((id, text));
            }
        }
        Ok(rows)
    }

    fn expected(rows: std::ops::Range<i64>) -> Vec<(i64, Option<String>)> {
        rows.map(|id| (id, (id % 3 != 0).then(|| format!("row {id}")))).collect()
    }

    #[test]
    fn rows_of_every_codec_and_any_columns_are_read() {
        for codec in ["null", "deflate", "snappy", "zstandard"] {
            let bytes = file(codec, &[(70, 0..70), (1, 70..71), (0, 0..0), (500, 71..571), (29, 571..600)]);
            assert_eq!(read(&bytes, &["id", "t"]).unwrap(), expected(0..600), "{codec}");
            assert_eq!(read(&bytes, &["t"]).unwrap().len(), 600, "{codec}");
            assert_eq!(read(&bytes, &["nope"]).unwrap().len(), 600, "{codec}");
        }
        assert!(read(&file("null", &[]), &["id"]).unwrap().is_empty());
        let error = read(&file("bzip2", &[(1, 0..1)]), &["id"]).unwrap_err().to_string();
        assert!(error.contains("compressed with bzip2"), "{error}");
    }

    #[test]
    fn a_file_that_is_cut_anywhere_within_a_block_is_an_error() {
        for codec in ["null", "snappy"] {
            let whole = file(codec, &[(20, 0..20), (20, 20..40)]);
            let first = file(codec, &[(20, 0..20)]).len();
            let header = file(codec, &[]).len();
            for length in 4..whole.len() {
                let read = read(&whole[..length], &["id", "t"]);
                match length {
                    length if length == header => assert!(read.unwrap().is_empty()),
                    length if length == first => assert_eq!(read.unwrap().len(), 20),
                    length => assert!(read.is_err(), "{codec}: {length} of {} bytes", whole.len()),
                }
            }
        }
    }

    #[test]
    fn counts_that_are_wrong_and_marks_that_differ_are_errors() {
        for (count, rows) in
            [(1, 0..2), (1, 0..1000), (3, 0..2), (0, 0..5), (-1, 0..5), (i64::MAX, 0..5), (99, 0..100)]
        {
            let error = read(&file("null", &[(count, rows.clone())]), &["id", "t"]);
            assert!(error.is_err(), "{count} for {rows:?}");
        }
        let mut bytes = file("null", &[(20, 0..20)]);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let error = read(&bytes, &["id"]).unwrap_err().to_string();
        assert!(error.contains("block 1: its sync marker"), "{error}");
    }

    #[test]
    fn numbers_of_spanners_postgresql_dialect_are_text() {
        let array: ArrayRef =
            Arc::new(BinaryArray::from_opt_vec(vec![Some(&[0, 0, 0, 0, 2, 0x30, 0x39][..]), None]));
        let texts = numeric_texts(&array, "n").unwrap();
        assert_eq!(texts.as_string::<i32>().iter().collect::<Vec<_>>(), [Some("123.45"), None]);
        let wrong: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&[9][..]]));
        assert!(numeric_texts(&wrong, "n").unwrap_err().contains("'n'"));
    }

    proptest::proptest! {
        #[test]
        fn a_damaged_file_is_an_error_or_rows_and_always_an_end(at in 0usize..2000, bit in 0u8..8) {
            let mut bytes = file("null", &[(30, 0..30), (30, 30..60)]);
            let at = 4 + at % (bytes.len() - 4);
            bytes[at] ^= 1 << bit;
            let _ = read(&bytes, &["id", "t"]);
        }
    }
}
