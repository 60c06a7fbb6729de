//! Balance at a time, and the verdicts that follow from it, against plain counts of the same rows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use serde_json::{Value, json};
use twox_hash::XxHash64;

use crate::common::{json, project, run};
use crate::evaluate::{raw, rows_of};

const FLIGHTS: &str = "data/nycflights13-flights.parquet";
const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
/// 2026-03-01.
const BEGIN: i64 = 1_772_323_200 * SECOND;

fn partition_of(bytes: &[u8], partitions: u64) -> usize {
    (XxHash64::oneshot(0, bytes) / (u64::MAX / partitions)).min(partitions - 1) as usize
}

fn random(seed: u64, row: u64) -> u64 {
    XxHash64::oneshot(seed, &row.to_le_bytes())
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
        messages[0].contains(&format!("{at_work:.1} of {partitions} partitions are at work")),
        "{messages:?}"
    );
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

fn shuffled(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| random(9, row.id));
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

/// Codes of findings about the balance of a key.
const OF_BALANCE: [&str; 8] = [
    "moving_hotspot",
    "periodic_hotspot",
    "constant_hotspot",
    "few_distinct_keys",
    "heavy_key",
    "hash_defect",
    "uneven_ranges",
    "uneven_partitions",
];

#[test]
fn one_key_has_one_rate_in_every_model() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(&dir.join("rows.csv"), &rows(900, 200, 1_000));
    let keys = ["user", "kind", "id", "user,kind", "trunc(at, 1m)"];
    let keys_of: String =
        keys.iter().map(|key| format!(" --partition-key {}", key.replace(' ', ""))).collect();
    let evaluated = json(
        dir,
        &format!("evaluate {{}}/rows.csv{keys_of} --partitions 16 --no-primary-keys --format json"),
    );
    // Each partition on its own, which is what one partition for each node is.
    let ingested = json(
        dir,
        &format!(
            "bench ingest {{}}/rows.csv{keys_of} --partitions 16 --primary-key at,id --batch 20000 --format json"
        ),
    );
    let modeled =
        json(dir, &format!("capacity {{}}/rows.csv{keys_of} --nodes 16 --partitions 16 --format json"));
    for (at, key) in keys.iter().enumerate() {
        let rate = &evaluated["candidates"][at]["placements"][0]["capacity"]["sustained"];
        let rate = rate.as_f64().unwrap();
        close(&ingested["keys"][at]["backlog"]["sustained_rate"], rate, 0.02);
        let concentration = &modeled["designs"][at]["over_partitions"]["sustained_over_mean"];
        close(concentration, 16e6 / rate, 0.02);
        assert!(rate < if *key == "user" || *key == "id" { 16.1e6 } else { 15e6 }, "{key}: {rate}");
    }
}

#[test]
fn findings_follow_the_verdict_whatever_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for (shape, seconds, per_second, step) in [
        (0, 2_000, 20, 1),
        (1, 300, 100, SECOND),
        (2, 5, 1, 1),
        (3, 40, 20, 1),
        (4, 700, 3, 60 * SECOND),
        (5, 30, 1_000, 1),
    ] {
        let mut rows = rows(seconds, per_second, step);
        for row in &mut rows {
            match shape {
                // A few users with many rows, a user of every row, a hundred users, users who take
                // turns.
                0 if row.id % 7 < 3 => row.user = row.id % 3,
                1 => row.user = row.id,
                3 => row.user %= 100,
                4 => row.user = row.id / 300,
                // Users with more and more rows.
                5 => row.user = (random(5, row.id) % 1_000_000).isqrt() * 7 % 2_000,
                _ => {}
            }
        }
        write(&dir.path().join("rows.csv"), &rows);
        for partitions in [2, 16, 64, 300] {
            let evaluation = json(
                dir.path(),
                &format!(
                    "evaluate {{}}/rows.csv --type kind:utf8 --partition-key at,kind --partition-key at --partition-key user \
                     --partition-key kind --partition-key id --partition-key kind,user --partition-key hour(at) \
                     --partitions {partitions} --placement ydb,ydb-modulo,cassandra --no-primary-keys --format json"
                ),
            );
            let findings = evaluation["findings"].as_array().unwrap();
            let about_rows = findings.iter().filter(|finding| finding["code"] == "few_rows").count();
            let mut withheld = 0;
            for key in evaluation["candidates"].as_array().unwrap() {
                let placement = &key["placements"][0];
                let verdict = placement["verdict"].as_str().unwrap();
                seen.insert(verdict.to_owned());
                let name: Vec<&str> = key["partition_key"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|part| part.as_str().unwrap())
                    .collect();
                let subject = format!("HASH({})", name.join(", "));
                let grave: Vec<&str> = findings
                    .iter()
                    .filter(|finding| finding["subject"] == subject && finding["severity"] != "note")
                    .map(|finding| finding["code"].as_str().unwrap())
                    .filter(|code| OF_BALANCE.contains(code))
                    .collect();
                let context = format!("{shape} {partitions} {subject} {verdict}: {grave:?} {placement}");
                match verdict {
                    "even" | "few_rows" => assert!(grave.is_empty(), "{context}"),
                    _ => assert!(!grave.is_empty(), "{context}"),
                }
                withheld += usize::from(verdict == "few_rows");
                let moves = |pattern: &Value| pattern == "sequential" || pattern == "periodic";
                let pattern = &placement["over_time"]["pattern"];
                if verdict != "few_rows" {
                    assert_eq!(verdict == "moving", moves(pattern), "{context}");
                    assert!(verdict != "even" || pattern.is_null() || pattern == "even", "{context}");
                }
                if verdict == "even" {
                    assert!(placement["max_over_mean"].as_f64().unwrap() < 1.334, "{context}");
                    assert!(
                        placement["effective_partitions"].as_f64().unwrap() >= 0.9 * f64::from(partitions),
                        "{context}"
                    );
                }
                let words = placement["causes"]["words"].as_str().unwrap();
                assert_eq!(
                    words.contains("not the hash function"),
                    matches!(verdict, "heavy_keys" | "few_keys"),
                    "{context}"
                );
                assert!(
                    !grave.contains(&"hash_defect") || verdict == "uneven" || verdict == "moving",
                    "{context}"
                );
            }
            assert_eq!(about_rows, usize::from(withheld > 0), "{shape} {partitions}");
        }
    }
    for verdict in ["even", "moving", "few_rows", "few_keys", "heavy_keys"] {
        assert!(seen.contains(verdict), "{verdict}: {seen:?}");
    }
}

#[test]
fn five_rows_are_too_few_and_nothing_else_is_said_of_their_balance() {
    let dir = tempfile::tempdir().unwrap();
    let text = "id,at,user,price\n1,2026-01-01T00:00:00Z,a,5\n2,2026-01-01T00:00:01Z,b,5\n3,2026-01-01T00:00:02Z,a,7\n\
                4,2026-01-01T00:00:03Z,c,9\n5,2026-01-01T00:00:04Z,a,5\n";
    std::fs::write(dir.path().join("five.csv"), text).unwrap();
    let evaluation = json(dir.path(), "evaluate {}/five.csv --format json");
    let findings = evaluation["findings"].as_array().unwrap();
    let few: Vec<_> = findings.iter().filter(|finding| finding["code"] == "few_rows").collect();
    assert_eq!((few.len(), &few[0]["severity"]), (1, &json!("problem")));
    for finding in findings {
        assert!(!OF_BALANCE.contains(&finding["code"].as_str().unwrap()), "{finding}");
    }
    let problems = findings.iter().filter(|finding| finding["severity"] == "problem").count();
    assert_eq!(problems, 1, "{findings:?}");
    assert!(
        !evaluation["recommendation"]["reasons"].to_string().contains("no candidate spreads rows evenly")
    );
}

#[test]
fn an_export_without_a_usable_key_is_a_problem() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
    write(
        "floats.csv",
        (0..300).map(|i| format!("{}.5,{}.25\n", i, i % 7)).fold("a,b\n".to_owned(), |t, r| t + &r),
    );
    let with_nulls = |i: i32| {
        format!(
            "{},{}\n",
            if i % 9 == 0 { String::new() } else { i.to_string() },
            if i % 8 == 0 { "" } else { "x" }
        )
    };
    write("nulls.csv", (0..300).map(with_nulls).fold("a,b\n".to_owned(), |t, r| t + &r));
    for (name, keys) in [("floats", ""), ("nulls", ""), ("nulls", "--partition-key a --primary-key a,b")] {
        let arguments = format!("evaluate {{}}/{name}.csv {keys} --partitions 4 --fail-on problems>0");
        let found = run(dir.path(), &arguments);
        assert_eq!(found.code, 3, "{name} {keys}: {}", found.stderr);
        for code in ["no_usable_partition_key", "no_usable_primary_key"] {
            assert!(found.stdout.contains(code), "{name} {keys}: {}", found.stdout);
        }
    }
    write("good.csv", (0..3000).map(|i| format!("{i},{}\n", i % 3)).fold("id,b\n".to_owned(), |t, r| t + &r));
    let found =
        run(dir.path(), "evaluate {}/good.csv --partition-key id --partitions 4 --fail-on problems>0");
    assert_eq!(found.code, 0, "{}{}", found.stdout, found.stderr);
}

#[test]
fn unique_by_chance_is_not_unique_by_nature() {
    let dir = tempfile::tempdir().unwrap();
    let rows = rows(3_000, 1, 1);
    write(&dir.path().join("rows.csv"), &rows);
    let evaluation = json(
        dir.path(),
        "evaluate {}/rows.csv --type kind:utf8 --partition-key user --primary-key at --primary-key id --primary-key at,kind --primary-key at,id \
         --partitions 4 --format json",
    );
    let by: Vec<&Value> =
        evaluation["primary_keys"].as_array().unwrap().iter().map(|key| &key["uniqueness"]["by"]).collect();
    assert_eq!(by, [&json!("chance"), &json!("nature"), &json!("chance"), &json!("many_values")]);
    let about = |key: &str| {
        let of_key = |finding: &&Value| finding["subject"] == format!("PRIMARY KEY ({key})");
        let findings = evaluation["findings"].as_array().unwrap().iter();
        findings.filter(of_key).any(|finding| finding["code"] == "unique_by_chance")
    };
    assert_eq!([about("at"), about("id"), about("at, kind"), about("at, id")], [true, false, true, false]);
    let only = json(
        dir.path(),
        "evaluate {}/rows.csv --partition-key at --primary-key at --partitions 4 --format json",
    );
    let reasons = only["recommendation"]["reasons"].to_string();
    assert!(
        reasons.contains("by chance, not by nature") && !reasons.contains("none of them is lost"),
        "{reasons}"
    );
    let warned = |finding: &Value| finding["code"] == "unique_by_chance" && finding["severity"] == "warning";
    assert!(only["findings"].as_array().unwrap().iter().any(warned), "{only}");
}
