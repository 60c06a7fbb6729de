//! Ingest of files: each input read once, all of them visible with one commit.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::ingest::rejects::RejectsFile;
use crate::ingest::writer::{Committed, Ingest};
use crate::ingest::{IngestError, IngestMode, IngestOptions, IngestReport, SourceReport};
use crate::log::{Snapshot, SourceEntry, TableLog};
use crate::skew::SkewFigures;
use crate::source::{Conform, Conformed, Fingerprint, Input, InputOptions, InputPath};
use crate::table::TableSpec;

/// Batches that are read ahead.
const BATCHES_AHEAD: usize = 2;

/// What to ingest and how.
#[derive(Debug, Clone)]
pub struct IngestFiles {
    /// Inputs in order; of rows with one primary key the later one wins.
    pub inputs: Vec<InputPath>,
    /// How they are read.
    pub input: InputOptions,
    /// How they are written.
    pub ingest: IngestOptions,
    /// Where rows go that cannot be taken; without it, the first such row fails the ingest.
    pub rejects: Option<PathBuf>,
    /// Whether inputs are taken whose content was ingested before.
    pub again: bool,
}

/// How far an ingest is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestProgress {
    /// The input that is being read.
    pub input: String,
    /// Its number, from 1.
    pub number: usize,
    /// Number of inputs.
    pub inputs: usize,
    /// Rows taken so far, from all inputs.
    pub rows: u64,
}

/// From the reading thread to the writer.
enum Message {
    Started { name: String, number: usize },
    Skipped(SourceReport),
    Rows(Conformed),
    Ended(Ended),
}

/// An input that was read to its end.
struct Ended {
    name: String,
    fingerprint: Fingerprint,
    notes: Vec<String>,
}

/// Ingests files into the table at `base`, with one commit, or none where every input was ingested before. Gives the
/// report and the table after it. `progress` is called after each batch.
///
/// # Errors
/// [`IngestError`]; nothing is visible then.
pub async fn ingest_files(
    log: TableLog,
    base: Snapshot,
    plan: IngestFiles,
    progress: &(dyn Fn(&IngestProgress) + Sync),
) -> Result<(IngestReport, Snapshot), IngestError> {
    let started = Instant::now();
    let mut ingest = Ingest::new(log, base.clone(), &plan.ingest)?;
    let mut collected =
        Collected { rejects: plan.rejects.as_deref().map(RejectsFile::new), ..Collected::default() };
    let mode = plan.ingest.mode;
    let (sender, mut messages) = mpsc::channel(BATCHES_AHEAD);
    let known = base.clone();
    let inputs = plan.inputs.len();
    let reading = tokio::task::spawn_blocking(move || read_all(&known, &plan, &sender));
    let mut failure = None;
    let mut place = IngestProgress { input: String::new(), number: 0, inputs, rows: 0 };
    while let Some(message) = messages.recv().await {
        if let Message::Started { name, number } = &message {
            place = IngestProgress { input: name.clone(), number: *number, ..place };
        }
        if let Err(error) = collected.take(message, &mut ingest).await {
            failure = Some(error);
            break;
        }
        place.rows = ingest.rows();
        progress(&place);
    }
    // The reader stops at its next batch when nobody receives any more.
    drop(messages);
    let read = reading.await.map_err(|error| IngestError::Worker { reason: error.to_string() });
    let outcome = match failure {
        Some(error) => Err(error),
        None => read.and_then(|read| read),
    };
    let finished = match outcome {
        Ok(()) => collected.finish_rejects(),
        Err(error) => Err(error),
    };
    let (rejected, rejects_file) = match finished {
        Ok(rejects) => rejects,
        // Standard input alone, whose content turned out to be known: nothing to do, as for a file.
        Err(IngestError::AlreadyIngested { name, bytes, version }) if inputs == 1 => {
            ingest.abandon().await;
            collected.sources.push(SourceReport { name, bytes, rows: 0, skipped_since: Some(version) });
            collected.entries.clear();
            return Ok((no_commit(&base, mode, collected.sources, started), base));
        }
        Err(error) => {
            ingest.abandon().await;
            return Err(error);
        }
    };
    let committed = if collected.entries.is_empty() {
        None
    } else {
        Some(ingest.finish(std::mem::take(&mut collected.entries)).await?)
    };
    let partitions = base.spec().partitions().len();
    let seconds = started.elapsed().as_secs_f64();
    let snapshot = committed.as_ref().map_or(base, |committed| committed.snapshot.clone());
    let report = report(committed, partitions, seconds);
    let report = IngestReport {
        mode,
        bytes_read: collected.sources.iter().filter(|s| s.skipped_since.is_none()).map(|s| s.bytes).sum(),
        sources: collected.sources,
        rejected,
        rejects_file,
        notes: collected.notes,
        ..report
    };
    Ok((report, snapshot))
}

fn no_commit(
    base: &Snapshot,
    mode: IngestMode,
    sources: Vec<SourceReport>,
    started: Instant,
) -> IngestReport {
    let seconds = started.elapsed().as_secs_f64();
    IngestReport { mode, sources, ..report(None, base.spec().partitions().len(), seconds) }
}

fn report(committed: Option<Committed>, partitions: usize, seconds: f64) -> IngestReport {
    let rows = committed.as_ref().map_or(0, |committed| committed.rows);
    let rows_per_partition = committed
        .as_ref()
        .map_or_else(|| vec![0; partitions], |committed| committed.rows_per_partition.clone());
    IngestReport {
        version: committed.as_ref().map(|committed| committed.version),
        mode: IngestMode::Upsert,
        sources: Vec::new(),
        rows,
        replaced: committed.as_ref().map_or(0, |committed| committed.replaced),
        rejected: 0,
        rejects_file: None,
        bytes_read: 0,
        bytes_written: committed.as_ref().map_or(0, |committed| committed.bytes_written),
        portions: committed.as_ref().map_or(0, |committed| committed.portions),
        seconds,
        rows_per_second: if seconds > 0.0 { rows as f64 / seconds } else { 0.0 },
        skew: SkewFigures::of(&rows_per_partition),
        rows_per_partition,
        notes: Vec::new(),
    }
}

/// What is gathered while messages come.
#[derive(Default)]
struct Collected {
    sources: Vec<SourceReport>,
    entries: Vec<SourceEntry>,
    notes: Vec<String>,
    rejects: Option<RejectsFile>,
    rows_before: u64,
    rows_of_input: u64,
}

impl Collected {
    async fn take(&mut self, message: Message, ingest: &mut Ingest) -> Result<(), IngestError> {
        match message {
            Message::Started { .. } => {
                self.rows_before = ingest.rows();
                self.rows_of_input = 0;
            }
            Message::Skipped(source) => self.sources.push(source),
            Message::Rows(conformed) => {
                for reject in conformed.rejects {
                    match self.rejects.as_mut() {
                        Some(rejects) => rejects.add(&reject)?,
                        None => return Err(IngestError::Row { reject: Box::new(reject) }),
                    }
                }
                ingest.push(conformed.batch).await?;
                self.rows_of_input = ingest.rows() - self.rows_before;
            }
            Message::Ended(Ended { name, fingerprint, notes }) => {
                let Fingerprint { bytes, xxh3 } = fingerprint;
                let rows = self.rows_of_input;
                self.sources.push(SourceReport { name: name.clone(), bytes, rows, skipped_since: None });
                self.entries.push(SourceEntry { name, bytes, xxh3, rows });
                for note in notes {
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
            }
        }
        Ok(())
    }

    fn finish_rejects(&mut self) -> Result<(u64, Option<PathBuf>), IngestError> {
        self.rejects.take().map_or(Ok((0, None)), RejectsFile::finish)
    }
}

/// Reads the inputs one after another, until nobody receives any more.
fn read_all(known: &Snapshot, plan: &IngestFiles, sender: &mpsc::Sender<Message>) -> Result<(), IngestError> {
    let spec = known.spec();
    let columns: Vec<String> = spec.columns().iter().map(|column| column.name.clone()).collect();
    let mut taken = HashMap::new();
    for (number, path) in (1..).zip(&plan.inputs) {
        let mut input = Input::open(path, &columns, &plan.input)?;
        if let Some(report) = skip_known(known, plan, &input, &mut taken) {
            if sender.blocking_send(Message::Skipped(report)).is_err() {
                return Ok(());
            }
            continue;
        }
        let conform = Conform::new(input.name(), Arc::clone(spec), &plan.input);
        if let Some(names) = input.column_names() {
            conform.check_names(&names)?;
        }
        if sender.blocking_send(Message::Started { name: input.name().to_owned(), number }).is_err() {
            return Ok(());
        }
        while let Some(raw) = input.next_batch()? {
            if sender.blocking_send(Message::Rows(conform.conform(raw)?)).is_err() {
                return Ok(());
            }
        }
        let Some(fingerprint) = input.fingerprint() else {
            return Err(IngestError::Worker { reason: format!("{} was not read to its end", input.name()) });
        };
        // Of standard input the content is known only now.
        if let (InputPath::Stdin, false, Some(version)) =
            (path, plan.again, known.source_version(&fingerprint.xxh3))
        {
            let Fingerprint { bytes, .. } = fingerprint;
            return Err(IngestError::AlreadyIngested { name: input.name().to_owned(), bytes, version });
        }
        let ended = Ended { name: input.name().to_owned(), fingerprint, notes: notes(spec, &input) };
        if sender.blocking_send(Message::Ended(ended)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether the content of an input is in the table, or came earlier in this ingest.
fn skip_known(
    known: &Snapshot,
    plan: &IngestFiles,
    input: &Input,
    taken: &mut HashMap<String, String>,
) -> Option<SourceReport> {
    let Fingerprint { bytes, xxh3 } = input.fingerprint()?;
    let report = |version| SourceReport {
        name: input.name().to_owned(),
        bytes,
        rows: 0,
        skipped_since: Some(version),
    };
    if plan.again {
        return None;
    }
    if let Some(version) = known.source_version(&xxh3) {
        return Some(report(version));
    }
    taken.insert(xxh3, input.name().to_owned()).map(|_| report(known.version().next()))
}

/// What the reader left out or filled in.
fn notes(spec: &TableSpec, input: &Input) -> Vec<String> {
    let mut notes = Vec::new();
    let unknown = input.unknown_columns();
    if !unknown.is_empty() {
        notes.push(format!("columns that the table does not have were left out: {}", unknown.join(", ")));
    }
    if let Some(names) = input.column_names() {
        let filled: Vec<&str> = spec
            .columns()
            .iter()
            .map(|c| c.name.as_str())
            .filter(|name| !names.iter().any(|n| n == name))
            .collect();
        if !filled.is_empty() {
            notes.push(format!("columns that the input does not have are NULL: {}", filled.join(", ")));
        }
    }
    notes
}
