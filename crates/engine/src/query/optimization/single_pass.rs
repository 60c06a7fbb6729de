//! Plans that one pass of DataFusion's logical rules improves as much as several do.
//!
//! By default, all rules run until a pass changes nothing, so at least twice if the first changed
//! anything. A second pass may combine what others have moved: conditions of nested queries, of
//! joins and of groups, and expressions that are computed once for several uses. A query of one
//! table whose conditions compare columns with constants has nothing to move, and its planning
//! takes a sixth less time.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, LogicalPlan, Operator};

/// Returns the state with as many passes of its logical rules as a plan needs.
pub(in crate::query) fn with_passes_for(plan: &LogicalPlan, mut state: SessionState) -> SessionState {
    if is_one_block(plan) {
        state.config_mut().options_mut().optimizer.max_passes = 1;
    }
    state
}

/// Whether a plan reads one table, with at most one condition on its rows, one grouping and one
/// list of results.
fn is_one_block(plan: &LogicalPlan) -> bool {
    let (mut node, mut filters, mut groups, mut results) = (plan, 0, 0, 0);
    loop {
        if has_subquery(node) {
            return false;
        }
        node = match node {
            LogicalPlan::Sort(sort) => sort.input.as_ref(),
            LogicalPlan::Limit(limit) => limit.input.as_ref(),
            LogicalPlan::Projection(projection) => {
                results += 1;
                projection.input.as_ref()
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                groups += 1;
                input.as_ref()
            }
            LogicalPlan::Aggregate(aggregate) => {
                groups += 1;
                aggregate.input.as_ref()
            }
            LogicalPlan::Filter(filter) if compares_with_constants(&filter.predicate) => {
                filters += 1;
                filter.input.as_ref()
            }
            LogicalPlan::SubqueryAlias(alias) if matches!(*alias.input, LogicalPlan::TableScan(_)) => {
                alias.input.as_ref()
            }
            LogicalPlan::TableScan(_) => return filters <= 1 && groups <= 1 && results <= 1,
            _ => return false,
        };
    }
}

/// Whether a condition is made of comparisons of columns with constants.
fn compares_with_constants(condition: &Expr) -> bool {
    let is_operand = |operand: &Expr| matches!(operand, Expr::Column(_)) || !operand.any_column_refs();
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            compares_with_constants(left) && compares_with_constants(right)
        }
        Expr::Not(part) => compares_with_constants(part),
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => is_operand(left) && is_operand(right),
        Expr::IsNull(part) | Expr::IsNotNull(part) => is_operand(part),
        Expr::Like(like) => is_operand(&like.expr) && is_operand(&like.pattern),
        Expr::Between(between) => {
            [&between.expr, &between.low, &between.high].into_iter().all(|part| is_operand(part))
        }
        Expr::InList(list) => is_operand(&list.expr) && list.list.iter().all(is_operand),
        other => is_operand(other),
    }
}

/// Whether an expression of a node contains a query.
fn has_subquery(node: &LogicalPlan) -> bool {
    let is_query = |part: &Expr| {
        Ok(matches!(
            part,
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
        ))
    };
    let mut found = false;
    let looked = node.apply_expressions(|expression| {
        found |= expression.exists(is_query)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || looked.is_err()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use arrow::compute::cast;
    use arrow::datatypes::FieldRef;
    use datafusion::physical_plan::displayable;

    use super::*;
    use crate::testing::{create, ingest, session_on};

    const TABLE: &str = "CREATE TABLE t (k Int64 NOT NULL, at Timestamp NOT NULL, name Utf8, amount Double,
        price Decimal(12, 2), day Date, flag Bool, PRIMARY KEY (at, k)) PARTITION BY HASH(k)
        WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 4)";

    /// The plans to run statements, with one pass and with several.
    async fn plans(statements: &[String]) -> Vec<[String; 2]> {
        let (_folder, mut table) = create(TABLE).await;
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let fields = table.spec().schema().fields().iter();
        let column = |field: &FieldRef| (field.name().clone(), cast(&keys, field.data_type()).unwrap());
        let rows = RecordBatch::try_from_iter(fields.map(column).collect::<Vec<_>>()).unwrap();
        ingest(&mut table, rows).await;
        let session = session_on(&table, 2, false);
        let mut plans = Vec::new();
        for statement in statements {
            let state = session.context().state();
            let plan = state.create_logical_plan(statement).await.unwrap();
            assert!(is_one_block(&plan), "{statement}");
            let one = with_passes_for(&plan, state.clone());
            assert_eq!(one.config().options().optimizer.max_passes, 1);
            let shown = async |state: SessionState| {
                let plan = state.create_physical_plan(&plan).await.unwrap();
                // Each pass gives new numbers to expressions that are computed once.
                let plan = displayable(plan.as_ref()).indent(false).to_string();
                let plan = plan.replace("__common_expr_2", "__common_expr_1");
                format!("{statement}\n{plan}")
            };
            plans.push([shown(one).await, shown(state).await]);
        }
        plans
    }

    #[tokio::test]
    async fn one_pass_improves_a_query_of_one_table_as_much_as_several_do() {
        let conditions = [
            "",
            "WHERE k = 7",
            "WHERE at >= TIMESTAMP '1970-01-01' AND at < TIMESTAMP '1970-01-02' AND name LIKE '1%'",
            "WHERE NOT (k > 3 OR amount < 1.5) AND (flag OR name IS NULL) AND 1 + 1 = 2",
            "WHERE day > '1970-01-02' AND day <> DATE '1970-01-05' AND price > 10 AND price BETWEEN 3 AND k",
            "WHERE k IN (1, 2, 3) AND name NOT IN ('y', 'z') AND name <> coalesce(NULL, 'x')",
            "WHERE k = 3 AND k = 4",
            "WHERE false",
            "WHERE at < now() - INTERVAL '1 hour'",
        ];
        let results = [
            "SELECT *  FROM t WHERE_ ORDER BY at DESC, k LIMIT 10 OFFSET 5",
            "SELECT name, amount * 2 AS twice, amount * 2 + 1 FROM t AS u WHERE_",
            "SELECT count(*), sum(amount), min(name), avg(price), count(amount + 1) FROM t WHERE_",
            "SELECT name, count(*) AS n, count(DISTINCT k) FROM t WHERE_ GROUP BY name ORDER BY n DESC LIMIT 3",
            "SELECT count(DISTINCT name) FROM t WHERE_",
            "SELECT DISTINCT flag, upper(name) FROM t WHERE_",
            "SELECT date_trunc('hour', at) AS hour, flag, max(price), sum(amount) FILTER (WHERE k > 3)
             FROM t WHERE_ GROUP BY date_trunc('hour', at), flag ORDER BY hour, flag",
            "SELECT name, sum(amount) / count(amount), sum(amount) FROM t WHERE_ GROUP BY GROUPING SETS ((name), ())",
            "SELECT 1, 'x', name FROM t WHERE_ LIMIT 0",
        ];
        let statements =
            results.iter().flat_map(|result| conditions.map(|part| result.replace("WHERE_", part)));
        let statements: Vec<String> = statements.collect();
        let mut empty = 0;
        for [one, several] in plans(&statements).await {
            // Several passes also take the operators off a table without rows.
            let is_known_to_be_empty =
                several.contains("EmptyExec") || several.contains("PlaceholderRowExec");
            assert!(one == several || is_known_to_be_empty, "{one}\n{several}");
            empty += usize::from(is_known_to_be_empty);
        }
        assert!(empty < statements.len() / 2, "{empty}");
    }

    #[tokio::test]
    async fn other_queries_are_improved_until_nothing_changes() {
        let (_folder, table) = create(TABLE).await;
        let state = session_on(&table, 2, false).context().state();
        for sql in [
            "SELECT name, count(*) FROM t WHERE k > 3 GROUP BY name HAVING count(*) > 1",
            "SELECT a FROM (SELECT k + 1 AS a FROM t) WHERE a > 5",
            "SELECT k FROM t WHERE amount = (SELECT max(amount) FROM t)",
            "SELECT k FROM t WHERE k IN (SELECT k FROM t WHERE flag)",
            "SELECT t.k FROM t JOIN t AS u ON t.k = u.k",
            "SELECT k FROM t WHERE k % 10 BETWEEN 3 AND 5",
            "SELECT k FROM t WHERE coalesce(name, 'n') <> 'n'",
            "SELECT k FROM t UNION ALL SELECT k FROM t",
            "SELECT k, row_number() OVER (ORDER BY at) FROM t",
        ] {
            let plan = state.create_logical_plan(sql).await.unwrap();
            let passes = with_passes_for(&plan, state.clone()).config().options().optimizer.max_passes;
            assert_eq!(passes, state.config().options().optimizer.max_passes, "{sql}");
        }
    }
}
