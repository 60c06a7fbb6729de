//! The served tables, their columns and keys, as PostgreSQL catalog objects.

use std::sync::Arc;

use evenkeel_engine::query::QueryError;
use evenkeel_model::table::TableSpec;

use crate::tables::OpenTables;
use crate::types::{PgType, pg_type};

/// First identifier that PostgreSQL gives to objects of users.
const FIRST_OID: i32 = 16_384;
/// Number of identifiers reserved for a table: its own, its key's, and spare ones.
const OIDS_OF_TABLE: i32 = 8;

/// Schema of the tables.
pub(super) const PUBLIC: &str = "public";
/// Schema of the system tables.
const SYSTEM: &str = "sys";

/// A table or an export, as clients see it.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    pub(super) oid: i32,
    pub(super) schema: &'static str,
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    /// Positions of the columns of the primary key.
    pub(super) primary_key: Vec<usize>,
    /// Number of stored rows, if known.
    pub(super) rows: Option<u64>,
    pub(super) bytes: u64,
    pub(super) comment: Option<String>,
}

/// A column, as clients see it.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) pg: PgType,
    pub(super) is_required: bool,
}

impl Relation {
    /// Identifier of the index of the primary key.
    pub(super) fn index_oid(&self) -> i32 {
        self.oid + 1
    }

    /// Identifier of the constraint of the primary key.
    pub(super) fn constraint_oid(&self) -> i32 {
        self.oid + 2
    }

    pub(super) fn index_name(&self) -> String {
        format!("{}_pkey", self.name)
    }

    /// Names of the columns of the primary key, quoted if SQL requires it.
    pub(super) fn key_columns(&self) -> String {
        let name = |at: &usize| self.columns.get(*at).map(|column| written(&column.name));
        let names: Vec<String> = self.primary_key.iter().filter_map(name).collect();
        names.join(", ")
    }
}

/// Words that must be quoted if used as names in PostgreSQL.
const RESERVED: [&str; 78] = [
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "current_catalog",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "initially",
    "intersect",
    "into",
    "lateral",
    "leading",
    "limit",
    "localtime",
    "localtimestamp",
    "not",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "placing",
    "primary",
    "references",
    "returning",
    "select",
    "session_user",
    "some",
    "symmetric",
    "system_user",
    "table",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "when",
    "where",
    "window",
    "with",
];

/// Writes a name as PostgreSQL does: in quotes if it needs them.
pub(super) fn written(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_plain && !RESERVED.contains(&name) { name.to_owned() } else { evenkeel_sql::quoted_name(name) }
}

/// Returns all served relations.
pub(super) async fn relations(opened: &OpenTables) -> Result<Vec<Relation>, QueryError> {
    let aliases: Vec<&String> =
        opened.tables.iter().flat_map(|served| served.names.iter().rev().skip(1)).collect();
    let mut relations = Vec::new();
    for (number, name) in (0..).zip(opened.session.names()) {
        // Queries may use the other names of a table, but a list would show the table twice.
        if aliases.contains(&name) {
            continue;
        }
        let (schema, name) = match name.strip_prefix("sys.") {
            Some(system) => (SYSTEM, system),
            None => (PUBLIC, name.as_str()),
        };
        let table = match schema {
            SYSTEM => opened.session.system_schema_of(name).await?,
            _ => opened.session.schema_of(name).await?,
        };
        let served = opened.tables.iter().find(|served| schema == PUBLIC && served.name() == name);
        let column = |field: &Arc<arrow::datatypes::Field>| Column {
            name: field.name().clone(),
            pg: pg_type(field),
            is_required: !field.is_nullable(),
        };
        let snapshot = served.map(|served| served.table.snapshot());
        let portions = snapshot.map(evenkeel_store::log::Snapshot::portions).unwrap_or_default();
        relations.push(Relation {
            oid: FIRST_OID + number * OIDS_OF_TABLE,
            schema,
            name: name.to_owned(),
            columns: table.fields().iter().map(column).collect(),
            primary_key: snapshot.map(|snapshot| snapshot.spec().primary_key().to_vec()).unwrap_or_default(),
            rows: snapshot.map(|_| portions.iter().map(|portion| portion.data_rows()).sum()),
            bytes: portions.iter().map(|portion| portion.bytes).sum(),
            comment: snapshot.map(|snapshot| comment(snapshot.spec(), portions.len())),
        });
    }
    Ok(relations)
}

/// Describes the partitions of a table.
fn comment(spec: &TableSpec, portions: usize) -> String {
    let key: Vec<&str> = spec.partition_key_columns().map(|column| column.name.as_str()).collect();
    let partitions = spec.partitions().len();
    format!("PARTITION BY HASH ({}), {partitions} partitions, {portions} portions", key.join(", "))
}
