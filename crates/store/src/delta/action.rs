//! The lines of a Delta log, by the Delta protocol (`PROTOCOL.md` of delta-io/delta).

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// One line, tagged by its kind: `{"add": {...}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Action {
    CommitInfo(CommitInfo),
    Protocol(Protocol),
    MetaData(MetaData),
    Remove(RemoveFile),
    Add(AddFile),
    Txn(Transaction),
}

/// The kinds that decide what a version holds. What other writers put into their `commitInfo` has no fixed form.
const KINDS: [&str; 5] = ["protocol", "metaData", "add", "remove", "txn"];

/// Who wrote a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommitInfo {
    /// Milliseconds since 1970.
    pub(super) timestamp: i64,
    pub(super) operation: String,
    pub(super) operation_parameters: BTreeMap<String, String>,
    pub(super) engine_info: String,
}

/// What a program must know to read or write the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Protocol {
    pub(super) min_reader_version: u32,
    pub(super) min_writer_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reader_features: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) writer_features: Option<Vec<String>>,
}

/// The declaration of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetaData {
    /// Stays the same for ever.
    pub(super) id: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    pub(super) format: Format,
    /// JSON in a text, as the protocol has it.
    pub(super) schema_string: String,
    pub(super) partition_columns: Vec<String>,
    pub(super) configuration: BTreeMap<String, Option<String>>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(super) created_time: Option<i64>,
}

/// The format of the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Format {
    pub(super) provider: String,
    #[serde(default)]
    pub(super) options: BTreeMap<String, String>,
}

/// A file becomes part of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AddFile {
    /// Relative to the table, percent-encoded.
    pub(super) path: String,
    #[serde(default)]
    pub(super) partition_values: BTreeMap<String, Option<String>>,
    pub(super) size: u64,
    /// Milliseconds since 1970.
    pub(super) modification_time: i64,
    /// Whether rows came, rather than being moved from files that are removed.
    pub(super) data_change: bool,
    /// JSON in a text, as the protocol has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<String>,
}

/// A file is no longer part of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoveFile {
    /// As in [`AddFile`].
    pub(super) path: String,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(super) deletion_timestamp: Option<i64>,
    /// Whether rows went, rather than being moved to files that are added.
    pub(super) data_change: bool,
}

/// How far an application has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Transaction {
    pub(super) app_id: String,
    pub(super) version: i64,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(super) last_updated: Option<i64>,
}

/// The actions of a version that decide what it holds.
pub(super) fn read_actions(bytes: &[u8]) -> Result<Vec<Action>, serde_json::Error> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let mut actions = Vec::new();
    for line in lines {
        let kinds: BTreeMap<String, IgnoredAny> = serde_json::from_slice(line)?;
        if kinds.keys().any(|kind| KINDS.contains(&kind.as_str())) {
            actions.push(serde_json::from_slice(line)?);
        }
    }
    Ok(actions)
}

/// The lines of a version.
pub(super) fn write_actions(actions: &[Action]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for action in actions {
        serde_json::to_writer(&mut bytes, action)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// A path as a URI has it: letters, digits and `-_.~/=` as they are, each other byte as `%` and two digits.
pub(super) fn encode_path(path: &str) -> String {
    let encoded = path.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b'=' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// The path that a URI names; a `%` without two digits, and bytes that are no text, stand for themselves.
pub(super) fn decode_path(uri: &str) -> String {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| *first == b'%' && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = byte.and_then(|_| after.get(2..)).unwrap_or(after);
    }
    String::from_utf8(bytes).unwrap_or_else(|_| uri.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn paths_are_encoded_as_uris_are() {
        for (path, encoded) in [
            ("partition=0007/a-b_c.parquet", "partition=0007/a-b_c.parquet"),
            ("a b%2F?#é", "a%20b%252F%3F%23%C3%A9"),
            ("", ""),
        ] {
            assert_eq!(encode_path(path), encoded);
            assert_eq!(decode_path(encoded), path);
        }
        // What other writers encode more, or wrongly.
        assert_eq!(decode_path("partition%3D0007/x%zz%2"), "partition=0007/x%zz%2");
        assert_eq!(decode_path("%ff"), "%ff");
    }

    #[test]
    fn kinds_that_decide_nothing_are_passed_over_and_others_must_be_whole() {
        let lines = b"{\"commitInfo\":{\"timestamp\":\"any\"}}\n{\"domainMetadata\":{}}\n\n{\"txn\":{\"appId\":\"a\",\"version\":3}}\n";
        let txn = Action::Txn(Transaction { app_id: "a".into(), version: 3, last_updated: None });
        assert_eq!(read_actions(lines).unwrap(), [txn]);
        assert!(read_actions(b"{\"add\":{\"size\":1}}").is_err());
        assert!(read_actions(b"add").is_err());
    }

    proptest! {
        #[test]
        fn every_path_is_decoded_to_itself(path in ".*") {
            prop_assert_eq!(decode_path(&encode_path(&path)), path);
        }
    }
}
