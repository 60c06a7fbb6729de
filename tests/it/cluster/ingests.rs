//! Ingests on a cluster.

use std::path::Path;
use std::sync::Arc;

use crate::cluster::{TestCluster, query_file};
use crate::common::{done, json};

#[test]
fn an_ingest_gives_the_table_that_it_gives_here() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "generate ad-events --rows 60000 --rows-per-file 10000 --duplicate-share 0.2 --out {}/in");
    let csv = query_file(dir, "all.sql", "SELECT * FROM t ORDER BY event_timestamp, user_id, campaign_id");
    let rows = |table: &str| done(dir, &format!("query {{}}/{table} {csv} --format csv"));
    let cluster = TestCluster::start(2);
    done(dir, "create {}/t1 --ddl data/ad_events.sql");
    done(dir, "create {}/t2 --ddl data/ad_events.sql");
    let here = json(dir, "ingest {}/t1 {}/in --compact off --format json");
    let there = cluster.json(dir, "ingest {}/t2 {}/in --compact off --format json");
    for field in ["rows", "rejected", "bytes_read", "version", "sources"] {
        assert_eq!(here[field], there[field], "{field}");
    }
    assert_eq!(rows("t1"), rows("t2"));
    assert_eq!(here["rows_per_partition"], there["rows_per_partition"]);
    assert!(done(dir, "check {}/t2 --all").contains(" 0 damaged"));
    // A partition is written by one task, and its portions share no key.
    assert_eq!(
        json(dir, "inspect {}/t2 --format json")["rows"],
        json(dir, "inspect {}/t2 --format json")["stored_rows"]
    );
    // The same inputs again are skipped, some and all.
    let again = cluster.json(dir, "ingest {}/t2 {}/in --format json");
    assert!(again["version"].is_null() && again["sources"][5]["skipped_since"] == 1, "{again}");
    // Text, packed text and other formats; later inputs win.
    let table = query_file(dir, "table.sql", "SELECT * FROM t");
    done(dir, &format!("query {{}}/t1 {table} --output {{}}/in/rows.csv"));
    done(dir, &format!("query {{}}/t1 {table} --output {{}}/in/rows.ndjson"));
    let packed = zstd::encode_all(std::fs::read(dir.join("in/rows.csv")).unwrap().as_slice(), 3).unwrap();
    std::fs::write(dir.join("in/rows.csv.zst"), packed).unwrap();
    for table in ["t3", "t4"] {
        done(dir, &format!("create {{}}/{table} --ddl data/ad_events.sql"));
        let inputs = "{}/in/rows.ndjson {}/in/rows.csv {}/in/rows.csv.zst {}/in/ad-events-0001.parquet";
        let ingest = format!("ingest {{}}/{table} {inputs} --compact off --format json");
        let report = if table == "t3" { json(dir, &ingest) } else { cluster.json(dir, &ingest) };
        assert_eq!(report["rows"].as_u64(), here["rows"].as_u64().map(|_| report["rows"].as_u64().unwrap()));
    }
    assert_eq!(rows("t3"), rows("t4"));
}

#[test]
fn of_equal_keys_the_last_in_input_order_wins_however_inputs_are_split() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    const CREATE: &str =
        "--column k:uint64:not-null --column v:uint64 --column pad:uint64 --primary-key k --partitions 8";
    done(dir, &format!("create {{}}/t1 {CREATE}"));
    done(dir, &format!("create {{}}/t2 {CREATE}"));
    // One file with several row groups that hold the same keys, large enough to be read by several
    // tasks.
    write_parquet(&dir.join("many.parquet"), 1_200_000, 200_000, 50_000);
    std::fs::write(dir.join("late.csv"), "k,v,pad\n7,1,1\n7,2,2\n8,3,3\n7,4,4\n").unwrap();
    let cluster = TestCluster::start(2);
    done(dir, "ingest {}/t1 {}/many.parquet {}/late.csv --compact off");
    let report = cluster.json(dir, "ingest {}/t2 {}/many.parquet {}/late.csv --compact off --format json");
    assert_eq!((report["rows"].as_u64(), report["sources"].as_array().unwrap().len()), (Some(1_200_004), 2));
    let file = query_file(
        dir,
        "sum.sql",
        "SELECT count(*), sum(k), sum(v), sum(v * k % 1000), sum(pad % 77) FROM t",
    );
    let sums = |table: &str| done(dir, &format!("query {{}}/{table} {file} --format csv"));
    assert_eq!(sums("t1"), sums("t2"));
    let seven = query_file(dir, "seven.sql", "SELECT v FROM t WHERE k = 7");
    assert_eq!(done(dir, &format!("query {{}}/t2 {seven} --format csv")), "v\n4\n");
}

/// A Parquet file of rows whose keys come again after `keys` rows.
fn write_parquet(path: &Path, rows: u64, group: usize, keys: u64) {
    use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
    let mixed = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (row << 7);
    let column = |value: &dyn Fn(u64) -> u64| {
        Arc::new(UInt64Array::from_iter_values((0..rows).map(value))) as ArrayRef
    };
    let batch = RecordBatch::try_from_iter([
        ("k", column(&|row| row % keys)),
        ("v", column(&|row| row)),
        ("pad", column(&mixed)),
    ]);
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .build();
    let batch = batch.unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn what_an_ingest_refuses_here_it_refuses_there() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let cluster = TestCluster::start(1);
    const CREATE: &str = "--column k:int64:not-null --column v:int64 --primary-key k --partitions 4";
    std::fs::write(dir.join("good.csv"), "k,v\n1,1\n2,2\n").unwrap();
    std::fs::write(dir.join("bad.csv"), "k,v\n3,x\n4,4\n,5\n").unwrap();
    std::fs::write(dir.join("twice.csv"), "k,v\n9,1\n9,2\n").unwrap();
    std::fs::write(dir.join("empty.csv"), "").unwrap();
    let tables = ["table-here", "table-there"];
    tables.iter().for_each(|table| drop(done(dir, &format!("create {{}}/{table} {CREATE}"))));
    for (inputs, code) in [
        ("{}/bad.csv", 1),
        ("{}/twice.csv --mode insert", 1),
        ("{}/good.csv {}/empty.csv --mode insert", 0),
        ("{}/good.csv --again --mode insert", 1),
        ("{}/nowhere.csv", 1),
        ("{}/bad.csv --on-error reject --rejects {}/rejects-TABLE.ndjson", 0),
    ] {
        let run = |table: &str| format!("ingest {{}}/{table} {inputs} --compact off").replace("TABLE", table);
        let (here, there) =
            (crate::common::run(dir, &run("table-here")), cluster.run(dir, &run("table-there")));
        assert_eq!((here.code, there.code), (code, code), "{inputs}\n{}{}", here.stderr, there.stderr);
        assert_eq!(here.stderr, there.stderr.replace("table-there", "table-here"), "{inputs}");
    }
    let rejects = |table: &str| std::fs::read_to_string(dir.join(format!("rejects-{table}.ndjson"))).unwrap();
    assert_eq!(rejects("table-here"), rejects("table-there"));
    let count = query_file(dir, "count.sql", "SELECT count(*), sum(k) FROM t");
    for table in tables {
        assert_eq!(
            done(dir, &format!("query {{}}/{table} {count} --format csv")),
            "count(*),sum(t.k)\n3,7\n"
        );
    }
    // Of an ingest that failed nothing is left but files that no commit names.
    assert!(done(dir, "check {}/table-there").contains(" 0 damaged"));
    let from_pipe = cluster.run(dir, "ingest {}/table-there -");
    assert!(
        from_pipe.stderr.contains("standard input cannot be read by other machines"),
        "{}",
        from_pipe.stderr
    );
}
