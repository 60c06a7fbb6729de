//! Model of backlog if partitions or nodes have limited capacity: one queue for each, fed batch by
//! batch.
//!
//! Bytes of values arrive at a constant rate over all partitions, and each partition or node
//! processes at most its capacity. Whether a rate is sustained follows from the model of
//! [`evenkeel_stats::throughput`], applied to the load at any moment; the queues add the backlog at
//! the end of each batch, and cannot see within one.

use serde::Serialize;

use evenkeel_capacity::Headroom;
use evenkeel_stats::throughput::{Assignment, Capacity, sustains};
use evenkeel_stats::windows::Window;

/// Kind of resource with a limited capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Each partition.
    Partition,
    /// Each node; partitions are assigned to nodes in turn.
    Node,
}

/// Capacities of partitions and nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Limits {
    /// Bytes of values per second that one partition can process.
    pub partition_rate: f64,
    /// Number of nodes, if any; the partitions of a node share their combined capacity.
    pub nodes: Option<usize>,
}

/// Known load at any moment of one key.
#[derive(Debug, Clone, Copy)]
pub struct LoadAtATime<'a> {
    /// Capacity of its partitions, as computed by an evaluation.
    pub partitions: &'a Capacity,
    /// Rows per window of time.
    pub windows: &'a [Window],
}

impl Limits {
    /// Returns the rate that partitions sustain; if partitions share the capacity of their node,
    /// the rate that nodes sustain.
    fn sustained(&self, batches: &[Vec<u64>], load: LoadAtATime<'_>) -> f64 {
        let Some(nodes) = self.nodes else { return load.partitions.sustained };
        let partitions = batches.first().map_or(0, Vec::len);
        let nodes = nodes.clamp(1, partitions.max(1));
        let node_of = Assignment::RoundRobin.assign(&vec![1.0; partitions], nodes);
        let sums = |of_partitions: &[u64]| {
            let mut sums = vec![0u64; nodes];
            for (amount, node) in of_partitions.iter().zip(&node_of) {
                if let Some(sum) = sums.get_mut(*node) {
                    *sum += amount;
                }
            }
            sums
        };
        let each = partitions as f64 / nodes as f64;
        let strengths: Vec<f64> =
            sums(&vec![1; partitions]).into_iter().map(|partitions| partitions as f64 / each).collect();
        let mut bytes = vec![0u64; nodes];
        for batch in batches {
            bytes.iter_mut().zip(sums(batch)).for_each(|(sum, more)| *sum += more);
        }
        let windows: Vec<Vec<u64>> =
            load.windows.iter().map(|window| sums(&window.rows_per_partition)).collect();
        let windows = windows.iter().map(Vec::as_slice);
        let of_nodes = load.partitions.concentration.over_nodes(&bytes, windows, &strengths);
        Capacity::new(of_nodes, self.partition_rate * each).sustained
    }

    /// Returns the bytes per batch and resource, and the capacity of each resource per second.
    fn loads(&self, batches: &[Vec<u64>]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let partitions = batches.first().map_or(0, Vec::len);
        let resources = self.nodes.map_or(partitions, |nodes| nodes.clamp(1, partitions.max(1)));
        let resource_of = Assignment::RoundRobin.assign(&vec![1.0; partitions], resources);
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

/// Backlog, batch by batch. A result of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Backlog {
    /// Resource with a limited capacity.
    pub resource: Resource,
    /// Bytes per second over all partitions, at which the batches are assumed to arrive.
    pub offered_rate: f64,
    /// Backlog in bytes of the partition or node with the most, at the end of each batch.
    pub bytes: Vec<f64>,
    /// Longest time in seconds that the last bytes of the fullest queue wait.
    pub longest_wait_seconds: f64,
    /// Sustained rate in bytes per second, at which the load of the busiest resource at any moment
    /// equals its capacity.
    pub sustained_rate: f64,
    /// Whether the offered rate is sustained.
    pub is_sustained: bool,
    /// Highest sustained rate at which no batch leaves a backlog, in bytes per second.
    pub rate_without_backlog: f64,
    /// Highest rate at which any backlog is processed eventually, however long that takes; above
    /// it, backlog grows for as long as rows arrive.
    pub rate_in_the_long_run: f64,
}

impl Backlog {
    /// Simulates the queues for `batches` of bytes per partition, offered at `rate`; if it is
    /// `None`, at 80 % of the combined capacity of all partitions. Returns `None` without batches.
    #[must_use]
    pub fn simulate(
        batches: &[Vec<u64>],
        limits: Limits,
        load: LoadAtATime<'_>,
        rate: Option<f64>,
    ) -> Option<Self> {
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
        let headroom =
            Headroom::from_slices(loads.iter().map(|load| (seconds_of(load), load.as_slice())), &capacities);
        let up_to = |headroom: f64| if headroom.is_finite() { offered * headroom } else { all };
        let sustained = limits.sustained(batches, load);
        Some(Self {
            resource: if limits.nodes.is_some() { Resource::Node } else { Resource::Partition },
            offered_rate: offered,
            bytes,
            longest_wait_seconds: wait,
            sustained_rate: sustained,
            is_sustained: sustains(sustained, offered),
            rate_without_backlog: up_to(headroom.in_every_slice).min(sustained),
            rate_in_the_long_run: up_to(headroom.in_the_long_run),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_stats::throughput::{Concentration, LastingShare};

    const LIMITS: Limits = Limits { partition_rate: 100.0, nodes: None };

    /// Returns the backlog of batches, each of which is a window of time.
    fn backlog(batches: &[Vec<u64>], limits: Limits, moment: bool, rate: Option<f64>) -> Option<Backlog> {
        let window = |(number, rows): (i64, &Vec<u64>)| Window {
            number,
            start_micros: number,
            rows_per_partition: rows.clone(),
        };
        let windows: Vec<Window> = (0..).zip(batches).map(window).collect();
        let mut bytes = vec![0u64; batches.first().map_or(1, Vec::len)];
        for batch in batches {
            bytes.iter_mut().zip(batch).for_each(|(sum, more)| *sum += more);
        }
        let in_batches = LastingShare::from_windows(batches.iter().map(Vec::as_slice), &[]);
        let lasting = if moment { Some(LastingShare::ALL) } else { in_batches };
        let partitions = Capacity::new(Concentration::from_amounts(&bytes, lasting), limits.partition_rate);
        Backlog::simulate(batches, limits, LoadAtATime { partitions: &partitions, windows: &windows }, rate)
    }

    #[test]
    fn even_batches_leave_nothing_up_to_the_capacity_of_all() {
        let batches = vec![vec![50; 4]; 10];
        let outcome = backlog(&batches, LIMITS, false, Some(400.0)).unwrap();
        assert_eq!(outcome.bytes, [0.0; 10]);
        assert_eq!((outcome.rate_without_backlog, outcome.rate_in_the_long_run), (400.0, 400.0));
        assert!(outcome.is_sustained && outcome.sustained_rate == 400.0);
        let above = backlog(&batches, LIMITS, false, Some(500.0)).unwrap();
        // 200 bytes in 0.4 s: 10 of 50 bytes remain after each batch.
        assert!((above.bytes[9] - 100.0).abs() < 1e-9 && !above.is_sustained, "{above:?}");
    }

    #[test]
    fn a_batch_hides_no_moment() {
        // Each batch is even, but all rows of a moment belong to one partition.
        let batches = vec![vec![50; 4]; 10];
        let outcome = backlog(&batches, LIMITS, true, None).unwrap();
        assert_eq!((outcome.sustained_rate, outcome.is_sustained), (100.0, false));
        assert_eq!((outcome.rate_without_backlog, outcome.rate_in_the_long_run), (100.0, 400.0));
    }

    #[test]
    fn a_moving_hotspot_waits_long_before_it_moves() {
        // Ten batches for one partition, then ten for the other.
        let batches: Vec<Vec<u64>> =
            (0..20).map(|i| if i < 10 { vec![100, 0] } else { vec![0, 100] }).collect();
        let outcome = backlog(&batches, LIMITS, false, Some(200.0)).unwrap();
        assert_eq!((outcome.rate_without_backlog, outcome.rate_in_the_long_run), (100.0, 200.0));
        // Each batch takes half a second, in which one partition processes 50 of 100 bytes.
        assert!((outcome.bytes[9] - 500.0).abs() < 1e-9);
        assert!((outcome.longest_wait_seconds - 5.0).abs() < 1e-9 && !outcome.is_sustained);
    }

    #[test]
    fn partitions_of_a_node_share_its_capacity() {
        let batches = vec![vec![100, 0, 0, 0]; 3];
        let limits = Limits { nodes: Some(2), ..LIMITS };
        let outcome = backlog(&batches, limits, false, None).unwrap();
        assert_eq!((outcome.resource, outcome.offered_rate), (Resource::Node, 320.0));
        assert_eq!((outcome.sustained_rate, outcome.rate_without_backlog), (200.0, 200.0));
        assert!(backlog(&[], LIMITS, false, None).is_none());
        // Three partitions on two nodes: the node with two of them has twice the capacity.
        let even = vec![vec![50_000; 3]; 3];
        let outcome = backlog(&even, limits, false, None).unwrap();
        assert!((outcome.sustained_rate - 300.0).abs() < 1.0, "{outcome:?}");
    }
}
