//! The node of physical plans.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::{EmptyRecordBatchStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;

use crate::query::dictionary_groups::grouping::Grouping;
use crate::query::dictionary_groups::groups::Groups;

/// Groups the rows of a scan by texts that it returns with dictionaries, among other keys.
///
/// Input: rows with dictionaries. Output: that of the aggregation, in no order.
#[derive(Debug)]
pub(super) struct DictionaryGroupsExec {
    /// The aggregation that this node replaces: a partial or a single one. Its own input is not
    /// read.
    aggregation: Arc<AggregateExec>,
    /// The partial aggregation by the same keys.
    partial: Arc<AggregateExec>,
    /// Positions of the keys with dictionaries.
    with_dictionaries: Arc<[usize]>,
    input: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl DictionaryGroupsExec {
    /// Replaces an aggregation.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if no partial aggregation has its
    /// keys and aggregates.
    pub(super) fn try_new(
        aggregation: &AggregateExec,
        with_dictionaries: Arc<[usize]>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let aggregation = Arc::new(aggregation.clone());
        let partial = match aggregation.mode() {
            AggregateMode::Partial => Arc::clone(&aggregation),
            _ => {
                let (group_by, input) = (aggregation.group_expr().clone(), Arc::clone(aggregation.input()));
                Arc::new(in_mode(&aggregation, AggregateMode::Partial, group_by, input)?)
            }
        };
        Ok(Self { aggregation, partial, with_dictionaries, input, metrics: ExecutionPlanMetricsSet::new() })
    }
}

/// Returns an aggregation with the same aggregates.
fn in_mode(
    aggregation: &AggregateExec,
    mode: AggregateMode,
    group_by: PhysicalGroupBy,
    input: Arc<dyn ExecutionPlan>,
) -> Result<AggregateExec> {
    let (aggregates, filters) = (aggregation.aggr_expr().to_vec(), aggregation.filter_expr().to_vec());
    AggregateExec::try_new(mode, group_by, aggregates, filters, input, aggregation.input_schema())
}

/// Returns the results of the groups of an aggregation, of which states are given.
fn combined(
    partial: &AggregateExec,
    states: Grouping,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let schema = partial.schema();
    let states = RecordBatchStreamAdapter::new(Arc::clone(&schema), states.states());
    let states = States { schema: Arc::clone(&schema), rows: Mutex::new(Some(Box::pin(states))) };
    let source = StreamingTableExec::try_new(schema, vec![Arc::new(states)], None, [], false, None)?;
    let group_by = partial.group_expr().as_final();
    in_mode(partial, AggregateMode::Final, group_by, Arc::new(source))?.execute(0, context)
}

/// States of groups, as the input of a plan that is executed once.
struct States {
    schema: SchemaRef,
    rows: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").finish_non_exhaustive()
    }
}

impl PartitionStream for States {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        rows.unwrap_or_else(|| Box::pin(EmptyRecordBatchStream::new(Arc::clone(&self.schema))))
    }
}

impl DisplayAs for DictionaryGroupsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.partial.group_expr().expr();
        let aliased = |(expr, alias): &(Arc<dyn PhysicalExpr>, String)| format!("{expr} as {alias}");
        let names = |keys: Vec<String>| keys.join(", ");
        let all = names(keys.iter().map(aliased).collect());
        let coded = self.with_dictionaries.iter().filter_map(|position| keys.get(*position));
        let coded = names(coded.map(|(_, alias)| alias.clone()).collect());
        let aggregates = self.partial.aggr_expr().iter().map(|aggregate| aggregate.name().to_owned());
        let aggregates = names(aggregates.collect());
        let mode = self.aggregation.mode();
        write!(
            f,
            "DictionaryGroupsExec: mode={mode:?}, gby=[{all}], aggr=[{aggregates}], dictionaries=[{coded}]"
        )
    }
}

impl ExecutionPlan for DictionaryGroupsExec {
    fn name(&self) -> &'static str {
        "DictionaryGroupsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.aggregation.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.partial.apply_expressions(f)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return Ok(self) };
        let (aggregation, partial) = (Arc::clone(&self.aggregation), Arc::clone(&self.partial));
        let with_dictionaries = Arc::clone(&self.with_dictionaries);
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(Self { aggregation, partial, with_dictionaries, input, metrics }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let groups = Groups::try_new(&self.partial, &self.with_dictionaries)?;
        let grouping = Grouping::new(input, groups, &context, metrics);
        let schema = self.schema();
        if *self.aggregation.mode() == AggregateMode::Partial {
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, grouping.states())));
        }
        let partial = Arc::clone(&self.partial);
        let combine = move |states| combined(&partial, states, context);
        let results = futures::stream::once(grouping.results(Arc::clone(&schema), combine)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, results)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }
}
