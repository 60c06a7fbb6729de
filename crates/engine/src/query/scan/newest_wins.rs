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
mod tests {
    use std::collections::BTreeMap;

    use arrow::array::{AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{BinaryExpr, col, lit};
    use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
    use datafusion::physical_plan::filter_pushdown::PushedDown;
    use datafusion::physical_plan::{ReplaceChildrenOptions, collect_partitioned};
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    /// Values by key.
    type Portion = BTreeMap<i64, i64>;

    fn schema() -> SchemaRef {
        let field = |name: &str| Field::new(name, DataType::Int64, false);
        Arc::new(Schema::new(vec![field("key"), field("value")]))
    }

    fn input(portions: &[Portion]) -> Arc<dyn ExecutionPlan> {
        let batch = |portion: &Portion| {
            let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as _;
            let (keys, values) = portion.iter().unzip();
            RecordBatch::try_new(schema(), vec![column(keys), column(values)]).unwrap()
        };
        let partitions: Vec<_> = portions.iter().map(|portion| vec![batch(portion)]).collect();
        MemorySourceConfig::try_new_exec(&partitions, schema(), None).unwrap()
    }

    /// Merges portions, newest first, in these runs.
    fn merge(portions: &[Portion], runs: &[Vec<usize>]) -> NewestWinsExec {
        merge_with_deletes(portions, runs, &[])
    }

    /// Merges portions, some of which are deletes.
    fn merge_with_deletes(portions: &[Portion], runs: &[Vec<usize>], deletes: &[usize]) -> NewestWinsExec {
        let ranked = |index: &usize| RankedInput {
            input: *index,
            rank: u32::try_from(*index).unwrap(),
            deletes: deletes.contains(index),
        };
        let runs = runs.iter().map(|run| run.iter().map(ranked).collect()).collect();
        let overlapping =
            Overlapping { plan: input(portions), key: vec![0], output: vec![0, 1], keeps_deletes: false };
        let inputs = Inputs { plain: None, overlapping: Some(overlapping) };
        NewestWinsExec::new(schema(), &[Some(0)], inputs, Arc::new(vec![vec![Piece::Merged(runs)]]))
    }

    /// Packs portions into runs, each into the first one that ends before it begins.
    fn chained(portions: &[Portion]) -> Vec<Vec<usize>> {
        let mut by_key: Vec<usize> = (0..portions.len()).collect();
        by_key.sort_by_key(|index| portions[*index].first_key_value());
        let mut runs: Vec<Vec<usize>> = Vec::new();
        for index in by_key {
            let ends_before = |run: &&mut Vec<usize>| {
                let last = &portions[run[run.len() - 1]];
                last.last_key_value().map(|(key, _)| key)
                    < portions[index].first_key_value().map(|(key, _)| key)
            };
            match runs.iter_mut().find(ends_before) {
                Some(run) => run.push(index),
                None => runs.push(vec![index]),
            }
        }
        runs
    }

    fn rows(node: NewestWinsExec) -> Vec<Vec<(i64, i64)>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let collected = collect_partitioned(Arc::new(node), Arc::default());
        let of_batch = |batch: &RecordBatch| {
            let column = |index: usize| batch.column(index).as_primitive::<Int64Type>().values().to_vec();
            column(0).into_iter().zip(column(1)).collect::<Vec<_>>()
        };
        let partitions = runtime.block_on(collected).unwrap();
        partitions.iter().map(|batches| batches.iter().flat_map(of_batch).collect()).collect()
    }

    proptest! {
        #[test]
        fn the_newest_row_of_each_key_is_returned(
            portions in proptest::collection::vec(
                proptest::collection::btree_map(0i64..60, proptest::num::i64::ANY, 1..8), 1..9
            ),
        ) {
            let mut newest = Portion::new();
            portions.iter().rev().for_each(|portion| newest.extend(portion));
            let newest: Vec<(i64, i64)> = newest.into_iter().collect();
            let alone: Vec<Vec<usize>> = (0..portions.len()).map(|index| vec![index]).collect();
            prop_assert_eq!(&rows(merge(&portions, &alone))[0], &newest);
            prop_assert_eq!(&rows(merge(&portions, &chained(&portions)))[0], &newest);
        }

        #[test]
        fn the_newest_row_of_each_key_decides_whether_it_is_deleted(
            portions in proptest::collection::vec(
                (proptest::collection::btree_map(0i64..60, proptest::num::i64::ANY, 1..8), proptest::bool::ANY), 1..9
            ),
        ) {
            let mut newest = Portion::new();
            for (portion, deletes) in portions.iter().rev() {
                match deletes {
                    true => newest.retain(|key, _| !portion.contains_key(key)),
                    false => newest.extend(portion),
                }
            }
            let newest: Vec<(i64, i64)> = newest.into_iter().collect();
            let deletes: Vec<usize> = (0..portions.len()).filter(|index| portions[*index].1).collect();
            let portions: Vec<Portion> = portions.into_iter().map(|(portion, _)| portion).collect();
            let alone: Vec<Vec<usize>> = (0..portions.len()).map(|index| vec![index]).collect();
            for runs in [alone, chained(&portions)] {
                prop_assert_eq!(&rows(merge_with_deletes(&portions, &runs, &deletes))[0], &newest);
            }
        }
    }

    #[test]
    fn pieces_follow_each_other_and_partitions_stay_apart() {
        let portion = |keys: &[i64], value| Portion::from_iter(keys.iter().map(|key| (*key, value)));
        let plain = input(&[portion(&[1, 2], 10), portion(&[7], 20), portion(&[0], 30)]);
        let overlapping = input(&[portion(&[3, 5], 1), portion(&[3, 4], 2)]);
        let overlapping =
            Overlapping { plan: overlapping, key: vec![0], output: vec![0, 1], keeps_deletes: false };
        let inputs = Inputs { plain: Some(plain), overlapping: Some(overlapping) };
        let runs = vec![
            vec![RankedInput { input: 0, rank: 0, deletes: false }],
            vec![RankedInput { input: 1, rank: 1, deletes: false }],
        ];
        let pieces = vec![vec![Piece::Plain(0), Piece::Merged(runs), Piece::Plain(1)], vec![Piece::Plain(2)]];
        let node = NewestWinsExec::new(schema(), &[Some(0)], inputs, Arc::new(pieces));
        assert_eq!(rows(node), [vec![(1, 10), (2, 10), (3, 1), (4, 2), (5, 1), (7, 20)], vec![(0, 30)]]);
    }

    #[test]
    fn inputs_that_were_not_planned_are_refused() {
        let portions = [Portion::from([(1, 1)]), Portion::from([(1, 2)])];
        let node = Arc::new(merge(&portions, &[vec![0], vec![1]]));
        let context = Arc::new(TaskContext::default());
        assert!(node.execute(0, Arc::clone(&context)).is_ok());
        assert!(node.execute(1, Arc::clone(&context)).is_err());
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        assert!(Arc::clone(&node).replace_children(vec![], options).is_err());
        let joined = node.replace_children(vec![input(&portions[..1])], options).unwrap();
        assert!(joined.execute(0, context).is_err());
    }

    #[test]
    fn only_filters_on_the_key_pass_below_a_merge() {
        let mut node = merge(&[Portion::from([(1, 1)])], &[vec![0]]);
        node.inputs.plain = Some(input(&[Portion::from([(2, 2)])]));
        let filter = |column: &str| {
            let column = col(column, &schema()).unwrap();
            Arc::new(BinaryExpr::new(column, Operator::Eq, lit(1i64))) as Arc<dyn PhysicalExpr>
        };
        let filters = vec![filter("key"), filter("value")];
        let description = node
            .gather_filters_for_pushdown(FilterPushdownPhase::Pre, filters, &ConfigOptions::default())
            .unwrap();
        let pushed: Vec<Vec<bool>> = description
            .parent_filters()
            .iter()
            .map(|child| child.iter().map(|f| matches!(f.discriminant, PushedDown::Yes)).collect())
            .collect();
        assert_eq!(pushed, [vec![true, true], vec![true, false]]);
    }

    #[test]
    fn the_number_of_merged_rows_is_only_an_upper_bound() {
        let mut node = merge(&[Portion::from([(1, 1)]), Portion::from([(1, 2)])], &[vec![0], vec![1]]);
        let rows = |rows| {
            Arc::new(Statistics { num_rows: Precision::Exact(rows), ..Statistics::new_unknown(&schema()) })
        };
        let number = |node: &NewestWinsExec, inputs: &[Arc<Statistics>]| {
            node.statistics_from_inputs(inputs, &StatisticsArgs::new()).unwrap().num_rows
        };
        assert_eq!(number(&node, &[rows(2)]), Precision::Inexact(2));
        node.inputs.plain = Some(input(&[Portion::from([(2, 2)])]));
        assert_eq!(number(&node, &[rows(5), rows(2)]), Precision::Inexact(7));
        node.inputs.overlapping = None;
        assert_eq!(number(&node, &[rows(5)]), Precision::Exact(5));
    }
}
