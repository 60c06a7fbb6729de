//! Names and types, as written in statements.

use crate::schema::dialect::Dialect;
use evenkeel_model::table::ColumnType;

/// Returns the Spanner type that holds the values of a YDB column. Uint64 is wider than any Spanner
/// integer.
pub(super) fn type_name(column_type: ColumnType, dialect: Dialect) -> &'static str {
    let [google, postgres] = match column_type {
        ColumnType::Bool => ["BOOL", "boolean"],
        ColumnType::Int8
        | ColumnType::Int16
        | ColumnType::Int32
        | ColumnType::Int64
        | ColumnType::Uint8
        | ColumnType::Uint16
        | ColumnType::Uint32
        | ColumnType::Interval
        | ColumnType::Interval64 => ["INT64", "bigint"],
        ColumnType::Uint64 | ColumnType::Decimal { .. } => ["NUMERIC", "numeric"],
        ColumnType::Float => ["FLOAT32", "real"],
        ColumnType::Double => ["FLOAT64", "double precision"],
        ColumnType::Utf8 => ["STRING(MAX)", "varchar"],
        ColumnType::ObjectId => ["STRING(24)", "varchar(24)"],
        ColumnType::String | ColumnType::Yson => ["BYTES(MAX)", "bytea"],
        ColumnType::Json | ColumnType::JsonDocument => ["JSON", "jsonb"],
        ColumnType::Uuid => ["STRING(36)", "varchar(36)"],
        ColumnType::Date | ColumnType::Date32 => ["DATE", "date"],
        ColumnType::Datetime | ColumnType::Timestamp | ColumnType::Datetime64 | ColumnType::Timestamp64 => {
            ["TIMESTAMP", "timestamptz"]
        }
    };
    match dialect {
        Dialect::GoogleSql => google,
        Dialect::Postgres => postgres,
    }
}

/// Words that are reserved in one of the dialects, according to their references. Quotes
/// around other words are harmless.
const RESERVED: &str = " all analyse analyze and any array as asc assert_rows_modified asymmetric at authorization between binary both by case cast \
                        check collate collation column concurrently constraint contains create cross cube current current_catalog \
                        current_date current_role current_time current_timestamp current_user default deferrable define desc distinct \
                        do else end enum escape except exclude exists extract false fetch following for foreign freeze from full grant group \
                        grouping groups hash having if ignore ilike in initially inner intersect interval into is isnull join lateral leading \
                        left like limit localtime localtimestamp lookup merge natural new no not notnull null nulls of offset on only or order \
                        outer over overlaps partition placing preceding primary proto range recursive references respect returning right rollup \
                        rows select session_user set similar some struct symmetric table tablesample then to trailing treat true unbounded \
                        union unique unnest user using variadic verbose when where window with within ";

/// Returns a name that Spanner accepts: letters, digits and `_`, starting with a letter. Quoting
/// does not permit other characters.
pub(super) fn plain_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    match plain.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => plain,
        _ => format!("c_{plain}"),
    }
}

/// Returns a valid name, quoted if necessary.
pub(super) fn quote(name: &str, dialect: Dialect) -> String {
    let name = plain_name(name);
    let reserved = RESERVED.contains(&format!(" {} ", name.to_ascii_lowercase()));
    // The PostgreSQL dialect folds unquoted names to lower case.
    let folded = name.chars().any(|c| c.is_ascii_uppercase());
    match dialect {
        Dialect::GoogleSql if reserved => format!("`{name}`"),
        Dialect::Postgres if reserved || folded => format!("\"{name}\""),
        _ => name,
    }
}
