//! YugabyteDB: hash-sharded tables of YSQL.
//!
//! Source: yugabyte/yugabyte-db `yb_partition.cc`, `jenkins.cc`.

use crate::placement::systems::hashes::jenkins::lookup2_64;
use crate::placement::systems::key::{DAYS_TO_2000, MICROS_TO_2000, push_big_endian};
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// `PRIMARY KEY (KEY HASH)`, split into N tablets.
#[derive(Debug)]
pub(super) struct Yugabyte;

static YUGABYTE: About = About {
    name: "yugabyte",
    title: "YugabyteDB, YSQL, hash-sharded table",
    status: Status::Verified,
    source: "yugabyte/yugabyte-db: yb_partition.cc, jenkins.cc; yb_hash_code of its documentation and of yb.orig.hash_code.out. UUIDs, truth values and points in time are computed",
    bytes: "integers and floating point big-endian, text and bytes as they are, dates and points in time as days and microseconds since 2000; NULL adds nothing",
    hash: "lookup2 for 64 bits, seed 97, folded to 16 bits",
    formula: "the largest i with i x 65536 / N at most the hash",
    hash_type: HashType::Uint32,
    unsigned: false,
    narrow_times: false,
    nulls: "takes no NULL in a primary key",
    most_columns: usize::MAX,
    quote: "\"",
    clause: |key, count| format!("PRIMARY KEY (({key}) HASH) SPLIT INTO {count} TABLETS"),
};

impl System for Yugabyte {
    fn about(&self) -> &'static About {
        &YUGABYTE
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Int8 => Some("YSQL has no such type; take Int16"),
            ColumnType::Interval | ColumnType::Interval64 | ColumnType::Json | ColumnType::JsonDocument => {
                Some("it takes none as a hash key")
            }
            _ => None,
        }
    }

    fn is_computed(&self, column_type: ColumnType) -> bool {
        matches!(column_type, ColumnType::Uuid | ColumnType::Bool) || column_type.is_time()
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        match value {
            Value::Null => {}
            Value::Bool(value) => bytes.push(u8::from(value)),
            Value::Int(value, width) => push_big_endian(value.cast_unsigned(), width, bytes),
            Value::Uint(value, _) => bytes.extend_from_slice(&value.to_be_bytes()),
            Value::Float(value) if value.is_nan() => bytes.extend_from_slice(&0x7FC0_0000u32.to_be_bytes()),
            Value::Float(value) => bytes.extend_from_slice(&value.to_be_bytes()),
            Value::Double(value) if value.is_nan() => {
                bytes.extend_from_slice(&0x7FF8_0000_0000_0000u64.to_be_bytes());
            }
            Value::Double(value) => bytes.extend_from_slice(&value.to_be_bytes()),
            Value::Text(value) | Value::Bytes(value) => bytes.extend_from_slice(value),
            Value::Uuid(value) => bytes.extend_from_slice(&value),
            Value::Date(days) => bytes.extend_from_slice(&days.wrapping_sub(DAYS_TO_2000).to_be_bytes()),
            Value::Timestamp(micros) => {
                bytes.extend_from_slice(&micros.wrapping_sub(MICROS_TO_2000).to_be_bytes())
            }
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| {
            let hash = lookup2_64(bytes, 97);
            let pieces = [
                hash >> 48,
                3u64.wrapping_mul(hash >> 32),
                5u64.wrapping_mul(hash >> 16),
                7 * (hash & 0xFFFF),
            ];
            let folded = pieces.iter().fold(0, |folded, piece| folded ^ piece);
            folded & 0xFFFF
        });
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        let (code, count) = (hash & 0xFFFF, u64::from(partitions));
        // Start of tablet i: i x 65536 / N, rounded down.
        let begin = |tablet: u64| tablet * 65_536 / count;
        let mut tablet = code * count / 65_536;
        while tablet + 1 < count && begin(tablet + 1) <= code {
            tablet += 1;
        }
        tablet as u32
    }
}
