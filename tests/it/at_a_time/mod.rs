//! Balance at any moment, and the verdicts that follow from it, against plain counts of the rows.

mod findings;
mod windows;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;
use twox_hash::XxHash64;

const SECOND: i64 = 1_000_000;

/// 2026-03-01.
const BEGIN: i64 = 1_772_323_200 * SECOND;

fn random(seed: u64, row: u64) -> u64 {
    XxHash64::oneshot(seed, &row.to_le_bytes())
}

fn close(found: &Value, expected: f64, within: f64) {
    let found = found.as_f64().unwrap();
    assert!((found / expected - 1.0).abs() <= within, "{found} {expected}");
}

fn candidate<'a>(evaluation: &'a Value, key: &str) -> &'a Value {
    let name = |candidate: &Value| {
        let parts = candidate["partition_key"].as_array().unwrap().iter().map(|part| part.as_str().unwrap());
        parts.collect::<Vec<_>>().join(", ")
    };
    evaluation["candidates"].as_array().unwrap().iter().find(|candidate| name(candidate) == key).unwrap()
}

/// A row: its time in microseconds, one of a few kinds, a user, a number.
struct Row {
    at: i64,
    kind: &'static str,
    user: u64,
    id: u64,
}

/// `per_second` rows in each second, with the time in steps of `step` microseconds; nine tenths are
/// of one kind.
fn rows(seconds: i64, per_second: u64, step: i64) -> Vec<Row> {
    let of_second = |second: i64| {
        (0..per_second).map(move |number| {
            let id = second.cast_unsigned() * per_second + number;
            let within = (random(1, id) % SECOND.cast_unsigned()).cast_signed();
            let kind = match random(2, id) % 20 {
                0 => "click",
                1 => "buy",
                _ => "view",
            };
            Row { at: BEGIN + second * SECOND + within / step * step, kind, user: random(3, id) % 5_000, id }
        })
    };
    let mut rows: Vec<Row> = (0..seconds).flat_map(of_second).collect();
    rows.sort_by_key(|row| row.at);
    rows
}

fn write(path: &Path, rows: &[Row]) {
    let mut text = "at,kind,user,id\n".to_owned();
    for Row { at, kind, user, id } in rows {
        let time = chrono::DateTime::from_timestamp_micros(*at).unwrap().format("%Y-%m-%dT%H:%M:%S%.6fZ");
        writeln!(text, "{time},{kind},{user},{id}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}
