//! Names of column types that ClickHouse and Doris write below the names of the columns.

use evenkeel_model::note::Note;
use evenkeel_model::table::{Column, ColumnType};

/// Columns with the types that a text file states, and remarks on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypedColumns {
    pub(super) columns: Vec<Column>,
    pub(super) notes: Vec<Note>,
}

/// Returns the columns with the types that a line states below the names; `None` if the line is a
/// row.
pub(super) fn declared_types(names: &[String], line: &[String]) -> Option<TypedColumns> {
    let is_type = |text: &String| type_of_name(text).is_some();
    if names.len() != line.len() || !line.iter().all(is_type) || names.iter().all(is_type) {
        return None;
    }
    let typed = names.iter().zip(line);
    let column = |(name, text): (&String, &String)| {
        Some(Column { name: name.clone(), column_type: type_of_name(text)?, nullable: takes_null(text) })
    };
    let columns = typed.clone().map(column);
    let in_zone = typed.filter_map(|(name, text)| {
        let zone = zone_of(text).filter(|zone| !matches!(*zone, "UTC" | "Etc/UTC" | "GMT"))?;
        Some(Note::ZoneIgnored { column: name.clone(), zone: zone.to_owned() })
    });
    Some(TypedColumns { notes: in_zone.collect(), columns: columns.collect::<Option<_>>()? })
}

/// Whether a column is nullable: in ClickHouse only if the type says so, in Doris, whose types are
/// in capitals, always.
fn takes_null(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default().trim();
    let is_of_doris = name != "UUID" && !name.bytes().any(|byte| byte.is_ascii_lowercase());
    is_of_doris || text.contains("Nullable(") || text.starts_with("Variant") || text.starts_with("Dynamic")
}

/// Returns the time zone of `DateTime('Europe/Moscow')`.
fn zone_of(text: &str) -> Option<&str> {
    let (_, arguments) = text.split_once("DateTime")?;
    let (_, zone) = arguments.split_once('\'')?;
    zone.split('\'').next()
}

/// Returns the type that values of a type of ClickHouse or Doris have here: nested values are text.
fn type_of_name(text: &str) -> Option<ColumnType> {
    let text = text.trim();
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => (name, Some(rest.strip_suffix(')')?)),
        None => (text, None),
    };
    if let ("Nullable" | "LowCardinality", Some(inner)) = (name, arguments) {
        return type_of_name(inner);
    }
    Some(match name {
        "Bool" | "BOOLEAN" => ColumnType::Bool,
        "Int8" | "TINYINT" => ColumnType::Int8,
        "Int16" | "SMALLINT" => ColumnType::Int16,
        "Int32" | "INT" => ColumnType::Int32,
        "Int64" | "BIGINT" => ColumnType::Int64,
        "UInt8" => ColumnType::Uint8,
        "UInt16" => ColumnType::Uint16,
        "UInt32" => ColumnType::Uint32,
        "UInt64" => ColumnType::Uint64,
        "Float32" | "FLOAT" => ColumnType::Float,
        "Float64" | "DOUBLE" => ColumnType::Double,
        "Decimal" | "Decimal32" | "Decimal64" | "Decimal128" | "DECIMAL" | "DECIMALV2" | "DECIMALV3" => {
            decimal(name, arguments?)
        }
        "Date" | "DATE" | "DATEV2" => ColumnType::Date,
        "Date32" => ColumnType::Date32,
        "DateTime" => ColumnType::Datetime,
        "DateTime64" | "DATETIME" | "DATETIMEV2" => ColumnType::Timestamp64,
        "UUID" => ColumnType::Uuid,
        "JSON" | "JSONB" => ColumnType::Json,
        "String" | "FixedString" | "Enum8" | "Enum16" | "IPv4" | "IPv6" | "Int128" | "Int256" | "UInt128"
        | "UInt256" | "Decimal256" | "Array" | "Map" | "Tuple" | "Variant" | "Dynamic" | "CHAR"
        | "VARCHAR" | "STRING" | "TEXT" | "LARGEINT" | "IPV4" | "IPV6" | "ARRAY" | "MAP" | "STRUCT" => {
            ColumnType::Utf8
        }
        _ => return None,
    })
}

/// Returns the type of `Decimal(precision, scale)`, or of `Decimal64(scale)`; text if YDB has no
/// type that wide.
fn decimal(name: &str, arguments: &str) -> ColumnType {
    let mut numbers = arguments.split(',').map(|number| number.trim().parse::<u8>().ok());
    let (precision, scale) = match (name, numbers.next().flatten(), numbers.next().flatten()) {
        ("Decimal32", Some(scale), _) => (9, scale),
        ("Decimal64", Some(scale), _) => (18, scale),
        ("Decimal128", Some(scale), _) => (38, scale),
        (_, Some(precision), scale) => (precision, scale.unwrap_or(0)),
        (_, None, _) => return ColumnType::Utf8,
    };
    let text = format!("Decimal({precision},{scale})");
    text.parse().unwrap_or(ColumnType::Utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_line_of_types_gives_the_types_of_the_columns() {
        let names = strings(&["id", "at", "price", "tags", "kind"]);
        let line = strings(&[
            "UInt64",
            "DateTime64(3, 'UTC')",
            "Nullable(Decimal(18, 4))",
            "Array(LowCardinality(String))",
            "LowCardinality(Nullable(String))",
        ]);
        let types: Vec<ColumnType> = declared_types(&names, &line)
            .unwrap()
            .columns
            .into_iter()
            .map(|column| column.column_type)
            .collect();
        let price = ColumnType::Decimal { precision: 18, scale: 4 };
        let expected =
            [ColumnType::Uint64, ColumnType::Timestamp64, price, ColumnType::Utf8, ColumnType::Utf8];
        assert_eq!(types, expected);
        assert_eq!(type_of_name("Decimal(76, 10)"), Some(ColumnType::Utf8));
        assert_eq!(type_of_name("DATETIMEV2(6)"), Some(ColumnType::Timestamp64));
        assert_eq!(type_of_name("Enum8('a' = 1, 'b' = 2)"), Some(ColumnType::Utf8));
    }

    #[test]
    fn a_zone_is_noted_because_times_are_read_as_utc() {
        let names = strings(&["at", "until"]);
        let line = strings(&["DateTime('Europe/Moscow')", "Nullable(DateTime64(3, 'UTC'))"]);
        let notes = declared_types(&names, &line).unwrap().notes;
        assert_eq!(notes, [Note::ZoneIgnored { column: "at".into(), zone: "Europe/Moscow".into() }]);
    }

    #[test]
    fn columns_of_clickhouse_take_null_only_if_their_types_say_so() {
        let nullable =
            ["Nullable(String)", "LowCardinality(Nullable(String))", "VARCHAR(20)", "INT", "DATETIMEV2"];
        assert!(nullable.iter().all(|text| takes_null(text)));
        assert!(
            !["String", "UInt64", "LowCardinality(String)", "UUID", "DateTime64(3)"]
                .iter()
                .any(|t| takes_null(t))
        );
    }

    #[test]
    fn rows_are_no_types() {
        let names = strings(&["id", "kind"]);
        for line in [["1", "String"], ["UInt64", "click"], ["UInt64(", "String"], ["", "String"]] {
            assert_eq!(declared_types(&names, &strings(&line)), None, "{line:?}");
        }
        assert_eq!(declared_types(&names, &strings(&["UInt64"])), None);
        // Columns may have the names of types.
        assert_eq!(declared_types(&strings(&["String", "Date"]), &strings(&["String", "Date"])), None);
    }
}
