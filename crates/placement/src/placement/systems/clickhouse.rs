//! ClickHouse: the sharding key of a Distributed table.
//!
//! Source: ClickHouse/ClickHouse `src/Functions/FunctionsHashing.h`.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use twox_hash::XxHash64;

use crate::placement::systems::hashes::city::{city64, join};
use crate::placement::systems::hashes::fmix64;
use crate::placement::systems::key::{self, little_endian};
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// A sharding key that uses one of ClickHouse's hash functions.
#[derive(Debug)]
pub(super) struct ClickHouse(Function);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    City,
    Sip,
    Xx,
    Int32,
    Int64,
}

pub(super) static CITY: ClickHouse = ClickHouse(Function::City);
pub(super) static SIP: ClickHouse = ClickHouse(Function::Sip);
pub(super) static XX: ClickHouse = ClickHouse(Function::Xx);
pub(super) static INT_32: ClickHouse = ClickHouse(Function::Int32);
pub(super) static INT_64: ClickHouse = ClickHouse(Function::Int64);

const SOURCE: &str = "ClickHouse/ClickHouse: src/Functions/FunctionsHashing.h; hashes as ClickHouse 26.9 (chdb 4.4) prints them, shards as its Distributed engine chooses them";
const BYTES: &str = "numbers as little-endian bytes, Date as 2, DateTime as 4, Date32 as 4, points in time as DateTime64(6), text and bytes as they are, a UUID as two little-endian halves. NULL, whose hash is NULL, counts as hash 0";
const FORMULA: &str = "hash % N, with N shards of equal weight";

macro_rules! about {
    ($name:literal, $function:literal, $bytes:expr, $hash:literal, $type:expr, $most:expr) => {
        About {
            name: $name,
            title: concat!("ClickHouse, Distributed table, ", $function),
            status: Status::Verified,
            source: SOURCE,
            bytes: $bytes,
            hash: $hash,
            formula: FORMULA,
            hash_type: $type,
            unsigned: true,
            narrow_times: true,
            nulls: "gives NULL a hash of NULL",
            most_columns: $most,
            quote: "`",
            clause: |key, count| {
                format!(concat!("ENGINE = Distributed(..., ", $function, "({})), over {} shards"), key, count)
            },
        }
    };
}

static ABOUT_CITY: About = about!(
    "clickhouse-cityhash64",
    "cityHash64",
    "numbers as they are, Date as UInt16, DateTime as UInt32, points in time as DateTime64(6), text and bytes as they are, a UUID as two little-endian halves. NULL, whose hash is NULL, counts as hash 0",
    "CityHash64 of version 1.0.2, of numbers intHash64; columns joined as 128 bits are",
    HashType::Uint64,
    usize::MAX
);
static ABOUT_SIP: About = about!(
    "clickhouse-siphash64",
    "sipHash64",
    BYTES,
    "SipHash-2-4, key 0; columns joined by the same of both hashes",
    HashType::Uint64,
    usize::MAX
);
static ABOUT_XX: About = about!(
    "clickhouse-xxhash64",
    "xxHash64",
    BYTES,
    "XXH64, seed 0; columns joined as 128 bits are in CityHash64",
    HashType::Uint64,
    usize::MAX
);
static ABOUT_INT_32: About =
    about!("clickhouse-inthash32", "intHash32", "integers", "intHash32", HashType::Uint32, 1);
static ABOUT_INT_64: About =
    about!("clickhouse-inthash64", "intHash64", "integers", "intHash64", HashType::Uint64, 1);

fn int_hash_64(word: u64) -> u64 {
    fmix64(word ^ 0x4CF2_D2BA_AE6D_A887)
}

fn int_hash_32(word: u64) -> u32 {
    let mut word = word ^ 0x75D9_543D_E018_BF45;
    word = (!word).wrapping_add(word << 18);
    word ^= word.rotate_right(31);
    word = word.wrapping_mul(21);
    word ^= word.rotate_right(11);
    word = word.wrapping_add(word << 6);
    (word ^ word.rotate_right(22)) as u32
}

fn sip(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Returns the bits of a number in its own width; `None` for other values.
fn bits(value: Value<'_>) -> Option<u64> {
    let (bits, width) = little_endian(value)?;
    Some(bits & u64::MAX.checked_shr(64 - 8 * width).unwrap_or(u64::MAX))
}

/// Returns a UUID in ClickHouse's memory layout.
fn halves(uuid: [u8; 16]) -> [u8; 16] {
    let mut halves = uuid;
    let (high, low) = halves.split_at_mut(8);
    high.reverse();
    low.reverse();
    halves
}

/// Like `key::with_bytes`, except for UUIDs.
#[inline(always)]
fn with_bytes<T>(value: Value<'_>, show: impl FnOnce(&[u8]) -> T) -> Option<T> {
    match value {
        Value::Uuid(uuid) => Some(show(&halves(uuid))),
        other => key::with_bytes(other, show),
    }
}

impl ClickHouse {
    #[inline(always)]
    fn value_hash(&self, value: Value<'_>) -> Option<u64> {
        match self.0 {
            // ClickHouse keeps points in time as decimal numbers, which it hashes as bytes.
            Function::City => match bits(value).filter(|_| !matches!(value, Value::Timestamp(_))) {
                Some(bits) => Some(int_hash_64(bits)),
                None => with_bytes(value, city64),
            },
            Function::Sip => with_bytes(value, sip),
            Function::Xx => with_bytes(value, |bytes| XxHash64::oneshot(0, bytes)),
            Function::Int32 => signed_bits(value).map(|bits| u64::from(int_hash_32(bits))),
            Function::Int64 => signed_bits(value).map(int_hash_64),
        }
    }

    fn join(&self, first: u64, second: u64) -> u64 {
        match self.0 {
            Function::Sip => {
                let mut hasher = SipHasher24::new();
                hasher.write(&first.to_le_bytes());
                hasher.write(&second.to_le_bytes());
                hasher.finish()
            }
            _ => join(first, second),
        }
    }
}

/// Returns an integer as 64 bits with its sign.
fn signed_bits(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Int(value, _) => Some(value.cast_unsigned()),
        Value::Date(days) => Some(i64::from(days).cast_unsigned()),
        other => bits(other),
    }
}

impl System for ClickHouse {
    fn about(&self) -> &'static About {
        match self.0 {
            Function::City => &ABOUT_CITY,
            Function::Sip => &ABOUT_SIP,
            Function::Xx => &ABOUT_XX,
            Function::Int32 => &ABOUT_INT_32,
            Function::Int64 => &ABOUT_INT_64,
        }
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        let whole = matches!(self.0, Function::Int32 | Function::Int64);
        match column_type {
            ColumnType::Interval | ColumnType::Interval64 => Some("it keeps no such type in a column"),
            ColumnType::Float
            | ColumnType::Double
            | ColumnType::Utf8
            | ColumnType::Json
            | ColumnType::JsonDocument
            | ColumnType::String
            | ColumnType::Yson
            | ColumnType::Uuid
            | ColumnType::Datetime64
            | ColumnType::Timestamp
            | ColumnType::Timestamp64
                if whole =>
            {
                Some("it takes integers alone")
            }
            _ => None,
        }
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        with_bytes(value, |value| bytes.extend_from_slice(value));
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.each(hashes, |column, hash, value| {
            let of_value = self.value_hash(value).unwrap_or(0);
            if column == 0 { of_value } else { self.join(hash, of_value) }
        });
        // One NULL makes the whole hash NULL.
        for row in key.rows_with_null() {
            if let Some(hash) = hashes.get_mut(row) {
                *hash = 0;
            }
        }
    }
}
