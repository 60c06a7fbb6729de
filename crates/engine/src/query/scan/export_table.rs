//! An export as a table of DataFusion: each scan reads its files again.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use evenkeel_input::source::{Export, OnUnreadable, SourceError, Unreadable, row_counts};
use evenkeel_model::note::Note;
use evenkeel_model::table::view_schema;

/// Number of batches that a reader may be ahead of the query.
const BATCHES_AHEAD: usize = 2;

/// An export that queries scan. Text columns are returned as views, as in tables.
#[derive(Debug)]
pub(in crate::query) struct ExportTable {
    export: Arc<Export>,
    schema: SchemaRef,
    rows: Precision<usize>,
    left_out: Arc<Mutex<Unreadable>>,
}

impl ExportTable {
    /// Creates the table of an export. Only Parquet files state their number of rows.
    ///
    /// # Errors
    /// [`SourceError`] if a footer cannot be read.
    pub(in crate::query) fn new(export: Arc<Export>) -> std::result::Result<Self, SourceError> {
        let schema = view_schema(export.schema());
        let counted = row_counts(export.inputs(), export.options())?;
        let rows = counted.and_then(|counts| usize::try_from(counts.iter().sum::<u64>()).ok());
        let rows = rows.map_or(Precision::Absent, Precision::Exact);
        Ok(Self { export, schema, rows, left_out: Arc::default() })
    }

    /// Returns notes on the columns that scans have left out or filled in so far.
    pub(in crate::query) fn notes(&self) -> Vec<Note> {
        let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        self.export.notes_on(left_out.clone())
    }
}

#[async_trait]
impl TableProvider for ExportTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let scan = ExportExec::try_new(self, projection, limit)?;
        Ok(Arc::new(scan))
    }
}

/// Reads the rows of an export, in its order, as one partition.
#[derive(Debug, Clone)]
struct ExportExec {
    export: Arc<Export>,
    /// Positions of the columns to return.
    projection: Vec<usize>,
    /// Number of rows after which reading may end.
    limit: Option<usize>,
    rows: Precision<usize>,
    left_out: Arc<Mutex<Unreadable>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl ExportExec {
    fn try_new(table: &ExportTable, projection: Vec<usize>, limit: Option<usize>) -> Result<Self> {
        let schema = Arc::new(table.schema.project(&projection)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            export: Arc::clone(&table.export),
            projection,
            limit,
            rows: table.rows,
            left_out: Arc::clone(&table.left_out),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Reads the rows on this thread; `send` returns whether more are wanted.
    fn read(&self, mut send: impl FnMut(Result<RecordBatch>) -> bool) -> Result<()> {
        let mut left = self.limit.unwrap_or(usize::MAX);
        let is_read = |position: usize| self.projection.contains(&position);
        let read = self.export.read_columns::<SourceError>(OnUnreadable::Fail, &is_read, |_, batch| {
            left = left.saturating_sub(batch.num_rows());
            Ok(send(batch.project(&self.projection).map_err(DataFusionError::from)) && left > 0)
        });
        let left_out = read.map_err(error_of_query)?;
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).merge(left_out);
        Ok(())
    }
}

fn error_of_query(error: SourceError) -> DataFusionError {
    match error {
        // The error's own hint applies only to evaluations.
        SourceError::Unreadable { reject } => {
            let advice = "Correct the file, or ingest it into a table with --on-error reject";
            DataFusionError::External(format!("{reject}. {advice}").into())
        }
        error => DataFusionError::External(Box::new(error)),
    }
}

impl DisplayAs for ExportExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&str> = self
            .properties
            .eq_properties
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        write!(f, "ExportExec: files={}, columns=[{}]", self.export.inputs().len(), columns.join(", "))
    }
}

impl ExecutionPlan for ExportExec {
    fn name(&self) -> &'static str {
        "ExportExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("ExportExec has no inputs") }
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let mut rows = RecordBatchReceiverStream::builder(self.schema(), BATCHES_AHEAD);
        let (sender, scan) = (rows.tx(), self.clone());
        rows.spawn_blocking(move || {
            scan.read(|batch| {
                metrics.output_rows().add(batch.as_ref().map_or(0, RecordBatch::num_rows));
                sender.blocking_send(batch).is_ok()
            })
        });
        Ok(rows.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        // A limit may end between two batches.
        let num_rows = if self.limit.is_some() { self.rows.to_inexact() } else { self.rows };
        Ok(Arc::new(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) }))
    }
}
