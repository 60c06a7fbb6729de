//! Results collected while the inputs of an ingest are read.

use std::path::PathBuf;

use crate::ingest::error::IngestError;
use crate::ingest::reading::{Ended, Message};
use crate::ingest::rejects::RejectsFile;
use crate::ingest::report::SourceReport;
use crate::ingest::writer::Ingest;
use crate::log::SourceEntry;
use evenkeel_input::source::{Conformed, Fingerprint};
use evenkeel_model::remark::Remark;

/// Results collected from the messages of the reading thread.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) sources: Vec<SourceReport>,
    pub(super) entries: Vec<SourceEntry>,
    pub(super) notes: Vec<Remark>,
    pub(super) rejects: Option<RejectsFile>,
    rows_before: u64,
    rows_of_input: u64,
    rejected_of_input: u64,
}

/// Returns the note on an input without content.
#[must_use]
pub fn empty_input(file: &str) -> Remark {
    Remark::new("input_empty", format!("{file} is empty"))
}

impl Collected {
    /// Collects the results of reading elsewhere.
    pub(super) fn new(sources: Vec<SourceReport>, entries: Vec<SourceEntry>, notes: Vec<Remark>) -> Self {
        Self { sources, entries, notes, ..Self::default() }
    }

    pub(super) async fn take(&mut self, message: Message, ingest: &mut Ingest) -> Result<(), IngestError> {
        match message {
            Message::Started { .. } => {
                self.rows_before = ingest.rows();
                self.rows_of_input = 0;
                self.rejected_of_input = 0;
            }
            Message::Skipped(source) => self.sources.push(source),
            Message::Empty(file) => self.notes.push(empty_input(&file)),
            Message::Rows(conformed) => self.take_rows(conformed, ingest).await?,
            Message::Ended(ended) => self.take_end(ended),
        }
        Ok(())
    }

    async fn take_rows(&mut self, conformed: Conformed, ingest: &mut Ingest) -> Result<(), IngestError> {
        self.rejected_of_input += conformed.rejects.len() as u64;
        for reject in conformed.rejects {
            match self.rejects.as_mut() {
                Some(rejects) => rejects.add(&reject)?,
                None => return Err(IngestError::Row { reject: Box::new(reject) }),
            }
        }
        ingest.push_marked(conformed.batch, conformed.deletes).await?;
        self.rows_of_input = ingest.rows() - self.rows_before;
        Ok(())
    }

    fn take_end(&mut self, ended: Ended) {
        let Ended { name, fingerprint: Fingerprint { bytes, xxh3 }, notes } = ended;
        let (rows, rejected) = (self.rows_of_input, self.rejected_of_input);
        self.sources.push(SourceReport { name: name.clone(), bytes, rows, rejected, skipped_since: None });
        self.entries.push(SourceEntry { name, bytes, xxh3, rows, rejected });
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Syncs rejected rows to disk, before the commit that leaves them out. Fails if all rows were
    /// rejected.
    pub(super) fn sync_rejects(&mut self, rows: u64) -> Result<(), IngestError> {
        if let (0, Some((count, first))) = (rows, self.rejects.as_ref().and_then(RejectsFile::first)) {
            return Err(IngestError::AllRejected { count, first: Box::new(first.clone()) });
        }
        self.rejects.as_mut().map_or(Ok(()), RejectsFile::sync)
    }

    pub(super) fn finish_rejects(&mut self) -> (u64, Option<PathBuf>) {
        self.rejects.take().map_or((0, None), RejectsFile::finish)
    }

    pub(super) fn remove_rejects(&mut self) {
        if let Some(rejects) = self.rejects.take() {
            rejects.remove();
        }
    }
}
