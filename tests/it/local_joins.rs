//! Joins and groupings within partitions: random pairs of tables, against DataFusion over the same
//! rows in memory, in one partition.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use evenkeel::Table;
use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::ingest::IngestOptions;
use evenkeel::query::{Database, JoinSummary, Params, QueryLimits, TableSession};
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::sorted_rows;

/// Types of the columns `k` and `l` of a partition key; `l` may be absent.
type Key = (ColumnType, Option<ColumnType>);

#[derive(Debug, Clone)]
struct Shape {
    key: Key,
    partitions: u64,
    placement: PlacementFunction,
    rows: usize,
    /// Number of key values that rows may have, from `first` on.
    keys: i64,
    first: i64,
    /// Share of the rows that have one key.
    heavy: f64,
    batches: usize,
    is_compacted: bool,
}

impl Shape {
    /// 1,000 rows by (k) in 16 partitions.
    fn plain() -> Self {
        Self {
            key: (ColumnType::Int64, None),
            partitions: 16,
            placement: PlacementFunction::Ydb,
            rows: 1_000,
            keys: 2_000,
            first: 0,
            heavy: 0.0,
            batches: 1,
            is_compacted: false,
        }
    }

    fn random(random: &mut ChaCha8Rng, key: Key) -> Self {
        let functions = [PlacementFunction::Ydb, PlacementFunction::Ydb, PlacementFunction::YdbModulo];
        // Rows and keys: three tables with many rows of one key have too many joined rows.
        let sizes = [(0, 60), (1, 3), (40, 4), (300, 60), (600, 300), (2_500, 2_000)];
        let (rows, keys) = *sizes.choose(random).unwrap();
        Self {
            key,
            partitions: *[1, 2, 3, 4, 8, 12, 16, 64].choose(random).unwrap(),
            placement: *functions.choose(random).unwrap(),
            rows,
            keys,
            first: *[0, 1, 30].choose(random).unwrap(),
            heavy: if rows == 300 { 0.2 } else { 0.0 },
            batches: random.random_range(1..4),
            is_compacted: random.random_bool(0.3),
        }
    }

    fn spec(&self, name: &str) -> TableSpec {
        let (k, l) = self.key;
        let key: Vec<String> =
            ["k", "l"].iter().take(1 + usize::from(l.is_some())).map(|n| (*n).into()).collect();
        let mut columns = vec![Column::required("k", k)];
        columns.extend(l.map(|l| Column::required("l", l)));
        columns.push(Column::required("id", ColumnType::Int64));
        columns.push(Column::nullable("v", ColumnType::Int64));
        columns.push(Column::nullable("w", ColumnType::Utf8));
        TableSpec::new(TableDefinition {
            name: name.into(),
            columns,
            primary_key: key.iter().cloned().chain(["id".into()]).collect(),
            partition_key: key,
            partitions: PartitionCount::new(self.partitions).unwrap(),
            placement: self.placement,
            ttl: None,
        })
        .unwrap()
    }

    fn batch(&self, spec: &TableSpec, random: &mut ChaCha8Rng) -> RecordBatch {
        let rows = self.rows / self.batches + usize::from(self.rows > 0);
        let key = |random: &mut ChaCha8Rng| match random.random_bool(self.heavy) {
            true => self.first + 1,
            false => self.first + random.random_range(0..self.keys),
        };
        let keys: Vec<i64> = (0..rows).map(|_| key(random)).collect();
        let array = |column_type: ColumnType, values: &[i64]| -> ArrayRef {
            match column_type {
                ColumnType::Int32 => Arc::new(Int32Array::from_iter_values(values.iter().map(|v| *v as i32))),
                ColumnType::Utf8 => {
                    Arc::new(StringArray::from_iter_values(values.iter().map(|v| format!("key {v}"))))
                }
                _ => Arc::new(Int64Array::from_iter_values(values.iter().copied())),
            }
        };
        let mut columns = vec![array(self.key.0, &keys)];
        if let Some(l) = self.key.1 {
            let values: Vec<i64> = (0..rows).map(|_| random.random_range(0..3)).collect();
            columns.push(array(l, &values));
        }
        let ids: Vec<i64> = (0..rows).map(|_| random.random_range(0..4_000)).collect();
        columns.push(array(ColumnType::Int64, &ids));
        let values = (0..rows).map(|_| random.random_bool(0.8).then(|| random.random_range(0..30)));
        columns.push(Arc::new(values.collect::<Int64Array>()));
        let texts =
            (0..rows).map(|_| random.random_bool(0.9).then(|| format!("w{}", random.random_range(0..9))));
        columns.push(Arc::new(texts.collect::<StringArray>()));
        RecordBatch::try_new(Arc::clone(spec.schema()), columns).unwrap()
    }
}

/// A table, and its visible rows as a naive engine has them.
async fn table(place: &Path, name: &str, shape: &Shape, random: &mut ChaCha8Rng) -> (Table, RecordBatch) {
    let spec = shape.spec(name);
    let mut table = Table::create(place, &spec).await.unwrap();
    let mut visible: BTreeMap<String, RecordBatch> = BTreeMap::new();
    for _ in 0..shape.batches {
        let batch = shape.batch(&spec, random);
        for row in 0..batch.num_rows() {
            let one = batch.slice(row, 1);
            let columns = one.num_columns() - 2;
            let key: Vec<usize> = (0..columns).collect();
            let key = crate::common::rows(&[one.project(&key).unwrap()]);
            visible.insert(format!("{key:?}"), one);
        }
        let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch)]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    if shape.is_compacted {
        let options = CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() };
        table.compact(&options, &|_| {}).await.unwrap();
    }
    let rows = arrow::compute::concat_batches(spec.schema(), visible.values()).unwrap();
    (table, rows)
}

/// Statements on `a`, `b` and `c`; `ON_AB` joins the first two on their whole partition keys.
const STATEMENTS: &[&str] = &[
    "SELECT a.id, b.id, a.v, b.w FROM a JOIN b ON ON_AB",
    "SELECT a.k, a.id, b.id FROM a LEFT JOIN b ON ON_AB",
    "SELECT a.id, b.k, b.id FROM a RIGHT JOIN b ON ON_AB",
    "SELECT a.id, b.id, a.k, b.k FROM a FULL JOIN b ON ON_AB",
    "SELECT a.id, b.id FROM a JOIN b ON ON_AB AND a.v < b.v",
    "SELECT a.id, b.id FROM a LEFT JOIN b ON ON_AB AND a.v = b.v AND a.id < b.id",
    "SELECT a.id, b.id FROM a FULL JOIN b ON ON_AB AND a.v = b.v",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE ON_AB)",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE ON_AB AND b.v > a.v)",
    "SELECT a.id, a.v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE ON_AB)",
    "SELECT a.id FROM a WHERE a.v > 20 OR EXISTS (SELECT 1 FROM b WHERE ON_AB AND b.v = 3)",
    "SELECT a.id FROM a WHERE a.k IN (SELECT b.k FROM b WHERE b.v < 9)",
    "SELECT a.id FROM a WHERE a.k NOT IN (SELECT b.k FROM b WHERE b.v < 9)",
    "SELECT a.id FROM a WHERE a.v > (SELECT avg(b.v) FROM b WHERE ON_AB)",
    "SELECT a.k, count(*), count(b.v), sum(b.v), min(a.w) FROM a JOIN b ON ON_AB GROUP BY a.k",
    "SELECT KEYS_A, count(*), max(b.w) FROM a JOIN b ON ON_AB GROUP BY KEYS_A",
    "SELECT KEYS_B, count(*), sum(a.v) FROM a LEFT JOIN b ON ON_AB GROUP BY KEYS_B",
    "SELECT KEYS_B, a.v, count(DISTINCT b.v) FROM a JOIN b ON ON_AB GROUP BY KEYS_B, a.v HAVING count(*) > 1",
    "SELECT a.v, count(*) FROM a JOIN b ON ON_AB GROUP BY a.v",
    "SELECT count(*), sum(a.v), min(b.v) FROM a JOIN b ON ON_AB",
    "SELECT DISTINCT KEYS_A, b.w FROM a JOIN b ON ON_AB",
    "SELECT KEYS_A, a.v, count(*) FROM a JOIN b ON ON_AB GROUP BY ROLLUP (KEYS_A, a.v)",
    "SELECT a.id, b.id, sum(b.v) OVER (PARTITION BY KEYS_A) FROM a JOIN b ON ON_AB",
    "SELECT id, row_number() OVER (PARTITION BY KEYS ORDER BY id, w) FROM (SELECT KEYS_A, a.id, b.w, b.id AS other FROM a JOIN b ON ON_AB) WHERE other < 100",
    "SELECT x.id, x.n, b.id FROM (SELECT KEYS_A, min(a.id) AS id, count(*) AS n FROM a GROUP BY KEYS_A) x JOIN b ON ON_XB",
    "SELECT a.id, b.id, c.id FROM a JOIN b ON ON_AB JOIN c ON ON_BC WHERE a.id < 900 AND b.id < 2000",
    "SELECT a.id, b.id, c.id FROM a LEFT JOIN b ON ON_AB LEFT JOIN c ON ON_BC WHERE a.id < 400",
    "SELECT a.id, b.id, c.id FROM a FULL JOIN b ON ON_AB LEFT JOIN c ON ON_BC WHERE b.id < 90",
    "SELECT KEYS_A, count(*) FROM a JOIN b ON ON_AB LEFT JOIN c ON ON_AC GROUP BY KEYS_A",
    "SELECT a.id, o.id FROM a JOIN a o ON ON_AO WHERE a.id < 500 AND o.id < 500",
    "SELECT a.id, b.id FROM a JOIN b ON ON_AB UNION ALL SELECT a.id, b.id FROM a JOIN b ON a.v = b.v WHERE a.id < 100 AND b.id < 100",
    "SELECT a.id, b.id FROM (SELECT * FROM a ORDER BY id, KEYS, v, w LIMIT 30) a JOIN b ON ON_AB",
    "SELECT a.id, b.id FROM a JOIN b ON ON_AB AND a.v IS NOT DISTINCT FROM b.v",
    "SELECT a.id, b.id FROM a JOIN b ON ON_AB ORDER BY a.id, b.id, KEYS_A LIMIT 25",
    "SELECT a.id, b.id FROM a JOIN b ON a.v = b.v WHERE a.id < 200 AND b.id < 200",
    "SELECT a.id, b.id FROM a JOIN b ON ON_AB WHERE a.id = 77 OR b.id = 1005",
    "SELECT a.id, b.id FROM a, b WHERE a.id < 20 AND b.id < 20",
    "SELECT c.id, j.id, j.other FROM (SELECT a.id, b.id AS other, b.v FROM a JOIN b ON ON_AB) j JOIN c ON c.v = j.v WHERE c.id < 60",
    "SELECT c.id, a.id, b.id FROM c JOIN (a JOIN b ON ON_AB) ON c.v = a.v AND c.w = b.w WHERE c.id < 150",
    "SELECT a.id, b.id FROM a LEFT JOIN b ON ON_AB WHERE b.v IN (SELECT c.v FROM c WHERE c.id < 40)",
    "SELECT a.id, b.w FROM a FULL JOIN b ON ON_AB WHERE a.w IN (SELECT c.w FROM c WHERE c.id < 9) OR b.v = 3",
    "SELECT a.id, b.id FROM a JOIN b ON ON_AB WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.v = b.v AND c.id < 400)",
    "SELECT c.id, x.n FROM (SELECT KEYS_A, a.v, count(*) AS n FROM a JOIN b ON ON_AB GROUP BY KEYS_A, a.v) x JOIN c ON c.v = x.v WHERE c.id < 90",
    "SELECT c.id, x.n FROM (SELECT KEYS_A, count(*) AS n FROM a JOIN b ON ON_AB GROUP BY KEYS_A) x JOIN c ON c.v = x.n WHERE c.id < 90",
    "SELECT a.id, b.id, b.v FROM a JOIN b ON ON_AB ORDER BY b.v DESC NULLS LAST, a.id, b.id, KEYS_A LIMIT 7",
    "WITH j AS (SELECT KEYS_A, a.v, b.w FROM a JOIN b ON ON_AB) SELECT x.v, y.w FROM j x JOIN j y ON ON_XY WHERE x.v = 5",
];

/// Writes a statement for tables whose partition keys have one or two columns.
fn statement(text: &str, columns: usize) -> String {
    let names = ["k", "l"].map(str::to_owned);
    let names = &names[..columns];
    let equal = |one: &str, other: &str| {
        let pairs: Vec<String> = names.iter().map(|name| format!("{one}.{name} = {other}.{name}")).collect();
        format!("({})", pairs.join(" AND "))
    };
    let of = |table: &str| names.iter().map(|name| format!("{table}.{name}")).collect::<Vec<_>>().join(", ");
    let mut text =
        text.replace("KEYS_A", &of("a")).replace("KEYS_B", &of("b")).replace("KEYS", &names.join(", "));
    for (mark, one, other) in [
        ("ON_AB", "a", "b"),
        ("ON_BC", "b", "c"),
        ("ON_AC", "a", "c"),
        ("ON_XB", "x", "b"),
        ("ON_AO", "a", "o"),
        ("ON_XY", "x", "y"),
    ] {
        text = text.replace(mark, &equal(one, other));
    }
    text
}

async fn joins(session: &TableSession, sql: &str) -> Vec<JoinSummary> {
    session.explain(sql, &Params::default()).await.unwrap().joins
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_within_partitions_give_the_rows_of_a_naive_engine() {
    let keys: [Key; 4] = [
        (ColumnType::Int64, None),
        (ColumnType::Utf8, None),
        (ColumnType::Int32, None),
        (ColumnType::Int64, Some(ColumnType::Utf8)),
    ];
    let (mut local, mut grouped, mut others) = (0, 0, 0);
    for seed in 0..16 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let dir = tempfile::tempdir().unwrap();
        let key = keys[seed as usize % keys.len()];
        let mut shapes = [(); 3].map(|()| Shape::random(&mut random, key));
        if seed % 4 != 3 {
            // Most pairs can be joined within their partitions.
            shapes[1].placement = shapes[0].placement;
            shapes[1].partitions = shapes[0].partitions * [1, 1, 4][random.random_range(0..3)];
        }
        if key == keys[2] && seed % 8 == 2 {
            shapes[1].key = keys[0];
        }
        let mut database = Database::default();
        let truth = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        for (name, shape) in ["a", "b", "c"].iter().zip(&shapes) {
            let (table, rows) = table(&dir.path().join(name), name, shape, &mut random).await;
            database.add_table(name, table.provider().unwrap()).unwrap();
            let rows = MemTable::try_new(rows.schema(), vec![vec![rows]]).unwrap();
            truth.register_table(*name, Arc::new(rows)).unwrap();
        }
        let session = database.session_with(&QueryLimits::default()).unwrap();
        for text in STATEMENTS {
            let sql = statement(text, 1 + usize::from(key.1.is_some()));
            let expected = sorted_rows(&truth.sql(&sql).await.unwrap().collect().await.unwrap());
            let found = sorted_rows(&session.collect(&sql, &Params::default()).await.unwrap());
            assert!(
                found == expected,
                "seed {seed}: {sql}: {} rows, not {}\n{shapes:#?}",
                found.len(),
                expected.len()
            );
            for join in joins(&session, &sql).await {
                local += usize::from(join.is_local);
                grouped += usize::from(join.is_grouped);
                others += usize::from(!join.is_local);
            }
        }
    }
    assert!(local > 100 && grouped > 20 && others > 100, "{local} {grouped} {others}");
}

/// Two tables of 1,000 rows each, `a` by (k) and `b` as given.
async fn pair(dir: &Path, other: &Shape) -> TableSession {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let one = Shape::plain();
    let mut database = Database::default();
    for (name, shape) in [("a", &one), ("b", other)] {
        let (table, _) = table(&dir.join(name), name, shape, &mut random).await;
        database.add_table(name, table.provider().unwrap()).unwrap();
    }
    database.session_with(&QueryLimits::default()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn explanations_say_what_keeps_a_join_from_staying_within_partitions() {
    let like_a = Shape { batches: 2, ..Shape::plain() };
    let join = "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k";
    let cases: Vec<(Shape, &str, Result<&str, &str>)> = vec![
        (like_a.clone(), join, Ok("16 partitions")),
        (Shape { partitions: 64, ..like_a.clone() }, join, Ok("16 and 64 partitions")),
        (Shape { partitions: 4, ..like_a.clone() }, join, Ok("4 and 16 partitions")),
        (Shape { partitions: 24, ..like_a.clone() }, join, Err("a has 16 partitions, b 24")),
        (
            Shape { placement: PlacementFunction::YdbModulo, ..like_a.clone() },
            join,
            Err("a is placed by ydb, b by ydb-modulo"),
        ),
        (
            Shape { key: (ColumnType::Int32, None), ..like_a.clone() },
            join,
            Err("k of a is Int64, k of b is Int32"),
        ),
        (
            Shape { key: (ColumnType::Int64, Some(ColumnType::Int64)), ..like_a.clone() },
            join,
            Err("a is partitioned by (k), b by (k, l)"),
        ),
        (
            like_a.clone(),
            "SELECT a.id FROM a JOIN b ON a.id = b.id",
            Err("not joined on their partition keys, (k) of a and (k) of b"),
        ),
        (
            like_a.clone(),
            "SELECT a.id FROM a JOIN b ON a.k = b.k + 0",
            Err("not joined on their partition keys"),
        ),
        (
            like_a.clone(),
            "SELECT a.id FROM a JOIN b ON a.k = b.k WHERE a.k = 5",
            Err("only 1 of the partitions"),
        ),
        (
            like_a.clone(),
            "SELECT a.id FROM (SELECT * FROM a LIMIT 10) a JOIN b ON a.k = b.k",
            Err("rows are limited first"),
        ),
        (
            like_a.clone(),
            "SELECT a.id FROM a JOIN (SELECT column1 AS k FROM (VALUES (1), (2))) b ON a.k = b.k",
            Err("its other rows do not come from a table"),
        ),
        (
            Shape { heavy: 1.0, ..like_a.clone() },
            "SELECT count(*) FROM a JOIN b ON a.k = b.k",
            Ok("16 partitions"),
        ),
    ];
    for (shape, sql, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let session = pair(dir.path(), &shape).await;
        let [found] = <[JoinSummary; 1]>::try_from(joins(&session, sql).await).unwrap();
        let (is_local, reason) = match expected {
            Ok(reason) => (true, reason),
            Err(reason) => (false, reason),
        };
        assert!(found.is_local == is_local && found.reason.contains(reason), "{sql}: {found:?}");
        session.collect(sql, &Params::default()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_within_partitions_shuffles_no_row_and_shows_one_partition() {
    let dir = tempfile::tempdir().unwrap();
    let shape = Shape { batches: 3, keys: 300, ..Shape::plain() };
    let session = pair(dir.path(), &shape).await;
    let sql = "SELECT a.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k";
    let explanation = session.explain(sql, &Params::default()).await.unwrap();
    let plan = &explanation.plan;
    assert!(plan.contains("PartitionwiseExec: partitions=16") && plan.contains("HashJoinExec"), "{plan}");
    assert!(!plan.contains("RepartitionExec"), "{plan}");
    assert!(explanation.joins[0].is_grouped, "{:?}", explanation.joins);
    assert_eq!(
        explanation.joins[0].to_string(),
        "a with b: joined and grouped within partitions, without a shuffle (16 partitions)"
    );
    // A grouping by another column shuffles groups, not joined rows.
    let sql = "SELECT a.v, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.v";
    let explanation = session.explain(sql, &Params::default()).await.unwrap();
    assert!(explanation.joins[0].is_local && !explanation.joins[0].is_grouped);
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_found_above_reach_the_scans_of_partitions() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut database = Database::default();
    for (name, shape) in [
        ("a", Shape::plain()),
        ("b", Shape { batches: 2, is_compacted: true, ..Shape::plain() }),
        ("c", Shape { rows: 20, partitions: 1, ..Shape::plain() }),
    ] {
        let (table, _) = table(&dir.path().join(name), name, &shape, &mut random).await;
        database.add_table(name, table.provider().unwrap()).unwrap();
    }
    let session = database.session_with(&QueryLimits::default()).unwrap();
    let conditions = async |sql: &str| {
        let plan = session.explain(sql, &Params::default()).await.unwrap().plan;
        let (_, partition) = plan.split_once("PartitionwiseExec").expect("a join within partitions");
        partition.matches("DynamicFilter").count()
    };
    let joined = "SELECT a.id AS one, b.id AS other, b.v FROM a JOIN b ON a.k = b.k";
    assert_eq!(conditions(joined).await, 1);
    assert_eq!(conditions(&format!("SELECT c.id, j.one FROM ({joined}) j JOIN c ON c.v = j.v")).await, 2);
    assert_eq!(conditions(&format!("SELECT * FROM ({joined}) ORDER BY v LIMIT 3")).await, 2);
}
