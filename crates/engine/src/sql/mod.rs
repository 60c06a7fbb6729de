//! SQL before it reaches a table: parameters, the actions that a statement may take, and the values
//! that its conditions allow for a column.

mod conditions;
pub mod limits;
mod params;
mod statements;
mod time_literals;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::parser::ParserError;

pub use crate::sql::conditions::fixed_values;
pub use crate::sql::limits::SqlLimitError;
pub use crate::sql::params::{NOW, ParamError, Params, Untyped, parameters_of};
pub use crate::sql::statements::{Statement, StatementsError, plan_statements, read_statements};
pub use crate::sql::time_literals::read_times_in_microseconds;
use evenkeel_model::bounded::message;

/// The message of the innermost cause, on one line, without DataFusion's stack traces.
#[must_use]
pub fn plain_message(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let mut known: Vec<&str> = valid_fields.iter().map(Column::name).collect();
                known.sort_unstable();
                known.dedup();
                format!(
                    "there is no column '{}'; there are: {} (text is written in single quotes)",
                    field.name(),
                    known.join(", ")
                )
            }
            other => other.to_string(),
        },
        DataFusionError::SQL(parser, _) => match parser.as_ref() {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                format!("cannot read the SQL: {message}")
            }
            other => other.to_string(),
        },
        DataFusionError::External(cause) => cause.to_string(),
        other => return plain_text(&other.strip_backtrace()),
    };
    message(text.lines().next().unwrap_or(&text))
}

/// Text of an error that occurred while rows were read, on one line. If a filter cannot take a
/// value, the text is the reason.
#[must_use]
pub fn plain_text(text: &str) -> String {
    let text = match failed_filter(text) {
        Some("DivideByZero") => "division by zero".to_owned(),
        Some(cause) => {
            format!("{cause}; values are compared with values of their own type, text in single quotes")
        }
        None => text.to_owned(),
    };
    message(text.lines().next().unwrap_or(&text))
}

/// Message with which arrow reports that a filter, evaluated while a file is read, cannot take a
/// value.
pub const FILTER_FAILED: &str = "Error evaluating filter predicate";

/// Extracts the reason why a filter failed from the errors around it.
fn failed_filter(text: &str) -> Option<&str> {
    let (_, cause) = text.split_once(FILTER_FAILED)?;
    // An error with a message, or one without, such as a division by zero.
    let quoted = cause.split_once("Error(\"").and_then(|(_, rest)| rest.split_once("\")"));
    let cause = match quoted {
        Some((message, _)) => message,
        None => cause
            .split_once("ArrowError(")
            .map_or(cause, |(_, name)| name.split([',', ')']).next().unwrap_or(name)),
    };
    Some(cause.trim_start_matches([':', ' ']))
}

/// Side effect of a plan, such as "write files"; `None` if the plan is a query. Looks below an
/// EXPLAIN ANALYZE too, since it runs its statement.
///
/// # Errors
/// None that a caller can cause.
pub fn side_effect(plan: &LogicalPlan) -> Result<Option<&'static str>, DataFusionError> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        found = match node {
            LogicalPlan::Ddl(_) => Some("change what tables there are"),
            LogicalPlan::Dml(_) => Some("change rows"),
            LogicalPlan::Copy(_) => Some("write files"),
            LogicalPlan::Statement(_) => Some("change the session"),
            _ => None,
        };
        Ok(if found.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
