//! Every step of a disk fails, tears or is the last one before a crash: the table opens, has
//! exactly the acknowledged rows, and finishing the work gives the right table.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::delta::DeltaOptions;
use evenkeel::ingest::IngestOptions;
use evenkeel::maintenance::{CheckScope, CleanOptions};
use evenkeel::query::{Params, QueryLimits};
use evenkeel::storage::{Disk, SystemDisk, TableStorage};
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::{ByteSize, Micros, PartitionCount};
use evenkeel::{Table, TableError};
use futures::future::BoxFuture;
use object_store::PutPayload;

/// What happens at one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The step is not done and reports an error; the process goes on.
    FailBefore,
    /// The step is done and reports an error.
    FailAfter,
    /// The disk is full: a file is written in part, and the step reports it.
    Full,
    /// The process dies before the step.
    KillBefore,
    /// The process dies after the step.
    KillAfter,
    /// The machine dies before the step: what was not synced is lost.
    PowerBefore,
    /// The machine dies after the step.
    PowerAfter,
}

const FAULTS: [Fault; 7] = [
    Fault::FailBefore,
    Fault::FailAfter,
    Fault::Full,
    Fault::KillBefore,
    Fault::KillAfter,
    Fault::PowerBefore,
    Fault::PowerAfter,
];

/// A step whose effect is not yet on the disk, and how it is undone.
#[derive(Debug)]
enum Unsynced {
    /// The content of a file: half of it arrives.
    Content(PathBuf),
    /// A name that appeared in a directory: it is gone.
    Appeared(PathBuf),
    /// A name that disappeared: it is back.
    Disappeared(PathBuf, Vec<u8>),
    /// A directory that was made: it is gone with what is in it.
    Directory(PathBuf),
}

impl Unsynced {
    fn directory(&self) -> &Path {
        match self {
            Self::Content(path) => path,
            Self::Appeared(path) | Self::Disappeared(path, _) | Self::Directory(path) => {
                path.parent().unwrap()
            }
        }
    }

    fn undo(self) {
        match self {
            Self::Content(path) => {
                if let Ok(bytes) = fs::read(&path) {
                    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
                }
            }
            Self::Appeared(path) => drop(fs::remove_file(path)),
            Self::Disappeared(path, bytes) => {
                if path.parent().unwrap().is_dir() {
                    fs::write(path, bytes).unwrap();
                }
            }
            Self::Directory(path) => drop(fs::remove_dir_all(path)),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    steps: usize,
    dead: bool,
    unsynced: Vec<Unsynced>,
}

/// A disk with one fault.
#[derive(Debug)]
struct FaultyDisk {
    at: usize,
    fault: Option<Fault>,
    state: Mutex<State>,
}

impl FaultyDisk {
    fn new(at: usize, fault: Option<Fault>) -> Arc<Self> {
        Arc::new(Self { at, fault, state: Mutex::default() })
    }

    /// A disk without faults that goes on where this one stopped: what was not synced still is not.
    fn after_death(&self) -> Arc<Self> {
        let unsynced = std::mem::take(&mut self.state.lock().unwrap().unsynced);
        let state = Mutex::new(State { unsynced, ..State::default() });
        Arc::new(Self { at: usize::MAX, fault: None, state })
    }

    /// One step: `done` are the effects that are not synced by it.
    fn step(
        &self,
        action: impl FnOnce() -> io::Result<()>,
        partly: impl FnOnce() -> io::Result<()>,
        effects: impl FnOnce(&mut Vec<Unsynced>),
    ) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let dead = || io::Error::other("the process is dead");
        if state.dead {
            return Err(dead());
        }
        let here = state.steps == self.at;
        state.steps += 1;
        match self.fault.filter(|_| here) {
            None => {
                action()?;
                effects(&mut state.unsynced);
                Ok(())
            }
            Some(Fault::FailBefore) => Err(io::Error::other("the disk failed")),
            Some(Fault::FailAfter) => {
                action()?;
                effects(&mut state.unsynced);
                Err(io::Error::other("the disk failed"))
            }
            Some(Fault::Full) => {
                let _ = partly();
                effects(&mut state.unsynced);
                Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"))
            }
            Some(fault) => {
                state.dead = true;
                if matches!(fault, Fault::KillAfter | Fault::PowerAfter) {
                    action()?;
                    effects(&mut state.unsynced);
                }
                drop(state);
                if matches!(fault, Fault::PowerBefore | Fault::PowerAfter) {
                    self.lose_power();
                }
                Err(dead())
            }
        }
    }

    /// The machine dies now.
    fn lose_power(&self) {
        let mut state = self.state.lock().unwrap();
        state.dead = true;
        std::mem::take(&mut state.unsynced).into_iter().rev().for_each(Unsynced::undo);
    }

    fn steps(&self) -> usize {
        self.state.lock().unwrap().steps
    }
}

impl Disk for FaultyDisk {
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let made: Vec<PathBuf> =
            directory.ancestors().take_while(|above| !above.exists()).map(Path::to_owned).collect();
        self.step(
            || SystemDisk.create_directory(directory),
            || Ok(()),
            |effects| effects.extend(made.into_iter().rev().map(Unsynced::Directory)),
        )
    }

    fn write(&self, file: &Path, payload: &PutPayload) -> io::Result<()> {
        self.step(
            || SystemDisk.write(file, payload),
            || {
                let bytes: Vec<u8> = payload.iter().flat_map(|chunk| chunk.to_vec()).collect();
                fs::write(file, &bytes[..bytes.len() / 2])
            },
            |effects| {
                effects.push(Unsynced::Appeared(file.to_owned()));
                effects.push(Unsynced::Content(file.to_owned()));
            },
        )
    }

    fn sync_file(&self, file: &Path) -> io::Result<()> {
        self.step(
            || SystemDisk.sync_file(file),
            || Ok(()),
            |effects| effects.retain(|e| !matches!(e, Unsynced::Content(content) if content == file)),
        )
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.step(
            || SystemDisk.sync_directory(directory),
            || Ok(()),
            |effects| effects.retain(|effect| effect.directory() != directory),
        )
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(
            || SystemDisk.link(from, to),
            || Ok(()),
            |effects| {
                // Content that was not synced is no safer under its new name.
                if effects.iter().any(|e| matches!(e, Unsynced::Content(content) if content == from)) {
                    effects.push(Unsynced::Content(to.to_owned()));
                }
                effects.push(Unsynced::Appeared(to.to_owned()));
            },
        )
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(
            || SystemDisk.rename(from, to),
            || Ok(()),
            |effects| effects.push(Unsynced::Appeared(to.to_owned())),
        )
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        let bytes = fs::read(file).unwrap_or_default();
        self.step(
            || SystemDisk.remove(file),
            || Ok(()),
            |effects| effects.push(Unsynced::Disappeared(file.to_owned(), bytes)),
        )
    }
}

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

async fn ingest(table: &mut Table, keys: Range<i64>, value: i64) -> Result<(), TableError> {
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

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

type Work = fn(TableStorage) -> BoxFuture<'static, Result<(), TableError>>;

/// One kind of work on a table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The commits of the table that it is done on.
    template: Template,
    pub(crate) work: Work,
    /// Rows before, and after the work was done once or more often.
    pub(crate) before: Rows,
    pub(crate) after: Rows,
    /// Whether it takes rows away partition by partition, so that some may be gone where it fails.
    gradual: bool,
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
enum Template {
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

fn on(path: &Path, disk: Arc<dyn Disk>) -> TableStorage {
    TableStorage::local_on(path, disk).unwrap()
}

/// A process dies or fails at every step, another one does the work again and is acknowledged, and
/// then the power is cut: what it was acknowledged for is there, whoever made the directories and
/// files that it rests on.
async fn power_is_cut_after_another_writer(template: &Path, case: &Case, second_work: Work) -> usize {
    let scratch = tempfile::tempdir().unwrap();
    let count = FaultyDisk::new(usize::MAX, None);
    let path = scratch.path().join("count");
    copy(template, &path);
    (case.work)(on(&path, count.clone())).await.unwrap();
    // A death before a step is one after the step before it, but for the first.
    let faults = [Fault::KillAfter, Fault::FailAfter];
    let mut points = 0;
    for (step, fault) in (0..count.steps()).flat_map(|step| faults.map(|fault| (step, fault))) {
        let what = format!("{}: {fault:?} at step {step}, then another writer", case.name);
        let path = scratch.path().join(format!("{step}{fault:?}"));
        copy(template, &path);
        let first = FaultyDisk::new(step, Some(fault));
        let _ = (case.work)(on(&path, first.clone())).await;
        let second = first.after_death();
        second_work(on(&path, second.clone())).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        second.lose_power();
        let table = Table::open(&path).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = rows(&table).await;
        // The same work is done by then; other work leaves the table as it is before or after.
        let done = std::ptr::fn_addr_eq(second_work, case.work);
        assert!(found == case.after || (!done && case.may_leave(&found)), "{what}: {found:?}");
        assert!(table.check(CheckScope::OneVersion, &|_| {}).await.unwrap().damaged.is_empty(), "{what}");
        fs::remove_dir_all(&path).unwrap();
        points += 1;
    }
    points
}

/// Runs the work with every fault at every step; gives the number of points tried.
async fn crash_everywhere(template: &Path, case: &Case) -> usize {
    let scratch = tempfile::tempdir().unwrap();
    let count = FaultyDisk::new(usize::MAX, None);
    let path = scratch.path().join("count");
    copy(template, &path);
    (case.work)(on(&path, count.clone())).await.unwrap();
    assert_eq!(rows(&Table::open(&path).await.unwrap()).await, case.after, "{}", case.name);
    // What was acknowledged survives the machine.
    count.lose_power();
    assert_eq!(
        rows(&Table::open(&path).await.unwrap()).await,
        case.after,
        "{}: power lost after it",
        case.name
    );
    let (mut points, mut reached) = (1, [0, 0]);
    for (step, fault) in (0..count.steps()).flat_map(|step| FAULTS.map(|fault| (step, fault))) {
        let what = format!("{}: {fault:?} at step {step}", case.name);
        let path = scratch.path().join(format!("{step}{fault:?}"));
        copy(template, &path);
        let outcome = (case.work)(on(&path, FaultyDisk::new(step, Some(fault)))).await;
        let table = Table::open(&path).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = rows(&table).await;
        match outcome {
            Ok(()) => assert_eq!(found, case.after, "{what}: acknowledged"),
            Err(_) => assert!(case.may_leave(&found), "{what}: {found:?}"),
        }
        reached[usize::from(found == case.after)] += 1;
        (case.work)(on(&path, Arc::new(SystemDisk)))
            .await
            .unwrap_or_else(|error| panic!("{what}: again: {error}"));
        let mut table = Table::open(&path).await.unwrap();
        assert_eq!(rows(&table).await, case.after, "{what}: done again");
        assert!(table.check(CheckScope::OneVersion, &|_| {}).await.unwrap().damaged.is_empty(), "{what}");
        let all = CleanOptions { keep: None, unnamed_age: Micros::new(1), ..CleanOptions::default() };
        std::thread::sleep(std::time::Duration::from_micros(50));
        table.clean(&all).await.unwrap();
        table.refresh().await.unwrap();
        assert_eq!(rows(&table).await, case.after, "{what}: cleaned");
        let left: BTreeSet<String> =
            table.storage().list_all().await.unwrap().into_iter().map(|f| f.path).collect();
        let named = table.snapshot().portion_count();
        let portions = left.iter().filter(|path| path.starts_with("partition=")).count();
        assert_eq!(portions, named, "{what}: {left:?}");
        fs::remove_dir_all(&path).unwrap();
        points += 1;
    }
    if case.before != case.after {
        assert!(reached[0] > points / 4 && reached[1] > 5, "{}: {reached:?}", case.name);
    }
    points
}

fn expected(changes: &[(Range<i64>, i64)]) -> Rows {
    let mut map = std::collections::BTreeMap::new();
    for (keys, value) in changes {
        map.extend(keys.clone().map(|key| (key, *value)));
    }
    map.into_iter().collect()
}

/// A table of so many commits.
async fn template(path: &Path, commits: &[(Range<i64>, i64)]) {
    let mut table = Table::create(path, &spec(2)).await.unwrap();
    for (keys, value) in commits {
        ingest(&mut table, keys.clone(), *value).await.unwrap();
    }
}

/// Tells it also where the output of tests that pass is not shown.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
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

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_every_kind_of_work_may_be_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let mut points = 0;
    for case in cases() {
        let template = dir.path().join(case.name);
        case.prepare(TableStorage::create_local(&template).unwrap()).await;
        let tried = crash_everywhere(&template, &case).await;
        tell(&format!("{}: {tried} crash points", case.name));
        points += tried;
    }
    tell(&format!("{points} crash points in all"));
    assert!(points > 400, "{points}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_a_repartitioning_may_be_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let commits = [(0..40, 1), (20..60, 2)];
    let source = dir.path().join("source");
    template(&source, &commits).await;
    let table = Table::open(&source).await.unwrap();
    let change = |definition: &mut TableDefinition| definition.partitions = PartitionCount::new(4).unwrap();
    let plan = table.plan_repartition(change, &|_| {}).await.unwrap();
    let run = async |target: &Path, disk: Arc<dyn Disk>| -> Result<Table, TableError> {
        fs::create_dir_all(target).unwrap();
        let into = TableStorage::local_on(target, disk)?;
        table.repartition(&plan, into, ByteSize::mib(256), &Arc::default(), &|_| {}).await
    };
    let count = FaultyDisk::new(usize::MAX, None);
    run(&dir.path().join("count"), count.clone()).await.unwrap();
    let mut points = 0;
    for (step, fault) in (0..count.steps()).flat_map(|step| FAULTS.map(|fault| (step, fault))) {
        let what = format!("{fault:?} at step {step}");
        let target = dir.path().join(format!("{step}{fault:?}"));
        let outcome = run(&target, FaultyDisk::new(step, Some(fault))).await;
        let reached = match Table::open(&target).await {
            Ok(table) => rows(&table).await,
            Err(_) => Vec::new(),
        };
        let complete = reached == expected(&commits);
        assert!(complete || (reached.is_empty() && outcome.is_err()), "{what}: {reached:?}");
        if !complete {
            let again =
                run(&target, Arc::new(SystemDisk)).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(rows(&again).await, expected(&commits), "{what}");
        }
        points += 1;
    }
    assert_eq!(rows(&table).await, expected(&commits));
    tell(&format!("repartitioning: {points} crash points"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_second_writer_acknowledges_rests_on_nothing_that_the_first_left_unsynced() {
    let dir = tempfile::tempdir().unwrap();
    let mut points = 0;
    let mut cases = cases();
    // A table without a row yet: the directories of its partitions are made by the work itself.
    cases.push(Case {
        name: "first ingest",
        template: Template::Empty,
        work: |storage| Box::pin(async { ingest(&mut Table::open_at(storage).await?, 50..90, 4).await }),
        before: Vec::new(),
        after: expected(&[(50..90, 4)]),
        gradual: false,
    });
    for case in cases {
        let template = dir.path().join(case.name);
        case.prepare(TableStorage::create_local(&template).unwrap()).await;
        points += power_is_cut_after_another_writer(&template, &case, case.work).await;
        // Who cleans deletes what a commit of another process made superfluous.
        if !matches!(case.name, "compaction" | "compaction with expiry" | "export to a Delta log") {
            continue;
        }
        points += power_is_cut_after_another_writer(&template, &case, |storage| {
            Box::pin(async {
                let unnamed_age = Micros::new(1);
                let all = CleanOptions { keep: None, unnamed_age, ..CleanOptions::default() };
                Table::open_at(storage).await?.clean(&all).await.map(|_| ())
            })
        })
        .await;
    }
    tell(&format!("{points} deaths before another writer and a loss of power"));
    assert!(points > 200, "{points}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_declared_lasts_with_the_directories_above_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let create = async |path: &Path, disk: Arc<FaultyDisk>| -> Result<(), TableError> {
        let mut table = Table::create_at(TableStorage::create_local_on(path, disk)?, &spec(2)).await?;
        ingest(&mut table, 0..20, 1).await
    };
    let count = FaultyDisk::new(usize::MAX, None);
    create(&root.join("count/above/t"), count.clone()).await.unwrap();
    count.lose_power();
    let found = rows(&Table::open(&root.join("count/above/t")).await.unwrap()).await;
    assert_eq!(found, expected(&[(0..20, 1)]), "power lost after it");
    let mut points = 0;
    for (step, fault) in (0..count.steps()).flat_map(|step| FAULTS.map(|fault| (step, fault))) {
        let what = format!("{fault:?} at step {step}");
        let path = root.join(format!("{step}{fault:?}/above/t"));
        let first = FaultyDisk::new(step, Some(fault));
        let outcome = create(&path, first.clone()).await;
        let second = first.after_death();
        // It is declared already if the first one came that far.
        let again = match Table::open_at(
            TableStorage::local_on(&path, second.clone())
                .unwrap_or_else(|_| TableStorage::create_local_on(&path, second.clone()).unwrap()),
        )
        .await
        {
            Ok(mut table) => ingest(&mut table, 0..20, 1).await,
            Err(_) => create(&path, second.clone()).await,
        };
        again.unwrap_or_else(|error| panic!("{what}: {error} after {outcome:?}"));
        second.lose_power();
        let table = Table::open(&path).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(rows(&table).await, expected(&[(0..20, 1)]), "{what}");
        points += 1;
    }
    tell(&format!("declaring a table: {points} points"));
}
