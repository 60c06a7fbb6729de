//! The character between the fields of CSV, from the first lines of a file.

use csv::{ByteRecord, ReaderBuilder};

/// Characters other than a comma that separate fields.
const OTHERS: [u8; 6] = [b'\t', b';', b'|', b'^', b'~', 0x01];

/// Minimum number of rows that show that blanks separate fields.
const MIN_ROWS: usize = 10;

/// Records whose fields are counted.
const RECORDS: usize = 50;

/// Returns the character other than a comma that separates the fields of text, given its first
/// bytes: the first line has no comma outside quotes, and every complete line has as many fields as
/// the first. Tabs need no such proof, since names rarely contain one.
///
/// Returns `None` if a comma separates the fields, if there is only one field, and in doubt.
pub(super) fn other_separator(head: &[u8]) -> Option<u8> {
    if has_comma(head) {
        return None;
    }
    let separates = |separator: &u8| {
        let fields = fields(head, *separator);
        are_alike(if *separator == b'\t' { fields.get(..1).unwrap_or_default() } else { &fields })
    };
    let mut separators = OTHERS.into_iter().filter(separates);
    match (separators.next(), separators.next()) {
        (Some(b'\t'), _) => Some(b'\t'),
        (Some(separator), None) => Some(separator),
        (None, _) if are_between_dollars(head) => Some(b'$'),
        (None, _) => are_numbers_between_blanks(head).then_some(b' '),
        _ => None,
    }
}

/// Whether dollar signs separate the fields of several lines. They are common in amounts, so they
/// are tried if nothing else separates fields.
fn are_between_dollars(head: &[u8]) -> bool {
    let fields = fields(head, b'$');
    fields.len() > 2 && are_alike(&fields)
}

/// Whether all records have the same number of fields, more than one.
fn are_alike(fields: &[usize]) -> bool {
    fields.first().is_some_and(|first| *first > 1 && fields.iter().all(|fields| fields == first))
}

/// Whether lines are numbers between single blanks, below as many names: the edges of a graph.
fn are_numbers_between_blanks(head: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(head) else { return false };
    let mut lines = text.lines();
    let Some(names) = lines.next() else { return false };
    let count = names.split(' ').count();
    let mut rows: Vec<&str> = lines.collect();
    // Its end may be missing.
    rows.pop();
    let is_row = |row: &&str| {
        row.split(' ').count() == count && row.split(' ').all(|field| field.parse::<f64>().is_ok())
    };
    count > 1
        && names.split(' ').all(|name| !name.is_empty())
        && rows.len() >= MIN_ROWS
        && rows.iter().all(is_row)
}

/// Whether the first line has a comma outside quotes.
fn has_comma(head: &[u8]) -> bool {
    let mut is_quoted = false;
    for byte in head {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => return true,
            b'\n' if !is_quoted => return false,
            _ => {}
        }
    }
    false
}

/// Numbers of fields of the first records. The last one is left out, as its end may be missing,
/// unless it is the only one.
fn fields(head: &[u8], separator: u8) -> Vec<usize> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut builder = ReaderBuilder::new();
    let reader = builder.flexible(true).has_headers(false).delimiter(separator).from_reader(text);
    let records = reader.into_byte_records().map_while(Result::ok);
    let mut counts: Vec<usize> = records.take(RECORDS + 1).map(|record: ByteRecord| record.len()).collect();
    if counts.len() > 1 {
        counts.pop();
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_separate_every_line_alike_are_found() {
        for (text, expected) in [
            ("a;b;c\n1;2,5;3\n4;5;6\n", Some(b';')),
            ("\u{feff}a|b\n1|2\n", Some(b'|')),
            ("a\tb\n1\t2\t3\n", Some(b'\t')),
            ("\"a;x\";\"b,y\"\n1;\"2\n;;3\"\n4;5\n", Some(b';')),
            ("a;b\n", Some(b';')),
            ("a;b", Some(b';')),
            ("a^b\n1^2,5\n", Some(b'^')),
            ("a~b\n1~2\n", Some(b'~')),
            ("a$b$c\n1$x, y$3\n2$$4\n3$z$5\n", Some(b'$')),
            ("cost in $\n12\n13\n14\n", None),
            ("id;price ($);qty\n1;$5;2\n2;$6;1\n3;$7;1\n", Some(b';')),
            ("id;price ($)\n1;5\n", Some(b';')),
            ("price in $, net\n$5\n$6\n$7\n", None),
            ("a\u{1}b\n1\u{1}2\n", Some(1)),
            // The last line may be cut.
            ("a;b;c\n1;2;3\n4;5", Some(b';')),
            ("a;b\r\n1;2\r\n", Some(b';')),
            ("a,b\n1;2,3\n", None),
            ("a,b;c\n1,2;3\n", None),
            ("a\n1\n", None),
            ("a;b\n1;2;3\n1;2\n", None),
            ("note; or what was said\nyes; no; perhaps\nno\nx\n", None),
            // Either of them could separate fields.
            ("a;b|c\n1;2|3\n", None),
            ("", None),
        ] {
            assert_eq!(other_separator(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn blanks_separate_numbers_only() {
        let rows = |header: &str, row: &str| format!("{header}\n{}", format!("{row}\n").repeat(20));
        for (header, row, expected) in [
            ("source target at", "1 2 1082040961", Some(b' ')),
            ("x y", "-1.5 2e3", Some(b' ')),
            ("full name", "1 2", Some(b' ')),
            ("full name", "Ann Lee", None),
            ("source target", "1 2 3", None),
            ("source  target", "1  2", None),
            ("n", "1", None),
        ] {
            assert_eq!(other_separator(rows(header, row).as_bytes()), expected, "{header}: {row}");
        }
        assert_eq!(other_separator(b"a b\n1 2\n3 4\n"), None, "too few rows");
    }

    #[test]
    fn text_may_end_anywhere() {
        let text = "a;b;c\n".to_owned() + &"1;2;3\n".repeat(2 * RECORDS);
        for end in 2..=text.len() {
            assert_eq!(other_separator(&text.as_bytes()[..end]), Some(b';'), "{end}");
        }
    }
}
