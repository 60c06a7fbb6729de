//! The tables that SQL is run on: one, those of a folder, and others by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use evenkeel::log::LogError;
use evenkeel::query::{Database, QueryLimits, TableSession};
use evenkeel::source::{Export, SourceError, find_inputs};
use evenkeel::storage::{StorageError, TableStorage};
use evenkeel::table::ColumnType;
use evenkeel::{Table, TableError};

use crate::cli::evaluate::column_type;
use crate::cli::input::{FormatArgs, open_export};
use crate::cli::{Failure, Output, open};

#[derive(Debug, Clone, Args)]
pub(crate) struct TablesArgs {
    /// Directory of a table, or a folder of tables, each of which has the name of its directory.
    pub(crate) dir: PathBuf,

    /// Another table under a name: a directory of a table, or an export in any input format;
    /// repeatable.
    #[arg(long = "table", value_name = "NAME=PLACE")]
    tables: Vec<String>,

    /// Type of a column of an export, if the detected type is not the right one; repeatable. With several
    /// exports, NAME.COLUMN:TYPE.
    #[arg(long = "type", value_name = "COLUMN:TYPE")]
    types: Vec<String>,

    #[command(flatten)]
    format: FormatArgs,
}

/// Opened tables, all at one version each.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Tables by name.
    pub(crate) tables: Vec<(String, Table)>,
    exports: Vec<(String, Arc<Export>)>,
    /// Whether the first table is also available as `t`.
    has_main: bool,
}

impl TablesArgs {
    /// Opens the tables, and prints notes on exports. `version` is that of a single table.
    pub(crate) async fn open(&self, version: Option<u64>, out: &Output) -> Result<Tables, Failure> {
        let (tables, has_main) = self.place(version).await?;
        let mut opened = Tables { tables, exports: Vec::new(), has_main };
        let mut exports = Vec::new();
        for named in &self.tables {
            let Some((name, place)) =
                named.split_once('=').filter(|(name, place)| !name.is_empty() && !place.is_empty())
            else {
                return Err(Failure::wrong_usage(format!("--table {named}: write --table NAME=PLACE")));
            };
            match as_table(Path::new(place)).await? {
                Some(table) => opened.tables.push((name.to_owned(), table)),
                None => exports.push((name, place)),
            }
        }
        if exports.iter().filter(|(_, place)| *place == "-").count() > 1 {
            return Err(SourceError::StdinTwice.into());
        }
        let names: Vec<&str> = exports.iter().map(|(name, _)| *name).collect();
        let mut types = self.types_by_export(&names)?;
        if names.is_empty() && !self.format.words().is_empty() {
            return Err(Failure::wrong_usage(
                "options for reading inputs apply to exports, and --table NAME=PLACE names none",
            ));
        }
        for (name, place) in exports {
            let export = self.export(place, types.remove(name).unwrap_or_default(), out).await?;
            opened.exports.push((name.to_owned(), export));
        }
        Ok(opened)
    }

    /// Returns the types of columns that are given, by the names of the exports.
    fn types_by_export(
        &self,
        exports: &[&str],
    ) -> Result<BTreeMap<String, BTreeMap<String, ColumnType>>, Failure> {
        let mut types: BTreeMap<String, BTreeMap<String, ColumnType>> = BTreeMap::new();
        for text in &self.types {
            let (column, column_type) = column_type(text)?;
            let named = exports.iter().find_map(|name| {
                let of_export = column.strip_prefix(*name)?.strip_prefix('.')?;
                Some((*name, of_export))
            });
            let (name, column) = match (named, exports) {
                (Some(named), _) => named,
                (None, [only]) => (*only, column.as_str()),
                (None, _) => {
                    return Err(Failure::wrong_usage(format!(
                        "--type {text}: of which export? Write --type NAME.COLUMN:TYPE, with a name of --table"
                    )));
                }
            };
            types.entry(name.to_owned()).or_default().insert(column.to_owned(), column_type);
        }
        Ok(types)
    }

    /// Opens an export, as `evaluate` does.
    async fn export(
        &self,
        place: &str,
        types: BTreeMap<String, ColumnType>,
        out: &Output,
    ) -> Result<Arc<Export>, Failure> {
        let inputs = find_inputs(&[place.to_owned()], None)?;
        inputs.notes.iter().for_each(|note| out.note(note));
        let options = inputs.options(self.format.options()?);
        let export = open_export(inputs.paths, options, types).await?;
        export.notes().iter().for_each(|note| out.note(&note.to_string()));
        Ok(export)
    }

    /// Opens the table at the place, or else all tables directly below it. Returns them by name, and whether
    /// the place is a table.
    async fn place(&self, version: Option<u64>) -> Result<(Vec<(String, Table)>, bool), Failure> {
        let no_table = match open(&self.dir, version).await {
            Ok(table) => return Ok((vec![(table.spec().name().to_owned(), table)], true)),
            Err(error @ TableError::Log(LogError::NotATable { .. })) => error,
            Err(error) => return Err(error.into()),
        };
        let mut folders = TableStorage::open(&self.dir)?.list_folders().await?;
        folders.retain(|folder| !folder.starts_with(['.', '_']));
        folders.sort();
        let mut tables = Vec::new();
        for folder in folders {
            let table = as_table(&self.dir.join(&folder)).await?;
            tables.extend(table.map(|table| (folder, table)));
        }
        if tables.is_empty() {
            return Err(no_table.into());
        }
        if version.is_some() {
            let message =
                format!("{}: --version is that of one table, and this is a folder", self.dir.display());
            return Err(Failure::wrong_usage(message));
        }
        Ok((tables, false))
    }
}

/// Opens a table; `None` if the place is something else.
async fn as_table(place: &Path) -> Result<Option<Table>, Failure> {
    match open(place, None).await {
        Ok(table) => Ok(Some(table)),
        Err(
            TableError::Log(LogError::NotATable { .. })
            | TableError::Storage(StorageError::NoDirectory { .. } | StorageError::File { .. }),
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Tables {
    /// Returns the table if it is the only one and there is no export.
    #[cfg(feature = "cluster")]
    pub(crate) fn single(&self) -> Option<&Table> {
        match (self.tables.as_slice(), self.exports.is_empty()) {
            ([(_, table)], true) => Some(table),
            _ => None,
        }
    }

    /// Opens a session with all of them.
    pub(crate) fn session_with(&self, limits: &QueryLimits) -> Result<TableSession, Failure> {
        let mut database = Database::default();
        for (at, (name, table)) in self.tables.iter().enumerate() {
            match at == 0 && self.has_main {
                true => database.add_main_table(table.provider()?)?,
                false => database.add_table(name, table.provider()?)?,
            }
        }
        for (name, export) in &self.exports {
            database.add_export(name, Arc::clone(export))?;
        }
        Ok(database.session_with(limits)?)
    }
}
