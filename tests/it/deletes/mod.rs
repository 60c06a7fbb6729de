//! Deletes by conditions, by files of keys, and among the changes of another database. The truth is
//! a map.

mod conditions;
mod files;
mod portions;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::common::{done, json};

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
