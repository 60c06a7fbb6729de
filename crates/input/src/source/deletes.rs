//! Rows of inputs that delete.

use serde::{Deserialize, Serialize};

/// Rows that delete the row with their primary key. Only their key columns matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deletes {
    /// No row deletes.
    #[default]
    None,
    /// Every row deletes; inputs need only the key columns.
    All,
    /// Rows whose column has this text delete. The table need not have the column.
    Where {
        /// Name of the column.
        column: String,
        /// The text.
        value: String,
    },
}

impl Deletes {
    /// Whether inputs may lack columns outside the key: they are NULL, which only rows that delete
    /// may be.
    pub(super) fn needs_only_keys(&self) -> bool {
        *self != Self::None
    }
}
