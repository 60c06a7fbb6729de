//! The steps by which files come and go on a disk.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use object_store::PutPayload;

/// What [`crate::DurableLocal`] asks of a file system, step by step. Tests put one in its place that fails, or forgets
/// what was not synced.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Makes a directory and those above it.
    ///
    /// # Errors
    /// Those of the file system.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;

    /// Writes a new file.
    ///
    /// # Errors
    /// Those of the file system; the file may then be there in part.
    fn write(&self, file: &Path, payload: &PutPayload) -> io::Result<()>;

    /// Brings the content of a file to the disk.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync_file(&self, file: &Path) -> io::Result<()>;

    /// Brings the names in a directory to the disk.
    ///
    /// # Errors
    /// Those of the file system.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;

    /// Gives a file a second name that nothing has.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] where something has the name, and those of the file system.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file another name, in the place of what has it.
    ///
    /// # Errors
    /// Those of the file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the file system.
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
        // The content belongs to the file, not to the handle that wrote it.
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
