//! The `evenkeel` command.

mod cli;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::bounded::{MESSAGE_CHARS, message};

use crate::cli::{Cli, Failure, INTERRUPTED, Interrupt, Output};

/// Time that a command may take to clean up after Ctrl-C.
const TIME_TO_CLEAN_UP: Duration = Duration::from_secs(20);

/// Time that any other command may take to stop.
const TIME_TO_STOP: Duration = Duration::from_secs(2);

/// Stack size of a thread, in bytes: expressions are evaluated recursively, as deep as the limits
/// on SQL allow.
const STACK: usize = 16 << 20;

/// Freed memory that the allocator keeps for reuse, in bytes. By default it returns large pieces at
/// once, and the system clears each page of the next ones.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_MEMORY: i32 = 128 << 20;

/// Largest threshold, in bytes, that glibc before 2.35 accepts for getting a piece directly from
/// the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_PIECE: i32 = 32 << 20;

/// Limits the allocator to one arena per core. By default it creates eight per core, and memory
/// freed in one arena is not reused by another: the process would take a multiple of the memory it
/// needs.
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

/// Allocator of the system that also handles a lack of memory: a watched query fails with its
/// limit, and anything else ends with an error message instead of a signal.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: all memory is from the allocator of the system.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of both.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Returns the memory that the system gave; does not return if it gave none.
#[inline]
fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        out_of_memory(bytes);
    }
    memory
}

#[cold]
fn out_of_memory(bytes: usize) -> ! {
    if evenkeel::query::report_failed_allocation(bytes) {
        // The watch ends the query, and then the program, within this time.
        std::thread::sleep(TIME_TO_CLEAN_UP);
    }
    let _ = writeln!(std::io::stderr(), "error: out of memory: an allocation of {bytes} bytes failed");
    std::process::exit(1)
}

fn main() -> ExitCode {
    limit_arenas();
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !evenkeel::source::panics_are_caught() && !evenkeel::query::panics_are_caught() {
            report(panic);
        }
    }));
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    // One thread more than cores: timers and files need a thread that is not busy.
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) + 1;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = match runtime.worker_threads(threads).thread_stack_size(STACK).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::from(error).report(),
    };
    let ended = runtime.block_on(run_until_interrupted(cli));
    // Abandoned background work must not delay the exit.
    runtime.shutdown_background();
    match ended {
        None => {
            cli::remove_spilled();
            ExitCode::from(INTERRUPTED)
        }
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(failure)) => failure.report(),
    }
}

/// Prints the error in the arguments, or the help. A line that quotes a long argument is cut.
fn refused(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let is_long = |line: &str| line.chars().count() > MESSAGE_CHARS;
    // A closed pipe, as left by `head`, is no failure.
    let _ = if error.use_stderr() && text.lines().any(is_long) {
        let lines: Vec<String> = text.lines().map(message).collect();
        writeln!(std::io::stderr(), "{}", lines.join("\n"))
    } else {
        error.print()
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Runs the command until Ctrl-C. A command that cleans up by itself gets time to do so; any other
/// is dropped with everything it holds, such as a temporary directory. Returns `None` if it was
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
            cli::remove_spilled();
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
