//! Reads that the page cache of the operating system answers at once.
//!
//! A read that may wait for a disk belongs on a thread that may block, and handing it over costs
//! more than copying a few pages. Linux can say whether it would have to wait (`RWF_NOWAIT`).

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

/// Maximum number of bytes to copy on the thread of the caller.
const MAX_BYTES: u64 = 1 << 20;

/// An open file, and known facts about it.
pub(crate) struct CachedFile {
    file: File,
    pub(crate) metadata: Metadata,
}

impl CachedFile {
    /// Opens a file to read `bytes` bytes of it; `None` if that has to be done on a thread that may
    /// block.
    pub(crate) fn open(path: &Path, bytes: u64) -> Option<Self> {
        if bytes > MAX_BYTES {
            return None;
        }
        let file = File::open(path).ok()?;
        let metadata = file.metadata().ok().filter(Metadata::is_file)?;
        Some(Self { file, metadata })
    }

    /// Returns a range of the file; `None` if that is not all in memory, or not in the file, or
    /// empty.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the file system cannot report which bytes are in memory.
    pub(crate) fn read(&self, range: &Range<u64>) -> io::Result<Option<Bytes>> {
        let length = range.end.checked_sub(range.start).and_then(|length| usize::try_from(length).ok());
        let Some(length) = length.filter(|length| *length > 0) else { return Ok(None) };
        let mut bytes = vec![0; length];
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match read_at_once(&self.file, rest, range.start + done as u64) {
                Ok(more) if more > 0 => done += more,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(error),
                Ok(_) | Err(_) => return Ok(None),
            }
        }
        Ok(Some(bytes.into()))
    }
}

#[cfg(target_os = "linux")]
fn read_at_once(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut buffers = [io::IoSliceMut::new(bytes)];
    Ok(rustix::io::preadv2(file, &mut buffers, offset, rustix::io::ReadWriteFlags::NOWAIT)?)
}

#[cfg(not(target_os = "linux"))]
fn read_at_once(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
