//! The node of physical plans.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::StreamExt;

use crate::query::dictionary_groups::groups::Groups;

/// Groups the rows of a scan by texts that it returns with dictionaries, among other keys.
///
/// Input: rows with dictionaries. Output: the keys of groups and the states of their aggregates, as
/// a partial aggregation of DataFusion returns them, in no order; a group may be returned more than
/// once.
#[derive(Debug)]
pub(super) struct DictionaryGroupsExec {
    /// The aggregation that this node replaces; its own input is not read.
    partial: Arc<AggregateExec>,
    /// Positions of the keys with dictionaries.
    with_dictionaries: Arc<[usize]>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl DictionaryGroupsExec {
    pub(super) fn new(
        partial: Arc<AggregateExec>,
        with_dictionaries: Arc<[usize]>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(partial.schema()),
            partial.properties().partitioning.clone(),
            EmissionType::Both,
            input.boundedness(),
        );
        let metrics = ExecutionPlanMetricsSet::new();
        Self { partial, with_dictionaries, input, properties: Arc::new(properties), metrics }
    }
}

impl DisplayAs for DictionaryGroupsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.partial.group_expr().expr();
        let aliased = |(expr, alias): &(Arc<dyn PhysicalExpr>, String)| format!("{expr} as {alias}");
        let names = |keys: Vec<String>| keys.join(", ");
        let all = names(keys.iter().map(aliased).collect());
        let coded = self.with_dictionaries.iter().filter_map(|position| keys.get(*position));
        let coded = names(coded.map(|(_, alias)| alias.clone()).collect());
        let aggregates = self.partial.aggr_expr().iter().map(|aggregate| aggregate.name().to_owned());
        let aggregates = names(aggregates.collect());
        write!(f, "DictionaryGroupsExec: gby=[{all}], aggr=[{aggregates}], dictionaries=[{coded}]")
    }
}

impl ExecutionPlan for DictionaryGroupsExec {
    fn name(&self) -> &'static str {
        "DictionaryGroupsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.partial.apply_expressions(f)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return Ok(self) };
        let (partial, keys) = (Arc::clone(&self.partial), Arc::clone(&self.with_dictionaries));
        Ok(Arc::new(Self::new(partial, keys, input)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let options = &context.session_config().options().execution;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let name = format!("DictionaryGroups[{partition}]");
        let grouping = Grouping {
            input: self.input.execute(partition, Arc::clone(&context))?,
            groups: Groups::try_new(&self.partial, &self.with_dictionaries)?,
            reservation: MemoryConsumer::new(name).register(context.memory_pool()),
            read: Read::Grouped(0),
            ready: None,
            batch_size: options.batch_size.get().max(1),
            rows_of_probe: options.skip_partial_aggregation_probe_rows_threshold,
            most_groups: options.skip_partial_aggregation_probe_ratio_threshold,
            metrics,
        };
        let batches = futures::stream::try_unfold(grouping, |mut grouping| async move {
            Ok::<_, DataFusionError>(grouping.next().await?.map(|batch| (batch, grouping)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(Statistics::new_unknown(&self.schema())))
    }
}

/// How the input is read.
#[derive(Clone, Copy)]
enum Read {
    /// Rows are grouped; so many have been so far.
    Grouped(usize),
    /// Rows are returned as groups of their own.
    Converted,
    /// There are no more rows.
    Done,
}

/// The grouping of one stream.
struct Grouping {
    input: SendableRecordBatchStream,
    groups: Groups,
    reservation: MemoryReservation,
    read: Read,
    /// Groups that are returned batch by batch.
    ready: Option<RecordBatch>,
    batch_size: usize,
    /// Rows after which `most_groups` applies.
    rows_of_probe: usize,
    /// Largest number of groups for one row with which grouping is worth it.
    most_groups: f64,
    metrics: BaselineMetrics,
}

impl Grouping {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.take_ready() {
                return Ok(Some(batch.record_output(&self.metrics)));
            }
            let grouped = match self.read {
                Read::Done => return Ok(None),
                Read::Grouped(rows) => Some(rows),
                Read::Converted => None,
            };
            let Some(rows) = self.input.next().await.transpose()? else {
                self.read = Read::Done;
                self.give_out()?;
                continue;
            };
            let compute = self.metrics.elapsed_compute().clone();
            let _timer = compute.timer();
            match grouped {
                Some(earlier) => self.add(&rows, earlier)?,
                None => return Ok(Some(self.groups.converted(&rows)?.record_output(&self.metrics))),
            }
        }
    }

    /// Adds rows to their groups. Gives out all groups if memory does not suffice, or if grouping is
    /// not worth it.
    fn add(&mut self, rows: &RecordBatch, earlier: usize) -> Result<()> {
        self.groups.add(rows)?;
        let all = earlier + rows.num_rows();
        self.read = Read::Grouped(all);
        let is_useless =
            all >= self.rows_of_probe && self.groups.len() as f64 > self.most_groups * all as f64;
        if is_useless {
            self.read = Read::Converted;
            return self.give_out();
        }
        match self.reservation.try_resize(self.groups.size()) {
            Ok(()) => Ok(()),
            Err(_) => self.give_out(),
        }
    }

    fn give_out(&mut self) -> Result<()> {
        self.ready = self.groups.emit()?;
        self.reservation.free();
        Ok(())
    }

    fn take_ready(&mut self) -> Option<RecordBatch> {
        let all = self.ready.take()?;
        if all.num_rows() <= self.batch_size {
            return Some(all);
        }
        self.ready = Some(all.slice(self.batch_size, all.num_rows() - self.batch_size));
        Some(all.slice(0, self.batch_size))
    }
}
