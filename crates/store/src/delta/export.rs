//! Writes the next version of a Delta log.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};

use crate::delta::action::write_actions;
use crate::delta::error::DeltaError;
use crate::delta::history::{DeltaLog, DeltaVersion, commit_path};
use crate::delta::plan::{ExportState, Plan, Statistics, data_portions};
use crate::delta::report::DeltaExport;
use crate::delta::schema::{Schema, exported_columns};
use crate::log::{PortionDamage, PortionEntry, Snapshot, TableLog, overlap_depths};
use crate::portion::ColumnStatistics;
use evenkeel_model::table::{Column, ColumnType, KeyValue};
use evenkeel_storage::StoredFile;

/// Footers of files read concurrently.
const CONCURRENT_READS: usize = 16;

/// Options of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeltaOptions {
    /// Columns to leave out.
    pub without: Vec<String>,
    /// Current time, in microseconds since 1970; if `None`, the clock's.
    pub now: Option<i64>,
}

/// Writes the newest snapshot as the next version of the Delta log, unless the newest version has
/// it already. Returns the snapshot as well.
///
/// # Errors
/// [`DeltaError`] if the snapshot cannot be expressed in Delta, one of its files differs from the
/// committed one, or the log cannot be read or written. After an error while writing, the version
/// may exist; exporting again is safe in any case.
pub async fn export(
    log: &TableLog,
    base: &Snapshot,
    options: &DeltaOptions,
) -> Result<(DeltaExport, Snapshot), DeltaError> {
    let mut snapshot = base.clone();
    let mut written = false;
    loop {
        // The Delta log is read first, so that no version in it is newer than the snapshot.
        let before = DeltaLog::in_storage(log.storage()).newest().await?;
        snapshot = log.refresh(&snapshot).await?;
        let plan = match plan(log, &snapshot, before.as_ref(), options).await {
            // A cleaning deleted files of a version that was the newest a moment ago.
            Err(DeltaError::Portion { .. }) if !is_readable(log, &snapshot).await? => continue,
            plan => plan?,
        };
        if !plan.report.written {
            return Ok((DeltaExport { written, ..plan.report }, snapshot));
        }
        let version = plan.report.delta_version;
        let bytes = write_actions(&plan.actions).map_err(|error| unwritable(log, &error))?;
        if !log.storage().put_new(&commit_path(version), bytes.into()).await? {
            // Another export was faster.
            continue;
        }
        written = true;
        // A cleaning first makes the log begin after the versions that it does not keep, then reads
        // the Delta log, then deletes files. As long as this version is in the log, a later
        // cleaning reads the log entry just written and keeps its files. Otherwise the files may
        // vanish at any time, and the newest version is exported instead.
        if is_readable(log, &snapshot).await? {
            stored_files(log, &snapshot).await?;
            return Ok((plan.report, snapshot));
        }
    }
}

/// Whether the version of a snapshot has not been cleaned away.
async fn is_readable(log: &TableLog, snapshot: &Snapshot) -> Result<bool, DeltaError> {
    Ok(log.files().await?.oldest().is_none_or(|oldest| oldest <= snapshot.version()))
}

fn unwritable(log: &TableLog, error: &serde_json::Error) -> DeltaError {
    DeltaError::Unwritable { table: log.storage().name().to_owned(), reason: error.to_string() }
}

/// Checks the files of a snapshot and plans the content of the next version.
async fn plan(
    log: &TableLog,
    snapshot: &Snapshot,
    before: Option<&DeltaVersion>,
    options: &DeltaOptions,
) -> Result<Plan, DeltaError> {
    let table = log.storage().name();
    if let Some(file) = before.and_then(|before| before.foreign.clone()) {
        return Err(DeltaError::Foreign { table: table.to_owned(), file });
    }
    check_overlap(table, snapshot)?;
    let columns = exported_columns(snapshot.spec(), &options.without)?;
    let stored = stored_files(log, snapshot).await?;
    let statistics = read_statistics(log, snapshot, before, &columns).await?;
    let now = options.now.unwrap_or_else(|| chrono::Utc::now().timestamp_micros());
    let state = ExportState { snapshot, before, columns, stored, statistics, now };
    state.plan(&options.without).map_err(|error| unwritable(log, &error))
}

/// Refuses a snapshot that may contain superseded or deleted rows.
fn check_overlap(table: &str, snapshot: &Snapshot) -> Result<(), DeltaError> {
    let portions = snapshot.portions();
    for of_partition in portions.chunk_by(|a, b| a.partition == b.partition) {
        let depth = overlap_depths(of_partition).into_iter().max().unwrap_or(0);
        if let Some(first) = of_partition.first().filter(|_| depth > 1) {
            return Err(DeltaError::Overlap { table: table.to_owned(), partition: first.partition, depth });
        }
    }
    Ok(())
}

/// Lists the files below the table by path, and checks that all portions of the snapshot are among
/// them.
async fn stored_files(
    log: &TableLog,
    snapshot: &Snapshot,
) -> Result<HashMap<String, StoredFile>, DeltaError> {
    let files = log.storage().list_all().await?;
    let files: HashMap<String, StoredFile> =
        files.into_iter().map(|file| (file.path.clone(), file)).collect();
    for portion in snapshot.portions() {
        let damage = match files.get(&portion.path) {
            None => PortionDamage::Missing,
            Some(file) if file.bytes != portion.bytes => {
                PortionDamage::Length { expected: portion.bytes, found: file.bytes }
            }
            Some(_) => continue,
        };
        return Err(damaged(log, &portion, damage));
    }
    Ok(files)
}

fn damaged(log: &TableLog, portion: &PortionEntry, damage: PortionDamage) -> DeltaError {
    DeltaError::Portion { table: log.storage().name().to_owned(), file: portion.path.clone(), damage }
}

/// Reads the statistics of the portions that the previous version does not have, and proves that
/// all integers of all portions fit into Delta's. Columns of the previous version were proven when
/// it was exported.
async fn read_statistics(
    log: &TableLog,
    snapshot: &Snapshot,
    before: Option<&DeltaVersion>,
    columns: &[Column],
) -> Result<Statistics, DeltaError> {
    let known: Option<Schema> = before
        .and_then(|before| before.metadata.as_ref())
        .and_then(|metadata| serde_json::from_str(&metadata.schema_string).ok());
    let unproven = |column: &Column| {
        column.column_type == ColumnType::Uint64 && !known.as_ref().is_some_and(|known| known.has(column))
    };
    let all = columns.iter().any(unproven);
    let named = |portion: &PortionEntry| before.is_some_and(|before| before.files.contains(&portion.path));
    let portions = data_portions(snapshot).into_iter().filter(|portion| all || !named(portion));
    let primary_key = &snapshot.spec().definition().primary_key;
    let read = |portion: Arc<PortionEntry>| async move {
        let statistics = log.column_statistics(&portion, primary_key, columns).await;
        let statistics = statistics.map_err(|damage| damaged(log, &portion, damage))?;
        check_integers(columns, &portion, &statistics)?;
        Ok::<_, DeltaError>((portion.path.clone(), statistics))
    };
    stream::iter(portions).map(read).buffered(CONCURRENT_READS).try_collect().await
}

/// Refuses integers that are larger than Delta's.
fn check_integers(
    columns: &[Column],
    portion: &PortionEntry,
    statistics: &[ColumnStatistics],
) -> Result<(), DeltaError> {
    for (column, known) in columns.iter().zip(statistics) {
        if column.column_type != ColumnType::Uint64 || known.nulls == Some(portion.rows) {
            continue;
        }
        let (name, column_type, file) = (column.name.clone(), column.column_type, portion.path.clone());
        match known.max {
            Some(KeyValue::Uint(max)) if i64::try_from(max).is_ok() => {}
            Some(KeyValue::Uint(found)) => {
                return Err(DeltaError::TooLarge { column: name, column_type, found, file });
            }
            _ => return Err(DeltaError::Unproven { column: name, column_type, file }),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use arrow::array::{Int64Array, RecordBatch, StringArray};
    use object_store::memory::InMemory;

    use super::*;
    use crate::ingest::{Ingest, IngestMode, IngestOptions, MIN_MEMORY};
    use evenkeel_model::table::{PlacementFunction, TableDefinition, TableSpec};
    use evenkeel_model::units::PartitionCount;
    use evenkeel_storage::TableStorage;

    async fn table(columns: Vec<Column>) -> (TableLog, Snapshot) {
        let spec = TableSpec::new(TableDefinition {
            name: "t".into(),
            columns,
            primary_key: vec!["k".into()],
            partition_key: vec![],
            partitions: PartitionCount::ONE,
            placement: PlacementFunction::Ydb,
            ttl: None,
        });
        let storage = TableStorage::new(Arc::new(InMemory::new()), "t".into());
        TableLog::create(storage, &spec.unwrap()).await.unwrap()
    }

    fn two_columns() -> Vec<Column> {
        vec![Column::required("k", ColumnType::Int64), Column::nullable("v", ColumnType::Utf8)]
    }

    /// Ingests rows with these keys as one commit of one portion.
    async fn ingest(log: &TableLog, base: &Snapshot, keys: std::ops::Range<i64>) -> Snapshot {
        let values = StringArray::from_iter_values(keys.clone().map(|key| key.to_string()));
        let columns: Vec<arrow::array::ArrayRef> =
            vec![Arc::new(Int64Array::from_iter_values(keys)), Arc::new(values)];
        let options = IngestOptions { mode: IngestMode::Upsert, memory: MIN_MEMORY };
        let mut ingest = Ingest::new(log.clone(), base.clone(), &options).unwrap();
        ingest.push(RecordBatch::try_new(Arc::clone(base.spec().schema()), columns).unwrap()).await.unwrap();
        ingest.finish(Vec::new()).await.unwrap().snapshot
    }

    async fn newest_files(log: &TableLog) -> BTreeSet<String> {
        let newest = DeltaLog::in_storage(log.storage()).newest().await.unwrap().unwrap();
        newest.files().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn a_version_names_the_portions_of_the_newest_snapshot_and_is_written_once() {
        let (log, empty) = table(two_columns()).await;
        let mut snapshot = empty.clone();
        for (version, keys) in [0..10, 10..15].into_iter().enumerate() {
            let rows = keys.end as u64;
            snapshot = ingest(&log, &snapshot, keys).await;
            // The snapshot at hand is old; the newest one is exported.
            let (report, exported) = export(&log, &empty, &DeltaOptions::default()).await.unwrap();
            assert_eq!((report.delta_version, report.written), (version as u64, true));
            assert_eq!(
                (report.files, report.rows, report.added, report.removed),
                (version as u64 + 1, rows, 1, 0)
            );
            assert_eq!(exported.version(), snapshot.version());
            let paths: BTreeSet<_> = snapshot.portions().iter().map(|portion| portion.path.clone()).collect();
            assert_eq!(newest_files(&log).await, paths);
            let (again, _) = export(&log, &snapshot, &DeltaOptions::default()).await.unwrap();
            assert_eq!((again.delta_version, again.written, again.added), (version as u64, false, 0));
        }
    }

    #[tokio::test]
    async fn portions_that_overlap_or_are_damaged_are_not_exported() {
        let (log, empty) = table(two_columns()).await;
        let one = ingest(&log, &empty, 0..10).await;
        export(&log, &one, &DeltaOptions::default()).await.unwrap();
        let before = newest_files(&log).await;
        let two = ingest(&log, &one, 20..30).await;
        let path = &two.portions()[1].path;
        let sound = log.storage().read(path).await.unwrap();
        log.storage().replace(path, vec![0; sound.len()].into()).await.unwrap();
        let damaged = export(&log, &two, &DeltaOptions::default()).await.unwrap_err();
        assert!(matches!(&damaged, DeltaError::Portion { file, .. } if file == path), "{damaged}");
        log.storage().replace(path, sound).await.unwrap();
        let three = ingest(&log, &two, 5..6).await;
        let overlap = export(&log, &three, &DeltaOptions::default()).await.unwrap_err();
        assert!(matches!(overlap, DeltaError::Overlap { depth: 2, .. }), "{overlap}");
        assert_eq!(newest_files(&log).await, before);
    }

    #[tokio::test]
    async fn columns_that_delta_cannot_have_are_refused_until_they_are_left_out() {
        let case = vec![
            Column::required("k", ColumnType::Int64),
            Column::nullable("Name", ColumnType::Utf8),
            Column::nullable("name", ColumnType::Utf8),
        ];
        let (log, base) = table(case).await;
        let export = async |without: &[&str]| {
            let without = without.iter().map(|name| (*name).to_owned()).collect();
            export(&log, &base, &DeltaOptions { without, now: None }).await.map(|(report, _)| report)
        };
        assert!(matches!(export(&[]).await.unwrap_err(), DeltaError::Case { .. }));
        assert!(matches!(export(&["nope"]).await.unwrap_err(), DeltaError::UnknownColumn { .. }));
        assert!(matches!(export(&["k", "Name", "name"]).await.unwrap_err(), DeltaError::NoColumns));
        let report = export(&["name"]).await.unwrap();
        assert_eq!((report.left_out, report.files), (vec!["name".to_owned()], 0));
    }
}
