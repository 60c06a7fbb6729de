//! Statements that create the recommended table in other systems.
//!
//! ```text
//! TableDesign (names, types, keys, partitions) -> Target -> Statements (text, notes)
//! ```
//! A system is one file that implements `Dialect`, and one line in [`Target`]. What a system
//! cannot represent becomes a note, which the statements carry as a comment.

mod cassandra;
mod clickhouse;
mod doris;
mod kafka;
mod lake;
mod mongodb;
mod postgres;
mod spanner;
mod sql;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

use evenkeel_model::bounded::quote;
use evenkeel_model::table::Column;
use evenkeel_placement::placement::Function;

use crate::role::Role;

/// Width of a line of a comment.
const WIDTH: usize = 98;

/// Table to be created.
#[derive(Debug, Clone, Copy)]
pub struct TableDesign<'a> {
    /// Name of the table.
    pub name: &'a str,
    /// Columns in the order of the export; key columns are NOT NULL.
    pub columns: &'a [Column],
    /// Columns that decide the partition; all are among `columns`.
    pub partition_key: &'a [String],
    /// Columns that rows are sorted by, including the partition key; empty if no key was found.
    pub primary_key: &'a [String],
    /// Whether no two rows of the export have the same primary key.
    pub is_unique: bool,
    /// Column with the time of a row, if there is one without NULL.
    pub time: Option<&'a str>,
    /// Number of partitions, shards or buckets.
    pub partitions: u32,
    /// Role of the first column of the partition key.
    pub role: Option<Role>,
    /// Maximum number of rows that share a value of the partition key.
    pub heaviest_rows: Option<u64>,
    /// Placement function that the figures are for.
    pub function: Function,
}

impl TableDesign<'_> {
    fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    fn is_key(&self, name: &str) -> bool {
        self.primary_key.iter().chain(self.partition_key).any(|key| key == name)
    }

    /// Columns of the primary key in its order, then the others: the order that some systems
    /// require.
    fn keys_first(&self) -> Vec<&Column> {
        let keys = self.primary_key.iter().filter_map(|name| self.column(name));
        let others = self.columns.iter().filter(|column| !self.primary_key.contains(&column.name));
        keys.chain(others).collect()
    }

    /// Columns of the primary key that are not in the partition key.
    fn beside_partition_key(&self) -> impl Iterator<Item = &String> {
        self.primary_key.iter().filter(|name| !self.partition_key.contains(name))
    }
}

/// Statements of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statements {
    /// Text with the notes as comments.
    pub text: String,
    /// Notes for the user: limits of the system, replaced types, and open decisions.
    pub notes: Vec<String>,
}

/// Dialect in which a system declares tables.
trait Dialect {
    /// Returns the statements without notes, and adds the notes.
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String;

    /// Returns the start of a comment.
    fn comment(&self) -> &'static str {
        "--"
    }
}

macro_rules! targets {
    ($($variant:ident, $name:literal, $title:literal, $placement:literal, $language:literal;)*) => {
        /// System that statements are written for.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Target {
            /// YDB.
            #[default]
            Ydb,
            $(
                #[doc = concat!($title, ".")]
                $variant,
            )*
        }

        impl Target {
            /// All systems.
            pub const ALL: &[Self] = &[Self::Ydb, $(Self::$variant),*];

            /// Returns the name on the command line and in JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    Self::Ydb => "ydb",
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the name of the placement function that decides in this system.
            fn placement_name(self) -> &'static str {
                match self {
                    Self::Ydb => "ydb",
                    $(Self::$variant => $placement,)*
                }
            }

            /// Returns the language of its statements, as Markdown names it.
            #[must_use]
            pub fn language(self) -> &'static str {
                match self {
                    Self::Ydb => "sql",
                    $(Self::$variant => $language,)*
                }
            }
        }
    };
}

targets! {
    Clickhouse, "clickhouse", "ClickHouse with a Distributed table", "clickhouse-cityhash64", "sql";
    Citus, "citus", "Citus", "citus", "sql";
    Postgres, "postgres", "PostgreSQL with hash partitions", "postgres", "sql";
    Greenplum, "greenplum", "Greenplum 7", "greenplum", "sql";
    Doris, "doris", "Apache Doris", "doris", "sql";
    Starrocks, "starrocks", "StarRocks", "starrocks", "sql";
    Spanner, "spanner", "Google Spanner", "spanner-shard", "sql";
    Cassandra, "cassandra", "Apache Cassandra and ScyllaDB", "cassandra", "sql";
    Mongodb, "mongodb", "MongoDB", "mongodb", "js";
    Kafka, "kafka", "Apache Kafka", "kafka", "sh";
    Iceberg, "iceberg", "Apache Iceberg, with Spark SQL", "iceberg", "sql";
    Paimon, "paimon", "Apache Paimon, with Flink SQL", "paimon", "sql";
}

/// Error for an unknown system.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown target '{}'; known: {}",
    quote(found),
    Target::ALL.iter().map(|target| target.name()).collect::<Vec<_>>().join(", ")
)]
pub struct TargetError {
    found: String,
}

impl Target {
    /// Returns the placement function that decides in this system.
    #[must_use]
    pub fn function(self) -> Function {
        self.placement_name().parse().unwrap_or_default()
    }

    /// Returns the system that uses a placement function, if statements can be written for it.
    #[must_use]
    pub fn from_function(function: Function) -> Option<Self> {
        let name = match function {
            Function::Ydb(_) => return Some(Self::Ydb),
            Function::System(system) => system.about().name,
        };
        // Several functions belong to one system: the functions of ClickHouse, the tokens of
        // Cassandra, and the clients of Kafka.
        let family =
            |target: &&Self| name == target.name() || name.starts_with(&format!("{}-", target.name()));
        match name {
            "librdkafka" => Some(Self::Kafka),
            _ => Self::ALL.iter().find(family).copied(),
        }
    }

    /// Writes the statements that create a table; `None` for YDB, whose YQL depends on its version.
    #[must_use]
    pub fn statements(self, design: &TableDesign<'_>) -> Option<Statements> {
        let dialect: &dyn Dialect = match self {
            Self::Ydb => return None,
            Self::Clickhouse => &clickhouse::ClickHouse,
            Self::Citus => &postgres::Flavor::Citus,
            Self::Postgres => &postgres::Flavor::Postgres,
            Self::Greenplum => &postgres::Flavor::Greenplum,
            Self::Doris => &doris::Flavor::Doris,
            Self::Starrocks => &doris::Flavor::StarRocks,
            Self::Spanner => &spanner::Spanner,
            Self::Cassandra => &cassandra::Cassandra,
            Self::Mongodb => &mongodb::MongoDb,
            Self::Kafka => &kafka::Kafka,
            Self::Iceberg => &lake::Iceberg,
            Self::Paimon => &lake::Paimon,
        };
        let mut notes = Vec::new();
        let text = dialect.statements(design, &mut notes);
        let comments: String = notes.iter().map(|note| comment(dialect.comment(), note)).collect();
        Some(Statements { text: format!("{comments}{text}"), notes })
    }
}

/// Writes a note as lines of a comment.
fn comment(mark: &str, note: &str) -> String {
    let mut lines = vec![mark.to_owned()];
    for word in note.split_whitespace() {
        let full = lines.last().is_some_and(|line| line.chars().count() + 1 + word.chars().count() > WIDTH);
        if full {
            lines.push(format!("{mark}  "));
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let name = text.trim().to_ascii_lowercase();
        let name = match name.as_str() {
            "postgresql" | "pg" => "postgres",
            "mongo" => "mongodb",
            "scylla" | "scylladb" => "cassandra",
            name => name,
        };
        let target = Self::ALL.iter().find(|target| target.name() == name).copied();
        target.ok_or_else(|| TargetError { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests;
