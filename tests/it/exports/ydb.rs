//! Dumps of YDB: their tables, keys, partitions and types.

use std::path::Path;

use arrow::array::ArrayRef;
use evenkeel::placement::Placement;
use evenkeel::sink::{OutputFormat, Sink};
use evenkeel::table::{ColumnType, PlacementFunction};
use evenkeel::units::PartitionCount;

use crate::common::{done, json, run};
use crate::exports::{PARTITIONS, ROWS, columns, dump, events, lines, scheme, values, write};

const CONTENT: &str = "query {}/t --format csv -f {}/content.sql";

fn content(dir: &Path) -> String {
    write(dir, "content.sql", "SELECT * FROM t ORDER BY event_timestamp, user_id, campaign_id");
    done(dir, CONTENT)
}

#[test]
fn a_dump_of_ydb_gives_its_table_with_all_rows() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path();
    let mut sink = Sink::new(Vec::new(), OutputFormat::Csv, &events().schema()).unwrap();
    sink.write(&events()).unwrap();
    write(plain, "events.csv", sink.finish().unwrap());
    done(plain, "create {}/t --ddl data/ad_events.sql");
    done(plain, "ingest {}/t {}/events.csv");
    let expected = content(plain);
    assert!(expected.lines().count() > 2900);
    for ending in ["csv", "csv.zst", "parquet"] {
        let dir = tempfile::tempdir().unwrap();
        dump(&dir.path().join("dump/ads/events"), ending);
        let created = done(dir.path(), "create {}/t --like {}/dump --name t");
        for part in [
            "user_id Utf8 NOT NULL",
            "event_id Uint64,",
            "PRIMARY KEY (event_timestamp, user_id, campaign_id)",
            "PARTITION BY HASH(user_id)",
            "AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 16",
            "TTL = Interval(\"P365D\")",
        ] {
            assert!(created.contains(part), "{ending}: {part}\n{created}");
        }
        let ingested = done(dir.path(), "ingest {}/t {}/dump");
        assert!(ingested.starts_with("version 1: 3,000 rows"), "{ending}: {ingested}");
        assert_eq!(content(dir.path()), expected, "{ending}");
        // A data file alone is read with the schema beside it.
        let again = done(dir.path(), &format!("ingest {{}}/t {{}}/dump/ads/events/data_00.{ending} --again"));
        assert!(again.starts_with("version 2: 1,000 rows"), "{ending}: {again}");
        assert_eq!(content(dir.path()), expected, "{ending}");
    }
}

#[test]
fn the_keys_that_a_dump_declares_are_judged() {
    let dir = tempfile::tempdir().unwrap();
    dump(&dir.path().join("dump"), "csv");
    let found = run(dir.path(), "evaluate {}/dump");
    assert_eq!(found.code, 0, "{}", found.stderr);
    for part in [
        "declares a column table of 6 columns, PRIMARY KEY (event_timestamp, user_id, campaign_id)",
        "PARTITION BY HASH(user_id), 16 partitions, TTL event_timestamp=365d",
    ] {
        assert!(found.stderr.contains(part), "{}", found.stderr);
    }
    for part in [
        "the table has this partition key now",
        "its primary key now",
        "16 partitions\n",
        "evenkeel create dump --like",
    ] {
        assert!(found.stdout.contains(part), "{part}\n{}", found.stdout);
    }
    assert!(!found.stdout.contains("ydb import file"), "{}", found.stdout);
    let report = json(dir.path(), "evaluate {}/dump --format json");
    assert_eq!(report["rows"], ROWS);
    let has = |list: &str, field: &str, key: &[&str]| {
        report[list].as_array().unwrap().iter().any(|entry| entry[field] == serde_json::json!(key))
    };
    assert!(has("candidates", "partition_key", &["user_id"]), "{}", report["candidates"]);
    let primary_key = ["event_timestamp", "user_id", "campaign_id"];
    assert!(has("primary_keys", "columns", &primary_key), "{}", report["primary_keys"]);
    assert_eq!(report["columns"][1]["type"], "Timestamp");
}

#[test]
fn the_rows_of_each_partition_are_compared_with_the_computed_placement() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("export");
    let batch = events();
    let users: ArrayRef = batch.column(0).clone();
    let count = PartitionCount::new(PARTITIONS as u64).unwrap();
    let placement = Placement::new(PlacementFunction::Ydb, count, vec![ColumnType::Utf8]);
    let partitions = placement.assign(&[users]).unwrap();
    write(&folder, "scheme.pb", scheme());
    write(&folder, "metadata.json", "{\"version\":1,\"full_backups\":[{\"snapshot_vts\":[1,2]}]}");
    for file in 0..PARTITIONS {
        // The database numbers its partitions in an order of its own.
        let of_file = (file * 7 + 3) % PARTITIONS;
        let rows = (0..batch.num_rows()).filter(|row| partitions[*row].index() == of_file);
        write(&folder, &format!("data_{file:02}.csv"), lines(&batch, rows));
    }
    let report = json(dir.path(), "evaluate {}/export --format json");
    let measured = &report["measured"];
    assert_eq!(measured["computed"]["rows_in_place"], ROWS, "{measured}");
    assert_eq!(measured["max_over_mean"], measured["computed"]["max_over_mean"]);
    let rows: u64 =
        measured["partitions"].as_array().unwrap().iter().map(|file| file["rows"].as_u64().unwrap()).sum();
    assert_eq!(rows, ROWS);
    let text = done(dir.path(), "evaluate {}/export");
    assert!(text.contains("16 data files hold one partition each"), "{text}");
    assert!(text.contains("100.0 % of the rows are in the file of their computed partition"), "{text}");
    // A dump by size says nothing about partitions.
    std::fs::remove_file(folder.join("metadata.json")).unwrap();
    assert!(json(dir.path(), "evaluate {}/export --format json")["measured"].is_null());
}

#[test]
fn every_type_of_a_dump_is_read_exactly() {
    let types = [
        ("BOOL", "1", "true"),
        ("INT8", "-128", "-128"),
        ("UINT8", "255", "255"),
        ("INT16", "-32768", "-32768"),
        ("UINT16", "65535", "65535"),
        ("INT32", "-2147483648", "-2147483648"),
        ("UINT32", "4294967295", "4294967295"),
        ("INT64", "-9223372036854775808", "-9223372036854775808"),
        ("UINT64", "18446744073709551615", "18446744073709551615"),
        ("FLOAT", "-6531.12", "-6531.12"),
        ("DOUBLE", "1.797693135e+307", "1.797693135e307"),
        ("DATE", "2105-12-31T00:00:00.000000Z", "2105-12-31"),
        ("DATETIME", "2038-01-19T03:14:07.000000Z", "2038-01-19T03:14:07"),
        ("TIMESTAMP", "2019-03-11T16:30:44.314382Z", "2019-03-11T16:30:44.314382"),
        ("INTERVAL", "1000000", "PT1S"),
        ("DATE32", "-12345", "1936-03-15"),
        ("DATETIME64", "-1", "1969-12-31T23:59:59"),
        ("TIMESTAMP64", "-1", "1969-12-31T23:59:59.999999"),
        ("INTERVAL64", "-1000000", "-PT1S"),
        ("UTF8", "\"%D0%A2+%22a%22%2C%0A\"", "Т \"a\",\n"),
        ("STRING", "\"%FF%00+\"", "ff0020"),
        ("JSON", "\"{%22a%22:1}\"", "{\"a\":1}"),
        ("JSON_DOCUMENT", "\"[]\"", "[]"),
        ("YSON", "\"{a=1}\"", "7b613d317d"),
        ("UUID", "5b99a330-04ef-4f1a-9b64-ba6d5f44eafe", "5b99a33004ef4f1a9b64ba6d5f44eafe"),
        ("DYNUMBER", "-1E-130", "-1E-130"),
        ("TZ_DATE", "\"2020-01-01,Europe/Moscow\"", "never"),
    ];
    let declared: Vec<(String, &str)> = types
        .iter()
        .enumerate()
        .map(|(number, (column_type, ..))| (format!("c{number}"), *column_type))
        .collect();
    let declared: Vec<(&str, &str, bool)> =
        declared.iter().map(|(name, column_type)| (name.as_str(), *column_type, true)).collect();
    let decimal = "columns { name: \"price\" type { optional_type { item { decimal_type { precision: 35 scale: 8 } } } } }\n";
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "scheme.pb", columns(&declared) + decimal + "primary_key: \"c0\"\n");
    let line = |field: &dyn Fn(&(&str, &str, &str)) -> String, price: &str| {
        types.iter().map(field).chain([price.to_owned()]).collect::<Vec<_>>().join(",") + "\n"
    };
    // A zone is separated by a comma, which YDB writes as an escape.
    let full = line(&|(_, field, _)| field.replace("01,E", "01%2CE"), "17155471988549.8830036");
    let nulls = line(&|_| "null".to_owned(), "null");
    write(dir.path(), "data_00.csv", full + &nulls);
    let rows = values(dir.path()).unwrap();
    for (value, (column_type, _, expected)) in rows[0].iter().zip(types) {
        let expected = if column_type == "TZ_DATE" { "2020-01-01,Europe/Moscow" } else { expected };
        assert_eq!(value, expected, "{column_type}");
    }
    assert_eq!(rows[0][types.len()], "17155471988549.88300360");
    assert!(rows[1].iter().all(|value| value == "NULL"), "{:?}", rows[1]);
    assert_eq!(rows.len(), 2);
}

#[test]
fn a_dump_of_several_tables_is_listed_and_one_of_them_named() {
    let dir = tempfile::tempdir().unwrap();
    dump(&dir.path().join("dump/ads/events"), "csv");
    let users = dir.path().join("dump/ads/users");
    write(
        &users,
        "scheme.pb",
        columns(&[("id", "UINT64", true)]) + "primary_key: \"id\"\nuniform_partitions: 2\n",
    );
    write(&users, "data_00.csv", "1\n2\n3\n");
    let refused = |arguments: &str, parts: &[&str]| {
        let found = run(dir.path(), arguments);
        assert_ne!(found.code, 0, "{arguments}");
        parts.iter().for_each(|part| assert!(found.stderr.contains(part), "{arguments}: {}", found.stderr));
    };
    let list =
        ["dump is a dump of 2 tables", "--table: ads/events (column table, ", "ads/users (row table, 6 B)"];
    refused("evaluate {}/dump", &list);
    refused("create {}/t --like {}/dump", &list);
    refused("evaluate {}/dump --table ads/nope", &["has no table 'ads/nope'; there are: ads/events"]);
    refused("evaluate data/nycflights13-flights.parquet --table ads/events", &["the inputs are plain files"]);
    refused(
        "ingest {}/none {}/dump/ads/events {}/dump/ads/users",
        &["users/scheme.pb: is not of the table that", "events/scheme.pb declares"],
    );
    let text = done(dir.path(), "evaluate {}/dump --table ads/events");
    assert!(text.contains("CREATE TABLE events"), "{text}");
    let created = run(dir.path(), "create {}/t --like {}/dump --table ads/users");
    assert!(created.stdout.contains("PRIMARY KEY (id)"), "{}", created.stdout);
    assert!(created.stderr.contains("row table, whose partitions are ranges"), "{}", created.stderr);
    let ingested = done(dir.path(), "ingest {}/t {}/dump --table ads/users");
    assert!(ingested.starts_with("version 1: 3 rows"), "{ingested}");
}
