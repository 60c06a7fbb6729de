//! Semi joins before the joins that their rows do not depend on.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Operator, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::walk::Walk;

/// Pushes semi joins and anti joins, which `IN (SELECT ...)` and `EXISTS` become, below other
/// joins.
///
/// DataFusion 55 leaves such a semi join or anti join above the joins of its query. It depends only
/// on columns of one side, so it can go there:
///
/// ```text
/// (A join B) semi join C on a = c   ──►   (A semi join C) join B
/// ```
/// That pays unless B would have dropped most rows, so it is done only if no condition selects rows
/// of B. It must run after conditions were moved to the tables.
#[derive(Debug)]
pub(in crate::query) struct SemiJoinsFirst;

impl OptimizerRule for SemiJoinsFirst {
    fn name(&self) -> &'static str {
        "SemiJoinsFirst"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(semi) = &plan else { return Ok(Transformed::no(plan)) };
        Ok(match lowered(semi)? {
            Some(lowered) => Transformed::yes(lowered),
            None => Transformed::no(plan),
        })
    }
}

/// Returns the plan of a semi join one step lower; `None` if it stays.
fn lowered(semi: &Join) -> Result<Option<LogicalPlan>> {
    if !matches!(semi.join_type, JoinType::LeftSemi | JoinType::LeftAnti) || semi.null_aware {
        return Ok(None);
    }
    match semi.left.as_ref() {
        LogicalPlan::Join(below) => {
            let (left, right) = (&below.left, &below.right);
            let keeps = |join_types: &[JoinType]| join_types.contains(&below.join_type);
            let (left, right) = if keeps(&[JoinType::Inner, JoinType::Left])
                && depends_on(semi, left)
                && takes_all(right)
            {
                (Arc::new(semi_join(semi, left)?), Arc::clone(right))
            } else if keeps(&[JoinType::Inner, JoinType::Right]) && depends_on(semi, right) && takes_all(left)
            {
                (Arc::clone(left), Arc::new(semi_join(semi, right)?))
            } else {
                return Ok(None);
            };
            Ok(Some(LogicalPlan::Join(Join { left, right, ..below.clone() })))
        }
        // DataFusion puts a projection above a join of which not all columns are needed.
        LogicalPlan::Projection(Projection { expr, input, schema, .. })
            if matches!(input.as_ref(), LogicalPlan::Join(_))
                && expr.iter().all(|column| matches!(column, Expr::Column(_)))
                && depends_on(semi, input) =>
        {
            let input = Arc::new(semi_join(semi, input)?);
            let projection = Projection::try_new_with_schema(expr.clone(), input, Arc::clone(schema))?;
            Ok(Some(LogicalPlan::Projection(projection)))
        }
        _ => Ok(None),
    }
}

/// Returns the semi join with another left side.
fn semi_join(semi: &Join, left: &Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let Join { right, on, filter, join_type, join_constraint, null_equality, null_aware, .. } = semi.clone();
    let left = Arc::clone(left);
    let join = Join::try_new(left, right, on, filter, join_type, join_constraint, null_equality, null_aware)?;
    Ok(LogicalPlan::Join(join))
}

/// Whether a semi join reads no columns of its left side but those of `side`, and cannot fail for a
/// row that a join would have dropped.
fn depends_on(semi: &Join, side: &LogicalPlan) -> bool {
    let (side, other) = (side.schema(), semi.right.schema());
    let is_key = |key: &Expr| matches!(key, Expr::Column(column) if side.has_column(column));
    // The name of a column that both sides have would be ambiguous.
    let is_of_one = |column: &Column| side.has_column(column) != other.has_column(column);
    let compares = |filter: &Expr| {
        let is_safe = |node: &Expr| match node {
            Expr::Column(_) | Expr::Literal(..) | Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::Not(_) => true,
            Expr::BinaryExpr(binary) => {
                use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or};
                [And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or]
                    .contains(&binary.op)
            }
            _ => false,
        };
        matches!(filter.exists_dyn(|node| Ok(!is_safe(node))), Ok(false))
    };
    !semi.on.is_empty()
        && semi.on.iter().all(|(key, _)| is_key(key))
        && semi
            .filter
            .iter()
            .all(|filter| compares(filter) && filter.column_refs().into_iter().all(is_of_one))
}

/// Whether a plan returns all rows of its tables.
fn takes_all(plan: &LogicalPlan) -> bool {
    let selects = |node: &LogicalPlan| {
        Ok(match node {
            LogicalPlan::TableScan(scan) => !scan.filters.is_empty() || scan.fetch.is_some(),
            LogicalPlan::Join(join) => {
                join.filter.is_some() || !matches!(join.join_type, JoinType::Inner | JoinType::Left)
            }
            LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => false,
            _ => true,
        })
    };
    matches!(plan.exists_dyn(selects), Ok(false))
}

#[cfg(test)]
mod tests {
    use crate::query::Params;
    use crate::testing::{Score, latest, overlapping_commits, scores};

    /// Runs a query that returns one number, and returns that and the logical plan.
    async fn run(sql: &str) -> (i64, String) {
        use arrow::array::AsArray;
        use arrow::datatypes::Int64Type;

        let (_folder, table) = scores(&overlapping_commits()).await;
        let session = table.session().unwrap();
        let batches = session.collect(sql, &Params::default()).await.unwrap();
        let number = batches[0].column(0).as_primitive::<Int64Type>().value(0);
        let plan = session.context().sql(sql).await.unwrap().into_optimized_plan().unwrap();
        (number, plan.display_indent().to_string())
    }

    /// Whether a plan has a join of `upper` above one of `lower`.
    fn is_above(plan: &str, upper: &str, lower: &str) -> bool {
        let place = |name: &str| plan.lines().position(|line| line.trim_start().starts_with(name));
        place(upper).zip(place(lower)).is_some_and(|(upper, lower)| upper < lower)
    }

    #[tokio::test]
    async fn a_semi_join_goes_to_its_table_unless_another_one_selects_rows() {
        let all = latest(&overlapping_commits());
        let total = |game: i64| all.iter().filter(|score| score.1 == game).map(|score| score.2).sum::<i64>();
        let middle = all.iter().map(|score| total(score.1)).sum::<i64>() / all.len() as i64;
        let is_big = |score: &&Score| total(score.1) > middle;
        let pairs = |keeps: &dyn Fn(&Score, &Score) -> bool| {
            let of_one = |a: &Score| all.iter().filter(|b| b.0 == a.0 && keeps(a, b)).count();
            all.iter().map(of_one).sum::<usize>() as i64
        };
        let joined = "SELECT count(*) FROM t a JOIN t b ON a.player = b.player";
        let big = format!("SELECT game FROM t GROUP BY game HAVING sum(points) > {middle}");
        for (sql, expected, upper, lower) in [
            (
                format!("{joined} WHERE a.game IN ({big})"),
                pairs(&|a, _| is_big(&a)),
                "Inner Join:",
                "LeftSemi Join:",
            ),
            (
                format!("{joined} WHERE b.game IN ({big})"),
                pairs(&|_, b| is_big(&b)),
                "Inner Join:",
                "LeftSemi Join:",
            ),
            (
                format!("{joined} WHERE NOT EXISTS (SELECT * FROM ({big}) c WHERE c.game = a.game)"),
                pairs(&|a, _| !is_big(&a)),
                "Inner Join:",
                "LeftAnti Join:",
            ),
            // The other side selects, or both sides are compared.
            (
                format!("{joined} WHERE b.points < 500 AND a.game IN ({big})"),
                pairs(&|a, b| b.2 < 500 && is_big(&a)),
                "LeftSemi Join:",
                "Inner Join:",
            ),
            (
                format!(
                    "{joined} WHERE EXISTS (SELECT * FROM t c WHERE c.game = a.game AND c.points > b.points)"
                ),
                pairs(&|a, b| all.iter().any(|c| c.1 == a.1 && c.2 > b.2)),
                "LeftSemi Join:",
                "Inner Join:",
            ),
        ] {
            let (number, plan) = run(&sql).await;
            assert_eq!(number, expected, "{sql}\n{plan}");
            assert!(is_above(&plan, upper, lower), "{sql}\n{plan}");
        }
        // A key that cannot be computed for rows that the join drops is computed above it.
        let guarded = "SELECT count(*) FROM t a JOIN t b ON a.points = b.points AND a.points <> 0 \
                       WHERE 1000 / a.points IN (SELECT game - game FROM t)";
        let above = all.iter().filter(|a| a.2 != 0 && 1000 / a.2 == 0);
        let expected = above.map(|a| all.iter().filter(|b| b.2 == a.2).count()).sum::<usize>() as i64;
        let (number, plan) = run(guarded).await;
        assert_eq!(number, expected, "{plan}");
        assert!(is_above(&plan, "LeftSemi Join:", "Inner Join:"), "{plan}");
        // Rows that an outer join adds are of no table.
        let outer = format!(
            "SELECT count(*) FROM t a LEFT JOIN t b ON a.player = b.player AND b.points < 500 \
             WHERE NOT EXISTS (SELECT * FROM ({big}) c WHERE c.game = b.game)"
        );
        let of_one = |a: &Score| {
            let matches: Vec<&Score> = all.iter().filter(|b| b.0 == a.0 && b.2 < 500).collect();
            if matches.is_empty() { 1 } else { matches.iter().filter(|b| !is_big(b)).count() }
        };
        assert_eq!(run(&outer).await.0, all.iter().map(of_one).sum::<usize>() as i64);
    }
}
