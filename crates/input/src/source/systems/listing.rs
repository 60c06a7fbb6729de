//! The files below a folder, in the file system or in an object store.

use std::io::Read;
use std::path::Path;

use crate::source::error::SourceError;
use crate::source::file_name::format_of_name;
use crate::source::input_path::InputPath;
use crate::source::input_path::RemoteFile;
use crate::source::stored::open_decompressed;

/// Maximum size of a file that describes others.
const MAX_DESCRIPTION_BYTES: u64 = 16 << 20;

/// Files below a folder, without hidden ones, sorted by path.
pub(in crate::source) struct Listing {
    /// Name of the folder in messages.
    pub(in crate::source) name: String,
    pub(in crate::source) files: Vec<ListedFile>,
    /// Whether the folder is in an object store, which has no empty folders.
    pub(in crate::source) is_remote: bool,
}

/// A file below a folder.
pub(in crate::source) struct ListedFile {
    /// Path below the folder, with slashes.
    pub(in crate::source) path: String,
    pub(in crate::source) input: InputPath,
}

impl ListedFile {
    /// Returns the folder and the name of the file; the folder is empty at the top.
    pub(in crate::source) fn parts(&self) -> (&str, &str) {
        self.path.rsplit_once('/').unwrap_or(("", &self.path))
    }

    /// Reads a file that describes others.
    pub(in crate::source) fn text(&self) -> Result<String, SourceError> {
        let error = |source| SourceError::Read { file: self.input.name(), source };
        let mut bytes = Vec::new();
        let stream = open_decompressed(&self.input)?;
        stream.take(MAX_DESCRIPTION_BYTES + 1).read_to_end(&mut bytes).map_err(error)?;
        if bytes.len() as u64 > MAX_DESCRIPTION_BYTES {
            let problem = format!("it has more than {} MiB", MAX_DESCRIPTION_BYTES >> 20);
            return Err(error(std::io::Error::other(problem)));
        }
        String::from_utf8(bytes).map_err(|_| error(std::io::Error::other("it is not text in UTF-8")))
    }
}

impl Listing {
    /// Returns the files with a name in any folder.
    pub(in crate::source) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ListedFile> {
        self.files.iter().filter(move |file| file.parts().1 == name)
    }

    /// Returns the files directly in a folder.
    pub(in crate::source) fn directly_in<'a>(
        &'a self,
        folder: &'a str,
    ) -> impl Iterator<Item = &'a ListedFile> {
        self.files.iter().filter(move |file| file.parts().0 == folder)
    }

    /// Returns the first file whose name meets a condition.
    pub(in crate::source) fn first_named(&self, is: impl Fn(&str) -> bool) -> Option<&ListedFile> {
        self.files.iter().find(|file| is(file.parts().1))
    }

    /// Returns the files of an object store whose names have the ending of a format.
    pub(in crate::source) fn data_files(self) -> Vec<RemoteFile> {
        let file = |file: ListedFile| match file.input {
            InputPath::Remote(remote) if format_of_name(Path::new(&file.path)).is_some() => Some(remote),
            _ => None,
        };
        self.files.into_iter().filter_map(file).collect()
    }
}
