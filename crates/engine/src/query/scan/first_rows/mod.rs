//! The first rows that a query asks for, of those that a scan returns.
//!
//! A sort with a limit (DataFusion's top-n) keeps the best rows so far, and turns the last of them
//! into a condition of the scan. The reader evaluates that condition on all rows of a row group
//! before it returns the first of them, so that the whole first row group is decoded, and on all
//! columns of the order. But the first column nearly always decides. So the scan itself looks for
//! the best values of that column:
//!
//! ```text
//! SortExec(n) ── FindFirstRows ──► OrderedScan with FirstRows (the first key, n)
//!                                    └─ Best: the n best keys of all streams ─► the n-th is a bound
//! file, row group ─ slices ─ without pages beyond the bound ─► reader
//!                              conditions ─ keys up to the bound ─ condition of the sort ─► rows
//! ```
//! Rows beyond the bound cannot be among the first n. Rows at the bound are kept for the condition
//! of the sort, since further keys decide among them. Until the bound is known, rows are read in
//! slices, each twice as large as the one before it. Small reads are decoded as a whole, and
//! filtered in the same order afterwards.

mod best;
mod beyond;
mod leading;
mod rule;
mod slices;

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, is_null, lit};

pub(super) use best::{Best, Executions};
pub(super) use beyond::Beyond;
pub(super) use leading::LeadingRows;
pub(in crate::query) use rule::FindFirstRows;
pub(super) use slices::{SliceSizes, Slices, best_first};

/// The first rows by a key.
#[derive(Debug, Clone)]
pub(in crate::query) struct FirstRows {
    /// The first key of the order, on the columns of the table.
    pub(super) key: Arc<dyn PhysicalExpr>,
    pub(super) order: SortOptions,
    /// Number of rows.
    pub(super) count: usize,
    /// Identity of the condition by which the sort narrows down the scan.
    pub(super) condition: Option<u64>,
}

impl FirstRows {
    /// Whether a condition of a scan is the one by which the sort narrows it down.
    pub(super) fn is_condition(&self, part: &Arc<dyn PhysicalExpr>) -> bool {
        self.condition.is_some() && part.expression_id() == self.condition
    }
}

/// Returns a condition that a key is not beyond a bound; `None` if none is.
///
/// # Errors
/// [`DataFusionError`](datafusion::error::DataFusionError) if the condition cannot be built.
pub(super) fn up_to(
    key: &Arc<dyn PhysicalExpr>,
    bound: &ScalarValue,
    order: SortOptions,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    if bound.is_null() {
        return if order.nulls_first { is_null(Arc::clone(key)).map(Some) } else { Ok(None) };
    }
    let operator = if order.descending { Operator::GtEq } else { Operator::LtEq };
    let compared: Arc<dyn PhysicalExpr> =
        Arc::new(BinaryExpr::new(Arc::clone(key), operator, lit(bound.clone())));
    if !order.nulls_first {
        return Ok(Some(compared));
    }
    Ok(Some(Arc::new(BinaryExpr::new(is_null(Arc::clone(key))?, Operator::Or, compared))))
}

/// The first rows that a scan looks for, in terms of its table.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) first: FirstRows,
    /// The condition of the sort, which may change while rows are read.
    pub(super) condition: Option<Arc<dyn PhysicalExpr>>,
    /// Whether row groups may be read in another order than that of the file.
    pub(super) in_any_order: bool,
}

/// The first rows that a scan looks for, in terms of the columns of a file.
#[derive(Debug, Clone)]
pub(super) struct WantedOfFile {
    pub(super) key: Arc<dyn PhysicalExpr>,
    pub(super) condition: Option<Arc<dyn PhysicalExpr>>,
}

#[cfg(test)]
mod tests;
