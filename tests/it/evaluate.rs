//! Keys judged on exports: every figure against the same figure computed another way.

use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use serde_json::{Value, json};
use twox_hash::XxHash64;

use crate::common::{done, evenkeel, json, project, run};

const FLIGHTS: &str = "data/nycflights13-flights.parquet";

/// A second engine: SQL over the raw rows of a Parquet file, as table `t`, with the number of each
/// row in `arrived`.
pub(crate) async fn raw(file: &Path) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().sql_parser.enable_ident_normalization = false;
    let context = SessionContext::new_with_config(config);
    context.register_parquet("file", file.to_str().unwrap(), ParquetReadOptions::default()).await.unwrap();
    let numbered = context.sql("SELECT *, row_number() OVER () AS arrived FROM file").await.unwrap();
    let numbered = numbered.cache().await.unwrap();
    context.register_table("t", numbered.into_view()).unwrap();
    context
}

pub(crate) async fn rows_of(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    context.sql(sql).await.unwrap().collect().await.unwrap()
}

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

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// The placement of a candidate over so many partitions.
fn placement(candidate: &Value, partitions: u64) -> &Value {
    let placements = candidate["placements"].as_array().unwrap();
    placements.iter().find(|placement| placement["partitions"] == partitions).unwrap()
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

#[test]
fn what_is_predicted_is_what_create_and_ingest_make() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 30000 --seed 7 --out {}/exports --rows-per-file 7000");
    for (input, keys) in [
        ("{}/exports", "--primary-key event_timestamp,user_id,campaign_id --partition-key user_id"),
        ("{}/exports", "--primary-key event_timestamp,user_id,campaign_id --partition-key campaign_id"),
        (FLIGHTS, "--primary-key time_hour,carrier,flight --partition-key carrier,flight"),
    ] {
        let evaluation =
            json(dir.path(), &format!("evaluate {input} {keys} --partitions 16 --name t --format json"));
        let predicted = numbers(&placement(&evaluation["candidates"][0], 16)["rows_per_partition"]);
        let table = dir.path().join("t");
        // The commands that the answer proposes, word by word.
        for command in evaluation["recommendation"]["commands"].as_array().unwrap().iter().take(2) {
            let command = command.as_str().unwrap().strip_prefix("evenkeel ").unwrap();
            let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            words[1] = table.display().to_string();
            let output = evenkeel().args(&words).output().unwrap();
            assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let skew = json(dir.path(), "skew {}/t --format json");
        let inspected = json(dir.path(), "inspect {}/t --format json");
        let stored: u64 = numbers(&skew["rows_per_partition"]).iter().sum();
        assert_eq!(inspected["rows"].as_u64().unwrap(), stored);
        let repeated = evaluation["primary_keys"][0]["duplicate_rows"].as_u64().unwrap();
        if repeated == 0 {
            assert_eq!(numbers(&skew["rows_per_partition"]), predicted, "{keys}");
            for figure in ["max_over_mean", "cv", "idle_fraction", "effective_partitions"] {
                assert_eq!(skew[figure], evaluation["candidates"][0]["placements"][0][figure], "{figure}");
            }
        } else {
            assert_eq!(stored + repeated, predicted.iter().sum::<u64>(), "{keys}");
        }
        std::fs::remove_dir_all(&table).unwrap();
    }
}

#[test]
fn the_story_of_the_ydb_documentation_comes_out_in_numbers() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 120000 --out {}/exports");
    let evaluation = json(
        dir.path(),
        "evaluate {}/exports --partition-key date(event_timestamp) --partition-key hour(event_timestamp) \
         --partition-key trunc(event_timestamp,5m) --partition-key campaign_id --partition-key user_id \
         --partition-key user_id,event_timestamp --primary-key event_timestamp,user_id,campaign_id \
         --primary-key user_id,event_timestamp,campaign_id --partitions 16 --queries queries --batch 5000 --format json",
    );
    let candidate = |key: &str| {
        let candidates = evaluation["candidates"].as_array().unwrap();
        candidates
            .iter()
            .find(|c| c["partition_key"] == json!(key.split(", ").collect::<Vec<_>>()))
            .unwrap()
            .clone()
    };
    // Time at low resolution sends everything of a moment to one partition.
    for key in ["date(event_timestamp)", "hour(event_timestamp)"] {
        let time = candidate(key)["over_time"].clone();
        assert_eq!(time["pattern"], "sequential", "{key}");
        assert!(time["share_of_fullest"]["median"].as_f64().unwrap() > 0.99, "{key}");
        assert!(time["effective_partitions"]["median"].as_f64().unwrap() < 1.05, "{key}");
        let capacity = placement(&candidate(key), 16)["capacity"].clone();
        assert!(capacity["sustained"].as_f64().unwrap() < 1.05e6, "{key}: one partition's rate");
    }
    assert!(
        placement(&candidate("hour(event_timestamp)"), 16)["effective_partitions"].as_f64().unwrap() > 6.0
    );
    // One campaign can have 80 % of the events.
    let campaign = candidate("campaign_id");
    assert_eq!(campaign["over_time"]["pattern"], "concentrated");
    assert!((campaign["heavy_hitters"][0]["share"].as_f64().unwrap() - 0.8).abs() < 0.02);
    assert!(placement(&campaign, 16)["share_of_heaviest_partition"].as_f64().unwrap() > 0.8);
    // user_id and (user_id, event_timestamp) balance, in total and at any time.
    for key in ["user_id", "user_id, event_timestamp"] {
        let even = candidate(key);
        assert_eq!(even["over_time"]["pattern"], "even", "{key}");
        let placement = placement(&even, 16);
        assert_eq!(placement["verdict"], "even", "{key}");
        assert_eq!(placement["causes"]["hash_function"], 0.0, "{key}");
        assert!(placement["capacity"]["sustained"].as_f64().unwrap() > 14e6, "{key}");
    }
    // What the documentation leaves unsaid: a longer key makes the events of one user visit every
    // partition.
    let statements = evaluation["statements"].as_array().unwrap();
    let user = statements.iter().find(|s| s["statement"] == "events_of_user").unwrap();
    let visits = |key: &str| {
        let fan_out = user["fan_out"].as_array().unwrap();
        let key = json!(key.split(", ").collect::<Vec<_>>());
        fan_out.iter().find(|f| f["partition_key"] == key).unwrap()["partitions_read"].as_u64().unwrap()
    };
    assert_eq!((visits("user_id"), visits("user_id, event_timestamp")), (1, 16));
    assert_eq!(evaluation["recommendation"]["partition_key"], json!(["user_id"]));
    assert_eq!(
        evaluation["recommendation"]["primary_key"],
        json!(["event_timestamp", "user_id", "campaign_id"])
    );
    // Rows come in the order of time, so that key appends; a key that begins with the user
    // rewrites.
    let keys = evaluation["primary_keys"].as_array().unwrap();
    assert!(keys[0]["in_order_fraction"].as_f64().unwrap() > 0.95);
    assert!(keys[1]["in_order_fraction"].as_f64().unwrap() < 0.1);
    assert!(keys[0]["layout"]["write_amplification"].as_f64().unwrap() < 1.1);
    assert!(keys[1]["layout"]["write_amplification"].as_f64().unwrap() > 1.5);
    let hour = keys[0]["pruning"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["condition"] == "an hour of event_timestamp");
    assert!(hour.unwrap()["portions_pruned"].as_f64().unwrap() > 0.8);
    let codes: Vec<&str> =
        evaluation["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
    for code in ["moving_hotspot", "constant_hotspot", "heavy_key", "few_distinct_keys", "fan_out"] {
        assert!(codes.contains(&code), "{code}: {codes:?}");
    }
}

#[test]
fn the_json_has_what_programs_rely_on() {
    let dir = tempfile::tempdir().unwrap();
    let evaluation = json(
        dir.path(),
        &format!("evaluate {FLIGHTS} --partition-key dest --primary-key time_hour,dest --format json"),
    );
    let candidate = &evaluation["candidates"][0];
    let figures = [
        (&evaluation, vec!["/rows", "/recommendation/partitions"]),
        (
            candidate,
            vec![
                "/distinct/estimate",
                "/null_rows",
                "/heavy_hitters/0/rows",
                "/heavy_hitters/0/error",
                "/over_time/windows",
            ],
        ),
        (&candidate["over_time"]["effective_partitions"], vec!["/median", "/p10", "/min"]),
        (
            &candidate["placements"][0],
            vec![
                "/partitions",
                "/rows_per_partition/0",
                "/max_over_mean",
                "/cv",
                "/idle_fraction",
                "/effective_partitions",
                "/expected_cv_equal_keys",
                "/expected_cv_weighted",
            ],
        ),
        (&evaluation["primary_keys"][0], vec!["/duplicate_rows", "/conflicting_rows", "/in_order_fraction"]),
        (&evaluation["findings"][0], vec!["/measured", "/threshold"]),
    ];
    for (value, paths) in figures {
        for path in paths {
            assert!(value.pointer(path).is_some_and(Value::is_number), "{path} of {value}");
        }
    }
    assert_eq!(candidate["partition_key"], json!(["dest"]));
    assert_eq!(candidate["heavy_hitters"][0]["key"], json!(["ORD"]));
    assert_eq!(candidate["distinct"]["exact"], true);
    assert_eq!(candidate["placements"][0]["function"], "ydb");
    assert!(candidate["over_time"]["pattern"].is_string());
    assert_eq!(evaluation["primary_keys"][0]["columns"], json!(["time_hour", "dest"]));
    for list in ["/recommendation/partition_key", "/recommendation/primary_key", "/recommendation/reasons"] {
        assert!(evaluation.pointer(list).unwrap().is_array(), "{list}");
    }
    assert!(evaluation["findings"][0]["code"].is_string() && evaluation["findings"][0]["advice"].is_string());
}

#[test]
fn formats_and_pipes_agree_and_a_type_changes_the_hash() {
    let dir = tempfile::tempdir().unwrap();
    for format in ["parquet", "csv", "ndjson"] {
        done(
            dir.path(),
            &format!("generate ad-events --rows 5000 --file-format {format} --out {{}}/{format}"),
        );
    }
    let keys = "--partition-key user_id --partition-key campaign_id --primary-key event_timestamp,user_id,campaign_id \
                --partitions 16 --format json";
    let rows = |evaluation: &Value, key: usize| {
        numbers(&evaluation["candidates"][key]["placements"][0]["rows_per_partition"])
    };
    let parquet = json(dir.path(), &format!("evaluate {{}}/parquet {keys}"));
    for format in ["csv", "ndjson"] {
        let text = json(dir.path(), &format!("evaluate {{}}/{format} {keys}"));
        assert_eq!(rows(&text, 0), rows(&parquet, 0), "{format}");
        // Eight bytes of a positive number are the same, signed or not; four are others.
        assert_eq!(rows(&text, 1), rows(&parquet, 1), "{format}");
        let narrow = json(dir.path(), &format!("evaluate {{}}/{format} --type campaign_id:uint32 {keys}"));
        assert_ne!(rows(&narrow, 1), rows(&parquet, 1), "{format}");
        assert_eq!(
            text["primary_keys"][0]["in_order_fraction"],
            parquet["primary_keys"][0]["in_order_fraction"]
        );
    }
    let file = std::fs::File::open(dir.path().join("csv/ad-events-0000.csv")).unwrap();
    let arguments: Vec<&str> = keys.split_whitespace().collect();
    let output = evenkeel().args(["evaluate", "-"]).args(&arguments).stdin(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let piped: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows(&piped, 0), rows(&parquet, 0));
    assert_eq!(piped["inputs"], json!(["standard input"]));
}

#[test]
fn a_sample_gives_intervals_that_hold_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let keys = format!(
        "evaluate {FLIGHTS} --partition-key dest --primary-key time_hour,dest,flight --partitions 16 --format json"
    );
    let whole = json(dir.path(), &keys);
    let sample = json(dir.path(), &format!("{keys} --sample 0.05"));
    assert_eq!(sample["sample"]["rows_read"], 336_776);
    let sampled = sample["rows"].as_u64().unwrap();
    assert!((15_000..19_000).contains(&sampled), "{sampled}");
    let intervals = &sample["candidates"][0]["placements"][0]["intervals"];
    for figure in ["max_over_mean", "cv", "idle_fraction", "effective_partitions", "share_of_fullest"] {
        let truth = whole["candidates"][0]["placements"][0][figure].as_f64().unwrap();
        let (lower, upper) =
            (intervals[figure]["lower"].as_f64().unwrap(), intervals[figure]["upper"].as_f64().unwrap());
        // A twentieth of the interval to each side: one of twenty intervals may miss, and this one
        // is fixed by its seed.
        let slack = (upper - lower) / 20.0;
        assert!(lower - slack <= truth && truth <= upper + slack, "{figure}: {truth} in {lower} to {upper}");
        assert!(upper - lower < 0.2 * upper, "{figure}: {lower} to {upper}");
    }
    assert!(whole["candidates"][0]["placements"][0].get("intervals").is_none());
}

#[test]
fn with_the_least_memory_every_figure_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 1000000 --out {}/exports");
    let keys = "--partition-key event_id --partition-key user_id,event_timestamp --partition-key campaign_id \
                --partition-key user_id --partition-key user_id,campaign_id --partition-key event_id,campaign_id \
                --partition-key user_id,event_type --partition-key event_id,user_id \
                --primary-key event_timestamp,user_id,campaign_id --partitions 16 --format json";
    let refused = run(dir.path(), &format!("evaluate {{}}/exports {keys} --memory 10MiB"));
    assert_eq!(refused.code, 2);
    let least = refused.stderr.split("need at least ").nth(1).and_then(|rest| rest.split(" MiB").next());
    let least: f64 = least.unwrap_or_else(|| panic!("{}", refused.stderr)).parse().unwrap();
    // Six keys with a million values each take 14 MB, of the 8 MB that each gets.
    let little = format!("--memory {}MiB", least.ceil() as u64);
    let [plenty, little] = ["--memory 2GiB", &little]
        .map(|memory| json(dir.path(), &format!("evaluate {{}}/exports {keys} {memory}")));
    for (of_plenty, of_little) in
        plenty["candidates"].as_array().unwrap().iter().zip(little["candidates"].as_array().unwrap())
    {
        assert_eq!(of_plenty["distinct"]["exact"], true);
        assert_eq!(of_plenty, of_little);
    }
    assert_eq!(little["primary_keys"], plenty["primary_keys"]);
}

#[test]
fn candidates_are_found_with_reasons_and_the_answer_is_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let evaluation = json(dir.path(), &format!("evaluate {FLIGHTS} --format json"));
    assert_eq!(evaluation["recommendation"]["primary_key"][0], "time_hour");
    let key = &evaluation["primary_keys"].as_array().unwrap().iter().find(|key| key["unique"] == true);
    assert!(key.is_some(), "{}", evaluation["primary_keys"]);
    let considered = evaluation["considered"].as_array().unwrap();
    let reason = |column: &str| {
        let found =
            considered.iter().find(|c| c["key"] == json!([column]) && c["role"] == "partition_key").unwrap();
        assert_eq!(found["kept"], false, "{column}");
        found["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason("dep_time").contains("have NULL"));
    assert!(reason("origin").contains("cannot fill 16 partitions: 3 values in the 336776 rows"));
    assert_eq!(reason("year"), "all of the 336776 rows have one value");
    // Few flights lack the number of their aircraft, which they can be given.
    let aircraft = considered.iter().find(|c| c["key"] == json!(["tailnum"])).unwrap();
    assert_eq!(aircraft["kept"], true);
    assert!(aircraft["reason"].as_str().unwrap().contains("of which have NULL"), "{aircraft}");
    let findings = evaluation["findings"].as_array().unwrap();
    let nulls =
        findings.iter().find(|f| f["code"] == "null_keys" && f["subject"] == "HASH(tailnum)").unwrap();
    assert_eq!((&nulls["severity"], &nulls["measured"]), (&json!("warning"), &json!(2512.0)));
    let ranked = evaluation["ranking"].as_array().unwrap();
    let of_aircraft = ranked.iter().find(|key| key["partition_key"] == json!(["tailnum"])).unwrap();
    assert_eq!((&of_aircraft["null_rows"], &of_aircraft["obstacle"]), (&json!(2512), &Value::Null));
    assert!(evaluation["recommendation"]["ddl"].as_str().unwrap().contains("PARTITION BY HASH"));
    let answer = done(dir.path(), &format!("evaluate {FLIGHTS}"));
    for heading in ["RECOMMENDATION", "PARTITION KEYS OVER 16 PARTITIONS", "THE TABLE"] {
        assert!(answer.contains(heading), "{heading}: {answer}");
    }
    assert!(!answer.contains("ROWS PER PARTITION") && answer.contains("--verbose"), "{answer}");
    let wide = answer.lines().filter(|line| line.chars().count() > 100).collect::<Vec<_>>();
    assert!(wide.iter().all(|line| line.starts_with("evenkeel ") || line.starts_with("ydb ")), "{wide:?}");
    let (reading, _) = answer.split_once("THE TABLE").unwrap();
    assert!(reading.lines().count() <= 60, "{reading}");
    let text = done(dir.path(), &format!("evaluate {FLIGHTS} --verbose"));
    for heading in [
        "RECOMMENDATION",
        "PARTITION KEYS OVER 16 PARTITIONS",
        "ROWS PER PARTITION",
        "PRIMARY KEYS",
        "FINDINGS",
        "THE TABLE",
    ] {
        assert!(text.contains(heading), "{heading}");
    }
    let markdown = done(dir.path(), &format!("evaluate {FLIGHTS} --partition-key dest --format markdown"));
    assert!(markdown.contains("## Recommendation") && markdown.contains("```sql"), "{markdown}");
}

#[test]
fn thresholds_make_a_check_of_it_and_a_baseline_shows_drift() {
    let dir = tempfile::tempdir().unwrap();
    for (name, campaigns) in [("before", "0.2"), ("after", "0.9")] {
        let arguments =
            format!("generate ad-events --rows 20000 --campaign-share {campaigns} --out {{}}/{name}");
        done(dir.path(), &arguments);
    }
    let keys =
        "--partition-key campaign_id --primary-key event_timestamp,user_id,campaign_id --partitions 16";
    for (threshold, code) in [
        ("max_over_mean>1.2", 3),
        ("max_over_mean>16", 0),
        ("distinct.estimate<10", 0),
        ("conflicting_rows>=0", 3),
        ("problems>0", 3),
        ("max_over_men>1", 2),
        ("max_over_mean", 2),
    ] {
        let run = run(dir.path(), &format!("evaluate {{}}/after {keys} --fail-on {threshold}"));
        assert_eq!(run.code, code, "{threshold}\n{}", run.stderr);
        assert_eq!(run.stderr.contains("is met:"), code == 3, "{threshold}\n{}", run.stderr);
    }
    let baseline = done(dir.path(), &format!("evaluate {{}}/before {keys} --format json"));
    std::fs::write(dir.path().join("baseline.json"), baseline).unwrap();
    let same =
        json(dir.path(), &format!("evaluate {{}}/before {keys} --baseline {{}}/baseline.json --format json"));
    assert!(same["drift"].as_array().unwrap().iter().all(|drift| drift["notable"] == false));
    let drifted = run(
        dir.path(),
        &format!("evaluate {{}}/after {keys} --baseline {{}}/baseline.json --fail-on drift>0"),
    );
    assert_eq!(drifted.code, 3);
    assert!(
        drifted.stdout.contains("SINCE THE BASELINE") && drifted.stdout.contains("heavy_hitters.0.share")
    );
    std::fs::write(dir.path().join("other.json"), "{}").unwrap();
    for file in ["other.json", "missing.json"] {
        let run = run(dir.path(), &format!("evaluate {{}}/after {keys} --baseline {{}}/{file}"));
        assert!(run.code == 1 || run.code == 2, "{file}");
    }
}

#[test]
fn masked_values_are_nowhere_in_the_results() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String =
        (0..200).map(|i| format!("secret-{},2026-01-01T00:00:{:02}Z,{i}\n", i % 3, i % 60)).collect();
    std::fs::write(
        dir.path().join("x.csv"),
        format!("who,at,n\n{rows}\"oops,2026-01-01,1\n").replace("\"oops", "oops"),
    )
    .unwrap();
    let arguments = "evaluate {}/x.csv --partition-key who --primary-key at,who --partitions 4 --mask-values --html {}/r.html";
    let answer = done(dir.path(), arguments);
    assert!(!answer.contains("secret"), "{answer}");
    for format in ["table --verbose", "json", "markdown"] {
        let text = done(dir.path(), &format!("{arguments} --format {format}"));
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains("value 1"), "{text}");
    }
    let html = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(!html.contains("secret") && html.contains("value 1"));
}

#[test]
fn wrong_input_gets_a_clear_answer() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("empty.csv", "");
    write("header.csv", "a,b\n");
    write("bad.csv", &format!("a,b\n{}x,1\n", "1,2\n".repeat(150_000)));
    write("x.csv", "a,at,note\n1,2026-01-01T00:00:00Z,x\n2,2026-01-01T00:00:01Z,y\n");
    let cases = [
        ("{}/x.csv --partition-key nope", 2, "there is no column 'nope'; there are: a, at, note"),
        ("{}/x.csv --partition-key A", 2, "there is no column 'A'"),
        ("{}/x.csv --partition-key a,a", 2, "names 'a' twice"),
        ("{}/x.csv --partition-key week(at)", 2, "is not a key"),
        ("{}/x.csv --partition-key date(a)", 2, "is not a point in time"),
        ("{}/x.csv --primary-key nope", 2, "there is no column 'nope'"),
        ("{}/x.csv --type nope:int64", 2, "there is no column 'nope' with a YDB type"),
        ("{}/x.csv --type a", 2, "write COLUMN:TYPE"),
        ("{}/x.csv --type a:number", 2, "unknown column type 'number'"),
        ("{}/x.csv --time nope", 2, "there is no time column 'nope'; there are: at"),
        ("{}/x.csv --time note", 2, "column 'note' cannot be read as points in time"),
        ("{}/x.csv --window 5", 2, "is not a length of time"),
        ("{}/x.csv --sample 0", 2, "a share is above 0 and at most 1"),
        ("{}/x.csv --partitions 0", 2, "a table has 1 to 100000 partitions"),
        ("{}/x.csv --partitions 4 --nodes 1", 2, "cannot be used with"),
        ("{}/x.csv --placement md5", 2, "unknown placement function 'md5'"),
        ("{}/x.csv --placement ydb-cloud-logs --partition-key a", 1, "needs a key of at least two columns"),
        ("{}/x.csv --queries {}/none", 1, "cannot read"),
        ("{}/x.csv --html {}/no/such/place.html", 2, "--html: there is no folder"),
        ("{}/x.csv --batch 0", 2, "0 is not in 1.."),
        ("{}/none.csv", 1, "there is no such file or folder"),
        ("{}/empty.csv", 1, "is empty"),
        ("{}/header.csv", 1, "has no record from which types could be detected"),
        ("{}/bad.csv --partition-key a", 1, "bad.csv, line 150002, column 'a': 'x' is not of type Int64"),
    ];
    for (arguments, code, message) in cases {
        let run = run(dir.path(), &format!("evaluate {arguments}"));
        assert_eq!(run.code, code, "{arguments}\n{}", run.stderr);
        assert!(run.stderr.contains(message), "{arguments}\n{}", run.stderr);
    }
    let skipped = json(dir.path(), "evaluate {}/bad.csv --partition-key a --on-error skip --format json");
    assert_eq!((&skipped["rows"], &skipped["unreadable_rows"]), (&json!(150_000), &json!(1)));
}

#[test]
fn odd_exports_are_evaluated_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("one.csv", "id,at\n7,2026-01-01T00:00:00Z\n");
    let one = json(dir.path(), "evaluate {}/one.csv --format json");
    assert_eq!(one["rows"], 1);
    assert_eq!(one["recommendation"]["partition_key"], json!(["id"]));
    write("nulls.csv", &format!("id,other\n{}", ",1\n".repeat(50)));
    let nulls = json(
        dir.path(),
        "evaluate {}/nulls.csv --partition-key id --primary-key id --partitions 4 --format json",
    );
    assert_eq!(nulls["candidates"][0]["null_rows"], 50);
    assert_eq!(nulls["candidates"][0]["distinct"]["estimate"], 1);
    assert!(nulls["primary_keys"][0]["obstacles"][0].as_str().unwrap().contains("NULL"));
    let codes = |evaluation: &Value| -> Vec<String> {
        evaluation["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["code"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(codes(&nulls).contains(&"null_keys".to_owned()));
    write("same.csv", &format!("id\n{}", "5\n".repeat(50)));
    let same = json(dir.path(), "evaluate {}/same.csv --partition-key id --partitions 4 --format json");
    assert_eq!(same["candidates"][0]["placements"][0]["max_over_mean"], 4.0);
    assert!(
        codes(&same).contains(&"few_distinct_keys".to_owned())
            && codes(&same).contains(&"no_time".to_owned())
    );
    let unordered: String =
        (0..500).map(|i| format!("{i},2026-01-01T00:{:02}:00Z\n", (i * 37) % 60)).collect();
    write("unordered.csv", &format!("id,at\n{unordered}9,\n"));
    let unordered =
        json(dir.path(), "evaluate {}/unordered.csv --partition-key id --partitions 2 --format json");
    assert!(codes(&unordered).contains(&"time_unordered".to_owned()), "{:?}", codes(&unordered));
    assert!(codes(&unordered).contains(&"time_missing".to_owned()));
    // A Decimal adds nothing to the hash: every row goes to one partition, and the hash is named as
    // the reason.
    let prices: String = (0..3000).map(|i| format!("{i}.25\n")).collect();
    write("prices.csv", &format!("price\n{prices}"));
    let decimal = json(
        dir.path(),
        "evaluate {}/prices.csv --type price:decimal(22,9) --partition-key price --partitions 4 --format json",
    );
    assert_eq!(decimal["candidates"][0]["distinct"]["estimate"], 3000);
    assert_eq!(decimal["candidates"][0]["placements"][0]["empty_partitions"], 3);
    assert!(codes(&decimal).contains(&"hash_defect".to_owned()), "{:?}", codes(&decimal));
    assert!(codes(&decimal).contains(&"key_type".to_owned()));
}

#[test]
fn ten_thousand_columns_are_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..10_000).map(|i| format!("c{i}")).collect();
    let row = |row: usize| {
        // Columns that have nothing in common, so that each is compared with all others.
        let number = |i: usize| ((i * 2_654_435_761) ^ (row * 40_503)).wrapping_mul(2_246_822_519) >> 9;
        (0..10_000).map(|i| (number(i) % 1000).to_string()).collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = (0..60).map(row).collect();
    std::fs::write(dir.path().join("wide.csv"), format!("{}\n{}\n", names.join(","), rows.join("\n")))
        .unwrap();
    let wide = json(dir.path(), "evaluate {}/wide.csv --partitions 4 --format json");
    assert_eq!(wide["rows"], 60);
    assert!(wide["candidates"].as_array().unwrap().len() < 20);
    let unknown = run(dir.path(), "evaluate {}/wide.csv --partition-key nope");
    assert!(unknown.stderr.contains("and 9960 more") && unknown.stderr.len() < 1000, "{}", unknown.stderr);
}

#[test]
fn a_bench_really_ingests_what_was_predicted() {
    let dir = tempfile::tempdir().unwrap();
    let bench = json(
        dir.path(),
        &format!(
            "bench ingest {FLIGHTS} --partition-key carrier --partition-key date(time_hour) --primary-key \
             time_hour,carrier,flight --nodes 4 --batch 100000 --format json --dir {{}}/kept"
        ),
    );
    assert_eq!(bench["partitions"], 16);
    for key in bench["keys"].as_array().unwrap() {
        assert_eq!(key["rows"], 336_776);
        let batches = key["batches"].as_array().unwrap();
        assert_eq!(batches.len(), 4);
        for batch in batches {
            let rows: u64 = numbers(&batch["rows_per_partition"]).iter().sum();
            assert_eq!(batch["rows"], rows);
            let bytes: u64 = numbers(&batch["bytes_per_partition"]).iter().sum();
            assert_eq!(batch["bytes"], bytes);
            let seconds = batch["seconds_per_partition"].as_array().unwrap();
            let portions = seconds.iter().filter(|seconds| seconds.as_f64().unwrap() > 0.0).count();
            assert_eq!(batch["portions"], portions);
        }
        assert_eq!(key["backlog"]["resource"], "node");
        assert!(
            key["backlog"]["rate_without_backlog"].as_f64()
                <= key["backlog"]["rate_in_the_long_run"].as_f64()
        );
    }
    let carrier = json(dir.path(), "inspect {}/kept/table-0 --format json");
    assert_eq!(carrier["rows"], 336_776);
    let evaluation = json(
        dir.path(),
        &format!("evaluate {FLIGHTS} --partition-key carrier --partitions 16 --format json"),
    );
    assert_eq!(
        bench["keys"][0]["rows_per_partition"],
        evaluation["candidates"][0]["placements"][0]["rows_per_partition"]
    );
    let refused =
        run(dir.path(), &format!("bench ingest {FLIGHTS} --partition-key tailnum --primary-key time_hour"));
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("is NULL"), "{}", refused.stderr);
    let scenario = json(dir.path(), "bench ad-events --rows 20000 --batch 5000 --rate 200000 --format json");
    assert_eq!(scenario["ingest"]["keys"].as_array().unwrap().len(), 5);
    assert!(scenario["ingest"]["keys"][0]["utilization"].as_f64().unwrap() > 0.0);
    assert_eq!(scenario["queries"][0]["answers"].as_array().unwrap().len(), 4);
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
fn a_key_of_the_time_alone_is_a_hotspot_however_long_the_windows() {
    let dir = tempfile::tempdir().unwrap();
    for window in ["", "--window 6h", "--window 7d"] {
        let evaluation = json(
            dir.path(),
            &format!(
                "evaluate {FLIGHTS} --partition-key time_hour --partition-key flight --partitions 16,64,128 {window} --format json"
            ),
        );
        for placement in evaluation["candidates"][0]["placements"].as_array().unwrap() {
            assert_eq!(placement["verdict"], "moving", "{window}");
            assert_eq!(placement["capacity"]["sustained"], 1e6, "{window}");
        }
        assert_eq!(evaluation["recommendation"]["partition_key"], json!(["flight"]), "{window}");
    }
}

#[test]
fn the_recommendation_follows_the_rate_the_skew_and_the_placement() {
    let dir = tempfile::tempdir().unwrap();
    let recommended = |arguments: &str| {
        let evaluation = json(dir.path(), &format!("evaluate {FLIGHTS} {arguments} --format json"));
        evaluation["recommendation"].clone()
    };
    let primary_key = "--primary-key time_hour,carrier,flight";
    // flight sustains 12 MB/s over 16 partitions: enough for 10, not for 16.
    for (rate, partitions) in [("10MB", 16), ("16MB", 64)] {
        let found = recommended(&format!(
            "{primary_key} --partition-key flight --partitions 16,64 --ingest-rate {rate}"
        ));
        assert_eq!(found["partitions"], partitions, "{rate}: {found}");
    }
    // Two keys are even enough for little; the one that statements need fewer partitions of is
    // chosen, unless its rate is short.
    std::fs::write(dir.path().join("q.sql"), "SELECT * FROM t WHERE flight = 15").unwrap();
    let keys = format!(
        "{primary_key} --partition-key flight --partition-key carrier,flight --queries {{}}/q.sql --partitions 16"
    );
    assert_eq!(recommended(&keys)["partition_key"], json!(["flight"]));
    let fast = recommended(&format!("{keys} --ingest-rate 13MB"));
    assert_eq!(fast["partition_key"], json!(["carrier", "flight"]), "{fast}");
    let modulo = recommended(&format!("{primary_key} --partition-key flight --placement ydb-modulo"));
    assert!(modulo["commands"][0].as_str().unwrap().contains("--placement ydb-modulo"), "{modulo}");
    let poor = recommended("--partition-key year --primary-key year,time_hour,carrier,flight");
    assert!(poor["reasons"][0].as_str().unwrap().starts_with("no candidate spreads rows evenly"), "{poor}");
}

#[test]
fn commands_carry_how_the_file_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..500).map(|i| format!("{i};01.02.2026 10:{:02};{},5\n", i % 60, i % 7)).collect();
    std::fs::write(dir.path().join("orders.csv"), format!("id;at;price\n{rows}")).unwrap();
    let output = evenkeel()
        .arg("evaluate")
        .arg(dir.path().join("orders.csv"))
        .args([
            "--delimiter",
            ";",
            "--decimal-comma",
            "--timestamp-format",
            "%d.%m.%Y %H:%M",
            "--partition-key",
            "id",
        ])
        .args(["--primary-key", "at,id", "--partitions", "2", "--name", "orders table", "--format", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let evaluation: Value = serde_json::from_slice(&output.stdout).unwrap();
    for command in evaluation["recommendation"]["commands"].as_array().unwrap().iter().take(2) {
        let program = env!("CARGO_BIN_EXE_evenkeel");
        let command = command.as_str().unwrap().replacen("evenkeel", program, 1);
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(&command)
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let inspected = json(&dir.path().join("orders table"), "inspect {} --format json");
    assert_eq!(inspected["rows"], 500);
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

#[test]
fn queries_are_timed_on_an_open_table() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 5000 --out {}/events");
    done(dir.path(), &format!("create {{}}/t --ddl {}", project("data/ad_events.sql").display()));
    done(dir.path(), "ingest {}/t {}/events");
    let query = project("queries/clicks_of_campaign.sql");
    let query = query.display();
    let timed = json(
        dir.path(),
        &format!("bench queries {{}}/t -f {query} --param campaign=1 --runs 3 --format json"),
    );
    assert_eq!((timed[0]["rows"].as_u64(), timed[0]["millis"].as_array().unwrap().len()), (Some(1), 3));
    let millis: Vec<f64> =
        timed[0]["millis"].as_array().unwrap().iter().map(|m| m.as_f64().unwrap()).collect();
    assert!(millis.contains(&timed[0]["median_millis"].as_f64().unwrap()), "{timed}");
    let table = done(dir.path(), "bench queries {}/t SELECT/**/count(*)/**/FROM/**/t --runs 1");
    assert!(table.contains("16 of 16") && table.contains("median ms"), "{table}");
    for (arguments, code, message) in [
        ("", 2, "no queries given; pass them after the table, or with -f FILE"),
        ("SELECT/**/1 --param campaign=1", 2, "no query uses the parameter of --param campaign=1"),
        ("-f {}/nothing.sql", 1, "nothing.sql: cannot read"),
        ("SELECT/**/nope/**/FROM/**/t", 1, "nope"),
        ("SELECT/**/1 --runs 0", 2, "0 is not in 1.."),
    ] {
        let refused = run(dir.path(), &format!("bench queries {{}}/t {arguments}"));
        assert_eq!(refused.code, code, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
}

/// Rows of an export with tenants, users and times.
fn sorted_by(column: &str, rows: i64) -> RecordBatch {
    use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};
    use std::sync::Arc;
    let second = 1_000_000;
    let number = |row: i64, by: &str, of: i64| if by == column { row * of / rows } else { row * 7_919 % of };
    let tenant = Int64Array::from_iter_values((0..rows).map(|row| number(row, "tenant_id", 40)));
    let user =
        StringArray::from_iter_values((0..rows).map(|row| format!("u{}", number(row, "user_id", 5_000))));
    let at = (0..rows).map(|row| if column == "at" { row } else { row * 104_729 % rows });
    let at = TimestampMicrosecondArray::from_iter_values(at.map(|at| 1_790_000_000 * second + at * second));
    // All rows of the first nine tenths have one value, and no NULL.
    let late = Int64Array::from_iter((0..rows).map(|row| (row < rows / 10 * 9).then_some(1)));
    let region = Int64Array::from_iter_values((0..rows).map(|row| (row - rows / 10 * 9).max(0) % 1_000));
    let columns: [(&str, ArrayRef); 5] = [
        ("tenant_id", Arc::new(tenant)),
        ("user_id", Arc::new(user)),
        ("at", Arc::new(at)),
        ("late", Arc::new(late)),
        ("region", Arc::new(region)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write_parquet(path: &Path, batch: &RecordBatch, group_rows: usize) {
    use parquet::file::properties::WriterProperties;
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn candidates_of_a_sorted_export_are_those_of_the_shuffled_one() {
    let rows = 120_000;
    let sorts: [(&str, &[&str]); 3] = [
        ("tenant_id", &["one.parquet", "groups.parquet", "files"]),
        ("at", &["one.parquet"]),
        ("user_id", &["groups.parquet"]),
    ];
    for (sorted, inputs) in sorts {
        let dir = tempfile::tempdir().unwrap();
        let batch = sorted_by(sorted, rows);
        write_parquet(&dir.path().join("one.parquet"), &batch, 1 << 20);
        write_parquet(&dir.path().join("groups.parquet"), &batch, 5_000);
        std::fs::create_dir(dir.path().join("files")).unwrap();
        for part in 0..6 {
            let path = dir.path().join(format!("files/{part}.parquet"));
            write_parquet(&path, &batch.slice(part * 20_000, 20_000), 5_000);
        }
        for inputs in inputs {
            let evaluation = json(
                dir.path(),
                &format!("evaluate {{}}/{inputs} --partitions 16 --no-primary-keys --format json"),
            );
            let considered = evaluation["considered"].as_array().unwrap();
            let of = |key: &str| considered.iter().find(|c| c["key"] == json!([key])).unwrap();
            let reason = |key: &str| of(key)["reason"].as_str().unwrap().to_owned();
            assert_eq!(of("tenant_id")["kept"], true, "{sorted} {inputs}: {}", reason("tenant_id"));
            assert!(
                reason("tenant_id").ends_with("40 in all 120000 rows"),
                "{sorted}: {}",
                reason("tenant_id")
            );
            assert_eq!(of("user_id")["kept"], true, "{sorted} {inputs}: {}", reason("user_id"));
            assert!(
                reason("late").contains("sampled rows have NULL"),
                "{sorted} {inputs}: {}",
                reason("late")
            );
            assert_eq!(of("region")["kept"], true, "{sorted} {inputs}: {}", reason("region"));
            let from = &evaluation["considered_from"];
            assert_eq!(from["whole"], false);
            assert!(from["places"].as_u64().unwrap() >= 150, "{from}");
            assert_eq!(from["inputs"], if *inputs == "files" { 6 } else { 1 });
            let notes = evaluation["notes"].to_string();
            assert!(
                notes.contains("candidates were found in a sample") && notes.contains("of 120,000 rows"),
                "{notes}"
            );
        }
    }
}

#[test]
fn text_is_sampled_from_everywhere_and_the_pass_withdraws_what_a_sample_cannot_know() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().unwrap();
    // A run of other values that is too short to be met by any place, far from both ends.
    let rare = |row: usize| if (77_700..77_720).contains(&row) { row } else { 0 };
    let line = |row: usize| format!("{},{},{},{}\n", row / 3_000, row, rare(row), row % 3);
    let csv: String = (0..120_000).map(line).collect();
    let csv = format!("tenant_id,id,rare,kind\n{csv}");
    std::fs::write(dir.path().join("a.csv"), &csv).unwrap();
    let gz = std::fs::File::create(dir.path().join("a.csv.gz")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(gz, flate2::Compression::fast());
    gz.write_all(csv.as_bytes()).unwrap();
    gz.finish().unwrap();
    for file in ["a.csv", "a.csv.gz"] {
        let evaluation = json(dir.path(), &format!("evaluate {{}}/{file} --partitions 16 --format json"));
        let considered = evaluation["considered"].as_array().unwrap();
        let of = |key: &str| {
            considered.iter().find(|c| c["key"] == json!([key]) && c["role"] == "partition_key").unwrap()
        };
        assert_eq!(of("tenant_id")["kept"], true, "{}", of("tenant_id"));
        // The pass reads all columns for the primary keys, so it knows better.
        let rare = of("rare")["reason"].as_str().unwrap();
        assert!(rare.contains("but the 120000 rows have 16 or more"), "{rare}");
        let kind = of("kind")["reason"].as_str().unwrap();
        assert!(kind.contains("cannot fill 16 partitions: 3 values in the 120000 rows"), "{kind}");
        assert!(
            evaluation["notes"].to_string().contains("column 'rare' was dropped"),
            "{}",
            evaluation["notes"]
        );
        let id = considered.iter().find(|c| c["role"] == "primary_key" && c["key"] == json!(["id"])).unwrap();
        let reason = id["reason"].as_str().unwrap();
        assert!(
            reason.contains("sampled rows") && reason.contains("no key repeats in all 120000 rows"),
            "{reason}"
        );
    }
}

#[test]
fn a_sample_of_few_rows_says_that_there_is_no_interval_of_the_cv() {
    let dir = tempfile::tempdir().unwrap();
    let csv: String = (0..3_000).map(|row| format!("{row},{}\n", row % 50)).collect();
    std::fs::write(dir.path().join("a.csv"), format!("id,user\n{csv}")).unwrap();
    let keys = "evaluate {}/a.csv --partition-key user --partitions 16 --no-primary-keys --sample";
    let few = json(dir.path(), &format!("{keys} 0.02 --format json"));
    let intervals = &few["candidates"][0]["placements"][0]["intervals"];
    assert!(intervals["cv"].is_null() && intervals["max_over_mean"]["lower"].is_number(), "{intervals}");
    assert!(intervals["no_interval"].as_str().unwrap().contains("no interval of the CV"), "{intervals}");
    assert!(done(dir.path(), &format!("{keys} 0.02 --verbose")).contains("(no interval)"));
    assert!(done(dir.path(), &format!("{keys} 0.02")).contains(" to "));
    let all = json(dir.path(), &format!("{keys} 1 --format json"));
    let placement = &all["candidates"][0]["placements"][0];
    for figure in ["max_over_mean", "cv", "idle_fraction", "effective_partitions", "share_of_fullest"] {
        let (truth, interval) = (placement[figure].as_f64().unwrap(), &placement["intervals"][figure]);
        for end in ["lower", "upper"] {
            assert!(
                (interval[end].as_f64().unwrap() - truth).abs() < 1e-9,
                "{figure}: {interval} of {truth}"
            );
        }
    }
}
