//! Acts of a process on a table.

use evenkeel::compact::{CompactionOptions, Scope};
use evenkeel::delta::DeltaOptions;
use evenkeel::ingest::{IngestMode, IngestOptions};
use evenkeel::maintenance::CleanOptions;
use evenkeel::storage::TableStorage;
use evenkeel::table::{Column, ColumnType};
use evenkeel::units::Micros;
use evenkeel::{Table, TableError};
use futures::future::BoxFuture;

use crate::crash::batch;
use crate::interleavings::acts::Act::{Alter, Clean, Compact, Delete, Export, Insert, Sweep, Upsert};

/// What a process does to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
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

impl Act {
    pub(super) fn work(self, storage: TableStorage) -> BoxFuture<'static, Result<(), TableError>> {
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

    pub(super) fn adds(self) -> Option<i64> {
        match self {
            Upsert(key) | Insert(key) => Some(key),
            _ => None,
        }
    }

    pub(super) fn takes(self) -> Option<i64> {
        match self {
            Delete(key) => Some(key),
            _ => None,
        }
    }

    /// Whether it may fail because of what `others` did meanwhile.
    pub(super) fn may_fail(self, others: &[Act]) -> bool {
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

pub(super) async fn ingest(table: &mut Table, key: i64, mode: IngestMode) -> Result<(), TableError> {
    let rows = batch(table.spec(), key..key + 1, key);
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(rows)]);
    table.ingest(stream, &IngestOptions { mode, ..IngestOptions::default() }).await.map(|_| ())
}

pub(super) fn everything() -> CompactionOptions {
    CompactionOptions { scope: Scope::Everything, ..CompactionOptions::default() }
}

async fn clean(table: &mut Table, unnamed_age: Micros) -> Result<(), TableError> {
    // A store in memory tells the time of a file in whole seconds, or better.
    let now = Some(chrono::Utc::now().timestamp_micros() + 2_000_000);
    table.clean(&CleanOptions { keep: None, unnamed_age, now, ..CleanOptions::default() }).await.map(|_| ())
}
