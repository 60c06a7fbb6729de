//! Indexes beside the rows of their table, and children beside those of their parents.

use std::path::Path;

use serde_json::Value;

use crate::common::{done, json, note, run};
use crate::simulate::{events, number, strategy};

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
    for code in ["parents_repeated", "children_without_parent", "keys_repeated"] {
        assert_eq!(note(&found, code), None, "{}", found["notes"]);
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
    std::fs::write(dir.path().join("few.csv"), "user,name\n7,a\n7,b\n8,c\n").unwrap();
    let few = json(
        dir.path(),
        "spanner simulate {}/few.csv --primary-key user --interleave {}/orders.csv --child-key user,at --format json",
    );
    let named =
        (0..40_000_u64).filter(|row| row.is_multiple_of(2) || [7, 8].contains(&(row * 7919 % 500))).count();
    let starts = |code: &str, count: usize| {
        note(&few, code).is_some_and(|text| text.starts_with(&format!("{count} ")))
    };
    assert!(starts("parents_repeated", 1), "{}", few["notes"]);
    assert!(starts("children_without_parent", 40_000 - named), "{}", few["notes"]);
    for (child_key, message) in [
        ("at", "it must consist of the parent's key and at least one more column"),
        ("at,user", "column 'at' of type Timestamp is in the place of the parent's 'user' of type Int64"),
    ] {
        let refused = run(dir.path(), &format!("{command} --child-key {child_key}"));
        assert!(refused.code == 2 && refused.stderr.contains(message), "{}", refused.stderr);
    }
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
