//! Several partitions of a table as one of a coarser placement.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::exec_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties, Statistics,
};
use futures::stream::{self, StreamExt, TryStreamExt};

use evenkeel_model::units::PartitionId;
use evenkeel_placement::placement::Placement;

/// Returns the rows of several partitions one after another, as one stream.
///
/// If the partitions are within the coarser ones except at their edges, each key is checked, and a
/// key that belongs elsewhere is an error: the hash ranges of 64 partitions are within the ranges
/// of 16 except for one hash in 2^58.
#[derive(Debug)]
pub(super) struct PlacedExec {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    placement: Placement,
    key: Vec<Arc<dyn PhysicalExpr>>,
    partition: PartitionId,
    is_exact: bool,
    properties: Arc<PlanProperties>,
}

impl PlacedExec {
    /// Creates a chain of inputs of one stream each; `key` has the positions of the partition key
    /// in their rows.
    pub(super) fn new(
        schema: SchemaRef,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
        placement: Placement,
        key: Vec<Arc<dyn PhysicalExpr>>,
        partition: PartitionId,
        is_exact: bool,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self { inputs, placement, key, partition, is_exact, properties: Arc::new(properties) }
    }
}

fn check(
    batch: RecordBatch,
    placement: &Placement,
    key: &[Arc<dyn PhysicalExpr>],
    partition: PartitionId,
) -> Result<RecordBatch> {
    let columns = key.iter().map(|column| column.evaluate(&batch)?.into_array(batch.num_rows()));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let placed = placement.assign(&columns).map_err(|error| DataFusionError::External(Box::new(error)))?;
    match placed.iter().all(|id| *id == partition) {
        true => Ok(batch),
        false => exec_err!(
            "a key of the table lies at the edge of a hash range; join by an expression of the key instead of the key \
             itself, as in a.k = b.k + 0 or a.k = b.k || ''"
        ),
    }
}

impl DisplayAs for PlacedExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlacedExec: partition={} of {}", self.partition, self.placement.partitions())
    }
}

impl ExecutionPlan for PlacedExec {
    fn name(&self) -> &'static str {
        "PlacedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; self.inputs.len()])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for column in &self.key {
            if f(column)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (placement, key) = (self.placement.clone(), self.key.clone());
        Ok(Arc::new(Self::new(self.schema(), inputs, placement, key, self.partition, self.is_exact)))
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (placement, key) = (self.placement.clone(), self.key.clone());
        let (own, is_exact) = (self.partition, self.is_exact);
        let rows = stream::iter(self.inputs.clone())
            .map(move |input| input.execute(0, Arc::clone(&context)))
            .try_flatten()
            .and_then(move |batch| {
                let checked = if is_exact { Ok(batch) } else { check(batch, &placement, &key, own) };
                std::future::ready(checked)
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let parts: Vec<Statistics> = inputs.iter().map(|part| part.as_ref().clone()).collect();
        Ok(Arc::new(Statistics::try_merge_iter(&parts, &self.schema())?))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(parent_filters, &self.children())
    }
}
