//! Allocator of the program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::cli::limits::remove_spilled;
use evenkeel::query::{AfterFailedAllocation, report_failed_allocation};
use evenkeel::units::ByteSize;

/// Time that a command may take to clean up after Ctrl-C, or for lack of memory.
pub(super) const TIME_TO_CLEAN_UP: Duration = Duration::from_secs(20);

/// Setup of the allocator of glibc.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[derive(Debug)]
struct Glibc {
    /// Number of separate heaps. By default there are eight per core, and memory freed in one is
    /// not reused by another: the process would take a multiple of the memory it needs.
    arenas: usize,
    /// Freed memory that is kept for reuse, in bytes. By default large pieces are returned at once,
    /// and the system has to clear each page of the next ones.
    kept: i32,
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
impl Glibc {
    /// Largest threshold, in bytes, that glibc before 2.35 accepts for getting a piece directly
    /// from the system.
    const LARGEST_PIECE: i32 = 32 << 20;

    /// Returns the setup for a command that may take this much memory. With as many arenas as
    /// cores, two busy threads often get the same, because others have one, too, and wait for each
    /// other at every allocation; but what each arena keeps is much for a command that may take
    /// little.
    fn new(memory: Option<ByteSize>, cores: usize) -> Self {
        let is_below = |limit| memory.is_some_and(|memory| memory < ByteSize::mib(limit));
        let arenas = match () {
            () if is_below(256) => 1,
            () if is_below(512) => cores,
            () => cores.saturating_add(2),
        };
        Self { arenas, kept: if is_below(512) { 1 << 20 } else { 128 << 20 } }
    }
}

/// Sets up the allocator for a command that may take this much memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn set_up_allocator(memory: Option<ByteSize>) {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let Glibc { arenas, kept } = Glibc::new(memory, cores);
    // SAFETY: mallopt takes two numbers, keeps them, and is called before any other thread exists.
    #[expect(unsafe_code, reason = "the standard library has no way to set up the allocator")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, i32::try_from(arenas).unwrap_or(i32::MAX));
        if libc::mallopt(libc::M_MMAP_THRESHOLD, kept) == 0 {
            libc::mallopt(libc::M_MMAP_THRESHOLD, Glibc::LARGEST_PIECE);
        }
        libc::mallopt(libc::M_TRIM_THRESHOLD, kept);
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn set_up_allocator(_memory: Option<ByteSize>) {}

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
        AfterFailedAllocation::WaitForEnd => {
            // The watch ends the query, and then the program, within this time, unless the machine
            // was suspended meanwhile.
            std::thread::sleep(TIME_TO_CLEAN_UP);
            static ENDS: AtomicBool = AtomicBool::new(false);
            // Allocations that fail during the removal end the program without another one.
            if !ENDS.swap(true, Ordering::Relaxed) {
                remove_spilled();
            }
        }
        AfterFailedAllocation::StopThread => loop {
            std::thread::park();
        },
    }
    let _ = writeln!(std::io::stderr(), "error: out of memory: an allocation of {bytes} bytes failed");
    std::process::exit(1)
}
