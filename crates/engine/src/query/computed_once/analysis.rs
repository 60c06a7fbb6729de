//! Chooses the queries that are computed once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Expr, LogicalPlan, SubqueryAlias};
use datafusion::optimizer::AnalyzerRule;

use crate::query::computed_once::node::ComputedOnce;
use crate::query::walk::WalkPlan;
use evenkeel_sql::marked_cte;

/// Makes one computation of the copies of a query in WITH. Must be the last rule of the analysis,
/// since copies must be equal.
#[derive(Debug)]
pub(in crate::query) struct CtesComputedOnce;

impl AnalyzerRule for CtesComputedOnce {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let shared = shared_aliases(&plan)?;
        if shared.is_empty() {
            return Ok(plan);
        }
        let replaced = plan.transform_up_with_subqueries_dyn(|plan| {
            let Some((alias, name)) = marked(&plan).filter(|(alias, _)| shared.contains(alias.alias.table()))
            else {
                return Ok(Transformed::no(plan));
            };
            let (alias, name) = (alias.alias.table().to_owned(), name.to_owned());
            let copy = ComputedOnce { name, alias, query: Arc::new(plan) };
            Ok(Transformed::yes(copy.into_plan()))
        })?;
        Ok(replaced.data)
    }

    fn name(&self) -> &'static str {
        "ctes_computed_once"
    }
}

/// Returns the alias of a query in WITH, and the name of the query.
fn marked(plan: &LogicalPlan) -> Option<(&SubqueryAlias, &str)> {
    let LogicalPlan::SubqueryAlias(alias) = plan else { return None };
    Some((alias, marked_cte(alias.alias.table())?))
}

/// Returns the aliases of queries that are computed once.
fn shared_aliases(plan: &LogicalPlan) -> Result<HashSet<String>> {
    let mut copies: HashMap<String, Vec<Arc<LogicalPlan>>> = HashMap::new();
    let mut repeated = HashSet::new();
    plan.apply_with_subqueries_dyn(|plan| {
        if let Some((alias, _)) = marked(plan) {
            copies.entry(alias.alias.table().to_owned()).or_default().push(Arc::clone(&alias.input));
        }
        if let LogicalPlan::RecursiveQuery(query) = plan {
            repeated.extend(aliases_in(&query.recursive_term)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut shared = HashSet::new();
    for (alias, copies) in copies {
        let [first, others @ ..] = copies.as_slice() else { continue };
        // A recursive query reads the rows of the step before, each time others.
        let can_be_shared = !others.is_empty()
            && !repeated.contains(&alias)
            && others.iter().all(|other| other == first)
            && first.all_out_ref_exprs().is_empty();
        if can_be_shared && is_worth_sharing(first)? {
            shared.insert(alias);
        }
    }
    Ok(shared)
}

fn aliases_in(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut aliases = Vec::new();
    plan.apply_with_subqueries_dyn(|plan| {
        aliases.extend(marked(plan).map(|(alias, _)| alias.alias.table().to_owned()));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(aliases)
}

/// Whether a query is computed once: not if it only reads, joins and selects rows. Repeated, it
/// reads no more than the rows and columns that each place needs.
fn is_worth_sharing(plan: &LogicalPlan) -> Result<bool> {
    let mut is_worth_it = false;
    plan.apply_with_subqueries_dyn(|plan| {
        let is_costly = matches!(
            plan,
            LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Window(_)
                | LogicalPlan::Limit(_)
                | LogicalPlan::RecursiveQuery(_)
        );
        is_worth_it = is_costly || plan.expressions().iter().any(Expr::is_volatile);
        Ok(if is_worth_it { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_worth_it)
}
