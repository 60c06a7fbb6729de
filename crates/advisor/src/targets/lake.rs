//! Apache Iceberg with Spark SQL, and Apache Paimon with Flink SQL.

use evenkeel_model::table::{Column, ColumnType};

use crate::targets::sql::{SqlType, TypeNames, columns, literal, names, not_null, only_column, quoted};
use crate::targets::{Dialect, TableDesign};

const MARK: char = '`';

const SPARK: TypeNames = TypeNames {
    integers: ["int", "int", "int", "bigint"],
    boolean: "boolean",
    float: "float",
    double: "double",
    decimal: "decimal",
    text: "string",
    bytes: "binary",
    json: "string",
    uuid: "string",
    date: "date",
    times: ["timestamp"; 2],
    interval: None,
};
const FLINK: TypeNames = TypeNames {
    integers: ["TINYINT", "SMALLINT", "INT", "BIGINT"],
    boolean: "BOOLEAN",
    float: "FLOAT",
    double: "DOUBLE",
    decimal: "DECIMAL",
    text: "STRING",
    bytes: "BYTES",
    json: "STRING",
    uuid: "STRING",
    date: "DATE",
    times: ["TIMESTAMP(0)", "TIMESTAMP(6)"],
    interval: None,
};

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
            notes.push("each day has separate files: omit days() if a day has less than about 100 MB for each bucket".to_owned());
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
                notes.push("Iceberg records identifier fields, but writers must keep them unique".to_owned());
            }
        }
        text
    }
}

fn spark_type(column: &Column) -> SqlType {
    match column.column_type {
        ColumnType::Uuid => SqlType::noted("string", "Spark SQL has no UUID, and text hashes differently"),
        _ => SPARK.sql_type(column),
    }
}

pub(super) struct Paimon;

impl Dialect for Paimon {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        let lines = columns(design.columns, MARK, notes, |column| FLINK.sql_type(column));
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
