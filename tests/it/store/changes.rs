//! Columns that are added, and tables that are repartitioned.

use crate::common::{done, json, run};
use crate::store::{count, table};

#[test]
fn a_column_can_be_added_and_other_changes_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 2", 3, |commit| (0..20).map(|k| format!("{k},v{commit}\n")).collect());
    assert!(
        done(dir, "alter {}/t --add-column country:utf8 --add-column age:uint8").contains("country Utf8")
    );
    std::fs::write(dir.join("new.csv"), "k,v,country,age\n3,new,pt,40\n99,new,de,41\n").unwrap();
    done(dir, "ingest {}/t {}/new.csv --compact off");
    let sql = "SELECT/**/count(*),count(country),min(country),sum(age)/**/FROM/**/t";
    let select = |options: &str| {
        done(dir, &format!("query {{}}/t --format csv -c {sql} {options}")).lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(select(""), "21,2,de,81");
    done(dir, "compact {}/t --full");
    assert_eq!(select(""), "21,2,de,81");
    let filtered = "SELECT/**/k/**/FROM/**/t/**/WHERE/**/age=40";
    assert_eq!(done(dir, &format!("query {{}}/t --format csv -c {filtered}")), "k\n3\n");
    assert_eq!(count(dir, "--version 3"), "20,190,1");
    for (arguments, code, message) in [
        ("alter {}/t", 2, "no change given"),
        ("alter {}/t --add-column v:utf8", 2, "column 'v' exists already"),
        ("alter {}/t --add-column w:utf8:not-null", 2, "cannot be added as NOT NULL"),
        ("alter {}/t --add-column w", 2, "--add-column 'w': has no type"),
        ("alter {}/t --ttl k=1d", 2, "'k' of type Int64; it must be a date or a point in time"),
        ("alter {}/t --ttl nosuch=1d", 2, "names column 'nosuch', which is not declared"),
        ("alter {}/t --ttl k=1", 2, "write a whole number above 0 with us, ms, s, m, h or d"),
        ("alter {}/t --ttl v=1d", 2, "not in the primary key"),
        ("alter {}/t --ttl v", 2, "write column=length"),
    ] {
        let refused = run(dir, arguments);
        assert_eq!(refused.code, code, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
    assert_eq!(json(dir, "inspect {}/t --format json")["columns"].as_array().unwrap().len(), 4);
}

#[test]
fn repartitioning_says_what_moves_and_moves_exactly_that() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 4", 5, |commit| {
        (0..4000).map(|k| format!("{},v{commit}\n", k * (commit + 1))).collect()
    });
    let before = count(dir, "");
    for (flags, to, movement) in [
        ("--partitions 8", 8, "split"),
        ("--partitions 2", 2, "join"),
        ("--partitions 5", 5, "scatter"),
        ("--placement ydb-modulo", 4, "scatter"),
    ] {
        let plan = json(dir, &format!("repartition {{}}/t {flags} --dry-run --format json"))["plan"].clone();
        let name = format!("new{to}{movement}");
        let done_ = json(dir, &format!("repartition {{}}/t {flags} --to {{}}/{name} --format json"));
        assert_eq!(done_["plan"], plan);
        assert_eq!(plan["movement"], movement);
        let (rows, moving) = (plan["rows"].as_u64().unwrap(), plan["rows_moving"].as_u64().unwrap());
        let share = moving as f64 / rows as f64;
        if movement == "scatter" {
            assert!(share > 0.5, "{plan}");
        } else {
            assert!((share - 0.5).abs() < 0.03, "{plan}");
        }
        let overview = json(dir, &format!("inspect {{}}/{name} --format json"));
        let found: Vec<&serde_json::Value> =
            overview["partitions"].as_array().unwrap().iter().map(|p| &p["rows"]).collect();
        assert_eq!(found, plan["rows_per_partition"].as_array().unwrap().iter().collect::<Vec<_>>());
        assert_eq!(found.len(), to);
        let sql = "SELECT/**/count(*),sum(k),count(DISTINCT/**/v)/**/FROM/**/t";
        let after = done(dir, &format!("query {{}}/{name} --format csv -c {sql}"));
        assert_eq!(after.lines().nth(1).unwrap(), before);
        // The inputs are known there too.
        assert!(done(dir, &format!("ingest {{}}/{name} {{}}/0.csv")).contains("already ingested"));
    }
    for (arguments, code, message) in [
        ("repartition {}/t --partitions 8", 2, "--to <NEW_DIR>"),
        (
            "repartition {}/t --partitions 4 --dry-run",
            2,
            "already has this partition key, number of partitions and placement",
        ),
        ("repartition {}/t --partitions 8 --to {}/t", 1, "is not empty; choose a new directory"),
        ("repartition {}/t --partitions 8 --to {}/t/sub", 1, "lies within the table"),
        (
            "create {}/t/partition=0000/u --column k:int64:not-null --primary-key k",
            1,
            "lies within the table",
        ),
        ("repartition {}/t --partition-key v --to {}/x", 2, "'v' is not in the primary key"),
        ("repartition {}/t --partitions 0 --to {}/x", 2, "a table has 1 to"),
    ] {
        let refused = run(dir, arguments);
        assert_eq!(refused.code, code, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
    assert_eq!(count(dir, ""), before);
}
