//! A plan whose scans are replaced.

use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::error::Result;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use crate::query::scan::ordered_scan::OrderedScan;

/// The optimized plan of one partition, for others that have the same scans of other files.
#[derive(Debug)]
pub(super) struct Template {
    plan: Arc<dyn ExecutionPlan>,
    /// The scans that it was optimized for.
    scans: Vec<Arc<dyn ExecutionPlan>>,
}

impl Template {
    /// Makes a template of the plan of one partition. `None` if it cannot serve for others: if a
    /// scan is `None`, because the partition has no files, or of another kind, or is not read
    /// exactly once after the rules of `shape`. `of_all` has what is known of each scan in all
    /// partitions.
    ///
    /// # Errors
    /// Those of `shape`.
    pub(super) fn new(
        plan: &Arc<dyn ExecutionPlan>,
        scans: Vec<Option<&Arc<dyn ExecutionPlan>>>,
        of_all: &[Option<Statistics>],
        shape: impl FnOnce(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<Option<Self>> {
        let scans = scans.into_iter().map(|scan| scan.cloned()).collect::<Option<Vec<_>>>();
        let is_plain = |scan: &Arc<dyn ExecutionPlan>| OrderedScan::config_of(scan.as_ref()).is_some();
        let Some(scans) = scans.filter(|scans| scans.iter().all(is_plain)) else { return Ok(None) };
        // The values in this partition alone would make columns constant that are not so in others.
        let of_all = |number: usize, config: &FileScanConfig| {
            let Statistics { num_rows, total_byte_size, .. } = config.statistics();
            let ranges = of_all.get(number)?.clone()?;
            let statistics = Statistics { num_rows, total_byte_size, ..ranges }.to_inexact();
            Some(FileScanConfigBuilder::from(config.clone()).with_statistics(statistics).build())
        };
        let recompute = ChildrenPropertiesMode::Recompute;
        let Some(plan) = with_configs(plan, recompute, &of_all)? else { return Ok(None) };
        let plan = shape(plan)?;
        let mut numbers = Vec::new();
        visit_leaves(&plan, &mut |leaf| {
            // An `EmptyExec` was added to hide an order; it reads no files and fits every partition.
            if !leaf.is::<EmptyExec>() {
                numbers.push(OrderedScan::from_plan(leaf).and_then(OrderedScan::number));
            }
        });
        numbers.sort_unstable();
        let is_complete = numbers.into_iter().eq((0..scans.len()).map(Some));
        Ok(is_complete.then_some(Self { plan, scans }))
    }

    /// Returns the plan with the files of other scans; `None` if these return rows in another order
    /// or are missing.
    pub(super) fn with_scans(
        &self,
        scans: &[Option<&Arc<dyn ExecutionPlan>>],
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let fits = |own: &Arc<dyn ExecutionPlan>, other: &Option<&Arc<dyn ExecutionPlan>>| {
            other.is_some_and(|other| {
                let (own, other) = (own.properties(), other.properties());
                own.eq_properties.oeq_class() == other.eq_properties.oeq_class()
                    && own.partitioning.partition_count() == other.partitioning.partition_count()
            })
        };
        if !self.scans.iter().zip(scans).all(|(own, other)| fits(own, other)) {
            return Ok(None);
        }
        let of_files = |number: usize, config: &FileScanConfig| {
            let other = scans.get(number).copied().flatten()?;
            let other = OrderedScan::config_of(other.as_ref())?;
            let config = FileScanConfigBuilder::from(config.clone())
                .with_file_groups(other.file_groups.clone())
                .with_statistics(other.statistics());
            Some(config.build())
        };
        with_configs(&self.plan, ChildrenPropertiesMode::Keep, &of_files)
    }
}

fn visit_leaves(plan: &Arc<dyn ExecutionPlan>, visit: &mut impl FnMut(&dyn ExecutionPlan)) {
    let children = plan.children();
    if children.is_empty() {
        visit(plan.as_ref());
    }
    children.into_iter().for_each(|child| visit_leaves(child, visit));
}

/// Changes the numbered scans of a plan; `None` if `change` returns none for one of them. With
/// [`ChildrenPropertiesMode::Keep`], neither the order nor the number of their streams may change.
fn with_configs(
    plan: &Arc<dyn ExecutionPlan>,
    properties: ChildrenPropertiesMode,
    change: &impl Fn(usize, &FileScanConfig) -> Option<FileScanConfig>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let scan = OrderedScan::from_plan(plan.as_ref()).zip(OrderedScan::config_of(plan.as_ref()));
    if let Some((scan, config)) = scan {
        let changed = scan.number().and_then(|number| change(number, config));
        return Ok(changed.map(|config| scan.with_config(config)));
    }
    let mut children = Vec::new();
    for child in plan.children() {
        let Some(child) = with_configs(child, properties, change)? else { return Ok(None) };
        children.push(child);
    }
    if children.is_empty() {
        return Ok(Some(Arc::clone(plan)));
    }
    let options = ReplaceChildrenOptions::new(properties);
    Arc::clone(plan).replace_children(children, options).map(Some)
}
