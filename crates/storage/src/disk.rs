//! File-system operations that create, sync and remove files.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use object_store::PutPayload;

/// File-system operations that a durable local store needs. Tests substitute a disk that fails,
/// or that loses whatever was not synced.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Creates a directory and its parents.
    ///
    /// # Errors
    /// Any file-system error.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;

    /// Writes a new file.
    ///
    /// # Errors
    /// Any file-system error; the file may then exist in part.
    fn write(&self, file: &Path, payload: &PutPayload) -> io::Result<()>;

    /// Syncs the content of a file to disk.
    ///
    /// # Errors
    /// Any file-system error.
    fn sync_file(&self, file: &Path) -> io::Result<()>;

    /// Syncs the names in a directory to disk.
    ///
    /// # Errors
    /// Any file-system error.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Links a file under a second name, which must not exist yet.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if the name exists, or any other file-system error.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file, replacing any file that has the new name.
    ///
    /// # Errors
    /// Any file-system error.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// Any file-system error.
    fn remove(&self, file: &Path) -> io::Result<()>;
}

/// The file system of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        std::fs::create_dir_all(directory)
    }

    fn write(&self, file: &Path, payload: &PutPayload) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(file)?;
        payload.iter().try_for_each(|chunk| file.write_all(chunk))
    }

    fn sync_file(&self, file: &Path) -> io::Result<()> {
        // A sync covers the content of the file, whichever handle wrote it.
        File::open(file)?.sync_all()
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        std::fs::remove_file(file)
    }
}
