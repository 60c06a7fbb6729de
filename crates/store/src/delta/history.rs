//! Reads a Delta log.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::delta::action::{Action, MetaData, Protocol, decode_path, read_actions};
use crate::delta::error::DeltaError;
use crate::delta::names::{APPLICATION, FOLDER};
use evenkeel_model::units::Version;
use evenkeel_storage::TableStorage;

/// Commits read concurrently.
const CONCURRENT_READS: usize = 16;

/// The Delta log of a table.
#[derive(Debug, Clone)]
pub struct DeltaLog {
    storage: TableStorage,
}

/// Content of the newest version of a Delta log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeltaVersion {
    pub(super) version: u64,
    pub(super) protocol: Option<Protocol>,
    pub(super) metadata: Option<MetaData>,
    /// Paths of the files, relative to the table.
    pub(super) files: BTreeSet<String>,
    /// Version of the table that was exported last.
    pub(super) exported: Option<Version>,
    /// First commit file that another program wrote.
    pub(super) foreign: Option<String>,
}

/// Path of the file that holds the commit of a version.
pub(super) fn commit_path(version: u64) -> String {
    format!("{FOLDER}/{version:020}.json")
}

/// Parses the version from the name of a commit file; `None` for other files.
fn commit_version(file_name: &str) -> Option<u64> {
    let digits = file_name.strip_suffix(".json")?;
    let number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    number.then(|| digits.parse().ok()).flatten()
}

impl DeltaVersion {
    /// Returns the files that readers of this version need, as paths relative to the table.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// Applies the actions of the next version.
    fn apply(&mut self, version: u64, actions: Vec<Action>) {
        self.version = version;
        let mut ours = false;
        for action in actions {
            match action {
                Action::Protocol(protocol) => self.protocol = Some(protocol),
                Action::MetaData(metadata) => self.metadata = Some(metadata),
                Action::Add(file) => {
                    self.files.insert(decode_path(&file.path));
                }
                Action::Remove(file) => {
                    self.files.remove(&decode_path(&file.path));
                }
                Action::Txn(transaction) if transaction.app_id == APPLICATION => {
                    ours = true;
                    self.exported = u64::try_from(transaction.version).ok().map(Version);
                }
                Action::Txn(_) | Action::CommitInfo(_) => {}
            }
        }
        if !ours {
            self.foreign.get_or_insert_with(|| commit_path(version));
        }
    }
}

impl DeltaLog {
    /// Returns the Delta log of a table, whether or not it exists.
    #[must_use]
    pub fn in_storage(storage: &TableStorage) -> Self {
        Self { storage: storage.clone() }
    }

    /// Reads the newest version; `None` if there is no Delta log. Commits are read, checkpoints of
    /// Delta tools are not.
    ///
    /// # Errors
    /// [`DeltaError::Missing`] or [`DeltaError::Damaged`] if it cannot be read completely.
    pub async fn newest(&self) -> Result<Option<DeltaVersion>, DeltaError> {
        let names = self.storage.list(FOLDER).await?;
        let mut versions: Vec<u64> = names.iter().filter_map(|name| commit_version(name)).collect();
        versions.sort_unstable();
        if let Some(missing) = (0..).zip(&versions).find(|(expected, found)| expected != *found) {
            return Err(self.missing(missing.0));
        }
        // A checkpoint without commits: another program cleaned up.
        if versions.is_empty() && names.iter().any(|name| name.contains(".checkpoint")) {
            return Err(self.missing(0));
        }
        let read = |version| async move { Ok::<_, DeltaError>((version, self.read(version).await?)) };
        let mut commits = stream::iter(versions).map(read).buffered(CONCURRENT_READS);
        let mut newest: Option<DeltaVersion> = None;
        while let Some((version, actions)) = commits.try_next().await? {
            newest.get_or_insert_default().apply(version, actions);
        }
        Ok(newest)
    }

    async fn read(&self, version: u64) -> Result<Vec<Action>, DeltaError> {
        let file = commit_path(version);
        let bytes = self.storage.read(&file).await?;
        read_actions(&bytes).map_err(|error| DeltaError::Damaged {
            table: self.storage.name().to_owned(),
            file,
            reason: error.to_string(),
        })
    }

    fn missing(&self, version: u64) -> DeltaError {
        DeltaError::Missing { table: self.storage.name().to_owned(), file: commit_path(version) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn newest(files: &[(&str, &str)]) -> Result<Option<DeltaVersion>, DeltaError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(FOLDER)).unwrap();
        for (name, content) in files {
            std::fs::write(dir.path().join(FOLDER).join(name), content).unwrap();
        }
        DeltaLog::in_storage(&TableStorage::local(dir.path()).unwrap()).newest().await
    }

    const FIRST: &str = "00000000000000000000.json";
    const SECOND: &str = "00000000000000000001.json";
    const ADD: &str = "{\"add\":{\"path\":\"a%20b\",\"partitionValues\":{},\"size\":1,\"modificationTime\":0,\"dataChange\":true}}\n";

    #[tokio::test]
    async fn files_come_and_go_and_writers_are_known_by_their_transactions() {
        assert_eq!(newest(&[]).await.unwrap(), None);
        let ours = format!("{ADD}{{\"txn\":{{\"appId\":\"evenkeel\",\"version\":7}}}}\n");
        let one =
            newest(&[(FIRST, &ours), (".staging-1", "x"), ("_last_checkpoint", "x")]).await.unwrap().unwrap();
        assert_eq!((one.version, one.exported, one.foreign.as_deref()), (0, Some(Version(7)), None));
        assert_eq!(one.files().collect::<Vec<_>>(), ["a b"]);
        let remove = "{\"remove\":{\"path\":\"a%20b\",\"dataChange\":true}}\n";
        let two = newest(&[(FIRST, &ours), (SECOND, remove)]).await.unwrap().unwrap();
        assert_eq!((two.version, two.files().count()), (1, 0));
        assert_eq!(two.foreign.as_deref(), Some("_delta_log/00000000000000000001.json"));
    }

    #[tokio::test]
    async fn a_log_with_a_gap_or_a_damaged_line_is_not_guessed() {
        for files in [&[(SECOND, ADD)][..], &[("00000000000000000009.checkpoint.parquet", "x")]] {
            let error = newest(files).await.unwrap_err();
            assert!(matches!(&error, DeltaError::Missing { file, .. } if file.ends_with(FIRST)), "{error}");
        }
        let error = newest(&[(FIRST, ADD), (SECOND, "{\"add\":{}}")]).await.unwrap_err();
        assert!(
            error.to_string().contains("00000000000000000001.json is not a commit of Delta: missing field"),
            "{error}"
        );
    }
}
