//! Statements without rows: settings, transactions, cursors.

use std::io;
use std::sync::Arc;

use futures::SinkExt;
use pgwire::error::ErrorInfo;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{CommandComplete, TransactionStatus};

use crate::connection::portals::{Cursor, MAX_PORTALS, no_cursor, no_statement, too_many_portals};
use crate::connection::{Answered, Connection};
use crate::failure::{Failure, SqlState};
use crate::parameters::Parameter;
use crate::settings::{REPORTED, VERSION_SETTING};
use crate::statement::{Command, Setting};

impl Connection {
    /// Refuses statements in a failed transaction.
    pub(super) fn check_transaction(&self, command: &Command) -> Result<(), Failure> {
        let ends = matches!(command, Command::Commit | Command::Rollback | Command::Nothing("ROLLBACK"));
        if self.transaction == TransactionStatus::Error && !ends {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::new(SqlState::FAILED_TRANSACTION, message));
        }
        Ok(())
    }

    /// Runs a statement without rows.
    pub(super) async fn run(&mut self, command: &Command, parameters: &[Option<Parameter>]) -> Answered {
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
            Command::Begin { isolation } => self.begin_transaction(*isolation).await,
            Command::Commit => self.end_transaction(self.transaction != TransactionStatus::Error).await,
            Command::Rollback => self.end_transaction(false).await,
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
            Command::DiscardAll if self.transaction != TransactionStatus::Idle => {
                let message = "DISCARD ALL cannot run inside a transaction block";
                Err(Failure::new(SqlState::ACTIVE_TRANSACTION, message).into())
            }
            Command::DiscardAll => {
                self.statements.clear();
                self.portals.clear();
                self.cursors.clear();
                self.settings.reset();
                self.complete("DISCARD ALL").await
            }
            Command::Declare(name, query) => self.declare_cursor(name, query, parameters).await,
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

    /// Begins a transaction, at a level of isolation if it is given.
    async fn begin_transaction(&mut self, isolation: Option<&str>) -> Answered {
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

    /// Ends a transaction, with its settings or with the previous ones.
    async fn end_transaction(&mut self, is_commit: bool) -> Answered {
        if self.transaction == TransactionStatus::Idle {
            self.warn(SqlState::NO_TRANSACTION.0, "there is no transaction in progress").await?;
        }
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

    /// Declares a cursor, and starts its query.
    async fn declare_cursor(
        &mut self,
        name: &str,
        query: &Command,
        parameters: &[Option<Parameter>],
    ) -> Answered {
        if self.cursors.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(Failure::new(SqlState::DUPLICATE_CURSOR, message).into());
        }
        if self.cursors.len() >= MAX_PORTALS {
            return Err(too_many_portals().into());
        }
        let rows = self.start(query, parameters).await?;
        let cursor = Cursor { schema: Arc::clone(&rows.schema), rows: Some(Box::new(rows)) };
        self.cursors.insert(name.to_owned(), cursor);
        self.complete("DECLARE CURSOR").await
    }

    /// Changes a setting, and reports its new value.
    pub(super) async fn set(&mut self, setting: &Setting) -> Answered {
        let Setting { name, value, is_local } = setting;
        if *is_local && self.transaction == TransactionStatus::Idle {
            return Ok(self
                .warn(SqlState::NO_TRANSACTION.0, "SET LOCAL can only be used in transaction blocks")
                .await?);
        }
        let mut settings = self.settings.clone();
        let changed = settings.set(name, value.as_deref())?;
        // Reports a version that does not exist at once.
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

    pub(super) async fn warn(&mut self, code: &str, message: &str) -> io::Result<()> {
        let notice = ErrorInfo::new("WARNING".to_owned(), code.to_owned(), message.to_owned());
        self.socket.feed(PgWireBackendMessage::NoticeResponse(notice.into())).await
    }

    pub(super) async fn complete(&mut self, tag: &str) -> Answered {
        let complete = CommandComplete::new(tag.to_owned());
        Ok(self.socket.feed(PgWireBackendMessage::CommandComplete(complete)).await?)
    }
}

/// Whether transactions at this isolation level read from one snapshot.
pub(super) fn sees_one_version(level: &str) -> bool {
    level.eq_ignore_ascii_case("repeatable read") || level.eq_ignore_ascii_case("serializable")
}
