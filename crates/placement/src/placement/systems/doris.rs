//! Apache Doris and StarRocks: CRC-32 over the bytes of all columns.
//!
//! Source: apache/doris `be/src/exec/tablet_info.h`, `be/src/util/hash_util.hpp`;
//! StarRocks/starrocks `be/src/column/column_hash`.

use chrono::{DateTime, Datelike, NaiveDate, Timelike};

use crate::placement::systems::key::with_bytes;
use crate::placement::systems::{About, HashType, KeyColumns, Status, System, Value, ValuePlace};
use evenkeel_model::table::ColumnType;

/// Buckets of Apache Doris.
#[derive(Debug)]
pub(super) struct Doris;

/// Buckets of StarRocks.
#[derive(Debug)]
pub(super) struct StarRocks;

static DORIS: About = About {
    name: "doris",
    title: "Apache Doris, DISTRIBUTED BY HASH",
    status: Status::Verified,
    source: "apache/doris: be/src/exec/tablet_info.h, be/src/util/hash_util.hpp; the collisions of issue 66231 and the buckets of HashDistributionPrunerTest. Points in time are computed: as DATEV2 and DATETIMEV2",
    bytes: "integers and floating point little-endian, text and bytes as they are, NULL four zero bytes; DATEV2 and DATETIMEV2 as their packed numbers",
    hash: "CRC-32 of zlib over all columns, from 0 on",
    formula: "hash % N",
    hash_type: HashType::Uint32,
    unsigned: false,
    narrow_times: false,
    nulls: "",
    most_columns: usize::MAX,
    quote: "`",
    clause: |key, count| format!("DISTRIBUTED BY HASH({key}) BUCKETS {count}"),
};

static STARROCKS: About = About {
    name: "starrocks",
    title: "StarRocks, DISTRIBUTED BY HASH",
    source: "StarRocks/starrocks: be/src/column/column_hash, DppUtilsTest.java",
    bytes: "integers and floating point little-endian, text and bytes as they are, NULL four zero bytes; points in time and dates as text",
    ..DORIS
};

const NULL: [u8; 4] = [0; 4];

fn refuses(column_type: ColumnType) -> Option<&'static str> {
    match column_type {
        ColumnType::Uuid => Some("it has no such type; keep UUIDs as Utf8"),
        ColumnType::Interval | ColumnType::Interval64 => Some("it has no such type"),
        ColumnType::Float | ColumnType::Double | ColumnType::Json | ColumnType::JsonDocument => {
            Some("it distributes by no such column")
        }
        _ => None,
    }
}

fn date_of(days: i32) -> Option<NaiveDate> {
    NaiveDate::from_epoch_days(days)
}

impl System for Doris {
    fn about(&self) -> &'static About {
        &DORIS
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        refuses(column_type)
    }

    fn is_computed(&self, column_type: ColumnType) -> bool {
        column_type.is_time()
    }

    fn encode(&self, value: Value<'_>, _: ValuePlace, bytes: &mut Vec<u8>) {
        match value {
            Value::Null => bytes.extend_from_slice(&NULL),
            Value::Date(days) => {
                let packed = date_of(days)
                    .map_or(0, |date| date.year().cast_unsigned() << 9 | date.month() << 5 | date.day());
                bytes.extend_from_slice(&packed.to_le_bytes());
            }
            Value::Timestamp(micros) => {
                let packed = DateTime::from_timestamp_micros(micros).map_or(0, |at| {
                    let date = u64::from(at.year().cast_unsigned()) << 46
                        | u64::from(at.month()) << 42
                        | u64::from(at.day()) << 37;
                    let time = u64::from(at.hour()) << 32
                        | u64::from(at.minute()) << 26
                        | u64::from(at.second()) << 20;
                    date | time | u64::from(at.timestamp_subsec_micros())
                });
                bytes.extend_from_slice(&packed.to_le_bytes());
            }
            other => {
                with_bytes(other, |value| bytes.extend_from_slice(value));
            }
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| u64::from(crc32fast::hash(bytes)));
    }
}

impl System for StarRocks {
    fn about(&self) -> &'static About {
        &STARROCKS
    }

    fn refuses(&self, column_type: ColumnType) -> Option<&'static str> {
        Doris.refuses(column_type)
    }

    fn encode(&self, value: Value<'_>, place: ValuePlace, bytes: &mut Vec<u8>) {
        match value {
            Value::Date(days) => {
                let text = date_of(days).map(|date| date.format("%Y-%m-%d").to_string());
                bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
            }
            Value::Timestamp(micros) => {
                let form = match micros.rem_euclid(1_000_000) {
                    0 => "%Y-%m-%d %H:%M:%S",
                    _ => "%Y-%m-%d %H:%M:%S%.6f",
                };
                let text = DateTime::from_timestamp_micros(micros).map(|at| at.format(form).to_string());
                bytes.extend_from_slice(text.unwrap_or_default().as_bytes());
            }
            other => Doris.encode(other, place, bytes),
        }
    }

    fn hash(&self, key: &KeyColumns, hashes: &mut Vec<u64>) {
        key.concatenated(self, hashes, |bytes| u64::from(crc32fast::hash(bytes)));
    }
}
