//! Tables, indexes and their columns: `pg_class`, `pg_attribute`, `pg_index` and `pg_constraint`.

use crate::catalog::objects::{Column, Relation};
use crate::catalog::tables::row::{Row, Value, row};
use crate::catalog::tables::{
    BTREE, CATALOG_OID, CLASS_CATALOG, DEFAULT_COLLATION, HEAP, INDEX_CLASS, OWNER_OID, schema_oid,
};
use crate::types::{element_of, size_of};

#[expect(clippy::cast_precision_loss, reason = "an estimate for planners of other systems")]
fn estimate(rows: Option<u64>) -> Value {
    // -1 means unknown.
    Value::Float(rows.map_or(-1.0, |rows| rows as f64))
}

pub(super) fn table_class(relation: &Relation) -> Row {
    let mut row = class(relation, relation.oid, &relation.name, "r");
    row.extend(row! {
        relam: HEAP,
        relhasindex: !relation.primary_key.is_empty(),
        relnatts: columns_of(relation),
        // A number of pages would invite clients to read ranges of them.
        relpages: 0,
    });
    row.insert("reltuples", estimate(relation.rows));
    row
}

/// Catalogs with their identifiers, which other catalogs refer to.
pub(super) const CATALOGS: [(i64, &str); 16] = [
    (1213, "pg_tablespace"),
    (1247, "pg_type"),
    (1249, "pg_attribute"),
    (1255, "pg_proc"),
    (CLASS_CATALOG, "pg_class"),
    (1260, "pg_authid"),
    (1262, "pg_database"),
    (2601, "pg_am"),
    (2604, "pg_attrdef"),
    (2606, "pg_constraint"),
    (2609, "pg_description"),
    (2610, "pg_index"),
    (2615, "pg_namespace"),
    (2618, "pg_rewrite"),
    (2620, "pg_trigger"),
    (3079, "pg_extension"),
];

pub(super) fn catalog_class((oid, name): (i64, &'static str)) -> Row {
    row! {
        oid: oid,
        relname: name,
        relnamespace: CATALOG_OID,
        relowner: OWNER_OID,
        relpersistence: "p",
        relkind: "r",
        relam: HEAP,
        relispopulated: true,
        relreplident: "n",
    }
}

fn columns_of(relation: &Relation) -> i64 {
    i64::try_from(relation.columns.len()).unwrap_or(i64::MAX)
}

pub(super) fn index_class(relation: &Relation) -> Row {
    let mut row = class(relation, relation.index_oid(), &relation.index_name(), "i");
    row.extend(row! {
        relam: BTREE,
        relnatts: i64::try_from(relation.primary_key.len()).unwrap_or(i64::MAX),
    });
    row.insert("reltuples", estimate(relation.rows));
    row
}

fn class(relation: &Relation, oid: i32, name: &str, kind: &'static str) -> Row {
    row! {
        oid: oid,
        relname: name,
        relnamespace: schema_oid(relation.schema),
        reloftype: 0,
        relowner: OWNER_OID,
        relfilenode: oid,
        relpersistence: "p",
        relkind: kind,
        relispopulated: true,
        relreplident: "d",
        relrewrite: 0,
    }
}

pub(super) fn table_attributes(relation: &Relation) -> impl Iterator<Item = Row> {
    (1..).zip(&relation.columns).map(|(number, column)| attribute(relation.oid, number, column))
}

pub(super) fn index_attributes(relation: &Relation) -> impl Iterator<Item = Row> {
    let columns = relation.primary_key.iter().filter_map(|at| relation.columns.get(*at));
    (1..).zip(columns).map(|(number, column)| attribute(relation.index_oid(), number, column))
}

fn attribute(relation: i32, number: i64, column: &Column) -> Row {
    let size = size_of(&column.pg.base);
    let is_array = element_of(&column.pg.base).is_some();
    let is_text = column.pg.base == pgwire::api::Type::TEXT;
    let align = match size {
        1 => "c",
        2 => "s",
        8 => "d",
        _ => "i",
    };
    row! {
        attrelid: relation,
        attname: column.name.as_str(),
        atttypid: i64::from(column.pg.base.oid()),
        attlen: i64::from(size),
        attnum: number,
        attcacheoff: -1,
        atttypmod: column.pg.modifier,
        attndims: i64::from(is_array),
        attbyval: (1..=8).contains(&size),
        attalign: align,
        attstorage: if size < 0 { "x" } else { "p" },
        attnotnull: column.is_required,
        attislocal: true,
        attstattarget: -1,
        attcollation: if is_text { DEFAULT_COLLATION } else { 0 },
    }
}

/// Numbers of the columns of the primary key, from 1.
fn key_numbers(relation: &Relation) -> Vec<i64> {
    relation.primary_key.iter().filter_map(|at| i64::try_from(at + 1).ok()).collect()
}

pub(super) fn index(relation: &Relation) -> Row {
    let columns = relation.primary_key.len();
    let count = i64::try_from(columns).unwrap_or(i64::MAX);
    let mut row = row! {
        indexrelid: relation.index_oid(),
        indrelid: relation.oid,
        indnatts: count,
        indnkeyatts: count,
        indisunique: true,
        indisprimary: true,
        indimmediate: true,
        indisvalid: true,
        indisready: true,
        indislive: true,
    };
    row.insert("indkey", Value::Numbers(key_numbers(relation)));
    row.insert("indoption", Value::Numbers(vec![0; columns]));
    row.insert("indclass", Value::Numbers(vec![INDEX_CLASS; columns]));
    row.insert("indcollation", Value::Numbers(vec![0; columns]));
    row
}

pub(super) fn constraint(relation: &Relation) -> Row {
    let mut row = row! {
        oid: relation.constraint_oid(),
        conname: relation.index_name(),
        connamespace: schema_oid(relation.schema),
        contype: "p",
        convalidated: true,
        conrelid: relation.oid,
        conindid: relation.index_oid(),
        conislocal: true,
        connoinherit: true,
    };
    row.insert("conkey", Value::Numbers(key_numbers(relation)));
    row.insert("confkey", Value::Null);
    row
}
