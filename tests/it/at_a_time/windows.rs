//! Balance in each window of time, against plain counts of the rows of the window.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use serde_json::json;
use twox_hash::XxHash64;

use crate::at_a_time::{Row, SECOND, candidate, close, random, rows, write};
use crate::common::{json, project};
use crate::evaluate::{raw, rows_of};

const FLIGHTS: &str = "data/nycflights13-flights.parquet";

const HOUR: i64 = 3_600 * SECOND;

fn partition_of(bytes: &[u8], partitions: u64) -> usize {
    (XxHash64::oneshot(0, bytes) / (u64::MAX / partitions)).min(partitions - 1) as usize
}

/// Rows by window and partition.
type Windows = BTreeMap<i64, Vec<u64>>;

fn effective(rows: &[u64]) -> f64 {
    (rows.iter().sum::<u64>() as f64).powi(2) / rows.iter().map(|n| (*n as f64).powi(2)).sum::<f64>()
}

fn fullest(rows: &[u64]) -> f64 {
    *rows.iter().max().unwrap() as f64 / rows.iter().sum::<u64>() as f64
}

/// Half of the rows are in windows where the figure is no greater.
fn weighted_median(windows: &Windows, fewest: u64, of: fn(&[u64]) -> f64) -> f64 {
    let counted = windows.values().map(|rows| (of(rows), rows.iter().sum::<u64>()));
    let mut counted: Vec<(f64, u64)> = counted.filter(|(_, rows)| *rows >= fewest).collect();
    counted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: u64 = counted.iter().map(|(_, rows)| rows).sum();
    let mut below = 0;
    let mut middle = counted.iter().filter(|(_, rows)| {
        below += rows;
        2 * below >= all
    });
    middle.next().unwrap().0
}

#[tokio::test(flavor = "multi_thread")]
async fn flights_at_an_hour_are_on_the_partitions_that_sql_counts() {
    let dir = tempfile::tempdir().unwrap();
    let evaluation = json(
        dir.path(),
        &format!(
            "evaluate {FLIGHTS} --partition-key time_hour,origin --partition-key time_hour,carrier --partition-key time_hour \
             --partition-key origin,month,day --partition-key tailnum --partitions 2,16 --no-primary-keys --format json"
        ),
    );
    let context = raw(&project(FLIGHTS)).await;
    let time = "CAST(arrow_cast(time_hour, 'Timestamp(Microsecond, None)') AS BIGINT)";
    let keys: [(&str, &[&str], bool); 5] = [
        ("time_hour, origin", &[time, "origin"], true),
        ("time_hour, carrier", &[time, "carrier"], true),
        ("time_hour", &[time], true),
        ("origin, month, day", &["origin", "month", "day"], true),
        ("tailnum", &["tailnum"], false),
    ];
    for (key, parts, moves) in keys {
        let texts: Vec<String> =
            parts.iter().enumerate().map(|(i, part)| format!("CAST({part} AS TEXT) AS k{i}")).collect();
        let names: Vec<String> = (0..parts.len()).map(|i| format!("k{i}")).collect();
        let sql = format!(
            "SELECT at, {}, count(*) AS n FROM (SELECT {time} AS at, {} FROM t) GROUP BY at, {}",
            names.join(", "),
            texts.join(", "),
            names.join(", ")
        );
        let batches = rows_of(&context, &sql).await;
        for partitions in [2u64, 16] {
            let mut hours = Windows::new();
            for batch in &batches {
                let at = batch.column(0).as_primitive::<Int64Type>();
                let n = batch.column(parts.len() + 1).as_primitive::<Int64Type>();
                let keys: Vec<_> = (1..=parts.len())
                    .map(|i| arrow::compute::cast(batch.column(i), &DataType::Utf8).unwrap())
                    .collect();
                for row in 0..batch.num_rows() {
                    let mut bytes = Vec::new();
                    for (part, text) in parts.iter().zip(&keys) {
                        let text = text.as_string::<i32>();
                        match *part {
                            _ if text.is_null(row) => {}
                            "origin" | "carrier" | "tailnum" => bytes.extend(text.value(row).as_bytes()),
                            _ => bytes.extend(text.value(row).parse::<i64>().unwrap().to_le_bytes()),
                        }
                    }
                    let rows =
                        hours.entry(at.value(row) / HOUR).or_insert_with(|| vec![0; partitions as usize]);
                    rows[partition_of(&bytes, partitions)] += n.value(row).cast_unsigned();
                }
            }
            let placements = candidate(&evaluation, key)["placements"].as_array().unwrap();
            let placement = placements.iter().find(|p| p["partitions"] == partitions).unwrap();
            let time = &placement["over_time"];
            // All 6,936 hours do not fit; those that are examined are chosen by chance.
            assert!(time["examined"]["one_in"].as_u64().unwrap() <= 4, "{time}");
            let fewest = time["examined"]["fewest_rows"].as_u64().unwrap();
            let (share, at_work) =
                (weighted_median(&hours, fewest, fullest), weighted_median(&hours, fewest, effective));
            close(&time["share_of_fullest"]["median"], share, 0.03);
            close(&time["effective_partitions"]["median"], at_work, 0.03);
            // Three origins fill two partitions.
            if moves && (partitions > 2 || key == "time_hour") {
                assert_eq!(placement["verdict"], "moving", "{key} {partitions}: {time}");
                close(&placement["capacity"]["sustained"], 1e6 / share, 0.12);
                close(&time["lasting_effective_partitions"]["median"], at_work, 0.12);
            } else if !moves {
                assert_eq!(time["pattern"], "even", "{key} {partitions}: {time}");
            }
        }
    }
    // The findings name the figures that prove the hot spot.
    let evaluation = json(
        dir.path(),
        &format!(
            "evaluate {FLIGHTS} --partition-key time_hour,origin --partition-key tailnum --partitions 16 --no-primary-keys --format json"
        ),
    );
    let messages: Vec<&str> = evaluation["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| {
            finding["code"] == "moving_hotspot" && finding["subject"] == "HASH(time_hour, origin)"
        })
        .map(|finding| finding["message"].as_str().unwrap())
        .collect();
    assert_eq!(messages.len(), 1);
    let partitions = evaluation["recommendation"]["partitions"].as_u64().unwrap();
    let placements = candidate(&evaluation, "time_hour, origin")["placements"].as_array().unwrap();
    let chosen = placements.iter().find(|p| p["partitions"] == partitions).unwrap();
    let at_work = chosen["over_time"]["lasting_effective_partitions"]["median"].as_f64().unwrap();
    assert!(
        messages[0].contains(&format!("{at_work:.1} of {partitions} partitions are active")),
        "{messages:?}"
    );
}

fn shuffled(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| random(9, row.id));
    rows
}

/// The rows of each window of a length, by partition.
fn counted(rows: &[Row], length: i64, partitions: u64, key: impl Fn(&Row) -> Vec<u8>) -> Windows {
    let mut windows = Windows::new();
    for row in rows {
        let counts = windows.entry(row.at / length).or_insert_with(|| vec![0; partitions as usize]);
        counts[partition_of(&key(row), partitions)] += 1;
    }
    windows
}

fn time_and_kind(row: &Row) -> Vec<u8> {
    [&row.at.to_le_bytes(), row.kind.as_bytes()].concat()
}

#[test]
fn a_second_with_a_few_kinds_is_a_moving_hot_spot_in_any_order_of_rows() {
    let dir = tempfile::tempdir().unwrap();
    let (partitions, length) = (16, 400);
    let mut found = Vec::new();
    for (name, rows) in
        [("sorted", rows(length, 150, SECOND)), ("shuffled", shuffled(rows(length, 150, SECOND)))]
    {
        write(&dir.path().join(format!("{name}.csv")), &rows);
        let evaluation = json(
            dir.path(),
            &format!(
                "evaluate {{}}/{name}.csv --type kind:utf8 --type user:uint64 --partition-key at,kind --partition-key at,user \
                 --partition-key at --partition-key user --partition-key kind --partitions {partitions} --no-primary-keys --format json"
            ),
        );
        let seconds = counted(&rows, SECOND, partitions, time_and_kind);
        let of_kind = &candidate(&evaluation, "at, kind")["placements"][0];
        let time = &of_kind["over_time"];
        assert_eq!(time["examined"]["window_micros"], SECOND);
        assert_eq!((&time["examined"]["one_in"], &time["judged_windows"]), (&json!(1), &json!(length)));
        close(&time["share_of_fullest"]["median"], weighted_median(&seconds, 32, fullest), 1e-9);
        close(&time["effective_partitions"]["median"], weighted_median(&seconds, 32, effective), 1e-9);
        assert_eq!(of_kind["verdict"], "moving");
        close(&of_kind["capacity"]["sustained"], 1e6 / weighted_median(&seconds, 32, fullest), 0.03);
        let verdict = |key: &str| candidate(&evaluation, key)["placements"][0]["verdict"].clone();
        assert_eq!(
            (verdict("at"), verdict("at, user"), verdict("user")),
            (json!("moving"), json!("even"), json!("even"))
        );
        let pattern =
            |key: &str| candidate(&evaluation, key)["placements"][0]["over_time"]["pattern"].clone();
        assert_eq!((pattern("kind"), pattern("user")), (json!("concentrated"), json!("even")));
        assert_ne!(verdict("kind"), "even");
        found.push(["at, kind", "at, user", "at", "user", "kind"].map(|key| {
            let placement = &candidate(&evaluation, key)["placements"][0];
            (placement["over_time"]["lasting_effective_partitions"].clone(), placement["capacity"].clone())
        }));
    }
    assert_eq!(found[0], found[1]);
}

#[test]
fn fine_times_spread_over_a_second_and_coarse_ones_do_not() {
    let dir = tempfile::tempdir().unwrap();
    for (name, step, even) in
        [("us", 1, true), ("ms", 1_000, true), ("s", SECOND, false), ("min", 60 * SECOND, false)]
    {
        let mut rows = rows(1_200, 40, 1);
        rows.iter_mut().for_each(|row| row.at = row.at / step * step);
        write(&dir.path().join(format!("{name}.csv")), &rows);
        for partitions in [2u64, 16] {
            let evaluation = json(
                dir.path(),
                &format!(
                    "evaluate {{}}/{name}.csv --type kind:utf8 --partition-key at,kind --partition-key at --partition-key user \
                     --partition-key trunc(at,1m),kind --partitions {partitions} --no-primary-keys --format json"
                ),
            );
            let placement = |key: &str| candidate(&evaluation, key)["placements"][0].clone();
            for key in ["at", "at, kind"] {
                let of_key = placement(key);
                assert_eq!(
                    of_key["over_time"]["pattern"] == "even",
                    even,
                    "{name} {key} {partitions}: {of_key}"
                );
                if even {
                    assert!(
                        of_key["capacity"]["sustained"].as_f64().unwrap() > 0.8e6 * partitions as f64,
                        "{of_key}"
                    );
                }
            }
            assert_eq!(placement("user")["over_time"]["pattern"], "even", "{name} {partitions}");
            let of_minute = placement("trunc(at, 1m), kind");
            assert_eq!(of_minute["over_time"]["pattern"], "sequential", "{name} {partitions}: {of_minute}");
        }
    }
}

#[test]
fn seconds_of_few_rows_are_judged_together() {
    let dir = tempfile::tempdir().unwrap();
    let rows = rows(6_000, 3, SECOND);
    write(&dir.path().join("few.csv"), &rows);
    let evaluation = json(
        dir.path(),
        "evaluate {}/few.csv --type kind:utf8 --partition-key at,kind --partition-key at,user --partition-key user --partitions 16 \
         --no-primary-keys --format json",
    );
    let of_kind = &candidate(&evaluation, "at, kind")["placements"][0];
    // Two rows of a second meet where a pair of them is in one partition.
    let windows = counted(&rows, SECOND, 16, time_and_kind);
    let (mut pairs, mut meeting) = (0, 0);
    for counts in windows.values() {
        let n: u64 = counts.iter().sum();
        pairs += n * (n - 1);
        meeting += counts.iter().map(|n| n * n.saturating_sub(1)).sum::<u64>();
    }
    let time = &of_kind["over_time"];
    close(&time["lasting_effective_partitions"]["median"], pairs as f64 / meeting as f64, 0.1);
    assert_eq!(of_kind["verdict"], "moving");
    assert!(of_kind["capacity"]["sustained"].as_f64().unwrap() < 1.5e6, "{of_kind}");
    for key in ["at, user", "user"] {
        let other = &candidate(&evaluation, key)["placements"][0];
        assert_eq!(other["over_time"]["pattern"], "even", "{key}: {other}");
        assert!(other["capacity"]["sustained"].as_f64().unwrap() > 11e6, "{key}: {other}");
    }
}
