//! Relations that inner joins connect, and by which columns.

use std::sync::Arc;

use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, Result, internal_datafusion_err};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan};

use crate::query::optimization::join_order::estimate::{Expected, expected, share_of_rows};
use crate::query::optimization::join_order::parts::{Member, Parts};
use crate::query::optimization::join_order::placed::{Placed, unique_columns};
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
    /// Number of rows of its table.
    table_rows: f64,
    /// Placement of its rows, and the classes of the columns of its partition key.
    place: Option<(Placed, Vec<usize>)>,
    /// Classes of columns that no two rows share.
    unique: Option<Vec<usize>>,
}

/// Columns, or expressions of columns, that are all equal in each joined row.
#[derive(Debug, Default)]
struct EqualColumns {
    /// Expressions, each of one relation; at most one of each.
    members: Vec<Member>,
    /// Expected number of distinct values.
    values: f64,
}

/// Other condition, and the relations whose columns it has.
#[derive(Debug)]
struct Condition {
    condition: Expr,
    relations: Relations,
}

impl EqualColumns {
    fn new(members: Vec<Member>, unique: &[Option<Vec<Column>>], expected: &[Expected]) -> Self {
        let rows = |relation: usize| expected.get(relation).map_or(1.0, |known| known.table_rows);
        let is_unique = |(relation, expr): &&Member| match (unique.get(*relation), expr) {
            (Some(Some(unique)), Expr::Column(column)) => unique.as_slice() == [column.clone()],
            _ => false,
        };
        let fewest = |rows: &mut dyn Iterator<Item = f64>| rows.fold(f64::INFINITY, f64::min);
        let of_unique = fewest(&mut members.iter().filter(is_unique).map(|(relation, _)| rows(*relation)));
        // Tables may share no more than a status or a country: to find too few rows expected costs
        // far more than to find too many.
        let values = match of_unique.is_finite() {
            true => of_unique,
            false => fewest(&mut members.iter().map(|(relation, _)| rows(*relation))).sqrt(),
        };
        Self { members, values: values.max(1.0) }
    }

    fn relations(&self) -> Relations {
        let relations = self.members.iter().map(|(relation, _)| Relations::one(*relation));
        relations.fold(Relations::default(), Relations::with)
    }

    /// The first member of a set of relations.
    fn member_in(&self, set: Relations) -> Option<&Member> {
        self.members.iter().find(|(relation, _)| set.overlaps(Relations::one(*relation)))
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
        let unique: Vec<Option<Vec<Column>>> = parts.relations.iter().map(unique_columns).collect();
        let classes: Vec<EqualColumns> =
            classes.into_iter().map(|members| EqualColumns::new(members, &unique, &known)).collect();
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
            let classes_of = |columns: &[Column]| {
                columns.iter().map(|column| class_of((at, Expr::Column(column.clone())))).collect()
            };
            let place = Placed::of(&plan).and_then(|placed| {
                let classes = classes_of(&placed.key)?;
                Some((placed, classes))
            });
            let unique = unique.get(at).and_then(|columns| classes_of(columns.as_ref()?));
            Relation { plan, rows: known.rows, table_rows: known.table_rows, place, unique }
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

    /// Expected share of all pairs of rows of two sets that a join returns: one in as many as there
    /// are rows of a table of which each has another key, otherwise one in as many as the joined
    /// columns have distinct values together, which are no more than the rows of a table that has
    /// all of them.
    pub(super) fn share_of_pairs(&self, one: Relations, other: Relations) -> f64 {
        let joins =
            |class: &&EqualColumns| class.member_in(one).is_some() && class.member_in(other).is_some();
        let mut values: f64 = self.classes.iter().filter(joins).map(|class| class.values).product();
        let mut of_unique: Option<f64> = None;
        for side in [one, other] {
            let members = self.classes.iter().enumerate().filter(|(_, class)| joins(class));
            let members: Vec<(usize, usize)> =
                members.filter_map(|(at, class)| Some((at, class.member_in(side)?.0))).collect();
            let Some((_, first)) = members.first() else { continue };
            let Some(relation) = self.relations.get(*first) else { continue };
            if !members.iter().all(|(_, relation)| relation == first) {
                continue;
            }
            values = values.min(relation.table_rows);
            let joined = |class: &usize| members.iter().any(|(at, _)| at == class);
            if relation.unique.as_ref().is_some_and(|unique| unique.iter().all(joined)) {
                of_unique = Some(of_unique.unwrap_or(1.0).max(relation.table_rows));
            }
        }
        let conditions = self.conditions_between(one, other).map(share_of_rows);
        conditions.product::<f64>() / of_unique.unwrap_or(values).max(1.0)
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
                    let (_, left) = class.member_in(one)?;
                    let (_, right) = class.member_in(other)?;
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
