//! Ingests of the batches of an Arrow object.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow::array::RecordBatch;
use evenkeel::cli::Progress;
use evenkeel::compact::CompactionOptions;
use evenkeel::ingest::{IngestError, IngestOptions, IngestReport, notes_on_columns};
use evenkeel::remark::Remark;
use evenkeel::source::Deletes;
use evenkeel::{Table, TableError};
use futures::stream;
use tokio::sync::{Notify, mpsc};

use crate::producer::Producer;
use crate::source::Plain;
use crate::waiting::{Flagged, Work};

/// Batches of a stream that wait for the ingest.
const WAITING: usize = 2;

/// Returns notes on columns that a source has and the table lacks, or the other way round.
pub(crate) fn notes(table: &Table, batches: &Plain, deletes: &Deletes) -> Vec<Remark> {
    let schema = batches.schema();
    let given: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let columns: Vec<&str> = table.spec().columns().iter().map(|column| column.name.as_str()).collect();
    let marks = match deletes {
        Deletes::Where { column, .. } => Some(column.as_str()),
        // Only the key counts.
        Deletes::All => return Vec::new(),
        Deletes::None => None,
    };
    let unknown = given.iter().filter(|name| !columns.contains(name) && marks != Some(**name));
    let filled = columns.iter().filter(|name| !given.contains(name));
    notes_on_columns(&unknown.collect::<Vec<_>>(), &filled.collect::<Vec<_>>())
}

/// Rows that an ingest has taken, and how to stop it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counting {
    rows: Arc<AtomicU64>,
    flag: Flagged,
    interrupt: Arc<Notify>,
}

impl Work for Counting {
    fn stop(&self) -> bool {
        self.interrupt.notify_one();
        self.flag.stop()
    }

    fn progress(&self) -> Option<Progress> {
        let done = self.rows.load(Ordering::Relaxed);
        Some(Progress { done, unit: "rows".to_owned(), share: None, message: String::new() })
    }
}

/// An ingest of the batches of an Arrow object.
pub(crate) struct StreamIngest {
    pub(crate) batches: Plain,
    pub(crate) notes: Vec<Remark>,
    pub(crate) deletes: Deletes,
    pub(crate) options: IngestOptions,
    pub(crate) compact: bool,
    pub(crate) counting: Counting,
}

impl StreamIngest {
    /// Ingests the batches, and returns the report.
    pub(crate) async fn run(self, table: &mut Table) -> Result<serde_json::Value, TableError> {
        let Self { batches, notes, deletes, options, compact, counting } = self;
        let started = Instant::now();
        let (sender, receiver) = mpsc::channel(WAITING);
        let counted = counting.clone();
        // Batches are made by other libraries, and possibly by Python, which may take its time.
        let producer = Producer::start();
        tokio::task::spawn_blocking(move || {
            send(batches, &sender, &counted);
            drop(producer);
        });
        let batches = stream::unfold(Some(receiver), |receiver| async move {
            let mut receiver = receiver?;
            match receiver.recv().await {
                Some(Sent::Batch(batch)) => Some((Ok(batch), Some(receiver))),
                Some(Sent::Failed(error)) => Some((Err(error), None)),
                Some(Sent::Done) => None,
                None => Some((Err("the source stopped in the middle of its rows".into()), None)),
            }
        });
        let interrupt = Arc::clone(&counting.interrupt);
        let committed = match table.ingest_changes(batches, deletes, &options, interrupt).await {
            Err(TableError::Stream(_)) if counting.flag.is_stopped() => {
                return Err(IngestError::Interrupted.into());
            }
            committed => committed?,
        };
        let partitions = table.placement().partitions();
        let seconds = started.elapsed().as_secs_f64();
        let mut report = IngestReport::from_stream(committed, options.mode, partitions, seconds);
        report.notes = notes;
        let mut compaction = None;
        if compact && report.version.is_some() {
            let options = CompactionOptions {
                memory: options.memory,
                interrupt: Arc::clone(&counting.interrupt),
                ..CompactionOptions::default()
            };
            // The rows are committed: a failure of the compaction cannot undo that.
            match table.compact(&options, &|_| {}).await {
                Ok(done) => compaction = Some(done).filter(|done| !done.versions.is_empty()),
                Err(error) => report.note_failed_compaction(&error),
            }
        }
        let mut report = serde_json::to_value(&report).unwrap_or_default();
        if let Some(fields) = report.as_object_mut() {
            fields.insert("compaction".to_owned(), serde_json::to_value(&compaction).unwrap_or_default());
        }
        Ok(report)
    }
}

/// A step of a source.
enum Sent {
    Batch(RecordBatch),
    Failed(Box<dyn std::error::Error + Send + Sync>),
    /// All rows were sent. Without it, the source broke off.
    Done,
}

/// Rows that are sent at a time; between them the ingest can be stopped.
const ROWS_AT_A_TIME: usize = 65_536;

/// Sends batches until the ingest ends or is to stop.
fn send(batches: Plain, sender: &mpsc::Sender<Sent>, counting: &Counting) {
    let is_stopped = || counting.flag.is_stopped() || Producer::must_end();
    for batch in batches {
        let batch = match batch {
            Ok(_) if is_stopped() => return,
            Ok(batch) => batch,
            Err(error) => {
                let _ = sender.blocking_send(Sent::Failed(error.into()));
                return;
            }
        };
        for start in (0..batch.num_rows()).step_by(ROWS_AT_A_TIME) {
            if is_stopped() {
                return;
            }
            let rows = ROWS_AT_A_TIME.min(batch.num_rows() - start);
            if sender.blocking_send(Sent::Batch(batch.slice(start, rows))).is_err() {
                return;
            }
            counting.rows.fetch_add(rows as u64, Ordering::Relaxed);
        }
    }
    let _ = sender.blocking_send(Sent::Done);
}
