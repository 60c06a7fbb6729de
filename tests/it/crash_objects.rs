//! Every request to an object store fails, loses its answer or is the last one before a crash: the
//! table opens, has exactly the acknowledged rows, and finishing the work gives the right table.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use evenkeel::Table;
use evenkeel::maintenance::{CheckScope, CleanOptions};
use evenkeel::storage::TableStorage;
use evenkeel::units::Micros;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::common::{objects, test_store};
use crate::crash::{Case, cases, rows, tell};
use crate::hooked_store::{Fate, HookedStore, Hooks, Request};

/// What happens at one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It is refused; the process goes on.
    FailBefore,
    /// It is carried out and its answer is lost; the process goes on.
    FailAfter,
    /// The process dies before it.
    KillBefore,
    /// The process dies after it.
    KillAfter,
}

const FAULTS: [Fault; 4] = [Fault::FailBefore, Fault::FailAfter, Fault::KillBefore, Fault::KillAfter];

/// The writing requests of one process. From the one on that is its last, nothing reaches the
/// store.
#[derive(Debug)]
struct Requests {
    done: AtomicUsize,
    at: usize,
    fault: Option<Fault>,
}

#[async_trait]
impl Hooks for Requests {
    async fn fate(&self, request: Request, _location: &Path) -> Fate {
        if matches!(request, Request::Get | Request::List) {
            return Fate::Answered;
        }
        let number = self.done.fetch_add(1, Ordering::SeqCst);
        let is_dead = matches!(self.fault, Some(Fault::KillBefore | Fault::KillAfter)) && number > self.at;
        match self.fault.filter(|_| number == self.at) {
            Some(Fault::FailBefore | Fault::KillBefore) => Fate::Lost,
            Some(Fault::FailAfter | Fault::KillAfter) => Fate::AnswerLost,
            None if is_dead => Fate::Lost,
            None => Fate::Answered,
        }
    }
}

/// A store to whose writing requests a fault happens.
fn faulty(inner: &Arc<dyn ObjectStore>, at: usize, fault: Option<Fault>) -> Arc<HookedStore<Requests>> {
    let requests = Requests { done: AtomicUsize::new(0), at, fault };
    Arc::new(HookedStore::new(Arc::clone(inner), requests))
}

async fn copy(from: &Arc<dyn ObjectStore>, to: &Arc<dyn ObjectStore>) {
    let files: Vec<ObjectMeta> = from.list(None).try_collect().await.unwrap();
    for file in files {
        let bytes = from.get(&file.location).await.unwrap().bytes().await.unwrap();
        to.put(&file.location, bytes.into()).await.unwrap();
    }
}

fn storage(store: Arc<dyn ObjectStore>) -> TableStorage {
    TableStorage::new(store, "t".into())
}

/// Does the work with every fault at every request; gives the number of points tried.
async fn crash_everywhere(template: &Arc<dyn ObjectStore>, case: &Case) -> usize {
    let fresh = async || {
        let store = objects();
        copy(template, &store).await;
        store
    };
    let store = fresh().await;
    let count = faulty(&store, usize::MAX, None);
    (case.work)(storage(count.clone())).await.unwrap();
    let requests = count.hooks.done.load(Ordering::SeqCst);
    // On a server each point takes a while.
    let every = if test_store().is_some() { 3 } else { 1 };
    let points = (0..requests).flat_map(|at| FAULTS.map(|fault| (at, fault)));
    for (at, fault) in points.filter(|(at, _)| at % every == 0) {
        let what = format!("{}: {fault:?} at request {at}", case.name);
        let store = fresh().await;
        let outcome = (case.work)(storage(faulty(&store, at, Some(fault)))).await;
        let table = Table::open_at(storage(store.clone())).await;
        let found = rows(&table.unwrap_or_else(|error| panic!("{what}: {error}"))).await;
        match outcome {
            Ok(()) => assert_eq!(found, case.after, "{what}: acknowledged"),
            Err(_) => assert!(case.may_leave(&found), "{what}: {found:?}"),
        }
        (case.work)(storage(store.clone())).await.unwrap_or_else(|error| panic!("{what}: again: {error}"));
        let mut table = Table::open_at(storage(store.clone())).await.unwrap();
        assert_eq!(rows(&table).await, case.after, "{what}: done again");
        assert!(table.check(CheckScope::OneVersion, &|_| {}).await.unwrap().damaged.is_empty(), "{what}");
        // Stores tell the time of a file in seconds.
        let now = Some(chrono::Utc::now().timestamp_micros() + 2_000_000);
        let all = CleanOptions { keep: None, unnamed_age: Micros::new(1), now, ..CleanOptions::default() };
        table.clean(&all).await.unwrap();
        table.refresh().await.unwrap();
        assert_eq!(rows(&table).await, case.after, "{what}: cleaned");
        let left = table.storage().list_all().await.unwrap();
        let portions = left.iter().filter(|file| file.path.starts_with("partition=")).count();
        assert_eq!(portions, table.snapshot().portion_count(), "{what}: {left:?}");
    }
    requests * FAULTS.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_of_every_kind_of_work_may_be_the_last() {
    let mut points = 0;
    for case in cases() {
        let template = objects();
        case.prepare(storage(template.clone())).await;
        let tried = crash_everywhere(&template, &case).await;
        tell(&format!("{}: {tried} crash points of an object store", case.name));
        points += tried;
    }
    assert!(points > 100, "{points}");
}

/// Bytes of three parts and a bit.
fn large() -> Bytes {
    (0..3 * (8 << 20) + 5).map(|byte: u32| byte.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_file_goes_up_in_parts_and_is_there_as_a_whole_or_not_at_all() {
    let bytes = large();
    let count = faulty(&objects(), usize::MAX, None);
    storage(count.clone()).put_unique("a.parquet", bytes.clone()).await.unwrap();
    let requests = count.hooks.done.load(Ordering::SeqCst);
    assert_eq!(requests, 1 + 4 + 1);
    for (at, fault) in (0..requests).flat_map(|at| FAULTS.map(|fault| (at, fault))) {
        let store = objects();
        let put = storage(faulty(&store, at, Some(fault))).put_unique("a.parquet", bytes.clone()).await;
        // Of the last request the answer may be lost, and the file be found there all the same.
        let last_was_done = at == requests - 1 && matches!(fault, Fault::FailAfter | Fault::KillAfter);
        assert!(put.is_err() || last_was_done, "{fault:?} at {at}");
        let whole = storage(store);
        match whole.read("a.parquet").await {
            Ok(found) => assert!(found == bytes && at == requests - 1, "{fault:?} at {at}"),
            Err(error) => assert!(error.is_not_found(), "{fault:?} at {at}: {error}"),
        }
        assert!(whole.put_unique("b.parquet", bytes.clone()).await.unwrap());
        assert_eq!(whole.read("b.parquet").await.unwrap(), bytes);
    }
}
