//! The rules by which DataFusion improves plans, corrected if they would change answers.

use std::sync::Arc;

use datafusion::optimizer::OptimizerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;

use crate::query::analysis::signless_zeros::SignlessZeros;
use crate::query::analysis::truth_tests::TruthTests;
use crate::query::optimization::build_orders::BuildOrders;
use crate::query::optimization::distinct_matches::DistinctMatches;
use crate::query::optimization::distinct_statistics::DistinctIsCounted;
use crate::query::optimization::filter_pushdown::SafeFilterPushdown;
use crate::query::optimization::float_groups::FloatGroups;
use crate::query::optimization::grouping_sets::SetsOfGroups;
use crate::query::optimization::guards::GuardedConditions;
use crate::query::optimization::join_order::JoinOrder;
use crate::query::optimization::joins_of_groups::JoinsOfGroups;
use crate::query::optimization::limit_barrier::{LimitBarrier, LimitsOverSorts};
use crate::query::optimization::missing_sorts::MissingSorts;
use crate::query::optimization::nested_tops::NestedTops;
use crate::query::optimization::no_rows::NoRows;
use crate::query::optimization::nullable_lists::NullableLists;
use crate::query::optimization::nulls_of_joins::NullsOfJoins;
use crate::query::optimization::projection_pushdown::SafeProjectionPushdown;
use crate::query::optimization::semi_joins_first::SemiJoinsFirst;
use crate::query::optimization::whole_orders::WholeOrders;

type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;
type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Adds the corrections to DataFusion's rules for logical plans.
pub(in crate::query) fn corrected_logical_rules(rules: &[LogicalRule]) -> Vec<LogicalRule> {
    let mut corrected = Vec::with_capacity(rules.len() + 6);
    for rule in rules {
        if rule.name() == "simplify_expressions" {
            corrected.push(Arc::new(NullableLists) as LogicalRule);
        }
        corrected.push(Arc::clone(rule));
        if rule.name() == "simplify_expressions" {
            corrected.extend([Arc::new(SignlessZeros::Lookups) as LogicalRule, Arc::new(TruthTests)]);
        }
        if rule.name() == "push_down_filter" {
            corrected.extend([Arc::new(NoRows) as LogicalRule, Arc::new(SemiJoinsFirst)]);
            corrected.push(Arc::new(JoinOrder));
        }
    }
    corrected.push(Arc::new(SignlessZeros::Orders));
    corrected
}

/// Adds the corrections to DataFusion's rules for physical plans.
pub fn corrected_rules(rules: Vec<Rule>) -> Vec<Rule> {
    let last_pushdown = rules.iter().rposition(|rule| is_filter_pushdown(rule.as_ref()));
    let mut corrected = Vec::with_capacity(rules.len() + 8);
    corrected.extend([Arc::new(SetsOfGroups) as Rule, Arc::new(NullsOfJoins)]);
    for (position, rule) in rules.into_iter().enumerate() {
        let places_sorts = is_sort_placement(rule.as_ref());
        if places_sorts {
            corrected.extend([Arc::new(LimitsOverSorts) as Rule, Arc::new(JoinsOfGroups)]);
        }
        if Some(position) == last_pushdown {
            corrected.extend([
                Arc::new(DistinctMatches) as Rule,
                Arc::new(FloatGroups),
                Arc::new(LimitBarrier),
                Arc::new(NestedTops),
            ]);
        }
        if is_check(rule.as_ref()) {
            corrected.push(Arc::new(MissingSorts));
        }
        corrected.push(if is_projection_pushdown(rule.as_ref()) {
            Arc::new(SafeProjectionPushdown::new(rule))
        } else if is_filter_pushdown(rule.as_ref()) {
            Arc::new(SafeFilterPushdown::new(rule))
        } else if is_of_statistics(rule.as_ref()) {
            Arc::new(DistinctIsCounted::new(rule))
        } else if places_sorts {
            Arc::new(BuildOrders::new(rule))
        } else {
            rule
        });
        if places_sorts {
            corrected.push(Arc::new(WholeOrders));
        }
    }
    // Other rules merge streams, too.
    corrected.push(Arc::new(WholeOrders));
    // Even after the check of the plan: an equality in a CASE is no constant to it.
    corrected.push(Arc::new(GuardedConditions));
    corrected
}

fn is_sort_placement(rule: &dyn PhysicalOptimizerRule) -> bool {
    rule.name() == "EnsureRequirements"
}

fn is_check(rule: &dyn PhysicalOptimizerRule) -> bool {
    rule.name() == "SanityCheckPlan"
}

/// Whether a rule pushes conditions down; the last one those that are found at run time.
pub(in crate::query) fn is_filter_pushdown(rule: &dyn PhysicalOptimizerRule) -> bool {
    rule.name().starts_with("FilterPushdown")
}

fn is_projection_pushdown(rule: &dyn PhysicalOptimizerRule) -> bool {
    rule.name() == "ProjectionPushdown"
}

fn is_of_statistics(rule: &dyn PhysicalOptimizerRule) -> bool {
    rule.name() == "aggregate_statistics"
}

#[cfg(test)]
mod tests {
    use datafusion::optimizer::Optimizer;
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    #[test]
    fn each_correction_finds_its_place() {
        let names = |rules: &[Rule]| rules.iter().map(|rule| rule.name().to_owned()).collect::<Vec<_>>();
        let logical = corrected_logical_rules(&Optimizer::new().rules);
        let logical = logical.iter().map(|rule| rule.name()).collect::<Vec<_>>();
        let place = logical.iter().position(|name| *name == "NullableLists").unwrap();
        assert_eq!(logical[place + 1..][..3], ["simplify_expressions", "SignlessZeros", "TruthTests"]);
        let place = logical.iter().position(|name| *name == "push_down_filter").unwrap();
        assert_eq!(logical[place + 1..][..3], ["NoRows", "SemiJoinsFirst", "JoinOrder"]);

        let rules = corrected_rules(PhysicalOptimizer::new().rules);
        let names_of_all = names(&rules);
        let after = |name: &str| {
            let position = names_of_all.iter().position(|rule| rule == name).unwrap();
            names_of_all[position + 1].as_str()
        };
        assert_eq!(names_of_all[..2], ["SetsOfGroups", "NullsOfJoins"]);
        assert_eq!(after("LimitsOverSorts"), "JoinsOfGroups");
        assert_eq!(after("JoinsOfGroups"), "EnsureRequirements");
        assert_eq!(after("EnsureRequirements"), "WholeOrders");
        assert_eq!(after("DistinctMatches"), "FloatGroups");
        assert_eq!(after("FloatGroups"), "LimitBarrier");
        assert_eq!(after("LimitBarrier"), "NestedTops");
        assert_eq!(after("NestedTops"), "FilterPushdown(Post)");
        assert_eq!(after("MissingSorts"), "SanityCheckPlan");
        assert_eq!(after("SanityCheckPlan"), "WholeOrders");
        assert_eq!(names_of_all.last().map(String::as_str), Some("GuardedConditions"));
        for (is_pushdown, wrapper) in [
            (is_projection_pushdown as fn(&dyn PhysicalOptimizerRule) -> bool, "SafeProjectionPushdown"),
            (is_filter_pushdown, "SafeFilterPushdown"),
            (is_of_statistics, "DistinctIsCounted"),
            (is_sort_placement, "BuildOrders"),
        ] {
            let pushdowns = rules.iter().filter(|rule| is_pushdown(rule.as_ref()));
            assert!(pushdowns.clone().count() > 0);
            assert!(pushdowns.into_iter().all(|rule| format!("{rule:?}").starts_with(wrapper)));
        }
    }
}
