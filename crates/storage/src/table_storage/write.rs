//! Writes and deletes files; a put never overwrites a file unless its name says so.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use crate::error::StorageError;
use crate::table_storage::TableStorage;

/// Bytes per part of an upload. S3 accepts parts of at least 5 MiB, and at most 10,000 parts per
/// file.
const PART_BYTES: usize = 8 << 20;
/// Parts of one file that are uploaded concurrently.
const PARTS_AT_ONCE: usize = 4;

impl TableStorage {
    /// Writes a new file durably. Returns `Ok(false)` and leaves the file untouched if it already
    /// exists.
    ///
    /// # Errors
    /// [`StorageError`] if the store fails. Whether the file was written is then unknown.
    pub async fn put_new(&self, relative: &str, bytes: Bytes) -> Result<bool, StorageError> {
        let path = self.path(relative)?;
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&path, PutPayload::from(bytes), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(source) => Err(self.error("write", relative, source)),
        }
    }

    /// Writes a new file under a name that nobody else uses, such as a random one. A large file is
    /// uploaded to object stores in parts, and becomes visible once the last part is uploaded: as a
    /// whole or not at all. Returns `Ok(false)` if another file has the name.
    ///
    /// # Errors
    /// [`StorageError`] if the store fails. Whether the file was written is then unknown.
    pub async fn put_unique(&self, relative: &str, bytes: Bytes) -> Result<bool, StorageError> {
        if self.is_local() {
            return self.put_new(relative, bytes).await;
        }
        let size = bytes.len() as u64;
        if bytes.len() > 2 * PART_BYTES {
            return self.put_in_parts(relative, bytes).await.map(|()| true);
        }
        if self.put_new(relative, bytes.clone()).await? {
            return Ok(true);
        }
        // A put that the store retried after a lost response finds the file that it wrote itself.
        Ok(self.size(relative).await? == Some(size) && self.read(relative).await? == bytes)
    }

    async fn put_in_parts(&self, relative: &str, bytes: Bytes) -> Result<(), StorageError> {
        let path = self.path(relative)?;
        let failed = |source| self.error("write", relative, source);
        let mut upload = self.store.put_multipart(&path).await.map_err(failed)?;
        let size = bytes.len() as u64;
        let sent = send_parts(upload.as_mut(), bytes).await;
        if let Err(error) = sent {
            // The last response may have been lost, or belong to a request that the client retried.
            if self.size(relative).await.is_ok_and(|stored| stored == Some(size)) {
                return Ok(());
            }
            // Parts that were sent are billed as storage until the upload is aborted.
            let _ = upload.abort().await;
            return Err(failed(error));
        }
        Ok(())
    }

    /// Writes a file durably, replacing any existing one.
    ///
    /// # Errors
    /// [`StorageError`] if the store fails. Whether the file was written is then unknown.
    pub async fn replace(&self, relative: &str, bytes: Bytes) -> Result<(), StorageError> {
        let path = self.path(relative)?;
        let put =
            self.store.put_opts(&path, PutPayload::from(bytes), PutOptions::from(PutMode::Overwrite)).await;
        put.map(|_| ()).map_err(|source| self.error("write", relative, source))
    }

    /// Deletes a file. Succeeds if it does not exist.
    ///
    /// # Errors
    /// [`StorageError`] if it cannot be deleted.
    pub async fn delete(&self, relative: &str) -> Result<(), StorageError> {
        let path = self.path(relative)?;
        match self.store.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(self.error("delete", relative, source)),
        }
    }

    /// Syncs the names in a folder of the table, including files that another process wrote but did
    /// not sync before it died. Object stores do not need it.
    ///
    /// # Errors
    /// [`StorageError::Store`] if the file system fails.
    pub async fn make_lasting(&self, folder: &str) -> Result<(), StorageError> {
        let Some(durable) = &self.durable else { return Ok(()) };
        let made = durable.make_lasting(folder).await;
        made.map_err(|source| self.error("sync", folder, source))
    }
}

/// Uploads all parts of a file and completes the upload.
async fn send_parts(upload: &mut dyn MultipartUpload, bytes: Bytes) -> object_store::Result<()> {
    let starts: Vec<usize> = (0..bytes.len()).step_by(PART_BYTES).collect();
    let parts = starts.into_iter().map(|start| {
        let part = bytes.slice(start..(start + PART_BYTES).min(bytes.len()));
        upload.put_part(PutPayload::from(part))
    });
    let parts: Vec<_> = parts.collect();
    futures::stream::iter(parts).map(Ok).try_for_each_concurrent(PARTS_AT_ONCE, |part| part).await?;
    upload.complete().await.map(|_| ())
}
