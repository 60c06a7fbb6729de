//! The container of Avro: a header, and blocks of rows, each with its length and a mark at its end.
//!
//! All of it is checked here, because the decoder of rows treats the end of a damaged file as the
//! end of its rows and does not compare the sync markers.
//! <https://avro.apache.org/docs/1.12.0/specification/#object-container-files>

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use flate2::read::DeflateDecoder;

use crate::source::stream::TextStream;

pub(super) const MAGIC: &[u8] = b"Obj\x01";
/// Maximum size of the metadata in the header.
const MAX_HEADER_BYTES: u64 = 16 << 20;
/// Maximum size of a block, stored and decompressed.
const MAX_BLOCK_BYTES: u64 = 256 << 20;
const MARK_BYTES: usize = 16;

/// Compression of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    None,
    Deflate,
    Snappy,
    Zstandard,
}

/// Blocks of a file, read one after another.
pub(super) struct Blocks {
    stream: TextStream,
    codec: Codec,
    mark: [u8; MARK_BYTES],
    /// Number of blocks that were read.
    count: u64,
}

/// Rows of a block, decompressed.
pub(super) struct Block {
    pub(super) rows: u64,
    pub(super) data: Vec<u8>,
}

impl Blocks {
    /// Reads the header of a file; also returns its schema.
    ///
    /// # Errors
    /// The problem of a header that cannot be read.
    pub(super) fn open(mut stream: TextStream) -> io::Result<(Self, String)> {
        let mut magic = [0; 4];
        stream.read_exact(&mut magic).map_err(cut("the header"))?;
        if magic != MAGIC {
            return Err(damaged("it does not begin with 'Obj' and 1".to_owned()));
        }
        let mut metadata = read_metadata(&mut (&mut stream).take(MAX_HEADER_BYTES))?;
        let mut mark = [0; MARK_BYTES];
        stream.read_exact(&mut mark).map_err(cut("the header"))?;
        let schema = metadata.remove("avro.schema").ok_or_else(|| damaged("it has no schema".to_owned()))?;
        let schema = String::from_utf8(schema).map_err(|_| damaged("its schema is not UTF-8".to_owned()))?;
        let codec = match metadata.get("avro.codec").map(Vec::as_slice) {
            None | Some(b"null") => Codec::None,
            Some(b"deflate") => Codec::Deflate,
            Some(b"snappy") => Codec::Snappy,
            Some(b"zstandard") => Codec::Zstandard,
            Some(other) => {
                return Err(damaged(format!(
                    "its blocks are compressed with {}; write it with deflate, snappy or zstandard",
                    String::from_utf8_lossy(other).escape_debug()
                )));
            }
        };
        Ok((Self { stream, codec, mark, count: 0 }, schema))
    }

    /// Returns the next block; `None` at the end.
    ///
    /// # Errors
    /// The problem of a block that is damaged, or cut off.
    pub(super) fn next(&mut self) -> io::Result<Option<Block>> {
        if self.stream.fill_buf()?.is_empty() {
            return Ok(None);
        }
        self.count += 1;
        let number = self.count;
        self.read_block().map(Some).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => damaged(format!("block {number}: {error}")),
            _ => error,
        })
    }

    fn read_block(&mut self) -> io::Result<Block> {
        let rows = read_long(&mut self.stream)?;
        let rows = u64::try_from(rows).map_err(|_| damaged(format!("invalid number of rows {rows}")))?;
        let bytes = read_long(&mut self.stream)?;
        let bytes = u64::try_from(bytes).map_err(|_| damaged(format!("invalid length {bytes}")))?;
        if bytes > MAX_BLOCK_BYTES {
            let most = MAX_BLOCK_BYTES >> 20;
            return Err(damaged(format!("it has {bytes} bytes; at most {most} MiB are read as one")));
        }
        let mut stored = Vec::new();
        (&mut self.stream).take(bytes).read_to_end(&mut stored)?;
        if (stored.len() as u64) < bytes {
            return Err(damaged("the file ends within it".to_owned()));
        }
        let mut mark = [0; MARK_BYTES];
        self.stream.read_exact(&mut mark).map_err(cut("it"))?;
        if mark != self.mark {
            return Err(damaged("its sync marker differs from the file's".to_owned()));
        }
        let data = self.decompress(stored)?;
        if rows > data.len() as u64 {
            return Err(damaged(format!("it has {rows} rows in {} bytes", data.len())));
        }
        Ok(Block { rows, data })
    }

    fn decompress(&self, stored: Vec<u8>) -> io::Result<Vec<u8>> {
        let broken = |error: &dyn std::fmt::Display| damaged(format!("it cannot be decompressed: {error}"));
        let mut data = Vec::new();
        let mut read = |from: &mut dyn Read| from.take(MAX_BLOCK_BYTES + 1).read_to_end(&mut data);
        match self.codec {
            Codec::None => return Ok(stored),
            Codec::Deflate => read(&mut DeflateDecoder::new(stored.as_slice())),
            Codec::Zstandard => {
                read(&mut zstd::stream::read::Decoder::new(stored.as_slice()).map_err(|e| broken(&e))?)
            }
            Codec::Snappy => {
                let (packed, sum) = stored
                    .split_last_chunk::<4>()
                    .ok_or_else(|| damaged("it is too short for a checksum".to_owned()))?;
                let length = snap::raw::decompress_len(packed).map_err(|error| broken(&error))?;
                if length as u64 > MAX_BLOCK_BYTES {
                    return Err(too_large());
                }
                let data =
                    snap::raw::Decoder::new().decompress_vec(packed).map_err(|error| broken(&error))?;
                if crc32fast::hash(&data) != u32::from_be_bytes(*sum) {
                    return Err(damaged("its checksum is wrong".to_owned()));
                }
                return Ok(data);
            }
        }
        .map_err(|error| broken(&error))?;
        if data.len() as u64 > MAX_BLOCK_BYTES { Err(too_large()) } else { Ok(data) }
    }
}

fn damaged(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

fn too_large() -> io::Error {
    damaged(format!("it has more than {} MiB decompressed", MAX_BLOCK_BYTES >> 20))
}

/// Describes an end of the file within a part of it.
fn cut(part: &'static str) -> impl Fn(io::Error) -> io::Error {
    move |error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(format!("the file ends within {part}")),
        _ => error,
    }
}

/// Reads a number of variable length, seven bits per byte, with the sign in its lowest bit.
fn read_long(stream: &mut impl Read) -> io::Result<i64> {
    let mut value = 0u64;
    for position in 0..10 {
        let mut byte = [0];
        stream.read_exact(&mut byte).map_err(cut("a number"))?;
        let [byte] = byte;
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte < 0x80 {
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err(damaged("a number has more than ten bytes".to_owned()))
}

/// Reads the metadata of the header: blocks of keys and values, the last one empty.
fn read_metadata(stream: &mut impl Read) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let mut metadata = BTreeMap::new();
    loop {
        let count = read_long(stream)?;
        if count == 0 {
            return Ok(metadata);
        }
        if count < 0 {
            // The size of the block in bytes, for readers that skip it.
            let _ = read_long(stream)?;
        }
        for _ in 0..count.unsigned_abs() {
            let key = String::from_utf8_lossy(&read_bytes(stream)?).into_owned();
            let value = read_bytes(stream)?;
            metadata.insert(key, value);
        }
    }
}

fn read_bytes(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = read_long(stream)?;
    let length = u64::try_from(length).map_err(|_| damaged(format!("a text has the length {length}")))?;
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length {
        return Err(damaged("the file ends within the header".to_owned()));
    }
    Ok(bytes)
}

/// Appends a number as [`read_long`] reads it.
pub(super) fn write_long(value: i64, to: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        to.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

/// Returns the header of a file without compression, whose sync marker is all zeros.
pub(super) fn write_header(schema: &str) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    write_long(1, &mut header);
    for text in ["avro.schema", schema] {
        write_long(text.len() as i64, &mut header);
        header.extend_from_slice(text.as_bytes());
    }
    write_long(0, &mut header);
    header.extend_from_slice(&[0; MARK_BYTES]);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn numbers_survive(value: i64) {
            let mut bytes = Vec::new();
            write_long(value, &mut bytes);
            proptest::prop_assert_eq!(read_long(&mut bytes.as_slice()).unwrap(), value);
        }
    }

    #[test]
    fn numbers_are_those_of_the_specification() {
        for (value, bytes) in
            [(0, &[0u8][..]), (-1, &[1]), (1, &[2]), (-64, &[0x7f]), (64, &[0x80, 1]), (-2, &[3])]
        {
            let mut written = Vec::new();
            write_long(value, &mut written);
            assert_eq!(written, bytes, "{value}");
        }
    }
}
