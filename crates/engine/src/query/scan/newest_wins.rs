//! Plan node that returns the visible rows of each partition in key order.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, OrderingRequirements, Partitioning, PhysicalExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterDescription, FilterDescription, FilterPushdownPhase,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::query::scan::key_order::key_ordering;
use crate::query::scan::merge_runs::{Overlapping, RankedInput, merge_runs};

/// Part of an output partition. Pieces follow each other in key order and share no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::query) enum Piece {
    /// An input partition of `plain`: rows whose keys are in no other portion.
    Plain(usize),
    /// Runs that share keys.
    Merged(Vec<Vec<RankedInput>>),
}

impl Piece {
    fn runs(&self) -> Option<&Vec<Vec<RankedInput>>> {
        match self {
            Self::Merged(runs) => Some(runs),
            Self::Plain(_) => None,
        }
    }
}

/// Inputs of [`NewestWinsExec`].
#[derive(Debug, Clone)]
pub(in crate::query) struct Inputs {
    /// Rows that nothing supersedes, with the columns of the output. A partition is a sequence of
    /// portions in key order.
    pub(in crate::query) plain: Option<Arc<dyn ExecutionPlan>>,
    /// Portions that share keys with others, one per partition, with the columns of the output and
    /// of the key.
    pub(in crate::query) overlapping: Option<Overlapping>,
}

/// Returns the visible rows of each partition in key order: chains portions, merges those that
/// share keys, and keeps the newest row of each key.
///
/// Output: one partition per table partition. Each reads its pieces one after another. A piece of
/// several runs is merged by the key and, for equal keys, by the age of the portion, newest first,
/// so that the first row of each key is the visible one and the others are dropped. A piece without
/// overlap passes through unchanged.
///
/// Only filters on key columns are pushed below a merge: they keep or drop all rows of a key
/// together. Every filter is pushed to portions that are not merged.
#[derive(Debug, Clone)]
pub(crate) struct NewestWinsExec {
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
    /// each primary-key column; `None` for a column that `schema` lacks.
    pub(in crate::query) fn new(
        schema: SchemaRef,
        primary_key: &[Option<usize>],
        inputs: Inputs,
        partitions: Arc<Vec<Vec<Piece>>>,
    ) -> Self {
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
        Self {
            inputs,
            partitions,
            key_prefix,
            key_columns: primary_key.iter().flatten().copied().collect(),
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// Returns the node declared to be partitioned by the hash of `columns` of the output, so that
    /// grouping by them needs no repartitioning. Valid only in plans that combine nothing by
    /// DataFusion's own hash.
    pub(in crate::query) fn hashed_by(&self, columns: Vec<Arc<dyn PhysicalExpr>>) -> Self {
        let partitioning = Partitioning::Hash(columns, self.partitions.len());
        let properties = self.properties.as_ref().clone().with_partitioning(partitioning);
        Self { properties: Arc::new(properties), ..self.clone() }
    }

    /// Returns the node with one of its output partitions alone. `narrow` returns an input with
    /// some of its partitions, in this order.
    pub(in crate::query) fn only(
        &self,
        partition: usize,
        mut narrow: impl FnMut(&Arc<dyn ExecutionPlan>, &[usize]) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<Self> {
        let (mut plain, mut overlapping) = (Vec::new(), Vec::new());
        let keep = |inputs: &mut Vec<usize>, input: usize| {
            inputs.push(input);
            inputs.len() - 1
        };
        let mut pieces = Vec::new();
        for piece in self.partitions.get(partition).into_iter().flatten() {
            pieces.push(match piece {
                Piece::Plain(input) => Piece::Plain(keep(&mut plain, *input)),
                Piece::Merged(runs) => {
                    let mut kept = runs.clone();
                    for ranked in kept.iter_mut().flatten() {
                        ranked.input = keep(&mut overlapping, ranked.input);
                    }
                    Piece::Merged(kept)
                }
            });
        }
        let inputs = Inputs {
            plain: match &self.inputs.plain {
                Some(input) if !plain.is_empty() => Some(narrow(input, &plain)?),
                _ => None,
            },
            overlapping: match &self.inputs.overlapping {
                Some(input) if !overlapping.is_empty() => {
                    Some(Overlapping { plan: narrow(&input.plan, &overlapping)?, ..input.clone() })
                }
                _ => None,
            },
        };
        let partitioning = Partitioning::UnknownPartitioning(1);
        let properties = self.properties.as_ref().clone().with_partitioning(partitioning);
        Ok(Self {
            inputs,
            partitions: Arc::new(vec![pieces]),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            ..self.clone()
        })
    }

    /// Returns the scan of the rows that nothing supersedes, and the node with all others, if there
    /// are such: together they return the same rows, in no order. `None` if all are merged.
    pub(in crate::query) fn parts(&self) -> Option<(Arc<dyn ExecutionPlan>, Option<Self>)> {
        let plain = self.inputs.plain.as_ref().filter(|plain| plain.schema() == self.schema)?;
        let overlapping = self.inputs.overlapping.clone();
        let merged = overlapping.map(|overlapping| {
            let merged = |pieces: &Vec<Piece>| -> Vec<Piece> {
                pieces.iter().filter(|piece| piece.runs().is_some()).cloned().collect()
            };
            let mut partitions: Vec<Vec<Piece>> = self.partitions.iter().map(merged).collect();
            partitions.retain(|pieces| !pieces.is_empty());
            let partitioning = Partitioning::UnknownPartitioning(partitions.len());
            let properties = Arc::new(self.properties.as_ref().clone().with_partitioning(partitioning));
            let inputs = Inputs { plain: None, overlapping: Some(overlapping) };
            let (partitions, metrics) = (Arc::new(partitions), ExecutionPlanMetricsSet::new());
            Self { inputs, partitions, properties, metrics, ..self.clone() }
        });
        Some((Arc::clone(plain), merged))
    }

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
        let input_counts = (
            count(self.inputs.plain.as_ref()),
            count(self.inputs.overlapping.as_ref().map(|overlapping| &overlapping.plan)),
        );
        if input_counts != (plain, overlapping) {
            return internal_err!(
                "NewestWinsExec expects {plain} chains and {overlapping} runs, not {input_counts:?}"
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
            (Piece::Merged(runs), _, Some(overlapping)) => {
                merge_runs(runs, overlapping, &self.schema, partition, context)
            }
            _ => internal_err!("NewestWinsExec lacks an input"),
        }
    }
}

impl DisplayAs for NewestWinsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let merges: Vec<&Vec<Vec<RankedInput>>> =
            self.partitions.iter().flatten().filter_map(Piece::runs).collect();
        let fields = self.key_prefix.iter().filter_map(|index| self.schema.fields().get(*index));
        let key: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
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
            if overlapping.keeps_deletes {
                return Ok(Arc::new(Statistics::new_unknown(&self.schema)));
            }
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

#[cfg(test)]
#[path = "newest_wins_tests.rs"]
mod tests;
