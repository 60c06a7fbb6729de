//! Rows and bytes that a new partitioning moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;

use crate::query::{QueryError, SnapshotTable};
use crate::repartition::RepartitionError;
use evenkeel_model::table::{PlacementFunction, TableDefinition, TableSpec};
use evenkeel_model::units::{PartitionId, Version};
use evenkeel_placement::placement::Placement;
use evenkeel_stats::skew::SkewFigures;

/// Kind of change, which decides which rows stay in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Movement {
    /// Twice as many partitions, placed by intervals of the hash: partition p is cut into 2p, which
    /// stays, and 2p + 1, which moves.
    Split,
    /// Half as many: 2p and 2p + 1 become p, and the second one moves.
    Join,
    /// Any other change: a row stays if the number of its partition stays the same.
    Scatter,
}

/// Plan of a new partitioning, with the rows that move counted one by one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepartitionPlan {
    /// Version that is rewritten.
    pub version: Version,
    /// New declaration of the table.
    pub to: TableDefinition,
    /// Kind of change.
    pub movement: Movement,
    /// Rows that a query sees.
    pub rows: u64,
    /// Rows that move to another place.
    pub rows_moving: u64,
    /// Bytes of all portions.
    pub bytes: u64,
    /// Bytes of the rows that move: per partition, in proportion to their share of its rows.
    pub bytes_moving: u64,
    /// Rows of each new partition.
    pub rows_per_partition: Vec<u64>,
    /// Skew of the old partitions.
    pub skew_before: SkewFigures,
    /// Skew of the new partitions.
    pub skew_after: SkewFigures,
}

impl Movement {
    fn of(from: &TableSpec, to: &TableSpec) -> Self {
        let by_interval = |spec: &TableSpec| spec.placement() == PlacementFunction::Ydb;
        let (before, after) = (from.partitions().get(), to.partitions().get());
        match from.partition_key() == to.partition_key() && by_interval(from) && by_interval(to) {
            true if after == before.saturating_mul(2) => Self::Split,
            true if before == after.saturating_mul(2) => Self::Join,
            _ => Self::Scatter,
        }
    }

    /// Whether a row of partition `from` that goes to `to` stays in place.
    fn stays(self, from: PartitionId, to: PartitionId) -> bool {
        match self {
            Self::Split => to.0 == from.0 * 2,
            Self::Join => from.0 == to.0 * 2,
            Self::Scatter => to == from,
        }
    }
}

/// Counts the rows and bytes that move if the rows of `table` are placed as `to` says. Reads the
/// columns of the new partition key; `progress` receives the number of rows read so far.
///
/// # Errors
/// [`RepartitionError`] if a portion cannot be read.
pub async fn plan(
    table: &SnapshotTable,
    to: &TableSpec,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<RepartitionPlan, RepartitionError> {
    let from = table.snapshot().spec();
    let movement = Movement::of(from, to);
    let placement = Placement::of_table(to);
    let context = SessionContext::new();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut counting = stream::iter(from.partitions().ids())
        .map(|partition| count(table, &context, partition, to.partition_key(), &placement))
        .buffered(cores);
    let mut bytes = vec![0u64; from.partitions().len()];
    for portion in table.snapshot().portions() {
        if let Some(bytes) = bytes.get_mut(portion.partition.index()) {
            *bytes += portion.bytes;
        }
    }
    let mut rows_before = Vec::with_capacity(bytes.len());
    let mut rows_after = vec![0u64; to.partitions().len()];
    let (mut rows_moving, mut bytes_moving, mut seen) = (0, 0f64, 0);
    let mut bytes_of = bytes.iter();
    for partition in from.partitions().ids() {
        let counted = counting.try_next().await?.unwrap_or_default();
        let rows: u64 = counted.values().sum();
        let mut moving = 0;
        for (target, rows) in counted {
            if let Some(after) = rows_after.get_mut(target.index()) {
                *after += rows;
            }
            moving += if movement.stays(partition, target) { 0 } else { rows };
        }
        let bytes = bytes_of.next().copied().unwrap_or(0);
        rows_moving += moving;
        bytes_moving += bytes as f64 * moving as f64 / rows.max(1) as f64;
        rows_before.push(rows);
        seen += rows;
        progress(seen);
    }
    Ok(RepartitionPlan {
        version: table.snapshot().version(),
        to: to.definition().clone(),
        movement,
        rows: seen,
        rows_moving,
        bytes: bytes.iter().sum(),
        bytes_moving: bytes_moving as u64,
        skew_before: SkewFigures::from_counts(&rows_before),
        skew_after: SkewFigures::from_counts(&rows_after),
        rows_per_partition: rows_after,
    })
}

/// Counts the visible rows of a partition by the new partition to which they go.
async fn count(
    table: &SnapshotTable,
    context: &SessionContext,
    partition: PartitionId,
    key: &[usize],
    placement: &Placement,
) -> Result<BTreeMap<PartitionId, u64>, RepartitionError> {
    let plan = table.scan_partition(&context.state(), partition, key)?;
    let mut batches = execute_stream(plan, context.task_ctx())?;
    let mut counted: BTreeMap<PartitionId, u64> = BTreeMap::new();
    while let Some(batch) = batches.try_next().await.map_err(QueryError::from)? {
        let columns: Vec<ArrayRef> = batch.columns().iter().map(Arc::clone).collect();
        for target in placement.assign(&columns)? {
            *counted.entry(target).or_default() += 1;
        }
    }
    Ok(counted)
}
