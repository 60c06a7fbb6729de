//! Roles that a column may have.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Kind of thing that the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Identifier of a thing that has many rows: a user, a device, an account.
    Entity,
    /// Identifier of the row.
    RowId,
    /// Point in time.
    Time,
    /// Category with few values: a country, a status.
    Dimension,
    /// Measurement or amount.
    Measure,
    /// Free text.
    Text,
    /// Number within a parent, such as a line of an order.
    LineNumber,
    /// The same value in all rows.
    Constant,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 8] = [
        Self::Entity,
        Self::RowId,
        Self::Time,
        Self::Dimension,
        Self::Measure,
        Self::Text,
        Self::LineNumber,
        Self::Constant,
    ];

    /// Returns the role as words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Entity => "entity",
            Self::RowId => "row id",
            Self::Time => "time",
            Self::Dimension => "dimension",
            Self::Measure => "measure",
            Self::Text => "text",
            Self::LineNumber => "line number",
            Self::Constant => "constant",
        }
    }

    /// Whether experts hash columns of the role; others are a last resort.
    #[must_use]
    pub fn can_place_rows(self) -> bool {
        matches!(self, Self::Entity | Self::RowId | Self::Dimension)
    }

    /// Whether columns of the role belong in a primary key; others only if nothing else makes rows
    /// unique.
    #[must_use]
    pub fn can_identify_rows(self) -> bool {
        !matches!(self, Self::Measure | Self::Text | Self::Constant)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.words().replace(' ', "-"))
    }
}

/// Error of a role that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown role '{0}'; roles are: entity, row-id, time, dimension, measure, text, line-number, constant"
)]
pub struct RoleError(String);

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = text.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        Self::ALL
            .into_iter()
            .find(|role| role.to_string() == wanted)
            .ok_or_else(|| RoleError(evenkeel_model::bounded::quote(text).to_string()))
    }
}
