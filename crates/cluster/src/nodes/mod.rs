//! Our plan nodes. Each has one input and works on its partitions one by one, so that a stage can
//! be cut anywhere between nodes.

mod arrivals;
mod count;
mod read;
mod scan;
mod write;

use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning, PhysicalExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};
use futures::TryStreamExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(super) use arrivals::{ManifestEntry, arrival_order, arrival_schema};
pub(super) use count::{CountAssignment, CountSpec};
pub(super) use read::{InputPart, ReadSpec};
pub(super) use scan::ScanSpec;
pub(super) use write::WriteSpec;

/// Serializable specification of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TaskSpec {
    /// Scans the visible rows of portions.
    Scan(ScanSpec),
    /// Reads input rows, places and numbers them.
    Read(Box<ReadSpec>),
    /// Writes sorted rows as portions.
    Write(WriteSpec),
    /// Counts the keys of an export.
    Count(Box<CountSpec>),
}

impl TaskSpec {
    /// Returns the schema that the node's expressions refer to.
    pub(super) fn expression_schema(&self) -> Result<Schema> {
        match self {
            Self::Scan(scan) => Ok(scan.table()?.schema().as_ref().clone()),
            Self::Read(_) | Self::Write(_) | Self::Count(_) => Ok(Schema::empty()),
        }
    }

    fn work(&self, expressions: &[Arc<dyn PhysicalExpr>]) -> Result<Arc<dyn Work>> {
        Ok(match self {
            Self::Scan(scan) => Arc::new(scan::Scan::new(scan, expressions)?),
            Self::Read(read) => Arc::new(read::Read::new(read)?),
            Self::Write(write) => Arc::new(write::Write::new(write)?),
            Self::Count(count) => Arc::new(count::Count::new(count)),
        })
    }
}

/// Work of a node on one partition of its input.
trait Work: fmt::Debug + Send + Sync {
    /// Returns the schema of the output.
    fn schema(&self) -> SchemaRef;

    /// Describes the work in one line, for plans.
    fn describe(&self) -> String;

    /// Returns the order of each output partition.
    fn order(&self) -> Option<LexOrdering> {
        None
    }

    /// Returns the columns whose hash assigns rows to partitions.
    fn hashed_by(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    /// Returns the required distribution and order of the input.
    fn needs(&self) -> (Distribution, Option<LexOrdering>) {
        (Distribution::UnspecifiedDistribution, None)
    }

    /// Returns the output of one partition of the input.
    fn run(
        &self,
        input: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream>;
}

/// Plan node that does [`Work`] on each partition of its input.
#[derive(Debug, Clone)]
pub(super) struct TaskExec {
    spec: Arc<TaskSpec>,
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    work: Arc<dyn Work>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl TaskExec {
    pub(super) fn try_new(
        spec: TaskSpec,
        expressions: Vec<Arc<dyn PhysicalExpr>>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let work = spec.work(&expressions)?;
        Ok(Self::over(Arc::new(spec), expressions, work, input))
    }

    fn over(
        spec: Arc<TaskSpec>,
        expressions: Vec<Arc<dyn PhysicalExpr>>,
        work: Arc<dyn Work>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Self {
        // The scheduler puts parts of the input below the node, so the number of partitions always
        // equals the input's.
        let partitions = input.properties().partitioning.partition_count();
        let partitioning = match work.hashed_by() {
            columns if columns.is_empty() => Partitioning::UnknownPartitioning(partitions),
            columns => Partitioning::Hash(columns, partitions),
        };
        let equivalence = EquivalenceProperties::new_with_orderings(work.schema(), work.order());
        let properties =
            PlanProperties::new(equivalence, partitioning, EmissionType::Incremental, Boundedness::Bounded);
        let metrics = ExecutionPlanMetricsSet::new();
        Self { spec, expressions, work, input, properties: Arc::new(properties), metrics }
    }

    /// Returns the scan with its partitioning declared; `None` if it is not a scan, or if several
    /// tasks read a partition.
    pub(super) fn hashed(&self) -> Result<Option<Self>> {
        let TaskSpec::Scan(scan) = self.spec() else { return Ok(None) };
        if !scan.whole {
            return Ok(None);
        }
        let spec = TaskSpec::Scan(ScanSpec { hashed: true, ..scan.clone() });
        let declared = Self::try_new(spec, self.expressions.clone(), Arc::clone(&self.input))?;
        // The partitioning is lost if the scan lacks a column of the key.
        Ok(matches!(declared.properties.partitioning, Partitioning::Hash(..)).then_some(declared))
    }

    pub(super) fn spec(&self) -> &TaskSpec {
        &self.spec
    }

    pub(super) fn expressions(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.expressions
    }
}

impl DisplayAs for TaskExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.work.describe())
    }
}

impl ExecutionPlan for TaskExec {
    fn name(&self) -> &'static str {
        "TaskExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![self.work.needs().0])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.work.needs().1.map(OrderingRequirements::from)]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expression in &self.expressions {
            if f(expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(input), true) = (children.pop(), children.is_empty()) else {
            return internal_err!("a task has one input");
        };
        Ok(Arc::new(Self::over(
            Arc::clone(&self.spec),
            self.expressions.clone(),
            Arc::clone(&self.work),
            input,
        )))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let output = self.work.run(input, context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let counted = output.inspect_ok(move |batch| metrics.output_rows().add(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.work.schema(), counted)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// Wraps our error in an error of DataFusion, whose message executors report.
fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Returns entries as lines of JSON.
fn json_lines<T: Serialize>(entries: &[T]) -> Result<StringArray> {
    let lines = entries.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
    Ok(StringArray::from(lines.map_err(external)?))
}

/// Returns the schema of a leaf: the assignments of each task, as JSON.
fn assignment_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("assignment", DataType::Utf8, false)]))
}

/// Creates a leaf with the assignments of each task, one partition per task. Ballista can cut it
/// between partitions, unlike other leaves.
pub(super) fn assignments<T: Serialize>(tasks: &[Vec<T>]) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = assignment_schema();
    let batch = |assignments: &Vec<T>| {
        Ok(vec![RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(json_lines(assignments)?)])?])
    };
    let partitions = tasks.iter().map(batch).collect::<Result<Vec<_>>>()?;
    Ok(DataSourceExec::from_data_source(MemorySourceConfig::try_new(&partitions, Arc::clone(&schema), None)?))
}

/// Reads the assignments of a task.
async fn read_assignments<T: DeserializeOwned>(mut input: SendableRecordBatchStream) -> Result<Vec<T>> {
    let mut assignments = Vec::new();
    while let Some(batch) = input.try_next().await? {
        let Some(lines) =
            batch.columns().first().and_then(|column| column.as_any().downcast_ref::<StringArray>())
        else {
            return internal_err!("assignments are text");
        };
        for line in lines.iter().flatten() {
            assignments.push(serde_json::from_str(line).map_err(external)?);
        }
    }
    Ok(assignments)
}
