//! Rows of the catalog about the served tables.
//!
//! Each table has the columns of the library's table of that name. A row gives values to the
//! columns that are meaningful here; all others have PostgreSQL's values for a plain table.

mod activity;
mod classes;
mod information_schema;
mod pg_catalog;
mod row;

use crate::catalog::objects::{PUBLIC, Relation};
pub(super) use crate::catalog::tables::information_schema::{INFORMATION, information};
pub(super) use crate::catalog::tables::pg_catalog::{DYNAMIC, index_definition, rows};

/// Identifier of the schema `pg_catalog` in PostgreSQL.
const CATALOG_OID: i64 = 11;
/// Identifier of the schema `public` in PostgreSQL.
const PUBLIC_OID: i64 = 2200;
/// Identifier of the schema `information_schema`, in the range of PostgreSQL's built-in objects.
const INFORMATION_OID: i64 = 13_000;
const SYSTEM_OID: i64 = 16_000;
const DATABASE_OID: i64 = 5;
/// Identifier of the first user.
const OWNER_OID: i64 = 10;
/// Identifiers of the catalogs that rows belong to.
const CLASS_CATALOG: i64 = 1259;
/// Access methods.
const HEAP: i64 = 2;
const BTREE: i64 = 403;
/// Operator class of index columns; clients need some number, whatever its value.
const INDEX_CLASS: i64 = 1978;
/// Collation of text.
const DEFAULT_COLLATION: i64 = 100;

/// Name of the database, whatever a client called it.
pub(super) const DATABASE: &str = "evenkeel";
/// Owner of all objects.
pub(super) const OWNER: &str = "evenkeel";

/// Returns the identifier of a schema.
fn schema_oid(name: &str) -> i64 {
    if name == PUBLIC { PUBLIC_OID } else { SYSTEM_OID }
}

/// Returns the relations that have a primary key.
fn keyed(relations: &[Relation]) -> impl Iterator<Item = &Relation> {
    relations.iter().filter(|relation| !relation.primary_key.is_empty())
}
