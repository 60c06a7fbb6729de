//! Runs queries while listening to the client.

use std::io;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use evenkeel_engine::query::{Params, QueryError};
use futures::{StreamExt, TryStreamExt};
use pgwire::error::PgWireError;
use pgwire::messages::PgWireFrontendMessage;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::catalog::{Caller, CatalogSession};
use crate::connection::{Answered, Connection, MAX_PENDING, Problem, is_end, named};
use crate::failure::{Failure, SqlState};
use crate::metrics::Outcome;
use crate::parameters::Parameter;
use crate::rows::{Rows, Tally};
use crate::settings::{REPORTED, Settings};
use crate::statement::Command;
use crate::tables::OpenTables;
use crate::threads::{QueryThreads, TURN};

impl Connection {
    /// Tables that a statement reads: the newest versions, or those of a setting or of the
    /// transaction.
    pub(super) async fn opened(&mut self) -> Answered<Arc<OpenTables>> {
        if let Some(Some(opened)) = &self.repeatable {
            return Ok(Arc::clone(opened));
        }
        let opened = self.shared.tables.at(self.settings.pins()).await?;
        if let Some(repeatable) = &mut self.repeatable {
            *repeatable = Some(Arc::clone(&opened));
        }
        Ok(opened)
    }

    pub(super) async fn catalog(&mut self) -> Answered<CatalogSession> {
        let opened = self.shared.tables.newest().await?;
        let settings = self.settings.all().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let caller = Caller {
            user: self.user.clone(),
            process: self.number,
            settings,
            connections: Arc::clone(&self.shared.connections),
        };
        Ok(self.shared.catalog.session(&opened, caller).await?)
    }

    /// Returns the deadline of a statement that starts now.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let limits = [self.shared.options.query_timeout, self.settings.statement_timeout()];
        limits.into_iter().flatten().min().map(|limit| Instant::now() + limit)
    }

    /// Begins a statement with rows.
    pub(super) async fn start(&mut self, command: &Command, given: &[Option<Parameter>]) -> Answered<Rows> {
        let mut tally = Tally::start(&self.shared.metrics);
        let deadline = self.deadline();
        let begun = self.begin(command, given, deadline, &mut tally).await;
        match begun {
            Ok((stream, threads)) => {
                let schema = named(command, &stream.schema());
                Ok(Rows { schema, stream, batch: None, threads, deadline, tally })
            }
            Err(problem) => {
                tally.outcome = outcome_of(&problem);
                Err(problem)
            }
        }
    }

    pub(super) async fn begin(
        &mut self,
        command: &Command,
        given: &[Option<Parameter>],
        deadline: Option<Instant>,
        tally: &mut Tally,
    ) -> Answered<(SendableRecordBatchStream, Option<QueryThreads>)> {
        match command {
            Command::Query(sql) => {
                let opened = self.opened().await?;
                let mut params = Params::default();
                for (number, parameter) in (1..).zip(given) {
                    let name = number.to_string();
                    params = match parameter {
                        Some(Parameter::Text(text)) => params.with(&name, text),
                        Some(Parameter::Value(value)) => params.with_value(&name, value.clone()),
                        None => params,
                    };
                }
                let (session, sql) = (opened.session.clone(), sql.clone());
                let work = async move { session.query(&sql, &params).await };
                let (result, threads) = self.in_background(deadline, work).await?;
                let result = result?;
                tally.follow(result.progress);
                Ok((result.batches, Some(threads)))
            }
            Command::Catalog(sql) => {
                let session = self.catalog().await?;
                let (sql, given) = (sql.clone(), given.to_vec());
                let work = async move {
                    let stream = session.query(&sql, &given).await?;
                    let schema = stream.schema();
                    let batches: Vec<RecordBatch> = stream.try_collect().await?;
                    Ok::<_, Failure>((schema, batches))
                };
                let (result, mut threads) = self.in_background(deadline, work).await?;
                threads.done();
                let (schema, batches) = result?;
                let batches = futures::stream::iter(batches.into_iter().map(Ok));
                Ok((Box::pin(RecordBatchStreamAdapter::new(schema, batches)), None))
            }
            Command::Show(name) => {
                let batch = match name.as_str() {
                    "all" => all_settings(&self.settings)?,
                    name => setting_batch(name, self.settings.get(name)?)?,
                };
                let schema = batch.schema();
                let batches = futures::stream::iter([Ok(batch)]);
                Ok((Box::pin(RecordBatchStreamAdapter::new(schema, batches)), None))
            }
            _ => Err(Failure::new(
                SqlState::INTERNAL,
                "rows were requested from a statement that returns none",
            )
            .into()),
        }
    }

    /// Runs work on the threads of queries until it is done, is cancelled or reaches its deadline.
    pub(super) async fn in_background<T: Send + 'static>(
        &mut self,
        deadline: Option<Instant>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Answered<(T, QueryThreads)> {
        let turn = self.turn(deadline).await?;
        let threads = self.shared.threads.take()?;
        let task = threads.spawn(work);
        let no_threads = || Failure::new(SqlState::INTERNAL, "there are no threads for queries");
        let mut task = Aborting(task.ok_or_else(no_threads)?);
        match self.waiting(deadline, in_turn(turn, &mut task.0)).await? {
            Ok(done) => Ok((done, threads)),
            Err(error) => {
                log::error!("a query ended without a result: {error}");
                Err(Failure::new(SqlState::INTERNAL, "the engine cannot run this query").into())
            }
        }
    }

    /// Keeps a message that arrives while a query runs.
    pub(super) fn keep(&mut self, message: Option<Result<PgWireFrontendMessage, PgWireError>>) -> Answered {
        match message {
            Some(Ok(message)) if !is_end(&message) => {
                self.pending.push_back(message);
                Ok(())
            }
            Some(Err(PgWireError::IoError(error))) => Err(error.into()),
            Some(Err(error)) => Err(Failure::from(error).into()),
            Some(Ok(_)) | None => Err(io::Error::from(io::ErrorKind::ConnectionAborted).into()),
        }
    }

    pub(super) fn out_of_time(&self) -> Failure {
        let own = self.settings.statement_timeout();
        let is_own =
            own.is_some_and(|own| self.shared.options.query_timeout.is_none_or(|limit| own <= limit));
        let limit = if is_own { "statement_timeout" } else { "--timeout of the server" };
        Failure::new(SqlState::CANCELED, format!("canceling statement due to statement timeout ({limit})"))
    }

    /// Returns the next batch of a query.
    pub(super) async fn next_batch(&mut self, rows: &mut Rows) -> Answered<Option<RecordBatch>> {
        let turn = self.turn(rows.deadline).await?;
        let batch = in_turn(turn, rows.stream.next());
        let batch = self.waiting(rows.deadline, batch).await?;
        Ok(batch.transpose().map_err(QueryError::from)?)
    }

    /// Waits for a turn to compute.
    pub(super) async fn turn(&mut self, deadline: Option<Instant>) -> Answered<Option<OwnedSemaphorePermit>> {
        let turn = Arc::clone(&self.shared.turns).acquire_owned();
        Ok(self.waiting(deadline, turn).await?.ok())
    }

    /// Waits for work of a query, until it is done, cancelled or out of time, or the client is
    /// gone.
    pub(super) async fn waiting<T>(
        &mut self,
        deadline: Option<Instant>,
        work: impl Future<Output = T>,
    ) -> Answered<T> {
        let running = Arc::clone(&self.registered.running);
        let mut work = std::pin::pin!(work);
        loop {
            let listens = self.pending.len() < MAX_PENDING;
            tokio::select! {
                reason = running.cancelled() => return Err(reason.failure().into()),
                () = until(deadline) => return Err(self.out_of_time().into()),
                done = &mut work => return Ok(done),
                message = self.socket.next(), if listens => self.keep(message)?,
            }
        }
    }
}

/// A task that is aborted when its handle is dropped.
pub(super) struct Aborting<T>(JoinHandle<T>);

impl<T> Drop for Aborting<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Does work that holds a permit to compute, and passes the permit on after some time.
pub(super) async fn in_turn<T>(turn: Option<OwnedSemaphorePermit>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    match tokio::time::timeout(TURN, &mut work).await {
        Ok(done) => done,
        Err(_) => {
            drop(turn);
            work.await
        }
    }
}

pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

pub(super) fn outcome_of(problem: &Problem) -> Outcome {
    match problem {
        Problem::Failed(failure) if failure.code != SqlState::CANCELED => Outcome::Failed,
        _ => Outcome::Canceled,
    }
}

/// Returns a setting as a row.
pub(super) fn setting_batch(name: &str, value: &str) -> Result<RecordBatch, DataFusionError> {
    let shown = REPORTED.iter().find(|(known, _)| *known == name).map_or(name, |(_, spelling)| spelling);
    let value = Arc::new(StringArray::from(vec![value])) as ArrayRef;
    Ok(RecordBatch::try_from_iter([(shown, value)])?)
}

pub(super) fn all_settings(settings: &Settings) -> Result<RecordBatch, DataFusionError> {
    let (names, values): (Vec<&str>, Vec<&str>) = settings.all().unzip();
    let nothing = vec![""; names.len()];
    Ok(RecordBatch::try_from_iter([
        ("name", Arc::new(StringArray::from(names)) as ArrayRef),
        ("setting", Arc::new(StringArray::from(values))),
        ("description", Arc::new(StringArray::from(nothing))),
    ])?)
}
