//! A process that is held up before any one of its requests, while others do all kinds of work and
//! clean up behind it as thoroughly as they can: nothing that was acknowledged is lost, nothing
//! that is named is missing, and whoever comes next gets on.

mod acts;
mod gates;
mod outcomes;
mod pauses;

use std::sync::Arc;
use std::time::Duration;

use evenkeel::ingest::IngestMode;
use evenkeel::storage::TableStorage;
use evenkeel::{Table, TableError};
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use crate::crash::spec;
use crate::interleavings::acts::{Act, everything, ingest};

/// Longer than any of it takes: whoever is not done by then never will be.
const PATIENCE: Duration = Duration::from_secs(60);

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

/// Does an act that nobody holds up.
async fn whole(store: &Arc<dyn ObjectStore>, act: Act, what: &str) -> Result<(), TableError> {
    let ended = tokio::time::timeout(PATIENCE, act.work(storage(store.clone()))).await;
    ended.unwrap_or_else(|_| panic!("{what}: {act:?} hangs"))
}
