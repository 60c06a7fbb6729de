//! Stand-in for systems that publish no function: Redshift, Snowflake, Synapse, DynamoDB.

use twox_hash::XxHash64;

use crate::placement::systems::key::with_bytes;
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// XXH64, which places keys as evenly as chance does.
#[derive(Debug)]
pub(super) struct Neutral;

static NEUTRAL: About = About {
    name: "neutral",
    title: "systems that publish no function: Redshift, Snowflake, Synapse, DynamoDB",
    status: Status::Neutral,
    source: "none: a good hash function in the place of one that is not known. Which partition a key goes to is not that of the system",
    bytes: "numbers little-endian, text and bytes as they are behind their length; NULL one byte",
    hash: "XXH64, seed 0",
    formula: "hash % N",
    hash_type: HashType::Uint64,
    unsigned: true,
    narrow_times: false,
    nulls: "",
    most_columns: usize::MAX,
    quote: "`",
    clause: |_, _| String::new(),
};

impl System for Neutral {
    fn about(&self) -> &'static About {
        &NEUTRAL
    }

    fn refuses(&self, _: ColumnType) -> Option<&'static str> {
        None
    }

    fn encode(&self, value: Value<'_>, place: ValuePlace, bytes: &mut Vec<u8>) {
        if let (Value::Text(text) | Value::Bytes(text), true) = (value, place.columns > 1) {
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
        if with_bytes(value, |value| bytes.extend_from_slice(value)).is_none() {
            bytes.push(0xFF);
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| XxHash64::oneshot(0, bytes));
    }
}
