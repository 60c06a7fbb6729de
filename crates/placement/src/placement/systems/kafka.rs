//! Apache Kafka: the default partitioners of the Java client and of librdkafka.
//!
//! Source: apache/kafka `Utils.murmur2`; confluentinc/librdkafka `rdkafka_msg.c`.

use crate::placement::systems::hashes::murmur::murmur2_32;
use crate::placement::systems::key::{java_double, java_float, push_big_endian};
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// A client: its description, its hash function, and a mask of the hash bits that count.
#[derive(Debug)]
pub(super) struct Client {
    about: &'static About,
    hash: fn(&[u8]) -> u32,
    mask: u32,
}

/// The Java client.
pub(super) static JAVA: Client =
    Client { about: &KAFKA, hash: |bytes| murmur2_32(bytes, 0x9747_B28C), mask: 0x7FFF_FFFF };
/// librdkafka and the clients built on it.
pub(super) static LIBRDKAFKA: Client =
    Client { about: &ABOUT_LIBRDKAFKA, hash: crc32fast::hash, mask: u32::MAX };

const BYTES: &str = "the serialized key: text and bytes as they are, integers big-endian as IntegerSerializer and its like have them, UUIDs as text. NULL, which \
                     clients place at random, counts as no bytes. What serializers make of numbers is computed";

static KAFKA: About = About {
    name: "kafka",
    title: "Apache Kafka, default partitioner of the Java client",
    status: Status::Verified,
    source: "apache/kafka: Utils.murmur2 and its tests; partitions as kafka-python and librdkafka (murmur2) give them",
    bytes: BYTES,
    hash: "MurmurHash2, 32 bits, seed 0x9747b28c",
    formula: "(hash & 0x7fffffff) % N",
    hash_type: HashType::Int32,
    unsigned: false,
    narrow_times: false,
    nulls: "places NULL keys at random",
    most_columns: 1,
    quote: "",
    clause: |key, count| format!("the record key {key}, with {count} partitions"),
};

static ABOUT_LIBRDKAFKA: About = About {
    name: "librdkafka",
    title: "librdkafka, partitioner consistent_random (its default)",
    source: "confluentinc/librdkafka: rdkafka_msg.c; partitions as version 2.16 gives them",
    hash: "CRC-32 of zlib",
    formula: "hash % N",
    hash_type: HashType::Uint32,
    nulls: "places NULL keys at random by default",
    ..KAFKA
};

impl System for Client {
    fn about(&self) -> &'static About {
        self.about
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Bool
            | ColumnType::Int8
            | ColumnType::Date
            | ColumnType::Date32
            | ColumnType::Datetime
            | ColumnType::Datetime64
            | ColumnType::Timestamp
            | ColumnType::Timestamp64
            | ColumnType::Interval
            | ColumnType::Interval64 => Some("its clients have no serializer for that; take Int64 or Utf8"),
            _ => None,
        }
    }

    fn is_computed(&self, column_type: ColumnType) -> bool {
        !matches!(
            column_type,
            ColumnType::Utf8
                | ColumnType::Json
                | ColumnType::JsonDocument
                | ColumnType::String
                | ColumnType::Yson
        )
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        match value {
            Value::Text(text) | Value::Bytes(text) => bytes.extend_from_slice(text),
            Value::Int(value, width) => push_big_endian(value.cast_unsigned(), width, bytes),
            Value::Float(value) => bytes.extend_from_slice(&java_float(value).to_be_bytes()),
            Value::Double(value) => bytes.extend_from_slice(&java_double(value).to_be_bytes()),
            Value::Uuid(uuid) => {
                let text = uuid::Uuid::from_bytes(uuid).hyphenated().to_string();
                bytes.extend_from_slice(text.as_bytes());
            }
            _ => {}
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| u64::from((self.hash)(bytes)));
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        (hash as u32 & self.mask) % partitions
    }
}
