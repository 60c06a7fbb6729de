//! Versions of the Delta log: their actions, their statistics, and logs that are left alone.

use std::path::Path;

use serde_json::{Value, json as value};

use crate::common::{done, run};
use crate::delta::{export, ingest, log_file};

/// The actions of a version: their kind and content. What is unique stands as 0 or `?`, which is
/// checked to be of its form.
fn actions(dir: &Path, version: u64) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(log_file(dir, version)).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut actions = Vec::new();
    for line in lines {
        let (kind, mut action) = line.as_object().unwrap().clone().into_iter().next().unwrap();
        for clock in ["timestamp", "createdTime", "deletionTimestamp", "modificationTime", "lastUpdated"] {
            if let Some(time) = action.get_mut(clock) {
                assert!(time.as_i64().unwrap() > 1_700_000_000_000, "milliseconds, not {time}");
                *time = 0.into();
            }
        }
        if let Some(path) = action.get_mut("path") {
            let portion = path.as_str().unwrap().to_owned();
            let (folder, file) = portion.split_once('/').unwrap();
            assert_eq!(file.len(), 36 + ".parquet".len());
            *path = format!("{folder}/?").into();
        }
        for unique in ["id", "size", "engineInfo"] {
            if let Some(found) = action.get_mut(unique) {
                *found = "?".into();
            }
        }
        actions.push((kind, action));
    }
    actions
}

fn kinds(dir: &Path, version: u64) -> Vec<String> {
    actions(dir, version).into_iter().map(|(kind, _)| kind).collect()
}

fn declare(dir: &Path) {
    done(
        dir,
        "create {}/t --column k:int64:not-null --column at:timestamp:not-null --column u:uint8 --column f:double --column s:utf8 \
         --primary-key at,k --partition-key k --partitions 1",
    );
}

#[test]
fn the_first_version_says_what_the_table_is_and_what_is_in_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    declare(dir);
    ingest(dir, "k,at,u,f,s\n2,2026-01-01T00:00:00.000001,255,1.5,\"a \"\"b\"\"\"\n1,2026-01-02,,,é\n");
    let report = export(dir, "");
    assert_eq!(
        (&report["version"], &report["delta_version"], &report["files"], &report["rows"], &report["written"]),
        (&1.into(), &0.into(), &1.into(), &2.into(), &true.into())
    );
    let field = |name: &str, kind: &str, nullable: bool, metadata: &str| {
        format!(
            "{{\"name\":\"{name}\",\"type\":\"{kind}\",\"nullable\":{nullable},\"metadata\":{{{metadata}}}}}"
        )
    };
    let fields = [
        field("k", "long", false, "\"evenkeel.type\":\"Int64\""),
        field("at", "timestamp_ntz", false, "\"comment\":\"UTC\",\"evenkeel.type\":\"Timestamp\""),
        field("u", "short", true, "\"evenkeel.type\":\"Uint8\""),
        field("f", "double", true, "\"evenkeel.type\":\"Double\""),
        field("s", "string", true, "\"evenkeel.type\":\"Utf8\""),
    ];
    let stats = "{\"numRecords\":2,\
        \"minValues\":{\"at\":\"2026-01-01T00:00:00.000001\",\"k\":1,\"s\":\"a \\\"b\\\"\",\"u\":255},\
        \"maxValues\":{\"at\":\"2026-01-02T00:00:00.000000\",\"k\":2,\"s\":\"é\",\"u\":255},\
        \"nullCount\":{\"at\":0,\"k\":0,\"s\":0,\"u\":1}}";
    let expected = [
        (
            "commitInfo",
            value!({"timestamp": 0, "operation": "EXPORT", "operationParameters": {"tableVersion": "1"}, "engineInfo": "?"}),
        ),
        (
            "protocol",
            value!({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["timestampNtz"],
                "writerFeatures": ["timestampNtz", "evenkeel"]}),
        ),
        (
            "metaData",
            value!({"id": "?", "name": "t", "format": {"provider": "parquet", "options": {}},
                "schemaString": format!("{{\"type\":\"struct\",\"fields\":[{}]}}", fields.join(",")),
                "partitionColumns": [],
                "configuration": {
                    // Floating point has no order that all readers share.
                    "delta.dataSkippingStatsColumns": "k,at,u,s",
                    "delta.deletedFileRetentionDuration": "interval 36500 days",
                    "delta.enableExpiredLogCleanup": "false",
                    "evenkeel.partitionKey": "[\"k\"]", "evenkeel.partitions": "1", "evenkeel.placement": "ydb",
                    "evenkeel.primaryKey": "[\"at\",\"k\"]"},
                "createdTime": 0}),
        ),
        (
            "add",
            value!({"path": "partition=0000/?", "partitionValues": {}, "size": "?", "modificationTime": 0, "dataChange": true,
                "stats": stats}),
        ),
        ("txn", value!({"appId": "evenkeel", "version": 1, "lastUpdated": 0})),
    ];
    assert_eq!(actions(dir, 0), expected.map(|(kind, action)| (kind.to_owned(), action)));
    // Its size is that of the file.
    let text = std::fs::read_to_string(log_file(dir, 0)).unwrap();
    let add: Value =
        serde_json::from_str(text.lines().find(|line| line.starts_with("{\"add\"")).unwrap()).unwrap();
    let file = dir.join("t").join(add["add"]["path"].as_str().unwrap());
    assert_eq!(add["add"]["size"].as_u64(), Some(file.metadata().unwrap().len()));
}

#[test]
fn each_change_is_the_next_version_and_no_change_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:int64:not-null --column s:utf8 --primary-key k --partitions 1");
    assert_eq!(export(dir, "")["files"], 0);
    assert_eq!(kinds(dir, 0), ["commitInfo", "protocol", "metaData", "txn"]);
    assert_eq!(actions(dir, 0)[1].1["minReaderVersion"], 1);
    ingest(dir, "k,s\n1,a\n2,b\n");
    assert_eq!(export(dir, "")["added"], 1);
    assert_eq!(kinds(dir, 1), ["commitInfo", "add", "txn"]);
    for _ in 0..2 {
        assert!(
            done(dir, "export delta {}/t")
                .starts_with("t: nothing to write, version 1 of the Delta log has the files"),
        );
    }
    // Rows that do not overlap are added as they are; others must be merged.
    ingest(dir, "k,s\n3,c\n");
    assert_eq!(export(dir, "")["files"], 2);
    ingest(dir, "k,s\n2,later\n");
    let refused = run(dir, "export delta {}/t");
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("2 portions of partition 0 overlap in keys")
            && refused.stderr.contains("--compact"),
        "{}",
        refused.stderr
    );
    let merged = export(dir, "--compact");
    assert_eq!(
        (&merged["delta_version"], &merged["removed"], &merged["added"], &merged["rows"]),
        (&3.into(), &1.into(), &1.into(), &3.into()),
        "the file that overlaps with none stays: {merged}"
    );
    assert_eq!(merged["compaction"]["rows_superseded"], 1);
    assert_eq!(kinds(dir, 3), ["commitInfo", "remove", "add", "txn"]);
    // A column that is added is in the next version, without statistics: of files that stay none
    // were told. The id stays.
    done(dir, "alter {}/t --add-column at:datetime");
    let added = export(dir, "");
    assert_eq!((&added["delta_version"], &added["added"]), (&4.into(), &0.into()));
    assert_eq!(kinds(dir, 4), ["commitInfo", "protocol", "metaData", "txn"]);
    let metadata = &actions(dir, 4)[2].1;
    assert_eq!(metadata["configuration"]["delta.dataSkippingStatsColumns"], "k,s");
    let id = |version: u64| {
        let text = std::fs::read_to_string(log_file(dir, version)).unwrap();
        let line = text.lines().find(|line| line.starts_with("{\"metaData\"")).unwrap();
        serde_json::from_str::<Value>(line).unwrap()["metaData"]["id"].clone()
    };
    assert_eq!(id(0), id(4));
    // What is done with the log of the table alone is no change.
    done(dir, "alter {}/t --add-column later:utf8");
    done(dir, "export delta {}/t --without later");
    assert!(!log_file(dir, 5).exists());
}

#[test]
fn statistics_are_told_of_columns_alone_that_have_them_in_every_file() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(
        dir,
        "create {}/t --column k:int64:not-null --column s:utf8 --column d:date32 --primary-key k --partitions 1",
    );
    let told = |version: u64| {
        let actions = actions(dir, version);
        let metadata = actions.iter().find(|(kind, _)| kind == "metaData");
        metadata.map(|(_, metadata)| metadata["configuration"]["delta.dataSkippingStatsColumns"].clone())
    };
    ingest(dir, "k,s,d\n1,a,2026-01-01\n");
    export(dir, "");
    assert_eq!(told(0), Some("k,s,d".into()));
    // Only NULLs are known too.
    ingest(dir, "k,s,d\n2,,\n");
    export(dir, "");
    assert_eq!(told(1), None);
    ingest(dir, &format!("k,s,d\n3,{},2026-01-01\n", "é".repeat(33)));
    export(dir, "");
    assert_eq!(told(2), Some("k,d".into()), "long text has no exact bounds");
    ingest(dir, "k,s,d\n4,b,0000-03-15\n");
    export(dir, "");
    assert_eq!(told(3), Some("k".into()), "readers differ in what year 0 is");
    // The other files stay, so that what was not told of them is not told of new ones.
    ingest(dir, "k,s,d\n5,b,2026-01-01\n");
    export(dir, "");
    assert_eq!(told(4), None);
    let stats = actions(dir, 4)[1].1["stats"].as_str().unwrap().to_owned();
    assert_eq!(
        stats,
        "{\"numRecords\":1,\"minValues\":{\"k\":5},\"maxValues\":{\"k\":5},\"nullCount\":{\"k\":0}}"
    );
}

#[test]
fn integers_beyond_those_of_delta_are_refused_by_column_value_and_file() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:uint64:not-null --column u:uint64 --primary-key k --partitions 1");
    ingest(dir, "k,u\n1,9223372036854775807\n2,\n");
    assert_eq!(export(dir, "")["converted"], value!(["k", "u"]));
    ingest(dir, "k,u\n3,9223372036854775808\n");
    let refused = run(dir, "export delta {}/t");
    assert_eq!(refused.code, 1);
    for part in [
        "column 'u' (Uint64) holds 9223372036854775808 in partition=0000/",
        "9223372036854775807",
        "--without u",
    ] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert!(!log_file(dir, 1).exists());
    assert_eq!(export(dir, "--without u")["left_out"], value!(["u"]));
    // A column that comes back is looked at in every file, also in those that the Delta log has
    // already.
    ingest(dir, "k,u\n4,1\n");
    let refused = run(dir, "export delta {}/t");
    assert!(refused.stderr.contains("holds 9223372036854775808"), "{}", refused.stderr);
    let unknown = run(dir, "export delta {}/t --without x");
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("the table does not have; it has: k, u"), "{}", unknown.stderr);
    assert_eq!(run(dir, "export delta {}/t --without k,u").code, 2);
}

#[test]
fn a_log_of_another_writer_or_with_a_gap_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:int64:not-null --primary-key k --partitions 1");
    ingest(dir, "k\n1\n");
    export(dir, "");
    std::fs::write(
        log_file(dir, 1),
        "{\"commitInfo\":{}}\n{\"remove\":{\"path\":\"x\",\"dataChange\":true}}\n",
    )
    .unwrap();
    let foreign = run(dir, "export delta {}/t");
    assert!(
        foreign.stderr.contains("00000000000000000001.json was not written by evenkeel"),
        "{}",
        foreign.stderr
    );
    // Cleaning needs to know which files it names, whoever wrote it.
    done(dir, "clean {}/t --keep 0s");
    std::fs::write(log_file(dir, 1), "{\"add\":{}}\n").unwrap();
    for command in ["export delta {}/t", "clean {}/t"] {
        let damaged = run(dir, command);
        assert_eq!(damaged.code, 1);
        assert!(
            damaged.stderr.contains("00000000000000000001.json is not a commit of Delta"),
            "{}",
            damaged.stderr
        );
    }
    std::fs::rename(log_file(dir, 0), log_file(dir, 2)).unwrap();
    let missing = run(dir, "export delta {}/t");
    assert!(missing.stderr.contains("00000000000000000000.json is missing"), "{}", missing.stderr);
    // What the message advises.
    std::fs::remove_dir_all(dir.join("t/_delta_log")).unwrap();
    assert_eq!(export(dir, "")["delta_version"], 0);
}
