//! Ingests files: each input is read once, and all of them become visible with one commit.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Notify, mpsc};

use crate::ingest::rejects::RejectsFile;
use crate::ingest::writer::{Committed, Ingest};
use crate::ingest::{IngestError, IngestMode, IngestOptions, IngestReport, SourceReport};
use crate::log::PortionEntry;
use crate::log::{LogError, Snapshot, SourceEntry, TableLog};
use evenkeel_input::source::{Conform, Conformed, Fingerprint, Input, InputOptions, InputPath, SourceError};
use evenkeel_model::table::TableSpec;
use evenkeel_stats::skew::SkewFigures;
use evenkeel_storage::TableStorage;

/// Batches read ahead.
const BATCHES_AHEAD: usize = 2;

/// Inputs and options of an ingest of files.
#[derive(Debug, Clone)]
pub struct IngestFiles {
    /// Inputs in order; of rows with the same primary key, the later one wins.
    pub inputs: Vec<InputPath>,
    /// Options for reading the inputs.
    pub input: InputOptions,
    /// Options for writing the rows.
    pub ingest: IngestOptions,
    /// File for rows that cannot be taken; if `None`, the first such row fails the ingest.
    pub rejects: Option<PathBuf>,
    /// Whether to take inputs whose content was ingested before.
    pub again: bool,
    /// Stops the ingest before its commit when notified, even while it waits for input.
    pub interrupt: Arc<Notify>,
}

/// Progress of an ingest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestProgress {
    /// Input being read.
    pub input: String,
    /// Position of that input, from 1.
    pub number: usize,
    /// Number of inputs.
    pub inputs: usize,
    /// Rows taken so far, from all inputs.
    pub rows: u64,
}

/// Message from the reading thread to the writer.
enum Message {
    Started { name: String, number: usize },
    Skipped(SourceReport),
    Empty(String),
    Rows(Conformed),
    Ended(Ended),
}

impl IngestFiles {
    /// Refuses a file for rejected rows that already exists, before anything is read.
    pub fn check_rejects(&self) -> Result<(), IngestError> {
        self.rejects.as_deref().map_or(Ok(()), |path| RejectsFile::new(path).map(drop))
    }
}

/// An input that was read to its end.
struct Ended {
    name: String,
    fingerprint: Fingerprint,
    notes: Vec<String>,
}

/// Ingests files into the table at `base`, with one commit, or none if every input was ingested
/// before. Returns the report and the resulting table. `progress` is called after each batch.
///
/// # Errors
/// [`IngestError`]; nothing is visible then and the file of rejected rows is removed, except after
/// [`LogError::Unknown`].
pub async fn ingest_files(
    log: TableLog,
    base: Snapshot,
    plan: IngestFiles,
    progress: &(dyn Fn(&IngestProgress) + Sync),
) -> Result<(IngestReport, Snapshot), IngestError> {
    let storage = log.storage().clone();
    let (report, snapshot) = ingest_unknown(log, base, plan, progress).await?;
    sync_skipped(&storage, &report).await?;
    Ok((report, snapshot))
}

/// Syncs the log if inputs were skipped: the commit with their rows is that of another process,
/// which may have died before it synced the log.
async fn sync_skipped(storage: &TableStorage, report: &IngestReport) -> Result<(), IngestError> {
    if report.sources.iter().any(|source| source.skipped_since.is_some()) {
        storage.make_lasting("_log").await.map_err(LogError::from)?;
    }
    Ok(())
}

/// Ingests the inputs whose content is not in the table yet.
async fn ingest_unknown(
    log: TableLog,
    base: Snapshot,
    mut plan: IngestFiles,
    progress: &(dyn Fn(&IngestProgress) + Sync),
) -> Result<(IngestReport, Snapshot), IngestError> {
    plan.input.views = true;
    let started = Instant::now();
    let mode = plan.ingest.mode;
    let only_one = plan.inputs.len() == 1;
    let mut collected = Collected::default();
    if let Some(path) = &plan.rejects {
        collected.rejects = Some(RejectsFile::new(path)?);
    }
    let mut ingest = Ingest::new(log.clone(), base.clone(), &plan.ingest)?;
    if plan.again {
        ingest.take_again();
    }
    ingest.stop_on(Arc::clone(&plan.interrupt));
    if let Err(error) = read_into(&mut ingest, &mut collected, &base, plan, progress).await {
        ingest.abandon().await;
        collected.remove_rejects();
        return match error {
            // A single pipe whose content turned out to be known: nothing to do, as for a file.
            IngestError::AlreadyIngested { name, bytes, version } if only_one => {
                let source = SourceReport { name, bytes, rows: 0, rejected: 0, skipped_since: Some(version) };
                Ok((no_commit(&base, mode, vec![source], started), base))
            }
            error => Err(error),
        };
    }
    commit_collected(&log, base, ingest, collected, mode, started).await
}

/// Makes the one commit, if there is anything to commit, and the report.
async fn commit_collected(
    log: &TableLog,
    base: Snapshot,
    ingest: Ingest,
    mut collected: Collected,
    mode: IngestMode,
    started: Instant,
) -> Result<(IngestReport, Snapshot), IngestError> {
    if collected.entries.is_empty() {
        let mut report = no_commit(&base, mode, collected.sources, started);
        report.notes = collected.notes;
        return Ok((report, base));
    }
    let committed = match ingest.finish(collected.entries.clone()).await {
        Ok(committed) => committed,
        Err(error) => {
            // If the commit may exist, the rows that it left out must be kept as well.
            if !matches!(error, IngestError::Log(LogError::Unknown { .. })) {
                collected.remove_rejects();
            }
            return taken_by_others(log, &base, error, &collected, mode, started).await;
        }
    };
    let (rejected, rejects_file) = collected.finish_rejects();
    let snapshot = committed.snapshot.clone();
    let report = report(Some(committed), base.spec().partitions().len(), started.elapsed().as_secs_f64());
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

/// Reads all inputs into `ingest`, and collects facts about them in `collected`.
async fn read_into(
    ingest: &mut Ingest,
    collected: &mut Collected,
    base: &Snapshot,
    plan: IngestFiles,
    progress: &(dyn Fn(&IngestProgress) + Sync),
) -> Result<(), IngestError> {
    let (sender, mut messages) = mpsc::channel(BATCHES_AHEAD);
    let known = base.clone();
    let mut place = IngestProgress { input: String::new(), number: 0, inputs: plan.inputs.len(), rows: 0 };
    let interrupt = Arc::clone(&plan.interrupt);
    let reading = tokio::task::spawn_blocking(move || read_all(&known, &plan, &sender));
    loop {
        let message = tokio::select! {
            biased;
            () = interrupt.notified() => return Err(IngestError::Interrupted),
            message = messages.recv() => message,
        };
        let Some(message) = message else { break };
        if let Message::Started { name, number } = &message {
            place = IngestProgress { input: name.clone(), number: *number, ..place };
        }
        // On an error the channel closes, and the reader stops at its next batch.
        collected.take(message, ingest).await?;
        place.rows = ingest.rows();
        progress(&place);
    }
    reading.await.map_err(|error| IngestError::Worker { reason: error.to_string() })??;
    place.input = "writing".to_owned();
    progress(&place);
    if let (0, Some((count, first))) =
        (ingest.rows(), collected.rejects.as_ref().and_then(RejectsFile::first))
    {
        return Err(IngestError::AllRejected { count, first: Box::new(first.clone()) });
    }
    collected.sync_rejects()
}

/// Handles inputs that another process may have committed in the meantime. If it took all of them,
/// there is nothing left to do.
async fn taken_by_others(
    log: &TableLog,
    base: &Snapshot,
    error: IngestError,
    collected: &Collected,
    mode: IngestMode,
    started: Instant,
) -> Result<(IngestReport, Snapshot), IngestError> {
    if !matches!(error, IngestError::TakenMeanwhile { .. }) {
        return Err(error);
    }
    let newest = log.refresh(base).await?;
    let taken = collected.entries.iter().map(|entry| {
        newest.source_version(&entry.xxh3).map(|version| SourceReport {
            name: entry.name.clone(),
            bytes: entry.bytes,
            rows: 0,
            rejected: entry.rejected,
            skipped_since: Some(version),
        })
    });
    match taken.collect::<Option<Vec<_>>>() {
        Some(sources) => Ok((no_commit(base, mode, sources, started), newest)),
        None => Err(error),
    }
}

/// Inputs that were read and portions that were written elsewhere, to be committed.
pub struct Written {
    /// Stored portions.
    pub portions: Vec<PortionEntry>,
    /// Inputs that were ingested, in order.
    pub entries: Vec<SourceEntry>,
    /// Reports on all inputs, in order.
    pub sources: Vec<SourceReport>,
    /// Rows that could not be taken, in order.
    pub rejects: Box<dyn Iterator<Item = std::io::Result<evenkeel_input::source::Reject>> + Send>,
    /// Number of rows taken.
    pub rows: u64,
    /// Of those, rows that later ones replaced.
    pub replaced: u64,
    /// Further notes, one sentence each.
    pub notes: Vec<String>,
}

/// Commits what was written elsewhere, under the rules of [`ingest_files`].
///
/// # Errors
/// As for [`ingest_files`]. The files are deleted, except after [`LogError::Unknown`].
pub async fn finish_written(
    log: TableLog,
    base: Snapshot,
    plan: &IngestFiles,
    written: Written,
    started: Instant,
) -> Result<(IngestReport, Snapshot), IngestError> {
    let mode = plan.ingest.mode;
    let mut collected = Collected {
        entries: written.entries,
        sources: written.sources,
        notes: written.notes,
        ..Collected::default()
    };
    let mut ingest = Ingest::new(log.clone(), base.clone(), &plan.ingest)?;
    if plan.again {
        ingest.take_again();
    }
    ingest.adopt(written.portions, written.rows, written.replaced);
    let set_aside = (|| {
        if let Some(path) = &plan.rejects {
            let mut rejects = written.rejects;
            let file = collected.rejects.insert(RejectsFile::new(path)?);
            let failed = |source| IngestError::Rejects { path: path.clone(), source };
            rejects.try_for_each(|reject| file.add(&reject.map_err(failed)?))?;
        }
        collected.sync_rejects()
    })();
    if let Err(error) = set_aside {
        ingest.abandon().await;
        collected.remove_rejects();
        return Err(error);
    }
    if let (0, Some((count, first))) =
        (ingest.rows(), collected.rejects.as_ref().and_then(RejectsFile::first))
    {
        let first = Box::new(first.clone());
        ingest.abandon().await;
        collected.remove_rejects();
        return Err(IngestError::AllRejected { count, first });
    }
    let (report, snapshot) = commit_collected(&log, base, ingest, collected, mode, started).await?;
    sync_skipped(log.storage(), &report).await?;
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
    let rows_per_partition =
        committed.as_ref().map_or_else(|| vec![0; partitions], |committed| committed.rows_per_partition());
    IngestReport {
        version: committed.as_ref().map(|committed| committed.version),
        mode: IngestMode::Upsert,
        sources: Vec::new(),
        rows,
        replaced: committed.as_ref().map_or(0, |committed| committed.replaced),
        rejected: 0,
        rejects_file: None,
        bytes_read: 0,
        bytes_written: committed.as_ref().map_or(0, Committed::bytes_written),
        portions: committed.as_ref().map_or(0, Committed::portions),
        seconds,
        rows_per_second: if seconds > 0.0 { rows as f64 / seconds } else { 0.0 },
        skew: SkewFigures::from_counts(&rows_per_partition),
        rows_per_partition,
        notes: Vec::new(),
    }
}

/// Results collected from the messages of the reading thread.
#[derive(Default)]
struct Collected {
    sources: Vec<SourceReport>,
    entries: Vec<SourceEntry>,
    notes: Vec<String>,
    rejects: Option<RejectsFile>,
    rows_before: u64,
    rows_of_input: u64,
    rejected_of_input: u64,
}

impl Collected {
    async fn take(&mut self, message: Message, ingest: &mut Ingest) -> Result<(), IngestError> {
        match message {
            Message::Started { .. } => {
                self.rows_before = ingest.rows();
                self.rows_of_input = 0;
                self.rejected_of_input = 0;
            }
            Message::Skipped(source) => self.sources.push(source),
            Message::Empty(file) => self.notes.push(format!("{file} is empty")),
            Message::Rows(conformed) => {
                self.rejected_of_input += conformed.rejects.len() as u64;
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
                let (rows, rejected) = (self.rows_of_input, self.rejected_of_input);
                self.sources.push(SourceReport {
                    name: name.clone(),
                    bytes,
                    rows,
                    rejected,
                    skipped_since: None,
                });
                self.entries.push(SourceEntry { name, bytes, xxh3, rows, rejected });
                for note in notes {
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
            }
        }
        Ok(())
    }

    /// Syncs rejected rows to disk, before the commit that leaves them out.
    fn sync_rejects(&mut self) -> Result<(), IngestError> {
        self.rejects.as_mut().map_or(Ok(()), RejectsFile::sync)
    }

    fn finish_rejects(&mut self) -> (u64, Option<PathBuf>) {
        self.rejects.take().map_or((0, None), RejectsFile::finish)
    }

    fn remove_rejects(&mut self) {
        if let Some(rejects) = self.rejects.take() {
            rejects.remove();
        }
    }
}

/// Reads the inputs one after another, until the receiver is gone.
fn read_all(known: &Snapshot, plan: &IngestFiles, sender: &mpsc::Sender<Message>) -> Result<(), IngestError> {
    let spec = known.spec();
    let columns: Vec<String> = spec.columns().iter().map(|column| column.name.clone()).collect();
    for (number, path) in (1..).zip(&plan.inputs) {
        let mut input = match Input::open(path, &columns, &plan.input) {
            Ok(input) => input,
            // One empty file among several is no reason to refuse the others.
            Err(SourceError::Empty { file }) if plan.inputs.len() > 1 => {
                if sender.blocking_send(Message::Empty(file)).is_err() {
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let known_before = input.fingerprint().is_some();
        if let Some(report) = skip_known(known, plan, &input) {
            if sender.blocking_send(Message::Skipped(report)).is_err() {
                return Ok(());
            }
            continue;
        }
        let conform = Conform::new(input.name(), spec, &plan.input);
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
        // The content of a pipe is known only now.
        if let (false, false, Some(version)) =
            (known_before, plan.again, known.source_version(&fingerprint.xxh3))
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

/// Returns the report of an input whose content is already in the table. An input that is given
/// twice in one ingest is taken twice: the later one may restore what a row between them changed.
fn skip_known(known: &Snapshot, plan: &IngestFiles, input: &Input) -> Option<SourceReport> {
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
pub fn notes(spec: &TableSpec, input: &Input) -> Vec<String> {
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
