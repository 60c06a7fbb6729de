//! A table for sessions of another library, which know neither its files nor its memory.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use evenkeel::query::{SnapshotTable, TableSession};

/// A table that is planned and read by a session of its own.
pub(crate) struct OwnTable {
    pub(crate) table: Arc<SnapshotTable>,
    pub(crate) session: TableSession,
}

impl fmt::Debug for OwnTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(f)
    }
}

#[async_trait]
impl TableProvider for OwnTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let own = self.session.context();
        let scan = self.table.scan(&own.state(), projection, filters, limit).await?;
        Ok(Arc::new(OwnScan { scan, context: own.task_ctx() }))
    }
}

/// A scan that is executed with the files and the memory of its own session.
#[derive(Debug)]
struct OwnScan {
    scan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
}

impl DisplayAs for OwnScan {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "evenkeel: ")?;
        self.scan.fmt_as(format, f)
    }
}

impl ExecutionPlan for OwnScan {
    fn name(&self) -> &'static str {
        "OwnScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.scan.properties()
    }

    /// None that others may change.
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
        if children.is_empty() { Ok(self) } else { internal_err!("OwnScan has no inputs") }
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.scan.execute(partition, Arc::clone(&self.context))
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }
}
