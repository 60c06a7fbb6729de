//! Names in a Delta log.

/// Folder of the Delta log, relative to the table.
pub(super) const FOLDER: &str = "_delta_log";

/// Name that identifies the writer in the log: as the application of the transaction, and as the
/// feature that keeps other writers out.
pub(super) const APPLICATION: &str = "evenkeel";
