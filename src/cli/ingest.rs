//! `evenkeel ingest`.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use evenkeel::compact::{CompactionOptions, CompactionReport};
use evenkeel::ingest::{IngestError, IngestFiles, IngestMode, IngestOptions, IngestReport, MIN_MEMORY};
use evenkeel::source::{Deletes, InputOptions, Reading};
use evenkeel::storage::Place;
use evenkeel::units::ByteSize;
use evenkeel::{Table, TableError, report};

use serde::Serialize;

use crate::cli::compact::compact;
use crate::cli::input::ReadingArgs;
use crate::cli::local_path::LocalPath;
use crate::cli::output::Format;
use crate::cli::workers::WorkerArgs;
use crate::cli::{Failure, Output, check_memory};
use evenkeel_model::remark::Remark;

/// Handling of rows whose primary key exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// A row whose primary key exists already replaces the old one.
    Upsert,
    /// A row whose primary key exists already fails the whole ingest.
    Insert,
}

/// Handling of rows that do not fit the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnError {
    /// Fail the ingest and commit nothing.
    Fail,
    /// Write the rows to a file with the reasons, and ingest the rest.
    Reject,
}

/// Whether portions are merged after the ingest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Compaction {
    /// If it pays off.
    Auto,
    /// Never.
    Off,
}

/// Report of an ingest, and of the compaction that followed if it did anything.
#[derive(Debug, Serialize)]
struct Ingested {
    #[serde(flatten)]
    ingest: IngestReport,
    compaction: Option<CompactionReport>,
}

/// Ingest files into a table with a single commit.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel ingest events exports/                        every known file below a folder
  evenkeel ingest events 'exports/2026-01-*.csv.gz'      files by a pattern
  zcat events.ndjson.gz | evenkeel ingest events -       standard input
  evenkeel ingest events late.csv --on-error reject      write bad rows to a file
  evenkeel ingest events erased.csv --deletes            delete rows by their primary keys
  evenkeel ingest events changes.ndjson --delete-column op=d   changes of another database

Inputs are recognised by content: ingesting one again does nothing, and a message says so. Inputs of \
--deletes are not: their keys are deleted each time.")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// Files, folders, glob patterns, or - for standard input: Parquet, CSV, NDJSON, Arrow IPC,
    /// Avro, ORC or a dump of a database, plain, gzip or zstd.
    #[arg(required = true)]
    inputs: Vec<String>,

    /// Handling of a row whose primary key exists already.
    #[arg(long, value_enum, default_value = "upsert")]
    mode: Mode,

    /// Delete the rows whose primary keys are in the inputs; other columns are ignored.
    #[arg(long, conflicts_with_all = ["mode", "delete_column", "again"])]
    deletes: bool,

    /// Rows of the inputs whose column has this value delete the row with their primary key; all
    /// others are added. The table need not have the column.
    #[arg(long, value_name = "COLUMN=VALUE", conflicts_with = "mode")]
    delete_column: Option<String>,

    /// Handling of a row that does not fit the table: NULL in a NOT NULL column, a value out of
    /// range, broken text.
    #[arg(long, value_enum, default_value = "fail")]
    on_error: OnError,

    /// File for rejected rows, as NDJSON [default: a new file in DIR/_rejects, or in ./_rejects if
    /// the table is in an object store].
    #[arg(long, value_name = "FILE")]
    rejects: Option<LocalPath>,

    /// Ingest inputs even if they were ingested before.
    #[arg(long)]
    again: bool,

    /// Memory budget of the program, such as 2GiB; at least 128MiB.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(super) memory: ByteSize,

    /// Merge portions after the ingest if it pays off, as 'evenkeel compact' does.
    #[arg(long, value_enum, default_value = "auto")]
    compact: Compaction,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    input: ReadingArgs,

    #[command(flatten)]
    workers: WorkerArgs,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    if args.dir.is_file() {
        let dir = args.dir.display();
        return Err(Failure::wrong_usage(format!(
            "{dir} is a file; name the directory of the table first, then the files"
        )));
    }
    let (plan, notes) = plan(&args, out)?;
    if args.format != Format::Json {
        notes.iter().for_each(|note| out.note(note.text()));
    }
    let mut table = Table::open(&args.dir).await?;
    let writer = tokio::select! {
        writer = args.workers.writer(out) => writer?,
        () = plan.interrupt.notified() => return Err(IngestError::Interrupted.into()),
    };
    if let Some(writer) = writer {
        if plan.input.deletes != Deletes::None {
            return Err(Failure::wrong_usage(
                "a cluster cannot delete rows; run this ingest on this machine",
            ));
        }
        let report = table.ingest_files_with(&plan, writer.as_ref()).await;
        let report = report.map_err(|error| failure_elsewhere(error, &args.dir))?;
        return finish(&args, table, report, notes, out).await;
    }
    let bar = out.progress_of(Reading::start(&plan.inputs, &plan.input.meter));
    let report = table
        .ingest_files(plan, &|progress| {
            bar.set_position(progress.rows);
            if progress.number > 0 {
                bar.set_message(format!("{} ({} of {})", progress.input, progress.number, progress.inputs));
            }
        })
        .await;
    bar.finish_and_clear();
    finish(&args, table, report?, notes, out).await
}

/// Converts the error of an ingest on other machines. Executors are cancelled, and stop at their
/// next check.
fn failure_elsewhere(error: TableError, dir: &Path) -> Failure {
    match error {
        TableError::Ingest(IngestError::Interrupted) => {
            let message = format!(
                "{error}. Executors may still be running tasks for a moment; 'evenkeel clean {}' removes \
                    their files once these are a day old (--unnamed sets another age)",
                dir.display()
            );
            Failure::Failed(anyhow::Error::from(error).context(message))
        }
        error => error.into(),
    }
}

/// Compacts if requested, and reports.
async fn finish(
    args: &Args,
    mut table: Table,
    mut report: IngestReport,
    notes: Vec<Remark>,
    out: &mut Output,
) -> Result<(), Failure> {
    if args.format == Format::Json {
        report.notes.splice(0..0, notes);
    }
    let mut compaction = None;
    if args.compact == Compaction::Auto && report.version.is_some() {
        let options = CompactionOptions {
            memory: args.memory,
            interrupt: out.interrupt(),
            ..CompactionOptions::default()
        };
        // The rows are committed: a failure of the compaction cannot undo that.
        match compact(&mut table, &options, out).await {
            Ok(done) => compaction = Some(done).filter(|done| !done.versions.is_empty()),
            Err(error) => report.note_failed_compaction(&error),
        }
    }
    let done = Ingested { ingest: report, compaction };
    out.result(args.format, &done, |done, layout| {
        let compaction = done.compaction.as_ref().map(|compaction| report::compaction(compaction, layout));
        format!("{}{}", report::ingest(&done.ingest, layout), compaction.unwrap_or_default())
    })
}

/// Returns the directory of rejected rows: in the directory of the table if that is local, else in
/// the current one.
fn rejects_of(dir: &Path) -> PathBuf {
    match Place::parse(dir) {
        Ok(Place::Local(dir)) => dir.join("_rejects"),
        _ => PathBuf::from("_rejects"),
    }
}

/// Returns the plan, and notes on omitted parts of the inputs.
fn plan(args: &Args, out: &Output) -> Result<(IngestFiles, Vec<Remark>), Failure> {
    check_memory(args.memory, MIN_MEMORY)?;
    let rejects = match (args.on_error, &args.rejects) {
        (OnError::Fail, Some(_)) => {
            return Err(Failure::wrong_usage("--rejects needs --on-error reject"));
        }
        (OnError::Fail, None) => None,
        (OnError::Reject, Some(file)) => Some(file.clone().into()),
        (OnError::Reject, None) => {
            Some(rejects_of(&args.dir).join(format!("{}.ndjson", uuid::Uuid::new_v4())))
        }
    };
    let mode = match args.mode {
        _ if args.deletes => IngestMode::Delete,
        Mode::Upsert => IngestMode::Upsert,
        Mode::Insert => IngestMode::Insert,
    };
    let deletes = match &args.delete_column {
        _ if args.deletes => Deletes::All,
        None => Deletes::None,
        Some(text) => match text.split_once('=').filter(|(column, _)| !column.is_empty()) {
            Some((column, value)) => Deletes::Where { column: column.to_owned(), value: value.to_owned() },
            None => {
                return Err(Failure::wrong_usage(format!(
                    "--delete-column {text}: write COLUMN=VALUE, such as op=d"
                )));
            }
        },
    };
    let (inputs, input) = args.input.find_silently(&args.inputs)?;
    let input = InputOptions { deletes, ..input };
    let plan = IngestFiles {
        inputs: inputs.paths,
        input,
        ingest: IngestOptions { mode, memory: args.memory },
        rejects,
        again: args.again,
        interrupt: out.interrupt(),
    };
    Ok((plan, inputs.notes))
}
