//! Inputs in object stores: read in ranges.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, coalesce_ranges};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use tokio::task::JoinHandle;
use url::Url;

use crate::source::error::SourceError;
use crate::source::input_path::RemoteFile;
use crate::source::stream::{Fingerprint, StreamHash};
use evenkeel_storage::{brief, handle, remote_store};

/// Size in bytes of the first request when a file is read from its beginning: often only the first
/// bytes are examined.
const FIRST_CHUNK_BYTES: u64 = 64 << 10;
/// Size in bytes of each later request. The next chunk is fetched while one is used.
const CHUNK_BYTES: u64 = 8 << 20;

/// Number of bytes at the end of a Parquet file that usually contain the whole footer.
const FOOTER_BYTES: usize = 512 << 10;
/// Largest gap in bytes between two ranges that is fetched along with them in one request.
const COALESCED_GAP: u64 = 1 << 20;

/// Converts an error of a store to an I/O error.
pub(super) fn refused(error: &object_store::Error) -> io::Error {
    use object_store::Error as Store;
    let kind = match error {
        Store::NotFound { .. } => io::ErrorKind::NotFound,
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        // The file was replaced by another one.
        Store::Precondition { .. } => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, brief(error))
}

/// A file of an object store, ready to read.
#[derive(Debug, Clone)]
pub(super) struct RemoteObject {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) path: Path,
    file: RemoteFile,
}

impl RemoteObject {
    pub(super) fn open(file: &RemoteFile) -> Result<Self, SourceError> {
        let wrong =
            |reason: String| SourceError::Read { file: file.url.clone(), source: io::Error::other(reason) };
        let store = Url::parse(&file.store).map_err(|error| wrong(error.to_string()))?;
        let (store, _) = remote_store(&store)?;
        let path = Path::parse(&file.path).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { store, path, file: file.clone() })
    }

    /// Reads a range. It is an error if the file was replaced since it was listed.
    async fn read(self, range: Range<u64>) -> io::Result<Bytes> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: self.file.e_tag.clone(),
            ..GetOptions::default()
        };
        let failed = |error: object_store::Error| match error {
            object_store::Error::Precondition { .. } => {
                io::Error::other("it was replaced by another file while it was read")
            }
            error => refused(&error),
        };
        let response = self.store.get_opts(&self.path, options).await.map_err(failed)?;
        response.bytes().await.map_err(|error| refused(&error))
    }

    /// Returns a reader from the beginning of the file.
    pub(super) fn reader(self) -> RemoteReader {
        RemoteReader { object: self, next: 0, under_way: None, chunk: Bytes::new() }
    }

    /// Copies the file to a temporary one, and hashes it in the process.
    pub(super) fn copy(self) -> io::Result<(tempfile::NamedTempFile, Fingerprint)> {
        let mut copy = tempfile::NamedTempFile::new()?;
        let mut hash = StreamHash::default();
        let mut reader = self.reader();
        while !reader.fill()?.is_empty() {
            let chunk = std::mem::take(&mut reader.chunk);
            hash.add(&chunk);
            copy.write_all(&chunk)?;
        }
        copy.flush()?;
        Ok((copy, hash.fingerprint()))
    }
}

/// Reads a file from beginning to end; fetches the next chunk while one is used.
pub(super) struct RemoteReader {
    object: RemoteObject,
    next: u64,
    under_way: Option<JoinHandle<io::Result<Bytes>>>,
    chunk: Bytes,
}

impl RemoteReader {
    fn ask(&mut self) -> io::Result<()> {
        let chunk = if self.next == 0 { FIRST_CHUNK_BYTES } else { CHUNK_BYTES };
        let end = (self.next + chunk).min(self.object.file.bytes);
        if self.next < end {
            let read = self.object.clone().read(self.next..end);
            self.next = end;
            self.under_way = Some(handle()?.spawn(read));
        }
        Ok(())
    }

    /// Returns the buffered bytes, fetching more if needed; empty at the end.
    fn fill(&mut self) -> io::Result<&Bytes> {
        if self.chunk.is_empty() {
            if self.under_way.is_none() {
                self.ask()?;
            }
            if let Some(read) = self.under_way.take() {
                if self.next > FIRST_CHUNK_BYTES {
                    self.ask()?;
                }
                self.chunk = futures::executor::block_on(read).map_err(io::Error::other)??;
            }
        }
        Ok(&self.chunk)
    }
}

impl Read for RemoteReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill()?.len().min(buffer.len());
        let part = self.chunk.split_to(count);
        if let Some(target) = buffer.get_mut(..count) {
            target.copy_from_slice(&part);
        }
        Ok(count)
    }
}

impl AsyncFileReader for RemoteObject {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, parquet::errors::Result<Bytes>> {
        let read = self.clone().read(range);
        async move { read.await.map_err(ParquetError::from) }.boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, parquet::errors::Result<Vec<Bytes>>> {
        let object = self.clone();
        let read = move |range: Range<u64>| object.clone().read(range);
        async move {
            let parts: io::Result<Vec<Bytes>> = coalesce_ranges(&ranges, read, COALESCED_GAP).await;
            Ok(parts?)
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, parquet::errors::Result<Arc<ParquetMetaData>>> {
        let bytes = self.file.bytes;
        let options = options.map(|options| options.metadata_options().clone());
        async move {
            let reader = ParquetMetaDataReader::new().with_prefetch_hint(Some(FOOTER_BYTES));
            let reader = reader.with_metadata_options(options);
            Ok(Arc::new(reader.load_and_finish(self, bytes).await?))
        }
        .boxed()
    }
}
