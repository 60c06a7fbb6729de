//! Reasons why a schema of YDB cannot be read.

use thiserror::Error;

/// Reason why a schema cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemeError {
    /// The file is not the text of a message.
    #[error("line {line}: {problem}")]
    Text {
        /// Line of the first character that cannot be read, counted from 1.
        line: u64,
        /// Description of the problem.
        problem: String,
    },
    /// The message does not declare a table.
    #[error("{problem}")]
    Table {
        /// Description of the problem.
        problem: String,
    },
}
