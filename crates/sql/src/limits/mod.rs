//! Limits on SQL before it is parsed and planned: parser, planner and evaluator recurse over a
//! statement, and the time of some steps doubles with each level.
//!
//! ```text
//! text -> bytes -> tokens: count, depth of the tree they can form, numbers out of range -> parsed
//!      -> tables, each counted once per expansion of a WITH query that names it -> planned
//! ```
//! The text is measured rather than the tree: parsing a tree that is too deep, or even dropping it,
//! overflows the stack.

mod error;
mod nesting;
mod numbers;
mod tables;
mod text;

use std::collections::VecDeque;

use datafusion::error::DataFusionError;
use datafusion::sql::parser::{DFParser, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::distinct_from::bind_distinct_from;
use crate::explained::sql_of;
use crate::joins_by_name::resolve_using;
pub use crate::limits::error::SqlLimitError;
pub(super) use crate::limits::tables::check_tables;
pub use crate::limits::text::check_text;
use crate::text_comparisons::plain_text_comparisons;

/// Parses SQL within the limits.
///
/// # Errors
/// [`SqlLimitError`] if the SQL exceeds them, or an error of the parser.
pub fn parse_within_limits<E: From<SqlLimitError> + From<DataFusionError>>(
    sql: &str,
) -> Result<VecDeque<Statement>, E> {
    check_text(sql)?;
    let mut statements = DFParser::parse_sql(sql)?;
    statements.iter_mut().for_each(bind_distinct_from);
    statements.iter_mut().filter_map(sql_of).for_each(plain_text_comparisons);
    statements.iter().try_for_each(check_tables)?;
    statements.iter_mut().for_each(resolve_using);
    Ok(statements)
}

/// Checks that text is one condition and nothing more, so that it is safe after WHERE.
///
/// # Errors
/// [`SqlLimitError`] if the text exceeds the limits, or an error of the parser if it is not one
/// condition.
pub fn check_condition<E: From<SqlLimitError> + From<DataFusionError>>(text: &str) -> Result<(), E> {
    check_text(text)?;
    let mut parser = DFParserBuilder::new(text).build()?;
    parser.parse_expr()?;
    let next = parser.parser.peek_token();
    if next.token != Token::EOF {
        let problem = format!("the condition ends before '{}'; a statement cannot follow it", next.token);
        return Err(DataFusionError::Plan(problem).into());
    }
    Ok(())
}
