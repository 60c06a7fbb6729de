//! The node of logical plans.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

/// One of several places that read the rows of the same query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ComputedOnce {
    /// Name of the query in WITH.
    pub(super) name: String,
    /// Alias that the copies of the query share, and no other query of the statement has.
    pub(super) alias: String,
    pub(super) input: LogicalPlan,
    /// Whether the conditions of the copies are part of `input`.
    pub(super) is_filtered: bool,
}

impl ComputedOnce {
    /// Returns the node that a plan has, if it is one.
    pub(super) fn of(plan: &LogicalPlan) -> Option<&Self> {
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
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "ComputedOnce: {}", self.name)
    }

    fn with_exprs_and_inputs(&self, _expressions: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else { return internal_err!("ComputedOnce has an input") };
        Ok(Self { input, ..self.clone() })
    }

    /// All columns: copies that read fewer would not have the same rows.
    fn necessary_children_exprs(&self, _columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![(0..self.input.schema().fields().len()).collect()])
    }
}
