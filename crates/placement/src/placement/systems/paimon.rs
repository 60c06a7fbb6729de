//! Apache Paimon: fixed buckets.
//!
//! Source: apache/paimon `BinaryRow`, `MurmurHashUtils`, `FixedBucketRowKeyExtractor`.

use crate::placement::systems::hashes::murmur::{Tail, murmur3_32};
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// `bucket = N` with the bucket function `default`.
#[derive(Debug)]
pub(super) struct Paimon;

static PAIMON: About = About {
    name: "paimon",
    title: "Apache Paimon, fixed bucket",
    status: Status::Verified,
    source: "apache/paimon: BinaryRow, MurmurHashUtils; buckets as pypaimon 2.1 gives them. A NULL point in time is computed",
    bytes: "the key as a BinaryRow: bits of NULLs, 8 bytes for each column, longer text and bytes, and points in time (TIMESTAMP(6)), behind them",
    hash: "MurmurHash3_x86_32 over the words of the row, seed 42",
    formula: "abs(hash % N)",
    hash_type: HashType::Int32,
    unsigned: false,
    narrow_times: false,
    nulls: "",
    most_columns: usize::MAX,
    quote: "",
    clause: |key, count| format!("'bucket' = '{count}', 'bucket-key' = '{key}'"),
};

/// Returns the size of the NULL bitmap in bytes; its first eight bits hold the kind of row.
fn null_bytes(columns: usize) -> usize {
    (columns + 63 + 8) / 64 * 8
}

/// Appends a value after the fixed part, padded to whole words, and returns its position.
fn append(bytes: &mut Vec<u8>, value: &[u8]) -> u64 {
    let begin = bytes.len() as u64;
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    begin
}

impl System for Paimon {
    fn about(&self) -> &'static About {
        &PAIMON
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Uuid => Some("it has no such type; keep UUIDs as Utf8"),
            ColumnType::Interval | ColumnType::Interval64 => Some("it has no such type"),
            _ => None,
        }
    }

    fn encode(&self, value: Value<'_>, place: ValuePlace, bytes: &mut Vec<u8>) {
        let fixed = null_bytes(place.columns);
        if place.column == 0 {
            bytes.resize(fixed + 8 * place.columns, 0);
        }
        let slot = match value {
            Value::Null => {
                let bit = place.column + 8;
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte |= 1 << (bit % 8);
                }
                // Reserve its place after the fixed part.
                if place.column_type.is_timestamp() { append(bytes, &[0; 8]) << 32 } else { 0 }
            }
            Value::Bool(value) => u64::from(value),
            Value::Int(value, width) => {
                let bits = 8 * u32::from(width);
                value.cast_unsigned() & u64::MAX.checked_shr(64 - bits).unwrap_or(u64::MAX)
            }
            Value::Uint(value, _) => value,
            Value::Float(value) => u64::from(value.to_bits()),
            Value::Double(value) => value.to_bits(),
            Value::Date(days) => u64::from(days.cast_unsigned()),
            Value::Timestamp(micros) => {
                let (millis, rest) = (micros.div_euclid(1000), micros.rem_euclid(1000));
                let begin = append(bytes, &millis.to_le_bytes());
                // Nanoseconds of the millisecond.
                begin << 32 | (rest * 1000).cast_unsigned()
            }
            Value::Text(value) | Value::Bytes(value) if value.len() < 8 => {
                let word = value.iter().rev().fold(0, |word: u64, byte| word << 8 | u64::from(*byte));
                word | (0x80 | value.len() as u64) << 56
            }
            Value::Text(value) | Value::Bytes(value) => append(bytes, value) << 32 | value.len() as u64,
            Value::Uuid(value) => append(bytes, &value) << 32 | 16,
        };
        let at = fixed + 8 * place.column;
        if let Some(bytes) = bytes.get_mut(at..at + 8) {
            bytes.copy_from_slice(&slot.to_le_bytes());
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| u64::from(murmur3_32(bytes, 42, Tail::Together)));
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        let rest = i64::from((hash as u32).cast_signed()) % i64::from(partitions);
        rest.unsigned_abs() as u32
    }
}
