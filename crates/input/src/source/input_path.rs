//! Location of the bytes of one input.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One input to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputPath {
    /// A file.
    File(PathBuf),
    /// A file in an object store.
    Remote(RemoteFile),
    /// Standard input.
    Stdin,
    /// A copy of something that can be read only once, under the name of the original.
    Copy {
        /// Path of the copy.
        path: PathBuf,
        /// Name of the original.
        name: String,
    },
}

impl InputPath {
    /// Returns the name of the input in messages.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Remote(file) => file.url.clone(),
            Self::Stdin => "standard input".to_owned(),
            Self::Copy { name, .. } => name.clone(),
        }
    }

    /// Returns the name of the input without its folder.
    pub(super) fn file_name(&self) -> String {
        let name = self.name();
        name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
    }

    /// Returns the path of the input, whose folders may give columns; `None` for standard input.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Remote(file) => Some(Path::new(&file.url)),
            Self::Stdin | Self::Copy { .. } => None,
        }
    }

    /// Returns the stored size of the input in bytes; 0 if it is not a file.
    pub(super) fn stored_bytes(&self) -> u64 {
        match self {
            Self::File(path) | Self::Copy { path, .. } => {
                std::fs::metadata(path).map_or(0, |metadata| metadata.len())
            }
            Self::Remote(file) => file.bytes,
            Self::Stdin => 0,
        }
    }
    /// Whether the input can be read again.
    pub(super) fn is_regular(&self) -> bool {
        match self {
            Self::File(path) => path.is_file(),
            Self::Remote(_) | Self::Copy { .. } => true,
            Self::Stdin => false,
        }
    }
}

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
