//! Deletes by conditions, by files of keys, and among the changes of another database. The truth is
//! a map.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::Int64Type;
use evenkeel::Table;
use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::ingest::{Ingest, IngestError, IngestMode, IngestOptions};
use evenkeel::sink::{OutputFormat, Sink};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{arguments, done, json, run};

type Map = BTreeMap<(i64, String), i64>;

/// A table whose columns outside the key take no NULL, with several portions per partition.
fn table(dir: &Path) -> Map {
    done(
        dir,
        "create {}/t --column v:int64:not-null --column id:int64:not-null --column u:utf8:not-null --column d:double:not-null \
         --primary-key id,u --partition-key u --partitions 4",
    );
    let mut map = Map::new();
    for (file, ids) in [(0, 0..3000), (1, 2000..5000), (2, 4000..6000)] {
        let mut csv = "id,u,v,d\n".to_owned();
        for id in ids {
            let (user, value) = (format!("u{}", id % 97), id * 10 + file);
            writeln!(csv, "{id},{user},{value},0.5").unwrap();
            map.insert((id, user), value);
        }
        std::fs::write(dir.join(format!("{file}.csv")), csv).unwrap();
        done(dir, &format!("ingest {{}}/t {{}}/{file}.csv --compact off"));
    }
    map
}

fn content(dir: &Path) -> Map {
    std::fs::write(dir.join("all.sql"), "SELECT id, u, v FROM t ORDER BY id, u").unwrap();
    let text = done(dir, "query {}/t --format csv -f {}/all.sql");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        ((fields[0].parse().unwrap(), fields[1].to_owned()), fields[2].parse().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

/// Compares every way to see the rows.
fn check(dir: &Path, map: &Map) {
    assert_eq!(content(dir), *map);
    let rows = map.len() as u64;
    assert_eq!(json(dir, "inspect {}/t --format json")["rows"], rows);
    assert_eq!(json(dir, "skew {}/t --format json")["rows"], rows);
    std::fs::write(dir.join("count.sql"), "SELECT count(*), max(id), min(id) FROM t WHERE id >= 0").unwrap();
    let (first, last) = (map.keys().next().unwrap().0, map.keys().next_back().unwrap().0);
    let counted = done(dir, "query {}/t --format csv -f {}/count.sql");
    assert_eq!(counted.lines().nth(1).unwrap(), format!("{rows},{last},{first}"));
    // In the order of the key, and the last ones first.
    for order in ["id, u", "id DESC, u DESC"] {
        std::fs::write(dir.join("some.sql"), format!("SELECT id FROM t ORDER BY {order} LIMIT 7")).unwrap();
        let found = done(dir, "query {}/t --format csv -f {}/some.sql");
        let mut expected: Vec<String> = map.keys().map(|key| key.0.to_string()).collect();
        if order.contains("DESC") {
            expected.reverse();
        }
        assert_eq!(found.lines().skip(1).collect::<Vec<_>>(), expected[..7], "{order}");
    }
}

#[test]
fn rows_that_meet_a_condition_go_and_older_versions_keep_them() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut map = table(dir);
    let before = map.clone();
    let in_range = |id: i64| id > 1000 && id < 2600;
    let expected = map.keys().filter(|key| in_range(key.0)).count();
    let counted = json(dir, "delete {}/t --where (id>1000)AND(id<2600) --dry-run --format json");
    assert_eq!((&counted["rows"], &counted["version"]), (&expected.into(), &serde_json::Value::Null));
    check(dir, &map);
    let deleted = json(dir, "delete {}/t --where (id>1000)AND(id<2600) --format json");
    assert_eq!((&deleted["rows"], &deleted["version"]), (&expected.into(), &4.into()));
    map.retain(|key, _| !in_range(key.0));
    check(dir, &map);
    done(dir, "delete {}/t --where u=$user --param user=u5");
    map.retain(|key, _| key.1 != "u5");
    check(dir, &map);
    // Rows that come later have nothing to do with it, whether they are new or come back.
    std::fs::write(dir.join("back.csv"), "id,u,v,d\n1500,u45,7,1\n9999,u5,8,1\n").unwrap();
    done(dir, "ingest {}/t {}/back.csv --compact off");
    map.extend([((1500, "u45".to_owned()), 7), ((9999, "u5".to_owned()), 8)]);
    check(dir, &map);
    let old = done(dir, "query {}/t --version 3 --format csv -c SELECT(count(*))FROM\"t\"");
    assert_eq!(old.lines().nth(1).unwrap(), before.len().to_string());
    let stored = "query {}/t --format csv -c SELECT(sum(deletes))FROM\"sys\".\"primary_index_portion_stats\"";
    assert_ne!(done(dir, stored).lines().nth(1).unwrap(), "0");
    done(dir, "compact {}/t --max-depth 2");
    check(dir, &map);
    done(dir, "compact {}/t --full");
    check(dir, &map);
    assert_eq!(done(dir, stored).lines().nth(1).unwrap(), "0");
    let history = json(dir, "inspect {}/t --history --format json");
    let operations: Vec<&str> = history["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|commit| commit["operation"].as_str().unwrap())
        .collect();
    assert_eq!(operations[4..6], ["delete", "delete"]);
    done(dir, "clean {}/t --keep 0s");
    check(dir, &map);
    assert!(done(dir, "delete {}/t --where id<0").contains("no row meets the condition"));
}

#[test]
fn a_condition_may_read_other_tables_and_name_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut map = table(dir);
    let gone: Vec<i64> = (0..6000).filter(|id| id % 7 == 3).collect();
    let ids: String = gone.iter().map(|id| format!("{id}\n")).collect();
    std::fs::write(dir.join("gone.csv"), format!("key\n{ids}")).unwrap();
    let condition = "(id)IN(SELECT(key)FROM\"gone\")";
    let expected = map.keys().filter(|key| key.0 % 7 == 3).count();
    let counted = json(
        dir,
        &format!("delete {{}}/t --where {condition} --table gone={{}}/gone.csv --dry-run --format json"),
    );
    assert_eq!(counted["rows"], expected);
    done(dir, &format!("delete {{}}/t --where {condition} --table gone={{}}/gone.csv"));
    map.retain(|key, _| key.0 % 7 != 3);
    check(dir, &map);
    let taken = run(dir, "delete {}/t --where id=1 --table t={}/gone.csv");
    assert!(taken.code == 2 && taken.stderr.contains("has this name"), "{}", taken.stderr);

    done(dir, "create {}/t2 --name orders --column id:int64:not-null --primary-key id --partitions 2");
    std::fs::write(dir.join("orders.csv"), "id\n1\n2\n3\n4\n5\n").unwrap();
    done(dir, "ingest {}/t2 {}/orders.csv");
    done(dir, "delete {}/t2 --where orders.id=4");
    done(dir, "delete {}/t2 --where t.id=1");
    done(dir, "delete {}/t2 --where exists(SELECT(1)FROM\"orders\"x/**/WHERE(x.id=orders.id+1))");
    let left = done(dir, "query {}/t2 --format csv -c SELECT(id)FROM\"t\"ORDER/**/BY(id)");
    assert_eq!(left.lines().skip(1).collect::<Vec<_>>(), ["3", "5"]);
}

#[test]
fn rows_with_the_keys_in_files_go() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut map = table(dir);
    let keys = |ids: std::ops::Range<i64>| {
        let users: StringArray = ids.clone().map(|id| Some(format!("u{}", id % 97))).collect();
        let columns: [(&str, ArrayRef); 3] = [
            ("u", Arc::new(users)),
            ("other", Arc::new(StringArray::from_iter_values(ids.clone().map(|_| "x")))),
            ("id", Arc::new(Int64Array::from_iter_values(ids))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let formats =
        [(OutputFormat::Csv, "csv"), (OutputFormat::Ndjson, "ndjson"), (OutputFormat::Parquet, "parquet")];
    for (number, (format, ending)) in formats.into_iter().enumerate() {
        // Some of the keys have no row.
        let ids = number as i64 * 2000 + 1500..number as i64 * 2000 + 2500;
        let mut sink = Sink::new(Vec::new(), format, &keys(0..0).schema()).unwrap();
        sink.write(&keys(ids.clone())).unwrap();
        std::fs::write(dir.join(format!("keys.{ending}")), sink.finish().unwrap()).unwrap();
        let report =
            json(dir, &format!("ingest {{}}/t {{}}/keys.{ending} --deletes --compact off --format json"));
        assert_eq!(
            (&report["rows"], &report["deletes"], &report["mode"]),
            (&1000.into(), &1000.into(), &"delete".into())
        );
        map.retain(|key, _| !ids.contains(&key.0));
        check(dir, &map);
    }
    // Again, since rows may have come back; and the file of the rows is known for other ingests.
    done(dir, "ingest {}/t {}/0.csv --again --compact off");
    for id in 0..3000 {
        map.insert((id, format!("u{}", id % 97)), id * 10);
    }
    check(dir, &map);
    done(dir, "ingest {}/t {}/keys.csv --deletes --compact off");
    map.retain(|key, _| !(1500..2500).contains(&key.0));
    check(dir, &map);
    assert!(done(dir, "ingest {}/t {}/0.csv").contains("already ingested"));
    done(dir, "ingest {}/t {}/0.csv --deletes --compact off");
    map.retain(|key, _| key.0 >= 3000);
    check(dir, &map);
    done(dir, "compact {}/t --full");
    check(dir, &map);
    std::fs::write(dir.join("no.csv"), "id\n1\n").unwrap();
    std::fs::write(dir.join("null.csv"), "id,u\n1,u1\n2,\n").unwrap();
    for (file, said) in [("no.csv", "has no column 'u'"), ("null.csv", "line 3, column 'u'")] {
        let refused = run(dir, &format!("ingest {{}}/t {{}}/{file} --deletes"));
        assert!(refused.code == 1 && refused.stderr.contains(said), "{}", refused.stderr);
    }
    check(dir, &map);
}

#[test]
fn changes_of_another_database_are_taken_in_their_order() {
    for ending in ["csv", "ndjson", "parquet"] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let mut map = table(dir);
        let mut random = ChaCha8Rng::seed_from_u64(3);
        for round in 0..3 {
            let changes: Vec<(i64, bool, i64)> = (0..4000)
                .map(|number| {
                    (random.random_range(0..600) * 10, random.random_bool(0.4), number + round * 10_000)
                })
                .collect();
            let kept = |change: &(i64, bool, i64)| (!change.1).then_some(change.2);
            let columns: [(&str, ArrayRef); 5] = [
                (
                    "op",
                    Arc::new(
                        changes
                            .iter()
                            .map(|change| Some(if change.1 { "d" } else { "u" }))
                            .collect::<StringArray>(),
                    ),
                ),
                ("v", Arc::new(changes.iter().map(kept).collect::<Int64Array>())),
                ("d", Arc::new(changes.iter().map(kept).collect::<Int64Array>())),
                (
                    "u",
                    Arc::new(
                        changes
                            .iter()
                            .map(|change| Some(format!("u{}", change.0 % 97)))
                            .collect::<StringArray>(),
                    ),
                ),
                ("id", Arc::new(changes.iter().map(|change| Some(change.0)).collect::<Int64Array>())),
            ];
            let batch = RecordBatch::try_from_iter(columns).unwrap();
            let format = OutputFormat::from_path(Path::new(&format!("x.{ending}"))).unwrap();
            let mut sink = Sink::new(Vec::new(), format, &batch.schema()).unwrap();
            sink.write(&batch).unwrap();
            std::fs::write(dir.join(format!("c{round}.{ending}")), sink.finish().unwrap()).unwrap();
            let command = format!("ingest {{}}/t {{}}/c{round}.{ending} --delete-column op=d --compact off");
            done(dir, &command);
            for (id, goes, value) in changes {
                let key = (id, format!("u{}", id % 97));
                match goes {
                    true => map.remove(&key),
                    false => map.insert(key, value),
                };
            }
            check(dir, &map);
            assert!(done(dir, &command).contains("already ingested"));
        }
        done(dir, "compact {}/t --full");
        check(dir, &map);
    }
}

#[test]
fn the_column_that_says_what_rows_delete_may_have_any_type_with_one_text() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut map = table(dir);
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![10, 20]));
    let users: ArrayRef = Arc::new(StringArray::from(vec!["u10", "u20"]));
    let operations: [(&str, ArrayRef, &str); 4] = [
        ("bytes", Arc::new(BinaryArray::from(vec![b" d ".as_slice(), b"D"])), "d"),
        ("number", Arc::new(Int64Array::from(vec![1, 0])), "1"),
        ("truth", Arc::new(BooleanArray::from(vec![true, false])), "true"),
        ("fraction", Arc::new(Float64Array::from(vec![1.0, 0.0])), "1"),
    ];
    for (name, operation, value) in operations {
        let ones: ArrayRef = Arc::new(Int64Array::from(vec![1, 1]));
        let columns =
            [("op", operation), ("id", ids.clone()), ("u", users.clone()), ("v", ones.clone()), ("d", ones)];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut sink = Sink::new(Vec::new(), OutputFormat::Parquet, &batch.schema()).unwrap();
        sink.write(&batch).unwrap();
        std::fs::write(dir.join(format!("{name}.parquet")), sink.finish().unwrap()).unwrap();
        let taken =
            run(dir, &format!("ingest {{}}/t {{}}/{name}.parquet --delete-column op={value} --compact off"));
        if name == "fraction" {
            assert!(taken.code == 1 && taken.stderr.contains("has type Float64"), "{}", taken.stderr);
        } else {
            assert_eq!(taken.code, 0, "{name}: {}", taken.stderr);
            map.remove(&(10, "u10".to_owned()));
            map.insert((20, "u20".to_owned()), 1);
            check(dir, &map);
        }
        done(dir, "ingest {}/t {}/0.csv --again --compact off");
        for id in 0..3000 {
            map.insert((id, format!("u{}", id % 97)), id * 10);
        }
    }
    // Changes that only delete need no other columns, and those that add rows do.
    std::fs::write(dir.join("gone.csv"), "op,id,u\nd,10,u10\nd,11,u11\n").unwrap();
    done(dir, "ingest {}/t {}/gone.csv --delete-column op=d --compact off");
    map.retain(|key, _| !(10..12).contains(&key.0));
    check(dir, &map);
    std::fs::write(dir.join("half.csv"), "op,id,u\nd,12,u12\nu,13,u13\n").unwrap();
    let refused = run(dir, "ingest {}/t {}/half.csv --delete-column op=d");
    assert!(
        refused.code == 1 && refused.stderr.contains("line 3, column 'v': is NULL"),
        "{}",
        refused.stderr
    );
    std::fs::write(dir.join("upper.csv"), "op,id,u,v,d\nD,12,u12,1,1\n").unwrap();
    let noted = done(dir, "ingest {}/t {}/upper.csv --delete-column op=d --compact off");
    assert!(noted.contains("no row deletes: column 'op' is never 'd'"), "{noted}");
}

#[test]
fn files_of_deletes_have_no_values_and_are_no_files_of_rows() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir);
    done(dir, "compact {}/t --full");
    let files = || json(dir, "inspect {}/t --files --format json");
    let before = files();
    std::fs::write(dir.join("c.csv"), "op,id,u,v,d\nd,10,u10,4711,4711\nd,999999,u1,4711,4711\n").unwrap();
    done(dir, "ingest {}/t {}/c.csv --delete-column op=d --compact off");
    let after = files();
    assert_eq!(after["files"], before["files"]);
    assert_eq!((&before["max_depth"], &after["max_depth"]), (&1.into(), &2.into()));
    let history = json(dir, "inspect {}/t --history --format json");
    let last = history["commits"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["operation"], &last["rows"], &last["deletes"]),
        (&"upsert".into(), &0.into(), &2.into())
    );
    if crate::common::test_store().is_none() {
        let named: Vec<&str> =
            after["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
        let newest =
            glob::glob(&format!("{}/t/partition=*/*.parquet", dir.display())).unwrap().map(Result::unwrap);
        let mut checked = 0;
        for path in newest {
            let file = std::fs::File::open(&path).unwrap();
            let reader =
                parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
            if metadata.iter().any(|entry| entry.key == "evenkeel.deletes") {
                assert!(named.iter().all(|name| !path.ends_with(name)));
                for batch in reader.build().unwrap() {
                    let values =
                        batch.unwrap().column_by_name("v").unwrap().as_primitive::<Int64Type>().clone();
                    assert!(values.values().iter().all(|value| *value == 0));
                    checked += values.len();
                }
            }
        }
        assert_eq!(checked, 2);
    }
}

#[test]
fn a_deleted_key_is_free_for_an_insert() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut map = table(dir);
    done(dir, "delete {}/t --where id=2500");
    std::fs::write(dir.join("one.csv"), "id,u,v,d\n2500,u75,1,1\n").unwrap();
    done(dir, "ingest {}/t {}/one.csv --mode insert --compact off");
    map.insert((2500, "u75".to_owned()), 1);
    check(dir, &map);
    std::fs::write(dir.join("two.csv"), "id,u,v,d\n2500,u75,2,2\n").unwrap();
    let refused = run(dir, "ingest {}/t {}/two.csv --mode insert");
    assert!(refused.code == 1 && refused.stderr.contains("(2500, u75)"), "{}", refused.stderr);
    check(dir, &map);
}

#[test]
fn what_is_deleted_is_not_exported() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir);
    done(dir, "compact {}/t --full");
    done(dir, "export delta {}/t");
    done(dir, "delete {}/t --where id<10");
    let refused = run(dir, "export delta {}/t");
    assert!(refused.code != 0 && refused.stderr.contains("overlap"), "{}", refused.stderr);
    done(dir, "compact {}/t --full");
    let exported = json(dir, "export delta {}/t --format json");
    assert_eq!(exported["rows"], 5990);
    // Deletes of nothing are no rows.
    std::fs::write(dir.join("none.csv"), "id,u\n100000,u1\n").unwrap();
    done(dir, "ingest {}/t {}/none.csv --deletes --compact off");
    assert_eq!(json(dir, "export delta {}/t --format json")["rows"], 5990);
}

#[test]
fn wrong_deletes_are_refused_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let map = table(dir);
    std::fs::write(dir.join("c.csv"), "id,u,v,d\n1,u1,1,1\n").unwrap();
    std::fs::write(dir.join("c.ndjson"), "{\"id\":1,\"u\":\"u1\",\"v\":1,\"d\":1}\n").unwrap();
    for (arguments, code, said) in [
        ("delete {}/t --where nothing=1", 1, "there is no column 'nothing'"),
        ("delete {}/t --where id<5)OR(true", 1, "ends before ')'"),
        ("delete {}/t --where true;DROP", 1, "ends before ';'"),
        ("delete {}/t --where id", 1, "id"),
        ("delete {}/t --where id=$x", 2, "$x"),
        ("delete {}/t", 2, "--where"),
        ("delete {}/nothing --where true", 1, "nothing"),
        ("delete {}/t --where true --write-memory 1MiB", 2, "too small"),
        ("ingest {}/t {}/c.csv --delete-column op=d", 1, "has no column 'op'"),
        ("ingest {}/t {}/c.ndjson --delete-column op=d", 1, "no row has a value in column 'op'"),
        ("ingest {}/t {}/0.csv --delete-column op", 2, "write COLUMN=VALUE"),
        ("ingest {}/t {}/0.csv --deletes --mode insert", 2, "cannot be used with"),
        ("ingest {}/t {}/0.csv --deletes --delete-column op=d", 2, "cannot be used with"),
    ] {
        let refused = run(dir, arguments);
        assert_eq!(refused.code, code, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(said), "{arguments}: {}", refused.stderr);
    }
    check(dir, &map);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_by_condition_fails_if_rows_change_meanwhile_and_not_for_a_compaction() {
    let dir = tempfile::tempdir().unwrap();
    table(dir.path());
    let open = || Table::open(arguments(dir.path(), "{}/t").remove(0));
    let keys = |id: i64| {
        let user: ArrayRef = Arc::new(StringArray::from(vec![format!("u{}", id % 97)]));
        RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![id])) as ArrayRef), ("u", user)])
            .unwrap()
    };
    let options = IngestOptions { mode: IngestMode::Delete, ..IngestOptions::default() };
    let begin = async |id: i64| {
        let table = open().await.unwrap();
        let mut ingest =
            Ingest::new(table.log().clone(), table.snapshot().clone(), &options).unwrap().only_on_base();
        ingest.delete(&keys(id)).await.unwrap();
        ingest
    };
    let late = begin(1).await;
    let mut other = open().await.unwrap();
    other
        .delete(futures::stream::iter([Ok::<_, std::io::Error>(keys(2))]), &IngestOptions::default())
        .await
        .unwrap();
    let failed = late.finish(Vec::new()).await;
    assert!(matches!(failed, Err(IngestError::ChangedMeanwhile { .. })), "{failed:?}");
    let in_time = begin(3).await;
    let full = CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() };
    open().await.unwrap().compact(&full, &|_| {}).await.unwrap();
    in_time.finish(Vec::new()).await.unwrap();
    let table = open().await.unwrap();
    assert_eq!(table.inspect().await.unwrap().rows, 6000 - 2);
}
