//! The newest version without a listing, which is slow in object stores and costs more than reading.
//!
//! `_log/latest.json` names a checkpoint: `{"checkpoint": 64}`. It is a hint. What is newer is found by reading on, commit by commit, until
//! there is none. A reader then looks whether the commit that it began with is still there: since commits are cleaned away oldest first, it has missed
//! nothing if so.

use bytes::Bytes;
use futures::future::join_all;
use serde::{Deserialize, Serialize};

use crate::log::commit::CHECKPOINT_INTERVAL;
use crate::log::{LogError, Snapshot, TableLog};
use evenkeel_model::units::Version;

/// The file that names a checkpoint.
const POINTER: &str = "_log/latest.json";
/// Commits that are asked for at one time.
const COMMITS_AT_ONCE: u64 = 8;
/// More commits than this are not read one by one: twice as many as lie between two checkpoints.
const MOST_COMMITS: u64 = 2 * CHECKPOINT_INTERVAL;

#[derive(Debug, Serialize, Deserialize)]
struct Pointer {
    checkpoint: Version,
}

impl TableLog {
    /// The newest snapshot; none where it takes a listing to find it.
    pub(super) async fn newest_unlisted(&self) -> Result<Option<Snapshot>, LogError> {
        let pointer = self.pointer().await?;
        match self.base_unlisted(pointer.as_ref()).await? {
            Some(base) => self.newest_behind(&base).await,
            None => Ok(None),
        }
    }

    /// `base` with all commits since; none where it takes a listing to find them.
    pub(super) async fn newest_behind(&self, base: &Snapshot) -> Result<Option<Snapshot>, LogError> {
        let newest = self.read_forward(base.clone()).await;
        // Commits are cleaned away oldest first: as long as that of the base is there, none behind it was missed.
        if self.is_in_log(base).await? { newest } else { Ok(None) }
    }

    /// The snapshot to read on from: the checkpoint that is named, else the first version.
    async fn base_unlisted(&self, pointer: Option<&Bytes>) -> Result<Option<Snapshot>, LogError> {
        let base = match pointer.and_then(|bytes| serde_json::from_slice::<Pointer>(bytes).ok()) {
            Some(pointer) => self.read_checkpoint(pointer.checkpoint).await,
            None => match self.read(Version::FIRST).await {
                Ok((_, entries)) => Snapshot::first(self.storage().name(), &entries),
                Err(error) => Err(error),
            },
        };
        match base {
            Ok(base) => Ok(Some(base)),
            // A file that is damaged, or was cleaned away: others may do.
            Err(LogError::Damaged { .. }) => Ok(None),
            Err(error) if error.is_vanished_file() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `base` with the commits behind it, up to the first that is not there; none where the listing has to tell: one is missing and a
    /// later one is there, which may have come between the two reads, or there are so many that a checkpoint must lie among them.
    async fn read_forward(&self, base: Snapshot) -> Result<Option<Snapshot>, LogError> {
        let last = base.version().0 + MOST_COMMITS;
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
                        snapshot = snapshot.apply(self.storage().name(), version, &entries)?;
                    }
                    (Ok(_), Some(_)) => return Ok(None),
                    (Err(error), _) if error.is_vanished_file() => missing = Some(version),
                    // What lies behind the end is nobody's matter.
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

    /// Names a checkpoint as the one to begin with. In a directory, where listing costs little, nobody asks.
    pub(super) async fn point_to(&self, checkpoint: Version) -> Result<(), LogError> {
        if self.storage().is_local() {
            return Ok(());
        }
        let pointer = Pointer { checkpoint };
        let bytes = serde_json::to_vec(&pointer).map_err(|error| self.unwritable(POINTER, &error))?;
        Ok(self.storage().replace(POINTER, bytes.into()).await?)
    }
}
