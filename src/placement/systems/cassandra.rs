//! Apache Cassandra and ScyllaDB: tokens of the Murmur3 partitioner on a ring.

use crate::placement::systems::hashes::murmur::murmur3_cassandra;
use crate::placement::systems::{About, HashType, Key, Place, Status, System, Value};
use crate::table::ColumnType;

/// Evenly spaced tokens, one for each of N nodes.
#[derive(Debug)]
pub(super) struct Cassandra;

static CASSANDRA: About = About {
    name: "cassandra",
    title: "Apache Cassandra and ScyllaDB, Murmur3Partitioner, one evenly spaced token a node",
    status: Status::Verified,
    source: "apache/cassandra: Murmur3Partitioner, MurmurHash; tokens as the driver of DataStax makes them",
    bytes: "the serialized value, big-endian, points in time in milliseconds; of several columns each between its length in 2 bytes and a zero byte",
    hash: "MurmurHash3_x64_128, the first 64 bits, with signed bytes behind the last block",
    formula: "the node with the next token: token i is i x (2^64 / N) - 2^63",
    hash_type: HashType::Int64,
    unsigned: false,
    most_columns: usize::MAX,
    clause: |key, count| format!("PRIMARY KEY (({key}), ...), on {count} nodes"),
};

impl System for Cassandra {
    fn about(&self) -> &'static About {
        &CASSANDRA
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Interval | ColumnType::Interval64 => Some("a duration is no key there"),
            _ => None,
        }
    }

    fn encode(&self, value: Value<'_>, place: Place, bytes: &mut Vec<u8>) {
        let begin = bytes.len();
        if place.columns > 1 {
            bytes.extend_from_slice(&[0, 0]);
        }
        match value {
            Value::Null => {}
            Value::Bool(value) => bytes.push(u8::from(value)),
            Value::Int(value, width) => {
                bytes
                    .extend_from_slice(value.to_be_bytes().get(8 - usize::from(width)..).unwrap_or_default());
            }
            Value::Uint(value, width) => {
                bytes
                    .extend_from_slice(value.to_be_bytes().get(8 - usize::from(width)..).unwrap_or_default());
            }
            Value::Float(value) => bytes.extend_from_slice(&value.to_be_bytes()),
            Value::Double(value) => bytes.extend_from_slice(&value.to_be_bytes()),
            Value::Text(text) | Value::Bytes(text) => bytes.extend_from_slice(text),
            Value::Uuid(uuid) => bytes.extend_from_slice(&uuid),
            // Days since 5877641 BC, that is unsigned with 1970 in the middle.
            Value::Date(days) => bytes.extend_from_slice(&(days.cast_unsigned() ^ 1 << 31).to_be_bytes()),
            Value::Timestamp(micros) => bytes.extend_from_slice(&micros.div_euclid(1000).to_be_bytes()),
        }
        if place.columns > 1 {
            let length = (bytes.len() - begin - 2) as u16;
            if let Some(prefix) = bytes.get_mut(begin..begin + 2) {
                prefix.copy_from_slice(&length.to_be_bytes());
            }
            bytes.push(0);
        }
    }

    fn hash(&self, key: &Key, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| {
            // The least number is no token.
            let token = match murmur3_cassandra(bytes) {
                i64::MIN => i64::MAX,
                token => token,
            };
            token.cast_unsigned()
        });
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        // Tokens from the least on; a token belongs to the next node, the last ones to the first.
        let from_least = hash ^ 1 << 63;
        if partitions == 1 {
            return 0;
        }
        let between = u64::MAX / u64::from(partitions) + u64::from(partitions.is_power_of_two());
        let next = from_least.div_ceil(between);
        if next >= u64::from(partitions) { 0 } else { next as u32 }
    }
}
