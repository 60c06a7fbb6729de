//! Text of MySQL, Spanner, PostgreSQL and Cassandra, and descriptions of tables beside it.

use std::fmt::Write as _;

use crate::common::{json, run};
use crate::other_systems::{through_a_table, write};

#[test]
fn files_that_never_have_a_header_keep_their_first_row() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "my/t.sql",
        "CREATE TABLE `t` (`a` varchar(9) NOT NULL, `b` text, PRIMARY KEY (`a`));\n",
    );
    write(dir.path(), "my/t.txt", "b\ta\n1\t2\n");
    let rows = through_a_table(dir.path(), "{}/my", "a", "a", "").unwrap();
    assert_eq!(rows, "{\"a\":\"1\",\"b\":\"2\"}\n{\"a\":\"b\",\"b\":\"a\"}\n");
    write(dir.path(), "sp/schema", r#"{"k":"INT64","status":"STRING(MAX)"}"#);
    write(dir.path(), "sp/-00000-of-00001.csv", "\"7\",\"status\"\n\"8\",\"ok\"\n");
    let rows = through_a_table(dir.path(), "{}/sp", "k", "k", "").unwrap();
    assert_eq!(rows, "{\"k\":7,\"status\":\"status\"}\n{\"k\":8,\"status\":\"ok\"}\n");
}

#[test]
fn folders_of_mysqldump_and_text_of_spanner_name_their_columns_beside_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let statement = "-- MySQL dump 10.13\nDROP TABLE IF EXISTS `t`;\nCREATE TABLE `t` (\n  `id` bigint unsigned NOT NULL,\n  `s` varchar(20) DEFAULT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n";
    write(dir.path(), "in/t.sql", statement);
    write(dir.path(), "in/t.txt", "1\ta\\\nb\n2\t\\N\n3\t\n");
    let rows = through_a_table(dir.path(), "{}/in", "id", "id", "").unwrap();
    assert_eq!(rows, "{\"id\":1,\"s\":\"a\\nb\"}\n{\"id\":2}\n{\"id\":3,\"s\":\"\"}\n");
    // So does a file that is named itself, unless what is beside it is other SQL.
    let report = json(dir.path(), "evaluate {}/in/t.txt --format json");
    assert_eq!((&report["rows"], &report["columns"][0]["name"]), (&3.into(), &"id".into()));
    write(dir.path(), "other/t.sql", "SELECT 1;\n");
    write(dir.path(), "other/t.txt", "id\ts\n1\ta\n2\tb\n");
    assert_eq!(json(dir.path(), "evaluate {}/other/t.txt --format json")["rows"], 2);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "in/out-schema", r#"{"Id":"INT64","Name":"STRING(MAX)","Day":"DATE"}"#);
    write(dir.path(), "in/out-00000-of-00002.csv", "\"1\",\"\",\"2026-01-31\"\n\"2\",,\n");
    write(dir.path(), "in/out-00001-of-00002.csv", "\"3\",\"a \"\"b\"\"\",\"2026-02-01\"\n");
    let rows = through_a_table(dir.path(), "{}/in", "Id", "\"Id\"", "").unwrap();
    let expected = "{\"Id\":1,\"Name\":\"\",\"Day\":\"2026-01-31\"}\n{\"Id\":2}\n{\"Id\":3,\"Name\":\"a \\\"b\\\"\",\"Day\":\"2026-02-01\"}\n";
    assert_eq!(rows, expected);
    // Parts of another table whose name begins alike are not taken.
    write(dir.path(), "in/out2-00000-of-00001.csv", "\"9\",\"x\",\"2026-02-01\"\n");
    assert_eq!(json(dir.path(), "evaluate {}/in --format json")["rows"], 3);
    std::fs::remove_file(dir.path().join("in/out-00001-of-00002.csv")).unwrap();
    assert!(run(dir.path(), "evaluate {}/in").stderr.contains("such as part 00001"));
}

#[test]
fn csv_of_postgresql_and_cassandra_has_its_own_rules_for_quotes() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "pg.csv", "id,a,b\n1,,\"\"\n2,\"x\"\"y\",NA\n3,\"NA\",\n");
    let rows = through_a_table(dir.path(), "{}/pg.csv", "id", "id", " --quoted-empty").unwrap();
    assert_eq!(
        rows,
        "{\"id\":1,\"b\":\"\"}\n{\"id\":2,\"a\":\"x\\\"y\",\"b\":\"NA\"}\n{\"id\":3,\"a\":\"NA\"}\n"
    );
    let rows =
        through_a_table(dir.path(), "{}/pg.csv", "id", "id", " --quoted-empty --null-value NA").unwrap();
    assert_eq!(
        rows,
        "{\"id\":1,\"a\":\"\",\"b\":\"\"}\n{\"id\":2,\"a\":\"x\\\"y\"}\n{\"id\":3,\"a\":\"NA\",\"b\":\"\"}\n"
    );
    let text = "id,a\n1,\"say \\\"hi\\\", ok\"\n2,\"back\\\\slash\"\n";
    write(dir.path(), "c.csv", text);
    write(dir.path(), "output-000001.csv", text);
    let expected = "{\"id\":1,\"a\":\"say \\\"hi\\\", ok\"}\n{\"id\":2,\"a\":\"back\\\\slash\"}\n";
    for (name, options) in [("c.csv", " --escape \\"), ("output-000001.csv", "")] {
        let rows = through_a_table(dir.path(), &format!("{{}}/{name}"), "id", "id", options).unwrap();
        assert_eq!(rows, expected, "{name}");
    }
    write(dir.path(), "open.csv", "id,a\n1,\"x\\\"\n2,y\n");
    let error = through_a_table(dir.path(), "{}/open.csv", "id", "id", " --escape \\").unwrap_err();
    assert!(error.contains("quote"), "{error}");
}

#[test]
fn the_description_of_a_table_and_its_statistics_are_compared_with_the_export() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "id,user,at\n".to_owned();
    for id in 0..1000 {
        writeln!(text, "{id},u{},2026-01-31T10:{:02}:{:02}Z", id % 97, id / 60 % 60, id % 60).unwrap();
    }
    write(dir.path(), "events.csv", text);
    let description = r#"{"self":{"name":"events"},"columns":[{"name":"id","type":{"type_id":"UINT64"}},{"name":"user","type":{"type_id":"UTF8"}},
        {"name":"at","type":{"optional_type":{"item":{"type_id":"TIMESTAMP"}}}}],"primary_key":["id","user"],"partitioning_settings":{"partition_by":["user"]},
        "store_type":"STORE_TYPE_COLUMN","table_stats":{"partitions":"4"}}"#;
    write(dir.path(), "events.json", description);
    let stats = "Path,PartIdx,FollowerId,RowCount\n/db/events,0,0,100\n/db/events,1,0,300\n/db/events,2,0,100\n/db/events,3,0,100\n/db/other,0,0,9\n";
    write(dir.path(), "stats.csv", stats);
    let command = "evaluate {}/events.csv --ddl {}/events.json --partition-stats {}/stats.csv";
    let found = json(dir.path(), &format!("{command} --format json"));
    let measured = &found["measured"];
    assert_eq!(
        (measured["measured_in"].as_str(), measured["max_over_mean"].as_f64()),
        (Some("statistics"), Some(2.0))
    );
    assert_eq!(measured["partitions"][1], serde_json::json!({"partition": "1", "rows": 300}));
    let computed: Vec<u64> =
        serde_json::from_value(measured["computed"]["rows_per_partition"].clone()).unwrap();
    assert_eq!((computed.len(), computed.iter().sum::<u64>()), (4, 1000));
    let printed = run(dir.path(), &format!("{command} --verbose"));
    assert!(
        printed.stdout.contains(
            "4 partitions in the statistics: 100 to 300 rows, max/mean 2.00; HASH(user) of this export"
        ),
        "{}",
        printed.stdout
    );
    assert!(printed.stderr.contains("declares a column table of 3 columns, PRIMARY KEY (id, user), PARTITION BY HASH(user), 4 partitions"), "{}", printed.stderr);
    write(dir.path(), "stats.csv", "a,b\n1,2\n");
    let refused = run(dir.path(), command);
    assert!(refused.stderr.contains("has no columns PartIdx and RowCount"), "{}", refused.stderr);
    write(dir.path(), "events.json", "{\"columns\": []}");
    assert!(run(dir.path(), command).stderr.contains("events.json: it declares no columns"));
}
