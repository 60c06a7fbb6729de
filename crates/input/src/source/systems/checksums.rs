//! Checksums that other systems write next to their files.

use std::io::{self, Read};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest, Md5};
use sha2::Sha256;

use crate::source::error::SourceError;
use crate::source::input_path::InputPath;
use crate::source::stored::{open_decompressed, open_stored};
use crate::source::systems::listing::ListedFile;

/// The checksum of a file.
pub(in crate::source) enum Checksum {
    /// MD5 of the stored bytes, in Base64.
    Md5(String),
    /// A file that begins with the SHA-256 of the decompressed content, in hexadecimal.
    Sha256In(InputPath),
}

/// Compares the content of files with their checksums; files of an object store are not fetched for
/// that.
///
/// # Errors
/// [`SourceError::Refused`] for a file that differs.
pub(in crate::source) fn check(checksums: &[(InputPath, Checksum)]) -> Result<(), SourceError> {
    for (input, checksum) in checksums.iter().filter(|(input, _)| matches!(input, InputPath::File(_))) {
        let (is_same, kind, place) = match checksum {
            Checksum::Md5(expected) => {
                let actual = digest::<Md5>(input, open_stored(input)?)?;
                (BASE64_STANDARD.encode(actual) == *expected, "MD5", "the manifest".to_owned())
            }
            Checksum::Sha256In(file) => {
                let listed = ListedFile { path: file.name(), input: file.clone() };
                let text = listed.text()?;
                let expected = text.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
                let actual = digest::<Sha256>(input, open_decompressed(input)?)?;
                (hexadecimal(&actual) == expected, "SHA-256", file.name())
            }
        };
        if !is_same {
            return Err(SourceError::Refused {
                file: input.name(),
                problem: format!("its checksum ({kind}) is not the one in {place}"),
                advice: "copy the file again, or export the table again".to_owned(),
            });
        }
    }
    Ok(())
}

fn digest<D: Digest>(input: &InputPath, mut stream: impl Read) -> Result<Vec<u8>, SourceError> {
    let mut digest = D::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(digest.finalize().to_vec()),
            Ok(count) => digest.update(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(SourceError::Read { file: input.name(), source }),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
