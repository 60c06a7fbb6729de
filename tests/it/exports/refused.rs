//! Dumps that are damaged or unfinished, and files and folders of formats that are not read.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::common::{json, run};
use crate::exports::{ROWS, dump, scheme, values, write};

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
    let cases: [(&str, &[u8], &str, &str); 29] = [
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
            "d.sql",
            b"/* of a shop */\nCREATE TABLE t (a INT);\nINSERT INTO t VALUES (1);\n",
            "INSERT statements",
            "CSV",
        ),
        ("d.sql", b"COPY t (a) FROM stdin;\n1\n2\n", "do not end with '\\.'", "rows may be missing"),
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
