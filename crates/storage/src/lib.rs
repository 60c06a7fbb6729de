//! Storage of a table: a prefix of an object store, with the durable put-if-absent that commits
//! need.

#[cfg(feature = "cloud")]
mod credentials;
mod disk;
mod durable;
mod io;
mod place;
#[cfg(feature = "cloud")]
mod profile;
#[cfg(feature = "cloud")]
mod remote;

use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use thiserror::Error;
use url::Url;
use uuid::Uuid;

pub use crate::disk::{Disk, SystemDisk};
pub use crate::durable::DurableLocal;
pub use crate::io::{handle, wait_for};
pub use crate::place::{Place, remote_store};

/// Bytes per part of an upload. S3 accepts parts of at least 5 MiB, and at most 10,000 parts per
/// file.
const PART_BYTES: usize = 8 << 20;
/// Parts of one file that are uploaded concurrently.
const PARTS_AT_ONCE: usize = 4;

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

/// Whether a path is that of a staging file.
fn is_staging(path: &Path) -> bool {
    path.filename().is_some_and(|name| name.starts_with(durable::STAGING_PREFIX))
}

/// Error while reading or writing a file of a table.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum StorageError {
    #[error("there is no table in {0}: there is no such directory. Declare one with 'evenkeel create {0} ...'", path.display())]
    NoDirectory { path: PathBuf },
    #[error("{url}: this build has no object stores; build it with 'cargo build --release --features cloud'")]
    NoCloud { url: String },
    #[error("{url}: {reason}")]
    Url { url: String, reason: String },
    #[error("{url}: the store cannot be reached with the settings in the environment: {}", brief(source))]
    Client { url: String, source: object_store::Error },
    #[error("there are no credentials of AWS: {reason}")]
    Profile { reason: String },
    #[error("{url}: names a whole bucket; name a prefix in it for the table, such as {url}/events")]
    WholeBucket { url: String },
    #[error("{} is a file; name the directory of a table, which comes before any inputs", path.display())]
    File { path: PathBuf },
    #[error("{} lies within the table {}; choose another place", path.display(), table.display())]
    InsideTable { path: PathBuf, table: PathBuf },
    #[error("cannot use directory {}: {source}", path.display())]
    Directory { path: PathBuf, source: std::io::Error },
    #[error("{table}: '{path}' cannot be used as a path: {source}")]
    Path { table: String, path: String, source: object_store::path::Error },
    #[error("{table}: cannot {action} {path}: {}", brief(source))]
    Store { table: String, action: &'static str, path: String, source: object_store::Error },
}

/// Summarizes an error of a store in one line: the code and message of an XML response, or the text
/// of any other error. If the store was not contacted because there are no credentials, says what
/// to set.
#[must_use]
pub fn brief(error: &object_store::Error) -> String {
    #[cfg(feature = "cloud")]
    if let Some(missing) = credentials::missing(error) {
        return missing;
    }
    let text = error.to_string();
    let between = |open: &str, close: &str| Some(text.split_once(open)?.1.split_once(close)?.0);
    let hint = match between("<Code>", "</Code>") {
        Some("NoSuchBucket") => "; create the bucket first, or check the region and the endpoint",
        Some("AccessDenied" | "InvalidAccessKeyId" | "SignatureDoesNotMatch") => {
            "; check the credentials in the environment"
        }
        _ => "",
    };
    match (between("<Code>", "</Code>"), between("<Message>", "</Message>")) {
        (Some(code), Some(message)) => format!("{code}: {message}{hint}"),
        _ => text.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// Whether a directory contains the log of a table.
fn is_table(directory: &FsPath) -> bool {
    let is_commit = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.ok().and_then(|entry| entry.file_name().into_string().ok()).unwrap_or_default();
        name.ends_with(".json") && name.starts_with(|c: char| c.is_ascii_digit())
    };
    std::fs::read_dir(directory.join("_log")).is_ok_and(|mut entries| entries.any(is_commit))
}

impl StorageError {
    /// Whether the store denied the request, so that nothing was done.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        use object_store::Error::{PermissionDenied, Unauthenticated};
        matches!(self, Self::Store { source: PermissionDenied { .. } | Unauthenticated { .. }, .. })
    }

    /// Whether the error is that a file does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Store { source: object_store::Error::NotFound { .. }, .. })
    }
}

impl TableStorage {
    /// Storage of the table under `prefix` of an object store. For local directories prefer
    /// [`TableStorage::local`], which also syncs to disk.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        let name = format!("{store}/{prefix}");
        Self { store, root: prefix, name, id: Uuid::new_v4(), directory: None, durable: None }
    }

    /// Opens the table at a place: an existing directory, or the URL of a prefix in an object
    /// store.
    ///
    /// # Errors
    /// [`StorageError`] if the directory does not exist, the URL is invalid, or this build cannot
    /// reach it.
    pub fn open(place: &FsPath) -> Result<Self, StorageError> {
        match Place::parse(place)? {
            Place::Local(directory) => Self::local(&directory),
            Place::Remote(url) => Self::remote(&url),
        }
    }

    /// Opens the place of a new table; creates the directory if it does not exist.
    ///
    /// # Errors
    /// As for [`TableStorage::open`], and if the directory cannot be created or lies within a
    /// table.
    pub fn create(place: &FsPath) -> Result<Self, StorageError> {
        match Place::parse(place)? {
            Place::Local(directory) => Self::create_local(&directory),
            Place::Remote(url) => Self::remote(&url),
        }
    }

    /// Opens the table at a URL.
    fn remote(url: &Url) -> Result<Self, StorageError> {
        let (store, root) = remote_store(url)?;
        let name = url.as_str().trim_end_matches('/').to_owned();
        if root.as_ref().is_empty() {
            return Err(StorageError::WholeBucket { url: name });
        }
        Ok(Self { store, root, name, id: Uuid::new_v4(), directory: None, durable: None })
    }

    /// Opens the table in an existing directory.
    ///
    /// # Errors
    /// [`StorageError::NoDirectory`] if it does not exist, [`StorageError::File`] if it is not a
    /// directory, and [`StorageError::Directory`] if it cannot be used.
    pub fn local(directory: &FsPath) -> Result<Self, StorageError> {
        let error = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::NotFound => StorageError::NoDirectory { path: directory.to_owned() },
            _ => StorageError::Directory { path: directory.to_owned(), source },
        };
        let path = directory.canonicalize().map_err(error)?;
        if !path.is_dir() {
            return Err(StorageError::File { path: directory.to_owned() });
        }
        let store = DurableLocal::new(&path).map_err(|source| error(std::io::Error::other(source)))?;
        let store = Arc::new(store);
        let name = directory.display().to_string();
        Ok(Self {
            store: Arc::clone(&store) as _,
            durable: Some(store),
            root: Path::default(),
            name,
            id: Uuid::new_v4(),
            directory: Some(path),
        })
    }

    /// Opens the table in an existing directory, with writes going through `disk`.
    ///
    /// # Errors
    /// As for [`TableStorage::local`].
    pub fn local_on(directory: &FsPath, disk: Arc<dyn Disk>) -> Result<Self, StorageError> {
        let plain = Self::local(directory)?;
        let error = |source: std::io::Error| StorageError::Directory { path: directory.to_owned(), source };
        let root = directory.canonicalize().map_err(error)?;
        let store = DurableLocal::on(&root, disk).map_err(|source| error(std::io::Error::other(source)))?;
        let store = Arc::new(store);
        Ok(Self { store: Arc::clone(&store) as _, durable: Some(store), ..plain })
    }

    /// Opens the place of a table in a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// [`StorageError::Directory`] if it cannot be created, and [`StorageError::InsideTable`] if it
    /// lies within a table.
    pub fn create_local(directory: &FsPath) -> Result<Self, StorageError> {
        Self::create_local_on(directory, Arc::new(SystemDisk))
    }

    /// Like [`TableStorage::create_local`], with writes going through `disk`.
    ///
    /// # Errors
    /// As for [`TableStorage::create_local`].
    pub fn create_local_on(directory: &FsPath, disk: Arc<dyn Disk>) -> Result<Self, StorageError> {
        let error = |source| StorageError::Directory { path: directory.to_owned(), source };
        let absolute = std::path::absolute(directory).map_err(error)?;
        if let Some(table) = absolute.ancestors().skip(1).find(|above| is_table(above)) {
            return Err(StorageError::InsideTable { path: directory.to_owned(), table: table.to_owned() });
        }
        let missing = absolute.ancestors().take_while(|above| !above.exists()).count();
        if !directory.is_dir() {
            disk.create_directory(directory).map_err(error)?;
        }
        // The name of the directory must be as durable as its content. The directory may exist
        // already, created by a process that died before the name was on disk, and so may those
        // above it.
        let path = directory.canonicalize().map_err(error)?;
        for (number, above) in path.ancestors().skip(1).enumerate() {
            let synced = disk.sync_directory(above);
            // Directories that others created long ago may be closed to this user.
            if number < missing.max(1) {
                synced.map_err(error)?;
            }
        }
        Self::local_on(directory, disk)
    }

    /// Syncs the names in a folder of the table, including those of files that another process
    /// wrote but did not sync before it died. Object stores do not need it.
    ///
    /// # Errors
    /// [`StorageError::Store`] if the file system fails.
    pub async fn make_lasting(&self, folder: &str) -> Result<(), StorageError> {
        let Some(durable) = &self.durable else { return Ok(()) };
        let made = durable.make_lasting(folder).await;
        made.map_err(|source| self.error("sync", folder, source))
    }

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
    /// uploaded to object stores in parts, and becomes visible once the last of them is there: as a
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
        if self.put_new(relative, bytes).await? {
            return Ok(true);
        }
        // A put that the store retried after a lost response finds the file that it wrote itself.
        Ok(self.size(relative).await? == Some(size))
    }

    async fn put_in_parts(&self, relative: &str, bytes: Bytes) -> Result<(), StorageError> {
        let path = self.path(relative)?;
        let failed = |source| self.error("write", relative, source);
        let mut upload = self.store.put_multipart(&path).await.map_err(failed)?;
        let size = bytes.len() as u64;
        let sent = send_parts(upload.as_mut(), bytes).await;
        if let Err(error) = sent {
            // The last response may have been lost, or belong to a request that the client retried.
            if self.size(relative).await.is_ok_and(|found| found == Some(size)) {
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
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(self.error("look for", relative, source)),
        }
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

    fn error(&self, action: &'static str, path: &str, source: object_store::Error) -> StorageError {
        StorageError::Store { table: self.name.clone(), action, path: path.to_owned(), source }
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
