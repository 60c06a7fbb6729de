//! `evenkeel export`.

mod delta;

use clap::{Args as ClapArgs, Subcommand};

use crate::cli::{Failure, Output};

/// Let other engines read a table in place.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(subcommand)]
    to: To,
}

#[derive(Debug, Subcommand)]
enum To {
    Delta(delta::Args),
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    match args.to {
        To::Delta(args) => delta::run(args, out).await,
    }
}
