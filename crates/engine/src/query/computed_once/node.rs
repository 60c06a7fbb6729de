//! The node of logical plans.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, Result};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

/// One of several places that read the rows of the same query.
///
/// The plan of the query is no input, so that no rule changes it for one of the places: DataFusion
/// 55 moves conditions without columns, such as `random() < 0.5`, into inputs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ComputedOnce {
    /// Name of the query in WITH.
    pub(super) name: String,
    /// Alias that the places of the query share, and no other query of the statement has.
    pub(super) alias: String,
    /// Plan of the query, analyzed but not optimized.
    pub(super) query: Arc<LogicalPlan>,
}

impl ComputedOnce {
    /// Returns the node of a plan, if it is of this kind.
    pub(super) fn from_plan(plan: &LogicalPlan) -> Option<&Self> {
        let LogicalPlan::Extension(extension) = plan else { return None };
        extension.node.as_any().downcast_ref()
    }

    pub(super) fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(self) })
    }
}

impl PartialOrd for ComputedOnce {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for ComputedOnce {
    fn name(&self) -> &'static str {
        "ComputedOnce"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        Vec::new()
    }

    fn schema(&self) -> &DFSchemaRef {
        self.query.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "ComputedOnce: {}", self.name)
    }

    fn with_exprs_and_inputs(&self, _expressions: Vec<Expr>, _inputs: Vec<LogicalPlan>) -> Result<Self> {
        Ok(self.clone())
    }
}
