//! Rows and bytes that a new partitioning moves.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;

use crate::query::{QueryError, SnapshotTable};
use crate::repartition::error::RepartitionError;
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
    fn between(from: &TableSpec, to: &TableSpec) -> Self {
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

/// Counts the rows and bytes that move if the rows of `table` are placed by `to`. Reads the columns
/// of the new partition key; `progress` receives the number of rows read so far.
///
/// # Errors
/// [`RepartitionError`] if a portion cannot be read.
pub(crate) async fn plan(
    table: &SnapshotTable,
    to: &TableSpec,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<RepartitionPlan, RepartitionError> {
    let from = table.snapshot().spec();
    let movement = Movement::between(from, to);
    let placement = Placement::for_table(to);
    let context = SessionContext::new();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut counting = stream::iter(from.partitions().ids())
        .map(|partition| count(table, &context, partition, to.partition_key(), &placement))
        .buffered(cores);
    let bytes = bytes_per_partition(table);
    let mut moves = Moves::new(to);
    for (partition, bytes) in from.partitions().ids().zip(&bytes) {
        let counted = counting.try_next().await?.unwrap_or_default();
        moves.add(movement, partition, *bytes, counted);
        progress(moves.rows_before.iter().sum());
    }
    Ok(RepartitionPlan {
        version: table.snapshot().version(),
        to: to.definition().clone(),
        movement,
        rows: moves.rows_before.iter().sum(),
        rows_moving: moves.rows_moving,
        bytes: bytes.iter().sum(),
        bytes_moving: moves.bytes_moving as u64,
        skew_before: SkewFigures::from_counts(&moves.rows_before),
        skew_after: SkewFigures::from_counts(&moves.rows_after),
        rows_per_partition: moves.rows_after,
    })
}

fn bytes_per_partition(table: &SnapshotTable) -> Vec<u64> {
    let mut bytes = vec![0u64; table.snapshot().spec().partitions().len()];
    for portion in table.snapshot().portions() {
        if let Some(bytes) = bytes.get_mut(portion.partition.index()) {
            *bytes += portion.bytes;
        }
    }
    bytes
}

/// Rows of the partitions counted so far, and how many of them move.
struct Moves {
    rows_before: Vec<u64>,
    rows_after: Vec<u64>,
    rows_moving: u64,
    bytes_moving: f64,
}

impl Moves {
    fn new(to: &TableSpec) -> Self {
        let rows_after = vec![0; to.partitions().len()];
        Self { rows_before: Vec::new(), rows_after, rows_moving: 0, bytes_moving: 0.0 }
    }

    /// Adds the next old partition, whose rows are counted by new partition.
    fn add(
        &mut self,
        movement: Movement,
        partition: PartitionId,
        bytes: u64,
        counted: BTreeMap<PartitionId, u64>,
    ) {
        let rows: u64 = counted.values().sum();
        let mut moving = 0;
        for (target, rows) in counted {
            if let Some(after) = self.rows_after.get_mut(target.index()) {
                *after += rows;
            }
            moving += if movement.stays(partition, target) { 0 } else { rows };
        }
        self.rows_before.push(rows);
        self.rows_moving += moving;
        self.bytes_moving += bytes as f64 * moving as f64 / rows.max(1) as f64;
    }
}

/// Counts the visible rows of a partition by new partition.
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

#[cfg(test)]
mod tests {
    use evenkeel_model::units::PartitionCount;

    use super::*;
    use crate::testing::{batch, latest, overlapping_commits, scores};

    #[tokio::test]
    async fn rows_move_as_their_partitions_do() {
        let commits = overlapping_commits();
        let (_folder, table) = scores(&commits).await;
        let player: Vec<ArrayRef> = vec![batch(&latest(&commits)).column(0).clone()];
        let before = Placement::for_table(table.spec()).assign(&player).unwrap();
        for (partitions, movement) in [(8, Movement::Split), (2, Movement::Join), (5, Movement::Scatter)] {
            let change = |definition: &mut TableDefinition| {
                definition.partitions = PartitionCount::new(partitions).unwrap();
            };
            let plan = table.plan_repartition(change, &|_| ()).await.unwrap();
            let to = TableSpec::new(plan.to.clone()).unwrap();
            let after = Placement::for_table(&to).assign(&player).unwrap();
            let stays = |(before, after): (&PartitionId, &PartitionId)| match movement {
                Movement::Split => after.0 % 2 == 0,
                Movement::Join => before.0 % 2 == 0,
                Movement::Scatter => before == after,
            };
            let moving = before.iter().zip(&after).filter(|pair| !stays(*pair)).count();
            assert_eq!((plan.movement, plan.rows_moving), (movement, moving as u64));
            let mut rows = vec![0u64; to.partitions().len()];
            after.iter().for_each(|partition| rows[partition.index()] += 1);
            assert_eq!(plan.rows_per_partition, rows);
            assert_eq!(plan.bytes, table.inspect().await.unwrap().bytes);
            assert!(plan.bytes_moving <= plan.bytes);
        }
        assert!(table.plan_repartition(|_| (), &|_| ()).await.is_err());
        let unknown = |definition: &mut TableDefinition| definition.partition_key = vec!["points".to_owned()];
        assert!(table.plan_repartition(unknown, &|_| ()).await.is_err());
    }
}
