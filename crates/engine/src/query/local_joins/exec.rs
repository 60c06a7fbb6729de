//! Plan node that computes a part of a plan partition by partition.

use std::cmp::Reverse;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, reset_plan_states};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::query::local_joins::partition_scans::PartitionScans;
use crate::query::scan::named_table::NamedTable;

/// Rules that optimize the plan of one partition.
pub(in crate::query) type Rules = Arc<[Arc<dyn PhysicalOptimizerRule + Send + Sync>]>;

/// Plans of one stream each, by partition, largest first, with their rows.
#[derive(Debug, Clone)]
pub(super) struct PartitionPlans(Vec<(Arc<dyn ExecutionPlan>, u64)>);

impl PartitionPlans {
    /// Makes the plan of each partition from the plan of all.
    pub(super) fn new(
        plan: &Arc<dyn ExecutionPlan>,
        scans: &PartitionScans,
        tables: &[NamedTable],
    ) -> Result<Self> {
        let of_partition = |partition| Ok((scans.plan_of(plan, partition, tables)?, scans.rows(partition)));
        let mut plans = scans.partitions().map(of_partition).collect::<Result<Vec<_>>>()?;
        plans.sort_by_key(|(_, rows)| Reverse(*rows));
        Ok(Self(plans))
    }

    /// Shares out the plans among streams, so that these read about as many rows each: every plan
    /// to the stream that has the fewest so far.
    fn share_out(&self, streams: usize) -> Vec<Vec<usize>> {
        let mut shared: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new()); streams.clamp(1, self.0.len().max(1))];
        for (position, (_, rows)) in self.0.iter().enumerate() {
            if let Some((sum, plans)) = shared.iter_mut().min_by_key(|(rows, plans)| (*rows, plans.len())) {
                *sum += rows;
                plans.push(position);
            }
        }
        shared.into_iter().map(|(_, plans)| plans).collect()
    }
}

/// Computes the same plan for each partition of its tables, and returns the rows of all.
///
/// Output: as many streams as there are cores; each computes the plans of its partitions one after
/// another. The rows are in no order. The node hides the plans from the rules that optimize the
/// rest of the plan, which would repartition their scans.
#[derive(Debug)]
pub(in crate::query) struct PartitionwiseExec {
    schema: SchemaRef,
    plans: PartitionPlans,
    streams: Vec<Vec<usize>>,
    rules: Rules,
    /// Optimized plan of the partition with the most rows, shown as an example once the whole plan
    /// is optimized.
    example: Arc<dyn ExecutionPlan>,
    is_shown: bool,
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
        rules: Rules,
        config: &ConfigOptions,
    ) -> Result<Self> {
        let Some((largest, _)) = plans.0.first() else {
            return internal_err!("PartitionwiseExec needs a partition");
        };
        let example = optimized(largest, &rules, config)?;
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
            plans,
            streams,
            rules,
            example,
            is_shown: false,
            statistics: Arc::new(statistics.as_ref().clone().to_inexact()),
            started: Arc::default(),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Returns the plans of partitions that have been started.
    pub(in crate::query) fn started(&self) -> Vec<Arc<dyn ExecutionPlan>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn copy(&self, is_shown: bool) -> Self {
        Self {
            schema: Arc::clone(&self.schema),
            plans: self.plans.clone(),
            streams: self.streams.clone(),
            rules: Arc::clone(&self.rules),
            example: Arc::clone(&self.example),
            is_shown,
            statistics: Arc::clone(&self.statistics),
            started: Arc::default(),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

/// Optimizes the plan of one partition, for one core.
fn optimized(
    plan: &Arc<dyn ExecutionPlan>,
    rules: &Rules,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut config = config.clone();
    config.execution.target_partitions = 1;
    // A hash table for all streams of a plan would stay until the query ends, that of one ends with
    // its stream.
    config.optimizer.hash_join_single_partition_threshold = 0;
    config.optimizer.hash_join_single_partition_threshold_rows = 0;
    // Copies of a join share its build side unless they are reset.
    let plan = reset_plan_states(Arc::clone(plan))?;
    rules.iter().try_fold(plan, |plan, rule| rule.optimize(plan, &config))
}

impl DisplayAs for PartitionwiseExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartitionwiseExec: partitions={}, streams={}", self.plans.0.len(), self.streams.len())
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
        if self.is_shown { vec![&self.example] } else { Vec::new() }
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    /// The example is only shown, and is not replaced.
    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.copy(self.is_shown)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(positions) = self.streams.get(partition) else {
            return internal_err!("PartitionwiseExec has no stream {partition}");
        };
        let of_position = |position: &usize| self.plans.0.get(*position).map(|(plan, _)| Arc::clone(plan));
        let plans: Vec<Arc<dyn ExecutionPlan>> = positions.iter().filter_map(of_position).collect();
        let (rules, started) = (Arc::clone(&self.rules), Arc::clone(&self.started));
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = stream::iter(plans)
            .map(move |plan| {
                let plan = optimized(&plan, &rules, context.session_config().options())?;
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
}

/// Shows the plan of one partition below each node that computes several. Runs after all other
/// rules, which must not change it.
#[derive(Debug)]
pub(in crate::query) struct ShowPartitions;

impl PhysicalOptimizerRule for ShowPartitions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let shown = plan.transform_down(|node| match node.downcast_ref::<PartitionwiseExec>() {
            Some(hidden) if !hidden.is_shown => {
                Ok(Transformed::new(Arc::new(hidden.copy(true)) as _, true, TreeNodeRecursion::Jump))
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
