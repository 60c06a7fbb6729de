//! Apache Spark: `bucketBy`, `repartition`, and the function `hash`.
//!
//! Source: apache/spark `Murmur3Hash`, `Murmur3_x86_32`.

use crate::placement::systems::hashes::murmur::{Tail, murmur3_32};
use crate::placement::systems::key::{java_double, java_float};
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// `bucketBy(N, ...)`.
#[derive(Debug)]
pub(super) struct Spark;

static SPARK: About = About {
    name: "spark",
    title: "Apache Spark, bucketBy and repartition",
    status: Status::Verified,
    source: "apache/spark: Murmur3Hash, Murmur3_x86_32; hash() and pmod() of Spark 4.3",
    bytes: "integers to 32 bits, truth values and dates as 4 little-endian bytes, longer integers and points in time (microseconds) as 8, floating point as its bits, text and bytes as they are; NULL is left out",
    hash: "MurmurHash3_x86_32 of each column with the hash before as its seed, 42 at first; bytes behind the last word one by one",
    formula: "pmod(hash, N)",
    hash_type: HashType::Int32,
    unsigned: false,
    narrow_times: false,
    nulls: "",
    most_columns: usize::MAX,
    quote: "`",
    clause: |key, count| format!("CLUSTERED BY ({key}) INTO {count} BUCKETS"),
};

/// Passes the bytes of a value that is not NULL to `show`.
#[inline(always)]
fn with_bytes<T>(value: Value<'_>, show: impl FnOnce(&[u8]) -> T) -> Option<T> {
    match value {
        Value::Null => None,
        Value::Bool(value) => Some(show(&i32::from(value).to_le_bytes())),
        Value::Int(value, 8) => Some(show(&value.to_le_bytes())),
        Value::Int(value, _) => Some(show(&(value as i32).to_le_bytes())),
        Value::Uint(value, _) => Some(show(&value.to_le_bytes())),
        Value::Date(days) => Some(show(&days.to_le_bytes())),
        Value::Timestamp(micros) => Some(show(&micros.to_le_bytes())),
        // Both zeros have the same hash.
        Value::Float(value) => Some(show(&java_float(if value == 0.0 { 0.0 } else { value }).to_le_bytes())),
        Value::Double(value) => {
            Some(show(&java_double(if value == 0.0 { 0.0 } else { value }).to_le_bytes()))
        }
        Value::Text(bytes) | Value::Bytes(bytes) => Some(show(bytes)),
        Value::Uuid(bytes) => Some(show(&bytes)),
    }
}

impl System for Spark {
    fn about(&self) -> &'static About {
        &SPARK
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Uuid => Some("it has no such type; keep UUIDs as Utf8"),
            _ => None,
        }
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        with_bytes(value, |value| bytes.extend_from_slice(value));
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.chained(42, hashes, |hash, value| {
            let hashed = with_bytes(value, |bytes| murmur3_32(bytes, hash as u32, Tail::Each));
            hashed.map_or(hash, u64::from)
        });
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        i64::from((hash as u32).cast_signed()).rem_euclid(i64::from(partitions)) as u32
    }
}
