//! Ends of rows and fields, and names of columns, in a spelling made for these tests. The spellings
//! of real systems have tests of their own.

use std::io::Cursor;

use arrow::array::{Array, BinaryArray};
use proptest::prelude::*;

use super::*;
use crate::source::format::InputFormat;
use crate::source::lines::rows::fields;
use crate::source::raw::{Positions, RawCells};

/// Fields between bars. A backslash escapes the next byte, `-` is NULL, a line `.` ends the rows,
/// and no writer makes `?`.
struct Bars;

impl Spelling for Bars {
    const DELIMITER: u8 = b'|';
    const BACKSLASHES: bool = true;
    const END: Option<&'static [u8]> = Some(b".");

    fn is_doubtful(field: &[u8]) -> bool {
        field.contains(&b'?')
    }

    fn decode(field: &[u8], value: &mut Vec<u8>) -> Result<bool, &'static str> {
        let mut bytes = field.iter();
        while let Some(byte) = bytes.next() {
            value.extend(if *byte == b'\\' { bytes.next() } else { Some(byte) });
        }
        Ok(field != b"-")
    }
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn stream(text: &str) -> Box<dyn Read + Send> {
    Box::new(Cursor::new(text.as_bytes().to_vec()))
}

pub(in crate::source) type Rows = Vec<(u64, Vec<Option<String>>)>;

/// Reads rows up to their end, with their lines.
fn rows(reader: &mut LineReader<Bars>) -> Result<Rows, SourceError> {
    let mut rows = Vec::new();
    while let Some(batch) = reader.read_batch()? {
        rows.extend(rows_in_lines(batch));
    }
    Ok(rows)
}

/// Reads rows up to their end as other threads would.
fn rows_of_parts(reader: &mut LineReader<Bars>) -> Result<Rows, SourceError> {
    let mut rows = Vec::new();
    while let Some(part) = reader.read_part()? {
        for batch in part.read() {
            rows.extend(rows_in_lines(batch?));
        }
    }
    Ok(rows)
}

/// The lines and the cells of rows of text.
pub(in crate::source) fn rows_in_lines(batch: RawBatch) -> Rows {
    let RawBatch { cells, positions, broken, .. } = batch;
    let (RawCells::Text(columns), Positions::Lines(lines)) = (cells, positions) else {
        panic!("lines are text");
    };
    assert!(broken.is_empty(), "{broken:?}");
    let row = |(row, line): (usize, u64)| {
        let cell = |(_, cells): &(String, BinaryArray)| {
            cells.is_valid(row).then(|| String::from_utf8(cells.value(row).to_vec()).unwrap())
        };
        (line, columns.iter().map(cell).collect())
    };
    lines.into_iter().enumerate().map(row).collect()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

type Opened = Result<LineReader<Bars>, SourceError>;

fn open(text: &str, requested: &[&str], options: &InputOptions) -> Opened {
    LineReader::open_with_header("x.txt", stream(text), &strings(requested), options)
}

proptest! {
    #[test]
    fn rows_of_any_text_read_back_with_the_lines_they_begin_in(
        rows_written in proptest::collection::vec(
            proptest::collection::vec(proptest::option::of("[a|\\\\.\n-]{0,4}"), 2),
            0..8,
        ),
        has_two_byte_ends: bool,
        is_last_open: bool,
        batch_rows in 1..5usize,
        in_parts: bool,
    ) {
        let end = if has_two_byte_ends { "\r\n" } else { "\n" };
        let spelled = |value: &Option<String>| match value {
            None => "-".to_owned(),
            Some(text) => text
                .chars()
                .map(|c| if "|\\\n-".contains(c) { format!("\\{c}") } else { c.to_string() })
                .collect(),
        };
        let mut text = String::new();
        let mut expected = Vec::new();
        for row in &rows_written {
            expected.push((1 + text.matches('\n').count() as u64, row.clone()));
            text += &(row.iter().map(spelled).collect::<Vec<_>>().join("|") + end);
        }
        if is_last_open {
            text.truncate(text.len().saturating_sub(end.len()));
        }
        let names = strings(&["a", "b"]);
        let (stream, columns) = (stream(&text), names.clone());
        let mut reader = LineReader::<Bars>::open("x.txt", stream, columns, &names, batch_rows);
        let found = if in_parts { rows_of_parts(&mut reader) } else { rows(&mut reader) };
        prop_assert_eq!(found.unwrap(), expected, "{:?}", text);
        prop_assert!(!reader.has_met_end());
    }

    #[test]
    fn fields_are_what_lies_between_the_bars_that_nothing_escapes(row in "[a|\\\\]{0,12}") {
        let (mut expected, mut rest) = (vec![String::new()], row.chars());
        while let Some(c) = rest.next() {
            match c {
                '|' => expected.push(String::new()),
                _ => expected.last_mut().unwrap().push(c),
            }
            if c == '\\' {
                expected.last_mut().unwrap().extend(rest.next());
            }
        }
        let found: Vec<&[u8]> = fields::<Bars>(row.as_bytes()).collect();
        let expected: Vec<&[u8]> = expected.iter().map(|field| field.as_bytes()).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_header_gives_the_names_unless_they_are_given_and_it_has_none_of_them() {
    let given = InputOptions { names: strings(&["a", "b"]), ..InputOptions::default() };
    let headerless = InputOptions { headerless: true, ..given.clone() };
    let default = InputOptions::default();
    let row = |line: u64, a: &str, b: &str| (line, vec![some(a), some(b)]);
    for (text, options, columns, expected) in [
        ("\u{feff} b |a\n1|2\n", &default, ["b", "a"], vec![row(2, "2", "1")]),
        ("B|a\n1|2", &given, ["b", "a"], vec![row(2, "2", "1")]),
        ("3|4\n1|2\n", &given, ["a", "b"], vec![row(1, "3", "4"), row(2, "1", "2")]),
        ("a|b\n.\n", &headerless, ["a", "b"], vec![row(1, "a", "b")]),
        ("a|b\n.\n1|2\n", &default, ["a", "b"], vec![]),
        (".\n1|2\n", &headerless, ["a", "b"], vec![]),
    ] {
        let mut reader = open(text, &["a", "nope", "b"], options).unwrap();
        assert_eq!(reader.column_names(), Some(strings(&columns)), "{text:?}");
        assert_eq!(rows(&mut reader).unwrap(), expected, "{text:?}");
    }
    let reader = open("b|c|\n", &["b"], &default).unwrap();
    assert_eq!(reader.unknown_columns(), ["c"]);
    let error = |text: &str, options: &InputOptions| open(text, &["a"], options).err().unwrap();
    let other = error("a|x\n", &given);
    assert!(matches!(other, SourceError::OtherHeader { unknown, .. } if unknown == "x"));
    let twice = error("a|b|a\n", &default);
    assert!(matches!(twice, SourceError::RepeatedColumn { column, .. } if column == "a"));
    for text in ["", "\n", "|\n1|2\n", "\u{feff}", ".\n"] {
        assert!(matches!(error(text, &default), SourceError::Empty { .. }), "{text:?}");
    }
}

#[test]
fn a_line_break_never_takes_a_byte_of_the_row_before() {
    let names = strings(&["a"]);
    let text = "a\r\r\n\nb\n\r\n";
    for batch_rows in [1, 9] {
        let mut reader = LineReader::<Bars>::open("x.txt", stream(text), names.clone(), &names, batch_rows);
        let row = |line: u64, text: &str| (line, vec![some(text)]);
        let expected = [row(1, "a\r"), row(2, ""), row(3, "b"), row(4, "")];
        assert_eq!(rows(&mut reader).unwrap(), expected, "{batch_rows}");
    }
}

#[test]
fn the_length_of_a_row_is_limited_not_that_of_rows_read_together() {
    let names = strings(&["a"]);
    let open = |longest: usize| {
        let text = format!("1\n{}\n", "x".repeat(longest));
        LineReader::<Bars>::open("x.txt", stream(&text), names.clone(), &names, 9)
    };
    let lengths = |(_, mut cells): (u64, Vec<Option<String>>)| cells.pop().unwrap().unwrap().len();
    let found = rows(&mut open(MAX_RECORD_BYTES - 1)).unwrap();
    assert_eq!(found.into_iter().map(lengths).collect::<Vec<_>>(), [1, MAX_RECORD_BYTES - 1]);
    let error = rows(&mut open(MAX_RECORD_BYTES)).unwrap_err();
    assert!(matches!(error, SourceError::RecordTooLong { line: 2, .. }), "{error}");
}

#[test]
fn a_text_that_the_user_named_is_null_in_any_spelling() {
    let options = InputOptions { null_values: strings(&["n/a", ""]), ..InputOptions::default() };
    let mut reader = open("a|b\nn/a|\\n/a\n|-\nN/A|n/a \n", &["a", "b"], &options).unwrap();
    let none = || vec![None, None];
    let expected = [(2, none()), (3, none()), (4, vec![some("N/A"), some("n/a ")])];
    assert_eq!(rows(&mut reader).unwrap(), expected);
}

#[test]
fn only_a_guessed_spelling_is_refused_for_a_doubtful_field() {
    let text = "a|b\n1|\\\n2\n3|?\n";
    let guessed = || open(text, &["a"], &InputOptions::default()).unwrap();
    for error in [rows(&mut guessed()).unwrap_err(), rows_of_parts(&mut guessed()).unwrap_err()] {
        assert!(matches!(error, SourceError::DoubtfulEscapes { line: 4, .. }), "{error}");
    }
    let stated = InputOptions { format: Some(InputFormat::Tsv), ..InputOptions::default() };
    let found = rows(&mut open(text, &["a"], &stated).unwrap()).unwrap();
    assert_eq!(found, [(2, vec![some("1")]), (4, vec![some("3")])]);
}

#[test]
fn sections_of_a_file_are_read_one_after_another_with_columns_of_their_own() {
    let text = "begin \\\n1|2\n.\nbetween\r\n3\n\\.\n.\n4\n5";
    let names = strings(&["a", "b"]);
    let mut reader = LineReader::<Bars>::open("x.txt", stream(text), names.clone(), &names, 1);
    // A line of a statement has no escapes.
    assert_eq!(reader.next_line().unwrap(), Some(&b"begin \\"[..]));
    reader.begin(strings(&["b", "a"]));
    assert_eq!(rows(&mut reader).unwrap(), [(2, vec![some("2"), some("1")])]);
    assert!(reader.has_met_end());
    assert!(rows(&mut reader).unwrap().is_empty(), "the end stays the end");
    assert_eq!(reader.next_line().unwrap(), Some(&b"between"[..]));
    reader.begin(strings(&["a"]));
    let expected = [(5, vec![some("3"), None]), (6, vec![some("."), None])];
    assert_eq!(rows_of_parts(&mut reader).unwrap(), expected);
    assert!(reader.has_met_end());
    // The last section has no end.
    assert_eq!(reader.next_line().unwrap(), Some(&b"4"[..]));
    reader.begin(strings(&["b"]));
    assert_eq!(rows(&mut reader).unwrap(), [(9, vec![None, some("5")])]);
    assert!(!reader.has_met_end());
    assert_eq!(reader.next_line().unwrap(), None);
}
