//! Kinds of work on a table, with its rows before and after.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::delta::DeltaOptions;
use evenkeel::ingest::IngestOptions;
use evenkeel::maintenance::CleanOptions;
use evenkeel::query::{Params, QueryLimits};
use evenkeel::storage::TableStorage;
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::{Micros, PartitionCount};
use evenkeel::{Table, TableError};
use futures::future::BoxFuture;

pub(crate) fn spec(partitions: u64) -> TableSpec {
    TableSpec::new(TableDefinition {
        name: "t".into(),
        columns: vec![Column::required("k", ColumnType::Int64), Column::nullable("v", ColumnType::Int64)],
        primary_key: vec!["k".into()],
        partition_key: vec![],
        partitions: PartitionCount::new(partitions).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

/// Rows of these keys, all with one value.
pub(crate) fn batch(spec: &TableSpec, keys: Range<i64>, value: i64) -> RecordBatch {
    let values = Int64Array::from_iter(keys.clone().map(|_| Some(value)));
    let numbers = Int64Array::from_iter_values(keys);
    let key_type = spec.schema().field(0).data_type();
    let key = match key_type {
        DataType::Date32 => cast(&cast(&numbers, &DataType::Int32).unwrap(), key_type).unwrap(),
        _ => Arc::new(numbers) as ArrayRef,
    };
    let mut columns = vec![("k", key, false), ("v", Arc::new(values) as ArrayRef, true)];
    for added in spec.columns().iter().skip(2) {
        let data_type = added.column_type.arrow_type();
        columns.push((&added.name, arrow::array::new_null_array(&data_type, columns[0].1.len()), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

pub(super) async fn ingest(table: &mut Table, keys: Range<i64>, value: i64) -> Result<(), TableError> {
    let batch = batch(table.spec(), keys, value);
    let stream = futures::stream::iter([Ok::<_, io::Error>(batch)]);
    table.ingest(stream, &IngestOptions::default()).await.map(|_| ())
}

/// Rows with the time `k` in days, kept for 20 days.
fn expiring_spec() -> TableSpec {
    let plain = spec(2).definition().clone();
    let columns = vec![Column::required("k", ColumnType::Date), Column::nullable("v", ColumnType::Int64)];
    TableSpec::new(TableDefinition { columns, ttl: Some("k=20d".parse().unwrap()), ..plain }).unwrap()
}

/// A compaction at a time when days before 25 have expired.
fn full_at_day_45() -> CompactionOptions {
    CompactionOptions { now: Some(45 * Micros::DAY.get()), ..full() }
}

pub(crate) type Rows = Vec<(i64, i64)>;

pub(crate) async fn rows(table: &Table) -> Rows {
    let session = table.session().unwrap();
    // Sorted here: a plan without a sort and casts takes a debug build half the time, thousands of
    // times.
    let batches = session.collect("SELECT k, v FROM t", &Params::default()).await.unwrap();
    let rows = batches.iter().flat_map(|batch| {
        let key = match batch.column(0).data_type() {
            DataType::Date32 => cast(&cast(batch.column(0), &DataType::Int32).unwrap(), &DataType::Int64),
            _ => Ok(Arc::clone(batch.column(0))),
        };
        let numbers = |column: &ArrayRef| column.as_primitive::<Int64Type>().values().to_vec();
        numbers(&key.unwrap()).into_iter().zip(numbers(batch.column(1))).collect::<Vec<_>>()
    });
    let mut rows: Rows = rows.collect();
    rows.sort_unstable();
    rows
}

pub(super) type Work = fn(TableStorage) -> BoxFuture<'static, Result<(), TableError>>;

/// One kind of work on a table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The commits of the table that it is done on.
    pub(super) template: Template,
    pub(crate) work: Work,
    /// Rows before, and after the work was done once or more often.
    pub(crate) before: Rows,
    pub(crate) after: Rows,
    /// Whether it takes rows away partition by partition, so that some may be gone where it fails.
    pub(super) gradual: bool,
}

impl Case {
    pub(crate) fn may_leave(&self, rows: &Rows) -> bool {
        let between = || {
            self.after.iter().all(|row| rows.contains(row))
                && rows.iter().all(|row| self.before.contains(row))
        };
        *rows == self.before || *rows == self.after || (self.gradual && between())
    }
}

/// The table that a case begins with.
#[derive(Clone, Copy)]
pub(super) enum Template {
    /// Declared, without a commit of rows.
    Empty,
    Plain,
    /// Compacted, with a file that somebody left over.
    Compacted,
    Expiring,
    /// With deletes of the keys 5 to 14, which are not compacted.
    Deleted,
    /// The next commit makes a checkpoint. Compacted near the end, as each point reads all
    /// portions.
    Grown,
}

const COMMITS: [(Range<i64>, i64); 3] = [(0..40, 1), (20..60, 2), (10..30, 3)];
/// Of the first commit all rows expire, of the second some.
const EXPIRING: [(Range<i64>, i64); 3] = [(0..10, 1), (5..40, 2), (30..50, 3)];

impl Case {
    /// Makes the table that the case begins with.
    pub(crate) async fn prepare(&self, storage: TableStorage) {
        let (spec, commits) = match self.template {
            Template::Empty => (spec(2), Vec::new()),
            Template::Plain | Template::Compacted | Template::Deleted => (spec(2), COMMITS.to_vec()),
            Template::Expiring => (expiring_spec(), EXPIRING.to_vec()),
            Template::Grown => (spec(2), vec![(0..4, 7); 55]),
        };
        let mut table = Table::create_at(storage.clone(), &spec).await.unwrap();
        for (keys, value) in commits {
            ingest(&mut table, keys, value).await.unwrap();
        }
        if matches!(self.template, Template::Grown) {
            table.compact(&full(), &|_| {}).await.unwrap();
            while table.snapshot().version().next().0 % 64 != 0 {
                ingest(&mut table, 0..4, 7).await.unwrap();
            }
        }
        if matches!(self.template, Template::Deleted) {
            delete(&mut table, "k BETWEEN 5 AND 14").await.unwrap();
        }
        if matches!(self.template, Template::Compacted) {
            table.compact(&full(), &|_| {}).await.unwrap();
            // It is given up by a commit before it is deleted.
            storage.put_new("partition=0000/stray.parquet", "x".into()).await.unwrap();
        }
    }
}

pub(super) fn expected(changes: &[(Range<i64>, i64)]) -> Rows {
    let mut map = std::collections::BTreeMap::new();
    for (keys, value) in changes {
        map.extend(keys.clone().map(|key| (key, *value)));
    }
    map.into_iter().collect()
}

async fn delete(table: &mut Table, condition: &str) -> Result<(), TableError> {
    let (params, limits) = (Params::default(), QueryLimits::default());
    table.delete_where(condition, &params, &limits, &IngestOptions::default()).await.map(|_| ())
}

fn full() -> CompactionOptions {
    CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() }
}

/// Every kind of work, each with what the table holds before and after.
pub(crate) fn cases() -> Vec<Case> {
    let before = expected(&COMMITS);
    vec![
        Case {
            name: "ingest",
            template: Template::Plain,
            work: |storage| Box::pin(async { ingest(&mut Table::open_at(storage).await?, 50..90, 4).await }),
            before: before.clone(),
            after: expected(&[COMMITS.as_slice(), &[(50..90, 4)]].concat()),
            gradual: false,
        },
        Case {
            name: "compaction",
            template: Template::Plain,
            work: |storage| {
                Box::pin(async { Table::open_at(storage).await?.compact(&full(), &|_| {}).await.map(|_| ()) })
            },
            before: before.clone(),
            after: before.clone(),
            gradual: false,
        },
        Case {
            name: "delete",
            template: Template::Plain,
            work: |storage| {
                Box::pin(async { delete(&mut Table::open_at(storage).await?, "k BETWEEN 15 AND 44").await })
            },
            before: before.clone(),
            after: before.iter().copied().filter(|row| !(15..45).contains(&row.0)).collect(),
            gradual: false,
        },
        Case {
            name: "compaction of deletes",
            template: Template::Deleted,
            work: |storage| {
                Box::pin(async { Table::open_at(storage).await?.compact(&full(), &|_| {}).await.map(|_| ()) })
            },
            before: before.iter().copied().filter(|row| !(5..15).contains(&row.0)).collect(),
            after: before.iter().copied().filter(|row| !(5..15).contains(&row.0)).collect(),
            gradual: false,
        },
        Case {
            name: "compaction with expiry",
            template: Template::Expiring,
            work: |storage| {
                Box::pin(async {
                    Table::open_at(storage).await?.compact(&full_at_day_45(), &|_| {}).await.map(|_| ())
                })
            },
            before: expected(&EXPIRING),
            after: expected(&[(25..40, 2), (30..50, 3)]),
            gradual: true,
        },
        Case {
            name: "clean",
            template: Template::Compacted,
            work: |storage| {
                Box::pin(async {
                    let unnamed_age = Micros::new(1);
                    let all = CleanOptions { keep: None, unnamed_age, ..CleanOptions::default() };
                    Table::open_at(storage).await?.clean(&all).await.map(|_| ())
                })
            },
            before: before.clone(),
            after: before.clone(),
            gradual: false,
        },
        Case {
            name: "export to a Delta log",
            template: Template::Compacted,
            work: |storage| {
                Box::pin(async {
                    Table::open_at(storage).await?.export_delta(&DeltaOptions::default()).await.map(|_| ())
                })
            },
            before: before.clone(),
            after: before.clone(),
            gradual: false,
        },
        Case {
            name: "alteration",
            template: Template::Plain,
            work: |storage| {
                Box::pin(async {
                    let column = Column::nullable("w", ColumnType::Utf8);
                    let change = |definition: &mut TableDefinition| {
                        if definition.columns.len() == 2 {
                            definition.columns.push(column.clone());
                        }
                    };
                    Table::open_at(storage).await?.alter(change).await
                })
            },
            before: before.clone(),
            after: before,
            gradual: false,
        },
        Case {
            name: "ingest with a checkpoint",
            template: Template::Grown,
            work: |storage| Box::pin(async { ingest(&mut Table::open_at(storage).await?, 2..6, 8).await }),
            before: expected(&[(0..4, 7)]),
            after: expected(&[(0..4, 7), (2..6, 8)]),
            gradual: false,
        },
    ]
}
