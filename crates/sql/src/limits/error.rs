//! The limits, and the errors of SQL that exceeds them.

use datafusion::error::DataFusionError;
use thiserror::Error;

/// Maximum length of an SQL text, in bytes. A list of 50,000 keys has about half of that.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// Maximum number of words and signs in one text, not counting whitespace and comments.
pub(super) const MAX_TOKENS: usize = 250_000;

/// Maximum number of nested levels of parentheses, brackets and CASE. Some rules of the parser try
/// an expression twice on each level.
pub(super) const MAX_LEVELS: u32 = 24;

/// Maximum number of nested levels that the parser or the planner visits twice, so that each
/// further level doubles the time: subqueries, BETWEEN, IN, LIKE and functions that become CASE.
pub(super) const MAX_DOUBLINGS: u32 = 8;

/// Maximum number of operators and keywords between the root of an expression and its deepest
/// operand. A tokio thread's stack of 2 MiB is enough for that.
pub(super) const MAX_DEPTH: u32 = 500;

/// Maximum number of UNION, INTERSECT and EXCEPT operators in one text.
pub(super) const MAX_SET_OPERATIONS: u32 = 100;

/// Maximum number of tables that a statement may name; the tables of a WITH query count once per
/// expansion.
pub(super) const MAX_TABLES: u64 = 128;

/// Maximum length of a name, in bytes. The planner searches all known names for the most similar
/// one, in a time that grows with the length.
pub(super) const MAX_NAME_BYTES: usize = 4096;

/// SQL that is refused before it is planned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum SqlLimitError {
    #[error("the SQL has {found} bytes; the limit is {MAX_BYTES}. Put long lists of values into a table")]
    Bytes { found: usize },
    #[error(
        "the SQL has {found} words and signs; the limit is {MAX_TOKENS}. Put long lists of values into a \
            table"
    )]
    Tokens { found: usize },
    #[error(
        "line {line}, column {column} of the SQL is nested more than {MAX_LEVELS} levels deep; give its inner parts names \
         in a WITH clause"
    )]
    Levels { line: u64, column: u64 },
    #[error(
        "line {line}, column {column} of the SQL: more than {MAX_DOUBLINGS} subqueries, or values of BETWEEN, IN, LIKE or coalesce, \
         are nested in each other; give the inner ones names in a WITH clause"
    )]
    Doublings { line: u64, column: u64 },
    #[error(
        "line {line}, column {column} of the SQL: this expression chains more than {MAX_DEPTH} operators and keywords, with \
         +, -, * and || counting twice; write many alternatives as column IN (...)"
    )]
    Depth { line: u64, column: u64 },
    #[error(
        "the SQL has more than {MAX_SET_OPERATIONS} UNION, INTERSECT and EXCEPT operators; write rows as VALUES (...), (...)"
    )]
    SetOperations,
    #[error(
        "the SQL reads more than {MAX_TABLES} tables, counting the tables of a WITH query each time that it is named; run it in parts"
    )]
    Tables,
    #[error(
        "line {line}, column {column} of the SQL: a name has at most {MAX_NAME_BYTES} bytes, not {found}"
    )]
    Name { found: usize, line: u64, column: u64 },
    #[error("line {line}, column {column} of the SQL: DECIMAL has at most {MAX_PRECISION} digits, not {}", shortened(.number))]
    Precision { number: String, line: u64, column: u64 },
    #[error("line {line}, column {column} of the SQL: {} is beyond the range of Double", shortened(.number))]
    Double { number: String, line: u64, column: u64 },
    #[error(
        "line {line}, column {column} of the SQL: {number} is beyond the range of Int64 and Uint64; write \
         CAST('{number}' AS DECIMAL(38, 0)), or {number}.0 for a Double",
        number = shortened(.number)
    )]
    Integer { number: String, line: u64, column: u64 },
    #[error(
        "line {line}, column {column} of the SQL: {number} has more than the {DOUBLE_DIGITS} digits that a Double keeps; write \
         CAST('{number}' AS DECIMAL({precision}, {scale})), or fewer digits",
        number = shortened(.number)
    )]
    Digits { number: String, precision: usize, scale: usize, line: u64, column: u64 },
}

impl SqlLimitError {
    /// Whether a number is outside the range of its type.
    #[must_use]
    pub fn is_of_number(&self) -> bool {
        matches!(
            self,
            Self::Precision { .. } | Self::Double { .. } | Self::Integer { .. } | Self::Digits { .. }
        )
    }

    /// Returns the line and the column of the SQL, from 1, if the error has a place.
    #[must_use]
    pub fn place(&self) -> Option<(u64, u64)> {
        match self {
            Self::Bytes { .. } | Self::Tokens { .. } | Self::SetOperations | Self::Tables => None,
            Self::Levels { line, column }
            | Self::Doublings { line, column }
            | Self::Depth { line, column }
            | Self::Name { line, column, .. }
            | Self::Precision { line, column, .. }
            | Self::Double { line, column, .. }
            | Self::Integer { line, column, .. }
            | Self::Digits { line, column, .. } => Some((*line, *column)),
        }
    }
}

/// Digits that distinguish any two doubles; a number with more digits is meant to be exact.
pub(super) const DOUBLE_DIGITS: usize = 17;

/// Maximum number of digits of a decimal. The planner keeps only the low eight bits of a precision.
pub(super) const MAX_PRECISION: u64 = 76;

/// Maximum number of digits of a number that a message quotes.
const QUOTED_DIGITS: usize = 40;

fn shortened(number: &str) -> String {
    match number.char_indices().nth(QUOTED_DIGITS) {
        Some((end, _)) => format!("{}...", number.get(..end).unwrap_or_default()),
        None => number.to_owned(),
    }
}

impl From<SqlLimitError> for DataFusionError {
    fn from(error: SqlLimitError) -> Self {
        Self::External(Box::new(error))
    }
}
