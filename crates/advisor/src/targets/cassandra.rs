//! Apache Cassandra and ScyllaDB.

use evenkeel_model::table::{Column, ColumnType};

use crate::targets::sql::{SqlType, TypeNames, columns, names, quoted};
use crate::targets::{Dialect, TableDesign};

pub(super) struct Cassandra;

const MARK: char = '"';
const TYPES: TypeNames = TypeNames {
    integers: ["tinyint", "smallint", "int", "bigint"],
    boolean: "boolean",
    float: "float",
    double: "double",
    decimal: "decimal",
    text: "text",
    bytes: "blob",
    json: "text",
    uuid: "uuid",
    date: "date",
    times: ["timestamp"; 2],
    interval: None,
};
/// Number of rows per partition key above which reads and repairs suffer: the usual rule of thumb.
const MAX_ROWS_PER_KEY: u64 = 100_000;

impl Dialect for Cassandra {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        let lines = columns(design.columns, MARK, notes, type_of);
        let clustering: Vec<&String> = design.beside_partition_key().collect();
        if let Some(rows) = design.heaviest_rows.filter(|rows| *rows > MAX_ROWS_PER_KEY) {
            notes.push(format!(
                "{rows} rows share a value of ({}), and more will: Cassandra keeps them in one partition, which should have fewer than {MAX_ROWS_PER_KEY}; add a column such as the month to the partition key",
                design.partition_key.join(", ")
            ));
        }
        if !design.is_unique {
            notes.push("rows with equal primary keys replace each other, and the export has such rows: add a column that distinguishes them".to_owned());
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
    match column.column_type {
        // Decimals have any precision.
        ColumnType::Decimal { .. } => SqlType::plain(TYPES.decimal),
        ColumnType::Timestamp | ColumnType::Timestamp64 => {
            SqlType::noted("timestamp", "fractions finer than a millisecond are cut")
        }
        _ => TYPES.sql_type(column),
    }
}
