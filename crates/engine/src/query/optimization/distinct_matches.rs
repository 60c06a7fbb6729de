//! Values of subqueries, once each.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, replace_children_if_necessary};

/// Removes repeated rows from the side of a join that only decides whether there is a match.
///
/// DataFusion 55 goes through all pairs of a semi join, an anti join or a mark join: `x IN (SELECT
/// y FROM t)` with 10 distinct values in 300,000 rows on both sides through 9 billion. The first
/// step of an aggregation removes what repeats within a stream, and gives up by itself if little
/// does. Rows that are left twice do no harm, so the second step is not needed.
///
/// Must run after rows were distributed, so that repeated ones are removed before that.
#[derive(Debug)]
pub(in crate::query) struct DistinctMatches;

impl PhysicalOptimizerRule for DistinctMatches {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let reduce = |node: Arc<dyn ExecutionPlan>| {
            let Some(side) = deciding_side(node.as_ref()) else { return Ok(Transformed::no(node)) };
            let mut sides: Vec<Arc<dyn ExecutionPlan>> = node.children().into_iter().cloned().collect();
            let Some(input) = sides.get_mut(side) else { return Ok(Transformed::no(node)) };
            let Some(reduced) = distinct(input)? else { return Ok(Transformed::no(node)) };
            *input = reduced;
            Ok(Transformed::yes(replace_children_if_necessary(node, sides)?))
        };
        Ok(plan.transform_up(reduce)?.data)
    }

    fn name(&self) -> &'static str {
        "DistinctMatches"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the position of the side whose rows are looked for only; `None` if a join returns both.
fn deciding_side(node: &dyn ExecutionPlan) -> Option<usize> {
    let hashed = node.downcast_ref::<HashJoinExec>().map(HashJoinExec::join_type);
    let nested = node.downcast_ref::<NestedLoopJoinExec>().map(NestedLoopJoinExec::join_type);
    match hashed.or(nested)? {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => Some(1),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => Some(0),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => None,
    }
}

/// Removes repeated rows from a plan; `None` if none repeat, or if equal rows cannot be recognized.
fn distinct(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if plan.is::<RepartitionExec>() || plan.is::<CoalescePartitionsExec>() {
        let [input] = plan.children()[..] else { return Ok(None) };
        let Some(input) = distinct(input)? else { return Ok(None) };
        return Ok(Some(replace_children_if_necessary(Arc::clone(plan), vec![input])?));
    }
    let schema = plan.schema();
    if schema.fields().is_empty() {
        // All rows are the same.
        return Ok(Some(Arc::new(LocalLimitExec::new(Arc::clone(plan), 1))));
    }
    if is_grouped(plan, schema.fields().len()) || !schema.fields().iter().all(|f| is_exact(f.data_type())) {
        return Ok(None);
    }
    let keys = schema.fields().iter().enumerate().map(|(position, field)| {
        (Arc::new(Column::new(field.name(), position)) as Arc<dyn PhysicalExpr>, field.name().clone())
    });
    let keys = PhysicalGroupBy::new_single(keys.collect());
    let input = Arc::clone(plan);
    let first_step = AggregateExec::try_new(
        AggregateMode::Partial,
        keys,
        Vec::new(),
        Vec::new(),
        input,
        Arc::clone(&schema),
    )?;
    // For instance, groups may turn a dictionary into plain values.
    Ok((first_step.schema() == schema).then(|| Arc::new(first_step) as Arc<dyn ExecutionPlan>))
}

/// Whether each group of a type stands for one value. A group of zeros loses their sign, which
/// conditions of a join can distinguish.
fn is_exact(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_exact(value),
        DataType::RunEndEncoded(_, value) => is_exact(value.data_type()),
        other => !other.is_floating() && !other.is_nested(),
    }
}

/// Whether rows are groups, or those of them that fulfil a condition, with all of their keys.
fn is_grouped(plan: &Arc<dyn ExecutionPlan>, columns: usize) -> bool {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return aggregate.group_expr().expr().len() <= columns;
    }
    plan.downcast_ref::<FilterExec>().is_some_and(|filter| is_grouped(filter.input(), columns))
}

#[cfg(test)]
mod tests {
    use datafusion::common::tree_node::TreeNodeRecursion;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::physical_plan::{collect, displayable};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::testing::joins::{Tables, answer, tables};

    const CONDITIONS: [&str; 11] = [
        "a.game IN (SELECT game FROM big)",
        "a.game IN (SELECT game FROM big) OR a.points > 3",
        "a.game NOT IN (SELECT game FROM big WHERE points > 1)",
        "a.game NOT IN (SELECT nullif(game, 3) FROM big)",
        "nullif(a.game, 3) NOT IN (SELECT game FROM middle WHERE game > 5) OR a.points = 0",
        "(a.game IN (SELECT nullif(game, 3) FROM middle)) IS NULL",
        "EXISTS (SELECT 1 FROM big b WHERE b.game = a.game AND b.points > a.points)",
        "NOT EXISTS (SELECT 1 FROM big b WHERE b.game = a.game AND b.points > a.points + 3)",
        "EXISTS (SELECT 1 FROM big b WHERE b.points < a.points - 3)",
        "NOT EXISTS (SELECT 1 FROM big b WHERE b.points > a.points + 5) OR a.game = 4",
        "a.game IN (SELECT b.game FROM big b WHERE b.points = a.points)",
    ];

    /// Returns the same session without the rule.
    fn twin(context: &SessionContext) -> SessionContext {
        let state = context.state();
        let others = state.physical_optimizers().iter().filter(|rule| rule.name() != "DistinctMatches");
        let others = others.cloned().collect();
        let state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(others);
        SessionContext::new_with_state(state.build())
    }

    /// Runs a query and returns its plan and the rows into the first steps of aggregations and out
    /// of them.
    async fn reduction(context: &SessionContext, sql: &str) -> (String, usize, usize) {
        let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
        let (mut before, mut after) = (0, 0);
        plan.apply(|node| {
            if node.downcast_ref::<AggregateExec>().is_some_and(|step| *step.mode() == AggregateMode::Partial)
            {
                let rows = |node: &dyn ExecutionPlan| node.metrics().unwrap().output_rows().unwrap();
                before += rows(node.children()[0].as_ref());
                after += rows(node.as_ref());
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        (displayable(plan.as_ref()).indent(false).to_string(), before, after)
    }

    #[tokio::test]
    async fn answers_do_not_depend_on_how_often_a_match_is_found() {
        let Tables { ours, .. } = &tables().await;
        let twin = twin(ours);
        for table in ["big", "middle"] {
            for condition in CONDITIONS {
                let sql =
                    format!("SELECT * FROM {table} a WHERE {condition} ORDER BY a.player, a.game, a.points");
                assert_eq!(answer(ours, &sql).await, answer(&twin, &sql).await, "{sql}");
                let (plan, before, after) = reduction(ours, &sql).await;
                assert!(before > 0 && after < before, "{sql}: {before} to {after}\n{plan}");
                assert_eq!(reduction(&twin, &sql).await.1, 0);
            }
        }
    }

    #[tokio::test]
    async fn one_row_answers_whether_there_are_any() {
        let Tables { ours, .. } = &tables().await;
        let twin = twin(ours);
        for condition in [
            "EXISTS (SELECT b.points FROM big b WHERE b.game > 1)",
            "NOT EXISTS (SELECT b.points FROM big b WHERE b.game > 1)",
            "NOT EXISTS (SELECT b.points FROM big b WHERE b.points > 1000)",
            "EXISTS (SELECT b.points FROM big b WHERE b.game > 1 ORDER BY b.points)",
            "EXISTS (SELECT b.points FROM big b WHERE b.game > 1 ORDER BY random())",
            "a.points = 0 OR NOT EXISTS (SELECT b.points FROM big b WHERE b.game > 1)",
            "7 NOT IN (SELECT 7 FROM big b WHERE b.game > 1)",
            "7 IN (SELECT 7 FROM big b WHERE b.game > 1) OR a.points = 0",
        ] {
            let sql = format!("SELECT * FROM big a WHERE {condition} ORDER BY a.player, a.game, a.points");
            assert_eq!(answer(ours, &sql).await, answer(&twin, &sql).await, "{sql}");
            let plan = ours.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
            collect(Arc::clone(&plan), ours.task_ctx()).await.unwrap();
            let mut joins = 0;
            plan.apply(|node| {
                if let Some(side) = deciding_side(node.as_ref()) {
                    let decides = node.children()[side];
                    let rows = decides.metrics().and_then(|metrics| metrics.output_rows()).unwrap();
                    let plan = displayable(decides.as_ref()).indent(false).to_string();
                    let stops = plan.contains("fetch=1") || !condition.contains("EXISTS");
                    assert!(rows <= 4 && stops, "{sql}: {rows} rows\n{plan}");
                    joins += 1;
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
            assert!(joins > 0, "{sql}\n{}", displayable(plan.as_ref()).indent(false));
        }
    }

    #[tokio::test]
    async fn fractions_and_groups_stay_as_they_are() {
        let Tables { ours, .. } = &tables().await;
        for condition in [
            "a.points / 2.0::double IN (SELECT b.points * 0.5::double FROM big b)",
            "a.game IN (SELECT game FROM big GROUP BY game HAVING count(*) > 1)",
        ] {
            let sql = format!("SELECT * FROM middle a WHERE {condition}");
            let (plan, ..) = reduction(ours, &sql).await;
            let partial =
                plan.lines().filter(|line| line.contains("mode=Partial") && line.contains("aggr=[]"));
            assert!(plan.contains("Semi") && partial.count() == 0, "{plan}");
        }
    }
}
