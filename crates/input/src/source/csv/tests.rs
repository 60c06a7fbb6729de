//! Records of CSV: their fields, NULLs and lines, and files that are refused.

use std::io::{self, Cursor};

use arrow::array::{Array, BinaryArray};
use proptest::prelude::*;

use super::*;
use crate::source::raw::{Positions, RawCells};
use crate::source::reject::Reject;
use crate::source::{Input, InputPath};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Options with which no separator is guessed.
fn separated_by(delimiter: u8) -> InputOptions {
    InputOptions { delimiter: Some(delimiter), ..InputOptions::default() }
}

fn open(text: &str, columns: &[&str], options: &InputOptions) -> Result<CsvReader, SourceError> {
    let stream = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let delimiter = options.delimiter.unwrap_or(b'\t');
    CsvReader::open("x.csv", stream, delimiter, false, &strings(columns), options)
}

/// Rows with their lines, and the records that are none.
#[derive(Debug, Default)]
struct Contents {
    rows: Vec<(u64, Vec<Option<String>>)>,
    broken: Vec<Reject>,
}

/// Reads to the end.
fn contents(reader: &mut CsvReader) -> Result<Contents, SourceError> {
    let mut contents = Contents::default();
    while let Some(batch) = reader.next_batch()? {
        let RawBatch { cells, positions, broken, .. } = batch;
        let (RawCells::Text(columns), Positions::Lines(lines)) = (cells, positions) else {
            panic!("CSV is text in lines");
        };
        for (row, line) in lines.into_iter().enumerate() {
            let cell = |(_, cells): &(String, BinaryArray)| {
                cells.is_valid(row).then(|| String::from_utf8(cells.value(row).to_vec()).unwrap())
            };
            contents.rows.push((line, columns.iter().map(cell).collect()));
        }
        contents.broken.extend(broken);
    }
    Ok(contents)
}

fn read(text: &str, columns: &[&str], options: &InputOptions) -> Result<Contents, SourceError> {
    contents(&mut open(text, columns, options)?)
}

/// Cells of rows, with NULL as `None`.
fn cells<const N: usize>(rows: &[[Option<&str>; N]]) -> Vec<Vec<Option<String>>> {
    rows.iter().map(|row| row.iter().map(|cell| cell.map(str::to_owned)).collect()).collect()
}

proptest! {
    #[test]
    fn records_read_back_as_they_were_written_with_the_lines_they_begin_in(
        rows in proptest::collection::vec(
            ("[ab,;\"\n ]{0,4}", "[ab,;\"\n ]{0,4}", any::<bool>(), 0..3_usize),
            0..8,
        ),
        has_semicolons: bool,
        has_two_byte_ends: bool,
        batch_rows in 1..5usize,
    ) {
        let delimiter = if has_semicolons { ';' } else { ',' };
        let end = if has_two_byte_ends { "\r\n" } else { "\n" };
        let spelled = |text: &str, is_quoted: bool| {
            if is_quoted || text.contains([delimiter, '"', '\n']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.to_owned()
            }
        };
        let mut text = format!("a{delimiter}b{end}");
        let mut expected = Vec::new();
        for (a, b, is_quoted, blank_lines) in &rows {
            text += &end.repeat(*blank_lines);
            let line = 1 + text.matches('\n').count() as u64;
            let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            expected.push((line, vec![value(b), value(a)]));
            let (a, b) = (spelled(a, *is_quoted), spelled(b, *is_quoted));
            text += &format!("{a}{delimiter}{b}{end}");
        }
        let options = InputOptions { batch_rows, ..separated_by(delimiter as u8) };
        let read = read(&text, &["b", "a"], &options).unwrap();
        prop_assert!(read.broken.is_empty(), "{:?}", read.broken);
        prop_assert_eq!(read.rows, expected);
    }
}

#[test]
fn a_text_is_null_if_the_options_say_so_and_quotes_matter_only_if_they_should() {
    let text = "a,b\n,\"\"\nNA,\"NA\"\n\\N,x\n";
    let comma = || separated_by(b',');
    let na = || vec!["NA".to_owned()];
    let (empty, not_available, slash, x) = (Some(""), Some("NA"), Some("\\N"), Some("x"));
    for (what, options, expected) in [
        ("default", comma(), [[None, None], [not_available, not_available], [None, x]]),
        (
            "a given text",
            InputOptions { null_values: na(), ..comma() },
            [[empty, empty], [None, None], [slash, x]],
        ),
        (
            "quotes matter",
            InputOptions { quoted_empty: true, ..comma() },
            [[None, empty], [not_available, not_available], [slash, x]],
        ),
        (
            "a given text, and quotes matter",
            InputOptions { quoted_empty: true, null_values: na(), ..comma() },
            [[empty, empty], [None, not_available], [slash, x]],
        ),
    ] {
        let read = read(text, &["a", "b"], &options).unwrap();
        let rows: Vec<_> = read.rows.into_iter().map(|(_, cells)| cells).collect();
        assert_eq!(rows, cells(&expected), "{what}");
    }
}

#[test]
fn records_of_another_form_are_set_aside_and_the_others_are_read() {
    let text = "a,b\n1,2\n3\n4,5,6\n\"7\"x,8\n9,10\n";
    let said = |read: &Contents| read.broken.iter().map(ToString::to_string).collect::<Vec<_>>();
    for batch_rows in [1, 2, 10] {
        let options = InputOptions { batch_rows, ..separated_by(b',') };
        let found = read(text, &["b"], &options).unwrap();
        let expected = [(2, vec![Some("2".to_owned())]), (6, vec![Some("10".to_owned())])];
        assert_eq!(found.rows, expected, "{batch_rows}");
        let expected = [
            "x.csv, line 3: has 1 fields, the header has 2",
            "x.csv, line 4: has 3 fields, the header has 2",
            "x.csv, line 5: has text after the closing quote of a field; \
             a quote within quotes is written twice",
        ];
        assert_eq!(said(&found), expected, "{batch_rows}");
        // A reject has all of the record, also what has no name.
        assert_eq!(found.broken[1].record["field 3"], "6");
    }
    let names = strings(&["a", "b"]);
    let named = InputOptions { names, headerless: true, ..separated_by(b',') };
    let found = read("1,2\n3,4,5\n", &["a"], &named).unwrap();
    assert_eq!(found.rows, [(1, vec![Some("1".to_owned())])]);
    assert_eq!(said(&found), ["x.csv, line 2: has 3 fields, but 2 columns are named"]);
}

#[test]
fn a_file_that_ends_within_quotes_is_refused_with_the_line_of_its_last_record() {
    for (text, line) in [
        ("a,b\n1,2\n3,\"x\n4,5\n", Some(3)),
        // Also without a line break in the last record,
        ("a,b\n1,2\n3,\"x", Some(3)),
        // and if another quote within a field makes their number even.
        ("a,b\n1,5\" disk\n3,\"x\n4,5\n", Some(3)),
        ("a,b\n1,\"x\n\ny\"\n3,\"x\"\"\n", Some(5)),
        ("a,b\n1,2\n3,\"x\"", None),
        ("a,b\n1,\"two\nlines\"\n2,5\" disk\n", None),
    ] {
        for end in ["\n", "\r\n"] {
            let found = read(&text.replace('\n', end), &["a", "b"], &separated_by(b','));
            match (found, line) {
                (Ok(found), None) => assert_eq!(found.rows.len(), 2, "{text:?}"),
                (Err(SourceError::UnclosedQuote { line, .. }), Some(expected)) => {
                    assert_eq!(line, expected, "{text:?}");
                }
                (found, _) => panic!("{text:?} {end:?}: {found:?}"),
            }
        }
    }
}

#[test]
fn tabs_without_a_stated_format_are_refused_once_backslashes_may_be_escapes() {
    let guessed = InputOptions::default();
    for (text, line) in [
        ("a\tb\n\\N\tx\n1\t\\N\n", None),
        ("a\tb\n1\tC:\\temp\n2\t\n", None),
        ("a\tb\n1\t\\N\n2\t\n", Some(2)),
        ("a\tb\n1\tC:\\temp\n\\N\t2\n", Some(3)),
        ("a\tb\n1\t\"x\"\n\\N\t2\n", Some(3)),
        // A tab after a backslash may belong to the value.
        ("a\tb\n1\\\t2\t3\n", Some(2)),
    ] {
        let found = read(text, &["a", "b"], &guessed);
        match (&found, line) {
            (Ok(_), None) => {}
            (Err(SourceError::DoubtfulEscapes { line, .. }), Some(expected)) => {
                assert_eq!(*line, expected, "{text:?}");
            }
            _ => panic!("{text:?}: {found:?}"),
        }
        assert!(read(text, &["a", "b"], &separated_by(b'\t')).is_ok(), "{text:?}");
    }
}

#[test]
fn a_header_gives_distinct_names_to_the_columns_that_are_asked_for() {
    let options = separated_by(b',');
    let reader = open("\u{feff}a , b,,\n1,2,3,4\n", &["b", "zz"], &options).unwrap();
    assert_eq!(reader.column_names(), Some(strings(&["a", "b", "", ""])));
    assert_eq!(reader.unknown_columns(), ["a"]);
    let error = |text: &str| open(text, &["a"], &options).err().unwrap();
    assert!(matches!(error(""), SourceError::Empty { .. }));
    assert!(matches!(error("\n\n"), SourceError::Empty { .. }));
    assert!(matches!(error(",\n1,2\n"), SourceError::Empty { .. }));
    let twice = open("a,b,a\n1,2,3\n", &["a", "a_2"], &options).unwrap();
    assert_eq!(twice.column_names(), Some(strings(&["a", "b", "a_2"])));
    assert_eq!(twice.unknown_columns(), ["b"]);
    // Of a table with one of the two, nobody knows which one is meant.
    let path = |text: &str| {
        let file = tempfile::NamedTempFile::with_suffix(".csv").unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    };
    for (columns, is_refused) in [(vec!["a"], true), (vec!["a", "a_2"], false), (vec!["b"], false)] {
        let (file, columns) = (path("a,b,a\n1,2,3\n"), strings(&columns));
        let input = InputPath::File(file.path().to_owned());
        let input = Input::open(&input, &columns, &InputOptions::default()).unwrap();
        assert_eq!(input.check_repeated_names(&columns).is_err(), is_refused, "{columns:?}");
    }
    // Names that the user gave are distinct.
    let given = InputOptions { names: strings(&["a", "a"]), ..separated_by(b',') };
    let twice = open("1,2\n", &["a"], &given).err().unwrap();
    assert!(matches!(twice, SourceError::RepeatedColumn { column, .. } if column == "a"));
    let refused = error("\"a\"x,b\n1,2\n").to_string();
    assert!(refused.contains("the header has text after the closing quote"), "{refused}");
}

#[test]
fn columns_whose_types_take_no_null_keep_their_empty_texts() {
    let text = "id,t,n\nUInt64,String,Nullable(String)\n7,,\n";
    let mut reader = open(text, &["id", "t", "n"], &separated_by(b',')).unwrap();
    let types = &reader.declared_columns().unwrap().columns;
    let are_nullable: Vec<bool> = types.iter().map(|column| column.nullable).collect();
    assert_eq!(are_nullable, [false, false, true]);
    let rows = contents(&mut reader).unwrap().rows;
    assert_eq!(rows, [(3, vec![Some("7".to_owned()), Some(String::new()), None])]);
}

/// A stream that fails.
struct Failing;

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk is gone"))
    }
}

#[test]
fn a_stream_that_fails_is_an_error_and_not_the_end_of_the_rows() {
    for text in ["", "a,b\n1,2\n", "a,b\n1,2\n3"] {
        let stream = Box::new(Cursor::new(text.as_bytes().to_vec()).chain(Failing));
        let (columns, options) = (strings(&["a", "b"]), separated_by(b','));
        let opened = CsvReader::open("x.csv", stream, b',', false, &columns, &options);
        let error = opened.and_then(|mut reader| contents(&mut reader)).err().unwrap();
        let said = error.to_string();
        assert!(matches!(error, SourceError::Read { .. }), "{said}");
        assert!(said.contains("the disk is gone"), "{said}");
    }
}
