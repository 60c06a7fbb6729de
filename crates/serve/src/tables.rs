//! Served tables, at their newest or at pinned versions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use evenkeel_engine::Table;
use evenkeel_engine::query::{Database, QueryEnvironment, TableSession};
use evenkeel_input::source::Export;
use evenkeel_model::units::Version;
use tokio::sync::Mutex;

use crate::failure::{Failure, SqlState};
use crate::settings::Pins;

/// Number of older versions that are kept open for clients that pin them.
const KEPT_OPEN: usize = 8;

/// A table and the names that queries know it by.
#[derive(Debug, Clone)]
pub struct ServedTable {
    /// Names of the table; clients see the last one.
    pub names: Vec<String>,
    /// The table.
    pub table: Table,
}

impl ServedTable {
    /// Name that clients see in lists.
    pub(crate) fn name(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }
}

/// Tables and exports that are served.
#[derive(Debug, Clone, Default)]
pub struct ServedTables {
    /// Tables.
    pub tables: Vec<ServedTable>,
    /// Exports by name. Each query reads their files again.
    pub exports: Vec<(String, Arc<Export>)>,
}

/// All tables at one version each.
#[derive(Debug)]
pub(crate) struct OpenTables {
    pub(crate) tables: Vec<ServedTable>,
    /// Tables whose newest version cannot be read, each with the reason.
    pub(crate) unreadable: Unreadable,
    pub(crate) session: TableSession,
}

/// Names of tables with the reasons why they cannot be read.
type Unreadable = BTreeMap<String, String>;

impl OpenTables {
    fn new(
        served: ServedTables,
        unreadable: Unreadable,
        environment: &QueryEnvironment,
    ) -> Result<Self, Failure> {
        let mut database = Database::default();
        for served in &served.tables {
            let provider = match unreadable.get(served.name()) {
                Some(reason) => served.table.unreadable_provider(reason)?,
                None => served.table.provider()?,
            };
            database.add_table_as(&served.names, provider)?;
        }
        for (name, export) in &served.exports {
            database.add_export(name, Arc::clone(export))?;
        }
        let session = database.session_within(environment)?;
        Ok(Self { tables: served.tables, unreadable, session })
    }

    fn versions(&self) -> Vec<Version> {
        self.tables.iter().map(|served| served.table.snapshot().version()).collect()
    }
}

/// Opens the served tables at the versions that queries need.
#[derive(Debug)]
pub(crate) struct Tables {
    served: ServedTables,
    environment: QueryEnvironment,
    newest: Mutex<Newest>,
    older: Mutex<VecDeque<Arc<OpenTables>>>,
}

#[derive(Debug)]
struct Newest {
    opened: Arc<OpenTables>,
    /// Start of the last check for newer versions.
    looked: Instant,
}

impl Tables {
    pub(crate) fn new(served: ServedTables, environment: QueryEnvironment) -> Result<Self, Failure> {
        let opened = Arc::new(OpenTables::new(served.clone(), Unreadable::default(), &environment)?);
        let newest = Mutex::new(Newest { opened, looked: Instant::now() });
        Ok(Self { served, environment, newest, older: Mutex::default() })
    }

    /// Memory, spill directory and caches of queries.
    pub(crate) fn environment(&self) -> &QueryEnvironment {
        &self.environment
    }

    /// Returns the newest versions of all tables. Queries on a table whose log cannot be read fail.
    ///
    /// # Errors
    /// [`Failure`] if no log can be read.
    pub(crate) async fn newest(&self) -> Result<Arc<OpenTables>, Failure> {
        let arrived = Instant::now();
        let mut newest = self.newest.lock().await;
        // Another query has checked since this one arrived.
        if newest.looked >= arrived {
            return Ok(Arc::clone(&newest.opened));
        }
        let looked = Instant::now();
        let mut tables = newest.opened.tables.clone();
        let mut unreadable = Unreadable::default();
        for served in &mut tables {
            if let Err(error) = served.table.refresh().await {
                let failure = Failure::from(error);
                unreadable.insert(served.name().to_owned(), failure.message.clone());
                if unreadable.len() == newest.opened.tables.len() {
                    return Err(failure);
                }
            }
        }
        let is_same = tables.iter().zip(newest.opened.versions());
        if unreadable != newest.opened.unreadable
            || !is_same.into_iter().all(|(served, version)| served.table.snapshot().version() == version)
        {
            newest.opened = Arc::new(self.open(tables, unreadable)?);
        }
        newest.looked = looked;
        Ok(Arc::clone(&newest.opened))
    }

    /// Returns the newest versions of the tables, or the pinned ones.
    ///
    /// # Errors
    /// [`Failure`] if there is no such table or version, or a log cannot be read.
    pub(crate) async fn at(&self, pins: &Pins) -> Result<Arc<OpenTables>, Failure> {
        let newest = self.newest().await?;
        if pins.is_empty() {
            return Ok(newest);
        }
        let mut tables = newest.tables.clone();
        let mut unreadable = newest.unreadable.clone();
        for (name, version) in pins {
            let position = match (name.as_str(), tables.len()) {
                ("", 1) => Some(0),
                ("", _) => {
                    let message =
                        "several tables are served; write SET evenkeel.version = 'NAME=VERSION, ...'";
                    return Err(Failure::new(SqlState::INVALID_PARAMETER, message));
                }
                (name, _) => tables.iter().position(|served| served.names.iter().any(|own| own == name)),
            };
            let Some(served) = position.and_then(|position| tables.get_mut(position)) else {
                let message = format!("there is no table \"{name}\" whose version could be set");
                return Err(Failure::new(SqlState::UNDEFINED_TABLE, message));
            };
            let snapshot = served.table.log().at(*version).await;
            let snapshot =
                snapshot.map_err(|error| Failure::new(SqlState::INVALID_PARAMETER, error.to_string()))?;
            served.table.move_to(snapshot);
            unreadable.remove(served.name());
        }
        let versions: Vec<Version> = tables.iter().map(|served| served.table.snapshot().version()).collect();
        let mut older = self.older.lock().await;
        if let Some(opened) =
            older.iter().find(|opened| opened.versions() == versions && opened.unreadable == unreadable)
        {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(self.open(tables, unreadable)?);
        older.push_front(Arc::clone(&opened));
        older.truncate(KEPT_OPEN);
        Ok(opened)
    }

    fn open(&self, tables: Vec<ServedTable>, unreadable: Unreadable) -> Result<OpenTables, Failure> {
        let served = ServedTables { tables, exports: self.served.exports.clone() };
        OpenTables::new(served, unreadable, &self.environment)
    }
}
