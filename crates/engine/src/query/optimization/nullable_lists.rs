//! IN lists of values that may be NULL.

use std::collections::{BTreeSet, HashMap};

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{split_binary, split_binary_owned};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast, binary_expr, lit,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::analysis::expression_schema::expression_schema;
use crate::query::walk::{Walk, WalkPlan};

/// Separates what IN lists say about NULL from what they say about values.
///
/// DataFusion 55 combines two lists of one operand into one, and a list that becomes empty into
/// TRUE or FALSE: `x NOT IN (1) OR x NOT IN (2)` into TRUE. But it is NULL if `x` is NULL, and such
/// a row must not be returned. The same holds for a list that contains NULL. If a predicate has
/// several lists of one operand, they become expressions in which lists can be combined:
///
/// ```text
/// x IN (1, NULL)        x IN (1) OR NULL
/// x NOT IN (1, NULL)    x NOT IN (1) AND NULL
/// x [NOT] IN (1, 2)     x IS NULL AND NULL OR x IS NOT NULL AND x [NOT] IN (1, 2)
/// ```
/// The rule must run before each simplification of expressions, since predicates may have been
/// merged after the previous one.
#[derive(Debug)]
pub(in crate::query) struct NullableLists;

impl OptimizerRule for NullableLists {
    fn name(&self) -> &'static str {
        "NullableLists"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let schema = expression_schema(&plan)?;
        // Conditions drop a row no matter if they are FALSE or NULL.
        let is_condition =
            matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_) | LogicalPlan::TableScan(_));
        let names = NamePreserver::new(&plan);
        let separate = |expr: Expr| {
            let name = names.save(&expr);
            let separated = separate_null_items(expr, &schema)?.transform_data(|expr| {
                if is_condition {
                    map_chain(expr, Operator::And, |part| separate_null_operands(part, &schema))
                } else {
                    separate_null_operands(expr, &schema)
                }
            })?;
            Ok(if separated.transformed {
                separated.update_data(|expr| name.restore(expr))
            } else {
                separated
            })
        };
        plan.map_expressions_dyn(|expr| match expr {
            Expr::GroupingSet(_) => expr.map_children_dyn(separate),
            _ => separate(expr),
        })
    }
}

/// Takes NULL out of the lists of those operands for which `predicate` has several.
fn separate_null_items(predicate: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let lists = Lists::from_predicate(&predicate, schema, |lists| lists.some_contain_null)?;
    if lists.of_columns.is_empty() {
        return Ok(Transformed::no(predicate));
    }
    predicate.transform_up_dyn(|expr| match expr {
        Expr::InList(list) if lists.contain(&list.expr) => Ok(without_null_items(list)),
        expr => Ok(Transformed::no(expr)),
    })
}

fn without_null_items(list: InList) -> Transformed<Expr> {
    let InList { expr, list, negated } = list;
    let (nulls, values): (Vec<_>, Vec<_>) = list.into_iter().partition(is_null);
    let of_values = Expr::InList(InList { expr, list: values, negated });
    if nulls.is_empty() {
        return Transformed::no(of_values);
    }
    Transformed::yes(if negated { of_values.and(null()) } else { of_values.or(null()) })
}

/// Takes NULL out of the lists of those operands that may be NULL, if `predicate` has several.
fn separate_null_operands(predicate: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let lists = Lists::from_predicate(&predicate, schema, |lists| lists.some_may_be_null)?;
    if lists.of_columns.is_empty() { Ok(Transformed::no(predicate)) } else { lists.separate(predicate, &[]) }
}

/// IN lists of a predicate, and chains `x = 1 OR x = 2` that DataFusion makes a list of.
struct Lists<'a> {
    schema: &'a DFSchema,
    /// By the columns of the operand: simplification may make one operand of `CAST(x AS BIGINT)`,
    /// `x + 0` and `x`.
    of_columns: HashMap<BTreeSet<Column>, ListsOfOperand>,
    /// Without AND, NOT and CASE, lists are only united, which is right for NULL too.
    can_be_intersected: bool,
}

#[derive(Default)]
struct ListsOfOperand {
    count: usize,
    some_contain_null: bool,
    some_may_be_null: bool,
}

impl<'a> Lists<'a> {
    /// Lists that DataFusion may combine wrongly: of operands that have several, and are affected.
    fn from_predicate(
        predicate: &Expr,
        schema: &'a DFSchema,
        is_affected: impl Fn(&ListsOfOperand) -> bool,
    ) -> Result<Self> {
        let mut lists = Self { schema, of_columns: HashMap::new(), can_be_intersected: false };
        lists.collect(predicate, &[])?;
        let can_be_intersected = lists.can_be_intersected;
        lists.of_columns.retain(|_, lists| can_be_intersected && lists.count > 1 && is_affected(lists));
        Ok(lists)
    }

    /// Collects the lists of `expr`, in which the operands `known` are not NULL.
    fn collect(&mut self, expr: &Expr, known: &[Expr]) -> Result<()> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => {
                self.can_be_intersected = true;
                let parts = split_binary(expr, Operator::And);
                let known = with_checked(known, &parts);
                return parts.into_iter().try_for_each(|part| self.collect(part, &known));
            }
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
                let parts = split_binary(expr, Operator::Or);
                let mut compared: HashMap<BTreeSet<Column>, Vec<&Expr>> = HashMap::new();
                for operand in parts.iter().filter_map(|part| compared_with_constant(part)) {
                    compared.entry(columns(operand)).or_default().push(operand);
                }
                for operands in compared.into_values() {
                    if let [first, _, ..] = operands.as_slice() {
                        self.add(first, false, known)?;
                    }
                }
                return parts.into_iter().try_for_each(|part| self.collect(part, known));
            }
            Expr::InList(list) => {
                self.can_be_intersected |= list.negated;
                self.add(&list.expr, list.list.iter().any(is_null), known)?;
            }
            Expr::Not(_) | Expr::Case(_) => self.can_be_intersected = true,
            _ => {}
        }
        expr.apply_children_dyn(|child| self.collect(child, known).map(|()| TreeNodeRecursion::Continue))?;
        Ok(())
    }

    fn add(&mut self, operand: &Expr, contains_null: bool, known: &[Expr]) -> Result<()> {
        let may_be_null = self.may_be_null(operand, known)?;
        let lists = self.of_columns.entry(columns(operand)).or_default();
        lists.count += 1;
        lists.some_contain_null |= contains_null;
        lists.some_may_be_null |= may_be_null;
        Ok(())
    }

    fn contain(&self, operand: &Expr) -> bool {
        self.of_columns.contains_key(&columns(operand))
    }

    fn may_be_null(&self, operand: &Expr, known: &[Expr]) -> Result<bool> {
        let operand = without_casts(operand);
        Ok(!known.contains(operand) && operand.nullable(self.schema)?)
    }

    /// Separates the lists of the collected operands in `expr`.
    fn separate(&self, expr: Expr, known: &[Expr]) -> Result<Transformed<Expr>> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => {
                let known = with_checked(known, &split_binary(&expr, Operator::And));
                map_chain(expr, Operator::And, |part| self.separate(part, &known))
            }
            Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
                map_chain(expr, Operator::Or, |part| self.separate(part, known))
            }
            expr => match listed_operand(&expr) {
                Some(operand) if self.contain(operand) => {
                    let operand = operand.clone();
                    self.unless_null(operand, expr, known)
                }
                _ => expr.map_children_dyn(|child| self.separate(child, known)),
            },
        }
    }

    fn unless_null(&self, operand: Expr, predicate: Expr, known: &[Expr]) -> Result<Transformed<Expr>> {
        if !self.may_be_null(&operand, known)? {
            return Ok(Transformed::no(predicate));
        }
        let of_null = operand.clone().is_null().and(null());
        Ok(Transformed::yes(of_null.or(operand.is_not_null().and(predicate))))
    }
}

/// The operand of a list, or of a comparison that may become one.
fn listed_operand(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::InList(list) => Some(&list.expr),
        _ => compared_with_constant(expr),
    }
}

fn columns(operand: &Expr) -> BTreeSet<Column> {
    operand.column_refs().into_iter().cloned().collect()
}

/// The value of a cast is NULL only if what is cast is.
fn without_casts(mut operand: &Expr) -> &Expr {
    while let Expr::Cast(Cast { expr, .. }) = operand {
        operand = expr;
    }
    operand
}

/// The operands that are known not to be NULL, with those that `conjuncts` check.
fn with_checked(known: &[Expr], conjuncts: &[&Expr]) -> Vec<Expr> {
    let checked = conjuncts.iter().filter_map(|conjunct| match conjunct {
        Expr::IsNotNull(operand) => Some(without_casts(operand).clone()),
        _ => None,
    });
    known.iter().cloned().chain(checked).collect()
}

/// Maps the parts of a chain of ANDs or ORs.
fn map_chain(
    expr: Expr,
    operator: Operator,
    mut map: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<Expr>> {
    let mut chain: Option<Transformed<Expr>> = None;
    for part in split_binary_owned(expr, operator) {
        let part = map(part)?;
        chain = Some(match chain {
            None => part,
            Some(chain) => Transformed::new_transformed(
                binary_expr(chain.data, operator, part.data),
                chain.transformed | part.transformed,
            ),
        });
    }
    chain.ok_or_else(|| internal_datafusion_err!("a chain of {operator} has no parts"))
}

/// The operand that is compared with a constant for equality.
fn compared_with_constant(expr: &Expr) -> Option<&Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expr else { return None };
    match (left.any_column_refs(), right.any_column_refs()) {
        (true, false) => Some(left),
        (false, true) => Some(right),
        _ => None,
    }
}

fn is_null(item: &Expr) -> bool {
    match item {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => is_null(expr),
        _ => false,
    }
}

fn null() -> Expr {
    lit(ScalarValue::Boolean(None))
}
