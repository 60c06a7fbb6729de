//! Apache Cassandra and ScyllaDB.

use evenkeel_model::table::{Column, ColumnType};

use crate::targets::sql::{MICROSECONDS, MILLISECONDS, SIGNED, SqlType, columns, names, quoted};
use crate::targets::{Dialect, TableDesign};

pub(super) struct Cassandra;

const MARK: char = '"';
/// Rows with one partition key from which reads and repairs suffer: the usual rule of thumb.
const MOST_ROWS_PER_KEY: u64 = 100_000;

impl Dialect for Cassandra {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        let lines = columns(design.columns, MARK, notes, type_of);
        let clustering: Vec<&String> = design.beside_partition_key().collect();
        if let Some(rows) = design.heaviest_rows.filter(|rows| *rows > MOST_ROWS_PER_KEY) {
            notes.push(format!(
                "{rows} rows share a value of ({}), and more will: Cassandra keeps them in one partition, which should have fewer than {MOST_ROWS_PER_KEY}; add a column such as the month to the partition key",
                design.partition_key.join(", ")
            ));
        }
        if !design.is_unique {
            notes.push("rows with equal primary keys replace each other, and the export has such rows: add a column that tells them apart".to_owned());
        }
        let mut key = format!("({})", names(design.partition_key, MARK));
        for column in &clustering {
            key = format!("{key}, {}", quoted(column, MARK));
        }
        format!(
            "CREATE TABLE {} (\n{},\n    PRIMARY KEY ({key})\n);\n",
            quoted(design.name, MARK),
            lines.join(",\n")
        )
    }
}

fn type_of(column: &Column) -> SqlType {
    SqlType::plain(match column.column_type {
        ColumnType::Bool => "boolean",
        ColumnType::Int8 => "tinyint",
        ColumnType::Int16 | ColumnType::Uint8 => "smallint",
        ColumnType::Int32 | ColumnType::Uint16 => "int",
        ColumnType::Int64 | ColumnType::Uint32 => "bigint",
        ColumnType::Uint64 => return SqlType::noted("bigint", SIGNED),
        ColumnType::Float => "float",
        ColumnType::Double => "double",
        ColumnType::Decimal { .. } => "decimal",
        ColumnType::String | ColumnType::Yson => "blob",
        ColumnType::Uuid => "uuid",
        ColumnType::Date | ColumnType::Date32 => "date",
        ColumnType::Datetime | ColumnType::Datetime64 => "timestamp",
        ColumnType::Timestamp | ColumnType::Timestamp64 => return SqlType::noted("timestamp", MILLISECONDS),
        ColumnType::Interval | ColumnType::Interval64 => return SqlType::noted("bigint", MICROSECONDS),
        ColumnType::Utf8 | ColumnType::Json | ColumnType::JsonDocument => "text",
    })
}
