//! Range splits on exports, against what must come out.

use std::path::Path;

use serde_json::Value;

use crate::common::{done, json, run};

/// Ad events: 100,000 rows over two days.
fn events(dir: &Path) {
    done(dir, "generate ad-events --rows 100000 --out {}/exports");
}

fn strategy<'a>(simulation: &'a Value, name: &str) -> &'a Value {
    let strategies = simulation["strategies"].as_array().unwrap();
    strategies.iter().find(|strategy| strategy["strategy"] == name).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn hottest_share(strategy: &Value) -> f64 {
    number(&strategy["outcome"]["whole"]["hottest_rows"]) / number(&strategy["outcome"]["whole"]["rows"])
}

fn read<'a>(strategy: &'a Value, kind: &str) -> &'a Value {
    strategy["reads"].as_array().unwrap().iter().find(|read| read["kind"] == kind).unwrap()
}

#[test]
fn every_strategy_does_what_the_guides_say() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let command = "simulate splits {}/exports --primary-key event_timestamp,user_id --format json";
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
    // A key that rises or falls has all writes in one split at any time; splitting by load never helps.
    for name in ["declared", "desc", "uuid7"] {
        let found = strategy(&simulation, name);
        assert!(hottest_share(found) > 0.999, "{name}: {}", hottest_share(found));
        assert_eq!(found["outcome"]["relief"]["relieved_after"], Value::Null, "{name}");
        assert_eq!(found["outcome"]["stuck"][0]["obstacle"], "moving_hotspot", "{name}");
        assert_eq!(found["outcome"]["heat"]["patterns"][0], "monotonic_keys", "{name}");
        assert!(number(&found["outcome"]["whole"]["busy_servers"]) < 1.01, "{name}");
    }
    // Keys that are anywhere are divided by load until none is hot.
    for name in ["swapped", "shard-16", "generated-2048", "bit-reversed", "uuid4"] {
        let found = strategy(&simulation, name);
        assert!(hottest_share(found) < 0.25, "{name}: {}", hottest_share(found));
        assert!(found["outcome"]["relief"]["relieved_after"].is_u64(), "{name}");
        assert_eq!(found["outcome"]["heat"]["patterns"][0], "evenly_distributed", "{name}");
    }
    // UUIDs of version 1 follow time for seven minutes, and then begin anew.
    let uuid1 = hottest_share(strategy(&simulation, "uuid1"));
    assert!((0.3..0.9).contains(&uuid1), "{uuid1}");
    // N shards make N ranges of one.
    assert_eq!(read(strategy(&simulation, "declared"), "time_range")["ranges"], 1);
    assert_eq!(read(strategy(&simulation, "shard-16"), "time_range")["ranges"], 16);
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
        "simulate splits {}/exports --primary-key event_timestamp,user_id --partition-key user_id --strategies hash-8 --format json",
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
fn indexes_have_their_own_hotspots_bytes_and_back_joins() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let mut command: Vec<String> = "simulate splits {}/exports --primary-key user_id,event_timestamp \
                                    --strategies declared --format json"
        .split_whitespace()
        .map(|word| word.replace("{}", &dir.path().display().to_string()))
        .collect();
    for index in [
        "by_time(event_timestamp)",
        "sharded(event_timestamp) shard-8",
        "inside(user_id, campaign_id) interleaved",
        "storing(event_timestamp) storing(event_id,campaign_id,ad_id,event_type)",
        "by_campaign(campaign_id) null_filtered",
    ] {
        command.extend(["--index".to_owned(), index.to_owned()]);
    }
    let output = crate::common::evenkeel().args(&command).output().unwrap();
    let simulation: Value = serde_json::from_slice(&output.stdout).unwrap();
    let indexes = simulation["strategies"][0]["indexes"].as_array().unwrap();
    let index = |name: &str| indexes.iter().find(|index| index["name"] == name).unwrap();
    assert!(indexes.iter().all(|index| index["entries"] == 100_000));
    assert!(number(&index("by_time")["hottest_share"]) > 0.999);
    assert!(number(&index("sharded")["hottest_share"]) < 0.6);
    assert!(number(&index("inside")["hottest_share"]) < 0.6);
    assert_eq!(
        (&index("inside")["interleaved"], &index("by_time")["interleaved"]),
        (&true.into(), &false.into())
    );
    // user_id has about 10 bytes, the time 8.
    let bytes = |name: &str| number(&index(name)["bytes"]) / 100_000.0;
    assert!((17.0..20.0).contains(&bytes("by_time")), "{}", bytes("by_time"));
    assert!((bytes("sharded") - bytes("by_time") - 8.0).abs() < 1e-6);
    assert!(bytes("storing") > bytes("by_time") + 24.0, "{}", bytes("storing"));
    // What an index holds need not be looked up.
    let truth =
        count(dir.path(), "WHERE event_timestamp > (SELECT max(event_timestamp) FROM t) - INTERVAL '1 hour'");
    assert_eq!((&index("by_time")["found"], &index("by_time")["back_joins"]), (&truth.into(), &truth.into()));
    assert_eq!((&index("storing")["found"], &index("storing")["back_joins"]), (&truth.into(), &0.into()));
}

/// Rows by SQL over the table.
fn count(dir: &Path, condition: &str) -> u64 {
    done(dir, "create {}/counted --ddl data/ad_events.sql");
    done(dir, "ingest {}/counted {}/exports --compact off");
    let sql = format!("SELECT count(event_id) AS n FROM t {condition}");
    let table = dir.join("counted");
    let output =
        crate::common::evenkeel().arg("query").arg(table).args(["-c", &sql, "--format", "csv"]).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.lines().last().unwrap().parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn entries_without_a_value_are_left_out_where_the_index_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let rows = (0..1000).map(|row| {
        let seen = if row % 4 == 0 { format!("2024-01-01T00:{:02}:00Z", row / 20) } else { String::new() };
        format!("{row},2024-01-01T00:{:02}:00Z,{seen}\n", row / 20)
    });
    std::fs::write(dir.path().join("x.csv"), format!("id,at,seen\n{}", rows.collect::<String>())).unwrap();
    let entries = |index: &str| {
        let command =
            "simulate splits {}/x.csv --primary-key id --time at --strategies declared --format json";
        let command = command.replace("{}", &dir.path().display().to_string());
        let arguments = command.split_whitespace().chain(["--index", index]);
        let output = crate::common::evenkeel().args(arguments).output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["strategies"][0]["indexes"][0]["entries"].clone()
    };
    assert_eq!(entries("i(seen)"), 1000);
    assert_eq!(entries("i(seen) null_filtered"), 250);
}

#[test]
fn key_transforms_are_functions_of_sql() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    let value = |sql: &str| {
        let output = crate::common::evenkeel()
            .arg("query")
            .arg(dir.path().join("t"))
            .args(["-c", &format!("SELECT {sql} AS x"), "--format", "csv"])
            .output()
            .unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap()
        );
        text.lines().last().unwrap().to_owned()
    };
    assert_eq!(value("farm_fingerprint('foo')"), "6150913649986995171");
    assert_eq!(value("farm_fingerprint(1, 'foo', true)"), "-1541654101129638711");
    assert_eq!(value("bit_reverse(100, true)"), "1369094286720630784");
    assert_eq!(value("bit_reverse(100, false)"), "2738188573441261568");
    assert_eq!(value("bit_reverse(-100, true)"), "-7133701809754865665");
    assert_eq!(value("shard_id(10, 'foo')"), "1");
    assert_eq!(value("farm_fingerprint(2, 'apple', false) % 10"), "9");
    assert_eq!(value("shard_id(10, 3, 'true')"), "8");
    // As printed in docs of the placement: Utf8 'abc' of 12 and of 64.
    assert_eq!(value("ydb_partition(12, 'abc')"), "3");
    assert_eq!(value("ydb_partition(64, 'abc')"), "17");
    assert_eq!(value("ydb_partition(64, arrow_cast(42, 'UInt64'))"), "45");
    assert!(value("shard_id(0, 'a')").contains("1 to 100000"), "{}", value("shard_id(0, 'a')"));
    assert!(value("shard_id(4)").contains("write shard_id(N, value, ...)"), "{}", value("shard_id(4)"));
}

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
        ("{}/x.csv --primary-key id --strategies uuid9", 2, "unknown strategy 'uuid9'; there are: declared"),
        ("{}/x.csv --primary-key id --index i", 2, "'i' is no index; write NAME(COLUMNS)"),
        ("{}/x.csv --primary-key id --index i(x)", 2, "there is no column 'x'"),
        ("{}/x.csv --primary-key id --index i(at) --index i(at)", 2, "index 'i' is given twice"),
        ("{}/x.csv --primary-key id --time note", 2, "column 'note' is not a point in time"),
        ("{}/x.csv --primary-key id --rate 0", 2, "write a number above 0"),
        ("{}/x.csv --primary-key id --scale big", 2, "write a number above 0"),
        ("{}/x.csv --primary-key id --split-size 0", 2, "a split has room for a row"),
        (
            "{}/y.csv --primary-key id --strategies declared",
            2,
            "name a column of time with --time, or say with --rate",
        ),
        ("{}/none.csv --primary-key id", 1, "there is no such file or folder"),
    ] {
        let run = run(dir.path(), &format!("simulate splits {arguments}"));
        assert_eq!(run.code, code, "{arguments}\n{}", run.stderr);
        assert!(run.stderr.contains(message), "{arguments}\n{}", run.stderr);
    }
    let rate =
        done(dir.path(), "simulate splits {}/y.csv --primary-key id --rate 1000 --strategies declared,uuid4");
    assert!(rate.contains("uuid4: a random UUID"), "{rate}");
}

#[test]
fn children_beside_their_parent_are_read_at_once() {
    let dir = tempfile::tempdir().unwrap();
    // 500 users; the first has every second order.
    let users: String = (0..500).map(|user| format!("{user},name {user}\n")).collect();
    std::fs::write(dir.path().join("users.csv"), format!("user,name\n{users}")).unwrap();
    let order = |row: u64| {
        let user = if row.is_multiple_of(2) { 7 } else { row * 7919 % 500 };
        format!(
            "{user},2024-01-01T{:02}:{:02}:{:02}Z,{}\n",
            row / 3600,
            row / 60 % 60,
            row % 60,
            "x".repeat(50)
        )
    };
    let orders: String = (0..40_000).map(order).collect();
    std::fs::write(dir.path().join("orders.csv"), format!("user,at,note\n{orders}")).unwrap();
    let command =
        "simulate splits {}/users.csv --primary-key user --interleave {}/orders.csv --in users --format json";
    let found = json(dir.path(), &format!("{command} --child-key user,at"));
    let [interleaved, apart] = [strategy(&found, "interleaved"), strategy(&found, "apart")];
    let of = |report: &Value| report["reads"][0].clone();
    // User 499 has the last row: 39,999 * 7919 % 500.
    let last = 39_999_u64 * 7919 % 500;
    let children = (0..40_000_u64).filter(|row| row % 2 == 1 && row * 7919 % 500 == last).count();
    for report in [interleaved, apart] {
        let spaces = report["outcome"]["spaces"].as_array().unwrap().iter();
        assert_eq!(spaces.map(|space| space["rows"].as_u64().unwrap()).sum::<u64>(), 40_500);
        assert_eq!(of(report)["rows"], 1 + children as u64);
        assert_eq!(of(report)["newest_first"], false);
    }
    assert_eq!((&of(interleaved)["splits"], &of(interleaved)["ranges"]), (&1.into(), &1.into()));
    assert_eq!((&of(apart)["splits"], &of(apart)["ranges"]), (&2.into(), &2.into()));
    // Boundaries stand between parents, but within the one that has half of all rows.
    let inside = |report: &Value| -> usize {
        let spaces = report["outcome"]["spaces"].as_array().unwrap().clone();
        let splits = spaces.iter().flat_map(|space| space["splits"].as_array().unwrap());
        splits.filter(|split| split["inside_root"] == true).count()
    };
    let splits = interleaved["outcome"]["whole"]["splits"].as_u64().unwrap() as usize;
    assert!(
        splits > 10 && (2..splits - 2).contains(&inside(interleaved)),
        "{} of {splits}",
        inside(interleaved)
    );
    for (child_key, message) in [
        ("at", "it is the parent's key and at least one column more"),
        ("at,user", "column 'at' of type Timestamp stands where the parent has 'user' of type Int64"),
    ] {
        let refused = run(dir.path(), &format!("{command} --child-key {child_key}"));
        assert!(refused.code == 2 && refused.stderr.contains(message), "{}", refused.stderr);
    }
}
