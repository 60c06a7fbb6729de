//! Permissions of files with secrets.

use std::path::Path;

/// Returns the mode of a file if it grants any of the permissions `refused`. A file that is missing
/// is reported when it is read.
#[cfg(unix)]
pub(crate) fn mode_beyond(path: &Path, refused: u32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let mode = std::fs::metadata(path).ok()?.mode() & 0o777;
    (mode & refused != 0).then_some(mode)
}

#[cfg(not(unix))]
pub(crate) fn mode_beyond(_: &Path, _: u32) -> Option<u32> {
    None
}
