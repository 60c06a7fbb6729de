//! Orders that nodes require, kept by the rules that move nodes.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// Moves sorts down as the wrapped rule does, unless an order is lost.
///
/// A plan that sorts by a constant computed in its streams is sorted by the rest alone. When DataFusion
/// 55 moves the merge of such streams below a projection, the constant above the merge counts as any
/// other column, and the check of the plan refuses it. The move only makes plans faster, so such a
/// plan stays as it is.
#[derive(Debug)]
pub(in crate::query) struct KeptOrder {
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
}

impl KeptOrder {
    pub(in crate::query) fn new(rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { rule }
    }
}

impl PhysicalOptimizerRule for KeptOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let optimized = self.rule.optimize(Arc::clone(&plan), config)?;
        unless_order_is_lost(optimized, plan)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

/// Returns the optimized plan, or the one before if only that has the orders that its nodes require.
pub(in crate::query) fn unless_order_is_lost(
    optimized: Arc<dyn ExecutionPlan>,
    before: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(if lacks_order(&optimized)? && !lacks_order(&before)? { before } else { optimized })
}

/// Whether a node requires an order that its input does not have.
fn lacks_order(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| {
        for (input, required) in node.children().into_iter().zip(node.required_input_ordering()) {
            let Some(required) = required else { continue };
            let properties = input.equivalence_properties();
            if !properties.ordering_satisfy_requirement(required.into_single())? {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::pushdown_sort::PushdownSort;

    use super::*;
    use crate::testing::joins::{Tables, answer, tables, with_own_rule};

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
        let found = answer(ours, sql).await;
        let rows: Vec<&str> = found.lines().filter(|line| line.contains(" 12 ")).collect();
        assert_eq!(rows, expected.collect::<Vec<_>>(), "{found}");
        let twin = with_own_rule(ours, Arc::new(PushdownSort::new()));
        let planned = twin.sql(sql).await.unwrap().create_physical_plan().await;
        assert!(planned.is_err(), "DataFusion keeps constants above merges: the rule may go");
    }
}
