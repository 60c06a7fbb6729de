//! Parquet, and code shared by the columnar formats, whose arrays are kept unchanged.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Fields, Int64Type, Schema, SchemaRef};
use futures::StreamExt;
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use tokio::sync::mpsc;

use crate::source::column_parts::{ColumnParts, SharedFile};
use crate::source::error::SourceError;
use crate::source::format::InputFormat;
use crate::source::options::InputOptions;
use crate::source::raw::{Positions, RawBatch, RawCells, RawReader};
use crate::source::remote::RemoteObject;
use crate::source::selection::Selection;
use crate::source::stream::SeekableFile;
use evenkeel_storage::{handle, wait_for};

pub(super) fn failed(file: &str, format: InputFormat, error: impl std::fmt::Display) -> SourceError {
    SourceError::Format { file: file.to_owned(), format, reason: error.to_string() }
}

pub(super) fn open_file(file: &str, source: &SeekableFile) -> Result<File, SourceError> {
    source.open().map_err(|source| SourceError::Read { file: file.to_owned(), source })
}

/// Numbers the rows of consecutive batches.
pub(super) struct RowCounter {
    pub(super) next: u64,
}

impl RowCounter {
    pub(super) fn raw(&mut self, batch: RecordBatch) -> RawBatch {
        let first = self.next;
        self.next += batch.num_rows() as u64;
        RawBatch {
            cells: RawCells::Arrow(batch),
            positions: Positions::RowsFrom(first),
            broken: Vec::new(),
            is_json: false,
        }
    }
}

/// Returns the schema with text as views.
fn text_as_views(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        _ => Arc::clone(field),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Fields>(), schema.metadata().clone()))
}

/// Converts an error of a file that may be in an object store: a failed request to the store does
/// not make the file malformed.
fn remote_failed(file: &str, error: ParquetError) -> SourceError {
    match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(source) => SourceError::Read { file: file.to_owned(), source: *source },
            Err(source) => failed(file, InputFormat::Parquet, source),
        },
        error => failed(file, InputFormat::Parquet, error),
    }
}

/// Dates and times as their numbers; `None` for other types.
fn whole_numbers(array: &ArrayRef) -> Option<Vec<i64>> {
    let numbers = match array.data_type() {
        DataType::Date32 => cast(&cast(array, &DataType::Int32).ok()?, &DataType::Int64).ok()?,
        DataType::Timestamp(..) => cast(array, &DataType::Int64).ok()?,
        _ => return None,
    };
    Some(numbers.as_primitive::<Int64Type>().iter().flatten().collect())
}

/// Source of the batches of a Parquet file.
enum Batches {
    Local(Box<ParquetRecordBatchReader>),
    /// Decoded by several threads.
    Parts(ColumnParts),
    /// Fetched and decoded by another task, ahead of the reader.
    Remote(mpsc::Receiver<Result<RecordBatch, ParquetError>>),
}

/// Cores per thread that decodes columns of a local file: the others process the rows.
const CORES_PER_DECODER: usize = 2;
/// Maximum number of threads that decode columns of a file.
const MAX_DECODERS: usize = 8;
/// Least number of bytes (stored and decoded) that are worth a thread.
const LEAST_BYTES_OF_PART: u64 = 2 << 20;
/// Maximum number of buffered batches of a remote file.
const BATCHES_AHEAD: usize = 2;

/// Reads the requested columns of a Parquet file.
pub(super) struct ParquetReader {
    file: String,
    reader: Batches,
    schema: SchemaRef,
    metadata: Arc<ParquetMetaData>,
    unknown: Vec<String>,
    counter: RowCounter,
    row_count: u64,
    /// Keeps a temporary file alive until it has been read; `None` for a file in an object store.
    source: Option<SeekableFile>,
}

/// Returns the metadata of a file, with text as views if the options request it.
fn with_views(
    metadata: ArrowReaderMetadata,
    options: &InputOptions,
) -> Result<ArrowReaderMetadata, ParquetError> {
    if !options.views {
        return Ok(metadata);
    }
    let views = ArrowReaderOptions::new().with_schema(text_as_views(metadata.schema()));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), views)
}

/// How the columns of a file are divided among threads.
struct Decoders {
    most: usize,
    /// Least number of bytes (stored and decoded) per thread.
    least_bytes: u64,
}

impl Decoders {
    fn for_options(options: &InputOptions) -> Self {
        // Parts of a file are read beside other parts, and need no more threads.
        let is_part = options.rows.is_some() || !options.places.is_empty();
        let most = if is_part { 1 } else { options.available_threads() / CORES_PER_DECODER };
        Self { most: most.min(MAX_DECODERS), least_bytes: LEAST_BYTES_OF_PART }
    }
}

impl ParquetReader {
    pub(super) fn open(
        file: &str,
        source: SeekableFile,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        Self::open_with_decoders(&Decoders::for_options(options), file, source, columns, options)
    }

    fn open_with_decoders(
        decoders: &Decoders,
        file: &str,
        source: SeekableFile,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let error = |error| failed(file, InputFormat::Parquet, error);
        let opened = open_file(file, &source)?;
        let metadata = ArrowReaderMetadata::load(&opened, ArrowReaderOptions::new()).map_err(error)?;
        let schema = Arc::clone(metadata.schema());
        let selection = Selection::new(file, &schema, &metadata, columns, options)?;
        let metadata = with_views(metadata, options).map_err(error)?;
        let of_file = Arc::clone(metadata.metadata());
        let parts = selection.split(&of_file, decoders.most, decoders.least_bytes);
        let reader = match parts.as_slice() {
            [] | [_] => {
                let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(opened, metadata);
                Batches::Local(Box::new(selection.configure(builder).build().map_err(error)?))
            }
            parts => {
                let read_error = |source| SourceError::Read { file: file.to_owned(), source };
                let shared = SharedFile::new(opened).map_err(read_error)?;
                let reader = |part: &Selection| {
                    let metadata = metadata.clone();
                    let builder =
                        ParquetRecordBatchReaderBuilder::new_with_metadata(shared.clone(), metadata);
                    part.configure(builder).build().map_err(error)
                };
                let readers = parts.iter().map(reader).collect::<Result<_, _>>()?;
                let columns: Vec<Vec<usize>> = parts.iter().map(|part| part.columns().to_vec()).collect();
                Batches::Parts(ColumnParts::new(readers, &columns))
            }
        };
        Ok(Self {
            file: file.to_owned(),
            reader,
            schema,
            metadata: of_file,
            counter: RowCounter { next: selection.first_row + 1 },
            row_count: selection.row_count,
            unknown: selection.unknown,
            source: Some(source),
        })
    }

    /// Opens a file in an object store, fetching only its footer and the requested columns.
    pub(super) fn open_remote(
        file: &str,
        object: RemoteObject,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let error = |error| failed(file, InputFormat::Parquet, error);
        let read_error = |source| SourceError::Read { file: file.to_owned(), source };
        let mut reader = object.clone();
        let loading =
            async move { ArrowReaderMetadata::load_async(&mut reader, ArrowReaderOptions::new()).await };
        let metadata = wait_for(loading).map_err(read_error)?.map_err(|error| remote_failed(file, error))?;
        let schema = Arc::clone(metadata.schema());
        let selection = Selection::new(file, &schema, &metadata, columns, options)?;
        let metadata = with_views(metadata, options).map_err(error)?;
        let of_file = Arc::clone(metadata.metadata());
        let builder = ParquetRecordBatchStreamBuilder::new_with_metadata(object, metadata);
        let mut batches = selection.configure(builder).build().map_err(error)?;
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        handle().map_err(read_error)?.spawn(async move {
            while let Some(batch) = batches.next().await {
                if sender.send(batch).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            file: file.to_owned(),
            reader: Batches::Remote(receiver),
            schema,
            metadata: of_file,
            counter: RowCounter { next: selection.first_row + 1 },
            row_count: selection.row_count,
            unknown: selection.unknown,
            source: None,
        })
    }
}

impl RawReader for ParquetReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        let batch = match &mut self.reader {
            Batches::Local(reader) => reader.next().transpose().map_err(ParquetError::from),
            Batches::Parts(parts) => parts.next_batch(),
            Batches::Remote(receiver) => futures::executor::block_on(receiver.recv()).transpose(),
        };
        let batch = batch.map_err(|error| remote_failed(&self.file, error))?;
        Ok(batch.map(|batch| self.counter.raw(batch)))
    }

    fn unknown_columns(&self) -> Vec<String> {
        self.unknown.clone()
    }

    fn row_count(&self) -> Option<u64> {
        (!matches!(self.source, Some(SeekableFile::Spooled(_)))).then_some(self.row_count)
    }

    fn file_schema(&self) -> Option<&SchemaRef> {
        Some(&self.schema)
    }

    fn extremes(&self, column: &str) -> Option<(i64, i64)> {
        let statistics =
            StatisticsConverter::try_new(column, &self.schema, self.metadata.file_metadata().schema_descr())
                .ok()?;
        let groups = self.metadata.row_groups();
        let least = whole_numbers(&statistics.row_group_mins(groups).ok()?)?;
        let greatest = whole_numbers(&statistics.row_group_maxes(groups).ok()?)?;
        Some((least.into_iter().min()?, greatest.into_iter().max()?))
    }
}

#[cfg(test)]
#[path = "columnar_tests.rs"]
mod tests;
