//! Statements before they reach a table: limits, parameters, the actions that a statement may take,
//! the values that its conditions allow for a column, rewrites of what DataFusion reads otherwise,
//! and plans.

mod calls;
mod conditions;
mod distinct_from;
mod explained;
mod joins_by_name;
mod limits;
mod list_parameters;
mod messages;
mod names;
mod params;
mod planning;
mod query_log;
mod repeated_columns;
mod repeated_ctes;
mod set_operations;
mod side_effects;
mod statements;
mod text_comparisons;
mod time_literals;
mod walk;

pub use crate::calls::call;
pub use crate::conditions::FixedColumns;
pub use crate::joins_by_name::has_outer_join_by_name;
pub use crate::limits::{SqlLimitError, check_condition, check_text, parse_within_limits};
pub use crate::list_parameters::{list_parameters, with_elements};
pub use crate::messages::{FILTER_FAILED, plain_message, plain_text};
pub use crate::names::{names_table, quoted_name};
pub use crate::params::{NOW, ParamError, Params, casts_of, parameters_of};
pub use crate::planning::plan_statement;
pub use crate::query_log::{QueryLog, is_query_log, read_query_log};
pub use crate::repeated_ctes::{mark_repeated_ctes, marked_cte};
pub use crate::set_operations::counts_equal_rows;
pub use crate::side_effects::{declared_change, side_effect};
pub use crate::statements::{Statement, StatementsError, plan_statements, read_statements};
pub use crate::text_comparisons::plain_text_comparisons;
pub use crate::time_literals::read_times_in_microseconds;
pub use crate::walk::{walk, walk_mut};
