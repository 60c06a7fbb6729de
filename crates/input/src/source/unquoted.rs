//! CSV with special rules for quotes, rewritten for a reader of common CSV.
//!
//! - A field in quotes may never be NULL: `""` is empty text, and an empty field without quotes is
//!   NULL, as PostgreSQL and Spanner write them. A reader does not report whether a field had
//!   quotes, so NULL is spelled out for it.
//! - In quotes, a backslash may escape a quote or a backslash, as Cassandra's tools write them. Any
//!   other backslash is literal.

use std::io::{self, Read};

/// Spelling of NULL for the reader. Text has no zero bytes.
pub(super) const NULL: &[u8] = b"\0N";

const CHUNK_BYTES: usize = 1 << 16;

/// Rewrites CSV. Empty lines are kept.
pub(super) struct Requoted<R> {
    inner: R,
    delimiter: u8,
    /// Byte that escapes the next one in quotes.
    escape: Option<u8>,
    /// Texts that mean NULL without quotes.
    nulls: Vec<Vec<u8>>,
    longest: usize,
    place: Place,
    is_line_start: bool,
    /// Bytes of the current field that are held back, because it may be NULL.
    field: Vec<u8>,
    chunk: Vec<u8>,
    out: Vec<u8>,
    /// Number of bytes of `out` that were returned.
    taken: usize,
}

/// The part of a line that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A field that may be NULL.
    Candidate,
    /// Another field without quotes.
    Field,
    Quotes,
    /// After a quote in quotes: another one follows, or the end of the field.
    AfterQuote,
    /// After an escape in quotes.
    Escaped,
}

impl<R: Read> Requoted<R> {
    pub(super) fn new(inner: R, delimiter: u8, nulls: Vec<Vec<u8>>, escape: Option<u8>) -> Self {
        Self {
            inner,
            delimiter,
            escape,
            longest: nulls.iter().map(Vec::len).max().unwrap_or_default(),
            nulls,
            place: Place::Candidate,
            is_line_start: true,
            field: Vec::new(),
            chunk: vec![0; CHUNK_BYTES],
            out: Vec::new(),
            taken: 0,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.out.clear();
        self.taken = 0;
        while self.out.is_empty() {
            let count = self.inner.read(&mut self.chunk)?;
            if count == 0 {
                if self.place == Place::Candidate && !self.is_empty_line() {
                    self.end_field();
                }
                if self.place == Place::Escaped {
                    self.out.extend(self.escape);
                }
                self.place = Place::Field;
                return Ok(());
            }
            let chunk = std::mem::take(&mut self.chunk);
            chunk.iter().take(count).for_each(|byte| self.step(*byte));
            self.chunk = chunk;
        }
        Ok(())
    }

    fn step(&mut self, byte: u8) {
        let ends_line = matches!(byte, b'\n' | b'\r');
        let ends_field = byte == self.delimiter || ends_line;
        match self.place {
            Place::Quotes if Some(byte) == self.escape => {
                self.place = Place::Escaped;
                return;
            }
            Place::Escaped => {
                self.place = Place::Quotes;
                match self.escape {
                    _ if byte == b'"' => self.out.push(b'"'),
                    Some(escape) if byte != escape => self.out.push(escape),
                    _ => {}
                }
            }
            Place::Quotes => {
                if byte == b'"' {
                    self.place = Place::AfterQuote;
                }
            }
            Place::AfterQuote if byte == b'"' => self.place = Place::Quotes,
            Place::Candidate if byte == b'"' && self.field.is_empty() => self.place = Place::Quotes,
            Place::Candidate if !ends_field => {
                self.field.push(byte);
                if self.field.len() > self.longest {
                    self.out.append(&mut self.field);
                    self.place = Place::Field;
                }
                return;
            }
            Place::Candidate | Place::Field | Place::AfterQuote => {
                if ends_field {
                    if self.place == Place::Candidate && !(ends_line && self.is_empty_line()) {
                        self.end_field();
                    }
                    self.place = Place::Candidate;
                    self.is_line_start = ends_line;
                }
            }
        }
        self.out.push(byte);
    }

    fn is_empty_line(&self) -> bool {
        self.is_line_start && self.field.is_empty()
    }

    /// Ends a field that was kept back.
    fn end_field(&mut self) {
        if self.nulls.contains(&self.field) {
            self.out.extend_from_slice(NULL);
            self.field.clear();
        } else {
            self.out.append(&mut self.field);
        }
    }
}

impl<R: Read> Read for Requoted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.out.len() && !buffer.is_empty() {
            self.fill()?;
        }
        let rest = self.out.get(self.taken..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        let (from, to) = (rest.get(..count), buffer.get_mut(..count));
        if let (Some(from), Some(to)) = (from, to) {
            to.copy_from_slice(from);
        }
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> String {
        let mut out = String::new();
        Requoted::new(text.as_bytes(), b',', vec![Vec::new(), b"NA".to_vec()], None)
            .read_to_string(&mut out)
            .unwrap();
        out
    }

    #[test]
    fn only_empty_fields_without_quotes_are_null() {
        for (text, expected) in [
            ("a,b\n1,\n", "a,b\n1,\0N\n"),
            (",\"\",\r\n", "\0N,\"\",\0N\r\n"),
            ("\"a,,b\",\"x\"\"\",", "\"a,,b\",\"x\"\"\",\0N"),
            ("\n\r\n1,2", "\n\r\n1,2"),
            ("\"\n,\n\",,\n", "\"\n,\n\",\0N,\0N\n"),
            ("", ""),
            ("NA,\"NA\",NAN,N\n,NA", "\0N,\"NA\",NAN,N\n\0N,\0N"),
            ("a\"b\",,", "a\"b\",\0N,\0N"),
        ] {
            assert_eq!(spelled(text), expected, "{text:?}");
        }
    }

    #[test]
    fn escapes_in_quotes_become_doubled_quotes() {
        let rewritten = |text: &str| {
            let mut out = String::new();
            Requoted::new(text.as_bytes(), b',', Vec::new(), Some(b'\\')).read_to_string(&mut out).unwrap();
            out
        };
        for (text, expected) in [
            (r#""say \"hi\"",x"#, r#""say ""hi""",x"#),
            (r#""C:\temp\\","a""b""#, r#""C:\temp\","a""b""#),
            (r#"a\b,"c"#, r#"a\b,"c"#),
            (r#""c\"#, r#""c\"#),
        ] {
            assert_eq!(rewritten(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn rows_survive_in_any_chunks(rows in proptest::collection::vec(proptest::collection::vec(
            proptest::option::of("[a\",\n]{0,3}"), 2..4), 0..6)) {
            let field = |value: &Option<String>| match value {
                None => String::new(),
                Some(text) => format!("\"{}\"", text.replace('"', "\"\"")),
            };
            let text: String = rows.iter().map(|row| row.iter().map(field).collect::<Vec<_>>().join(",") + "\n").collect();
            let spelled = spelled(&text);
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(spelled.as_bytes());
            let read: Vec<Vec<Option<String>>> = reader
                .records()
                .map(|record| record.unwrap().iter().map(|text| (text != "\0N").then(|| text.to_owned())).collect())
                .collect();
            proptest::prop_assert_eq!(read, rows);
        }
    }
}
