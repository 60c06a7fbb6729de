//! The command line: raw arguments, then a checked plan, then the run.

mod allocator;
mod alter;
mod bench;
mod capacity;
mod capture;
mod check;
mod clean;
#[cfg(feature = "cluster")]
mod cluster;
mod compact;
mod completions;
mod create;
mod ddl;
mod declaring;
mod delete;
mod demo;
mod embedded;
mod evaluate;
mod export;
mod failure;
mod generate;
mod html_file;
mod ingest;
mod input;
mod inspect;
mod interrupt;
mod limits;
mod lint;
mod local_path;
#[cfg(any(feature = "cluster", feature = "serve"))]
mod logging;
mod man;
mod numbers;
mod output;
mod pipe;
mod place;
mod program;
mod query;
mod repartition;
mod scenario;
#[cfg(feature = "serve")]
mod serve;
mod shell;
mod skew;
mod spanner;
mod tables;
mod workers;
mod workplace;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use evenkeel::units::{ByteSize, PartitionCount, Version};
use evenkeel::{Table, TableError};

pub use allocator::Allocator;
pub use capture::{Capture, Captured, Progress};
pub use embedded::{CaptureError, ErrorPlace, capture};
pub use program::{STACK, hide_caught_panics, main, runtime};

pub(crate) use failure::{Failure, INTERRUPTED};
pub(crate) use interrupt::Interrupt;
pub(crate) use limits::remove_spilled;
pub(crate) use output::Output;

/// Workbench and store for hash-partitioned columnar tables in the style of the YDB column store.
#[derive(Debug, Parser)]
#[command(
    name = "evenkeel",
    version,
    max_term_width = 120,
    after_help = "\
Start with 'evenkeel demo'; 'evenkeel COMMAND --help' has examples. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a --fail-on threshold met or a \
problem found by 'lint', 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Evaluate(Box<evaluate::Args>),
    Generate(generate::Args),
    Create(create::Args),
    Ingest(ingest::Args),
    Query(query::Args),
    Sql(shell::Args),
    Delete(delete::Args),
    Skew(skew::Args),
    Inspect(inspect::Args),
    Compact(compact::Args),
    Clean(clean::Args),
    Check(check::Args),
    Alter(alter::Args),
    Export(export::Args),
    Repartition(repartition::Args),
    Ddl(ddl::Args),
    Place(place::Args),
    Lint(lint::Args),
    Bench(Box<bench::Args>),
    Capacity(Box<capacity::Args>),
    Spanner(spanner::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[cfg(feature = "serve")]
    Serve(Box<serve::Args>),
    #[cfg(feature = "cluster")]
    Cluster(cluster::Args),
}

/// Commands by purpose, each with a one-line description.
const GROUPS: &[(&str, &[(&str, &str)])] = &[
    (
        "Choose keys",
        &[
            ("evaluate", "Judge partition and primary keys on an export, and propose a table"),
            ("lint", "Check whether a placement function spreads your keys as evenly as a perfect hash"),
            ("place", "Show the partition of a key in any of the supported systems"),
            ("bench", "Ingest an export under each key, or time queries, and report evenness"),
        ],
    ),
    (
        "Tables",
        &[
            ("create", "Declare a table"),
            ("ingest", "Add files to a table, atomically"),
            ("query", "Run SQL on tables and exports"),
            ("sql", "Run SQL in a shell, with history, completion and commands"),
            #[cfg(feature = "serve")]
            ("serve", "Serve tables to clients of PostgreSQL, read-only"),
            ("delete", "Delete rows by a condition"),
            ("skew", "Report how evenly rows are spread over partitions"),
            ("inspect", "Show partitions, files and history"),
            ("compact", "Merge files and drop expired rows"),
            ("clean", "Delete files that no kept version needs"),
            ("check", "Verify every file against its checksum"),
            ("alter", "Add columns, or change the time to live"),
            ("repartition", "Rewrite a table with another partition key or number of partitions"),
            ("ddl", "Print the YQL statement of a table"),
            ("export", "Write a Delta log, so that other engines can read the table"),
        ],
    ),
    (
        "Models",
        &[
            ("capacity", "Replay an export against nodes of limited capacity"),
            ("spanner", "Model range splits of Spanner, migrate keys, write its schemas"),
        ],
    ),
    (
        "Tools",
        &[
            ("demo", "Walk through all steps on generated ad events"),
            ("generate", "Generate sample events to experiment with"),
            #[cfg(feature = "cluster")]
            ("cluster", "Run a scheduler or an executor, for work on several machines"),
            ("completions", "Print the completions of a shell"),
            ("man", "Write the manual pages"),
            ("help", "Explain a command"),
        ],
    ),
];

/// Returns the help of the program, with its commands in groups.
fn help_template() -> String {
    let mut text = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (group, commands) in GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        commands.iter().for_each(|(name, line)| text.push_str(&format!("  {name:<13}{line}\n")));
    }
    text + "\nOptions:\n{options}{after-help}"
}

/// Returns the program's commands and options, with its help.
fn full_command() -> clap::Command {
    Cli::command().help_template(help_template())
}

/// Refuses a memory budget that is too small.
fn check_memory(memory: ByteSize, least: ByteSize) -> Result<(), Failure> {
    if memory < least {
        return Err(Failure::wrong_usage(format!("--memory {memory} is too small; the minimum is {least}")));
    }
    Ok(())
}

/// Returns the partition count from `--partitions` or `--nodes`; `None` if neither is given.
fn partition_count(partitions: Option<u64>, nodes: Option<u64>) -> Result<Option<PartitionCount>, Failure> {
    let count = partitions.map(PartitionCount::new).or(nodes.map(PartitionCount::for_nodes));
    count.transpose().map_err(Failure::usage)
}

/// Returns the names without surrounding blanks, as in `a, b`.
fn trimmed(names: &[String]) -> Vec<String> {
    names.iter().map(|name| name.trim().to_owned()).collect()
}

/// Opens a table at a version, or at its newest one.
async fn open(dir: &std::path::Path, version: Option<u64>) -> Result<Table, TableError> {
    match version {
        Some(version) => Table::open_version(dir, Version(version)).await,
        None => Table::open(dir).await,
    }
}

impl Cli {
    /// Reads arguments; the first is the name of the program.
    pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::from_arg_matches(&full_command().try_get_matches_from(arguments)?)
    }

    /// Memory that a command may take which mainly writes portions.
    pub(crate) fn memory_for_writing(&self) -> Option<ByteSize> {
        match &self.command {
            Command::Ingest(args) => Some(args.memory),
            Command::Compact(args) => Some(args.memory),
            Command::Repartition(args) => Some(args.memory),
            _ => None,
        }
    }

    pub(crate) async fn run(self, out: &mut Output) -> Result<(), Failure> {
        match self.command {
            Command::Demo(args) => demo::run(args, out).await,
            Command::Evaluate(args) => evaluate::run(*args, out).await,
            Command::Generate(args) => generate::run(args, out),
            Command::Create(args) => create::run(args, out).await,
            Command::Ingest(args) => ingest::run(args, out).await,
            Command::Query(args) => query::run(args, out).await,
            Command::Sql(args) => shell::run(args, out).await,
            Command::Delete(args) => delete::run(args, out).await,
            Command::Skew(args) => skew::run(args, out).await,
            Command::Inspect(args) => inspect::run(args, out).await,
            Command::Compact(args) => compact::run(args, out).await,
            Command::Clean(args) => clean::run(args, out).await,
            Command::Check(args) => check::run(args, out).await,
            Command::Alter(args) => alter::run(args, out).await,
            Command::Export(args) => export::run(args, out).await,
            Command::Repartition(args) => repartition::run(args, out).await,
            Command::Ddl(args) => ddl::run(args, out).await,
            Command::Bench(args) => bench::run(*args, out).await,
            Command::Place(args) => place::run(&args, out),
            Command::Lint(args) => lint::run(args, out).await,
            Command::Capacity(args) => capacity::run(*args, out).await,
            Command::Spanner(args) => spanner::run(args, out).await,
            Command::Completions(args) => completions::run(&args, out),
            Command::Man(args) => man::run(&args, out),
            #[cfg(feature = "serve")]
            Command::Serve(args) => serve::run(*args, out).await,
            #[cfg(feature = "cluster")]
            Command::Cluster(args) => cluster::run(args, out).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::path::PathBuf;

    use super::*;

    /// Collects the arguments that accept any path, including URLs of stores.
    fn open_to_urls(command: &clap::Command, names: &mut Vec<String>) {
        let is_path = |arg: &&clap::Arg| arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        let name = |arg: &clap::Arg| match arg.is_positional() {
            true => arg.get_id().to_string().to_uppercase(),
            false => format!("--{}", arg.get_id()),
        };
        names.extend(command.get_arguments().filter(is_path).map(name));
        command.get_subcommands().for_each(|command| open_to_urls(command, names));
    }

    #[test]
    fn the_help_lists_every_command_once() {
        let mut listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, commands)| *commands).map(|(name, _)| *name).collect();
        listed.retain(|name| *name != "help");
        listed.sort_unstable();
        let command = Cli::command();
        let mut commands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        commands.sort_unstable();
        assert_eq!(listed, commands);
        assert!(help_template().lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn options_that_are_not_served_from_stores_take_local_paths() {
        let mut names = Vec::new();
        open_to_urls(&Cli::command(), &mut names);
        names.sort();
        names.dedup();
        assert_eq!(names, ["--like", "--to", "DIR"]);
    }
}
