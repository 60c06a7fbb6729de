//! What DataFusion does, and the store works around or relies on. A test that fails after an
//! upgrade says which part of the store to look at: a workaround may go, or something it relied on
//! is gone.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::config::ConfigOptions;
use datafusion::datasource::MemTable;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, FileScanConfigBuilder, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::expressions::{Column, is_not_null};
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::limit_pushdown::LimitPushdown;
use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
use datafusion::physical_plan::filter::FilterExecBuilder;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext, col};
use parquet::arrow::ArrowWriter;

use crate::common::rows;

fn ordering() -> LexOrdering {
    let column = Arc::new(Column::new("k", 0));
    let options = SortOptions { descending: false, nulls_first: true };
    LexOrdering::new([PhysicalSortExpr::new(column, options)]).unwrap()
}

/// A scan of two groups of files that are sorted by `k`.
fn sorted_scan(partitioning: Option<Partitioning>) -> FileScanConfig {
    let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, false)]));
    let group = |name: &str| FileGroup::new(vec![PartitionedFile::new(name, 1)]);
    FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(ParquetSource::new(schema)))
        .with_file_groups(vec![group("a"), group("b")])
        .with_output_ordering(vec![ordering()])
        .with_output_partitioning(partitioning)
        .build()
}

fn scan_below(plan: &Arc<dyn ExecutionPlan>) -> FileScanConfig {
    match plan.downcast_ref::<DataSourceExec>() {
        Some(scan) => scan.data_source().downcast_ref::<FileScanConfig>().unwrap().clone(),
        None => scan_below(plan.children()[0]),
    }
}

/// `query::ordered_scan` is there because of it.
#[test]
fn a_limit_above_a_merge_takes_the_order_of_a_plain_scan_away() {
    let scan = sorted_scan(None);
    assert!(scan.preserve_order);
    let merge = SortPreservingMergeExec::new(ordering(), DataSourceExec::from_data_source(scan));
    let plan = Arc::new(merge.with_fetch(Some(5)));
    let optimized = LimitPushdown::new().optimize(plan, &ConfigOptions::default()).unwrap();
    assert!(
        !scan_below(&optimized).preserve_order,
        "DataFusion keeps the order of a scan below a limit: OrderedScan may go"
    );
}

/// `NewestWinsExec` relies on it: each of its inputs is one file group.
#[test]
fn a_declared_partitioning_keeps_file_groups_as_they_are() {
    let scan = sorted_scan(Some(Partitioning::UnknownPartitioning(2)));
    let plan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(scan);
    assert!(plan.repartitioned(8, &ConfigOptions::default()).unwrap().is_none());
}

fn in_memory(columns: Vec<(&str, ArrayRef)>) -> SessionContext {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    context
}

async fn answer(context: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let frame = context.sql(sql).await.map_err(|error| error.to_string())?;
    Ok(rows(&frame.collect().await.map_err(|error| error.to_string())?))
}

/// `query::float_extremes` is there because of it.
#[tokio::test]
async fn the_largest_float_of_a_group_depends_on_the_order_of_its_rows() {
    let largest = async |floats: [f64; 3]| {
        let groups = Arc::new(Int64Array::from(vec![1; 3]));
        let context = in_memory(vec![("g", groups), ("f", Arc::new(Float64Array::from(floats.to_vec())))]);
        answer(&context, "SELECT g, max(f) FROM t GROUP BY g").await.unwrap()[0][1].clone()
    };
    let (first, last) = (largest([f64::NAN, 1.0, 2.0]).await, largest([1.0, 2.0, f64::NAN]).await);
    assert_ne!(first, last, "DataFusion orders NaN in groups: float_extremes may go");
}

/// `query::float_groups` is there because of it.
#[tokio::test]
async fn limited_groups_of_floats_split_nan_or_panic() {
    let floats: Vec<f64> =
        (0..50).map(|row| if row % 5 == 0 { f64::NAN } else { f64::from(row % 7) }).collect();
    let limited = tokio::spawn(async move {
        let context = in_memory(vec![("f", Arc::new(Float64Array::from(floats)) as ArrayRef)]);
        answer(&context, "SELECT DISTINCT f FROM t ORDER BY f DESC LIMIT 9").await
    });
    let is_right = limited.await.is_ok_and(|found| found.is_ok_and(|rows| rows.len() == 8));
    assert!(!is_right, "DataFusion limits groups of floats correctly: FloatGroups may go");
}

/// `query::limit_barrier::LimitsOverSorts` is there because of it.
#[tokio::test]
async fn the_limit_above_a_join_replaces_that_of_a_sort_below_it() {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    let batch = RecordBatch::try_from_iter([("k", keys)]).unwrap();
    let config = SessionConfig::new().with_target_partitions(2).with_batch_size(64);
    let context = SessionContext::new_with_config(config);
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    let table = table.with_sort_order(vec![vec![col("k").sort(true, true)]]);
    context.register_table("t", Arc::new(table)).unwrap();
    let sql = "SELECT k FROM t WHERE k IN (SELECT k FROM t ORDER BY k DESC LIMIT 100) ORDER BY k LIMIT 10";
    let found = answer(&context, sql).await.unwrap();
    assert_ne!(found[0], ["900"], "DataFusion keeps the limits of sorts below joins: LimitsOverSorts may go");
}

/// `query::projection_pushdown` is there because of it.
#[test]
fn a_projection_that_moves_below_a_repartitioning_takes_its_order_away() {
    let columns = |names: &[&str]| {
        let fields = names.iter().map(|name| Field::new(*name, DataType::Int64, false));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    };
    let group = |name: &str| FileGroup::new(vec![PartitionedFile::new(name, 1)]);
    let source = Arc::new(ParquetSource::new(columns(&["k", "a", "b"])));
    let scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
        .with_file_groups(vec![group("a"), group("b")])
        .with_output_ordering(vec![ordering()])
        .build();
    let scan = DataSourceExec::from_data_source(scan);
    let spread =
        RepartitionExec::try_new(scan, Partitioning::RoundRobinBatch(8)).unwrap().with_preserve_order();
    let keys = [(Arc::new(Column::new("k", 0)) as Arc<dyn PhysicalExpr>, "k".to_owned())];
    let projection = ProjectionExec::try_new(keys, Arc::new(spread)).unwrap();
    let plan: Arc<dyn ExecutionPlan> =
        Arc::new(SortPreservingMergeExec::new(ordering(), Arc::new(projection)));
    let optimized = ProjectionPushdown::new().optimize(plan, &ConfigOptions::default()).unwrap();
    let below = optimized.children()[0];
    assert!(
        below.is::<RepartitionExec>() && below.output_ordering().is_none(),
        "DataFusion moves projections without losing orders: SafeProjectionPushdown may check less"
    );
}

/// `query::projection_pushdown` is there because of it.
#[test]
fn a_projection_that_moves_below_a_filter_with_a_projection_takes_the_wrong_columns() {
    let fields = ["k", "a", "b"].map(|name| Field::new(name, DataType::Int64, true));
    let source = Arc::new(ParquetSource::new(Arc::new(Schema::new(fields.to_vec()))));
    let scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), source)
        .with_file_groups(vec![FileGroup::new(vec![PartitionedFile::new("a", 1)])])
        .build();
    let column = |name: &str, index| Arc::new(Column::new(name, index)) as Arc<dyn PhysicalExpr>;
    let filter =
        FilterExecBuilder::new(is_not_null(column("a", 1)).unwrap(), DataSourceExec::from_data_source(scan))
            .apply_projection(Some(vec![2, 1, 0]))
            .unwrap()
            .build()
            .unwrap();
    let columns = [(column("b", 0), "b".to_owned()), (column("a", 1), "a".to_owned())];
    let plan: Arc<dyn ExecutionPlan> = Arc::new(ProjectionExec::try_new(columns, Arc::new(filter)).unwrap());
    let optimized = ProjectionPushdown::new().optimize(plan, &ConfigOptions::default());
    assert!(
        optimized.is_err(),
        "DataFusion moves projections below filters that have one: SafeProjectionPushdown may do less"
    );
}

/// `query::nullable_lists` is there because of it.
#[tokio::test]
async fn lists_without_a_common_value_are_combined_as_if_there_were_no_null() {
    let context = in_memory(vec![("x", Arc::new(Int64Array::from(vec![None, Some(1)])) as ArrayRef)]);
    let found = answer(&context, "SELECT count(*) FROM t WHERE x NOT IN (1, 2) OR x NOT IN (3, 4)").await;
    assert_ne!(found.unwrap(), [["1"]], "DataFusion combines lists with NULL in mind: NullableLists may go");
}

/// `sql::distinct_from` is there because of it.
#[tokio::test]
async fn is_distinct_from_takes_the_conditions_behind_it_as_its_right_side() {
    let context = in_memory(vec![("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
    let found = answer(&context, "SELECT true IS DISTINCT FROM false AND false FROM t").await;
    assert_ne!(found.unwrap(), [["false"]], "The parser knows its precedence: bind_distinct_from may go");
}

/// Registers a Parquet file of the columns.
async fn register(context: &SessionContext, path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let table = path.file_stem().unwrap().to_str().unwrap();
    context.register_parquet(table, path.to_str().unwrap(), ParquetReadOptions::default()).await.unwrap();
}

/// `query::portion_readers` is there because of it.
#[tokio::test]
async fn row_groups_with_nan_are_pruned_as_if_they_had_none() {
    let dir = tempfile::tempdir().unwrap();
    let context = SessionContext::new();
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN]));
    register(&context, &dir.path().join("t.parquet"), vec![("f", floats)]).await;
    let found = answer(&context, "SELECT count(*) FROM t WHERE f > 100").await.unwrap();
    assert_eq!(found, [["0"]], "DataFusion no longer prunes NaN away: PortionReaders may go");
}

/// `without_filters_of_extremes` is there because of it.
#[tokio::test]
async fn the_least_value_of_an_expression_is_looked_for_only_in_rows_with_less_in_another_column() {
    let dir = tempfile::tempdir().unwrap();
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .set_bool("datafusion.execution.parquet.pushdown_filters", true);
    let context = SessionContext::new_with_config(config);
    // The last of many files has the least `b`.
    for from in (0..120_000).step_by(10_000) {
        let rows = || from..from + 10_000;
        let rising: ArrayRef = Arc::new(Int64Array::from_iter_values(rows()));
        let falling: ArrayRef = Arc::new(Int64Array::from_iter_values(rows().map(|row| 120_000 - row)));
        let batch = RecordBatch::try_from_iter([("a", rising), ("b", falling)]).unwrap();
        let file = File::create(dir.path().join(format!("{from:06}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
    let folder = dir.path().to_str().unwrap();
    context.register_parquet("t", folder, ParquetReadOptions::default()).await.unwrap();
    let found = answer(&context, "SELECT min(a), min(b + 1) FROM t").await.unwrap();
    assert_ne!(found, [["0", "2"]], "DataFusion reads all rows: without_filters_of_extremes may go");
}

/// `query::filter_pushdown` is there because of it.
#[tokio::test]
async fn a_filter_on_the_second_of_two_columns_of_one_name_is_pushed_to_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let config = SessionConfig::new().set_bool("datafusion.execution.parquet.pushdown_filters", true);
    let context = SessionContext::new_with_config(config);
    // The larger table is on the left, so that the join is turned round below a projection.
    for (table, rows, points) in [("a", 100, 1), ("b", 2, 5)] {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let points: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|_| points)));
        let path = dir.path().join(format!("{table}.parquet"));
        register(&context, &path, vec![("k", keys), ("points", points)]).await;
    }
    let sql = "SELECT count(*) FROM a RIGHT JOIN b ON a.k = b.k WHERE coalesce(a.points, 0) < b.points";
    let found = answer(&context, sql).await.unwrap();
    assert_ne!(found, [["2"]], "DataFusion finds columns by position: SafeFilterPushdown may go");
}

/// `query::filter_pushdown` is there because of it, too.
#[tokio::test]
async fn a_join_passes_on_bounds_that_exclude_zeros_of_the_other_sign() {
    let dir = tempfile::tempdir().unwrap();
    let config = SessionConfig::new().set_bool("datafusion.execution.parquet.pushdown_filters", true);
    let context = SessionContext::new_with_config(config);
    for (table, rows, zero) in [("a", 2, 0.0), ("b", 1000, -0.0)] {
        let floats: ArrayRef = Arc::new(Float64Array::from_iter_values((0..rows).map(|_| zero)));
        register(&context, &dir.path().join(format!("{table}.parquet")), vec![("f", floats)]).await;
    }
    let found = answer(&context, "SELECT count(*) FROM a JOIN b ON a.f = b.f").await.unwrap();
    assert_ne!(found, [["2000"]], "DataFusion passes on bounds of both zeros: fractional_keys may go");
}

/// `sql::time_literals` and `query::window_frames` are there because of them.
#[tokio::test]
async fn times_are_nanoseconds_and_bytes_have_no_range() {
    let context = in_memory(vec![("k", Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef)]);
    let far = answer(&context, "SELECT TIMESTAMP '3000-01-01 00:00:00'").await;
    assert!(far.is_err(), "DataFusion reads the year 3000: time_literals may go: {far:?}");
    let ranks = answer(&context, "SELECT rank() OVER (ORDER BY arrow_cast(k, 'BinaryView')) FROM t").await;
    assert!(ranks.is_err(), "DataFusion orders windows by bytes: window_frames may go: {ranks:?}");
}

/// The modules of `query` that each statement names are there because of it.
#[tokio::test]
async fn statements_have_wrong_answers() {
    let context = SessionContext::new();
    let tables = "WITH u AS (SELECT * FROM (VALUES (1, 1), (2, 2)) AS u(k, g)),
        w AS (SELECT * FROM (VALUES (1, 1), (NULL, 2)) AS w(k, g)),
        s AS (SELECT * FROM (VALUES (1, 10), (2, NULL), (3, 30), (4, 40), (5, NULL), (6, 60)) AS s(k, v)),
        d AS (SELECT arrow_cast(x, 'Decimal128(18, 4)') AS x FROM (VALUES (1.2345)) AS d(x)) ";
    for (module, sql, right) in [
        (
            "opaque_casts",
            "SELECT count(*) FROM d WHERE CAST(x AS DECIMAL(16, 2)) = CAST('1.23' AS DECIMAL(16, 2))",
            1,
        ),
        ("exact_subqueries", "SELECT count(*) FROM u WHERE 3 NOT IN (SELECT k FROM w)", 0),
        ("exact_subqueries", "SELECT count(*) FROM u WHERE k NOT IN (SELECT k FROM w) OR k = 1", 1),
        (
            "exact_subqueries",
            "SELECT count(*) FROM u WHERE EXISTS (SELECT count(*) FROM w WHERE w.k = u.k)",
            2,
        ),
        (
            "exact_subqueries",
            "SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM w WHERE w.k = u.k OFFSET 1)",
            0,
        ),
        (
            "later_values",
            "SELECT sum(n) FROM (SELECT lead(v, 2) IGNORE NULLS OVER (ORDER BY k) AS n FROM s)",
            30 + 40 + 40 + 60,
        ),
        (
            "unnested_rows",
            "SELECT count(*) FROM (SELECT DISTINCT g FROM (SELECT g, unnest([1, 2]) FROM (SELECT DISTINCT g FROM u)))",
            2,
        ),
        (
            "drawn_values",
            "SELECT count(*) FROM generate_series(1, 1000) WHERE random() BETWEEN 0.6 AND 0.4",
            0,
        ),
        ("array_has", "SELECT count(*) FROM u WHERE NOT array_has([2, NULL], k)", 1),
    ] {
        let found = answer(&context, &format!("{tables}{sql}")).await.unwrap();
        assert_ne!(found, [[right.to_string()]], "DataFusion answers right: {module} may go: {sql}");
    }
}
