//! Placement of other systems: the hashed bytes of a key, the hash function, and the partition of a
//! hash.
//!
//! A system is one file with a [`System`] and one line in [`SYSTEMS`]. docs/PLACEMENTS.md lists
//! them all and how well each is verified.

mod cassandra;
mod clickhouse;
mod cockroach;
mod doris;
mod hashes;
mod hive;
mod iceberg;
mod kafka;
mod key;
mod kudu;
mod mongodb;
mod neutral;
mod paimon;
mod postgres;
mod spanner;
mod spark;
mod yugabyte;

use std::fmt;

use arrow::array::ArrayRef;
use serde::Serialize;

pub use crate::placement::systems::key::{KeyValues, Value};

use crate::placement::key_bytes::PlacementError;
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::PartitionId;

/// All systems, grouped by kind.
pub static SYSTEMS: &[&dyn System] = &[
    &doris::Doris,
    &doris::StarRocks,
    &postgres::Citus,
    &postgres::Postgres,
    &postgres::Greenplum,
    &yugabyte::Yugabyte,
    &cockroach::Cockroach,
    &cassandra::Cassandra,
    &cassandra::VNODES_16,
    &cassandra::VNODES_256,
    &kudu::Kudu,
    &mongodb::MongoDb,
    &clickhouse::CITY,
    &clickhouse::SIP,
    &clickhouse::XX,
    &clickhouse::INT_32,
    &clickhouse::INT_64,
    &kafka::JAVA,
    &kafka::LIBRDKAFKA,
    &iceberg::Iceberg,
    &spark::Spark,
    &hive::Hive,
    &hive::HiveV1,
    &paimon::Paimon,
    &spanner::SpannerShard,
    &neutral::Neutral,
];

/// Degree to which a function is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Reproduces values that the system published, or that an instance of it printed.
    Verified,
    /// Follows the documented formula or the source code, but for some of its inputs no value of
    /// the system was available for comparison.
    Computed,
    /// Represents systems that publish no function.
    Neutral,
}

impl Status {
    /// Returns the status as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Computed => "computed",
            Self::Neutral => "neutral",
        }
    }
}

/// Number type of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashType {
    /// Signed, 32 bits.
    Int32,
    /// Unsigned, 32 bits or fewer.
    Uint32,
    /// Signed, 64 bits.
    Int64,
    /// Unsigned, 64 bits.
    Uint64,
}

impl HashType {
    /// Formats a hash as the system writes it.
    #[must_use]
    pub fn text(self, hash: u64) -> String {
        match self {
            Self::Int32 => (hash as u32).cast_signed().to_string(),
            Self::Uint32 | Self::Uint64 => hash.to_string(),
            Self::Int64 => hash.cast_signed().to_string(),
        }
    }
}

/// Description of a system.
#[derive(Debug)]
pub struct About {
    /// Name of the system on the command line and in JSON.
    pub name: &'static str,
    /// Title: the system and the placed objects.
    pub title: &'static str,
    /// Degree to which it is verified.
    pub status: Status,
    /// Source of its values or its formula.
    pub source: &'static str,
    /// Description of the bytes that are hashed.
    pub bytes: &'static str,
    /// Description of the hash function.
    pub hash: &'static str,
    /// Formula from hash to partition, among N.
    pub formula: &'static str,
    /// Number type of a hash.
    pub hash_type: HashType,
    /// Whether it has unsigned integers; otherwise they are hashed as signed ones that can hold
    /// them.
    pub unsigned: bool,
    /// Whether its Date has 2 bytes and its Datetime 4, both unsigned.
    pub narrow_times: bool,
    /// Treatment of NULL, if it does not hash NULL.
    pub nulls: &'static str,
    /// Maximum number of columns of a key.
    pub most_columns: usize,
    /// Quotation mark for names that are not plain words.
    pub quote: &'static str,
    /// Clause that declares a partition key of these columns over this number of partitions; empty
    /// if not known.
    pub clause: fn(&str, u32) -> String,
}

/// Position of a value in the key.
#[derive(Debug, Clone, Copy)]
pub struct ValuePlace {
    /// Number of its column, from 0.
    pub column: usize,
    /// Number of columns of the key.
    pub columns: usize,
    /// Type of the column.
    pub column_type: ColumnType,
}

/// A system that places rows by hash.
pub trait System: fmt::Debug + Sync {
    /// Returns the description of the system.
    fn about(&self) -> &'static About;

    /// Returns the reason why it accepts no keys of a type; `None` if it does.
    fn refuses(&self, column_type: ColumnType) -> Option<&'static str>;

    /// Whether no value of the system was available for keys of a type, so that these are computed
    /// from its source code alone.
    fn is_computed(&self, column_type: ColumnType) -> bool {
        let _ = column_type;
        false
    }

    /// Appends the bytes that a value adds to the hash input.
    fn encode(&self, value: Value<'_>, place: ValuePlace, bytes: &mut Vec<u8>);

    /// Writes the hash of every row into `hashes`.
    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>);

    /// Returns the partition of a hash among `partitions`, which is at least 1: the remainder,
    /// unless the system defines it otherwise.
    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        (hash % u64::from(partitions)) as u32
    }

    /// Whether all partitions have equal shares of the hashes.
    fn has_even_ranges(&self) -> bool {
        true
    }

    /// Appends the partition of every hash to `ids`.
    fn assign(&self, hashes: &[u64], partitions: u32, ids: &mut Vec<PartitionId>) {
        ids.extend(hashes.iter().map(|hash| PartitionId(self.partition(*hash, partitions))));
    }
}

/// The key columns of some rows.
#[derive(Debug)]
pub struct KeyColumns {
    columns: Vec<(ColumnType, KeyValues)>,
    rows: usize,
}

impl KeyColumns {
    /// Reads the columns of a key for a system.
    ///
    /// # Errors
    /// [`PlacementError`] if a column is not of its type, or the system does not accept such a key.
    pub fn read(
        system: &dyn System,
        types: &[ColumnType],
        arrays: &[ArrayRef],
    ) -> Result<Self, PlacementError> {
        let about = system.about();
        if types.len() != arrays.len() {
            return Err(PlacementError::ColumnCount { expected: types.len(), found: arrays.len() });
        }
        takes(system, types)?;
        let mut columns = Vec::with_capacity(arrays.len());
        for (column, (column_type, array)) in types.iter().zip(arrays).enumerate() {
            columns.push((*column_type, KeyValues::read(column, *column_type, array, about)?));
        }
        let rows = columns.first().map_or(0, |(_, values)| values.rows());
        for (column, (_, values)) in columns.iter().enumerate() {
            if values.rows() != rows {
                return Err(PlacementError::RowCount { column, expected: rows, found: values.rows() });
            }
        }
        Ok(Self { columns, rows })
    }

    /// Returns the bytes of a row that a system hashes.
    #[must_use]
    pub fn bytes(&self, system: &dyn System, row: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (place, values) in self.places() {
            system.encode(values.value(row), place, &mut bytes);
        }
        bytes
    }

    /// Returns the rows with NULL in any column.
    fn rows_with_null(&self) -> Vec<usize> {
        let mut rows = Vec::new();
        for (_, values) in self.columns.iter().filter(|(_, values)| values.null_count() > 0) {
            values.for_each(|row, value| {
                if value == Value::Null {
                    rows.push(row);
                }
            });
        }
        rows
    }

    fn places(&self) -> impl Iterator<Item = (ValuePlace, &KeyValues)> {
        let columns = self.columns.len();
        self.columns.iter().enumerate().map(move |(column, (column_type, values))| {
            (ValuePlace { column, columns, column_type: *column_type }, values)
        })
    }

    /// Hashes each row by adding its values one after the other, starting from `seed`.
    #[inline(always)]
    fn chained(&self, seed: u64, hashes: &mut Vec<u64>, step: impl Fn(u64, Value<'_>) -> u64) {
        hashes.clear();
        hashes.resize(self.rows, seed);
        self.each(hashes, |_, hash, value| step(hash, value));
    }

    /// Updates the hash of each row with its value in each column; `step` also receives the column
    /// number.
    #[inline(always)]
    fn each(&self, hashes: &mut Vec<u64>, step: impl Fn(usize, u64, Value<'_>) -> u64) {
        hashes.resize(self.rows, 0);
        for (column, (_, values)) in self.columns.iter().enumerate() {
            values.for_each(|row, value| {
                if let Some(hash) = hashes.get_mut(row) {
                    *hash = step(column, *hash, value);
                }
            });
        }
    }

    /// Hashes each row by the concatenated bytes of its values.
    #[inline(always)]
    fn concatenated<S: System>(&self, system: &S, hashes: &mut Vec<u64>, hash: impl Fn(&[u8]) -> u64) {
        hashes.clear();
        hashes.reserve(self.rows);
        let mut bytes = Vec::new();
        if let [(column_type, column)] = self.columns.as_slice() {
            let place = ValuePlace { column: 0, columns: 1, column_type: *column_type };
            column.for_each(|_, value| {
                bytes.clear();
                system.encode(value, place, &mut bytes);
                hashes.push(hash(&bytes));
            });
            return;
        }
        for row in 0..self.rows {
            bytes.clear();
            for (place, values) in self.places() {
                system.encode(values.value(row), place, &mut bytes);
            }
            hashes.push(hash(&bytes));
        }
    }
}

/// Rejects keys that a system does not accept.
pub(super) fn takes(system: &dyn System, types: &[ColumnType]) -> Result<(), PlacementError> {
    let about = system.about();
    let refused = |reason: String| PlacementError::System { system: about.name, reason };
    if types.len() > about.most_columns {
        let most = match about.most_columns {
            1 => "one column".to_owned(),
            most => format!("at most {most} columns"),
        };
        return Err(refused(format!("hashes {most}; the key has {}", types.len())));
    }
    for column_type in types {
        if let ColumnType::Decimal { .. } = column_type {
            return Err(PlacementError::Unmodelled { column_type: *column_type });
        }
        if let Some(reason) = system.refuses(*column_type) {
            return Err(refused(format!("accepts no {column_type} in a key: {reason}")));
        }
    }
    Ok(())
}

/// Returns how well a system is verified for keys of these types.
#[must_use]
pub(super) fn status_of(system: &dyn System, types: &[ColumnType]) -> Status {
    match system.about().status {
        Status::Verified if types.iter().any(|column_type| system.is_computed(*column_type)) => {
            Status::Computed
        }
        status => status,
    }
}

/// Returns the system of this name.
#[must_use]
pub fn system(name: &str) -> Option<&'static dyn System> {
    SYSTEMS.iter().copied().find(|system| system.about().name == name)
}

#[cfg(test)]
mod tests;
