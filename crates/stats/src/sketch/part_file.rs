//! Temporary file with the records of several parts.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

/// Usual limit for the temporary file of a [`KeyCounter`](crate::sketch::KeyCounter): a billion
/// rows.
pub const MAX_BYTES_ON_DISK: u64 = 8 << 30;

/// Error if keys cannot be kept on disk.
#[derive(Debug, Error)]
#[error("cannot write the keys that do not fit in memory to a temporary file: {0}; more --memory may help")]
pub struct SpillError(#[from] io::Error);

/// Range of the file.
#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    bytes: usize,
}

/// Appends bytes to parts, and reads each part as a whole. The file is deleted with the value.
#[derive(Debug)]
pub(super) struct PartFile {
    file: Mutex<File>,
    bytes: u64,
    /// Segments of each part, in the order in which they were written.
    segments: Vec<Vec<Segment>>,
}

impl PartFile {
    pub(super) fn new(parts: usize) -> Result<Self, SpillError> {
        let file = Mutex::new(tempfile::tempfile()?);
        Ok(Self { file, bytes: 0, segments: vec![Vec::new(); parts] })
    }

    /// Number of bytes written.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn append(&mut self, part: usize, bytes: &[u8]) -> Result<(), SpillError> {
        let Some(segments) = self.segments.get_mut(part) else { return Ok(()) };
        if !bytes.is_empty() {
            let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
            // Reading moves the position.
            file.seek(SeekFrom::Start(self.bytes))?;
            file.write_all(bytes)?;
            segments.push(Segment { offset: self.bytes, bytes: bytes.len() });
            self.bytes += bytes.len() as u64;
        }
        Ok(())
    }

    pub(super) fn read(&self, part: usize) -> Result<Vec<u8>, SpillError> {
        let segments = self.segments.get(part).map(Vec::as_slice).unwrap_or_default();
        let mut bytes = vec![0; segments.iter().map(|segment| segment.bytes).sum()];
        let mut left = bytes.as_mut_slice();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        for segment in segments {
            let (here, behind) = left.split_at_mut(segment.bytes);
            file.seek(SeekFrom::Start(segment.offset))?;
            file.read_exact(here)?;
            left = behind;
        }
        Ok(bytes)
    }
}

/// Reads little-endian numbers.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

/// Reads pairs of little-endian numbers.
pub(super) fn pairs(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    words(bytes).step_by(2).zip(words(bytes).skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_as_they_were_written_whatever_the_order() {
        let mut file = PartFile::new(3).unwrap();
        let mut expected = vec![Vec::new(); 3];
        for round in 0..50u8 {
            for (part, expected) in expected.iter_mut().enumerate() {
                let bytes = vec![round; usize::from(round) * part % 7];
                file.append(part, &bytes).unwrap();
                expected.extend(bytes);
                assert_eq!(&file.read(part).unwrap(), expected);
            }
        }
        assert_eq!(file.bytes(), expected.iter().map(Vec::len).sum::<usize>() as u64);
        let written: Vec<u8> = [3u64, u64::MAX].iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(words(&written).collect::<Vec<_>>(), [3, u64::MAX]);
        assert_eq!(pairs(&written.repeat(2)).collect::<Vec<_>>(), [(3, u64::MAX); 2]);
    }
}
