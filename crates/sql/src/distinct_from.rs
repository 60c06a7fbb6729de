//! `a IS DISTINCT FROM b` within a longer condition.

use std::mem;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, VisitorMut};

use crate::explained::sql_of;
use crate::walk::walk_mut;

/// Gives `IS [NOT] DISTINCT FROM` its precedence, above NOT, AND and OR.
///
/// The parser treats everything after it as its right side: `a IS DISTINCT FROM b AND c` as `a IS
/// DISTINCT FROM (b AND c)`, which is an error for most types, and another condition if all three
/// are Booleans.
pub(super) fn bind_distinct_from(statement: &mut Statement) {
    if let Some(statement) = sql_of(statement) {
        let _ = walk_mut(statement, &mut Rebind);
    }
}

struct Rebind;

impl VisitorMut for Rebind {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if is_chain(expr) && contains_distinct_from(expr) {
            *expr = rebuild(terms(take(expr)));
        }
        ControlFlow::Continue(())
    }
}

/// A condition and the operator before it, AND or OR.
type Term = (Option<BinaryOperator>, Expr);

/// Whether terms can follow in the expression without parentheses.
fn is_chain(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { op, .. } => matches!(op, BinaryOperator::And | BinaryOperator::Or),
        Expr::UnaryOp { op, .. } => *op == UnaryOperator::Not,
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => true,
        _ => false,
    }
}

fn contains_distinct_from(chain: &Expr) -> bool {
    match chain {
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => is_chain(right),
        Expr::BinaryOp { left, right, .. } if is_chain(chain) => {
            is_rebound(right) || contains_distinct_from(left) || contains_distinct_from(right)
        }
        Expr::UnaryOp { expr, .. } if is_chain(chain) => is_rebound(expr) || contains_distinct_from(expr),
        _ => false,
    }
}

/// The parser never makes AND or OR an operand that binds more strongly; rebuilding does.
fn is_rebound(operand: &Expr) -> bool {
    matches!(operand, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. })
}

/// Terms of a chain in the order of the text.
fn terms(chain: Expr) -> Vec<Term> {
    let with_first = |rest: Expr, change: &dyn Fn(Expr) -> Expr| {
        let mut terms = terms(rest);
        if let Some((_, first)) = terms.first_mut() {
            *first = change(take(first));
        }
        terms
    };
    match chain {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            let mut all = terms(*left);
            let mut following = terms(*right);
            if let Some((operator, _)) = following.first_mut() {
                *operator = Some(op);
            }
            all.append(&mut following);
            all
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            with_first(*expr, &|expr| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) })
        }
        Expr::IsDistinctFrom(left, right) => {
            with_first(*right, &|right| Expr::IsDistinctFrom(left.clone(), Box::new(right)))
        }
        Expr::IsNotDistinctFrom(left, right) => {
            with_first(*right, &|right| Expr::IsNotDistinctFrom(left.clone(), Box::new(right)))
        }
        term => vec![(None, term)],
    }
}

/// Builds a chain in which AND binds more strongly than OR, and both are left-associative.
fn rebuild(terms: Vec<Term>) -> Expr {
    let join = |op: BinaryOperator, left: Option<Expr>, right: Expr| match left {
        Some(left) => Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) },
        None => right,
    };
    let (mut alternatives, mut conjunction) = (None, None);
    for (operator, term) in terms {
        if operator == Some(BinaryOperator::Or)
            && let Some(conjunction) = conjunction.take()
        {
            alternatives = Some(join(BinaryOperator::Or, alternatives, conjunction));
        }
        conjunction = Some(join(BinaryOperator::And, conjunction, term));
    }
    match conjunction {
        Some(conjunction) => join(BinaryOperator::Or, alternatives, conjunction),
        None => null(),
    }
}

fn take(expr: &mut Expr) -> Expr {
    mem::replace(expr, null())
}

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn bound(condition: &str) -> String {
        let sql = format!("SELECT 1 FROM t WHERE {condition}");
        let mut statement = DFParser::parse_sql(&sql).unwrap().pop_front().unwrap();
        bind_distinct_from(&mut statement);
        let Statement::Statement(mut statement) = statement else { panic!("{sql}") };
        let _ = walk_mut(statement.as_mut(), &mut Parenthesize);
        statement.to_string().split_once("WHERE ").unwrap().1.to_owned()
    }

    /// Shows which operands an operator has.
    struct Parenthesize;

    impl VisitorMut for Parenthesize {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if is_chain(expr) {
                *expr = Expr::Nested(Box::new(take(expr)));
            }
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn it_binds_more_strongly_than_not_and_and_or() {
        for (condition, expected) in [
            ("a IS DISTINCT FROM b", "(a IS DISTINCT FROM b)"),
            ("a IS DISTINCT FROM b AND c", "((a IS DISTINCT FROM b) AND c)"),
            ("a IS NOT DISTINCT FROM b OR c AND d", "((a IS NOT DISTINCT FROM b) OR (c AND d))"),
            ("x AND a IS DISTINCT FROM b OR c", "((x AND (a IS DISTINCT FROM b)) OR c)"),
            ("x OR a IS DISTINCT FROM b AND c OR d", "((x OR ((a IS DISTINCT FROM b) AND c)) OR d)"),
            ("NOT a IS DISTINCT FROM b AND c", "((NOT (a IS DISTINCT FROM b)) AND c)"),
            (
                "a IS DISTINCT FROM b AND c IS DISTINCT FROM d OR e",
                "(((a IS DISTINCT FROM b) AND (c IS DISTINCT FROM d)) OR e)",
            ),
            (
                "a IS DISTINCT FROM b AND NOT c IS NOT DISTINCT FROM d AND e",
                "(((a IS DISTINCT FROM b) AND (NOT (c IS NOT DISTINCT FROM d))) AND e)",
            ),
            ("a = 1 AND b = 2 OR NOT c", "((a = 1 AND b = 2) OR (NOT c))"),
        ] {
            assert_eq!(bound(condition), expected, "{condition}");
        }
    }

    #[test]
    fn parentheses_and_longer_operands_stay() {
        for (condition, expected) in [
            ("a IS DISTINCT FROM (b AND c)", "(a IS DISTINCT FROM ((b AND c)))"),
            ("a IS DISTINCT FROM b + 1 AND c", "((a IS DISTINCT FROM b + 1) AND c)"),
            ("a IS DISTINCT FROM b = c", "(a IS DISTINCT FROM b = c)"),
            ("f(a IS DISTINCT FROM b OR c)", "f(((a IS DISTINCT FROM b) OR c))"),
        ] {
            assert_eq!(bound(condition), expected, "{condition}");
        }
    }
}
