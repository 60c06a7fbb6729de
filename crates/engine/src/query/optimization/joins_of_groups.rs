//! Joins with groups, by the keys of the groups alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter, JoinOn};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;

use crate::query::walk::Walk;

/// Looks for groups by their keys, and compares their results afterwards.
///
/// A join passes the keys of its build side down to the scans of the other side, through an
/// aggregation if they are all keys of its groups. DataFusion 55 also joins by results, which keeps
/// all groups: to find the parts that cost the least, it computes the least cost of every part.
///
/// ```text
/// parts semi join costs            parts semi join costs
///   on part = part, cost = min  ──►   on part = part, if cost = min
/// ```
/// Each key has one group, so that each row of the build side is compared with one result at most.
/// The build side must be small, or it would select few groups. Must run after the build side was
/// chosen, and before rows are distributed by the keys of joins.
#[derive(Debug)]
pub(in crate::query) struct JoinsOfGroups;

impl PhysicalOptimizerRule for JoinsOfGroups {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let change = |node: Arc<dyn ExecutionPlan>| {
            let changed = node.downcast_ref::<HashJoinExec>().map(joined_by_keys).transpose()?.flatten();
            Ok(changed.map_or_else(|| Transformed::no(Arc::clone(&node)), Transformed::yes))
        };
        Ok(plan.transform_up_dyn(change)?.data)
    }

    fn name(&self) -> &'static str {
        "JoinsOfGroups"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns the join by the keys of groups; `None` if no small build side looks for groups, or if
/// there are no other columns to compare.
fn joined_by_keys(join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let is_matching = matches!(join.join_type(), JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi);
    if !is_matching
        || *join.partition_mode() != PartitionMode::CollectLeft
        || join.null_equality() != NullEquality::NullEqualsNothing
        || join.null_aware
    {
        return Ok(None);
    }
    let columns = join.on().iter().map(|(left, right)| Some((column(left)?, column(right)?)));
    let Some(columns) = columns.collect::<Option<Vec<(usize, usize)>>>() else { return Ok(None) };
    let Some(keys) = keys_of_groups(join.right()) else { return Ok(None) };
    if !keys.iter().all(|key| columns.iter().any(|(_, right)| right == key)) {
        return Ok(None);
    }
    let (mut on, mut compared): (JoinOn, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    for (pair, (left, right)) in join.on().iter().zip(columns) {
        // Hash tables hold equal zeros together, which a comparison tells apart, and which lists
        // may contain.
        let data_type = pair.0.data_type(&join.left().schema())?;
        if keys.contains(&right) || data_type.is_floating() || data_type.is_nested() {
            on.push(pair.clone());
        } else {
            compared.push((left, right));
        }
    }
    if compared.is_empty() {
        return Ok(None);
    }
    let filter = compared.into_iter().try_fold(join.filter().cloned(), |filter, (left, right)| {
        with_equality(filter, join, left, right).map(Some)
    })?;
    HashJoinExecBuilder::from(join)
        .with_on(on)
        .with_filter(filter)
        .recompute_properties()
        .build_exec()
        .map(Some)
}

fn column(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// Places of the keys of groups among the columns of a plan; `None` if its rows are no groups, or
/// it does not return all of their keys.
fn keys_of_groups(plan: &Arc<dyn ExecutionPlan>) -> Option<BTreeSet<usize>> {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let keys = aggregate.group_expr();
        let has_keys = keys.is_single() && !keys.expr().is_empty() && !aggregate.aggr_expr().is_empty();
        return (has_keys
            && *aggregate.mode() != AggregateMode::Partial
            && *aggregate.mode() != AggregateMode::PartialReduce)
            .then(|| (0..keys.expr().len()).collect());
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return keys_of_groups(filter.input()).filter(|_| filter.projection().is_none());
    }
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let keys = keys_of_groups(projection.input())?;
    let place = |key: usize| projection.expr().iter().position(|output| column(&output.expr) == Some(key));
    keys.into_iter().map(place).collect()
}

/// Adds the equality of a column of each side to the condition of a join.
fn with_equality(
    filter: Option<JoinFilter>,
    join: &HashJoinExec,
    left: usize,
    right: usize,
) -> Result<JoinFilter> {
    let (mut indices, mut fields, condition) = match &filter {
        Some(filter) => (
            filter.column_indices().to_vec(),
            filter.schema().fields().to_vec(),
            Some(Arc::clone(filter.expression())),
        ),
        None => (Vec::new(), Vec::new(), None),
    };
    let mut column_of = |index: usize, side: JoinSide, schema: &Schema| -> Arc<dyn PhysicalExpr> {
        indices.push(ColumnIndex { index, side });
        fields.push(Arc::new(schema.field(index).clone()));
        Arc::new(Column::new(schema.field(index).name(), fields.len() - 1))
    };
    let left = column_of(left, JoinSide::Left, &join.left().schema());
    let right = column_of(right, JoinSide::Right, &join.right().schema());
    let equality: Arc<dyn PhysicalExpr> = Arc::new(BinaryExpr::new(left, Operator::Eq, right));
    let condition = match condition {
        Some(condition) => Arc::new(BinaryExpr::new(condition, Operator::And, equality)),
        None => equality,
    };
    Ok(JoinFilter::new(condition, indices, Arc::new(Schema::new(fields))))
}

#[cfg(test)]
mod tests {

    use crate::testing::joins::{answer, plan, tables, without_rule};

    #[tokio::test]
    async fn groups_are_joined_by_their_keys() {
        let tables = tables().await;
        let (ours, twin) = (&tables.ours, without_rule(&tables.ours, "JoinsOfGroups"));
        let groups = "(SELECT game, min(points) AS least, count(*) AS n FROM big GROUP BY game)";
        for from in [
            format!("middle a JOIN {groups} b ON a.game = b.game AND a.points = b.least"),
            format!("{groups} b JOIN middle a ON a.game = b.game AND a.points = b.least"),
            format!("middle a JOIN {groups} b ON a.game = b.game AND a.points = b.least AND a.player = b.n"),
            format!("middle a JOIN {groups} b ON a.game = b.game AND a.points = b.least AND a.player < b.n"),
            format!("middle a LEFT JOIN {groups} b ON a.game = b.game AND a.points = b.least"),
        ] {
            let sql = format!("SELECT a.player, a.game, a.points FROM {from} ORDER BY 1, 2, 3");
            assert_eq!(answer(ours, &sql).await, answer(&twin, &sql).await, "{sql}");
        }
        for (condition, is_changed) in [
            (format!("EXISTS (SELECT 1 FROM {groups} b WHERE b.game = a.game AND b.least = a.points)"), true),
            (
                format!(
                    "EXISTS (SELECT 1 FROM {groups} b WHERE b.game = a.game AND b.least = a.points AND b.least > -3)"
                ),
                true,
            ),
            ("points = (SELECT min(points) FROM big b WHERE b.game = a.game)".to_owned(), true),
            (format!("game IN (SELECT game FROM {groups} b)"), false),
            // Several groups may have the same result.
            (format!("points IN (SELECT least FROM {groups} b)"), false),
            // Joins and comparisons differ for floating-point numbers and lists.
            (
                "points * 0.5::double = (SELECT min(points * 0.5::double) FROM big b WHERE b.game = a.game)"
                    .to_owned(),
                false,
            ),
            ("[points] = (SELECT min([points]) FROM big b WHERE b.game = a.game)".to_owned(), false),
        ] {
            let sql = format!("SELECT * FROM small a WHERE {condition} ORDER BY player");
            assert_eq!(answer(ours, &sql).await, answer(&twin, &sql).await, "{sql}");
            assert_eq!(plan(ours, &sql).await != plan(&twin, &sql).await, is_changed, "{sql}");
        }
    }
}
