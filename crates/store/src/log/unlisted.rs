//! Finds the newest version without a listing, which is slow in object stores and costs more than
//! reading.
//!
//! `_log/latest.json` names a checkpoint: `{"checkpoint": 64}`. It is a hint. Newer commits are
//! found by reading on, commit by commit, until there are no more. The reader then checks that the
//! commit it started from still exists: commits are cleaned oldest first, so if it does, no commit
//! was missed.

use bytes::Bytes;
use futures::future::join_all;
use serde::{Deserialize, Serialize};

use crate::log::checkpointing::CHECKPOINT_INTERVAL;
use crate::log::error::LogError;
use crate::log::snapshot::Snapshot;
use crate::log::table_log::TableLog;
use evenkeel_model::units::Version;

/// File that names a checkpoint.
const POINTER: &str = "_log/latest.json";
/// Commits requested concurrently.
const COMMITS_AT_ONCE: u64 = 8;
/// Maximum number of commits to read without a listing: twice the number between two checkpoints.
const MAX_COMMITS: u64 = 2 * CHECKPOINT_INTERVAL;

#[derive(Debug, Serialize, Deserialize)]
struct Pointer {
    checkpoint: Version,
}

impl TableLog {
    /// Returns the newest snapshot; `None` if finding it needs a listing.
    pub(super) async fn newest_unlisted(&self) -> Result<Option<Snapshot>, LogError> {
        let pointer = self.pointer().await?;
        match self.base_unlisted(pointer.as_ref()).await? {
            Some(base) => self.newest_behind(&base).await,
            None => Ok(None),
        }
    }

    /// Applies all commits since `base`; `None` if finding them needs a listing.
    pub(super) async fn newest_behind(&self, base: &Snapshot) -> Result<Option<Snapshot>, LogError> {
        let newest = self.read_forward(base.clone()).await;
        // Commits are cleaned oldest first: as long as the base's exists, no later one was missed.
        if self.is_in_log(base).await? { newest } else { Ok(None) }
    }

    /// Returns the snapshot to read on from: the checkpoint that is named, or else the first
    /// version. `None` if it is damaged or was cleaned away.
    async fn base_unlisted(&self, pointer: Option<&Bytes>) -> Result<Option<Snapshot>, LogError> {
        let base = match pointer.and_then(|bytes| serde_json::from_slice::<Pointer>(bytes).ok()) {
            Some(pointer) => self.read_checkpoint(pointer.checkpoint).await,
            None => match self.read(Version::FIRST).await {
                Ok((_, entries)) => Snapshot::first(self.storage().name(), entries),
                Err(error) => Err(error),
            },
        };
        match base {
            Ok(base) => Ok(Some(base)),
            // The file is damaged or was cleaned away, but a listing may find others.
            Err(LogError::Damaged { .. }) => Ok(None),
            Err(error) if error.is_vanished_file() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies the commits after `base`, up to the first that does not exist. `None` if a listing
    /// must decide: a commit is missing although a later one exists, which may have been written
    /// between the two reads, or there are enough commits for a checkpoint among them.
    async fn read_forward(&self, base: Snapshot) -> Result<Option<Snapshot>, LogError> {
        let last = base.version().0 + MAX_COMMITS;
        let mut snapshot = base;
        loop {
            let first = snapshot.version().0 + 1;
            if first > last {
                return Ok(None);
            }
            let versions = (first..first + COMMITS_AT_ONCE).map(Version);
            let commits = join_all(versions.map(async |version| (version, self.read(version).await))).await;
            let mut missing = None;
            for (version, commit) in commits {
                match (commit, missing) {
                    (Ok((_, entries)), None) => {
                        snapshot = snapshot.apply(self.storage().name(), version, entries)?;
                    }
                    (Ok(_), Some(_)) => return Ok(None),
                    (Err(error), _) if error.is_vanished_file() => missing = Some(version),
                    // Errors after the end of the log do not matter.
                    (Err(error), None) => return Err(error),
                    (Err(_), Some(_)) => {}
                }
            }
            if missing.is_some() {
                return Ok(Some(snapshot));
            }
        }
    }

    async fn pointer(&self) -> Result<Option<Bytes>, LogError> {
        match self.storage().read(POINTER).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Names a checkpoint as the one to start from. Not needed in a directory, which is cheap to
    /// list.
    pub(crate) async fn point_to(&self, checkpoint: Version) -> Result<(), LogError> {
        if self.storage().is_local() {
            return Ok(());
        }
        let pointer = Pointer { checkpoint };
        let bytes = serde_json::to_vec(&pointer).map_err(|error| self.unwritable(POINTER, &error))?;
        Ok(self.storage().replace(POINTER, bytes.into()).await?)
    }
}
