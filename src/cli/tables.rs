//! The tables of a query: a single one, all of a folder, and others by name.

mod places;
mod versions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use evenkeel::log::LogError;
use evenkeel::query::{Database, QueryLimits, TableSession};
use evenkeel::source::{Export, InputPath, SourceError, find_inputs};
use evenkeel::storage::{StorageError, TableStorage, is_table};
use evenkeel::table::ColumnType;
use evenkeel::{Table, TableError};

use crate::cli::declaring::{column_type, table_name};
use crate::cli::input::{FormatArgs, open_export};
use crate::cli::{Failure, Output, open};

use crate::cli::tables::places::{is_export, name_of_place, named_places};
use crate::cli::tables::versions::version_of;

pub(crate) use crate::cli::tables::places::NamedPlace;
pub(crate) use crate::cli::tables::versions::TableVersion;

#[derive(Debug, Clone, Args)]
pub(crate) struct TablesArgs {
    /// Directory of a table, or a folder of tables, each of which has the name of its directory; or
    /// an export in any input format. Can be left out if --table names all tables.
    #[arg(required_unless_present = "tables")]
    pub(crate) dir: Option<PathBuf>,

    /// Another table and its name: a directory of a table, or an export in any input format;
    /// repeatable.
    #[arg(long = "table", value_name = "NAME=PLACE")]
    tables: Vec<String>,

    #[command(flatten)]
    exports: ExportArgs,
}

/// How to read the exports that queries join.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExportArgs {
    /// Type of a column of an export, if the detected type is wrong; repeatable. With several
    /// exports, NAME.COLUMN:TYPE.
    #[arg(long = "type", value_name = "COLUMN:TYPE")]
    types: Vec<String>,

    #[command(flatten)]
    format: FormatArgs,
}

/// Opened tables, all at one version each.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables {
    /// Tables by name.
    pub(crate) tables: Vec<(String, Table)>,
    /// Exports by name.
    pub(crate) exports: Vec<(String, Arc<Export>)>,
    /// Whether the first table is also available as `t`.
    has_main: bool,
    /// Name of the directory of that table.
    pub(crate) main_place: Option<String>,
    /// Name of the export that is also available as `t`.
    main_export: Option<String>,
}

impl TablesArgs {
    /// Opens the tables at the given versions, or else the newest ones, and prints notes on
    /// exports.
    pub(crate) async fn open(&self, versions: &[TableVersion], out: &Output) -> Result<Tables, Failure> {
        let mut opened = self.open_all(versions, out).await?;
        opened.move_to(versions).await?;
        Ok(opened)
    }

    /// Takes the only positional argument as the query, if `--table` names all tables and nothing
    /// lies at that place.
    pub(crate) fn take_query(&mut self) -> Option<String> {
        let text = self.dir.as_ref()?.to_str()?;
        let is_query =
            !self.tables.is_empty() && text.contains(char::is_whitespace) && !Path::new(text).exists();
        let sql = is_query.then(|| text.to_owned())?;
        self.dir = None;
        Some(sql)
    }

    async fn open_all(&self, versions: &[TableVersion], out: &Output) -> Result<Tables, Failure> {
        let named = named_places(&self.tables)?;
        let Some(dir) = &self.dir else {
            let mut opened = Tables::default();
            opened.open_more(&named, versions, &self.exports, out).await?;
            return Ok(opened);
        };
        let mut opened = Tables { has_main: true, ..Tables::default() };
        match at(dir, None, versions).await? {
            At::Table(table) => {
                opened.main_place = name_of_place(dir);
                opened.tables.push((table.spec().name().to_owned(), *table));
            }
            At::Folder(tables) => {
                opened.has_main = false;
                opened.tables = tables;
            }
            At::Other(no_table) => {
                if !is_export(dir) {
                    return Err(no_table.into());
                }
                opened.has_main = false;
                opened.main_export = Some(table_name(&[dir.display().to_string()]));
                let export = NamedPlace { name: None, place: dir.clone() };
                let places = [&[export], named.as_slice()].concat();
                opened.open_more(&places, versions, &self.exports, out).await?;
                return Ok(opened);
            }
        }
        opened.open_more(&named, versions, &self.exports, out).await?;
        Ok(opened)
    }
}

impl ExportArgs {
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
                        "--type {text}: names no export; write --type NAME.COLUMN:TYPE, with the name of an export"
                    )));
                }
            };
            types.entry(name.to_owned()).or_default().insert(column.to_owned(), column_type);
        }
        Ok(types)
    }

    /// Opens an export, as `evaluate` does.
    async fn open(
        &self,
        place: &Path,
        types: BTreeMap<String, ColumnType>,
        out: &Output,
    ) -> Result<Arc<Export>, Failure> {
        let inputs = find_inputs(&[place.display().to_string()], None)?;
        inputs.notes.iter().for_each(|note| out.note(note.text()));
        let options = inputs.options(self.format.options()?);
        let export = open_export(inputs.paths, options, types).await?;
        export.notes().iter().for_each(|note| out.note(&note.to_string()));
        Ok(export)
    }
}

/// Content of a place.
enum At {
    Table(Box<Table>),
    /// Tables by the names of their directories.
    Folder(Vec<(String, Table)>),
    /// Neither; the error explains that it is not a table.
    Other(TableError),
}

/// Opens the table at the place, whose name is `name`, or else all tables directly below it.
async fn at(place: &Path, name: Option<&str>, versions: &[TableVersion]) -> Result<At, Failure> {
    let no_table = match open(place, version_of(versions, name)).await {
        Ok(table) => return Ok(At::Table(Box::new(table))),
        Err(error @ TableError::Log(LogError::NotATable { .. })) => error,
        Err(error @ TableError::Storage(StorageError::NoDirectory { .. } | StorageError::File { .. })) => {
            return Ok(At::Other(error));
        }
        Err(error) => return Err(error.into()),
    };
    let mut folders = TableStorage::open(place)?.list_folders().await?;
    folders.retain(|folder| !folder.starts_with(['.', '_']));
    folders.sort();
    let mut tables = Vec::new();
    for folder in folders {
        let table = as_table(&place.join(&folder), version_of(versions, Some(&folder))).await?;
        tables.extend(table.map(|table| (folder, table)));
    }
    Ok(if tables.is_empty() { At::Other(no_table) } else { At::Folder(tables) })
}

/// Opens a table; `None` if the place is something else.
async fn as_table(place: &Path, version: Option<u64>) -> Result<Option<Table>, Failure> {
    match open(place, version).await {
        Ok(table) => Ok(Some(table)),
        Err(
            TableError::Log(LogError::NotATable { .. })
            | TableError::Storage(StorageError::NoDirectory { .. } | StorageError::File { .. }),
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Tables {
    /// Opens tables, folders of tables and exports, and prints notes on exports.
    pub(crate) async fn open(
        places: &[NamedPlace],
        exports: &ExportArgs,
        out: &Output,
    ) -> Result<Self, Failure> {
        let mut opened = Self::default();
        opened.open_more(places, &[], exports, out).await?;
        // A single table has a short name, too, unless it was given another one.
        opened.has_main = opened.tables.len() == 1 && opened.main_place.is_some();
        Ok(opened)
    }

    async fn open_more(
        &mut self,
        places: &[NamedPlace],
        versions: &[TableVersion],
        args: &ExportArgs,
        out: &Output,
    ) -> Result<(), Failure> {
        let mut exports: Vec<(String, &Path)> = Vec::new();
        for NamedPlace { name, place } in places {
            let is_stdin = place.as_os_str() == "-";
            let opened = if is_stdin { None } else { Some(at(place, name.as_deref(), versions).await?) };
            match opened {
                Some(At::Table(table)) => {
                    if name.is_none() && self.main_place.is_none() {
                        self.main_place = Some(name_of_place(place).unwrap_or_default());
                    }
                    let name = name.clone().unwrap_or_else(|| table.spec().name().to_owned());
                    self.tables.push((name, *table));
                }
                Some(At::Folder(tables)) => match name {
                    None => self.tables.extend(tables),
                    Some(name) => {
                        let shown = place.display();
                        return Err(Failure::wrong_usage(format!(
                            "{name}={shown}: {shown} is a folder of tables; name one of them: {name}={shown}/TABLE"
                        )));
                    }
                },
                _ => {
                    let text = place.display().to_string();
                    exports.push((name.clone().unwrap_or_else(|| table_name(&[text])), place));
                }
            }
        }
        if exports.iter().filter(|(_, place)| place.as_os_str() == "-").count() > 1 {
            return Err(SourceError::StdinTwice.into());
        }
        let names: Vec<&str> = exports.iter().map(|(name, _)| name.as_str()).collect();
        let mut types = args.types_by_export(&names)?;
        if names.is_empty() && !args.format.words().is_empty() {
            return Err(Failure::wrong_usage(
                "options for reading inputs apply to exports, and none is named",
            ));
        }
        for (name, place) in exports {
            let types = types.remove(&name).unwrap_or_default();
            self.exports.push((name, args.open(place, types, out).await?));
        }
        Ok(())
    }

    /// Returns the table if it is the only one and there is no export.
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only clusters take a single table"))]
    pub(crate) fn single(&self) -> Option<&Table> {
        match (self.tables.as_slice(), self.exports.is_empty()) {
            ([(_, table)], true) => Some(table),
            _ => None,
        }
    }

    /// Refuses to write a result over an export, or into a table.
    pub(crate) fn check_output(&self, path: &Path) -> Result<(), Failure> {
        let shown = path.display();
        let whole = std::path::absolute(path)?;
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        for (name, export) in &self.exports {
            let is_input = |input: &InputPath| match input {
                InputPath::File(file) => real(file).is_some_and(|file| Some(file) == real(&whole)),
                _ => false,
            };
            if export.inputs().iter().any(is_input) {
                return Err(Failure::wrong_usage(format!(
                    "{shown} is a file of the export {name}; name another one"
                )));
            }
        }
        let folder = whole.parent().and_then(real);
        let mut folders = folder.iter().flat_map(|folder| folder.ancestors());
        match folders.find(|folder| is_table(folder)) {
            Some(table) => {
                let table = table.display();
                Err(Failure::wrong_usage(format!("{shown} lies in the table {table}; name another file")))
            }
            None => Ok(()),
        }
    }

    /// Returns the tables with all their names in queries, their own name last.
    fn named(&self) -> impl Iterator<Item = (Vec<String>, &Table)> {
        let named = self.tables.iter().enumerate();
        named.map(|(at, (name, table))| {
            if at > 0 || !self.has_main {
                return (vec![name.clone()], table);
            }
            // Named tables and exports take precedence.
            let others = self.tables.iter().skip(1).map(|(name, _)| name);
            let others: Vec<&String> = others.chain(self.exports.iter().map(|(name, _)| name)).collect();
            let place = self.main_place.as_ref().filter(|place| !place.is_empty() && !others.contains(place));
            (Database::names_of_main_table(table.spec().name(), place.map(String::as_str)), table)
        })
    }

    /// Keeps the portions of all tables in memory until the process ends.
    pub(crate) fn leak_portions(&self) {
        self.tables.iter().for_each(|(_, table)| table.snapshot().leak_portions());
    }

    /// Returns the tables for a server.
    #[cfg(feature = "serve")]
    pub(crate) fn served(&self) -> evenkeel::serve::ServedTables {
        let table = |(names, table): (Vec<String>, &Table)| evenkeel::serve::ServedTable {
            names,
            table: table.clone(),
        };
        let tables = self.named().map(table).collect();
        evenkeel::serve::ServedTables { tables, exports: self.exports.clone() }
    }

    /// Opens the tables and exports of `--table`, beside a table with a name of its own and `t`.
    pub(crate) async fn beside(
        own: &str,
        named: &[String],
        exports: &ExportArgs,
        out: &Output,
    ) -> Result<Database, Failure> {
        let opened = Self::open(&named_places(named)?, exports, out).await?;
        let names =
            opened.tables.iter().map(|(name, _)| name).chain(opened.exports.iter().map(|(name, _)| name));
        if let Some(taken) = names.into_iter().find(|name| *name == own || *name == "t") {
            let message = format!("--table {taken}=...: the table itself has this name; give another one");
            return Err(Failure::wrong_usage(message));
        }
        opened.database()
    }

    /// Opens a session with all tables and exports.
    pub(crate) fn session_with(&self, limits: &QueryLimits) -> Result<TableSession, Failure> {
        Ok(self.database()?.session_with(limits)?)
    }

    fn database(&self) -> Result<Database, Failure> {
        let mut database = Database::default();
        for (names, table) in self.named() {
            database.add_table_as(&names, table.provider()?)?;
        }
        for (name, export) in &self.exports {
            database.add_export(name, Arc::clone(export))?;
        }
        let is_main = |(name, _): &&(String, Arc<Export>)| Some(name) == self.main_export.as_ref();
        let has_t = self.tables.iter().map(|(name, _)| name).chain(self.exports.iter().map(|(name, _)| name));
        if let (Some((_, export)), false) =
            (self.exports.iter().find(is_main), has_t.into_iter().any(|name| name == "t"))
        {
            database.add_export("t", Arc::clone(export))?;
        }
        Ok(database)
    }
}

#[cfg(test)]
#[path = "tables_tests.rs"]
mod tests;
