//! Names of columns without an alias, as PostgreSQL gives them: `count` for `count(*)`, and
//! `?column?` for `1 + 1`. Clients look up results by these names.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{Expr, SelectItem, SetExpr, Statement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Name of an unnamed column.
const NO_NAME: &str = "?column?";

/// Returns the columns of a query with the names that clients expect.
pub(crate) fn with_names(sql: &str, schema: &SchemaRef) -> SchemaRef {
    let Some(names) = names(sql).filter(|names| names.len() == schema.fields().len()) else {
        return Arc::clone(schema);
    };
    let named = schema.fields().iter().zip(names).map(|(field, name)| match name {
        Some(name) => Arc::new(field.as_ref().clone().with_name(name)),
        None => Arc::clone(field),
    });
    Arc::new(Schema::new(named.collect::<Vec<_>>()))
}

/// Names of the columns of a query, with `None` for those that have one; `None` if they are not
/// listed, as with `*`.
fn names(sql: &str) -> Option<Vec<Option<String>>> {
    let Statement::Query(query) = Parser::parse_sql(&PostgreSqlDialect {}, sql).ok()?.pop()? else {
        return None;
    };
    let mut body = query.body.as_ref();
    loop {
        match body {
            SetExpr::Select(select) => {
                let name = |item: &SelectItem| match item {
                    SelectItem::UnnamedExpr(value) => Some(name_of(value)),
                    SelectItem::ExprWithAlias { .. } => Some(None),
                    _ => None,
                };
                return select.projection.iter().map(name).collect();
            }
            // The first of several queries names the columns.
            SetExpr::SetOperation { left, .. } => body = left.as_ref(),
            SetExpr::Query(query) => body = query.body.as_ref(),
            _ => return None,
        }
    }
}

/// Name of a column with a value; `None` for a column of a table, which keeps its own name.
fn name_of(value: &Expr) -> Option<String> {
    let plain = |name: &str| Some(name.to_owned());
    match value {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => None,
        Expr::Nested(inner) => name_of(inner),
        Expr::Function(function) => {
            let last = function.name.0.last().and_then(|part| part.as_ident());
            Some(last.map_or_else(|| NO_NAME.to_owned(), |name| name.value.to_ascii_lowercase()))
        }
        Expr::Cast { expr, data_type, .. } => match name_of(expr) {
            Some(name) if name == NO_NAME => Some(type_name(&data_type.to_string())),
            name => name,
        },
        Expr::TypedString(typed) => Some(type_name(&typed.data_type.to_string())),
        Expr::Interval(_) => plain("interval"),
        Expr::Case { .. } => plain("case"),
        Expr::Exists { .. } => plain("exists"),
        Expr::Extract { .. } => plain("extract"),
        Expr::Position { .. } => plain("position"),
        Expr::Substring { .. } => plain("substring"),
        Expr::Trim { .. } => plain("btrim"),
        Expr::Ceil { .. } => plain("ceil"),
        Expr::Floor { .. } => plain("floor"),
        Expr::Overlay { .. } => plain("overlay"),
        Expr::Array(_) => plain("array"),
        _ => plain(NO_NAME),
    }
}

/// Short name of a type.
fn type_name(written: &str) -> String {
    let written = written.to_ascii_lowercase();
    let plain = written.split('(').next().unwrap_or_default().trim();
    match plain {
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "boolean" => "bool",
        "real" => "float4",
        "float" | "double" | "double precision" => "float8",
        "decimal" => "numeric",
        "character varying" => "varchar",
        plain => plain,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_as_postgres_names_them() {
        let names_of = |sql: &str| -> Vec<String> {
            let names = names(sql).unwrap();
            names.into_iter().map(|name| name.unwrap_or_else(|| "=".to_owned())).collect()
        };
        assert_eq!(
            names_of("SELECT a, t.b, count(*), Max(c), 1, a + 1, 'x'"),
            ["=", "=", "count", "max", NO_NAME, NO_NAME, NO_NAME]
        );
        assert_eq!(names_of("SELECT a AS x, a::bigint, 1::bigint, (sum(a))"), ["=", "=", "int8", "sum"]);
        assert_eq!(
            names_of("SELECT date '2024-01-01', interval '1 day', CASE WHEN a THEN 1 END"),
            ["date", "interval", "case"]
        );
        assert_eq!(names_of("WITH q AS (SELECT 1) SELECT count(*) FROM q UNION SELECT 2"), ["count"]);
        assert!(names("SELECT *, 1 FROM t").is_none());
        assert!(names("EXPLAIN SELECT 1").is_none());
        assert!(names("not SQL").is_none());
    }
}
