//! Storage of a table: a prefix of an object store, with the durable put-if-absent that commits
//! need.

#[cfg(feature = "cloud")]
mod credentials;
mod disk;
mod durable;
mod error;
mod io;
#[cfg(feature = "cloud")]
mod no_credentials;
mod page_cache;
mod place;
#[cfg(feature = "cloud")]
mod profile;
#[cfg(feature = "cloud")]
mod remote;
mod table_storage;

pub use crate::disk::{Disk, SystemDisk};
pub use crate::error::{StorageError, brief};
pub use crate::io::{handle, wait_for};
pub use crate::place::{Place, remote_store};
pub use crate::table_storage::{StoredFile, TableStorage, is_table};
