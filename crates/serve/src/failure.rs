//! Errors as clients see them: a code of five characters, a message and a position.

use std::fmt;

use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Diagnostic, SchemaError, Span};
use datafusion::sql::sqlparser::parser::ParserError;
use evenkeel_engine::TableError;
use evenkeel_engine::query::{DatabaseError, LimitExceeded, OutOfRange, ParamError, QueryError};
use evenkeel_model::bounded::message as bounded;
use pgwire::error::{ErrorInfo, PgWireError};

use crate::values::ValueError;

/// An error code of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SqlState(pub(crate) &'static str);

impl SqlState {
    pub(crate) const PROTOCOL_VIOLATION: Self = Self("08P01");
    pub(crate) const NOT_SUPPORTED: Self = Self("0A000");
    pub(crate) const NO_SUCH_CURSOR: Self = Self("34000");
    pub(crate) const DUPLICATE_CURSOR: Self = Self("42P03");
    pub(crate) const READ_ONLY: Self = Self("25006");
    pub(crate) const ACTIVE_TRANSACTION: Self = Self("25001");
    pub(crate) const FAILED_TRANSACTION: Self = Self("25P02");
    pub(crate) const NO_TRANSACTION: Self = Self("25P01");
    pub(crate) const NO_SUCH_STATEMENT: Self = Self("26000");
    pub(crate) const INVALID_AUTHORIZATION: Self = Self("28000");
    pub(crate) const INVALID_PASSWORD: Self = Self("28P01");
    pub(crate) const SYNTAX: Self = Self("42601");
    pub(crate) const UNDEFINED_TABLE: Self = Self("42P01");
    pub(crate) const UNDEFINED_OBJECT: Self = Self("42704");
    pub(crate) const UNDEFINED_PARAMETER: Self = Self("42P02");
    pub(crate) const INVALID_PARAMETER: Self = Self("22023");
    pub(crate) const INVALID_TEXT: Self = Self("22P02");
    pub(crate) const DATA: Self = Self("22000");
    pub(crate) const DIVISION_BY_ZERO: Self = Self("22012");
    pub(crate) const INVALID_BINARY: Self = Self("22P03");
    pub(crate) const OUT_OF_RANGE: Self = Self("22003");
    pub(crate) const OUT_OF_MEMORY: Self = Self("53200");
    pub(crate) const TOO_MANY_CONNECTIONS: Self = Self("53300");
    pub(crate) const LIMIT: Self = Self("53400");
    pub(crate) const TOO_LARGE: Self = Self("54000");
    pub(crate) const CANCELED: Self = Self("57014");
    pub(crate) const SHUTDOWN: Self = Self("57P01");
    pub(crate) const IDLE: Self = Self("57P05");
    pub(crate) const IO: Self = Self("58030");
    pub(crate) const INTERNAL: Self = Self("XX000");
}

/// An error of one statement or of a connection.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: SqlState,
    pub(crate) message: String,
    /// Line and column of the statement, both from 1.
    pub(crate) place: Option<(u64, u64)>,
    /// Name in the statement that the error is about, if its position is unknown.
    pub(crate) name: Option<String>,
    /// Position in the text that the client sent, in characters from 1.
    pub(crate) position: Option<usize>,
    /// Whether the connection ends.
    pub(crate) is_fatal: bool,
}

impl Failure {
    pub(crate) fn new(code: SqlState, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), place: None, name: None, position: None, is_fatal: false }
    }

    pub(crate) fn fatal(code: SqlState, message: impl Into<String>) -> Self {
        Self { is_fatal: true, ..Self::new(code, message) }
    }

    /// Locates the error in the text that the client sent, in which the statement begins after
    /// `before` characters.
    pub(crate) fn located(mut self, statement: &str, before: usize) -> Self {
        if let Some((line, column)) = self.place.take() {
            let at_line = usize::try_from(line).unwrap_or(1).saturating_sub(1);
            let lines: usize = statement.split_inclusive('\n').take(at_line).map(|l| l.chars().count()).sum();
            let in_line = usize::try_from(column).unwrap_or(1).max(1);
            self.position = Some(before + lines + in_line);
        } else if let Some(name) = self.name.take() {
            self.position = position_of(statement, &name).map(|position| before + position);
        }
        self
    }

    /// Returns the error as a message of the protocol.
    pub(crate) fn into_info(self) -> ErrorInfo {
        let severity = if self.is_fatal { "FATAL" } else { "ERROR" };
        let mut info = ErrorInfo::new(severity.to_owned(), self.code.0.to_owned(), self.message);
        info.severity_nonlocalized = Some(severity.to_owned());
        info.position = self.position.map(|position| position.to_string());
        info
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.0, self.message)
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        let code = match &error {
            QueryError::DataFusion(cause) => return Self::from_engine(cause, message),
            QueryError::Limit(limit) => code_of_limit(limit),
            QueryError::Sql(limit) => {
                let code = if limit.is_of_number() { SqlState::OUT_OF_RANGE } else { SqlState("54001") };
                return Self { place: limit.place(), ..Self::new(code, message) };
            }
            QueryError::Param(
                ParamError::Missing { .. } | ParamError::Unknown { .. } | ParamError::NoTime,
            ) => SqlState::UNDEFINED_PARAMETER,
            QueryError::Param(_) => SqlState::INVALID_TEXT,
            QueryError::UnknownTable { name, .. } => {
                let name = name.rsplit('.').next().map(|last| last.trim_matches('"').to_owned());
                return Self { name, ..Self::new(SqlState::UNDEFINED_TABLE, message) };
            }
            QueryError::Storage(_) | QueryError::Count { .. } | QueryError::Elsewhere { .. } => SqlState::IO,
            QueryError::OuterJoinByName | QueryError::CountedRows => SqlState::NOT_SUPPORTED,
            QueryError::NotAQuery { .. } => SqlState::READ_ONLY,
            QueryError::Empty | QueryError::Several { .. } | QueryError::NoColumn => SqlState::SYNTAX,
            QueryError::Placement(_) => SqlState::INTERNAL,
        };
        Self::new(code, message)
    }
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        Self::from(QueryError::from(error))
    }
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Query(error) => error.into(),
            error => Self::new(SqlState::IO, error.to_string()),
        }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Self::new(SqlState::IO, error.to_string())
    }
}

impl From<ValueError> for Failure {
    fn from(error: ValueError) -> Self {
        Self::new(SqlState::OUT_OF_RANGE, error.to_string())
    }
}

impl From<PgWireError> for Failure {
    /// Errors of the protocol itself end the connection.
    fn from(error: PgWireError) -> Self {
        match error {
            PgWireError::UserError(info) => {
                let is_text = info.code == "22021";
                let code = if is_text { SqlState("22021") } else { SqlState::PROTOCOL_VIOLATION };
                Self::fatal(code, info.message.clone())
            }
            PgWireError::InvalidPassword(user) => {
                Self::fatal(SqlState::INVALID_PASSWORD, wrong_password(&user))
            }
            error => Self::fatal(SqlState::PROTOCOL_VIOLATION, error.to_string()),
        }
    }
}

/// Returns the same error for a wrong password and an unknown user.
pub(crate) fn wrong_password(user: &str) -> String {
    format!("password authentication failed for user \"{}\"", bounded(user))
}

fn code_of_limit(limit: &LimitExceeded) -> SqlState {
    match limit {
        LimitExceeded::Time { .. } => SqlState::CANCELED,
        LimitExceeded::Reserved { .. }
        | LimitExceeded::Process { .. }
        | LimitExceeded::Allocation { .. }
        | LimitExceeded::Values { .. } => SqlState::OUT_OF_MEMORY,
    }
}

impl Failure {
    /// Classifies an error of DataFusion by its kind. DataFusion has few kinds, so some codes are
    /// derived from its text; see `code_of_plan` and `code_of_execution`.
    fn from_engine(error: &DataFusionError, message: String) -> Self {
        if let Some(limit) = LimitExceeded::from_error(error) {
            return Self::new(code_of_limit(limit), message);
        }
        if OutOfRange::from_error(error).is_some() {
            return Self::new(SqlState::OUT_OF_RANGE, message);
        }
        let place = place_of(error);
        let code = match error.find_root() {
            DataFusionError::SQL(parser, _) => {
                let (code, place) = syntax(parser);
                return Self { place, ..Self::new(code, message) };
            }
            DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
                SchemaError::FieldNotFound { .. } => SqlState("42703"),
                SchemaError::AmbiguousReference { .. } => SqlState("42702"),
                _ => SqlState("42701"),
            },
            DataFusionError::ResourcesExhausted(_) => SqlState::OUT_OF_MEMORY,
            DataFusionError::NotImplemented(_) => SqlState::NOT_SUPPORTED,
            DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => SqlState::IO,
            // The Parquet reader passes on only the text of an error in a filter.
            DataFusionError::ParquetError(cause) => {
                code_of_execution(&cause.to_string()).unwrap_or(SqlState::IO)
            }
            DataFusionError::Plan(text) => code_of_plan(text),
            // Such as a value of an export that its type cannot hold.
            DataFusionError::External(_) => SqlState::DATA,
            DataFusionError::ArrowError(cause, _) => code_of_arrow(cause),
            DataFusionError::Execution(text) => code_of_execution(text).unwrap_or(SqlState::DATA),
            _ => SqlState::INTERNAL,
        };
        Self { place, ..Self::new(code, message) }
    }
}

/// Returns the position in the SQL text that a planner error points to.
fn place_of(error: &DataFusionError) -> Option<(u64, u64)> {
    let span: Option<Span> = error.diagnostic().and_then(|diagnostic: &Diagnostic| diagnostic.span);
    span.map(|span| (span.start.line, span.start.column))
}

/// Finds a name in a statement, as a whole word. Returns its position in characters from 1.
fn position_of(statement: &str, name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    statement.match_indices(name).find_map(|(at, _)| {
        let (before, after) = (statement.get(..at)?, statement.get(at + name.len()..)?);
        let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        is_whole.then(|| before.chars().count() + 1)
    })
}

/// Code and position of a parser error, whose messages end in `at Line: 1, Column: 8`.
fn syntax(error: &ParserError) -> (SqlState, Option<(u64, u64)>) {
    let text = match error {
        ParserError::RecursionLimitExceeded => return (SqlState("54001"), None),
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text,
    };
    let place = text.rsplit_once("Line: ").and_then(|(_, rest)| {
        let (line, rest) = rest.split_once(", Column: ")?;
        let column: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some((line.parse().ok()?, column.parse().ok()?))
    });
    (SqlState::SYNTAX, place)
}

/// Code of an Arrow error from a computation or a cast.
fn code_of_arrow(error: &ArrowError) -> SqlState {
    match error {
        ArrowError::DivideByZero => SqlState::DIVISION_BY_ZERO,
        ArrowError::ArithmeticOverflow(_) => SqlState::OUT_OF_RANGE,
        ArrowError::CastError(_) | ArrowError::ParseError(_) => SqlState::INVALID_TEXT,
        ArrowError::IoError(..) | ArrowError::ParquetError(_) => SqlState::IO,
        ArrowError::NotYetImplemented(_) => SqlState::NOT_SUPPORTED,
        ArrowError::MemoryError(_) => SqlState::OUT_OF_MEMORY,
        // Functions report an overflow so.
        ArrowError::ComputeError(text) => code_of_execution(text).unwrap_or(SqlState::DATA),
        _ => SqlState::DATA,
    }
}

/// Code of an error from planning: DataFusion has one kind for all, so the text decides.
fn code_of_plan(text: &str) -> SqlState {
    let has = |part: &str| text.contains(part);
    if has("Invalid function") || has("No function matches") {
        SqlState("42883")
    } else if has("must be in GROUP BY") {
        SqlState("42803")
    } else if has("Cannot infer common") || has("coerce") {
        SqlState("42804")
    } else if has("Unsupported SQL type") {
        SqlState::UNDEFINED_OBJECT
    } else {
        SqlState::SYNTAX
    }
}

/// Code of an Arrow error of which only the text is left; `None` if it has no code.
fn code_of_execution(text: &str) -> Option<SqlState> {
    let has = |part: &str| text.contains(part);
    if has("DivideByZero") || has("Divide by zero") {
        Some(SqlState::DIVISION_BY_ZERO)
    } else if has("overflow") {
        Some(SqlState::OUT_OF_RANGE)
    } else if has("Cannot cast") || has("Can't cast") || has("Cast error") || has("Parser error") {
        Some(SqlState::INVALID_TEXT)
    } else {
        None
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
