//! Standard output for rows.

use std::io::{self, Stdout, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Standard output that remembers that its reader closed it; formats hide this in their own errors.
pub(crate) struct Pipe {
    pub(crate) out: Stdout,
    pub(crate) closed: Arc<AtomicBool>,
}

impl Pipe {
    fn remember<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            self.closed.fetch_or(error.kind() == io::ErrorKind::BrokenPipe, Ordering::Relaxed);
        })
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.out.write(bytes);
        self.remember(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.out.flush();
        self.remember(result)
    }
}
