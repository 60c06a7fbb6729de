//! Expected numbers of rows.
//!
//! The store knows how many rows its tables have, but not how many of them satisfy a condition. The
//! shares are those of System R (Selinger et al., *Access Path Selection in a Relational Database
//! Management System*, 1979), with a smaller one for equality, since few columns have only ten
//! values.

use datafusion::common::{JoinType, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, Operator};

/// Share of the rows that equal a value.
const EQUAL: f64 = 0.05;
/// Share of the rows on one side of a value.
const ONE_SIDED: f64 = 1.0 / 3.0;
/// Share of the rows between two values.
const BETWEEN: f64 = 0.25;
/// Share of the rows that are like a pattern.
const LIKE: f64 = 0.1;
/// Share of the rows that satisfy any other condition.
const OTHER: f64 = 1.0 / 3.0;
/// Largest share of the rows that a list of values selects.
const LISTED: f64 = 0.5;
/// Share of the rows that have, or do not have, a row of another table.
const SEMI_JOINED: f64 = 0.5;
/// Groups of an aggregation, relative to its rows.
const GROUPS: f64 = 1.0 / 3.0;

/// Expected rows of a plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub(super) rows: f64,
    /// Rows of its table without conditions; of other plans, their rows.
    pub(super) table_rows: f64,
}

impl Expected {
    fn of(rows: f64) -> Self {
        Self { rows: rows.max(1.0), table_rows: rows.max(1.0) }
    }

    fn selected(self, share: f64) -> Self {
        Self { rows: (self.rows * share).max(1.0), ..self }
    }

    fn at_most(self, rows: Option<usize>) -> Self {
        rows.map_or(self, |rows| Self { rows: self.rows.min(rows as f64).max(1.0), ..self })
    }
}

/// Returns the expected rows of a plan; `None` if the rows of a table are not known.
pub(super) fn expected(plan: &LogicalPlan) -> Option<Expected> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let statistics = source_as_provider(&scan.source).ok()?.statistics()?;
            let rows = *statistics.num_rows.get_value()? as f64;
            Some(Expected::of(rows).selected(share_of_all(scan.filters.iter())).at_most(scan.fetch))
        }
        LogicalPlan::Filter(filter) => {
            // A scan that takes a condition may leave it in the plan, too.
            let known = match filter.input.as_ref() {
                LogicalPlan::TableScan(scan) => scan.filters.as_slice(),
                _ => &[],
            };
            let others = split_conjunction(&filter.predicate).into_iter();
            let others = others.filter(|condition| !known.contains(condition));
            Some(expected(&filter.input)?.selected(share_of_all(others)))
        }
        LogicalPlan::Projection(projection) => expected(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => expected(&alias.input),
        LogicalPlan::Sort(sort) => Some(expected(&sort.input)?.at_most(sort.fetch)),
        LogicalPlan::Window(window) => expected(&window.input),
        LogicalPlan::Repartition(repartition) => expected(&repartition.input),
        LogicalPlan::Limit(limit) => {
            let fetch = match limit.get_fetch_type().ok()? {
                FetchType::Literal(fetch) => fetch,
                FetchType::UnsupportedExpr => None,
            };
            Some(expected(&limit.input)?.at_most(fetch))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let rows = expected(&aggregate.input)?.rows;
            Some(Expected::of(if aggregate.group_expr.is_empty() { 1.0 } else { rows * GROUPS }))
        }
        LogicalPlan::Distinct(distinct) => Some(Expected::of(expected(distinct.input())?.rows * GROUPS)),
        LogicalPlan::Union(union) => {
            let rows: Option<Vec<f64>> =
                union.inputs.iter().map(|input| expected(input).map(|input| input.rows)).collect();
            Some(Expected::of(rows?.into_iter().sum()))
        }
        LogicalPlan::Join(join) => {
            let (left, right) = (expected(&join.left)?, expected(&join.right)?);
            let values = left.table_rows.min(right.table_rows);
            let pairs = if join.on.is_empty() { 1.0 } else { 1.0 / values };
            let inner = left.rows * right.rows * pairs * share_of_all(join.filter.iter());
            match join.join_type {
                JoinType::Inner => Some(Expected::of(inner)),
                JoinType::Left => Some(Expected::of(inner.max(left.rows))),
                JoinType::Right => Some(Expected::of(inner.max(right.rows))),
                JoinType::Full => Some(Expected::of(inner.max(left.rows).max(right.rows))),
                JoinType::LeftSemi | JoinType::LeftAnti => Some(left.selected(SEMI_JOINED)),
                JoinType::RightSemi | JoinType::RightAnti => Some(right.selected(SEMI_JOINED)),
                JoinType::LeftMark => Some(left),
                JoinType::RightMark => Some(right),
            }
        }
        LogicalPlan::EmptyRelation(_) => Some(Expected::of(1.0)),
        LogicalPlan::Values(values) => Some(Expected::of(values.values.len() as f64)),
        _ => None,
    }
}

/// Expected share of the rows that satisfy all conditions. The two ends of a range count together.
fn share_of_all<'e>(conditions: impl Iterator<Item = &'e Expr>) -> f64 {
    let mut share = 1.0;
    let mut ends: Vec<(&Expr, bool)> = Vec::new();
    for condition in conditions.flat_map(split_conjunction) {
        match end_of_range(condition) {
            Some((column, is_upper)) if ends.contains(&(column, !is_upper)) => {
                ends.retain(|end| *end != (column, !is_upper));
                share *= BETWEEN / ONE_SIDED;
            }
            Some(end) => {
                ends.push(end);
                share *= ONE_SIDED;
            }
            None => share *= share_of_rows(condition),
        }
    }
    share
}

/// The expression that a condition bounds by a literal, and whether from above.
fn end_of_range(condition: &Expr) -> Option<(&Expr, bool)> {
    let Expr::BinaryExpr(binary) = condition else { return None };
    let is_upper = match binary.op {
        Operator::Lt | Operator::LtEq => true,
        Operator::Gt | Operator::GtEq => false,
        _ => return None,
    };
    match (binary.left.as_ref(), binary.right.as_ref()) {
        (bounded, Expr::Literal(..)) => Some((bounded, is_upper)),
        (Expr::Literal(..), bounded) => Some((bounded, !is_upper)),
        _ => None,
    }
}

/// Expected share of the rows that satisfy a condition.
pub(super) fn share_of_rows(condition: &Expr) -> f64 {
    match condition {
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::And => share_of_all(std::iter::once(condition)),
            Operator::Or => {
                let (left, right) = (share_of_rows(&binary.left), share_of_rows(&binary.right));
                (left + right).min(1.0)
            }
            Operator::Eq | Operator::IsNotDistinctFrom => EQUAL,
            Operator::NotEq | Operator::IsDistinctFrom => 1.0 - EQUAL,
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => ONE_SIDED,
            _ => OTHER,
        },
        Expr::Not(negated) => 1.0 - share_of_rows(negated),
        Expr::IsNull(_) => EQUAL,
        Expr::IsNotNull(_) => 1.0 - EQUAL,
        Expr::Between(between) if between.negated => 1.0 - BETWEEN,
        Expr::Between(_) => BETWEEN,
        Expr::InList(list) => {
            let listed = (EQUAL * list.list.len() as f64).min(LISTED);
            if list.negated { 1.0 - listed } else { listed }
        }
        Expr::Like(like) => {
            if like.negated {
                1.0 - LIKE
            } else {
                LIKE
            }
        }
        Expr::Alias(alias) => share_of_rows(&alias.expr),
        Expr::Literal(ScalarValue::Boolean(value), _) => f64::from(u8::from(*value == Some(true))),
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn conditions_select_the_share_of_their_form() {
        let share = |conditions: &[Expr]| share_of_all(conditions.iter());
        let is_near = |one: f64, other: f64| (one - other).abs() < 1e-12;
        let (above, below) = (col("a").gt(lit(1)), lit(9).gt(col("a")));
        assert!(is_near(share(&[above.clone(), below.clone()]), BETWEEN));
        assert!(is_near(share(&[above.clone().and(below.clone())]), BETWEEN));
        assert!(is_near(share(&[above.clone(), col("b").lt(lit(9))]), ONE_SIDED * ONE_SIDED));
        assert!(is_near(share(&[above.clone(), col("a").gt(lit(2))]), ONE_SIDED * ONE_SIDED));
        assert!(is_near(share(&[col("a").eq(lit(1)).and(col("b").like(lit("%x")))]), EQUAL * LIKE));
        assert!(is_near(share(&[col("a").eq(lit(1)).or(col("a").eq(lit(2)))]), 2.0 * EQUAL));
        assert!(is_near(share(&[col("a").in_list((0..40).map(lit).collect(), true)]), 1.0 - LISTED));
        assert!(is_near(share(&[above.or(below).or(col("a").not_eq(lit(3)))]), 1.0));
        assert!(is_near(share(&[]), 1.0));
    }
}
