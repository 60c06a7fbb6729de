//! Merges runs of portions that share keys, and keeps the newest row of each key.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{filter_record_batch, not};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::common::internal_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use datafusion::physical_plan::sorts::streaming_merge::StreamingMergeBuilder;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::query::scan::before_overlap;
use crate::query::scan::key_order::key_ordering;
use evenkeel_store::merge::NewestWins;

/// Portions to merge.
#[derive(Debug, Clone)]
pub(in crate::query) struct Overlapping {
    pub(in crate::query) plan: Arc<dyn ExecutionPlan>,
    /// Positions of the primary-key columns in `plan`, in key order.
    pub(in crate::query) key: Vec<usize>,
    /// Positions of the output's columns in `plan`.
    pub(in crate::query) output: Vec<usize>,
    /// Whether deletes that nothing hides are returned, too, and the last column of the output
    /// marks them.
    pub(in crate::query) keeps_deletes: bool,
}

/// Input partition of [`Overlapping`], which is one portion. A run is a list of them in key order
/// that share no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct RankedInput {
    /// Index of the input partition.
    pub(in crate::query) input: usize,
    /// Age of the portion among those that it is merged with: 0 is the newest.
    pub(in crate::query) rank: u32,
    /// Whether the rows of the portion are deletes.
    pub(in crate::query) deletes: bool,
}

/// Returns the visible rows of runs that share keys, with the columns of `output`.
pub(in crate::query) fn merge_runs(
    runs: &[Vec<RankedInput>],
    below: &Overlapping,
    output: &SchemaRef,
    partition: usize,
    context: &Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let deletes: BTreeSet<u32> =
        runs.iter().flatten().filter(|input| input.deletes).map(|input| input.rank).collect();
    // Runs of one portion each are distinguished by position alone: ties go to the lower run.
    let chained = runs.iter().any(|run| run.len() > 1) || !deletes.is_empty() || below.keeps_deletes;
    let mut runs = runs.to_vec();
    runs.sort_by_key(|run| run.first().map(|first| first.rank));
    let schema = if chained { with_rank(&below.plan.schema()) } else { below.plan.schema() };
    let streams = runs
        .into_iter()
        .map(|run| chain(run, below, &schema, chained, context))
        .collect::<Result<Vec<_>>>()?;
    let mut order = below.key.clone();
    order.extend(chained.then(|| schema.fields().len() - 1));
    let merge = {
        let (schema, context) = (Arc::clone(&schema), Arc::clone(context));
        move |streams| merge_sorted(streams, &schema, &order, partition, &context)
    };
    let ahead = MemoryConsumer::new(format!("NewestWinsExec[{partition}] ahead"))
        .register(&context.runtime_env().memory_pool);
    let merged = before_overlap::merged(streams, below.key.clone(), ahead, merge);
    let mut newest_wins = NewestWins::new(below.key.clone());
    let columns = below.output.clone();
    let marked = below.keeps_deletes.then(|| Arc::clone(output));
    let kept = merged.map(move |batch| {
        let kept = newest_wins.push(&batch?)?;
        if deletes.is_empty() && marked.is_none() {
            return kept.project(&columns).map_err(DataFusionError::from);
        }
        let marks = marks(&kept, &deletes)?;
        match &marked {
            Some(schema) => {
                let rows = kept.project(&columns)?;
                let rows = rows.columns().iter().cloned().chain([Arc::new(marks) as ArrayRef]);
                let options = RecordBatchOptions::new().with_row_count(Some(kept.num_rows()));
                let rows = RecordBatch::try_new_with_options(Arc::clone(schema), rows.collect(), &options);
                rows.map_err(DataFusionError::from)
            }
            None => Ok(filter_record_batch(&kept, &not(&marks)?)?.project(&columns)?),
        }
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(output), kept)))
}

/// Returns a mask of deletes: rows from portions of these ranks.
fn marks(batch: &RecordBatch, deletes: &BTreeSet<u32>) -> Result<BooleanArray> {
    let ranks = batch.columns().last().and_then(|ranks| ranks.as_primitive_opt::<UInt32Type>());
    let Some(ranks) = ranks else { return internal_err!("NewestWinsExec lacks the ranks of rows") };
    Ok(ranks.values().iter().map(|rank| Some(deletes.contains(rank))).collect())
}

/// Merges sorted streams by the columns at `order`. Ties go to the first stream.
fn merge_sorted(
    streams: Vec<SendableRecordBatchStream>,
    schema: &SchemaRef,
    order: &[usize],
    partition: usize,
    context: &TaskContext,
) -> Result<SendableRecordBatchStream> {
    let Some(ordering) = key_ordering(schema, order) else {
        return internal_err!("NewestWinsExec needs the columns of a primary key");
    };
    let reservation = MemoryConsumer::new(format!("NewestWinsExec[{partition}]"))
        .register(&context.runtime_env().memory_pool);
    StreamingMergeBuilder::new()
        .with_streams(streams)
        .with_schema(Arc::clone(schema))
        .with_expressions(&ordering)
        .with_metrics(BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), partition))
        .with_batch_size(context.session_config().batch_size())
        .with_reservation(reservation)
        .with_round_robin_tie_breaker(false)
        .build()
}

/// Returns the rows of a run, one portion after another. Each is opened when the previous one is
/// exhausted.
fn chain(
    run: Vec<RankedInput>,
    below: &Overlapping,
    schema: &SchemaRef,
    ranked: bool,
    context: &Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    if let ([only], false) = (run.as_slice(), ranked) {
        return below.plan.execute(only.input, Arc::clone(context));
    }
    let (plan, context, ranked_schema) = (Arc::clone(&below.plan), Arc::clone(context), Arc::clone(schema));
    let portions = stream::iter(run).map(move |portion| {
        let rows = plan.execute(portion.input, Arc::clone(&context))?;
        let schema = Arc::clone(&ranked_schema);
        Ok::<_, DataFusionError>(rows.map(move |batch| rank(&batch?, portion.rank, &schema)))
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(schema), portions.try_flatten())))
}

/// Returns the batch with its rank as the last column.
fn rank(batch: &RecordBatch, rank: u32, schema: &SchemaRef) -> Result<RecordBatch> {
    let ranks: ArrayRef = Arc::new(UInt32Array::from_value(rank, batch.num_rows()));
    let columns = batch.columns().iter().cloned().chain([ranks]).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Adds the column for the age of a portion, which rows have while they are merged.
fn with_rank(schema: &SchemaRef) -> SchemaRef {
    let rank = Arc::new(Field::new("__rank", DataType::UInt32, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([rank]).collect::<Vec<_>>()))
}
