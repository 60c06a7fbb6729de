//! The plan node that resolves duplicates of a primary key.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning, PhysicalExpr,
    PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, FilterDescription, FilterPushdownPhase,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::sorts::streaming_merge::StreamingMergeBuilder;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::merge::NewestWins;

/// Merges runs that are sorted by the primary key and keeps the newest row of each key.
///
/// Input: one partition per portion, sorted by the key. Output: one partition per table partition, sorted by the key.
/// Each output partition reads its groups of overlapping portions one after another; within a group the runs are merged,
/// newest first, so that of equal keys the newest row comes first and the others are dropped.
///
/// Only filters on key columns may pass below: they keep or drop all rows of a key alike.
#[derive(Debug, Clone)]
pub struct NewestWinsExec {
    input: Arc<dyn ExecutionPlan>,
    /// Positions of the primary-key columns in the input, in key order.
    key: Vec<usize>,
    /// Per output partition its groups in key order; a group holds input partitions, newest first.
    groups: Arc<Vec<Vec<Vec<usize>>>>,
    ordering: LexOrdering,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl NewestWinsExec {
    /// A node over `input`.
    ///
    /// # Errors
    /// Where the key has no columns or names one that the input lacks.
    pub fn try_new(
        input: Arc<dyn ExecutionPlan>,
        key: Vec<usize>,
        groups: Arc<Vec<Vec<Vec<usize>>>>,
    ) -> Result<Self> {
        let Some(ordering) = key_ordering(&input.schema(), &key) else {
            return internal_err!("NewestWinsExec needs the columns of a primary key");
        };
        let equivalence = EquivalenceProperties::new_with_orderings(input.schema(), [ordering.clone()]);
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(groups.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            input,
            key,
            groups,
            ordering,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

/// Ascending order by the columns at `key`; `None` where there are none.
pub(super) fn key_ordering(schema: &SchemaRef, key: &[usize]) -> Option<LexOrdering> {
    let sort_by = |index: &usize| {
        let field = schema.fields().get(*index)?;
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), *index));
        Some(PhysicalSortExpr::new(
            column,
            arrow::compute::SortOptions { descending: false, nulls_first: true },
        ))
    };
    LexOrdering::new(key.iter().map(sort_by).collect::<Option<Vec<_>>>()?)
}

impl DisplayAs for NewestWinsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: usize = self.groups.iter().map(Vec::len).sum();
        let portions: usize = self.groups.iter().flatten().map(Vec::len).sum();
        write!(
            f,
            "NewestWinsExec: key=[{}], partitions={}, groups={groups}, portions={portions}",
            self.ordering.iter().map(|sort| sort.expr.to_string()).collect::<Vec<_>>().join(", "),
            self.groups.len(),
        )
    }
}

impl ExecutionPlan for NewestWinsExec {
    fn name(&self) -> &'static str {
        "NewestWinsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::UnspecifiedDistribution])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.ordering.clone()))]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for sort in &self.ordering {
            if f(&sort.expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return internal_err!("NewestWinsExec has one input");
        };
        Ok(Arc::new(Self::try_new(input, self.key.clone(), Arc::clone(&self.groups))?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let runs: usize = self.groups.iter().flatten().map(Vec::len).sum();
        let found = self.input.properties().partitioning.partition_count();
        let (Some(groups), true) = (self.groups.get(partition), runs == found) else {
            return internal_err!(
                "NewestWinsExec expects {runs} runs and got {found}, partition {partition}"
            );
        };
        let node = self.clone();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let groups = groups.clone();
        let merged = stream::iter(groups)
            .map(move |group| node.merge_group(&group, partition, &context))
            .try_flatten()
            .inspect_ok(move |batch| metrics.output_rows().add(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), merged)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![if partition.is_some() { ChildStats::Skip } else { ChildStats::At(None) }]
    }

    /// Rows below may be dropped, so their number is only an upper bound.
    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let Some(below) = inputs.first() else {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema())));
        };
        let mut statistics = below.as_ref().clone().to_inexact();
        statistics.total_byte_size = Precision::Absent;
        Ok(Arc::new(statistics))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let key: HashSet<usize> = self.key.iter().copied().collect();
        let child =
            ChildFilterDescription::from_child_with_allowed_indices(&parent_filters, key, &self.input)?;
        Ok(FilterDescription::new().with_child(child))
    }
}

impl NewestWinsExec {
    /// The newest rows of one group of overlapping runs.
    fn merge_group(
        &self,
        group: &[usize],
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut runs = group
            .iter()
            .map(|run| self.input.execute(*run, Arc::clone(context)))
            .collect::<Result<Vec<_>>>()?;
        let merged = if runs.len() == 1 {
            runs.swap_remove(0)
        } else {
            let reservation = MemoryConsumer::new(format!("NewestWinsExec[{partition}]"))
                .register(&context.runtime_env().memory_pool);
            StreamingMergeBuilder::new()
                .with_streams(runs)
                .with_schema(self.input.schema())
                .with_expressions(&self.ordering)
                .with_metrics(BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), partition))
                .with_batch_size(context.session_config().batch_size())
                .with_reservation(reservation)
                // Ties go to the lower run, which is the newer one.
                .with_round_robin_tie_breaker(false)
                .build()?
        };
        let mut newest_wins = NewestWins::new(self.key.clone());
        let kept = merged.map(move |batch| newest_wins.push(&batch?).map_err(DataFusionError::from));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), kept)))
    }
}
