//! Joins with USING and NATURAL.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, OrderByKind,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins,
    Visitor, VisitorMut, WildcardAdditionalOptions,
};

use crate::explained::sql_of;
use crate::walk::{walk, walk_mut};

/// Qualifies the columns of USING with their table.
///
/// DataFusion 55 finds such a column ambiguous in WHERE, and takes the column of an outer join from
/// the table whose name sorts first, so that it is NULL if only the other table has the row.
/// Therefore columns in WHERE are qualified, and outer joins with USING are written with ON:
///
/// ```text
/// SELECT k, n FROM a JOIN b USING (k) WHERE k > 1
///     SELECT k, n FROM a JOIN b USING (k) WHERE a.k > 1
/// SELECT k, n FROM a LEFT JOIN b USING (k) WHERE k > 1
///     SELECT a.k AS k, n FROM a LEFT JOIN b ON a.k = b.k WHERE a.k > 1
/// SELECT * FROM a FULL JOIN b USING (k)
///     SELECT coalesce(a.k, b.k) AS k, a.* EXCLUDE (k), b.* EXCLUDE (k)
///         FROM a FULL JOIN b ON a.k = b.k
/// ```
/// Joins are left unchanged if the text does not show which table has the column: NATURAL joins,
/// and USING with a column that no earlier join has named, after a join of several tables.
pub(crate) fn resolve_using(statement: &mut Statement) {
    if let Some(statement) = sql_of(statement) {
        let _ = walk_mut(statement, &mut Resolver);
    }
}

struct Resolver;

impl VisitorMut for Resolver {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        resolve_in(query);
        ControlFlow::Continue(())
    }
}

/// A column of USING, and the expression that replaces it.
type Shared = (Ident, Expr);

/// The joins of one item of FROM.
#[derive(Default)]
struct Joins {
    /// Columns of USING, in the order in which `*` returns them.
    shared: Vec<Shared>,
    /// Tables, with their columns that are among the shared ones.
    tables: Vec<(Ident, Vec<Ident>)>,
    /// Condition of each join that has one by USING.
    conditions: Vec<Option<Expr>>,
}

fn resolve_in(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let Some(items) = select.from.iter_mut().map(joins_of).collect::<Option<Vec<Joins>>>() else { return };
    let mut columns =
        Columns { shared: items.iter().flat_map(|joins| joins.shared.clone()).collect(), depth: 0 };
    if columns.shared.is_empty() {
        return;
    }
    if !select.from.iter().any(has_outer_by_name) {
        if let Some(condition) = &mut select.selection {
            let _ = walk_mut(condition, &mut columns);
        }
        return;
    }
    let Some(projection) = projected(select, &columns.shared, &items) else { return };
    select.projection = projection;
    let conditions = items.into_iter().flat_map(|joins| joins.conditions);
    let operators =
        select.from.iter_mut().flat_map(|table| &mut table.joins).map(|join| &mut join.join_operator);
    for (operator, condition) in operators.zip(conditions) {
        if let (Some(constraint), Some(condition)) = (constraint_of(operator), condition) {
            *constraint = JoinConstraint::On(condition);
        }
    }
    let outputs: Vec<String> = select.projection.iter().filter_map(name_of).collect();
    let _ = walk_mut(select.as_mut(), &mut columns);
    let order = query.order_by.as_mut().map(|order| &mut order.kind);
    if let Some(OrderByKind::Expressions(order)) = order {
        for item in order {
            let is_output = matches!(&item.expr, Expr::Identifier(name) if outputs.contains(&name.value));
            if !is_output {
                let _ = walk_mut(&mut item.expr, &mut columns);
            }
        }
    }
}

/// Returns the items of SELECT with the shared columns once, under their names; `None` if the text
/// does not determine them.
fn projected(select: &Select, shared: &[Shared], items: &[Joins]) -> Option<Vec<SelectItem>> {
    let mut projection = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => {
                let column = shared.iter().find(|(column, _)| column.value == name.value);
                projection.push(column.map_or_else(|| item.clone(), named));
            }
            SelectItem::Wildcard(options) => {
                if *options != WildcardAdditionalOptions::default() {
                    return None;
                }
                projection.extend(shared.iter().map(named));
                let tables = items.iter().flat_map(|joins| &joins.tables);
                projection.extend(tables.map(|(table, shared)| others_of(table, shared)));
            }
            other => projection.push(other.clone()),
        }
    }
    Some(projection)
}

fn named((column, value): &Shared) -> SelectItem {
    SelectItem::ExprWithAlias { expr: value.clone(), alias: column.clone() }
}

/// Returns the name of an item in the result.
fn name_of(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
            parts.last().map(|name| name.value.clone())
        }
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        _ => None,
    }
}

/// Returns `table.* EXCLUDE (shared)`.
fn others_of(table: &Ident, shared: &[Ident]) -> SelectItem {
    let part = |name: &Ident| ObjectName(vec![ObjectNamePart::Identifier(name.clone())]);
    let excluded = shared.iter().map(part).collect::<Vec<_>>();
    let options = WildcardAdditionalOptions {
        opt_exclude: (!excluded.is_empty()).then_some(ExcludeSelectItem::Multiple(excluded)),
        ..WildcardAdditionalOptions::default()
    };
    SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(part(table)), options)
}

/// Returns the joins of an item of FROM; `None` if the text does not show whose columns they use.
fn joins_of(table: &mut TableWithJoins) -> Option<Joins> {
    let mut joins = Joins::default();
    joins.tables.push((name_of_table(&table.relation)?, Vec::new()));
    for join in &mut table.joins {
        let condition = joins.add(join)?;
        joins.conditions.push(condition);
    }
    Some(joins)
}

impl Joins {
    /// Adds a join to those before it, and returns its condition if it has one by USING.
    fn add(&mut self, join: &mut Join) -> Option<Option<Expr>> {
        let right = name_of_table(&join.relation)?;
        let columns = match constraint_of(&mut join.join_operator) {
            Some(JoinConstraint::Using(columns)) => columns.as_slice(),
            Some(JoinConstraint::Natural) => return None,
            _ => &[],
        };
        let columns: Vec<Ident> = columns.iter().map(single_name).collect::<Option<_>>()?;
        let mut condition = None;
        let mut shared = Vec::with_capacity(columns.len());
        for column in &columns {
            let of_right = column_of(&right, column);
            let of_left = self.on_the_left(column)?;
            let equal = Expr::BinaryOp {
                left: Box::new(of_left.clone()),
                op: BinaryOperator::Eq,
                right: Box::new(of_right.clone()),
            };
            condition = Some(match condition {
                None => equal,
                Some(before) => {
                    Expr::BinaryOp { left: Box::new(before), op: BinaryOperator::And, right: Box::new(equal) }
                }
            });
            let value = match join.join_operator {
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => of_right,
                JoinOperator::FullOuter(_) => coalesce(of_left, of_right),
                _ => of_left,
            };
            shared.push((column.clone(), value));
        }
        self.shared.retain(|(before, _)| columns.iter().all(|column| column.value != before.value));
        self.shared.splice(0..0, shared);
        self.tables.push((right, columns));
        Some(condition)
    }

    /// Returns the column of USING on the left side of a join; `None` if several tables may have
    /// it.
    fn on_the_left(&mut self, column: &Ident) -> Option<Expr> {
        if let Some((_, value)) = self.shared.iter().find(|(shared, _)| shared.value == column.value) {
            return Some(value.clone());
        }
        match self.tables.as_mut_slice() {
            [(only, shared)] => {
                shared.push(column.clone());
                Some(column_of(only, column))
            }
            _ => None,
        }
    }
}

/// Replaces the names of shared columns by their expressions, but not within subqueries, whose own
/// tables may have columns of the same name.
struct Columns {
    shared: Vec<Shared>,
    depth: usize,
}

impl VisitorMut for Columns {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && self.depth == 0
            && let Some((_, value)) = self.shared.iter().find(|(column, _)| column.value == name.value)
        {
            *expr = value.clone();
        }
        ControlFlow::Continue(())
    }
}

fn column_of(table: &Ident, column: &Ident) -> Expr {
    Expr::CompoundIdentifier(vec![table.clone(), column.clone()])
}

fn coalesce(first: Expr, second: Expr) -> Expr {
    let args = [first, second].map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new("coalesce"))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.to_vec(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Returns the qualifier of a table's columns.
fn name_of_table(table: &TableFactor) -> Option<Ident> {
    match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, alias: None, .. } => name.0.last()?.as_ident().cloned(),
        _ => None,
    }
}

fn single_name(name: &ObjectName) -> Option<Ident> {
    match name.0.as_slice() {
        [name] => name.as_ident().cloned(),
        _ => None,
    }
}

fn constraint_of(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)
        | JoinOperator::Right(on)
        | JoinOperator::RightOuter(on)
        | JoinOperator::FullOuter(on) => Some(on),
        _ => None,
    }
}

/// Whether a statement that was parsed within the limits has an outer join with USING or NATURAL,
/// which DataFusion plans otherwise than SQL says.
#[must_use]
pub fn has_outer_join_by_name(statement: &Statement) -> bool {
    let Statement::Statement(statement) = statement else { return false };
    walk(statement.as_ref(), &mut OuterJoins).is_break()
}

struct OuterJoins;

impl Visitor for OuterJoins {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.from.iter().any(has_outer_by_name) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } if has_outer_by_name(table_with_joins) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn has_outer_by_name(table: &TableWithJoins) -> bool {
    table.joins.iter().any(|join| match &join.join_operator {
        JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)
        | JoinOperator::Right(on)
        | JoinOperator::RightOuter(on)
        | JoinOperator::FullOuter(on) => matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural),
        _ => false,
    })
}

#[cfg(test)]
#[path = "joins_by_name_tests.rs"]
mod tests;
