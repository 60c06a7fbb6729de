//! One connection: messages of the protocol, and what is known between them.
//!
//! ```text
//! Query ── pieces ── Command ─┬─ rows ── text
//! Parse ── Prepared           ├─ settings, transactions, cursors
//!   Bind ── Portal            └─ COPY
//!     Execute ── rows, up to a number
//! ```
//! After an error, messages are skipped up to the next Sync, or the text that holds the statement is
//! given up. A statement that waits for rows listens to the client: one that has gone needs none.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, SchemaRef};
use bytes::BytesMut;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use evenkeel_engine::query::{Params, QueryDescription, QueryError};
use futures::{SinkExt, StreamExt, TryStreamExt};
use pgwire::api::Type;
use pgwire::error::{ErrorInfo, PgWireError};
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};
use pgwire::messages::data::{DataRow, NoData, ParameterDescription, RowDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{Authentication, BackendKeyData, ParameterStatus};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cancel::{Registered, Running};
use crate::catalog::CatalogSession;
use crate::column_names::with_names;
use crate::copy::{CopyOptions, CopyWriter};
use crate::failure::{Failure, SqlState};
use crate::metrics::{Outcome, add};
use crate::parameters::{self, Parameter};
use crate::rows::{Batch, Rows, Tally};
use crate::server::{Open, Shared, Stage};
use crate::settings::{REPORTED, Settings, VERSION_SETTING};
use crate::socket::Socket;
use crate::startup::Started;
use crate::statement::{Command, Piece, Setting, split};
use crate::tables::Opened;
use crate::threads::{QueryThreads, TURN};
use crate::types::{describe, from_arrow};
use crate::values::Format;

/// Most prepared statements of a connection.
const MOST_STATEMENTS: usize = 1000;
/// Most portals and cursors of a connection: each holds a query that has begun.
const MOST_PORTALS: usize = 64;
/// Messages that are kept while a query runs. More wait in the socket.
const MOST_PENDING: usize = 8;

/// Why a message was not answered.
enum Problem {
    Failed(Failure),
    /// The client is gone, or takes nothing.
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

/// A statement that was parsed.
struct Prepared {
    piece: Option<Piece>,
    command: Option<Command>,
    declared: Vec<Option<Type>>,
    /// What is known about the statement, once it was needed.
    description: Option<Arc<QueryDescription>>,
}

/// A statement with the values of its parameters.
struct Portal {
    statement: Arc<PortalStatement>,
    /// Values by position; `None` for those that the query does not need.
    parameters: Vec<Option<Parameter>>,
    formats: Vec<Format>,
    state: PortalState,
}

struct PortalStatement {
    piece: Piece,
    command: Command,
}

enum PortalState {
    Ready,
    Running(Box<Rows>),
    Done,
}

/// A cursor, which DECLARE opened.
struct Cursor {
    rows: Option<Box<Rows>>,
    schema: SchemaRef,
}

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
    /// Tables of a transaction that sees one version of each.
    repeatable: Option<Option<Arc<Opened>>>,
    /// Settings to which ROLLBACK returns, and those that COMMIT leaves.
    before: Option<Settings>,
    after_commit: Option<Settings>,
    is_skipping: bool,
    reported_bytes: u64,
}

impl Connection {
    /// Serves a connection until the client leaves it.
    pub(crate) async fn serve(shared: Arc<Shared>, started: Started) {
        let Started { socket, user, settings, number, key, open } = started;
        let registered = shared.connections.add(number, key.clone());
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
            if self.transaction == TransactionStatus::Transaction {
                self.transaction = TransactionStatus::Error;
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

    /// Returns the next message; `None` if the client has left, or has to.
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
            // Data of a COPY that was refused, which a client may have sent ahead.
            PgWireFrontendMessage::CopyData(_)
            | PgWireFrontendMessage::CopyDone(_)
            | PgWireFrontendMessage::CopyFail(_) => Ok(()),
            _ => Err(Failure::fatal(SqlState::PROTOCOL_VIOLATION, "unexpected message").into()),
        }
    }

    // --- The simple protocol

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

    // --- The extended protocol

    async fn parse(&mut self, parse: Parse) -> Answered {
        let name = parse.name.unwrap_or_default();
        if self.statements.len() >= MOST_STATEMENTS && !self.statements.contains_key(&name) {
            let message =
                format!("a connection has at most {MOST_STATEMENTS} prepared statements; close some");
            return Err(Failure::new(SqlState::TOO_LARGE, message).into());
        }
        if !name.is_empty() && self.statements.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Failure::new(SqlState("42P05"), message).into());
        }
        let mut pieces = split(&parse.query)?;
        if pieces.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(Failure::new(SqlState::SYNTAX, message).into());
        }
        let piece = pieces.pop();
        let command = match &piece {
            Some(piece) => Some(
                piece
                    .command(&self.shared.known)
                    .map_err(|failure| failure.located(&piece.sql, piece.before))?,
            ),
            None => None,
        };
        let declared = parse.type_oids.iter().map(|oid| Type::from_oid(*oid)).collect();
        self.statements.insert(name, Prepared { piece, command, declared, description: None });
        Ok(self.socket.feed(PgWireBackendMessage::ParseComplete(ParseComplete::new())).await?)
    }

    async fn bind(&mut self, bind: Bind) -> Answered {
        let name = bind.statement_name.unwrap_or_default();
        let portal = bind.portal_name.unwrap_or_default();
        if self.portals.len() >= MOST_PORTALS && !self.portals.contains_key(&portal) {
            return Err(too_many_portals().into());
        }
        let formats: Vec<Format> =
            bind.result_column_format_codes.iter().map(|code| format_of(*code)).collect::<Result<_, _>>()?;
        let prepared = self.statements.get(&name).ok_or_else(|| no_statement(&name))?;
        let (Some(piece), Some(command)) = (&prepared.piece, &prepared.command) else {
            // An empty statement.
            self.portals.remove(&portal);
            return Ok(self.socket.feed(PgWireBackendMessage::BindComplete(BindComplete::new())).await?);
        };
        let statement = Arc::new(PortalStatement { piece: piece.clone(), command: command.clone() });
        self.check_transaction(&statement.command)?;
        let parameters = match bind.parameters.is_empty() {
            true if statement.piece.parameters() == 0 => Vec::new(),
            _ => {
                let description = self.description(&name).await?;
                let declared = self.statements.get(&name).map(|prepared| prepared.declared.clone());
                read_parameters(
                    statement.piece.parameters(),
                    &bind.parameters,
                    &bind.parameter_format_codes,
                    &declared.unwrap_or_default(),
                    description.as_deref(),
                )?
            }
        };
        self.portals.insert(portal, Portal { statement, parameters, formats, state: PortalState::Ready });
        Ok(self.socket.feed(PgWireBackendMessage::BindComplete(BindComplete::new())).await?)
    }

    /// Returns what is known about a prepared statement; `None` if it has neither parameters nor
    /// rows.
    async fn description(&mut self, name: &str) -> Answered<Option<Arc<QueryDescription>>> {
        let prepared = self.statements.get(name).ok_or_else(|| no_statement(name))?;
        if let Some(known) = &prepared.description {
            return Ok(Some(Arc::clone(known)));
        }
        let (Some(piece), Some(command)) = (prepared.piece.clone(), prepared.command.clone()) else {
            return Ok(None);
        };
        let declared: HashMap<String, DataType> = (1..)
            .zip(&prepared.declared)
            .filter_map(|(number, declared): (usize, _)| {
                Some((number.to_string(), parameters::declared(declared.as_ref()?)?))
            })
            .collect();
        let query = match command {
            Command::Copy(query, _) | Command::Declare(_, query) => *query,
            command => command,
        };
        let deadline = self.deadline();
        let described = match query.clone() {
            Command::Query(sql) => {
                let opened = self.opened().await?;
                let session = opened.session.clone();
                let work = async move { session.describe(&sql, &declared).await };
                let (described, mut threads) = self.in_background(deadline, work).await?;
                threads.done();
                described.map_err(|error| located(error.into(), &piece))?
            }
            Command::Catalog(sql) => {
                let session = self.catalog().await?;
                let work = async move { session.describe(&sql, &declared).await };
                let (described, mut threads) = self.in_background(deadline, work).await?;
                threads.done();
                described.map_err(|error| located(error.into(), &piece))?
            }
            Command::Show(name) => {
                let schema = setting_batch(&name, "")?.schema();
                nothing_known(schema)
            }
            Command::Fetch(name, _) => {
                let cursor = self.cursors.get(&name).ok_or_else(|| no_cursor(&name))?;
                nothing_known(Arc::clone(&cursor.schema))
            }
            _ => return Ok(None),
        };
        let schema = named(&query, &described.schema);
        let described = Arc::new(QueryDescription { schema, ..described });
        if let Some(prepared) = self.statements.get_mut(name) {
            prepared.description = Some(Arc::clone(&described));
        }
        Ok(Some(described))
    }

    async fn describe(&mut self, message: Describe) -> Answered {
        let name = message.name.unwrap_or_default();
        if message.target_type == b'S' {
            let description = self.description(&name).await?;
            let prepared = self.statements.get(&name).ok_or_else(|| no_statement(&name))?;
            let count = prepared.piece.as_ref().map_or(0, Piece::parameters);
            let types = parameter_types(count, &prepared.declared, description.as_deref());
            let has_rows = prepared.command.as_ref().is_some_and(returns_rows);
            let types = PgWireBackendMessage::ParameterDescription(ParameterDescription::new(types));
            self.socket.feed(types).await?;
            return match description.filter(|_| has_rows) {
                Some(description) => self.describe_rows(&description.schema, &[]).await,
                None => Ok(self.socket.feed(PgWireBackendMessage::NoData(NoData::new())).await?),
            };
        }
        if let Some(cursor) = self.cursors.get(&name) {
            let schema = Arc::clone(&cursor.schema);
            return self.describe_rows(&schema, &[]).await;
        }
        if message.target_type != b'P' {
            return Err(Failure::new(SqlState::PROTOCOL_VIOLATION, "invalid kind of DESCRIBE").into());
        }
        let Some(portal) = self.portals.get(&name) else {
            if name.is_empty() {
                // An empty statement.
                return Ok(self.socket.feed(PgWireBackendMessage::NoData(NoData::new())).await?);
            }
            let message = format!("portal \"{name}\" does not exist");
            return Err(Failure::new(SqlState::NO_SUCH_CURSOR, message).into());
        };
        let (statement, formats) = (Arc::clone(&portal.statement), portal.formats.clone());
        if !returns_rows(&statement.command) {
            return Ok(self.socket.feed(PgWireBackendMessage::NoData(NoData::new())).await?);
        }
        if let Command::Fetch(cursor, _) = &statement.command {
            let cursor = self.cursors.get(cursor).ok_or_else(|| no_cursor(cursor))?;
            let schema = Arc::clone(&cursor.schema);
            return self.describe_rows(&schema, &formats).await;
        }
        self.start_portal(&name).await?;
        if let Some(Portal { state: PortalState::Running(rows), .. }) = self.portals.get(&name) {
            let schema = Arc::clone(&rows.schema);
            return self.describe_rows(&schema, &formats).await;
        }
        Ok(self.socket.feed(PgWireBackendMessage::NoData(NoData::new())).await?)
    }

    /// Begins the query of a portal if it has not begun.
    async fn start_portal(&mut self, name: &str) -> Answered {
        let Some(portal) = self.portals.get(name) else { return Ok(()) };
        if !matches!(portal.state, PortalState::Ready) {
            return Ok(());
        }
        let (statement, parameters) = (Arc::clone(&portal.statement), portal.parameters.clone());
        let started = self.start(&statement.command, &parameters).await;
        let rows = started.map_err(|problem| located(problem, &statement.piece))?;
        if let Some(portal) = self.portals.get_mut(name) {
            portal.state = PortalState::Running(Box::new(rows));
        }
        Ok(())
    }

    async fn execute(&mut self, execute: Execute) -> Answered {
        let name = execute.name.unwrap_or_default();
        let Some(portal) = self.portals.get(&name) else {
            if name.is_empty() {
                // An empty statement.
                let empty = PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new());
                return Ok(self.socket.feed(empty).await?);
            }
            let message = format!("portal \"{name}\" does not exist");
            return Err(Failure::new(SqlState::NO_SUCH_CURSOR, message).into());
        };
        let statement = Arc::clone(&portal.statement);
        let (parameters, formats) = (portal.parameters.clone(), portal.formats.clone());
        self.check_transaction(&statement.command)?;
        if !returns_rows(&statement.command) {
            let done = self.run(&statement.command, &parameters).await;
            return done.map_err(|problem| located(problem, &statement.piece));
        }
        if let Command::Fetch(cursor, count) = &statement.command {
            let (_, rows) = self.take_cursor(cursor)?;
            return self.fetch(cursor, rows, *count, &formats).await;
        }
        self.start_portal(&name).await?;
        let limit = usize::try_from(execute.max_rows).ok().filter(|rows| *rows > 0);
        let state =
            self.portals.get_mut(&name).map(|portal| std::mem::replace(&mut portal.state, PortalState::Done));
        let Some(PortalState::Running(mut rows)) = state else {
            return self.complete(&format!("{} 0", tag(&statement.command))).await;
        };
        let sent = self.send_rows(&mut rows, limit, &formats).await;
        let sent = sent.map_err(|problem| located(problem, &statement.piece))?;
        if sent.is_all {
            return self.complete(&format!("{} {}", tag(&statement.command), sent.count)).await;
        }
        if let Some(portal) = self.portals.get_mut(&name) {
            portal.state = PortalState::Running(rows);
        }
        Ok(self.socket.feed(PgWireBackendMessage::PortalSuspended(PortalSuspended::new())).await?)
    }

    async fn close(&mut self, close: Close) -> Answered {
        let name = close.name.unwrap_or_default();
        if close.target_type == b'S' {
            self.statements.remove(&name);
        } else {
            self.portals.remove(&name);
        }
        Ok(self.socket.feed(PgWireBackendMessage::CloseComplete(CloseComplete::new())).await?)
    }

    // --- Statements

    /// Refuses statements of a transaction that has failed.
    fn check_transaction(&self, command: &Command) -> Result<(), Failure> {
        let ends = matches!(command, Command::Commit | Command::Rollback | Command::Nothing("ROLLBACK"));
        if self.transaction == TransactionStatus::Error && !ends {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::new(SqlState::FAILED_TRANSACTION, message));
        }
        Ok(())
    }

    /// Runs a statement without rows.
    async fn run(&mut self, command: &Command, parameters: &[Option<Parameter>]) -> Answered {
        match command {
            Command::Set(setting) => {
                self.set(setting).await?;
                self.complete("SET").await
            }
            Command::Reset(name) => {
                self.set(&Setting { name: name.clone(), value: None, is_local: false }).await?;
                self.complete("RESET").await
            }
            Command::ResetAll => {
                self.settings.reset();
                self.after_commit = self.after_commit.as_ref().map(|_| self.settings.clone());
                self.complete("RESET").await
            }
            Command::Begin { isolation } => {
                if self.transaction == TransactionStatus::Idle {
                    self.transaction = TransactionStatus::Transaction;
                    let default = self.settings.get("default_transaction_isolation").unwrap_or_default();
                    self.repeatable = sees_one_version(isolation.unwrap_or(default)).then_some(None);
                    self.before = Some(self.settings.clone());
                    self.after_commit = Some(self.settings.clone());
                } else {
                    self.warn("25001", "there is already a transaction in progress").await?;
                }
                self.complete("BEGIN").await
            }
            Command::Commit | Command::Rollback => {
                if self.transaction == TransactionStatus::Idle {
                    self.warn(SqlState::NO_TRANSACTION.0, "there is no transaction in progress").await?;
                }
                let is_commit = *command == Command::Commit && self.transaction != TransactionStatus::Error;
                let (before, after) = (self.before.take(), self.after_commit.take());
                if let Some(settings) = if is_commit { after } else { before } {
                    self.settings = settings;
                    for (name, _) in REPORTED {
                        self.report_setting(name).await?;
                    }
                }
                self.transaction = TransactionStatus::Idle;
                self.repeatable = None;
                self.cursors.clear();
                self.portals.clear();
                self.complete(if is_commit { "COMMIT" } else { "ROLLBACK" }).await
            }
            Command::Nothing(tag) => {
                // ROLLBACK TO SAVEPOINT: nothing was changed since.
                if *tag == "ROLLBACK" && self.transaction == TransactionStatus::Error {
                    self.transaction = TransactionStatus::Transaction;
                }
                self.complete(tag).await
            }
            Command::Deallocate(None) => {
                self.statements.clear();
                self.complete("DEALLOCATE ALL").await
            }
            Command::Deallocate(Some(name)) => {
                self.statements.remove(name).ok_or_else(|| no_statement(name))?;
                self.complete("DEALLOCATE").await
            }
            Command::DiscardAll => {
                self.statements.clear();
                self.portals.clear();
                self.cursors.clear();
                self.settings.reset();
                self.complete("DISCARD ALL").await
            }
            Command::Declare(name, query) => {
                if self.cursors.contains_key(name) {
                    let message = format!("cursor \"{name}\" already exists");
                    return Err(Failure::new(SqlState::DUPLICATE_CURSOR, message).into());
                }
                if self.cursors.len() >= MOST_PORTALS {
                    return Err(too_many_portals().into());
                }
                let rows = self.start(query, parameters).await?;
                let cursor = Cursor { schema: Arc::clone(&rows.schema), rows: Some(Box::new(rows)) };
                self.cursors.insert(name.clone(), cursor);
                self.complete("DECLARE CURSOR").await
            }
            Command::Close(name) => {
                match name {
                    None => self.cursors.clear(),
                    Some(name) => drop(self.cursors.remove(name).ok_or_else(|| no_cursor(name))?),
                }
                self.complete("CLOSE CURSOR").await
            }
            Command::Copy(query, options) => self.copy(query, options, parameters).await,
            Command::Query(_) | Command::Catalog(_) | Command::Show(_) | Command::Fetch(..) => {
                Err(Failure::new(SqlState::INTERNAL, "a statement with rows was run without them").into())
            }
        }
    }

    async fn set(&mut self, setting: &Setting) -> Answered {
        let Setting { name, value, is_local } = setting;
        if *is_local && self.transaction == TransactionStatus::Idle {
            return Ok(self
                .warn(SqlState::NO_TRANSACTION.0, "SET LOCAL can only be used in transaction blocks")
                .await?);
        }
        let mut settings = self.settings.clone();
        let changed = settings.set(name, value.as_deref())?;
        // A version that does not exist is reported at once.
        if name == VERSION_SETTING {
            self.shared.tables.at(settings.pins()).await?;
        }
        self.settings = settings;
        if let Some(after) = self.after_commit.as_mut().filter(|_| !is_local) {
            after.set(name, value.as_deref())?;
        }
        let is_level = name == "transaction_isolation" && self.transaction == TransactionStatus::Transaction;
        if is_level {
            let level = self.settings.get(name).unwrap_or_default();
            self.repeatable = sees_one_version(level).then_some(None);
        } else if name == VERSION_SETTING && self.repeatable.is_some() {
            self.repeatable = Some(None);
        }
        if let Some(warning) = changed.warning {
            self.warn("01000", &warning).await?;
        }
        Ok(self.report_setting(name).await?)
    }

    async fn warn(&mut self, code: &str, message: &str) -> io::Result<()> {
        let notice = ErrorInfo::new("WARNING".to_owned(), code.to_owned(), message.to_owned());
        self.socket.feed(PgWireBackendMessage::NoticeResponse(notice.into())).await
    }

    async fn complete(&mut self, tag: &str) -> Answered {
        let complete = CommandComplete::new(tag.to_owned());
        Ok(self.socket.feed(PgWireBackendMessage::CommandComplete(complete)).await?)
    }

    /// Tables that a statement reads: as they are now, or as a setting or the transaction says.
    async fn opened(&mut self) -> Answered<Arc<Opened>> {
        if let Some(Some(opened)) = &self.repeatable {
            return Ok(Arc::clone(opened));
        }
        let opened = self.shared.tables.at(self.settings.pins()).await?;
        if let Some(repeatable) = &mut self.repeatable {
            *repeatable = Some(Arc::clone(&opened));
        }
        Ok(opened)
    }

    async fn catalog(&mut self) -> Answered<CatalogSession> {
        let opened = self.shared.tables.newest().await?;
        let settings = self.settings.all().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(self.shared.catalog.session(&opened, &self.user, self.number, settings).await?)
    }

    /// Time at which a statement that begins now has to be done.
    fn deadline(&self) -> Option<Instant> {
        let limits = [self.shared.options.query_timeout, self.settings.statement_timeout()];
        limits.into_iter().flatten().min().map(|limit| Instant::now() + limit)
    }

    /// Begins a statement with rows.
    async fn start(&mut self, command: &Command, given: &[Option<Parameter>]) -> Answered<Rows> {
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

    async fn begin(
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
                let (found, mut threads) = self.in_background(deadline, work).await?;
                threads.done();
                let (schema, batches) = found?;
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
            _ => Err(Failure::new(SqlState::INTERNAL, "a statement without rows was asked for them").into()),
        }
    }

    /// Runs work on the threads of queries, until it is done, cancelled or out of time.
    async fn in_background<T: Send + 'static>(
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

    /// Keeps a message that came while a query runs.
    fn keep(&mut self, message: Option<Result<PgWireFrontendMessage, PgWireError>>) -> Answered {
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

    fn out_of_time(&self) -> Failure {
        let own = self.settings.statement_timeout();
        let is_own =
            own.is_some_and(|own| self.shared.options.query_timeout.is_none_or(|limit| own <= limit));
        let limit = if is_own { "statement_timeout" } else { "--timeout of the server" };
        Failure::new(SqlState::CANCELED, format!("canceling statement due to statement timeout ({limit})"))
    }

    /// Returns the next batch of a query.
    async fn next_batch(&mut self, rows: &mut Rows) -> Answered<Option<RecordBatch>> {
        let turn = self.turn(rows.deadline).await?;
        let batch = in_turn(turn, rows.stream.next());
        let batch = self.waiting(rows.deadline, batch).await?;
        Ok(batch.transpose().map_err(QueryError::from)?)
    }

    /// Waits for a turn to compute.
    async fn turn(&mut self, deadline: Option<Instant>) -> Answered<Option<OwnedSemaphorePermit>> {
        let turn = Arc::clone(&self.shared.turns).acquire_owned();
        Ok(self.waiting(deadline, turn).await?.ok())
    }

    /// Waits for work of a query, until it is done, cancelled or out of time, or the client is gone.
    async fn waiting<T>(&mut self, deadline: Option<Instant>, work: impl Future<Output = T>) -> Answered<T> {
        let running = Arc::clone(&self.registered.running);
        let mut work = std::pin::pin!(work);
        loop {
            let listens = self.pending.len() < MOST_PENDING;
            tokio::select! {
                reason = running.cancelled() => return Err(reason.failure().into()),
                () = until(deadline) => return Err(self.out_of_time().into()),
                done = &mut work => return Ok(done),
                message = self.socket.next(), if listens => self.keep(message)?,
            }
        }
    }

    /// Sends rows, up to a number of them.
    async fn send_rows(
        &mut self,
        rows: &mut Rows,
        limit: Option<usize>,
        formats: &[Format],
    ) -> Answered<Sent> {
        // Each statement has the whole time: between two of them the client thinks.
        rows.deadline = self.deadline();
        let sent = self.send_some(rows, limit, formats).await;
        rows.tally.outcome = match &sent {
            Ok(sent) => {
                add(&self.shared.metrics.rows, sent.count as u64);
                if sent.is_all { Outcome::Done } else { Outcome::Canceled }
            }
            Err(problem) => outcome_of(problem),
        };
        sent
    }

    async fn send_some(
        &mut self,
        rows: &mut Rows,
        limit: Option<usize>,
        formats: &[Format],
    ) -> Answered<Sent> {
        let mut count = 0;
        let columns = i16::try_from(rows.schema.fields().len()).map_err(|_| {
            Failure::new(SqlState::TOO_LARGE, "a result has at most 32,767 columns in this protocol")
        })?;
        let mut bytes = BytesMut::new();
        if let Some(batch) = rows.batch.as_mut() {
            batch.write_as(formats)?;
        }
        loop {
            if limit.is_some_and(|limit| count >= limit) {
                return Ok(Sent { count, is_all: false });
            }
            let Some(batch) = rows.batch.as_mut().filter(|batch| batch.next < batch.rows) else {
                match self.next_batch(rows).await? {
                    Some(batch) => rows.batch = Some(Batch::new(&batch, formats)?),
                    None => {
                        rows.threads.as_mut().into_iter().for_each(QueryThreads::done);
                        return Ok(Sent { count, is_all: true });
                    }
                }
                continue;
            };
            let row = batch.next;
            batch.columns.iter().try_for_each(|column| column.write_with_length(row, &mut bytes))?;
            batch.next += 1;
            count += 1;
            let row = DataRow::new(bytes.split(), columns);
            self.socket.feed(PgWireBackendMessage::DataRow(row)).await?;
        }
    }

    async fn describe_rows(&mut self, schema: &SchemaRef, formats: &[Format]) -> Answered {
        let count = schema.fields().len();
        if formats.len() > 1 && formats.len() != count {
            let message =
                format!("bind message has {} result formats but query has {count} columns", formats.len());
            return Err(Failure::new(SqlState::PROTOCOL_VIOLATION, message).into());
        }
        let format = |at: usize| match formats {
            [] => Format::Text,
            [all] => *all,
            several => several.get(at).copied().unwrap_or(Format::Text),
        };
        let fields = schema.fields().iter().enumerate();
        let fields = fields.map(|(at, field)| describe(field, format(at).code())).collect();
        Ok(self.socket.feed(PgWireBackendMessage::RowDescription(RowDescription::new(fields))).await?)
    }

    // --- Cursors and COPY

    fn take_cursor(&mut self, name: &str) -> Result<(SchemaRef, Option<Box<Rows>>), Failure> {
        let cursor = self.cursors.get_mut(name).ok_or_else(|| no_cursor(name))?;
        Ok((Arc::clone(&cursor.schema), cursor.rows.take()))
    }

    /// Sends rows of a cursor that was taken, and puts it back.
    async fn fetch(
        &mut self,
        name: &str,
        rows: Option<Box<Rows>>,
        count: Option<usize>,
        formats: &[Format],
    ) -> Answered {
        let Some(mut rows) = rows else { return self.complete("FETCH 0").await };
        let sent = self.send_rows(&mut rows, count, formats).await?;
        if let Some(cursor) = self.cursors.get_mut(name).filter(|_| !sent.is_all) {
            cursor.rows = Some(rows);
        }
        self.complete(&format!("FETCH {}", sent.count)).await
    }

    async fn copy(
        &mut self,
        query: &Command,
        options: &CopyOptions,
        parameters: &[Option<Parameter>],
    ) -> Answered {
        let writer = CopyWriter::new(options)?;
        let mut rows = self.start(query, parameters).await?;
        let copied = self.copy_rows(&mut rows, &writer).await;
        rows.tally.outcome = copied.as_ref().map_or_else(outcome_of, |_| Outcome::Done);
        let count = copied?;
        add(&self.shared.metrics.rows, count);
        self.socket.feed(PgWireBackendMessage::CopyDone(CopyDone::new())).await?;
        self.complete(&format!("COPY {count}")).await
    }

    async fn copy_rows(&mut self, rows: &mut Rows, writer: &CopyWriter) -> Answered<u64> {
        let columns = i16::try_from(rows.schema.fields().len()).unwrap_or(i16::MAX);
        let code = writer.values().code();
        let formats = vec![code; rows.schema.fields().len()];
        let response = CopyOutResponse::new(i8::try_from(code).unwrap_or(0), columns, formats);
        self.socket.feed(PgWireBackendMessage::CopyOutResponse(response)).await?;
        let mut bytes = BytesMut::new();
        writer.begin(&rows.schema, &mut bytes);
        let mut count = 0;
        while let Some(batch) = self.next_batch(rows).await? {
            let batch = Batch::new(&batch, &[writer.values()])?;
            for row in 0..batch.rows {
                // Each row is a message: clients rely on that, if only by habit.
                writer.row(&batch.columns, row, &mut bytes)?;
                count += 1;
                self.send_copied(&mut bytes).await?;
            }
        }
        rows.threads.as_mut().into_iter().for_each(QueryThreads::done);
        writer.end(&mut bytes);
        self.send_copied(&mut bytes).await?;
        Ok(count)
    }

    async fn send_copied(&mut self, bytes: &mut BytesMut) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let data = CopyData::new(bytes.split().freeze());
        self.socket.feed(PgWireBackendMessage::CopyData(data)).await
    }
}

/// Rows that were sent.
struct Sent {
    count: usize,
    /// Whether there are no more.
    is_all: bool,
}

/// A task that ends when nobody waits for it any longer.
struct Aborting<T>(JoinHandle<T>);

impl<T> Drop for Aborting<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Marks the time in which a query can be cancelled.
struct Ending<'a>(&'a Running);

impl<'a> Ending<'a> {
    fn begin(running: &'a Running) -> Self {
        running.begin();
        Self(running)
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Does work that has its turn to compute, which passes on after some time.
async fn in_turn<T>(turn: Option<OwnedSemaphorePermit>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    match tokio::time::timeout(TURN, &mut work).await {
        Ok(done) => done,
        Err(_) => {
            drop(turn);
            work.await
        }
    }
}

/// Whether a transaction at a level of isolation sees one version of each table.
fn sees_one_version(level: &str) -> bool {
    level.eq_ignore_ascii_case("repeatable read") || level.eq_ignore_ascii_case("serializable")
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
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

fn outcome_of(problem: &Problem) -> Outcome {
    match problem {
        Problem::Failed(failure) if failure.code != SqlState::CANCELED => Outcome::Failed,
        _ => Outcome::Canceled,
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

fn format_of(code: i16) -> Result<Format, Failure> {
    match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        other => Err(Failure::new(SqlState::PROTOCOL_VIOLATION, format!("unsupported format code: {other}"))),
    }
}

fn no_statement(name: &str) -> Failure {
    Failure::new(SqlState::NO_SUCH_STATEMENT, format!("prepared statement \"{name}\" does not exist"))
}

fn no_cursor(name: &str) -> Failure {
    Failure::new(SqlState::NO_SUCH_CURSOR, format!("cursor \"{name}\" does not exist"))
}

fn too_many_portals() -> Failure {
    let message = format!("a connection has at most {MOST_PORTALS} open portals and cursors; close some");
    Failure::new(SqlState::LIMIT, message)
}

/// Describes a statement without parameters.
fn nothing_known(schema: SchemaRef) -> QueryDescription {
    QueryDescription { parameters: BTreeMap::new(), casts: BTreeMap::new(), schema }
}

/// Types of the parameters as clients see them: those that they gave, else those that the query
/// needs.
fn parameter_types(
    count: usize,
    declared: &[Option<Type>],
    description: Option<&QueryDescription>,
) -> Vec<u32> {
    let inferred = |number: usize| {
        let (known, name) = (description?, number.to_string());
        let inferred = known.parameters.get(&name)?.as_ref().or_else(|| known.casts.get(&name));
        Some(inferred.map_or(Type::TEXT, |data_type| from_arrow(data_type).base))
    };
    let of_number = |number: usize| {
        let given = declared.get(number - 1).cloned().flatten().filter(|given| *given != Type::UNKNOWN);
        given.or_else(|| inferred(number)).unwrap_or(Type::TEXT).oid()
    };
    (1..=declared.len().max(count)).map(of_number).collect()
}

/// Reads the values of `needed` parameters.
fn read_parameters(
    needed: usize,
    given: &[Option<bytes::Bytes>],
    formats: &[i16],
    declared: &[Option<Type>],
    description: Option<&QueryDescription>,
) -> Result<Vec<Option<Parameter>>, Failure> {
    if given.len() != needed {
        let message = format!(
            "bind message supplies {} parameters, but prepared statement requires {needed}",
            given.len()
        );
        return Err(Failure::new(SqlState::PROTOCOL_VIOLATION, message));
    }
    if formats.len() > 1 && formats.len() != given.len() {
        let message =
            format!("bind message has {} parameter formats but {} parameters", formats.len(), given.len());
        return Err(Failure::new(SqlState::PROTOCOL_VIOLATION, message));
    }
    let read = |(at, bytes): (usize, &Option<bytes::Bytes>)| -> Result<Option<Parameter>, Failure> {
        // A parameter that the query does not need after all, as in a part that is not used.
        let number = at + 1;
        let known = description.and_then(|known| known.parameters.get(&number.to_string()));
        let Some(inferred) = known else { return Ok(None) };
        let code = match formats {
            [] => 0,
            [all] => *all,
            several => several.get(at).copied().unwrap_or(0),
        };
        let is_binary = format_of(code)? == Format::Binary;
        let cast = description.and_then(|known| known.casts.get(&number.to_string()));
        let cast = cast.map(|data_type| from_arrow(data_type).base).filter(|_| is_binary);
        let declared =
            declared.get(at).and_then(Option::as_ref).filter(|declared| **declared != Type::UNKNOWN);
        let declared = declared.or(cast.as_ref().filter(|_| inferred.is_none()));
        parameters::read(number, bytes.as_deref(), is_binary, declared, inferred.as_ref()).map(Some)
    };
    given.iter().enumerate().map(read).collect()
}

/// Returns a setting as a row.
fn setting_batch(name: &str, value: &str) -> Result<RecordBatch, DataFusionError> {
    let shown = REPORTED.iter().find(|(known, _)| *known == name).map_or(name, |(_, spelling)| spelling);
    let value = Arc::new(StringArray::from(vec![value])) as ArrayRef;
    Ok(RecordBatch::try_from_iter([(shown, value)])?)
}

fn all_settings(settings: &Settings) -> Result<RecordBatch, DataFusionError> {
    let (names, values): (Vec<&str>, Vec<&str>) = settings.all().unzip();
    let nothing = vec![""; names.len()];
    Ok(RecordBatch::try_from_iter([
        ("name", Arc::new(StringArray::from(names)) as ArrayRef),
        ("setting", Arc::new(StringArray::from(values))),
        ("description", Arc::new(StringArray::from(nothing))),
    ])?)
}
