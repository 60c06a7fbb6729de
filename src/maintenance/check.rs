//! Whether the files of a table are those that were committed.

use futures::stream::{self, StreamExt};
use serde::Serialize;

use crate::log::{PortionDamage, Snapshot, TableLog};
use crate::units::{PartitionId, Version};

/// Files that are read at one time.
const CONCURRENT_READS: usize = 8;

/// A portion whose file is not what was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedPortion {
    /// Path relative to the table.
    pub file: String,
    /// Its partition.
    pub partition: PartitionId,
    /// Rows that were in it.
    pub rows: u64,
    /// What is wrong.
    pub damage: PortionDamage,
}

/// The result of reading every portion and comparing its checksum. The log was read whole, and its checksums were compared, when
/// the table was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableCheck {
    /// Name of the table.
    pub name: String,
    /// The version whose portions were read.
    pub version: Version,
    /// Portions read.
    pub portions: usize,
    /// Bytes that they should have.
    pub bytes: u64,
    /// Those that are damaged, by partition.
    pub damaged: Vec<DamagedPortion>,
}

/// Reads every portion of the snapshot. `progress` is given the bytes checked so far.
pub async fn check(log: &TableLog, snapshot: &Snapshot, progress: &(dyn Fn(u64) + Sync)) -> TableCheck {
    let portions = snapshot.portions();
    let key = &snapshot.spec().definition().primary_key;
    let mut checked = stream::iter(portions.iter())
        .map(|portion| async move {
            let damage = match log.damage(portion).await {
                // The file is what was committed; now, whether what was committed is what it should be.
                None => log.misplaced(portion, key).await,
                damage => damage,
            };
            (portion, damage)
        })
        .buffered(CONCURRENT_READS);
    let (mut damaged, mut bytes) = (Vec::new(), 0);
    while let Some((portion, damage)) = checked.next().await {
        bytes += portion.bytes;
        progress(bytes);
        damaged.extend(damage.map(|damage| DamagedPortion {
            file: portion.path.clone(),
            partition: portion.partition,
            rows: portion.rows,
            damage,
        }));
    }
    TableCheck {
        name: snapshot.spec().name().to_owned(),
        version: snapshot.version(),
        portions: portions.len(),
        bytes,
        damaged,
    }
}
