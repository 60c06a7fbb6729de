//! The Delta log beside the files of a table. What other engines read of it is tested by
//! `tests/python/run_delta.sh`.

mod files;
mod log;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{done, json};

/// Ingests lines of CSV with one commit.
fn ingest(dir: &Path, lines: &str) {
    std::fs::write(dir.join("rows.csv"), lines).unwrap();
    done(dir, "ingest {}/t {}/rows.csv --again --compact off");
}

fn export(dir: &Path, options: &str) -> Value {
    json(dir, &format!("export delta {{}}/t --format json {options}"))
}

fn log_file(dir: &Path, version: u64) -> PathBuf {
    dir.join(format!("t/_delta_log/{version:020}.json"))
}
