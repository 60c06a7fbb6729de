//! Byte streams of inputs: hashing, decompression, buffering.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::MultiGzDecoder;
use twox_hash::xxhash3_128::Hasher;

const READ_BUFFER: usize = 1 << 18;

/// Identity of an input: its content, not its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Size in bytes as stored, before decompression.
    pub bytes: u64,
    /// XXH3 of those bytes with 128 bits and seed 0, in hexadecimal.
    pub xxh3: String,
}

/// A file that can be read repeatedly; deletes itself if it is temporary.
#[derive(Debug)]
pub(super) enum SeekableFile {
    Kept(PathBuf),
    Spooled(tempfile::NamedTempFile),
}

impl SeekableFile {
    pub(super) fn open(&self) -> std::io::Result<std::fs::File> {
        match self {
            Self::Kept(path) => std::fs::File::open(path),
            Self::Spooled(file) => file.reopen(),
        }
    }
}

/// Hash of the bytes read so far.
#[derive(Default)]
pub(super) struct StreamHash {
    hasher: Hasher,
    bytes: u64,
    ended: bool,
}

impl StreamHash {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Returns the fingerprint of everything read; `None` until the end has been reached.
    pub(super) fn fingerprint_at_end(&self) -> Option<Fingerprint> {
        self.ended.then(|| self.fingerprint())
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        Fingerprint { bytes: self.bytes, xxh3: format!("{:032x}", self.hasher.finish_128()) }
    }
}

/// Hashes the bytes that are read through it.
pub(super) struct HashingReader<R> {
    pub(super) inner: R,
    pub(super) hash: Arc<Mutex<StreamHash>>,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let mut hash = self.hash.lock().unwrap_or_else(PoisonError::into_inner);
        hash.add(buffer.get(..count).unwrap_or_default());
        hash.ended |= count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

pub(super) fn fingerprint_file(path: &Path) -> io::Result<Fingerprint> {
    let mut file = File::open(path)?;
    let mut hash = StreamHash::default();
    let mut buffer = vec![0u8; READ_BUFFER];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.fingerprint()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.add(buffer.get(..count).unwrap_or_default());
    }
}

/// Returns the first bytes of a stream, and the whole stream.
pub(super) fn peek(
    mut stream: Box<dyn Read + Send>,
    count: u64,
) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = Vec::new();
    stream.by_ref().take(count).read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(stream);
    Ok((head, Box::new(whole)))
}

/// Removes gzip or zstd compression, recognized by its first bytes; also returns whether there was
/// any.
pub(super) fn decompress(raw: Box<dyn Read + Send>) -> io::Result<(Box<dyn Read + Send>, bool)> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    let (head, whole) = peek(raw, 4)?;
    if head.starts_with(GZIP) {
        return Ok((Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ_BUFFER, whole))), true));
    }
    if head.starts_with(ZSTD) {
        return Ok((Box::new(zstd::stream::read::Decoder::new(whole)?), true));
    }
    Ok((whole, false))
}

/// Copies a stream to a temporary file, because its format is read from its end.
pub(super) fn spool(mut stream: Box<dyn Read + Send>) -> io::Result<SeekableFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    io::copy(&mut stream, &mut file)?;
    file.flush()?;
    Ok(SeekableFile::Spooled(file))
}

/// Reads the rest of a stream, so that all of it has been hashed.
pub(super) fn drain(stream: &mut impl BufRead) -> io::Result<()> {
    loop {
        let count = stream.fill_buf()?.len();
        if count == 0 {
            return Ok(());
        }
        stream.consume(count);
    }
}

pub(super) type TextStream = BufReader<Box<dyn Read + Send>>;

pub(super) fn buffered(stream: Box<dyn Read + Send>) -> TextStream {
    BufReader::with_capacity(READ_BUFFER, stream)
}
