//! Apache Hive: buckets of both versions.
//!
//! Source: apache/hive `ObjectInspectorUtils`, `Murmur3`.

use crate::placement::systems::hashes::murmur::{Tail, murmur3_32};
use crate::placement::systems::key::{java_double, java_float};
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// `CLUSTERED BY (...) INTO N BUCKETS`, bucketing version 1.
#[derive(Debug)]
pub(super) struct HiveV1;

/// `CLUSTERED BY (...) INTO N BUCKETS`, bucketing version 2, used by tables since Hive 3.
#[derive(Debug)]
pub(super) struct Hive;

static HIVE: About = About {
    name: "hive",
    title: "Apache Hive 3 and later, CLUSTERED BY, bucketing version 2",
    status: Status::Verified,
    source: "apache/hive: ObjectInspectorUtils, Murmur3; values of TestHiveBucketing of Trino",
    bytes: "integers of 2 to 8 bytes and days big-endian, text as it is; shorter integers and truth values are their own hash; floating point as the number that its bits are; NULL is 0",
    hash: "31 x the hash before + MurmurHash3_x86_32 of the value, seed 104729, with signed bytes behind the last word",
    formula: "(hash & 0x7fffffff) % N",
    hash_type: HashType::Int32,
    unsigned: false,
    narrow_times: false,
    nulls: "",
    most_columns: usize::MAX,
    quote: "`",
    clause: |key, count| format!("CLUSTERED BY ({key}) INTO {count} BUCKETS"),
};

static HIVE_V1: About = About {
    name: "hive-v1",
    title: "Apache Hive, CLUSTERED BY, bucketing version 1",
    status: Status::Verified,
    source: "apache/hive: ObjectInspectorUtils; buckets as hive-serde 2.3.10 gives them. TINYINT and SMALLINT are computed",
    bytes: "values, each by the hash code of its type in Java; NULL as 0",
    hash: "31 x the hash before + that of the value, 32 bits; of text likewise over its signed bytes",
    formula: "(hash & 0x7fffffff) % N",
    hash_type: HashType::Int32,
    unsigned: false,
    narrow_times: false,
    nulls: "",
    most_columns: usize::MAX,
    quote: "`",
    clause: |key, count| {
        format!("CLUSTERED BY ({key}) INTO {count} BUCKETS TBLPROPERTIES ('bucketing_version' = '1')")
    },
};

/// Folds 64 bits to 32.
fn folded(word: u64) -> u32 {
    (word ^ (word >> 32)) as u32
}

fn hash_seeded(seed: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(seed, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(i32::from(byte.cast_signed()).cast_unsigned())
    })
}

fn value_hash(value: Value<'_>) -> u32 {
    match value {
        Value::Null => 0,
        Value::Bool(value) => u32::from(value),
        Value::Int(value, 8) => folded(value.cast_unsigned()),
        Value::Int(value, _) => (value as i32).cast_unsigned(),
        Value::Uint(value, _) => folded(value),
        Value::Float(value) => java_float(value),
        Value::Double(value) => folded(java_double(value)),
        Value::Text(bytes) => hash_seeded(0, bytes),
        Value::Bytes(bytes) => hash_seeded(1, bytes),
        Value::Uuid(bytes) => hash_seeded(1, &bytes),
        Value::Date(days) => days.cast_unsigned(),
        Value::Timestamp(micros) => {
            let (seconds, nanos) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000) * 1000);
            folded((seconds << 30 | nanos).cast_unsigned())
        }
    }
}

impl System for HiveV1 {
    fn about(&self) -> &'static About {
        &HIVE_V1
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Uuid => Some("it has no such type; keep UUIDs as Utf8"),
            ColumnType::Interval | ColumnType::Interval64 => {
                Some("how it hashes an interval is not modelled")
            }
            _ => None,
        }
    }

    fn is_computed(&self, column_type: ColumnType) -> bool {
        matches!(column_type, ColumnType::Int8 | ColumnType::Int16)
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        match value {
            Value::Text(value) | Value::Bytes(value) => bytes.extend_from_slice(value),
            other => bytes.extend_from_slice(&value_hash(other).to_be_bytes()),
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.chained(0, hashes, |hash, value| {
            u64::from((hash as u32).wrapping_mul(31).wrapping_add(value_hash(value)))
        });
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        (hash as u32 & 0x7FFF_FFFF) % partitions
    }
}

/// Passes the bytes that version 2 hashes to `show`; `None` if a value is its own hash.
#[inline(always)]
fn with_bytes<T>(value: Value<'_>, show: impl FnOnce(&[u8]) -> T) -> Option<T> {
    match value {
        Value::Int(value, 2) => Some(show(&(value as i16).to_be_bytes())),
        Value::Int(value, 4) => Some(show(&(value as i32).to_be_bytes())),
        Value::Int(value, 8) => Some(show(&value.to_be_bytes())),
        Value::Float(value) => Some(show(&(java_float(value).cast_signed() as f32).to_be_bytes())),
        Value::Double(value) => Some(show(&(java_double(value).cast_signed() as f64).to_be_bytes())),
        Value::Text(bytes) => Some(show(bytes)),
        Value::Date(days) => Some(show(&days.to_be_bytes())),
        _ => None,
    }
}

impl System for Hive {
    fn about(&self) -> &'static About {
        &HIVE
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Uuid => Some("it has no such type; keep UUIDs as Utf8"),
            ColumnType::String | ColumnType::Yson => Some("how it hashes bytes is not established"),
            ColumnType::Datetime
            | ColumnType::Datetime64
            | ColumnType::Timestamp
            | ColumnType::Timestamp64
            | ColumnType::Interval
            | ColumnType::Interval64 => Some("how it hashes points in time is not established"),
            _ => None,
        }
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        if with_bytes(value, |value| bytes.extend_from_slice(value)).is_none() {
            bytes.extend_from_slice(&value_hash(value).to_be_bytes());
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.chained(0, hashes, |hash, value| {
            let hashed = with_bytes(value, |bytes| murmur3_32(bytes, 104_729, Tail::Signed));
            let of_value = hashed.unwrap_or_else(|| value_hash(value));
            u64::from((hash as u32).wrapping_mul(31).wrapping_add(of_value))
        });
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        (hash as u32 & 0x7FFF_FFFF) % partitions
    }
}
