//! Parsing of a text that must be a single query.

use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;

use crate::query::error::QueryError;
use evenkeel_sql::{counts_equal_rows, declared_change, has_outer_join_by_name, parse_within_limits};

/// Parses one query on existing tables. `names` lists them.
pub(in crate::query) fn parse_query(
    context: &SessionContext,
    state: &SessionState,
    names: &[String],
    sql: &str,
) -> Result<Statement, QueryError> {
    if sql.trim().is_empty() {
        return Err(QueryError::Empty);
    }
    let mut statements = parse_within_limits::<QueryError>(sql)?;
    let count = statements.len();
    let Some(statement) = statements.pop_front() else { return Err(QueryError::Empty) };
    if count > 1 {
        return Err(QueryError::Several { count });
    }
    if let Some(action) = declared_change(&statement) {
        return Err(QueryError::NotAQuery { action });
    }
    if has_outer_join_by_name(&statement) {
        return Err(QueryError::OuterJoinByName);
    }
    if counts_equal_rows(&statement) {
        return Err(QueryError::CountedRows);
    }
    for table in state.resolve_table_references(&statement)? {
        if !context.table_exist(table.clone())? {
            return Err(QueryError::UnknownTable { name: table.to_string(), known: names.join(", ") });
        }
    }
    Ok(statement)
}
