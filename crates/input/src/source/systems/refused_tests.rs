//! Signs of files that are not read, and text and tables that have similar ones. Which file is
//! refused with which advice is tested with the program.

use proptest::prelude::*;

use super::*;
use crate::source::input_path::InputPath;
use crate::source::systems::listing::ListedFile;

#[test]
fn a_magic_number_is_recognised_but_no_text_that_begins_with_the_same_letters() {
    for (magic, what, _) in MAGIC {
        let found = binary(&[*magic, b"\x01\0".as_slice()].concat());
        assert_eq!(found.map(|(what, _)| what), Some(*what), "{}", magic.escape_ascii());
        if magic.iter().all(u8::is_ascii_alphanumeric) {
            for text in [",n\n1,2\n", "\tcaf\u{e9}\r\n", ""] {
                let text = [*magic, text.as_bytes()].concat();
                assert_eq!(binary(&text), None, "{}", text.escape_ascii());
            }
        }
    }
}

/// Writes a number with seven bits per byte, the lowest first.
fn seven_bits(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push((number % 128) as u8 + 128);
        number /= 128;
    }
    bytes.push(number as u8);
    bytes
}

fn of_length(text: &str) -> Vec<u8> {
    [seven_bits(text.len() as u64), text.as_bytes().to_vec()].concat()
}

proptest! {
    #[test]
    fn numbers_of_seven_bits_per_byte_are_read_up_to_nine_bytes(
        value: u64,
        rest: Vec<u8>,
        shift in 0..64u32,
    ) {
        let value = value >> shift;
        let bytes = [seven_bits(value), rest.clone()].concat();
        let expected = (value < 1 << 63).then_some((value, rest.as_slice()));
        prop_assert_eq!(number(&bytes), expected);
    }

    #[test]
    fn headers_of_clickhouse_are_recognised_by_the_types_of_their_columns(
        names in proptest::collection::vec("[a-z_]{1,200}", 1..6),
        of_type in proptest::sample::select(CLICKHOUSE_TYPES.to_vec()),
        rows in 0..100_000u64,
    ) {
        let columns = seven_bits(names.len() as u64);
        let (name, of_type) = (of_length(&names[0]), of_length(of_type));
        let native = [columns.clone(), seven_bits(rows), name, of_type.clone()].concat();
        prop_assert!(is_clickhouse_binary(&native));
        let list: Vec<u8> = names.iter().flat_map(|name| of_length(name)).collect();
        let of_rows = [columns.clone(), list.clone(), of_type].concat();
        prop_assert!(is_clickhouse_binary(&of_rows));
        // Neither is there without its type, or with another word in its place.
        prop_assert!(!is_clickhouse_binary(&[columns.clone(), list.clone()].concat()));
        prop_assert!(!is_clickhouse_binary(&[columns, list, of_length("click")].concat()));
    }
}

#[test]
fn documents_of_bson_have_their_length_a_named_element_and_an_end() {
    let document = b"\x15\0\0\0\x10_id\0\x01\0\0\0\x10a\0\x02\0\0\0\0";
    assert!(is_bson(document) && is_bson(&document.repeat(3)));
    // The head of a file may be a part of its first document.
    assert!(is_bson(&document[..10]));
    let changed = |at: usize, byte: u8| {
        let mut document = document.to_vec();
        document[at] = byte;
        document
    };
    for (what, bytes) in [
        ("a document of 11 bytes", changed(0, 11)),
        ("a document of 64 MiB", changed(3, 4)),
        ("an end elsewhere", changed(0, 15)),
        ("another end", changed(20, 1)),
        ("an element of no kind", changed(4, 0)),
        ("an element of an unknown kind", changed(4, 0x14)),
        ("an element without a name", changed(5, 0)),
        ("a name with a line break", changed(5, b'\n')),
        ("a name without an end", document[..8].to_vec()),
        ("a length alone", document[..4].to_vec()),
        ("nothing", Vec::new()),
        ("text", b"id,n\n1,2\n3,4\n5,6\n7,8\n".to_vec()),
    ] {
        assert!(!is_bson(&bytes), "{what}");
    }
}

#[test]
fn text_in_utf16_is_recognised_in_both_orders_and_at_any_length() {
    let text = "id,name\r\n1,\"caf\u{e9}\"\r\n2,\t\u{2603}\r\n3,x\r\n4,y\r\n5,z\r\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for end in 8..=little.len() {
        assert!(is_utf16(&little[..end]) && is_utf16(&big[..end]), "{end}");
    }
    let numbers = b"\x07\0\x01\0\x02\0\x03\0\x04\0";
    for other in [text.as_bytes(), numbers, &[0; 10], b"i\0d\0,\0", b""] {
        assert!(!is_utf16(other), "{}", other.escape_ascii());
    }
}

#[test]
fn a_rule_below_the_names_is_that_of_psql_or_of_markdown() {
    for (text, expected) in [
        (" id | name \n----+------\n  1 | a\n", true),
        (" id \n----\n  1\n", true),
        ("id|name\n--+----\n", true),
        ("| id | n |\n|---:|:--|\n| 1 | a |\n", true),
        // As many columns as names,
        ("a|b|c\n--+--\n", false),
        ("a|b\n-----\n", false),
        // no values that look like one,
        ("n\n--\n", false),
        ("a,b\n--,--\n", false),
        ("a|b\n-|-\n", false),
        ("| a |\n| : |\n", false),
        // and two lines.
        ("| a | b |", false),
        ("", false),
    ] {
        assert_eq!(is_ruled(text), expected, "{text:?}");
    }
}

fn listing(paths: &[&str]) -> Listing {
    let file = |path: &&str| ListedFile {
        path: (*path).to_owned(),
        input: InputPath::File(format!("in/{path}").into()),
    };
    Listing { name: "in".to_owned(), files: paths.iter().map(file).collect(), is_remote: false }
}

#[test]
fn a_folder_is_refused_for_a_file_at_any_depth_that_is_named_in_the_advice() {
    for (paths, sign, what) in [
        (&["a.csv", "dump/toc.dat"][..], "dump/toc.dat", "a pg_dump in the directory format"),
        (&["db/users.bson.gz", "db/users.metadata.json"], "db/users.bson.gz", "a mongodump"),
        (&["db-schema.sql", "db.t-schema.sql"], "db-schema.sql", "a dump by mydumper"),
        (&["ks/t/nb-1-big-Data.db"], "ks/t/nb-1-big-Data.db", "SSTables of Cassandra"),
        (&["m/00001-x.metadata.json"], "m/00001-x.metadata.json", "an Iceberg table"),
    ] {
        let refused = refused_folder(&listing(paths)).unwrap_err();
        let said = refused.to_string();
        assert!(said.starts_with(&format!("in: is {what}, which is not read")), "{said}");
        assert!(said.ends_with(&format!("({sign} describes it)")), "{said}");
    }
    let paths = ["users.metadata.json", "schema.sql", "toc.dat.csv", "toc.dat/a.csv", "Data.db"];
    assert!(refused_folder(&listing(&paths)).is_ok());
}

#[test]
fn tables_with_a_log_are_refused_by_the_folder_of_the_log() {
    for (folders, what) in [
        (&["_delta_log", "day=1"][..], Some("a Delta table")),
        (&[".hoodie"], Some("a Hudi table")),
        (&["day=1", "_delta", "hoodie"], None),
        (&[], None),
    ] {
        let refused = refused_table("t", |name| folders.contains(&name));
        let refused = refused.map(|error| error.to_string());
        assert_eq!(refused.is_some(), what.is_some(), "{folders:?}");
        assert!(refused.is_none_or(|said| said.contains(what.unwrap_or_default())), "{folders:?}");
    }
}
