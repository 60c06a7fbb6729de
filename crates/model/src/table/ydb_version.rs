//! Column types that each version of YDB supports in column tables.
//!
//! Sources, all of ydb-platform/ydb:
//! - `ydb/core/tx/schemeshard/olap/columns/update.cpp` (`IsAllowedType`, `IsAllowedPkType`): at
//!   831a0e5d2d and at 02a60a78a9 it rejects `Bool`, `Interval` and `DyNumber` as columns, and
//!   accepts all integers, `String`, `Utf8`, all dates and points in time, `Interval64` and
//!   `Decimal` in a primary key. `Uuid` passes there and fails later (pull request 24325, "UUID is
//!   unsupported, Interval64 is supported"; `ydb/tests/datashard/lib/types_of_variables.py`,
//!   `types_not_supported_yet_in_columnshard`).
//! - `ydb/core/tx/schemeshard/olap/operations/checks.h` at 1c8b41f8a7: the 64-bit types and
//!   `Decimal` of any scale need `EnableTableDatetime64` and `EnableParameterizedDecimal`, which
//!   according to `ydb/docs/en/core/changelog-server.md` are on by default from 25.2 on.
//! - The same changelog: `Bool` in column tables from 25.4 on.
//!   `ydb/core/protos/feature_flags.proto` at 001c4d0b0a: `EnableColumnshardBool` is on. It was off
//!   in 25.4.1 (issue 35238), so a cluster of that version may have to switch it on.
//! - Pull request 46263 (main, July 2026): `Interval`, `Uuid` and `DyNumber`, also in keys, and
//!   `Bool` in keys; no changelog of a release up to 26.2 mentions them, so they count from 26.3
//!   on.
//!
//! Every partition-key column is also a primary-key column, and its type needs nothing more.
//! `Decimal` adds nothing to the hash ([`evenkeel_placement::placement`]), so a partition key of
//! `Decimal` alone fills one partition.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::table::{ColumnType, TableDefinition, TableSpec, write_create_table};

/// Maximum number of characters of an unknown version in its error message.
const MAX_QUOTED: usize = 40;

/// A version of YDB, to the extent that the rules differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the variants are the versions")]
pub enum YdbVersion {
    V25_1,
    V25_2,
    V25_3,
    V25_4,
    V26_1,
    /// The newest release.
    #[default]
    V26_2,
    /// The main branch.
    V26_3,
}

/// Error for an unknown version.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown version of YDB '{found}'; known: {}", YdbVersion::names())]
pub struct YdbVersionError {
    found: String,
}

/// Role of a column in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnRole {
    /// In no key.
    Plain,
    /// In the primary key.
    PrimaryKey,
    /// In the partition key, and therefore in the primary key.
    PartitionKey,
}

/// First versions that support a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeRule {
    /// First version that supports the type as a column; `None` if no version does.
    pub column: Option<YdbVersion>,
    /// First version that supports it in a primary key; `None` if no version does.
    pub primary_key: Option<YdbVersion>,
    /// First version that supports it in a partition key; `None` if no version does.
    pub partition_key: Option<YdbVersion>,
}

/// Error for a column type that a version does not support.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "column '{column}' of type {column_type}: a column table of YDB {version} does not support it \
        {place}; {next}"
)]
#[allow(missing_docs, reason = "the fields are named in the message")]
pub struct YdbTypeError {
    pub column: String,
    pub column_type: ColumnType,
    pub version: YdbVersion,
    pub place: &'static str,
    pub next: String,
}

/// A `CREATE TABLE` statement for a version of YDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YdbStatement {
    /// The statement, with a comment for each replaced type.
    pub text: String,
    /// Comments of the statement, one sentence each.
    pub notes: Vec<String>,
}

impl YdbVersion {
    /// Every version, oldest first.
    pub const ALL: [Self; 7] =
        [Self::V25_1, Self::V25_2, Self::V25_3, Self::V25_4, Self::V26_1, Self::V26_2, Self::V26_3];

    fn name(self) -> &'static str {
        match self {
            Self::V25_1 => "25.1",
            Self::V25_2 => "25.2",
            Self::V25_3 => "25.3",
            Self::V25_4 => "25.4",
            Self::V26_1 => "26.1",
            Self::V26_2 => "26.2",
            Self::V26_3 => "26.3",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Whether a column table of this version supports the type in this role.
    #[must_use]
    pub fn takes(self, column_type: ColumnType, role: ColumnRole) -> bool {
        let rule = TypeRule::for_type(column_type);
        let since = match role {
            ColumnRole::Plain => rule.column,
            ColumnRole::PrimaryKey => rule.primary_key,
            ColumnRole::PartitionKey => rule.partition_key,
        };
        since.is_some_and(|since| since <= self)
    }

    /// Returns the type itself if this version supports it in this role; otherwise the nearest
    /// supported type that holds all its values.
    #[must_use]
    pub fn nearest(self, column_type: ColumnType, role: ColumnRole) -> Option<ColumnType> {
        let instead: &[ColumnType] = match column_type {
            ColumnType::Bool => &[ColumnType::Uint8],
            ColumnType::Uuid | ColumnType::ObjectId => &[ColumnType::Utf8],
            // Microseconds, the unit of the interval.
            ColumnType::Interval => &[ColumnType::Interval64, ColumnType::Int64],
            ColumnType::Interval64 | ColumnType::Timestamp64 | ColumnType::Datetime64 => &[ColumnType::Int64],
            ColumnType::Date32 => &[ColumnType::Int32],
            _ => &[],
        };
        std::iter::once(&column_type).chain(instead).copied().find(|other| self.takes(*other, role))
    }
}

impl TypeRule {
    /// Returns the rule of a type.
    #[must_use]
    pub fn for_type(column_type: ColumnType) -> Self {
        use YdbVersion::{V25_1, V25_2, V25_4, V26_3};
        let (column, key) = match column_type {
            ColumnType::Int8
            | ColumnType::Int16
            | ColumnType::Int32
            | ColumnType::Int64
            | ColumnType::Uint8
            | ColumnType::Uint16
            | ColumnType::Uint32
            | ColumnType::Uint64
            | ColumnType::Utf8
            | ColumnType::String
            | ColumnType::Date
            | ColumnType::Datetime
            | ColumnType::Timestamp => (V25_1, Some(V25_1)),
            // Any other precision and scale needs the first version with the flag on.
            ColumnType::Decimal { precision: 22, scale: 9 } => (V25_1, Some(V25_1)),
            ColumnType::Decimal { .. } => (V25_2, Some(V25_2)),
            ColumnType::Date32
            | ColumnType::Datetime64
            | ColumnType::Timestamp64
            | ColumnType::Interval64 => (V25_2, Some(V25_2)),
            ColumnType::Float
            | ColumnType::Double
            | ColumnType::Json
            | ColumnType::JsonDocument
            | ColumnType::Yson => (V25_1, None),
            ColumnType::Bool => (V25_4, Some(V26_3)),
            ColumnType::Uuid | ColumnType::Interval => (V26_3, Some(V26_3)),
            ColumnType::ObjectId => {
                return Self { column: None, primary_key: None, partition_key: None };
            }
        };
        Self { column: Some(column), primary_key: key, partition_key: key }
    }
}

/// Describes how a value is represented in the replacing type.
fn how(from: ColumnType, to: ColumnType) -> &'static str {
    match (from, to) {
        (ColumnType::Bool, _) => "0 is false, 1 is true",
        (ColumnType::Uuid, _) => "its text of 36 characters",
        (ColumnType::ObjectId, _) => "its text of 24 hexadecimal digits",
        (ColumnType::Datetime64, _) => "seconds since 1970",
        (ColumnType::Date32, _) => "days since 1970",
        (ColumnType::Interval, ColumnType::Interval64) => "the same values",
        _ => "microseconds",
    }
}

fn role_of(definition: &TableDefinition, column: &str) -> ColumnRole {
    let has = |key: &[String]| key.iter().any(|name| name == column);
    match (
        has(&definition.primary_key),
        has(&definition.partition_key) || definition.partition_key.is_empty(),
    ) {
        (true, true) => ColumnRole::PartitionKey,
        (true, false) => ColumnRole::PrimaryKey,
        (false, _) => ColumnRole::Plain,
    }
}

/// Checks that a version supports the types of all columns as they are, without replacing any.
///
/// # Errors
/// [`YdbTypeError`] for the first unsupported column, with the version and the next step.
pub fn check_ydb_types(definition: &TableDefinition, version: YdbVersion) -> Result<(), YdbTypeError> {
    for column in &definition.columns {
        let role = role_of(definition, &column.name);
        if !version.takes(column.column_type, role) {
            let nearest = version.nearest(column.column_type, role);
            return Err(refused(&column.name, column.column_type, role, version, nearest));
        }
    }
    Ok(())
}

fn refused(
    column: &str,
    column_type: ColumnType,
    role: ColumnRole,
    version: YdbVersion,
    nearest: Option<ColumnType>,
) -> YdbTypeError {
    let rule = TypeRule::for_type(column_type);
    let (since, place) = match role {
        ColumnRole::Plain => (rule.column, "as a column"),
        ColumnRole::PrimaryKey => (rule.primary_key, "in a primary key"),
        ColumnRole::PartitionKey => (rule.partition_key, "in a primary or partition key"),
    };
    let next = match (nearest, since) {
        (Some(nearest), Some(since)) => {
            format!("use {nearest} ({}), or --ydb-version {since} or newer", how(column_type, nearest))
        }
        (Some(nearest), None) => format!("use {nearest} ({})", how(column_type, nearest)),
        (None, Some(since)) => format!("use another type, or --ydb-version {since} or newer"),
        (None, None) => "no version does: use another column".to_owned(),
    };
    YdbTypeError { column: column.to_owned(), column_type, version, place, next }
}

/// Writes the statement for a version: unsupported types are replaced by the nearest ones that hold
/// the same values, each with a note.
///
/// # Errors
/// [`YdbTypeError`] if a type cannot be replaced.
pub fn write_create_table_for(spec: &TableSpec, version: YdbVersion) -> Result<YdbStatement, YdbTypeError> {
    let mut definition = spec.definition().clone();
    let mut notes = Vec::new();
    let roles: Vec<ColumnRole> =
        definition.columns.iter().map(|column| role_of(spec.definition(), &column.name)).collect();
    for (column, role) in definition.columns.iter_mut().zip(roles) {
        let column_type = column.column_type;
        let nearest = version.nearest(column_type, role);
        let Some(nearest) = nearest else {
            return Err(refused(&column.name, column_type, role, version, None));
        };
        if nearest != column_type {
            notes.push(format!(
                "column {} is {nearest} in place of {column_type}, which column tables of YDB {version} do not \
                    support: {}",
                column.name,
                how(column_type, nearest)
            ));
            column.column_type = nearest;
        }
    }
    let comments: String =
        notes.iter().map(|note| format!("-- {}\n", note.replace(['\n', '\r'], " "))).collect();
    // Only column types differ, so the definition is as valid as the original.
    let text = TableSpec::new(definition)
        .map_or_else(|_| write_create_table(spec), |spec| write_create_table(&spec));
    Ok(YdbStatement { text: format!("{comments}{text}"), notes })
}

impl fmt::Display for YdbVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for YdbVersion {
    type Err = YdbVersionError;

    /// Parses `25.4`, or a release of it such as `25.4.1.15` or `v25.4`.
    fn from_str(text: &str) -> Result<Self, YdbVersionError> {
        let plain = text.trim().trim_start_matches('v');
        let is_version = |version: &Self| {
            let rest = plain.strip_prefix(version.name());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('-'))
        };
        let version = Self::ALL.into_iter().find(is_version);
        version.ok_or_else(|| YdbVersionError { found: text.chars().take(MAX_QUOTED).collect() })
    }
}

#[cfg(test)]
#[path = "ydb_version_tests.rs"]
mod tests;
