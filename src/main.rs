//! The `evenkeel` command.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: evenkeel::cli::Allocator = evenkeel::cli::Allocator;

fn main() -> ExitCode {
    ExitCode::from(evenkeel::cli::main(std::env::args_os().collect()))
}
