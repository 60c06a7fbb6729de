//! Scans below aggregations, and below sorts for the first rows, return one stream for each core.
//!
//! A scan returns a stream for each partition, because plans may rely on the order within each. A
//! partial aggregation relies on no order, and its groups are combined anyway: with 256 partitions,
//! it would prepare 256 aggregations, and return the groups of each. Streams take files from each
//! other when they are idle, so that few of them keep all cores busy.
//!
//! Rows that are merged with newer ones are returned by a `NewestWinsExec`, and with them, in key
//! order, those that nothing supersedes. In no order, an aggregation of each is as good, and that of
//! the latter reads a scan directly:
//!
//! ```text
//! Partial ── NewestWins ─┬ scan            ──►   Union ─┬ Partial ── scan, in a stream for each core
//!                        └ scan to merge                └ Partial ── NewestWins ── scan to merge
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::error::Result;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, ExecutionPlan, ExecutionPlanProperties, InputOrderMode, ReplaceChildrenOptions,
};

use crate::query::scan::newest_wins::NewestWinsExec;
use crate::query::scan::ordered_scan::OrderedScan;
use crate::query::walk::Walk;

/// Joins the streams of scans whose rows are needed in no order. Runs after all rules that need the
/// order of scans, and before scans return dictionaries or look for first rows.
#[derive(Debug)]
pub(in crate::query) struct FewerStreams;

impl PhysicalOptimizerRule for FewerStreams {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let streams = config.execution.target_partitions;
        let joined = plan.transform_up_dyn(|node| {
            let takes_any = node.is::<CoalescePartitionsExec>()
                || node.is::<RepartitionExec>()
                || node.is::<SortPreservingMergeExec>();
            let input = node.children().first().copied().filter(|_| takes_any);
            match input.map(|input| with_fewer(input, streams)).transpose()?.flatten() {
                Some(input) => Ok(Transformed::yes(with_input(node, input)?)),
                None => Ok(Transformed::no(node)),
            }
        })?;
        Ok(joined.data)
    }

    fn name(&self) -> &'static str {
        "FewerStreams"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Returns a plan with the same rows in about this many streams; `None` if it already has no more,
/// or if its rows are needed in their order.
fn with_fewer(plan: &Arc<dyn ExecutionPlan>, streams: usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if plan.is::<ProjectionExec>() || plan.is::<LocalLimitExec>() {
        let input = plan.children().first().copied().map(|input| with_fewer(input, streams));
        let input = input.transpose()?.flatten();
        return input.map(|input| with_input(Arc::clone(plan), input)).transpose();
    }
    let Some(input) = input_in_any_order(plan)? else { return Ok(None) };
    let parts = parts_of(input, streams, plan.is::<AggregateExec>())?;
    parts.map(|parts| of_parts(plan, parts)).transpose()
}

/// Returns the rows of a scan, filtered and projected, in at most this many streams; if it
/// `may_be_split`, a scan with a merge in two parts: the rows that nothing supersedes, and those that
/// are merged, if there are such. `None` if that changes nothing, or if the plan reads something
/// else.
fn parts_of(
    plan: &Arc<dyn ExecutionPlan>,
    streams: usize,
    may_be_split: bool,
) -> Result<Option<Vec<Arc<dyn ExecutionPlan>>>> {
    if OrderedScan::from_plan(plan.as_ref()).is_some() {
        return Ok(joined(plan, streams).map(|scan| vec![scan]));
    }
    if let Some(merge) = plan.downcast_ref::<NewestWinsExec>().filter(|_| may_be_split) {
        let Some((plain, merged)) = merge.parts() else { return Ok(None) };
        let Some(plain) = unpinned(&plain) else { return Ok(None) };
        let plain = joined(&plain, streams).unwrap_or(plain);
        let merged = merged.map(|merged| Arc::new(merged) as Arc<dyn ExecutionPlan>);
        return Ok(Some(std::iter::once(plain).chain(merged).collect()));
    }
    let input = plan.children().first().copied().filter(|_| is_by_row(plan));
    let parts = input.map(|input| parts_of(input, streams, may_be_split)).transpose()?.flatten();
    let with_part = |part| with_input(Arc::clone(plan), part);
    parts.map(|parts| parts.into_iter().map(with_part).collect()).transpose()
}

/// Whether each row of a plan depends on one row of its input alone.
fn is_by_row(plan: &Arc<dyn ExecutionPlan>) -> bool {
    (plan.is::<ProjectionExec>() || plan.is::<FilterExec>()) && plan.fetch().is_none()
}

/// Returns the results of an operator for each part of its input.
fn of_parts(
    operator: &Arc<dyn ExecutionPlan>,
    parts: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let of_part = |part| with_input(Arc::clone(operator), part);
    let mut results = parts.into_iter().map(of_part).collect::<Result<Vec<_>>>()?;
    match results.len() {
        1 => Ok(results.swap_remove(0)),
        _ => UnionExec::try_new(results),
    }
}

/// Returns the input of an operator that takes its rows in any order and from any number of streams;
/// `None` for other operators.
fn input_in_any_order(node: &Arc<dyn ExecutionPlan>) -> Result<Option<&Arc<dyn ExecutionPlan>>> {
    if let Some(aggregation) = node.downcast_ref::<AggregateExec>() {
        let is_combined = *aggregation.mode() == AggregateMode::Partial;
        let needs_order = *aggregation.input_order_mode() != InputOrderMode::Linear
            || aggregation.aggr_expr().iter().any(|aggregate| !aggregate.order_bys().is_empty());
        return Ok((is_combined && !needs_order).then(|| aggregation.input()));
    }
    let Some(sort) = node.downcast_ref::<SortExec>() else { return Ok(None) };
    let is_combined = sort.preserve_partitioning() && sort.fetch().is_some();
    let first = std::iter::once(sort.expr().first().clone());
    let has_order = sort.input().equivalence_properties().ordering_satisfy(first)?;
    Ok((is_combined && !has_order).then(|| sort.input()))
}

/// Returns a scan whose streams may be joined, and its configuration: those of partitions that are
/// planned one by one may not, nor those that would wait for a store, one file after another.
fn joinable(plan: &Arc<dyn ExecutionPlan>) -> Option<(&OrderedScan, &FileScanConfig)> {
    let scan = OrderedScan::from_plan(plan.as_ref())?;
    let may_be_joined = scan.number().is_none() && scan.is_local();
    OrderedScan::config_of(plan.as_ref()).filter(|_| may_be_joined).map(|config| (scan, config))
}

/// Returns a scan whose streams are no longer inputs of a merge, and may be joined.
fn unpinned(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let (scan, config) = joinable(plan)?;
    let builder = FileScanConfigBuilder::from(config.clone()).with_output_partitioning(None);
    Some(scan.with_config(builder.build()))
}

fn with_input(node: Arc<dyn ExecutionPlan>, input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    node.replace_children(vec![input], ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Returns a scan of the same files in this many groups, of about as many bytes each; `None` if it
/// has no more, or if its groups may not be joined.
fn joined(plan: &Arc<dyn ExecutionPlan>, streams: usize) -> Option<Arc<dyn ExecutionPlan>> {
    let (scan, config) = joinable(plan)?;
    // An unknown partitioning pins the groups.
    let is_pinned = !matches!(config.output_partitioning, None | Some(Partitioning::Hash(..)));
    if config.file_groups.len() <= streams || streams == 0 || is_pinned || config.limit.is_some() {
        return None;
    }
    let mut groups = vec![Vec::new(); streams];
    let mut sizes: BinaryHeap<Reverse<(u64, usize)>> =
        (0..streams).map(|group| Reverse((0, group))).collect();
    for file in config.file_groups.iter().flat_map(FileGroup::iter) {
        let Reverse((bytes, group)) = sizes.pop()?;
        sizes.push(Reverse((bytes.saturating_add(file.effective_size()), group)));
        groups.get_mut(group)?.push(file.clone());
    }
    let groups = groups.into_iter().map(FileGroup::new).collect();
    let builder = FileScanConfigBuilder::from(config.clone()).with_file_groups(groups);
    let builder = builder.with_output_ordering(Vec::new()).with_output_partitioning(None);
    Some(scan.with_config(builder.with_preserve_order(false).build()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    use datafusion::config::ConfigOptions;
    use datafusion::datasource::source::DataSourceExec;

    use evenkeel_store::ingest::IngestOptions;

    use crate::testing::joins::{answer, plan, without_rule};
    use crate::testing::{create, ingest, session_on};

    #[tokio::test]
    async fn only_rows_in_no_order_are_read_in_fewer_streams() {
        let (_folder, mut table) = create(
            "CREATE TABLE t (k Int64 NOT NULL, v Int64, PRIMARY KEY (k)) PARTITION BY HASH(k)
             WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 24)",
        )
        .await;
        const ROWS: i64 = 9_000;
        let columns: [(&str, ArrayRef); 2] = [
            ("k", Arc::new(Int64Array::from_iter_values(0..ROWS))),
            ("v", Arc::new(Int64Array::from_iter((0..ROWS).map(|row| (row % 7 > 0).then_some(row % 100))))),
        ];
        ingest(&mut table, RecordBatch::try_from_iter(columns).unwrap()).await;
        let session = session_on(&table, 3, false);
        let ours = session.context();
        let twin = without_rule(ours, "FewerStreams");
        for (sql, is_joined) in [
            ("SELECT count(v), sum(k), min(v + 1) FROM t WHERE v <> 5", true),
            ("SELECT v, count(*), max(k) FROM t GROUP BY v ORDER BY v", true),
            ("SELECT v % 3 AS r, sum(k) FILTER (WHERE v > 9) FROM t GROUP BY r ORDER BY r", true),
            ("SELECT count(DISTINCT v), avg(k) FROM t", true),
            ("SELECT v, k FROM t WHERE k <> 9 ORDER BY v DESC, k LIMIT 30", true),
            ("SELECT k, count(*) FROM t GROUP BY k ORDER BY k DESC LIMIT 5", false),
            ("SELECT k, v FROM t ORDER BY k LIMIT 7", false),
            ("SELECT k, v FROM t ORDER BY k", false),
            ("SELECT first_value(v ORDER BY k) FROM t", false),
            ("SELECT array_agg(k ORDER BY k) FROM t WHERE k < 30", false),
        ] {
            assert_eq!(answer(ours, sql).await, answer(&twin, sql).await, "{sql}");
            let plan = plan(ours, sql).await;
            assert_eq!(plan.contains("file_groups={3 groups"), is_joined, "{sql}: {plan}");
        }
    }

    #[tokio::test]
    async fn rows_that_nothing_supersedes_are_aggregated_without_merging() {
        let (_folder, mut table) = create(
            "CREATE TABLE t (k Int64 NOT NULL, at Int64 NOT NULL, kind Utf8 NOT NULL, v Int64,
             PRIMARY KEY (at, k)) PARTITION BY HASH(k)
             WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 6)",
        )
        .await;
        let rows = |keys: Vec<i64>, from: i64, version: i64| {
            let at = keys.iter().map(|key| from + key);
            let kinds = keys.iter().map(|key| ["a", "b", "c", "d"][(key % 4) as usize]);
            let values = keys.iter().map(|key| (key % 9 > 0).then_some(key * 10 + version));
            let columns: [(&str, ArrayRef); 4] = [
                ("k", Arc::new(Int64Array::from(keys.clone()))),
                ("at", Arc::new(Int64Array::from_iter_values(at))),
                ("kind", Arc::new(StringArray::from_iter_values(kinds))),
                ("v", Arc::new(Int64Array::from_iter(values))),
            ];
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        };
        ingest(&mut table, rows((0..3_000).collect(), 0, 0).unwrap()).await;
        // One key is in one partition.
        ingest(&mut table, rows(vec![7], 0, 1).unwrap()).await;
        ingest(&mut table, rows((3_000..6_000).collect(), 100_000, 2).unwrap()).await;
        for is_deleted in [false, true] {
            if is_deleted {
                let deleted = rows(vec![7, 8], 0, 0).unwrap();
                let deleted = futures::stream::iter([Ok::<_, std::io::Error>(deleted)]);
                table.delete(deleted, &IngestOptions::default()).await.unwrap();
            }
            let session = session_on(&table, 2, false);
            let ours = session.context();
            let twin = without_rule(ours, "FewerStreams");
            for (sql, is_split) in [
                ("SELECT count(*), sum(v), min(k), max(at) FROM t", true),
                ("SELECT min(v), max(k), min(v + k) FROM t", true),
                ("SELECT max(v) FROM t WHERE kind = 'b'", true),
                ("SELECT sum(v) FILTER (WHERE k % 2 = 0), count(DISTINCT kind) FROM t", true),
                ("SELECT kind, v % 2 AS r, count(*) FROM t GROUP BY ROLLUP (kind, r) ORDER BY 1, 2, 3", true),
                ("SELECT DISTINCT kind FROM t ORDER BY kind LIMIT 3", true),
                ("SELECT kind, count(*), sum(v) FROM t GROUP BY kind ORDER BY kind", true),
                ("SELECT kind, max(v) FROM t WHERE v % 3 = 1 GROUP BY kind ORDER BY kind", true),
                ("SELECT v % 7 AS r, count(DISTINCT v) FROM t WHERE kind <> 'c' GROUP BY r ORDER BY r", true),
                ("SELECT sum(v) FROM t WHERE at < 50", true),
                ("SELECT kind, k FROM t WHERE v > 9 ORDER BY v DESC, k LIMIT 9", false),
                ("SELECT k, at, v FROM t ORDER BY at, k", false),
            ] {
                assert_eq!(answer(ours, sql).await, answer(&twin, sql).await, "{sql}");
                let plan = plan(ours, sql).await;
                let merges = plan.contains("NewestWinsExec");
                assert!(merges, "{sql}: {plan}");
                assert_eq!(plan.contains("UnionExec"), is_split, "{sql}: {plan}");
            }
        }
    }

    #[tokio::test]
    async fn joined_streams_take_files_from_each_other() {
        let (_folder, mut table) = create(
            "CREATE TABLE t (k Int64 NOT NULL, v Int64 NOT NULL, PRIMARY KEY (k)) PARTITION BY HASH(k)
             WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 8)",
        )
        .await;
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000));
        let rows = RecordBatch::try_from_iter([("k", Arc::clone(&keys)), ("v", keys)]).unwrap();
        ingest(&mut table, rows).await;
        let session = session_on(&table, 2, false);
        for (sql, are_shared) in
            [("SELECT v % 5 AS r, count(*) FROM t GROUP BY r", true), ("SELECT k FROM t ORDER BY k", false)]
        {
            let plan = session.context().sql(sql).await.unwrap().create_physical_plan().await.unwrap();
            let mut found = Vec::new();
            plan.apply(|node| {
                if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
                    found.push(scan.data_source().create_sibling_state(&ConfigOptions::default()).is_some());
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .unwrap();
            assert_eq!(found, [are_shared], "{sql}");
        }
    }

    #[tokio::test]
    async fn a_table_of_few_partitions_keeps_its_streams() {
        let (_folder, mut table) = create(
            "CREATE TABLE t (k Int64 NOT NULL, PRIMARY KEY (k)) PARTITION BY HASH(k)
             WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 2)",
        )
        .await;
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        ingest(&mut table, RecordBatch::try_from_iter([("k", keys)]).unwrap()).await;
        let session = session_on(&table, 3, false);
        let twin = without_rule(session.context(), "FewerStreams");
        let sql = "SELECT sum(k) FROM t WHERE k > 3";
        assert_eq!(plan(session.context(), sql).await, plan(&twin, sql).await);
    }
}
