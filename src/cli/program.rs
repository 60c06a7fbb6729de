//! The program: its process, signals and exit code.

use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::bounded::{MESSAGE_CHARS, message};

use crate::cli::allocator::{TIME_TO_CLEAN_UP, become_program, set_up_allocator};
use crate::cli::{Cli, Failure, INTERRUPTED, Interrupt, Output, remove_spilled};

/// Time that any other command may take to stop.
const TIME_TO_STOP: Duration = Duration::from_secs(2);

/// Time that threads get to end before the process does.
const TIME_TO_END: Duration = Duration::from_millis(50);

/// Stack size of a thread, in bytes: expressions are evaluated recursively, as deep as the limits
/// on SQL allow.
pub const STACK: usize = 16 << 20;

/// Creates the threads that commands run on, one more than there are cores: timers and files need a
/// thread that is not busy.
///
/// # Errors
/// [`std::io::Error`] if the system provides no threads.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) + 1;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(threads).thread_stack_size(STACK).enable_all().build()
}

/// Hides the messages of panics that become errors.
pub fn hide_caught_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !evenkeel::source::panics_are_caught() && !evenkeel::query::panics_are_caught() {
            report(panic);
        }
    }));
}

/// Runs the program with the arguments of its process, the first of which is its name, and returns
/// its exit code. To be called once, before other threads start.
// Takes a `Vec`, because a generic function, and with it all commands, would be compiled again in
// each program that calls it.
pub fn main(arguments: Vec<OsString>) -> u8 {
    become_program();
    hide_caught_panics();
    let cli = match Cli::read(arguments) {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    set_up_allocator(cli.memory_for_writing());
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(),
    };
    let ended = runtime.block_on(run_until_interrupted(cli));
    // Threads end before the process does, unless they are busy with work that was abandoned.
    runtime.shutdown_timeout(TIME_TO_END);
    match ended {
        None => {
            remove_spilled();
            INTERRUPTED
        }
        Some(Ok(())) => 0,
        Some(Err(failure)) => failure.report(),
    }
}

/// Prints the error in the arguments, or the help. A line that quotes a long argument is cut.
fn refused(error: &clap::Error) -> u8 {
    let text = error.render().to_string();
    let is_long = |line: &str| line.chars().count() > MESSAGE_CHARS;
    // A closed pipe, as left by `head`, is no failure.
    let _ = if error.use_stderr() && text.lines().any(is_long) {
        let lines: Vec<String> = text.lines().map(message).collect();
        writeln!(std::io::stderr(), "{}", lines.join("\n"))
    } else {
        error.print()
    };
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// Runs the command until Ctrl-C. A command that cleans up by itself gets time to do so; any other
/// is dropped with all that it holds, such as a temporary directory. Returns `None` if it was
/// dropped.
async fn run_until_interrupted(cli: Cli) -> Option<Result<(), Failure>> {
    let interrupt = Arc::new(Interrupt::default());
    let mut output = Output::new(Arc::clone(&interrupt));
    let mut run = std::pin::pin!(cli.run(&mut output));
    let (pressed, heard) = tokio::sync::oneshot::channel();
    let listener = Arc::clone(&interrupt);
    // Runs in a separate thread: all others may be in the middle of work that does not yield, such
    // as a join or opening a pipe without a writer.
    std::thread::spawn(move || {
        // Without a runtime, signals end the program as they would any other.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async move {
            while stop_signal().await == Signal::CtrlC && listener.is_repeated() {
                listener.press();
            }
            let cleans_up = listener.press();
            let _ = pressed.send(cleans_up);
            let to_clean_up = listener.patience().unwrap_or(TIME_TO_CLEAN_UP);
            let patience = if cleans_up { to_clean_up } else { TIME_TO_STOP };
            // A second press ends the program at once.
            let _ = tokio::time::timeout(patience, stop_signal()).await;
            remove_spilled();
            std::process::exit(INTERRUPTED.into());
        });
    });
    tokio::select! {
        ended = &mut run => return Some(ended),
        // Without a thread for signals, this branch is never taken.
        Ok(cleans_up) = heard => if !cleans_up {
            return None;
        },
    }
    Some(run.await)
}

/// A request to stop the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    CtrlC,
    Terminate,
}

/// Completes when the program should stop: on Ctrl-C or, on Unix, on SIGTERM.
async fn stop_signal() -> Signal {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => if pressed.is_ok() { return Signal::CtrlC },
            _ = terminate.recv() => return Signal::Terminate,
        }
    }
    // If signals cannot be received, Ctrl-C ends the program as it would any other.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    Signal::CtrlC
}
