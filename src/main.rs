//! The `evenkeel` command.

mod cli;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use evenkeel::bounded::{MESSAGE_CHARS, message};

use crate::cli::{Cli, Failure, INTERRUPTED, Interrupt, Output};

/// How long a command may take to clean up after Ctrl-C.
const TIME_TO_CLEAN_UP: Duration = Duration::from_secs(20);

/// Freed memory that the allocator keeps for what comes next, in bytes. By default it gives large pieces back at once, and the system
/// clears each page of the next ones.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_MEMORY: i32 = 128 << 20;

/// The most that glibc before 2.35 takes as the size from which on a piece comes from the system, in bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_PIECE: i32 = 32 << 20;

/// Lets the allocator make no more arenas than there are cores. It makes eight for each by default, and memory that one arena has
/// freed is not used by another: the process would take a multiple of what it needs.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn limit_arenas() {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let arenas = i32::try_from(cores).unwrap_or(i32::MAX);
    // SAFETY: mallopt takes two numbers, keeps them, and is called before any other thread exists.
    #[expect(unsafe_code, reason = "the standard library has no way to set up the allocator")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, arenas);
        if libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_MEMORY) == 0 {
            libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_PIECE);
        }
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_MEMORY);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn limit_arenas() {}

fn main() -> ExitCode {
    limit_arenas();
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !evenkeel::source::panics_are_caught() {
            tell(panic);
        }
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(),
    };
    let ended = runtime.block_on(run_until_interrupted(cli));
    // Work in the background that nobody waits for must not hold the program up.
    runtime.shutdown_background();
    match ended {
        None => ExitCode::from(INTERRUPTED),
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(failure)) => failure.report(),
    }
}

/// Prints what is wrong with the arguments, or the help. A line that quotes a long argument is cut.
fn refused(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let is_long = |line: &str| line.chars().count() > MESSAGE_CHARS;
    // A reader that has seen enough, as head has, is no failure.
    let _ = if error.use_stderr() && text.lines().any(is_long) {
        let lines: Vec<String> = text.lines().map(message).collect();
        writeln!(std::io::stderr(), "{}", lines.join("\n"))
    } else {
        error.print()
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Runs the command. Ctrl-C ends it: a command that cleans up by itself gets time to do so, any other is dropped, and what
/// it holds, such as a temporary directory, with it. None where it was dropped.
async fn run_until_interrupted(cli: Cli) -> Option<Result<(), Failure>> {
    let interrupt = Arc::new(Interrupt::default());
    let mut output = Output::new(Arc::clone(&interrupt));
    let mut run = std::pin::pin!(cli.run(&mut output));
    let pressed = async {
        // Where signals cannot be heard, Ctrl-C ends the program as it does any other.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = &mut run => return Some(ended),
        () = pressed => {}
    }
    if !interrupt.press() {
        return None;
    }
    tokio::select! {
        ended = tokio::time::timeout(TIME_TO_CLEAN_UP, run) => ended.ok(),
        // Pressed again: at once.
        _ = tokio::signal::ctrl_c() => None,
    }
}
