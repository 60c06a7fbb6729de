//! Apache Kudu: hash partitions.
//!
//! Source: apache/kudu `partition.cc`, `key_encoder.h`, `hash_util.h`.

use crate::placement::systems::hashes::murmur::murmur2_64;
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// `PARTITION BY HASH (...) PARTITIONS N`.
#[derive(Debug)]
pub(super) struct Kudu;

static KUDU: About = About {
    name: "kudu",
    title: "Apache Kudu, PARTITION BY HASH, seed 0",
    status: Status::Verified,
    source: "apache/kudu: partition.cc, key_encoder.h, hash_util.h; buckets of partition-test.cc and TestKeyEncoding.java for integers and text. Dates and points in time are computed",
    bytes: "integers, days and microseconds big-endian with the sign turned; text and bytes as they are, before other columns with an end of two zero bytes. Columns in the order of the table",
    hash: "MurmurHash64A, seed 0",
    formula: "hash % N",
    hash_type: HashType::Uint64,
    unsigned: false,
    narrow_times: false,
    nulls: "takes no NULL in a key",
    most_columns: usize::MAX,
    quote: "`",
    clause: |key, count| format!("PARTITION BY HASH ({key}) PARTITIONS {count}"),
};

impl System for Kudu {
    fn about(&self) -> &'static About {
        &KUDU
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Bool | ColumnType::Float | ColumnType::Double => Some("a key takes no such type"),
            ColumnType::Uuid => Some("it has no such type; keep UUIDs as Utf8"),
            ColumnType::Interval | ColumnType::Interval64 => Some("it has no such type"),
            _ => None,
        }
    }

    fn is_computed(&self, column_type: ColumnType) -> bool {
        column_type.is_time()
    }

    fn encode(&self, value: Value<'_>, place: ValuePlace, bytes: &mut Vec<u8>) {
        let mut whole = |value: i64, width: usize| {
            let turned = value.cast_unsigned() ^ 1 << (8 * width - 1);
            bytes.extend_from_slice(turned.to_be_bytes().get(8 - width..).unwrap_or_default());
        };
        match value {
            Value::Int(value, width) => whole(value, usize::from(width)),
            Value::Date(days) => whole(i64::from(days), 4),
            Value::Timestamp(micros) => whole(micros, 8),
            Value::Text(value) | Value::Bytes(value) if place.column + 1 == place.columns => {
                bytes.extend_from_slice(value);
            }
            Value::Text(value) | Value::Bytes(value) => {
                for byte in value {
                    bytes.push(*byte);
                    if *byte == 0 {
                        bytes.push(1);
                    }
                }
                bytes.extend_from_slice(&[0, 0]);
            }
            // Kudu keys cannot be NULL.
            _ => {}
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| murmur2_64(bytes, 0));
    }
}
