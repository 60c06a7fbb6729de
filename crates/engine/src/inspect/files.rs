//! Files of a table.

use std::sync::Arc;

use serde::Serialize;

use evenkeel_model::units::{PartitionId, Version};
use evenkeel_store::log::{PortionEntry, Snapshot};

/// One portion that a query reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VisibleFile {
    /// Path relative to the table.
    pub path: String,
    /// Partition whose rows it holds.
    pub partition: PartitionId,
    /// Rows in it.
    pub rows: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// First and last primary key in it.
    pub keys: String,
}

/// The files of a table at one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableFiles {
    /// Name of the table.
    pub name: String,
    /// Version of the table.
    pub version: Version,
    /// Maximum number of files that cover one key. If it is more than 1, the files may hold
    /// superseded rows.
    pub max_depth: u64,
    /// Whether rows of the files may have been deleted, too.
    pub has_deletes: bool,
    /// The files, by partition and age.
    pub files: Vec<VisibleFile>,
}

/// Returns the files of a table at the version of `snapshot`.
pub(crate) fn files(snapshot: &Snapshot) -> TableFiles {
    let types = snapshot.spec().primary_key_types();
    let file = |portion: Arc<PortionEntry>| VisibleFile {
        path: portion.path.clone(),
        partition: portion.partition,
        rows: portion.rows,
        bytes: portion.bytes,
        keys: portion.key_range.display(&types),
    };
    let portions = snapshot.portions();
    TableFiles {
        name: snapshot.spec().name().to_owned(),
        version: snapshot.version(),
        max_depth: snapshot.max_depth(),
        has_deletes: portions.iter().any(|portion| portion.deletes),
        // Deletes that overlap no rows delete nothing; others add to the depth.
        files: portions.into_iter().filter(|portion| !portion.deletes).map(file).collect(),
    }
}
