//! Conditions that guard others from values on which they fail.
//!
//! `a <> 0 AND 100 / a > 2` must not divide by zero. DataFusion 55 evaluates both sides of AND and
//! OR on all rows unless few rows depend on the right one. Here, a part that can fail is evaluated
//! only on the rows that the parts before it leave open. Parts that cannot fail come first,
//! divisions and casts last:
//! ```text
//! 100 / a > 2 AND a <> 0      ->  a <> 0 AND CASE WHEN a <> 0 THEN 100 / a > 2 ELSE false END
//! 100 / a > 2 OR a = 0        ->  CASE WHEN a = 0 THEN true ELSE 100 / a > 2 END
//! NOT (100 / a > 2 OR a = 0)  ->  NOT (a = 0 OR CASE WHEN a = 0 IS DISTINCT FROM true
//!                                                    THEN 100 / a > 2 ELSE true END)
//! ```
//! The short forms return false instead of NULL, which is the same to a filter. In the long form,
//! as below NOT, parts that can fail do not guard each other. A conjunction keeps its plain parts
//! beside the CASE, so that they are shown and estimated as conditions.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr,
    LikeExpr, Literal, NotExpr, lit,
};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::HashTableLookupExpr;

use crate::query::optimization::join_filters::with_condition;
use crate::query::walk::Walk;

type Expr = Arc<dyn PhysicalExpr>;

/// Whether evaluating an expression can fail for some values. It cannot if it only compares columns
/// and values.
pub(in crate::query) fn can_fail(expression: &Expr) -> bool {
    let is_safe = |node: &Expr| {
        compares(node)
            || node.is::<Column>()
            || node.is::<Literal>()
            || node.is::<InListExpr>()
            || node.is::<IsNullExpr>()
            || node.is::<IsNotNullExpr>()
            || node.is::<NotExpr>()
            || node.is::<LikeExpr>()
            || node.is::<DynamicFilterPhysicalExpr>()
            || node.is::<HashTableLookupExpr>()
    };
    !matches!(expression.exists_dyn(|node| Ok(!is_safe(node))), Ok(false))
}

/// Risk that an expression fails, the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::query) enum Risk {
    /// Cannot fail.
    None,
    /// Calls a function, or a result may be out of range.
    Low,
    /// Divides or casts.
    High,
}

/// Returns how an expression can fail.
pub(in crate::query) fn risk(expression: &Expr) -> Risk {
    let is_risky = |node: &Expr| {
        let binary = node.downcast_ref::<BinaryExpr>();
        node.is::<CastExpr>()
            || binary.is_some_and(|binary| matches!(binary.op(), Operator::Divide | Operator::Modulo))
    };
    match can_fail(expression) {
        false => Risk::None,
        true if matches!(expression.exists_dyn(|node| Ok(is_risky(node))), Ok(false)) => Risk::Low,
        true => Risk::High,
    }
}

/// Whether a node compares two values, or combines two conditions.
pub(in crate::query) fn compares(node: &Expr) -> bool {
    node.downcast_ref::<BinaryExpr>().is_some_and(|binary| is_comparison(*binary.op()))
}

/// Whether an operator compares two values, or combines two conditions.
pub(in crate::query) fn is_comparison(operator: Operator) -> bool {
    use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or};
    [Eq, NotEq, Lt, LtEq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, And, Or].contains(&operator)
}

/// Whether NULL may be replaced by false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Null {
    /// The expression only selects rows.
    IsFalse,
    /// The value is used otherwise.
    Counts,
}

/// Returns an expression in which parts that can fail are guarded by the other parts of their
/// conjunction or disjunction; `None` if there is nothing to guard.
fn guarded(expression: &Expr, null: Null) -> Result<Option<Expr>> {
    if expression.is::<DynamicFilterPhysicalExpr>() || !can_fail(expression) || is_volatile(expression) {
        return Ok(None);
    }
    let connective = expression.downcast_ref::<BinaryExpr>().map(BinaryExpr::op).copied();
    let Some(connective @ (Operator::And | Operator::Or)) = connective else {
        let children = expression.children().into_iter();
        let changed = children.map(|child| guarded(child, Null::Counts)).collect::<Result<Vec<_>>>()?;
        if changed.iter().all(Option::is_none) {
            return Ok(None);
        }
        let children = expression.children().into_iter().zip(changed);
        let children = children.map(|(child, changed)| changed.unwrap_or_else(|| Arc::clone(child)));
        return Arc::clone(expression).with_new_children(children.collect()).map(Some);
    };
    let mut parts = Vec::new();
    split(expression, connective, &mut parts);
    parts.sort_by_cached_key(risk);
    let (failing, safe): (Vec<Expr>, Vec<Expr>) = parts.into_iter().partition(can_fail);
    let safe = safe.into_iter().reduce(|left, right| Arc::new(BinaryExpr::new(left, connective, right)));
    let failing = failing.into_iter().map(|part| Ok(guarded(&part, null)?.unwrap_or(part)));
    let chain: Vec<Expr> = safe.map(Ok).into_iter().chain(failing).collect::<Result<_>>()?;
    let mut parts = chain.into_iter().rev();
    let Some(last) = parts.next() else { return internal_err!("a connective without parts") };
    parts.try_fold(last, |rest, guard| guard_of(guard, connective, rest, null)).map(Some)
}

/// Adds the parts of a chain of one connective, in order.
fn split(expression: &Expr, connective: Operator, parts: &mut Vec<Expr>) {
    match expression.downcast_ref::<BinaryExpr>().filter(|binary| *binary.op() == connective) {
        Some(binary) => {
            split(binary.left(), connective, parts);
            split(binary.right(), connective, parts);
        }
        None => parts.push(Arc::clone(expression)),
    }
}

/// Returns `guard` and `rest` connected, with `rest` evaluated only if `guard` does not decide.
fn guard_of(guard: Expr, connective: Operator, rest: Expr, null: Null) -> Result<Expr> {
    let is_plain = !can_fail(&guard);
    let case = |when: &Expr, then: Expr, otherwise: Expr| {
        let case = CaseExpr::try_new(None, vec![(Arc::clone(when), then)], Some(otherwise))?;
        Ok::<Expr, DataFusionError>(Arc::new(case))
    };
    let case = match (connective, null) {
        (Operator::Or, Null::IsFalse) => return case(&guard, lit(true), rest),
        (_, Null::IsFalse) if !is_plain => return case(&guard, rest, lit(false)),
        (_, Null::IsFalse) => case(&guard, rest, lit(false))?,
        // A guard that can fail would be evaluated twice, and copied at each level.
        (_, Null::Counts) if !is_plain => return Ok(Arc::new(BinaryExpr::new(guard, connective, rest))),
        (_, Null::Counts) => {
            let deciding = lit(connective == Operator::Or);
            let (operator, right) = (Operator::IsDistinctFrom, Arc::clone(&deciding));
            let is_open: Expr = Arc::new(BinaryExpr::new(Arc::clone(&guard), operator, right));
            case(&is_open, rest, deciding)?
        }
    };
    Ok(Arc::new(BinaryExpr::new(guard, connective, case)))
}

/// A condition of a scan, guarded for its rows and plain for the statistics of its files.
#[derive(Debug, Eq)]
pub(in crate::query) struct Guarded {
    plain: Expr,
    guarded: Expr,
}

impl Guarded {
    /// Returns the condition in both forms, or as it is if there is nothing to guard.
    pub(in crate::query) fn both_forms(plain: Expr) -> Result<Expr> {
        Ok(match guarded(&plain, Null::IsFalse)? {
            Some(guarded) => Arc::new(Self { plain, guarded }),
            None => plain,
        })
    }

    /// Condition as it was written.
    pub(in crate::query) fn plain(&self) -> &Expr {
        &self.plain
    }
}

impl PartialEq for Guarded {
    fn eq(&self, other: &Self) -> bool {
        self.plain.eq(&other.plain)
    }
}

impl Hash for Guarded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.plain.hash(state);
    }
}

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain.fmt(f)
    }
}

impl PhysicalExpr for Guarded {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.plain.return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.guarded.evaluate(batch)
    }

    fn children(&self) -> Vec<&Expr> {
        vec![&self.plain]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Expr>) -> Result<Expr> {
        match (children.pop(), children.is_empty()) {
            (Some(plain), true) => Self::both_forms(plain),
            _ => internal_err!("a guarded condition has one child"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain.fmt_sql(f)
    }

    /// The plain condition, so that statistics can exclude row groups.
    fn snapshot(&self) -> Result<Option<Expr>> {
        Ok(Some(Arc::clone(&self.plain)))
    }
}

/// Guards the conditions of filters and of hash and nested-loop joins. Runs last: nothing can be
/// moved out of a CASE, and an order may follow from an equality.
#[derive(Debug)]
pub(in crate::query) struct GuardedConditions;

impl PhysicalOptimizerRule for GuardedConditions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(plan.transform_up_dyn(with_guards)?.data)
    }

    fn name(&self) -> &str {
        "GuardedConditions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_guards(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    if let Some(filter) = plan.downcast_ref::<FilterExec>()
        && let Some(predicate) = guarded(filter.predicate(), Null::IsFalse)?
    {
        let changed = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
        return Ok(Transformed::yes(Arc::new(changed)));
    }
    with_condition(plan, |condition| guarded(condition, Null::IsFalse))
}

#[cfg(test)]
#[path = "guards_tests.rs"]
mod tests;
