//! Plans of the partitions of a part of a plan.
//!
//! ```text
//! plan of all ─ scans of the largest partition ─ rules on its shape ─► Template
//! each partition: Template with its scans ─ conditions from above ─ last rules ─► plan to execute
//! ```
//! Optimizing a plan for each partition takes longer than reading small ones. So the rules that
//! choose the shape of a plan run once. Conditions that joins find out while they run belong to one
//! execution, so the last pushdown of conditions, and what follows it, runs for each partition.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, ChildPushdownResult, FilterDescription, FilterPushdownPhase,
    FilterPushdownPropagation,
};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::query::local_joins::partition_scans::PartitionScans;
use crate::query::local_joins::template::Template;
use crate::query::optimization::optimizer_rules::is_filter_pushdown;
use crate::query::scan::named_table::NamedTable;
use crate::query::walk::Walk;
use evenkeel_model::units::PartitionId;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Rules that optimize the plan of one partition.
#[derive(Debug, Clone)]
pub(in crate::query) struct Rules {
    all: Arc<[Rule]>,
    /// Number of rules before the last pushdown of conditions.
    of_shape: usize,
}

impl Rules {
    pub(in crate::query) fn new(rules: Vec<Rule>) -> Self {
        let of_shape = rules.iter().rposition(|rule| is_filter_pushdown(rule.as_ref()));
        Self { of_shape: of_shape.unwrap_or(rules.len()), all: rules.into() }
    }

    /// Chooses joins, groupings and sorts.
    fn shape(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        self.all.iter().take(self.of_shape).try_fold(plan, |plan, rule| rule.optimize(plan, config))
    }

    /// Pushes down the conditions that are found at run time, and completes the plan.
    fn complete(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.all.iter().skip(self.of_shape).try_fold(plan, |plan, rule| rule.optimize(plan, config))
    }
}

/// Plans of one stream each, by partition, largest first.
#[derive(Debug)]
pub(super) struct PartitionPlans {
    whole: Arc<dyn ExecutionPlan>,
    scans: PartitionScans,
    tables: Vec<NamedTable>,
    rules: Rules,
    /// Partitions and their rows.
    partitions: Vec<(PartitionId, u64)>,
    /// Plan of the largest partition; `None` if partitions need plans of their own.
    template: Option<Template>,
}

impl PartitionPlans {
    /// Prepares the plans of partitions, whose rows together are those of `whole`.
    pub(super) fn new(
        whole: &Arc<dyn ExecutionPlan>,
        scans: PartitionScans,
        tables: &[NamedTable],
        rules: Rules,
        config: &ConfigOptions,
    ) -> Result<Self> {
        let rows = |partition| (partition, scans.rows(partition));
        let mut partitions: Vec<_> = scans.partitions().map(rows).collect();
        partitions.sort_by_key(|(_, rows)| Reverse(*rows));
        let Some((largest, _)) = partitions.first() else {
            return internal_err!("a plan by partition needs a partition");
        };
        let of_largest = scans.plan_of(whole, *largest, tables)?;
        let config = for_one_core(config);
        let shape = |plan| rules.shape(reset_plan_states(plan)?, &config);
        let template = Template::new(&of_largest, scans.of_partition(*largest), &scans.statistics()?, shape)?;
        Ok(Self { whole: Arc::clone(whole), tables: tables.to_vec(), rules, partitions, template, scans })
    }

    pub(super) fn len(&self) -> usize {
        self.partitions.len()
    }

    /// Returns the plan at a position. `conditions` are on its rows, and need not be applied.
    pub(super) fn plan(
        &self,
        position: usize,
        conditions: &[Arc<dyn PhysicalExpr>],
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some((partition, _)) = self.partitions.get(position) else {
            return internal_err!("no plan at position {position}");
        };
        let config = for_one_core(config);
        let of_template = match &self.template {
            Some(template) => template.with_scans(&self.scans.of_partition(*partition))?,
            None => None,
        };
        // Copies of a join share its build side unless they are reset.
        let shaped = match of_template {
            Some(plan) => reset_plan_states(plan)?.transform_up_dyn(without_top)?.data,
            None => {
                let own = self.scans.plan_of(&self.whole, *partition, &self.tables)?;
                self.rules.shape(reset_plan_states(own)?, &config)?
            }
        };
        if conditions.is_empty() {
            return self.rules.complete(shaped, &config);
        }
        let limited: Arc<dyn ExecutionPlan> =
            Arc::new(FromAbove { input: shaped, conditions: conditions.to_vec() });
        let completed = self.rules.complete(limited, &config)?;
        let without = completed.transform_down_dyn(|node| {
            Ok(match node.downcast_ref::<FromAbove>() {
                Some(limited) => Transformed::new(Arc::clone(&limited.input), true, TreeNodeRecursion::Stop),
                None => Transformed::no(node),
            })
        })?;
        Ok(without.data)
    }

    /// Shares out the plans among streams, so that these read about as many rows each: every plan
    /// to the stream that has the fewest so far.
    pub(super) fn share_out(&self, streams: usize) -> Vec<Vec<usize>> {
        let streams = streams.clamp(1, self.len().max(1));
        let mut shared: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new()); streams];
        for (position, (_, rows)) in self.partitions.iter().enumerate() {
            if let Some((sum, plans)) = shared.iter_mut().min_by_key(|(rows, plans)| (*rows, plans.len())) {
                *sum += rows;
                plans.push(position);
            }
        }
        shared.into_iter().map(|(_, plans)| plans).collect()
    }
}

/// Takes from a sort that returns all rows the condition for its first rows, which DataFusion 55
/// adds when it resets the sort, and which would never be known.
fn without_top(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let sort = node.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none());
    Ok(match sort {
        Some(sort) => Transformed::yes(Arc::new(sort.with_fetch(None)) as _),
        None => Transformed::no(node),
    })
}

fn for_one_core(config: &ConfigOptions) -> ConfigOptions {
    let mut config = config.clone();
    config.execution.target_partitions = 1;
    // A hash table for all streams of a plan would stay until the query ends, that of one ends with
    // its stream.
    config.optimizer.hash_join_single_partition_threshold = 0;
    config.optimizer.hash_join_single_partition_threshold_rows = 0;
    config
}

/// Passes conditions of the plan above down to the plan of a partition. Exists only during that
/// pushdown.
#[derive(Debug)]
struct FromAbove {
    input: Arc<dyn ExecutionPlan>,
    conditions: Vec<Arc<dyn PhysicalExpr>>,
}

impl DisplayAs for FromAbove {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FromAbove")
    }
}

impl ExecutionPlan for FromAbove {
    fn name(&self) -> &'static str {
        "FromAbove"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = inputs.pop() else { return internal_err!("FromAbove has one input") };
        Ok(Arc::new(Self { input, conditions: self.conditions.clone() }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let passed = ChildFilterDescription::from_child(&parent_filters, &self.input)?;
        Ok(FilterDescription::new().with_child(passed.with_self_filters(self.conditions.clone())))
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(child_pushdown_result))
    }
}

#[cfg(test)]
#[path = "partition_plans_tests.rs"]
mod tests;
