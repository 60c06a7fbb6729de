//! Apache Doris and StarRocks.

use evenkeel_model::table::{Column, ColumnType};

use crate::targets::sql::{MICROSECONDS, SIGNED, SqlType, columns, names, not_null, quoted, signed_bytes};
use crate::targets::{Dialect, TableDesign};

pub(super) enum Flavor {
    Doris,
    StarRocks,
}

const MARK: char = '`';

impl Dialect for Flavor {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        // Key columns come first, in the order of the key.
        let ordered = design.keys_first();
        let type_of = |column: &Column| self.type_of(column, design.is_key(&column.name));
        let lines = columns(ordered.iter().copied(), MARK, notes, type_of);
        let lines: Vec<String> = not_null(lines, ordered.iter().copied()).collect();
        let sorted = if design.primary_key.is_empty() { design.partition_key } else { design.primary_key };
        let unique = design.is_unique && !design.primary_key.is_empty();
        if !unique {
            notes.push("no unique key was found, so rows with equal keys are all kept".to_owned());
        }
        let model = match (self, unique) {
            (_, false) => "DUPLICATE KEY",
            (Self::Doris, true) => "UNIQUE KEY",
            (Self::StarRocks, true) => "PRIMARY KEY",
        };
        let properties = match (self, unique) {
            (Self::Doris, true) => "\nPROPERTIES (\"enable_unique_key_merge_on_write\" = \"true\")",
            _ => "",
        };
        format!(
            "CREATE TABLE {} (\n{}\n)\n{model} ({})\nDISTRIBUTED BY HASH ({}) BUCKETS {}{properties};\n",
            quoted(design.name, MARK),
            lines.join(",\n"),
            names(sorted, MARK),
            names(design.partition_key, MARK),
            design.partitions,
        )
    }
}

impl Flavor {
    fn type_of(&self, column: &Column, in_key: bool) -> SqlType {
        let column_type = column.column_type;
        if let Some(bytes) = signed_bytes(column_type) {
            let name = match bytes {
                1 => "TINYINT",
                2 => "SMALLINT",
                4 => "INT",
                _ => "BIGINT",
            };
            let note = (column_type == ColumnType::Uint64).then_some(SIGNED);
            return SqlType { name: name.to_owned(), note };
        }
        SqlType::plain(match column_type {
            ColumnType::Bool => "BOOLEAN",
            ColumnType::Float => "FLOAT",
            ColumnType::Double => "DOUBLE",
            ColumnType::Decimal { precision, scale } => {
                return SqlType::plain(format!("DECIMAL({precision}, {scale})"));
            }
            ColumnType::Json | ColumnType::JsonDocument => "JSON",
            ColumnType::Uuid => "VARCHAR(36)",
            ColumnType::Date | ColumnType::Date32 => "DATE",
            ColumnType::Datetime | ColumnType::Datetime64 => "DATETIME",
            ColumnType::Timestamp | ColumnType::Timestamp64 => match self {
                Self::Doris => "DATETIME(6)",
                Self::StarRocks => "DATETIME",
            },
            ColumnType::Interval | ColumnType::Interval64 => return SqlType::noted("BIGINT", MICROSECONDS),
            ColumnType::String | ColumnType::Yson if !in_key => match self {
                Self::Doris => "STRING",
                Self::StarRocks => "VARBINARY",
            },
            // STRING is not taken in keys.
            _ if in_key => "VARCHAR(65533)",
            _ => "STRING",
        })
    }
}
