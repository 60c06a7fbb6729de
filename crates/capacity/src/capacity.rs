//! Capacities of nodes and partitions, and the share of them that is used. The sustained rate of a
//! design is computed by [`evenkeel_stats::throughput`].

use serde::Serialize;

use evenkeel_model::units::PartitionCount;
use evenkeel_stats::throughput::Assignment;

/// Capacity per second. If both limits are given, both hold, and the one reached first counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Rate {
    /// Rows; `None` if they are not limited.
    pub rows_per_second: Option<f64>,
    /// Bytes of values; `None` if they are not limited.
    pub bytes_per_second: Option<f64>,
}

impl Rate {
    /// Returns the seconds needed to serve `rows` with `bytes`; 0 without a limit.
    #[must_use]
    pub fn seconds(self, rows: f64, bytes: f64) -> f64 {
        let share_of = |amount: f64, rate: Option<f64>| rate.map_or(0.0, |rate| amount / rate);
        share_of(rows, self.rows_per_second).max(share_of(bytes, self.bytes_per_second))
    }

    /// Whether there is a limit.
    #[must_use]
    pub fn is_limited(self) -> bool {
        self.rows_per_second.is_some() || self.bytes_per_second.is_some()
    }
}

/// Capacities of the nodes and partitions of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Capacities {
    /// Capacity of each node, for all of its partitions together.
    pub node: Rate,
    /// Capacity of each partition, whose rows go through a single writer.
    pub partition: Rate,
}

/// Headroom: the factor by which the load could grow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headroom {
    /// Factor up to which nothing waits at the end of any slice of time.
    pub in_every_slice: f64,
    /// Factor up to which any backlog is eventually served.
    pub in_the_long_run: f64,
}

impl Headroom {
    /// Computes the headroom from slices of time, each with its length in seconds and the demand on
    /// each resource, and from the capacity of each resource per second, in the same unit. Infinite
    /// without demand.
    pub fn from_slices<'a>(slices: impl Iterator<Item = (f64, &'a [f64])>, capacities: &[f64]) -> Self {
        let (mut seconds, mut demand) = (0.0, vec![0.0; capacities.len()]);
        let mut in_every_slice = f64::INFINITY;
        for (length, loads) in slices {
            seconds += length;
            for ((demand, load), capacity) in demand.iter_mut().zip(loads).zip(capacities) {
                *demand += load;
                if *load > 0.0 {
                    in_every_slice = in_every_slice.min(capacity * length / load);
                }
            }
        }
        let headroom = demand.iter().zip(capacities).filter(|(demand, _)| **demand > 0.0);
        let in_the_long_run = headroom.map(|(demand, capacity)| capacity * seconds / demand);
        Self { in_every_slice, in_the_long_run: in_the_long_run.fold(f64::INFINITY, f64::min) }
    }

    /// Returns the headroom within both limits.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            in_every_slice: self.in_every_slice.min(other.in_every_slice),
            in_the_long_run: self.in_the_long_run.min(other.in_the_long_run),
        }
    }
}

/// A cluster described by three numbers and a rule, without an export.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScaleModel {
    /// Number of nodes; 0 counts as 1.
    pub nodes: usize,
    /// Number of partitions.
    pub partitions: PartitionCount,
    /// Rule that assigns partitions to nodes.
    pub assignment: Assignment,
    /// Rows per second that a node can serve.
    pub node_rows_per_second: f64,
}

/// Load on the nodes of a cluster as a share of their capacity: at 1 it is used up, above that a
/// queue grows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Utilization {
    /// Utilization of each node.
    pub nodes: Vec<f64>,
    /// Utilization of all nodes together.
    pub mean: f64,
    /// Utilization of the busiest node.
    pub hottest: f64,
    /// Rows per second at which the busiest node reaches its capacity; `None` without rows.
    pub sustained_rows_per_second: Option<f64>,
}

impl ScaleModel {
    /// Returns the load that `rows_per_second` put on the nodes. `rows_per_partition` gives the
    /// sizes of partitions, such as those of an evaluation; if it is empty, partitions are equal.
    ///
    /// ```
    /// use evenkeel_capacity::{Assignment, ScaleModel};
    /// use evenkeel_model::units::PartitionCount;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScaleModel {
    ///     nodes: 4,
    ///     partitions: PartitionCount::new(6)?,
    ///     assignment: Assignment::RoundRobin,
    ///     node_rows_per_second: 3000.0,
    /// };
    /// // Two nodes have two partitions of six, the others one.
    /// let usage = model.utilization(6000.0, &[]);
    /// assert_eq!((usage.mean, usage.hottest), (0.5, 2.0 / 3.0));
    /// assert_eq!(usage.sustained_rows_per_second, Some(9000.0));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn utilization(&self, rows_per_second: f64, rows_per_partition: &[u64]) -> Utilization {
        let all: u64 = rows_per_partition.iter().sum();
        let even = 1.0 / self.partitions.len() as f64;
        let share = |partition: usize| match all {
            0 => even,
            all => rows_per_partition.get(partition).copied().unwrap_or(0) as f64 / all as f64,
        };
        let shares: Vec<f64> = (0..self.partitions.len()).map(share).collect();
        let count = self.nodes.max(1);
        let mut nodes = vec![0.0; count];
        for (node, share) in self.assignment.assign(&shares, count).into_iter().zip(&shares) {
            if let Some(demand) = nodes.get_mut(node) {
                *demand += share * rows_per_second / self.node_rows_per_second;
            }
        }
        let hottest = nodes.iter().copied().fold(0.0, f64::max);
        Utilization {
            mean: rows_per_second / (self.node_rows_per_second * count as f64),
            hottest,
            sustained_rows_per_second: (hottest > 0.0).then(|| rows_per_second / hottest),
            nodes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_that_is_reached_first_counts() {
        let both = Rate { rows_per_second: Some(10.0), bytes_per_second: Some(1000.0) };
        assert_eq!((both.seconds(20.0, 100.0), both.seconds(20.0, 5000.0)), (2.0, 5.0));
        assert_eq!(Rate::default().seconds(20.0, 5000.0), 0.0);
        assert!(both.is_limited() && !Rate::default().is_limited());
    }

    #[test]
    fn room_is_that_of_the_resource_and_of_the_slice_with_least() {
        let slices = [[4.0, 0.0], [0.0, 2.0], [0.0, 0.0]];
        let headroom =
            Headroom::from_slices(slices.iter().map(|loads| (10.0, loads.as_slice())), &[1.0, 1.0]);
        assert_eq!((headroom.in_every_slice, headroom.in_the_long_run), (2.5, 7.5));
        let nothing = Headroom::from_slices(std::iter::empty(), &[1.0]);
        assert_eq!(headroom.and(nothing), headroom);
    }

    #[test]
    fn unequal_partitions_make_unequal_nodes() {
        let model = ScaleModel {
            nodes: 2,
            partitions: PartitionCount::new(4).unwrap(),
            assignment: Assignment::Contiguous,
            node_rows_per_second: 100.0,
        };
        let utilization = model.utilization(100.0, &[30, 30, 30, 10]);
        assert_eq!((utilization.nodes, utilization.mean), (vec![0.6, 0.4], 0.5));
        assert_eq!(model.utilization(0.0, &[]).sustained_rows_per_second, None);
        let spread = ScaleModel { assignment: Assignment::LeastLoaded, ..model };
        assert!((spread.utilization(100.0, &[40, 20, 20, 20]).hottest - 0.6).abs() < 1e-12);
    }
}
