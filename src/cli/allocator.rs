//! Allocator of the program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel::query::{AfterFailedAllocation, report_failed_allocation};
use evenkeel::units::ByteSize;

/// Time that a command may take to clean up after Ctrl-C, or for lack of memory.
pub(super) const TIME_TO_CLEAN_UP: Duration = Duration::from_secs(20);

/// Freed memory that the allocator keeps for reuse, in bytes. By default it returns large pieces at
/// once, and the system has to clear each page of the next ones.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_MEMORY: i32 = 128 << 20;

/// Largest threshold, in bytes, that glibc before 2.35 accepts for getting a piece directly from
/// the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_PIECE: i32 = 32 << 20;

/// Memory of a command, in bytes, below which it gets fewer arenas.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const SMALL_MEMORY: u64 = 512 << 20;

/// Limits the allocator to one arena per core and two more, or to one per core if the command may
/// take little memory. By default there are eight per core, and memory freed in one arena is not
/// reused by another: the process would take a multiple of the memory it needs. With only one per
/// core, two busy threads often get the same, because others have one, too, and wait for each other
/// at every allocation.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn limit_arenas(memory: Option<ByteSize>) {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let more = if memory.is_some_and(|memory| memory.0 < SMALL_MEMORY) { 0 } else { 2 };
    let arenas = i32::try_from(cores.saturating_add(more)).unwrap_or(i32::MAX);
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
pub(super) fn limit_arenas(_memory: Option<ByteSize>) {}

/// Allocator of the system that also handles a lack of memory in the program: a watched query fails
/// with its limit, and anything else ends with an error message instead of a signal.
#[derive(Debug)]
pub struct Allocator;

/// Whether this process is the program, so that it may be ended.
static IS_PROGRAM: AtomicBool = AtomicBool::new(false);

/// Declares this process to be the program.
pub(super) fn become_program() {
    IS_PROGRAM.store(true, Ordering::Relaxed);
}

/// Whether this process is the program, rather than one that runs commands among other work.
pub(super) fn is_program() -> bool {
    IS_PROGRAM.load(Ordering::Relaxed)
}

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

/// Returns the allocated memory, or aborts.
#[inline]
fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() && is_program() {
        out_of_memory(bytes);
    }
    memory
}

#[cold]
fn out_of_memory(bytes: usize) -> ! {
    match report_failed_allocation(bytes) {
        AfterFailedAllocation::EndProcess => {}
        // The watch ends the query, and then the program, within this time.
        AfterFailedAllocation::WaitForEnd => std::thread::sleep(TIME_TO_CLEAN_UP),
        AfterFailedAllocation::StopThread => loop {
            std::thread::park();
        },
    }
    let _ = writeln!(std::io::stderr(), "error: out of memory: an allocation of {bytes} bytes failed");
    std::process::exit(1)
}
