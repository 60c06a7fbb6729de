//! Bytes of inputs, as they are stored and decompressed, before any format is known.

use std::fs::File;
use std::io::{self, Read};

use crate::source::error::SourceError;
use crate::source::input_path::InputPath;
use crate::source::remote::RemoteObject;
use crate::source::stream::decompress;

/// Number of leading bytes used to recognise a format.
pub(super) const HEAD_BYTES: u64 = 4096;

/// Opens the decompressed content of an input.
pub(super) fn open_decompressed(input: &InputPath) -> Result<Box<dyn Read + Send>, SourceError> {
    decompress(open_stored(input)?)
        .map(|(plain, _)| plain)
        .map_err(|source| SourceError::Read { file: input.name(), source })
}

/// Opens the content of an input as it is stored.
pub(super) fn open_stored(input: &InputPath) -> Result<Box<dyn Read + Send>, SourceError> {
    match input {
        InputPath::Remote(file) => Ok(Box::new(RemoteObject::open(file)?.reader())),
        InputPath::File(path) | InputPath::Copy { path, .. } => File::open(path)
            .map(|file| Box::new(file) as Box<dyn Read + Send>)
            .map_err(|source| SourceError::Read { file: input.name(), source }),
        InputPath::Stdin => Ok(Box::new(io::stdin())),
    }
}
