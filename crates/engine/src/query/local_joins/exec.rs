//! Plan node that computes a part of a plan partition by partition.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::query::local_joins::partition_plans::PartitionPlans;
use crate::query::walk::Walk;

/// Computes the same plan for each partition of its tables, and returns the rows of all.
///
/// Output: as many streams as there are cores; each computes the plans of its partitions one after
/// another. The rows are in no order. The node hides the plans from the rules that optimize the
/// rest of the plan, which would repartition their scans.
#[derive(Debug)]
pub(in crate::query) struct PartitionwiseExec {
    schema: SchemaRef,
    plans: Arc<PartitionPlans>,
    streams: Arc<[Vec<usize>]>,
    /// Conditions on the rows, found at run time by the nodes above.
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    /// Plan of the partition with the most rows, shown as an example once the whole plan is
    /// optimized.
    example: Option<Arc<dyn ExecutionPlan>>,
    statistics: Arc<Statistics>,
    /// Plans that have been started.
    started: Arc<Mutex<Vec<Arc<dyn ExecutionPlan>>>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl PartitionwiseExec {
    /// Creates a node in place of `whole`, which has the same rows.
    pub(super) fn try_new(
        whole: &Arc<dyn ExecutionPlan>,
        plans: PartitionPlans,
        streams: usize,
    ) -> Result<Self> {
        let streams = plans.share_out(streams);
        let schema = whole.schema();
        let statistics = StatisticsContext::new().compute(whole.as_ref(), &StatisticsArgs::new())?;
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(streams.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            schema,
            plans: Arc::new(plans),
            streams: streams.into(),
            conditions: Vec::new(),
            example: None,
            statistics: Arc::new(statistics.as_ref().clone().to_inexact()),
            started: Arc::default(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    #[cfg(test)]
    pub(super) fn plans(&self) -> &Arc<PartitionPlans> {
        &self.plans
    }

    /// Returns the plans of partitions that have been started.
    pub(in crate::query) fn started(&self) -> Vec<Arc<dyn ExecutionPlan>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same node, not started.
    fn copy(&self) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            plans: Arc::clone(&self.plans),
            streams: Arc::clone(&self.streams),
            conditions: self.conditions.clone(),
            example: self.example.clone(),
            statistics: Arc::clone(&self.statistics),
            started: Arc::default(),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

impl DisplayAs for PartitionwiseExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartitionwiseExec: partitions={}, streams={}", self.plans.len(), self.streams.len())
    }
}

impl ExecutionPlan for PartitionwiseExec {
    fn name(&self) -> &'static str {
        "PartitionwiseExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.example.iter().collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for condition in &self.conditions {
            if f(condition)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    /// The example is only shown, and is not replaced.
    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.copy()))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(positions) = self.streams.get(partition) else {
            return internal_err!("PartitionwiseExec has no stream {partition}");
        };
        let (plans, conditions) = (Arc::clone(&self.plans), self.conditions.clone());
        let started = Arc::clone(&self.started);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = stream::iter(positions.clone())
            .map(move |position| {
                let plan = plans.plan(position, &conditions, context.session_config().options())?;
                started.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&plan));
                match plan.properties().partitioning.partition_count() {
                    1 => plan.execute(0, Arc::clone(&context)),
                    _ => CoalescePartitionsExec::new(plan).execute(0, Arc::clone(&context)),
                }
            })
            .try_flatten()
            .inspect_ok(move |batch| metrics.output_rows().add(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(match args.partition() {
            Some(_) => Arc::new(Statistics::new_unknown(&self.schema)),
            None => Arc::clone(&self.statistics),
        })
    }

    /// Keeps the conditions that the nodes above find at run time for the scans of each partition.
    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let conditions: Vec<_> =
            child_pushdown_result.parent_filters.into_iter().map(|result| result.filter).collect();
        let none = vec![PushedDown::No; conditions.len()];
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(none);
        if conditions.is_empty() || phase != FilterPushdownPhase::Post {
            return Ok(propagation);
        }
        Ok(propagation.with_updated_node(Arc::new(Self { conditions, ..self.copy() })))
    }
}

/// Shows the plan of one partition below each node that computes several. Runs after all other
/// rules, which must not change it.
#[derive(Debug)]
pub(in crate::query) struct ShowPartitions;

impl PhysicalOptimizerRule for ShowPartitions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let shown = plan.transform_down_dyn(|node| match node.downcast_ref::<PartitionwiseExec>() {
            Some(hidden) if hidden.example.is_none() => {
                let example = Some(hidden.plans.plan(0, &hidden.conditions, config)?);
                let shown = PartitionwiseExec { example, ..hidden.copy() };
                Ok(Transformed::new(Arc::new(shown) as _, true, TreeNodeRecursion::Jump))
            }
            _ => Ok(Transformed::no(node)),
        })?;
        Ok(shown.data)
    }

    fn name(&self) -> &'static str {
        "ShowPartitions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
