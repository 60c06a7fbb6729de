//! Profiles as files.
//!
//! ```text
//! file     "evenkeel profile " | version: 4 bytes | length of the content: 8 bytes
//!          | zstd frame of the content
//! content  sealed: header as JSON | values of heavy keys | state of the counts
//! ```
//! Numbers are little-endian. What is sealed has a checksum, see [`evenkeel_model::wire`]. The
//! version changes with any change of the content, of the identities of keys, and of their order as
//! bytes.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::profiles::{Header, Profile, ProfileError};
use evenkeel_model::wire::{Wire, WireError, put_bytes, seal, take_bytes, unseal};

const MAGIC: &[u8] = b"evenkeel profile ";
const VERSION: u32 = 1;
/// Maximum size of the uncompressed content of a profile, in bytes.
const MAX_BYTES: u64 = 4 << 30;
const COMPRESSION_LEVEL: i32 = 3;

/// Reads a file as a whole if it begins as profiles do, and else its first bytes only: it may have
/// no end.
fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = fs::File::open(path)?;
    let mut bytes = Vec::new();
    (&mut file).take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
    if bytes == MAGIC {
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

impl Profile {
    /// Reads a profile from a file.
    ///
    /// # Errors
    /// [`ProfileError`] if it cannot be read, is not a profile, or is damaged.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let failed = |source| ProfileError::Read { file: path.to_owned(), source };
        let read = Self::from_bytes(&path.display().to_string(), &bytes_of(path).map_err(failed)?)?;
        // Only the counts of one profile at a time are in memory.
        Ok(Self { state: None, path: Some(path.to_owned()), ..read })
    }

    /// Returns the counts.
    pub(super) fn state(&self) -> Result<Vec<u8>, ProfileError> {
        let changed = || ProfileError::Damaged {
            file: self.name.clone(),
            reason: "it has changed while it was read".to_owned(),
        };
        match (&self.state, &self.path) {
            (Some(state), _) => Ok(state.clone()),
            (None, Some(path)) => {
                let failed = |source| ProfileError::Read { file: path.clone(), source };
                let again = Self::from_bytes(&self.name, &bytes_of(path).map_err(failed)?)?;
                let is_same = again.header.parts == self.header.parts;
                again.state.filter(|_| is_same).ok_or_else(changed)
            }
            (None, None) => Err(changed()),
        }
    }

    /// Checks that a profile can be written to a file: only another profile may be replaced.
    ///
    /// # Errors
    /// [`ProfileError::Occupied`], or [`ProfileError::Read`].
    pub fn check_target(path: &Path) -> Result<(), ProfileError> {
        refuse_other_files(path)
    }

    /// Writes the profile to a file, which is replaced as a whole.
    ///
    /// # Errors
    /// [`ProfileError::Write`], and as for [`Profile::check_target`].
    pub fn write(&self, path: &Path) -> Result<(), ProfileError> {
        let failed = |source| ProfileError::Write { file: path.to_owned(), source };
        let bytes = self.to_bytes().map_err(failed)?;
        refuse_other_files(path)?;
        // Written to a temporary file first, so that a failed write does not replace a profile.
        let mut name = path.as_os_str().to_owned();
        name.push(".tmp");
        let beside = Path::new(&name);
        let written = fs::File::create(beside).and_then(|mut file| {
            file.write_all(&bytes)?;
            if let Ok(replaced) = fs::metadata(path) {
                file.set_permissions(replaced.permissions())?;
            }
            file.sync_all()?;
            fs::rename(beside, path)
        });
        written.map_err(|error| {
            // The original error is more useful than an error of the removal.
            let _ = fs::remove_file(beside);
            failed(error)
        })
    }

    /// Returns the bytes of the file.
    ///
    /// # Errors
    /// An error of the compression.
    pub fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        let header = serde_json::to_vec(&self.header)?;
        let state = self.state().map_err(std::io::Error::other)?;
        let content = seal(|bytes| {
            put_bytes(&header, bytes);
            self.values.put(bytes);
            put_bytes(&state, bytes);
        });
        let length = content.len() as u64;
        if length > MAX_BYTES {
            return Err(std::io::Error::other(
                "it would be larger than 4 GiB; choose a smaller --profile-size",
            ));
        }
        let mut bytes = [MAGIC, &VERSION.to_le_bytes(), &length.to_le_bytes()].concat();
        bytes.extend(zstd::encode_all(content.as_slice(), COMPRESSION_LEVEL)?);
        Ok(bytes)
    }

    /// Reads the bytes of a file; `name` is used in messages.
    ///
    /// # Errors
    /// As for [`Profile::read`].
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, ProfileError> {
        let file = || name.to_owned();
        let left = bytes.strip_prefix(MAGIC).ok_or_else(|| ProfileError::NotProfile { file: file() })?;
        let (version, compressed) =
            left.split_first_chunk().ok_or_else(|| ProfileError::NotProfile { file: file() })?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(ProfileError::Version { file: file(), found: version, known: VERSION });
        }
        let damaged = |reason: &str| ProfileError::Damaged { file: file(), reason: reason.to_owned() };
        let (length, compressed) = compressed.split_first_chunk().ok_or_else(|| damaged("it is cut"))?;
        let most = u64::from_le_bytes(*length);
        if most > MAX_BYTES {
            return Err(damaged("its content is larger than any profile"));
        }
        let mut content = Vec::new();
        let expanded = zstd::Decoder::new(compressed)
            .and_then(|decoder| decoder.take(most + 1).read_to_end(&mut content));
        expanded.map_err(|_| damaged("its compressed content is cut or changed"))?;
        if content.len() as u64 != most {
            return Err(damaged("its content does not have the stated length"));
        }
        let decode = || -> Result<(&[u8], _, &[u8]), WireError> {
            let mut left = unseal(&content)?;
            let header = take_bytes(&mut left)?;
            let values = Wire::take(&mut left)?;
            let state = take_bytes(&mut left)?;
            left.end().map(|()| (header, values, state))
        };
        let (header, values, state) = decode().map_err(|WireError(reason)| damaged(reason))?;
        let header: Header = serde_json::from_slice(header)
            .map_err(|error| damaged(&format!("its header cannot be read: {error}")))?;
        let EvaluateOptions { partition_keys, also_counted, primary_keys, partitioned_by, .. } =
            &header.options;
        let is_whole = header.estimated.len() == partition_keys.len() + also_counted.len()
            && header.repeats.len() == primary_keys.len()
            && partitioned_by.len() == primary_keys.len();
        if !is_whole {
            return Err(damaged("its header does not fit its keys"));
        }
        Ok(Self { name: file(), header, values, state: Some(state.to_vec()), path: None })
    }
}

/// Refuses to replace anything but a profile.
fn refuse_other_files(path: &Path) -> Result<(), ProfileError> {
    let failed = |source| ProfileError::Read { file: path.to_owned(), source };
    let occupied = || ProfileError::Occupied { file: path.to_owned() };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(metadata) if !metadata.is_file() => Err(occupied()),
        Ok(_) => {
            let mut head = Vec::new();
            fs::File::open(path)
                .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut head))
                .map_err(failed)?;
            if head == MAGIC { Ok(()) } else { Err(occupied()) }
        }
    }
}
