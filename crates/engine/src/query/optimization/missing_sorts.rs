//! Sorts that the rules of DataFusion leave out.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{
    BoundedWindowAggExec, WindowAggExec, get_ordered_partition_by_indices,
};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputOrderMode, replace_children_if_necessary,
};

use crate::query::optimization::nulls_of_joins::within_streams_without_knowledge;
use crate::query::walk::Walk;

/// Sorts the inputs of nodes that require an order which these do not have.
///
/// DataFusion 55 moves a sort by (k, count) below a semi join and leaves it out above a grouping by
/// k, whose rows it is sure to differ in k. The join, however, is not known to keep that, and the
/// check of the plan refuses the window above: `SELECT ..., rank() OVER (PARTITION BY k ORDER BY
/// count) FROM (SELECT k, count(*) ... GROUP BY k) WHERE EXISTS (...)`. Likewise, a merge of
/// streams that are sorted by a constant moves below the projection that makes the constant any
/// other column. Must run before that check, after the rules that place and move sorts.
#[derive(Debug)]
pub(in crate::query) struct MissingSorts;

impl PhysicalOptimizerRule for MissingSorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sorted = |node: Arc<dyn ExecutionPlan>| {
            let mut is_changed = false;
            let mut inputs = Vec::new();
            for (input, required) in node.children().into_iter().zip(node.required_input_ordering()) {
                let mut input = Arc::clone(input);
                if let Some(required) = required {
                    let order = required.into_single();
                    let known = input.equivalence_properties();
                    let is_half_sorted = !sorts_its_partitions(&node)?;
                    if !known.ordering_satisfy_requirement(order.clone())? || is_half_sorted {
                        if is_half_sorted {
                            // Otherwise DataFusion would also treat this sort as satisfied by the
                            // shorter order.
                            input = within_streams_without_knowledge(&input)?;
                        }
                        let keeps_streams = input.output_partitioning().partition_count() > 1;
                        let sort = SortExec::new(LexOrdering::from(order), input);
                        input = Arc::new(sort.with_preserve_partitioning(keeps_streams));
                        is_changed = true;
                    }
                }
                inputs.push(input);
            }
            Ok(match is_changed {
                true => Transformed::yes(replace_children_if_necessary(node, inputs)?),
                false => Transformed::no(node),
            })
        };
        Ok(plan.transform_up_dyn(sorted)?.data)
    }

    fn name(&self) -> &'static str {
        "MissingSorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether the input of a window that needs its partitions sorted is sorted by all of their
/// columns, as the node itself finds out. DataFusion 55 leaves out a sort by (k, count) above a
/// grouping by k, whose rows differ in k, but then the node counts k alone as sorted, and fails.
fn sorts_its_partitions(node: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let (windows, input) = if let Some(window) = node.downcast_ref::<WindowAggExec>() {
        (window.window_expr(), window.input())
    } else if let Some(window) = node.downcast_ref::<BoundedWindowAggExec>() {
        if window.input_order_mode != InputOrderMode::Sorted {
            return Ok(true);
        }
        (window.window_expr(), window.input())
    } else {
        return Ok(true);
    };
    let Some(first) = windows.first() else { return Ok(true) };
    let columns = first.partition_by();
    Ok(get_ordered_partition_by_indices(columns, input)?.len() == columns.len())
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::UInt64Type;

    use crate::query::Params;
    use crate::testing::joins::{Tables, answer, tables};
    use crate::testing::{Score, scores, session_on};

    #[tokio::test]
    async fn windows_over_groups_below_semi_joins_are_sorted() {
        let values: Vec<Score> = (0..300).map(|row| (row % 50, row / 50, row * 7 % 11)).collect();
        let (_folder, table) = scores(&[values[..200].to_vec(), values[200..].to_vec()]).await;
        for condition in
            ["EXISTS (SELECT 1 FROM t b WHERE a.player = b.player)", "a.player IN (SELECT player FROM t)"]
        {
            for cores in [1, 2, 5] {
                let session = session_on(&table, cores, false);
                let sql = format!(
                    "SELECT rank() OVER (PARTITION BY a.player ORDER BY a.n) FROM \
                     (SELECT player, count(*) AS n FROM t GROUP BY player) a WHERE {condition}"
                );
                let rows = session.collect(&sql, &Params::default()).await.unwrap();
                let ranks =
                    rows.iter().flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values());
                assert_eq!(ranks.copied().collect::<Vec<_>>(), [1; 50], "{sql} with {cores} cores");
            }
        }
    }

    #[tokio::test]
    async fn windows_over_groups_of_sorted_rows_are_sorted_by_all_their_columns() {
        let values: Vec<Score> = (0..300).map(|row| (row % 50, row / 50, row * 7 % 11)).collect();
        let (_folder, table) = scores(&[values[..200].to_vec(), values[200..].to_vec()]).await;
        let limited = "(SELECT player, points FROM t ORDER BY player DESC, points, game LIMIT 120)";
        for (rows, groups) in [("t", 50), (limited, 20)] {
            for window in [
                "count(*) OVER (PARTITION BY player, n)",
                "count(*) OVER (PARTITION BY n, player)",
                "count(*) OVER (PARTITION BY player, n ORDER BY player DESC)",
                "rank() OVER (PARTITION BY n, player ORDER BY n)",
                "count(*) OVER (PARTITION BY player, n ORDER BY n ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
            ] {
                for cores in [1, 2, 5] {
                    let session = session_on(&table, cores, false);
                    let sql = format!(
                        "SELECT CAST({window} AS BIGINT UNSIGNED) FROM \
                         (SELECT player, count(*) AS n FROM {rows} GROUP BY player)"
                    );
                    let rows = session.collect(&sql, &Params::default()).await.unwrap();
                    let values =
                        rows.iter().flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values());
                    assert_eq!(values.copied().collect::<Vec<_>>(), vec![1; groups], "{sql}, {cores} cores");
                }
            }
        }
    }

    #[tokio::test]
    async fn constants_of_an_outer_join_without_matches_can_be_sorted_by() {
        let Tables { ours, .. } = &tables().await;
        let sql = "SELECT b.player AS g0, a.game AS g1, c.game AS g2, c.player AS g3
            FROM (SELECT * FROM big WHERE player = 15 LIMIT 5) a
            FULL JOIN big b ON a.player = b.player
            RIGHT JOIN big c ON b.player = c.player AND b.game IS NULL AND b.points > 3
            ORDER BY b.player, a.game DESC, c.game DESC, c.player LIMIT 2";
        // The players whose game is the last of 13.
        let players: Vec<i64> = (0..240).filter(|player| player * 7 % 13 == 12).take(2).collect();
        let expected = players.iter().map(|player| format!("|    |    | 12 | {player:<2} |"));
        let table = answer(ours, sql).await;
        let rows: Vec<&str> = table.lines().filter(|line| line.contains(" 12 ")).collect();
        assert_eq!(rows, expected.collect::<Vec<_>>(), "{table}");
    }
}
