//! Golden plans: what a condition leaves to be read.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use evenkeel::Table;
use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::ingest::IngestOptions;
use evenkeel::query::{Explanation, Params};
use evenkeel::report;
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;

fn batch(range: std::ops::Range<i64>) -> RecordBatch {
    let at: Int64Array = range.clone().collect::<Vec<_>>().into();
    let user: StringArray = range.clone().map(|i| Some(format!("u{}", i % 5))).collect();
    let value: Int64Array = range.map(|i| i * 10).collect::<Vec<_>>().into();
    RecordBatch::try_from_iter([
        ("at", Arc::new(at) as ArrayRef),
        ("user", Arc::new(user) as ArrayRef),
        ("value", Arc::new(value) as ArrayRef),
    ])
    .unwrap()
}

/// Three portions per partition; the last two overlap.
async fn table(dir: &tempfile::TempDir) -> Table {
    let spec = TableSpec::new(TableDefinition {
        name: "events".into(),
        columns: vec![
            Column::required("at", ColumnType::Int64),
            Column::required("user", ColumnType::Utf8),
            Column::nullable("value", ColumnType::Int64),
        ],
        primary_key: vec!["at".into(), "user".into()],
        partition_key: vec!["user".into()],
        partitions: PartitionCount::new(2).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap();
    let mut table = Table::create(dir.path().join("t"), &spec).await.unwrap();
    for range in [0..100, 100..200, 150..250] {
        let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch(range))]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    table
}

/// File names are random; what is read of how many is not.
fn without_names(plan: &str) -> String {
    let parts: Vec<&str> = plan.split("partition=").collect();
    let mut text = parts[0].to_owned();
    for part in &parts[1..] {
        let (partition, rest) = part.split_once('/').unwrap();
        let (_, rest) = rest.split_once(".parquet").unwrap();
        text.push_str(&format!("{partition}/*{rest}"));
    }
    text
}

async fn explained_on(table: &Table, sql: &str) -> String {
    let session = table.session().unwrap();
    session.context().state_ref().write().config_mut().options_mut().execution.target_partitions = 2;
    let Explanation { scans, joins, plan } = session.explain(sql, &Params::default()).await.unwrap();
    let explanation = Explanation { plan: without_names(&plan), scans, joins };
    format!("{sql}\n\n{}", report::explanation(&explanation))
}

async fn explained(sql: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    explained_on(&table(&dir).await, sql).await
}

/// The same after its portions became one run each.
async fn explained_compacted(sql: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut table = table(&dir).await;
    let options = CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() };
    table.compact(&options, &|_| {}).await.unwrap();
    explained_on(&table, sql).await
}

macro_rules! golden {
    ($name:ident, $sql:expr) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            insta::assert_snapshot!(explained($sql).await);
        }
    };
}

golden!(no_condition_reads_everything_and_merges_only_what_overlaps, "SELECT at, user, value FROM t");
golden!(equality_on_the_partition_key_reads_one_partition, "SELECT value FROM t WHERE user = 'u3'");
golden!(
    a_list_of_partition_keys_reads_their_partitions,
    "SELECT value FROM t WHERE user IN ('u0', 'u1', 'u2')"
);
golden!(a_range_of_the_primary_key_excludes_portions, "SELECT value FROM t WHERE at < 50");
golden!(a_condition_on_another_column_stays_above_the_merge, "SELECT at FROM t WHERE value = 1700");
golden!(an_inequality_on_the_partition_key_reads_all_partitions, "SELECT value FROM t WHERE user > 'u3'");
golden!(a_contradiction_reads_nothing, "SELECT value FROM t WHERE user = 'u5000003' AND at < 0");
golden!(counting_does_not_trust_rows_that_may_be_replaced, "SELECT count(*) FROM t");

golden!(order_by_the_primary_key_needs_no_sort, "SELECT at, user, value FROM t ORDER BY at, user");
golden!(a_limit_stops_the_merge_early, "SELECT at, user, value FROM t ORDER BY at, user LIMIT 3");
golden!(grouping_by_the_partition_key_needs_no_repartitioning, "SELECT user, count(*) FROM t GROUP BY user");
golden!(a_prefix_of_the_primary_key_groups_in_order, "SELECT at, count(*) FROM t GROUP BY at");
golden!(
    a_join_trusts_no_partitioning_but_its_own,
    "SELECT a.user, b.value FROM t a JOIN t b ON a.user = b.user WHERE a.at < 20"
);

macro_rules! golden_compacted {
    ($name:ident, $sql:expr) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            insta::assert_snapshot!(explained_compacted($sql).await);
        }
    };
}

golden_compacted!(compacted_nothing_is_merged, "SELECT at, user, value FROM t");
golden_compacted!(
    compacted_order_by_needs_no_sort,
    "SELECT at, user, value FROM t ORDER BY at, user LIMIT 3"
);
golden_compacted!(compacted_filters_go_into_the_scan, "SELECT at FROM t WHERE value = 1700");
golden_compacted!(compacted_grouping_stays_in_its_partition, "SELECT user, sum(value) FROM t GROUP BY user");
golden_compacted!(compacted_rows_are_counted_without_reading, "SELECT count(*), min(at), max(at) FROM t");
golden_compacted!(
    compacted_windows_stay_in_their_partition,
    "SELECT user, row_number() OVER (PARTITION BY user ORDER BY at) FROM t"
);
golden_compacted!(
    compacted_a_join_trusts_no_partitioning_but_its_own,
    "SELECT a.user, b.value FROM t a JOIN t b ON a.user = b.user WHERE a.at < 20"
);

/// Portions that end and begin with the same leading key are in order all the same.
#[tokio::test(flavor = "multi_thread")]
async fn portions_that_touch_in_the_leading_key_need_no_sort() {
    let dir = tempfile::tempdir().unwrap();
    let spec = table(&dir).await.spec().definition().clone();
    let spec = TableSpec::new(TableDefinition { partitions: PartitionCount::ONE, ..spec }).unwrap();
    let mut table = Table::create(dir.path().join("touching"), &spec).await.unwrap();
    for users in [["a", "b"], ["c", "d"]] {
        let batch = RecordBatch::try_from_iter([
            ("at", Arc::new(Int64Array::from(vec![7, 7])) as ArrayRef),
            ("user", Arc::new(StringArray::from(users.to_vec())) as ArrayRef),
            ("value", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        ]);
        let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch.unwrap())]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    insta::assert_snapshot!(explained_on(&table, "SELECT user FROM t ORDER BY at, user").await);
    let session = table.session().unwrap();
    let rows = session.collect("SELECT user FROM t ORDER BY at, user", &Params::default()).await.unwrap();
    assert_eq!(crate::common::rows(&rows), [["a"], ["b"], ["c"], ["d"]]);
}

/// Sums a counter over all scans of a plan that was run.
fn counted(plan: &Arc<dyn ExecutionPlan>, name: &str) -> (usize, usize) {
    let mut sum = (0, 0);
    for metric in plan.metrics().iter().flat_map(|metrics| metrics.iter().cloned().collect::<Vec<_>>()) {
        match metric.value() {
            MetricValue::PruningMetrics { name: found, pruning_metrics } if found == name => {
                sum = (sum.0 + pruning_metrics.pruned(), sum.1 + pruning_metrics.matched());
            }
            _ => {}
        }
    }
    plan.children().into_iter().fold(sum, |sum, child| {
        let below = counted(child, name);
        (sum.0 + below.0, sum.1 + below.1)
    })
}

/// Row groups and pages that a condition leaves unread, and rows found.
async fn pruned(table: &Table, sql: &str, counter: &str) -> (usize, (usize, usize)) {
    let session = table.session().unwrap();
    let plan = session.context().sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let batches = collect(Arc::clone(&plan), session.context().task_ctx()).await.unwrap();
    (batches.iter().map(RecordBatch::num_rows).sum(), counted(&plan, counter))
}

#[tokio::test(flavor = "multi_thread")]
async fn times_prune_row_groups_and_pages_and_bloom_filters_prune_points() {
    const ROWS: i64 = 300_000;
    let dir = tempfile::tempdir().unwrap();
    let spec = table(&dir).await.spec().definition().clone();
    let spec = TableSpec::new(TableDefinition { partitions: PartitionCount::ONE, ..spec }).unwrap();
    let mut table = Table::create(dir.path().join("large"), &spec).await.unwrap();
    let user: StringArray = (0..ROWS).map(|i| Some(format!("u{}", i * 7919 % 1_000_003))).collect();
    let batch = RecordBatch::try_from_iter([
        ("at", Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef),
        ("user", Arc::new(user) as ArrayRef),
        ("value", Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef),
    ]);
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch.unwrap())]);
    table.ingest(stream, &IngestOptions::default()).await.unwrap();
    let hour = "SELECT value FROM t WHERE at >= 200000 AND at < 200100";
    let (rows, groups) = pruned(&table, hour, "row_groups_pruned_statistics").await;
    // A dictionary that is full ended the first row group.
    assert_eq!((rows, groups), (100, (1, 1)));
    let (_, page_rows) = pruned(&table, hour, "page_index_rows_pruned").await;
    assert!(page_rows.0 > 100_000 && page_rows.1 < 30_000, "{page_rows:?}");
    let point = format!("SELECT value FROM t WHERE user = 'u{}'", 150_000i64 * 7919 % 1_000_003);
    let (rows, groups) = pruned(&table, &point, "row_groups_pruned_bloom_filter").await;
    assert_eq!((rows, groups), (1, (1, 1)));
    let (rows, groups) =
        pruned(&table, "SELECT value FROM t WHERE user = 'u5000003'", "row_groups_pruned_bloom_filter").await;
    assert!(rows == 0 && groups.0 >= 2, "{rows} {groups:?}");
}

/// Rows that the scans of a plan gave.
fn rows_scanned(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below: usize = plan.children().into_iter().map(rows_scanned).sum();
    let own = plan
        .children()
        .is_empty()
        .then(|| plan.metrics().and_then(|metrics| metrics.output_rows()))
        .flatten();
    below + own.unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_reads_no_more_than_it_must() {
    let dir = tempfile::tempdir().unwrap();
    let spec = table(&dir).await.spec().definition().clone();
    let spec = TableSpec::new(TableDefinition { partitions: PartitionCount::ONE, ..spec }).unwrap();
    let mut table = Table::create(dir.path().join("many"), &spec).await.unwrap();
    // Portions that overlap their neighbours, and are merged.
    for part in 0..6 {
        let stream =
            futures::stream::iter([Ok::<_, std::io::Error>(batch(part * 20_000..part * 20_000 + 25_000))]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    let session = table.session().unwrap();
    let sql = "SELECT at, value FROM t ORDER BY at, user LIMIT 5";
    let plan = session.context().sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let batches = collect(Arc::clone(&plan), session.context().task_ctx()).await.unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
    let scanned = rows_scanned(&plan);
    assert!(scanned <= 60_000, "{scanned} of 150,000 rows");
}

/// The end of a file is read once by all sessions of a handle.
#[tokio::test(flavor = "multi_thread")]
async fn footers_are_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let table = table(&dir).await;
    let (first, second) = (table.session().unwrap(), table.session().unwrap());
    let cached = |session: &evenkeel::query::TableSession| {
        session.context().runtime_env().cache_manager.get_file_metadata_cache().list_entries().len()
    };
    assert_eq!(cached(&first), 0);
    first.collect("SELECT sum(value) FROM t", &Params::default()).await.unwrap();
    assert_eq!((cached(&first), cached(&second)), (6, 6));
}
