//! The files of one table, by paths relative to its root.

mod list;
mod open;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use uuid::Uuid;

pub use list::StoredFile;
pub use open::is_table;

use crate::durable::DurableLocal;
use crate::error::StorageError;

/// The files of one table. Paths are relative to the table's root.
#[derive(Debug, Clone)]
pub struct TableStorage {
    store: Arc<dyn ObjectStore>,
    root: Path,
    name: String,
    id: Uuid,
    /// The table's directory, if it is on a local disk.
    directory: Option<PathBuf>,
    /// The same store as a `DurableLocal`, if it is a local disk.
    durable: Option<Arc<DurableLocal>>,
}

impl TableStorage {
    /// Whether the table is in a directory of this machine, which is cheap to list.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.directory.is_some()
    }

    /// Returns the underlying store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Location of the table for other machines that have the same directories: an absolute path,
    /// or the URL.
    #[must_use]
    pub fn place(&self) -> String {
        self.directory.as_ref().map_or_else(|| self.name.clone(), |directory| directory.display().to_string())
    }

    /// Id that no other storage of this process has, because two stores may have the same name.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Display name of the place: the directory, the URL, or the store and prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the full path in the store for a path relative to the table.
    ///
    /// # Errors
    /// [`StorageError::Path`] if it is not a valid path.
    pub fn path(&self, relative: &str) -> Result<Path, StorageError> {
        let full = if self.root.as_ref().is_empty() {
            relative.to_owned()
        } else {
            format!("{}/{relative}", self.root)
        };
        Path::parse(full).map_err(|source| StorageError::Path {
            table: self.name.clone(),
            path: relative.to_owned(),
            source,
        })
    }

    fn error(&self, action: &'static str, path: &str, source: object_store::Error) -> StorageError {
        StorageError::Store { table: self.name.clone(), action, path: path.to_owned(), source }
    }
}
