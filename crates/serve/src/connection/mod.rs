//! One connection: messages of the protocol, and the state between them.
//!
//! ```text
//! Query ── pieces ── Command ─┬─ rows ── text
//! Parse ── Prepared           ├─ settings, transactions, cursors
//!   Bind ── Portal            └─ COPY
//!     Execute ── rows, up to a number
//! ```
//! After an error, messages are skipped up to the next Sync, or the rest of the text that contains
//! the statement is dropped. A statement that waits for rows watches the connection: a client that
//! is gone needs no rows.

mod commands;
mod extended;
mod portals;
mod sending;
mod work;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use futures::{SinkExt, StreamExt};
use pgwire::error::PgWireError;
use pgwire::messages::response::{EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{Authentication, BackendKeyData, ParameterStatus};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};

use crate::activity::Activity;
use crate::cancel::RunningQuery;
use crate::column_names::with_names;
use crate::connection::portals::{Cursor, Portal, Prepared};
use crate::connections::Registered;
use crate::failure::{Failure, SqlState};
use crate::metrics::add;
use crate::settings::{REPORTED, Settings};
use crate::shared::{Open, Shared, Stage};
use crate::socket::Socket;
use crate::startup::Started;
use crate::statement::{Command, Piece, split};
use crate::tables::OpenTables;

/// Number of messages kept while a query runs; more wait in the socket.
const MAX_PENDING: usize = 8;

/// Setting with the name of the client's program.
const APPLICATION: &str = "application_name";

/// Reason why a message was not answered.
enum Problem {
    Failed(Failure),
    /// The client has left, or accepts no data.
    Gone(io::Error),
}

impl<F: Into<Failure>> From<F> for Problem {
    fn from(failure: F) -> Self {
        Self::Failed(failure.into())
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

type Answered<T = ()> = Result<T, Problem>;

/// A connection after its start-up.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    socket: Socket,
    pending: VecDeque<PgWireFrontendMessage>,
    user: String,
    number: i32,
    settings: Settings,
    registered: Registered,
    _open: Open,
    statements: HashMap<String, Prepared>,
    portals: HashMap<String, Portal>,
    cursors: BTreeMap<String, Cursor>,
    transaction: TransactionStatus,
    /// Snapshot of a repeatable-read transaction.
    repeatable: Option<Option<Arc<OpenTables>>>,
    /// Settings that ROLLBACK restores, and those that COMMIT keeps.
    before: Option<Settings>,
    after_commit: Option<Settings>,
    is_skipping: bool,
    reported_bytes: u64,
}

impl Connection {
    /// Serves a connection until the client leaves it.
    pub(crate) async fn serve(shared: Arc<Shared>, started: Started) {
        let Started { socket, user, client, settings, number, key, open } = started;
        let application = settings.get(APPLICATION).unwrap_or_default();
        let activity = Activity::new(&user, application, client);
        let registered = shared.connections.add(number, key.clone(), activity);
        let mut connection = Self {
            shared,
            socket,
            pending: VecDeque::new(),
            user,
            number,
            settings,
            registered,
            _open: open,
            statements: HashMap::new(),
            portals: HashMap::new(),
            cursors: BTreeMap::new(),
            transaction: TransactionStatus::Idle,
            repeatable: None,
            before: None,
            after_commit: None,
            is_skipping: false,
            reported_bytes: 0,
        };
        if connection.greet(BackendKeyData::new(number, key)).await.is_ok() {
            let ended = connection.answer_all().await;
            log::debug!("connection {number} ended: {ended:?}");
        }
        connection.report_bytes();
        let _ = connection.socket.close().await;
    }

    async fn greet(&mut self, key: BackendKeyData) -> io::Result<()> {
        self.socket.feed(PgWireBackendMessage::Authentication(Authentication::Ok)).await?;
        for (name, _) in REPORTED {
            self.report_setting(name).await?;
        }
        self.socket.feed(PgWireBackendMessage::BackendKeyData(key)).await?;
        self.ready().await
    }

    async fn report_setting(&mut self, name: &str) -> io::Result<()> {
        let Some((_, spelling)) = REPORTED.iter().find(|(reported, _)| *reported == name) else {
            return Ok(());
        };
        let value = self.settings.get(name).unwrap_or_default().to_owned();
        let status = ParameterStatus::new((*spelling).to_owned(), value);
        self.socket.feed(PgWireBackendMessage::ParameterStatus(status)).await
    }

    async fn ready(&mut self) -> io::Result<()> {
        let ready = ReadyForQuery::new(self.transaction);
        self.socket.send(PgWireBackendMessage::ReadyForQuery(ready)).await?;
        self.report_bytes();
        Ok(())
    }

    fn report_bytes(&mut self) {
        let sent = self.socket.codec().sent;
        add(&self.shared.metrics.bytes_sent, sent - self.reported_bytes);
        self.reported_bytes = sent;
    }

    async fn answer_all(&mut self) -> io::Result<()> {
        while let Some(message) = self.next_message().await? {
            let is_extended = is_extended(&message);
            if self.is_skipping && !matches!(message, PgWireFrontendMessage::Sync(_)) {
                continue;
            }
            let running = Arc::clone(&self.registered.running);
            let ending = Ending::begin(&running);
            let answered = self.answer(message).await;
            drop(ending);
            if matches!(answered, Err(Problem::Failed(_)))
                && self.transaction == TransactionStatus::Transaction
            {
                self.transaction = TransactionStatus::Error;
            }
            self.registered.end(self.transaction, self.settings.get(APPLICATION).unwrap_or_default());
            let failure = match answered {
                Ok(()) => continue,
                Err(Problem::Gone(error)) => return Err(error),
                Err(Problem::Failed(failure)) => failure,
            };
            let is_fatal = failure.is_fatal;
            self.send_failure(failure).await?;
            if is_fatal {
                return Ok(());
            }
            if is_extended {
                self.is_skipping = true;
            } else {
                self.ready().await?;
            }
        }
        Ok(())
    }

    async fn send_failure(&mut self, failure: Failure) -> io::Result<()> {
        log::debug!("connection {}: {failure}", self.number);
        self.socket.send(PgWireBackendMessage::ErrorResponse(failure.into_info().into())).await
    }

    /// Returns the next message; `None` if the client has left, or must be disconnected.
    async fn next_message(&mut self) -> io::Result<Option<PgWireFrontendMessage>> {
        if let Some(message) = self.pending.pop_front() {
            return Ok(Some(message).filter(|message| !is_end(message)));
        }
        let mut stage = self.shared.stage.clone();
        let failure = tokio::select! {
            message = self.socket.next() => match message {
                Some(Ok(message)) => return Ok(Some(message).filter(|message| !is_end(message))),
                Some(Err(PgWireError::IoError(error))) => return Err(error),
                Some(Err(error)) => Failure::from(error),
                None => return Ok(None),
            },
            () = tokio::time::sleep(self.shared.options.idle_timeout) => {
                Failure::fatal(SqlState::IDLE, "terminating connection: it was idle for too long")
            }
            _ = stage.wait_for(|stage| *stage != Stage::Serving) => {
                Failure::fatal(SqlState::SHUTDOWN, "terminating connection: the server is shutting down")
            }
        };
        self.send_failure(failure).await?;
        Ok(None)
    }

    async fn answer(&mut self, message: PgWireFrontendMessage) -> Answered {
        match message {
            PgWireFrontendMessage::Query(query) => self.query(&query.query).await,
            PgWireFrontendMessage::Parse(parse) => self.parse(parse).await,
            PgWireFrontendMessage::Bind(bind) => self.bind(bind).await,
            PgWireFrontendMessage::Describe(describe) => self.describe(describe).await,
            PgWireFrontendMessage::Execute(execute) => self.execute(execute).await,
            PgWireFrontendMessage::Close(close) => self.close(close).await,
            PgWireFrontendMessage::Flush(_) => Ok(self.socket.flush().await?),
            PgWireFrontendMessage::Sync(_) => {
                self.is_skipping = false;
                if self.transaction == TransactionStatus::Idle {
                    self.portals.clear();
                }
                Ok(self.ready().await?)
            }
            // A client may have sent the data of a refused COPY ahead.
            PgWireFrontendMessage::CopyData(_)
            | PgWireFrontendMessage::CopyDone(_)
            | PgWireFrontendMessage::CopyFail(_) => Ok(()),
            _ => Err(Failure::fatal(SqlState::PROTOCOL_VIOLATION, "unexpected message").into()),
        }
    }

    async fn query(&mut self, text: &str) -> Answered {
        self.portals.remove("");
        let pieces = split(text)?;
        if pieces.is_empty() {
            self.socket.feed(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
        }
        for piece in pieces {
            let done = self.run_simple(&piece).await;
            done.map_err(|problem| located(problem, &piece))?;
        }
        Ok(self.ready().await?)
    }

    async fn run_simple(&mut self, piece: &Piece) -> Answered {
        self.registered.begin(&piece.sql);
        let command = piece.command(&self.shared.known)?;
        self.check_transaction(&command)?;
        if !returns_rows(&command) {
            return self.run(&command, &[]).await;
        }
        if let Command::Fetch(name, count) = &command {
            let (schema, rows) = self.take_cursor(name)?;
            self.describe_rows(&schema, &[]).await?;
            return self.fetch(name, rows, *count, &[]).await;
        }
        let mut rows = self.start(&command, &[]).await?;
        let schema = Arc::clone(&rows.schema);
        self.describe_rows(&schema, &[]).await?;
        let sent = self.send_rows(&mut rows, None, &[]).await?;
        self.complete(&format!("{} {}", tag(&command), sent.count)).await
    }
}

/// Marks the time in which a query can be cancelled.
struct Ending<'a>(&'a RunningQuery);

impl<'a> Ending<'a> {
    fn begin(running: &'a RunningQuery) -> Self {
        running.begin();
        Self(running)
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn is_extended(message: &PgWireFrontendMessage) -> bool {
    matches!(
        message,
        PgWireFrontendMessage::Parse(_)
            | PgWireFrontendMessage::Bind(_)
            | PgWireFrontendMessage::Describe(_)
            | PgWireFrontendMessage::Execute(_)
            | PgWireFrontendMessage::Close(_)
            | PgWireFrontendMessage::Flush(_)
    )
}

fn is_end(message: &PgWireFrontendMessage) -> bool {
    matches!(message, PgWireFrontendMessage::Terminate(_))
}

fn located(problem: Problem, piece: &Piece) -> Problem {
    match problem {
        Problem::Failed(failure) => Problem::Failed(failure.located(&piece.sql, piece.before)),
        gone => gone,
    }
}

fn returns_rows(command: &Command) -> bool {
    matches!(command, Command::Query(_) | Command::Catalog(_) | Command::Show(_) | Command::Fetch(..))
}

/// Returns the columns of a statement with the names that clients expect.
fn named(command: &Command, schema: &SchemaRef) -> SchemaRef {
    match command {
        Command::Query(sql) | Command::Catalog(sql) => with_names(sql, schema),
        _ => Arc::clone(schema),
    }
}

/// Word that answers a statement with rows, before their number.
fn tag(command: &Command) -> &'static str {
    match command {
        Command::Show(_) => "SHOW",
        Command::Fetch(..) => "FETCH",
        _ => "SELECT",
    }
}

#[cfg(test)]
mod tests;
