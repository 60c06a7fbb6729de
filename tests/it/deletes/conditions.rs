//! Deletes by conditions, and deletes that are refused.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use evenkeel::Table;
use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::ingest::{Ingest, IngestError, IngestMode, IngestOptions};

use crate::common::{arguments, done, json, run};
use crate::deletes::{check, table};

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
