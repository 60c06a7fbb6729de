//! The store over time: compaction, cleaning, checking, altering, expiry and repartitioning, by the
//! commands that users give.

mod changes;
mod cleaning;
mod compaction;
mod damage;
mod meanwhile;

use std::path::Path;

use crate::common::done;

/// A table of keys with so many commits of one CSV file each; `rows(i)` are the lines of the i-th.
fn table(dir: &Path, flags: &str, commits: u64, rows: impl Fn(u64) -> String) {
    done(dir, &format!("create {{}}/t --column k:int64:not-null --column v:utf8 --primary-key k {flags}"));
    for commit in 0..commits {
        std::fs::write(dir.join(format!("{commit}.csv")), format!("k,v\n{}", rows(commit))).unwrap();
        done(dir, &format!("ingest {{}}/t {{}}/{commit}.csv --compact off"));
    }
}

fn count(dir: &Path, options: &str) -> String {
    let sql = "SELECT/**/count(*),sum(k),count(DISTINCT/**/v)/**/FROM/**/t";
    done(dir, &format!("query {{}}/t --format csv -c {sql} {options}")).lines().nth(1).unwrap().to_owned()
}

/// The portion files of the table.
fn portions(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = glob::glob(&format!("{}/t/partition=*/*.parquet", dir.display()))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    files.sort();
    files
}
