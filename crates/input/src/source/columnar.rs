//! Parquet, and code shared by the columnar formats, whose arrays are kept as they are.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Fields, Schema, SchemaRef};
use futures::StreamExt;
use parquet::arrow::arrow_reader::{
    ArrowReaderBuilder, ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::errors::ParquetError;
use tokio::sync::mpsc;

use crate::source::error::SourceError;
use crate::source::options::{InputFormat, InputOptions, READ_BATCH_BYTES};
use crate::source::raw::{Positions, RawBatch, RawCells, RawReader};
use crate::source::remote::RemoteObject;
use crate::source::stream::SeekableFile;
use evenkeel_storage::{handle, wait_for};

pub(super) fn failed(file: &str, format: InputFormat, error: impl std::fmt::Display) -> SourceError {
    SourceError::Format { file: file.to_owned(), format, reason: error.to_string() }
}

pub(super) fn open_file(file: &str, source: &SeekableFile) -> Result<File, SourceError> {
    source.open().map_err(|source| SourceError::Read { file: file.to_owned(), source })
}

/// Returns the positions of the requested columns in the file, and the names of the others. A
/// requested name that appears twice is rejected.
pub(super) fn split_columns(
    file: &str,
    schema: &Schema,
    columns: &[String],
) -> Result<(Vec<usize>, Vec<String>), SourceError> {
    let mut wanted = Vec::new();
    let mut unknown = Vec::new();
    for column in columns {
        if schema.fields().iter().filter(|field| field.name() == column).count() > 1 {
            return Err(SourceError::RepeatedColumn { file: file.to_owned(), column: column.clone() });
        }
    }
    for (index, field) in schema.fields().iter().enumerate() {
        if columns.contains(field.name()) { wanted.push(index) } else { unknown.push(field.name().clone()) }
    }
    Ok((wanted, unknown))
}

/// Numbers the rows of consecutive batches.
pub(super) struct RowCounter {
    pub(super) next: u64,
}

impl RowCounter {
    pub(super) fn raw(&mut self, batch: RecordBatch) -> RawBatch {
        let first = self.next;
        self.next += batch.num_rows() as u64;
        RawBatch { cells: RawCells::Arrow(batch), positions: Positions::RowsFrom(first), broken: Vec::new() }
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

/// Source of the batches of a Parquet file.
enum Batches {
    Local(Box<ParquetRecordBatchReader>),
    /// Fetched and decoded by another task, ahead of the reader.
    Remote(mpsc::Receiver<Result<RecordBatch, ParquetError>>),
}

/// Maximum number of buffered batches of a remote file.
const BATCHES_AHEAD: usize = 2;

/// Part of a Parquet file to read.
struct Selection {
    mask: ProjectionMask,
    groups: Vec<usize>,
    /// Number of rows to skip at the beginning of those groups; `most` limits the rows to read
    /// after them.
    skipped: usize,
    most: Option<usize>,
    /// Rows of those groups to read, if not all.
    chosen: Option<RowSelection>,
    /// Number of rows before the first one that is read.
    first_row: u64,
    /// Number of rows in the whole file.
    row_count: u64,
    unknown: Vec<String>,
    batch_rows: usize,
}

/// Reads the requested columns of a Parquet file.
pub(super) struct ParquetReader {
    file: String,
    reader: Batches,
    schema: SchemaRef,
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

impl Selection {
    fn new(
        file: &str,
        schema: &Schema,
        metadata: &ArrowReaderMetadata,
        columns: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let (mut wanted, unknown) = split_columns(file, schema, columns)?;
        let is_unasked = |index: &usize| {
            let field = schema.field(*index);
            options.unprojected.get(field.name()) == Some(field.data_type())
        };
        wanted.retain(|index| !is_unasked(index));
        let metadata = metadata.metadata();
        let groups = metadata.row_groups();
        let bytes: i64 = groups.iter().map(|group| group.total_byte_size()).sum();
        let rows: i64 = groups.iter().map(|group| group.num_rows()).sum();
        let row_bytes = usize::try_from(bytes / rows.max(1)).unwrap_or(0).max(1);
        let rows_of: Vec<u64> =
            groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).collect();
        let wanted_groups = match &options.rows {
            Some(rows) => groups_with(&rows_of, rows),
            None => (0, groups.len()),
        };
        if !options.places.is_empty() {
            let (groups, chosen) = groups_and_rows(&rows_of, &options.places);
            return Ok(Self {
                groups,
                skipped: 0,
                most: None,
                chosen: Some(chosen),
                // The numbers of the rows no longer match their positions in the file.
                first_row: 0,
                row_count: rows_of.iter().sum(),
                mask: ProjectionMask::roots(metadata.file_metadata().schema_descr(), wanted),
                unknown,
                batch_rows: (READ_BATCH_BYTES / row_bytes).clamp(1, options.batch_rows.max(1)),
            });
        }
        let rows_before = rows_of.iter().take(wanted_groups.0).sum();
        let first_row = options.rows.as_ref().map_or(rows_before, |rows| rows.start.max(rows_before));
        let most = options.rows.as_ref().map(|rows| rows.end.saturating_sub(first_row));
        let length = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        Ok(Self {
            groups: (wanted_groups.0..wanted_groups.1).collect(),
            skipped: length(first_row - rows_before),
            most: most.map(length),
            chosen: None,
            first_row,
            row_count: rows_of.iter().sum(),
            mask: ProjectionMask::roots(metadata.file_metadata().schema_descr(), wanted),
            unknown,
            batch_rows: (READ_BATCH_BYTES / row_bytes).clamp(1, options.batch_rows.max(1)),
        })
    }

    /// Configures a builder to read this selection.
    fn configure<T>(&self, builder: ArrowReaderBuilder<T>) -> ArrowReaderBuilder<T> {
        let builder = builder
            .with_projection(self.mask.clone())
            .with_row_groups(self.groups.clone())
            .with_batch_size(self.batch_rows);
        let builder = match &self.chosen {
            Some(chosen) => builder.with_row_selection(chosen.clone()),
            None => builder,
        };
        let builder = if self.skipped > 0 { builder.with_offset(self.skipped) } else { builder };
        match self.most {
            Some(most) => builder.with_limit(most),
            None => builder,
        }
    }
}

/// Returns the position of the first row group that has some of these rows, and the position after
/// the last; `rows_of` holds the number of rows of each group.
fn groups_with(rows_of: &[u64], rows: &Range<u64>) -> (usize, usize) {
    let ends = rows_of.iter().scan(0, |end, rows| {
        *end += rows;
        Some(*end)
    });
    let start = ends.clone().take_while(|end| *end <= rows.start).count();
    let begins = std::iter::once(0).chain(ends).take(rows_of.len());
    (start, begins.take_while(|begin| *begin < rows.end).count().max(start))
}

/// Returns the row groups that have rows of these places, and the selection of those rows among the
/// rows of these groups.
fn groups_and_rows(rows_of: &[u64], places: &[Range<u64>]) -> (Vec<usize>, RowSelection) {
    let (mut groups, mut ranges) = (Vec::new(), Vec::new());
    let (mut begin, mut before, mut rows_of_groups) = (0u64, 0usize, 0usize);
    for (group, rows) in rows_of.iter().enumerate() {
        let end = begin + rows;
        let within = |row: u64| usize::try_from(row.clamp(begin, end) - begin).unwrap_or(usize::MAX);
        let here = places.iter().filter(|place| place.start < end && place.end > begin);
        ranges.extend(here.map(|place| before + within(place.start)..before + within(place.end)));
        if ranges.last().is_some_and(|range: &Range<usize>| range.end > before) {
            groups.push(group);
            rows_of_groups += within(end);
            before += within(end);
        }
        begin = end;
    }
    (groups, RowSelection::from_consecutive_ranges(ranges.into_iter(), rows_of_groups))
}

impl ParquetReader {
    pub(super) fn open(
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
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(opened, metadata);
        let reader = selection.configure(builder).build().map_err(error)?;
        Ok(Self {
            file: file.to_owned(),
            reader: Batches::Local(Box::new(reader)),
            schema,
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
}
