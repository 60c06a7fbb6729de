//! What waits when partitions or nodes take only so much: a queue for each of them, fed batch by batch.
//!
//! This is a model: bytes of values arrive at a constant rate over all partitions, and each partition or node takes its
//! capacity, no more.

use serde::Serialize;

use crate::simulate::nodes::{Assignment, Room};

/// What has a capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Each partition.
    Partition,
    /// Each node; partitions go to nodes in turn.
    Node,
}

/// Capacities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limits {
    /// Bytes of values per second that one partition takes.
    pub partition_rate: f64,
    /// Nodes; where there are some, the partitions of a node share what all of them take.
    pub nodes: Option<usize>,
}

impl Limits {
    /// Bytes per batch and resource, and what each resource takes per second.
    fn loads(&self, batches: &[Vec<u64>]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let partitions = batches.first().map_or(0, Vec::len);
        let resources = self.nodes.map_or(partitions, |nodes| nodes.clamp(1, partitions.max(1)));
        let resource_of = Assignment::RoundRobin.deal(&vec![1.0; partitions], resources);
        let sums = |of_partitions: &mut dyn Iterator<Item = f64>| {
            let mut sums = vec![0.0; resources];
            for (amount, resource) in of_partitions.zip(&resource_of) {
                if let Some(sum) = sums.get_mut(*resource) {
                    *sum += amount;
                }
            }
            sums
        };
        let load = |bytes: &Vec<u64>| sums(&mut bytes.iter().map(|bytes| *bytes as f64));
        let loads = batches.iter().map(load).collect();
        (loads, sums(&mut std::iter::repeat_n(self.partition_rate, partitions)))
    }
}

/// What waits, batch by batch. A result of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Backlog {
    /// What has a capacity.
    pub resource: Resource,
    /// Bytes per second over all partitions, at which the batches are taken to arrive.
    pub offered_rate: f64,
    /// Bytes that wait at the partition or node with the most, at the end of each batch.
    pub bytes: Vec<f64>,
    /// Seconds that the last bytes of the fullest queue wait, at the worst time.
    pub longest_wait_seconds: f64,
    /// The highest rate at which no batch leaves anything waiting, in bytes per second.
    pub rate_without_backlog: f64,
    /// The highest rate at which what waits is taken in the end: above it, backlog grows as long as rows come.
    pub rate_in_the_long_run: f64,
}

impl Backlog {
    /// The queues for `batches` of bytes per partition, offered at `rate`; at 80 % of what all partitions take together where
    /// none is given. None without batches.
    #[must_use]
    pub fn of(batches: &[Vec<u64>], limits: Limits, rate: Option<f64>) -> Option<Self> {
        let (loads, capacities) = limits.loads(batches);
        let all: f64 = capacities.iter().sum();
        let offered = rate.unwrap_or(0.8 * all);
        if loads.is_empty() || offered <= 0.0 {
            return None;
        }
        let mut waiting = vec![0.0; capacities.len()];
        let (mut bytes, mut wait) = (Vec::new(), 0.0f64);
        let seconds_of = |load: &Vec<f64>| load.iter().sum::<f64>() / offered;
        for load in &loads {
            let seconds = seconds_of(load);
            for (waiting, (load, capacity)) in waiting.iter_mut().zip(load.iter().zip(&capacities)) {
                *waiting = f64::max(*waiting + load - capacity * seconds, 0.0);
                wait = wait.max(*waiting / capacity);
            }
            bytes.push(waiting.iter().copied().fold(0.0, f64::max));
        }
        let room = Room::of(loads.iter().map(|load| (seconds_of(load), load.as_slice())), &capacities);
        let up_to = |room: f64| if room.is_finite() { offered * room } else { all };
        Some(Self {
            resource: if limits.nodes.is_some() { Resource::Node } else { Resource::Partition },
            offered_rate: offered,
            bytes,
            longest_wait_seconds: wait,
            rate_without_backlog: up_to(room.in_every_slice),
            rate_in_the_long_run: up_to(room.in_the_long_run),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { partition_rate: 100.0, nodes: None };

    #[test]
    fn even_batches_leave_nothing_up_to_the_capacity_of_all() {
        let batches = vec![vec![50; 4]; 10];
        let backlog = Backlog::of(&batches, LIMITS, Some(400.0)).unwrap();
        assert_eq!(backlog.bytes, [0.0; 10]);
        assert_eq!((backlog.rate_without_backlog, backlog.rate_in_the_long_run), (400.0, 400.0));
        let above = Backlog::of(&batches, LIMITS, Some(500.0)).unwrap();
        // 200 bytes in 0.4 s: 10 of 50 bytes wait after each batch.
        assert!((above.bytes[9] - 100.0).abs() < 1e-9, "{above:?}");
    }

    #[test]
    fn a_moving_hotspot_waits_long_before_it_moves() {
        // Ten batches for one partition, then ten for the other.
        let batches: Vec<Vec<u64>> =
            (0..20).map(|i| if i < 10 { vec![100, 0] } else { vec![0, 100] }).collect();
        let backlog = Backlog::of(&batches, LIMITS, Some(200.0)).unwrap();
        assert_eq!((backlog.rate_without_backlog, backlog.rate_in_the_long_run), (100.0, 200.0));
        // Each batch takes half a second, in which one partition takes 50 of 100 bytes.
        assert!((backlog.bytes[9] - 500.0).abs() < 1e-9);
        assert!((backlog.longest_wait_seconds - 5.0).abs() < 1e-9);
    }

    #[test]
    fn partitions_of_a_node_share_its_capacity() {
        let batches = vec![vec![100, 0, 0, 0]; 3];
        let limits = Limits { nodes: Some(2), ..LIMITS };
        let backlog = Backlog::of(&batches, limits, None).unwrap();
        assert_eq!((backlog.resource, backlog.offered_rate), (Resource::Node, 320.0));
        assert_eq!(backlog.rate_without_backlog, 200.0);
        assert!(Backlog::of(&[], LIMITS, None).is_none());
    }
}
