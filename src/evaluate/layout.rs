//! The portions that batches of an export would make in one table: how much they overlap, what merging them costs, and what a
//! condition on a key column would leave unread.
//!
//! Each batch of the simulated ingest makes one portion in every partition that it has rows for, from the least to the
//! greatest primary key of those rows. Keys are compared as bytes in the order of the row format of Arrow.

use std::collections::BTreeMap;

use serde::Serialize;

/// Portions of one level that overlap before they are merged into one of the next: the fan-in of a tiered merge policy
/// (O'Neil and others, "The Log-Structured Merge-Tree"; RocksDB, "Universal Compaction").
pub const MERGE_FAN_IN: usize = 8;

/// A key in a form whose byte order is the order of keys.
pub(super) type KeyBytes = Box<[u8]>;

/// The rows of one batch in one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Portion {
    pub(super) rows: u64,
    pub(super) min: KeyBytes,
    pub(super) max: KeyBytes,
    /// Least and greatest value of each column that conditions are tried on.
    pub(super) columns: Vec<(KeyBytes, KeyBytes)>,
}

/// How much the portions of a table overlap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayoutReport {
    /// Rows of a batch.
    pub batch_rows: u64,
    /// Portions, over all partitions.
    pub portions: u64,
    /// Portions that cover the key at which a portion begins, on average over the portions: 1 is no overlap (after the
    /// `average_depth` of Snowflake's SYSTEM$CLUSTERING_INFORMATION).
    pub average_depth: f64,
    /// The same of the deepest place.
    pub max_depth: u64,
    /// Portions by depth: each bucket holds those deeper than the one before, up to its own depth.
    pub depth_histogram: Vec<DepthBucket>,
    /// Rows written per row ingested, until no two portions of a partition overlap, when [`MERGE_FAN_IN`] overlapping portions
    /// of one size are merged at a time. 1 is no rewriting at all.
    pub write_amplification: f64,
}

/// Portions of similar depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DepthBucket {
    /// Depth, at most.
    pub depth: u64,
    /// Portions.
    pub portions: u64,
}

impl LayoutReport {
    /// The overlap of portions, given per partition in the order in which they were made.
    pub(super) fn of(partitions: &[Vec<Portion>], batch_rows: u64) -> Self {
        let mut depths: Vec<u64> = partitions.iter().flat_map(|portions| depths(portions)).collect();
        depths.sort_unstable();
        let (rows, rewritten) = partitions.iter().fold((0, 0), |(rows, rewritten), portions| {
            (
                rows + portions.iter().map(|portion| portion.rows).sum::<u64>(),
                rewritten + rows_rewritten(portions),
            )
        });
        Self {
            batch_rows,
            portions: depths.len() as u64,
            average_depth: depths.iter().sum::<u64>() as f64 / depths.len().max(1) as f64,
            max_depth: depths.last().copied().unwrap_or(0),
            depth_histogram: histogram(&depths),
            write_amplification: 1.0 + rewritten as f64 / rows.max(1) as f64,
        }
    }
}

/// For each portion, how many cover the key at which it begins.
fn depths(portions: &[Portion]) -> Vec<u64> {
    // At one key, portions begin before others end, because both ends belong to a portion.
    let mut events: Vec<(&[u8], bool)> = Vec::with_capacity(2 * portions.len());
    for portion in portions {
        events.push((&portion.min, false));
        events.push((&portion.max, true));
    }
    events.sort_unstable();
    let mut depths = Vec::with_capacity(portions.len());
    let mut open = 0u64;
    for (index, (key, ends)) in events.iter().enumerate() {
        if *ends {
            open -= 1;
            continue;
        }
        open += 1;
        // Portions that begin at the same key all see each other.
        let here = events.iter().skip(index + 1).take_while(|(other, ends)| other == key && !ends).count();
        depths.push(open + here as u64);
    }
    depths
}

/// Buckets of depth 1, 2, 4, 8 and so on.
fn histogram(sorted: &[u64]) -> Vec<DepthBucket> {
    let mut buckets: Vec<DepthBucket> = Vec::new();
    for depth in sorted {
        let bucket = depth.next_power_of_two();
        match buckets.last_mut() {
            Some(last) if last.depth == bucket => last.portions += 1,
            _ => buckets.push(DepthBucket { depth: bucket, portions: 1 }),
        }
    }
    buckets
}

/// Portions that overlap, taken together.
#[derive(Debug, Clone)]
struct Overlapping {
    max: KeyBytes,
    portions: usize,
    rows: u64,
}

/// One level of a tiered merge: groups of overlapping portions by their least key; groups do not overlap each other.
#[derive(Debug, Default)]
struct Level(BTreeMap<KeyBytes, Overlapping>);

impl Level {
    /// Adds a group and joins those that it overlaps; gives the least key of the group that it ends in.
    fn add(&mut self, min: KeyBytes, mut group: Overlapping) -> KeyBytes {
        let mut least = min;
        loop {
            // Groups do not overlap, so of those that begin before the end only the last ones can reach it.
            let before = self.0.range(..=group.max.clone()).next_back();
            let Some((begin, known)) = before.filter(|(_, known)| known.max >= least) else { break };
            let begin = begin.clone();
            group.portions += known.portions;
            group.rows += known.rows;
            group.max = group.max.max(known.max.clone());
            self.0.remove(&begin);
            least = least.min(begin);
        }
        self.0.insert(least.clone(), group);
        least
    }
}

/// Rows that a tiered merge of the portions of one partition rewrites, until nothing overlaps.
fn rows_rewritten(portions: &[Portion]) -> u64 {
    let mut levels: Vec<Level> = Vec::new();
    let mut rewritten = 0;
    for portion in portions {
        let (mut min, mut group) =
            (portion.min.clone(), Overlapping { max: portion.max.clone(), portions: 1, rows: portion.rows });
        let mut number = 0;
        loop {
            if levels.len() <= number {
                levels.push(Level::default());
            }
            let Some(level) = levels.get_mut(number) else { break };
            let begin = level.add(min, group);
            let full = level.0.get(&begin).is_some_and(|group| group.portions >= MERGE_FAN_IN);
            let Some(merged) = full.then(|| level.0.remove(&begin)).flatten() else { break };
            rewritten += merged.rows;
            (min, group) = (begin, Overlapping { portions: 1, ..merged });
            number += 1;
        }
    }
    // What still overlaps, on one level or between levels, is merged in the end.
    let mut all = Level::default();
    for (min, group) in levels.into_iter().flat_map(|level| level.0) {
        all.add(min, group);
    }
    rewritten + all.0.values().filter(|group| group.portions > 1).map(|group| group.rows).sum::<u64>()
}

/// A group of rows with the ranges of some columns.
pub(super) trait Ranges {
    /// Least and greatest value of a column.
    fn range(&self, column: usize) -> Option<(&[u8], &[u8])>;
}

impl Ranges for Portion {
    fn range(&self, column: usize) -> Option<(&[u8], &[u8])> {
        self.columns.get(column).map(|(min, max)| (min.as_ref(), max.as_ref()))
    }
}

/// The share of the groups that a condition `low <= column <= high` leaves unread, on average over some conditions; none
/// without groups or conditions.
pub(super) fn pruned_share<'a, R: Ranges + 'a>(
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

    fn portion(min: u8, max: u8, rows: u64) -> Portion {
        Portion { rows, min: Box::new([min]), max: Box::new([max]), columns: Vec::new() }
    }

    #[test]
    fn portions_in_a_row_overlap_nothing_and_are_never_rewritten() {
        let portions: Vec<Portion> = (0..100).map(|i| portion(2 * i, 2 * i + 1, 10)).collect();
        let report = LayoutReport::of(&[portions], 10);
        assert_eq!((report.portions, report.max_depth), (100, 1));
        assert_eq!((report.average_depth, report.write_amplification), (1.0, 1.0));
        assert_eq!(report.depth_histogram, [DepthBucket { depth: 1, portions: 100 }]);
    }

    #[test]
    fn portions_over_the_whole_range_are_rewritten_once_for_each_level() {
        let whole = |count: usize| vec![portion(0, 255, 10); count];
        let amplification = |count| LayoutReport::of(&[whole(count)], 10).write_amplification;
        assert_eq!(amplification(1), 1.0);
        assert_eq!(amplification(2), 2.0);
        assert_eq!(amplification(MERGE_FAN_IN), 2.0);
        assert_eq!(amplification(MERGE_FAN_IN * MERGE_FAN_IN), 3.0);
        // One more portion: all of them are merged once more in the end.
        assert_eq!(amplification(MERGE_FAN_IN * MERGE_FAN_IN + 1), 1.0 + (64.0 + 64.0 + 65.0) / 65.0);
        let report = LayoutReport::of(&[whole(5)], 10);
        assert_eq!((report.max_depth, report.average_depth), (5, 5.0));
    }

    #[test]
    fn a_late_portion_is_merged_with_those_it_reaches_back_into() {
        let portions =
            vec![portion(0, 9, 100), portion(10, 19, 100), portion(20, 29, 100), portion(15, 25, 10)];
        let report = LayoutReport::of(&[portions], 100);
        assert_eq!(report.max_depth, 2);
        assert!((report.write_amplification - (1.0 + 210.0 / 310.0)).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn depths_are_those_counted_one_by_one(ranges in proptest::collection::vec((0u8..30, 0u8..10), 0..40)) {
            let portions: Vec<Portion> = ranges.iter().map(|(min, length)| portion(*min, min + length, 1)).collect();
            let mut expected: Vec<u64> = portions
                .iter()
                .map(|at| portions.iter().filter(|p| p.min <= at.min && at.min <= p.max).count() as u64)
                .collect();
            let mut found = depths(&portions);
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn every_overlapping_row_is_rewritten_and_no_other(ranges in proptest::collection::vec((0u8..200, 0u8..10), 0..7)) {
            // Fewer portions than the fan-in: what overlaps anything, through others too, is rewritten once.
            let portions: Vec<Portion> = ranges.iter().map(|(min, length)| portion(*min, min + length, 3)).collect();
            let overlaps = |a: &Portion, b: &Portion| a.min <= b.max && b.min <= a.max;
            let alone = |at: usize| portions.iter().enumerate().all(|(i, p)| i == at || !overlaps(p, &portions[at]));
            let expected = 3 * (0..portions.len()).filter(|at| !alone(*at)).count() as u64;
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
