//! What a table takes: the one model that an evaluation, a bench of ingest and a simulation of nodes share.
//!
//! ```text
//! what comes, by partition and window ─► Concentration  share of the resource with the most:
//!                                                        over the whole time, in windows, at a moment
//! Concentration, what each takes      ─► Capacity        the rate that the table sustains
//! ```
//!
//! 1. **A partition** takes [`DEFAULT_PARTITION_RATE`] unless another rate is given. **A node** takes what is given; its
//!    partitions share that, and each of them still takes no more than a partition does. With several limits, the one that is
//!    reached first counts.
//! 2. **The load at a time** is the share of the rows that the busiest partition, or node, gets at a time, less what chance
//!    adds if rows are few ([`Lasting`]). An evaluation finds that of partitions, in windows as short as its rows allow, and
//!    knows of keys made of the time alone that all rows of a moment go to one. It is never below the share over the whole
//!    time, and that of a node never below that of a partition.
//! 3. **Sustained** is the rate at which the busiest partition, or node, is offered exactly what it takes, while rows are
//!    spread as they are at a time. Queues are not counted on: a writer waits for the partition that is hot now, however idle
//!    the others are. [`Capacity::sustains`] is the verdict. A simulation of queues can add that rows wait nevertheless, since
//!    arrivals have ups and downs; it never makes a rate sustained that is not.

mod assign;

use serde::Serialize;

use crate::skew::{MaxOverMeanByChance, SkewFigures};
pub use crate::throughput::assign::{Assignment, AssignmentError};

/// Inserts that one partition takes, in bytes per second: about 1 MB/s (YDB documentation, "Choosing keys for maximum
/// column-oriented table performance": 1 GB/s into 1000 partitions).
pub const DEFAULT_PARTITION_RATE: f64 = 1e6;

/// Rows that a window needs for each partition to be judged. So few are enough, because what chance does to so few rows is
/// taken into account.
const FEWEST_ROWS_PER_PARTITION: u64 = 2;
/// Rows that a window needs at least.
const FEWEST_ROWS: u64 = 16;
/// Rates that differ by less are one rate.
const ROUNDING: f64 = 1e-9;

/// Whether a window has enough rows for its shares to be judged.
#[must_use]
pub fn is_judged(rows: u64, partitions: usize) -> bool {
    rows >= FEWEST_ROWS.max(FEWEST_ROWS_PER_PARTITION * partitions as u64)
}

/// The share of the fullest partition of a window, less what chance gives the fullest of so many rows above 1/N; at least 1/N.
#[must_use]
pub fn lasting_share(share: f64, rows: u64, partitions: usize, chance: &mut MaxOverMeanByChance) -> f64 {
    let count = partitions.max(1) as f64;
    let by_chance = (chance.of(rows) - 1.0) / count;
    (share - by_chance).max(1.0 / count)
}

/// The share of the busiest resource at a time, less what chance adds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lasting {
    /// In the middle window.
    pub median: f64,
    /// In the worst.
    pub worst: f64,
}

impl Lasting {
    /// One resource gets everything at a time.
    pub const ALL: Self = Self { median: 1.0, worst: 1.0 };

    /// At least the shares of another; none if neither is known.
    #[must_use]
    pub fn at_least(of: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (of, other) {
            (Some(a), Some(b)) => Some(Self { median: a.median.max(b.median), worst: a.worst.max(b.worst) }),
            (one, None) | (None, one) => one,
        }
    }

    /// From the rows of each resource in every window. `strengths` are what resources take relative to their mean, nothing if
    /// all take the same. None if no window has enough rows.
    pub fn of<'a>(windows: impl Iterator<Item = &'a [u64]>, strengths: &[f64]) -> Option<Self> {
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

/// The largest share of what comes, each relative to the strength of its resource; an even share if nothing comes.
fn share_of_busiest(amounts: &[u64], strengths: &[f64]) -> f64 {
    if strengths.is_empty() {
        let figures = SkewFigures::of(amounts);
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

/// How much of what comes the busiest of several partitions, or nodes, gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Concentration {
    /// Partitions or nodes.
    pub resources: usize,
    /// Share over the whole time.
    pub in_total: f64,
    /// Share at a time; none if nothing is known of it.
    pub lasting: Option<Lasting>,
}

impl Concentration {
    /// From what each partition gets in all, and its share at a time.
    #[must_use]
    pub fn of(amounts: &[u64], lasting: Option<Lasting>) -> Self {
        Self { resources: amounts.len(), in_total: share_of_busiest(amounts, &[]), lasting }
    }

    /// That of nodes, each with some of these partitions: from what each node gets in all, and in every window. `strengths` are
    /// what nodes take relative to their mean, nothing if all take the same.
    #[must_use]
    pub fn of_nodes<'a>(
        self,
        amounts: &[u64],
        windows: impl Iterator<Item = &'a [u64]>,
        strengths: &[f64],
    ) -> Self {
        // The node of a hot partition gets all that the partition gets, and may be the weakest.
        let weakest = strengths.iter().copied().reduce(f64::min).unwrap_or(1.0);
        let of_partition =
            self.lasting.map(|of| Lasting { median: of.median / weakest, worst: of.worst / weakest });
        Self {
            resources: amounts.len(),
            in_total: share_of_busiest(amounts, strengths),
            lasting: Lasting::at_least(Lasting::of(windows, strengths), of_partition),
        }
    }

    /// The same load at a time with other amounts in all, such as rows instead of bytes.
    #[must_use]
    pub fn with_total(self, amounts: &[u64]) -> Self {
        Self { in_total: share_of_busiest(amounts, &[]), ..self }
    }

    /// The share of the busiest at a time.
    #[must_use]
    pub fn at_a_time(&self) -> f64 {
        self.lasting.map_or(self.in_total, |lasting| lasting.median.max(self.in_total))
    }

    /// The share of the busiest in the window that is worst.
    #[must_use]
    pub fn at_worst(&self) -> f64 {
        self.lasting.map_or(self.in_total, |lasting| lasting.worst.max(self.in_total))
    }

    /// The share of the busiest at a time over an even share: 1 is even.
    #[must_use]
    pub fn over_mean(&self) -> f64 {
        self.at_a_time() * self.resources.max(1) as f64
    }
}

/// What a table takes, in one unit per second: bytes of values or rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Capacity {
    /// What one partition takes.
    pub per_partition: f64,
    /// What the table would take if all partitions were equally busy.
    pub if_even: f64,
    /// What it takes when rows come in any order: limited by the partition with the most bytes.
    pub in_total: f64,
    /// What it takes when rows come in the order of time: limited by the fullest partition of the middle window, less what
    /// chance adds to it there. Equal to `in_total` without windows.
    pub sustained: f64,
    /// The same for the window that is worst.
    pub worst_window: f64,
    /// What that follows from.
    #[serde(skip)]
    pub concentration: Concentration,
}

impl Capacity {
    /// The rates of partitions, or nodes, that take `each` in a second.
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

    /// Whether no partition is offered more than it takes at any time if the table is offered so much in a second.
    #[must_use]
    pub fn sustains(&self, rate: f64) -> bool {
        sustains(self.sustained, rate)
    }
}

/// Whether a rate is within the one that is sustained.
#[must_use]
pub fn sustains(sustained: f64, rate: f64) -> bool {
    rate <= sustained * (1.0 + ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(amounts: &[u64], lasting: Option<Lasting>) -> Capacity {
        Capacity::new(Concentration::of(amounts, lasting), 1e6)
    }

    #[test]
    fn the_fullest_partition_limits_the_table() {
        let even = capacity(&[5; 8], None);
        assert_eq!([even.if_even, even.in_total, even.sustained], [8e6; 3]);
        let half = capacity(&[50, 25, 25, 0], None);
        assert_eq!([half.if_even, half.in_total, half.worst_window], [4e6, 2e6, 2e6]);
        assert_eq!(capacity(&[0, 0], None).in_total, 2e6);
        assert_eq!(capacity(&[5; 8], Some(Lasting::ALL)).sustained, 1e6);
    }

    #[test]
    fn windows_limit_it_more_than_the_whole_time_and_never_less() {
        let only = |at: usize| (0..4).map(|p| if p == at { 4000 } else { 0 }).collect();
        let moving: Vec<Vec<u64>> = (0..4).map(only).collect();
        let found = capacity(&[4000; 4], Lasting::of(moving.iter().map(Vec::as_slice), &[]));
        assert_eq!(found.in_total, 4e6);
        assert!(
            (found.sustained / 1e6 - 1.0).abs() < 0.05 && found.sustains(0.99e6) && !found.sustains(1.1e6)
        );
        let even = vec![vec![1000u64; 4]; 3];
        let heavy = capacity(&[3, 1, 1, 1], Lasting::of(even.iter().map(Vec::as_slice), &[]));
        assert_eq!(heavy.sustained, 2e6);
        // Windows of few rows say nothing.
        assert_eq!(Lasting::of([[15u64, 0].as_slice()].into_iter(), &[]), None);
    }

    #[test]
    fn a_stronger_node_may_get_more_and_no_node_less_than_its_partition() {
        // One of three nodes takes twice what the others do: strengths 1.5, 0.75 and 0.75.
        let partitions = Concentration::of(&[25; 4], None);
        let strengths = [1.5, 0.75, 0.75];
        let found = partitions.of_nodes(&[50, 25, 25], std::iter::empty(), &strengths);
        assert!((found.over_mean() - 1.0).abs() < 1e-12, "{found:?}");
        let moving = Concentration::of(&[25; 4], Some(Lasting::ALL));
        let found = moving.of_nodes(&[50, 25, 25], std::iter::empty(), &strengths);
        assert!((Capacity::new(found, 4.0).sustained - 3.0).abs() < 1e-12);
    }
}
