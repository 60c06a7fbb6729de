//! Columns and table names on the command line.

use evenkeel::table::ColumnType;

use super::*;

#[test]
fn a_column_is_a_name_and_a_type_and_may_be_marked_not_null() {
    let read = |text: &str| {
        let column = column("--column", text).unwrap();
        (column.name, column.column_type, column.nullable)
    };
    assert_eq!(read("at:timestamp"), ("at".to_owned(), ColumnType::Timestamp, true));
    assert_eq!(read(" id :Uint64:NOT-NULL"), ("id".to_owned(), ColumnType::Uint64, false));
    assert_eq!(read("x:utf8:null"), ("x".to_owned(), ColumnType::Utf8, true));
}

#[test]
fn columns_without_a_type_or_with_another_mark_are_refused() {
    for (text, reason) in [
        ("id", "--column 'id': has no type"),
        ("id:number", "unknown column type 'number'"),
        ("id:uint64:required", "'required' is neither not-null nor null"),
    ] {
        match column("--column", text) {
            Err(Failure::Usage(error)) => assert!(error.to_string().contains(reason), "{error}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_table_is_named_after_its_directory() {
    assert_eq!(name_of(Path::new("/tables/events")), "events");
    assert_eq!(name_of(Path::new("/tables/events/")), "events");
    assert_eq!(name_of(Path::new("/")), "table");
}
