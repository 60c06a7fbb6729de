//! Random histories of a table by several writers.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, new_null_array};
use arrow::datatypes::DataType;
use evenkeel::compact::{CompactionOptions, CompactionPolicy, Scope};
use evenkeel::ingest::{Ingest, IngestMode, IngestOptions};
use evenkeel::maintenance::{CheckScope, CleanOptions};
use evenkeel::query::{Params, QueryLimits};
use evenkeel::storage::TableStorage;
use evenkeel::table::{Column, ColumnType};
use evenkeel::units::{ByteSize, Micros};
use evenkeel::{Table, TableError};
use object_store::ObjectStore;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

use crate::common::{objects, test_store};
use crate::model::{Condition, Row, assert_rows_are_placed, batch, condition, found, spec};
use crate::scripted_store::{Fault, ScriptedStore};

/// One step of a random history, by one of several writers, each of which sees the table as of its
/// last look.
#[derive(Debug, Clone)]
enum Step {
    /// Rows replace those of the same key.
    Upsert(usize, Vec<Row>),
    /// Rows come with new keys, or none does.
    Insert(usize, Vec<Row>),
    /// Rows with these keys go.
    Delete(usize, Vec<Row>),
    /// Rows that meet a condition go.
    DeleteWhere(usize, Condition),
    /// Rows come and go in one commit; those that are marked go.
    Change(usize, Vec<(Row, bool)>),
    /// The writer's n-th put fails, before or after it is done; the writer opens the table again.
    Crash(usize, Vec<Row>, usize, Fault),
    /// The writer compacts: by a policy, or everything.
    Compact(usize, bool),
    /// The n-th put of a compaction fails.
    CrashCompaction(usize, usize, Fault),
    /// The writer deletes all that the newest version does not need.
    Clean(usize),
    /// A column is added.
    AddColumn(usize),
    /// The writer looks at the newest version.
    Refresh(usize),
    /// The writer opens the table anew.
    Reopen(usize),
    /// A condition is asked.
    Query(usize, Condition),
}

const WRITERS: usize = 3;

fn some_rows() -> impl Strategy<Value = Vec<Row>> {
    proptest::collection::vec((0i64..12, "[abc]{0,2}", proptest::option::of(0i64..5)), 1..12)
}

fn step() -> impl Strategy<Value = Step> {
    let fault = || prop_oneof![Just(Fault::Before), Just(Fault::After)];
    prop_oneof![
        6 => (0..WRITERS, some_rows()).prop_map(|(writer, rows)| Step::Upsert(writer, rows)),
        2 => (0..WRITERS, some_rows()).prop_map(|(writer, rows)| Step::Insert(writer, rows)),
        2 => (0..WRITERS, some_rows()).prop_map(|(writer, rows)| Step::Delete(writer, rows)),
        1 => (0..WRITERS, condition()).prop_map(|(writer, condition)| Step::DeleteWhere(writer, condition)),
        2 => (0..WRITERS, proptest::collection::vec(((0i64..12, "[abc]{0,2}", proptest::option::of(0i64..5)), any::<bool>()), 1..12))
            .prop_map(|(writer, rows)| Step::Change(writer, rows)),
        2 => (0..WRITERS, some_rows(), 0usize..6, fault()).prop_map(|(w, rows, put, f)| Step::Crash(w, rows, put, f)),
        2 => (0..WRITERS, any::<bool>()).prop_map(|(writer, full)| Step::Compact(writer, full)),
        1 => (0..WRITERS, 0usize..4, fault()).prop_map(|(writer, put, f)| Step::CrashCompaction(writer, put, f)),
        1 => (0..WRITERS).prop_map(Step::Clean),
        1 => (0..WRITERS).prop_map(Step::AddColumn),
        1 => (0..WRITERS).prop_map(Step::Refresh),
        1 => (0..WRITERS).prop_map(Step::Reopen),
        3 => (0..WRITERS, condition()).prop_map(|(writer, condition)| Step::Query(writer, condition)),
    ]
}

type Map = BTreeMap<(i64, String), Option<i64>>;

/// The table by several writers, beside the map that it should equal.
struct World {
    store: Arc<dyn ObjectStore>,
    writers: Vec<Table>,
    map: Map,
    /// What each writer sees: the map as of its last look.
    seen: Vec<Map>,
    columns: usize,
    /// Whether the last writer sees a version whose files may be gone.
    asleep: bool,
}

impl World {
    async fn new(partitions: u64, partition_key: &str) -> Self {
        let store = objects();
        let storage = TableStorage::new(store.clone(), "model".into());
        let table = Table::create_at(storage, &spec(partitions, partition_key)).await.unwrap();
        let mut writers = vec![table];
        while writers.len() < WRITERS {
            writers.push(Self::open(&store).await);
        }
        Self { store, writers, map: Map::new(), seen: vec![Map::new(); WRITERS], columns: 3, asleep: false }
    }

    async fn open(store: &Arc<dyn ObjectStore>) -> Table {
        Table::open_at(TableStorage::new(store.clone(), "model".into())).await.unwrap()
    }

    async fn reopen(&mut self, writer: usize) {
        self.writers[writer] = Self::open(&self.store).await;
        self.seen[writer] = self.map.clone();
    }

    /// A handle at the writer's snapshot over a store whose n-th put fails from now on.
    async fn failing(&self, put: usize, fault: Fault) -> Table {
        let store = ScriptedStore::failing(self.store.clone(), put, fault);
        Table::open_at(TableStorage::new(Arc::new(store), "model".into())).await.unwrap()
    }

    async fn rows(&self) -> Vec<Row> {
        found(&Self::open(&self.store).await, "true").await
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Upsert(writer, rows) => {
                ingest(&mut self.writers[writer], &rows, IngestMode::Upsert).await.unwrap();
                self.upsert(rows);
                self.seen[writer] = self.map.clone();
            }
            Step::Insert(writer, rows) => {
                let mut keys: Vec<_> = rows.iter().map(|row| (row.0, row.1.clone())).collect();
                keys.sort();
                let repeated = keys.windows(2).any(|pair| pair[0] == pair[1]);
                let fits = !repeated && keys.iter().all(|key| !self.map.contains_key(key));
                let outcome = ingest(&mut self.writers[writer], &rows, IngestMode::Insert).await;
                assert_eq!(outcome.is_ok(), fits, "{outcome:?}");
                if fits {
                    self.upsert(rows);
                    self.seen[writer] = self.map.clone();
                }
            }
            Step::Delete(writer, rows) => {
                let keys = batch(&rows).project(&[1, 2]).unwrap();
                let stream = futures::stream::iter([Ok::<_, std::io::Error>(keys)]);
                self.writers[writer].delete(stream, &IngestOptions::default()).await.unwrap().unwrap();
                for row in rows {
                    self.map.remove(&(row.0, row.1));
                }
                self.seen[writer] = self.map.clone();
            }
            Step::DeleteWhere(writer, condition) => {
                let holds = |key: &(i64, String), value: &Option<i64>| {
                    condition.holds(&(key.0, key.1.clone(), *value))
                };
                let met = self.map.iter().filter(|(key, value)| holds(key, value)).count() as u64;
                let (params, limits) = (Params::default(), QueryLimits::default());
                let (table, options) = (&mut self.writers[writer], IngestOptions::default());
                let deleted = table.delete_where(&condition.sql(), &params, &limits, &options).await.unwrap();
                assert_eq!(deleted.map_or(0, |committed| committed.rows), met, "{}", condition.sql());
                self.map.retain(|key, value| !holds(key, value));
                self.seen[writer] = self.map.clone();
            }
            Step::Change(writer, rows) => {
                let table = &mut self.writers[writer];
                let options = IngestOptions::default();
                let ingest = Ingest::new(table.log().clone(), table.snapshot().clone(), &options).unwrap();
                let mut ingest = ingest.with_deletes();
                for some in rows.chunks(5) {
                    let (plain, marks): (Vec<Row>, Vec<bool>) = some.iter().cloned().unzip();
                    let mut columns = batch(&plain).columns().to_vec();
                    while columns.len() < table.spec().columns().len() {
                        columns.push(new_null_array(&DataType::Utf8, plain.len()));
                    }
                    let rows = RecordBatch::try_new(Arc::clone(table.spec().schema()), columns).unwrap();
                    ingest.push_marked(rows, Some(BooleanArray::from(marks))).await.unwrap();
                }
                let committed = ingest.finish(Vec::new()).await.unwrap();
                table.move_to(committed.snapshot);
                for ((at, user, value), goes) in rows {
                    if goes {
                        self.map.remove(&(at, user));
                    } else {
                        self.map.insert((at, user), value);
                    }
                }
                self.seen[writer] = self.map.clone();
            }
            Step::Crash(writer, rows, put, fault) => {
                let mut table = self.failing(put, fault).await;
                let outcome = ingest(&mut table, &rows, IngestMode::Upsert).await;
                let before = self.map.clone();
                self.upsert(rows);
                let after: Vec<Row> = as_rows(&self.map);
                let reached = self.rows().await;
                if reached != after {
                    assert!(outcome.is_err() && reached == as_rows(&before), "{outcome:?}");
                    self.map = before;
                }
                self.reopen(writer).await;
            }
            Step::Compact(writer, full) => {
                let report = self.writers[writer].compact(&options(full), &|_| {}).await.unwrap();
                assert_eq!(report.partitions_lost, 0);
                assert!(report.max_depth_after <= if full { 1 } else { 2 }, "{report:?}");
                self.seen[writer] = self.map.clone();
            }
            Step::CrashCompaction(writer, put, fault) => {
                let _ = self.failing(put, fault).await.compact(&options(true), &|_| {}).await;
                self.reopen(writer).await;
            }
            Step::Clean(writer) => {
                let all = CleanOptions { keep: None, unnamed_age: Micros::new(1), ..CleanOptions::default() };
                self.writers[writer].clean(&all).await.unwrap();
                // Files that older snapshots need are gone: nobody may read by those. The last
                // writer still writes by its own.
                for reader in 0..WRITERS - 1 {
                    self.writers[reader].refresh().await.unwrap();
                    self.seen[reader] = self.map.clone();
                }
                self.asleep = true;
            }
            Step::AddColumn(writer) => {
                let name = format!("extra{}", self.columns);
                let column = Column::nullable(name, ColumnType::Utf8);
                self.writers[writer]
                    .alter(|definition| definition.columns.push(column.clone()))
                    .await
                    .unwrap();
                self.columns += 1;
                self.seen[writer] = self.map.clone();
            }
            Step::Refresh(writer) => {
                self.writers[writer].refresh().await.unwrap();
                self.seen[writer] = self.map.clone();
            }
            Step::Reopen(writer) => self.reopen(writer).await,
            Step::Query(writer, condition) => {
                if writer == WRITERS - 1 && std::mem::take(&mut self.asleep) {
                    self.reopen(writer).await;
                }
                let mut expected = as_rows(&self.seen[writer]);
                expected.retain(|row| condition.holds(row));
                assert_eq!(
                    found(&self.writers[writer], &condition.sql()).await,
                    expected,
                    "{}",
                    condition.sql()
                );
            }
        }
    }

    fn upsert(&mut self, rows: Vec<Row>) {
        self.map.extend(rows.into_iter().map(|(at, user, value)| ((at, user), value)));
    }
}

/// Fewer where each request goes to a server.
fn histories() -> u32 {
    if test_store().is_some() { 6 } else { 40 }
}

fn as_rows(map: &Map) -> Vec<Row> {
    map.iter().map(|((at, user), value)| (*at, user.clone(), *value)).collect()
}

fn options(full: bool) -> CompactionOptions {
    CompactionOptions {
        policy: CompactionPolicy { max_depth: 2, target: ByteSize(5_000), fan_in: 2 },
        scope: if full { Scope::Everything } else { Scope::Policy },
        ..CompactionOptions::default()
    }
}

async fn ingest(table: &mut Table, rows: &[Row], mode: IngestMode) -> Result<(), TableError> {
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch(rows))]);
    let options = IngestOptions { mode, ..IngestOptions::default() };
    table.ingest(stream, &options).await.map(|_| ())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: histories(), ..ProptestConfig::default() })]

    #[test]
    fn every_history_by_several_writers_equals_a_map(
        steps in proptest::collection::vec(step(), 1..30),
        partitions in 1u64..5,
        by_user in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(partitions, if by_user { "user" } else { "user,at" }).await;
            for step in steps {
                world.take(step).await;
            }
            assert_eq!(world.rows().await, as_rows(&world.map));
            let table = World::open(&world.store).await;
            assert_eq!(table.inspect().await.unwrap().rows, world.map.len() as u64);
            assert!(table.check(CheckScope::OneVersion, &|_| {}).await.unwrap().damaged.is_empty());
            assert_rows_are_placed(&table, &as_rows(&world.map)).await;
        });
    }
}
