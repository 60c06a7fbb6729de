//! Exports of Spanner, PostgreSQL, Greenplum, MySQL and MongoDB, made here byte by byte.

mod mongodb;
mod postgres;
mod spanner;
mod text;

use std::path::Path;

use crate::common::{done, run};

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Creates a table like an input, ingests it, and returns its rows as NDJSON, ordered by `order`.
fn through_a_table(dir: &Path, input: &str, key: &str, order: &str, options: &str) -> Result<String, String> {
    let _ = std::fs::remove_dir_all(dir.join("t"));
    for command in [
        format!("create {{}}/t --name t --like {input} --primary-key {key} --partitions 2{options}"),
        format!("ingest {{}}/t {input}{options}"),
    ] {
        let found = run(dir, &command);
        if found.code != 0 {
            return Err(found.stderr);
        }
    }
    write(dir, "q.sql", format!("SELECT * FROM t ORDER BY {order}"));
    Ok(done(dir, "query {}/t --format ndjson -f {}/q.sql"))
}
