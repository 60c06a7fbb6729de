//! `evenkeel spanner migrate`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use clap::{Args as ClapArgs, ValueEnum};
use evenkeel::report;
use evenkeel::sink::{OutputFormat, PartFile, Sink};
use evenkeel::source::{Export, InputPath, Reading};
use evenkeel::spanner::schema::{Dialect, MadeKey, write_migrated_table};
use evenkeel::spanner::simulate::{KeyKind, Migration, SimulateError, migrate, normalize_uuids};
use evenkeel::table::Column;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::cli::declaring::table_name;
use crate::cli::input::ReadingArgs;
use crate::cli::local_path::LocalPath;
use crate::cli::numbers::share;
use crate::cli::output::Format;
use crate::cli::spanner::replay::failure;
use crate::cli::{Failure, Output};

/// Plan the move of a table with generated keys to Spanner: existing values stay, and new values
/// provably never collide with them.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel spanner migrate users.csv --key user_id
  evenkeel spanner migrate users.csv --key user_id --target spanner-postgres --name users")]
pub(crate) struct Args {
    /// Files, folders, glob patterns, or - for standard input.
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<String>,

    /// Key column: UUIDs, or numbers from a sequence or an auto-increment.
    #[arg(long, value_name = "COLUMN")]
    key: String,

    /// Origin of the key's values [default: detected from the values].
    #[arg(long, value_enum)]
    kind: Option<KindArg>,

    /// Headroom for values added before the switch, as a share of the existing ones.
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share)]
    headroom: f64,

    /// Dialect of the statements: spanner (GoogleSQL) or spanner-postgres.
    #[arg(long, default_value = "spanner")]
    target: Dialect,

    /// Name of the table in the statements [default: the name of the first input].
    #[arg(long)]
    name: Option<String>,

    /// Write the rows with their UUIDs in lower case, with hyphens, as GENERATE_UUID() generates
    /// them, to a .csv, .parquet, .ndjson or .json file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<LocalPath>,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    input: ReadingArgs,
}

/// Origin of the values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindArg {
    Uuid,
    Sequential,
    BitReversed,
}

/// Requirements of a migration, and the statements for it.
#[derive(Debug, Serialize)]
struct MigrationPlan<'a> {
    #[serde(flatten)]
    migration: &'a Migration,
    ddl: String,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let (inputs, reading) = args.input.find(&args.inputs, out)?;
    let kind = args.kind.map(|kind| match kind {
        KindArg::Uuid => KeyKind::Uuid,
        KindArg::Sequential => KeyKind::Sequential,
        KindArg::BitReversed => KeyKind::BitReversed,
    });
    let (key, headroom) = (args.key.clone(), args.headroom);
    let output = args.output.as_ref().map(|path| output(path, &inputs.paths)).transpose()?;
    let part = Reading::start(&inputs.paths, &reading.meter);
    let work = move |_: &ProgressBar, stop: &AtomicBool| {
        let export = Export::open(&inputs.paths, reading, &BTreeMap::new()).map_err(SimulateError::from)?;
        let migration = migrate(&export, &key, kind, headroom, stop).map_err(failure)?;
        if let Some((path, format)) = &output {
            if migration.kind != KeyKind::Uuid {
                return Err(Failure::wrong_usage(format!(
                    "--output rewrites UUIDs; '{key}' has numbers, which are not rewritten"
                )));
            }
            write(&export, &key, path, *format, stop)?;
        }
        Ok((migration, export.columns().to_vec()))
    };
    let (migration, columns) = out.in_background(part, work).await??;
    let planned = MigrationPlan { migration: &migration, ddl: ddl(&args, &migration, &columns) };
    out.result(args.format, &planned, |planned, layout| {
        report::migration(planned.migration, &planned.ddl, layout)
    })
}

/// Checks the output file, and returns it with its format.
fn output(path: &LocalPath, inputs: &[InputPath]) -> Result<(LocalPath, OutputFormat), Failure> {
    let is_same = |input: &InputPath| match input {
        InputPath::File(file) | InputPath::Copy { path: file, .. } => {
            file.canonicalize().ok().is_some_and(|file| path.canonicalize().is_ok_and(|path| path == file))
        }
        InputPath::Stdin | InputPath::Remote(_) => false,
    };
    if inputs.iter().any(is_same) {
        return Err(Failure::wrong_usage(format!("{} is an input; write to another file", path.display())));
    }
    let format = OutputFormat::from_path(path).ok_or_else(|| {
        Failure::wrong_usage(format!(
            "{}: unknown file extension; use .csv, .parquet, .ndjson or .json",
            path.display()
        ))
    })?;
    Ok((path.clone(), format))
}

/// Returns the statements that declare the table, and the form of UUIDs that it needs.
fn ddl(args: &Args, migration: &Migration, columns: &[Column]) -> String {
    let made = match migration.kind {
        KeyKind::Uuid => MadeKey::Uuid,
        KeyKind::Sequential | KeyKind::BitReversed => {
            MadeKey::Sequence { skip: migration.skip_range, start: migration.start_counter }
        }
    };
    let name = args.name.clone().unwrap_or_else(|| table_name(&args.inputs));
    let mut ddl = write_migrated_table(&name, columns, &migration.column, &made, args.target);
    match &args.output {
        Some(path) => {
            ddl.push_str(&format!("\n-- to load: {}, whose UUIDs are in this form\n", path.display()));
        }
        None if migration.kind == KeyKind::Uuid && migration.to_normalize > 0 => {
            ddl.push_str(&format!(
                "\n-- while loading: LOWER({}), with hyphens, for {} of its values; --output FILE writes the rows \
                 in this form\n",
                migration.column, migration.to_normalize
            ));
        }
        None => {}
    }
    ddl
}

/// Writes all rows with their UUIDs in the form of Spanner; the file gets its name when it is
/// complete.
fn write(
    export: &Export,
    key: &str,
    path: &Path,
    format: OutputFormat,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| anyhow::anyhow!("{}: cannot write: {error}", path.display());
    let file = PartFile::create(path).map_err(cannot)?;
    let mut sink: Option<Sink<BufWriter<&File>>> = None;
    normalize_uuids::<Failure>(export, key, stop, |batch| {
        let sink = match &mut sink {
            Some(sink) => sink,
            None => sink.insert(Sink::new(BufWriter::new(file.file()), format, &batch.schema())?),
        };
        Ok(sink.write(batch)?)
    })?;
    if let Some(sink) = sink.take() {
        sink.finish()?.into_inner().map_err(|error| cannot(error.into_error()))?;
    }
    drop(sink);
    Ok(file.publish().map_err(cannot)?)
}
