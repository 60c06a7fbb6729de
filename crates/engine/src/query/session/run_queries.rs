//! The interface between queries and their executors: a session of this process, or other machines.

use async_trait::async_trait;

use crate::query::error::QueryError;
use crate::query::session::explanation::Explanation;
use crate::query::session::table_session::{QueryResult, TableSession};
use evenkeel_model::note::Note;
use evenkeel_sql::Params;

/// Runs queries on one snapshot of some tables.
#[async_trait]
pub trait RunQueries: Send + Sync {
    /// Runs one query.
    ///
    /// # Errors
    /// [`QueryError`] if the SQL is not a query, its parameters do not fit, or it fails or exceeds
    /// a limit; [`QueryError::Elsewhere`] if the machines that run it fail.
    async fn query(&self, sql: &str, params: &Params) -> Result<QueryResult, QueryError>;

    /// Returns the plan of a query, and the data that it would read. Nothing is run.
    ///
    /// # Errors
    /// As for [`RunQueries::query`].
    async fn explain(&self, sql: &str, params: &Params) -> Result<Explanation, QueryError>;

    /// Returns notes on the exports that queries have read so far.
    fn notes(&self) -> Vec<Note>;
}

#[async_trait]
impl RunQueries for TableSession {
    async fn query(&self, sql: &str, params: &Params) -> Result<QueryResult, QueryError> {
        Self::query(self, sql, params).await
    }

    async fn explain(&self, sql: &str, params: &Params) -> Result<Explanation, QueryError> {
        Self::explain(self, sql, params).await
    }

    fn notes(&self) -> Vec<Note> {
        Self::notes(self)
    }
}
