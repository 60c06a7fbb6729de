//! Joins and groupings that stay within the partitions of tables.
//!
//! ```text
//! HashJoinExec: orders JOIN lineitem ON o_orderkey = l_orderkey, both by HASH(orderkey) of 16
//!   = the rows of 16 joins: orders of partition p JOIN lineitem of partition p
//!
//! plan -> locality: which part of the plan can be computed partition by partition, else why not
//!      -> scans of one partition each (partition_scans)
//!      -> plans of partitions, optimized once for all (partition_plans)
//!      -> PartitionwiseExec: computes a few of them at a time
//! ```
//! Equal keys are in equal partitions, so a join on at least the partition key pairs no rows of
//! different partitions, and a group of rows with one partition key has no row in another. The plan
//! of a partition is an ordinary plan on one stream: nothing claims DataFusion's own hash
//! partitioning, which ours would contradict. Memory holds the build sides of as many partitions as
//! there are cores, not of all.

mod exec;
mod locality;
pub(in crate::query) mod partition_aware;
mod partition_plans;
mod partition_scans;
mod placed;
mod summary;
mod template;

use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

pub(super) use crate::query::local_joins::exec::{PartitionwiseExec, ShowPartitions};
pub use crate::query::local_joins::summary::JoinSummary;

use crate::query::local_joins::locality::{Locality, Obstacle};
use crate::query::local_joins::partition_aware::combines;
use crate::query::local_joins::partition_plans::PartitionPlans;
pub(super) use crate::query::local_joins::partition_plans::Rules;
use crate::query::local_joins::partition_scans::PartitionScans;
use crate::query::scan::named_table::NamedTable;
use crate::query::walk::Walk;

/// Summaries of the joins of a query.
pub(super) type Joins = Arc<Mutex<Vec<JoinSummary>>>;

/// Replaces parts of a plan that can be computed partition by partition. Runs before all other
/// rules; `rules` optimize the plan of one partition.
#[derive(Debug)]
pub(super) struct LocalJoins {
    tables: Vec<NamedTable>,
    rules: Rules,
    joins: Joins,
}

impl LocalJoins {
    pub(super) fn new(tables: Vec<NamedTable>, rules: Rules, joins: Joins) -> Self {
        Self { tables, rules, joins }
    }

    /// Returns the plan of a part that can be computed partition by partition.
    fn replace(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        locality: &Locality,
        config: &ConfigOptions,
    ) -> Result<std::result::Result<Arc<dyn ExecutionPlan>, Obstacle>> {
        let scans = match PartitionScans::from_plan(plan, locality, &self.tables)? {
            Ok(scans) => scans,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let cores = config.execution.target_partitions.max(1);
        if let Some(obstacle) = scans.unevenness(cores) {
            return Ok(Err(obstacle));
        }
        let plans = PartitionPlans::new(plan, scans, &self.tables, self.rules.clone(), config)?;
        Ok(Ok(Arc::new(PartitionwiseExec::try_new(plan, plans, cores)?)))
    }

    fn record(&self, summaries: Vec<JoinSummary>) {
        self.joins.lock().unwrap_or_else(PoisonError::into_inner).extend(summaries);
    }
}

impl PhysicalOptimizerRule for LocalJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Groupings of one table keep their partitions in another way.
        if !combines(&plan)? {
            return Ok(plan);
        }
        let replaced = plan.transform_down_dyn(|node| {
            let local = locality::plan_locality(&node, &self.tables).ok().filter(Locality::saves_a_shuffle);
            let Some(locality) = local else {
                self.record(summary::join_summary(&node, &self.tables).into_iter().collect());
                return Ok(Transformed::no(node));
            };
            match self.replace(&node, &locality, config)? {
                Ok(exec) => {
                    self.record(summary::local_part_joins(&node, &self.tables));
                    Ok(Transformed::new(exec, true, TreeNodeRecursion::Jump))
                }
                // The obstacle applies to everything below, too.
                Err(obstacle) => {
                    self.record(summary::part_joins(&node, &obstacle, &self.tables));
                    Ok(Transformed::new(node, false, TreeNodeRecursion::Jump))
                }
            }
        })?;
        Ok(replaced.data)
    }

    fn name(&self) -> &'static str {
        "LocalJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
