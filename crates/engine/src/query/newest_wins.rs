//! Plan node that returns the visible rows of each partition in key order.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning, PhysicalExpr,
    PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, FilterDescription, FilterPushdownPhase,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::sorts::streaming_merge::StreamingMergeBuilder;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};
use futures::stream::{self, StreamExt, TryStreamExt};

use evenkeel_store::merge::NewestWins;

/// Next input of an output partition. Pieces follow each other in key order and share no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// An input partition of `plain`: rows whose keys no other portion has.
    Plain(usize),
    /// Runs that share keys.
    Merged(Vec<Vec<RankedInput>>),
}

/// Input partition of `overlapping`, which is one portion. A run is a list of them in key order
/// that share no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankedInput {
    /// Index of the input partition.
    pub(super) input: usize,
    /// Age of the portion among those that it is merged with: 0 is the newest.
    pub(super) rank: u32,
}

/// Inputs of [`NewestWinsExec`].
#[derive(Debug, Clone)]
pub(super) struct Inputs {
    /// Rows that nothing supersedes, with the columns of the output. A partition is a sequence of
    /// portions in key order.
    pub(super) plain: Option<Arc<dyn ExecutionPlan>>,
    /// Portions that share keys with others, one per partition, with the columns of the output and
    /// of the key.
    pub(super) overlapping: Option<Overlapping>,
}

/// Portions to merge.
#[derive(Debug, Clone)]
pub(super) struct Overlapping {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// Positions of the primary-key columns in `plan`, in key order.
    pub(super) key: Vec<usize>,
    /// Positions of the output's columns in `plan`.
    pub(super) output: Vec<usize>,
}

/// Returns the visible rows of each partition in key order: chains portions, merges those that
/// share keys, and keeps the newest row of each key.
///
/// Output: one partition per table partition. Each reads its pieces one after another. A piece of
/// several runs is merged by the key and, for equal keys, by the age of the portion, newest first,
/// so that the first row of each key is the visible one and the others are dropped. A piece without
/// overlap passes through unchanged.
///
/// Only filters on key columns are pushed below a merge: they keep or drop all rows of a key alike.
/// Every filter is pushed to portions that are not merged.
#[derive(Debug, Clone)]
pub struct NewestWinsExec {
    inputs: Inputs,
    /// Pieces of each output partition, in key order.
    partitions: Arc<Vec<Vec<Piece>>>,
    /// Positions of primary-key columns in the output, in key order, up to the first one that the
    /// output lacks.
    key_prefix: Vec<usize>,
    /// Positions of all primary-key columns in the output.
    key_columns: HashSet<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl NewestWinsExec {
    /// Creates a node with the columns of `schema`. `primary_key` has the position in `schema` of
    /// each primary-key column, if there is one.
    ///
    /// # Errors
    /// [`DataFusionError`] if there is no input, or its columns do not fit.
    pub(super) fn try_new(
        schema: SchemaRef,
        primary_key: &[Option<usize>],
        inputs: Inputs,
        partitions: Arc<Vec<Vec<Piece>>>,
    ) -> Result<Self> {
        let key_prefix: Vec<usize> = primary_key.iter().map_while(|position| *position).collect();
        let equivalence = EquivalenceProperties::new_with_orderings(
            Arc::clone(&schema),
            key_ordering(&schema, &key_prefix),
        );
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            inputs,
            partitions,
            key_prefix,
            key_columns: primary_key.iter().flatten().copied().collect(),
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// Returns the node declared to be partitioned by the hash of `columns` of the output, so that
    /// grouping by them needs no repartitioning. Valid only in plans that combine nothing by
    /// DataFusion's own hash.
    pub(super) fn hashed_by(&self, columns: Vec<Arc<dyn PhysicalExpr>>) -> Self {
        let partitioning = Partitioning::Hash(columns, self.partitions.len());
        let properties = self.properties.as_ref().clone().with_partitioning(partitioning);
        Self { properties: Arc::new(properties), ..self.clone() }
    }
}

/// Ascending order by the columns at `key`; `None` if there are none.
pub fn key_ordering(schema: &SchemaRef, key: &[usize]) -> Option<LexOrdering> {
    let sort_by = |index: &usize| {
        let field = schema.fields().get(*index)?;
        Some(ascending(Arc::new(Column::new(field.name(), *index))))
    };
    LexOrdering::new(key.iter().map(sort_by).collect::<Option<Vec<_>>>()?)
}

fn ascending(expr: Arc<dyn PhysicalExpr>) -> PhysicalSortExpr {
    PhysicalSortExpr::new(expr, arrow::compute::SortOptions { descending: false, nulls_first: true })
}

impl DisplayAs for NewestWinsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let merges: Vec<&Vec<Vec<RankedInput>>> = self
            .partitions
            .iter()
            .flatten()
            .filter_map(|piece| match piece {
                Piece::Merged(runs) => Some(runs),
                Piece::Plain(_) => None,
            })
            .collect();
        let key: Vec<&str> = self
            .key_prefix
            .iter()
            .filter_map(|i| self.schema.fields().get(*i))
            .map(|f| f.name().as_str())
            .collect();
        let portions: usize = merges.iter().flat_map(|runs| runs.iter()).map(Vec::len).sum();
        let runs = merges.iter().map(|runs| runs.len()).max().unwrap_or(0);
        write!(f, "NewestWinsExec: order=[{}], partitions={}", key.join(", "), self.partitions.len())?;
        if !merges.is_empty() {
            write!(f, ", merges={}, portions={portions}, runs<={runs}", merges.len())?;
        }
        match &self.properties.partitioning {
            Partitioning::Hash(columns, _) => {
                let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
                write!(f, ", hashed_by=[{}]", columns.join(", "))
            }
            _ => Ok(()),
        }
    }
}

impl ExecutionPlan for NewestWinsExec {
    fn name(&self) -> &'static str {
        "NewestWinsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        let overlapping = self.inputs.overlapping.as_ref().map(|overlapping| &overlapping.plan);
        self.inputs.plain.iter().chain(overlapping).collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::UnspecifiedDistribution; self.children().len()])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let merged = self.inputs.overlapping.as_ref().map(|overlapping| {
            key_ordering(&overlapping.plan.schema(), &overlapping.key).map(OrderingRequirements::from)
        });
        // The portions of an input partition are sorted and follow each other: nothing needs to
        // sort them.
        self.inputs.plain.iter().map(|_| None).chain(merged).collect()
    }

    /// No input order is maintained but the key's, which [`Self::properties`] declares: a sort by
    /// anything else must not move below the node.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for sort in key_ordering(&self.schema, &self.key_prefix).iter().flatten() {
            if f(&sort.expr)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.len() != self.children().len() {
            return internal_err!(
                "NewestWinsExec has {} inputs, not {}",
                self.children().len(),
                children.len()
            );
        }
        let mut children = children.into_iter();
        let mut node = self.as_ref().clone();
        if let Some(plain) = node.inputs.plain.as_mut() {
            *plain = children.next().unwrap_or_else(|| Arc::clone(plain));
        }
        if let Some(overlapping) = node.inputs.overlapping.as_mut() {
            overlapping.plan = children.next().unwrap_or_else(|| Arc::clone(&overlapping.plan));
        }
        Ok(Arc::new(node))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.check_inputs()?;
        let Some(pieces) = self.partitions.get(partition).cloned() else {
            return internal_err!("NewestWinsExec has no partition {partition}");
        };
        let node = self.clone();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = stream::iter(pieces)
            .map(move |piece| node.read(&piece, partition, &context))
            .try_flatten()
            .inspect_ok(move |batch| metrics.output_rows().add(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        let request = if partition.is_some() { ChildStats::Skip } else { ChildStats::At(None) };
        vec![request; self.children().len()]
    }

    /// Rows below a merge may be dropped, so their number is only an upper bound.
    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        if args.partition().is_some() {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema)));
        }
        let mut inputs = inputs.iter();
        let mut parts = Vec::new();
        if self.inputs.plain.is_some() {
            parts.extend(inputs.next().map(|statistics| statistics.as_ref().clone()));
        }
        if let (Some(overlapping), Some(below)) = (&self.inputs.overlapping, inputs.next()) {
            let mut statistics = below.as_ref().clone().to_inexact().project(Some(&overlapping.output));
            statistics.total_byte_size = Precision::Absent;
            parts.push(statistics);
        }
        Ok(Arc::new(Statistics::try_merge_iter(&parts, &self.schema)?))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let mut description = FilterDescription::new();
        if let Some(plain) = &self.inputs.plain {
            description = description.with_child(ChildFilterDescription::from_child(&parent_filters, plain)?);
        }
        if let Some(overlapping) = &self.inputs.overlapping {
            description = description.with_child(ChildFilterDescription::from_child_with_allowed_indices(
                &parent_filters,
                self.key_columns.clone(),
                &overlapping.plan,
            )?);
        }
        Ok(description)
    }
}

/// Column for the age of a portion while its rows are merged.
fn rank_field() -> Field {
    Field::new("__rank", DataType::UInt32, false)
}

fn with_rank(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone());
    Arc::new(Schema::new(fields.chain([rank_field()]).collect::<Vec<_>>()))
}

impl NewestWinsExec {
    /// Checks that no optimizer unaware of this node has cut or joined the partitions below it.
    fn check_inputs(&self) -> Result<()> {
        let (mut plain, mut overlapping) = (0, 0);
        for piece in self.partitions.iter().flatten() {
            match piece {
                Piece::Plain(_) => plain += 1,
                Piece::Merged(runs) => overlapping += runs.iter().map(Vec::len).sum::<usize>(),
            }
        }
        let count = |plan: Option<&Arc<dyn ExecutionPlan>>| {
            plan.map_or(0, |plan| plan.properties().partitioning.partition_count())
        };
        let found = (
            count(self.inputs.plain.as_ref()),
            count(self.inputs.overlapping.as_ref().map(|overlapping| &overlapping.plan)),
        );
        if found != (plain, overlapping) {
            return internal_err!(
                "NewestWinsExec expects {plain} chains and {overlapping} runs, not {found:?}"
            );
        }
        Ok(())
    }

    fn read(
        &self,
        piece: &Piece,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        match (piece, &self.inputs.plain, &self.inputs.overlapping) {
            (Piece::Plain(input), Some(plain), _) => plain.execute(*input, Arc::clone(context)),
            (Piece::Merged(runs), _, Some(overlapping)) => self.merge(runs, overlapping, partition, context),
            _ => internal_err!("NewestWinsExec lacks an input"),
        }
    }

    /// Returns the visible rows of runs that share keys.
    fn merge(
        &self,
        runs: &[Vec<RankedInput>],
        below: &Overlapping,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // Runs of one portion each are distinguished by position alone: ties go to the lower run.
        let chained = runs.iter().any(|run| run.len() > 1);
        let mut runs = runs.to_vec();
        runs.sort_by_key(|run| run.first().map(|first| first.rank));
        let schema = if chained { with_rank(&below.plan.schema()) } else { below.plan.schema() };
        let streams = runs
            .into_iter()
            .map(|run| chain(run, below, &schema, chained, context))
            .collect::<Result<Vec<_>>>()?;
        let mut order = below.key.clone();
        order.extend(chained.then(|| schema.fields().len() - 1));
        let Some(ordering) = key_ordering(&schema, &order) else {
            return internal_err!("NewestWinsExec needs the columns of a primary key");
        };
        let reservation = MemoryConsumer::new(format!("NewestWinsExec[{partition}]"))
            .register(&context.runtime_env().memory_pool);
        let merged = StreamingMergeBuilder::new()
            .with_streams(streams)
            .with_schema(schema)
            .with_expressions(&ordering)
            .with_metrics(BaselineMetrics::new(&ExecutionPlanMetricsSet::new(), partition))
            .with_batch_size(context.session_config().batch_size())
            .with_reservation(reservation)
            .with_round_robin_tie_breaker(false)
            .build()?;
        let mut newest_wins = NewestWins::new(below.key.clone());
        let output = below.output.clone();
        let kept = merged.map(move |batch| {
            let kept = newest_wins.push(&batch?)?;
            kept.project(&output).map_err(DataFusionError::from)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), kept)))
    }
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
