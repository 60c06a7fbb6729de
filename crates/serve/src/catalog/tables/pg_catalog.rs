//! The tables of `pg_catalog` about the served tables.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;

use crate::catalog::functions::Caller;
use crate::catalog::objects::{PUBLIC, Relation, written};
use crate::catalog::tables::activity::{activity_columns, activity_rows};
use crate::catalog::tables::classes::{
    CATALOGS, catalog_class, constraint, index, index_attributes, index_class, table_attributes, table_class,
};
use crate::catalog::tables::row::{Row, Value, fill, row, text};
use crate::catalog::tables::{
    CATALOG_OID, CLASS_CATALOG, DATABASE, DATABASE_OID, INFORMATION_OID, OWNER, OWNER_OID, PUBLIC_OID,
    SYSTEM_OID, keyed,
};
use crate::types::{numbers_field, oid_field};

/// Names of the tables of `pg_catalog` whose rows describe the served tables and the connections.
pub(in crate::catalog) const DYNAMIC: [&str; 15] = [
    "pg_attribute",
    "pg_authid",
    "pg_class",
    "pg_constraint",
    "pg_database",
    "pg_description",
    "pg_index",
    "pg_indexes",
    "pg_namespace",
    "pg_roles",
    "pg_settings",
    "pg_stat_activity",
    "pg_stat_user_tables",
    "pg_tables",
    "pg_user",
];

/// Returns the rows of a table of `pg_catalog`; `schema` has its columns if the library knows it.
pub(in crate::catalog) fn rows(
    name: &str,
    schema: Option<SchemaRef>,
    relations: &[Relation],
    caller: &Caller,
) -> Result<RecordBatch> {
    let (rows, columns): (Vec<Row>, Vec<Field>) = match name {
        "pg_class" => {
            let tables = relations.iter().map(table_class);
            (
                tables.chain(keyed(relations).map(index_class)).chain(CATALOGS.map(catalog_class)).collect(),
                vec![],
            )
        }
        "pg_attribute" => {
            let tables = relations.iter().flat_map(table_attributes);
            (tables.chain(keyed(relations).flat_map(index_attributes)).collect(), vec![])
        }
        "pg_index" => (keyed(relations).map(index).collect(), vec![]),
        "pg_constraint" => (keyed(relations).map(constraint).collect(), vec![]),
        "pg_description" => (relations.iter().filter_map(description).collect(), vec![]),
        "pg_namespace" => (namespaces(), vec![]),
        "pg_database" => (vec![database()], vec![]),
        "pg_authid" | "pg_roles" => (vec![role()], vec![]),
        "pg_tables" => (relations.iter().map(listed_table).collect(), vec![]),
        "pg_settings" => (caller.settings.iter().map(setting).collect(), setting_columns()),
        "pg_stat_activity" => (activity_rows(caller), activity_columns()),
        "pg_user" => (
            vec![row! { usename: OWNER, usesysid: OWNER_OID, usecreatedb: false, usesuper: false }],
            vec![
                text("usename"),
                oid_field("usesysid", false),
                Field::new("usecreatedb", DataType::Boolean, false),
                Field::new("usesuper", DataType::Boolean, false),
            ],
        ),
        "pg_indexes" => (
            keyed(relations).map(listed_index).collect(),
            ["schemaname", "tablename", "indexname", "tablespace", "indexdef"].map(text).to_vec(),
        ),
        "pg_stat_user_tables" => (
            relations.iter().map(statistics).collect(),
            vec![
                oid_field("relid", false),
                text("schemaname"),
                text("relname"),
                Field::new("seq_scan", DataType::Int64, true),
                Field::new("n_live_tup", DataType::Int64, true),
                Field::new("n_dead_tup", DataType::Int64, true),
            ],
        ),
        _ => (vec![], vec![]),
    };
    // Views that need no more columns than these are not taken from the library.
    let schema = match (columns.is_empty(), schema) {
        (true, Some(schema)) => complete(name, &schema),
        (_, _) => Arc::new(Schema::new(columns)),
    };
    fill(&schema, &rows)
}

/// Columns of lists, which the library has as text, and whether they are vectors.
const LISTS: [(&str, bool); 6] = [
    ("indkey", true),
    ("indoption", true),
    ("indclass", true),
    ("indcollation", true),
    ("conkey", false),
    ("confkey", false),
];

/// Columns that the library leaves out, which are NULL here.
const LEFT_OUT: [(&str, &[&str]); 5] = [
    ("pg_class", &["relacl", "reloptions"]),
    ("pg_attribute", &["attcacheoff", "attacl", "attoptions", "attfdwoptions", "attmissingval"]),
    ("pg_namespace", &["nspacl"]),
    ("pg_database", &["datacl", "daticulocale", "daticurules", "datcollversion"]),
    ("pg_roles", &["rolpassword", "rolvaliduntil", "rolconfig"]),
];

/// Returns the columns of the library's table plus the missing ones, with lists as lists.
fn complete(table: &str, schema: &SchemaRef) -> SchemaRef {
    let column = |field: &Arc<Field>| {
        let list = LISTS.iter().find(|(name, _)| name == field.name());
        list.map_or_else(|| Arc::clone(field), |(name, is_vector)| Arc::new(numbers_field(name, *is_vector)))
    };
    let mut columns: Vec<Arc<Field>> = schema.fields().iter().map(column).collect();
    let left_out = LEFT_OUT.iter().filter(|(name, _)| *name == table).flat_map(|(_, columns)| *columns);
    for name in left_out {
        if schema.column_with_name(name).is_none() {
            columns.push(Arc::new(text(name)));
        }
    }
    Arc::new(Schema::new(columns))
}

fn description(relation: &Relation) -> Option<Row> {
    let comment = relation.comment.as_deref()?;
    Some(row! { objoid: relation.oid, classoid: CLASS_CATALOG, objsubid: 0, description: comment })
}

fn namespaces() -> Vec<Row> {
    let named = [
        (CATALOG_OID, "pg_catalog"),
        (PUBLIC_OID, PUBLIC),
        (INFORMATION_OID, "information_schema"),
        (SYSTEM_OID, "sys"),
    ];
    named.map(|(oid, name)| row! { oid: oid, nspname: name, nspowner: OWNER_OID }).to_vec()
}

fn database() -> Row {
    row! {
        oid: DATABASE_OID,
        datname: DATABASE,
        datdba: OWNER_OID,
        // UTF8.
        encoding: 6,
        datlocprovider: "c",
        datcollate: "C",
        datctype: "C",
        datallowconn: true,
        datconnlimit: -1,
        dattablespace: 1663,
    }
}

fn role() -> Row {
    row! { oid: OWNER_OID, rolname: OWNER, rolcanlogin: true, rolinherit: true, rolconnlimit: -1 }
}

fn listed_table(relation: &Relation) -> Row {
    row! {
        schemaname: relation.schema,
        tablename: relation.name.as_str(),
        tableowner: OWNER,
        hasindexes: !relation.primary_key.is_empty(),
    }
}

fn listed_index(relation: &Relation) -> Row {
    row! {
        schemaname: relation.schema,
        tablename: relation.name.as_str(),
        indexname: relation.index_name(),
        indexdef: index_definition(relation),
    }
}

/// Returns the statement that would create the index of a primary key.
pub(in crate::catalog) fn index_definition(relation: &Relation) -> String {
    let name = written(&relation.index_name());
    let table = written(&relation.name);
    let schema = relation.schema;
    format!("CREATE UNIQUE INDEX {name} ON {schema}.{table} USING btree ({})", relation.key_columns())
}

fn statistics(relation: &Relation) -> Row {
    let rows = relation.rows.and_then(|rows| i64::try_from(rows).ok());
    let mut row = row! { relid: relation.oid, schemaname: relation.schema, relname: relation.name.as_str() };
    row.insert("n_live_tup", rows.map_or(Value::Null, Value::Number));
    row
}

fn setting_columns() -> Vec<Field> {
    let names = [
        "name",
        "setting",
        "unit",
        "category",
        "short_desc",
        "extra_desc",
        "context",
        "vartype",
        "source",
        "min_val",
        "max_val",
        "boot_val",
        "reset_val",
        "sourcefile",
    ];
    let mut columns = names.map(text).to_vec();
    columns.push(Field::new("enumvals", DataType::Utf8, true));
    columns.push(Field::new("sourceline", DataType::Int32, true));
    columns.push(Field::new("pending_restart", DataType::Boolean, true));
    columns
}

fn setting((name, value): &(String, String)) -> Row {
    row! {
        name: name.as_str(),
        setting: value.as_str(),
        category: "",
        short_desc: "",
        context: "user",
        vartype: "string",
        source: "session",
        boot_val: value.as_str(),
        reset_val: value.as_str(),
        pending_restart: false,
    }
}
