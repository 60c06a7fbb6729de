//! The order in which tables are joined.
//!
//! ```text
//! tree of inner joins ─► JoinGraph ─► best_tree ─► tree of inner joins, projection
//!                        relations, classes of equal columns, other conditions
//! ```
//! Estimates come from the numbers of rows of tables and from the forms of conditions; see
//! `estimate`. Joins whose conditions or keys can fail stay as they are, since an earlier join may
//! remove the rows on which they would.

mod certain;
mod estimate;
mod graph;
mod parts;
mod placed;
mod relations;
mod search;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::query::optimization::join_order::graph::JoinGraph;
use crate::query::optimization::join_order::parts::is_inner;
use crate::query::optimization::join_order::search::best_tree;
use crate::query::walk::{Walk, WalkPlan};

/// Largest cost of another order, relative to that of the order in the query, with which it is
/// taken: estimates are rough, and authors of queries know their tables.
const CLEARLY_LESS: f64 = 0.75;

/// Joins tables in the order with the least expected cost.
///
/// DataFusion 55 joins tables in the order in which a query names them. The suppliers of all parts
/// are then found before a condition selects a few of the parts:
///
/// ```text
/// (suppliers join supplied) join parts   ──►   (supplied join parts) join suppliers
/// ```
/// Inner joins give the same rows in any order. Columns that are equal to the same column are equal
/// to each other, so that nations select customers as well as suppliers, if both must have the same
/// nation.
#[derive(Debug)]
pub(in crate::query) struct JoinOrder;

impl OptimizerRule for JoinOrder {
    fn name(&self) -> &'static str {
        "JoinOrder"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        with_best_orders(plan)
    }
}

/// Orders all trees of joins in a plan, each once, from the top.
fn with_best_orders(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_down_with_subqueries_dyn(|node| {
        if !is_inner(&node) {
            return Ok(Transformed::no(node));
        }
        let Some(graph) = JoinGraph::new(&node)? else { return Ok(Transformed::no(node)) };
        let Some(tree) = best_tree(&graph, CLEARLY_LESS) else {
            // The joins below belong to the same tree.
            let below = below_tree(node)?;
            return Ok(Transformed::new(below.data, below.transformed, TreeNodeRecursion::Jump));
        };
        let graph = graph.try_map_relations(|relation| Ok(with_best_orders(relation)?.data))?;
        // Parents may know columns by their place.
        let columns = node.schema().columns().into_iter().map(Expr::Column).collect();
        let ordered = Arc::new(graph.plan(&tree)?);
        let plan = LogicalPlan::Projection(Projection::try_new(columns, ordered)?);
        Ok(Transformed::new(plan, true, TreeNodeRecursion::Jump))
    })
}

/// Orders the trees of joins below a tree that stays.
fn below_tree(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    node.map_children_dyn(|child| if is_inner(&child) { below_tree(child) } else { with_best_orders(child) })
}

#[cfg(test)]
mod tests;
