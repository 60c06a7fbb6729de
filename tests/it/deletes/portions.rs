//! Stored deletes, and inserts and exports after them.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;

use crate::common::{done, json, run};
use crate::deletes::{check, table};

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
