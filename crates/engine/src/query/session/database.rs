//! Several tables in one session.

use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use thiserror::Error;

use evenkeel_input::source::{Export, SourceError};
use evenkeel_model::bounded::quote;

use crate::query::error::QueryError;
use crate::query::limits::QueryLimits;
use crate::query::scan::export_table::ExportTable;
use crate::query::scan::named_table::NamedTable;
use crate::query::scan::provider::SnapshotTable;
use crate::query::session::runtime::{QueryEnvironment, runtime_within, shared_runtime};
use crate::query::session::table_session::TableSession;

/// Tables and exports that queries can join, each under a different name. Each table is read at the
/// snapshot that it was added with, so all queries of all sessions see the same rows.
#[derive(Debug, Default)]
pub struct Database {
    tables: Vec<NamedTable>,
    exports: Vec<(String, Arc<ExportTable>)>,
}

/// Refusal of a table of a database.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum DatabaseError {
    #[error("two tables are named '{name}'; give each a different name, as in NAME=PLACE", name = quote(name))]
    NameTaken { name: String },
    #[error(transparent)]
    Source(#[from] SourceError),
}

impl Database {
    /// Adds a table under a name.
    ///
    /// # Errors
    /// [`DatabaseError::NameTaken`] if another one has the name.
    pub fn add_table(&mut self, name: &str, table: Arc<SnapshotTable>) -> Result<(), DatabaseError> {
        self.check_name(name)?;
        self.tables.push(NamedTable { names: vec![name.to_owned()], table });
        Ok(())
    }

    /// Adds a table under several names, the last of which is its own.
    ///
    /// # Errors
    /// [`DatabaseError::NameTaken`] if another one has one of the names.
    pub fn add_table_as(&mut self, names: &[String], table: Arc<SnapshotTable>) -> Result<(), DatabaseError> {
        names.iter().try_for_each(|name| self.check_name(name))?;
        self.tables.push(NamedTable { names: names.to_vec(), table });
        Ok(())
    }

    /// Returns the names of the main table: the name of its place if that differs, `t`, and its own
    /// name.
    #[must_use]
    pub fn names_of_main_table(own: &str, place: Option<&str>) -> Vec<String> {
        let mut names = NamedTable::names_alone(own);
        if let Some(place) = place.filter(|place| names.iter().all(|name| name != place)) {
            names.insert(0, place.to_owned());
        }
        names
    }

    /// Adds an export under a name. Each query reads its files again.
    ///
    /// # Errors
    /// [`DatabaseError`] if another one has the name, or a file cannot be read.
    pub fn add_export(&mut self, name: &str, export: Arc<Export>) -> Result<(), DatabaseError> {
        self.check_name(name)?;
        self.exports.push((name.to_owned(), Arc::new(ExportTable::new(export)?)));
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), DatabaseError> {
        let mut taken = self.names();
        match taken.any(|taken| taken == name) {
            true => Err(DatabaseError::NameTaken { name: name.to_owned() }),
            false => Ok(()),
        }
    }

    /// Returns the names of its tables and exports.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let exports = self.exports.iter().map(|(name, _)| name.as_str());
        self.tables.iter().flat_map(|named| &named.names).map(String::as_str).chain(exports)
    }

    /// Returns a session with all tables and exports.
    ///
    /// # Errors
    /// [`QueryError`] if the directory to spill to cannot be used.
    pub fn session_with(&self, limits: &QueryLimits) -> Result<TableSession, QueryError> {
        let runtime = runtime_within(&shared_runtime()?, limits)?;
        let session = TableSession::on_all(self.tables.clone(), runtime)?.with_timeout(limits.timeout);
        session.with_exports(&self.exports)
    }

    /// Returns a session with all tables and exports beside a main table, which has its own name
    /// and that of the only table of a session.
    pub(crate) fn session_beside(
        &self,
        main: Arc<SnapshotTable>,
        runtime: &Arc<RuntimeEnv>,
        limits: &QueryLimits,
    ) -> Result<TableSession, QueryError> {
        let names = NamedTable::names_alone(main.snapshot().spec().name());
        let mut tables = vec![NamedTable { names, table: main }];
        tables.extend(self.tables.iter().cloned());
        let session = TableSession::on_all(tables, runtime_within(runtime, limits)?)?;
        session.with_timeout(limits.timeout).with_exports(&self.exports)
    }

    /// Returns a session with all tables and exports that shares memory, spill directory and cached
    /// footers with other sessions. Its errors give their position in the SQL.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn session_within(&self, environment: &QueryEnvironment) -> Result<TableSession, QueryError> {
        let session = TableSession::on_all(self.tables.clone(), environment.runtime())?;
        let session = session.with_exports(&self.exports)?;
        session.locate_errors();
        Ok(session)
    }
}
