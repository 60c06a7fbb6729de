//! Content of the next version of a Delta log, as a function of the state before it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::delta::action::{Action, AddFile, CommitInfo, RemoveFile, Transaction, encode_path};
use crate::delta::declaration::{metadata, protocol, published_columns};
use crate::delta::file_statistics::{file_statistics, is_known};
use crate::delta::history::DeltaVersion;
use crate::delta::names::APPLICATION;
use crate::delta::report::DeltaExport;
use crate::delta::schema::is_converted;
use crate::log::{PortionEntry, Snapshot};
use crate::portion::ColumnStatistics;
use evenkeel_model::table::Column;
use evenkeel_storage::StoredFile;

/// Statistics of each exported column, by the path of the portion.
pub(super) type Statistics = HashMap<String, Vec<ColumnStatistics>>;

/// A snapshot that can be exported, and facts about its files.
pub(super) struct ExportState<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) before: Option<&'a DeltaVersion>,
    /// Columns to export.
    pub(super) columns: Vec<Column>,
    /// Files below the table, by path.
    pub(super) stored: HashMap<String, StoredFile>,
    /// Statistics of all portions that the previous version does not have.
    pub(super) statistics: Statistics,
    /// Current time, in microseconds since 1970.
    pub(super) now: i64,
}

/// Actions of the next version, and the report on them.
pub(super) struct Plan {
    pub(super) actions: Vec<Action>,
    pub(super) report: DeltaExport,
}

/// A new portion, and the statistics of each exported column in it.
type Fresh<'a> = (&'a PortionEntry, &'a [ColumnStatistics]);

impl ExportState<'_> {
    /// Plans the next version, with all columns of the table except those in `without`.
    pub(super) fn plan(&self, without: &[String]) -> Result<Plan, serde_json::Error> {
        let before = self.before.cloned().unwrap_or_default();
        let portions = data_portions(self.snapshot);
        let fresh = self.fresh(&portions, &before);
        let kept = fresh.len() < portions.len();
        let published_before = before.metadata.as_ref().filter(|_| kept).map(published_columns);
        let published = columns_to_publish(&self.columns, &fresh, published_before.as_deref());

        let millis = self.millis();
        let protocol = protocol(&self.columns, before.protocol.as_ref());
        let metadata =
            metadata(self.snapshot.spec(), &self.columns, &published, before.metadata.as_ref(), millis)?;
        let new_protocol = before.protocol.as_ref() != Some(&protocol);
        let new_metadata = before.metadata.as_ref() != Some(&metadata);
        let removed: Vec<Action> = self.removed(&before).map(Action::Remove).collect();
        let added: Result<Vec<Action>, serde_json::Error> =
            fresh.into_iter().map(|fresh| self.added(fresh, &published).map(Action::Add)).collect();
        let added = added?;

        let written = new_protocol || new_metadata || !removed.is_empty() || !added.is_empty();
        let report = DeltaExport {
            delta_version: self.before.map_or(0, |before| before.version + u64::from(written)),
            written,
            added: added.len() as u64,
            removed: removed.len() as u64,
            ..self.report(&portions, without)
        };
        let mut actions = vec![Action::CommitInfo(self.commit_info())];
        actions.extend(new_protocol.then_some(Action::Protocol(protocol)));
        actions.extend(new_metadata.then_some(Action::MetaData(metadata)));
        actions.extend(removed);
        actions.extend(added);
        actions.push(Action::Txn(self.transaction()));
        Ok(Plan { actions, report })
    }

    fn millis(&self) -> i64 {
        self.now.div_euclid(1000)
    }

    /// Returns the portions that the previous version does not have.
    fn fresh<'a>(&'a self, portions: &'a [Arc<PortionEntry>], before: &DeltaVersion) -> Vec<Fresh<'a>> {
        let fresh = portions.iter().filter(|portion| !before.files.contains(&portion.path));
        let known = |path: &str| self.statistics.get(path).map(Vec::as_slice).unwrap_or_default();
        fresh.map(|portion| (portion.as_ref(), known(&portion.path))).collect()
    }

    fn removed(&self, before: &DeltaVersion) -> impl Iterator<Item = RemoveFile> {
        let is_there = |path: &str| self.snapshot.portion(path).is_some_and(|portion| !portion.deletes);
        before.files().filter(move |path| !is_there(path)).map(|path| RemoveFile {
            path: encode_path(path),
            deletion_timestamp: Some(self.millis()),
            data_change: true,
        })
    }

    fn added(&self, (portion, known): Fresh<'_>, published: &[String]) -> Result<AddFile, serde_json::Error> {
        let modified = self.stored.get(&portion.path).map_or(self.now, |file| file.modified_micros);
        Ok(AddFile {
            path: encode_path(&portion.path),
            partition_values: BTreeMap::new(),
            size: portion.bytes,
            modification_time: modified.div_euclid(1000),
            data_change: true,
            stats: Some(file_statistics(portion.rows, &self.columns, known, published)?),
        })
    }

    fn commit_info(&self) -> CommitInfo {
        let version = self.snapshot.version().to_string();
        CommitInfo {
            timestamp: self.millis(),
            operation: "EXPORT".to_owned(),
            operation_parameters: BTreeMap::from([("tableVersion".to_owned(), version)]),
            engine_info: concat!("evenkeel/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    fn transaction(&self) -> Transaction {
        Transaction {
            app_id: APPLICATION.to_owned(),
            version: i64::try_from(self.snapshot.version().0).unwrap_or(i64::MAX),
            last_updated: Some(self.millis()),
        }
    }

    /// Reports the exported files, before it is known which are new.
    fn report(&self, portions: &[Arc<PortionEntry>], without: &[String]) -> DeltaExport {
        let spec = self.snapshot.spec();
        let sum = |figure: fn(&PortionEntry) -> u64| portions.iter().map(|portion| figure(portion)).sum();
        let converted = self.columns.iter().filter(|column| is_converted(column.column_type));
        let left_out = spec.columns().iter().filter(|column| without.contains(&column.name));
        DeltaExport {
            name: spec.name().to_owned(),
            version: self.snapshot.version(),
            delta_version: 0,
            written: false,
            files: portions.len() as u64,
            rows: sum(|portion| portion.rows),
            bytes: sum(|portion| portion.bytes),
            added: 0,
            removed: 0,
            left_out: left_out.map(|column| column.name.clone()).collect(),
            converted: converted.map(|column| column.name.clone()).collect(),
            expired_rows: self.snapshot.expired_rows(self.now),
        }
    }
}

/// Returns the columns whose statistics are known for every file: for the `fresh` files and, if
/// other files are kept, for the columns published by the version `before`.
fn columns_to_publish(columns: &[Column], fresh: &[Fresh<'_>], before: Option<&[String]>) -> Vec<String> {
    // The setting separates names by commas, and has no common way to quote other names.
    let is_plain = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let known = |index: usize, column: &Column| {
        fresh.iter().all(|(portion, statistics)| {
            statistics.get(index).is_some_and(|known| is_known(column, portion.rows, known))
        })
    };
    let published = columns.iter().enumerate().filter(|(index, column)| {
        is_plain(&column.name)
            && before.is_none_or(|before| before.contains(&column.name))
            && known(*index, column)
    });
    published.map(|(_, column)| column.name.clone()).collect()
}

/// Returns the portions with rows. Since portions do not overlap, the others delete no remaining
/// row.
pub(super) fn data_portions(snapshot: &Snapshot) -> Vec<Arc<PortionEntry>> {
    snapshot.portions().into_iter().filter(|portion| !portion.deletes).collect()
}
