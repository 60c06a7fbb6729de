//! Which types each version of YDB supports.

use super::*;
use crate::table::{Column, PlacementFunction, parse_create_table};
use crate::units::PartitionCount;

const DOCUMENT: &str = include_str!("../../../../docs/YDB_TYPES.md");

/// Returns the rules as the document states them.
fn table() -> String {
    let since = |since: Option<YdbVersion>| since.map_or("never".to_owned(), |since| since.to_string());
    let mut rows = ColumnType::ALL.to_vec();
    rows.extend([ColumnType::Decimal { precision: 35, scale: 10 }, ColumnType::ObjectId]);
    let line = |column_type: &ColumnType| {
        let rule = TypeRule::for_type(*column_type);
        let instead = YdbVersion::V25_1.nearest(*column_type, ColumnRole::Plain);
        let instead = instead.filter(|instead| instead != column_type).map(|instead| instead.to_string());
        format!(
            "| {column_type} | {} | {} | {} | {} |\n",
            since(rule.column),
            since(rule.primary_key),
            since(rule.partition_key),
            instead.unwrap_or_default()
        )
    };
    rows.iter().map(line).collect::<String>().replace("|  |", "| |")
}

#[test]
fn the_document_has_the_rules_and_the_default() {
    assert!(DOCUMENT.contains(&table()), "{}", table());
    assert!(DOCUMENT.contains(&format!("default is {}", YdbVersion::default())));
}

fn spec(columns: Vec<Column>, key: &[&str]) -> TableSpec {
    TableSpec::new(TableDefinition {
        name: "t".to_owned(),
        columns,
        primary_key: key.iter().map(|name| (*name).to_owned()).collect(),
        partition_key: Vec::new(),
        partitions: PartitionCount::new(4).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

/// Checks support as a column and in a key in 25.1, 25.2, 25.4, 26.2 and 26.3, and the
/// replacing type in 25.1.
#[test]
fn each_type_is_taken_from_its_version_on() {
    use YdbVersion::{V25_1, V25_2, V25_4, V26_2, V26_3};
    let decimal = |precision, scale| ColumnType::Decimal { precision, scale };
    for (column_type, columns, keys, instead) in [
        (ColumnType::Bool, "..xxx", "....x", Some(ColumnType::Uint8)),
        (ColumnType::Uuid, "....x", "....x", Some(ColumnType::Utf8)),
        (ColumnType::Interval, "....x", "....x", Some(ColumnType::Int64)),
        (ColumnType::Interval64, ".xxxx", ".xxxx", Some(ColumnType::Int64)),
        (ColumnType::Datetime64, ".xxxx", ".xxxx", Some(ColumnType::Int64)),
        (ColumnType::Timestamp64, ".xxxx", ".xxxx", Some(ColumnType::Int64)),
        (ColumnType::Date32, ".xxxx", ".xxxx", Some(ColumnType::Int32)),
        (decimal(22, 9), "xxxxx", "xxxxx", None),
        (decimal(35, 10), ".xxxx", ".xxxx", None),
        (ColumnType::Int8, "xxxxx", "xxxxx", None),
        (ColumnType::Uint64, "xxxxx", "xxxxx", None),
        (ColumnType::Utf8, "xxxxx", "xxxxx", None),
        (ColumnType::Timestamp, "xxxxx", "xxxxx", None),
        (ColumnType::Double, "xxxxx", ".....", None),
        (ColumnType::JsonDocument, "xxxxx", ".....", None),
    ] {
        let marks = |role| {
            let taken = [V25_1, V25_2, V25_4, V26_2, V26_3].map(|version| version.takes(column_type, role));
            taken.map(|taken| if taken { "x" } else { "." }).concat()
        };
        assert_eq!(marks(ColumnRole::Plain), columns, "{column_type}");
        assert_eq!(marks(ColumnRole::PrimaryKey), keys, "{column_type}");
        assert_eq!(marks(ColumnRole::PartitionKey), keys, "{column_type}");
        let nearest = V25_1.nearest(column_type, ColumnRole::Plain).filter(|other| *other != column_type);
        assert_eq!(nearest, instead, "{column_type}");
    }
    // A version supports every type that an older one does, and replacing types are supported.
    for (column_type, role) in ColumnType::ALL.into_iter().flat_map(|column_type| {
        [ColumnRole::Plain, ColumnRole::PrimaryKey, ColumnRole::PartitionKey].map(|role| (column_type, role))
    }) {
        for pair in YdbVersion::ALL.windows(2) {
            assert!(pair[1].takes(column_type, role) || !pair[0].takes(column_type, role), "{column_type}");
        }
        for version in YdbVersion::ALL {
            assert!(version.nearest(column_type, role).is_none_or(|other| version.takes(other, role)));
            assert!(
                role != ColumnRole::Plain
                    || !version.takes(column_type, ColumnRole::PrimaryKey)
                    || version.takes(column_type, role)
            );
        }
    }
}

#[test]
fn statements_have_the_types_that_a_version_takes() {
    let of_type =
        |(number, column_type): (usize, &ColumnType)| Column::nullable(format!("c{number}"), *column_type);
    let mut columns = vec![Column::required("id", ColumnType::Uint64)];
    columns.extend(ColumnType::ALL.iter().enumerate().map(of_type));
    let spec = spec(columns, &["id"]);
    for version in YdbVersion::ALL {
        let written = write_create_table_for(&spec, version).unwrap();
        let read = parse_create_table(&written.text).unwrap().definition;
        check_ydb_types(&read, version).unwrap();
        let changed =
            read.columns.iter().zip(spec.columns()).filter(|(new, old)| new.column_type != old.column_type);
        assert_eq!(changed.count(), written.notes.len(), "{version}");
        assert_eq!(written.text.matches("-- column ").count(), written.notes.len(), "{version}");
    }
    assert_eq!(write_create_table_for(&spec, YdbVersion::V26_3).unwrap().text, write_create_table(&spec));
    let newest = write_create_table_for(&spec, YdbVersion::default()).unwrap();
    assert_eq!(newest.notes.len(), 2, "{:?}", newest.notes);
    assert!(
        newest.notes[0].contains("Utf8 in place of Uuid, which column tables of YDB 26.2 do not support")
    );
    assert!(newest.notes[1].contains("Interval64 in place of Interval"));
}

#[test]
fn what_nothing_stands_for_is_refused_with_the_next_step() {
    let parsed = |column_type: &str| {
        let text = format!(
            "CREATE TABLE t (a Uint64 NOT NULL, b {column_type} NOT NULL, PRIMARY KEY (a, b)) PARTITION BY HASH(a) WITH (STORE = COLUMN)"
        );
        parse_create_table(&text).unwrap().definition
    };
    for (column_type, version, message) in [
        ("Double", "26.3", "does not support it in a primary key; no version does: use another column"),
        ("Uuid", "25.4", "use Utf8 (its text of 36 characters), or --ydb-version 26.3 or newer"),
        (
            "Bool",
            "26.2",
            "in a primary key; use Uint8 (0 is false, 1 is true), or --ydb-version 26.3 or newer",
        ),
        ("Decimal(35,10)", "25.1", "use another type, or --ydb-version 25.2 or newer"),
    ] {
        let error = check_ydb_types(&parsed(column_type), version.parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        assert!(
            error.starts_with(&format!("column 'b' of type {column_type}: a column table of YDB {version}")),
            "{error}"
        );
    }
}

#[test]
fn versions_parse_as_they_print() {
    for version in YdbVersion::ALL {
        for text in
            [version.to_string(), format!("v{version}"), format!(" {version}.1.15 "), format!("{version}-1")]
        {
            assert_eq!(text.parse(), Ok(version), "{text}");
        }
    }
    for text in ["", "25", "25.44", "24.4", "26.9", "latest"] {
        let error = text.parse::<YdbVersion>().unwrap_err().to_string();
        assert!(error.contains("known: 25.1, 25.2, 25.3, 25.4, 26.1, 26.2, 26.3"), "{error}");
    }
}
