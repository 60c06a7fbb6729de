//! Functions that look up an object by its identifier or its name.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;

use crate::catalog::functions::row_function::{as_number, as_text, constant, function, text};
use crate::catalog::objects::{PUBLIC, Relation, written};
use crate::catalog::tables::index_definition;

/// Functions about the relations that are served.
pub(super) fn object_functions(relations: &Arc<Vec<Relation>>) -> Vec<ScalarUDF> {
    let size = |name: &'static str| by_oid(relations, name, DataType::Int64, size_of);
    vec![
        constant("pg_database_size", ScalarValue::Int64(Some(total(relations)))),
        size("pg_relation_size"),
        size("pg_table_size"),
        size("pg_total_relation_size"),
        by_oid(relations, "pg_get_constraintdef", DataType::Utf8, key_of),
        by_oid(relations, "obj_description", DataType::Utf8, comment_of),
        index_definitions(relations),
        visibility(relations),
        oids_by_name(relations),
    ]
}

/// A function that looks up an object by its identifier; NULL if it does not exist.
fn by_oid(
    relations: &Arc<Vec<Relation>>,
    name: &'static str,
    returns: DataType,
    value_of: fn(&Relation, i64) -> Option<ScalarValue>,
) -> ScalarUDF {
    let (relations, nothing) = (Arc::clone(relations), ScalarValue::try_from(&returns));
    let nothing = nothing.unwrap_or(ScalarValue::Null);
    function(name, returns, move |args| {
        let oid = as_number(args.first());
        let value = oid.and_then(|oid| relations.iter().find_map(|relation| value_of(relation, oid)));
        value.unwrap_or_else(|| nothing.clone())
    })
}

fn size_of(relation: &Relation, oid: i64) -> Option<ScalarValue> {
    let bytes = i64::try_from(relation.bytes).unwrap_or(i64::MAX);
    (i64::from(relation.oid) == oid).then_some(ScalarValue::Int64(Some(bytes)))
}

fn key_of(relation: &Relation, oid: i64) -> Option<ScalarValue> {
    let is_key = i64::from(relation.constraint_oid()) == oid && !relation.primary_key.is_empty();
    is_key.then(|| text(format!("PRIMARY KEY ({})", relation.key_columns())))
}

fn comment_of(relation: &Relation, oid: i64) -> Option<ScalarValue> {
    let comment = relation.comment.as_ref().filter(|_| i64::from(relation.oid) == oid)?;
    Some(text(comment.clone()))
}

/// The definition of an index, or the name of one of its columns.
fn index_definitions(relations: &Arc<Vec<Relation>>) -> ScalarUDF {
    let relations = Arc::clone(relations);
    function("pg_get_indexdef", DataType::Utf8, move |args| {
        let (oid, column) = (as_number(args.first()), as_number(args.get(1)).unwrap_or(0));
        let relation = relations.iter().find(|relation| Some(i64::from(relation.index_oid())) == oid);
        let Some(relation) = relation else { return ScalarValue::Utf8(None) };
        // With a number, the name of a column.
        match usize::try_from(column - 1) {
            Err(_) => text(index_definition(relation)),
            Ok(at) => {
                let column = relation.primary_key.get(at).and_then(|at| relation.columns.get(*at));
                ScalarValue::Utf8(column.map(|column| written(&column.name)))
            }
        }
    })
}

/// Whether the name of a table is valid without a schema.
fn visibility(relations: &Arc<Vec<Relation>>) -> ScalarUDF {
    let relations = Arc::clone(relations);
    function("pg_table_is_visible", DataType::Boolean, move |args| {
        let oid = as_number(args.first()).unwrap_or(0);
        let is_hidden = relations.iter().any(|relation| {
            let own = [relation.oid, relation.index_oid()].map(i64::from);
            relation.schema != PUBLIC && own.contains(&oid)
        });
        ScalarValue::Boolean(Some(!is_hidden))
    })
}

/// The identifier of the relation with a name.
fn oids_by_name(relations: &Arc<Vec<Relation>>) -> ScalarUDF {
    let relations = Arc::clone(relations);
    function("to_regclass", DataType::Int32, move |args| {
        let name = as_text(args.first()).unwrap_or_default();
        let name = name.rsplit('.').next().unwrap_or_default().trim_matches('"').to_owned();
        ScalarValue::Int32(relations.iter().find(|relation| relation.name == name).map(|r| r.oid))
    })
}

fn total(relations: &[Relation]) -> i64 {
    relations.iter().map(|relation| i64::try_from(relation.bytes).unwrap_or(i64::MAX)).sum()
}
