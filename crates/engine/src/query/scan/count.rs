//! Counts of the visible rows and partition keys of each partition.

use std::sync::Arc;

use ahash::AHashMap;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::query::error::QueryError;
use crate::query::scan::overlap::group_by_overlap;
use crate::query::scan::provider::SnapshotTable;
use evenkeel_model::units::PartitionId;
use evenkeel_placement::placement::Placement;
use evenkeel_stats::skew::KeyWeights;

/// Whether partition keys are counted too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartitionKeys {
    /// Rows only: partitions whose portions do not overlap are not read.
    Skip,
    /// Rows and distinct partition keys: the partition-key columns of all portions are read.
    Count,
}

/// The visible rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VisibleRows {
    /// Visible rows per partition.
    pub(crate) rows_per_partition: Vec<u64>,
    /// Weights of the partition keys, if they were counted. Keys are distinguished by their
    /// placement hash, since keys that share it cannot be placed apart either.
    pub(crate) keys: Option<KeyWeights>,
}

/// Counts the rows that a query would see, without superseded ones. Memory use: the distinct
/// partition keys of one partition per core.
///
/// # Errors
/// [`QueryError`] if a portion cannot be read.
pub(crate) async fn count_visible_rows(
    table: &SnapshotTable,
    keys: PartitionKeys,
) -> Result<VisibleRows, QueryError> {
    let context = SessionContext::new();
    let at_once = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let partitions = table.snapshot().spec().partitions();
    let counted: Vec<(u64, Option<KeyWeights>)> = stream::iter(partitions.ids())
        .map(|partition| count_partition(table, &context, partition, keys))
        .buffered(at_once)
        .try_collect()
        .await?;
    let mut weights = (keys == PartitionKeys::Count).then(KeyWeights::default);
    for (_, of_partition) in &counted {
        if let (Some(weights), Some(of_partition)) = (weights.as_mut(), of_partition) {
            weights.merge(of_partition);
        }
    }
    Ok(VisibleRows { rows_per_partition: counted.into_iter().map(|(rows, _)| rows).collect(), keys: weights })
}

async fn count_partition(
    table: &SnapshotTable,
    context: &SessionContext,
    partition: PartitionId,
    keys: PartitionKeys,
) -> Result<(u64, Option<KeyWeights>), QueryError> {
    let portions = table.portions_of(partition);
    let groups = group_by_overlap(portions);
    let overlap = groups.iter().any(|group| group.len() > 1);
    if keys == PartitionKeys::Skip && !overlap {
        return Ok((groups.iter().flatten().map(|portion| portion.rows).sum(), None));
    }
    let spec = table.snapshot().spec();
    let columns = if keys == PartitionKeys::Count { spec.partition_key().to_vec() } else { Vec::new() };
    let plan = table.scan_partition(&context.state(), partition, &columns)?;
    let placement = Placement::for_table(spec);
    let task = context.task_ctx();
    let counting = tokio::spawn(count_plan(plan, task, placement, keys));
    counting.await.map_err(|error| QueryError::Count { partition, reason: error.to_string() })?
}

async fn count_plan(
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    placement: Placement,
    keys: PartitionKeys,
) -> Result<(u64, Option<KeyWeights>), QueryError> {
    let mut batches = execute_stream(plan, task)?;
    let mut rows = 0;
    let mut rows_of_key: AHashMap<u64, u64> = AHashMap::new();
    while let Some(batch) = batches.try_next().await? {
        rows += batch.num_rows() as u64;
        if keys == PartitionKeys::Count {
            for hash in placement.hash(batch.columns())? {
                *rows_of_key.entry(hash).or_default() += 1;
            }
        }
    }
    let weights = (keys == PartitionKeys::Count).then(|| {
        let mut weights = KeyWeights::default();
        rows_of_key.values().for_each(|rows| weights.add(*rows));
        weights
    });
    Ok((rows, weights))
}
