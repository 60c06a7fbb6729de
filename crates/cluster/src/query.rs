//! Queries that are planned on this machine, on a snapshot, and executed by executors.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;

use crate::nodes::{ScanSpec, TaskExec, TaskSpec, assignments};
use crate::session::state_of;
use crate::{Cluster, ClusterError};
use evenkeel_engine::Table;
use evenkeel_engine::query::{
    Explanation, OverlapGroup, Params, QueryError, QueryResult, RunQueries, SnapshotTable, TableSession,
    corrected_rules, declare_scans,
};
use evenkeel_model::note::Note;
use evenkeel_store::log::PortionEntry;

/// Scan tasks per core, so that a large partition does not delay the others for long.
const TASKS_PER_CORE: usize = 4;

/// One snapshot of a table, whose queries run on a cluster.
pub struct ClusterSession {
    cluster: Cluster,
    table: Table,
}

impl ClusterSession {
    /// Creates a session on the snapshot of a table.
    #[must_use]
    pub fn new(cluster: Cluster, table: Table) -> Self {
        Self { cluster, table }
    }
}

#[async_trait]
impl RunQueries for ClusterSession {
    /// A plan that reads no row of the table is executed on this machine.
    async fn query(&self, sql: &str, params: &Params) -> std::result::Result<QueryResult, QueryError> {
        Ok(query(&self.cluster, &self.table, sql, params).await?)
    }

    async fn explain(&self, sql: &str, params: &Params) -> std::result::Result<Explanation, QueryError> {
        session(&self.cluster, &self.table)?.explain(sql, params).await
    }

    fn notes(&self) -> Vec<Note> {
        Vec::new()
    }
}

impl From<ClusterError> for QueryError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Query(error) => error,
            error => Self::Elsewhere { reason: error.to_string() },
        }
    }
}

async fn query(
    cluster: &Cluster,
    table: &Table,
    sql: &str,
    params: &Params,
) -> std::result::Result<QueryResult, ClusterError> {
    let session = session(cluster, table)?;
    let plan = with_cuttable_leaves(session.physical_plan(sql, params).await?)?;
    if !reads_table(&plan)? {
        let batches = datafusion::physical_plan::execute_stream(plan, session.context().task_ctx())?;
        return Ok(QueryResult { schema: batches.schema(), batches, progress: None });
    }
    let config = session.context().copied_config();
    let result = cluster.run(&plan, &config).await?;
    let mut fetched = result.fetched;
    let batches = stream::iter(fetched.batches()?.map(|batch| batch.map_err(DataFusionError::from)));
    let schema = fetched.schema();
    Ok(QueryResult {
        schema: Arc::clone(&schema),
        batches: Box::pin(RecordBatchStreamAdapter::new(schema, batches)),
        progress: None,
    })
}

/// Creates a session that plans for a cluster.
pub(super) fn session(cluster: &Cluster, table: &Table) -> std::result::Result<TableSession, ClusterError> {
    let place = table.storage().place();
    cluster.check_place(&place)?;
    let cores = cluster.size().cores.max(1);
    let snapshot = SnapshotTable::with_declared_text(table.storage().clone(), table.snapshot().clone())?;
    let snapshot = Arc::new(snapshot);
    let provider = ClusterTable { table: Arc::clone(&snapshot), place, tasks: cores * TASKS_PER_CORE };
    let state = state_of(cluster.session_config(cores))?;
    let mut rules = corrected_rules(state.physical_optimizers().to_vec());
    rules.insert(0, Arc::new(WholePartitions));
    let state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules).build();
    Ok(TableSession::with_provider(state, snapshot, Arc::new(provider))?)
}

/// Replaces leaves that read nothing with leaves in memory: next to other inputs of a union,
/// the scheduler would wait forever for a leaf that it cannot cut.
fn with_cuttable_leaves(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let in_memory = |schema: SchemaRef, batches: Vec<RecordBatch>| {
        let source = MemorySourceConfig::try_new(&[batches], schema, None)?;
        Ok::<_, DataFusionError>(DataSourceExec::from_data_source(source))
    };
    let replaced = plan.transform_up(|node| {
        if node.downcast_ref::<EmptyExec>().is_some() {
            return Ok(Transformed::yes(in_memory(node.schema(), Vec::new())?));
        }
        if node.downcast_ref::<PlaceholderRowExec>().is_some() {
            let row =
                RecordBatch::try_from_iter([("row", Arc::new(BooleanArray::from(vec![true])) as ArrayRef)])?;
            let leaf = in_memory(row.schema(), vec![row])?;
            let nothing = ProjectionExec::try_new(Vec::<(Arc<dyn PhysicalExpr>, String)>::new(), leaf)?;
            return Ok(Transformed::yes(Arc::new(nothing)));
        }
        Ok(Transformed::no(node))
    })?;
    Ok(replaced.data)
}

fn reads_table(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    plan.exists(|node| Ok(node.downcast_ref::<TaskExec>().is_some()))
}

/// Declares to the planner that a scan is partitioned by the hash of the partition key, under the
/// conditions of [`evenkeel_engine::query::PartitionAware`], so that grouping by the partition key
/// needs no shuffle.
#[derive(Debug)]
struct WholePartitions;

impl PhysicalOptimizerRule for WholePartitions {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        declare_scans(plan, config, |node, least| {
            let scan = node
                .downcast_ref::<TaskExec>()
                .filter(|_| node.properties().partitioning.partition_count() >= least);
            Ok(match scan.map(TaskExec::hashed).transpose()?.flatten() {
                Some(hashed) => Transformed::new(Arc::new(hashed) as _, true, TreeNodeRecursion::Jump),
                None => Transformed::no(Arc::clone(node)),
            })
        })
    }

    fn name(&self) -> &'static str {
        "WholePartitions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Snapshot whose scans are tasks of a cluster.
#[derive(Debug)]
struct ClusterTable {
    table: Arc<SnapshotTable>,
    place: String,
    tasks: usize,
}

/// Assigns groups of the portions of each partition to tasks, and returns whether each partition is
/// read by one task. Portions of a group share keys and stay together. The largest is assigned
/// first, each to the task with the least bytes so far.
fn deal(groups: Vec<Vec<OverlapGroup>>, tasks: usize) -> (Vec<Vec<Vec<PortionEntry>>>, bool) {
    let whole = groups.len() * 2 > tasks;
    let units: Vec<Vec<Arc<PortionEntry>>> = match whole {
        true => groups.into_iter().map(|groups| groups.into_iter().flatten().collect()).collect(),
        false => groups.into_iter().flatten().collect(),
    };
    let unit = |portions: Vec<Arc<PortionEntry>>| -> (u64, Vec<PortionEntry>) {
        let bytes = portions.iter().map(|portion| portion.bytes).sum();
        (bytes, portions.iter().map(|portion| portion.as_ref().clone()).collect())
    };
    let mut units: Vec<(u64, Vec<PortionEntry>)> = units.into_iter().map(unit).collect();
    if units.len() > tasks {
        units.sort_by_key(|unit| std::cmp::Reverse(unit.0));
    }
    let mut dealt: Vec<(u64, Vec<Vec<PortionEntry>>)> =
        vec![(0, Vec::new()); tasks.clamp(1, units.len().max(1))];
    for (bytes, unit) in units {
        if let Some(task) = dealt.iter_mut().min_by_key(|task| (task.0, task.1.len())) {
            task.0 += bytes;
            task.1.push(unit);
        }
    }
    (dealt.into_iter().map(|(_, units)| units).collect(), whole)
}

#[async_trait]
impl TableProvider for ClusterTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.table.schema();
        let predicate = self.table.predicate(state, filters)?;
        let groups = self.table.groups_where(predicate.as_ref())?;
        let projection = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
        if groups.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::new(schema.project(&projection)?))));
        }
        let (tasks, whole) = deal(groups, self.tasks);
        let snapshot = self.table.snapshot();
        let spec = ScanSpec {
            place: self.place.clone(),
            definition: snapshot.spec().definition().clone(),
            version: snapshot.version(),
            projection,
            ordered: tasks.iter().all(|task| task.len() <= 1),
            whole,
            hashed: false,
        };
        let leaf = assignments(&tasks)?;
        Ok(Arc::new(TaskExec::try_new(TaskSpec::Scan(spec), predicate.into_iter().collect(), leaf)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_model::table::{KeyRange, KeyValue};
    use evenkeel_model::units::{PartitionId, Version};
    use evenkeel_store::log::Sequence;
    use proptest::prelude::*;

    fn portion(partition: usize, number: usize, bytes: u64) -> Arc<PortionEntry> {
        let key_range = KeyRange { min: vec![KeyValue::Int(0)], max: vec![KeyValue::Int(9)] };
        Arc::new(PortionEntry {
            path: format!("{partition}/{number}"),
            partition: PartitionId(u32::try_from(partition).unwrap()),
            sequence: Sequence { version: Version(1), ordinal: 0 },
            rows: 1,
            bytes,
            column_ranges: vec![key_range.clone()],
            key_range,
            xxh3: String::new(),
            deletes: false,
        })
    }

    proptest! {
        #[test]
        fn every_portion_is_dealt_once_and_none_is_torn_from_its_group(
            sizes in prop::collection::vec(prop::collection::vec(prop::collection::vec(1u64..100, 1..4), 1..5), 1..12),
            tasks in 1usize..20,
        ) {
            let groups: Vec<Vec<OverlapGroup>> = sizes.iter().enumerate().map(|(partition, groups)| {
                let mut number = 0;
                groups.iter().map(|group| group.iter().map(|bytes| {
                    number += 1;
                    portion(partition, number, *bytes)
                }).collect()).collect()
            }).collect();
            let paths = |portions: &[PortionEntry]| portions.iter().map(|portion| portion.path.clone()).collect::<Vec<_>>();
            let (dealt, whole) = deal(groups.clone(), tasks);
            prop_assert!(dealt.len() <= tasks);
            prop_assert!(dealt.iter().all(|task| !task.is_empty()));
            let mut dealt_paths: Vec<String> = dealt.iter().flatten().flat_map(|unit| paths(unit)).collect();
            let mut all: Vec<String> = groups.iter().flatten().flatten().map(|portion| portion.path.clone()).collect();
            dealt_paths.sort();
            all.sort();
            prop_assert_eq!(dealt_paths, all);
            let units: Vec<Vec<String>> = dealt.iter().flatten().map(|unit| paths(unit)).collect();
            for group in groups.iter().flatten() {
                let holds_all = |unit: &Vec<String>| group.iter().all(|portion| unit.contains(&portion.path));
                prop_assert_eq!(units.iter().filter(|unit| holds_all(unit)).count(), 1);
            }
            prop_assert!(!whole || units.len() == groups.len());
        }
    }
}
