//! Strategies of keys, and the splits that their rows make.

use serde_json::Value;

use crate::common::{done, json, run};
use crate::simulate::{events, number, read, strategy};

fn hottest_share(strategy: &Value) -> f64 {
    number(&strategy["outcome"]["whole"]["hottest_rows"]) / number(&strategy["outcome"]["whole"]["rows"])
}

#[test]
fn every_strategy_does_what_the_guides_say() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let command =
        "spanner simulate {}/exports --primary-key event_timestamp,user_id --rate 20000 --format json";
    let simulation = json(dir.path(), command);
    assert_eq!(simulation["model"], true);
    for report in simulation["strategies"].as_array().unwrap() {
        let (whole, spaces) = (&report["outcome"]["whole"], report["outcome"]["spaces"].as_array().unwrap());
        assert_eq!((&whole["rows"], &spaces[0]["rows"]), (&simulation["rows"], &simulation["rows"]));
        let splits = spaces[0]["splits"].as_array().unwrap();
        let rows: u64 = splits.iter().map(|split| split["rows"].as_u64().unwrap()).sum();
        assert_eq!(rows, 100_000, "{report}");
        assert_eq!(splits.len() as u64, whole["splits"].as_u64().unwrap());
    }
    // A key that rises or falls has all writes in one split at any time; splitting by load never
    // helps.
    for name in ["declared", "desc", "uuid7"] {
        let found = strategy(&simulation, name);
        assert!(hottest_share(found) > 0.999, "{name}: {}", hottest_share(found));
        assert_eq!(found["outcome"]["relief"]["relieved_after_windows"], Value::Null, "{name}");
        assert_eq!(found["outcome"]["stuck"][0]["obstacle"], "moving_hotspot", "{name}");
        assert_eq!(found["outcome"]["heat"]["patterns"][0], "monotonic_keys", "{name}");
        assert!(number(&found["outcome"]["whole"]["busy_servers"]) < 1.01, "{name}");
    }
    // Keys that are anywhere are divided by load until none is hot.
    for name in ["swapped", "shard-16", "generated-2048", "bit-reversed", "uuid4"] {
        let found = strategy(&simulation, name);
        assert!(hottest_share(found) < 0.25, "{name}: {}", hottest_share(found));
        assert!(found["outcome"]["relief"]["relieved_after_windows"].is_u64(), "{name}");
        assert_eq!(found["outcome"]["heat"]["patterns"][0], "evenly_distributed", "{name}");
    }
    // UUIDs of version 1 follow time for seven minutes, and then begin anew.
    let uuid1 = hottest_share(strategy(&simulation, "uuid1"));
    assert!((0.3..0.9).contains(&uuid1), "{uuid1}");
    // N shards make N ranges of one.
    assert_eq!(read(strategy(&simulation, "declared"), "time_range")["ranges"], 1);
    assert_eq!(read(strategy(&simulation, "shard-16"), "time_range")["ranges"], 16);
    assert_eq!(read(strategy(&simulation, "declared"), "time_range")["splits"], 1);
    assert_eq!(read(strategy(&simulation, "shard-16"), "time_range")["splits"], 16);
    assert_eq!(read(strategy(&simulation, "shard-16"), "row")["splits"], 1);
    // The remainder of a negative number is negative.
    assert_eq!(read(strategy(&simulation, "generated-2048"), "time_range")["ranges"], 4095);
    assert_eq!(read(strategy(&simulation, "uuid4"), "row")["ranges"], Value::Null);
    let swapped = strategy(&simulation, "swapped");
    assert_eq!(
        (&read(swapped, "history")["ranges"], &read(swapped, "history")["splits"]),
        (&1.into(), &1.into())
    );
    assert_eq!(read(swapped, "time_range")["splits"], swapped["outcome"]["whole"]["splits"]);
    // Nothing depends on how quick the machine is.
    let mut again = json(dir.path(), command);
    again["seconds"] = simulation["seconds"].clone();
    assert_eq!(again, simulation);
}

#[test]
fn hash_partitions_hold_the_rows_that_the_evaluation_finds() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let simulation = json(
        dir.path(),
        "spanner simulate {}/exports --primary-key event_timestamp,user_id --partition-key user_id --strategies hash-8 --format json",
    );
    let evaluation = json(
        dir.path(),
        "evaluate {}/exports --partition-key user_id --no-primary-keys --partitions 8 --format json",
    );
    let splits = strategy(&simulation, "hash-8")["outcome"]["spaces"][0]["splits"].as_array().unwrap().iter();
    let simulated: Vec<&Value> = splits.map(|split| &split["rows"]).collect();
    let evaluated = evaluation["candidates"][0]["placements"][0]["rows_per_partition"].as_array().unwrap();
    assert_eq!(simulated, evaluated.iter().collect::<Vec<_>>());
}

#[test]
fn splits_say_where_they_begin() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let simulation = json(
        dir.path(),
        "spanner simulate {}/exports --primary-key event_timestamp,user_id --strategies declared,swapped,shard-4,desc --format json",
    );
    for (name, falls) in [("declared", false), ("swapped", false), ("shard-4", false), ("desc", true)] {
        let outcome = &strategy(&simulation, name)["outcome"];
        let splits = outcome["spaces"][0]["splits"].as_array().unwrap();
        assert_eq!(splits[0]["starts_at"], Value::Null);
        let starts: Vec<&str> =
            splits[1..].iter().map(|split| split["starts_at"].as_str().unwrap()).collect();
        let in_order = |pair: &[&str]| if falls { pair[0] >= pair[1] } else { pair[0] <= pair[1] };
        assert!(!starts.is_empty() && starts.windows(2).all(in_order), "{name}: {starts:?}");
        let rows = outcome["heat"]["starts_at"].as_array().unwrap();
        assert_eq!(rows.len(), outcome["heat"]["cells"].as_array().unwrap().len());
    }
    let of_shards = strategy(&simulation, "shard-4")["outcome"]["heat"]["starts_at"].as_array().unwrap();
    assert!(of_shards.iter().all(|shard| ["0", "1", "2", "3"].contains(&shard.as_str().unwrap())));
}

#[test]
fn a_shard_column_that_the_database_makes_is_a_strategy() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let ddl = "CREATE TABLE Log (\n  ShardId INT64 NOT NULL AS (MOD(FARM_FINGERPRINT(CAST(event_timestamp AS STRING)), 64)) STORED,\n  \
               event_timestamp TIMESTAMP NOT NULL,\n) PRIMARY KEY (ShardId, event_timestamp);";
    std::fs::write(dir.path().join("schema.sql"), ddl).unwrap();
    let output = run(
        dir.path(),
        "spanner simulate {}/exports --ddl {}/schema.sql --strategies declared --format json",
    );
    assert!(
        output.stderr.contains("ShardId is generated by the database: strategy generated-64"),
        "{}",
        output.stderr
    );
    let simulation: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(read(strategy(&simulation, "generated-64"), "time_range")["ranges"], 127);
    std::fs::write(dir.path().join("schema.sql"), "CREATE TABLE t (a INT64) PRIMARY").unwrap();
    let refused = run(dir.path(), "spanner simulate {}/exports --ddl {}/schema.sql");
    assert!(
        refused.code == 2 && refused.stderr.contains("schema.sql: line 1, column 26: expected KEY"),
        "{}",
        refused.stderr
    );
}

#[test]
fn the_access_log_of_the_guide_takes_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = done(dir.path(), "spanner access-log --rows 300000 --html {}/log.html");
    assert!(text.contains("recommended: swapped"), "{text}");
    assert!(text.contains("[monotonic_key] last_access: 100.0 % of the rows"), "{text}");
    assert!(dir.path().join("log.html").exists());
}

#[test]
fn a_swapped_key_is_as_even_as_the_users_are() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, user: &dyn Fn(u64) -> u64| {
        let row = |row: u64| {
            format!(
                "2024-01-01T{:02}:{:02}:{:02}Z,{:04}\n",
                row / 18_000,
                row / 300 % 60,
                row / 5 % 60,
                user(row)
            )
        };
        let rows: String = (0..60_000).map(row).collect();
        std::fs::write(dir.path().join(name), format!("at,user\n{rows}")).unwrap();
    };
    let mixed = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    write("even.csv", &|row| mixed(row) % 1000);
    // One user has 30 % of the rows.
    write("heavy.csv", &|row| if mixed(row) % 10 < 3 { 500 } else { mixed(row + 1) % 1000 });
    let share = |name: &str| {
        let command = format!(
            "spanner simulate {{}}/{name} --primary-key at,user --strategies swapped --scale 500 --split-size 4MiB --format json"
        );
        let found = json(dir.path(), &command);
        // Once splits have been divided.
        let periods = found["strategies"][0]["outcome"]["timeline"]["periods"].as_array().unwrap().clone();
        let sum = |field: &str| {
            periods.iter().skip(periods.len() / 2).map(|period| number(&period[field])).sum::<f64>()
        };
        sum("hottest_rows") / sum("rows")
    };
    let (even, heavy) = (share("even.csv"), share("heavy.csv"));
    assert!(even < 0.15, "{even}");
    assert!((0.29..0.36).contains(&heavy), "{heavy}");
}
