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
fn indexes_have_their_own_hotspots_bytes_and_back_joins() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let mut command: Vec<String> =
        "spanner simulate {}/exports --primary-key user_id,event_timestamp --rate 20000 \
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
            "spanner simulate {}/x.csv --primary-key id --time at --strategies declared --format json";
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
    // What has no value has no fingerprint, and what does not fit is told.
    for null in
        ["farm_fingerprint(NULL)", "farm_fingerprint('a', NULL)", "shard_id(4, NULL)", "bit_reverse(NULL)"]
    {
        assert!(["", "\"\"", "NULL"].contains(&value(null).as_str()), "{null}: {}", value(null));
    }
    assert_eq!(
        value("farm_fingerprint(arrow_cast('1.50', 'Decimal128(10, 2)'))"),
        value("farm_fingerprint('1.5')")
    );
    for (wrong, message) in [
        ("bit_reverse('abc')", "bit_reverse needs a whole number"),
        ("bit_reverse(arrow_cast(18446744073709551615, 'UInt64'))", "18446744073709551615"),
        ("bit_reverse(1.9)", "bit_reverse needs a whole number"),
        ("shard_id(2.7, 'foo')", "a whole number"),
        ("farm_fingerprint(1.5)", "cast them to text first"),
        ("farm_fingerprint(make_array(1, 2))", "cast them to text first"),
    ] {
        assert!(value(wrong).contains(message), "{wrong}: {}", value(wrong));
    }
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
    let command = "spanner simulate {}/users.csv --primary-key user --interleave {}/orders.csv --in users --format json";
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
    assert!(!found["notes"].to_string().contains("Spanner refuses"), "{}", found["notes"]);
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
    std::fs::write(dir.path().join("few.csv"), "user,name\n7,a\n7,b\n8,c\n").unwrap();
    let few = json(
        dir.path(),
        "spanner simulate {}/few.csv --primary-key user --interleave {}/orders.csv --child-key user,at --format json",
    );
    let named =
        (0..40_000_u64).filter(|row| row.is_multiple_of(2) || [7, 8].contains(&(row * 7919 % 500))).count();
    let notes = few["notes"].to_string();
    assert!(notes.contains("1 parents have a key that exists already"), "{notes}");
    assert!(notes.contains(&format!("{} children have no parent", 40_000 - named)), "{notes}");
    for (child_key, message) in [
        ("at", "it must consist of the parent's key and at least one more column"),
        ("at,user", "column 'at' of type Timestamp is in the place of the parent's 'user' of type Int64"),
    ] {
        let refused = run(dir.path(), &format!("{command} --child-key {child_key}"));
        assert!(refused.code == 2 && refused.stderr.contains(message), "{}", refused.stderr);
    }
}

/// Finds a finding by its code.
fn finding<'a>(simulation: &'a Value, code: &str) -> Option<&'a Value> {
    simulation["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code)
}

#[test]
fn a_schema_is_judged_by_what_its_rows_do() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let schema = |key: &str| {
        let text = format!(
            "CREATE TABLE Other (x INT64) PRIMARY KEY (x);\n\
             CREATE TABLE Events (event_timestamp TIMESTAMP NOT NULL, user_id STRING(MAX) NOT NULL, campaign_id INT64)\n  \
             PRIMARY KEY ({key});\n\
             CREATE NULL_FILTERED INDEX ByTime ON Events(event_timestamp) STORING (campaign_id);\n\
             CREATE INDEX ByUser ON Events(user_id, event_timestamp DESC);"
        );
        std::fs::write(dir.path().join("schema.sql"), text).unwrap();
        json(
            dir.path(),
            "spanner simulate {}/exports --ddl {}/schema.sql --table events --strategies declared --rate 20000 --format json",
        )
    };
    let by_time = schema("event_timestamp, user_id");
    assert_eq!(by_time["load"]["source"], "given");
    let found = finding(&by_time, "monotonic_key").unwrap();
    assert_eq!((&found["severity"], &found["subject"]), (&"problem".into(), &"event_timestamp".into()));
    assert!(number(&found["measured"]) > 0.99);
    assert_eq!(finding(&by_time, "monotonic_index").unwrap()["subject"], "ByTime");
    assert_eq!(by_time["recommended"], Value::Null);
    // A key that begins with a time-like type is not blamed for that alone, nor one that begins
    // with a user.
    let by_user = schema("user_id, event_timestamp");
    assert!(finding(&by_user, "monotonic_key").is_none(), "{}", by_user["findings"]);
    assert!(
        finding(&by_user, "history_ascends").is_some() && finding(&by_user, "two_phase_commits").is_some()
    );
    assert_eq!(by_user["recommended"], "declared");
    let descending = schema("user_id, event_timestamp DESC");
    assert!(finding(&descending, "history_ascends").is_none());
    assert_eq!(descending["primary_key"][1]["descending"], true);
    // Where so little comes that one split takes it, it does no harm.
    let quiet = json(
        dir.path(),
        "spanner simulate {}/exports --primary-key event_timestamp,user_id --scale 1 --strategies declared,uuid4 --format json",
    );
    assert_eq!(finding(&quiet, "monotonic_key").unwrap()["severity"], "note");
    // All the same its writes follow time, and those of the other do not.
    assert_eq!(quiet["recommended"], "uuid4");
}

#[test]
fn the_recommended_schema_is_printed_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    for target in ["spanner", "spanner-postgres"] {
        let text = done(
            dir.path(),
            &format!(
                "spanner simulate {{}}/exports --primary-key event_timestamp,user_id --rate 20000 --print-ddl {target} --html {{}}/s.html"
            ),
        );
        assert!(text.contains("recommended: swapped"), "{text}");
        let ddl = text
            .split_once("CREATE TABLE exports")
            .map(|(_, rest)| format!("CREATE TABLE exports{rest}"))
            .unwrap();
        std::fs::write(dir.path().join("schema.sql"), ddl).unwrap();
        let again = json(
            dir.path(),
            "spanner simulate {}/exports --ddl {}/schema.sql --strategies declared --format json",
        );
        assert_eq!(again["primary_key"][0]["column"], "user_id");
    }
    let html = std::fs::read_to_string(dir.path().join("s.html")).unwrap();
    assert_eq!(html.matches("<img class=\"heat\"").count(), 10);
    assert!(!html.contains("<script") && !html.contains("http"));

    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    let google = done(dir.path(), "spanner ddl {}/t --target spanner --strategy shard-16");
    assert!(google.contains("ShardId INT64 NOT NULL AS (MOD(MOD(FARM_FINGERPRINT(CONCAT("), "{google}");
    let bytes = done(dir.path(), "spanner ddl {}/t --target spanner --strategy uuid4-bytes");
    assert!(
        bytes.contains("EntryId BYTES(16) NOT NULL")
            && bytes.contains("-- the application generates EntryId")
    );
    let integers = done(dir.path(), "spanner ddl {}/t --target spanner-postgres --strategy uuid4-int64");
    assert!(integers.contains("PRIMARY KEY (entryhigh, entrylow, event_timestamp"), "{integers}");
    // Without rows the types decide, with rows what they do.
    let by_types = run(dir.path(), "spanner ddl {}/t --target spanner");
    assert!(by_types.stdout.contains("PRIMARY KEY (user_id, event_timestamp, campaign_id)"));
    assert!(by_types.stderr.contains("the table has no rows"), "{}", by_types.stderr);
    done(dir.path(), "ingest {}/t {}/exports --compact off");
    let by_rows = run(dir.path(), "spanner ddl {}/t --target spanner");
    assert!(by_rows.stdout.contains("PRIMARY KEY (user_id, event_timestamp, campaign_id)"));
    assert!(by_rows.stderr.contains("by the rows of the table, each standing for"), "{}", by_rows.stderr);
    assert!(done(dir.path(), "ddl {}/t").contains("PARTITION BY HASH"));
    for (arguments, message) in [
        ("ddl {}/t --strategy swapped", "unexpected argument '--strategy'"),
        ("spanner ddl {}/t --target mysql", "unknown target 'mysql'; known: spanner, spanner-postgres"),
        ("spanner ddl {}/t --target spanner --strategy uuid7", "no schema is written for it"),
    ] {
        let refused = run(dir.path(), arguments);
        assert!(refused.code == 2 && refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
}

#[test]
fn the_rows_of_a_table_decide_its_key_not_its_types() {
    let dir = tempfile::tempdir().unwrap();
    // No time leads the key, but a number that counts up.
    let row =
        |row: u64| format!("{row},2024-01-01T{:02}:{:02}:{:02}Z\n", row / 7200, row / 120 % 60, row / 2 % 60);
    let rows: String = (0..40_000).map(row).collect();
    std::fs::write(dir.path().join("orders.csv"), format!("id,placed\n{rows}")).unwrap();
    let ddl = "CREATE TABLE orders (id Int64 NOT NULL, placed Timestamp NOT NULL, PRIMARY KEY (id, placed)) \
               PARTITION BY HASH(id) WITH (STORE = COLUMN, PARTITION_COUNT = 4);";
    std::fs::write(dir.path().join("orders.sql"), ddl).unwrap();
    done(dir.path(), "create {}/orders --ddl {}/orders.sql");
    assert!(done(dir.path(), "spanner ddl {}/orders --target spanner").contains("PRIMARY KEY (id, placed)"));
    done(dir.path(), "ingest {}/orders {}/orders.csv");
    let chosen = run(dir.path(), "spanner ddl {}/orders --target spanner");
    assert!(chosen.stderr.contains("strategy shard-16"), "{}", chosen.stderr);
    assert!(chosen.stdout.contains("PRIMARY KEY (ShardId, id, placed)"), "{}", chosen.stdout);
}

#[test]
fn indexes_and_parents_are_declared_with_what_is_recommended() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let users: String = (0..50).map(|user| format!("u{user:09},n{user}\n")).collect();
    std::fs::write(dir.path().join("users.csv"), format!("user_id,name\n{users}")).unwrap();
    let schema = "CREATE TABLE Users (User_Id STRING(MAX) NOT NULL, Name STRING(MAX)) PRIMARY KEY (User_Id);
        CREATE TABLE Events (User_Id STRING(36) NOT NULL, Event_Timestamp TIMESTAMP NOT NULL, Campaign_Id INT64,
          TimeShard INT64 NOT NULL AS (MOD(ABS(FARM_FINGERPRINT(CAST(Event_Timestamp AS STRING))), 8)) STORED
        ) PRIMARY KEY (User_Id, Event_Timestamp DESC), INTERLEAVE IN PARENT Users ON DELETE CASCADE;
        CREATE UNIQUE NULL_FILTERED INDEX ByCampaign ON Events(User_Id, Campaign_Id) STORING (Event_Timestamp), INTERLEAVE IN Users;
        CREATE INDEX ByTime ON Events(TimeShard, Event_Timestamp);";
    std::fs::write(dir.path().join("schema.sql"), schema).unwrap();
    let alone = run(
        dir.path(),
        "spanner simulate {}/exports --ddl {}/schema.sql --table events --strategies declared --print-ddl spanner --format json",
    );
    assert_eq!(alone.code, 0, "{}", alone.stderr);
    assert!(
        alone.stderr.contains("Events is interleaved in Users; its keys are modelled alone"),
        "{}",
        alone.stderr
    );
    let simulation: Value = serde_json::from_str(&alone.stdout).unwrap();
    let ddl = simulation["ddl"].as_str().unwrap();
    for statement in [
        "  User_Id STRING(36) NOT NULL,\n",
        "  TimeShard INT64 NOT NULL AS (MOD(ABS(FARM_FINGERPRINT(CAST(Event_Timestamp AS STRING))), 8)) STORED,\n",
        ") PRIMARY KEY (User_Id, Event_Timestamp DESC),\n  INTERLEAVE IN PARENT Users ON DELETE CASCADE;",
        "CREATE UNIQUE NULL_FILTERED INDEX ByCampaign ON Events (User_Id, Campaign_Id),\n  INTERLEAVE IN Users;",
        "CREATE INDEX ByTime ON Events (TimeShard, Event_Timestamp);",
    ] {
        assert!(ddl.contains(statement), "{statement}\n{ddl}");
    }
    // Parent and children in one order, from the same statements.
    let both = "spanner simulate {}/users.csv --ddl {}/schema.sql --interleave {}/exports --print-ddl spanner-postgres --format json";
    let tree = run(dir.path(), both);
    assert_eq!(tree.code, 0, "{}", tree.stderr);
    let simulation: Value = serde_json::from_str(&tree.stdout).unwrap();
    assert_eq!(simulation["strategies"][0]["outcome"]["spaces"][0]["name"], "Users and children");
    let (written, recommended) = (simulation["ddl"].as_str().unwrap(), &simulation["recommended"]);
    assert_eq!(recommended, "interleaved");
    assert!(written.contains("INTERLEAVE IN PARENT \"Users\";"), "{written}");
    assert!(
        written.contains("CREATE TABLE \"Users\" (") && written.contains("CREATE TABLE \"Events\" ("),
        "{written}"
    );
    for (arguments, message) in [
        (
            "{}/users.csv --primary-key user_id --interleave {}/exports",
            "give --child-key, or --ddl with both tables",
        ),
        (
            "{}/users.csv --ddl {}/schema.sql --table Events --interleave {}/exports",
            "no table is interleaved in Events",
        ),
        ("{}/users.csv --ddl {}/schema.sql --interleave {}/exports --child-table x", "there is no table 'x'"),
    ] {
        let refused = run(dir.path(), &format!("spanner simulate {arguments}"));
        assert!(refused.code == 2 && refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
}

#[test]
fn rows_that_are_too_few_recommend_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // A counter, and random UUIDs: one row a minute.
    let mixed = |row: u64| u128::from(row.wrapping_mul(0x9E37_79B9_7F4A_7C15)) << 40;
    let uuid = |row: u64| uuid::Builder::from_random_bytes(mixed(row + 1).to_be_bytes()).into_uuid();
    let rows: String = (0..3000)
        .map(|row| {
            format!(
                "{row},{},2024-01-{:02}T{:02}:{:02}:00Z\n",
                uuid(row),
                row / 1440 + 1,
                row / 60 % 24,
                row % 60
            )
        })
        .collect();
    std::fs::write(dir.path().join("rows.csv"), format!("id,uuid,at\n{rows}")).unwrap();
    let simulate = |arguments: &str| {
        json(dir.path(), &format!("spanner simulate {{}}/rows.csv {arguments} --format json"))
    };
    // One row a minute is what comes, and no split is hot of it, whatever each row stands for in
    // size.
    let uuids = simulate("--primary-key uuid");
    assert_eq!(uuids["recommended"], "declared");
    assert!(finding(&uuids, "monotonic_key").is_none(), "{}", uuids["findings"]);
    assert_eq!(
        (&uuids["load"]["source"], number(&uuids["parameters"]["load_scale"])),
        (&"measured".into(), 1.0)
    );
    assert!((number(&uuids["load"]["rows_per_second"]) - 3000.0 / (2999.0 * 60.0)).abs() < 1e-9);
    assert!(!uuids["findings"].as_array().unwrap().iter().any(|finding| finding["severity"] == "problem"));
    // What is measured is the rate that was given.
    for (rate, score) in [(500, 20.0), (2500, 100.0), (20_000, 800.0)] {
        let found = simulate(&format!("--primary-key id --rate {rate} --strategies declared"));
        let highest = number(&strategy(&found, "declared")["outcome"]["whole"]["highest_score"]);
        assert!((0.9..1.3).contains(&(highest / score)), "{rate}: {highest}");
    }
    let counter = simulate("--primary-key id --rate 20000 --strategies declared,bit-reversed,uuid4");
    assert_eq!(counter["recommended"], "bit-reversed");
    for arguments in ["--primary-key id --rate 20000 --scale 1", "--primary-key id --scale 1000000"] {
        let unsure = simulate(arguments);
        assert_eq!(unsure["recommended"], Value::Null, "{arguments}");
        assert!(finding(&unsure, "too_few_rows").is_some(), "{arguments}");
        assert!(finding(&unsure, "monotonic_key").is_none_or(|finding| finding["severity"] == "note"));
    }
    // One column has no second to be swapped with.
    let told = run(dir.path(), "spanner simulate {}/rows.csv --primary-key id");
    assert!(told.code == 0 && told.stderr.contains("left out: swapped"), "{}", told.stderr);
}

/// 4000 clicks, one in 100 seconds: as they came, or shuffled.
fn clicks(dir: &Path, name: &str, is_shuffled: bool) {
    let mut rows: Vec<u64> = (0..4000).collect();
    if is_shuffled {
        rows.sort_by_key(|row| row.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
    let line = |row: u64| {
        let at = chrono::DateTime::from_timestamp(1_704_067_200 + row.cast_signed() * 100, 0).unwrap();
        let ip = row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
        // A second column of time, which most rows lack.
        let installed =
            if row.is_multiple_of(50) { at.format("%Y-%m-%dT%H:%M:%SZ").to_string() } else { String::new() };
        format!("{ip},{},{installed}\n", at.format("%Y-%m-%dT%H:%M:%SZ"))
    };
    let text: String = rows.into_iter().map(line).collect();
    std::fs::write(dir.join(name), format!("ip,click_time,attributed_time\n{text}")).unwrap();
}

#[test]
fn the_rate_is_measured_and_a_slow_one_is_no_problem() {
    let dir = tempfile::tempdir().unwrap();
    clicks(dir.path(), "clicks.csv", false);
    let command = "spanner simulate {}/clicks.csv --primary-key click_time,ip";
    let text = done(dir.path(), command);
    let first: Vec<&str> = text.lines().take(6).collect();
    let expected = "rate: 0.01 rows/s, ";
    assert!(
        first
            .iter()
            .any(|line| line.starts_with(expected) && line.contains("as measured: 4,000 rows over the")),
        "{text}"
    );
    assert!(
        first.iter().any(|line| line.starts_with("size: each row stands for") && line.contains("assumed")),
        "{text}"
    );
    assert!(!text.contains("problem ["), "{text}");
    assert!(text.contains("declared does no harm at this rate"), "{text}");
    // Rates that the user says are the user's.
    let load =
        |arguments: &str| json(dir.path(), &format!("{command} {arguments} --format json"))["load"].clone();
    for (arguments, source, rate) in
        [("", "measured", 0.01), ("--scale 500", "scaled", 5.0), ("--rate 7000", "given", 7000.0)]
    {
        let load = load(arguments);
        assert_eq!(load["source"], source);
        assert!((number(&load["rows_per_second"]) / rate - 1.0).abs() < 0.01, "{arguments}: {load}");
        assert!(number(&load["bytes_per_second"]) > 10.0 * rate, "{arguments}: {load}");
    }
}

#[test]
fn an_export_in_any_order_is_judged_by_the_order_of_its_times() {
    let dir = tempfile::tempdir().unwrap();
    clicks(dir.path(), "sorted.csv", false);
    clicks(dir.path(), "shuffled.csv", true);
    for arguments in ["", "--rate 20000", "--time click_time", "--scale 2000000"] {
        let simulate = |name: &str| {
            json(
                dir.path(),
                &format!(
                    "spanner simulate {{}}/{name} --primary-key click_time,ip {arguments} --format json"
                ),
            )
        };
        let (sorted, shuffled) = (simulate("sorted.csv"), simulate("shuffled.csv"));
        assert_eq!(
            (&sorted["load"]["is_sorted_by_time"], &shuffled["load"]["is_sorted_by_time"]),
            (&false.into(), &true.into())
        );
        assert_ne!(shuffled["recommended"], "declared", "{arguments}");
        assert_eq!(shuffled["recommended"], sorted["recommended"], "{arguments}");
        for name in ["declared", "swapped", "shard-16"] {
            let outcome = |simulation: &Value| strategy(simulation, name)["outcome"].clone();
            assert_eq!(outcome(&shuffled)["whole"], outcome(&sorted)["whole"], "{arguments} {name}");
        }
        assert_eq!(finding(&shuffled, "monotonic_key").unwrap()["subject"], "click_time", "{arguments}");
    }
    let told = done(dir.path(), "spanner simulate {}/shuffled.csv --primary-key click_time,ip");
    assert!(told.contains("note: the export is not in the order of click_time"), "{told}");
}

#[test]
fn indexes_read_what_they_hold_and_leave_the_table_its_share() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let simulate = |indexes: &[&str]| {
        let exports = dir.path().join("exports");
        let mut command = crate::common::evenkeel();
        command.args(["spanner", "simulate"]).arg(exports).args(["--primary-key", "user_id,event_timestamp"]);
        indexes.iter().for_each(|index| {
            command.args(["--index", index]);
        });
        let output = command
            .args(["--strategies", "declared", "--rate", "20000", "--format", "json"])
            .output()
            .unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let share =
        |simulation: &Value| number(&simulation["strategies"][0]["outcome"]["spaces"][0]["hottest_share"]);
    let (alone, beside) = (simulate(&[]), simulate(&["inside(user_id,campaign_id) interleaved"]));
    assert!(share(&beside) >= share(&alone) * 0.9, "{} {}", share(&beside), share(&alone));
    let space = &beside["strategies"][0]["outcome"]["spaces"][0];
    assert_eq!((&space["rows_in_time"], &space["rows"]), (&100_000.into(), &200_000.into()));

    // The last row has no value.
    let rows: String = (0..4000)
        .map(|row| {
            let coupon = if row % 4 == 0 { format!("c{}", row % 40) } else { String::new() };
            format!("{row},2024-01-01T{:02}:{:02}:00Z,{coupon}\n", row / 60 % 24, row % 60)
        })
        .collect();
    std::fs::write(dir.path().join("coupons.csv"), format!("id,at,coupon\n{rows}")).unwrap();
    let output = crate::common::evenkeel()
        .args(["spanner", "simulate"])
        .arg(dir.path().join("coupons.csv"))
        .args(["--primary-key", "id,at", "--rate", "5000", "--strategies", "declared", "--format", "json"])
        .args([
            "--index",
            "c(coupon) null_filtered",
            "--print-ddl",
            "spanner",
            "--index",
            "d(coupon) shard-4",
        ])
        .output()
        .unwrap();
    let simulation: Value = serde_json::from_slice(&output.stdout).unwrap();
    let index = &simulation["strategies"][0]["indexes"][0];
    assert_eq!((&index["entries"], &index["found"]), (&1000.into(), &100.into()));
    let ddl = simulation["ddl"].as_str().unwrap();
    assert!(ddl.contains("rows with a NULL in coupon have no shard"), "{ddl}");
    assert!(ddl.contains("d_ShardId INT64 AS (MOD("), "{ddl}");
}

#[test]
fn schemas_that_are_not_understood_say_where() {
    let dir = tempfile::tempdir().unwrap();
    events(dir.path());
    let table = "CREATE TABLE T (user_id STRING(MAX), event_timestamp TIMESTAMP) PRIMARY KEY (user_id, event_timestamp)";
    for (statements, code, message) in [
        (format!("{table}\nCREATE INDEX i ON T(user_id);"), 2, "line 2, column 1: expected a semicolon before the next statement"),
        (
            format!("{table};\nCREATE INDEX i ON U(user_id);"),
            2,
            "schema.sql: line 2, column 19: CREATE INDEX i: index i is of table U, which is not declared here; add its statement; declared are T",
        ),
        (
            "CREATE TABLE T (user_id STRNG(MAX)) PRIMARY KEY (user_id);".to_owned(),
            2,
            "schema.sql: line 1, column 25: CREATE TABLE T: column user_id: the type STRNG is unknown",
        ),
        (
            format!("{table},\n  INTERLEAVE IN PARENT Users ON DELETE CASCADE;"),
            2,
            "schema.sql: line 2, column 24: CREATE TABLE T: it is interleaved in Users, which is not declared here; add the statement of Users",
        ),
        (
            "CREATE TABLE T (user_id STRING(MAX)) PRIMARY KEY (users_id);".to_owned(),
            2,
            "the primary key names users_id, which is not a column of T; declare it; T has user_id",
        ),
        (format!("{table};\n{table};"), 2, "schema.sql: line 2, column 14: CREATE TABLE T: table T is declared twice"),
        (format!("{table};\nCREATE INDEX i ON T(user_id) STORNG (event_id);"), 0, "index i: left out: STORNG (event_id)"),
        (
            "CREATE TABLE T (s INT64 AS (MOD(user_id, 4)) STORED, user_id STRING(MAX), event_timestamp TIMESTAMP) PRIMARY KEY (s, event_timestamp);".to_owned(),
            2,
            "generates 's' by an expression that is not modelled",
        ),
        ("CREATE TABLE T (email STRING(MAX)) PRIMARY KEY (email);".to_owned(), 2, "the column is that of table T in"),
        (
            "CREATE TABLE T (s INT64 AS (MOD(FARM_FINGERPRINT(user_id), 4)) STORED, user_id STRING(MAX)) PRIMARY KEY (user_id);
             CREATE INDEX i ON T(s);"
                .to_owned(),
            0,
            "index i has only a shard: it is left out",
        ),
    ] {
        std::fs::write(dir.path().join("schema.sql"), &statements).unwrap();
        let told = run(dir.path(), "spanner simulate {}/exports --ddl {}/schema.sql --strategies declared --rate 100");
        assert_eq!(told.code, code, "{statements}: {}", told.stderr);
        assert!(told.stderr.contains(message), "{statements}: {}", told.stderr);
    }
    // A shard of an index is made of what it says, and printed as it stands.
    let sharded = "CREATE TABLE T (user_id STRING(MAX), event_timestamp TIMESTAMP NOT NULL,
          s INT64 AS (MOD(FARM_FINGERPRINT(event_type), 16)) STORED, event_type STRING(MAX)) PRIMARY KEY (user_id, event_timestamp);
        CREATE INDEX ByTime ON T(s, event_timestamp);";
    std::fs::write(dir.path().join("schema.sql"), sharded).unwrap();
    let simulation = json(
        dir.path(),
        "spanner simulate {}/exports --ddl {}/schema.sql --strategies declared --print-ddl spanner --format json",
    );
    assert!(simulation["ddl"].as_str().unwrap().contains("CREATE INDEX ByTime ON T (s, event_timestamp);"));
    // Few types of events make few shards.
    let heat = &simulation["strategies"][0]["outcome"]["heat"];
    let of_index = heat["spaces"].as_array().unwrap().iter().zip(heat["starts_at"].as_array().unwrap());
    let shards: std::collections::BTreeSet<&str> =
        of_index.filter(|(space, _)| **space == 1).map(|(_, start)| start.as_str().unwrap()).collect();
    assert!((2..=5).contains(&shards.len()), "{shards:?}");
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
fn migrated_keys_never_meet_those_to_come() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, values: &[String]| {
        let rows: String = values.iter().map(|value| format!("{value},x\n")).collect();
        std::fs::write(dir.path().join(name), format!("id,note\n{rows}")).unwrap();
    };
    let reverse = |value: u64| (value << 1).reverse_bits();
    write("counted.csv", &(1..=3000).map(|id| (id * 2).to_string()).collect::<Vec<_>>());
    write("reversed.csv", &(1..=1000).map(|id| reverse(id).to_string()).collect::<Vec<_>>());
    let uuids: Vec<String> = (0..500_u128)
        .map(|n| format!("{:032X}", n * 0x1_0000_0000_0001_4000_8000 + 0x4000_8000_0000_0000_0000))
        .collect();
    write("uuids.csv", &uuids);
    let migrate =
        |name: &str| json(dir.path(), &format!("spanner migrate {{}}/{name} --key id --format json"));

    let counted = migrate("counted.csv");
    assert_eq!(
        (&counted["kind"], &counted["skip_range"]),
        (&"sequential".into(), &serde_json::json!([1, 8192]))
    );
    assert_eq!((&counted["tried"], &counted["collisions"]), (&1_000_000.into(), &0.into()));
    assert!(counted["ddl"].as_str().unwrap().contains("skip_range_max = 8192"));
    let reversed = migrate("reversed.csv");
    assert_eq!(
        (&reversed["kind"], &reversed["counters"]),
        (&"bit_reversed".into(), &serde_json::json!([1, 1000]))
    );
    assert_eq!((&reversed["start_counter"], &reversed["collisions"]), (&1101.into(), &0.into()));

    let text = migrate("uuids.csv");
    assert_eq!((&text["kind"], &text["to_normalize"]), (&"uuid".into(), &500.into()));
    // Written over, as the statements want them; a second time nothing is left to do.
    done(dir.path(), "spanner migrate {}/uuids.csv --key id --output {}/lower.csv");
    let lower: String =
        uuids.iter().map(|uuid| format!("{},x\n", uuid::Uuid::parse_str(uuid).unwrap())).collect();
    assert_eq!(std::fs::read_to_string(dir.path().join("lower.csv")).unwrap(), format!("id,note\n{lower}"));
    done(dir.path(), "spanner migrate {}/lower.csv --key id --output {}/lower.parquet");
    assert_eq!(migrate("lower.parquet")["to_normalize"], 0);
    assert!(text["ddl"].as_str().unwrap().contains("STRING(36) NOT NULL DEFAULT (GENERATE_UUID())"));

    let twice = [&uuids[..], &[uuids[7].to_lowercase()]].concat();
    write("twice.csv", &twice);
    write("none.csv", &["abc".to_owned()]);
    write("negative.csv", &["-5".to_owned(), "7".to_owned()]);
    for (arguments, code, message) in [
        ("twice.csv --key id", 1, "line 502, column 'id': 00000000-0007-4000-8000-0008c0038000 occurs twice"),
        ("none.csv --key id", 1, "line 2, column 'id': 'abc' is neither a UUID nor a number"),
        ("counted.csv --key nope", 2, "there is no column 'nope'"),
        ("counted.csv --key id --kind uuid", 1, "column 'id' holds numbers"),
        ("negative.csv --key id --kind bit-reversed", 1, "has negative values"),
        ("counted.csv --key id --headroom x", 2, "write a share such as 0.1"),
        ("counted.csv --key id --output {}/x.csv", 2, "--output rewrites UUIDs; 'id' has numbers"),
        ("uuids.csv --key id --output {}/x.xls", 2, "unknown file extension"),
        ("uuids.csv --key id --output {}/uuids.csv", 2, "uuids.csv is an input; write to another file"),
    ] {
        let refused = run(dir.path(), &format!("spanner migrate {{}}/{arguments}"));
        assert_eq!(refused.code, code, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
    assert_eq!(migrate("negative.csv")["skip_range"], serde_json::json!([1, 8]));
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
fn numbers_without_order_are_not_migrated_by_a_sequence() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, values: &[u64]| {
        let rows: String = values.iter().map(|value| format!("{value}\n")).collect();
        std::fs::write(dir.path().join(name), format!("id\n{rows}")).unwrap();
    };
    // Random numbers of 63 bits.
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 1
    };
    write("random.csv", &(0..50).map(|_| random()).collect::<Vec<_>>());
    write("edges.csv", &[1, u64::MAX >> 1]);
    for name in ["random.csv", "edges.csv"] {
        for kind in ["", "--kind bit-reversed"] {
            let refused = run(dir.path(), &format!("spanner migrate {{}}/{name} --key id {kind}"));
            assert!(
                refused.code == 1 && refused.stderr.contains("Generate new keys as UUIDs")
                    || refused.stderr.contains("generate new keys as UUIDs"),
                "{name} {kind}: {}{}",
                refused.stdout,
                refused.stderr
            );
        }
    }
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
fn rows_without_a_time_are_there_before_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let row = |row: u64| match row {
        0..3000 => format!("{row},\n"),
        _ => format!("{row},2024-01-01T{:02}:{:02}:00Z\n", row / 3600, row / 60 % 60),
    };
    std::fs::write(dir.path().join("x.csv"), format!("id,at\n{}", (0..10_000).map(row).collect::<String>()))
        .unwrap();
    let found =
        json(dir.path(), "spanner simulate {}/x.csv --primary-key id --strategies declared --format json");
    let space = &found["strategies"][0]["outcome"]["spaces"][0];
    assert_eq!((&space["rows"], &space["rows_in_time"]), (&10_000.into(), &7000.into()));
    assert!(number(&space["hottest_share"]) > 0.999);
    assert_eq!(finding(&found, "monotonic_key").unwrap()["subject"], "id");
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
