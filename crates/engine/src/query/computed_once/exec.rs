//! The node of physical plans.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, SpillMetrics};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::stream::TryStreamExt;

use crate::query::computed_once::rows::SharedRows;
use crate::query::walk::Walk;

/// Returns the rows of a query in WITH. All nodes of a query return the same rows; the first node
/// that is read starts to compute them.
///
/// Output: the batches of the query, distributed among the streams in turn; in no order. The node
/// hides the plan of the query from the rules that optimize the rest of the plan.
#[derive(Debug)]
pub(super) struct ComputedOnceExec {
    name: Arc<str>,
    rows: Arc<SharedRows>,
    /// Plan of the query, if it is shown below this node.
    shown: Option<Arc<dyn ExecutionPlan>>,
    statistics: Arc<Statistics>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ComputedOnceExec {
    pub(super) fn try_new(name: &str, rows: Arc<SharedRows>, streams: usize) -> Result<Self> {
        let input = rows.input();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(streams),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        let statistics = StatisticsContext::new().compute(input.as_ref(), &StatisticsArgs::new())?;
        Ok(Self {
            name: name.into(),
            rows,
            shown: None,
            statistics: Arc::new(statistics.as_ref().clone().to_inexact()),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    fn showing(&self, shown: Option<Arc<dyn ExecutionPlan>>) -> Self {
        Self {
            name: Arc::clone(&self.name),
            rows: Arc::clone(&self.rows),
            shown,
            statistics: Arc::clone(&self.statistics),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }
}

/// Shows the plan of each query below the first of its nodes. Runs after all rules.
pub(super) fn show_inputs(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let mut shown: Vec<Arc<SharedRows>> = Vec::new();
    let plan = plan.transform_down_dyn(|node| {
        let Some(copy) = node.downcast_ref::<ComputedOnceExec>() else { return Ok(Transformed::no(node)) };
        if shown.iter().any(|rows| Arc::ptr_eq(rows, &copy.rows)) {
            return Ok(Transformed::no(node));
        }
        shown.push(Arc::clone(&copy.rows));
        Ok(Transformed::yes(Arc::new(copy.showing(Some(copy.rows.input()))) as _))
    })?;
    Ok(plan.data)
}

/// Drops the rows that the nodes of a plan keep, and ends their computation.
pub(in crate::query) fn release_rows(plan: &Arc<dyn ExecutionPlan>) {
    if let Some(node) = plan.downcast_ref::<ComputedOnceExec>() {
        node.rows.release();
    }
    plan.children().into_iter().for_each(release_rows);
}

impl DisplayAs for ComputedOnceExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComputedOnceExec: {}", self.name)
    }
}

impl ExecutionPlan for ComputedOnceExec {
    fn name(&self) -> &'static str {
        "ComputedOnceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.shown.iter().collect()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return Ok(self) };
        self.rows.replace_input(Arc::clone(&input));
        Ok(Arc::new(self.showing(Some(input))))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        self.rows.release();
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let streams = self.properties.partitioning.partition_count();
        let spills = SpillMetrics::new(&self.metrics, partition);
        let rows = MetricBuilder::new(&self.metrics).output_rows(partition);
        let batches = self.rows.read(partition, streams, &context, spills);
        let counted = batches.inspect_ok(move |batch| rows.add(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), counted)))
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
            Some(_) => Arc::new(Statistics::new_unknown(&self.schema())),
            None => Arc::clone(&self.statistics),
        })
    }
}
