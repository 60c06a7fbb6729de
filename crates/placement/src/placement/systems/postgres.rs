//! PostgreSQL and the systems built on it: Citus and Greenplum. All hash a column with the function
//! of its type.
//!
//! Source: postgres/postgres `src/common/hashfn.c`, `src/backend/partitioning/partbounds.c`;
//! citusdata/citus `shardinterval_utils.c`; greenplum-db/gpdb `src/backend/cdb/cdbhash.c`.

use crate::placement::systems::hashes::jenkins::{hash_bytes, hash_bytes_extended};
use crate::placement::systems::key::{DAYS_TO_2000, MICROS_TO_2000};
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// `PARTITION BY HASH`.
#[derive(Debug)]
pub(super) struct Postgres;

/// Shards of a distributed table of Citus.
#[derive(Debug)]
pub(super) struct Citus;

/// Segments of Greenplum.
#[derive(Debug)]
pub(super) struct Greenplum;

const BYTES: &str = "integers folded to 4 bytes, text and bytes as they are, a UUID as 16 bytes, dates and points in time as days and microseconds since 2000";

static POSTGRES: About = About {
    name: "postgres",
    title: "PostgreSQL, PARTITION BY HASH",
    status: Status::Verified,
    source: "postgres/postgres: src/common/hashfn.c, src/backend/partitioning/partbounds.c; partitions of tables of PostgreSQL 15",
    bytes: BYTES,
    hash: "lookup3 with a seed, 64 bits, columns combined; NULL is left out",
    formula: "hash % N",
    hash_type: HashType::Uint64,
    unsigned: false,
    narrow_times: false,
    nulls: "",
    most_columns: 32,
    quote: "\"",
    clause: |key, count| {
        format!(
            "PARTITION BY HASH ({key}) -- and {count} partitions FOR VALUES WITH (MODULUS {count}, REMAINDER 0) and so on"
        )
    },
};

static CITUS: About = About {
    name: "citus",
    title: "Citus, distributed table",
    status: Status::Verified,
    source: "citusdata/citus: src/backend/distributed/metadata; the hash functions as PostgreSQL 15 prints them; the ranges of its documentation",
    bytes: BYTES,
    hash: "lookup3, 32 bits",
    formula: "the range of the 32-bit space that holds the hash: (hash + 2^31) / (2^32 / N)",
    hash_type: HashType::Int32,
    unsigned: false,
    narrow_times: false,
    nulls: "takes no NULL in a distribution column",
    most_columns: 1,
    quote: "",
    clause: |key, count| format!("SELECT create_distributed_table('...', '{key}', shard_count => {count})"),
};

static GREENPLUM: About = About {
    name: "greenplum",
    title: "Greenplum 6 and 7, DISTRIBUTED BY",
    status: Status::Verified,
    source: "greenplum-db/gpdb: src/backend/cdb/cdbhash.c, and segments in its regression tests and in the test of a connector, for INT and TEXT; other types are computed",
    bytes: BYTES,
    hash: "lookup3 of each column, 32 bits, combined by a rotation and XOR; NULL only rotates",
    formula: "jump consistent hash",
    hash_type: HashType::Uint32,
    unsigned: false,
    narrow_times: false,
    nulls: "",
    most_columns: usize::MAX,
    quote: "\"",
    clause: |key, count| format!("DISTRIBUTED BY ({key}), on {count} segments"),
};

/// The seed of `compute_partition_hash_value`.
const SEED: u64 = 0x7A5B_2236_7996_DCFD;

fn refuses(column_type: ColumnType) -> Option<&'static str> {
    match column_type {
        ColumnType::Int8 => Some("it has no such type; take Int16"),
        ColumnType::Interval | ColumnType::Interval64 => Some("how it hashes an interval is not modelled"),
        ColumnType::Json | ColumnType::JsonDocument => Some("how it hashes json is not modelled"),
        _ => None,
    }
}

/// Folds an integer of 8 bytes so that one of 4 bytes with the same value has the same hash.
fn folded(value: i64) -> u32 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    low ^ if value >= 0 { high } else { !high }
}

/// Passes the bytes that the function of a type hashes to `show`; `None` for NULL and for
/// floating-point zeros, which have a special hash.
fn with_bytes<T>(value: Value<'_>, show: impl FnOnce(&[u8]) -> T) -> Option<T> {
    match value {
        Value::Null => None,
        Value::Bool(value) => Some(show(&u32::from(value).to_le_bytes())),
        Value::Int(value, _) => Some(show(&folded(value).to_le_bytes())),
        Value::Uint(value, _) => Some(show(&folded(value.cast_signed()).to_le_bytes())),
        Value::Float(value) => double(f64::from(value)).map(|bytes| show(&bytes)),
        Value::Double(value) => double(value).map(|bytes| show(&bytes)),
        Value::Text(bytes) | Value::Bytes(bytes) => Some(show(bytes)),
        Value::Uuid(bytes) => Some(show(&bytes)),
        Value::Date(days) => Some(show(&days.wrapping_sub(DAYS_TO_2000).to_le_bytes())),
        Value::Timestamp(micros) => Some(show(&folded(micros.wrapping_sub(MICROS_TO_2000)).to_le_bytes())),
    }
}

/// Returns the bytes of a float, with a single NaN; `None` for both zeros, which share a hash.
fn double(value: f64) -> Option<[u8; 8]> {
    match value {
        0.0 => None,
        value if value.is_nan() => Some(f64::NAN.to_le_bytes()),
        value => Some(value.to_le_bytes()),
    }
}

/// Returns the hash of a value; 0 for zeros and NULL.
fn hash_32(value: Value<'_>) -> u32 {
    with_bytes(value, hash_bytes).unwrap_or(0)
}

fn encode(value: Value<'_>, bytes: &mut Vec<u8>) {
    with_bytes(value, |value| bytes.extend_from_slice(value));
}

impl System for Postgres {
    fn about(&self) -> &'static About {
        &POSTGRES
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        refuses(column_type)
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        encode(value, bytes);
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.chained(0, hashes, |hash, value| {
            let of_value = match value {
                Value::Null => return hash,
                value => with_bytes(value, |bytes| hash_bytes_extended(bytes, SEED)).unwrap_or(SEED),
            };
            hash ^ of_value
                .wrapping_add(0x49A0_F4DD_15E5_A8E3)
                .wrapping_add(hash << 54)
                .wrapping_add(hash >> 7)
        });
    }
}

impl System for Citus {
    fn about(&self) -> &'static About {
        &CITUS
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        refuses(column_type)
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        encode(value, bytes);
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.chained(0, hashes, |_, value| u64::from(hash_32(value)));
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        // Count signed numbers from the smallest.
        let from_least = u64::from(hash as u32 ^ 1 << 31);
        let increment = (1u64 << 32) / u64::from(partitions);
        // The last range also gets the remainder of the division.
        (from_least / increment).min(u64::from(partitions) - 1) as u32
    }
}

impl System for Greenplum {
    fn about(&self) -> &'static About {
        &GREENPLUM
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        refuses(column_type)
    }

    fn is_computed(&self, column_type: ColumnType) -> bool {
        !matches!(column_type, ColumnType::Int32 | ColumnType::Utf8)
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        encode(value, bytes);
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.chained(0, hashes, |hash, value| {
            let rotated = (hash as u32).rotate_left(1);
            u64::from(match value {
                Value::Null => rotated,
                value => rotated ^ hash_32(value),
            })
        });
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        jump(hash, partitions)
    }
}

/// Jump consistent hash (Lamping and Veach, 2014).
fn jump(mut key: u64, buckets: u32) -> u32 {
    let (mut bucket, mut next) = (0, 0i64);
    while next < i64::from(buckets) {
        bucket = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = ((bucket + 1) as f64 * ((1u64 << 31) as f64 / ((key >> 33) + 1) as f64)) as i64;
    }
    bucket as u32
}
