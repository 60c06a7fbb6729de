//! Parameters that hold a list: `x = ANY($1)` and `x <> ALL($1::bigint[])`.
//!
//! They are planned as `x IN ($1)` and `x NOT IN ($1)`, and the elements replace the parameter once
//! they are known: a list of values excludes partitions, a search in an array does not.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as SqlExpr, Value, ValueWithSpan, VisitorMut};

use crate::explained::sql_of;
use crate::walk::walk_mut;

#[derive(Default)]
struct Lists(BTreeSet<String>);

/// Rewrites comparisons with a parameter that holds a list. Returns the names of these parameters,
/// without `$`.
pub fn list_parameters(statement: &mut Statement) -> BTreeSet<String> {
    let mut lists = Lists::default();
    if let Some(statement) = sql_of(statement) {
        let _ = walk_mut(statement, &mut lists);
    }
    lists.0
}

impl VisitorMut for Lists {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut SqlExpr) -> ControlFlow<()> {
        let (left, right, negated) = match expression {
            SqlExpr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => (left, right, false),
            SqlExpr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
            _ => return ControlFlow::Continue(()),
        };
        // The column tells the type of the elements better than a cast does: no type of PostgreSQL
        // is that of a Uint64.
        let mut inner = right.as_ref();
        while let SqlExpr::Nested(next) | SqlExpr::Cast { expr: next, .. } = inner {
            inner = next.as_ref();
        }
        if matches!(inner, SqlExpr::Value(ValueWithSpan { value: Value::Placeholder(_), .. })) {
            **right = inner.clone();
        }
        if let SqlExpr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = right.as_ref() {
            self.0.insert(name.trim_start_matches('$').to_owned());
            let take = |part: &mut SqlExpr| std::mem::replace(part, SqlExpr::value(Value::Null));
            let (expr, list) = (Box::new(take(left)), vec![take(right)]);
            *expression = SqlExpr::InList { expr, list, negated };
        }
        ControlFlow::Continue(())
    }
}

/// Puts the elements of lists in the place of the lists.
///
/// # Errors
/// None that a caller can cause.
pub fn with_elements(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let expanded = plan.transform_down_with_subqueries(|node| {
        node.map_expressions(|expression| expression.transform_up(|part| Ok(expanded(part))))
    })?;
    Ok(expanded.data)
}

fn expanded(expression: Expr) -> Transformed<Expr> {
    let Expr::InList(InList { expr, list, negated }) = expression else { return Transformed::no(expression) };
    let [Expr::Literal(ScalarValue::List(elements), _)] = list.as_slice() else {
        return Transformed::no(Expr::InList(InList { expr, list, negated }));
    };
    let elements = elements.values();
    let values = (0..elements.len()).map(|row| ScalarValue::try_from_array(elements, row));
    let values: Vec<Expr> = values.flatten().map(|value| Expr::Literal(value, None)).collect();
    // Nothing is in an empty list.
    Transformed::yes(match values.is_empty() {
        true => Expr::Literal(ScalarValue::Boolean(Some(negated)), None),
        false => Expr::InList(InList { expr, list: values, negated }),
    })
}
