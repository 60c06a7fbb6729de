//! Assignment of partitions to nodes.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

use evenkeel_model::bounded::quote;

/// Rule that assigns partitions to nodes. Nodes are numbered from 0, like partitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// Partition p is on node p % N.
    #[default]
    RoundRobin,
    /// The heaviest partition first, each to the node with the least load so far (Graham 1969: at
    /// most 4/3 of the optimum). The loads of the whole export, which are not known in advance, are
    /// used: this is the long-run result of balancing by load.
    LeastLoaded,
    /// Consecutive partitions on each node, beginning with the first, as evenly as possible.
    Contiguous,
}

/// Error for an unknown assignment.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown assignment '{found}'; known: round-robin, least-loaded, contiguous", found = quote(found))]
pub struct AssignmentError {
    found: String,
}

impl Assignment {
    /// Returns the name of the assignment.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round-robin",
            Self::LeastLoaded => "least-loaded",
            Self::Contiguous => "contiguous",
        }
    }

    /// Returns the node of each partition, given the load of each. 0 nodes count as 1.
    #[must_use]
    pub fn assign(self, loads: &[f64], nodes: usize) -> Vec<usize> {
        let (count, nodes) = (loads.len(), nodes.max(1));
        match self {
            Self::RoundRobin => (0..nodes).cycle().take(count).collect(),
            Self::Contiguous => (0..count).map(|partition| partition * nodes / count).collect(),
            Self::LeastLoaded => {
                let mut node_of = vec![0; count];
                let mut carried = vec![0.0; nodes];
                for partition in heaviest_first(loads, 0..count) {
                    let least = least(&carried, |_| true).unwrap_or(0);
                    give(partition, least, loads, &mut node_of, &mut carried);
                }
                node_of
            }
        }
    }

    /// Returns the assignment after the loss of a node. Its partitions move to the other nodes, in
    /// turn from the next one on; with assignment by load, the heaviest first, each to the node
    /// with the least load. None moves if there is no other node.
    #[must_use]
    pub fn without(self, lost: usize, node_of: &[usize], loads: &[f64], nodes: usize) -> Vec<usize> {
        let mut moved = node_of.to_vec();
        let of_lost = (0..node_of.len()).filter(|partition| node_of.get(*partition) == Some(&lost));
        if nodes < 2 {
            return moved;
        }
        match self {
            Self::RoundRobin | Self::Contiguous => {
                let others = (1..nodes).map(|step| (lost + step) % nodes).cycle();
                for (partition, other) in of_lost.zip(others) {
                    if let Some(node) = moved.get_mut(partition) {
                        *node = other;
                    }
                }
            }
            Self::LeastLoaded => {
                let mut carried = vec![0.0; nodes];
                for (node, load) in node_of.iter().zip(loads) {
                    if let Some(carried) = carried.get_mut(*node) {
                        *carried += load;
                    }
                }
                for partition in heaviest_first(loads, of_lost) {
                    let least = least(&carried, |node| node != lost).unwrap_or(lost);
                    give(partition, least, loads, &mut moved, &mut carried);
                }
            }
        }
        moved
    }
}

fn heaviest_first(loads: &[f64], partitions: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut partitions: Vec<usize> = partitions.collect();
    let load = |partition: &usize| loads.get(*partition).copied().unwrap_or(0.0);
    partitions.sort_by(|a, b| load(b).total_cmp(&load(a)).then(a.cmp(b)));
    partitions
}

/// Returns the node with the least load, or the first of several.
fn least(carried: &[f64], is_candidate: impl Fn(usize) -> bool) -> Option<usize> {
    let by_load = |a: &(usize, &f64), b: &(usize, &f64)| -> Ordering { a.1.total_cmp(b.1) };
    carried.iter().enumerate().filter(|(node, _)| is_candidate(*node)).min_by(by_load).map(|(node, _)| node)
}

fn give(partition: usize, to: usize, loads: &[f64], node_of: &mut [usize], carried: &mut [f64]) {
    if let Some(node) = node_of.get_mut(partition) {
        *node = to;
    }
    if let (Some(carried), Some(load)) = (carried.get_mut(to), loads.get(partition)) {
        *carried += load;
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Assignment {
    type Err = AssignmentError;

    fn from_str(text: &str) -> Result<Self, AssignmentError> {
        let all = [Self::RoundRobin, Self::LeastLoaded, Self::Contiguous];
        let assignment =
            all.into_iter().find(|assignment| assignment.name().eq_ignore_ascii_case(text.trim()));
        assignment.ok_or_else(|| AssignmentError { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::*;

    const ALL: [Assignment; 3] = [Assignment::RoundRobin, Assignment::LeastLoaded, Assignment::Contiguous];

    #[test]
    fn each_rule_deals_as_it_says() {
        let loads = [5.0, 1.0, 1.0, 4.0, 3.0];
        assert_eq!(Assignment::RoundRobin.assign(&loads, 2), [0, 1, 0, 1, 0]);
        assert_eq!(Assignment::Contiguous.assign(&loads, 2), [0, 0, 0, 1, 1]);
        // 5 | 4, 4 + 3, 5 + 1, then 6 + 1.
        assert_eq!(Assignment::LeastLoaded.assign(&loads, 2), [0, 0, 0, 1, 1]);
        assert_eq!(Assignment::RoundRobin.assign(&loads, 8), [0, 1, 2, 3, 4]);
        assert_eq!(Assignment::Contiguous.assign(&[1.0; 4], 8), [0, 2, 4, 6]);
    }

    #[test]
    fn the_partitions_of_a_lost_node_go_to_the_others() {
        let loads = [1.0; 6];
        let assigned = Assignment::RoundRobin.assign(&loads, 3);
        assert_eq!(Assignment::RoundRobin.without(1, &assigned, &loads, 3), [0, 2, 2, 0, 0, 2]);
        let loads = [8.0, 2.0, 5.0, 3.0, 3.0, 3.0];
        // 8 | 2 + 3 | 5 + 3 + 3: the partition of node 0 moves to the node with 5.
        assert_eq!(Assignment::LeastLoaded.without(0, &[0, 1, 2, 1, 2, 2], &loads, 3), [1, 1, 2, 1, 2, 2]);
        assert_eq!(Assignment::RoundRobin.without(0, &[0, 0], &[1.0; 2], 1), [0, 0]);
    }

    #[test]
    fn names_parse_as_they_print() {
        for assignment in ALL {
            assert_eq!(assignment.to_string().parse(), Ok(assignment));
        }
        let error = "random".parse::<Assignment>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown assignment 'random'; known: round-robin, least-loaded, contiguous"
        );
    }

    proptest! {
        #[test]
        fn every_partition_has_a_node_and_counts_are_even(
            loads in proptest::collection::vec(0.0f64..10.0, 1..50), nodes in 1usize..9, lost in 0usize..9,
        ) {
            for assignment in ALL {
                let assigned = assignment.assign(&loads, nodes);
                prop_assert!(assigned.len() == loads.len() && assigned.iter().all(|node| *node < nodes));
                if assignment != Assignment::LeastLoaded {
                    let counts = (0..nodes).map(|node| assigned.iter().filter(|other| **other == node).count());
                    let counts: Vec<usize> = counts.collect();
                    prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
                }
                let moved = assignment.without(lost % nodes, &assigned, &loads, nodes);
                let stay = assigned.iter().zip(&moved).filter(|(from, _)| **from != lost % nodes);
                prop_assert!(stay.clone().all(|(from, to)| from == to));
                prop_assert!(nodes == 1 || moved.iter().all(|node| *node != lost % nodes));
            }
        }
    }
}
