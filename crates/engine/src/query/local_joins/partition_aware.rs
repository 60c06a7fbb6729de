//! Grouping by the partition key without repartitioning.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::FileScanConfigBuilder;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::query::scan::newest_wins::NewestWinsExec;
use crate::query::scan::ordered_scan::OrderedScan;
use crate::query::scan::provider::SnapshotTable;
use crate::query::walk::Walk;

/// Declares to DataFusion that the scan of a table is partitioned by the hash of its partition key,
/// if that is safe. Grouping by the partition key then works partition by partition, and no row
/// changes its partition.
///
/// It is safe only in plans that combine nothing. Our hash is not DataFusion's, partitions that
/// cannot hold a matching row are left out, and a join whose sides look equally partitioned would
/// join the wrong partitions. So the rule leaves every plan unchanged that has a join, a union or
/// any other node with several inputs. It must run before all other rules. If fewer partitions are
/// read than there are cores, more cores are worth more than the partitioning.
#[derive(Debug)]
pub struct PartitionAware {
    tables: Vec<Arc<SnapshotTable>>,
}

impl PartitionAware {
    /// Creates a rule for scans of these tables.
    #[must_use]
    pub fn new(tables: Vec<Arc<SnapshotTable>>) -> Self {
        Self { tables }
    }

    /// Returns the plan of a table's scan with its partitioning declared; `None` if it is not such
    /// a scan or cannot be declared.
    fn declare(&self, plan: &Arc<dyn ExecutionPlan>, least: usize) -> Option<Arc<dyn ExecutionPlan>> {
        let partitions = plan.properties().partitioning.partition_count();
        if partitions < least {
            return None;
        }
        if let Some(node) = plan.downcast_ref::<NewestWinsExec>() {
            let scan = Arc::clone(node.children().first()?);
            let table = self.tables.iter().find(|table| table.is_read_by(scan.as_ref()))?;
            let schema = plan.schema();
            return Some(Arc::new(node.hashed_by(table.partition_key_in(&schema)?)));
        }
        let table = self.tables.iter().find(|table| table.is_read_by(plan.as_ref()))?;
        // The partitioning is projected with the scan, and lost if the scan lacks a column of the
        // key.
        table.partition_key_in(&plan.schema())?;
        let columns = table.partition_key_in(table.schema_ref())?;
        let scan = OrderedScan::from_plan(plan.as_ref())?;
        let config = OrderedScan::config_of(plan.as_ref())?;
        let declared = FileScanConfigBuilder::from(config.clone())
            .with_output_partitioning(Some(Partitioning::Hash(columns, partitions)))
            .build();
        let declared = scan.with_config(declared);
        let kept = matches!(declared.properties().partitioning, Partitioning::Hash(..));
        kept.then_some(declared)
    }
}

impl SnapshotTable {
    /// Whether a plan node is a scan of the table's files.
    pub(in crate::query) fn is_read_by(&self, plan: &dyn ExecutionPlan) -> bool {
        OrderedScan::config_of(plan).is_some_and(|config| config.object_store_url == *self.store_url())
    }

    /// Partition key as columns of `schema`; `None` if it lacks one.
    pub(in crate::query) fn partition_key_in(
        &self,
        schema: &arrow::datatypes::SchemaRef,
    ) -> Option<Vec<Arc<dyn PhysicalExpr>>> {
        let column = |column: &evenkeel_model::table::Column| {
            let index = schema.index_of(&column.name).ok()?;
            Some(Arc::new(Column::new(&column.name, index)) as Arc<dyn PhysicalExpr>)
        };
        self.snapshot().spec().partition_key_columns().map(column).collect()
    }
}

/// Returns a plan with the partitioning of its scans declared, each by `declare`, which receives a
/// node and the fewest partitions that are worth it. A plan that combines inputs is returned
/// unchanged.
pub fn declare_scans(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    declare: impl Fn(&Arc<dyn ExecutionPlan>, usize) -> Result<Transformed<Arc<dyn ExecutionPlan>>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if combines(&plan)? {
        return Ok(plan);
    }
    let least = config.execution.target_partitions.max(2);
    Ok(plan.transform_down_dyn(|node| declare(&node, least))?.data)
}

/// Whether the plan combines several inputs anywhere. The inputs of [`NewestWinsExec`] are parts of
/// one scan, and do not count.
pub(in crate::query) fn combines(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut is_combined = false;
    plan.apply_dyn(|node| {
        if node.downcast_ref::<NewestWinsExec>().is_some() {
            return Ok(TreeNodeRecursion::Jump);
        }
        is_combined |= node.children().len() > 1;
        Ok(if is_combined { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_combined)
}

impl PhysicalOptimizerRule for PartitionAware {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        declare_scans(plan, config, |node, least| match self.declare(node, least) {
            Some(declared) => Ok(Transformed::new(declared, true, TreeNodeRecursion::Jump)),
            // Its inputs are parts of partitions.
            None if node.downcast_ref::<NewestWinsExec>().is_some() => {
                Ok(Transformed::new(Arc::clone(node), false, TreeNodeRecursion::Jump))
            }
            None => Ok(Transformed::no(Arc::clone(node))),
        })
    }

    fn name(&self) -> &'static str {
        "PartitionAware"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
