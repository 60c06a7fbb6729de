//! Files that get their name once they are complete.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// An unfinished file, named `<name>.part` until [`PartFile::publish`]. If it is dropped before
/// that, it is removed.
#[derive(Debug)]
pub struct PartFile {
    file: File,
    part: PathBuf,
    path: PathBuf,
    published: bool,
}

impl PartFile {
    /// Starts the file `path`, overwriting the remains of a killed program.
    ///
    /// # Errors
    /// [`io::Error`] if the file cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        Ok(Self { file: File::create(&part)?, part, path: path.to_owned(), published: false })
    }

    /// Returns the file to write to.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its final name, replacing any file of that name.
    ///
    /// # Errors
    /// [`io::Error`] if the file cannot be renamed.
    pub fn publish(mut self) -> io::Result<()> {
        std::fs::rename(&self.part, &self.path)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.published {
            // The file is no longer needed; if it cannot be removed, it keeps its .part name.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}
