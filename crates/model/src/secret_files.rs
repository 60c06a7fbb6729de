//! Permissions of files with secrets.

use std::path::Path;

/// Permissions of the group to write, and of all others, that a key or a token must not have. The
/// group may read it: managers of certificates share keys in that way.
pub const SHARED_WITH_THE_GROUP: u32 = 0o027;
/// All permissions of the group and of others.
pub const OF_OTHERS: u32 = 0o077;

/// Returns the mode of a file if it grants any of the permissions `refused`. A file that is missing
/// is reported when it is read.
#[cfg(unix)]
#[must_use]
pub fn mode_beyond(path: &Path, refused: u32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let mode = std::fs::metadata(path).ok()?.mode() & 0o777;
    (mode & refused != 0).then_some(mode)
}

/// Returns `None`: there are no modes.
#[cfg(not(unix))]
#[must_use]
pub fn mode_beyond(_: &Path, _: u32) -> Option<u32> {
    None
}
