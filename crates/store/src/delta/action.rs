//! Lines of a Delta log, as specified by the Delta protocol (`PROTOCOL.md` of delta-io/delta).

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

/// Kinds that determine the content of a version. The `commitInfo` of other writers has no fixed
/// form.
const KINDS: [&str; 5] = ["protocol", "metaData", "add", "remove", "txn"];

/// Writer and operation of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommitInfo {
    /// Milliseconds since 1970.
    pub(super) timestamp: i64,
    pub(super) operation: String,
    pub(super) operation_parameters: BTreeMap<String, String>,
    pub(super) engine_info: String,
}

/// Requirements on programs that read or write the table.
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
    /// Unique id of the table, which never changes.
    pub(super) id: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    pub(super) format: Format,
    /// JSON in a string, as the protocol requires.
    pub(super) schema_string: String,
    pub(super) partition_columns: Vec<String>,
    pub(super) configuration: BTreeMap<String, Option<String>>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(super) created_time: Option<i64>,
}

/// Format of the files.
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
    /// Path relative to the table, percent-encoded.
    pub(super) path: String,
    #[serde(default)]
    pub(super) partition_values: BTreeMap<String, Option<String>>,
    pub(super) size: u64,
    /// Milliseconds since 1970.
    pub(super) modification_time: i64,
    /// Whether rows were added, rather than moved from files that are removed.
    pub(super) data_change: bool,
    /// JSON in a string, as the protocol requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stats: Option<String>,
}

/// A file is no longer part of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoveFile {
    /// Path relative to the table, percent-encoded.
    pub(super) path: String,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(super) deletion_timestamp: Option<i64>,
    /// Whether rows were removed, rather than moved to files that are added.
    pub(super) data_change: bool,
}

/// Progress of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Transaction {
    pub(super) app_id: String,
    pub(super) version: i64,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub(super) last_updated: Option<i64>,
}

/// Reads the actions of a version that determine its content.
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

/// Serializes the lines of a version.
pub(super) fn write_actions(actions: &[Action]) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = Vec::new();
    for action in actions {
        serde_json::to_writer(&mut bytes, action)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Encodes a path for a URI: letters, digits and `-_.~/=` are kept, every other byte becomes `%`
/// and two hexadecimal digits.
pub(super) fn encode_path(path: &str) -> String {
    let encoded = path.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b'=' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// Decodes the path in a URI. A `%` without two digits is kept, and so is a URI whose bytes are not
/// UTF-8.
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
        // Other writers may encode more than needed, or encode incorrectly.
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
