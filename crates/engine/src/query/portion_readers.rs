//! Readers of portions that expose only the statistics by which DataFusion may prune.
//!
//! Floating-point statistics in Parquet leave NaN out, while SQL orders NaN above every number.
//! DataFusion 55 prunes by them as if they covered every row (apache/datafusion#24804), so a row
//! group that holds NaN would be skipped by `f > 100`, and the answer would depend on which rows
//! share a row group. Footers are therefore returned without statistics of such columns.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::CachedParquetFileReaderFactory;
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};

/// Factory of readers of portions whose footers are cached.
#[derive(Debug)]
pub(super) struct PortionReaders {
    cached: CachedParquetFileReaderFactory,
}

impl PortionReaders {
    /// Creates readers of the files of `store`.
    pub(super) fn new(store: Arc<dyn ObjectStore>, cache: Arc<FileMetadataCache>) -> Self {
        Self { cached: CachedParquetFileReaderFactory::new(store, cache) }
    }
}

impl ParquetFileReaderFactory for PortionReaders {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let file = self.cached.create_reader(partition_index, file, metadata_size_hint, metrics)?;
        Ok(Box::new(PortionReader { file }))
    }
}

struct PortionReader {
    file: Box<dyn AsyncFileReader + Send>,
}

impl fmt::Debug for PortionReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortionReader").finish_non_exhaustive()
    }
}

impl AsyncFileReader for PortionReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        self.file.get_bytes(range)
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        self.file.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        let metadata = self.file.get_metadata(options);
        async move { without_misleading_statistics(metadata.await?) }.boxed()
    }
}

/// Whether the statistics of a column chunk may leave out values that SQL compares with others.
fn is_misleading(chunk: &ColumnChunkMetaData) -> bool {
    let is_float = matches!(chunk.column_type(), PhysicalType::FLOAT | PhysicalType::DOUBLE)
        || chunk.column_descr().logical_type_ref() == Some(&LogicalType::Float16);
    is_float && (chunk.statistics().is_some() || chunk.column_index_offset().is_some())
}

/// Removes the statistics of floating-point columns from a footer, both of row groups and of pages.
/// This also removes null counts, which other readers can use, so it happens here and not when a
/// portion is written.
fn without_misleading_statistics(
    metadata: Arc<ParquetMetaData>,
) -> Result<Arc<ParquetMetaData>, ParquetError> {
    if !metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).any(is_misleading) {
        return Ok(metadata);
    }
    let strip = |chunk: &ColumnChunkMetaData| {
        if !is_misleading(chunk) {
            return Ok(chunk.clone());
        }
        let chunk = chunk.clone().into_builder().clear_statistics();
        chunk.set_column_index_offset(None).set_column_index_length(None).build()
    };
    let row_groups = metadata.row_groups().iter().map(|group| {
        let columns = group.columns().iter().map(strip).collect::<Result<Vec<_>, ParquetError>>()?;
        group.clone().into_builder().set_column_metadata(columns).build()
    });
    let row_groups = row_groups.collect::<Result<Vec<_>, ParquetError>>()?;
    // A page index that was already read is dropped; the scan reads it again, by the ranges above.
    let stripped = ParquetMetaData::clone(&metadata).into_builder().set_row_groups(row_groups);
    Ok(Arc::new(stripped.set_column_index(None).set_offset_index(None).build()))
}
