//! Portions that batches of an export would make in one table: how much they overlap, how much
//! merging them costs, and how much a condition on a key column would prune.
//!
//! Each batch of the simulated ingest makes one portion in every partition that it has rows for,
//! from the least to the greatest primary key of those rows. Keys are compared as bytes in the
//! order of the row format of Arrow.

use std::collections::BTreeMap;

use crate::evaluate::figures::layout::{LayoutReport, MERGE_FAN_IN};
use evenkeel_model::wire::wire;
use evenkeel_stats::overlap::{OverlapDepth, depths};

/// A key in a form whose byte order is the order of keys.
pub(crate) type KeyBytes = Box<[u8]>;

/// Rows of one batch in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Portion {
    /// Number of the batch.
    pub(crate) batch: u64,
    pub(crate) rows: u64,
    pub(crate) min: KeyBytes,
    pub(crate) max: KeyBytes,
    /// Minimum and maximum value of each column that conditions are tried on.
    pub(crate) columns: Vec<(KeyBytes, KeyBytes)>,
}

wire!(Portion { batch, rows, min, max, columns });

impl Portion {
    /// Joins two portions.
    pub(crate) fn join(self, other: Self) -> Self {
        let widen = |a: (KeyBytes, KeyBytes), b: (KeyBytes, KeyBytes)| (a.0.min(b.0), a.1.max(b.1));
        let (min, max) = widen((self.min, self.max), (other.min, other.max));
        let columns = self.columns.into_iter().zip(other.columns).map(|(a, b)| widen(a, b)).collect();
        Self { batch: self.batch, rows: self.rows + other.rows, min, max, columns }
    }
}

/// Joins the portions of every two batches into the portions of batches twice as large, so that
/// fewer are kept.
pub(crate) fn join_batches(portions: &mut Vec<Portion>) {
    let mut joined: Vec<Portion> = Vec::with_capacity(portions.len().div_ceil(2));
    for mut portion in portions.drain(..) {
        portion.batch /= 2;
        match joined.pop() {
            Some(last) if last.batch == portion.batch => joined.push(last.join(portion)),
            last => {
                joined.extend(last);
                joined.push(portion);
            }
        }
    }
    *portions = joined;
}

impl LayoutReport {
    /// Computes the overlap of portions, given per partition in the order of their creation.
    pub(crate) fn from_portions(partitions: &[Vec<Portion>], batch_rows: u64, batches: u64) -> Self {
        let ranges = |portions: &Vec<Portion>| -> Vec<(KeyBytes, KeyBytes)> {
            portions.iter().map(|portion| (portion.min.clone(), portion.max.clone())).collect()
        };
        let depths: Vec<u64> = partitions.iter().flat_map(|portions| depths(&ranges(portions))).collect();
        let (rows, rewritten) = partitions.iter().fold((0, 0), |(rows, rewritten), portions| {
            (
                rows + portions.iter().map(|portion| portion.rows).sum::<u64>(),
                rewritten + rows_rewritten(portions),
            )
        });
        Self {
            batch_rows,
            batches,
            portions: depths.len() as u64,
            depth: OverlapDepth::from_depths(depths),
            write_amplification: 1.0 + rewritten as f64 / rows.max(1) as f64,
        }
    }
}

/// Portion during a merge.
#[derive(Debug, Clone)]
struct Merged {
    min: KeyBytes,
    rows: u64,
}

/// Portions of one size, by their greatest key and their number.
#[derive(Debug, Default)]
struct Level {
    portions: BTreeMap<(KeyBytes, u64), Merged>,
    added: u64,
}

impl Level {
    /// Adds a portion. If [`MERGE_FAN_IN`] portions now cover one key, removes them and returns the
    /// portion that they merge to.
    fn add(&mut self, max: KeyBytes, portion: Merged) -> Option<(KeyBytes, Merged)> {
        self.added += 1;
        let (min, end) = (portion.min.clone(), max.clone());
        self.portions.insert((max, self.added), portion);
        // If rows arrive in key order, only the last portions reach this far.
        let reach = self.portions.range((min.clone(), 0)..);
        let near: Vec<(&(KeyBytes, u64), &Merged)> = reach.filter(|(_, other)| other.min <= end).collect();
        // Depth rises only at the start of a portion; the first start within the new portion that
        // is deep enough is chosen.
        let mut begins: Vec<&KeyBytes> = near.iter().map(|(_, other)| (&other.min).max(&min)).collect();
        let mut ends: Vec<&KeyBytes> = near.iter().map(|((max, _), _)| max).collect();
        begins.sort_unstable();
        ends.sort_unstable();
        let mut ended = 0;
        let place = begins.iter().enumerate().find(|(begun, place)| {
            while ends.get(ended).is_some_and(|end| end < *place) {
                ended += 1;
            }
            begun + 1 - ended >= MERGE_FAN_IN
        });
        let place: &KeyBytes = place.map(|(_, place)| *place)?;
        let covers = near.iter().filter(|((max, _), other)| other.min <= *place && place <= max);
        let deep: Vec<(KeyBytes, u64)> = covers.map(|(key, _)| (*key).clone()).collect();
        let mut merged: Option<(KeyBytes, Merged)> = None;
        for key in deep {
            let Some(portion) = self.portions.remove(&key) else { continue };
            merged = Some(match merged {
                None => (key.0, portion),
                Some((max, other)) => (
                    max.max(key.0),
                    Merged { min: other.min.min(portion.min), rows: other.rows + portion.rows },
                ),
            });
        }
        merged
    }
}

/// Returns the rows that a tiered merge of the portions of one partition rewrites, so that no key
/// is covered by [`MERGE_FAN_IN`] portions of one size.
fn rows_rewritten(portions: &[Portion]) -> u64 {
    let mut levels: Vec<Level> = Vec::new();
    let mut rewritten = 0;
    for portion in portions {
        let mut next = Some((portion.max.clone(), Merged { min: portion.min.clone(), rows: portion.rows }));
        let mut number = 0;
        while let Some((max, portion)) = next {
            if levels.len() <= number {
                levels.push(Level::default());
            }
            next = levels.get_mut(number).and_then(|level| level.add(max, portion));
            rewritten += next.as_ref().map_or(0, |(_, merged)| merged.rows);
            number += 1;
        }
    }
    rewritten
}

/// Group of rows with the ranges of some columns.
pub(crate) trait Ranges {
    /// Returns the least and greatest value of a column.
    fn range(&self, column: usize) -> Option<(&[u8], &[u8])>;
}

impl Ranges for Portion {
    fn range(&self, column: usize) -> Option<(&[u8], &[u8])> {
        self.columns.get(column).map(|(min, max)| (min.as_ref(), max.as_ref()))
    }
}

/// Returns the share of the groups that a condition `low <= column <= high` prunes, averaged over
/// some conditions; `None` without groups or conditions.
pub(crate) fn pruned_share<'a, R: Ranges + 'a>(
    groups: impl Iterator<Item = &'a R> + Clone,
    column: usize,
    conditions: &[(KeyBytes, KeyBytes)],
) -> Option<f64> {
    let all = groups.clone().count() * conditions.len();
    let kept = |(low, high): &(KeyBytes, KeyBytes)| {
        let meets = |group: &&R| {
            group.range(column).is_none_or(|(min, max)| min <= high.as_ref() && low.as_ref() <= max)
        };
        groups.clone().filter(meets).count()
    };
    (all > 0).then(|| 1.0 - conditions.iter().map(kept).sum::<usize>() as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;
    use evenkeel_stats::overlap::DepthBucket;

    fn portion(min: u8, max: u8, rows: u64) -> Portion {
        Portion { batch: 0, rows, min: Box::new([min]), max: Box::new([max]), columns: Vec::new() }
    }

    #[test]
    fn portions_in_a_row_overlap_nothing_and_are_never_rewritten() {
        let portions: Vec<Portion> = (0..100).map(|i| portion(2 * i, 2 * i + 1, 10)).collect();
        let report = LayoutReport::from_portions(&[portions], 10, 100);
        assert_eq!((report.portions, report.depth.max_depth), (100, 1));
        assert_eq!((report.depth.average_depth, report.write_amplification), (1.0, 1.0));
        assert_eq!(report.depth.depth_histogram, [DepthBucket { depth: 1, portions: 100 }]);
    }

    #[test]
    fn portions_over_the_whole_range_are_rewritten_once_for_each_level() {
        let whole = |count: usize| vec![portion(0, 255, 10); count];
        let amplification = |count| LayoutReport::from_portions(&[whole(count)], 10, 100).write_amplification;
        assert_eq!(amplification(1), 1.0);
        assert_eq!(amplification(MERGE_FAN_IN - 1), 1.0);
        assert_eq!(amplification(MERGE_FAN_IN), 2.0);
        assert_eq!(amplification(MERGE_FAN_IN * MERGE_FAN_IN), 3.0);
        assert_eq!(amplification(2 * MERGE_FAN_IN + 1), 1.0 + 16.0 / 17.0);
        let report = LayoutReport::from_portions(&[whole(5)], 10, 100);
        assert_eq!((report.depth.max_depth, report.depth.average_depth), (5, 5.0));
    }

    #[test]
    fn batches_that_are_joined_are_those_of_twice_as_many_rows() {
        let at = |batch, min, max| Portion { batch, ..portion(min, max, 1) };
        let mut portions = vec![at(0, 5, 9), at(1, 2, 6), at(3, 7, 8), at(4, 1, 1)];
        join_batches(&mut portions);
        let expected = [Portion { rows: 2, ..at(0, 2, 9) }, at(1, 7, 8), at(2, 1, 1)];
        assert_eq!(portions, expected);
    }

    #[test]
    fn late_rows_cost_depth_but_no_rewriting() {
        // Each portion reaches back into the previous one.
        let portions: Vec<Portion> = (0..80).map(|i| portion(3 * i, 3 * i + 4, 10)).collect();
        let report = LayoutReport::from_portions(&[portions], 100, 100);
        assert_eq!((report.depth.max_depth, report.write_amplification), (2, 1.0));
    }

    proptest! {
        #[test]
        fn portions_are_rewritten_exactly_where_as_many_as_the_fan_in_meet(
            ranges in proptest::collection::vec((0u8..190, 0u8..60), 0..40),
        ) {
            let portions: Vec<Portion> = ranges.iter().map(|(min, length)| portion(*min, min + length, 3)).collect();
            // Reference implementation: all portions of all sizes in one list, searched key by key.
            let mut sizes: Vec<Vec<(u8, u8, u64)>> = vec![Vec::new(); 4];
            let mut expected = 0;
            for (min, length) in &ranges {
                let mut next = Some((*min, min + length, 3u64));
                let mut size = 0;
                while let Some(portion) = next.take() {
                    sizes[size].push(portion);
                    let covers = |key: u8, p: &(u8, u8, u64)| p.0 <= key && key <= p.1;
                    let deep = (portion.0..=portion.1)
                        .find(|key| sizes[size].iter().filter(|p| covers(*key, p)).count() >= MERGE_FAN_IN);
                    if let Some(key) = deep {
                        let (taken, left): (Vec<_>, Vec<_>) = sizes[size].iter().partition(|p| covers(key, p));
                        sizes[size] = left;
                        let rows = taken.iter().map(|p| p.2).sum();
                        expected += rows;
                        let min = taken.iter().map(|p| p.0).min().unwrap();
                        next = Some((min, taken.iter().map(|p| p.1).max().unwrap(), rows));
                        size += 1;
                    }
                }
            }
            prop_assert_eq!(rows_rewritten(&portions), expected);
        }
    }

    #[test]
    fn pruning_counts_the_groups_that_a_condition_cannot_meet() {
        let key = |value: u8| -> KeyBytes { Box::new([value]) };
        let with = |min, max| Portion { columns: vec![(key(min), key(max))], ..portion(min, max, 1) };
        let portions = [with(0, 9), with(10, 19), with(20, 29), with(5, 25)];
        let share = pruned_share(portions.iter(), 0, &[(key(12), key(12)), (key(0), key(30))]);
        assert_eq!(share, Some((2.0 + 0.0) / 8.0));
        assert_eq!(pruned_share(portions.iter(), 0, &[]), None);
    }
}
