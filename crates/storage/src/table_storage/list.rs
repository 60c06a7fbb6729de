//! Lists files.

use std::path::PathBuf;

use futures::TryStreamExt;
use object_store::path::Path;

use crate::durable::STAGING_PREFIX;
use crate::error::StorageError;
use crate::table_storage::TableStorage;

/// A file below a table's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Path relative to the table.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last write, in microseconds since 1970 by the store's clock.
    pub modified_micros: i64,
    /// Whether it is a staging file: still being written, or left over from a writer that died.
    pub staging: bool,
}

/// Whether a path denotes a staging file.
fn is_staging(path: &Path) -> bool {
    path.filename().is_some_and(|name| name.starts_with(STAGING_PREFIX))
}

impl TableStorage {
    /// Lists the names of the files directly below `folder`.
    ///
    /// # Errors
    /// [`StorageError`] if the store fails. A folder that does not exist has no files.
    pub async fn list(&self, folder: &str) -> Result<Vec<String>, StorageError> {
        let path = self.path(folder)?;
        if let Some(directory) = &self.directory {
            return self.list_names(folder, directory.join(folder)).await;
        }
        let listed = self.store.list_with_delimiter(Some(&path)).await;
        let listed = listed.map_err(|source| self.error("list", folder, source))?;
        Ok(listed.objects.iter().filter_map(|file| file.location.filename().map(str::to_owned)).collect())
    }

    /// Lists the names in a local directory. The store would also look up the size of each file.
    async fn list_names(&self, folder: &str, directory: PathBuf) -> Result<Vec<String>, StorageError> {
        let names = tokio::task::spawn_blocking(move || {
            let names = std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
            names.filter_map(Result::transpose).collect::<std::io::Result<Vec<String>>>()
        });
        let failed = |source: std::io::Error| {
            let source =
                object_store::Error::Generic { store: "local file system", source: Box::new(source) };
            self.error("list", folder, source)
        };
        match names.await.map_err(|error| failed(std::io::Error::other(error)))? {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            names => names.map_err(failed),
        }
    }

    /// Lists the names of the folders directly below the place, which need not be a table.
    ///
    /// # Errors
    /// [`StorageError`] if the store fails.
    pub async fn list_folders(&self) -> Result<Vec<String>, StorageError> {
        let prefix = (!self.root.as_ref().is_empty()).then_some(&self.root);
        let listed = self.store.list_with_delimiter(prefix).await;
        let listed = listed.map_err(|source| self.error("list", ".", source))?;
        Ok(listed.common_prefixes.iter().filter_map(|folder| folder.filename().map(str::to_owned)).collect())
    }

    /// Lists all files below the table's root.
    ///
    /// # Errors
    /// [`StorageError`] if the store fails.
    pub async fn list_all(&self) -> Result<Vec<StoredFile>, StorageError> {
        let prefix = (!self.root.as_ref().is_empty()).then_some(&self.root);
        let files: Vec<_> =
            self.store.list(prefix).try_collect().await.map_err(|e| self.error("list", ".", e))?;
        let stored = |file: &object_store::ObjectMeta| {
            let parts: Vec<_> =
                file.location.prefix_match(&self.root)?.map(|part| part.as_ref().to_owned()).collect();
            Some(StoredFile {
                path: parts.join("/"),
                bytes: file.size,
                modified_micros: file.last_modified.timestamp_micros(),
                staging: is_staging(&file.location),
            })
        };
        Ok(files.iter().filter_map(stored).collect())
    }

    /// Whether there are no files below the table's root. Staging files are left over from a crash
    /// and do not count.
    ///
    /// # Errors
    /// [`StorageError`] if the store fails.
    pub async fn is_empty(&self) -> Result<bool, StorageError> {
        // One file decides; the place may be an entire home directory.
        let prefix = (!self.root.as_ref().is_empty()).then_some(&self.root);
        let mut files = self.store.list(prefix);
        while let Some(file) = files.try_next().await.map_err(|source| self.error("list", ".", source))? {
            if !is_staging(&file.location) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
