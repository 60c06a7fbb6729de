//! Every figure of keys against the same figure computed another way: by SQL over the raw rows, and
//! by brute force.

use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;
use serde_json::{Value, json};
use twox_hash::XxHash64;

use crate::common::{done, json, project};
use crate::evaluate::{FLIGHTS, numbers, placement, raw, rows_of};

async fn number(context: &SessionContext, sql: &str) -> u64 {
    let batches = rows_of(context, sql).await;
    batches[0].column(0).as_primitive::<Int64Type>().value(0).cast_unsigned()
}

/// The bytes that YDB hashes of one value, from its text.
fn key_bytes(text: &str, column_type: &str) -> Vec<u8> {
    match column_type {
        "Int64" => text.parse::<i64>().unwrap().to_le_bytes().to_vec(),
        "Uint64" => text.parse::<u64>().unwrap().to_le_bytes().to_vec(),
        "Timestamp" => text.parse::<i64>().unwrap().to_le_bytes().to_vec(),
        "Date" => u16::try_from(text.parse::<i64>().unwrap()).unwrap().to_le_bytes().to_vec(),
        _ => text.as_bytes().to_vec(),
    }
}

/// Rows per partition by brute force: SQL counts the rows of each key, the hash is that of a whole
/// key's bytes, and the partition that of equal intervals by plain division.
async fn brute_force(context: &SessionContext, parts: &[(&str, &str)], partitions: u64) -> Vec<u64> {
    let texts: Vec<String> = parts
        .iter()
        .map(|(expression, column_type)| match *column_type {
            "Timestamp" => format!(
                "CAST(CAST(arrow_cast({expression}, 'Timestamp(Microsecond, None)') AS BIGINT) AS TEXT)"
            ),
            "Date" => format!("CAST(CAST(CAST({expression} AS DATE) AS INT) AS TEXT)"),
            _ => format!("CAST({expression} AS TEXT)"),
        })
        .collect();
    let select: Vec<String> = texts.iter().enumerate().map(|(i, text)| format!("{text} AS k{i}")).collect();
    let names: Vec<String> = (0..texts.len()).map(|i| format!("k{i}")).collect();
    let sql = format!(
        "SELECT {}, count(*) AS n FROM (SELECT {} FROM t) GROUP BY {}",
        names.join(", "),
        select.join(", "),
        names.join(", ")
    );
    let mut rows = vec![0u64; partitions as usize];
    for batch in rows_of(context, &sql).await {
        let counts = batch.column(parts.len()).as_primitive::<Int64Type>();
        let keys: Vec<_> = (0..parts.len())
            .map(|i| arrow::compute::cast(batch.column(i), &arrow::datatypes::DataType::Utf8).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let mut bytes = Vec::new();
            for ((_, column_type), key) in parts.iter().zip(&keys) {
                let key = key.as_string::<i32>();
                if key.is_valid(row) {
                    bytes.extend(key_bytes(key.value(row), column_type));
                }
            }
            let hash = XxHash64::oneshot(0, &bytes);
            let partition = (hash / (u64::MAX / partitions)).min(partitions - 1);
            rows[partition as usize] += counts.value(row).cast_unsigned();
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_the_flights_are_those_of_sql_over_the_raw_rows() {
    let dir = tempfile::tempdir().unwrap();
    let evaluation = json(
        dir.path(),
        &format!(
            "evaluate {FLIGHTS} --partition-key carrier --partition-key carrier,flight --partition-key tailnum \
             --partition-key date(time_hour) --partition-key time_hour,dest --primary-key time_hour,carrier,flight \
             --primary-key time_hour,flight,origin --primary-key month,day,flight,carrier --partitions 16,64 --format json"
        ),
    );
    assert_eq!(evaluation["rows"], 336_776);
    let context = raw(&project(FLIGHTS)).await;
    let keys: [&[(&str, &str)]; 5] = [
        &[("carrier", "Utf8")],
        &[("carrier", "Utf8"), ("flight", "Int64")],
        &[("tailnum", "Utf8")],
        &[("time_hour", "Date")],
        &[("time_hour", "Timestamp"), ("dest", "Utf8")],
    ];
    for (key, candidate) in keys.iter().zip(evaluation["candidates"].as_array().unwrap()) {
        for partitions in [16, 64] {
            let expected = brute_force(&context, key, partitions).await;
            let found = numbers(&placement(candidate, partitions)["rows_per_partition"]);
            assert_eq!(found, expected, "{key:?} over {partitions}");
        }
        let columns: Vec<String> = key
            .iter()
            .map(
                |(column, t)| {
                    if *t == "Date" { format!("CAST({column} AS DATE)") } else { (*column).to_owned() }
                },
            )
            .collect();
        let columns = columns.join(", ");
        let distinct = format!("SELECT count(*) FROM (SELECT DISTINCT {columns} FROM t)");
        assert_eq!(candidate["distinct"]["estimate"], number(&context, &distinct).await, "{key:?}");
        assert_eq!(candidate["distinct"]["exact"], true);
        let heaviest = format!("SELECT count(*) FROM t GROUP BY {columns} ORDER BY 1 DESC LIMIT 10");
        let mut expected = Vec::new();
        for batch in rows_of(&context, &heaviest).await {
            expected.extend(
                batch.column(0).as_primitive::<Int64Type>().values().iter().map(|n| n.cast_unsigned()),
            );
        }
        let hitters = candidate["heavy_hitters"].as_array().unwrap();
        let found: Vec<u64> = hitters.iter().map(|hitter| hitter["rows"].as_u64().unwrap()).collect();
        assert_eq!(found, expected, "{key:?}");
        assert!(hitters.iter().all(|hitter| hitter["error"] == 0));
    }
    let null_tails = number(&context, "SELECT count(*) FROM t WHERE tailnum IS NULL").await;
    assert_eq!(evaluation["candidates"][2]["null_rows"], null_tails);
    check_duplicates(&context, &evaluation).await;
}

/// Duplicate and conflicting rows of every primary key, by window functions over the raw rows.
async fn check_duplicates(context: &SessionContext, evaluation: &Value) {
    let schema = context.table("file").await.unwrap();
    let columns: Vec<String> = schema
        .schema()
        .fields()
        .iter()
        .map(|f| format!("coalesce(CAST({} AS TEXT), '-')", f.name()))
        .collect();
    let whole = columns.join(" || '|' || ");
    for key in evaluation["primary_keys"].as_array().unwrap() {
        let names: Vec<&str> =
            key["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let names = names.join(", ");
        let rows = number(context, "SELECT count(*) FROM t").await;
        let distinct =
            number(context, &format!("SELECT count(*) FROM (SELECT DISTINCT {names} FROM t)")).await;
        assert_eq!(key["duplicate_rows"], rows - distinct, "{names}");
        assert_eq!(key["unique"], rows == distinct, "{names}");
        let conflicting = number(
            context,
            &format!(
                "SELECT count(*) FROM (SELECT whole, lag(whole) OVER (PARTITION BY {names} ORDER BY arrived) AS before \
                 FROM (SELECT *, {whole} AS whole FROM t)) WHERE before IS NOT NULL AND before <> whole"
            ),
        )
        .await;
        assert_eq!(key["conflicting_rows"], conflicting, "{names}");
        assert_eq!(
            key["identical_rows"].as_u64().unwrap() + conflicting,
            key["duplicate_rows"].as_u64().unwrap(),
            "{names}"
        );
        let examples = key["examples"].as_array().unwrap();
        assert_eq!(examples.is_empty(), rows == distinct, "{names}");
        for example in examples {
            assert_ne!(example["first"], example["second"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_repeat_are_split_into_copies_and_conflicts() {
    let dir = tempfile::tempdir().unwrap();
    let csv = "at,user,campaign,price\n\
               2026-01-01T00:00:00Z,a,1,5\n2026-01-01T00:00:00Z,a,1,5\n2026-01-01T00:00:01Z,b,1,7\n\
               2026-01-01T00:00:01Z,b,1,8\n2026-01-01T00:00:01Z,b,1,8\n2026-01-01T00:00:02Z,c,2,9\n\
               2026-01-01T00:00:01Z,b,1,7\n";
    std::fs::write(dir.path().join("x.csv"), csv).unwrap();
    let evaluation = json(
        dir.path(),
        "evaluate {}/x.csv --partition-key user --primary-key at,user --primary-key user,at,price --partitions 4 --format json",
    );
    let key = &evaluation["primary_keys"][0];
    assert_eq!((&key["duplicate_rows"], &key["identical_rows"]), (&json!(4), &json!(2)));
    assert_eq!(key["conflicting_rows"], 2);
    let example = &key["examples"][0];
    assert_eq!(example["key"], json!(["2026-01-01T00:00:01", "b"]));
    assert_eq!(example["differs_in"], json!(["price"]));
    assert!(example["second"].as_str().unwrap().ends_with("x.csv, line 5"), "{example}");
    assert_eq!(evaluation["primary_keys"][1]["conflicting_rows"], 0);
    assert_eq!(evaluation["primary_keys"][1]["identical_rows"], 3);
}

/// Every window's fullest partition, from SQL counts by day and carrier and the partition of each
/// carrier.
#[tokio::test(flavor = "multi_thread")]
async fn windows_are_those_of_sql() {
    let dir = tempfile::tempdir().unwrap();
    let evaluation = json(
        dir.path(),
        &format!("evaluate {FLIGHTS} --partition-key carrier --partitions 16 --window 1d --format json"),
    );
    let context = raw(&project(FLIGHTS)).await;
    let sql = "SELECT CAST(CAST(CAST(time_hour AS DATE) AS INT) AS BIGINT) AS day, CAST(carrier AS TEXT) AS carrier, count(*) AS n \
               FROM t GROUP BY 1, 2";
    let mut days: std::collections::BTreeMap<i64, [u64; 16]> = std::collections::BTreeMap::new();
    for batch in rows_of(&context, sql).await {
        let (day, n) =
            (batch.column(0).as_primitive::<Int64Type>(), batch.column(2).as_primitive::<Int64Type>());
        let carrier = arrow::compute::cast(batch.column(1), &arrow::datatypes::DataType::Utf8).unwrap();
        for row in 0..batch.num_rows() {
            let hash = XxHash64::oneshot(0, carrier.as_string::<i32>().value(row).as_bytes());
            let partition = (hash / (u64::MAX / 16)).min(15) as usize;
            days.entry(day.value(row)).or_default()[partition] += n.value(row).cast_unsigned();
        }
    }
    let share = |rows: &[u64; 16]| *rows.iter().max().unwrap() as f64 / rows.iter().sum::<u64>() as f64;
    let judged: Vec<_> = days.iter().filter(|(_, rows)| rows.iter().sum::<u64>() >= 32).collect();
    // Each day counts by its rows.
    let mut shares: Vec<(f64, u64)> =
        judged.iter().map(|(_, rows)| (share(rows), rows.iter().sum())).collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (all, mut below) = (shares.iter().map(|(_, rows)| rows).sum::<u64>(), 0);
    let middle = shares.iter().find(|(_, rows)| {
        below += rows;
        2 * below >= all
    });
    let time = &evaluation["candidates"][0]["over_time"];
    assert_eq!((&time["windows"], &time["judged_windows"]), (&json!(days.len()), &json!(judged.len())));
    assert_eq!(time["window_micros"], 86_400_000_000u64);
    let close = |found: &Value, expected: f64| {
        assert!((found.as_f64().unwrap() - expected).abs() < 1e-12, "{found} {expected}")
    };
    close(&time["share_of_fullest"]["median"], middle.unwrap().0);
    close(&time["share_of_fullest"]["max"], shares.last().unwrap().0);
    let effective = |rows: &[u64; 16]| {
        (rows.iter().sum::<u64>() as f64).powi(2) / rows.iter().map(|n| (*n as f64).powi(2)).sum::<f64>()
    };
    let worst = judged.iter().min_by(|a, b| effective(a.1).total_cmp(&effective(b.1))).unwrap();
    assert_eq!(time["worst_window"]["start_micros"], worst.0 * 86_400_000_000);
    close(&time["worst_window"]["effective_partitions"], effective(worst.1));
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_generated_events_are_those_of_sql_over_the_raw_rows() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 40000 --seed 3 --duplicate-share 0.05 --out {}/exports");
    let evaluation = json(
        dir.path(),
        "evaluate {}/exports --partition-key user_id,event_timestamp --partition-key campaign_id --partition-key \
         date(event_timestamp),user_id --primary-key event_timestamp,user_id,campaign_id --primary-key user_id,campaign_id \
         --partitions 16,100 --format json",
    );
    let context = raw(&dir.path().join("exports/ad-events-0000.parquet")).await;
    let keys: [&[(&str, &str)]; 3] = [
        &[("user_id", "Utf8"), ("event_timestamp", "Timestamp")],
        &[("campaign_id", "Uint64")],
        &[("event_timestamp", "Date"), ("user_id", "Utf8")],
    ];
    for (key, candidate) in keys.iter().zip(evaluation["candidates"].as_array().unwrap()) {
        for partitions in [16, 100] {
            let expected = brute_force(&context, key, partitions).await;
            assert_eq!(numbers(&placement(candidate, partitions)["rows_per_partition"]), expected, "{key:?}");
        }
    }
    assert!(evaluation["primary_keys"][0]["duplicate_rows"].as_u64().unwrap() > 1000);
    check_duplicates(&context, &evaluation).await;
}

#[test]
fn a_heavy_key_whose_rows_lie_far_apart_is_found_with_its_value() {
    let dir = tempfile::tempdir().unwrap();
    // 150,000 keys of two rows each, one after the other, and one of three rows that never meet.
    let mut text = String::from("k,other\n");
    for round in 0..2 {
        for key in 0..150_000 {
            text.push_str(&format!("key-{key},{round}\n"));
            if key == 140_000 || (round == 0 && key == 100_000) {
                text.push_str("the heavy one,1\n");
            }
        }
    }
    std::fs::write(dir.path().join("far.csv"), text).unwrap();
    let found = json(
        dir.path(),
        "evaluate {}/far.csv --partition-key k --partition-key other --partitions 16,48 --no-primary-keys --format json",
    );
    let key = &found["candidates"][0];
    assert_eq!(
        key["distinct"],
        json!({ "estimate": 150_001, "exact": true, "lower": 150_001, "upper": 150_001 })
    );
    assert_eq!(key["heavy_hitters"][0]["key"], json!(["the heavy one"]));
    assert_eq!((&key["heavy_hitters"][0]["rows"], &key["heavy_hitters"][0]["error"]), (&json!(3), &json!(0)));
    assert!(key["heavy_hitters"].as_array().unwrap().iter().all(|hitter| hitter["key"][0].is_string()));
    for (placement, partitions) in key["placements"].as_array().unwrap().iter().zip([16u64, 48]) {
        let hash = XxHash64::oneshot(0, b"the heavy one");
        let partition = (hash / (u64::MAX / partitions)).min(partitions - 1);
        let rows = placement["rows_per_partition"][partition as usize].as_f64().unwrap();
        assert_eq!(placement["share_of_heaviest_partition"].as_f64(), Some(rows / 300_003.0));
    }
    assert_eq!(found["candidates"][1]["distinct"]["estimate"], 2);
    assert_eq!(found["primary_keys"], json!([]));
}
