//! MongoDB: hashed shard keys.
//!
//! Source: mongodb/mongo `hasher.cpp`, `initial_split_policy.cpp`.

use md5::{Digest, Md5};

use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// Initial chunks of a collection.
#[derive(Debug)]
pub(super) struct MongoDb;

static MONGODB: About = About {
    name: "mongodb",
    title: "MongoDB, hashed shard key, initial chunks",
    status: Status::Verified,
    source: "mongodb/mongo: hasher.cpp, hasher_test.cpp, initial_split_policy.cpp and its tests; which shard has a chunk is not derivable",
    bytes: "a seed of 0 and the canonical type as 4 little-endian bytes each; numbers as 8 (fractions cut off), text with its length and an end, UUIDs and bytes with length and subtype, ObjectIds as their 12 bytes, points in time in milliseconds",
    hash: "MD5, the first 8 bytes, little-endian",
    formula: "the range of the 64-bit space that holds the hash, N ranges around 0",
    hash_type: HashType::Int64,
    unsigned: false,
    narrow_times: false,
    nulls: "",
    most_columns: 1,
    quote: "'",
    clause: |key, count| {
        format!("sh.shardCollection('...', {{ {key}: 'hashed' }}, false, {{ numInitialChunks: {count} }})")
    },
};

impl System for MongoDb {
    fn about(&self) -> &'static About {
        &MONGODB
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Date | ColumnType::Date32 => Some("BSON has no dates without a time; take Timestamp"),
            ColumnType::Interval | ColumnType::Interval64 => Some("BSON has no such type"),
            _ => None,
        }
    }

    fn is_computed(&self, column_type: ColumnType) -> bool {
        column_type == ColumnType::Float
    }

    fn encode(&self, value: Value<'_>, place: ValuePlace, bytes: &mut Vec<u8>) {
        let object_id = match value {
            Value::Text(digits) if place.column_type == ColumnType::ObjectId => object_id(digits),
            _ => None,
        };
        let canonical: i32 = match value {
            Value::Null => 5,
            Value::Bool(_) => 40,
            Value::Int(..) | Value::Uint(..) | Value::Float(_) | Value::Double(_) => 10,
            Value::Text(_) if object_id.is_some() => 35,
            Value::Text(_) => 15,
            Value::Bytes(_) | Value::Uuid(_) => 30,
            Value::Date(_) | Value::Timestamp(_) => 45,
        };
        bytes.extend_from_slice(&0i32.to_le_bytes());
        bytes.extend_from_slice(&canonical.to_le_bytes());
        let mut binary = |subtype: u8, value: &[u8]| {
            bytes.extend_from_slice(&(value.len() as i32).to_le_bytes());
            bytes.push(subtype);
            bytes.extend_from_slice(value);
        };
        match value {
            Value::Null => {}
            Value::Bytes(value) => binary(0, value),
            Value::Uuid(value) => binary(4, &value),
            Value::Bool(value) => bytes.push(u8::from(value)),
            Value::Int(value, _) => bytes.extend_from_slice(&value.to_le_bytes()),
            Value::Uint(value, _) => bytes.extend_from_slice(&value.to_le_bytes()),
            Value::Float(value) => bytes.extend_from_slice(&whole(f64::from(value)).to_le_bytes()),
            Value::Double(value) => bytes.extend_from_slice(&whole(value).to_le_bytes()),
            Value::Text(_) if let Some(id) = object_id => bytes.extend_from_slice(&id),
            Value::Text(value) => {
                bytes.extend_from_slice(&(value.len() as i32 + 1).to_le_bytes());
                bytes.extend_from_slice(value);
                bytes.push(0);
            }
            Value::Date(days) => {
                bytes.extend_from_slice(&(i64::from(days) * 86_400_000).to_le_bytes());
            }
            Value::Timestamp(micros) => bytes.extend_from_slice(&micros.div_euclid(1000).to_le_bytes()),
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| {
            let digest: [u8; 16] = Md5::digest(bytes).into();
            digest.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
        });
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        let (hash, count) = (i128::from(hash.cast_signed()), i128::from(partitions));
        if count == 1 {
            return 0;
        }
        let step = i128::from(i64::MAX) / count * 2;
        // There are boundaries on either side of 0; if their total number is odd, one of them is 0.
        let each = (count - 1) / 2;
        let (first, middle) = if count % 2 == 0 { (step, 1) } else { (step / 2, 0) };
        let up_to = |distance: i128| match distance < first {
            true => 0,
            false => ((distance - first) / step + 1).min(each),
        };
        let at_most = match hash >= 0 {
            true => each + middle + up_to(hash),
            // Skip the boundaries at least as far from 0.
            false => each - up_to(-hash - 1),
        };
        at_most as u32
    }
}

/// Returns the bytes of an ObjectId from its 24 hexadecimal digits.
fn object_id(digits: &[u8]) -> Option<[u8; 12]> {
    let mut id = [0; 12];
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != id.len() || !rest.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in id.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(id)
}

/// Returns a number without its fraction, within 64 bits.
fn whole(value: f64) -> i64 {
    // 2^63 itself becomes the smallest number.
    if value == 9_223_372_036_854_775_808.0 { i64::MIN } else { value as i64 }
}
