//! The parts of a tree of inner joins.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, JoinType, NullEquality, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::query::optimization::join_order::certain::is_certain;
use crate::query::optimization::join_order::relations::Relations;
use crate::query::optimization::join_order::search::JoinTree;

/// Expression of the columns of one relation, which has a position.
pub(super) type Member = (usize, Expr);

/// Relations that inner joins combine, the pairs of their keys, and their other conditions.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) relations: Vec<LogicalPlan>,
    pairs: Vec<(Expr, Expr)>,
    pub(super) conditions: Vec<Expr>,
}

/// Whether a plan is an inner join on equal keys.
pub(super) fn is_inner(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.join_type == JoinType::Inner
        && !join.on.is_empty()
        && !join.null_aware
        && join.null_equality == NullEquality::NullEqualsNothing)
}

impl Parts {
    /// Adds a plan, and returns the tree of its joins.
    pub(super) fn add(&mut self, plan: &LogicalPlan) -> JoinTree {
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
    pub(super) fn relations_of(&self, expr: &Expr) -> Relations {
        let columns = expr.column_refs();
        let has_any = |plan: &LogicalPlan| columns.iter().any(|column| plan.schema().has_column(column));
        let with_any = self.relations.iter().enumerate().filter(|(_, plan)| has_any(plan));
        with_any.map(|(at, _)| Relations::one(at)).fold(Relations::default(), Relations::with)
    }

    /// Whether an expression cannot fail.
    pub(super) fn is_certain(&self, expr: &Expr) -> Result<bool> {
        let mut schema = DFSchema::empty();
        for relation in self.relations_of(expr).iter().filter_map(|at| self.relations.get(at)) {
            schema.merge(relation.schema());
        }
        is_certain(expr, &schema)
    }

    /// Turns the keys into classes of columns that are equal in each joined row, with one member
    /// for each relation; that others of its columns equal the member becomes a condition. `None` if
    /// joins cannot be reordered: a key can fail, or has columns of several relations.
    pub(super) fn take_classes(&mut self) -> Result<Option<Vec<Vec<Member>>>> {
        let mut classes: Vec<Vec<Member>> = Vec::new();
        for (left, right) in std::mem::take(&mut self.pairs) {
            if !self.is_certain(&left)? || !self.is_certain(&right)? {
                return Ok(None);
            }
            let (Some(left), Some(right)) = (self.member(left), self.member(right)) else { return Ok(None) };
            if self.data_type(&left)? != self.data_type(&right)? {
                return Ok(None);
            }
            let mut together = vec![left, right];
            let (with_either, others): (Vec<_>, Vec<_>) =
                classes.into_iter().partition(|class| class.iter().any(|member| together.contains(member)));
            classes = others;
            for member in with_either.into_iter().flatten() {
                if !together.contains(&member) {
                    together.push(member);
                }
            }
            classes.push(together);
        }
        for class in &mut classes {
            let mut kept: Vec<Member> = Vec::with_capacity(class.len());
            for member in std::mem::take(class) {
                match kept.iter().find(|(relation, _)| *relation == member.0) {
                    Some(first) if self.is_exact(first)? => {
                        self.conditions.push(first.1.clone().eq(member.1));
                    }
                    Some(_) => return Ok(None),
                    None => kept.push(member),
                }
            }
            *class = kept;
        }
        Ok(Some(classes))
    }

    /// The member of a class for an expression; `None` if it does not have columns of one relation.
    fn member(&self, expr: Expr) -> Option<Member> {
        let relations = self.relations_of(&expr);
        relations.iter().next().filter(|_| relations.len() == 1).map(|relation| (relation, expr))
    }

    fn data_type(&self, (relation, expr): &Member) -> Result<Option<DataType>> {
        self.relations.get(*relation).map(|plan| expr.get_type(plan.schema())).transpose()
    }

    /// Whether conditions find the same values equal as joins: not zeros of either sign, nor lists.
    fn is_exact(&self, member: &Member) -> Result<bool> {
        let data_type = self.data_type(member)?;
        Ok(data_type.is_some_and(|data_type| !data_type.is_floating() && !data_type.is_nested()))
    }
}
