//! A process that is held up before any one of its requests, while others do all kinds of work and
//! clean up behind it as thoroughly as they can: nothing that was acknowledged is lost, nothing
//! that is named is missing, and whoever comes next gets on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::delta::{DeltaLog, DeltaOptions};
use evenkeel::ingest::{IngestMode, IngestOptions};
use evenkeel::maintenance::{CheckScope, CleanOptions};
use evenkeel::storage::TableStorage;
use evenkeel::table::{Column, ColumnType};
use evenkeel::units::{Micros, Version};
use evenkeel::{Table, TableError};
use futures::TryStreamExt;
use futures::future::BoxFuture;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::sync::watch;

use crate::crash::{batch, rows, spec, tell};
use crate::hooked_store::{Fate, HookedStore, Hooks, Request};

/// Longer than any of it takes: whoever is not done by then never will be.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a process does to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Adds the key, whatever is there.
    Upsert(i64),
    /// Adds the key, which must not be there.
    Insert(i64),
    /// Deletes the key, which stays deleted.
    Delete(i64),
    Compact,
    Alter,
    /// Keeps the newest version alone, and files that no commit names for a day.
    Clean,
    /// The same, and gives up files that no commit names at once.
    Sweep,
    Export,
}

use Act::{Alter, Clean, Compact, Delete, Export, Insert, Sweep, Upsert};

impl Act {
    fn work(self, storage: TableStorage) -> BoxFuture<'static, Result<(), TableError>> {
        Box::pin(async move {
            let mut table = Table::open_at(storage).await?;
            match self {
                Upsert(key) => ingest(&mut table, key, IngestMode::Upsert).await,
                Insert(key) => ingest(&mut table, key, IngestMode::Insert).await,
                Delete(key) => {
                    let keys = batch(table.spec(), key..key + 1, key).project(&[0]).unwrap();
                    let stream = futures::stream::iter([Ok::<_, std::io::Error>(keys)]);
                    table.delete(stream, &IngestOptions::default()).await.map(|_| ())
                }
                Compact => table.compact(&everything(), &|_| {}).await.map(|_| ()),
                Alter => {
                    let more = Column::nullable("more", ColumnType::Int64);
                    let change = |definition: &mut evenkeel::table::TableDefinition| {
                        if !definition.columns.contains(&more) {
                            definition.columns.push(more.clone());
                        }
                    };
                    table.alter(change).await
                }
                Clean => clean(&mut table, Micros::DAY).await,
                Sweep => clean(&mut table, Micros::new(1)).await,
                Export => table.export_delta(&DeltaOptions::default()).await.map(|_| ()),
            }
        })
    }

    fn adds(self) -> Option<i64> {
        match self {
            Upsert(key) | Insert(key) => Some(key),
            _ => None,
        }
    }

    fn takes(self) -> Option<i64> {
        match self {
            Delete(key) => Some(key),
            _ => None,
        }
    }

    /// Whether it may fail because of what `others` did meanwhile.
    fn may_fail(self, others: &[Act]) -> bool {
        match self {
            // Its files may be given up before it commits.
            Upsert(_) | Delete(_) | Compact => others.contains(&Sweep),
            // It reads the portions of a version that others may have cleaned away.
            Insert(_) => others.iter().any(|other| matches!(other, Clean | Sweep)),
            // It needs portions that do not overlap.
            Export => others.iter().any(|other| matches!(other, Upsert(_) | Insert(_) | Delete(_))),
            Alter | Clean | Sweep => false,
        }
    }
}

async fn ingest(table: &mut Table, key: i64, mode: IngestMode) -> Result<(), TableError> {
    let rows = batch(table.spec(), key..key + 1, key);
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(rows)]);
    table.ingest(stream, &IngestOptions { mode, ..IngestOptions::default() }).await.map(|_| ())
}

fn everything() -> CompactionOptions {
    CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() }
}

async fn clean(table: &mut Table, unnamed_age: Micros) -> Result<(), TableError> {
    // A store in memory tells the time of a file in whole seconds, or better.
    let now = Some(chrono::Utc::now().timestamp_micros() + 2_000_000);
    table.clean(&CleanOptions { keep: None, unnamed_age, now, ..CleanOptions::default() }).await.map(|_| ())
}

/// Holds a process up from its request of one number on.
#[derive(Debug)]
struct Gate {
    requests: AtomicUsize,
    at: usize,
    reached: watch::Sender<bool>,
    open: watch::Sender<bool>,
}

impl Gate {
    fn at(at: usize) -> Self {
        Self {
            requests: AtomicUsize::new(0),
            at,
            reached: watch::Sender::new(false),
            open: watch::Sender::new(false),
        }
    }
}

#[async_trait]
impl Hooks for Gate {
    async fn fate(&self, _request: Request, _location: &Path) -> Fate {
        if self.requests.fetch_add(1, Ordering::SeqCst) >= self.at {
            self.reached.send_replace(true);
            let _ = self.open.subscribe().wait_for(|open| *open).await;
        }
        Fate::Answered
    }
}

/// A process under way.
struct Process {
    act: Act,
    gate: Arc<HookedStore<Gate>>,
    work: tokio::task::JoinHandle<Result<(), TableError>>,
}

impl Process {
    /// Begins the work and waits until it is held up at a request, or done.
    async fn begin(store: &Arc<dyn ObjectStore>, act: Act, at: usize) -> Self {
        let gate = Arc::new(HookedStore::new(Arc::clone(store), Gate::at(at)));
        let mut work = tokio::spawn(act.work(storage(gate.clone())));
        let mut reached = gate.hooks.reached.subscribe();
        let held_up = reached.wait_for(|reached| *reached);
        tokio::select! {
            _ = held_up => {}
            ended = &mut work => {
                let ended = ended.unwrap();
                work = tokio::spawn(async move { ended });
            }
        }
        Self { act, gate, work }
    }

    async fn end(self, what: &str) -> Result<(), TableError> {
        self.gate.hooks.open.send_replace(true);
        let ended = tokio::time::timeout(PATIENCE, self.work).await;
        ended.unwrap_or_else(|_| panic!("{what}: {:?} hangs", self.act)).unwrap()
    }
}

fn storage(store: Arc<dyn ObjectStore>) -> TableStorage {
    TableStorage::new(store, "t".into())
}

async fn copy(from: &Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore> {
    let to: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let files: Vec<ObjectMeta> = from.list(None).try_collect().await.unwrap();
    for file in files {
        let bytes = from.get(&file.location).await.unwrap().bytes().await.unwrap();
        to.put(&file.location, bytes.into()).await.unwrap();
    }
    to
}

/// Makes a table of `commits` commits, and returns it with the number of its keys, which count
/// from 0. Only the length of the log matters, and each run reads all portions several times, so a
/// long one is compacted near its end.
async fn template(commits: u64) -> (Arc<dyn ObjectStore>, i64) {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let mut table = Table::create_at(storage(store.clone()), &spec(1)).await.unwrap();
    let first = table.snapshot().version().0;
    let mut keys = 0;
    loop {
        match commits - (table.snapshot().version().0 - first) {
            0 => return (store, keys),
            6 => drop(table.compact(&everything(), &|_| {}).await.unwrap()),
            _ => {
                ingest(&mut table, keys, IngestMode::Upsert).await.unwrap();
                keys += 1;
            }
        }
    }
}

/// The requests that an act makes on a table of nobody else.
async fn requests(template: &Arc<dyn ObjectStore>, act: Act) -> usize {
    let store = copy(template).await;
    let gate = Arc::new(HookedStore::new(store, Gate::at(usize::MAX)));
    act.work(storage(gate.clone())).await.unwrap();
    gate.hooks.requests.load(Ordering::SeqCst)
}

/// Does an act that nobody holds up.
async fn whole(store: &Arc<dyn ObjectStore>, act: Act, what: &str) -> Result<(), TableError> {
    let ended = tokio::time::timeout(PATIENCE, act.work(storage(store.clone()))).await;
    ended.unwrap_or_else(|_| panic!("{what}: {act:?} hangs"))
}

/// What became of the acts.
struct Outcomes<'a> {
    what: &'a str,
    acts: Vec<Act>,
    ended: Vec<(Act, Result<(), TableError>)>,
}

impl Outcomes<'_> {
    /// The keys that must be in the table, and those that may, if it had the first ones before.
    fn keys(&self, first: i64) -> (BTreeSet<i64>, BTreeSet<i64>) {
        let mut sure: BTreeSet<i64> = (0..first).collect();
        let mut possible = sure.clone();
        for (act, outcome) in &self.ended {
            let others: Vec<Act> = self.acts.iter().copied().filter(|other| other != act).collect();
            if let Err(error) = outcome {
                assert!(act.may_fail(&others), "{}: {act:?} fails: {error}", self.what);
            }
            possible.extend(act.adds());
            sure.extend(act.adds().filter(|_| outcome.is_ok()));
            if let Some(key) = act.takes() {
                sure.remove(&key);
                if outcome.is_ok() {
                    possible.remove(&key);
                }
            }
        }
        (sure, possible)
    }
}

/// Looks at all that the acts left, and works on with it.
async fn verify(store: &Arc<dyn ObjectStore>, keys: i64, outcomes: Outcomes<'_>) {
    let what = outcomes.what;
    let (mut sure, possible) = outcomes.keys(keys);
    for round in 0..2 {
        let mut table =
            Table::open_at(storage(store.clone())).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let found: BTreeSet<i64> = rows(&table).await.into_iter().map(|(key, _)| key).collect();
        assert!(found.is_superset(&sure), "{what}, round {round}: {found:?} lacks some of {sure:?}");
        assert!(found.iter().all(|key| possible.contains(key) || *key >= 9_000), "{what}: {found:?}");
        let check = table.check(CheckScope::EveryVersion, &|_| {}).await.unwrap();
        assert!(check.damaged.is_empty() && check.damaged_log.is_empty(), "{what}: {check:?}");
        // The oldest ones are those that a cleaning may have left unreadable.
        for version in (check.oldest_version.0..=check.version.0).take(4) {
            let old = table.log().at(Version(version)).await;
            old.unwrap_or_else(|error| panic!("{what}: version {version}: {error}"));
        }
        if let Some(exported) = DeltaLog::in_storage(table.storage()).newest().await.unwrap() {
            for file in exported.files() {
                assert!(table.storage().exists(file).await.unwrap(), "{what}: exported {file} is gone");
            }
        }
        // Whoever comes next.
        let more = 9_000 + round;
        for act in [Upsert(more), Compact, Export, Sweep] {
            whole(store, act, what).await.unwrap_or_else(|error| panic!("{what}: then {act:?}: {error}"));
        }
        table.refresh().await.unwrap();
        sure.insert(more);
    }
}

/// One process is held up at a request while others do their work from beginning to end.
async fn held_up(template: &Arc<dyn ObjectStore>, keys: i64, act: Act, at: usize, others: &[Act]) {
    let what = format!("{act:?} held up at request {at}, meanwhile {others:?}");
    let store = copy(template).await;
    let process = Process::begin(&store, act, at).await;
    let mut ended = Vec::new();
    for other in others {
        ended.push((*other, whole(&store, *other, &what).await));
    }
    ended.push((act, process.end(&what).await));
    let acts = others.iter().copied().chain([act]).collect();
    verify(&store, keys, Outcomes { what: &what, acts, ended }).await;
}

const ACTS: [Act; 8] = [Upsert(100), Insert(100), Delete(0), Compact, Alter, Clean, Sweep, Export];

/// What may happen while a process is held up.
const MEANWHILE: &[&[Act]] = &[
    &[Clean],
    &[Sweep],
    &[Upsert(200), Clean],
    &[Insert(200), Sweep],
    &[Compact, Clean],
    &[Alter, Clean],
    &[Compact, Export, Clean],
    &[Delete(1), Compact, Clean],
    &[Upsert(200), Compact, Clean, Upsert(300), Clean],
    &[Upsert(200), Sweep, Alter, Sweep],
    &[Compact, Sweep, Export, Upsert(200), Sweep],
];

#[tokio::test(flavor = "multi_thread")]
async fn a_process_may_be_held_up_at_any_request_while_others_work_and_clean() {
    let every = std::env::var("EVENKEEL_INTERLEAVINGS").is_ok();
    let mut tried = 0;
    for commits in [2, 62, 63] {
        let (template, keys) = template(commits).await;
        for (turn, act) in ACTS.into_iter().enumerate() {
            let requests = requests(&template, act).await;
            let runs = (0..=requests).flat_map(|at| MEANWHILE.iter().map(move |others| (at, *others)));
            // Checkpoints make only a few runs different; a short run takes turns.
            let stride = if every {
                1
            } else if commits == 2 {
                3
            } else {
                29
            };
            for (at, others) in runs.skip(turn % stride).step_by(stride) {
                held_up(&template, keys, act, at, others).await;
                tried += 1;
            }
        }
    }
    tell(&format!("{tried} runs of a process that was held up"));
    assert!(tried > 300, "{tried}");
}

/// Two processes are held up, one within the other's pause, and go on in either order.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_may_be_held_up_at_once() {
    let runs = std::env::var("EVENKEEL_INTERLEAVINGS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(150);
    let (template, keys) = template(2).await;
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..runs {
        let first = ACTS[random.random_range(0..ACTS.len())];
        let second = match ACTS[random.random_range(0..ACTS.len())] {
            Upsert(_) => Upsert(500),
            Insert(_) => Insert(500),
            other => other,
        };
        let others = MEANWHILE[random.random_range(0..MEANWHILE.len())];
        let at = [random.random_range(0..40), random.random_range(0..40)];
        let first_ends_first = random.random_range(0..2) == 0;
        let what = format!("{first:?} at {}, {second:?} at {}, {others:?}, {first_ends_first}", at[0], at[1]);
        let store = copy(&template).await;
        let (a, b) =
            (Process::begin(&store, first, at[0]).await, Process::begin(&store, second, at[1]).await);
        let mut ended = Vec::new();
        for other in others {
            ended.push((*other, whole(&store, *other, &what).await));
        }
        for process in if first_ends_first { [a, b] } else { [b, a] } {
            ended.push((process.act, process.end(&what).await));
        }
        let acts = others.iter().copied().chain([first, second]).collect();
        verify(&store, keys, Outcomes { what: &what, acts, ended }).await;
    }
    tell(&format!("{runs} runs of two processes that were held up"));
}

/// Somebody else makes the table, fills it and cleans up while its declaration is under way.
#[tokio::test(flavor = "multi_thread")]
async fn a_declaration_that_comes_late_does_not_disturb_a_table() {
    let mut refused = 0;
    for at in 0..6 {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let gate = Arc::new(HookedStore::new(store.clone(), Gate::at(at)));
        let late = storage(gate.clone());
        let mut late = tokio::spawn(async move { Table::create_at(late, &spec(1)).await.map(|_| ()) });
        let mut reached = gate.hooks.reached.subscribe();
        tokio::select! {
            held_up = reached.wait_for(|reached| *reached) => drop(held_up),
            // It makes fewer requests than that.
            ended = &mut late => {
                ended.unwrap().unwrap();
                break;
            }
        }
        if Table::create_at(storage(store.clone()), &spec(1)).await.is_err() {
            // The late one was there already.
            gate.hooks.open.send_replace(true);
            late.await.unwrap().unwrap();
            continue;
        }
        for act in [Upsert(0), Upsert(1), Clean, Upsert(2), Clean] {
            whole(&store, act, "declared").await.unwrap();
        }
        gate.hooks.open.send_replace(true);
        let error = late.await.unwrap().unwrap_err().to_string();
        assert!(error.contains("is a table already") || error.contains("is not empty"), "{error}");
        refused += 1;
        let ended = vec![(Upsert(2), Ok(()))];
        verify(&store, 3, Outcomes { what: "declared", acts: Vec::new(), ended }).await;
    }
    assert!(refused >= 2, "{refused}");
}
