//! Opens the files of one stream of a scan.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::Statistics;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    BloomFilterStatistics, ParquetAccessPlan, ParquetFileMetrics, RowGroupAccessPlanFilter, build_row_filter,
};
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, ParquetFileReaderFactory};
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use parquet::arrow::arrow_reader::{ArrowPredicate, ArrowReaderMetadata, ArrowReaderOptions, RowFilter};
use parquet::arrow::async_reader::{AsyncFileReader, ParquetRecordBatchStreamBuilder};
use parquet::file::metadata::PageIndexPolicy;

use crate::query::scan::density::{Density, Place, in_reader};
use crate::query::scan::dictionaries::Dictionaries;
use crate::query::scan::file_plan::FilePlan;
use crate::query::scan::first_rows::{Best, LeadingRows, SliceSizes, Slices};
use crate::query::scan::late_filter::LateFilter;
use crate::query::scan::portion_readers::PortionReaders;
use crate::query::scan::portion_source::FilePlans;
use crate::query::scan::small_reads::is_small;

type Builder = ParquetRecordBatchStreamBuilder<Box<dyn AsyncFileReader>>;
type Rows = BoxStream<'static, Result<RecordBatch>>;

/// Bytes of decoded columns that the reader of Parquet keeps for the output if no other limit is
/// set, after having evaluated conditions on them.
const READER_CACHE: usize = 100 << 20;

/// Opens the files of one stream of a scan.
pub(super) struct PortionOpener(pub(super) Arc<Opening>);

impl FileOpener for PortionOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opening = Arc::clone(&self.0);
        Ok(async move { opening.open(file).await }.boxed())
    }
}

pub(super) struct Opening {
    pub(super) readers: PortionReaders,
    pub(super) plans: Arc<FilePlans>,
    pub(super) density: Arc<Density>,
    pub(super) batch_size: usize,
    pub(super) limit: Option<usize>,
    pub(super) max_predicate_cache_size: Option<usize>,
    pub(super) partition: usize,
    pub(super) metrics: ExecutionPlanMetricsSet,
    /// Metrics of all files together.
    pub(super) file_metrics: ParquetFileMetrics,
    pub(super) small_reads: Count,
    /// The best keys, if the scan looks for the first rows by a key.
    pub(super) best: Option<Arc<Best>>,
    /// Sizes of the slices in which files are read until the bound is known.
    pub(super) sizes: SliceSizes,
}

/// A file of which it is known how to read it.
struct OpenFile {
    file: PartitionedFile,
    metadata: ArrowReaderMetadata,
    plan: Arc<FilePlan>,
}

impl Opening {
    async fn open(self: Arc<Self>, file: PartitionedFile) -> Result<Rows> {
        let known = file.statistics.clone();
        if known.as_ref().is_some_and(|known| self.is_beyond_bound(known)) {
            return Ok(nothing());
        }
        let constants = known.map(|known| self.plans.scan.constants(&known));
        let mut reader = self.reader(&file)?;
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Skip);
        let footer = reader.get_metadata(Some(&options)).await?;
        let (metadata, plan) = self.plans.of_file(footer, &constants.unwrap_or_default())?;
        let range = file.range.clone();
        let file = OpenFile { file, metadata, plan };
        let row_groups = file.metadata.metadata().row_groups();
        let mut access = RowGroupAccessPlanFilter::new(ParquetAccessPlan::new_all(row_groups.len()));
        if let Some(range) = &range {
            access.prune_by_range(row_groups, range);
        }
        let mut access = access.build();
        file.plan.exclude_row_groups(&mut access, file.metadata.metadata(), &self.file_metrics);
        let mut builder = Builder::new_with_metadata(reader, file.metadata.clone());
        self.exclude_by_values(&file.plan, &mut access, &mut builder).await;
        let access = file.plan.exclude_pages(access, file.metadata.metadata(), &self.file_metrics);
        match self.best.clone() {
            Some(best) => self.first_rows(file, access, best),
            None => self.rows(&file, builder, access, None),
        }
    }

    fn reader(&self, file: &PartitionedFile) -> Result<Box<dyn AsyncFileReader>> {
        let reader = self.readers.create_reader(self.partition, file.clone(), None, &self.metrics)?;
        Ok(reader)
    }

    /// Whether no row of a file can be among the first, by what is known of their keys.
    fn is_beyond_bound(&self, known: &Statistics) -> bool {
        let Some((best, column)) = self.best.as_ref().zip(self.plans.scan.first_column()) else {
            return false;
        };
        known.column_statistics.get(column).is_some_and(|known| best.excludes(known))
    }

    /// Returns the rows of a file that can be among the first, slice by slice.
    fn first_rows(
        self: Arc<Self>,
        file: OpenFile,
        access: ParquetAccessPlan,
        best: Arc<Best>,
    ) -> Result<Rows> {
        let order = file.plan.row_groups_in_order(&access, file.metadata.metadata(), &self.plans.scan)?;
        let slices = Slices::new(access, order);
        let rows = futures::stream::try_unfold((file, slices), move |(file, mut slices)| {
            let (opening, best) = (Arc::clone(&self), Arc::clone(&best));
            async move {
                let rows = opening.next_slice(&file, &mut slices, &best)?;
                Ok::<_, DataFusionError>(rows.map(|rows| (rows, (file, slices))))
            }
        });
        Ok(rows.try_flatten().boxed())
    }

    /// Returns the rows of the next slice that has any; `None` if there is none.
    fn next_slice(&self, file: &OpenFile, slices: &mut Slices, best: &Arc<Best>) -> Result<Option<Rows>> {
        let footer = file.metadata.metadata();
        loop {
            let bound = best.bound();
            // Each slice reads the dictionaries of its row group.
            let at_most = if bound.is_some() { usize::MAX } else { self.sizes.next() };
            let Some(slice) = slices.next(footer.row_groups(), at_most) else { return Ok(None) };
            let slice = match bound {
                Some(bound) => file.plan.exclude_beyond(slice, footer, &bound)?,
                None => slice,
            };
            if !slice.row_group_indexes().is_empty() {
                let builder = Builder::new_with_metadata(self.reader(&file.file)?, file.metadata.clone());
                return self.rows(file, builder, slice, Some(best)).map(Some);
            }
        }
    }

    /// Returns rows of a file that all conditions keep, of those that `access` selects.
    fn rows(
        &self,
        file: &OpenFile,
        builder: Builder,
        access: ParquetAccessPlan,
        best: Option<&Arc<Best>>,
    ) -> Result<Rows> {
        let (plan, footer) = (Arc::clone(&file.plan), file.metadata.metadata());
        let positions = access.row_group_indexes();
        if positions.is_empty() {
            return Ok(nothing());
        }
        let is_close = || best.is_none() && self.density.place() == Place::Decoded;
        let is_small = |late: &Arc<LateFilter>| is_small(&access, footer, &late.decoded);
        let late = match plan.late.clone() {
            Some(late) if is_small(&late) => {
                self.small_reads.add(1);
                Some(late)
            }
            late => late.filter(|_| is_close()),
        };
        let mask = plan.mask(late.as_deref(), builder.parquet_schema());
        let mut builder =
            builder.with_projection(mask).with_batch_size(self.batch_size).with_row_groups(positions);
        if let Some(rows) = access.into_overall_row_selection(footer.row_groups())? {
            builder = builder.with_row_selection(rows);
        }
        let mut dictionaries = Dictionaries::new(&self.plans.scan.dictionaries);
        if let Some(late) = late {
            let rows = builder.build()?.map_err(DataFusionError::from);
            let kept = late.filtered(rows, &self.density, best.cloned(), self.batch_size)?;
            return Ok(kept.map(move |rows| plan.output(&rows?, &mut dictionaries)).boxed());
        }
        if let Some(filter) = self.filter(file, &builder, best)? {
            builder = builder.with_row_filter(filter);
            let bytes = self.max_predicate_cache_size.unwrap_or(READER_CACHE);
            let counted = plan.counted_dictionaries(footer, self.batch_size);
            builder = builder.with_max_predicate_cache_size(bytes.saturating_add(counted));
        }
        if let Some(limit) = self.limit {
            builder = builder.with_limit(limit);
        }
        let rows = builder.build()?.map_err(DataFusionError::from);
        Ok(rows.map(move |rows| plan.output(&rows?, &mut dictionaries)).boxed())
    }

    /// Conditions that the reader of a file evaluates: those of the query, that of the best keys,
    /// and that of the sort.
    fn filter(
        &self,
        file: &OpenFile,
        builder: &Builder,
        best: Option<&Arc<Best>>,
    ) -> Result<Option<RowFilter>> {
        let plan = &file.plan;
        // Conditions are not evaluated again above the scan, so an error must not be ignored.
        let built = |predicate: &Arc<dyn PhysicalExpr>| {
            build_row_filter(predicate, &plan.columns, file.metadata.metadata(), false, &self.file_metrics)
        };
        let conditions = plan.predicate.as_ref().map(built).transpose()?.flatten();
        let mut conditions = conditions.map(RowFilter::into_predicates).unwrap_or_default();
        let schema = builder.parquet_schema();
        let first = best.zip(plan.first.as_ref());
        let last = first
            .map(|(best, first)| LeadingRows::new(&first.key, &plan.columns, schema, best))
            .transpose()?;
        let last = last.map(|last| Box::new(last) as Box<dyn ArrowPredicate>);
        let costs = plan.late.as_deref().map(LateFilter::costs);
        conditions = in_reader(conditions, last, costs.as_deref(), &self.density, schema);
        if let Some(condition) = first.and_then(|(_, first)| first.condition.as_ref()) {
            let built = built(condition)?;
            conditions.extend(built.map(RowFilter::into_predicates).unwrap_or_default());
        }
        Ok((!conditions.is_empty()).then(|| RowFilter::new(conditions)))
    }

    /// Leaves out the row groups whose Bloom filters do not have a value that conditions need. A
    /// filter that cannot be read leaves out none.
    async fn exclude_by_values(
        &self,
        plan: &FilePlan,
        access: &mut ParquetAccessPlan,
        builder: &mut Builder,
    ) {
        let leaf = |name: String| Some((leaf_of(builder, &name)?, name));
        let compared: Vec<(usize, String)> = plan.compared_columns().into_iter().filter_map(leaf).collect();
        if compared.is_empty() {
            return;
        }
        for row_group in access.row_group_indexes() {
            let mut filters = BloomFilterStatistics::new();
            let mut has_any = false;
            for (leaf, name) in &compared {
                let (physical_type, length) = {
                    let column = builder.parquet_schema().column(*leaf);
                    (column.physical_type(), column.type_length())
                };
                if let Ok(Some(filter)) = builder.get_row_group_column_bloom_filter(row_group, *leaf).await {
                    filters.insert(name, filter, physical_type, length);
                    has_any = true;
                }
            }
            if has_any {
                plan.exclude_by_values(access, row_group, &filters, &self.file_metrics);
            }
        }
    }
}

fn nothing() -> Rows {
    futures::stream::empty().boxed()
}

/// Position of a column that is no group among the leaves of a file.
fn leaf_of(builder: &Builder, name: &str) -> Option<usize> {
    let columns = builder.parquet_schema().columns();
    columns.iter().position(|column| column.path().parts() == [name])
}
