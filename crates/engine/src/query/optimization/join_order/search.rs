//! Search for the best tree of joins.

use std::collections::HashMap;

use crate::query::optimization::join_order::graph::JoinGraph;
use crate::query::optimization::join_order::relations::Relations;

/// Largest number of relations of which all trees are compared; larger trees grow from their
/// smallest joins.
const MAX_COMPARED: usize = 10;

/// Cost of a row that goes into a hash table, relative to a row that is looked up in it.
const BUILD: f64 = 2.0;

/// Rows of a hash table that the processor's caches hold.
const CACHED: f64 = 65_536.0;

/// Rows of a hash table from which the rows of both sides are distributed first.
const DISTRIBUTED: f64 = 1_048_576.0;

/// Cost of a row that is distributed.
const DISTRIBUTE: f64 = 1.0;

/// Tree of joins over the relations of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JoinTree {
    Relation(usize),
    /// The left side goes into a hash table.
    Join(Box<JoinTree>, Box<JoinTree>),
}

impl JoinTree {
    pub(super) fn relations(&self) -> Relations {
        match self {
            Self::Relation(relation) => Relations::one(*relation),
            Self::Join(left, right) => left.relations().with(right.relations()),
        }
    }
}

/// Returns the tree with the least expected cost; `None` if it costs more than `at_most` of the
/// tree of the query, or relations cannot be joined without products.
pub(super) fn best_tree(graph: &JoinGraph, at_most: f64) -> Option<JoinTree> {
    let count = graph.relations().len();
    if count < 3 {
        return None;
    }
    let mut estimates = Estimates { graph, rows: HashMap::new() };
    let (tree, cost) =
        if count <= MAX_COMPARED { estimates.compare_all(count)? } else { estimates.grow(count)? };
    (cost <= at_most * estimates.cost(graph.written())).then_some(tree)
}

/// Expected rows of joins.
struct Estimates<'g> {
    graph: &'g JoinGraph,
    rows: HashMap<Relations, f64>,
}

impl Estimates<'_> {
    /// Rows of the join of connected relations. They do not depend on the order of the joins.
    fn rows(&mut self, set: Relations) -> f64 {
        if let Some(rows) = self.rows.get(&set) {
            return *rows;
        }
        let is_rest = |relation: &usize| {
            let rest = set.without(Relations::one(*relation));
            self.graph.is_connected(rest) && self.graph.connects(rest, Relations::one(*relation))
        };
        let rows = match set.iter().find(is_rest) {
            Some(last) if set.len() > 1 => {
                let last = Relations::one(last);
                let rest = set.without(last);
                let share = self.graph.share_of_pairs(rest, last);
                self.rows(rest) * self.rows(last) * share
            }
            _ => set.iter().filter_map(|relation| Some(self.graph.relations().get(relation)?.rows)).product(),
        };
        let rows = rows.max(1.0);
        self.rows.insert(set, rows);
        rows
    }

    /// Cost of the join of two sets, beyond that of computing them.
    fn join_cost(&mut self, one: Relations, other: Relations) -> f64 {
        let (one_rows, other_rows) = (self.rows(one), self.rows(other));
        let (built, looked_up) = (one_rows.min(other_rows), one_rows.max(other_rows));
        let partitions = self.graph.partitions_joined(one.with(other)) as f64;
        // Each row of a table that exceeds the caches costs more, the more it exceeds them.
        let misses = 1.0 + (built / partitions / CACHED).log2().max(0.0) / 2.0;
        let distributed = if partitions > 1.0 || built < DISTRIBUTED { 0.0 } else { DISTRIBUTE };
        (BUILD * built + looked_up) * misses + (built + looked_up) * distributed + self.rows(one.with(other))
    }

    /// Cost of all joins of a tree.
    fn cost(&mut self, tree: &JoinTree) -> f64 {
        match tree {
            JoinTree::Relation(_) => 0.0,
            JoinTree::Join(left, right) => {
                self.cost(left) + self.cost(right) + self.join_cost(left.relations(), right.relations())
            }
        }
    }

    /// The join of two trees, the smaller one on the left.
    fn joined(&mut self, one: JoinTree, other: JoinTree) -> JoinTree {
        let is_smaller = self.rows(one.relations()) <= self.rows(other.relations());
        let (left, right) = if is_smaller { (one, other) } else { (other, one) };
        JoinTree::Join(Box::new(left), Box::new(right))
    }

    /// Finds the best tree of each connected set from those of its subsets.
    fn compare_all(&mut self, count: usize) -> Option<(JoinTree, f64)> {
        let mut best: HashMap<Relations, (JoinTree, f64)> = HashMap::new();
        for relation in 0..count {
            best.insert(Relations::one(relation), (JoinTree::Relation(relation), 0.0));
        }
        let all = Relations::first(count);
        // Each set comes after its subsets.
        let mut sets: Vec<Relations> = all.proper_subsets().chain([all]).collect();
        sets.sort_by_key(|set| set.len());
        for set in sets.into_iter().filter(|set| set.len() > 1) {
            let mut least: Option<(Relations, f64)> = None;
            for one in set.proper_subsets() {
                let other = set.without(one);
                let (Some((_, cost)), Some((_, other_cost))) = (best.get(&one), best.get(&other)) else {
                    continue;
                };
                // Of two mirrored pairs, one is enough.
                if one.iter().next() > other.iter().next() || !self.graph.connects(one, other) {
                    continue;
                }
                let cost = cost + other_cost + self.join_cost(one, other);
                if least.is_none_or(|(_, known)| cost < known) {
                    least = Some((one, cost));
                }
            }
            let Some((one, cost)) = least else { continue };
            let tree_of = |set: Relations| best.get(&set).map(|(tree, _)| tree.clone());
            let (tree, other) = (tree_of(one)?, tree_of(set.without(one))?);
            best.insert(set, (self.joined(tree, other), cost));
        }
        best.remove(&all)
    }

    /// Joins the two trees with the cheapest join until one is left.
    fn grow(&mut self, count: usize) -> Option<(JoinTree, f64)> {
        let mut trees: Vec<JoinTree> = (0..count).map(JoinTree::Relation).collect();
        let mut cost = 0.0;
        while trees.len() > 1 {
            let mut least: Option<(usize, usize, f64)> = None;
            for (at, one) in trees.iter().enumerate() {
                for (before, other) in trees.iter().enumerate().take(at) {
                    let (one, other) = (one.relations(), other.relations());
                    if !self.graph.connects(one, other) {
                        continue;
                    }
                    let cost = self.join_cost(one, other);
                    if least.is_none_or(|(_, _, known)| cost < known) {
                        least = Some((before, at, cost));
                    }
                }
            }
            let (before, at, added) = least?;
            let (other, one) = (trees.remove(at), trees.remove(before));
            trees.push(self.joined(one, other));
            cost += added;
        }
        Some((trees.pop()?, cost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::optimization::join_order::tests::graphs;
    use crate::testing::joins::tables;

    /// All trees of joins without products, one by one.
    fn all_trees(graph: &JoinGraph, set: Relations) -> Vec<JoinTree> {
        if set.len() == 1 {
            return set.iter().map(JoinTree::Relation).collect();
        }
        let mut trees = Vec::new();
        for one in set.proper_subsets() {
            let other = set.without(one);
            if graph.connects(one, other) {
                for left in all_trees(graph, one) {
                    for right in all_trees(graph, other) {
                        trees.push(JoinTree::Join(Box::new(left.clone()), Box::new(right)));
                    }
                }
            }
        }
        trees
    }

    #[tokio::test]
    async fn no_tree_costs_less_than_the_best_one() {
        for graph in graphs(&tables().await, 40).await {
            let count = graph.relations().len();
            let mut estimates = Estimates { graph: &graph, rows: HashMap::new() };
            let all = all_trees(&graph, Relations::first(count));
            let least = all.iter().map(|tree| estimates.cost(tree)).fold(f64::INFINITY, f64::min);
            let (best, cost) = estimates.compare_all(count).unwrap();
            assert!((cost - least).abs() <= 1e-9 * least, "{cost} {least}");
            assert!((estimates.cost(&best) - cost).abs() <= 1e-9 * cost);
            assert_eq!(best.relations(), Relations::first(count));
            let (grown, of_grown) = estimates.grow(count).unwrap();
            assert!(of_grown >= least * (1.0 - 1e-9));
            assert_eq!(grown.relations(), Relations::first(count));
        }
    }
}
