//! The extended protocol: prepared statements and portals.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use evenkeel_engine::query::QueryDescription;
use futures::SinkExt;
use pgwire::api::Type;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::EmptyQueryResponse;

use crate::connection::portals::{
    MAX_PORTALS, MAX_STATEMENTS, Portal, PortalState, PortalStatement, Prepared, format_of, no_cursor,
    no_statement, too_many_portals,
};
use crate::connection::work::setting_batch;
use crate::connection::{Answered, Connection, located, named, returns_rows, tag};
use crate::failure::{Failure, SqlState};
use crate::parameters::{self, Parameter};
use crate::statement::{Command, Piece, split};
use crate::types::from_arrow;
use crate::values::{Format, format_at};

impl Connection {
    pub(super) async fn parse(&mut self, parse: Parse) -> Answered {
        let name = parse.name.unwrap_or_default();
        if self.statements.len() >= MAX_STATEMENTS && !self.statements.contains_key(&name) {
            let message =
                format!("a connection has at most {MAX_STATEMENTS} prepared statements; close some");
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

    pub(super) async fn bind(&mut self, bind: Bind) -> Answered {
        let name = bind.statement_name.unwrap_or_default();
        let portal = bind.portal_name.unwrap_or_default();
        if self.portals.len() >= MAX_PORTALS && !self.portals.contains_key(&portal) {
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

    /// Returns the description of a prepared statement; `None` if it has neither parameters nor
    /// rows.
    pub(super) async fn description(&mut self, name: &str) -> Answered<Option<Arc<QueryDescription>>> {
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

    pub(super) async fn describe(&mut self, message: Describe) -> Answered {
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

    /// Starts the query of a portal if it has not started.
    pub(super) async fn start_portal(&mut self, name: &str) -> Answered {
        let Some(portal) = self.portals.get(name) else { return Ok(()) };
        if !matches!(portal.state, PortalState::Ready) {
            return Ok(());
        }
        let (statement, parameters) = (Arc::clone(&portal.statement), portal.parameters.clone());
        self.registered.begin(&statement.piece.sql);
        let started = self.start(&statement.command, &parameters).await;
        let rows = started.map_err(|problem| located(problem, &statement.piece))?;
        if let Some(portal) = self.portals.get_mut(name) {
            portal.state = PortalState::Running(Box::new(rows));
        }
        Ok(())
    }

    pub(super) async fn execute(&mut self, execute: Execute) -> Answered {
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
        self.registered.begin(&statement.piece.sql);
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

    pub(super) async fn close(&mut self, close: Close) -> Answered {
        let name = close.name.unwrap_or_default();
        if close.target_type == b'S' {
            self.statements.remove(&name);
        } else {
            self.portals.remove(&name);
        }
        Ok(self.socket.feed(PgWireBackendMessage::CloseComplete(CloseComplete::new())).await?)
    }
}

/// Types of the parameters as clients see them: the types that they gave, else the types that the
/// query needs.
pub(super) fn parameter_types(
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
pub(super) fn read_parameters(
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
        // The query does not need the parameter: it may be in an unused part.
        let number = at + 1;
        let known = description.and_then(|known| known.parameters.get(&number.to_string()));
        let Some(inferred) = known else { return Ok(None) };
        let is_binary = format_of(format_at(formats, at))? == Format::Binary;
        let cast = description.and_then(|known| known.casts.get(&number.to_string()));
        let cast = cast.map(|data_type| from_arrow(data_type).base).filter(|_| is_binary);
        let declared =
            declared.get(at).and_then(Option::as_ref).filter(|declared| **declared != Type::UNKNOWN);
        let declared = declared.or(cast.as_ref().filter(|_| inferred.is_none()));
        parameters::read(number, bytes.as_deref(), is_binary, declared, inferred.as_ref()).map(Some)
    };
    given.iter().enumerate().map(read).collect()
}

/// Describes a statement without parameters.
pub(super) fn nothing_known(schema: SchemaRef) -> QueryDescription {
    QueryDescription { parameters: BTreeMap::new(), casts: BTreeMap::new(), schema }
}

#[cfg(test)]
#[path = "extended_tests.rs"]
mod tests;
