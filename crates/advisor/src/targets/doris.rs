//! Apache Doris and StarRocks.

use evenkeel_model::table::{Column, ColumnType};

use crate::targets::sql::{SqlType, TypeNames, columns, names, not_null, quoted};
use crate::targets::{Dialect, TableDesign};

pub(super) enum Flavor {
    Doris,
    StarRocks,
}

const MARK: char = '`';

const DORIS: TypeNames = TypeNames {
    integers: ["TINYINT", "SMALLINT", "INT", "BIGINT"],
    boolean: "BOOLEAN",
    float: "FLOAT",
    double: "DOUBLE",
    decimal: "DECIMAL",
    text: "STRING",
    bytes: "STRING",
    json: "JSON",
    uuid: "VARCHAR(36)",
    date: "DATE",
    times: ["DATETIME", "DATETIME(6)"],
    interval: None,
};
const STARROCKS: TypeNames = TypeNames { bytes: "VARBINARY", times: ["DATETIME"; 2], ..DORIS };
/// Type of text and bytes in a key, which cannot be STRING.
const KEY_TEXT: &str = "VARCHAR(65533)";

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
        match (column.column_type, self) {
            (ColumnType::Utf8 | ColumnType::ObjectId | ColumnType::String | ColumnType::Yson, _)
                if in_key =>
            {
                SqlType::plain(KEY_TEXT)
            }
            (_, Self::Doris) => DORIS.sql_type(column),
            (_, Self::StarRocks) => STARROCKS.sql_type(column),
        }
    }
}
