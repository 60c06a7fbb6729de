//! Sends rows to the client.

use std::io;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::BytesMut;
use futures::SinkExt;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};
use pgwire::messages::data::{DataRow, RowDescription};

use crate::connection::portals::no_cursor;
use crate::connection::work::outcome_of;
use crate::connection::{Answered, Connection};
use crate::copy::{CopyOptions, CopyWriter};
use crate::failure::{Failure, SqlState};
use crate::metrics::{Outcome, add};
use crate::parameters::Parameter;
use crate::rows::{Batch, Rows};
use crate::statement::Command;
use crate::threads::QueryThreads;
use crate::types::describe;
use crate::values::{Format, format_at};

impl Connection {
    /// Sends rows, up to a number of them.
    pub(super) async fn send_rows(
        &mut self,
        rows: &mut Rows,
        limit: Option<usize>,
        formats: &[Format],
    ) -> Answered<SentRows> {
        // Each statement has the full time limit; the time between statements does not count.
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

    pub(super) async fn send_some(
        &mut self,
        rows: &mut Rows,
        limit: Option<usize>,
        formats: &[Format],
    ) -> Answered<SentRows> {
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
                return Ok(SentRows { count, is_all: false });
            }
            let Some(batch) = rows.batch.as_mut().filter(|batch| batch.next < batch.rows) else {
                match self.next_batch(rows).await? {
                    Some(batch) => rows.batch = Some(Batch::new(&batch, formats)?),
                    None => {
                        rows.threads.as_mut().into_iter().for_each(QueryThreads::done);
                        return Ok(SentRows { count, is_all: true });
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

    pub(super) async fn describe_rows(&mut self, schema: &SchemaRef, formats: &[Format]) -> Answered {
        let count = schema.fields().len();
        if formats.len() > 1 && formats.len() != count {
            let message =
                format!("bind message has {} result formats but query has {count} columns", formats.len());
            return Err(Failure::new(SqlState::PROTOCOL_VIOLATION, message).into());
        }
        let fields = schema.fields().iter().enumerate();
        let fields = fields.map(|(at, field)| describe(field, format_at(formats, at).code())).collect();
        Ok(self.socket.feed(PgWireBackendMessage::RowDescription(RowDescription::new(fields))).await?)
    }

    pub(super) fn take_cursor(&mut self, name: &str) -> Result<(SchemaRef, Option<Box<Rows>>), Failure> {
        let cursor = self.cursors.get_mut(name).ok_or_else(|| no_cursor(name))?;
        Ok((Arc::clone(&cursor.schema), cursor.rows.take()))
    }

    /// Sends rows of a cursor that was taken out, and puts it back.
    pub(super) async fn fetch(
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

    pub(super) async fn copy(
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

    pub(super) async fn copy_rows(&mut self, rows: &mut Rows, writer: &CopyWriter) -> Answered<u64> {
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
                // Each row is one message, which some clients rely on.
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

    pub(super) async fn send_copied(&mut self, bytes: &mut BytesMut) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let data = CopyData::new(bytes.split().freeze());
        self.socket.feed(PgWireBackendMessage::CopyData(data)).await
    }
}

/// Rows that were sent.
pub(super) struct SentRows {
    pub(super) count: usize,
    /// Whether there are no more.
    pub(super) is_all: bool,
}
