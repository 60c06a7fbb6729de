//! `--ydb-version` on every command that writes or reads YQL.

use crate::common::{done, json, run};

const DDL: &str =
    "CREATE TABLE t (id Uint64 NOT NULL, ok Bool, u Uuid, i Interval, d Decimal(35,10), PRIMARY KEY (id))
    PARTITION BY HASH(id) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 4);";

#[test]
fn ddl_is_written_for_the_version() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.sql"), DDL).unwrap();
    done(dir.path(), "create {}/t --ddl {}/t.sql");
    for (version, types) in [
        ("", ["ok Bool", "u Utf8", "i Interval64", "d Decimal(35,10)"]),
        ("--ydb-version 25.2", ["ok Uint8", "u Utf8", "i Interval64", "d Decimal(35,10)"]),
        ("--ydb-version 25.4.1.15", ["ok Bool", "u Utf8", "i Interval64", "d Decimal(35,10)"]),
        ("--ydb-version 26.3", ["ok Bool", "u Uuid", "i Interval", "d Decimal(35,10)"]),
    ] {
        let written = run(dir.path(), &format!("ddl {{}}/t {version}"));
        assert_eq!(written.code, 0, "{version}: {}", written.stderr);
        for column in types {
            assert!(written.stdout.contains(&format!("    {column},\n")), "{version}: {}", written.stdout);
        }
        // Each replaced type has a comment in the statement and a note beside it.
        let comments = written.stdout.matches("-- column ").count();
        assert_eq!(comments, written.stderr.matches("which column tables of YDB").count(), "{version}");
        // What is written is taken by the version that it is written for.
        std::fs::write(dir.path().join("again.sql"), &written.stdout).unwrap();
        let folder = version.replace([' ', '.', '-'], "_");
        done(dir.path(), &format!("create {{}}/again{folder} --ddl {{}}/again.sql {version}"));
    }
    let refused = run(dir.path(), "ddl {}/t --ydb-version 25.1");
    assert!(
        refused.code != 0 && refused.stderr.contains("column 'd' of type Decimal(35,10)"),
        "{}",
        refused.stderr
    );
}

#[test]
fn ddl_is_read_for_the_version() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.sql"), DDL).unwrap();
    for (version, column) in [("25.2", "ok"), ("25.4", "u"), ("26.2", "u")] {
        let refused = run(dir.path(), &format!("create {{}}/x --ddl {{}}/t.sql --ydb-version {version}"));
        assert_eq!(refused.code, 2, "{version}: {}", refused.stderr);
        let message = format!("column '{column}' of type");
        assert!(
            refused.stderr.contains(&message) && refused.stderr.contains("or newer"),
            "{}",
            refused.stderr
        );
        assert!(!dir.path().join("x").exists(), "{version}");
    }
    done(dir.path(), "create {}/new --ddl {}/t.sql --ydb-version 26.3");
    // Without a version it is noted, and this store takes it.
    let noted = run(dir.path(), "create {}/t --ddl {}/t.sql");
    assert!(
        noted.code == 0 && noted.stderr.contains("a column table of YDB 26.2 does not support it"),
        "{}",
        noted.stderr
    );
    for (arguments, message) in [
        ("ddl {}/t --ydb-version 24.9", "known: 25.1, 25.2, 25.3, 25.4, 26.1, 26.2, 26.3"),
        ("spanner ddl {}/t --ydb-version 26.2", "unexpected argument '--ydb-version'"),
        ("create {}/y --column a:int64:not-null --primary-key a --ydb-version 26.2", "--ddl"),
    ] {
        let refused = run(dir.path(), arguments);
        assert!(refused.code == 2 && refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
}

#[test]
fn a_proposal_is_for_the_version() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..2000).map(|row| format!("{row},{},{}\n", row % 2 == 0, row * 7)).collect();
    std::fs::write(dir.path().join("rows.csv"), format!("id,ok,n\n{rows}")).unwrap();
    let proposed = |version: &str| {
        let found =
            json(dir.path(), &format!("evaluate {{}}/rows.csv --partition-key id {version} --format json"));
        found["recommendation"]["ddl"].as_str().unwrap().to_owned()
    };
    assert!(proposed("").contains("ok Bool") && proposed("--ydb-version 26.1").contains("ok Bool"));
    let older = proposed("--ydb-version 25.3");
    assert!(
        older.contains("ok Uint8") && older.contains("-- column ok is Uint8 in place of Bool"),
        "{older}"
    );
}
