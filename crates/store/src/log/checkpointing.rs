//! Writes checkpoints, and deletes superfluous ones.

use crate::log::checkpoint::{checkpoint_path, write_checkpoint};
use crate::log::error::LogError;
use crate::log::snapshot::Snapshot;
use crate::log::table_log::TableLog;
use evenkeel_model::units::Version;

/// Number of commits after which a new checkpoint is written.
pub(super) const CHECKPOINT_INTERVAL: u64 = 64;
/// Checkpoints kept in addition to the newest; of the older ones, every sixteenth is kept.
const CHECKPOINTS_KEPT: usize = 2;

impl TableLog {
    /// Writes a checkpoint of `snapshot` if the last one is many commits old, and deletes the
    /// checkpoints that it makes superfluous. Checkpoints only make opening faster: if this fails,
    /// a later commit tries again.
    pub(super) async fn checkpoint_if_due(&self, snapshot: &Snapshot) {
        if !snapshot.version().0.is_multiple_of(CHECKPOINT_INTERVAL) {
            return;
        }
        // If the answer to the put is lost, the client tries again and finds its own file: only the
        // presence of the checkpoint matters, not its writer.
        if let (Ok(_), Ok(files)) = (self.checkpoint(snapshot).await, self.files().await)
            && files.checkpoints.contains(&snapshot.version())
        {
            let _ = self.point_to(snapshot.version()).await;
            let oldest = files.oldest();
            // A cleaning never begins the log at one of these versions, so it does not need them.
            let regular = files
                .checkpoints
                .iter()
                .filter(|version| version.0.is_multiple_of(CHECKPOINT_INTERVAL) && Some(**version) > oldest);
            // The last few are kept in case the newest is damaged.
            let others = regular.rev().skip(1 + CHECKPOINTS_KEPT);
            let needless = others.filter(|version| !version.0.is_multiple_of(CHECKPOINT_INTERVAL * 16));
            for version in needless {
                let _ = self.storage.delete(&checkpoint_path(*version)).await;
            }
        }
    }

    /// Returns the version at which a cleaning begins the log to keep everything from `wanted` on.
    /// It is the version before `wanted` if writers make checkpoints of `wanted`, because they also
    /// delete them when newer ones make them superfluous.
    #[must_use]
    pub(crate) fn beginning_for(wanted: Version) -> Version {
        let regular = wanted != Version::FIRST && wanted.0.is_multiple_of(CHECKPOINT_INTERVAL);
        if regular { Version(wanted.0 - 1) } else { wanted }
    }

    /// Writes a checkpoint of `snapshot`, replacing one that is damaged. Returns `Ok(false)` if
    /// there is one already, or the log now begins after it.
    ///
    /// # Errors
    /// [`LogError`] if it cannot be written.
    pub async fn checkpoint(&self, snapshot: &Snapshot) -> Result<bool, LogError> {
        let path = checkpoint_path(snapshot.version());
        let bytes = write_checkpoint(snapshot).map_err(|error| self.unwritable(&path, &error))?;
        if self.storage.put_new(&path, bytes.clone().into()).await? {
            if self.is_in_log(snapshot).await? {
                return Ok(true);
            }
            // The log was cleaned beyond it meanwhile.
            self.storage.delete(&path).await?;
            return Ok(false);
        }
        match self.read_checkpoint(snapshot.version()).await {
            Ok(_) => Ok(false),
            Err(LogError::Damaged { .. }) => {
                self.storage.replace(&path, bytes.into()).await?;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }
}
