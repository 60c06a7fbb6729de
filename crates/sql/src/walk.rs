//! Walks through statements. The walks of sqlparser are compiled again for each type of visitor,
//! with code for every part of a statement: about 400 KB each. These are compiled once for each
//! type of tree in a crate.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor,
    VisitorMut,
};

/// Visits a statement or a part of one; `Break` if the visitor ended the walk.
pub fn walk(tree: &impl Visit, visitor: &mut dyn Visitor<Break = ()>) -> ControlFlow<()> {
    tree.visit(&mut AnyVisitor(visitor))
}

/// Visits a statement or a part of one, and lets the visitor change it; `Break` if the visitor
/// ended the walk.
pub fn walk_mut(tree: &mut impl VisitMut, visitor: &mut dyn VisitorMut<Break = ()>) -> ControlFlow<()> {
    tree.visit(&mut AnyVisitorMut(visitor))
}

struct AnyVisitor<'a>(&'a mut dyn Visitor<Break = ()>);

struct AnyVisitorMut<'a>(&'a mut dyn VisitorMut<Break = ()>);

macro_rules! forward {
    ($($method:ident($node:ty);)*) => {
        type Break = ();

        $(fn $method(&mut self, node: $node) -> ControlFlow<()> {
            self.0.$method(node)
        })*
    };
}

// A method that is missing here would not be called.
#[deny(clippy::missing_trait_methods)]
impl Visitor for AnyVisitor<'_> {
    forward! {
        pre_visit_statement(&Statement);
        post_visit_statement(&Statement);
        pre_visit_query(&Query);
        post_visit_query(&Query);
        pre_visit_select(&Select);
        post_visit_select(&Select);
        pre_visit_table_factor(&TableFactor);
        post_visit_table_factor(&TableFactor);
        pre_visit_relation(&ObjectName);
        post_visit_relation(&ObjectName);
        pre_visit_expr(&Expr);
        post_visit_expr(&Expr);
        pre_visit_value(&ValueWithSpan);
        post_visit_value(&ValueWithSpan);
    }
}

#[deny(clippy::missing_trait_methods)]
impl VisitorMut for AnyVisitorMut<'_> {
    forward! {
        pre_visit_statement(&mut Statement);
        post_visit_statement(&mut Statement);
        pre_visit_query(&mut Query);
        post_visit_query(&mut Query);
        pre_visit_select(&mut Select);
        post_visit_select(&mut Select);
        pre_visit_table_factor(&mut TableFactor);
        post_visit_table_factor(&mut TableFactor);
        pre_visit_relation(&mut ObjectName);
        post_visit_relation(&mut ObjectName);
        pre_visit_expr(&mut Expr);
        post_visit_expr(&mut Expr);
        pre_visit_value(&mut ValueWithSpan);
        post_visit_value(&mut ValueWithSpan);
    }
}
