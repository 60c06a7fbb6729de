//! PostgreSQL and two systems built on it.

use crate::targets::sql::{TypeNames, columns, literal, names, not_null, only_column, quoted};
use crate::targets::{Dialect, TableDesign};

pub(super) enum Flavor {
    Postgres,
    Citus,
    Greenplum,
}

const MARK: char = '"';

const TYPES: TypeNames = TypeNames {
    integers: ["smallint", "smallint", "integer", "bigint"],
    boolean: "boolean",
    float: "real",
    double: "double precision",
    decimal: "numeric",
    text: "text",
    bytes: "bytea",
    json: "jsonb",
    uuid: "uuid",
    date: "date",
    times: ["timestamptz"; 2],
    interval: Some("interval"),
};

impl Dialect for Flavor {
    fn statements(&self, design: &TableDesign<'_>, notes: &mut Vec<String>) -> String {
        let lines = columns(design.columns, MARK, notes, |column| TYPES.sql_type(column));
        let mut lines: Vec<String> = not_null(lines, design.columns).collect();
        // Without a unique key, an index serves the same reads.
        let index = if design.is_unique && !design.primary_key.is_empty() {
            lines.push(format!("    PRIMARY KEY ({})", names(design.primary_key, MARK)));
            String::new()
        } else if design.primary_key.is_empty() {
            String::new()
        } else {
            notes.push(format!(
                "({}) is not unique in the export, so it is an index",
                design.primary_key.join(", ")
            ));
            format!("CREATE INDEX ON {} ({});\n", quoted(design.name, MARK), names(design.primary_key, MARK))
        };
        let table = format!("CREATE TABLE {} (\n{}\n)", quoted(design.name, MARK), lines.join(",\n"));
        let key = names(design.partition_key, MARK);
        match self {
            Self::Postgres => {
                format!("{table} PARTITION BY HASH ({key});\n\n{}{index}", partitions(design))
            }
            Self::Citus => {
                let column = only_column(design, "Citus", notes);
                format!(
                    "{table};\n{index}\nSELECT create_distributed_table({}, {}, shard_count => {});\n",
                    literal(&quoted(design.name, MARK)),
                    literal(column),
                    design.partitions
                )
            }
            Self::Greenplum => {
                notes.push(format!(
                    "the number of segments is set by the cluster; the figures are for {}",
                    design.partitions
                ));
                if design.is_unique {
                    notes.push(
                        "Greenplum 6 accepts no PRIMARY KEY on column-oriented tables: omit it there"
                            .to_owned(),
                    );
                }
                format!(
                    "{table} WITH (appendoptimized = true, orientation = column)\nDISTRIBUTED BY ({key});\n{index}"
                )
            }
        }
    }
}

/// Writes the statement that creates the partitions, whatever their number.
fn partitions(design: &TableDesign<'_>) -> String {
    let last = design.partitions.saturating_sub(1);
    let count = design.partitions;
    let name = literal(design.name);
    format!(
        "DO $partitions$\nBEGIN\n    FOR i IN 0..{last} LOOP\n        EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS {count}, REMAINDER %s)',\n                       {name} || '_' || i, {name}, i);\n    END LOOP;\nEND\n$partitions$;\n"
    )
}
