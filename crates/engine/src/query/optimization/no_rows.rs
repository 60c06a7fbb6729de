//! Conditions that no row fulfils.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, Result, ScalarValue};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Replaces what returns no rows by an empty relation, which DataFusion's rules then propagate.
///
/// DataFusion 55 does so if the whole of a filter's condition is FALSE or NULL, but not if it is a
/// part, and not once the condition has moved into a scan or a join. Such conditions come from
/// `x IN (1, NULL)`, and from outer joins with `LIMIT 0`. A scan that stays would be read for
/// nothing, and its columns, constants by then, can make a plan whose order DataFusion rejects.
#[derive(Debug)]
pub(in crate::query) struct NoRows;

impl OptimizerRule for NoRows {
    fn name(&self) -> &'static str {
        "NoRows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let is_empty = match &plan {
            LogicalPlan::Filter(filter) => is_never_true(&filter.predicate),
            LogicalPlan::TableScan(scan) => scan.filters.iter().any(is_never_true),
            LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
                join.filter.as_ref().is_some_and(is_never_true)
            }
            _ => false,
        };
        if !is_empty {
            return Ok(Transformed::no(plan));
        }
        let schema = Arc::clone(plan.schema());
        Ok(Transformed::yes(LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema })))
    }
}

/// Whether a part of a condition is FALSE or NULL.
fn is_never_true(condition: &Expr) -> bool {
    let is_false = |part: &Expr| match part {
        Expr::Literal(ScalarValue::Boolean(value), _) => *value != Some(true),
        Expr::Literal(value, _) => value.is_null(),
        _ => false,
    };
    split_conjunction(condition).into_iter().any(is_false)
}

#[cfg(test)]
mod tests {
    use crate::query::Params;
    use crate::testing::{overlapping_commits, scores};

    #[tokio::test]
    async fn nothing_is_read_for_conditions_that_no_row_fulfils() {
        let (_folder, table) = scores(&overlapping_commits()).await;
        let session = table.session().unwrap();
        for sql in [
            "SELECT * FROM t WHERE player > 1 AND NULL",
            "SELECT * FROM t WHERE points > 1 AND game IN (NULL)",
            "SELECT * FROM t a JOIN t b ON a.player = b.player AND a.game < b.points AND NULL",
            // The columns of the empty side become NULL, and so does the condition.
            "SELECT a.player, b.points FROM (SELECT * FROM t WHERE game IN (5, 7, NULL)) a \
             FULL JOIN (SELECT * FROM t ORDER BY points LIMIT 0) b ON a.player = b.player \
             RIGHT JOIN (SELECT * FROM t ORDER BY player DESC LIMIT 1 OFFSET 1) c \
             ON b.player = c.player AND c.points IS NULL \
             WHERE b.points < a.points ORDER BY a.player DESC, b.player DESC, b.points, c.player DESC LIMIT 5",
        ] {
            let rows = session.collect(sql, &Params::default()).await.unwrap();
            assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 0, "{sql}");
            let plan = session.context().sql(sql).await.unwrap().into_optimized_plan().unwrap();
            let plan = plan.display_indent().to_string();
            assert!(plan.contains("EmptyRelation") && !plan.contains("TableScan"), "{sql}\n{plan}");
        }
    }

    #[tokio::test]
    async fn rows_stay_where_such_a_condition_is_not_all() {
        let (_folder, table) = scores(&overlapping_commits()).await;
        let session = table.session().unwrap();
        let rows = async |sql: &str| {
            let batches = session.collect(sql, &Params::default()).await.unwrap();
            batches.iter().map(|batch| batch.num_rows()).sum::<usize>()
        };
        let all = rows("SELECT * FROM t").await;
        for sql in [
            "SELECT * FROM t WHERE player IS NOT NULL OR NULL",
            "SELECT a.* FROM t a LEFT JOIN t b ON a.player = b.player AND NULL",
            "SELECT * FROM t WHERE NOT EXISTS (SELECT * FROM t b WHERE b.player = t.player AND NULL)",
        ] {
            assert_eq!(rows(sql).await, all, "{sql}");
        }
        assert_eq!(rows("SELECT count(*) FROM t WHERE NULL AND points > 1").await, 1);
    }
}
