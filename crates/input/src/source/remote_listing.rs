//! Inputs in object stores, found by listing.

use std::io;
use std::sync::Arc;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use url::Url;

use crate::source::error::SourceError;
use crate::source::input_path::{InputPath, RemoteFile};
use crate::source::remote::{RemoteObject, refused};
use crate::source::systems::{self, ListedFile, Listing};
use evenkeel_storage::{remote_store, wait_for};

/// Files that a URL names.
pub(super) enum RemotePlace {
    /// A file, or the files that match a pattern.
    Files(Vec<RemoteFile>),
    /// A folder.
    Folder(Listing),
}

/// Returns the files named by a URL: one file, all files below a folder, or the files that match a
/// pattern, sorted.
pub(super) fn find(argument: &str, url: &Url) -> Result<RemotePlace, SourceError> {
    let (store, path) = remote_store(url)?;
    let base = format!("{}://{}", url.scheme(), url.authority());
    let error = |source: io::Error| SourceError::Read { file: argument.to_owned(), source };
    if !argument.contains(['*', '?', '[']) && !path.as_ref().is_empty() && !argument.ends_with('/') {
        let (store, path) = (Arc::clone(&store), path.clone());
        match wait_for(async move { store.head(&path).await }).map_err(error)? {
            Ok(meta) => return Ok(RemotePlace::Files(vec![listed_file(&base, &meta)])),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(source) => return Err(error(refused(&source))),
        }
    }
    let (prefix, pattern) =
        pattern_of(&path).map_err(|reason| SourceError::Pattern { pattern: argument.to_owned(), reason })?;
    let listed = list(&store, &prefix).map_err(error)?;
    let Some(pattern) = pattern else {
        return folder(argument, &base, &prefix, &listed).map(RemotePlace::Folder);
    };
    let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
    let files = listed.iter().filter(|meta| pattern.matches_with(meta.location.as_ref(), options));
    let files: Vec<RemoteFile> = files.map(|meta| listed_file(&base, meta)).collect();
    if files.is_empty() {
        return Err(SourceError::NoMatch { pattern: argument.to_owned() });
    }
    Ok(RemotePlace::Files(files))
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
        Some(ListedFile { path, input: InputPath::Remote(listed_file(base, meta)) })
    });
    Ok(Listing { name: name.to_owned(), files: files.collect(), is_remote: true })
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
