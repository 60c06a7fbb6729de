//! Deletes by files: of keys, and of the changes of another database.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use evenkeel::sink::{OutputFormat, Sink};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{done, json, run};
use crate::deletes::{check, table};

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
