//! Relations that inner joins connect, and by which columns.

use std::sync::Arc;

use datafusion::common::{JoinConstraint, JoinType, NullEquality, Result, internal_datafusion_err};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan};

use crate::query::optimization::join_order::estimate::{Expected, expected, share_of_rows};
use crate::query::optimization::join_order::parts::{Member, Parts};
use crate::query::optimization::join_order::placed::Placed;
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
    /// Placement of its rows, and the classes of the columns of its partition key.
    place: Option<(Placed, Vec<usize>)>,
}

/// Columns, or expressions of columns, that are all equal in each joined row.
#[derive(Debug, Default)]
struct EqualColumns {
    /// Expressions, each of one relation; at most one of each.
    members: Vec<Member>,
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

impl EqualColumns {
    fn new(members: Vec<Member>, expected: &[Expected]) -> Self {
        let rows = |(relation, _): &Member| expected.get(*relation).map_or(1.0, |known| known.table_rows);
        let table_rows: Vec<f64> = members.iter().map(rows).collect();
        // The smallest table is taken to have each value once, as the customers that orders name.
        let values = table_rows.iter().copied().fold(f64::INFINITY, f64::min).max(1.0);
        Self { members, values, table_rows }
    }

    fn relations(&self) -> Relations {
        let relations = self.members.iter().map(|(relation, _)| Relations::one(*relation));
        relations.fold(Relations::default(), Relations::with)
    }

    /// The first member of a set of relations, and the rows of its table.
    fn member_in(&self, set: Relations) -> Option<(&Member, f64)> {
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
        let Some(classes) = parts.take_classes()? else { return Ok(None) };
        let classes: Vec<EqualColumns> =
            classes.into_iter().map(|members| EqualColumns::new(members, &known)).collect();
        let mut conditions = Vec::with_capacity(parts.conditions.len());
        for condition in &parts.conditions {
            let relations = parts.relations_of(condition);
            if relations == Relations::default() || !parts.is_certain(condition)? {
                return Ok(None);
            }
            conditions.push(Condition { condition: condition.clone(), relations });
        }
        let neighbours = |at: usize| {
            let relations = classes.iter().map(EqualColumns::relations);
            let shared = relations.filter(|class| class.overlaps(Relations::one(at)));
            shared.fold(Relations::default(), Relations::with).without(Relations::one(at))
        };
        let neighbours = (0..parts.relations.len()).map(neighbours).collect();
        let class_of = |member: Member| classes.iter().position(|class| class.members.contains(&member));
        let relation = |(at, (plan, known)): (usize, (LogicalPlan, &Expected))| {
            let place = Placed::of(&plan).and_then(|placed| {
                let classes = placed.key.iter().map(|column| class_of((at, Expr::Column(column.clone()))));
                let classes: Option<Vec<usize>> = classes.collect();
                Some((placed, classes?))
            });
            Relation { plan, rows: known.rows, place }
        };
        let relations = parts.relations.into_iter().zip(&known).enumerate().map(relation).collect();
        Ok(Some(Self { relations, classes, conditions, neighbours, written }))
    }

    /// Number of the partitions in which the relations of a set are joined one by one; 1 if they
    /// are not.
    pub(super) fn partitions_joined(&self, set: Relations) -> usize {
        let mut places = set.iter().map(|at| self.relations.get(at)?.place.as_ref());
        let Some(Some((first, key))) = places.next() else { return 1 };
        let fits = |place: Option<&(Placed, Vec<usize>)>| {
            place.is_some_and(|(other, other_key)| other_key == key && other.fits(first))
        };
        if places.all(fits) { first.placement.partitions().len() } else { 1 }
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
