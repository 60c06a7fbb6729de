//! The program as its users meet it.

use crate::common::{done, evenkeel, json, run};

#[test]
fn the_demo_tells_the_whole_story() {
    let dir = tempfile::tempdir().unwrap();
    let out = done(dir.path(), "demo --dir {}/demo --rows 30000 --batches 6");
    for expected in [
        "under five partition keys over 16 partitions",
        "date(event_timestamp)",
        "moving hotspot",
        "heavy keys",
        "30,000 rows in 6 commits",
        "clicks of campaign 1 in the last hour",
        "events of one user in time order",
        "idle fraction",
        "verdict: even",
    ] {
        assert!(out.contains(expected), "'{expected}' is missing:\n{out}");
    }
    assert_eq!(json(dir.path(), "inspect {}/demo/ad_events --format json")["rows"], 30_000);
    let temporary = done(dir.path(), "demo --rows 1000 --batches 1 --nodes 1");
    assert!(temporary.contains("the table was temporary"), "{temporary}");
}

#[test]
fn place_prints_hash_and_partition() {
    let dir = tempfile::tempdir().unwrap();
    let text = done(dir.path(), "place --types uint64 --partitions 64 42");
    assert!(
        text.contains("13066772586158965587 (0xb556806fb6d14353)")
            && text.contains("45 of 64 (ydb: min(hash"),
        "{text}"
    );
    let placed =
        json(dir.path(), "place --types uint64 --partitions 64 --placement ydb-modulo --format json 42");
    assert_eq!((&placed["hash"], &placed["partition"]), (&"13066772586158965587".into(), &19.into()));
    let negative = json(dir.path(), "place --types int64 --partitions 12 --format json -1");
    assert_eq!((&negative["hash"], &negative["partition"]), (&"9642548396912002761".into(), &6.into()));
    let two = json(dir.path(), "place --types utf8,utf8 --partitions 12 --format json ab c");
    assert_eq!(two["hash"], u64::from_str_radix("44bc2cf5ad770999", 16).unwrap().to_string());
}

#[test]
fn a_query_is_printed_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --column k:int64:not-null --column v:utf8 --primary-key k --partitions 2");
    std::fs::write(dir.path().join("a.csv"), "k,v\n1,one\n2,\n").unwrap();
    done(dir.path(), "ingest {}/t {}/a.csv");
    let query = |more: &[&str]| {
        let mut command = evenkeel();
        command.arg("query").arg(dir.path().join("t")).args(["-c", "SELECT * FROM t ORDER BY k"]).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let text = |more: &[&str]| String::from_utf8(query(more)).unwrap();
    assert_eq!(text(&[]), " k  v\n 1  one\n 2  NULL\n");
    assert!(text(&["--format", "markdown"]).starts_with("| k | v"));
    assert_eq!(text(&["--format", "json"]), "[{\"k\":1,\"v\":\"one\"},{\"k\":2,\"v\":null}]\n");
    assert_eq!(text(&["--format", "ndjson"]), "{\"k\":1,\"v\":\"one\"}\n{\"k\":2}\n");
    assert_eq!(text(&["--format", "csv"]), "k,v\n1,one\n2,\n");
    assert!(query(&["--format", "parquet"]).starts_with(b"PAR1"));
    assert!(text(&["--rows", "1"]).contains("(1 of 2 rows; --rows COUNT shows more"));
    let file = dir.path().join("out.parquet");
    query(&["--format", "parquet", "--output", &file.display().to_string()]);
    assert!(std::fs::read(file).unwrap().ends_with(b"PAR1"));
}

#[test]
fn explain_shows_what_is_read_of_how_much() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 5000 --out {}/in");
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    done(dir.path(), "ingest {}/t {}/in");
    let all = done(dir.path(), "query {}/t -f queries/events_of_user.sql --param user=u1 --explain");
    assert!(all.contains("16 of 16 partitions, 16 of 16 portions"), "{all}");
    let output = evenkeel()
        .arg("query")
        .arg(dir.path().join("t"))
        .args([
            "-c",
            "SELECT * FROM t WHERE user_id = 'u1' AND event_timestamp = TIMESTAMP '2026-01-01T10:00:00'",
        ])
        .args(["--explain", "--format", "json"])
        .output()
        .unwrap();
    let explained: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(explained["scans"][0]["partitions_read"], 1);
    assert_eq!(explained["scans"][0]["partitions"], 16);
}

#[test]
fn ddl_round_trips_through_create() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/a --ddl data/ad_events.sql");
    let ddl = done(dir.path(), "ddl {}/a");
    std::fs::write(dir.path().join("a.sql"), &ddl).unwrap();
    done(dir.path(), "create {}/b --ddl {}/a.sql");
    assert_eq!(done(dir.path(), "ddl {}/b"), ddl);
}

#[test]
fn notes_tell_what_was_assumed() {
    let dir = tempfile::tempdir().unwrap();
    let created = run(dir.path(), "create {}/t --column k:int64:not-null --primary-key k");
    assert_eq!(created.code, 0);
    assert!(created.stderr.contains("neither --nodes nor --partitions is given"), "{}", created.stderr);
    std::fs::write(
        dir.path().join("t.sql"),
        "CREATE TABLE x (k Int64 NOT NULL, PRIMARY KEY (k)) WITH (STORE = COLUMN)",
    )
    .unwrap();
    let created = run(dir.path(), "create {}/u --ddl {}/t.sql");
    assert!(created.stderr.contains("the table gets 64 partitions, as in YDB"), "{}", created.stderr);
    let created = run(dir.path(), "create {}/v --ddl {}/t.sql --nodes 2");
    assert!(created.stdout.contains("AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 8"), "{}", created.stdout);
    assert_eq!(created.stderr, "");
}

#[test]
fn columns_come_from_a_sample_with_changes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), "id;at;price;zip\n1;31/01/2026;1.5;00123\n").unwrap();
    let created = done(
        dir.path(),
        "create {}/t --like {}/a.csv --delimiter ; --timestamp-format %d/%m/%Y --column id:uint64 --primary-key id --nodes 1",
    );
    for line in ["id Uint64 NOT NULL", "at Date,", "price Double,", "zip Utf8,"] {
        assert!(created.contains(line), "{created}");
    }
    done(dir.path(), "ingest {}/t {}/a.csv --delimiter ; --timestamp-format %d/%m/%Y");
    std::fs::write(dir.path().join("q.sql"), "SELECT id, at, zip FROM t").unwrap();
    assert_eq!(done(dir.path(), "query {}/t -f {}/q.sql --format csv"), "id,at,zip\n1,2026-01-31,00123\n");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    let mut child = evenkeel()
        .args(["inspect", "--format", "json"])
        .arg(dir.path().join("t"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_command_explains_itself() {
    let dir = tempfile::tempdir().unwrap();
    for command in [
        "demo",
        "generate ad-events",
        "create",
        "ingest",
        "query",
        "skew",
        "inspect",
        "ddl",
        "place",
        "export delta",
    ] {
        let help = done(dir.path(), &format!("{command} --help"));
        assert!(help.contains("Example"), "{command} has no example");
        assert!(help.contains("Usage:"), "{command}");
    }
}
