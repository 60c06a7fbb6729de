//! Orders of the sides from which hash joins build their tables.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{JoinType, Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    replace_children_if_necessary,
};

use crate::query::optimization::nulls_of_joins::within_streams_without_knowledge;
use crate::query::walk::Walk;

/// Places sorts as the wrapped rule does, but without the orders of build sides.
///
/// A hash join returns the rows of its probe side in their order, each with its matches in the
/// order of the build side. DataFusion 55 takes the result for sorted by the one and then by the
/// other, which it is only if no two rows of the probe side are equal in their order: two rows with
/// k = 1 and the matches v = 5 and 7 give v = 5, 7, 5, 7. Sorts by (k, v), windows and groups over
/// such joins were wrong. While the wrapped rule runs, an [`UnorderedExec`] hides the order of each
/// build side, also one that the rule itself gives it. Afterwards a union with no rows, which all
/// codecs of plans know, hides those that are left:
///
/// ```text
/// hash join                    hash join
///   ├─ build side, by v          ├─ union
///   └─ probe side, by k   ──►    │    ├─ build side
///                                │    └─ no rows
///                                └─ probe side, by k
/// ```
#[derive(Debug)]
pub(in crate::query) struct BuildOrders {
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl BuildOrders {
    pub(in crate::query) fn new(rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { rule }
    }
}

impl PhysicalOptimizerRule for BuildOrders {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let hidden =
            plan.transform_up_dyn(|node| with_build_side(node, |side| Ok(UnorderedExec::new(side))))?;
        let placed = self.rule.optimize(hidden.data, config)?;
        let without_order = |side: Arc<dyn ExecutionPlan>| {
            if side.equivalence_properties().oeq_class().is_empty() {
                return Ok(side);
            }
            within_streams_without_knowledge(&side)
        };
        // Inputs are visited first: the sides of a join are shown by then.
        let shown = placed.transform_up_dyn(|node| match node.downcast_ref::<UnorderedExec>() {
            Some(unordered) => Ok(Transformed::yes(Arc::clone(&unordered.input))),
            None => with_build_side(node, without_order),
        })?;
        Ok(shown.data)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Changes the build side of a node, if the node is a join that would claim its order.
fn with_build_side(
    node: Arc<dyn ExecutionPlan>,
    change: impl Fn(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
    if !matches!(join.join_type(), JoinType::Inner | JoinType::Right) {
        return Ok(Transformed::no(node));
    }
    let sides = vec![change(Arc::clone(join.left()))?, Arc::clone(join.right())];
    replace_children_if_necessary(node, sides).map(Transformed::yes)
}

/// Rows of its input, in an order that is unknown.
#[derive(Debug)]
struct UnorderedExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl UnorderedExec {
    #[expect(clippy::new_ret_no_self, reason = "only used as a node of plans")]
    fn new(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let known = input.properties();
        let mut equivalences: EquivalenceProperties = known.eq_properties.clone();
        equivalences.clear_orderings();
        let properties = Arc::new(PlanProperties::new(
            equivalences,
            known.partitioning.clone(),
            known.emission_type,
            known.boundedness,
        ));
        Arc::new(Self { input, properties })
    }
}

impl DisplayAs for UnorderedExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnorderedExec")
    }
}

impl ExecutionPlan for UnorderedExec {
    fn name(&self) -> &'static str {
        "UnorderedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Self::new(input)),
            Err(children) => internal_err!("UnorderedExec has one input, not {}", children.len()),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("UnorderedExec has one input, not {}", inputs.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, RecordBatch};
    use arrow::datatypes::Int64Type;

    use crate::query::Params;
    use crate::testing::{Score, scores, session_on};

    /// Rows of three columns.
    fn rows(batches: &[RecordBatch]) -> Vec<[i64; 3]> {
        let rows_of = |batch: &RecordBatch| {
            let columns = [0, 1, 2].map(|column| batch.column(column).as_primitive::<Int64Type>().clone());
            let value = |row| [0, 1, 2].map(|column: usize| columns[column].value(row));
            (0..batch.num_rows()).map(value).collect::<Vec<_>>()
        };
        batches.iter().flat_map(rows_of).collect()
    }

    /// Joins of rows with equal first columns, the probe side's being repeated, by brute force.
    fn joined(probe: &[Score], build: &[Score]) -> Vec<[i64; 3]> {
        let mut rows = Vec::new();
        for one in probe {
            rows.extend(build.iter().filter(|other| other.0 == one.0).map(|other| [one.0, other.2, one.1]));
        }
        rows.sort_unstable();
        rows
    }

    #[tokio::test]
    async fn rows_of_joins_are_sorted_by_the_probe_side_and_then_by_the_build_side() {
        let values: Vec<Score> = (0..400).map(|row| (row / 8, row % 8, row * 37 % 101)).collect();
        let (_folder, table) = scores(&[values[..300].to_vec(), values[300..].to_vec()]).await;
        let mut first = values.clone();
        first.sort_unstable_by_key(|(player, game, points)| (*points, *player, *game));
        first.truncate(90);
        let expected = joined(&values, &first);
        let counted = |column: &str| {
            format!("CAST(count(*) OVER (PARTITION BY a.player, b.points) AS BIGINT) AS {column}")
        };
        let some = "(SELECT * FROM t ORDER BY points, player, game LIMIT 90)";
        for from in [
            format!("t a JOIN {some} b ON a.player = b.player"),
            format!("{some} b JOIN t a ON a.player = b.player"),
            format!("(SELECT * FROM t ORDER BY player) a JOIN {some} b ON a.player = b.player"),
            format!("t a LEFT JOIN {some} b ON a.player = b.player WHERE b.player IS NOT NULL"),
            format!("t a JOIN (SELECT * FROM {some} ORDER BY player, points) b USING (player)"),
        ] {
            for (cores, is_partitioned) in [(1, false), (2, false), (2, true), (5, false), (5, true)] {
                let session = session_on(&table, cores, is_partitioned);
                let collect =
                    async |sql: &str| rows(&session.collect(sql, &Params::default()).await.unwrap());
                let pairs = |rows: &[[i64; 3]]| rows.iter().map(|row| [row[0], row[1]]).collect::<Vec<_>>();

                let sql = format!("SELECT a.player, b.points, a.game FROM {from} ORDER BY 1, 2");
                let sorted = collect(&sql).await;
                assert_eq!(pairs(&sorted), pairs(&expected), "{sql} with {cores} cores");

                let some_of_them = collect(&format!("{sql} LIMIT 100")).await;
                assert_eq!(pairs(&some_of_them), pairs(&expected[..100]), "{sql} LIMIT 100");

                let sql = format!("SELECT a.player, b.points, {} FROM {from} ORDER BY 1, 2", counted("n"));
                for [player, points, count] in collect(&sql).await {
                    let equal = expected.iter().filter(|row| row[..2] == [player, points]).count();
                    assert_eq!(count, i64::try_from(equal).unwrap(), "{sql} with {cores} cores");
                }
            }
        }
    }
}
