//! Values of subqueries, once each.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinType, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CaseExpr, Column, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, replace_children_if_necessary};

use crate::query::walk::Walk;

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
        Ok(plan.transform_up_dyn(reduce)?.data)
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
    let mut keys = Vec::new();
    let mut signs = Vec::new();
    let mut restored = Vec::new();
    for (position, field) in schema.fields().iter().enumerate() {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), position));
        let value = if field.data_type().is_floating() {
            let name = format!("sign of {}", field.name());
            let place = schema.fields().len() + signs.len();
            let sign = Arc::new(Column::new(&name, place));
            signs.push((is_negative_zero(&column, field.data_type())?, name));
            with_sign(&column, sign, field.data_type())?
        } else {
            Arc::clone(&column)
        };
        keys.push((column, field.name().clone()));
        restored.push(ProjectionExpr { expr: value, alias: field.name().clone() });
    }
    let is_plain = signs.is_empty();
    keys.extend(signs);
    let first_step: Arc<dyn ExecutionPlan> = Arc::new(AggregateExec::try_new(
        AggregateMode::Partial,
        PhysicalGroupBy::new_single(keys),
        Vec::new(),
        Vec::new(),
        Arc::clone(plan),
        Arc::clone(&schema),
    )?);
    let distinct =
        if is_plain { first_step } else { Arc::new(ProjectionExec::try_new(restored, first_step)?) };
    // For instance, groups may turn a dictionary into plain values.
    Ok((distinct.schema() == schema).then_some(distinct))
}

/// Whether each group of a type stands for one value, except for the sign of a zero.
fn is_exact(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => !value.is_floating() && is_exact(value),
        DataType::RunEndEncoded(_, value) => !value.data_type().is_floating() && is_exact(value.data_type()),
        other => !other.is_nested(),
    }
}

fn negative_zero(data_type: &DataType) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(Arc::new(Literal::new(ScalarValue::Float64(Some(-0.0)).cast_to(data_type)?)))
}

/// Distinguishes the two zeros, which are one group, but which conditions of a join can tell apart:
/// arrow compares floating-point numbers in their total order.
fn is_negative_zero(column: &Arc<dyn PhysicalExpr>, data_type: &DataType) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(Arc::new(BinaryExpr::new(Arc::clone(column), Operator::Eq, negative_zero(data_type)?)))
}

/// Returns the value of a group, which is a positive zero for both zeros, with its sign.
fn with_sign(
    column: &Arc<dyn PhysicalExpr>,
    is_negative_zero: Arc<dyn PhysicalExpr>,
    data_type: &DataType,
) -> Result<Arc<dyn PhysicalExpr>> {
    let negative = (is_negative_zero, negative_zero(data_type)?);
    Ok(Arc::new(CaseExpr::try_new(None, vec![negative], Some(Arc::clone(column)))?))
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
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    use datafusion::physical_plan::{collect, displayable};
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::testing::joins::{Tables, answer, tables, without_rule};

    const CONDITIONS: [&str; 16] = [
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
        "a.points * 0.5::double IN (SELECT b.points * 0.25::double FROM big b)",
        "a.points * 0.5::double NOT IN (SELECT b.points * 0.25::double FROM big b WHERE b.game = a.game)
         OR a.game = 2",
        "(a.points * 0.5::double IN (SELECT nullif(b.points, 4)::double FROM big b)) IS NULL",
        // The two zeros are equal, and lead to different angles.
        "EXISTS (SELECT 1 FROM (SELECT game, CASE WHEN points > 2 THEN -0.0::double ELSE 0.0::double END
         AS zero FROM big) b WHERE b.game = a.game AND atan2(b.zero, -1.0::double) < a.points - 5)",
        "NOT EXISTS (SELECT 1 FROM (SELECT game, CASE WHEN points > 2 THEN -0.0::real ELSE 0.0::real END
         AS zero FROM big) b WHERE b.game = a.game AND atan2(b.zero, -1.0::real) < a.points - 5)
         OR a.game = 1",
    ];

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
        let twin = without_rule(ours, "DistinctMatches");
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
        let twin = without_rule(ours, "DistinctMatches");
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
    async fn groups_stay_as_they_are() {
        let Tables { ours, .. } = &tables().await;
        let condition = "a.game IN (SELECT game FROM big GROUP BY game HAVING count(*) > 1)";
        let (plan, ..) = reduction(ours, &format!("SELECT * FROM middle a WHERE {condition}")).await;
        let partial = plan.lines().filter(|line| line.contains("mode=Partial") && line.contains("aggr=[]"));
        assert!(plan.contains("Semi") && partial.count() == 0, "{plan}");
    }
}
