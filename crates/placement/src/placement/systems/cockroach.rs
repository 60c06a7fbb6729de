//! CockroachDB: hash-sharded indexes.
//!
//! Source: cockroachdb/cockroach `hash_sharded_compute_expr.go`, `pkg/util/encoding`.

use md5::{Digest, Md5};

use crate::placement::systems::hashes::fnv1_32;
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// `USING HASH WITH (bucket_count = N)`.
#[derive(Debug)]
pub(super) struct Cockroach;

static COCKROACH: About = About {
    name: "cockroach",
    title: "CockroachDB 23.2 and later, hash-sharded index",
    status: Status::Verified,
    source: "cockroachdb/cockroach: hash_sharded_compute_expr.go, pkg/util/encoding; buckets of issue 147188 and of its tests, for INT8. Other types are computed",
    bytes: "crdb_internal.datums_to_bytes: the ascending encoding of keys",
    hash: "FNV-1, 32 bits, over the MD5 of these as 32 hexadecimal digits",
    formula: "hash % N",
    hash_type: HashType::Uint32,
    unsigned: false,
    narrow_times: false,
    nulls: "",
    most_columns: usize::MAX,
    quote: "\"",
    clause: |key, count| format!("INDEX ({key}) USING HASH WITH (bucket_count = {count})"),
};

/// Returns a number in big-endian bytes, with the smallest length that holds it.
fn minimal(number: u64) -> ([u8; 8], usize) {
    let length = 8 - (number.leading_zeros() / 8) as usize;
    (number.to_be_bytes(), length.max(1))
}

/// Encodes an integer: small ones in one byte, others after their length.
fn varint(value: i64, bytes: &mut Vec<u8>) {
    const ZERO: u8 = 0x88;
    match value {
        0..=109 => bytes.push(ZERO + value as u8),
        110.. => {
            let (number, length) = minimal(value.cast_unsigned());
            bytes.push(0xF5 + length as u8);
            bytes.extend_from_slice(number.get(8 - length..).unwrap_or_default());
        }
        _ => {
            let (_, length) = minimal(value.unsigned_abs());
            bytes.push(ZERO - length as u8);
            bytes.extend_from_slice(value.to_be_bytes().get(8 - length..).unwrap_or_default());
        }
    }
}

fn escaped(value: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(0x12);
    for byte in value {
        bytes.push(*byte);
        if *byte == 0 {
            bytes.push(0xFF);
        }
    }
    bytes.extend_from_slice(&[0x00, 0x01]);
}

fn double(value: f64, bytes: &mut Vec<u8>) {
    match value {
        value if value.is_nan() => bytes.push(0x02),
        0.0 => bytes.push(0x04),
        value if value < 0.0 => {
            bytes.push(0x03);
            bytes.extend_from_slice(&(!value.to_bits()).to_be_bytes());
        }
        value => {
            bytes.push(0x05);
            bytes.extend_from_slice(&value.to_bits().to_be_bytes());
        }
    }
}

impl System for Cockroach {
    fn about(&self) -> &'static About {
        &COCKROACH
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Interval | ColumnType::Interval64 => {
                Some("how it encodes an interval is not modelled")
            }
            ColumnType::Json | ColumnType::JsonDocument => Some("how it encodes JSON is not modelled"),
            _ => None,
        }
    }

    fn is_computed(&self, column_type: ColumnType) -> bool {
        !matches!(column_type, ColumnType::Int64)
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        match value {
            Value::Null => bytes.push(0x00),
            Value::Bool(value) => varint(i64::from(value), bytes),
            Value::Int(value, _) => varint(value, bytes),
            Value::Uint(value, _) => varint(value.cast_signed(), bytes),
            Value::Float(value) => double(f64::from(value), bytes),
            Value::Double(value) => double(value, bytes),
            Value::Text(value) | Value::Bytes(value) => escaped(value, bytes),
            Value::Uuid(value) => escaped(&value, bytes),
            Value::Date(days) => varint(i64::from(days), bytes),
            Value::Timestamp(micros) => {
                bytes.push(0x14);
                varint(micros.div_euclid(1_000_000), bytes);
                varint(micros.rem_euclid(1_000_000) * 1000, bytes);
            }
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| {
            let mut digits = [0; 32];
            let digest: [u8; 16] = Md5::digest(bytes).into();
            for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(digest) {
                let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
                *pair = [digit(byte >> 4), digit(byte & 15)];
            }
            u64::from(fnv1_32(&digits))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_encoded_as_published() {
        // pkg/util/encoding/encoding_test.go.
        for (value, expected) in [
            (i64::MIN, vec![0x80, 0x80, 0, 0, 0, 0, 0, 0, 0]),
            (-256, vec![0x86, 0xFF, 0x00]),
            (-1, vec![0x87, 0xFF]),
            (0, vec![0x88]),
            (109, vec![0xF5]),
            (112, vec![0xF6, 0x70]),
            (256, vec![0xF7, 0x01, 0x00]),
            (i64::MAX, vec![0xFD, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
        ] {
            let mut bytes = Vec::new();
            varint(value, &mut bytes);
            assert_eq!(bytes, expected, "{value}");
        }
    }
}
