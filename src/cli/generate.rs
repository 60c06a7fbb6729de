//! `evenkeel generate`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use evenkeel::generate::{AdEvents, GenerateError};
use evenkeel::report::counted;
use evenkeel::sink::OutputFormat;
use serde::Serialize;

use crate::cli::local_path::LocalPath;
use crate::cli::output::Format;
use crate::cli::{Failure, Output};

/// Format of generated files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    Parquet,
    Csv,
    Ndjson,
}

/// Generate sample events to experiment with.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  evenkeel generate ad-events --rows 1000000 --out exports")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    AdEvents(AdEventsArgs),
}

/// Generate impressions and clicks of an ad network, in arrival order, for the table of
/// data/ad_events.sql.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel generate ad-events --rows 1000000 --out exports
  evenkeel generate ad-events --rows 100000 --out exports --file-format csv \\
      --late-share 0.1 --duplicate-share 0.05")]
struct AdEventsArgs {
    /// Folder for the files.
    #[arg(long, value_name = "DIR")]
    out: LocalPath,

    /// Number of rows, duplicates included.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,

    /// Random seed; the same seed gives the same rows.
    #[arg(long, default_value_t = AdEvents::default().seed)]
    seed: u64,

    /// Format of the files.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "parquet")]
    file_format: FileFormat,

    /// Rows per file.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows_per_file: u64,

    /// Time span of the events, in hours.
    #[arg(long, default_value_t = AdEvents::default().hours)]
    hours: f64,

    /// Share of events that belong to the largest campaign, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = AdEvents::default().campaign_share)]
    campaign_share: f64,

    /// Number of campaigns.
    #[arg(long, default_value_t = AdEvents::default().campaigns)]
    campaigns: u64,

    /// Number of users.
    #[arg(long, default_value_t = AdEvents::default().users)]
    users: u64,

    /// Skew of user activity: the exponent of a Zipf law; 0 makes all users equally active.
    #[arg(long, value_name = "EXPONENT", default_value_t = AdEvents::default().user_skew)]
    user_skew: f64,

    /// Share of events that arrive late, by 10 minutes on average.
    #[arg(long, value_name = "SHARE", default_value_t = AdEvents::default().late_share)]
    late_share: f64,

    /// Share of rows that repeat an earlier row.
    #[arg(long, value_name = "SHARE", default_value_t = AdEvents::default().duplicate_share)]
    duplicate_share: f64,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Generated files.
#[derive(Debug, Serialize)]
struct Generated {
    rows: u64,
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let Command::AdEvents(args) = args.command;
    let events = AdEvents {
        rows: args.rows,
        seed: args.seed,
        hours: args.hours,
        campaign_share: args.campaign_share,
        campaigns: args.campaigns,
        users: args.users,
        user_skew: args.user_skew,
        late_share: args.late_share,
        duplicate_share: args.duplicate_share,
    };
    let format = match args.file_format {
        FileFormat::Parquet => OutputFormat::Parquet,
        FileFormat::Csv => OutputFormat::Csv,
        FileFormat::Ndjson => OutputFormat::Ndjson,
    };
    let bar = out.progress(Some(args.rows), "rows");
    let files = events.write_files(&args.out, format, args.rows_per_file, &|rows| bar.set_position(rows));
    bar.finish_and_clear();
    let files = files.map_err(|error| match error {
        GenerateError::Parameter { .. } => Failure::usage(error),
        error => Failure::from(error),
    })?;
    out.result(args.format, &Generated { rows: args.rows, files }, |generated, _| {
        let names: Vec<String> =
            generated.files.iter().map(|file| format!("  {}\n", file.display())).collect();
        let (rows, files) = (counted(generated.rows, "row"), counted(generated.files.len() as u64, "file"));
        format!("{rows} in {files}:\n{}", names.concat())
    })
}
