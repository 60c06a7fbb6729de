//! Tab-separated text with backslash escapes: COPY of PostgreSQL, TabSeparated of ClickHouse,
//! `--tab` and LOAD DATA of MySQL, OUTFILE of Doris.
//!
//! `\N` is NULL; `\t`, `\n`, `\r`, `\b`, `\f`, `\v` and `\0` are control characters, `\x41` and
//! `\101` bytes; a backslash before anything else means the next byte. A line with `\.` alone ends
//! the rows.

use crate::source::lines::{LineReader, Spelling};

/// Reads tab-separated text with backslash escapes.
pub(super) type EscapedReader = LineReader<EscapedFields>;

/// Spelling of the fields.
pub(super) struct EscapedFields;

impl Spelling for EscapedFields {
    const DELIMITER: u8 = b'\t';
    const BACKSLASHES: bool = true;
    const END: Option<&'static [u8]> = Some(b"\\.");

    fn is_doubtful(field: &[u8]) -> bool {
        let mut rest = field;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
            let escaped = rest.get(at + 1);
            if !escaped.is_none_or(|byte| b"bfnrtvNx\\/'\"\t\n.01234567".contains(byte)) {
                return true;
            }
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        false
    }

    fn decode(field: &[u8], value: &mut Vec<u8>) -> Result<bool, &'static str> {
        if field == b"\\N" {
            return Ok(false);
        }
        let mut rest = field;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
            let (before, escape) = rest.split_at(at);
            value.extend_from_slice(before);
            let (byte, after) = unescape(escape.get(1..).unwrap_or_default());
            value.push(byte);
            rest = after;
        }
        value.extend_from_slice(rest);
        Ok(true)
    }
}

/// Returns the byte that an escape denotes, and the rest of the text; `escape` begins after the
/// backslash.
fn unescape(escape: &[u8]) -> (u8, &[u8]) {
    let Some((first, rest)) = escape.split_first() else { return (b'\\', escape) };
    let byte = match first {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'0'..=b'7' => return digits(escape, 8, 3),
        b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => return digits(rest, 16, 2),
        other => *other,
    };
    (byte, rest)
}

/// Reads up to `most` digits; a value above 255 keeps its low bits, as in PostgreSQL.
fn digits(text: &[u8], radix: u32, most: usize) -> (u8, &[u8]) {
    let (mut value, mut count) = (0, 0);
    for byte in text.iter().take(most) {
        let Some(digit) = char::from(*byte).to_digit(radix) else { break };
        value = value * radix + digit;
        count += 1;
    }
    ((value & 0xff) as u8, text.get(count..).unwrap_or_default())
}

/// Whether the first bytes of a file show tab-separated text with escapes: tabs, no field in
/// quotes, and a NULL, or backslashes that all belong to escapes, some of them to an escaped
/// backslash. (A path of Windows has single backslashes before any letter.)
pub(super) fn is_escaped_text(head: &[u8]) -> bool {
    let fields = || head.split(|byte| matches!(byte, b'\t' | b'\n' | b'\r'));
    let has_escapes = || {
        let mut rest = head;
        let mut has_backslash = false;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
            match rest.get(at + 1) {
                Some(b'\\') => has_backslash = true,
                Some(b'N' | b't' | b'n' | b'r' | b'b' | b'f' | b'0' | b'\'') | None => {}
                Some(_) => return false,
            }
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        has_backslash
    };
    head.contains(&b'\t')
        && !fields().any(|field| matches!(field, [b'"', .., b'"']))
        && (fields().any(|field| field == b"\\N") || has_escapes())
}

/// Whether the first bytes of a file show tab-separated text whose quotes are doubled in quotes, as
/// in CSV. A quote at both ends of a field may be part of the text.
pub(super) fn has_doubled_quotes(head: &[u8]) -> bool {
    head.split(|byte| matches!(byte, b'\t' | b'\n' | b'\r')).any(|field| {
        let [b'"', inner @ .., b'"'] = field else { return false };
        let quotes = inner.chunk_by(|a, b| (*a == b'"') == (*b == b'"')).filter(|run| run.starts_with(b"\""));
        let mut lengths = quotes.map(<[u8]>::len).peekable();
        lengths.peek().is_some() && lengths.all(|length| length % 2 == 0)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow::array::{Array, BinaryArray};

    use super::*;
    use crate::source::options::InputOptions;
    use crate::source::raw::{RawCells, RawReader};

    fn decoded(field: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        EscapedFields::decode(field, &mut value).unwrap().then_some(value)
    }

    #[test]
    fn escapes_are_those_of_postgresql_clickhouse_and_mysql() {
        for (field, value) in [
            (r"plain", &b"plain"[..]),
            ("", b""),
            (r"a\tb\nc\\d", b"a\tb\nc\\d"),
            (r"\b\f\r\v\0", b"\x08\x0c\r\x0b\0"),
            (r"\x41\x4a!\101\1012", b"AJ!AA2"),
            (r#"it\'s \"q\""#, b"it's \"q\""),
            (r"\xzz", b"xzz"),
            (r"\\N", b"\\N"),
            (r"\\x6162", b"\\x6162"),
            (r"a\", b"a\\"),
        ] {
            assert_eq!(decoded(field.as_bytes()).as_deref(), Some(value), "{field}");
        }
        assert_eq!(decoded(br"\N"), None);
    }

    /// Reads all rows, NULL as `None`, with the place of each.
    fn rows(text: &[u8]) -> Vec<(String, Vec<Option<String>>)> {
        let columns = ["id".to_owned(), "t".to_owned()];
        let stream = Box::new(Cursor::new(text.to_vec()));
        let options = InputOptions { batch_rows: 2, ..InputOptions::default() };
        let mut reader = EscapedReader::open_with_header("a.tsv", stream, &columns, &options).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = reader.next_batch().unwrap() {
            assert!(batch.broken.is_empty(), "{:?}", batch.broken);
            let RawCells::Text(cells) = &batch.cells else { panic!() };
            for row in 0..cells[0].1.len() {
                let cell = |(_, cells): &(String, BinaryArray)| {
                    cells.is_valid(row).then(|| String::from_utf8_lossy(cells.value(row)).into_owned())
                };
                rows.push((batch.positions.position(row).to_string(), cells.iter().map(cell).collect()));
            }
        }
        rows
    }

    #[test]
    fn rows_end_at_line_breaks_that_are_not_escaped_and_at_the_end_mark() {
        let some = |text: &str| Some(text.to_owned());
        let text = b"id\tt\n1\ta\\\nb\n2\tx\\\ty\r\n3\t\\N\n\\.\nnot a row\n";
        let expected = vec![
            ("line 2".to_owned(), vec![some("1"), some("a\nb")]),
            ("line 4".to_owned(), vec![some("2"), some("x\ty")]),
            ("line 5".to_owned(), vec![some("3"), None]),
        ];
        assert_eq!(rows(text), expected);
        assert_eq!(rows(b"\xef\xbb\xbfid\tt\n1\t").len(), 1);
        assert!(rows(b"id\tt\n").is_empty());
        // The last row may lack its line break; a backslash there escapes nothing.
        for (end, value) in [("", "a\\"), ("\n", "a\n"), ("\r\n", "a\n")] {
            let last = rows(format!("id\tt\n1\ta\\{end}").as_bytes());
            assert_eq!(last, [("line 2".to_owned(), vec![some("1"), some(value)])]);
        }
    }

    #[test]
    fn types_in_the_second_line_are_no_row() {
        let text = b"id\tt\nUInt64\tNullable(String)\n7\t\\N\n";
        assert_eq!(rows(text), [("line 3".to_owned(), vec![Some("7".to_owned()), None])]);
    }

    #[test]
    fn escapes_are_recognised_and_paths_of_windows_are_none() {
        for (head, is_escaped) in [
            (&b"1\t\\N\n"[..], true),
            (b"1\ta\\\\b\n", true),
            (b"1\tC:\\temp\\new\n", false),
            (b"1\t\\\\server\\share\n", false),
            (b"1\tplain\n", false),
            (b"1\t\"a\\\\b\"\n", false),
            (b"1,\\N\n", false),
        ] {
            assert_eq!(is_escaped_text(head), is_escaped, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn doubled_quotes_are_those_of_csv() {
        for (head, is_quoted) in [
            (&b"1\t\"say \"\"hi\"\"\"\n"[..], true),
            (b"1\t\"[\"\"Ann\"\"]\"\t2", true),
            (b"1\t\"Rome\"\n", false),
            (b"1\t\"a\" and \"b\"\n", false),
            (b"1\t[\"\"]\n", false),
            (b"1\t\"\"\n", false),
            (b"", false),
        ] {
            assert_eq!(has_doubled_quotes(head), is_quoted, "{}", String::from_utf8_lossy(head));
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_survives(bytes: Vec<u8>) {
            let mut field = Vec::new();
            for byte in &bytes {
                match byte {
                    b'\t' => field.extend(b"\\t"),
                    b'\n' => field.extend(b"\\n"),
                    b'\r' => field.extend(b"\\r"),
                    b'\\' => field.extend(b"\\\\"),
                    other => field.push(*other),
                }
            }
            proptest::prop_assert_eq!(decoded(&field), Some(bytes));
        }
    }
}
