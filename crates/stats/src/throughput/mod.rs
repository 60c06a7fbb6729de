//! Throughput of a table: the one model that an evaluation, an ingest bench and a simulation of
//! nodes share.
//!
//! ```text
//! load by partition and window ─► Concentration  share of the busiest resource:
//!                                                over the whole time, in windows, at any moment
//! Concentration, capacity each ─► Capacity       the rate that the table sustains
//! ```
//!
//! 1. **A partition** handles [`DEFAULT_PARTITION_RATE`] unless another rate is given. **A node**
//!    has the given capacity; its partitions share it, and each of them is still limited to the
//!    rate of a partition. With several limits, the one reached first counts.
//! 2. **The load at any moment** is the share of the rows that the busiest partition, or node, gets
//!    then, minus the part that chance adds if rows are few ([`LastingShare`]). An evaluation
//!    determines the load of partitions, in windows as short as its rows allow; it knows that with
//!    keys made of the time alone, all rows of a moment go to one partition. The load is never
//!    below the share over the whole time, and a node's load never below a partition's.
//! 3. **Sustained** is the rate at which the busiest partition, or node, is offered exactly its
//!    capacity, while rows are spread as they are at any moment. Queues are not relied on: a writer
//!    waits for the partition that is hot now, however idle the others are. [`Capacity::sustains`]
//!    is the verdict. A simulation of queues can show that rows wait nevertheless, since arrivals
//!    fluctuate; it never turns an unsustained rate into a sustained one.

mod assign;

use serde::Serialize;

use crate::skew::{MaxOverMeanByChance, SkewFigures};
pub use crate::throughput::assign::{Assignment, AssignmentError};

/// Inserts that one partition sustains, in bytes per second: about 1 MB/s (YDB documentation,
/// "Choosing keys for maximum column-oriented table performance": 1 GB/s into 1000 partitions).
pub const DEFAULT_PARTITION_RATE: f64 = 1e6;

/// Rows per partition that a window needs to be judged. This is enough because the effect of chance
/// on this few rows is taken into account.
const MIN_ROWS_PER_PARTITION: u64 = 2;
/// Minimum number of rows that a window needs.
const MIN_ROWS: u64 = 16;
/// Relative difference below which rates count as equal.
const ROUNDING: f64 = 1e-9;

/// Returns the rows that a window needs to be judged.
#[must_use]
pub fn enough_rows(partitions: usize) -> u64 {
    MIN_ROWS.max(MIN_ROWS_PER_PARTITION * partitions as u64)
}

/// Whether a window has enough rows for its shares to be judged.
#[must_use]
pub fn is_judged(rows: u64, partitions: usize) -> bool {
    rows >= enough_rows(partitions)
}

/// Returns the share of the fullest partition of a window, minus the excess over 1/N that chance
/// gives to the fullest with this number of rows; at least 1/N.
#[must_use]
pub fn lasting_share(share: f64, rows: u64, partitions: usize, chance: &mut MaxOverMeanByChance) -> f64 {
    let count = partitions.max(1) as f64;
    let by_chance = (chance.expected(rows) - 1.0) / count;
    (share - by_chance).max(1.0 / count)
}

/// Share of the busiest resource at any moment, minus the effect of chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastingShare {
    /// Share in the median window.
    pub median: f64,
    /// Share in the worst window.
    pub worst: f64,
}

impl LastingShare {
    /// At any moment one resource gets everything.
    pub const ALL: Self = Self { median: 1.0, worst: 1.0 };

    /// Returns the larger shares of both; `None` if neither is known.
    #[must_use]
    pub fn at_least(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(a), Some(b)) => Some(Self { median: a.median.max(b.median), worst: a.worst.max(b.worst) }),
            (one, None) | (None, one) => one,
        }
    }

    /// Computes the shares from the rows of each resource in every window. `strengths` are the
    /// capacities of resources relative to their mean, empty if all are equal. `None` if no window
    /// has enough rows.
    pub fn from_windows<'a>(windows: impl Iterator<Item = &'a [u64]>, strengths: &[f64]) -> Option<Self> {
        let mut chance: Option<MaxOverMeanByChance> = None;
        let mut shares = Vec::new();
        for window in windows {
            let rows: u64 = window.iter().sum();
            if is_judged(rows, window.len()) {
                let chance = chance.get_or_insert_with(|| MaxOverMeanByChance::over(window.len()));
                shares.push(lasting_share(share_of_busiest(window, strengths), rows, window.len(), chance));
            }
        }
        let worst = shares.iter().copied().reduce(f64::max)?;
        Some(Self { median: crate::skew::median(shares)?, worst })
    }
}

/// Returns the largest share of the load, relative to the strength of its resource; an even share
/// without load.
fn share_of_busiest(amounts: &[u64], strengths: &[f64]) -> f64 {
    if strengths.is_empty() {
        let figures = SkewFigures::from_counts(amounts);
        return if figures.rows == 0 { 1.0 / amounts.len().max(1) as f64 } else { figures.share_of_fullest };
    }
    let all: u64 = amounts.iter().sum();
    if all == 0 {
        return 1.0 / amounts.len().max(1) as f64;
    }
    let shares =
        amounts.iter().zip(strengths).map(|(amount, strength)| *amount as f64 / all as f64 / strength);
    shares.fold(0.0, f64::max)
}

/// Share of the load on the busiest of several partitions or nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concentration {
    /// Number of partitions or nodes.
    pub resources: usize,
    /// Share over the whole time, between 0 and 1.
    pub in_total: f64,
    /// Share at any moment; `None` if it is not known.
    pub lasting: Option<LastingShare>,
}

impl Concentration {
    /// Computes the concentration from the total load of each partition, and its share at any
    /// moment.
    #[must_use]
    pub fn from_amounts(amounts: &[u64], lasting: Option<LastingShare>) -> Self {
        Self { resources: amounts.len(), in_total: share_of_busiest(amounts, &[]), lasting }
    }

    /// Computes the concentration on nodes, each with some of these partitions, from the load of
    /// each node in total and in every window. `strengths` are the capacities of nodes relative to
    /// their mean, empty if all are equal.
    #[must_use]
    pub fn over_nodes<'a>(
        self,
        amounts: &[u64],
        windows: impl Iterator<Item = &'a [u64]>,
        strengths: &[f64],
    ) -> Self {
        // The node of a hot partition gets all of that partition's load, and may be the weakest.
        let weakest = strengths.iter().copied().reduce(f64::min).unwrap_or(1.0);
        let of_partition = self
            .lasting
            .map(|lasting| LastingShare { median: lasting.median / weakest, worst: lasting.worst / weakest });
        Self {
            resources: amounts.len(),
            in_total: share_of_busiest(amounts, strengths),
            lasting: LastingShare::at_least(LastingShare::from_windows(windows, strengths), of_partition),
        }
    }

    /// Returns the same load at any moment with other total amounts, such as rows instead of bytes.
    #[must_use]
    pub fn with_total(self, amounts: &[u64]) -> Self {
        Self { in_total: share_of_busiest(amounts, &[]), ..self }
    }

    /// Returns the share of the busiest at any moment.
    #[must_use]
    pub fn at_a_time(&self) -> f64 {
        self.lasting.map_or(self.in_total, |lasting| lasting.median.max(self.in_total))
    }

    /// Returns the share of the busiest in the worst window.
    #[must_use]
    fn at_worst(&self) -> f64 {
        self.lasting.map_or(self.in_total, |lasting| lasting.worst.max(self.in_total))
    }

    /// Returns the share of the busiest at any moment over an even share: 1 is even.
    #[must_use]
    pub fn over_mean(&self) -> f64 {
        self.at_a_time() * self.resources.max(1) as f64
    }
}

/// Throughput of a table, in one unit per second: bytes of values or rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Capacity {
    /// Throughput of one partition, as given.
    pub per_partition: f64,
    /// Throughput of the table if all partitions were equally busy.
    pub if_even: f64,
    /// Throughput if rows arrive in any order: limited by the partition with the most bytes.
    pub in_total: f64,
    /// Throughput if rows arrive in the order of time: limited by the fullest partition of the
    /// median window, minus the effect of chance. Equal to `in_total` without windows.
    pub sustained: f64,
    /// Throughput while rows are spread as in the worst window.
    pub worst_window: f64,
    /// Concentration that these rates follow from.
    #[serde(skip)]
    pub concentration: Concentration,
}

impl Capacity {
    /// Computes the rates for partitions, or nodes, that handle `each` per second.
    #[must_use]
    pub fn new(concentration: Concentration, each: f64) -> Self {
        Self {
            per_partition: each,
            if_even: each * concentration.resources.max(1) as f64,
            in_total: each / concentration.in_total,
            sustained: each / concentration.at_a_time(),
            worst_window: each / concentration.at_worst(),
            concentration,
        }
    }

    /// Whether no partition is ever offered more than its capacity if the table is offered `rate`
    /// per second.
    #[must_use]
    pub fn sustains(&self, rate: f64) -> bool {
        sustains(self.sustained, rate)
    }
}

/// Whether a rate is within the sustained one.
#[must_use]
pub fn sustains(sustained: f64, rate: f64) -> bool {
    rate <= sustained * (1.0 + ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(amounts: &[u64], lasting: Option<LastingShare>) -> Capacity {
        Capacity::new(Concentration::from_amounts(amounts, lasting), 1e6)
    }

    #[test]
    fn the_fullest_partition_limits_the_table() {
        let even = capacity(&[5; 8], None);
        assert_eq!([even.if_even, even.in_total, even.sustained], [8e6; 3]);
        let half = capacity(&[50, 25, 25, 0], None);
        assert_eq!([half.if_even, half.in_total, half.worst_window], [4e6, 2e6, 2e6]);
        assert_eq!(capacity(&[0, 0], None).in_total, 2e6);
        assert_eq!(capacity(&[5; 8], Some(LastingShare::ALL)).sustained, 1e6);
    }

    #[test]
    fn windows_limit_it_more_than_the_whole_time_and_never_less() {
        let only = |at: usize| (0..4).map(|p| if p == at { 4000 } else { 0 }).collect();
        let moving: Vec<Vec<u64>> = (0..4).map(only).collect();
        let moving_capacity =
            capacity(&[4000; 4], LastingShare::from_windows(moving.iter().map(Vec::as_slice), &[]));
        assert_eq!(moving_capacity.in_total, 4e6);
        assert!(
            (moving_capacity.sustained / 1e6 - 1.0).abs() < 0.05
                && moving_capacity.sustains(0.99e6)
                && !moving_capacity.sustains(1.1e6)
        );
        let even = vec![vec![1000u64; 4]; 3];
        let heavy = capacity(&[3, 1, 1, 1], LastingShare::from_windows(even.iter().map(Vec::as_slice), &[]));
        assert_eq!(heavy.sustained, 2e6);
        // Windows with few rows are not judged.
        assert_eq!(LastingShare::from_windows([[15u64, 0].as_slice()].into_iter(), &[]), None);
    }

    #[test]
    fn a_stronger_node_may_get_more_and_no_node_less_than_its_partition() {
        // One of three nodes has twice the capacity of the others: strengths 1.5, 0.75 and 0.75.
        let partitions = Concentration::from_amounts(&[25; 4], None);
        let strengths = [1.5, 0.75, 0.75];
        let over_nodes = partitions.over_nodes(&[50, 25, 25], std::iter::empty(), &strengths);
        assert!((over_nodes.over_mean() - 1.0).abs() < 1e-12, "{over_nodes:?}");
        let moving = Concentration::from_amounts(&[25; 4], Some(LastingShare::ALL));
        let over_nodes = moving.over_nodes(&[50, 25, 25], std::iter::empty(), &strengths);
        assert!((Capacity::new(over_nodes, 4.0).sustained - 3.0).abs() < 1e-12);
    }
}
