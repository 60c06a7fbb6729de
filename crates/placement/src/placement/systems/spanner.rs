//! Spanner: a ShardId in front of the key.
//!
//! Source: the GoogleSQL reference of `FARM_FINGERPRINT`.

use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use crate::transform::{farm_fingerprint, instant_text};
use evenkeel_model::table::ColumnType;

/// `MOD(MOD(FARM_FINGERPRINT(...), N) + N, N)`.
#[derive(Debug)]
pub(super) struct SpannerShard;

static SPANNER: About = About {
    name: "spanner-shard",
    title: "Spanner, ShardId by FARM_FINGERPRINT",
    status: Status::Verified,
    source: "the GoogleSQL reference of FARM_FINGERPRINT and its values; fingerprints of 301 lengths as ClickHouse prints them. The text of UUIDs and points in time is computed",
    bytes: "each column as CAST(... AS STRING) has it, points in time in UTC, bytes among others as TO_HEX; one after the other. NULL, whose ShardId is NULL, counts as no text",
    hash: "FarmHash Fingerprint64",
    formula: "MOD(MOD(hash, N) + N, N)",
    hash_type: HashType::Int64,
    unsigned: true,
    narrow_times: false,
    nulls: "gives NULL a ShardId of NULL",
    most_columns: usize::MAX,
    quote: "`",
    clause: |key, count| {
        let texts: Vec<String> = key.split(", ").map(|name| format!("CAST({name} AS STRING)")).collect();
        let texts = texts.join(", ");
        format!(
            "ShardId INT64 AS (MOD(MOD(FARM_FINGERPRINT(CONCAT({texts})), {count}) + {count}, {count})) STORED"
        )
    },
};

impl System for SpannerShard {
    fn about(&self) -> &'static About {
        &SPANNER
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        match column_type {
            ColumnType::Float | ColumnType::Double => Some("its text is not modelled"),
            ColumnType::Interval | ColumnType::Interval64 => Some("its text is not modelled"),
            _ => None,
        }
    }

    fn is_computed(&self, column_type: ColumnType) -> bool {
        column_type == ColumnType::Uuid || column_type.is_time()
    }

    fn encode(&self, value: Value<'_>, place: ValuePlace, bytes: &mut Vec<u8>) {
        let text = match value {
            Value::Null | Value::Float(_) | Value::Double(_) => return,
            Value::Text(value) => return bytes.extend_from_slice(value),
            Value::Bytes(value) if place.columns == 1 => return bytes.extend_from_slice(value),
            Value::Bytes(value) => value.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")),
            Value::Bool(value) => value.to_string(),
            Value::Int(value, _) => value.to_string(),
            Value::Uint(value, _) => value.to_string(),
            Value::Uuid(value) => uuid::Uuid::from_bytes(value).hyphenated().to_string(),
            Value::Date(days) => {
                chrono::NaiveDate::from_epoch_days(days).map(|date| date.to_string()).unwrap_or_default()
            }
            Value::Timestamp(micros) => instant_text(micros),
        };
        bytes.extend_from_slice(text.as_bytes());
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| farm_fingerprint(bytes).cast_unsigned());
    }

    fn partition(&self, hash: u64, partitions: u32) -> u32 {
        hash.cast_signed().rem_euclid(i64::from(partitions)) as u32
    }
}
