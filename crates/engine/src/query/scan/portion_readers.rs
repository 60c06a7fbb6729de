//! Readers of portions that expose only statistics that are safe for pruning.
//!
//! Floating-point statistics in Parquet leave NaN out, while SQL orders NaN above every number.
//! DataFusion 55 prunes by them as if they covered every row (apache/datafusion#24804), so a row
//! group that holds NaN would be skipped by `f > 100`, and the answer would depend on which rows
//! share a row group. Footers are therefore returned without statistics of such columns.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::datasource::physical_plan::parquet::metadata::{CachedParquetMetaData, DFParquetMetadata};
use datafusion::error::Result;
use datafusion::execution::cache::cache_manager::{CachedFileMetadataEntry, FileMetadataCache};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;

/// Factory of readers of portions whose footers are cached.
#[derive(Debug, Clone)]
pub(in crate::query) struct PortionReaders {
    store: Arc<dyn ObjectStore>,
    cache: Arc<FileMetadataCache>,
    has_pages: bool,
}

impl PortionReaders {
    /// Creates readers of the files of `store`.
    pub(in crate::query) fn new(store: Arc<dyn ObjectStore>, cache: Arc<FileMetadataCache>) -> Self {
        Self { store, cache, has_pages: false }
    }

    /// Lets footers be read and cached with their page indexes, for scans with conditions.
    /// DataFusion asks for the footer alone, and would then read and decode the page index of every
    /// file again in each query.
    #[must_use]
    pub(in crate::query) fn with_pages(self) -> Self {
        Self { has_pages: true, ..self }
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
        // A scan may create several readers of each file, and has its own metrics. The readers of
        // DataFusion would register all of these again, which takes longer than a small read.
        let bytes_scanned = MetricBuilder::new(metrics).counter("bytes_scanned", partition_index);
        let files = self.clone();
        Ok(Box::new(PortionReader { files, file: file.object_meta, metadata_size_hint, bytes_scanned }))
    }
}

struct PortionReader {
    files: PortionReaders,
    file: ObjectMeta,
    metadata_size_hint: Option<usize>,
    bytes_scanned: Count,
}

impl PortionReader {
    fn count(&self, ranges: &[Range<u64>]) {
        let bytes: u64 = ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum();
        self.bytes_scanned.add(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Returns the footer of the file, from the cache if that has it.
    async fn footer(&self, policy: Option<PageIndexPolicy>) -> Result<Arc<ParquetMetaData>, ParquetError> {
        let fetch = DFParquetMetadata::new(self.files.store.as_ref(), &self.file)
            .with_file_metadata_cache(Some(Arc::clone(&self.files.cache)))
            .with_metadata_size_hint(self.metadata_size_hint)
            .with_page_index_policy(policy);
        fetch.fetch_metadata().await.map_err(|error| {
            ParquetError::General(format!(
                "Failed to fetch metadata for file {}: {error}",
                self.file.location
            ))
        })
    }

    async fn metadata(&self, policy: Option<PageIndexPolicy>) -> Result<Arc<ParquetMetaData>, ParquetError> {
        let mut metadata = self.footer(policy).await?;
        if self.files.has_pages && metadata.column_index().is_none() && has_page_index(&metadata) {
            metadata = self.footer(Some(PageIndexPolicy::Optional)).await?;
        }
        let Some(honest) = without_misleading_statistics(&metadata)? else { return Ok(metadata) };
        let honest = Arc::new(honest);
        let cached = Arc::new(CachedParquetMetaData::new(Arc::clone(&honest)));
        self.files.cache.put(&self.file.location, CachedFileMetadataEntry::new(self.file.clone(), cached));
        Ok(honest)
    }
}

/// Whether a file has indexes of pages.
fn has_page_index(metadata: &ParquetMetaData) -> bool {
    let mut chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    chunks.any(|chunk| chunk.column_index_offset().is_some())
}

fn external(error: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl AsyncFileReader for PortionReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        self.count(std::slice::from_ref(&range));
        self.files.store.get_range(&self.file.location, range).map_err(external).boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        self.count(&ranges);
        async move { self.files.store.get_ranges(&self.file.location, &ranges).await.map_err(external) }
            .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        self.metadata(options.map(ArrowReaderOptions::column_index_policy)).boxed()
    }
}

/// Whether the statistics of a column chunk may leave out values that SQL compares with others.
fn is_misleading(chunk: &ColumnChunkMetaData) -> bool {
    let is_float = matches!(chunk.column_type(), PhysicalType::FLOAT | PhysicalType::DOUBLE)
        || chunk.column_descr().logical_type_ref() == Some(&LogicalType::Float16);
    is_float && (chunk.statistics().is_some() || chunk.column_index_offset().is_some())
}

/// Removes the statistics of floating-point columns from a footer, both of row groups and of pages;
/// `None` without such columns. This also removes null counts, which other readers can use, so it
/// happens here and not when a portion is written.
fn without_misleading_statistics(
    metadata: &ParquetMetaData,
) -> Result<Option<ParquetMetaData>, ParquetError> {
    if !metadata.row_groups().iter().flat_map(RowGroupMetaData::columns).any(is_misleading) {
        return Ok(None);
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
    // A page index that was already read keeps the other columns.
    let pages = metadata.column_index().map(|groups| {
        let of_group = |(pages, group): (&Vec<ColumnIndexMetaData>, &RowGroupMetaData)| {
            let chunks = pages.iter().zip(group.columns());
            let honest =
                |(pages, chunk): (&ColumnIndexMetaData, &ColumnChunkMetaData)| match is_misleading(chunk) {
                    true => ColumnIndexMetaData::NONE,
                    false => pages.clone(),
                };
            chunks.map(honest).collect()
        };
        groups.iter().zip(metadata.row_groups()).map(of_group).collect()
    });
    let stripped = metadata.clone().into_builder().set_row_groups(row_groups);
    Ok(Some(stripped.set_column_index(pages).build()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
    use datafusion::execution::runtime_env::RuntimeEnv;
    use object_store::memory::InMemory;
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// A file with these columns, each of a thousand values.
    async fn stored(columns: [(&str, ArrayRef); 2]) -> (Arc<InMemory>, ObjectMeta) {
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let (store, path) = (Arc::new(InMemory::new()), "a.parquet".into());
        store.put(&path, bytes.into()).await.unwrap();
        let meta = store.head(&path).await.unwrap();
        (store, meta)
    }

    #[tokio::test]
    async fn page_indexes_are_added_to_a_footer_that_was_cached_without() {
        let numbers: ArrayRef = Arc::new(Float64Array::from_iter_values((0..1_000).map(f64::from)));
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let (store, meta) = stored([("a", keys), ("b", numbers)]).await;
        let cache = RuntimeEnv::default().cache_manager.get_file_metadata_cache();
        let plain = PortionReaders::new(Arc::clone(&store) as _, cache);
        let metrics = ExecutionPlanMetricsSet::new();
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Skip);
        let mut footers = Vec::new();
        for readers in [plain.clone(), plain.clone().with_pages(), plain.clone().with_pages(), plain] {
            let file = PartitionedFile::from(meta.clone());
            let mut reader = readers.create_reader(0, file, None, &metrics).unwrap();
            footers.push(reader.get_metadata(Some(&options)).await.unwrap());
            if footers.len() == 2 {
                store.delete(&meta.location).await.unwrap();
            }
        }
        assert!(footers[0].column_index().is_none());
        let pages = footers[1].column_index().unwrap();
        assert!(!matches!(pages[0][0], ColumnIndexMetaData::NONE));
        assert!(matches!(pages[0][1], ColumnIndexMetaData::NONE));
        assert!(footers[2..].iter().all(|footer| Arc::ptr_eq(footer, &footers[1])));
    }

    #[tokio::test]
    async fn footers_are_read_once_whatever_the_columns_and_conditions() {
        let whole = || -> ArrayRef { Arc::new(Int64Array::from_iter_values(0..1_000)) };
        let fractions =
            || -> ArrayRef { Arc::new(Float64Array::from_iter_values((0..1_000).map(f64::from))) };
        for columns in [[("a", whole()), ("b", whole())], [("a", whole()), ("b", fractions())]] {
            for has_conditions in [false, true] {
                let (store, meta) = stored(columns.clone()).await;
                let cache = RuntimeEnv::default().cache_manager.get_file_metadata_cache();
                let readers = PortionReaders::new(Arc::clone(&store) as _, cache);
                let readers = if has_conditions { readers.with_pages() } else { readers };
                let metrics = ExecutionPlanMetricsSet::new();
                let file = || PartitionedFile::from(meta.clone());
                let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Skip);
                let mut footers = Vec::new();
                for _ in 0..3 {
                    let mut reader = readers.create_reader(0, file(), None, &metrics).unwrap();
                    footers.push(reader.get_metadata(Some(&options)).await.unwrap());
                    // A footer that is not cached can no longer be read.
                    store.delete(&meta.location).await.unwrap();
                }
                assert!(footers.iter().all(|footer| Arc::ptr_eq(footer, &footers[0])));
                assert_eq!(footers[0].column_index().is_some(), has_conditions);
                let chunks = footers[0].row_group(0).columns();
                for (chunk, (_, values)) in chunks.iter().zip(&columns) {
                    assert_eq!(chunk.statistics().is_none(), values.data_type().is_floating());
                }
            }
        }
    }
}
