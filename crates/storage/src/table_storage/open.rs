//! Opens the place of a table, or creates it.

use std::path::Path as FsPath;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use url::Url;
use uuid::Uuid;

use crate::disk::{Disk, SystemDisk};
use crate::durable::DurableLocal;
use crate::error::StorageError;
use crate::place::{Place, remote_store};
use crate::table_storage::TableStorage;

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
    /// As for [`TableStorage::open`], and if the directory cannot be created or is within a table.
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
    /// is within a table.
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
        // already, created by a process that died before the name was on disk, and so may its
        // parents.
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
}

/// Whether a directory contains the log of a table.
#[must_use]
pub fn is_table(directory: &FsPath) -> bool {
    let is_commit = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.ok().and_then(|entry| entry.file_name().into_string().ok()).unwrap_or_default();
        name.ends_with(".json") && name.starts_with(|c: char| c.is_ascii_digit())
    };
    std::fs::read_dir(directory.join("_log")).is_ok_and(|mut entries| entries.any(is_commit))
}
