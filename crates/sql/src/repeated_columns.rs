//! Columns that a SELECT returns twice.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::error::DataFusionError;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, SetExpr, VisitorMut};

use crate::explained::sql_of;
use crate::walk::walk_mut;

/// Whether a statement has no plan because a SELECT returns two columns of one name, which
/// DataFusion 55 refuses.
pub(super) fn repeats_a_column(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::Plan(text) if text.contains("require unique expression names"))
}

/// Numbers the columns that a SELECT returns again, as joins do; with `beside_all`, also the
/// columns next to `*`, which contains them if the statement has no plan otherwise:
///
/// ```text
/// SELECT k, k, 0, 0 FROM t      ->  SELECT k, k AS "k:1", 0, 0 AS "0:1" FROM t
/// SELECT *, k FROM t            ->  SELECT *, k AS "k:1" FROM t
/// SELECT count(*), (SELECT count(*) FROM u) FROM t
///     SELECT count(*), (SELECT count(*) FROM u) AS "count(*):1" FROM t
/// ```
pub(super) fn number_repeated_columns(statement: &mut Statement, beside_all: bool) {
    if let Some(statement) = sql_of(statement) {
        let _ = walk_mut(statement, &mut Numbering { beside_all });
    }
}

struct Numbering {
    beside_all: bool,
}

impl VisitorMut for Numbering {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        number(&mut select.projection, self.beside_all);
        ControlFlow::Continue(())
    }
}

fn number(items: &mut [SelectItem], beside_all: bool) {
    let is_wildcard =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let has_wildcard = beside_all && items.iter().any(is_wildcard);
    let mut seen: HashMap<String, usize> = HashMap::new();
    for item in items {
        let (name, expr, is_column) = match item {
            SelectItem::UnnamedExpr(expr) => {
                let is_column = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                (name_of(expr), expr, is_column)
            }
            SelectItem::ExprWithAlias { expr, alias } => (alias.value.clone(), expr, false),
            _ => continue,
        };
        let known = usize::from(has_wildcard && is_column);
        let count = seen.entry(name.clone()).or_insert(known);
        if *count > 0 {
            let alias = Ident::with_quote('"', format!("{name}:{count}"));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
        *count += 1;
    }
}

/// Name of the column that an expression becomes.
fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.value.clone(),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.clone()).unwrap_or_default(),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => name_of(inner),
        Expr::Subquery(query) => name_of_query(query).unwrap_or_else(|| expr.to_string()),
        _ => expr.to_string(),
    }
}

fn name_of_query(query: &Query) -> Option<String> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    match select.projection.first()? {
        SelectItem::UnnamedExpr(expr) => Some(name_of(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        _ => None,
    }
}
