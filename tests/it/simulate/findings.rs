//! Findings of simulations, and wrong arguments.

use serde_json::Value;

use crate::common::{done, json, run};
use crate::simulate::{events, finding, number, read, strategy};

#[test]
fn wrong_simulations_get_a_clear_answer() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("x.csv"),
        "id,at,note\n1,2024-01-01T00:00:00Z,a\n2,2024-01-01T00:01:00Z,b\n",
    )
    .unwrap();
    std::fs::write(dir.path().join("y.csv"), "id,note\n1,a\n").unwrap();
    for (arguments, code, message) in [
        ("{}/x.csv", 2, "--primary-key"),
        ("{}/x.csv --primary-key nope", 2, "there is no column 'nope'; there are: id, at, note"),
        ("{}/x.csv --primary-key id,id", 2, "the key names 'id' twice"),
        ("{}/x.csv --primary-key id,", 2, "write columns separated by commas"),
        ("{}/x.csv --primary-key id --strategies swapped", 2, "strategy swapped needs a key of two columns"),
        ("{}/x.csv --primary-key id --strategies desc", 2, "needs a column of time in the key"),
        ("{}/x.csv --primary-key id --strategies uuid9", 2, "unknown strategy 'uuid9'; known: declared"),
        ("{}/x.csv --primary-key id --index i", 2, "'i' is not an index; write NAME(COLUMNS)"),
        ("{}/x.csv --primary-key id --index i(x)", 2, "there is no column 'x'"),
        ("{}/x.csv --primary-key id --index i(at) --index i(at)", 2, "index 'i' is given twice"),
        ("{}/x.csv --primary-key id --time note", 2, "column 'note' is not a point in time"),
        ("{}/x.csv --primary-key id --rate 0", 2, "write a number above 0"),
        ("{}/x.csv --primary-key id --scale big", 2, "write a number above 0"),
        ("{}/x.csv --primary-key id --split-size 0", 2, "a split must hold at least one row"),
        (
            "{}/y.csv --primary-key id --strategies declared",
            2,
            "name a column of time with --time, or set the rows per second",
        ),
        ("{}/none.csv --primary-key id", 1, "there is no such file or folder"),
    ] {
        let run = run(dir.path(), &format!("spanner simulate {arguments}"));
        assert_eq!(run.code, code, "{arguments}\n{}", run.stderr);
        assert!(run.stderr.contains(message), "{arguments}\n{}", run.stderr);
    }
    let rate = done(
        dir.path(),
        "spanner simulate {}/y.csv --primary-key id --rate 1000 --strategies declared,uuid4",
    );
    assert!(rate.contains("uuid4: a random UUID"), "{rate}");
}

#[test]
fn findings_say_what_is_so() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let simulate = |arguments: &[&str]| {
        let exports = dir.path().join("exports");
        let output = crate::common::evenkeel()
            .args(["spanner", "simulate"])
            .arg(exports)
            .args(arguments)
            .args(["--strategies", "declared", "--format", "json"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    // An index on users is in one split because it is small, not because it follows time.
    let small =
        simulate(&["--primary-key", "user_id,event_timestamp", "--index", "u(user_id)", "--scale", "1"]);
    assert!(finding(&small, "monotonic_index").is_none(), "{}", small["findings"]);
    // Many indexes do not hide the table.
    let names: Vec<String> = (0..8).map(|number| format!("i{number}(user_id)")).collect();
    let mut many = vec!["--primary-key", "event_timestamp,user_id", "--rate", "20000"];
    names.iter().for_each(|name| many.extend(["--index", name.as_str()]));
    assert_eq!(finding(&simulate(&many), "monotonic_key").unwrap()["severity"], "problem");
    // A shard of the schema is judged in its place, by its own function.
    let schema = dir.path().join("schema.sql");
    let ddl = "CREATE TABLE Log (ShardId INT64 AS (MOD(MOD(FARM_FINGERPRINT(CONCAT(CAST(event_timestamp AS STRING), \
               CAST(user_id AS STRING))), 16) + 16, 16)) STORED, event_timestamp TIMESTAMP, User_Id STRING(MAX))\n\
               PRIMARY KEY (ShardId, event_timestamp, user_id);\n\
               CREATE INDEX ByT ON Log(ShardId, event_timestamp DESC);";
    std::fs::write(&schema, ddl).unwrap();
    let sharded = simulate(&["--ddl", schema.to_str().unwrap()]);
    assert_eq!(sharded["judged"], "shard-16");
    assert!(finding(&sharded, "monotonic_key").is_none(), "{}", sharded["findings"]);
    assert_eq!(read(strategy(&sharded, "shard-16"), "time_range")["ranges"], 16);
    assert!(number(&strategy(&sharded, "shard-16")["indexes"][0]["hottest_share"]) < 0.5);
    // A shard of the user alone is one range for a user, and as many as shards for a time.
    let ddl = "CREATE TABLE Log (s INT64 AS (MOD(ABS(FARM_FINGERPRINT(user_id)), 16)) STORED, event_timestamp TIMESTAMP, user_id STRING(MAX))\n\
               PRIMARY KEY (s, user_id, event_timestamp);";
    std::fs::write(&schema, ddl).unwrap();
    let by_user = simulate(&["--ddl", schema.to_str().unwrap()]);
    let by_user = strategy(&by_user, "shard-16");
    assert_eq!(
        (&read(by_user, "history")["ranges"], &read(by_user, "history")["splits"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn uuids_that_begin_with_the_time_are_found_in_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let id = |row: u64| format!("{:08x}-{:04x}-7000-8000-{:012x}", 0x018c_c251 + row / 100, row, row * 7919);
    let rows: String = (0..2000)
        .map(|row| format!("{},2024-01-01T00:{:02}:{:02}Z\n", id(row), row / 60 % 60, row % 60))
        .chain(["00000000-0000-4000-8000-000000000000,2024-01-01T00:59:59Z\n".to_owned()])
        .collect();
    std::fs::write(dir.path().join("x.csv"), format!("id,at\n{rows}")).unwrap();
    let found = |key: &str| {
        json(
            dir.path(),
            &format!("spanner simulate {{}}/x.csv --primary-key {key} --strategies declared --format json"),
        )
    };
    assert_eq!(finding(&found("id"), "time_ordered_uuid").unwrap()["severity"], "warning");
    assert_eq!(finding(&found("at,id"), "time_ordered_uuid").unwrap()["severity"], "note");
}
