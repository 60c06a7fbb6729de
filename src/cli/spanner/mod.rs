//! `evenkeel spanner`.

mod access_log;
mod ddl;
mod migrate;
mod replay;
mod simulate;

use clap::{Args as ClapArgs, Subcommand};

use crate::cli::{Failure, Output};

/// Model range splits of Spanner on an export, migrate generated keys, and write schemas.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Simulate(Box<simulate::Args>),
    Migrate(Box<migrate::Args>),
    Ddl(ddl::Args),
    AccessLog(access_log::Args),
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    match args.command {
        Command::Simulate(args) => simulate::run(*args, out).await,
        Command::Migrate(args) => migrate::run(*args, out).await,
        Command::Ddl(args) => ddl::run(args, out).await,
        Command::AccessLog(args) => access_log::run(args, out).await,
    }
}
