//! The `evenkeel` command.

mod cli;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Output};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !evenkeel::source::panics_are_caught() {
            tell(panic);
        }
    }));
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::Failure::from(error).report(),
    };
    match runtime.block_on(cli.run(&mut Output::new())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
