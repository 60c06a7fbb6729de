//! Joins with few rows of a small table before the joins that they do not depend on.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, Projection};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Joins a filtered table to the table that it references before larger tables are joined.
///
/// DataFusion 55 joins tables in the order in which a query names them. The countries of suppliers
/// then select rows of all orders, instead of suppliers:
///
/// ```text
/// (suppliers join orders) join countries   ──►   (suppliers join countries) join orders
/// ```
/// Inner joins give the same rows in any order. A table goes below a join only if a condition
/// selects its rows, the tables that it passes have more rows, and the table that it is then joined
/// with has no fewer.
#[derive(Debug)]
pub(in crate::query) struct SelectiveJoinsFirst;

impl OptimizerRule for SelectiveJoinsFirst {
    fn name(&self) -> &'static str {
        "SelectiveJoinsFirst"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(join) = &plan else { return Ok(Transformed::no(plan)) };
        let Some(reordered) = reordered(join)? else { return Ok(Transformed::no(plan)) };
        // Parents may know columns by their place.
        let columns = plan.schema().columns().into_iter().map(Expr::Column).collect();
        Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(reordered))?)))
    }
}

/// Key columns of two plans that are joined, in pairs.
type Keys = Vec<(Expr, Expr)>;

/// Returns the inner joins from a join downwards in a better order; `None` if theirs is as good.
fn reordered(join: &Join) -> Result<Option<LogicalPlan>> {
    if !is_inner(join) {
        return Ok(None);
    }
    let below = match join.left.as_ref() {
        LogicalPlan::Join(below) => reordered(below)?,
        _ => None,
    };
    let left = below.clone().map_or_else(|| Arc::clone(&join.left), Arc::new);
    let moved = placed(&left, &join.right, &join.on, join)?;
    if below.is_none() && moved.is_none() {
        return Ok(None);
    }
    let Some(moved) = moved else {
        return Ok(Some(joined(&left, &join.right, &join.on, join.filter.clone(), join)?));
    };
    // The condition of a join may need columns that come together only at the top.
    Ok(Some(match (moved, join.filter.clone()) {
        (LogicalPlan::Join(top), Some(filter)) => {
            let filter = Some(top.filter.clone().map_or(filter.clone(), |own| own.and(filter)));
            joined(&top.left, &top.right, &top.on, filter, &top)?
        }
        (moved, Some(filter)) => LogicalPlan::Filter(Filter::try_new(filter, Arc::new(moved))?),
        (moved, None) => moved,
    }))
}

/// Returns `tree` joined with `selective` at the lowest place; `None` if that is the top.
fn placed(
    tree: &Arc<LogicalPlan>,
    selective: &Arc<LogicalPlan>,
    keys: &Keys,
    like: &Join,
) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Join(upper) = tree.as_ref() else { return Ok(None) };
    if !is_inner(upper) || upper.filter.is_some() || upper.null_equality != like.null_equality {
        return Ok(None);
    }
    if !selects(selective) {
        return Ok(None);
    }
    let place = |side: &Arc<LogicalPlan>, passed: &LogicalPlan| -> Result<Option<LogicalPlan>> {
        let (Some(few), Some(of_side), Some(of_passed)) = (rows(selective), rows(side), rows(passed)) else {
            return Ok(None);
        };
        // Of two small tables, neither passes the other again and again.
        if !has_keys(side, keys) || of_passed <= few {
            return Ok(None);
        }
        match placed(side, selective, keys, like)? {
            Some(lower) => Ok(Some(lower)),
            None if few <= of_side => joined(side, selective, keys, None, like).map(Some),
            None => Ok(None),
        }
    };
    if let Some(left) = place(&upper.left, &upper.right)? {
        return joined(&Arc::new(left), &upper.right, &upper.on, None, upper).map(Some);
    }
    let Some(right) = place(&upper.right, &upper.left)? else { return Ok(None) };
    // With fewer rows, the right side may go further down itself.
    let right = Arc::new(right);
    match placed(&upper.left, &right, &upper.on, upper)? {
        Some(lower) => Ok(Some(lower)),
        None => joined(&upper.left, &right, &upper.on, None, upper).map(Some),
    }
}

/// Returns an inner join of two plans, with the other properties of `like`.
fn joined(
    left: &Arc<LogicalPlan>,
    right: &Arc<LogicalPlan>,
    keys: &Keys,
    filter: Option<Expr>,
    like: &Join,
) -> Result<LogicalPlan> {
    Join::try_new(
        Arc::clone(left),
        Arc::clone(right),
        keys.clone(),
        filter,
        JoinType::Inner,
        like.join_constraint,
        like.null_equality,
        false,
    )
    .map(LogicalPlan::Join)
}

/// Whether rows are joined by columns of both sides.
fn is_inner(join: &Join) -> bool {
    let is_column =
        |(left, right): &(Expr, Expr)| matches!((left, right), (Expr::Column(_), Expr::Column(_)));
    join.join_type == JoinType::Inner && !join.on.is_empty() && join.on.iter().all(is_column)
}

/// Whether a plan has all left keys.
fn has_keys(plan: &LogicalPlan, keys: &Keys) -> bool {
    let schema = plan.schema();
    keys.iter().all(|(key, _)| matches!(key, Expr::Column(column) if schema.has_column(column)))
}

/// Whether conditions select rows of tables that are joined by columns.
fn selects(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => !scan.filters.is_empty() && scan.fetch.is_none(),
        LogicalPlan::Filter(_) => true,
        LogicalPlan::SubqueryAlias(alias) => selects(&alias.input),
        LogicalPlan::Projection(projection) => selects(&projection.input),
        LogicalPlan::Join(join) => is_inner(join) && (selects(&join.left) || selects(&join.right)),
        _ => false,
    }
}

/// Rows of the largest table in a plan; `None` if it is not known, or the plan has more than inner
/// joins of tables.
fn rows(plan: &LogicalPlan) -> Option<usize> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let statistics = source_as_provider(&scan.source).ok()?.statistics()?;
            statistics.num_rows.get_value().copied()
        }
        LogicalPlan::Filter(filter) => rows(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => rows(&alias.input),
        LogicalPlan::Projection(projection) => rows(&projection.input),
        LogicalPlan::Join(join) if is_inner(join) => Some(rows(&join.left)?.max(rows(&join.right)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use crate::testing::joins::{Names, Statement, answer, tables};

    /// The tables of a logical plan, in the order in which they are joined.
    async fn scans(context: &SessionContext, sql: &str) -> Vec<String> {
        let plan = context.sql(sql).await.unwrap().into_optimized_plan().unwrap();
        let lines = plan.display_indent().to_string();
        let table = |line: &str| {
            line.trim().strip_prefix("TableScan: ").map(|scan| scan.split(' ').next().map(str::to_owned))
        };
        lines.lines().filter_map(table).flatten().collect()
    }

    #[tokio::test]
    async fn the_order_of_joins_changes_no_row() {
        let tables = tables().await;
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut moved = 0;
        for _ in 0..150 {
            let statement = Statement::with_inner_joins(&mut random);
            let sql = statement.sql(Names::Shared);
            let expected = answer(&tables.plain, &statement.sql(Names::Distinct)).await;
            assert_eq!(answer(&tables.ours, &sql).await, expected, "{sql}");
            moved += usize::from(scans(&tables.ours, &sql).await != scans(&tables.plain, &sql).await);
        }
        assert!(moved >= 15, "{moved}");
    }

    #[tokio::test]
    async fn few_rows_come_first_and_columns_stay_in_their_places() {
        let tables = tables().await;
        let joined =
            "SELECT * FROM middle a JOIN big b ON a.game = b.game JOIN small c ON a.player = c.player";
        for (conditions, is_moved) in [("c.points < 2", true), ("true", false), ("a.points < 2", false)] {
            let sql = format!("{joined} WHERE {conditions} ORDER BY a.player, b.player, c.player");
            assert_eq!(answer(&tables.ours, &sql).await, answer(&tables.plain, &sql).await, "{sql}");
            let scans = scans(&tables.ours, &sql).await;
            let place = |table: &str| scans.iter().position(|scan| scan == table).unwrap();
            assert_eq!(place("small") < place("big"), is_moved, "{scans:?}");
        }
        // Two small tables stay in the order in which they were written.
        let sql = "SELECT count(*) FROM big a JOIN small b ON a.game = b.game JOIN small c ON a.player = c.player \
                   WHERE b.points < 3 AND c.points < 3";
        assert_eq!(answer(&tables.ours, sql).await, answer(&tables.plain, sql).await);
    }
}
