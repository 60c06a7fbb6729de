//! Analyzer rules for SQL that DataFusion would answer differently. They run before plans are
//! optimized; the functions that they insert are here too.

pub(in crate::query) mod checked;
pub(in crate::query) mod checked_sum;
pub(in crate::query) mod dates_as_times;
pub(in crate::query) mod decimal_arithmetic;
pub(in crate::query) mod drawn_values;
pub(in crate::query) mod exact_subqueries;
pub(in crate::query) mod expression_schema;
pub(in crate::query) mod float_frames;
pub(in crate::query) mod interval_literals;
pub(in crate::query) mod later_values;
pub(in crate::query) mod nested_comparisons;
pub(in crate::query) mod opaque_casts;
pub(in crate::query) mod operation;
pub(in crate::query) mod plain_nans;
pub(in crate::query) mod repeated_orders;
pub(in crate::query) mod signless_zeros;
mod subquery_plans;
pub(in crate::query) mod truth_tests;
pub(in crate::query) mod unnested_rows;
pub(in crate::query) mod whole_division;
pub(in crate::query) mod window_frames;
