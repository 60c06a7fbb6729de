//! Spread of keys over partitions and workers.

use std::collections::BTreeSet;

use serde::Serialize;

use evenkeel_model::units::{PartitionCount, PartitionId};
use evenkeel_stats::skew::{BEYOND_CHANCE, deviations_of_pairs, expected_empty_partitions};

/// Spread of keys over partitions, compared with a perfect hash of as many keys.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HashSpread {
    /// Number of partitions.
    pub partitions: u32,
    /// Number of partitions with a key.
    pub filled: u32,
    /// Average number of partitions with a key under a perfect hash.
    pub expected_filled: f64,
    /// Number of keys in the fullest partition.
    pub fullest: u64,
    /// Standard deviations by which the number of partitions with a key falls short of the expected
    /// one.
    pub short_of_filled: f64,
    /// Standard deviations by which the chi-square sum exceeds its mean; below 0, keys are more
    /// even than by chance.
    pub deviations: f64,
}

impl HashSpread {
    /// Counts the keys of each partition.
    pub(super) fn from_placed(placed: &[PartitionId], partitions: PartitionCount) -> Self {
        let mut counts = vec![0u64; partitions.len()];
        for partition in placed {
            if let Some(count) = counts.get_mut(partition.index()) {
                *count += 1;
            }
        }
        Self::from_counts(&counts)
    }

    /// Computes the spread from the number of keys per partition.
    fn from_counts(counts: &[u64]) -> Self {
        let keys: u64 = counts.iter().sum();
        let (n, k) = (counts.len().max(1) as f64, keys.max(1) as f64);
        let pairs: f64 = counts.iter().map(|count| (*count as f64) * (*count as f64 - 1.0) / 2.0).sum();
        let filled = counts.iter().filter(|count| **count > 0).count() as u32;
        let (empty, scatter) = expected_empty_partitions(counts.len(), keys);
        let missing = (n - empty) - f64::from(filled);
        Self {
            // One partition more or less is not the function's fault.
            short_of_filled: (missing - 1.0) / scatter.max(0.5),
            partitions: counts.len() as u32,
            filled,
            expected_filled: n - empty,
            fullest: counts.iter().copied().max().unwrap_or(0),
            deviations: deviations_of_pairs(k, counts.len(), pairs),
        }
    }

    /// Whether the spread is more uneven than chance explains.
    #[must_use]
    pub fn is_defective(&self) -> bool {
        self.deviations.max(self.short_of_filled) > BEYOND_CHANCE
    }
}

/// Distribution of the keys over workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workers {
    /// Number of workers; worker w has the partitions p with p % workers = w.
    pub workers: u32,
    /// Spread of the keys over workers.
    #[serde(skip)]
    pub spread: HashSpread,
    /// Keys of the fullest worker, over the mean.
    pub max_over_mean: f64,
    /// Ratio of the most partitions of a worker to the mean, if they are assigned perfectly.
    pub by_partitions: f64,
    /// Number of threads of each worker.
    pub threads: Option<u32>,
    /// Threads used by the worker that falls furthest short of its expectation by chance.
    pub fewest_threads: Option<u32>,
    /// Threads that this worker is expected to use by chance.
    pub expected_threads: Option<f64>,
}

impl Workers {
    pub(super) fn new(
        workers: u32,
        partitions: PartitionCount,
        placed: &[PartitionId],
        threads: Option<(PartitionCount, Vec<PartitionId>)>,
    ) -> Self {
        let mut keys = vec![0u64; workers as usize];
        let mut used: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); workers as usize];
        for (row, partition) in placed.iter().enumerate() {
            let worker = (partition.0 % workers) as usize;
            if let Some(keys) = keys.get_mut(worker) {
                *keys += 1;
            }
            let thread = threads.as_ref().and_then(|(_, threads)| threads.get(row));
            if let (Some(used), Some(thread)) = (used.get_mut(worker), thread) {
                used.insert(thread.0);
            }
        }
        let spread = HashSpread::from_counts(&keys);
        let expected_threads =
            |keys: u64, threads: f64| threads * (1.0 - (1.0 - 1.0 / threads).powf(keys as f64));
        let over_mean = |most: f64, all: f64| most / (all / f64::from(workers)).max(f64::MIN_POSITIVE);
        // For the worker that falls furthest short: threads used, and threads expected by chance.
        let short = threads.as_ref().and_then(|(count, _)| {
            let of_worker = used.iter().zip(&keys).filter(|(_, keys)| **keys > 0);
            let pairs = of_worker
                .map(|(used, keys)| (used.len() as u32, expected_threads(*keys, f64::from(count.get()))));
            pairs.min_by(|a, b| (f64::from(a.0) / a.1).total_cmp(&(f64::from(b.0) / b.1)))
        });
        Self {
            spread,
            workers,
            max_over_mean: over_mean(keys.iter().copied().max().unwrap_or(0) as f64, placed.len() as f64),
            by_partitions: over_mean(
                f64::from(partitions.get().div_ceil(workers)),
                f64::from(partitions.get()),
            ),
            fewest_threads: short.map(|(used, _)| used),
            expected_threads: short.map(|(_, expected)| expected),
            threads: threads.map(|(count, _)| count.get()),
        }
    }
}
