//! What is refused, with which words and which exit code; nothing is half-done.

use crate::common::{done, run};

#[test]
fn wrong_declarations_are_refused_with_the_next_step() {
    let cases = [
        ("create {}/t", "pass --column for each, --ddl FILE, or --like FILE"),
        ("create {}/t --column a:int64:not-null", "a table needs a primary key"),
        ("create {}/t --column a:int64 --primary-key a", "declare it as a:Int64:not-null"),
        (
            "create {}/t --column a:int64:not-null --primary-key b",
            "the primary key names column 'b', which is not declared; declared: a",
        ),
        (
            "create {}/t --column a:int64:not-null --column a:utf8 --primary-key a",
            "column 'a' is declared twice",
        ),
        ("create {}/t --column a:int64:not-null --primary-key a,a", "the primary key names column 'a' twice"),
        (
            "create {}/t --column a:int64:not-null --column b:utf8:not-null --primary-key a --partition-key b",
            "partition-key column 'b' is not in the primary key (a)",
        ),
        (
            "create {}/t --column a:double:not-null --primary-key a",
            "column 'a' of type Double cannot be part of a primary key",
        ),
        (
            "create {}/t --column a:int64:not-null --primary-key a --partitions 0",
            "a table has 1 to 100000 partitions, not 0",
        ),
        (
            "create {}/t --column a:int64:not-null --primary-key a --nodes 0",
            "a table has 1 to 100000 partitions, not 0",
        ),
        (
            "create {}/t --column a:int64:not-null --primary-key a --nodes 1 --partitions 4",
            "cannot be used with",
        ),
        ("create {}/t --column a:number --primary-key a", "unknown column type 'number'; known types: Bool"),
        ("create {}/t --column a:dynumber --primary-key a", "has no equivalent in Arrow"),
        ("create {}/t --column a --primary-key a", "write name:type or name:type:not-null"),
        ("create {}/t --column a:int64:maybe --primary-key a", "'maybe' is neither not-null nor null"),
        ("create {}/t --ddl data/ad_events.sql --primary-key a", "cannot be used with"),
        ("create {}/t --ddl data/README.md", "data/README.md, line 1"),
        (
            "create {}/t --ddl data/ad_events.sql --placement rendezvous",
            "unknown placement function 'rendezvous'; known: ydb, ydb-modulo, ydb-cloud-logs",
        ),
        ("create {}/t --ddl data/ad_events.sql --placement ydb-cloud-logs", "the first of them a Timestamp"),
        (
            "create {}/t --like data/nycflights13-flights.parquet --column tail:utf8 --primary-key flight",
            "has no such column with a YDB type; it has: year, month",
        ),
    ];
    for (arguments, message) in cases {
        let dir = tempfile::tempdir().unwrap();
        let run = run(dir.path(), arguments);
        assert_eq!(run.code, 2, "{arguments}\n{}", run.stderr);
        assert!(run.stderr.contains(message), "{arguments}\n{}", run.stderr);
        assert!(!dir.path().join("t/_log").exists(), "{arguments}");
    }
}

#[test]
fn more_than_twenty_key_columns_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let columns: Vec<String> = (0..21).map(|i| format!("--column c{i}:int64:not-null")).collect();
    let key: Vec<String> = (0..21).map(|i| format!("c{i}")).collect();
    let run =
        run(dir.path(), &format!("create {{}}/t {} --primary-key {}", columns.join(" "), key.join(",")));
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("at most 20 columns, this one has 21"), "{}", run.stderr);
}

#[test]
fn places_that_are_no_tables_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("notes.txt"), "x").unwrap();
    let cases = [
        ("query {}/nowhere -c SELECT", "there is no table in"),
        (
            "inspect {}",
            "is not a table: it has no _log/00000000000000000000.json. Declare one with 'evenkeel create'",
        ),
        ("create {} --ddl data/ad_events.sql", "is not empty and is not a table"),
        ("demo --dir {}", "is not empty; name a new directory"),
    ];
    for (arguments, message) in cases {
        let run = run(dir.path(), arguments);
        assert_eq!(run.code, 1, "{arguments}");
        assert!(run.stderr.contains(message), "{arguments}\n{}", run.stderr);
    }
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    let again = run(dir.path(), "create {}/t --ddl data/ad_events.sql");
    assert!(again.stderr.contains("is a table already"), "{}", again.stderr);
}

#[test]
fn urls_where_a_local_file_is_due_are_refused_and_make_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [
        "generate ad-events --rows 10 --out s3://bucket/x",
        "generate ad-events --rows 10 --out s3://key:secret@bucket/x",
        "create u --ddl s3://bucket/x.sql",
        "ingest u x.csv --on-error reject --rejects s3://bucket/x.ndjson",
        "query u -c x --output gs://bucket/x.csv",
        "query u -o az://container/x.csv -c x",
        "query u -f s3://bucket/x.sql",
        "evaluate x.csv --html s3://bucket/x.html",
        "evaluate x.csv --queries s3://bucket/queries",
        "evaluate x.csv --baseline https://host/x.json",
        "bench queries u -f s3://bucket/x.sql",
        "bench ad-events --dir s3://bucket/x",
        "demo --rows 10 --dir s3://bucket/x",
        "spanner simulate x.csv --ddl s3://bucket/x.sql",
        "spanner simulate x.csv --primary-key k --html s3://bucket/x.html",
        "spanner access-log --html s3://bucket/x.html",
        "spanner migrate x.csv --key k --output s3://bucket/x.csv",
        #[cfg(feature = "cluster")]
        "cluster executor --work-dir s3://bucket/x",
        #[cfg(feature = "cluster")]
        "query u -c x --cluster http://127.0.0.1:9 --token-file s3://bucket/x",
    ] {
        let output = crate::common::evenkeel()
            .args(arguments.split_whitespace())
            .current_dir(dir.path())
            .output()
            .unwrap();
        let run = crate::common::Run::from(output);
        assert_eq!(run.code, 2, "{arguments}: {}", run.stderr);
        assert!(run.stderr.contains("accepts a path on this machine"), "{arguments}: {}", run.stderr);
        assert!(!run.stderr.contains("secret"), "{}", run.stderr);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{arguments}");
    }
    done(dir.path(), "generate ad-events --rows 10 --out file://{}/in");
    assert!(dir.path().join("in/ad-events-0000.parquet").is_file());
}

#[test]
fn wrong_queries_are_refused_in_plain_words() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    let query = |sql: &str| {
        let table = dir.path().join("t");
        let output = crate::common::evenkeel().arg("query").arg(table).args(["-c", sql]).output().unwrap();
        crate::common::Run::from(output)
    };
    for (sql, message) in [
        ("SELECT nope FROM t", "there is no column 'nope'; there are: ad_id, campaign_id, event_id"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELEC 1", "cannot read the SQL: "),
        ("", "no SQL is given"),
        ("DROP TABLE t", "only queries are run; this statement would change what tables there are"),
        ("INSERT INTO t SELECT * FROM t", "only queries are run"),
        ("COPY t TO '/tmp/never.csv'", "only queries are run"),
        (
            "EXPLAIN ANALYZE COPY t TO '/tmp/never.csv'",
            "only queries are run; this statement would write files",
        ),
        ("SELECT 1; SELECT 2", "there are 2 statements; run one at a time"),
        (
            "CREATE TABLE x AS SELECT 1",
            "only queries are run; this statement would change what tables there are",
        ),
        ("INSERT INTO t VALUES (1)", "only queries are run; this statement would change rows"),
        ("-- nothing", "no SQL is given"),
        ("SELECT $x", "the query needs a value for $x; give it with --param x=VALUE"),
    ] {
        let run = query(sql);
        let usage = sql.is_empty() || sql.starts_with("--") || sql.contains('$');
        assert_eq!(run.code, if usage { 2 } else { 1 }, "{sql}: {}", run.stdout);
        assert!(run.stderr.contains(message), "{sql}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{sql}: {}", run.stderr);
    }
    // A filter is evaluated while a file is read: what it cannot take is not the file's fault.
    done(dir.path(), "generate ad-events --rows 1000 --out {}/exports");
    done(dir.path(), "ingest {}/t {}/exports");
    for (sql, message) in [
        ("SELECT count(*) FROM t WHERE user_id = 5", "to value of Int64 type; values are compared with"),
        ("SELECT count(*) FROM t WHERE 1 / (event_id - event_id) = 1", "division by zero"),
    ] {
        let run = query(sql);
        assert!(run.code == 1 && run.stderr.contains(message), "{sql}: {}", run.stderr);
        assert!(!run.stderr.contains("damaged"), "{sql}: {}", run.stderr);
    }
}

#[test]
fn of_several_queries_to_time_the_wrong_one_is_named_before_anything_is_timed() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    let bench = |arguments: &[&str]| {
        let table = dir.path().join("t");
        let output = crate::common::evenkeel().args(["bench", "queries"]).arg(table).args(arguments).output();
        crate::common::Run::from(output.unwrap())
    };
    let wrong = bench(&["-c", "SELECT 1", "-c", "SELECT nope FROM t"]);
    assert!(wrong.stderr.contains("SELECT nope FROM t: there is no column 'nope'"), "{}", wrong.stderr);
    let file = bench(&["queries/events_per_user.sql"]);
    assert!(file.code == 2 && file.stderr.contains("is a file, not a query; use -f"), "{}", file.stderr);
    let marked = dir.path().join("marked.sql");
    std::fs::write(&marked, "\u{FEFF}SELECT 'a|b' AS x").unwrap();
    let markdown =
        bench(&["-c", "SELECT 'a|b'\nAS x", "-f", marked.to_str().unwrap(), "--format", "markdown"]);
    assert_eq!(markdown.code, 0, "{}", markdown.stderr);
    assert!(markdown.stdout.contains("| SELECT 'a\\|b'\\nAS x"), "{}", markdown.stdout);
}

#[test]
fn wrong_keys_to_place_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, message) in [
        ("place --types uint64 --partitions 64 -- -1", "'-1' is not of type Uint64 (0 to 2^64 - 1)"),
        (
            "place --types uint64 --partitions 64 1 2",
            "the key has 1 column (Uint64), but 2 values were given",
        ),
        (
            "place --types uuid --partitions 4 f79c3e09-677c-4bbd-a479-3f349cb785e7",
            "has no published byte layout",
        ),
        ("place --types timestamp --partitions 4 1700000000", "or name its unit"),
        ("place --types uint64 --partitions 4 --placement ydb-cloud-logs 1", "at least two columns"),
    ] {
        let run = run(dir.path(), arguments);
        assert_eq!(run.code, 2, "{arguments}: {}", run.stdout);
        assert!(run.stderr.contains(message), "{arguments}: {}", run.stderr);
    }
}

/// Rows of a CSV file that a table cannot take, and the message for the first of them.
const BAD_ROWS: [(&str, &str); 7] = [
    (
        "u1,2026-01-01T00:00:00Z,1,-5,1,click",
        "line 3, column 'campaign_id': '-5' is not of type Uint64 (0 to 2^64 - 1)",
    ),
    (
        ",2026-01-01T00:00:00Z,1,5,1,click",
        "line 3, column 'user_id': is NULL, the primary-key column is NOT NULL",
    ),
    ("u1,yesterday,1,5,1,click", "line 3, column 'event_timestamp': 'yesterday' is not a point in time"),
    (
        "u1,1767225600,1,5,1,click",
        "line 3, column 'event_timestamp': '1767225600' is a number, not a point in time; write it as",
    ),
    (
        "u1,1969-12-31T23:59:59Z,1,5,1,click",
        "line 3, column 'event_timestamp': '1969-12-31T23:59:59' is outside Timestamp (1970 to 2105); Timestamp64 holds it",
    ),
    ("u1,2026-01-01T00:00:00Z,1,5", "line 3: has 4 fields, the header has 6"),
    ("u1,2026-01-01T00:00:00Z,x,5,1,click", "line 3, column 'event_id': 'x' is not of type Uint64"),
];

#[test]
fn a_row_that_cannot_be_taken_fails_the_ingest_or_is_set_aside() {
    let header = "user_id,event_timestamp,event_id,campaign_id,ad_id,event_type";
    let good = "u1,2026-01-01T00:00:00Z,1,5,1,click";
    for (bad, message) in BAD_ROWS {
        let dir = tempfile::tempdir().unwrap();
        done(dir.path(), "create {}/t --ddl data/ad_events.sql");
        let lines = [header, good, bad, "u2,2026-01-01T00:00:00Z,1,5,1,click"].join("\n");
        std::fs::write(dir.path().join("in.csv"), lines).unwrap();
        let failed = run(dir.path(), "ingest {}/t {}/in.csv");
        assert_eq!(failed.code, 1, "{bad}");
        assert!(failed.stderr.contains(message), "{bad}: {}", failed.stderr);
        assert!(failed.stderr.contains("Nothing was committed"), "{}", failed.stderr);
        // Lines are the same where they end with two bytes.
        let text = std::fs::read_to_string(dir.path().join("in.csv")).unwrap().replace('\n', "\r\n");
        std::fs::write(dir.path().join("two.csv"), text).unwrap();
        let failed = run(dir.path(), "ingest {}/t {}/two.csv");
        assert!(failed.stderr.contains(message), "{bad}: {}", failed.stderr);
        assert_eq!(crate::common::json(dir.path(), "inspect {}/t --format json")["version"], 0);

        let report = crate::common::json(dir.path(), "ingest {}/t {}/in.csv --on-error reject --format json");
        assert_eq!((&report["rows"], &report["rejected"]), (&2.into(), &1.into()), "{bad}");
        let rejects = std::fs::read_to_string(report["rejects_file"].as_str().unwrap()).unwrap();
        let reject: serde_json::Value = serde_json::from_str(rejects.trim()).unwrap();
        assert_eq!(reject["line"], 3);
        let reason = reject["reason"].as_str().unwrap();
        assert!(
            message.contains(reason) || reason.contains(message.rsplit("': ").next().unwrap()),
            "{reject}"
        );
        assert!(reject["record"].as_object().is_some_and(|record| !record.is_empty()), "{reject}");
    }
}

#[test]
fn broken_json_lines_are_named_by_their_line() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    let good =
        r#"{"user_id": "u1", "event_timestamp": "2026-01-01T00:00:00Z", "campaign_id": 5, "extra": [1]}"#;
    let lines = [good, "", r#"{"user_id": "u1", "#, "[1, 2]", r#"{"user_id": "u2"}"#];
    std::fs::write(dir.path().join("in.ndjson"), lines.join("\n")).unwrap();
    let failed = run(dir.path(), "ingest {}/t {}/in.ndjson");
    assert!(failed.stderr.contains("in.ndjson, line 3: is not a JSON object"), "{}", failed.stderr);
    let report = crate::common::json(dir.path(), "ingest {}/t {}/in.ndjson --on-error reject --format json");
    assert_eq!((&report["rows"], &report["rejected"]), (&1.into(), &3.into()));
    let left_out = crate::common::note(&report, "columns_left_out");
    assert!(left_out.is_some_and(|text| text.ends_with(": extra")), "{}", report["notes"]);
}

#[test]
fn insert_mode_refuses_keys_that_are_there_and_keys_that_come_twice() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --column k:int64:not-null --column v:utf8 --primary-key k --partitions 2");
    let file = |name: &str, rows: &[(i64, &str)]| {
        let lines: Vec<String> = rows.iter().map(|(k, v)| format!("{k},{v}")).collect();
        std::fs::write(dir.path().join(name), format!("k,v\n{}\n", lines.join("\n"))).unwrap();
    };
    file("a.csv", &[(1, "a"), (2, "a"), (3, "a")]);
    done(dir.path(), "ingest {}/t {}/a.csv --mode insert");
    file("b.csv", &[(4, "b"), (3, "b")]);
    let existing = run(dir.path(), "ingest {}/t {}/b.csv --mode insert");
    assert_eq!(existing.code, 1);
    assert!(existing.stderr.contains("the primary key (3) is in the table already"), "{}", existing.stderr);
    file("c.csv", &[(7, "c"), (8, "c"), (7, "d")]);
    let repeated = run(dir.path(), "ingest {}/t {}/c.csv --mode insert");
    assert!(repeated.stderr.contains("the primary key (7) occurs twice"), "{}", repeated.stderr);
    assert_eq!(crate::common::json(dir.path(), "inspect {}/t --format json")["rows"], 3);
    file("d.csv", &[(0, "d"), (9, "d")]);
    done(dir.path(), "ingest {}/t {}/d.csv --mode insert");
    done(dir.path(), "ingest {}/t {}/b.csv --mode upsert");
    assert_eq!(crate::common::json(dir.path(), "inspect {}/t --format json")["rows"], 6);
}

#[cfg(feature = "cluster")]
#[test]
fn an_empty_token_is_refused_rather_than_taken_for_none() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "\n").unwrap();
    let owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(dir.path().join("token"), owner).unwrap();
    let refused = |arguments: &str, variable: Option<&str>| {
        let mut command = crate::common::evenkeel();
        command
            .args(crate::common::arguments(dir.path(), arguments))
            .envs(variable.map(|token| ("EVENKEEL_CLUSTER_TOKEN", token)));
        let run = crate::common::Run::from(command.output().unwrap());
        assert_eq!(run.code, 2, "{arguments}: {}", run.stderr);
        run.stderr
    };
    done(dir.path(), "create {}/u --column k:int64:not-null --primary-key k --partitions 1");
    for variable in ["", " "] {
        for arguments in
            ["cluster scheduler --listen 127.0.0.1:0", "query {}/u -c x --cluster http://127.0.0.1:9"]
        {
            let stderr = refused(arguments, Some(variable));
            assert!(
                stderr.contains(
                    "EVENKEEL_CLUSTER_TOKEN is empty: generate a token with 'openssl rand -hex 32'"
                ),
                "{stderr}"
            );
        }
    }
    let stderr = refused("cluster scheduler --listen 127.0.0.1:0 --token-file {}/token", None);
    assert!(stderr.contains("/token is empty"), "{stderr}");
}

#[cfg(feature = "cluster")]
#[test]
fn addresses_that_are_none_and_short_deadlines_are_told_as_they_were_given() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/u --column k:int64:not-null --primary-key k --partitions 1");
    let nobody = crate::cluster::TestCluster::start(0);
    for (arguments, message) in [
        ("--cluster localhost", "write http://HOST:PORT, such as http://127.0.0.1:50050"),
        ("--cluster https://127.0.0.1:9", "such as --tls-ca ca.pem"),
        (&format!("--cluster {} --deadline 5ms", nobody.url), "no executor has registered within 5 ms"),
        (
            &format!("--cluster {} --deadline 1500ms", nobody.url),
            "no executor has registered within 1 s 500 ms",
        ),
    ] {
        let run = run(dir.path(), &format!("query {{}}/u -c x {arguments}"));
        assert!(run.code == 1 && run.stderr.contains(message), "{arguments}: {}", run.stderr);
    }
}
