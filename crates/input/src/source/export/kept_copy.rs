//! Copies of pipes, which can be read again.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Copy of a pipe. It ends with this value.
#[derive(Debug)]
pub(super) enum KeptCopy {
    /// A file without a name, of which nothing is left even if the process is killed.
    Unnamed(File),
    Named(tempfile::NamedTempFile),
}

impl KeptCopy {
    /// Creates an empty copy, and returns the path by which it can be read.
    pub(super) fn create() -> io::Result<(PathBuf, Self)> {
        let named = tempfile::NamedTempFile::new()?;
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let path = PathBuf::from(format!("/proc/self/fd/{}", named.as_file().as_raw_fd()));
            if path.exists() {
                return Ok((path, Self::Unnamed(named.into_file())));
            }
        }
        Ok((named.path().to_path_buf(), Self::Named(named)))
    }

    pub(super) fn file(&mut self) -> &mut File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(file) => file.as_file_mut(),
        }
    }
}
