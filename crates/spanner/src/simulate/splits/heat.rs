//! Heat map of writes: keys against time.

use serde::Serialize;

use crate::simulate::splits::key::{Key, StartKey};
use crate::simulate::splits::random::SplitMix;

/// Maximum number of sampled rows; beyond it, every other sample is dropped.
const MAX_SAMPLES: usize = 1 << 15;
/// Maximum number of key ranges, the rows of the map.
const KEY_RANGES: usize = 64;
/// Maximum number of time slices, the columns of the map.
const SLICES: usize = 96;

/// Shape of a heat map: one of the patterns that the documentation of Spanner's Key Visualizer
/// names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeatPattern {
    /// Writes go everywhere at all times.
    EvenlyDistributed,
    /// A diagonal: keys rise or fall with time.
    MonotonicKeys,
    /// Bands along time: some keys receive more writes than others throughout.
    PersistentlyHotRanges,
    /// Nearly all writes go to one of several tables and indexes.
    SingleHotTable,
}

impl HeatPattern {
    /// Describes the pattern in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::EvenlyDistributed => "evenly distributed",
            Self::MonotonicKeys => "monotonic keys (a diagonal)",
            Self::PersistentlyHotRanges => "persistently hot key ranges (bands)",
            Self::SingleHotTable => "a single hot table",
        }
    }
}

/// Rows by key range and time slice, from a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeatMap {
    /// Rows in each time slice, for each key range in key order.
    pub cells: Vec<Vec<u32>>,
    /// Key space of each range.
    pub spaces: Vec<usize>,
    /// First column of the start key of each range, as text.
    pub starts_at: Vec<String>,
    /// Start keys of the ranges.
    #[serde(skip)]
    pub(crate) starts: Vec<StartKey>,
    /// First and last window, numbered since 1970.
    pub windows: (i64, i64),
    /// Pattern of each key space.
    pub patterns: Vec<HeatPattern>,
    /// Key space that receives nearly all rows, if there are several key spaces.
    pub single_hot: Option<usize>,
}

impl HeatMap {
    /// Returns the pattern of the table, which is the first key space.
    #[must_use]
    pub fn pattern(&self) -> HeatPattern {
        self.patterns.first().copied().unwrap_or(HeatPattern::EvenlyDistributed)
    }
}

/// A sampled row.
#[derive(Debug, Clone)]
struct Sample {
    space: usize,
    key: Box<[u8]>,
    lead: usize,
    window: i64,
}

/// Sample of about every `each`-th row.
#[derive(Debug, Clone)]
pub(super) struct HeatSamples {
    rows: Vec<Sample>,
    each: u64,
    until_next: u64,
}

impl Default for HeatSamples {
    fn default() -> Self {
        Self { rows: Vec::new(), each: 1, until_next: 0 }
    }
}

impl HeatSamples {
    #[inline]
    pub(super) fn see(&mut self, space: usize, key: Key<'_>, window: i64, random: &mut SplitMix) {
        if self.until_next > 0 {
            self.until_next -= 1;
            return;
        }
        if self.rows.len() == MAX_SAMPLES {
            let mut kept = false;
            self.rows.retain(|_| {
                kept = !kept;
                kept
            });
            self.each *= 2;
        }
        self.rows.push(Sample { space, key: key.bytes.into(), lead: key.lead, window });
        self.until_next = random.below(2 * self.each - 1);
    }

    pub(super) fn map(mut self, key_spaces: usize) -> HeatMap {
        let first = self.rows.iter().map(|sample| sample.window).min().unwrap_or(0);
        let last = self.rows.iter().map(|sample| sample.window).max().unwrap_or(0);
        let span = (last - first).max(0).cast_unsigned() as usize + 1;
        let slices = span.min(SLICES);
        let slice_of = |window: i64| (window - first).max(0).cast_unsigned() as usize * slices / span;
        self.rows.sort_by(|a, b| (a.space, &a.key).cmp(&(b.space, &b.key)));
        let ranges = key_ranges(&self.rows);
        let mut cells = Vec::with_capacity(ranges.len());
        let mut spaces = Vec::with_capacity(ranges.len());
        let mut starts = Vec::with_capacity(ranges.len());
        for range in &ranges {
            let mut row = vec![0; slices];
            for sample in *range {
                if let Some(cell) = row.get_mut(slice_of(sample.window)) {
                    *cell += 1;
                }
            }
            cells.push(row);
            spaces.push(range.first().map_or(0, |sample| sample.space));
            let start = |sample: &Sample| StartKey { bytes: sample.key.to_vec(), lead: sample.lead };
            starts.push(range.first().map(start).unwrap_or_default());
        }
        let of_space = |space: usize| -> Vec<&Vec<u32>> {
            cells.iter().zip(&spaces).filter(|(_, other)| **other == space).map(|(row, _)| row).collect()
        };
        let rows_of = |space: usize| self.rows.iter().filter(|sample| sample.space == space).count() as f64;
        let most = SINGLE_TABLE_SHARE * self.rows.len() as f64;
        let single_hot = (0..key_spaces).find(|space| key_spaces > 1 && rows_of(*space) >= most);
        let patterns = (0..key_spaces).map(|space| match pattern(&of_space(space)) {
            HeatPattern::EvenlyDistributed if single_hot == Some(space) => HeatPattern::SingleHotTable,
            other => other,
        });
        let patterns = patterns.collect();
        HeatMap { cells, spaces, starts_at: Vec::new(), starts, windows: (first, last), patterns, single_hot }
    }
}

/// Divides samples in key order into ranges with equal numbers of values of the leading key column.
/// If there are few values, each value gets several ranges with equal numbers of rows. A value with
/// many rows is therefore a band, and rows in ascending order are a diagonal.
fn key_ranges(sorted: &[Sample]) -> Vec<&[Sample]> {
    let spaces: Vec<&[Sample]> = sorted.chunk_by(|a, b| a.space == b.space).collect();
    let most = (KEY_RANGES / spaces.len().max(1)).max(16);
    let mut ranges = Vec::new();
    for space in spaces {
        let lead = |sample: &Sample| sample.key.get(..sample.lead).unwrap_or_default().to_vec();
        let values: Vec<&[Sample]> = space.chunk_by(|a, b| lead(a) == lead(b)).collect();
        if values.len() > most / 2 {
            let mut rest = space;
            let (count, groups) = (values.len(), values.len().min(most));
            for group in 0..groups {
                let of_group =
                    values.get(group * count / groups..(group + 1) * count / groups).unwrap_or_default();
                let (range, after) = rest.split_at(of_group.iter().map(|value| value.len()).sum());
                ranges.push(range);
                rest = after;
            }
        } else {
            let parts = most / values.len().max(1);
            for value in values {
                ranges.extend(value.chunks(value.len().div_ceil(parts).max(1)));
            }
        }
    }
    ranges
}

/// Smallest share of the rows that makes one of several tables the single hot one.
const SINGLE_TABLE_SHARE: f64 = 0.8;
/// Largest share of the key ranges that a time slice touches if keys follow time.
const NARROW: f64 = 0.15;
/// Smallest ratio of the rows in a hot range to the rows in the median range.
const BAND: f64 = 5.0;

fn pattern(cells: &[&Vec<u32>]) -> HeatPattern {
    let sums: Vec<f64> = cells.iter().map(|row| row.iter().map(|rows| f64::from(*rows)).sum()).collect();
    let all: f64 = sums.iter().sum();
    if all == 0.0 {
        return HeatPattern::EvenlyDistributed;
    }
    if follow_time(cells) {
        return HeatPattern::MonotonicKeys;
    }
    let mut sorted = sums.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let lasts = |row: &&Vec<u32>| {
        let busy = row.iter().filter(|rows| **rows > 0).count();
        busy * 2 >= row.len()
    };
    let band = cells.iter().zip(&sums).any(|(row, sum)| *sum >= BAND * median && *sum >= BAND && lasts(row));
    if band { HeatPattern::PersistentlyHotRanges } else { HeatPattern::EvenlyDistributed }
}

/// Whether the rows of each time slice are in few ranges, and these rise or fall from slice to
/// slice.
fn follow_time(cells: &[&Vec<u32>]) -> bool {
    let slices = cells.first().map_or(0, |row| row.len());
    let (mut middles, mut widths) = (Vec::new(), Vec::new());
    for slice in 0..slices {
        let rows: Vec<f64> =
            cells.iter().map(|row| row.get(slice).map_or(0.0, |rows| f64::from(*rows))).collect();
        let all: f64 = rows.iter().sum();
        if all == 0.0 {
            continue;
        }
        // The ranges between the 5th and the 95th percentile of the rows.
        let (mut sum, mut begin, mut end, mut middle) = (0.0, None, 0, 0);
        for (place, rows) in rows.iter().enumerate() {
            let before = sum;
            sum += rows;
            if sum >= 0.05 * all && begin.is_none() {
                begin = Some(place);
            }
            if before < 0.5 * all {
                middle = place;
            }
            if before < 0.95 * all {
                end = place;
            }
        }
        widths.push((end + 1 - begin.unwrap_or(end)) as f64 / cells.len() as f64);
        middles.push(middle as f64);
    }
    if middles.len() < 4 || cells.len() < 8 {
        return false;
    }
    widths.sort_by(f64::total_cmp);
    let narrow = widths.get(widths.len() / 2).is_some_and(|width| *width <= NARROW);
    let steps = |falls: bool| {
        middles
            .windows(2)
            .filter(|pair| matches!(pair, [a, b] if if falls { a >= b } else { a <= b }))
            .count()
    };
    let far =
        middles.first().zip(middles.last()).is_some_and(|(a, b)| (a - b).abs() * 2.0 > cells.len() as f64);
    narrow && far && steps(false).max(steps(true)) * 10 >= (middles.len() - 1) * 9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the heat map of rows with these keys, 50 rows per window.
    fn map_of(keys: impl Iterator<Item = (usize, u64, u64)>) -> HeatMap {
        let mut random = SplitMix::new(1);
        let mut samples = HeatSamples::default();
        for (window, (space, lead, rest)) in (0..).zip(keys) {
            let bytes = [lead.to_be_bytes(), rest.to_be_bytes()].concat();
            let key = Key { bytes: &bytes, lead: 8, root: 16 };
            samples.see(space, key, window / 50, &mut random);
        }
        let spaces = samples.rows.iter().map(|sample| sample.space + 1).max().unwrap_or(1);
        samples.map(spaces)
    }

    #[test]
    fn patterns_are_told_apart() {
        let mixed = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let rows = 50_000;
        let rising = map_of((0..rows).map(|row| (0, row, 0)));
        assert_eq!(rising.pattern(), HeatPattern::MonotonicKeys);
        assert_eq!(map_of((0..rows).map(|row| (0, u64::MAX - row, 0))).pattern(), HeatPattern::MonotonicKeys);
        assert_eq!(map_of((0..rows).map(|row| (0, mixed(row), 0))).pattern(), HeatPattern::EvenlyDistributed);
        // Sixteen shards, each in order.
        assert_eq!(
            map_of((0..rows).map(|row| (0, mixed(row) >> 60, row))).pattern(),
            HeatPattern::EvenlyDistributed
        );
        // One user among a thousand has a third of the rows.
        let users = |row: u64| if row.is_multiple_of(3) { 777 } else { (mixed(row) >> 32) % 1000 };
        assert_eq!(
            map_of((0..rows).map(|row| (0, users(row), row))).pattern(),
            HeatPattern::PersistentlyHotRanges
        );
        let tables = |row: u64| usize::from(row.is_multiple_of(20));
        assert_eq!(
            map_of((0..rows).map(|row| (tables(row), mixed(row), 0))).pattern(),
            HeatPattern::SingleHotTable
        );
    }

    #[test]
    fn a_diagonal_is_one() {
        let map = map_of((0..50_000).map(|row| (0, row, 0)));
        let slices = map.cells[0].len();
        for (place, row) in map.cells.iter().enumerate() {
            let hottest = (0..slices).max_by_key(|slice| row[*slice]).unwrap();
            let expected = place * slices / map.cells.len();
            assert!(hottest.abs_diff(expected) <= 2, "{place}: {hottest} {expected}");
        }
        assert_eq!(map_of(std::iter::empty()).cells.len(), 0);
    }
}
