//! The SQL of a statement that may be explained.

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

/// Returns the statement itself, or the one that it explains; `None` if it is no plain SQL.
pub(super) fn sql_of(statement: &mut Statement) -> Option<&mut ast::Statement> {
    match statement {
        Statement::Statement(statement) => Some(statement.as_mut()),
        Statement::Explain(explain) => sql_of(&mut explain.statement),
        _ => None,
    }
}
