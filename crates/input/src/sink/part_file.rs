//! A file that gets its name when it is complete.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A file under way, named `<name>.part` until [`PartFile::publish`]. Dropped before that, it is removed.
#[derive(Debug)]
pub struct PartFile {
    file: File,
    part: PathBuf,
    path: PathBuf,
    published: bool,
}

impl PartFile {
    /// Begins the file `path`; what a killed program left of it is written over.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        Ok(Self { file: File::create(&part)?, part, path: path.to_owned(), published: false })
    }

    /// Where to write.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, in the place of one that has it.
    ///
    /// # Errors
    /// Where it cannot be renamed.
    pub fn publish(mut self) -> io::Result<()> {
        std::fs::rename(&self.part, &self.path)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.published {
            // Nobody waits for the file any more; if it cannot be removed it keeps its .part name.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}
