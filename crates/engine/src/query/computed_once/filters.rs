//! Conditions of the copies.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::{conjunction, disjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::computed_once::ComputedOnce;

/// Computes no rows that no copy needs: if each copy has a condition, those that meet none of them.
///
/// ```text
/// WITH q AS (SELECT k, count(*) AS n FROM t GROUP BY k)
/// SELECT * FROM q AS a JOIN q AS b ON a.n = b.n WHERE a.k = 1 AND b.k = 2
///     q is computed for k = 1 OR k = 2
/// ```
#[derive(Debug)]
pub(in crate::query) struct FiltersOfCopies;

impl OptimizerRule for FiltersOfCopies {
    fn name(&self) -> &'static str {
        "FiltersOfCopies"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let conditions = conditions_of_all(&plan)?;
        if conditions.is_empty() {
            return Ok(Transformed::no(plan));
        }
        plan.transform_down_with_subqueries(|plan| {
            let Some(copy) = ComputedOnce::of(&plan).filter(|copy| !copy.is_filtered) else {
                return Ok(Transformed::no(plan));
            };
            let Some(condition) = conditions.get(&copy.alias) else { return Ok(Transformed::no(plan)) };
            let input = Filter::try_new(condition.clone(), Arc::new(copy.input.clone()))?;
            let input = LogicalPlan::Filter(input);
            let filtered = ComputedOnce { input, is_filtered: true, ..copy.clone() };
            Ok(Transformed::yes(filtered.into_plan()))
        })
    }
}

/// Returns the condition that the rows of each query have to meet, by the alias of its copies: none
/// of a query of which a copy needs all rows.
fn conditions_of_all(plan: &LogicalPlan) -> Result<HashMap<String, Expr>> {
    let mut copies: HashMap<String, usize> = HashMap::new();
    let mut conditions: HashMap<String, Vec<Expr>> = HashMap::new();
    plan.apply_with_subqueries(|plan| {
        if let Some(copy) = ComputedOnce::of(plan).filter(|copy| !copy.is_filtered) {
            *copies.entry(copy.alias.clone()).or_default() += 1;
        }
        if let LogicalPlan::Filter(filter) = plan
            && let Some(copy) = ComputedOnce::of(&filter.input).filter(|copy| !copy.is_filtered)
            && let Some(condition) = own_condition(&filter.predicate)?
        {
            conditions.entry(copy.alias.clone()).or_default().push(condition);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let all =
        conditions.into_iter().filter(|(alias, conditions)| copies.get(alias) == Some(&conditions.len()));
    let either = |(alias, conditions): (String, Vec<Expr>)| {
        let mut different: Vec<Expr> = Vec::with_capacity(conditions.len());
        for condition in conditions {
            if !different.contains(&condition) {
                different.push(condition);
            }
        }
        Some((alias, disjunction(different)?))
    };
    Ok(all.filter_map(either).collect())
}

/// Returns the part of a condition that depends on the values of a row alone.
fn own_condition(condition: &Expr) -> Result<Option<Expr>> {
    let mut own = Vec::new();
    for part in split_conjunction(condition) {
        let is_foreign = part.exists(|part| {
            Ok(matches!(
                part,
                Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_)
                    | Expr::OuterReferenceColumn(..)
            ))
        })?;
        if !is_foreign && !part.is_volatile() {
            own.push(part.clone());
        }
    }
    Ok(conjunction(own))
}
