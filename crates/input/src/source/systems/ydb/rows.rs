//! Fields of the data files of a YDB dump.
//!
//! A line is a row, without a header; fields are separated by commas. `null` is NULL, `"null"` is
//! text. Text and bytes are in quotes with the escapes of URLs: `+` is a space, `%2C` a comma, so
//! that a field never contains a comma, a quote or a line break.

use crate::source::lines::{LineReader, Spelling};

/// Reads a data file of a dump.
pub(in crate::source) type DumpReader = LineReader<DumpFields>;

/// Spelling of the fields of a dump.
pub(in crate::source) struct DumpFields;

impl Spelling for DumpFields {
    const DELIMITER: u8 = b',';
    const BACKSLASHES: bool = false;
    const END: Option<&'static [u8]> = None;

    fn decode(field: &[u8], value: &mut Vec<u8>) -> Result<bool, &'static str> {
        match field {
            b"null" => Ok(false),
            [b'"', escaped @ .., b'"'] => {
                unescape(escaped, value);
                Ok(true)
            }
            [b'"', ..] => Err("begins with a quote and does not end with one"),
            plain => {
                value.extend_from_slice(plain);
                Ok(true)
            }
        }
    }
}

/// Appends text without its escapes. A `%` without two hexadecimal digits is literal, as in `ydb
/// tools restore`.
fn unescape(escaped: &[u8], value: &mut Vec<u8>) {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut rest = escaped;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => value.push(b' '),
            b'%' => match (digit(after.first()), digit(after.get(1))) {
                (Some(high), Some(low)) => {
                    value.push((high * 16 + low) as u8);
                    rest = after.get(2..).unwrap_or_default();
                }
                _ => value.push(b'%'),
            },
            byte => value.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow::array::Array;

    use super::*;
    use crate::source::raw::{RawBatch, RawCells, RawReader};

    fn decoded(field: &str) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        DumpFields::decode(field.as_bytes(), &mut value).unwrap().then_some(value)
    }

    /// Escapes a byte as YDB does: letters, digits and some punctuation stay, a space becomes a
    /// plus.
    fn escaped(bytes: &[u8]) -> String {
        let escape = |byte: &u8| match byte {
            b' ' => "+".to_owned(),
            byte if byte.is_ascii_alphanumeric() || b"!$*-./;@_~".contains(byte) => {
                char::from(*byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        };
        bytes.iter().map(escape).collect()
    }

    #[test]
    fn fields_of_real_dumps_are_read() {
        for (field, value) in [
            ("\"simplestring\"", "simplestring"),
            ("\"String%22with%22quote%22marks\"", "String\"with\"quote\"marks"),
            ("\"~Allowed.symbols_string;!*@$%5E/\"", "~Allowed.symbols_string;!*@$^/"),
            ("\"%D0%A2%D0%B5%D0%BA%D1%81%D1%82+%D0%BD%D0%B0\"", "Текст на"),
            ("\"ООО+%22Ромашка%22\"", "ООО \"Ромашка\""),
            ("\"a%2Bb\"", "a+b"),
            ("\"50%\"", "50%"),
            ("\"%4\"", "%4"),
            ("\"\"", ""),
            ("\"null\"", "null"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            assert_eq!(decoded(field).as_deref(), Some(value.as_bytes()), "{field}");
        }
        assert_eq!(decoded("null"), None);
        assert!(DumpFields::decode(b"\"abc", &mut Vec::new()).is_err());
        assert!(DumpFields::decode(b"\"", &mut Vec::new()).is_err());
    }

    fn batches(text: &str, requested: &[&str], batch_rows: usize) -> Vec<RawBatch> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let stream = Box::new(Cursor::new(text.as_bytes().to_vec()));
        let mut reader =
            DumpReader::open("data_00.csv", stream, names(&["a", "b", "c"]), &names(requested), batch_rows);
        std::iter::from_fn(|| reader.next_batch().unwrap()).collect()
    }

    #[test]
    fn lines_are_rows_and_only_requested_columns_are_decoded() {
        let text = "1,\"x\",null\r\n2,null,\"y+z\"\n3,\"\",\"w\"";
        for batch_rows in [1, 2, 10] {
            let batches = batches(text, &["c", "a", "nope"], batch_rows);
            let mut rows = Vec::new();
            for batch in &batches {
                let RawCells::Text(columns) = &batch.cells else { panic!() };
                assert_eq!(columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["c", "a"]);
                for row in 0..columns[0].1.len() {
                    let cell = |column: usize| {
                        let cells = &columns[column].1;
                        cells.is_valid(row).then(|| String::from_utf8_lossy(cells.value(row)).into_owned())
                    };
                    rows.push((batch.positions.position(row).to_string(), cell(0), cell(1)));
                }
            }
            let some = |text: &str| Some(text.to_owned());
            let expected = [
                ("line 1".to_owned(), None, some("1")),
                ("line 2".to_owned(), some("y z"), some("2")),
                ("line 3".to_owned(), some("w"), some("3")),
            ];
            assert_eq!(rows, expected);
        }
    }

    #[test]
    fn a_line_of_another_form_is_rejected_and_the_others_are_read() {
        let batches = batches("1,2\n1,\"x,3\n1,2,3,4\n1,\"a\",3\n", &["b"], 10);
        let places: Vec<String> = batches[0].broken.iter().map(ToString::to_string).collect();
        assert_eq!(places[0], "data_00.csv, line 1: has 2 fields, the table has 3 columns");
        assert!(places[1].contains("line 2, column 'b': '\"x' begins with a quote"), "{places:?}");
        assert!(places[2].contains("line 3: has 4 fields"), "{places:?}");
        let RawCells::Text(columns) = &batches[0].cells else { panic!() };
        assert_eq!(columns[0].1.iter().flatten().collect::<Vec<_>>(), [b"a"]);
    }

    proptest::proptest! {
        #[test]
        fn every_text_survives(bytes: Vec<u8>) {
            let field = format!("\"{}\"", escaped(&bytes));
            proptest::prop_assert!(!field[1..field.len() - 1].contains([',', '"', '\n']));
            proptest::prop_assert_eq!(decoded(&field), Some(bytes));
        }
    }
}
