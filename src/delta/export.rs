//! Writing the next version of a Delta log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;
use uuid::Uuid;

use crate::delta::action::{
    Action, AddFile, CommitInfo, Format, MetaData, Protocol, RemoveFile, Transaction, encode_path,
    write_actions,
};
use crate::delta::file_statistics::{file_statistics, is_known};
use crate::delta::history::commit_path;
use crate::delta::schema::{Schema, exported_columns, is_converted};
use crate::delta::{APPLICATION, DeltaError, DeltaLog, DeltaVersion};
use crate::log::{PortionDamage, PortionEntry, Snapshot, TableLog, overlap_depths};
use crate::portion::ColumnStatistics;
use crate::storage::StoredFile;
use crate::table::{Column, ColumnType, KeyValue, TableSpec};
use crate::units::Version;

/// Ends of files read at one time.
const CONCURRENT_READS: usize = 16;

/// The feature by which the protocol names times without a zone.
const TIMES_WITHOUT_ZONE: &str = "timestampNtz";

/// The versions of the protocol from which on features are named, of readers and of writers.
const READER_WITH_FEATURES: u32 = 3;
const WRITER_WITH_FEATURES: u32 = 7;

/// How long Delta tools keep files that the newest version does not name: for ever, as far as they can say it. It stops those that
/// vacuum without a look at the features.
const RETENTION: &str = "interval 36500 days";

/// The setting that lists the columns whose statistics readers may use, and the one that says there are none.
const STATISTICS_OF: &str = "delta.dataSkippingStatsColumns";
const NO_STATISTICS: (&str, &str) = ("delta.dataSkippingNumIndexedCols", "0");

/// What is exported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeltaOptions {
    /// Columns that are left out.
    pub without: Vec<String>,
    /// The time, in microseconds since 1970; none for the clock.
    pub now: Option<i64>,
}

/// What an export did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeltaExport {
    /// Name of the table.
    pub name: String,
    /// Version of the table.
    pub version: Version,
    /// Version of the Delta log that holds it.
    pub delta_version: u64,
    /// Whether that version was written now. It was not where the newest one had the same files and columns.
    pub written: bool,
    /// Files in it.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that the version before did not have.
    pub added: u64,
    /// Files that only the version before had.
    pub removed: u64,
    /// Columns that were left out.
    pub left_out: Vec<String>,
    /// Uint64 and Interval columns: Delta has them as signed integers, which some readers do not make of them by themselves.
    pub converted: Vec<String>,
    /// Rows of files all of whose rows have expired. Readers see them, as queries do, until a compaction drops them.
    pub expired_rows: u64,
}

/// Writes the newest snapshot as the next version of the Delta log, unless the newest one has it already. Gives the snapshot too.
///
/// # Errors
/// [`DeltaError`] where the snapshot cannot be said in Delta, a file of it is not what was committed, or the log cannot be read or
/// written. After an error while writing, the version may be there; exporting again is right in any case.
pub async fn export(
    log: &TableLog,
    base: &Snapshot,
    options: &DeltaOptions,
) -> Result<(DeltaExport, Snapshot), DeltaError> {
    let mut snapshot = base.clone();
    loop {
        // In this order: what another process exported meanwhile is never newer than the snapshot.
        let before = DeltaLog::of(log.storage()).newest().await?;
        snapshot = log.refresh(&snapshot).await?;
        let plan = Plan::new(log, &snapshot, before, options).await?;
        if !plan.report.written {
            return Ok((plan.report, snapshot));
        }
        let version = plan.report.delta_version;
        let bytes = plan.bytes(log)?;
        if !log.storage().put_new(&commit_path(version), bytes.into()).await? {
            // Another export was first.
            continue;
        }
        // A cleaning that began before the version was there knew nothing of it.
        match stored_files(log, &snapshot).await {
            Err(DeltaError::Portion { table, file, .. }) => {
                return Err(DeltaError::Cleaned { table, file, version });
            }
            stored => stored.map(|_| ())?,
        }
        return Ok((plan.report, snapshot));
    }
}

/// The next version.
struct Plan {
    actions: Vec<Action>,
    report: DeltaExport,
}

impl Plan {
    async fn new(
        log: &TableLog,
        snapshot: &Snapshot,
        before: Option<DeltaVersion>,
        options: &DeltaOptions,
    ) -> Result<Self, DeltaError> {
        let table = log.storage().name();
        if let Some(file) = before.as_ref().and_then(|before| before.foreign.clone()) {
            return Err(DeltaError::Foreign { table: table.to_owned(), file });
        }
        check_overlap(table, snapshot)?;
        let spec = snapshot.spec();
        let columns = exported_columns(spec, &options.without)?;
        let stored = stored_files(log, snapshot).await?;
        let statistics = read_statistics(log, snapshot, before.as_ref(), &columns).await?;
        let now = options.now.unwrap_or_else(|| chrono::Utc::now().timestamp_micros());
        let millis = now.div_euclid(1000);

        let known = before.clone().unwrap_or_default();
        let portions = snapshot.portions();
        let (kept, fresh): (Vec<_>, Vec<_>) =
            portions.iter().partition(|portion| known.files.contains(&portion.path));
        let fresh: Vec<_> = fresh
            .into_iter()
            .map(|portion| (portion, statistics.get(&portion.path).map(Vec::as_slice).unwrap_or_default()))
            .collect();
        let told_before = known.metadata.as_ref().filter(|_| !kept.is_empty()).map(told_columns);
        let told = columns_to_tell(&columns, &fresh, told_before.as_deref());
        let protocol = protocol(&columns, known.protocol.as_ref());
        let metadata = metadata(spec, &columns, &told, known.metadata.as_ref(), millis)?;
        let removed: Vec<&str> = known.files().filter(|path| snapshot.portion(path).is_none()).collect();
        let mut added = Vec::new();
        for (portion, of_file) in fresh {
            let stats = file_statistics(portion.rows, &columns, of_file, &told);
            added.push(AddFile {
                path: encode_path(&portion.path),
                partition_values: BTreeMap::new(),
                size: portion.bytes,
                modification_time: stored
                    .get(&portion.path)
                    .map_or(0, |file| file.modified_micros.div_euclid(1000)),
                data_change: true,
                stats: Some(stats.map_err(|error| unwritable(log, &error))?),
            });
        }
        let new_protocol = known.protocol.as_ref() != Some(&protocol);
        let new_metadata = known.metadata.as_ref() != Some(&metadata);
        let written = new_protocol || new_metadata || !removed.is_empty() || !added.is_empty();
        let names = |of: &dyn Fn(&Column) -> bool| {
            spec.columns().iter().filter(|column| of(column)).map(|column| column.name.clone()).collect()
        };
        let left_out = |column: &Column| options.without.contains(&column.name);
        let report = DeltaExport {
            name: spec.name().to_owned(),
            version: snapshot.version(),
            delta_version: match &before {
                Some(before) => before.version + u64::from(written),
                None => 0,
            },
            written,
            files: portions.len() as u64,
            rows: portions.iter().map(|portion| portion.rows).sum(),
            bytes: portions.iter().map(|portion| portion.bytes).sum(),
            added: added.len() as u64,
            removed: removed.len() as u64,
            left_out: names(&left_out),
            converted: names(&|column| is_converted(column.column_type) && !left_out(column)),
            expired_rows: snapshot.expired_rows(now),
        };
        let mut actions = vec![Action::CommitInfo(commit_info(snapshot.version(), millis))];
        actions.extend(new_protocol.then_some(Action::Protocol(protocol)));
        actions.extend(new_metadata.then_some(Action::MetaData(metadata)));
        actions.extend(removed.into_iter().map(|path| {
            Action::Remove(RemoveFile {
                path: encode_path(path),
                deletion_timestamp: Some(millis),
                data_change: true,
            })
        }));
        actions.extend(added.into_iter().map(Action::Add));
        actions.push(Action::Txn(Transaction {
            app_id: APPLICATION.to_owned(),
            version: i64::try_from(snapshot.version().0).unwrap_or(i64::MAX),
            last_updated: Some(millis),
        }));
        Ok(Self { actions, report })
    }

    fn bytes(&self, log: &TableLog) -> Result<Vec<u8>, DeltaError> {
        write_actions(&self.actions).map_err(|error| unwritable(log, &error))
    }
}

fn unwritable(log: &TableLog, error: &serde_json::Error) -> DeltaError {
    DeltaError::Unwritable { table: log.storage().name().to_owned(), reason: error.to_string() }
}

/// Refuses a snapshot in which rows may be stored that newer ones replace.
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

/// The files below the table by their paths, where all portions of the snapshot are among them.
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

/// The statistics of the portions that the version before does not have, and the proof that all integers of all portions are such of
/// Delta. What a column of the version before held was proven when it was exported.
async fn read_statistics(
    log: &TableLog,
    snapshot: &Snapshot,
    before: Option<&DeltaVersion>,
    columns: &[Column],
) -> Result<HashMap<String, Vec<ColumnStatistics>>, DeltaError> {
    let known: Option<Schema> = before
        .and_then(|before| before.metadata.as_ref())
        .and_then(|metadata| serde_json::from_str(&metadata.schema_string).ok());
    let unproven = |column: &Column| {
        column.column_type == ColumnType::Uint64 && !known.as_ref().is_some_and(|known| known.has(column))
    };
    let all = columns.iter().any(unproven);
    let named = |portion: &PortionEntry| before.is_some_and(|before| before.files.contains(&portion.path));
    let portions = snapshot.portions().into_iter().filter(|portion| all || !named(portion));
    let primary_key = &snapshot.spec().definition().primary_key;
    let read = |portion: Arc<PortionEntry>| async move {
        let statistics = log.column_statistics(&portion, primary_key, columns).await;
        let statistics = statistics.map_err(|damage| damaged(log, &portion, damage))?;
        check_integers(columns, &portion, &statistics)?;
        Ok::<_, DeltaError>((portion.path.clone(), statistics))
    };
    stream::iter(portions).map(read).buffered(CONCURRENT_READS).try_collect().await
}

/// Refuses integers that are larger than those of Delta.
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

fn commit_info(version: Version, millis: i64) -> CommitInfo {
    CommitInfo {
        timestamp: millis,
        operation: "EXPORT".to_owned(),
        operation_parameters: BTreeMap::from([("tableVersion".to_owned(), version.to_string())]),
        engine_info: concat!("evenkeel/", env!("CARGO_PKG_VERSION")).to_owned(),
    }
}

/// What a reader must know: times without a zone, where there are any or ever were. No writer knows enough.
fn protocol(columns: &[Column], before: Option<&Protocol>) -> Protocol {
    let had_times = before.is_some_and(|before| before.min_reader_version >= READER_WITH_FEATURES);
    let times = had_times || columns.iter().any(|column| column.column_type.is_timestamp());
    let features = |features: &[&str]| Some(features.iter().map(|feature| (*feature).to_owned()).collect());
    match times {
        true => Protocol {
            min_reader_version: READER_WITH_FEATURES,
            min_writer_version: WRITER_WITH_FEATURES,
            reader_features: features(&[TIMES_WITHOUT_ZONE]),
            writer_features: features(&[TIMES_WITHOUT_ZONE, APPLICATION]),
        },
        false => Protocol {
            min_reader_version: 1,
            min_writer_version: WRITER_WITH_FEATURES,
            reader_features: None,
            writer_features: features(&[APPLICATION]),
        },
    }
}

/// The columns whose statistics a version tells.
fn told_columns(metadata: &MetaData) -> Vec<String> {
    let told = metadata.configuration.get(STATISTICS_OF).cloned().flatten().unwrap_or_default();
    told.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The columns whose statistics are known of every file: of the `fresh` ones, and where others are kept, of these, which is what
/// the version `before` told.
fn columns_to_tell(
    columns: &[Column],
    fresh: &[(&Arc<PortionEntry>, &[ColumnStatistics])],
    before: Option<&[String]>,
) -> Vec<String> {
    // The setting separates names by commas, and has no common way to write others.
    let is_plain = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let known = |index: usize, column: &Column| {
        fresh.iter().all(|(portion, statistics)| {
            statistics.get(index).is_some_and(|known| is_known(column, portion.rows, known))
        })
    };
    let told = columns.iter().enumerate().filter(|(index, column)| {
        is_plain(&column.name)
            && before.is_none_or(|before| before.contains(&column.name))
            && known(*index, column)
    });
    told.map(|(_, column)| column.name.clone()).collect()
}

fn metadata(
    spec: &TableSpec,
    columns: &[Column],
    told: &[String],
    before: Option<&MetaData>,
    millis: i64,
) -> Result<MetaData, DeltaError> {
    let definition = spec.definition();
    let statistics = match told {
        [] => (NO_STATISTICS.0, NO_STATISTICS.1.to_owned()),
        told => (STATISTICS_OF, told.join(",")),
    };
    let configuration = [
        statistics,
        ("delta.deletedFileRetentionDuration", RETENTION.to_owned()),
        ("evenkeel.partitionKey", serde_json::json!(definition.partition_key).to_string()),
        ("evenkeel.partitions", definition.partitions.to_string()),
        ("evenkeel.placement", definition.placement.to_string()),
        ("evenkeel.primaryKey", serde_json::json!(definition.primary_key).to_string()),
    ];
    let schema = serde_json::to_string(&Schema::of(columns)).map_err(|error| DeltaError::Unwritable {
        table: definition.name.clone(),
        reason: error.to_string(),
    })?;
    Ok(MetaData {
        id: before.map_or_else(|| Uuid::new_v4().to_string(), |before| before.id.clone()),
        name: Some(definition.name.clone()),
        format: Format { provider: "parquet".to_owned(), options: BTreeMap::new() },
        schema_string: schema,
        partition_columns: Vec::new(),
        configuration: configuration.map(|(key, value)| (key.to_owned(), Some(value))).into(),
        created_time: before.map_or(Some(millis), |before| before.created_time),
    })
}
