//! A local file system whose writes survive a crash of the machine.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path as FsPath, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};

use crate::disk::{Disk, SystemDisk};
use crate::page_cache::CachedFile;

/// [`LocalFileSystem`] whose puts are atomic and on disk when they return: each is written to a
/// staging file, synced, then linked (put-if-absent) or renamed (overwrite) to its name, and the
/// directory is synced. Staging files are named `.staging-<uuid>`; one that is left over from a
/// crash is not part of any table.
///
/// A directory may have been created by a writer that died before its name was synced. Each store
/// therefore syncs the directories above the one it writes to, up to its root, on its first write
/// there, whoever created them.
#[derive(Debug)]
pub(crate) struct DurableLocal {
    inner: LocalFileSystem,
    root: PathBuf,
    disk: Arc<dyn Disk>,
    lasting: Arc<DurableDirectories>,
    /// Whether the file system cannot report which bytes are in memory.
    cannot_tell: AtomicBool,
}

/// Directories known to be durable: their names, and the names of all directories above them up to
/// the root, are on disk. Directories of a store are never removed.
#[derive(Debug, Default)]
struct DurableDirectories(Mutex<HashSet<PathBuf>>);

impl DurableDirectories {
    /// Syncs the names of `directory` and of all directories above it up to `root`. `made` is true
    /// if the directory was just created.
    fn ensure(&self, disk: &dyn Disk, directory: &FsPath, root: &FsPath, made: bool) -> io::Result<()> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if directory == root || known().contains(directory) {
            return Ok(());
        }
        let Some(parent) = directory.parent().filter(|parent| parent.starts_with(root)) else {
            return Ok(());
        };
        self.ensure(disk, parent, root, made)?;
        // One sync covers all names that existed before it: a table with many partitions needs only
        // one.
        let mut names = vec![directory.to_owned()];
        if !made {
            let is_directory = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
            let there = std::fs::read_dir(parent)?.filter_map(Result::ok).filter(is_directory);
            names.extend(there.map(|entry| entry.path()));
        }
        disk.sync_directory(parent)?;
        known().extend(names);
        Ok(())
    }
}

impl DurableLocal {
    /// Opens the store of everything below `root`, an existing directory.
    ///
    /// # Errors
    /// Fails if the directory does not exist.
    pub(crate) fn new(root: &FsPath) -> Result<Self> {
        Self::on(root, Arc::new(SystemDisk))
    }

    /// Opens the store with writes and deletes going through `disk`.
    ///
    /// # Errors
    /// As for [`DurableLocal::new`].
    pub(crate) fn on(root: &FsPath, disk: Arc<dyn Disk>) -> Result<Self> {
        let inner = LocalFileSystem::new_with_prefix(root)?;
        Ok(Self {
            inner,
            root: root.to_owned(),
            disk,
            lasting: Arc::default(),
            cannot_tell: AtomicBool::new(false),
        })
    }
}

impl DurableLocal {
    /// Returns ranges of a file that are in memory; `None` if the file has to be read.
    fn ranges_in_memory(&self, location: &Path, ranges: &[Range<u64>]) -> Option<Vec<Bytes>> {
        self.read_in_memory(location, ranges).map(|(_, bytes)| bytes)
    }

    fn read_in_memory(&self, location: &Path, ranges: &[Range<u64>]) -> Option<(CachedFile, Vec<Bytes>)> {
        if self.cannot_tell.load(Ordering::Relaxed) {
            return None;
        }
        let bytes = ranges.iter().map(|range| range.end.saturating_sub(range.start));
        let path = self.inner.path_to_filesystem(location).ok()?;
        let file = CachedFile::open(&path, bytes.fold(0, u64::saturating_add))?;
        let parts: io::Result<Option<Vec<Bytes>>> = ranges.iter().map(|range| file.read(range)).collect();
        match parts {
            Ok(parts) => Some((file, parts?)),
            Err(_) => {
                self.cannot_tell.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// Returns one range of a file without further conditions, if it is in memory.
    fn range_in_memory(&self, location: &Path, options: &GetOptions) -> Option<GetResult> {
        let GetOptions {
            if_match: None,
            if_none_match: None,
            if_modified_since: None,
            if_unmodified_since: None,
            range: Some(GetRange::Bounded(range)),
            version: None,
            head: false,
            ..
        } = options
        else {
            return None;
        };
        let (file, mut parts) = self.read_in_memory(location, std::slice::from_ref(range))?;
        let read = parts.pop()?;
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: file.metadata.modified().ok()?.into(),
            size: file.metadata.len(),
            e_tag: None,
            version: None,
        };
        let payload = GetResultPayload::Stream(futures::stream::once(async { Ok(read) }).boxed());
        Some(GetResult { payload, meta, range: range.clone(), attributes: Attributes::default() })
    }

    /// Syncs the names in a directory below the root, and the name of the directory itself, if it
    /// exists.
    pub(super) async fn make_lasting(&self, folder: &str) -> Result<()> {
        let (disk, lasting, root) = (Arc::clone(&self.disk), Arc::clone(&self.lasting), self.root.clone());
        let directory = self.root.join(folder);
        let sync = move || {
            if !directory.is_dir() {
                return Ok(());
            }
            disk.sync_directory(&directory)?;
            lasting.ensure(disk.as_ref(), &directory, &root, false)
        };
        let synced = tokio::task::spawn_blocking(sync).await?;
        synced.map_err(|source| store_error(folder.to_owned(), source))
    }
}

impl fmt::Display for DurableLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root.display())
    }
}

/// Prefix of the names of staging files.
pub(super) const STAGING_PREFIX: &str = ".staging-";

/// Way in which a staged file gets its final name.
#[derive(Clone, Copy)]
enum Publish {
    IfAbsent,
    Replace,
}

/// Writes a file with the guarantees of [`DurableLocal`].
fn write_durably(
    disk: &dyn Disk,
    lasting: &DurableDirectories,
    target: &FsPath,
    root: &FsPath,
    payload: &PutPayload,
    publish: Publish,
) -> io::Result<()> {
    let directory = target.parent().unwrap_or(root);
    let made = !directory.is_dir();
    if made {
        // Otherwise a parent that is not a directory would look as if the file itself existed.
        disk.create_directory(directory).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::new(
                io::ErrorKind::NotADirectory,
                format!("{} is not a directory", directory.display()),
            ),
            _ => error,
        })?;
    }
    let staging = directory.join(format!("{STAGING_PREFIX}{}", uuid::Uuid::new_v4()));
    let staged =
        disk.write(&staging, payload).and_then(|()| disk.sync_file(&staging)).and_then(|()| match publish {
            Publish::IfAbsent => disk.link(&staging, target),
            Publish::Replace => disk.rename(&staging, target),
        });
    if staged.is_err() || matches!(publish, Publish::IfAbsent) {
        // The name is published or the write has failed; either way the staging file is no longer
        // needed. If it cannot be removed, it is a harmless stray file and no reason to report the
        // write as failed.
        let _ = disk.remove(&staging);
    }
    if let Err(error) = &staged
        && error.kind() == io::ErrorKind::AlreadyExists
    {
        // A caller that learns that the file exists may build on it, so it must be durable by then.
        disk.sync_directory(directory)?;
        lasting.ensure(disk, directory, root, made)?;
    }
    staged?;
    disk.sync_directory(directory)?;
    lasting.ensure(disk, directory, root, made)
}

/// Converts an error of the file system to one of a store.
fn store_error(path: String, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: Box::new(source) },
        io::ErrorKind::NotFound => Error::NotFound { path, source: Box::new(source) },
        io::ErrorKind::PermissionDenied => Error::PermissionDenied { path, source: Box::new(source) },
        _ => Error::Generic { store: "local file system", source: Box::new(source) },
    }
}

#[async_trait]
impl ObjectStore for DurableLocal {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let publish = match options.mode {
            PutMode::Create => Publish::IfAbsent,
            PutMode::Overwrite => Publish::Replace,
            PutMode::Update(_) => return self.inner.put_opts(location, payload, options).await,
        };
        let target = self.inner.path_to_filesystem(location)?;
        let root = self.root.clone();
        let path = location.to_string();
        let (disk, lasting) = (Arc::clone(&self.disk), Arc::clone(&self.lasting));
        let write = move || write_durably(disk.as_ref(), &lasting, &target, &root, &payload, publish);
        let written = tokio::task::spawn_blocking(write).await?;
        written.map_err(|source| store_error(path, source))?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match self.range_in_memory(location, &options) {
            Some(result) => Ok(result),
            None => self.inner.get_opts(location, options).await,
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match self.ranges_in_memory(location, ranges) {
            Some(parts) => Ok(parts),
            None => self.inner.get_ranges(location, ranges).await,
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let (disk, root) = (Arc::clone(&self.disk), self.root.clone());
        let delete = move |location: Result<Path>| {
            let (disk, root) = (Arc::clone(&disk), root.clone());
            async move {
                let location = location?;
                let file = location.parts().fold(root, |path, part| path.join(part.as_ref()));
                let removed = tokio::task::spawn_blocking(move || disk.remove(&file)).await?;
                removed.map_err(|source| store_error(location.to_string(), source))?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;

    use super::*;

    #[tokio::test]
    async fn put_if_absent_keeps_the_first_file_and_leaves_no_staging_file() {
        let directory = tempfile::tempdir().unwrap();
        let store = DurableLocal::new(directory.path()).unwrap();
        let path = Path::from("a/b/file");
        let put = |text: &'static str, mode| {
            store.put_opts(&path, PutPayload::from_static(text.as_bytes()), PutOptions::from(mode))
        };
        put("first", PutMode::Create).await.unwrap();
        assert!(matches!(put("second", PutMode::Create).await, Err(Error::AlreadyExists { .. })));
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "first");
        put("third", PutMode::Overwrite).await.unwrap();
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "third");
        let files: Vec<_> = std::fs::read_dir(directory.path().join("a/b")).unwrap().collect();
        assert_eq!(files.len(), 1);
    }

    /// Shows the result of a read: bytes, or the error.
    fn shown(read: Result<Vec<Bytes>>) -> String {
        match read {
            Ok(bytes) => {
                format!("{:?}", bytes.iter().map(|bytes| (bytes.len(), crc(bytes))).collect::<Vec<_>>())
            }
            Err(error) => error.to_string(),
        }
    }

    fn crc(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)))
    }

    #[tokio::test]
    async fn ranges_are_those_of_the_file_however_they_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let store = DurableLocal::new(directory.path()).unwrap();
        let path = Path::from("a/file");
        let bytes: Vec<u8> =
            (0..3_000_000u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let length = bytes.len() as u64;
        store.put(&path, bytes.into()).await.unwrap();
        // The page cache has the bytes just written, but not every file system reports that.
        if let Some(found) = store.ranges_in_memory(&path, std::slice::from_ref(&(5..10))) {
            let expected = store.inner.get_range(&path, 5..10).await.unwrap();
            assert_eq!((found, cfg!(target_os = "linux")), (vec![expected], true));
        }
        assert!(
            store.ranges_in_memory(&path, std::slice::from_ref(&(0..length))).is_none(),
            "too much for this thread"
        );
        let (end, beyond) = (length - 7..length, length - 7..length + 9);
        for range in [
            0..1,
            5..4096,
            70_000..1_000_000,
            0..2_999_999,
            end.clone(),
            beyond.clone(),
            9..9,
            Range { start: 9, end: 3 },
        ] {
            let expected = shown(store.inner.get_range(&path, range.clone()).await.map(|read| vec![read]));
            let found = shown(store.get_range(&path, range.clone()).await.map(|read| vec![read]));
            assert_eq!(found, expected, "{range:?}");
        }
        for ranges in [
            vec![],
            vec![3..9, 1..2, 2_000_000..2_000_100],
            vec![0..900_000; 3],
            vec![end],
            vec![1..2, beyond],
        ] {
            let expected = shown(store.inner.get_ranges(&path, &ranges).await);
            assert_eq!(shown(store.get_ranges(&path, &ranges).await), expected, "{ranges:?}");
        }
        let whole = store.get_opts(&path, GetOptions { head: true, ..GetOptions::default() }).await.unwrap();
        assert_eq!(whole.meta.size, length);
        let meta = store.get_opts(&path, GetOptions::new().with_range(Some(3..4))).await.unwrap().meta;
        assert_eq!((meta.size, meta.last_modified), (length, whole.meta.last_modified));
        let first = Range { start: 0, end: 1 };
        let first = std::slice::from_ref(&first);
        for missing in ["a", "a/none", "none/file"] {
            let path = Path::from(missing);
            let expected = shown(store.inner.get_range(&path, 0..1).await.map(|read| vec![read]));
            assert_eq!(shown(store.get_range(&path, 0..1).await.map(|read| vec![read])), expected);
            let expected = shown(store.inner.get_ranges(&path, first).await);
            assert_eq!(shown(store.get_ranges(&path, first).await), expected);
        }
    }
}
