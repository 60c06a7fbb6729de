//! Dialects of Spanner's SQL.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// SQL dialect of a Spanner database, chosen when the database is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// GoogleSQL.
    GoogleSql,
    /// PostgreSQL.
    Postgres,
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "spanner" => Ok(Self::GoogleSql),
            "spanner-postgres" => Ok(Self::Postgres),
            other => Err(format!("unknown target '{other}'; known: spanner, spanner-postgres")),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GoogleSql => "spanner",
            Self::Postgres => "spanner-postgres",
        })
    }
}
