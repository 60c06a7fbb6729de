//! Windows with enough rows to be judged, alone or several together.

use serde::Serialize;

use evenkeel_model::units::Micros;
use evenkeel_stats::skew::{MaxOverMeanByChance, SkewFigures};
use evenkeel_stats::windows::Window;

/// Figures of one window, the worst or the busiest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowFigures {
    /// Start of the window, in microseconds since 1970.
    pub start_micros: i64,
    /// Number of rows of the window.
    pub rows: u64,
    /// Number of its fullest partition, from 0.
    pub partition: usize,
    /// Share of the window's rows in its fullest partition.
    pub share_of_fullest: f64,
    /// Number of evenly filled partitions that would be as concentrated.
    pub effective_partitions: f64,
    /// Rows per second of its fullest partition.
    pub rows_per_second_of_fullest: f64,
}

/// Smallest number of pairs of rows per partition that shows how often two rows share a partition,
/// and smallest number of rows per partition with which the share of the fullest takes more than a
/// few values. Windows with fewer are judged together.
const PAIRS_PER_PARTITION: f64 = 8.0;
const ROWS_PER_PARTITION: u64 = 20;

/// Partitions that are compared at once.
const LANES: usize = 8;

/// Window with enough rows.
pub(super) struct JudgedWindow<'a> {
    pub(super) window: &'a Window,
    pub(super) figures: SkewFigures,
    /// Share of the rows of each partition.
    pub(super) shares: Vec<f64>,
    /// Numbers of the partitions with rows.
    pub(super) present: Vec<u32>,
}

impl<'a> JudgedWindow<'a> {
    pub(super) fn new(window: &'a Window, fewest: u64) -> Option<Self> {
        let figures = SkewFigures::from_counts(&window.rows_per_partition);
        if figures.rows < fewest.max(1) {
            return None;
        }
        let rows = figures.rows as f64;
        let shares = window.rows_per_partition.iter().map(|count| *count as f64 / rows).collect();
        let present = (0u32..).zip(&window.rows_per_partition).filter(|(_, count)| **count > 0);
        Some(Self { present: present.map(|(partition, _)| partition).collect(), shares, window, figures })
    }

    pub(super) fn describe(&self, length: Micros) -> WindowFigures {
        WindowFigures {
            start_micros: self.window.start_micros,
            rows: self.figures.rows,
            partition: self.figures.fullest_partition,
            share_of_fullest: self.figures.share_of_fullest,
            effective_partitions: self.figures.effective_partitions,
            rows_per_second_of_fullest: self.figures.max as f64 / length.seconds(),
        }
    }

    /// Returns the share of all pairs of the window's rows that are in one partition. On average it
    /// is 1/N if rows are spread by chance alone, however few they are.
    fn meeting(&self) -> f64 {
        let rows = self.figures.rows as f64;
        let pairs = rows * (rows - 1.0);
        let meeting = self.window.rows_per_partition.iter().map(|count| {
            let count = *count as f64;
            count * (count - 1.0)
        });
        if pairs > 0.0 { meeting.sum::<f64>() / pairs } else { 0.0 }
    }

    /// Returns the share of the rows of two windows that is on the same partitions: the sum of the
    /// smaller shares.
    pub(super) fn alike(&self, other: &Self) -> f64 {
        // A partition without rows in one of the windows contributes nothing.
        let fewer = if self.present.len() <= other.present.len() { &self.present } else { &other.present };
        if fewer.len() * LANES > self.shares.len() {
            // Independent sums of several partitions at once, which need not wait for each other.
            let mut sums = [0.0; LANES];
            let lanes = self.shares.as_chunks::<LANES>().0.iter().zip(other.shares.as_chunks::<LANES>().0);
            for (a, b) in lanes {
                for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                    *sum += if a < b { a } else { b };
                }
            }
            let rest = self.shares.as_chunks::<LANES>().1.iter().zip(other.shares.as_chunks::<LANES>().1);
            return sums.iter().sum::<f64>() + rest.map(|(a, b)| a.min(*b)).sum::<f64>();
        }
        let both = |partition: &u32| {
            Some(self.shares.get(*partition as usize)?.min(*other.shares.get(*partition as usize)?))
        };
        fewer.iter().filter_map(both).sum()
    }
}

/// Consecutive windows, as many as have enough rows together. Only rows of the same window are
/// compared.
#[derive(Debug, Default)]
pub(super) struct WindowGroup {
    pub(super) rows: u64,
    pub(super) pairs: f64,
    /// Sums over the windows, weighted by rows.
    pub(super) meeting: f64,
    pub(super) share_of_fullest: f64,
    /// Rows of each window.
    pub(super) rows_of_windows: Vec<u64>,
}

pub(super) fn together(judged: &[JudgedWindow<'_>], partitions: usize) -> Vec<WindowGroup> {
    let suffices = |group: &WindowGroup| {
        group.pairs >= PAIRS_PER_PARTITION * partitions as f64
            && group.rows >= ROWS_PER_PARTITION * partitions as u64
    };
    let mut groups: Vec<WindowGroup> = Vec::new();
    for window in judged {
        match groups.last() {
            Some(last) if !suffices(last) => {}
            _ => groups.push(WindowGroup::default()),
        }
        if let Some(last) = groups.last_mut() {
            last.add(window);
        }
    }
    // A last group with too few rows joins the one before it.
    let rest = groups.pop_if(|last| !suffices(last));
    match (groups.last_mut(), rest) {
        (Some(last), Some(rest)) => last.join(rest),
        (None, Some(rest)) => groups.push(rest),
        _ => {}
    }
    groups
}

impl WindowGroup {
    fn add(&mut self, window: &JudgedWindow<'_>) {
        let rows = window.figures.rows as f64;
        self.rows += window.figures.rows;
        self.pairs += rows * (rows - 1.0) / 2.0;
        self.meeting += rows * window.meeting();
        self.share_of_fullest += rows * window.figures.share_of_fullest;
        self.rows_of_windows.push(window.figures.rows);
    }

    fn join(&mut self, other: Self) {
        self.rows += other.rows;
        self.pairs += other.pairs;
        self.meeting += other.meeting;
        self.share_of_fullest += other.share_of_fullest;
        self.rows_of_windows.extend(other.rows_of_windows);
    }

    /// Returns the inverse of the probability that two rows of a window are in one partition.
    pub(super) fn lasting_effective(&self, partitions: usize) -> f64 {
        let meeting = self.meeting / self.rows.max(1) as f64;
        (1.0 / meeting.max(f64::MIN_POSITIVE)).clamp(1.0, partitions.max(1) as f64)
    }

    /// Returns the share of the fullest partition without the effect of chance. The excess over 1/N
    /// shrinks by the factor of James and Stein, 1 less the square of the excess by chance over the
    /// square of the measured one. If all rows are in one partition, they remain all rows; a share
    /// that chance alone explains becomes 1/N; and a much larger one hardly changes.
    pub(super) fn lasting_share(&self, partitions: usize, chance: &mut MaxOverMeanByChance) -> f64 {
        let even = 1.0 / partitions.max(1) as f64;
        let by_chance = self.rows_of_windows.iter().map(|rows| *rows as f64 * chance.expected(*rows) * even);
        let above = |share: f64| ((share - even) / (1.0 - even).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let chance = above(by_chance.sum::<f64>() / self.rows.max(1) as f64);
        let observed = above(self.share_of_fullest / self.rows.max(1) as f64);
        if partitions < 2 || observed >= 1.0 {
            return 1.0;
        }
        if observed <= chance {
            return even;
        }
        let lasting = (observed - chance.powi(2) / observed) / (1.0 - chance.powi(2));
        even + (1.0 - even) * lasting.min(1.0)
    }
}
