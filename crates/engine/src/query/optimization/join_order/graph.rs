//! Relations that inner joins connect, and by which columns.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{JoinConstraint, JoinType, NullEquality, Result, internal_datafusion_err};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, ExprSchemable, Filter, Join, LogicalPlan};

use crate::query::optimization::join_order::estimate::{Expected, expected, share_of_rows};
use crate::query::optimization::join_order::relations::{MAX_RELATIONS, Relations};
use crate::query::optimization::join_order::search::JoinTree;

/// Relations, and the conditions of the inner joins between them.
#[derive(Debug)]
pub(super) struct JoinGraph {
    relations: Vec<Relation>,
    classes: Vec<EqualColumns>,
    conditions: Vec<Condition>,
    /// Relations that share a class with each relation.
    neighbours: Vec<Relations>,
    /// Order of the joins in the query.
    written: JoinTree,
}

/// Plan that is joined with others.
#[derive(Debug)]
pub(super) struct Relation {
    plan: LogicalPlan,
    /// Expected number of rows.
    pub(super) rows: f64,
}

/// Columns, or expressions of columns, that are all equal in each joined row.
#[derive(Debug, Default)]
struct EqualColumns {
    /// Expressions, each of one relation; at most one of each.
    members: Vec<(usize, Expr)>,
    /// Expected number of distinct values.
    values: f64,
    /// Table rows of the relation of each member.
    table_rows: Vec<f64>,
}

/// Other condition, and the relations whose columns it has.
#[derive(Debug)]
struct Condition {
    condition: Expr,
    relations: Relations,
}

/// Whether a plan is an inner join on equal keys.
pub(super) fn is_inner(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.join_type == JoinType::Inner
        && !join.on.is_empty()
        && !join.null_aware
        && join.null_equality == NullEquality::NullEqualsNothing)
}

/// Whether the value of an expression depends on nothing but columns of the rows that are joined.
fn is_plain(expr: &Expr) -> Result<bool> {
    let is_other = |part: &Expr| {
        Ok(matches!(
            part,
            Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::OuterReferenceColumn(..)
        ))
    };
    Ok(!expr.is_volatile() && !expr.exists(is_other)?)
}

/// Parts of a tree of joins.
#[derive(Debug, Default)]
struct Parts {
    relations: Vec<LogicalPlan>,
    pairs: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
}

impl Parts {
    fn add(&mut self, plan: &LogicalPlan) -> JoinTree {
        match plan {
            LogicalPlan::Join(join) if is_inner(plan) => {
                let (left, right) = (self.add(&join.left), self.add(&join.right));
                self.pairs.extend(join.on.iter().cloned());
                self.conditions.extend(join.filter.iter().flat_map(split_conjunction).cloned());
                JoinTree::Join(Box::new(left), Box::new(right))
            }
            _ => {
                self.relations.push(plan.clone());
                JoinTree::Relation(self.relations.len() - 1)
            }
        }
    }

    /// Relations whose columns an expression has.
    fn relations_of(&self, expr: &Expr) -> Relations {
        let columns = expr.column_refs();
        let has_any = |plan: &LogicalPlan| columns.iter().any(|column| plan.schema().has_column(column));
        let with_any = self.relations.iter().enumerate().filter(|(_, plan)| has_any(plan));
        with_any.map(|(at, _)| Relations::one(at)).fold(Relations::default(), Relations::with)
    }

    /// The member of a class for one side of a pair; `None` if it has columns of no or several
    /// relations.
    fn member(&self, expr: &Expr) -> Option<(usize, Expr)> {
        let relations = self.relations_of(expr);
        relations.iter().next().filter(|_| relations.len() == 1).map(|relation| (relation, expr.clone()))
    }

    /// Returns the classes of equal columns; `None` if the trees of joins cannot tell them, since a
    /// relation has several columns of one.
    fn classes(&self, expected: &[Expected]) -> Result<Option<Vec<EqualColumns>>> {
        let mut classes: Vec<Vec<(usize, Expr)>> = Vec::new();
        for (left, right) in &self.pairs {
            if !is_plain(left)? || !is_plain(right)? {
                return Ok(None);
            }
            let (Some(left), Some(right)) = (self.member(left), self.member(right)) else { return Ok(None) };
            let type_of = |(relation, expr): &(usize, Expr)| {
                self.relations.get(*relation).map(|plan| expr.get_type(plan.schema())).transpose()
            };
            if type_of(&left)? != type_of(&right)? {
                return Ok(None);
            }
            let mut together = vec![left, right];
            let (with_either, others) =
                classes.into_iter().partition(|class| class.iter().any(|member| together.contains(member)));
            classes = others;
            let with_either: Vec<Vec<_>> = with_either;
            for member in with_either.into_iter().flatten() {
                if !together.contains(&member) {
                    together.push(member);
                }
            }
            classes.push(together);
        }
        let mut all = Vec::with_capacity(classes.len());
        for members in classes {
            let relations: Relations = members
                .iter()
                .map(|(relation, _)| Relations::one(*relation))
                .fold(Relations::default(), Relations::with);
            if relations.len() != members.len() {
                return Ok(None);
            }
            let table_rows: Vec<f64> = members
                .iter()
                .filter_map(|(relation, _)| Some(expected.get(*relation)?.table_rows))
                .collect();
            // The smallest table usually has each value once: the customers, of all that orders name.
            let values = table_rows.iter().copied().fold(f64::INFINITY, f64::min).max(1.0);
            all.push(EqualColumns { members, values, table_rows });
        }
        Ok(Some(all))
    }
}

impl EqualColumns {
    /// The first member of a set of relations, and the rows of its table.
    fn member_in(&self, set: Relations) -> Option<(&(usize, Expr), f64)> {
        let members = self.members.iter().zip(self.table_rows.iter().copied());
        members.into_iter().find(|((relation, _), _)| set.overlaps(Relations::one(*relation)))
    }
}

impl JoinGraph {
    /// Reads a tree of inner joins; `None` if its joins cannot be reordered, or the numbers of rows
    /// are not known.
    pub(super) fn new(plan: &LogicalPlan) -> Result<Option<Self>> {
        let mut parts = Parts::default();
        let written = parts.add(plan);
        if parts.relations.len() > MAX_RELATIONS {
            return Ok(None);
        }
        let known: Option<Vec<Expected>> = parts.relations.iter().map(expected).collect();
        let Some(known) = known else { return Ok(None) };
        let Some(classes) = parts.classes(&known)? else { return Ok(None) };
        let mut conditions = Vec::with_capacity(parts.conditions.len());
        for condition in &parts.conditions {
            let relations = parts.relations_of(condition);
            if relations == Relations::default() || !is_plain(condition)? {
                return Ok(None);
            }
            conditions.push(Condition { condition: condition.clone(), relations });
        }
        let of_class = |class: &EqualColumns| {
            class
                .members
                .iter()
                .map(|(relation, _)| Relations::one(*relation))
                .fold(Relations::default(), Relations::with)
        };
        let neighbours = |at: usize| {
            let shared = classes.iter().map(of_class).filter(|class| class.overlaps(Relations::one(at)));
            shared.fold(Relations::default(), Relations::with).without(Relations::one(at))
        };
        let neighbours = (0..parts.relations.len()).map(neighbours).collect();
        let relations = parts.relations.into_iter().zip(&known);
        let relations = relations.map(|(plan, expected)| Relation { plan, rows: expected.rows }).collect();
        Ok(Some(Self { relations, classes, conditions, neighbours, written }))
    }

    pub(super) fn relations(&self) -> &[Relation] {
        &self.relations
    }

    pub(super) fn written(&self) -> &JoinTree {
        &self.written
    }

    /// Whether equal columns connect two sets.
    pub(super) fn connects(&self, one: Relations, other: Relations) -> bool {
        one.iter().any(|relation| self.neighbours.get(relation).is_some_and(|near| near.overlaps(other)))
    }

    /// Whether equal columns connect all relations of a set.
    pub(super) fn is_connected(&self, set: Relations) -> bool {
        let Some(first) = set.iter().next() else { return false };
        let mut reached = Relations::one(first);
        loop {
            let near = set.without(reached).iter().map(Relations::one);
            let near = near.filter(|relation| self.connects(*relation, reached));
            let further = near.fold(reached, Relations::with);
            if further == reached {
                return reached == set;
            }
            reached = further;
        }
    }

    /// Expected share of all pairs of rows of two sets that a join returns: one in as many as the
    /// joined columns have distinct values together, which are no more than the rows of a table
    /// that has all of them.
    pub(super) fn share_of_pairs(&self, one: Relations, other: Relations) -> f64 {
        let mut values = 1.0;
        let mut sides: [Vec<(usize, f64)>; 2] = Default::default();
        for class in &self.classes {
            let (Some((left, of_left)), Some((right, of_right))) =
                (class.member_in(one), class.member_in(other))
            else {
                continue;
            };
            values *= class.values;
            let [lefts, rights] = &mut sides;
            lefts.push((left.0, of_left));
            rights.push((right.0, of_right));
        }
        for side in sides {
            let Some((relation, table_rows)) = side.first() else { continue };
            if side.iter().all(|(other, _)| other == relation) {
                values = f64::min(values, *table_rows);
            }
        }
        let conditions = self.conditions_between(one, other).map(share_of_rows);
        conditions.product::<f64>() / values.max(1.0)
    }

    /// Conditions that need columns of both sets, and no others.
    fn conditions_between(&self, one: Relations, other: Relations) -> impl Iterator<Item = &Expr> {
        let needs_both = move |condition: &&Condition| {
            one.with(other).has_all(condition.relations)
                && condition.relations.overlaps(one)
                && condition.relations.overlaps(other)
        };
        self.conditions.iter().filter(needs_both).map(|condition| &condition.condition)
    }

    /// Changes the plans of all relations; their columns must stay.
    pub(super) fn try_map_relations(
        mut self,
        change: impl Fn(LogicalPlan) -> Result<LogicalPlan>,
    ) -> Result<Self> {
        for relation in &mut self.relations {
            relation.plan = change(std::mem::take(&mut relation.plan))?;
        }
        Ok(self)
    }

    /// Returns the plan of the joins in the order of a tree.
    pub(super) fn plan(&self, tree: &JoinTree) -> Result<LogicalPlan> {
        match tree {
            JoinTree::Relation(relation) => {
                let missing = || internal_datafusion_err!("the join graph has no relation {relation}");
                let plan = self.relations.get(*relation).ok_or_else(missing)?.plan.clone();
                let set = Relations::one(*relation);
                let own = self.conditions.iter().filter(|condition| set.has_all(condition.relations));
                Ok(match conjunction(own.map(|condition| condition.condition.clone())) {
                    Some(condition) => LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?),
                    None => plan,
                })
            }
            JoinTree::Join(left, right) => {
                let (one, other) = (left.relations(), right.relations());
                let pair = |class: &EqualColumns| {
                    let ((_, left), _) = class.member_in(one)?;
                    let ((_, right), _) = class.member_in(other)?;
                    Some((left.clone(), right.clone()))
                };
                let join = Join::try_new(
                    Arc::new(self.plan(left)?),
                    Arc::new(self.plan(right)?),
                    self.classes.iter().filter_map(pair).collect(),
                    conjunction(self.conditions_between(one, other).cloned()),
                    JoinType::Inner,
                    JoinConstraint::On,
                    NullEquality::NullEqualsNothing,
                    false,
                )?;
                Ok(LogicalPlan::Join(join))
            }
        }
    }
}
