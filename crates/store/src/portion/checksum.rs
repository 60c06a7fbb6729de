//! Checksum of a portion's file.

use twox_hash::XxHash3_128;

/// Returns the XXH3 checksum of a whole file: 128 bits, seed 0, in hexadecimal.
#[must_use]
pub(super) fn file_checksum(bytes: &[u8]) -> String {
    format!("{:032x}", XxHash3_128::oneshot(bytes))
}

/// Checksum of a file that is read in pieces, see [`file_checksum`].
#[derive(Default)]
pub(crate) struct FileChecksum(XxHash3_128);

impl std::fmt::Debug for FileChecksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FileChecksum")
    }
}

impl FileChecksum {
    /// Adds the next bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// Returns the checksum, in hexadecimal.
    #[must_use]
    pub(crate) fn finish(self) -> String {
        format!("{:032x}", self.0.finish_128())
    }
}
