//! A scan of files that preserves the order of its rows.
//!
//! DataFusion 55 makes the scan below a merge of sorted streams with a limit give up its order
//! (apache/datafusion#24272): sibling streams then take over each other's files, and row groups are
//! skipped because others have enough rows. Which rows are first is then a matter of chance. Plans
//! rely on the order of a scan, so this source never gives it up.
//!
//! When it is opened, a [`PortionSource`] takes the place of DataFusion's, if it can.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetSource,
};
use datafusion::datasource::source::{DataSource, DataSourceExec, OpenArgs};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::DynamicFilterTracking;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{
    EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPropagation, PushedDown};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, SortOrderPushdownResult};
use futures::{StreamExt, TryStreamExt};

use crate::query::scan::density::Density;
use crate::query::scan::dictionaries::{Dictionaries, returned_schema};
use crate::query::scan::first_rows::FirstRows;
use crate::query::scan::portion_readers::PortionReaders;
use crate::query::scan::portion_source::PortionSource;
use crate::query::scan::scan_filters::with_conditions;

/// A scan of files whose groups are read file by file and row group by row group, regardless of the
/// limits above it. In all other respects it behaves like the wrapped scan.
#[derive(Debug, Clone)]
pub(in crate::query) struct OrderedScan {
    scan: Arc<dyn DataSource>,
    readers: PortionReaders,
    /// Whether row groups may be read in another order than that of the file.
    is_sorted: bool,
    /// The rows that are needed, if not all are.
    first: Option<FirstRows>,
    /// Positions of the columns that are returned with their dictionaries.
    dictionaries: Arc<[usize]>,
    /// Density of the rows that its conditions keep, shared with scans of some of its files.
    density: Arc<Density>,
    /// Position among the scans of a plan that is computed partition by partition.
    number: Option<usize>,
    /// Whether files are on this machine, so that no stream waits for them.
    is_local: bool,
    /// The scan as it is opened.
    opened: Arc<OnceLock<Arc<dyn DataSource>>>,
}

impl OrderedScan {
    /// Returns a plan of one scan, whose files are read by `readers`, and are on this machine if
    /// `is_local`.
    pub(in crate::query) fn plan(
        config: FileScanConfig,
        readers: PortionReaders,
        is_local: bool,
    ) -> Arc<dyn ExecutionPlan> {
        DataSourceExec::from_data_source(Self {
            scan: Arc::new(config),
            readers,
            is_sorted: false,
            first: None,
            dictionaries: Arc::default(),
            density: Arc::default(),
            number: None,
            is_local,
            opened: Arc::default(),
        })
    }

    /// The same scan in another form.
    fn with_scan(&self, scan: Arc<dyn DataSource>) -> Self {
        Self { scan, first: None, opened: Arc::default(), ..self.clone() }
    }

    /// Returns a plan of the same scan, of whose rows only some are needed.
    pub(super) fn with_first_rows(&self, first: FirstRows) -> Arc<dyn ExecutionPlan> {
        let scan = self.with_scan(Arc::clone(&self.scan));
        DataSourceExec::from_data_source(Self { first: Some(first), ..scan })
    }

    /// Returns a plan of the same scan, of which columns at some positions are returned with their
    /// dictionaries. Each is a column that the scan can read with dictionaries.
    pub(in crate::query) fn with_dictionaries(&self, dictionaries: Vec<usize>) -> Arc<dyn ExecutionPlan> {
        let scan = self.with_scan(Arc::clone(&self.scan));
        DataSourceExec::from_data_source(Self { dictionaries: dictionaries.into(), ..scan })
    }

    /// The same scan at a position among those of a plan.
    pub(in crate::query) fn numbered(&self, number: usize) -> Self {
        Self { number: Some(number), ..self.with_scan(Arc::clone(&self.scan)) }
    }

    pub(in crate::query) fn number(&self) -> Option<usize> {
        self.number
    }

    /// Whether files are on this machine. A stream reads one file at a time, so that few streams
    /// would wait for a store in turn.
    pub(in crate::query) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Scan in a plan node; `None` if the node is of another kind.
    pub(in crate::query) fn from_plan(plan: &dyn ExecutionPlan) -> Option<&Self> {
        plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref()
    }

    /// Configuration of the scan in a plan node; `None` if the node is of another kind.
    pub(in crate::query) fn config_of(plan: &dyn ExecutionPlan) -> Option<&FileScanConfig> {
        Self::from_plan(plan)?.scan.downcast_ref::<FileScanConfig>()
    }

    /// Returns a plan of the scan with another configuration.
    pub(in crate::query) fn with_config(&self, config: FileScanConfig) -> Arc<dyn ExecutionPlan> {
        DataSourceExec::from_data_source(self.with_scan(Arc::new(config)))
    }

    /// Returns the scan as DataFusion opens it: one that may be sorted otherwise is left to it.
    #[cfg(test)]
    pub(in crate::query) fn left_to_datafusion(&self) -> Arc<dyn ExecutionPlan> {
        let scan = self.with_scan(Arc::clone(&self.scan));
        DataSourceExec::from_data_source(Self { is_sorted: true, ..scan })
    }

    /// Whether the files were opened by a [`PortionSource`].
    #[cfg(test)]
    pub(in crate::query) fn was_prepared(&self) -> bool {
        let opened = self.opened.get().and_then(|scan| scan.downcast_ref::<FileScanConfig>());
        opened.is_some_and(|config| config.file_source().is::<PortionSource>())
    }

    /// Sorted names of the columns that the scans of a plan have read with dictionaries.
    #[cfg(test)]
    pub(in crate::query) fn coded_columns(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
        use crate::query::walk::Walk;

        let mut names = std::collections::BTreeSet::new();
        let of_scan = |scan: &Self| {
            let opened = scan.opened.get()?.downcast_ref::<FileScanConfig>()?;
            opened.file_source().downcast_ref::<PortionSource>().map(PortionSource::coded)
        };
        let walked = plan.apply_dyn(|node| {
            names.extend(Self::from_plan(node.as_ref()).and_then(of_scan).into_iter().flatten());
            Ok(TreeNodeRecursion::Continue)
        });
        walked.unwrap();
        names.into_iter().collect()
    }

    /// Where conditions are evaluated by now; `None` if the files were opened otherwise.
    #[cfg(test)]
    pub(super) fn place(&self) -> Option<super::density::Place> {
        self.was_prepared().then(|| self.density.place())
    }

    fn wrap(&self, scan: Arc<dyn DataSource>) -> Arc<dyn DataSource> {
        Arc::new(self.with_scan(scan))
    }

    /// Returns the scan to open, by plans of its files that all partitions share.
    fn opened(&self) -> &dyn DataSource {
        let prepared = || {
            let config = self.scan.downcast_ref::<FileScanConfig>()?;
            let first = self.first.as_ref();
            if self.is_sorted && first.is_none() {
                return None;
            }
            let (readers, density, dictionaries) = (&self.readers, &self.density, &self.dictionaries);
            let source = PortionSource::new(config, readers, density, first, self.is_sorted, dictionaries)?;
            let config = FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build();
            Some(Arc::new(config) as Arc<dyn DataSource>)
        };
        self.opened.get_or_init(|| prepared().unwrap_or_else(|| Arc::clone(&self.scan))).as_ref()
    }

    /// Opens the scan: at once, or when the first row is requested if its conditions may change
    /// until then. A join knows its keys before it requests rows.
    fn open_when_settled(
        &self,
        open: impl FnOnce(&dyn DataSource) -> Result<SendableRecordBatchStream> + Send + 'static,
    ) -> Result<SendableRecordBatchStream> {
        let may_change = |config: &&FileScanConfig| {
            let tracking = config.file_source().filter();
            let tracking = tracking.map(|predicate| DynamicFilterTracking::classify(&predicate));
            !self.is_sorted && !matches!(tracking, None | Some(DynamicFilterTracking::Static))
        };
        let config = self.scan.downcast_ref::<FileScanConfig>().filter(may_change);
        let Some(config) = config else { return open(self.opened()).map(|rows| self.returned(rows)) };
        let scan = self.clone();
        let schema = returned_schema(config.projected_schema()?.as_ref(), &self.dictionaries);
        let rows = futures::stream::once(async move { open(scan.opened()).map(|rows| scan.returned(rows)) });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())))
    }

    /// Returns rows of the opened scan with dictionaries.
    fn returned(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = returned_schema(&rows.schema(), &self.dictionaries);
        if schema == rows.schema() {
            return rows;
        }
        let (mut dictionaries, returned) = (Dictionaries::new(&self.dictionaries), Arc::clone(&schema));
        let rows = rows.map(move |rows| dictionaries.returned(rows?, &returned));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    /// Returns the scan with its conditions in their fastest form, and with readers that keep the
    /// page indexes of files.
    fn with_conditions(&self, scan: Arc<dyn DataSource>) -> Result<Arc<dyn DataSource>> {
        let Some(config) = scan.downcast_ref::<FileScanConfig>() else { return Ok(scan) };
        let Some(source) = config.file_source().downcast_ref::<ParquetSource>() else { return Ok(scan) };
        let Some(predicate) = source.filter() else { return Ok(scan) };
        let source = with_conditions(source, &predicate)?;
        let source = source.with_parquet_file_reader_factory(Arc::new(self.readers.clone().with_pages()));
        Ok(Arc::new(FileScanConfigBuilder::from(config.clone()).with_source(Arc::new(source)).build()))
    }
}

impl DataSource for OrderedScan {
    fn open(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.open_when_settled(move |scan| scan.open(partition, context))
    }

    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scan.fmt_as(format, f)
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        repartition_file_min_size: usize,
        output_ordering: Option<LexOrdering>,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        let scan = self.scan.repartitioned(target_partitions, repartition_file_min_size, output_ordering)?;
        Ok(scan.map(|scan| self.wrap(scan)))
    }

    fn output_partitioning(&self) -> Partitioning {
        self.scan.output_partitioning()
    }

    /// A scan with dictionaries declares only its schema: no rule that needs its order runs later.
    fn eq_properties(&self) -> EquivalenceProperties {
        let properties = self.scan.eq_properties();
        match self.dictionaries.is_empty() {
            true => properties,
            false => EquivalenceProperties::new(returned_schema(properties.schema(), &self.dictionaries)),
        }
    }

    fn scheduling_type(&self) -> SchedulingType {
        self.scan.scheduling_type()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.scan.partition_statistics(partition)
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        self.scan.with_fetch(limit).map(|scan| self.wrap(scan))
    }

    fn fetch(&self) -> Option<usize> {
        self.scan.fetch()
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.scan.metrics()
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        if !self.dictionaries.is_empty() {
            return Ok(None);
        }
        Ok(self.scan.try_swapping_with_projection(projection)?.map(|scan| self.wrap(scan)))
    }

    fn try_pushdown_filters(
        &self,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn DataSource>>> {
        // A condition below a limit would select different rows. DataFusion 55 does not check this.
        if self.fetch().is_some() {
            let none = vec![PushedDown::No; filters.len()];
            return Ok(FilterPushdownPropagation::with_parent_pushdown_result(none));
        }
        let pushed = self.scan.try_pushdown_filters(filters, config)?;
        let with_conditions = |scan| Ok::<_, DataFusionError>(self.wrap(self.with_conditions(scan)?));
        let updated_node = pushed.updated_node.map(with_conditions).transpose()?;
        Ok(FilterPushdownPropagation { filters: pushed.filters, updated_node })
    }

    fn try_pushdown_sort(
        &self,
        order: &[PhysicalSortExpr],
    ) -> Result<SortOrderPushdownResult<Arc<dyn DataSource>>> {
        // Another order below a limit would select different rows.
        if self.fetch().is_some() {
            return Ok(SortOrderPushdownResult::Unsupported);
        }
        let sorted = |scan| Arc::new(Self { is_sorted: true, ..self.with_scan(scan) }) as Arc<dyn DataSource>;
        Ok(self.scan.try_pushdown_sort(order)?.map(sorted))
    }

    /// Refuses either setting: the order is already preserved, and is never given up.
    fn with_preserve_order(&self, _preserve_order: bool) -> Option<Arc<dyn DataSource>> {
        None
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.scan.apply_expressions(f)
    }

    fn with_new_state(&self, state: Arc<dyn Any + Send + Sync>) -> Option<Arc<dyn DataSource>> {
        self.scan.with_new_state(state).map(|scan| self.wrap(scan))
    }

    fn create_sibling_state(&self, config: &ConfigOptions) -> Option<Arc<dyn Any + Send + Sync>> {
        self.scan.create_sibling_state(config)
    }

    fn open_with_args(&self, args: OpenArgs) -> Result<SendableRecordBatchStream> {
        self.open_when_settled(move |scan| scan.open_with_args(args))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::testing::scores;

    #[tokio::test]
    async fn a_limited_scan_accepts_no_filter_and_no_other_order() {
        let (_folder, table) = scores(&[vec![(1, 1, 1), (2, 1, 2)]]).await;
        let provider = table.provider().unwrap();
        let state = SessionContext::new().state();
        let plan = provider.scan_where(&state, &table.snapshot().portions(), &[0, 1, 2], None).unwrap();
        let scan = plan.downcast_ref::<DataSourceExec>().unwrap().data_source();
        assert!(OrderedScan::config_of(plan.as_ref()).is_some());
        let filter = provider.predicate(&state, &[col("points").eq(lit(2i64))]).unwrap().unwrap();
        let accepts = |scan: &Arc<dyn DataSource>| {
            let pushed =
                scan.try_pushdown_filters(vec![Arc::clone(&filter)], state.config_options()).unwrap();
            matches!(pushed.filters[..], [PushedDown::Yes])
        };
        assert!(accepts(scan));
        let limited = scan.with_fetch(Some(1)).unwrap();
        assert!(limited.downcast_ref::<OrderedScan>().is_some());
        assert!(!accepts(&limited));
        let order = scan.eq_properties().oeq_class().iter().next().unwrap().clone();
        let sorted = limited.try_pushdown_sort(&order).unwrap();
        assert!(matches!(sorted, SortOrderPushdownResult::Unsupported));
        for preserve in [true, false] {
            assert!(scan.with_preserve_order(preserve).is_none());
        }
    }
}
