//! Reads the inputs of an ingest one after another, on a separate thread.

use arrow::array::Array;
use arrow::compute::prep_null_mask_filter;
use tokio::sync::mpsc;

use crate::ingest::error::IngestError;
use crate::ingest::plan::IngestFiles;
use crate::ingest::report::SourceReport;
use crate::log::Snapshot;
use evenkeel_input::source::{Conform, Conformed, Deletes, Fingerprint, Input, InputPath, SourceError};
use evenkeel_model::bounded::quote;
use evenkeel_model::remark::Remark;
use evenkeel_model::table::TableSpec;

/// Message from the reading thread to the writer.
pub(super) enum Message {
    Started { name: String, number: usize },
    Skipped(SourceReport),
    Empty(String),
    Rows(Conformed),
    Ended(Ended),
}

/// An input that was read to its end.
pub(super) struct Ended {
    pub(super) name: String,
    pub(super) fingerprint: Fingerprint,
    pub(super) notes: Vec<Remark>,
}

/// Reads the inputs one after another, until the receiver is gone.
pub(super) fn read_all(
    known: &Snapshot,
    plan: &IngestFiles,
    sender: &mpsc::Sender<Message>,
) -> Result<(), IngestError> {
    let mut columns: Vec<String> = known.spec().columns().iter().map(|column| column.name.clone()).collect();
    if let Deletes::Where { column, .. } = &plan.input.deletes
        && !columns.contains(column)
    {
        columns.push(column.clone());
    }
    let reader = Reader { known, plan, columns, sender };
    for (number, path) in (1..).zip(&plan.inputs) {
        if !reader.read(number, path)? {
            break;
        }
    }
    Ok(())
}

struct Reader<'a> {
    /// The table with its known inputs.
    known: &'a Snapshot,
    plan: &'a IngestFiles,
    /// Names of the columns of the table.
    columns: Vec<String>,
    sender: &'a mpsc::Sender<Message>,
}

impl Reader<'_> {
    /// Sends a message; returns false if the receiver is gone.
    fn send(&self, message: Message) -> bool {
        self.sender.blocking_send(message).is_ok()
    }

    /// Reads one input; returns false if the receiver is gone.
    fn read(&self, number: usize, path: &InputPath) -> Result<bool, IngestError> {
        let mut input = match Input::open(path, &self.columns, &self.plan.input) {
            Ok(input) => input,
            // One empty file among several is no reason to refuse the others.
            Err(SourceError::Empty { file }) if self.plan.inputs.len() > 1 => {
                return Ok(self.send(Message::Empty(file)));
            }
            Err(error) => return Err(error.into()),
        };
        input.check_repeated_names(&self.columns)?;
        let is_known_before = input.fingerprint().is_some();
        if let Some(report) = skip_known(self.known, self.plan, &input) {
            return Ok(self.send(Message::Skipped(report)));
        }
        let conform = Conform::new(input.name(), self.known.spec(), &self.plan.input);
        if let Some(names) = input.column_names() {
            conform.check_names(&names)?;
        }
        if !self.send(Message::Started { name: input.name().to_owned(), number }) {
            return Ok(false);
        }
        let (mut rows, mut marks, mut deleting) = (0, 0, 0);
        let is_complete = input.convert_batches(
            |raw| conform.conform(raw),
            |conformed| {
                let mut conformed = conformed?;
                rows += conformed.batch.num_rows();
                if let Some(deletes) = &conformed.deletes {
                    marks += deletes.len() - deletes.null_count();
                    deleting += deletes.true_count();
                    // A row whose column is NULL deletes nothing.
                    if deletes.null_count() > 0 {
                        conformed.deletes = Some(prep_null_mask_filter(deletes));
                    }
                }
                Ok::<bool, IngestError>(self.send(Message::Rows(conformed)))
            },
        )?;
        if !is_complete {
            return Ok(false);
        }
        if let (Deletes::Where { column, .. }, 1.., 0) = (&self.plan.input.deletes, rows, marks) {
            let (file, column) = (input.name().to_owned(), column.clone());
            return Err(SourceError::NoDeleteValue { file, column }.into());
        }
        let fingerprint = self.fingerprint(&input, is_known_before)?;
        let mut notes = match self.plan.input.deletes {
            Deletes::All => Vec::new(),
            _ => notes_of(self.known.spec(), &input),
        };
        if let (Deletes::Where { column, value }, 0) = (&self.plan.input.deletes, deleting) {
            let text = format!("no row deletes: column '{}' is never '{}'", quote(column), quote(value));
            notes.push(Remark::on_column("no_deletes", column, text));
        }
        Ok(self.send(Message::Ended(Ended { name: input.name().to_owned(), fingerprint, notes })))
    }

    /// Returns the fingerprint of an input that was read to its end. The content of a pipe is known
    /// only now, so the table may turn out to have it.
    fn fingerprint(&self, input: &Input, is_known_before: bool) -> Result<Fingerprint, IngestError> {
        let Some(fingerprint) = input.fingerprint() else {
            return Err(IngestError::Worker { reason: format!("{} was not read to its end", input.name()) });
        };
        if !is_known_before
            && !self.plan.again
            && self.plan.input.deletes != Deletes::All
            && let Some(version) = self.known.source_version(&fingerprint.xxh3)
        {
            let Fingerprint { bytes, .. } = fingerprint;
            return Err(IngestError::AlreadyIngested { name: input.name().to_owned(), bytes, version });
        }
        Ok(fingerprint)
    }
}

/// Returns the report of an input whose content is already in the table. An input listed twice is
/// ingested twice, because rows in between may have been superseded.
fn skip_known(known: &Snapshot, plan: &IngestFiles, input: &Input) -> Option<SourceReport> {
    // The same keys may be deleted again, if their rows were inserted again.
    if plan.input.deletes == Deletes::All {
        return None;
    }
    let Fingerprint { bytes, xxh3 } = input.fingerprint()?;
    let (version, source) = known.source(&xxh3).filter(|_| !plan.again)?;
    Some(SourceReport {
        name: input.name().to_owned(),
        bytes,
        rows: 0,
        rejected: source.rejected,
        skipped_since: Some(version),
    })
}

/// Returns notes on the columns that the reader left out or filled in.
pub fn notes_of(spec: &TableSpec, input: &Input) -> Vec<Remark> {
    let columns = spec.columns().iter().map(|column| column.name.as_str());
    let filled = input.column_names().map(|names| {
        let is_filled = |name: &&str| !names.iter().any(|given| given == name);
        columns.filter(is_filled).collect::<Vec<_>>()
    });
    notes_on_columns(&input.unknown_columns(), &filled.unwrap_or_default())
}

/// Returns notes on columns that a table does not have, and on columns that its input does not have.
pub fn notes_on_columns(unknown: &[impl AsRef<str>], filled: &[impl AsRef<str>]) -> Vec<Remark> {
    fn note(code: &'static str, text: &str, names: &[impl AsRef<str>]) -> Option<Remark> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        (!names.is_empty()).then(|| Remark::new(code, format!("{text}: {}", names.join(", "))))
    }
    let left_out = note("columns_left_out", "columns that the table does not have were left out", unknown);
    let nulls = note("columns_filled", "columns that the input does not have are NULL", filled);
    left_out.into_iter().chain(nulls).collect()
}
