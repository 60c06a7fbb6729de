//! Inputs in object stores: found by listing, read in ranges.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, coalesce_ranges};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;
use url::Url;

use crate::source::discover::InputPath;
use crate::source::error::SourceError;
use crate::source::stream::{Fingerprint, StreamHash};
use crate::source::systems::{self, Listed, Listing};
use evenkeel_storage::{brief, handle, remote_store, wait_for};

/// Size in bytes of the first request when a file is read from its beginning: often only the first
/// bytes are examined.
const FIRST_CHUNK_BYTES: u64 = 64 << 10;
/// Size in bytes of each later request. The next chunk is fetched while one is used.
const CHUNK_BYTES: u64 = 8 << 20;

/// Number of bytes at the end of a Parquet file that usually contain the whole footer.
const FOOTER_BYTES: usize = 512 << 10;
/// Largest gap in bytes between two ranges that is fetched along with them in one request.
const COALESCED_GAP: u64 = 1 << 20;

/// A file of an object store as it was listed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RemoteFile {
    /// URL of the file, for people.
    pub url: String,
    /// URL of the store.
    pub store: String,
    /// Path in the store, unescaped: characters that a URL would have to escape appear as they are.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Tag that distinguishes this content from later content under the same name, if the store
    /// provides one.
    pub e_tag: Option<String>,
}

/// Files that a URL names.
pub(super) enum Found {
    /// A file, or the files that match a pattern.
    Files(Vec<RemoteFile>),
    /// A folder.
    Folder(Listing),
}

/// Returns what a URL names: a file, all files below a folder, or those that match a pattern,
/// sorted.
pub(super) fn find(argument: &str, url: &Url) -> Result<Found, SourceError> {
    let (store, path) = remote_store(url)?;
    let base = format!("{}://{}", url.scheme(), url.authority());
    let error = |source: io::Error| SourceError::Read { file: argument.to_owned(), source };
    if !argument.contains(['*', '?', '[']) && !path.as_ref().is_empty() && !argument.ends_with('/') {
        let (store, path) = (Arc::clone(&store), path.clone());
        match wait_for(async move { store.head(&path).await }).map_err(error)? {
            Ok(meta) => return Ok(Found::Files(vec![listed_file(&base, &meta)])),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(source) => return Err(error(refused(&source))),
        }
    }
    let (prefix, pattern) =
        pattern_of(&path).map_err(|reason| SourceError::Pattern { pattern: argument.to_owned(), reason })?;
    let listed = list(&store, &prefix).map_err(error)?;
    let Some(pattern) = pattern else {
        return folder(argument, &base, &prefix, &listed).map(Found::Folder);
    };
    let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
    let files = listed.iter().filter(|meta| pattern.matches_with(meta.location.as_ref(), options));
    let files: Vec<RemoteFile> = files.map(|meta| listed_file(&base, meta)).collect();
    if files.is_empty() {
        return Err(SourceError::NoMatch { pattern: argument.to_owned() });
    }
    Ok(Found::Files(files))
}

/// Lists the files in the folder of a file.
///
/// # Errors
/// [`SourceError`] if the store cannot be read.
pub(super) fn beside(input: &InputPath) -> Result<Listing, SourceError> {
    let nothing = Listing { name: input.name(), files: Vec::new(), is_remote: true };
    let InputPath::Remote(file) = input else { return Ok(nothing) };
    let object = RemoteObject::open(file)?;
    let error = |source: io::Error| SourceError::Read { file: file.url.clone(), source };
    let mut parts: Vec<_> = object.path.parts().collect();
    parts.pop();
    let prefix: Path = parts.into_iter().collect();
    let listed = list(&object.store, &prefix).map_err(error)?;
    let listing = folder(&file.url, &file.store, &prefix, &listed)?;
    let files = listing.files.into_iter().filter(|file| !file.path.contains('/')).collect();
    Ok(Listing { files, ..listing })
}

fn list(store: &Arc<dyn ObjectStore>, prefix: &Path) -> io::Result<Vec<ObjectMeta>> {
    let (store, below) = (Arc::clone(store), prefix.clone());
    let listed = wait_for(async move { store.list(Some(&below)).try_collect::<Vec<ObjectMeta>>().await });
    let mut listed = listed?.map_err(|source| refused(&source))?;
    listed.sort_by(|a, b| a.location.cmp(&b.location));
    Ok(listed)
}

fn listed_file(base: &str, meta: &ObjectMeta) -> RemoteFile {
    RemoteFile {
        url: format!("{base}/{}", meta.location),
        store: base.to_owned(),
        path: meta.location.to_string(),
        bytes: meta.size,
        e_tag: meta.e_tag.clone(),
    }
}

/// Returns the files below a folder, without hidden ones.
fn folder(name: &str, base: &str, prefix: &Path, listed: &[ObjectMeta]) -> Result<Listing, SourceError> {
    // The portions of a table also hold superseded rows; only its log knows which rows are visible.
    let has = |folder: &str| {
        let mut below = listed.iter().filter_map(|meta| meta.location.prefix_match(prefix));
        below.any(|mut parts| parts.any(|part| part.as_ref() == folder))
    };
    if has("_log") {
        return Err(SourceError::Table { path: name.to_owned() });
    }
    if let Some(error) = systems::refused_table(name, has) {
        return Err(error);
    }
    let below = |meta: &ObjectMeta| {
        let parts = meta.location.prefix_match(prefix)?;
        Some(parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"))
    };
    let files = listed.iter().filter(|meta| !is_hidden(&meta.location, prefix)).filter_map(|meta| {
        let path = below(meta).filter(|path| !path.is_empty())?;
        Some(Listed { path, input: InputPath::Remote(listed_file(base, meta)) })
    });
    Ok(Listing { name: name.to_owned(), files: files.collect(), is_remote: true })
}

/// Converts an error of a store to an I/O error.
fn refused(error: &object_store::Error) -> io::Error {
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

/// Whether the file, or a folder that contains it, has a hidden name.
fn is_hidden(path: &Path, prefix: &Path) -> bool {
    path.prefix_match(prefix).is_some_and(|mut parts| parts.any(|part| part.as_ref().starts_with(['.', '_'])))
}

/// Returns the part of a path before its first wildcard, which can be listed, and the pattern if
/// there is a wildcard.
fn pattern_of(path: &Path) -> Result<(Path, Option<glob::Pattern>), String> {
    let is_wild = |part: &str| part.contains(['*', '?', '[']);
    if !is_wild(path.as_ref()) {
        return Ok((path.clone(), None));
    }
    let prefix: Path = path.parts().take_while(|part| !is_wild(part.as_ref())).collect();
    let pattern = glob::Pattern::new(path.as_ref()).map_err(|error| error.to_string())?;
    Ok((prefix, Some(pattern)))
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
        let found = self.store.get_opts(&self.path, options).await.map_err(failed)?;
        found.bytes().await.map_err(|error| refused(&error))
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
            let found: io::Result<Vec<Bytes>> = coalesce_ranges(&ranges, read, COALESCED_GAP).await;
            Ok(found?)
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
