//! Errors of DataFusion as messages for users.

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

use evenkeel_model::bounded::message;

/// Returns the message of the innermost cause, on one line, without DataFusion's stack traces.
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

/// Returns the text of an error that occurred while rows were read, on one line. If a filter
/// rejects a value, the text is the reason.
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

/// Message of arrow if a filter, evaluated while a file is read, rejects a value.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_filter_is_explained_by_its_cause() {
        for (text, expected) in [
            (
                "Arrow: Parquet argument error: Error evaluating filter predicate: ArrowError(DivideByZero)",
                "division by zero",
            ),
            (
                "Error evaluating filter predicate: CastError(\"Cannot cast 'x' to Int64\")",
                "Cannot cast 'x' to Int64; values are compared with values of their own type, text in single quotes",
            ),
            ("disk full\nat line 7", "disk full"),
        ] {
            assert_eq!(plain_text(text), expected);
        }
    }

    #[test]
    fn causes_are_found_below_what_datafusion_adds() {
        let cause = DataFusionError::External("the file is gone".into());
        let wrapped = DataFusionError::Context("while planning".to_owned(), Box::new(cause));
        assert_eq!(plain_message(&wrapped), "the file is gone");
        let parser = ParserError::ParserError("Expected: a table".to_owned());
        let message = plain_message(&DataFusionError::SQL(Box::new(parser), None));
        assert_eq!(message, "cannot read the SQL: Expected: a table");
    }
}
