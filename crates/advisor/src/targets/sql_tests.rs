//! Names, literals and column types in the SQL of target systems.

use evenkeel_placement::placement::Function;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use super::*;

const NAMES: TypeNames = TypeNames {
    integers: ["1", "2", "4", "8"],
    boolean: "boolean",
    float: "float",
    double: "double",
    decimal: "decimal",
    text: "text",
    bytes: "bytes",
    json: "json",
    uuid: "uuid",
    date: "date",
    times: ["seconds", "micros"],
    interval: None,
};

fn sql_type(names: &TypeNames, column_type: ColumnType) -> (String, Option<&'static str>) {
    let SqlType { name, note } = names.sql_type(&Column::nullable("c", column_type));
    (name, note)
}

#[test]
fn names_are_plain_only_if_every_system_reads_them_as_they_are() {
    for name in ["a", "_", "user_id", "_1", "selects", "order_by"] {
        assert_eq!(quoted(name, '"'), name);
    }
    for name in ["", "1a", "User", "a b", "a-b", "é", "select", "user", "lookup", "a.b", "a\n"] {
        assert_eq!(quoted(name, '"'), format!("\"{name}\""));
        assert_eq!(quoted(name, '`'), format!("`{name}`"));
    }
    // Each system doubles its own mark only.
    assert_eq!(quoted("a\"b`c", '"'), "\"a\"\"b`c\"");
    assert_eq!(quoted("a\"b`c", '`'), "`a\"b``c`");
    let all = ["a".to_owned(), "B".to_owned(), "of".to_owned()];
    assert_eq!(names(&all, '`'), "a, `B`, `of`");
    assert_eq!(names(&all[..0], '`'), "");
}

proptest! {
    #[test]
    fn quoted_names_and_literals_end_where_they_should(text in "[a-zA-Z0-9_ \"'`\\\\é]{0,12}") {
        for mark in ['"', '`', '\''] {
            let written = if mark == '\'' { literal(&text) } else { quoted(&text, mark) };
            let inner = written.strip_prefix(mark).and_then(|rest| rest.strip_suffix(mark));
            let pair = format!("{mark}{mark}");
            match inner {
                Some(inner) => {
                    prop_assert!(!inner.replace(&pair, "").contains(mark), "{}", written);
                    prop_assert_eq!(inner.replace(&pair, &mark.to_string()), text.clone());
                }
                None => {
                    prop_assert!(mark != '\'', "{}", written);
                    prop_assert_eq!(&written, &text);
                }
            }
        }
    }
}

#[test]
fn integers_get_the_smallest_signed_type_that_holds_all_values() {
    let signed = |bits: u32| (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
    let unsigned = |bits: u32| (0, (1i128 << bits) - 1);
    for (column_type, (least, greatest)) in [
        (ColumnType::Int8, signed(8)),
        (ColumnType::Int16, signed(16)),
        (ColumnType::Int32, signed(32)),
        (ColumnType::Int64, signed(64)),
        (ColumnType::Uint8, unsigned(8)),
        (ColumnType::Uint16, unsigned(16)),
        (ColumnType::Uint32, unsigned(32)),
        (ColumnType::Uint64, unsigned(64)),
    ] {
        let holds = |bytes: &&u32| signed(8 * **bytes).0 <= least && greatest <= signed(8 * **bytes).1;
        let smallest = [1, 2, 4, 8].iter().find(holds).map(u32::to_string);
        let (name, note) = sql_type(&NAMES, column_type);
        // The largest one is taken, with a note, if none holds them.
        assert_eq!(name, smallest.clone().unwrap_or_else(|| "8".to_owned()), "{column_type}");
        assert_eq!(note.is_some(), smallest.is_none(), "{column_type}");
    }
}

#[test]
fn decimals_keep_their_digits_and_spans_of_time_become_microseconds_without_a_type() {
    let decimal = ColumnType::Decimal { precision: 35, scale: 0 };
    assert_eq!(sql_type(&NAMES, decimal), ("decimal(35, 0)".to_owned(), None));
    let with_interval = TypeNames { interval: Some("span"), ..NAMES };
    for column_type in [ColumnType::Interval, ColumnType::Interval64] {
        assert_eq!(sql_type(&NAMES, column_type), ("8".to_owned(), Some(MICROSECONDS)));
        assert_eq!(sql_type(&with_interval, column_type), ("span".to_owned(), None));
    }
    for column_type in [ColumnType::Datetime, ColumnType::Datetime64] {
        assert_eq!(sql_type(&NAMES, column_type).0, "seconds", "{column_type}");
    }
    for column_type in [ColumnType::Timestamp, ColumnType::Timestamp64] {
        assert_eq!(sql_type(&NAMES, column_type).0, "micros", "{column_type}");
    }
}

#[test]
fn every_column_has_a_line_and_only_changed_types_have_a_note() {
    let declared = [
        Column::required("id", ColumnType::Uint64),
        Column::nullable("Name", ColumnType::Utf8),
        Column::required("took", ColumnType::Interval),
    ];
    let mut notes = vec!["an earlier one".to_owned()];
    let lines = columns(&declared, '`', &mut notes, |column| NAMES.sql_type(column));
    assert_eq!(lines, ["    id 8", "    `Name` text", "    took 8"]);
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[1].starts_with("column id, Uint64 here, becomes 8: "), "{notes:?}");
    assert!(notes[2].ends_with("becomes 8: microseconds"), "{notes:?}");
    let lines: Vec<String> = not_null(lines, &declared).collect();
    assert_eq!(lines, ["    id 8 NOT NULL", "    `Name` text", "    took 8 NOT NULL"]);
}

#[test]
fn the_one_hashed_column_is_the_first_and_a_note_names_the_others() {
    let key = ["a", "b", "c"].map(str::to_owned);
    let design = |partition_key| TableDesign {
        name: "t",
        columns: &[],
        partition_key,
        primary_key: &[],
        is_unique: false,
        time: None,
        partitions: 4,
        role: None,
        heaviest_rows: None,
        function: Function::default(),
    };
    for length in 0..=key.len() {
        let mut notes = Vec::new();
        let column = only_column(&design(&key[..length]), "Citus", &mut notes).to_owned();
        assert_eq!(column, if length == 0 { "" } else { "a" });
        assert_eq!(notes.len(), usize::from(length > 1), "{notes:?}");
        assert!(notes.iter().all(|note| note.contains(&key[..length].join(" and "))), "{notes:?}");
    }
}
