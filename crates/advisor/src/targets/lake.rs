//! Apache Iceberg with Spark SQL, and Apache Paimon with Flink SQL.

use evenkeel_model::table::{Column, ColumnType};

use crate::targets::sql::{
    MICROSECONDS, SIGNED, SqlType, columns, literal, names, not_null, only_column, quoted, signed_bytes,
};
use crate::targets::{Dialect, TableDesign};

const MARK: char = '`';

pub(super) struct Iceberg;

impl Dialect for Iceberg {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        let lines = columns(design.columns, MARK, notes, spark_type);
        let lines: Vec<String> = not_null(lines, design.columns).collect();
        let name = quoted(design.name, MARK);
        let bucketed = only_column(design, "bucket()", notes);
        let mut partitions = vec![format!("bucket({}, {})", design.partitions, quoted(bucketed, MARK))];
        // A date is its own day.
        let time = design.time.filter(|time| !design.partition_key.iter().any(|key| key == time));
        partitions.extend(time.map(|time| format!("days({})", quoted(time, MARK))));
        if time.is_some() {
            notes.push("each day has files of its own: leave days() out if a day has less than some 100 MB for each bucket".to_owned());
        }
        let mut text = format!(
            "CREATE TABLE {name} (\n{}\n) USING iceberg\nPARTITIONED BY ({});\n",
            lines.join(",\n"),
            partitions.join(", ")
        );
        if !design.primary_key.is_empty() {
            let key = names(design.primary_key, MARK);
            text.push_str(&format!(
                "\nALTER TABLE {name} WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY {key};\n"
            ));
            if design.is_unique {
                text.push_str(&format!("ALTER TABLE {name} SET IDENTIFIER FIELDS {key};\n"));
                notes.push(
                    "Iceberg records identifier fields, and leaves it to writers to keep them unique"
                        .to_owned(),
                );
            }
        }
        text
    }
}

fn spark_type(column: &Column) -> SqlType {
    let column_type = column.column_type;
    if let Some(bytes) = signed_bytes(column_type) {
        let name = if bytes <= 4 { "int" } else { "bigint" };
        let note = (column_type == ColumnType::Uint64).then_some(SIGNED);
        return SqlType { name: name.to_owned(), note };
    }
    SqlType::plain(match column_type {
        ColumnType::Bool => "boolean",
        ColumnType::Float => "float",
        ColumnType::Double => "double",
        ColumnType::Decimal { precision, scale } => {
            return SqlType::plain(format!("decimal({precision}, {scale})"));
        }
        ColumnType::String | ColumnType::Yson => "binary",
        ColumnType::Date | ColumnType::Date32 => "date",
        ColumnType::Datetime | ColumnType::Datetime64 | ColumnType::Timestamp | ColumnType::Timestamp64 => {
            "timestamp"
        }
        ColumnType::Interval | ColumnType::Interval64 => return SqlType::noted("bigint", MICROSECONDS),
        ColumnType::Uuid => {
            return SqlType::noted("string", "Spark SQL has no UUID, and text hashes differently");
        }
        _ => "string",
    })
}

pub(super) struct Paimon;

impl Dialect for Paimon {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        let lines = columns(design.columns, MARK, notes, flink_type);
        let mut lines: Vec<String> = not_null(lines, design.columns).collect();
        let unique = design.is_unique && !design.primary_key.is_empty();
        if unique {
            lines.push(format!("    PRIMARY KEY ({}) NOT ENFORCED", names(design.primary_key, MARK)));
        } else {
            notes.push(
                "no unique key was found, so this is an append table: rows with equal keys are all kept"
                    .to_owned(),
            );
        }
        // Names in options are not SQL, and are not quoted.
        let key = design.partition_key.join(",");
        format!(
            "CREATE TABLE {} (\n{}\n) WITH (\n    'bucket' = '{}',\n    'bucket-key' = {}\n);\n",
            quoted(design.name, MARK),
            lines.join(",\n"),
            design.partitions,
            literal(&key)
        )
    }
}

fn flink_type(column: &Column) -> SqlType {
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
        ColumnType::String | ColumnType::Yson => "BYTES",
        ColumnType::Date | ColumnType::Date32 => "DATE",
        ColumnType::Datetime | ColumnType::Datetime64 => "TIMESTAMP(0)",
        ColumnType::Timestamp | ColumnType::Timestamp64 => "TIMESTAMP(6)",
        ColumnType::Interval | ColumnType::Interval64 => return SqlType::noted("BIGINT", MICROSECONDS),
        _ => "STRING",
    })
}
