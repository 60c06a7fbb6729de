//! Limits for text from outside: files that are read as a whole, and quotations in messages.
//!
//! A file that is parsed in one piece (SQL, DDL, a baseline, credentials) is read by [`read_text`]
//! or [`read_bytes`], which stop one byte past the limit: an endless file such as `/dev/zero` costs
//! no more memory than the limit. Messages quote input with [`quote`] and list names with
//! [`names`], so that they stay on one line of bounded length whatever the input is.

use std::fmt::{self, Write};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Maximum number of characters in a quotation, including the ellipsis.
pub const QUOTED_CHARS: usize = 120;
/// Maximum number of characters in a whole message. Libraries quote as much as they like in their
/// messages; these are cut here at the latest.
pub const MESSAGE_CHARS: usize = 1_000;

/// Maximum number of bytes to read from one kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Kind of file, in the plural.
    pub kind: &'static str,
    /// Maximum size in bytes.
    pub bytes: u64,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            small if small < 1 << 20 => write!(f, "{small} bytes, the limit for {}", self.kind),
            large => write!(f, "{} MiB, the limit for {}", large >> 20, self.kind),
        }
    }
}

/// Limit for SQL and DDL. A parser keeps about 100 bytes per token, and a blank is a token: 4 MiB
/// may cost up to 400 MiB.
pub const SQL: Limit = Limit { kind: "files of SQL", bytes: 4 << 20 };
/// Limit for earlier results to compare new ones with. Parsed JSON takes up to 16 times its size.
pub const BASELINE: Limit = Limit { kind: "baselines", bytes: 16 << 20 };
/// Limit for tokens, certificates, keys and profiles.
pub const CREDENTIALS: Limit = Limit { kind: "files of credentials", bytes: 1 << 20 };

/// Reason why a file was not read as a whole.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum ReadError {
    #[error("{path}: cannot read: {source}", path = quote_path(path))]
    Read { path: PathBuf, source: io::Error },
    #[error("{path}: has more than {limit}; is it the right file? If so, split it", path = quote_path(path))]
    TooLarge { path: PathBuf, limit: Limit },
    #[error("{path}: is not valid UTF-8 from byte {valid} on; convert it, for example with: iconv -f latin1 -t utf-8", path = quote_path(path))]
    NotText { path: PathBuf, valid: usize },
}

impl ReadError {
    /// Whether the file does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// [`ReadError`] if it cannot be read or is larger.
pub fn read_bytes(path: &Path, limit: Limit) -> Result<Vec<u8>, ReadError> {
    let failed = |source| ReadError::Read { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    // The size of a pipe or device is unknown, and the size of a file may change: only reading
    // finds out.
    let mut bytes = Vec::new();
    file.take(limit.bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit.bytes {
        return Err(ReadError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

/// Reads a text file of at most `limit` bytes, without the byte-order mark that some editors
/// prepend.
///
/// # Errors
/// [`ReadError`] if it cannot be read, is larger or is not UTF-8.
pub fn read_text(path: &Path, limit: Limit) -> Result<String, ReadError> {
    let bytes = read_bytes(path, limit)?;
    let text = String::from_utf8(bytes).map_err(|error| ReadError::NotText {
        path: path.to_owned(),
        valid: error.utf8_error().valid_up_to(),
    })?;
    Ok(text.strip_prefix('\u{FEFF}').map(str::to_owned).unwrap_or(text))
}

/// Quotes outside text for a message: on one line, at most [`QUOTED_CHARS`] characters, and without
/// characters that could move the cursor or change the writing direction. The message adds the
/// quotation marks.
#[must_use]
pub fn quote(text: &str) -> Quote<'_> {
    Quote { text, most: QUOTED_CHARS }
}

/// Quotes a path; see [`quote`].
#[must_use]
pub fn quote_path(path: &Path) -> String {
    quote(&path.to_string_lossy()).to_string()
}

/// Quotes bytes that should be text; see [`quote`]. Invalid bytes show as `\u{fffd}`.
#[must_use]
pub(crate) fn quote_bytes(bytes: &[u8]) -> String {
    // A character has at most 4 bytes: this is enough, and avoids copying a value of many
    // megabytes.
    let most = QUOTED_CHARS * 4 + 4;
    let beginning = bytes.get(..most).unwrap_or(bytes);
    quote(&String::from_utf8_lossy(beginning)).to_string()
}

/// Lists names for a message; only the first ones if there are many.
#[must_use]
pub fn names<T: AsRef<str>>(names: &[T]) -> String {
    const LONGEST_LIST: usize = 1_000;
    let mut list = String::new();
    for (at, name) in names.iter().enumerate() {
        let name = quote(name.as_ref()).to_string();
        if at > 0 && list.len() + name.len() > LONGEST_LIST {
            let _ = write!(list, " and {} more", names.len() - at);
            break;
        }
        if at > 0 {
            list.push_str(", ");
        }
        list.push_str(&name);
    }
    list
}

/// Cuts a whole message to at most [`MESSAGE_CHARS`] characters on one line.
#[must_use]
pub fn message(text: &str) -> String {
    Quote { text, most: MESSAGE_CHARS }.to_string()
}

/// Text that is displayed as described at [`quote`].
#[derive(Debug, Clone, Copy)]
pub struct Quote<'a> {
    text: &'a str,
    most: usize,
}

/// Whether a terminal would act on the character instead of showing it.
fn is_unsafe(character: char) -> bool {
    let turns =
        matches!(character, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}' | '\u{FEFF}')
}

impl fmt::Display for Quote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown =
            |character: char| if is_unsafe(character) { character.escape_default().count() } else { 1 };
        // All of it if it fits; otherwise one character less, to leave space for the ellipsis.
        let (mut width, mut characters) = (0, self.text.chars());
        let fits = characters.all(|character| {
            width += shown(character);
            width <= self.most
        });
        let mut left = if fits { self.most } else { self.most.saturating_sub(1) };
        for character in self.text.chars() {
            let Some(rest) = left.checked_sub(shown(character)) else { break };
            left = rest;
            if is_unsafe(character) {
                write!(f, "{}", character.escape_default())?;
            } else {
                f.write_char(character)?;
            }
        }
        if fits { Ok(()) } else { f.write_char('…') }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEN: Limit = Limit { kind: "files of ten", bytes: 10 };

    #[test]
    fn a_file_is_read_up_to_its_limit_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.sql");
        for length in [0, 9, 10] {
            std::fs::write(&file, "x".repeat(length)).unwrap();
            assert_eq!(read_text(&file, TEN).unwrap().len(), length);
        }
        std::fs::write(&file, "x".repeat(11)).unwrap();
        let error = read_text(&file, TEN).unwrap_err().to_string();
        assert!(error.ends_with("x.sql: has more than 10 bytes, the limit for files of ten; is it the right file? If so, split it"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn an_endless_file_is_refused() {
        let error = read_bytes(Path::new("/dev/zero"), TEN).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { limit: TEN, .. }), "{error}");
    }

    #[test]
    fn text_is_utf8_and_loses_its_byte_order_mark() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        std::fs::write(&file, "\u{FEFF}abc").unwrap();
        assert_eq!(read_text(&file, TEN).unwrap(), "abc");
        std::fs::write(&file, b"ab\xE4").unwrap();
        assert!(matches!(read_text(&file, TEN), Err(ReadError::NotText { valid: 2, .. })));
        assert!(read_text(&folder.path().join("none"), TEN).unwrap_err().is_not_found());
        assert!(!read_text(folder.path(), TEN).unwrap_err().is_not_found());
    }

    #[test]
    fn a_quotation_keeps_short_text_and_cuts_long_text() {
        assert_eq!(quote("a'b ü 日").to_string(), "a'b ü 日");
        assert_eq!(quote("a\nb\u{1b}[2J\u{202E}").to_string(), "a\\nb\\u{1b}[2J\\u{202e}");
        for (length, cut) in [(119, false), (120, false), (121, true), (20 << 20, true)] {
            let quoted = quote(&"x".repeat(length)).to_string();
            assert_eq!((quoted.chars().count(), quoted.ends_with('…')), (length.min(QUOTED_CHARS), cut));
        }
        assert!(quote(&"\0".repeat(1000)).to_string().chars().count() <= QUOTED_CHARS);
        assert_eq!(quote_bytes(b"ab\xFF"), "ab\u{FFFD}");
        assert_eq!(quote_bytes(&vec![b'x'; 1 << 20]).chars().count(), QUOTED_CHARS);
    }

    #[test]
    fn many_names_are_counted() {
        assert_eq!(names(&["a", "b"]), "a, b");
        assert_eq!(names::<&str>(&[]), "");
        let many: Vec<String> = (0..10_000).map(|number| format!("column_{number}")).collect();
        let list = names(&many);
        assert!(list.len() < 1_200 && list.starts_with("column_0, column_1, "), "{list}");
        let shown = list.matches("column_").count();
        assert!(list.ends_with(&format!(" and {} more", 10_000 - shown)), "{list}");
    }

    proptest! {
        #[test]
        fn quotations_stay_on_one_line(text in "\\PC{0,200}|[\\x00-\\x20\u{202E}\u{2028}a-c]{0,200}") {
            let quoted = quote(&text).to_string();
            prop_assert!(quoted.chars().count() <= QUOTED_CHARS);
            prop_assert!(!quoted.chars().any(is_unsafe));
            prop_assert_eq!(quote(&quoted).to_string(), quoted, "shown twice, it stays as it is");
        }
    }
}
