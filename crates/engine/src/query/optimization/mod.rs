//! The rules by which plans are improved: DataFusion's own, corrected where they would change
//! answers, and ours.

pub(in crate::query) mod build_orders;
pub(in crate::query) mod distinct_matches;
pub(in crate::query) mod distinct_statistics;
pub(in crate::query) mod fewer_streams;
pub(in crate::query) mod filter_pushdown;
pub(in crate::query) mod float_groups;
pub(in crate::query) mod grouping_sets;
pub(in crate::query) mod guards;
pub(in crate::query) mod join_filters;
pub(in crate::query) mod join_order;
pub(in crate::query) mod joins_of_groups;
pub(in crate::query) mod limit_barrier;
pub(in crate::query) mod missing_sorts;
pub(in crate::query) mod nested_tops;
pub(in crate::query) mod no_rows;
pub(in crate::query) mod nullable_lists;
pub(in crate::query) mod nulls_of_joins;
pub(in crate::query) mod optimizer_rules;
pub(in crate::query) mod projection_pushdown;
pub(in crate::query) mod semi_joins_first;
pub(in crate::query) mod single_pass;
pub(in crate::query) mod whole_orders;
pub(in crate::query) mod yielding;
