//! What nodes and partitions take, and what share of it is asked of them. What a design sustains: [`evenkeel_stats::throughput`].

use serde::Serialize;

use evenkeel_model::units::PartitionCount;
use evenkeel_stats::throughput::Assignment;

/// What is taken in a second. Where both are given both hold, and the one that is reached first counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Rate {
    /// Rows; none where they are not limited.
    pub rows_per_second: Option<f64>,
    /// Bytes of values; none where they are not limited.
    pub bytes_per_second: Option<f64>,
}

impl Rate {
    /// Seconds that so many rows with so many bytes take; 0 without a limit.
    #[must_use]
    pub fn seconds(self, rows: f64, bytes: f64) -> f64 {
        let of = |amount: f64, rate: Option<f64>| rate.map_or(0.0, |rate| amount / rate);
        of(rows, self.rows_per_second).max(of(bytes, self.bytes_per_second))
    }

    /// Whether there is a limit.
    #[must_use]
    pub fn is_limited(self) -> bool {
        self.rows_per_second.is_some() || self.bytes_per_second.is_some()
    }
}

/// What a cluster takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Capacities {
    /// Each node, for all of its partitions together.
    pub node: Rate,
    /// Each partition on its own, whose rows one writer takes.
    pub partition: Rate,
}

/// How many times what comes could come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// So that nothing waits at the end of any slice of time.
    pub in_every_slice: f64,
    /// So that what waits is taken in the end.
    pub in_the_long_run: f64,
}

impl Room {
    /// Of slices of time with their length in seconds, what is asked in them of each resource, and what each takes in a second, in one
    /// unit. Infinite where nothing is asked.
    pub fn of<'a>(slices: impl Iterator<Item = (f64, &'a [f64])>, capacities: &[f64]) -> Self {
        let (mut seconds, mut asked) = (0.0, vec![0.0; capacities.len()]);
        let mut in_every_slice = f64::INFINITY;
        for (length, loads) in slices {
            seconds += length;
            for ((asked, load), capacity) in asked.iter_mut().zip(loads).zip(capacities) {
                *asked += load;
                if *load > 0.0 {
                    in_every_slice = in_every_slice.min(capacity * length / load);
                }
            }
        }
        let room = asked.iter().zip(capacities).filter(|(asked, _)| **asked > 0.0);
        let in_the_long_run = room.map(|(asked, capacity)| capacity * seconds / asked);
        Self { in_every_slice, in_the_long_run: in_the_long_run.fold(f64::INFINITY, f64::min) }
    }

    /// What both leave.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            in_every_slice: self.in_every_slice.min(other.in_every_slice),
            in_the_long_run: self.in_the_long_run.min(other.in_the_long_run),
        }
    }
}

/// A cluster as three numbers and a rule, without an export.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScaleModel {
    /// Nodes; none count as one.
    pub nodes: usize,
    /// Partitions.
    pub partitions: PartitionCount,
    /// How partitions are dealt to nodes.
    pub assignment: Assignment,
    /// Rows that a node takes in a second.
    pub node_rows_per_second: f64,
}

/// What is asked of the nodes of a cluster, as a share of what they take: 1 is all of it, more makes a queue that grows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Utilization {
    /// Of each node.
    pub nodes: Vec<f64>,
    /// Of all of them together.
    pub mean: f64,
    /// Of the one with the most.
    pub hottest: f64,
    /// Rows per second at which the one with the most takes what it can; none without rows.
    pub sustained_rows_per_second: Option<f64>,
}

impl ScaleModel {
    /// What so many rows per second ask of the nodes. `rows_per_partition` says how unequal partitions are, such as those of an
    /// evaluation; without any they are equal.
    ///
    /// ```
    /// use evenkeel::simulate::nodes::{Assignment, ScaleModel};
    /// use evenkeel::units::PartitionCount;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScaleModel {
    ///     nodes: 4,
    ///     partitions: PartitionCount::new(6)?,
    ///     assignment: Assignment::RoundRobin,
    ///     node_rows_per_second: 3000.0,
    /// };
    /// // Two nodes have two partitions of six, the others one.
    /// let asked = model.utilization(6000.0, &[]);
    /// assert_eq!((asked.mean, asked.hottest), (0.5, 2.0 / 3.0));
    /// assert_eq!(asked.sustained_rows_per_second, Some(9000.0));
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
        for (node, share) in self.assignment.deal(&shares, count).into_iter().zip(&shares) {
            if let Some(asked) = nodes.get_mut(node) {
                *asked += share * rows_per_second / self.node_rows_per_second;
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
        let room = Room::of(slices.iter().map(|loads| (10.0, loads.as_slice())), &[1.0, 1.0]);
        assert_eq!((room.in_every_slice, room.in_the_long_run), (2.5, 7.5));
        let nothing = Room::of(std::iter::empty(), &[1.0]);
        assert_eq!(room.and(nothing), room);
    }

    #[test]
    fn unequal_partitions_make_unequal_nodes() {
        let model = ScaleModel {
            nodes: 2,
            partitions: PartitionCount::new(4).unwrap(),
            assignment: Assignment::Contiguous,
            node_rows_per_second: 100.0,
        };
        let asked = model.utilization(100.0, &[30, 30, 30, 10]);
        assert_eq!((asked.nodes, asked.mean), (vec![0.6, 0.4], 0.5));
        assert_eq!(model.utilization(0.0, &[]).sustained_rows_per_second, None);
        let spread = ScaleModel { assignment: Assignment::LeastLoaded, ..model };
        assert!((spread.utilization(100.0, &[40, 20, 20, 20]).hottest - 0.6).abs() < 1e-12);
    }
}
