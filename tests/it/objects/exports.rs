//! Exports that lie in a store.

use std::path::Path as FsPath;

use evenkeel::storage::remote_store;
use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::common::{done, json, project, run, test_store};

/// Puts files of a folder into the store of the tests; gives the URL of the folder there.
fn upload(dir: &FsPath) -> Option<String> {
    let url = format!("{}{}", test_store()?, dir.display());
    let (store, root) = remote_store(&url.parse().unwrap()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for entry in glob::glob(&format!("{}/**/*", dir.display())).unwrap().map(std::result::Result::unwrap) {
        if entry.is_file() {
            let below = entry.strip_prefix(dir).unwrap().to_str().unwrap();
            let path = Path::parse(format!("{root}/{below}")).unwrap();
            runtime.block_on(store.put(&path, std::fs::read(&entry).unwrap().into())).unwrap();
        }
    }
    Some(url)
}

#[test]
fn exports_in_a_store_are_judged_as_those_on_a_disk() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "generate ad-events --rows 40000 --rows-per-file 20000 --out {}/in/events");
    done(dir, "create {}/u --ddl data/ad_events.sql");
    done(dir, "ingest {}/u {}/in/events --compact off");
    for format in ["csv", "ndjson", "parquet"] {
        let sql = "SELECT/**/*/**/FROM/**/ad_events/**/ORDER/**/BY/**/event_id";
        done(dir, &format!("query {{}}/u -c {sql} --output {{}}/in/rows.{format}"));
    }
    std::fs::remove_dir_all(dir.join("u")).unwrap();
    let csv = std::fs::read(dir.join("in/rows.csv")).unwrap();
    std::fs::write(dir.join("in/packed.csv.zst"), zstd::encode_all(csv.as_slice(), 3).unwrap()).unwrap();
    std::fs::create_dir_all(dir.join("in/dump")).unwrap();
    for entry in std::fs::read_dir(project("data/ydb-dump/ads/events")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.join("in/dump").join(entry.file_name())).unwrap();
    }
    let Some(url) = upload(dir) else { return };
    let keys = "--partition-key user_id --primary-key event_timestamp,user_id --format json";
    let evaluated = |input: &str| {
        let mut found = json(dir, &format!("evaluate {input} {keys}"));
        let fields = found.as_object_mut().unwrap();
        fields.retain(|name, _| !name.contains("seconds"));
        // What is proposed depends on where inputs lie.
        found["recommendation"].as_object_mut().unwrap().remove("commands");
        found.to_string().replace(&url, "").replace(dir.to_str().unwrap(), "")
    };
    let inputs = [
        "events",
        "events/*-0001.parquet",
        "rows.csv",
        "rows.ndjson",
        "rows.parquet",
        "packed.csv.zst",
        "dump",
    ];
    for input in inputs {
        assert_eq!(
            evaluated(&format!("{url}/in/{input}")),
            evaluated(&format!("{{}}/in/{input}")),
            "{input}"
        );
    }
    // A sample may lie there too.
    for input in ["rows.parquet", "rows.ndjson", "packed.csv.zst"] {
        let declared = |input: &str| {
            let ddl =
                done(dir, &format!("create {{}}/u --like {input} --primary-key event_timestamp,user_id"));
            std::fs::remove_dir_all(dir.join("u")).unwrap();
            ddl
        };
        assert_eq!(declared(&format!("{url}/in/{input}")), declared(&format!("{{}}/in/{input}")), "{input}");
    }
    let several = run(dir, &format!("create {{}}/u --like {url}/in/events --primary-key user_id"));
    assert!(
        several.code == 1 && several.stderr.contains("must be one file, but it names 2"),
        "{}",
        several.stderr
    );
    // What was ingested from there is known by its content.
    done(dir, "create {}/t --ddl data/ad_events.sql");
    done(dir, &format!("ingest {{}}/t {url}/in/events"));
    let again = json(dir, "ingest {}/t {}/in/events --format json");
    assert!(again["version"].is_null() && again["sources"][1]["skipped_since"] == 1, "{again}");
    for (input, message) in [
        ("nowhere.csv", "there is no such file or folder"),
        ("in/*.nope", "no input matches"),
        ("t", "is a table"),
    ] {
        let refused = run(dir, &format!("evaluate {url}/{input} --partition-key user_id"));
        assert!(refused.code != 0 && refused.stderr.contains(message), "{}", refused.stderr);
    }
}
