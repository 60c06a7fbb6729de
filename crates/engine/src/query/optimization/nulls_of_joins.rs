//! Rows that outer joins fill with NULL, whose orders and constants must not be assumed.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, replace_children_if_necessary,
};

use crate::query::walk::Walk;

/// Hides from outer joins which columns are constant in a side that they fill with NULL.
///
/// DataFusion 55 takes a column that is constant in that side for one that is so in the result,
/// where it is NULL in rows without a match: `(SELECT * FROM t WHERE k = 3) a RIGHT JOIN t b ON a.k
/// = b.k ORDER BY a.k, b.k` was not sorted by a.k. A union with no rows gives the same rows and
/// knows nothing about them:
///
/// ```text
/// right join               right join
///   ├─ rows of k = 3         ├─ union
///   └─ all rows       ──►    │    ├─ rows of k = 3
///                            │    └─ no rows
///                            └─ all rows
/// ```
/// Must run before the rules that rely on orders.
#[derive(Debug)]
pub(in crate::query) struct NullsOfJoins;

impl PhysicalOptimizerRule for NullsOfJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let hide = |node: Arc<dyn ExecutionPlan>| {
            let fills = filled_sides(node.as_ref());
            let mut hides = false;
            let mut sides = Vec::with_capacity(fills.len());
            for (side, is_filled) in node.children().into_iter().zip(fills) {
                let is_known = is_filled && !side.equivalence_properties().constants().is_empty();
                hides |= is_known;
                sides.push(if is_known { without_knowledge(side)? } else { Arc::clone(side) });
            }
            if !hides {
                return Ok(Transformed::no(node));
            }
            replace_children_if_necessary(node, sides).map(Transformed::yes)
        };
        Ok(plan.transform_up_dyn(hide)?.data)
    }

    fn name(&self) -> &'static str {
        "NullsOfJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a node fills its left and its right side with NULL.
fn filled_sides(node: &dyn ExecutionPlan) -> [bool; 2] {
    let join_type = (node.downcast_ref::<HashJoinExec>().map(|join| *join.join_type()))
        .or_else(|| node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type()))
        .or_else(|| node.downcast_ref::<SortMergeJoinExec>().map(SortMergeJoinExec::join_type));
    match join_type {
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        _ => [false, false],
    }
}

/// Returns a node with the same rows of which neither orders nor constants are known.
pub(super) fn without_knowledge(rows: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    UnionExec::try_new(vec![Arc::clone(rows), Arc::new(EmptyExec::new(rows.schema()))])
}

/// Like [`without_knowledge`], but the rows stay in their streams, whose hashes remain known.
pub(super) fn within_streams_without_knowledge(
    rows: &Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    match rows.output_partitioning().clone() {
        hashed @ Partitioning::Hash(..) => {
            let nothing = Arc::new(EmptyExec::new(rows.schema()));
            let nothing = Arc::new(RepartitionExec::try_new(nothing, hashed)?);
            Ok(Arc::new(InterleaveExec::try_new(vec![Arc::clone(rows), nothing])?))
        }
        partitions if partitions.partition_count() == 1 => {
            Ok(Arc::new(CoalescePartitionsExec::new(without_knowledge(rows)?)))
        }
        _ => without_knowledge(rows),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, RecordBatch};
    use arrow::datatypes::Int64Type;

    use crate::query::Params;
    use crate::testing::{Score, scores, session_on};

    /// Rows of two columns; NULL is greater than any number.
    fn rows(batches: &[RecordBatch]) -> Vec<[i64; 2]> {
        let value = |value: Option<i64>| value.unwrap_or(i64::MAX);
        let rows_of = |batch: &RecordBatch| {
            let [a, b] = [0, 1].map(|column| batch.column(column).as_primitive::<Int64Type>().clone());
            a.iter().zip(b.iter()).map(|(a, b)| [value(a), value(b)]).collect::<Vec<_>>()
        };
        batches.iter().flat_map(rows_of).collect()
    }

    #[tokio::test]
    async fn results_are_sorted_by_columns_that_are_constant_in_one_side() {
        let values: Vec<Score> = (0..400).map(|row| (row, 0, row % 7)).collect();
        let (_folder, table) = scores(&[values[..300].to_vec(), values[300..].to_vec()]).await;
        let some = "(SELECT player, points FROM t WHERE player = 77)";
        let named = "(SELECT player, 5::BIGINT AS points FROM t WHERE player > 390)";
        for (one, join, other) in [
            (some, "RIGHT JOIN", "t"),
            ("t", "LEFT JOIN", some),
            (some, "FULL JOIN", "t"),
            ("t", "FULL JOIN", some),
            ("t", "LEFT JOIN", named),
            (named, "RIGHT JOIN", "t"),
            (named, "FULL JOIN", "(SELECT * FROM t WHERE points = 5)"),
        ] {
            for condition in ["a.player = b.player", "a.player <= b.player AND a.player + b.player < 300"] {
                for cores in [1, 2, 5] {
                    let session = session_on(&table, cores, false);
                    for order in [
                        "a.player, b.player",
                        "b.player, a.player",
                        "a.points, b.player",
                        "b.points, a.player",
                    ] {
                        let sorted = order.replace(',', " NULLS LAST,");
                        let sql = format!(
                            "SELECT {order} FROM {one} a {join} {other} b ON {condition} ORDER BY {sorted} NULLS LAST"
                        );
                        let rows = rows(&session.collect(&sql, &Params::default()).await.unwrap());
                        assert!(rows.is_sorted() && rows.len() > 50, "{sql} with {cores} cores");
                    }
                }
            }
        }
    }
}
