//! Placement functions by name, of this store and of other systems.

use std::fmt;
use std::str::FromStr;

use arrow::array::ArrayRef;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::placement::hash::{hash_keys, key_bytes};
use crate::placement::key_bytes::PlacementError;
use crate::placement::systems::{KeyColumns, SYSTEMS, Status, System, status_of, system};
use evenkeel_model::bounded::quote;
use evenkeel_model::table::{ColumnType, PlacementFunction};

/// A function from keys to partitions.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "Named", into = "Named")]
pub enum Function {
    /// A function of YDB, used to place the tables of this store.
    Ydb(PlacementFunction),
    /// A function of another system, for comparison.
    System(&'static dyn System),
}

/// Serialized form of a function; other systems are written by name.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Named {
    Ydb(PlacementFunction),
    System(String),
}

impl From<Function> for Named {
    fn from(function: Function) -> Self {
        match function {
            Function::Ydb(function) => Self::Ydb(function),
            Function::System(system) => Self::System(system.about().name.to_owned()),
        }
    }
}

impl TryFrom<Named> for Function {
    type Error = FunctionError;

    fn try_from(named: Named) -> Result<Self, FunctionError> {
        match named {
            Named::Ydb(function) => Ok(Self::Ydb(function)),
            Named::System(name) => system(&name).map(Self::System).ok_or(FunctionError { found: name }),
        }
    }
}

/// Error for an unknown placement function.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown placement function '{found}'; known: {}{}", Function::names().join(", "), hint(found), found = quote(found))]
pub struct FunctionError {
    found: String,
}

/// Returns a suggestion for other names of a system.
fn hint(name: &str) -> String {
    let here = match name.trim().to_ascii_lowercase().as_str() {
        "clickhouse" => "clickhouse-cityhash64, or another of its functions",
        "scylla" | "scylladb" => "cassandra",
        "postgresql" | "pg" => "postgres",
        "mongo" => "mongodb",
        "cockroachdb" => "cockroach",
        "yugabytedb" => "yugabyte",
        "spanner" => "spanner-shard",
        "redshift" | "snowflake" | "synapse" | "dynamodb" => "neutral, for it publishes no function",
        _ => return String::new(),
    };
    format!("; use {here}")
}

impl Default for Function {
    fn default() -> Self {
        Self::Ydb(PlacementFunction::default())
    }
}

impl From<PlacementFunction> for Function {
    fn from(function: PlacementFunction) -> Self {
        Self::Ydb(function)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ydb(one), Self::Ydb(other)) => one == other,
            (Self::System(one), Self::System(other)) => one.about().name == other.about().name,
            _ => false,
        }
    }
}

impl Eq for Function {}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ydb(function) => function.fmt(f),
            Self::System(system) => f.write_str(system.about().name),
        }
    }
}

impl FromStr for Function {
    type Err = FunctionError;

    fn from_str(text: &str) -> Result<Self, FunctionError> {
        let name = text.trim().to_ascii_lowercase();
        let of_system = || system(&name).map(Self::System);
        let of_ydb = || name.parse::<PlacementFunction>().ok().map(Self::Ydb);
        of_system().or_else(of_ydb).ok_or_else(|| FunctionError { found: text.to_owned() })
    }
}

impl Function {
    /// Iterates over YDB's default function and the functions of all other systems.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::default()).chain(SYSTEMS.iter().map(|system| Self::System(*system)))
    }

    /// Returns the names of all functions.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        let of_ydb =
            [PlacementFunction::Ydb, PlacementFunction::YdbModulo, PlacementFunction::CLOUD_LOGS_DEFAULT];
        let of_systems = SYSTEMS.iter().map(|system| system.about().name);
        of_ydb.map(PlacementFunction::name).into_iter().chain(of_systems).collect()
    }

    /// Returns how well the function is verified for keys of these types.
    #[must_use]
    pub fn status(self, types: &[ColumnType]) -> Status {
        match self {
            Self::Ydb(_) => Status::Verified,
            Self::System(system) => status_of(system, types),
        }
    }

    /// Whether all partitions have equal shares of the hashes.
    #[must_use]
    pub fn has_even_ranges(self) -> bool {
        match self {
            Self::Ydb(_) => true,
            Self::System(system) => system.has_even_ranges(),
        }
    }

    /// Returns how the system treats NULL if it does not hash it; empty if it does.
    #[must_use]
    pub fn nulls(self) -> &'static str {
        match self {
            Self::Ydb(_) => "",
            Self::System(system) => system.about().nulls,
        }
    }

    /// Returns the YDB function, if it is one.
    #[must_use]
    pub fn ydb_function(self) -> Option<PlacementFunction> {
        match self {
            Self::Ydb(function) => Some(function),
            Self::System(_) => None,
        }
    }

    /// Identifier shared by functions with the same hash.
    pub(super) fn hash_family(self) -> &'static str {
        match self {
            Self::Ydb(_) => "ydb",
            Self::System(system) => system.about().name,
        }
    }

    /// Formats a hash as the system writes it.
    #[must_use]
    pub fn hash_text(self, hash: u64) -> String {
        match self {
            Self::Ydb(_) => hash.to_string(),
            Self::System(system) => system.about().hash_type.text(hash),
        }
    }

    /// Returns the bytes of a row that are hashed.
    ///
    /// # Errors
    /// As for [`Function::hash`].
    pub fn bytes(
        self,
        types: &[ColumnType],
        columns: &[ArrayRef],
        row: usize,
    ) -> Result<Vec<u8>, PlacementError> {
        match self {
            Self::Ydb(_) => key_bytes(types, columns, row),
            Self::System(system) => Ok(KeyColumns::read(system, types, columns)?.bytes(system, row)),
        }
    }

    /// Returns the hash of every row. `columns` are the key columns in hash order.
    ///
    /// # Errors
    /// [`PlacementError`] if the columns are not of these types, or the function does not accept
    /// such a key.
    pub fn hash(self, types: &[ColumnType], columns: &[ArrayRef]) -> Result<Vec<u64>, PlacementError> {
        match self {
            Self::Ydb(_) => {
                let typed: Vec<_> = types.iter().copied().zip(columns.iter().cloned()).collect();
                hash_keys(&typed)
            }
            Self::System(system) => {
                let mut hashes = Vec::new();
                system.hash(&KeyColumns::read(system, types, columns)?, &mut hashes);
                Ok(hashes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let all: Vec<Function> = Function::all().collect();
        for function in &all {
            assert_eq!(function.to_string().parse::<Function>().unwrap(), *function);
        }
        assert_eq!("ydb-cloud-logs:20:60".parse::<Function>().unwrap().to_string(), "ydb-cloud-logs:20:60");
        let mut names = Function::names();
        assert_eq!(names.len(), all.len() + 2);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len() + 2, "each has a name of its own");
        let error = "oracle".parse::<Function>().unwrap_err().to_string();
        assert!(error.starts_with("unknown placement function 'oracle'; known: ydb, ydb-modulo"), "{error}");
    }
}
