//! Objects of NDJSON: their cells, lines that are none, and the kinds of their members.

use std::io::Cursor;

use arrow::array::{Array, BinaryArray};
use proptest::prelude::*;

use super::*;

type Opened = Result<NdjsonReader, SourceError>;

fn open(text: &[u8], columns: &[&str], options: &InputOptions) -> Opened {
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    NdjsonReader::open("x.ndjson", Box::new(Cursor::new(text.to_vec())), &columns, options)
}

/// Rows with their lines, and the lines that are none.
#[derive(Default)]
struct Contents {
    rows: Vec<(u64, Vec<Option<String>>)>,
    broken: Vec<Reject>,
}

impl Contents {
    fn add(&mut self, batch: RawBatch) {
        assert!(batch.is_json);
        let RawBatch { cells, positions, broken, .. } = batch;
        let (RawCells::Text(columns), Positions::Lines(lines)) = (cells, positions) else {
            panic!("NDJSON is text in lines");
        };
        for (row, line) in lines.into_iter().enumerate() {
            let cell = |(_, cells): &(String, BinaryArray)| {
                cells.is_valid(row).then(|| String::from_utf8(cells.value(row).to_vec()).unwrap())
            };
            self.rows.push((line, columns.iter().map(cell).collect()));
        }
        self.broken.extend(broken);
    }
}

fn contents(reader: &mut NdjsonReader) -> Contents {
    let mut contents = Contents::default();
    while let Some(batch) = reader.next_batch().unwrap() {
        contents.add(batch);
    }
    contents
}

fn read(text: &[u8], columns: &[&str]) -> Contents {
    contents(&mut open(text, columns, &InputOptions::default()).unwrap())
}

/// Returns the cells of the only row, whose only column is `v`.
fn cell(value: &str, options: &InputOptions) -> Option<String> {
    let text = format!("{{\"v\": {value}}}");
    let mut rows = contents(&mut open(text.as_bytes(), &["v"], options).unwrap()).rows;
    assert_eq!(rows.len(), 1, "{value}");
    rows.remove(0).1.remove(0)
}

#[test]
fn a_value_is_its_text_as_it_is_written() {
    for (value, text) in [
        ("\"a\"", Some("a")),
        ("\"\"", Some("")),
        (r#""say \"hi\"\n\u00e9""#, Some("say \"hi\"\né")),
        ("1.50", Some("1.50")),
        ("-0", Some("-0")),
        ("1E400", Some("1E400")),
        ("12345678901234567890123", Some("12345678901234567890123")),
        ("true", Some("true")),
        ("null", None),
        ("\"null\"", Some("null")),
        ("{\"x\":  1}", Some("{\"x\":  1}")),
        ("[1, null]", Some("[1, null]")),
        ("{\"$numberLong\": \"7\"}", Some("7")),
        ("{\"$undefined\": true}", None),
    ] {
        assert_eq!(cell(value, &InputOptions::default()).as_deref(), text, "{value}");
    }
}

#[test]
fn only_numbers_get_a_decimal_comma_if_they_are_read_with_one() {
    let mut options = InputOptions::default();
    options.text.decimal_comma = true;
    for (value, text) in [
        ("1.5", "1,5"),
        ("-0.25e3", "-0,25e3"),
        ("7", "7"),
        ("{\"$numberDecimal\": \"2.5\"}", "2,5"),
        ("\"1.5\"", "1.5"),
        ("[1.5]", "[1.5]"),
        ("{\"x\": 1.5}", "{\"x\": 1.5}"),
        ("{\"$date\": \"2021-07-06T10:18:12.036Z\"}", "2021-07-06T10:18:12.036Z"),
    ] {
        assert_eq!(cell(value, &options).as_deref(), Some(text), "{value}");
    }
}

proptest! {
    #[test]
    fn members_are_found_in_any_order_and_may_be_missing(
        rows in proptest::collection::vec(
            (proptest::collection::vec(proptest::option::of(any::<String>()), 4), 0..4usize),
            0..6,
        ),
        batch_rows in 1..4usize,
    ) {
        let names = ["a", "b", "c", "\"\\é"];
        let mut text = String::new();
        let mut expected = Vec::new();
        for (line, (values, first)) in rows.iter().enumerate() {
            let member = |at: usize| {
                let value = values[at].as_ref()?;
                Some(format!("{}:{}", serde_json::json!(names[at]), serde_json::json!(value)))
            };
            let places = (0..4usize).map(|at| (at + *first) % 4);
            let mut members: Vec<String> = places.filter_map(member).collect();
            members.insert(members.len() / 2, "\"other\":{\"a\":0}".to_owned());
            text += &format!("{{{}}}\n", members.join(", "));
            expected.push((line as u64 + 1, values.clone()));
        }
        let options = InputOptions { batch_rows, ..InputOptions::default() };
        let mut reader = open(text.as_bytes(), &names, &options).unwrap();
        let read = contents(&mut reader);
        prop_assert!(read.broken.is_empty(), "{:?}", read.broken);
        prop_assert_eq!(read.rows, expected);
        let unknown = if rows.is_empty() { Vec::new() } else { vec!["other".to_owned()] };
        prop_assert_eq!(reader.unknown_columns(), unknown);
    }
}

#[test]
fn lines_that_are_not_one_object_are_set_aside_and_the_others_are_read() {
    let text = b"{\"a\":1}\n\n7\n  {\"a\":2}\r\n[1]\n{\"a\":1,\"a\":2}\n{\"a\":1} {\"a\":2}\n\
                 {\"b\":1,\"b\":2}\n{\"a\":01}\n{\"a\":\"\xff\"}\n{\"a\":\n{\"a\":3}";
    let read = read(text, &["a"]);
    let some = |text: &str| vec![Some(text.to_owned())];
    // Columns that are not requested may occur twice.
    assert_eq!(read.rows, [(1, some("1")), (4, some("2")), (8, vec![None]), (12, some("3"))]);
    let said: Vec<String> = read.broken.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 7, "{said:?}");
    for (said, line) in said.iter().zip([3, 5, 6, 7, 9, 10, 11]) {
        let expected = format!("x.ndjson, line {line}: is not a JSON object: ");
        assert!(said.starts_with(&expected), "{line}: {said}");
        // The parser sees one line only, and would always name the first.
        assert!(!said.contains(" at line "), "{said}");
        assert_eq!(said.contains("write each object on one line"), line == 11, "{said}");
    }
    assert!(said[2].contains("it names 'a' twice"), "{said:?}");
    assert_eq!(read.broken[0].record["line"], "7");
}

#[test]
fn a_byte_order_mark_is_skipped_and_an_array_is_refused_with_and_without_it() {
    for mark in ["", "\u{feff}"] {
        let found = read(format!("{mark}\n {{\"a\":1}}\n").as_bytes(), &["a"]);
        assert_eq!(found.rows, [(2, vec![Some("1".to_owned())])], "{mark:?}");
        assert!(found.broken.is_empty(), "{mark:?}");
        let array = format!("{mark}\n [\n{{\"a\":1}}]");
        let error = open(array.as_bytes(), &["a"], &InputOptions::default()).err();
        assert!(matches!(error, Some(SourceError::JsonArray { .. })), "{mark:?}");
        assert!(read(mark.as_bytes(), &["a"]).rows.is_empty(), "{mark:?}");
    }
}

#[test]
fn no_more_than_some_unknown_names_are_remembered() {
    let text: String = (0..3 * UNKNOWN_NAMES).map(|name| format!("{{\"n{name}\":1}}\n")).collect();
    let mut reader = open(text.as_bytes(), &["a"], &InputOptions::default()).unwrap();
    assert_eq!(contents(&mut reader).rows.len(), 3 * UNKNOWN_NAMES);
    let unknown = reader.unknown_columns();
    assert_eq!(unknown.len(), UNKNOWN_NAMES);
    assert!(unknown.contains(&"n0".to_owned()), "{unknown:?}");
}

#[test]
fn members_have_the_kinds_of_all_their_values_in_the_order_in_which_they_appear() {
    let text = "\u{feff}{\"b\":1,\"a\":\"x\"}\n\n{\"a\":null,\"c\":[1],\"b\":true}\n\
                {\"c\":{\"$oid\":\"546651e74bf6e4cb017c5312\"},\"d\":{\"x\":1}}\n7\n";
    let expected = [
        ("b", vec![Kind::Number, Kind::Bool, Kind::Null]),
        ("a", vec![Kind::Text, Kind::Null]),
        ("c", vec![Kind::ObjectId, Kind::Nested, Kind::Null]),
        ("d", vec![Kind::Nested, Kind::Null]),
    ];
    let member = |(name, kinds): (&str, Vec<Kind>)| (name.to_owned(), BTreeSet::from_iter(kinds));
    let expected: Members = expected.into_iter().map(member).collect();
    assert_eq!(kinds(text.as_bytes(), 3), Ok(expected));
    let first = kinds(text.as_bytes(), 1).unwrap();
    let expected = [("b", vec![Kind::Number]), ("a", vec![Kind::Text])].map(member);
    assert_eq!(first, expected);
    // One more object would be the number.
    let (line, problem) = kinds(text.as_bytes(), 4).unwrap_err();
    assert!(line == 5 && problem.contains("expected an object"), "{line}: {problem}");
    assert_eq!(kinds("".as_bytes(), 9), Ok(Vec::new()));
}

#[test]
fn parts_in_any_order_have_the_rows_and_the_unknown_names_of_the_file() {
    let object = |row: usize| match row % 7 {
        3 => format!("{{\"a\": {row}, \"other {}\": 1}}\n\n", row % 300),
        5 => "no object\n".to_owned(),
        _ => format!("  {{\"b\": \"{row}\", \"a\": {row}}}\n"),
    };
    let text: String = (0..3_000).map(object).collect();
    let options = InputOptions { batch_rows: 10, ..InputOptions::default() };
    let mut reader = open(text.as_bytes(), &["a", "b"], &options).unwrap();
    let expected = contents(&mut reader);
    let unknown = reader.unknown_columns();
    assert_eq!((expected.rows.len() + expected.broken.len(), unknown.len()), (3_000, UNKNOWN_NAMES));
    for step in [1, 7, 299] {
        let mut reader = open(text.as_bytes(), &["a", "b"], &options).unwrap();
        let mut parts = Vec::new();
        while let Some(part) = reader.next_part().unwrap() {
            parts.push(Some(part));
        }
        let count = parts.len();
        assert_eq!(count, 300);
        let mut batches: Vec<Option<RawBatch>> = vec![None; count];
        for number in (0..count).map(|number| number * step % count) {
            batches[number] = parts[number].take().unwrap().read().pop().unwrap().ok();
        }
        let mut found = Contents::default();
        batches.into_iter().for_each(|batch| found.add(batch.unwrap()));
        assert_eq!(found.rows, expected.rows);
        assert_eq!(found.broken, expected.broken);
        assert_eq!(reader.unknown_columns(), unknown);
    }
}
