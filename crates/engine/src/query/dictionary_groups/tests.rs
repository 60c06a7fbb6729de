//! Groups found by codes are those of DataFusion.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int64Array, RecordBatch, StringViewArray, UInt32Array,
};
use arrow::datatypes::{DataType, Field, Schema, UInt32Type};
use arrow::util::pretty::pretty_format_batches;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_model::units::ByteSize;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::Table;
use crate::query::dictionary_groups::exec::DictionaryGroupsExec;
use crate::query::dictionary_groups::members::Members;
use crate::query::dictionary_groups::texts::Texts;
use crate::query::scan::ordered_scan::OrderedScan;
use crate::query::{Params, QueryLimits, TableSession};
use crate::testing::{create, ingest};

const DDL: &str = "CREATE TABLE t (
    k Int64 NOT NULL, few Utf8 NOT NULL, some Utf8, many Utf8, bytes String, n Int64, f Double,
    PRIMARY KEY (k)
) PARTITION BY HASH(k) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 3)";

/// Rows `from..to`: `few` has seven texts, `some` about 500 and NULL, `many` one for two rows, too
/// many for a dictionary, and `bytes` 40 and NULL.
fn rows(table: &Table, from: i64, to: i64) -> RecordBatch {
    let text = |value: &dyn Fn(i64) -> Option<String>| -> ArrayRef {
        Arc::new((from..to).map(value).collect::<arrow::array::StringArray>())
    };
    let column = |name: &str| -> ArrayRef {
        match name {
            "k" => Arc::new(Int64Array::from_iter_values(from..to)),
            "few" => text(&|row| Some(format!("a rather long text {}", row * row % 11))),
            "some" => text(&|row| (row % 13 != 0).then(|| format!("{}", row * 7_919 % 509))),
            "many" => text(&|row| Some(format!("text {}", row * 7_919 % 1_000_003 / 2))),
            "bytes" => {
                let value = |row: i64| (row % 17 != 3).then(|| vec![0xff, (row % 40) as u8]);
                Arc::new((from..to).map(value).collect::<arrow::array::BinaryArray>())
            }
            "n" => Arc::new(Int64Array::from_iter((from..to).map(|row| (row % 5 != 0).then_some(row % 97)))),
            "f" => {
                Arc::new(arrow::array::Float64Array::from_iter_values((from..to).map(|row| (row % 8) as f64)))
            }
            _ => text(&|row| (row % 2 == 0).then(|| format!("added {}", row % 3))),
        }
    };
    let names = table.spec().schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    RecordBatch::try_from_iter_with_nullable(names.iter().map(|name| (name.as_str(), column(name), true)))
        .unwrap()
}

/// A table with several portions in each partition, of which the first lack the column `added`.
async fn table() -> (tempfile::TempDir, Table) {
    let (folder, mut table) = create(DDL).await;
    let batch = rows(&table, 0, 60_000);
    ingest(&mut table, batch).await;
    let added = Column { name: "added".to_owned(), column_type: ColumnType::Utf8, nullable: true };
    table.alter(|definition| definition.columns.push(added.clone())).await.unwrap();
    let batch = rows(&table, 60_000, 100_000);
    ingest(&mut table, batch).await;
    (folder, table)
}

/// Changes a session so that DataFusion groups.
fn left_to_datafusion(session: &TableSession) {
    let state = session.context().state_ref();
    let mut state = state.write();
    let rules = state.physical_optimizers().iter().filter(|rule| rule.name() != "GroupByDictionaries");
    let rules = rules.cloned().collect();
    *state =
        SessionStateBuilder::new_from_existing(state.clone()).with_physical_optimizer_rules(rules).build();
}

/// Returns the rows of a plan, sorted as text.
async fn sorted(session: &TableSession, plan: Arc<dyn ExecutionPlan>) -> Vec<String> {
    let batches = collect(plan, session.context().task_ctx()).await.unwrap();
    let mut lines: Vec<String> =
        pretty_format_batches(&batches).unwrap().to_string().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Nodes of a plan that group by codes.
fn nodes(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let mut nodes = 0;
    plan.apply(|node| {
        nodes += usize::from(node.is::<DictionaryGroupsExec>());
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    nodes
}

/// Compares the groups of a query in two sessions, and with those of the scans that DataFusion
/// opens; returns the nodes that group by codes.
async fn compare(session: &TableSession, plain: &TableSession, sql: &str) -> usize {
    let params = Params::default();
    let plan = session.physical_plan(sql, &params).await.unwrap();
    let expected = plain.physical_plan(sql, &params).await.unwrap();
    assert_eq!(nodes(&expected), 0, "{sql}");
    let expected = sorted(plain, expected).await;
    assert!(expected.len() > 4, "{sql}");
    assert_eq!(sorted(session, Arc::clone(&plan)).await, expected, "{sql}");
    let again = session.physical_plan(sql, &params).await.unwrap();
    let left = |node: Arc<dyn ExecutionPlan>| {
        let scan = OrderedScan::from_plan(node.as_ref()).map(OrderedScan::left_to_datafusion);
        Ok(scan.map_or_else(
            || datafusion::common::tree_node::Transformed::no(node),
            datafusion::common::tree_node::Transformed::yes,
        ))
    };
    let again = again.transform_up(left).unwrap().data;
    assert_eq!(sorted(session, again).await, expected, "{sql}, opened by DataFusion");
    nodes(&plan)
}

const GROUPED: [&str; 24] = [
    "SELECT few, count(*) FROM t GROUP BY few",
    "SELECT some, count(*), sum(n), min(f), avg(n), max(k) FROM t GROUP BY some",
    "SELECT many, count(*), max(n) FROM t GROUP BY many",
    "SELECT bytes, count(n) FROM t GROUP BY bytes",
    "SELECT added, count(*) FROM t GROUP BY added",
    "SELECT few, some, count(*), sum(f) FROM t GROUP BY few, some",
    "SELECT few, some, added, bytes, count(*) FROM t GROUP BY few, some, added, bytes",
    "SELECT some, many, sum(n) FROM t GROUP BY some, many",
    "SELECT few, n, count(*) FROM t GROUP BY few, n",
    "SELECT n % 3 AS part, some, f, max(k) FROM t GROUP BY n % 3, some, f",
    "SELECT DISTINCT some, few FROM t",
    "SELECT count(DISTINCT some) AS c, 1 AS d FROM t WHERE k > 7",
    "SELECT few, count(*) FILTER (WHERE n > 50) AS c, sum(n) FILTER (WHERE f < 3) FROM t GROUP BY few",
    "SELECT some, count(*) FROM t WHERE n = 9 AND f > 2 GROUP BY some",
    "SELECT added, count(*) FROM t WHERE k < 10000 GROUP BY added",
    "SELECT few, round(stddev(n), 6), count(DISTINCT n), bool_or(f > 6) FROM t GROUP BY few",
    "SELECT some, max(few), count(*) FROM t WHERE few <> 'a rather long text 4' GROUP BY some",
    "SELECT few, count(*) FROM t WHERE few > 'a rather long text 3' GROUP BY few",
    "SELECT few, some, sum(n) FROM t WHERE some LIKE '%1%' AND few NOT LIKE '%3' AND n > 9 GROUP BY 1, 2",
    "SELECT many, count(*) FROM t WHERE length(many) > 9 AND many ~ '7$' GROUP BY many",
    "SELECT bytes, count(*) FROM t WHERE bytes IS NOT NULL AND bytes > X'FF07' GROUP BY bytes",
    "SELECT added, count(*) FROM t WHERE added <> 'added 1' OR added IS NULL GROUP BY added",
    "SELECT many, CASE WHEN k % 2 = 0 THEN 1 END AS a, CASE WHEN k % 2 = 1 THEN 1 END AS b, sum(k), count(*)
     FROM t GROUP BY 1, 2, 3",
    "SELECT many, some, added, CASE WHEN n > 9 THEN some END AS x, sum(k) FROM t GROUP BY 1, 2, 3, 4",
];

/// Statements that use a text otherwise, too, or have rows in the order of the key.
const OTHERS: [&str; 6] = [
    "SELECT few, max(few) FROM t GROUP BY few",
    "SELECT few, count(*) FROM t WHERE few < added GROUP BY few",
    "SELECT some, few, upper(few) AS s, count(*) FROM t GROUP BY some, few, upper(few)",
    "SELECT n, count(*) FROM t GROUP BY n",
    "SELECT few, some, count(*) FROM t GROUP BY ROLLUP (few, some)",
    "SELECT few, string_agg(some, ',' ORDER BY k) AS s FROM t WHERE k < 100 GROUP BY few",
];

#[tokio::test]
async fn groups_are_those_of_datafusion() {
    let (_folder, table) = table().await;
    let (session, plain) = (table.session().unwrap(), table.session().unwrap());
    left_to_datafusion(&plain);
    for sql in GROUPED {
        assert_eq!(compare(&session, &plain, sql).await, 1, "{sql}");
    }
    for sql in OTHERS {
        let nodes = compare(&session, &plain, sql).await;
        assert_eq!(nodes, usize::from(sql.contains("upper")), "{sql}");
    }
}

#[tokio::test]
async fn groups_are_the_same_with_little_memory_and_if_nearly_every_row_has_its_own() {
    let (_folder, table) = table().await;
    let plain = table.session().unwrap();
    left_to_datafusion(&plain);
    let limits = QueryLimits { memory: ByteSize::mib(16), ..QueryLimits::default() };
    let tight = table.session_with(&limits).unwrap();
    let skipping = table.session().unwrap();
    {
        let state = skipping.context().state_ref();
        let mut state = state.write();
        let options = &mut state.config_mut().options_mut().execution;
        options.skip_partial_aggregation_probe_rows_threshold = 10_000;
        options.skip_partial_aggregation_probe_ratio_threshold = 0.01;
    }
    for sql in GROUPED {
        assert_eq!(compare(&skipping, &plain, sql).await, 1, "{sql}");
        assert_eq!(compare(&tight, &plain, sql).await, 1, "{sql}");
    }
}

#[tokio::test]
async fn a_partition_key_with_one_text_in_each_partition_is_a_dictionary_of_one() {
    let (_folder, mut table) = create(
        "CREATE TABLE t (city Utf8 NOT NULL, k Int64 NOT NULL, PRIMARY KEY (k, city))
         PARTITION BY HASH(city) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 64)",
    )
    .await;
    let city = |row: i64| ["Bonn", "Kiel", "Ulm"][(row % 3) as usize];
    let columns: [(&str, ArrayRef); 2] = [
        ("city", Arc::new(arrow::array::StringArray::from_iter_values((0..30_000).map(city)))),
        ("k", Arc::new(Int64Array::from_iter_values(0..30_000))),
    ];
    ingest(&mut table, RecordBatch::try_from_iter(columns).unwrap()).await;
    let (session, plain) = (table.session().unwrap(), table.session().unwrap());
    left_to_datafusion(&plain);
    let sql = "SELECT city, count(*) AS c, max(k) FROM t GROUP BY city";
    assert_eq!(compare(&session, &plain, sql).await, 1);
    let rows = sorted(&session, session.physical_plan(sql, &Params::default()).await.unwrap()).await;
    assert!(rows.iter().any(|row| row.contains("Bonn") && row.contains("10000") && row.contains("29997")));
}

#[tokio::test]
async fn groups_within_partitions_are_complete_also_if_memory_does_not_suffice() {
    const ROWS: i64 = 400_000;
    let (_folder, mut table) = create(
        "CREATE TABLE t (user Utf8 NOT NULL, k Int64 NOT NULL, kind Utf8, PRIMARY KEY (k, user))
         PARTITION BY HASH(user) WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 4)",
    )
    .await;
    let text = |value: &dyn Fn(i64) -> String| -> ArrayRef {
        Arc::new(arrow::array::StringArray::from_iter_values((0..ROWS).map(value)))
    };
    let columns: [(&str, ArrayRef); 3] = [
        ("user", text(&|row| format!("user with a long name {}", row * 7_919 % 200_003))),
        ("k", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("kind", text(&|row| format!("{}", row % 3))),
    ];
    ingest(&mut table, RecordBatch::try_from_iter(columns).unwrap()).await;
    let plain = table.session().unwrap();
    left_to_datafusion(&plain);
    let limits = QueryLimits { memory: ByteSize::mib(16), ..QueryLimits::default() };
    let tight = table.session_with(&limits).unwrap();
    // With so little memory, DataFusion does not spill more groups either.
    for (session, statements) in [(table.session().unwrap(), 3), (tight, 1)] {
        let all = [
            "SELECT user, count(*), sum(k) FROM t GROUP BY user",
            "SELECT user, kind, count(*), max(k) FROM t GROUP BY user, kind",
            "SELECT count(*), sum(n), sum(s) FROM (
                 SELECT user, kind, k % 2, count(*) AS n, sum(k) AS s FROM t GROUP BY user, kind, k % 2
             ) AS g",
        ];
        for sql in &all[..statements] {
            let plan = session.physical_plan(sql, &Params::default()).await.unwrap();
            let shown = datafusion::physical_plan::displayable(plan.as_ref()).indent(true).to_string();
            assert!(shown.contains("DictionaryGroupsExec: mode=SinglePartitioned"), "{shown}");
            assert_eq!(compare(&session, &plain, sql).await, 1, "{sql}");
        }
    }
}

/// Dictionaries in batches, as lists of texts with codes, some of which are NULL.
fn random_batches(random: &mut ChaCha8Rng, batches: usize) -> Vec<DictionaryArray<UInt32Type>> {
    let mut all = Vec::new();
    let mut values: ArrayRef = Arc::new(StringViewArray::from_iter_values(["first"]));
    for _ in 0..batches {
        if random.random_bool(0.4) {
            let size = random.random_range(1..200);
            let text = |_| format!("text {}", random.random_range(0..300));
            values = Arc::new(StringViewArray::from_iter_values((0..size).map(text)));
        }
        let rows = random.random_range(0..100);
        let code = |_| random.random_bool(0.9).then(|| random.random_range(0..values.len() as u32));
        let codes: UInt32Array = (0..rows).map(code).collect();
        all.push(DictionaryArray::try_new(codes, Arc::clone(&values)).unwrap());
    }
    all
}

#[test]
fn equal_texts_have_equal_numbers_in_all_dictionaries() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let field = Field::new("text", DataType::Utf8View, true);
    let (mut of_rows, mut with_others) =
        (Texts::try_new(&field, false).unwrap(), Texts::try_new(&field, true).unwrap());
    for turn in 0..40 {
        let texts = if turn % 2 == 0 { &mut of_rows } else { &mut with_others };
        let (mut numbers, mut expected) = (Vec::new(), Vec::new());
        for batch in random_batches(&mut random, 30) {
            texts.number(&batch, &mut numbers, |number| number).unwrap();
            let own = batch.downcast_dict::<StringViewArray>().unwrap();
            expected.extend(own.into_iter().map(|text| text.map(str::to_owned)));
        }
        let count = texts.len();
        let emitted = texts.emit().unwrap();
        let emitted = emitted.as_string_view();
        assert_eq!(count, emitted.len());
        let found = numbers.iter().map(|number| *number as usize);
        let found: Vec<Option<String>> =
            found.map(|number| emitted.is_valid(number).then(|| emitted.value(number).to_owned())).collect();
        assert_eq!(found, expected);
        let distinct: std::collections::HashSet<_> = expected.into_iter().collect();
        assert!(if turn % 2 == 0 { distinct.len() == count } else { distinct.len() <= count });
    }
}

#[tokio::test]
async fn texts_that_conditions_use_are_read_with_dictionaries_too() {
    let (_folder, table) = table().await;
    let session = table.session().unwrap();
    for (sql, expected) in [
        ("SELECT few, count(*) FROM t WHERE few > 'a rather long text 3' GROUP BY few", vec!["few"]),
        ("SELECT few, some, sum(n) FROM t WHERE some LIKE '%1%' GROUP BY 1, 2", vec!["few", "some"]),
        ("SELECT few, sum(n) FROM t WHERE few < added GROUP BY few", vec![]),
    ] {
        let plan = session.physical_plan(sql, &Params::default()).await.unwrap();
        sorted(&session, Arc::clone(&plan)).await;
        assert_eq!(OrderedScan::coded_columns(&plan), expected, "{sql}");
    }
}

#[test]
fn groups_of_several_numbers_are_those_of_a_map_also_if_they_outgrow_the_array() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    for columns in 1..=4 {
        for most in [2, 20, 70_000] {
            let field = |column: usize| Field::new(format!("c{column}"), DataType::UInt32, false);
            let schema = Arc::new(Schema::new((0..columns).map(field).collect::<Vec<_>>()));
            let mut members = Members::try_new(&schema, true).unwrap();
            let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
            let mut order: Vec<Vec<u32>> = Vec::new();
            let mut counts = vec![0_usize; columns];
            let mut groups = Vec::new();
            for step in 1..=40 {
                let most = (most * step / 40).max(1) as u32;
                let row = |_| (0..columns).map(|_| random.random_range(0..most)).collect::<Vec<u32>>();
                let rows: Vec<Vec<u32>> = (0..50).map(row).collect();
                let of_column = |column: usize| rows.iter().map(|row| row[column]).collect::<Vec<_>>();
                for (column, count) in counts.iter_mut().enumerate() {
                    *count = of_column(column)
                        .into_iter()
                        .map(|number| number as usize + 1)
                        .max()
                        .unwrap()
                        .max(*count);
                }
                let keys =
                    (0..columns).map(|column| Arc::new(UInt32Array::from(of_column(column))) as ArrayRef);
                members.find(keys.collect(), &counts, &mut groups).unwrap();
                let expected: Vec<usize> = rows
                    .into_iter()
                    .map(|row| {
                        *known.entry(row.clone()).or_insert_with(|| {
                            order.push(row);
                            order.len() - 1
                        })
                    })
                    .collect();
                assert_eq!(groups, expected);
                assert_eq!(members.len(), order.len());
            }
            let emitted = members.emit().unwrap();
            for (column, numbers) in emitted.iter().enumerate() {
                let expected: Vec<u32> = order.iter().map(|row| row[column]).collect();
                assert_eq!(numbers.as_primitive::<UInt32Type>().values().to_vec(), expected);
            }
            assert_eq!(members.len(), 0);
        }
    }
}
