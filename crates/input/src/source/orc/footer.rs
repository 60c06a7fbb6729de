//! Check of the types in the footer of an ORC file, which orc-rust follows without one: types
//! within themselves would never end.
//!
//! Layout: <https://orc.apache.org/specification/ORCv1/>, "File Tail". The types are a tree in
//! pre-order, so a type follows its parent.

use std::io::Read;

use arrow::error::ArrowError;
use bytes::Bytes;
use orc_rust::compression::{Compression, Decompressor};
use orc_rust::reader::ChunkReader;
use orc_rust::reader::metadata::read_metadata;

/// Maximum depth of nested types.
const MAX_DEPTH: usize = 64;
/// Maximum size of a footer, decompressed.
const MAX_FOOTER_BYTES: u64 = 256 << 20;

/// Maximum number of types.
const MAX_TYPES: usize = 1 << 20;

/// Field of a protobuf message.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// A kind that footers do not have.
    Other,
}

/// Fields of a message of Protocol Buffers, each with its number.
struct Fields<'a>(&'a [u8]);

fn cut() -> ArrowError {
    ArrowError::ParseError("its footer is cut".to_owned())
}

fn damaged(problem: &str) -> ArrowError {
    ArrowError::ParseError(problem.to_owned())
}

impl<'a> Fields<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if *byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Returns the next field; `None` at the end.
    fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, ArrowError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut field = || {
            let tag = self.number()?;
            let value = match tag & 7 {
                0 => Value::Number(self.number()?),
                1 => self.bytes(8).map(|_| Value::Other)?,
                2 => {
                    let count = self.number()?;
                    Value::Bytes(self.bytes(count)?)
                }
                5 => self.bytes(4).map(|_| Value::Other)?,
                _ => return None,
            };
            Some((tag >> 3, value))
        };
        field().map(Some).ok_or_else(cut)
    }
}

/// Checks that the types of a file are a tree of bounded depth.
pub(super) fn check_types<R: ChunkReader>(source: &R) -> Result<(), ArrowError> {
    let length = source.len();
    let last = |end: u64, count: u64| {
        let start = end.checked_sub(count).ok_or_else(cut)?;
        source.get_bytes(start, count).map_err(ArrowError::from)
    };
    let after_footer = length.checked_sub(1).ok_or_else(cut)?;
    let postscript_bytes = last(length, 1)?.first().copied().map(u64::from).ok_or_else(cut)?;
    let postscript = last(after_footer, postscript_bytes)?;
    let (mut footer_bytes, mut kind, mut block) = (0, 0, None);
    let mut fields = Fields(&postscript);
    while let Some(field) = fields.next()? {
        match field {
            (1, Value::Number(bytes)) => footer_bytes = bytes,
            (2, Value::Number(number)) => kind = number,
            (3, Value::Number(bytes)) => block = Some(bytes),
            _ => {}
        }
    }
    let footer = last(after_footer - postscript_bytes, footer_bytes)?;
    let mut content = Vec::new();
    let mut decompressed =
        Decompressor::new(footer, compression(kind, block)?, Vec::new()).take(MAX_FOOTER_BYTES + 1);
    decompressed.read_to_end(&mut content)?;
    if content.len() as u64 > MAX_FOOTER_BYTES {
        return Err(damaged("its footer is larger than 256 MiB"));
    }
    check_tree(&types(&content)?)
}

/// Returns the types within each type.
fn types(footer: &[u8]) -> Result<Vec<Vec<u64>>, ArrowError> {
    let mut types = Vec::new();
    let mut fields = Fields(footer);
    while let Some(field) = fields.next()? {
        let (4, Value::Bytes(of_type)) = field else { continue };
        if types.len() == MAX_TYPES {
            return Err(damaged("it has more than a million types"));
        }
        let (mut of_type, mut within) = (Fields(of_type), Vec::new());
        while let Some(field) = of_type.next()? {
            match field {
                (2, Value::Number(number)) => within.push(number),
                (2, Value::Bytes(packed)) => {
                    let mut packed = Fields(packed);
                    while !packed.0.is_empty() {
                        within.push(packed.number().ok_or_else(cut)?);
                    }
                }
                _ => {}
            }
        }
        types.push(within);
    }
    Ok(types)
}

fn check_tree(types: &[Vec<u64>]) -> Result<(), ArrowError> {
    let mut depths: Vec<Option<usize>> = vec![None; types.len()];
    for (number, within) in types.iter().enumerate() {
        let depth = depths.get(number).copied().flatten().unwrap_or(0) + 1;
        if depth > MAX_DEPTH {
            return Err(damaged(&format!("its types are nested deeper than {MAX_DEPTH}")));
        }
        for inner in within {
            let place = usize::try_from(*inner).ok().filter(|inner| *inner > number);
            let place = place.and_then(|inner| depths.get_mut(inner)).filter(|depth| depth.is_none());
            *place.ok_or_else(|| damaged("its types are no tree"))? = Some(depth);
        }
    }
    Ok(())
}

/// Returns orc-rust's value for a compression. It can only be created from a file, here one without
/// columns.
fn compression(kind: u64, block: Option<u64>) -> Result<Option<Compression>, ArrowError> {
    fn put(number: u64, bytes: &mut Vec<u8>) {
        let mut rest = number;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    // One type: a struct, which has the number 12.
    let mut footer = vec![0x22, 2, 0x08, 12];
    if kind != 0 {
        let stored = (footer.len() as u8) << 1 | 1;
        footer.splice(0..0, [stored, 0, 0]);
    }
    let mut postscript = vec![0x08, footer.len() as u8, 0x10];
    put(kind, &mut postscript);
    if let Some(block) = block {
        postscript.push(0x18);
        put(block, &mut postscript);
    }
    // Length of the metadata.
    postscript.extend([0x28, 0]);
    let length = postscript.len() as u8;
    let mut file = Bytes::from([footer, postscript, vec![length]].concat());
    let metadata = read_metadata(&mut file).map_err(|error| damaged(&error.to_string()))?;
    Ok(metadata.compression())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_a_tree_of_bounded_depth() {
        let ok = |types: &[Vec<u64>]| check_tree(types).is_ok();
        assert!(ok(&[vec![1, 3], vec![2], vec![], vec![]]));
        assert!(!ok(&[vec![0]]), "within itself");
        assert!(!ok(&[vec![1], vec![2], vec![1]]), "a ring");
        assert!(!ok(&[vec![1, 1], vec![]]), "twice, which would double with each level");
        assert!(!ok(&[vec![1, 7], vec![]]), "no such type");
        let chain = |depth: u64| (1..depth).map(|inner| vec![inner]).chain([vec![]]).collect::<Vec<_>>();
        assert!(ok(&chain(64)) && !ok(&chain(65)));
    }

    #[test]
    fn every_compression_is_found() {
        let name =
            |kind| compression(kind, Some(1 << 18)).unwrap().map(|compression| compression.to_string());
        assert_eq!(name(0), None);
        for (kind, expected) in [(1, "ZLIB"), (2, "SNAPPY"), (3, "LZO"), (4, "LZ4"), (5, "ZSTD")] {
            let found = name(kind).unwrap().to_uppercase();
            assert!(found.contains(expected) && found.contains("262144"), "{found}");
        }
    }
}
