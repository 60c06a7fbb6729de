//! Files as other systems write them: read as what they are, or refused by name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use evenkeel::generate::AdEvents;
use evenkeel::placement::Placement;
use evenkeel::sink::{OutputFormat, Sink};
use evenkeel::source::{Export, InputOptions, OnUnreadable, SourceError, find_inputs};
use evenkeel::table::{ColumnType, PlacementFunction};
use evenkeel::units::PartitionCount;
use sha2::{Digest, Sha256};

use crate::common::{done, json, run};

const ROWS: u64 = 3000;
const PARTITIONS: usize = 16;

fn events() -> RecordBatch {
    AdEvents { rows: ROWS, ..AdEvents::default() }.batches(ROWS as usize).unwrap().next().unwrap().unwrap()
}

/// Escapes text as YDB writes it: letters, digits and some punctuation stay, a space becomes a
/// plus.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b"!$*-./;@_~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Writes rows as lines of a dump.
fn lines(batch: &RecordBatch, rows: impl Iterator<Item = usize>) -> String {
    let options = FormatOptions::default().with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"));
    let formatters: Vec<_> = batch
        .columns()
        .iter()
        .map(|array| ArrayFormatter::try_new(array.as_ref(), &options).unwrap())
        .collect();
    let mut text = String::new();
    for row in rows {
        for (position, (array, formatter)) in batch.columns().iter().zip(&formatters).enumerate() {
            let value = formatter.value(row).to_string();
            let field = match array.data_type() {
                _ if array.is_null(row) => "null".to_owned(),
                data_type if data_type.is_string() => format!("\"{}\"", escaped(&value)),
                _ => value,
            };
            text.push_str(if position == 0 { "" } else { "," });
            text.push_str(&field);
        }
        text.push('\n');
    }
    text
}

/// Declares columns as `scheme.pb` does.
fn columns(columns: &[(&str, &str, bool)]) -> String {
    let mut text = String::new();
    for (name, column_type, is_nullable) in columns {
        let item = format!("type_id: {column_type}");
        let item = if *is_nullable { format!("optional_type {{ item {{ {item} }} }}") } else { item };
        let _ = writeln!(text, "columns {{\n  name: \"{name}\"\n  type {{\n    {item}\n  }}\n}}");
    }
    text
}

const AD_EVENTS: [(&str, &str, bool); 6] = [
    ("user_id", "UTF8", false),
    ("event_timestamp", "TIMESTAMP", false),
    ("event_id", "UINT64", true),
    ("campaign_id", "UINT64", false),
    ("ad_id", "UINT64", true),
    ("event_type", "UTF8", true),
];

fn scheme() -> String {
    format!(
        "{}primary_key: \"event_timestamp\"\nprimary_key: \"user_id\"\nprimary_key: \"campaign_id\"\n\
         partitioning_settings {{\n  partition_by: \"user_id\"\n  min_partitions_count: {PARTITIONS}\n}}\n\
         ttl_settings {{ date_type_column {{ column_name: \"event_timestamp\" expire_after_seconds: 31536000 }} }}\n\
         store_type: STORE_TYPE_COLUMN\n",
        columns(&AD_EVENTS)
    )
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Writes a dump of the ad events in three data files, the second of which is empty.
fn dump(folder: &Path, ending: &str) {
    write(folder, "scheme.pb", scheme());
    write(folder, "permissions.pb", "actions {\n  change_owner: \"root\"\n}\n");
    let batch = events();
    for (number, rows) in [0..1000, 0..0, 1000..batch.num_rows()].into_iter().enumerate() {
        let name = format!("data_{number:02}.{ending}");
        let bytes = match ending {
            "parquet" => {
                let mut sink = Sink::new(Vec::new(), OutputFormat::Parquet, &batch.schema()).unwrap();
                sink.write(&batch.slice(rows.start, rows.len())).unwrap();
                sink.finish().unwrap()
            }
            "csv" => lines(&batch, rows).into_bytes(),
            // YDB ends a frame at each flush.
            _ => rows
                .collect::<Vec<_>>()
                .chunks(300)
                .flat_map(|chunk| {
                    zstd::encode_all(lines(&batch, chunk.iter().copied()).as_bytes(), 1).unwrap()
                })
                .collect(),
        };
        write(folder, &name, bytes);
    }
}

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
    for part in
        ["that the table has now", "its primary key now", "16 partitions\n", "evenkeel create dump --like"]
    {
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
fn files_that_do_not_have_their_checksum_are_refused() {
    let of =
        |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for ending in ["csv", "csv.zst", "parquet"] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("export");
        dump(&folder, ending);
        write(&folder, "metadata.json", "{\"version\":1}");
        write(&folder, "scheme.pb.sha256", format!("{} scheme.pb", of(scheme().as_bytes())));
        for number in 0..3 {
            // Compression comes after the checksum.
            let stored = std::fs::read(folder.join(format!("data_{number:02}.{ending}"))).unwrap();
            let plain = match ending.strip_suffix(".zst") {
                Some(_) if !stored.is_empty() => zstd::decode_all(stored.as_slice()).unwrap(),
                _ => stored,
            };
            let name = format!("data_{number:02}.{}", ending.trim_end_matches(".zst"));
            write(&folder, &format!("{name}.sha256"), format!("{} {name}", of(&plain)));
        }
        let alone = format!("evaluate {{}}/export/data_00.{ending} --format json");
        assert_eq!(json(dir.path(), "evaluate {}/export --format json")["rows"], ROWS);
        assert_eq!(json(dir.path(), &alone)["rows"], 1000);
        // A file of another partition is readable, but not the one that was exported.
        let data = |number| folder.join(format!("data_{number:02}.{ending}"));
        std::fs::copy(data(2), data(0)).unwrap();
        for command in ["evaluate {}/export", &alone] {
            let refused = run(dir.path(), command);
            let said = "its checksum (SHA-256) is not the one in";
            assert_eq!(refused.code, 1, "{command}: {}", refused.stderr);
            assert!(
                refused.stderr.contains(&format!("data_00.{ending}")) && refused.stderr.contains(said),
                "{command}: {}",
                refused.stderr
            );
        }
        assert_eq!(run(dir.path(), &format!("evaluate {{}}/export/data_02.{ending}")).code, 0);
        write(&folder, "scheme.pb", scheme() + "\n");
        let refused = run(dir.path(), "evaluate {}/export");
        assert!(refused.stderr.contains("checksum"), "{}", refused.stderr);
    }
}

/// Reads all values of an export as text.
fn values(folder: &Path) -> Result<Vec<Vec<String>>, SourceError> {
    let inputs = find_inputs(&[folder.display().to_string()], None)?;
    let export = Export::open(&inputs.paths, inputs.options(InputOptions::default()), &BTreeMap::new())?;
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    export.read::<SourceError>(OnUnreadable::Fail, |_, batch| {
        let formatters: Vec<_> = batch
            .columns()
            .iter()
            .map(|array| ArrayFormatter::try_new(array.as_ref(), &options).unwrap())
            .collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            formatters.iter().map(|formatter| formatter.value(row).to_string()).collect::<Vec<_>>()
        }));
        Ok(true)
    })?;
    Ok(rows)
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
fn rows_that_are_not_of_the_declared_table_are_refused_with_their_place() {
    let dir = tempfile::tempdir().unwrap();
    dump(dir.path(), "csv");
    for (line, reason) in [
        ("\"u1\",2026-01-01T00:00:00.000000Z,1,2\n", "line 1: has 4 fields, the table has 6 columns"),
        (
            "\"u1\",yesterday,1,2,3,\"click\"\n",
            "column 'event_timestamp': 'yesterday' is not a point in time",
        ),
        (
            "\"u1,2026-01-01T00:00:00.000000Z,1,2,3,\"click\"\n",
            "column 'user_id': '\"u1' begins with a quote",
        ),
    ] {
        write(dir.path(), "data_01.csv", line);
        let error = values(dir.path()).unwrap_err().to_string();
        assert!(error.contains("data_01.csv, line 1") && error.contains(reason), "{error}");
    }
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

#[test]
fn encrypted_unfinished_and_incomplete_dumps_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |change: &dyn Fn(&Path), part: &str| {
        let folder = dir.path().join("dump");
        let _ = std::fs::remove_dir_all(&folder);
        dump(&folder, "csv");
        change(&folder);
        let found = run(dir.path(), "evaluate {}/dump");
        assert_ne!(found.code, 0, "{part}");
        assert_eq!(
            found.stderr.lines().filter(|line| line.starts_with("error: ")).count(),
            1,
            "{}",
            found.stderr
        );
        assert!(found.stderr.contains(part), "{part}: {}", found.stderr);
    };
    refused(&|folder| write(folder, "incomplete", ""), "not finished");
    refused(&|folder| write(folder, "incomplete.csv", "1,2\n"), "not finished");
    refused(&|folder| std::fs::remove_file(folder.join("data_00.csv")).unwrap(), "data file 00 is missing");
    refused(
        &|folder| std::fs::rename(folder.join("scheme.pb"), folder.join("scheme.pb.enc")).unwrap(),
        "encrypted",
    );
    refused(
        &|folder| write(folder, "scheme.pb", "columns {\n"),
        "scheme.pb: is not the schema of a table: line 2",
    );
    refused(&|folder| write(folder, "scheme.pb", [0xff, 0xfe, 0x00]), "scheme.pb");
    refused(&|folder| write(folder, "scheme.pb", ""), "it declares no columns");
}

#[test]
fn files_that_are_not_read_are_refused_by_name_with_what_to_do() {
    let native =
        [b"\x02\x01\x02id\x06UInt64".as_slice(), &[7, 0, 0, 0, 0, 0, 0, 0], b"\x01n\x06String\x01a"].concat();
    let rows =
        [b"\x02\x02id\x01n\x06UInt64\x06String".as_slice(), &[7, 0, 0, 0, 0, 0, 0, 0], b"\x01a"].concat();
    let utf16: Vec<u8> = "\u{feff}id,n\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let without_mark: Vec<u8> = "id,n\n1,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big_endian: Vec<u8> = "id,n\n1,2\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let bson = b"\x15\0\0\0\x10_id\0\x01\0\0\0\x10a\0\x02\0\0\0\0".repeat(3);
    let cases: [(&str, &[u8], &str, &str); 27] = [
        ("d.dump", b"PGDMP\x01\x0e\x00", "pg_dump in the custom format", "CSV HEADER"),
        ("d.csv", b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02", "binary format of COPY", "CSV HEADER"),
        ("d.avro", b"Obj\x01\x04\x14avro.codec", "not readable as Avro", "the file ends"),
        ("d.orc", b"ORC\x0a\x03\x00\x01", "not readable as ORC", "d.orc"),
        ("d.archive", b"\x6d\xe2\x99\x81\x10\0\0\0", "mongodump", "mongoexport"),
        ("d.native", &native, "Native or RowBinary", "FORMAT Parquet"),
        ("d.bin", &rows, "Native or RowBinary", "FORMAT Parquet"),
        ("d.sqlite", b"SQLite format 3\0\x10\0", "SQLite", "sqlite3 -header"),
        ("d.xlsx", b"PK\x03\x04\x14\0\x06\0", "Excel", "CSV in UTF-8"),
        ("d.csv", &utf16, "UTF-16", "iconv"),
        ("d.csv.bz2", b"BZh91AY&SY\x01\x02", "bzip2", "bunzip2"),
        ("d.csv.xz", b"\xfd7zXZ\0\0\x04", "xz", "xz -dk"),
        ("d.sql", b"-- MySQL dump 10.13  Distrib 8.0\n", "dump of MySQL", "mysql --batch"),
        ("d.csv", b"INSERT INTO `t` VALUES (1,'a'),(2,'b');\n", "INSERT statements", "CSV"),
        ("d.sql", b"--\n-- PostgreSQL database dump\n--\n\n\\restrict x\n", "is cut off", "dump it again"),
        (
            "d.json",
            b"{\n\t\"meta\":\n\t[\n\t\t{\n\t\t\t\"name\": \"id\"",
            "JSON format of ClickHouse",
            "JSONEachRow",
        ),
        ("d.csv", "\u{250c}\u{2500}id\u{2500}\u{2510}\n".as_bytes(), "printed for people", "CSV"),
        ("d.csv", b"+----+------+\n| id | name |\n", "printed for people", "CSV"),
        ("d.parquet", b"PARE\x15\x04\x15", "encrypted Parquet", "decrypt"),
        ("d.bson", &bson, "BSON", "bsondump"),
        ("d.csv", &without_mark, "UTF-16 without a byte order mark", "iconv -f utf-16le"),
        ("d.csv", &big_endian, "UTF-16 without a byte order mark", "utf-16be"),
        ("d.txt", b" id | name \n----+------\n  1 | a\n(1 row)\n", "printed for people", "CSV"),
        ("d.txt", b" id \n----\n  1\n(1 row)\n", "printed for people", "CSV"),
        ("d.csv", b"| id | n |\n|---:|---|\n| 1 | a |\n", "printed for people", "CSV"),
        ("d.csv", b"sep=;\r\nid;n\r\n1;a\r\n", "'sep='", "--delimiter"),
        ("d.duckdb", b"\0\0\0\0\0\0\0\0DUCK\x40\0", "DuckDB", "COPY table"),
    ];
    for (name, bytes, what, advice) in cases {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), name, bytes);
        for command in ["evaluate {}/", "create {}/t --primary-key id --like {}/"] {
            let found = run(dir.path(), &format!("{command}{name}"));
            assert_ne!(found.code, 0, "{name} {what}");
            let message: Vec<&str> =
                found.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
            assert_eq!(message.len(), 1, "{}", found.stderr);
            assert!(message[0].contains(what) && message[0].contains(advice), "{name}: {}", message[0]);
            assert!(!dir.path().join("t").exists());
        }
    }
    // Text that begins like one of them is still text.
    for (name, text) in [
        ("a.csv", "ORC,BZh\n1,2\n"),
        ("b.csv", "PKID,n\n1,2\n"),
        ("c.csv", "+1,n\n1,2\n"),
        ("d.csv", "sep=,n\n1,2\n"),
        ("e.csv", "a|b,n\n--+--,2\n"),
        ("f.csv", "n\n--\n"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), name, text);
        let found = run(dir.path(), &format!("evaluate {{}}/{name}"));
        assert_eq!(found.code, 0, "{name}: {}", found.stderr);
    }
}

#[test]
fn folders_without_known_names_say_how_to_name_their_files() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("parts"), "_SUCCESS", "");
    write(&dir.path().join("parts"), "part-00000", "id,n\n1,a\n");
    write(&dir.path().join("parts"), "part-00001", "id,n\n2,b\n");
    write(&dir.path().join("dumps"), "a.sql", "--\n-- PostgreSQL database dump\n--\n");
    let refused = run(dir.path(), "evaluate {}/parts");
    assert!(refused.stderr.contains("parts/*', with --input-format"), "{}", refused.stderr);
    let report = json(dir.path(), "evaluate {}/parts/* --input-format csv --format json");
    assert_eq!(report["rows"], 2);
    let refused = run(dir.path(), "evaluate {}/dumps");
    assert!(refused.stderr.contains("name a dump itself, such as"), "{}", refused.stderr);
}

#[test]
fn numbers_that_would_lose_characters_are_refused_further_on() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |n: &str| (0..120_000).map(|id| format!("{id},{}{n}\n", id + 10_000)).collect::<String>();
    let cases = [("", "01234"), ("", "+1234"), ("", "-07"), (".5", "00.5"), (".5", "9007199254740993")];
    for (form, odd) in cases {
        write(dir.path(), "a.csv", format!("id,zip\n{}120000,{odd}\n", rows(form)));
        let refused = run(dir.path(), "evaluate {}/a.csv");
        let message = refused.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        let place = "a.csv, line 120002, column 'zip'";
        assert!(message.contains(place) && message.contains("--type zip:utf8"), "{odd}: {}", refused.stderr);
        let number = if form.is_empty() { "int64" } else { "double" };
        for kept in ["utf8", number] {
            let report = json(dir.path(), &format!("evaluate {{}}/a.csv --type zip:{kept} --format json"));
            assert_eq!(report["rows"], 120_001, "{odd} {kept}");
        }
        let report = json(dir.path(), "evaluate {}/a.csv --on-error skip --format json");
        assert_eq!(report["rows"], 120_000, "{odd}");
    }
    // The type of a column without a value in the first file comes from rows further on, of which a
    // sample is read.
    write(&dir.path().join("in"), "1.csv", "id,zip\n1,\n2,\n");
    write(&dir.path().join("in"), "2.csv", format!("id,zip\n{}9,07\n{}", rows(""), rows("").repeat(2)));
    let found = run(dir.path(), "evaluate {}/in --format json");
    match found.code {
        0 => {
            let report: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
            assert_eq!(report["columns"][1]["type"], "Utf8", "{}", report["columns"]);
        }
        _ => assert!(found.stderr.contains("2.csv, line 120002, column 'zip'"), "{}", found.stderr),
    }
}

#[test]
fn columns_that_only_some_rows_have_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let notes = |command: &str| {
        let report = json(dir.path(), &format!("{command} --format json"));
        report["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned()).collect()
    };
    let has = |notes: Vec<String>, parts: &[&str]| {
        let found = notes.iter().any(|note| parts.iter().all(|part| note.contains(part)));
        assert!(found, "{parts:?}: {notes:?}");
    };
    let rows: String = (0..120_000).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    write(dir.path(), "late.ndjson", format!("{rows}{{\"id\":120000,\"late\":1}}\n"));
    has(notes("evaluate {}/late.ndjson"), &["do not have them: late of", "late.ndjson"]);
    let folder = dir.path().join("csv");
    write(&folder, "1.csv", "id,n\n1,a\n2,b\n");
    write(&folder, "2.csv", "id,other\n3,c\n4,d\n");
    has(notes("evaluate {}/csv"), &["do not have them: other of", "2.csv"]);
    has(notes("evaluate {}/csv"), &["2.csv lacks columns, which are NULL in its rows: n"]);
    write(dir.path(), "nameless.csv", ",id,,n\n0,1,x,a\n1,2,y,b\n");
    has(notes("evaluate {}/nameless.csv"), &["columns 1, 3 have no names and are left out"]);
    // The same rows as Parquet and in equal files have no such note.
    write(&folder, "2.csv", "n,id\nc,3\nd,4\n");
    let plain: Vec<String> = notes("evaluate {}/csv");
    assert!(!plain.iter().any(|note| note.contains("columns")), "{plain:?}");
}

#[test]
fn folders_of_other_systems_are_refused_by_name() {
    let cases: [(&[&str], &str); 9] = [
        (
            &["spanner-export.json", "Singers-manifest.json", "Singers.avro-00000-of-00001"],
            "export of Spanner",
        ),
        (&["toc.dat", "3001.dat.gz"], "pg_dump in the directory format"),
        (&["db/users.bson", "db/users.metadata.json"], "mongodump"),
        (&["gpbackup_0_20260101000000_16390.gz", "gpbackup_20260101000000_toc.yaml"], "gpbackup"),
        (&["metadata", "db.t-schema.sql", "db.t.00000.csv"], "mydumper"),
        (&["nb-1-big-Data.db", "manifest.json", "schema.cql"], "Cassandra"),
        (&["metadata/v1.metadata.json", "data/a.parquet"], "Iceberg table"),
        (&["_delta_log/00000000000000000000.json", "a.parquet"], "Delta table"),
        (&[".hoodie/hoodie.properties", "a.parquet"], "Hudi table"),
    ];
    for (files, what) in cases {
        let dir = tempfile::tempdir().unwrap();
        files.iter().for_each(|file| write(&dir.path().join("in"), file, "x"));
        let found = run(dir.path(), "evaluate {}/in");
        assert_ne!(found.code, 0, "{what}");
        let message = found.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        assert!(message.contains(what), "{what}: {}", found.stderr);
    }
    // Files that describe others are not read as rows.
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("in"), "a.ndjson", "{\"id\": 1}\n{\"id\": 2}\n");
    write(&dir.path().join("in"), "metadata.json", "{\"id\": 3}\n");
    let report = run(dir.path(), "evaluate {}/in --format json");
    assert!(report.stderr.contains("1 file of metadata left out"), "{}", report.stderr);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["rows"], 2);
}

/// Evaluates a text and returns the types of its columns and the number of rows.
fn types(name: &str, text: &str, options: &str) -> Result<(Vec<String>, u64), String> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), name, text);
    let found = run(dir.path(), &format!("evaluate {{}}/{name} --format json{options}"));
    if found.code != 0 {
        return Err(found.stderr);
    }
    let report: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    let columns = report["columns"].as_array().unwrap().iter();
    let types = columns.map(|column| format!("{} {}", column["name"], column["type"]).replace('"', ""));
    Ok((types.collect(), report["rows"].as_u64().unwrap()))
}

#[test]
fn text_of_clickhouse_postgresql_and_doris_is_read_with_its_nulls_escapes_and_types() {
    let rows = 1..=40;
    let with_types: String = "id\tat\tname\nUInt64\tNullable(DateTime)\tLowCardinality(String)\n".to_owned()
        + &rows.clone().map(|id| format!("{id}\t2026-01-02 03:04:05\ta\\tb\n")).collect::<String>();
    let expected = ["id Uint64", "at Datetime", "name Utf8"];
    for name in ["a.tsv", "a.txt", "a.csv"] {
        let (types, count) = types(name, &with_types, " --input-format tsv").unwrap();
        assert_eq!((types.as_slice(), count), (expected.map(str::to_owned).as_slice(), 40), "{name}");
    }
    let quoted = with_types
        .replace("a\\tb", "\"a, b\"")
        .replace('\t', ",")
        .replace("\nUInt64", "\nNullable(UInt64)")
        .replace("\n1,", "\n\\N,");
    let (found, count) = types("a.csv", &quoted, "").unwrap();
    assert_eq!((found.as_slice(), count), (expected.map(str::to_owned).as_slice(), 40));
    // COPY of PostgreSQL has no header; NULL and escapes show what it is.
    let copy: String =
        rows.clone().map(|id| format!("{id}\t\\N\tline\\nbreak\t2026-01-02 03:04:05+00\n")).collect();
    let (found, count) = types("a.copy", &(copy.clone() + "\\.\n"), " --names id,v,text,at").unwrap();
    let expected = ["id Int64", "v Utf8", "text Utf8", "at Timestamp"];
    assert_eq!((found.as_slice(), count), (expected.map(str::to_owned).as_slice(), 40));
    let error = types("a.copy", &copy, "").unwrap_err();
    assert!(error.contains("its first line looks like a row") && error.contains("--names"), "{error}");
    // Doris separates by tabs in files named .csv.
    let doris: String = rows.map(|id| format!("{id}\t{}\n", id * 7)).collect();
    let (found, count) = types("r_0.csv", &("id\tn\n".to_owned() + &doris), "").unwrap();
    assert_eq!((found.as_slice(), count), (["id Int64", "n Int64"].map(str::to_owned).as_slice(), 40));
    let (found, count) = types("r_0.csv", &doris, " --names id,n").unwrap();
    assert_eq!((found.as_slice(), count), (["id Int64", "n Int64"].map(str::to_owned).as_slice(), 40));
}

#[test]
fn a_header_that_looks_like_a_row_is_reported_and_names_that_are_numbers_are_not() {
    let rows = |row: &str| format!("{row}\n").repeat(30);
    for (header, row) in [
        ("17,u1,2026-01-02T03:04:05Z", "18,u2,2026-01-02T03:04:06Z"),
        ("2026-01-02T03:04:05Z,u1", "2026-01-02T03:04:06Z,u2"),
        ("1.5,-3", "2.5,-4"),
    ] {
        let text = format!("{header}\n{}", rows(row));
        let error = types("a.csv", &text, "").unwrap_err();
        assert!(error.contains("looks like a row") && error.contains("--header"), "{error}");
        let names: Vec<String> = (0..header.split(',').count()).map(|number| format!("c{number}")).collect();
        let (found, count) = types("a.csv", &text, &format!(" --names {}", names.join(","))).unwrap();
        assert_eq!((found.len(), count), (names.len(), 31));
        let (found, count) = types("a.csv", &text, " --header").unwrap();
        assert_eq!((found.len(), count), (names.len(), 30));
    }
    for (header, row) in [
        ("id,n", "1,2"),
        ("country,2019,2020,2021", "x,1,2,3"),
        ("0,1,2", "0.5,1.5,2.5"),
        (",0,1", "7,0.5,1.5"),
        ("id,17", "1,2"),
        ("a,b", "x,y"),
    ] {
        let found = types("a.csv", &format!("{header}\n{}", rows(row)), "");
        assert!(found.is_ok(), "{header}: {found:?}");
    }
}

#[test]
fn statements_of_other_systems_give_names_types_and_the_keys_to_judge() {
    let dir = tempfile::tempdir().unwrap();
    let postgres = "CREATE TABLE public.events (\n    id bigint NOT NULL,\n    user_id integer,\n    price numeric(10,2),\n    \
                    code text,\n    at timestamp with time zone\n);\nCREATE TABLE public.other (id int);\n\
                    ALTER TABLE ONLY public.events\n    ADD CONSTRAINT events_pkey PRIMARY KEY (user_id, id);\n\
                    SELECT create_distributed_table('events', 'user_id');\n";
    write(dir.path(), "schema.sql", postgres);
    let rows = |separator: &str| -> String {
        let row = |id: u64| {
            [
                id.to_string(),
                (id % 97).to_string(),
                "1.50".to_owned(),
                format!("00{id}"),
                "2026-01-02 03:04:05+00".to_owned(),
            ]
            .join(separator)
                + "\n"
        };
        (1..=2000).map(row).collect()
    };
    write(dir.path(), "plain.csv", rows(","));
    write(dir.path(), "named.csv", "id,user_id,price,code,at\n".to_owned() + &rows(","));
    write(dir.path(), "moved.csv", "user_id,id,price,code,at\n".to_owned() + &rows(","));
    write(dir.path(), "copy.tsv", rows("\t").replace("\t1.50", "\t\\N") + "\\.\n");
    let expected = ["id Int64", "user_id Int32", "price Decimal(10,2)", "code Utf8", "at Timestamp"];
    for (name, rows) in [("plain.csv", 2000), ("named.csv", 2000), ("moved.csv", 2000), ("copy.tsv", 2000)] {
        let report = json(
            dir.path(),
            &format!("evaluate {{}}/{name} --ddl {{}}/schema.sql --table events --format json"),
        );
        assert_eq!(report["rows"], rows, "{name}");
        let columns = report["columns"].as_array().unwrap().iter();
        let mut types: Vec<String> =
            columns.map(|column| format!("{} {}", column["name"], column["type"]).replace('"', "")).collect();
        if name == "moved.csv" {
            types.swap(0, 1);
        }
        assert_eq!(types, expected, "{name}");
        let keys = |list: &str, field: &str| {
            report[list].as_array().unwrap().iter().map(|key| key[field].clone()).collect::<Vec<_>>()
        };
        assert!(keys("candidates", "partition_key").contains(&serde_json::json!(["user_id"])), "{name}");
        assert!(keys("primary_keys", "columns").contains(&serde_json::json!(["user_id", "id"])), "{name}");
    }
    let text = done(dir.path(), "evaluate {}/plain.csv --ddl {}/schema.sql --table events");
    assert!(
        text.contains("CREATE TABLE events") && text.contains("evenkeel create events --ddl events.sql"),
        "{text}"
    );
    for (arguments, part) in [
        (
            "evaluate {}/plain.csv --ddl {}/schema.sql",
            "name one of them with --table: public.events, public.other",
        ),
        ("evaluate {}/plain.csv --ddl {}/schema.sql --table nope", "there is no table 'nope'"),
        ("evaluate {}/plain.csv --ddl {}/plain.csv", "there is no CREATE TABLE"),
        (
            "evaluate {}/plain.csv --ddl {}/schema.sql --table other",
            "line 1: has 5 fields, but 1 columns are named",
        ),
        ("evaluate {}/plain.csv --ddl {}/schema.sql --names a,b", "cannot be used with"),
    ] {
        let found = run(dir.path(), arguments);
        assert_ne!(found.code, 0, "{arguments}");
        assert!(found.stderr.contains(part), "{arguments}: {}", found.stderr);
    }
    done(
        dir.path(),
        "create {}/t --column id:int64:not-null --column user_id:int32:not-null --column code:utf8 --primary-key user_id,id",
    );
    let ingested = done(dir.path(), "ingest {}/t {}/plain.csv --ddl {}/schema.sql --table events");
    assert!(ingested.starts_with("version 1: 2,000 rows"), "{ingested}");
}

#[test]
fn a_query_log_weights_statements_by_their_runs() {
    let dir = tempfile::tempdir().unwrap();
    // Two ids that spread alike: the log decides.
    let mut rows = String::from("a_id,b_id,at\n");
    for row in 0..20_000u64 {
        let (a, b) = (row.wrapping_mul(7919) % 1009, row.wrapping_mul(104_729) % 1013);
        let _ = writeln!(
            rows,
            "{a},{b},2026-01-{:02}T{:02}:{:02}:00Z",
            row / 1440 % 28 + 1,
            row / 60 % 24,
            row % 60
        );
    }
    write(dir.path(), "events.csv", rows);
    let log = |a: u64, b: u64| {
        format!(
            "query,calls\n\"SELECT * FROM public.events WHERE a_id = $1\",{a}\n\"SELECT * FROM public.events WHERE b_id = $1\",{b}\n\
             \"SELECT * FROM public.users WHERE id = $1\",30\nCOMMIT,20\n\"SELECT nope FROM events\",10\n"
        )
    };
    for (a, b, best) in [(900, 40, "a_id"), (40, 900, "b_id")] {
        write(dir.path(), "pg_stat_statements.csv", log(a, b));
        let found =
            run(dir.path(), "evaluate {}/events.csv --queries {}/pg_stat_statements.csv --format json");
        assert_eq!(found.code, 0, "{}", found.stderr);
        let part = "94.0 % of 1,000 runs understood, as 2 statements; 2.0 % do not read; 3.0 % read other tables; 1.0 % cannot be \
                    planned, such as q3";
        assert!(found.stderr.contains(part), "{}", found.stderr);
        let report: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(
            report["recommendation"]["partition_key"],
            serde_json::json!([best]),
            "{}",
            report["ranking"]
        );
        let statements = report["statements"].as_array().unwrap();
        assert_eq!(statements[0]["runs"], 900.0);
        let ranking = report["ranking"].as_array().unwrap();
        let of = |key: &str| {
            ranking.iter().find(|ranked| ranked["partition_key"] == serde_json::json!([key])).unwrap()
        };
        let read = of(best)["mean_partitions_read"].as_f64().unwrap();
        let partitions = report["recommendation"]["partitions"].as_f64().unwrap();
        assert!((read - (900.0 + 40.0 * partitions) / 940.0).abs() < 1e-9, "{read}");
    }
    let refused = run(dir.path(), "evaluate {}/events.csv --queries {}/events.csv");
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("no column has the text of statements"), "{}", refused.stderr);
}

/// Returns all rows of a file as CSV, as a table made from it has them.
fn through_a_table(name: &str, text: &str, options: &str) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), name, text);
    let created = run(
        dir.path(),
        &format!("create {{}}/t --like {{}}/{name} --primary-key id --partitions 1{options}"),
    );
    if created.code != 0 {
        return Err(created.stderr);
    }
    let ingested = run(dir.path(), &format!("ingest {{}}/t {{}}/{name}{options}"));
    if ingested.code != 0 {
        return Err(ingested.stderr);
    }
    write(dir.path(), "q.sql", "SELECT * FROM t ORDER BY id");
    Ok(done(dir.path(), "query {}/t --format ndjson -f {}/q.sql"))
}

#[test]
fn null_and_empty_text_are_told_apart_if_the_file_says_which_columns_take_null() {
    let text = "\"id\",\"a\",\"b\"\n\"UInt64\",\"String\",\"Nullable(String)\"\n1,\"\",\"\"\n2,\"\\N\",\\N\n";
    let rows = through_a_table("ch.csv", text, "").unwrap();
    assert_eq!(rows, "{\"id\":1,\"a\":\"\"}\n{\"id\":2,\"a\":\"\\\\N\"}\n");
    // mysql --batch writes NULL as a word.
    let text = "id\tn\ts\n1\tNULL\tNULL\n2\t5\tx\\ty\n";
    let rows = through_a_table("m.tsv", text, " --input-format tsv --null-value NULL").unwrap();
    assert_eq!(rows, "{\"id\":1}\n{\"id\":2,\"n\":5,\"s\":\"x\\ty\"}\n");
}

#[test]
fn a_spelling_that_was_guessed_wrong_is_refused_further_on() {
    let rows = |row: &str| (0..1000).map(|id| format!("{id}\t{row}\n")).collect::<String>();
    let header = "id\tnote\n";
    for (text, line) in [
        (format!("{header}{}1000\tC:\\Users\\q\n", rows("\\N")), "line 1002"),
        (format!("{header}{}1000\t\\N\n", rows("C:\\Users")), "line 1002"),
        (format!("{header}{}1000\t\\N\n", rows("\"plain text\"")), "line 1002"),
        // Empty text is NULL in CSV alone.
        (format!("{header}{}1000\t\\N\n", rows("")), "line 1002"),
        (
            format!("{header}{}1000\t\\N\n", rows("a\\\\b").replacen("a\\\\b", "\"say \"\"hi\"\"\"", 1)),
            "line 1002",
        ),
        (format!("{header}{}1000\ta\\\tb\n", rows("plain text")), "line 1002"),
    ] {
        let error = through_a_table("a.tsv", &text, "").unwrap_err();
        assert!(error.contains(line) && error.contains("--input-format tsv"), "{error}");
        assert!(through_a_table("a.tsv", &text, " --input-format tsv").is_ok());
    }
    // A NULL after lines without quotes and backslashes is the same in both spellings.
    let text = format!("{header}{}1000\t\\N\n", rows("plain text"));
    let read = through_a_table("a.tsv", &text, "").unwrap();
    assert!(read.ends_with("{\"id\":1000}\n"), "{read}");
    assert_eq!(through_a_table("a.tsv", &text, " --input-format tsv").unwrap(), read);
    let error = through_a_table("a.tsv", &text, " --null-value NA").unwrap_err();
    assert!(error.contains("line 1002"), "{error}");
    // Quotes that are doubled in quotes are those of CSV.
    let text =
        format!("{header}1\t\"say \"\"hi\"\"\"\n{}2000\t\\N\n", rows("x").split_off("0\tx\n1\tx\n".len()));
    let read = through_a_table("a.tsv", &text, "").unwrap();
    assert!(read.contains(r#"{"id":1,"note":"say \"hi\""}"#) && read.ends_with("{\"id\":2000}\n"), "{read}");
    // A quote that is not closed is text if NULL shows the spelling.
    let text = "id\tnote\n1\t\"hello\n2\t\\N\n3\tworld\" x\n4\tq\"q\n";
    assert_eq!(through_a_table("a.tsv", text, "").unwrap().lines().count(), 4);
}

#[test]
fn a_header_with_other_names_than_the_statement_is_refused_and_case_does_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.csv", "id,name\nu1,bob\nu2,al\n");
    write(dir.path(), "other.sql", "CREATE TABLE t (id text, title text);");
    write(dir.path(), "upper.sql", "CREATE TABLE t (ID text, NAME text, PRIMARY KEY (ID));");
    let refused = run(dir.path(), "evaluate {}/a.csv --ddl {}/other.sql");
    assert!(refused.stderr.contains("some of the given names but also 'name'"), "{}", refused.stderr);
    let report = json(dir.path(), "evaluate {}/a.csv --ddl {}/upper.sql --format json");
    assert_eq!(
        (&report["rows"], &report["columns"][0]["name"]),
        (&serde_json::json!(2), &serde_json::json!("ID"))
    );
    // NULL in a row that stands in place of names does not make it a header.
    let rows = "1,\\N,bob\n".to_owned() + &(2..40).map(|id| format!("{id},7,al\n")).collect::<String>();
    let error = types("n.csv", &rows, "").unwrap_err();
    assert!(error.contains("looks like a row"), "{error}");
    let (columns, _) = types("e.csv", &("0,1\n".to_owned() + &"1,5\n".repeat(30)), "").unwrap();
    assert_eq!(columns, ["0 Int64", "1 Int64"]);
}

#[test]
fn masked_messages_hold_no_value_of_a_first_line_or_of_a_query_log() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "row.csv", "4711,secret\n".repeat(30));
    write(dir.path(), "partly.csv", "id,secret\n".to_owned() + &"1,x\n".repeat(30));
    write(dir.path(), "rows.csv", "id,n\n".to_owned() + &"1,2\n".repeat(30));
    write(dir.path(), "t.sql", "CREATE TABLE t (id int, n int);");
    write(dir.path(), "log.csv", "query,calls\n\"SELECT nope FROM t WHERE id = CAST('secret' AS INT)\",5\n");
    for arguments in [
        "evaluate {}/row.csv --mask-values",
        "evaluate {}/partly.csv --ddl {}/t.sql --mask-values",
        "evaluate {}/rows.csv --queries {}/log.csv --mask-values",
    ] {
        let found = run(dir.path(), arguments);
        let text = found.stdout + &found.stderr;
        assert!(
            !text.contains("secret") && !text.contains("4711") && !text.contains("nope"),
            "{arguments}: {text}"
        );
    }
}
