//! SQL before it reaches a table: parameters, the actions that a statement may take, and the values
//! that its conditions allow for a column.

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
mod query_log;
mod repeated_columns;
mod repeated_ctes;
mod set_operations;
mod side_effects;
mod statements;
mod text_comparisons;
mod time_literals;

pub use crate::sql::calls::call;
pub(crate) use crate::sql::conditions::FixedColumns;
pub(crate) use crate::sql::joins_by_name::has_outer_join_by_name;
pub use crate::sql::limits::{SqlLimitError, check_text};
pub(crate) use crate::sql::limits::{check_condition, parse_within_limits};
pub(crate) use crate::sql::list_parameters::{list_parameters, with_elements};
pub(crate) use crate::sql::messages::FILTER_FAILED;
pub use crate::sql::messages::{plain_message, plain_text};
pub(crate) use crate::sql::names::names_table;
pub use crate::sql::names::quoted_name;
pub(crate) use crate::sql::params::{NOW, casts_of, parameters_of};
pub use crate::sql::params::{ParamError, Params};
pub use crate::sql::query_log::{QueryLog, is_query_log, read_query_log};
pub use crate::sql::repeated_columns::{number_repeated_columns, repeats_a_column};
pub(crate) use crate::sql::repeated_ctes::{mark_repeated_ctes, marked_cte};
pub(crate) use crate::sql::set_operations::counts_equal_rows;
pub(crate) use crate::sql::side_effects::declared_change;
pub use crate::sql::side_effects::side_effect;
pub use crate::sql::statements::{Statement, StatementsError, plan_statements, read_statements};
pub use crate::sql::text_comparisons::plain_text_comparisons;
pub(crate) use crate::sql::time_literals::read_times_in_microseconds;
