//! Nodes of unequal weight: the deviation of each from the share that its weight implies.

use serde::Serialize;

/// Loads of nodes with weights under one placement. Partitions are assigned to nodes in order: the
/// first ones to the first node, like slots of a Distributed table of ClickHouse and ranges of
/// tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeLoads {
    /// Requested weights of the nodes; only their ratios matter.
    pub weights: Vec<f64>,
    /// Number of partitions of each node.
    pub partitions: Vec<u64>,
    /// Number of rows of each node.
    pub rows: Vec<u64>,
    /// Share of the rows of each node, over the share of its weight.
    pub loads: Vec<f64>,
    /// Highest of the loads; 1 is even.
    pub highest: f64,
}

impl NodeLoads {
    /// Computes the loads from the rows per partition; `None` without weights.
    pub(crate) fn new(rows_per_partition: &[u64], weights: &[f64]) -> Option<Self> {
        let sum: f64 = weights.iter().sum();
        if weights.is_empty() || sum <= 0.0 {
            return None;
        }
        let count = rows_per_partition.len();
        let all: u64 = rows_per_partition.iter().sum();
        let (mut before, mut begin) = (0.0, 0);
        let (mut partitions, mut rows, mut loads) = (Vec::new(), Vec::new(), Vec::new());
        for weight in weights {
            before += weight;
            let end = ((count as f64 * before / sum).round() as usize).clamp(begin, count);
            let of_node: u64 = rows_per_partition.get(begin..end).unwrap_or_default().iter().sum();
            partitions.push((end - begin) as u64);
            rows.push(of_node);
            loads.push(of_node as f64 / all.max(1) as f64 / (weight / sum));
            begin = end;
        }
        let highest = loads.iter().copied().fold(0.0, f64::max);
        Some(Self { weights: weights.to_vec(), partitions, rows, loads, highest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_get_the_partitions_of_their_weight_one_after_the_other() {
        let nodes = NodeLoads::new(&[10, 10, 10, 30, 20, 0, 10, 10], &[1.0, 2.0, 1.0]).unwrap();
        assert_eq!((nodes.partitions, nodes.rows), (vec![2, 4, 2], vec![20, 60, 20]));
        assert_eq!((nodes.loads, nodes.highest), (vec![0.8, 1.2, 0.8], 1.2));
        // No row is lost if the partitions do not divide evenly.
        let uneven = NodeLoads::new(&[1; 7], &[1.0, 1.0, 1.0]).unwrap();
        assert_eq!((uneven.partitions.iter().sum::<u64>(), uneven.rows.iter().sum::<u64>()), (7, 7));
        assert_eq!(NodeLoads::new(&[1, 2], &[]), None);
    }
}
