//! Reads files, whole or in part.

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::ObjectStoreExt;

use crate::error::StorageError;
use crate::table_storage::TableStorage;

impl TableStorage {
    /// Reads a whole file.
    ///
    /// # Errors
    /// [`StorageError`] if it does not exist or cannot be read.
    pub async fn read(&self, relative: &str) -> Result<Bytes, StorageError> {
        let path = self.path(relative)?;
        let result = self.store.get(&path).await.map_err(|source| self.error("read", relative, source))?;
        result.bytes().await.map_err(|source| self.error("read", relative, source))
    }

    /// Reads the last `bytes` of a file of `size` bytes, at most the whole file.
    ///
    /// # Errors
    /// [`StorageError`] if it does not exist, is shorter, or cannot be read.
    pub async fn read_tail(&self, relative: &str, size: u64, bytes: u64) -> Result<Bytes, StorageError> {
        let path = self.path(relative)?;
        let range = size.saturating_sub(bytes)..size;
        self.store.get_range(&path, range).await.map_err(|source| self.error("read", relative, source))
    }

    /// Reads a whole file piece by piece.
    ///
    /// # Errors
    /// [`StorageError`] if it does not exist or cannot be read.
    pub async fn read_chunks(&self, relative: &str, mut take: impl FnMut(&[u8])) -> Result<(), StorageError> {
        let path = self.path(relative)?;
        let result = self.store.get(&path).await.map_err(|source| self.error("read", relative, source))?;
        let mut chunks = result.into_stream();
        while let Some(chunk) = chunks.try_next().await.map_err(|e| self.error("read", relative, e))? {
            take(&chunk);
        }
        Ok(())
    }

    /// Whether a file exists.
    ///
    /// # Errors
    /// [`StorageError`] if the store fails.
    pub async fn exists(&self, relative: &str) -> Result<bool, StorageError> {
        Ok(self.size(relative).await?.is_some())
    }

    /// Size of a file in bytes; `None` if it does not exist.
    ///
    /// # Errors
    /// [`StorageError`] if the store fails.
    pub async fn size(&self, relative: &str) -> Result<Option<u64>, StorageError> {
        let path = self.path(relative)?;
        match self.store.head(&path).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(self.error("look for", relative, source)),
        }
    }
}
