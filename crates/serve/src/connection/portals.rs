//! Prepared statements, portals and cursors of a connection.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use evenkeel_engine::query::QueryDescription;
use pgwire::api::Type;

use crate::failure::{Failure, SqlState};
use crate::parameters::Parameter;
use crate::rows::Rows;
use crate::statement::{Command, Piece};
use crate::values::Format;

/// Maximum number of prepared statements of a connection.
pub(super) const MAX_STATEMENTS: usize = 1000;
/// Maximum number of portals and cursors of a connection; each holds a running query.
pub(super) const MAX_PORTALS: usize = 64;

/// A statement that was parsed.
pub(super) struct Prepared {
    pub(super) piece: Option<Piece>,
    pub(super) command: Option<Command>,
    pub(super) declared: Vec<Option<Type>>,
    /// The description of the statement, filled in when first needed.
    pub(super) description: Option<Arc<QueryDescription>>,
}

/// A statement with the values of its parameters.
pub(super) struct Portal {
    pub(super) statement: Arc<PortalStatement>,
    /// Values by position; `None` for values that the query does not need.
    pub(super) parameters: Vec<Option<Parameter>>,
    pub(super) formats: Vec<Format>,
    pub(super) state: PortalState,
}

pub(super) struct PortalStatement {
    pub(super) piece: Piece,
    pub(super) command: Command,
}

pub(super) enum PortalState {
    Ready,
    Running(Box<Rows>),
    Done,
}

/// A cursor, opened by DECLARE.
pub(super) struct Cursor {
    pub(super) rows: Option<Box<Rows>>,
    pub(super) schema: SchemaRef,
}

pub(super) fn format_of(code: i16) -> Result<Format, Failure> {
    match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        other => Err(Failure::new(SqlState::PROTOCOL_VIOLATION, format!("unsupported format code: {other}"))),
    }
}

pub(super) fn no_statement(name: &str) -> Failure {
    Failure::new(SqlState::NO_SUCH_STATEMENT, format!("prepared statement \"{name}\" does not exist"))
}

pub(super) fn no_cursor(name: &str) -> Failure {
    Failure::new(SqlState::NO_SUCH_CURSOR, format!("cursor \"{name}\" does not exist"))
}

pub(super) fn too_many_portals() -> Failure {
    let message = format!("a connection has at most {MAX_PORTALS} open portals and cursors; close some");
    Failure::new(SqlState::LIMIT, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_text_or_binary() {
        assert_eq!(format_of(0).unwrap(), Format::Text);
        assert_eq!(format_of(1).unwrap(), Format::Binary);
        for wrong in [-1, 2] {
            let failure = format_of(wrong).unwrap_err();
            assert_eq!(failure.code, SqlState::PROTOCOL_VIOLATION);
            assert!(!failure.is_fatal && failure.message.ends_with(&wrong.to_string()), "{failure}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let statement = no_statement("s");
        assert_eq!(statement.code, SqlState::NO_SUCH_STATEMENT);
        assert_eq!(statement.message, "prepared statement \"s\" does not exist");
        let cursor = no_cursor("c");
        assert_eq!(
            (cursor.code, cursor.message.as_str()),
            (SqlState::NO_SUCH_CURSOR, "cursor \"c\" does not exist")
        );
        let portals = too_many_portals();
        assert_eq!(portals.code, SqlState::LIMIT);
        assert!(portals.message.contains(&format!("at most {MAX_PORTALS} open portals")), "{portals}");
    }
}
