//! The tables of `information_schema`.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use pgwire::api::Type;

use crate::catalog::objects::{PUBLIC, Relation};
use crate::catalog::tables::row::{Row, Value, fill, row, text};
use crate::catalog::tables::{DATABASE, OWNER, keyed};

/// Names of the tables of `information_schema`.
pub(in crate::catalog) const INFORMATION: [&str; 10] = [
    "schemata",
    "tables",
    "columns",
    "views",
    "table_constraints",
    "key_column_usage",
    "constraint_column_usage",
    "referential_constraints",
    "routines",
    "parameters",
];

/// The columns of a table, and its rows.
type Table = (Vec<Field>, Vec<Row>);

/// Returns the rows of a table of `information_schema`.
pub(in crate::catalog) fn information(name: &str, relations: &[Relation]) -> Result<RecordBatch> {
    let (columns, rows) = match name {
        "schemata" => schemata(),
        "tables" => tables(relations),
        "columns" => columns(relations),
        "table_constraints" => table_constraints(relations),
        "key_column_usage" | "constraint_column_usage" => key_columns(relations),
        _ => (columns_without_rows(name), vec![]),
    };
    fill(&Arc::new(Schema::new(columns)), &rows)
}

/// A column of numbers.
fn number(name: &str) -> Field {
    Field::new(name, DataType::Int32, true)
}

fn schemata() -> Table {
    let columns = ["catalog_name", "schema_name", "schema_owner"].map(text).to_vec();
    let rows = ["pg_catalog", PUBLIC, "information_schema", "sys"]
        .map(|schema| row! { catalog_name: DATABASE, schema_name: schema, schema_owner: OWNER })
        .to_vec();
    (columns, rows)
}

fn tables(relations: &[Relation]) -> Table {
    let columns = ["table_catalog", "table_schema", "table_name", "table_type", "is_insertable_into"]
        .map(text)
        .to_vec();
    let rows = relations.iter().map(|relation| {
        row! {
            table_catalog: DATABASE,
            table_schema: relation.schema,
            table_name: relation.name.as_str(),
            table_type: "BASE TABLE",
            is_insertable_into: "NO",
        }
    });
    (columns, rows.collect())
}

fn columns(relations: &[Relation]) -> Table {
    let columns = vec![
        text("table_catalog"),
        text("table_schema"),
        text("table_name"),
        text("column_name"),
        number("ordinal_position"),
        text("column_default"),
        text("is_nullable"),
        text("data_type"),
        number("character_maximum_length"),
        number("character_octet_length"),
        number("numeric_precision"),
        number("numeric_precision_radix"),
        number("numeric_scale"),
        number("datetime_precision"),
        text("udt_catalog"),
        text("udt_schema"),
        text("udt_name"),
        text("is_identity"),
        text("is_generated"),
        text("is_updatable"),
    ];
    (columns, relations.iter().flat_map(information_columns).collect())
}

/// Columns that identify the constraint and its table.
const CONSTRAINED: [&str; 6] = [
    "constraint_catalog",
    "constraint_schema",
    "constraint_name",
    "table_catalog",
    "table_schema",
    "table_name",
];

fn constrained(relation: &Relation) -> Row {
    row! {
        constraint_catalog: DATABASE,
        constraint_schema: relation.schema,
        constraint_name: relation.index_name(),
        table_catalog: DATABASE,
        table_schema: relation.schema,
        table_name: relation.name.as_str(),
    }
}

fn table_constraints(relations: &[Relation]) -> Table {
    let mut columns = CONSTRAINED.map(text).to_vec();
    columns.push(text("constraint_type"));
    let rows = keyed(relations).map(|relation| {
        let mut row = constrained(relation);
        row.insert("constraint_type", "PRIMARY KEY".into());
        row
    });
    (columns, rows.collect())
}

fn key_columns(relations: &[Relation]) -> Table {
    let mut columns = CONSTRAINED.map(text).to_vec();
    columns.push(text("column_name"));
    columns.push(number("ordinal_position"));
    columns.push(number("position_in_unique_constraint"));
    let of_key = |relation: &Relation| -> Vec<Row> {
        let names = relation.primary_key.iter().filter_map(|at| relation.columns.get(*at));
        (1..)
            .zip(names)
            .map(|(position, column)| {
                let mut row = constrained(relation);
                row.insert("column_name", column.name.as_str().into());
                row.insert("ordinal_position", Value::Number(position));
                row
            })
            .collect()
    };
    (columns, keyed(relations).flat_map(of_key).collect())
}

/// Returns the columns of the tables about objects that are not served.
fn columns_without_rows(name: &str) -> Vec<Field> {
    match name {
        "views" => ["table_catalog", "table_schema", "table_name", "view_definition"].map(text).to_vec(),
        "referential_constraints" => [
            "constraint_catalog",
            "constraint_schema",
            "constraint_name",
            "unique_constraint_catalog",
            "unique_constraint_schema",
            "unique_constraint_name",
            "match_option",
            "update_rule",
            "delete_rule",
        ]
        .map(text)
        .to_vec(),
        "routines" => [
            "specific_catalog",
            "specific_schema",
            "specific_name",
            "routine_schema",
            "routine_name",
            "routine_type",
            "data_type",
        ]
        .map(text)
        .to_vec(),
        _ => ["specific_catalog", "specific_schema", "specific_name", "parameter_name", "data_type"]
            .map(text)
            .to_vec(),
    }
}

fn information_columns(relation: &Relation) -> impl Iterator<Item = Row> {
    (1..).zip(&relation.columns).map(move |(position, column)| {
        let base = &column.pg.base;
        let bits = match *base {
            Type::INT2 => Some(16),
            Type::INT4 => Some(32),
            Type::INT8 | Type::FLOAT8 => Some(64),
            Type::FLOAT4 => Some(24),
            _ => None,
        };
        let (precision, scale) = match (*base == Type::NUMERIC, column.pg.modifier) {
            (true, modifier) if modifier >= 4 => (Some((modifier - 4) >> 16), Some((modifier - 4) & 0xffff)),
            _ => (bits, bits.filter(|_| *base != Type::FLOAT4 && *base != Type::FLOAT8).map(|_| 0)),
        };
        let mut row = row! {
            table_catalog: DATABASE,
            table_schema: relation.schema,
            table_name: relation.name.as_str(),
            column_name: column.name.as_str(),
            ordinal_position: Value::Number(position),
            is_nullable: if column.is_required { "NO" } else { "YES" },
            data_type: long_name(base),
            udt_catalog: DATABASE,
            udt_schema: "pg_catalog",
            udt_name: base.name(),
            is_identity: "NO",
            is_generated: "NEVER",
            is_updatable: "NO",
        };
        if let Some(precision) = precision {
            row.insert("numeric_precision", precision.into());
            row.insert("numeric_precision_radix", if *base == Type::NUMERIC { 10 } else { 2 }.into());
        }
        if let Some(scale) = scale {
            row.insert("numeric_scale", scale.into());
        }
        if matches!(*base, Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::TIME | Type::INTERVAL) {
            row.insert("datetime_precision", 6.into());
        }
        row
    })
}

/// Name of a type in the SQL standard.
fn long_name(base: &Type) -> &'static str {
    match *base {
        Type::BOOL => "boolean",
        Type::INT2 => "smallint",
        Type::INT4 => "integer",
        Type::INT8 => "bigint",
        Type::FLOAT4 => "real",
        Type::FLOAT8 => "double precision",
        Type::NUMERIC => "numeric",
        Type::TIME => "time without time zone",
        Type::TIMESTAMP => "timestamp without time zone",
        Type::TIMESTAMPTZ => "timestamp with time zone",
        Type::BYTEA => "bytea",
        Type::UUID => "uuid",
        Type::DATE => "date",
        Type::INTERVAL => "interval",
        Type::TEXT => "text",
        _ => "ARRAY",
    }
}
