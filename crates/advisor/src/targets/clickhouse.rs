//! ClickHouse: local tables and a Distributed table over them.

use evenkeel_model::table::{Column, ColumnType};

use crate::targets::sql::{MICROSECONDS, SqlType, columns, literal, names, quoted};
use crate::targets::{Dialect, TableDesign};
use evenkeel_placement::placement::Function;

pub(super) struct ClickHouse;

const MARK: char = '`';

impl Dialect for ClickHouse {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        let sorted = if design.primary_key.is_empty() { design.partition_key } else { design.primary_key };
        let lines = columns(design.columns, MARK, notes, type_of);
        let local = quoted(&format!("{}_local", design.name), MARK);
        let all = quoted(design.name, MARK);
        let hash = match design.function {
            Function::System(system) => function_of(system.about().name),
            Function::Ydb(_) => "cityHash64",
        };
        let engine = if design.is_unique { "ReplacingMergeTree" } else { "MergeTree" };
        if design.is_unique {
            notes.push(
                "ClickHouse enforces no key: rows with equal ORDER BY columns are replaced when parts merge; use FINAL to read them once, or MergeTree to keep all".to_owned(),
            );
        }
        notes.push(format!(
            "run this on every one of the {} shards, or add ON CLUSTER; 'cluster' is the name in your configuration",
            design.partitions
        ));
        // Rows are replaced within a partition only, so equal keys have to be in the same one.
        let time = design.time.filter(|time| !design.is_unique || sorted.iter().any(|key| key == time));
        let partition =
            time.map_or(String::new(), |time| format!("PARTITION BY toYYYYMM({})\n", quoted(time, MARK)));
        format!(
            "CREATE TABLE {local} (\n{}\n) ENGINE = {engine}\n{partition}ORDER BY ({});\n\n\
             CREATE TABLE {all} AS {local}\nENGINE = Distributed('cluster', currentDatabase(), {}, {hash}({}));\n",
            lines.join(",\n"),
            names(sorted, MARK),
            literal(&format!("{}_local", design.name)),
            names(design.partition_key, MARK),
        )
    }
}

/// Returns the SQL function of a placement.
fn function_of(placement: &str) -> &'static str {
    match placement {
        "clickhouse-siphash64" => "sipHash64",
        "clickhouse-xxhash64" => "xxHash64",
        "clickhouse-inthash32" => "intHash32",
        "clickhouse-inthash64" => "intHash64",
        _ => "cityHash64",
    }
}

fn type_of(column: &Column) -> SqlType {
    let (name, note) = match column.column_type {
        ColumnType::Bool => ("Bool", None),
        ColumnType::Int8 => ("Int8", None),
        ColumnType::Int16 => ("Int16", None),
        ColumnType::Int32 => ("Int32", None),
        ColumnType::Int64 => ("Int64", None),
        ColumnType::Uint8 => ("UInt8", None),
        ColumnType::Uint16 => ("UInt16", None),
        ColumnType::Uint32 => ("UInt32", None),
        ColumnType::Uint64 => ("UInt64", None),
        ColumnType::Float => ("Float32", None),
        ColumnType::Double => ("Float64", None),
        ColumnType::Decimal { precision, scale } => {
            return nullable(column, format!("Decimal({precision}, {scale})"), None);
        }
        ColumnType::Utf8
        | ColumnType::ObjectId
        | ColumnType::String
        | ColumnType::Json
        | ColumnType::JsonDocument
        | ColumnType::Yson => ("String", None),
        ColumnType::Uuid => ("UUID", None),
        ColumnType::Date => ("Date", None),
        ColumnType::Date32 => ("Date32", Some("dates before 1900 and after 2299 do not fit")),
        ColumnType::Datetime => ("DateTime('UTC')", None),
        ColumnType::Timestamp => ("DateTime64(6, 'UTC')", None),
        ColumnType::Datetime64 | ColumnType::Timestamp64 => {
            ("DateTime64(6, 'UTC')", Some("times before 1900 and after 2299 do not fit"))
        }
        ColumnType::Interval | ColumnType::Interval64 => ("Int64", Some(MICROSECONDS)),
    };
    nullable(column, name.to_owned(), note)
}

fn nullable(column: &Column, name: String, note: Option<&'static str>) -> SqlType {
    let name = if column.nullable { format!("Nullable({name})") } else { name };
    SqlType { name, note }
}
