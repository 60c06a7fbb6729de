//! Google Spanner, in the GoogleSQL dialect.

use evenkeel_model::table::{Column, ColumnType};

use crate::role::Role;
use crate::targets::sql::{SqlType, TypeNames, columns, names, not_null, quoted};
use crate::targets::{Dialect, TableDesign};

pub(super) struct Spanner;

const MARK: char = '`';
const TYPES: TypeNames = TypeNames {
    integers: ["INT64"; 4],
    boolean: "BOOL",
    float: "FLOAT32",
    double: "FLOAT64",
    decimal: "NUMERIC",
    text: "STRING(MAX)",
    bytes: "BYTES(MAX)",
    json: "JSON",
    uuid: "STRING(36)",
    date: "DATE",
    times: ["TIMESTAMP"; 2],
    interval: None,
};
/// Digits of NUMERIC before and after the point.
const NUMERIC_DIGITS: (i16, i16) = (29, 9);

impl Dialect for Spanner {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        for column in design.columns {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if !column.name.chars().all(plain) || !column.name.starts_with(|c: char| c.is_ascii_alphabetic())
            {
                notes.push(format!(
                    "rename column {}: names have letters, digits and _ only, a letter first",
                    column.name
                ));
            }
        }
        let lines = columns(design.columns, MARK, notes, type_of);
        let mut lines: Vec<String> = not_null(lines, design.columns).collect();
        if !design.is_unique {
            notes.push("a primary key must be unique; the export has rows with equal ones: add a column that distinguishes them".to_owned());
        }
        let rest: Vec<String> = design.beside_partition_key().cloned().collect();
        let mut key: Vec<String> = design.partition_key.to_vec();
        key.extend(rest);
        // Spanner splits by ranges: rising numbers and times would all go to the last split.
        if design.role == Some(Role::Entity) {
            notes.push(format!(
                "Spanner splits tables by ranges of the primary key, so {} comes first: inserts spread over its values",
                design.partition_key.join(", ")
            ));
        } else {
            let count = design.partitions;
            let texts: Vec<String> = design
                .partition_key
                .iter()
                .map(|name| format!("CAST({} AS STRING)", quoted(name, MARK)))
                .collect();
            let hashed = match texts.as_slice() {
                [one] => one.clone(),
                several => format!("CONCAT({})", several.join(", ")),
            };
            lines.insert(
                0,
                format!("    ShardId INT64 NOT NULL AS (MOD(MOD(FARM_FINGERPRINT({hashed}), {count}) + {count}, {count})) STORED"),
            );
            notes.push(format!(
                "Spanner splits tables by ranges of the primary key; values of {} may grow with time, so a hash comes first. Reads of a range visit all {count} values of ShardId",
                design.partition_key.join(", ")
            ));
            key.insert(0, "ShardId".to_owned());
        }
        let key: Vec<String> = key
            .iter()
            .map(|name| if name == "ShardId" { name.clone() } else { names([name], MARK) })
            .collect();
        format!(
            "CREATE TABLE {} (\n{}\n) PRIMARY KEY ({});\n",
            quoted(design.name, MARK),
            lines.join(",\n"),
            key.join(", ")
        )
    }
}

fn type_of(column: &Column) -> SqlType {
    let ColumnType::Decimal { precision, scale } = column.column_type else { return TYPES.sql_type(column) };
    let (before, after) = NUMERIC_DIGITS;
    if i16::from(precision) - i16::from(scale) <= before && i16::from(scale) <= after {
        return SqlType::plain(TYPES.decimal);
    }
    SqlType::noted(TYPES.text, "NUMERIC has 29 digits before the point and 9 after it")
}
