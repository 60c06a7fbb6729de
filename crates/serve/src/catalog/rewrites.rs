//! Rewrites of catalog queries, in addition to the library's, for syntax that DataFusion lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use arrow::datatypes::{DataType, Field};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Ident, Join, JoinOperator, ObjectName, ObjectNamePart, Query, SelectItem, SetExpr, Statement,
    TableFactor, TableWithJoins, Value, ValueWithSpan, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use evenkeel_sql::{call, plain_text_comparisons, walk, walk_mut};

use crate::catalog::tables::DYNAMIC;
use crate::types::oid_element;

/// Columns that hold the name of a function, which PostgreSQL also compares with numbers.
const FUNCTION_COLUMNS: [&str; 8] =
    ["typinput", "typoutput", "typreceive", "typsend", "typmodin", "typmodout", "typanalyze", "typsubscript"];

/// Name that PostgreSQL shows if there is no function.
const NO_FUNCTION: &str = "-";

struct Rewriter;

/// Makes sure of subqueries for one value that they have one row.
pub(super) fn give_subqueries_one_row(statement: &mut Statement) {
    let _ = walk_mut(statement, &mut OneRow);
}

/// Replaces expressions that depend on subqueries within CASE by NULL.
pub(super) fn drop_subqueries_of_cases(statement: &mut Statement) {
    let _ = walk_mut(statement, &mut CasesWithoutSubqueries);
}

/// Adds to the rewrites of the library.
pub(super) fn complete(statement: &mut Statement) {
    let _ = walk_mut(statement, &mut Rewriter);
    plain_text_comparisons(statement);
}

/// Returns the parameters that hold a list, without `$`, with its elements.
pub(super) fn list_parameters(sql: &str) -> BTreeMap<String, Field> {
    let mut lists = Lists::default();
    if let Ok(statements) = Parser::parse_sql(&PostgreSqlDialect {}, sql) {
        let _ = walk(&statements, &mut lists);
    }
    lists.0
}

#[derive(Default)]
struct Lists(BTreeMap<String, Field>);

impl Visitor for Lists {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } = expression {
            let (mut right, mut element) = (right.as_ref(), element_of("text[]"));
            while let Expr::Nested(inner) | Expr::Cast { expr: inner, .. } = right {
                if let Expr::Cast { data_type, .. } = right {
                    element = element_of(&data_type.to_string());
                }
                right = inner.as_ref();
            }
            if let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = right {
                self.0.insert(name.trim_start_matches('$').to_owned(), element);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Elements of a list type of PostgreSQL: numbers of objects, other whole numbers, or texts.
fn element_of(list: &str) -> Field {
    let name = list.to_ascii_lowercase();
    match name.trim_end_matches("[]").trim_start_matches("pg_catalog.").trim_matches('"') {
        "oid" => oid_element(),
        "int" | "int2" | "int4" | "int8" | "integer" | "smallint" | "bigint" => {
            Field::new_list_field(DataType::Int64, true)
        }
        _ => Field::new_list_field(DataType::Utf8, true),
    }
}

/// Gives subqueries for one value an aggregate function, without which DataFusion cannot know that
/// they have one row.
struct OneRow;

impl VisitorMut for OneRow {
    type Break = ();

    /// Renames columns whose names would be equal.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let SetExpr::Select(select) = query.body.as_mut() else { return ControlFlow::Continue(()) };
        select.from.iter_mut().for_each(unnest_in_table);
        let mut seen = BTreeSet::new();
        for (number, item) in (1..).zip(&mut select.projection) {
            if let SelectItem::UnnamedExpr(value) = item
                && !seen.insert(value.to_string())
            {
                let expr = std::mem::replace(value, Expr::value(Value::Null));
                *item = SelectItem::ExprWithAlias { expr, alias: Ident::new(format!("column{number}")) };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        // Columns with the name of a function are texts here, not numbers.
        if let Expr::BinaryOp { left, right, .. } = expression
            && is_function_column(left)
            && let Expr::Cast { expr, data_type, .. } = right.as_mut()
            && data_type.to_string().to_ascii_lowercase().ends_with("regproc")
        {
            let name = std::mem::replace(expr.as_mut(), Expr::value(Value::Null));
            **right = name;
        }
        let Expr::Subquery(query) = expression else { return ControlFlow::Continue(()) };
        let SetExpr::Select(select) = query.body.as_mut() else { return ControlFlow::Continue(()) };
        let is_plain = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty())
            && query.limit_clause.is_none()
            && select.distinct.is_none();
        if let ([SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }], true) =
            (select.projection.as_mut_slice(), is_plain)
            && !has_aggregate(value)
        {
            let inner = std::mem::replace(value, Expr::value(Value::Null));
            *value = call("max", vec![inner]);
        }
        ControlFlow::Continue(())
    }
}

struct CasesWithoutSubqueries;

fn has_subquery(expression: &Expr) -> bool {
    struct Subqueries;
    impl Visitor for Subqueries {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    walk(expression, &mut Subqueries).is_break()
}

impl VisitorMut for CasesWithoutSubqueries {
    type Break = ();

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Case { conditions, else_result, .. } = expression {
            let results =
                conditions.iter_mut().map(|when| &mut when.result).chain(else_result.as_deref_mut());
            results.filter(|result| has_subquery(result)).for_each(|result| {
                *result = Expr::value(Value::Null);
            });
            conditions.iter_mut().filter(|when| has_subquery(&when.condition)).for_each(|when| {
                when.condition = Expr::value(Value::Boolean(false));
            });
        }
        ControlFlow::Continue(())
    }
}

/// Writes `t CROSS JOIN UNNEST(list) AS e` as `(SELECT *, unnest(list) AS e FROM t) AS t`:
/// DataFusion does not join a table with its own lists.
fn unnest_in_table(from: &mut TableWithJoins) {
    let TableFactor::Table { name, alias, .. } = &from.relation else { return };
    let of_lists = |join: &Join| match (&join.join_operator, &join.relation) {
        (JoinOperator::CrossJoin(_), TableFactor::UNNEST { alias: Some(element), array_exprs, .. })
            if element.columns.is_empty() =>
        {
            Some(format!("unnest({}) AS {}", array_exprs.first()?, element.name))
        }
        _ => None,
    };
    let columns: Vec<String> = from.joins.iter().filter_map(of_lists).collect();
    if columns.is_empty() {
        return;
    }
    let table = alias.as_ref().map_or_else(|| name.to_string(), |alias| alias.name.to_string());
    let sql = format!("SELECT 1 FROM (SELECT *, {} FROM {name} AS {table}) AS {table}", columns.join(", "));
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, &sql).ok().and_then(|mut parsed| parsed.pop());
    let Some(Statement::Query(query)) = parsed else { return };
    let SetExpr::Select(select) = *query.body else { return };
    if let Some(derived) = select.from.into_iter().next() {
        from.relation = derived.relation;
        from.joins.retain(|join| of_lists(join).is_none());
    }
}

/// Whether a value is aggregated over several rows.
fn has_aggregate(value: &Expr) -> bool {
    const AGGREGATES: [&str; 9] =
        ["max", "min", "count", "sum", "array_agg", "string_agg", "bool_and", "bool_or", "json_agg"];
    matches!(value, Expr::Function(function) if AGGREGATES.iter().any(|name| is_named(&function.name, name)))
}

impl VisitorMut for Rewriter {
    type Break = ();

    fn post_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<()> {
        let [ObjectNamePart::Identifier(name)] = relation.0.as_slice() else {
            return ControlFlow::Continue(());
        };
        if DYNAMIC.contains(&name.value.to_ascii_lowercase().as_str()) {
            relation.0.insert(0, ObjectNamePart::Identifier(Ident::new("pg_catalog")));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let replaced = match expression {
            Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::NotEq, right } => {
                if is_function_column(left) && is_zero(right) {
                    **right = Expr::value(Value::SingleQuotedString(NO_FUNCTION.to_owned()));
                }
                None
            }
            // ARRAY(SELECT ...): lists of roles and members, which are empty.
            Expr::Function(function) if is_named(&function.name, "array") => {
                matches!(function.args, FunctionArguments::Subquery(_)).then(|| Expr::value(Value::Null))
            }
            // (value).field
            Expr::CompoundFieldAccess { root, access_chain } => match access_chain.as_slice() {
                [AccessExpr::Dot(Expr::Identifier(field))] => {
                    let field = Expr::value(Value::SingleQuotedString(field.value.clone()));
                    Some(call("get_field", vec![(**root).clone(), field]))
                }
                _ => None,
            },
            // The elements of an array with their numbers, x and n.
            Expr::Function(function) if is_named(&function.name, "_pg_expandarray") => {
                argument(function).map(|array| call("unnest", vec![call("numbered_elements", vec![array])]))
            }
            // The numbers of the elements of an array.
            Expr::Function(function) if is_named(&function.name, "generate_subscripts") => {
                argument(function).map(|array| call("unnest", vec![call("element_numbers", vec![array])]))
            }
            _ => None,
        };
        if let Some(replaced) = replaced {
            *expression = replaced;
        }
        ControlFlow::Continue(())
    }
}

/// Returns the first argument of a function.
fn argument(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(arguments) = &function.args else { return None };
    match arguments.args.first()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument.clone()),
        _ => None,
    }
}

fn is_named(name: &ObjectName, wanted: &str) -> bool {
    let last = name.0.last().and_then(ObjectNamePart::as_ident);
    last.is_some_and(|last| last.value.eq_ignore_ascii_case(wanted))
}

fn is_function_column(expression: &Expr) -> bool {
    let name = match expression {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    };
    name.is_some_and(|name| FUNCTION_COLUMNS.contains(&name.value.to_ascii_lowercase().as_str()))
}

fn is_zero(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(value) if matches!(&value.value, Value::Number(number, _) if number == "0"))
}

#[cfg(test)]
#[path = "rewrites_tests.rs"]
mod tests;
