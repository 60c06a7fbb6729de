//! Parts that the SQL of several systems shares.

use evenkeel_model::table::{Column, ColumnType};

use crate::targets::TableDesign;

/// Type of a column in a system.
pub(super) struct SqlType {
    pub(super) name: String,
    /// Difference from the type of the export.
    pub(super) note: Option<&'static str>,
}

impl SqlType {
    pub(super) fn plain(name: impl Into<String>) -> Self {
        Self { name: name.into(), note: None }
    }

    pub(super) fn noted(name: impl Into<String>, note: &'static str) -> Self {
        Self { name: name.into(), note: Some(note) }
    }
}

/// Note for systems without unsigned integers.
const SIGNED: &str = "numbers above 9223372036854775807 do not fit";
/// Note for systems without a type for spans of time.
pub(super) const MICROSECONDS: &str = "microseconds";

/// Words that at least one of the systems reserves; as names they are quoted.
const RESERVED: &[&str] = &[
    "all",
    "alter",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "begin",
    "between",
    "bigint",
    "binary",
    "bitmap",
    "both",
    "bucket",
    "by",
    "case",
    "cast",
    "char",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "cross",
    "cube",
    "current",
    "database",
    "date",
    "day",
    "decimal",
    "default",
    "delete",
    "desc",
    "describe",
    "distinct",
    "distributed",
    "do",
    "double",
    "drop",
    "else",
    "end",
    "enum",
    "except",
    "exists",
    "explain",
    "false",
    "fetch",
    "float",
    "for",
    "foreign",
    "from",
    "full",
    "function",
    "grant",
    "group",
    "grouping",
    "having",
    "hour",
    "if",
    "in",
    "index",
    "inner",
    "insert",
    "int",
    "integer",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
    "json",
    "key",
    "keys",
    "large",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "lookup",
    "map",
    "merge",
    "minute",
    "month",
    "natural",
    "new",
    "no",
    "not",
    "null",
    "of",
    "offset",
    "on",
    "only",
    "option",
    "or",
    "order",
    "outer",
    "over",
    "overlaps",
    "partition",
    "percent",
    "placing",
    "precision",
    "primary",
    "proto",
    "qualify",
    "range",
    "rank",
    "read",
    "references",
    "replace",
    "right",
    "row",
    "rows",
    "schema",
    "second",
    "select",
    "set",
    "some",
    "start",
    "string",
    "struct",
    "system",
    "table",
    "text",
    "then",
    "time",
    "timestamp",
    "timestamps",
    "to",
    "token",
    "trailing",
    "true",
    "union",
    "unique",
    "update",
    "user",
    "using",
    "value",
    "values",
    "varchar",
    "view",
    "when",
    "where",
    "window",
    "with",
    "within",
    "year",
];

/// Quotes a name unless it is a plain word in lower case that no system reserves.
pub(super) fn quoted(name: &str, mark: char) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if starts_well && name.chars().all(plain) && !RESERVED.contains(&name) {
        return name.to_owned();
    }
    let doubled = name.replace(mark, &format!("{mark}{mark}"));
    format!("{mark}{doubled}{mark}")
}

/// Joins quoted names.
pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a String>, mark: char) -> String {
    names.into_iter().map(|name| quoted(name, mark)).collect::<Vec<_>>().join(", ")
}

/// Writes a text as a literal between single quotes.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Writes one line for each column, and adds a note for each type that differs.
pub(super) fn columns<'a>(
    columns: impl IntoIterator<Item = &'a Column>,
    mark: char,
    notes: &mut Vec<String>,
    type_of: impl Fn(&Column) -> SqlType,
) -> Vec<String> {
    let lines = columns.into_iter().map(|column| {
        let SqlType { name, note } = type_of(column);
        if let Some(note) = note {
            notes
                .push(format!("column {}, {} here, becomes {name}: {note}", column.name, column.column_type));
        }
        format!("    {} {name}", quoted(&column.name, mark))
    });
    lines.collect()
}

/// Adds ` NOT NULL` to the lines of columns that are not nullable.
pub(super) fn not_null<'a>(
    lines: Vec<String>,
    columns: impl IntoIterator<Item = &'a Column>,
) -> impl Iterator<Item = String> {
    let required: Vec<bool> = columns.into_iter().map(|column| !column.nullable).collect();
    lines.into_iter().zip(required).map(|(line, required)| if required { line + " NOT NULL" } else { line })
}

/// Returns the one column of systems that hash a single column, with a note if the key has more.
pub(super) fn only_column<'a>(design: &TableDesign<'a>, system: &str, notes: &mut Vec<String>) -> &'a str {
    let first = design.partition_key.first().map_or("", String::as_str);
    if design.partition_key.len() > 1 {
        notes.push(format!(
            "{system} hashes one column: add one that combines {} and hash that, or accept {first} alone",
            design.partition_key.join(" and ")
        ));
    }
    first
}

/// Names of the types of a system whose integers are all signed.
pub(super) struct TypeNames {
    /// Integers of 1, 2, 4 and 8 bytes.
    pub(super) integers: [&'static str; 4],
    pub(super) boolean: &'static str,
    pub(super) float: &'static str,
    pub(super) double: &'static str,
    /// Decimals, without precision and scale.
    pub(super) decimal: &'static str,
    pub(super) text: &'static str,
    pub(super) bytes: &'static str,
    pub(super) json: &'static str,
    pub(super) uuid: &'static str,
    pub(super) date: &'static str,
    /// Times to the second and to the microsecond.
    pub(super) times: [&'static str; 2],
    /// Spans of time; `None` if they have to be stored as integers.
    pub(super) interval: Option<&'static str>,
}

impl TypeNames {
    /// Returns the type of a column, with a note if it does not hold all values.
    pub(super) fn sql_type(&self, column: &Column) -> SqlType {
        let [one, two, four, eight] = self.integers;
        let [seconds, microseconds] = self.times;
        SqlType::plain(match column.column_type {
            ColumnType::Bool => self.boolean,
            ColumnType::Int8 => one,
            ColumnType::Int16 | ColumnType::Uint8 => two,
            ColumnType::Int32 | ColumnType::Uint16 => four,
            ColumnType::Int64 | ColumnType::Uint32 => eight,
            ColumnType::Uint64 => return SqlType::noted(eight, SIGNED),
            ColumnType::Float => self.float,
            ColumnType::Double => self.double,
            ColumnType::Decimal { precision, scale } => {
                return SqlType::plain(format!("{}({precision}, {scale})", self.decimal));
            }
            ColumnType::Utf8 | ColumnType::ObjectId => self.text,
            ColumnType::String | ColumnType::Yson => self.bytes,
            ColumnType::Json | ColumnType::JsonDocument => self.json,
            ColumnType::Uuid => self.uuid,
            ColumnType::Date | ColumnType::Date32 => self.date,
            ColumnType::Datetime | ColumnType::Datetime64 => seconds,
            ColumnType::Timestamp | ColumnType::Timestamp64 => microseconds,
            ColumnType::Interval | ColumnType::Interval64 => match self.interval {
                Some(name) => name,
                None => return SqlType::noted(eight, MICROSECONDS),
            },
        })
    }
}

#[cfg(test)]
#[path = "sql_tests.rs"]
mod tests;
