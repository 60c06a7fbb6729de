//! Apache Iceberg: the bucket transform.
//!
//! Source: the specification of Iceberg, appendix B.

use crate::placement::systems::hashes::murmur::{Tail, murmur3_32};
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// `bucket[N]`.
#[derive(Debug)]
pub(super) struct Iceberg;

static ICEBERG: About = About {
    name: "iceberg",
    title: "Apache Iceberg, bucket[N]",
    status: Status::Verified,
    source: "the specification of Iceberg, appendix B; buckets as pyiceberg 0.12 gives them",
    bytes: "integers, dates and points in time (microseconds) as 8 little-endian bytes, text and bytes as they are, a UUID as 16 bytes. NULL, whose bucket is NULL, counts as hash 0",
    hash: "MurmurHash3_x86_32, seed 0",
    formula: "(hash & 0x7fffffff) % N",
    hash_type: HashType::Int32,
    unsigned: false,
    narrow_times: false,
    nulls: "keeps NULL in a partition of its own",
    most_columns: 1,
    quote: "`",
    clause: |key, count| format!("PARTITIONED BY (bucket({count}, {key}))"),
};

impl System for Iceberg {
    fn about(&self) -> &'static About {
        &ICEBERG
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Bool | ColumnType::Float | ColumnType::Double => {
                Some("the transform takes no such type")
            }
            ColumnType::Interval | ColumnType::Interval64 => Some("it has no such type"),
            _ => None,
        }
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        match value {
            Value::Int(value, _) | Value::Timestamp(value) => bytes.extend_from_slice(&value.to_le_bytes()),
            Value::Date(days) => bytes.extend_from_slice(&i64::from(days).to_le_bytes()),
            Value::Text(text) | Value::Bytes(text) => bytes.extend_from_slice(text),
            Value::Uuid(uuid) => bytes.extend_from_slice(&uuid),
            _ => {}
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| u64::from(murmur3_32(bytes, 0, Tail::Together)));
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        (hash as u32 & 0x7FFF_FFFF) % partitions
    }
}
