//! Rows that arrive after rows of their partition with a greater key.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::row::Rows;

use crate::evaluate::figures::primary_key::{LateReach, LateRows};
use crate::evaluate::pass::layout::KeyBytes;
use crate::evaluate::pass::primary_key::key_rows::{SampledRow, head};
use evenkeel_model::units::PartitionId;
use evenkeel_model::wire::{Wire, WireError, WireReader, wire};
use evenkeel_stats::windows::{LATE_BY, count_late};

/// Maximum number of marks in the rows of a partition that are in order.
const MAX_MARKS: usize = 256;

/// Counts late rows.
#[derive(Debug)]
pub(super) struct Arrivals {
    partitions: Vec<Latest>,
    rows: u64,
    /// Longest time that one reaches back, in microseconds, if the key begins with a time.
    longest: Option<i64>,
    /// Rows that are late by more than a second, a minute, an hour and a day.
    rows_by: [u64; 4],
    /// Rows that may be late in addition, if counts were merged that overlap.
    unknown: Option<u64>,
}

wire!(Arrivals { partitions, rows, longest, rows_by, unknown });

/// Greatest key and latest time of one partition so far.
#[derive(Debug, Clone, Default)]
struct Latest {
    /// Greatest key.
    max: Option<KeyBytes>,
    /// Latest time, if the key begins with one.
    latest: Option<i64>,
    in_order: InOrder,
}

wire!(Latest { max, latest, in_order });

/// Rows of a partition that are not late. Their keys never fall, so a few of them show about how
/// many keys are less than a given one.
#[derive(Debug, Clone)]
struct InOrder {
    rows: u64,
    /// Some of the rows, in order.
    marks: Vec<Mark>,
    /// Rows from one mark to the next, a power of two.
    stride: u64,
}

impl Wire for InOrder {
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.rows, self.stride).put(bytes);
        self.marks.put(bytes);
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let (rows, stride) = <(u64, u64)>::take(left)?;
        let marks = Vec::<Mark>::take(left)?;
        let is_sorted = marks.is_sorted_by(|a, b| a.rows_before < b.rows_before && a.key <= b.key);
        let is_within = marks.last().is_none_or(|last| last.rows_before < rows);
        if !stride.is_power_of_two() || !is_sorted || !is_within {
            return Err(WireError("its rows are not in order"));
        }
        Ok(Self { rows, marks, stride })
    }
}

#[derive(Debug, Clone)]
struct Mark {
    rows_before: u64,
    key: KeyBytes,
    time: Option<i64>,
}

wire!(Mark { rows_before, key, time });

impl Default for InOrder {
    fn default() -> Self {
        Self { rows: 0, marks: Vec::new(), stride: 1 }
    }
}

impl InOrder {
    #[inline]
    fn add(&mut self, key: impl FnOnce() -> KeyBytes, time: Option<i64>) {
        if self.rows & (self.stride - 1) == 0 {
            self.marks.push(Mark { rows_before: self.rows, key: key(), time });
            self.thin();
        }
        self.rows += 1;
    }

    fn thin(&mut self) {
        while self.marks.len() > MAX_MARKS {
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// Returns the least and the greatest number of rows for which `is_before` may hold. It must
    /// hold for a prefix of the rows.
    fn rows_before(&self, is_before: impl Fn(&Mark) -> bool) -> (u64, u64) {
        let place = self.marks.partition_point(is_before);
        let least = place.checked_sub(1).and_then(|last| self.marks.get(last));
        let least = least.map_or(0, |mark| mark.rows_before + 1);
        let most = self.marks.get(place).map_or(self.rows, |mark| mark.rows_before);
        (least, most.max(least))
    }

    /// Adds the rows that follow, without the first `late` of them.
    fn extend(&mut self, other: Self, late: u64) {
        let before = self.rows;
        let kept = other.marks.into_iter().filter(|mark| mark.rows_before >= late);
        self.marks.extend(kept.map(|mark| Mark { rows_before: before + mark.rows_before - late, ..mark }));
        self.rows += other.rows - late;
        self.stride = self.stride.max(other.stride);
        self.thin();
    }
}

impl Arrivals {
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            partitions: vec![Latest::default(); partitions],
            rows: 0,
            longest: None,
            rows_by: [0; 4],
            unknown: None,
        }
    }

    /// Number of late rows.
    pub(super) fn late_rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn late(&self) -> LateRows {
        let reach = self.longest.map(|max_micros| LateReach { max_micros, rows_by_more_than: self.rows_by });
        LateRows { rows: self.rows, at_most: self.unknown.map(|more| self.rows + more), reach }
    }

    /// Number of partitions.
    pub(super) fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Adds later rows. Exact if their keys are not less than those here, partition by partition.
    pub(super) fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.longest = self.longest.max(other.longest);
        self.rows_by.iter_mut().zip(other.rows_by).for_each(|(rows, more)| *rows += more);
        let mut unknown = other.unknown;
        for (state, later) in self.partitions.iter_mut().zip(other.partitions) {
            let (least, most) = match (&state.max, &later.max) {
                (Some(max), Some(later_max)) if later_max < max => (later.in_order.rows, later.in_order.rows),
                (Some(max), _) => later.in_order.rows_before(|mark| mark.key < *max),
                (None, _) => (0, 0),
            };
            if most > 0 {
                unknown = Some(unknown.unwrap_or(0) + most - least);
                self.rows += least;
                if let (Some(latest), Some(first)) = (state.latest, later.in_order.marks.first())
                    && let Some(time) = first.time
                {
                    let by = latest.saturating_sub(time).max(0);
                    self.longest = Some(self.longest.map_or(by, |most| most.max(by)));
                    for (rows, by) in self.rows_by.iter_mut().zip(LATE_BY) {
                        let end = latest.saturating_sub(by.get());
                        let is_late = |mark: &Mark| mark.time.is_some_and(|time| time < end);
                        *rows += later.in_order.rows_before(is_late).0.min(least);
                    }
                }
            }
            state.max = state.max.take().max(later.max);
            state.latest = state.latest.max(later.latest);
            state.in_order.extend(later.in_order, least);
        }
        if let Some(more) = unknown {
            self.unknown = Some(self.unknown.unwrap_or(0) + more);
        }
    }

    /// Adds rows with their keys, partitions, and times in microseconds, if the key begins with
    /// one.
    pub(super) fn add(&mut self, keys: &Rows, partitions: &[PartitionId], times: Option<&ArrayRef>) {
        let times = times.map(|times| times.as_primitive::<TimestampMicrosecondType>());
        // The greatest key of a partition is copied once per batch, not with every row.
        let mut greatest: Vec<Option<usize>> = vec![None; self.partitions.len()];
        for (row, partition) in partitions.iter().enumerate() {
            let (Some(state), Some(greatest)) =
                (self.partitions.get_mut(partition.index()), greatest.get_mut(partition.index()))
            else {
                continue;
            };
            let key = keys.row(row);
            let time = times.filter(|times| times.is_valid(row)).map(|times| times.value(row));
            let late = match *greatest {
                Some(other) => key < keys.row(other),
                None => state.max.as_ref().is_some_and(|max| key.as_ref() < max.as_ref()),
            };
            if late {
                self.rows += 1;
                if let (Some(time), Some(latest)) = (time, state.latest) {
                    let by = latest.saturating_sub(time).max(0);
                    self.longest = Some(self.longest.map_or(by, |most| most.max(by)));
                    count_late(&mut self.rows_by, by);
                }
            } else {
                *greatest = Some(row);
                state.in_order.add(|| key.as_ref().into(), time);
            }
            state.latest = state.latest.max(time);
        }
        for (state, greatest) in self.partitions.iter_mut().zip(greatest) {
            if let Some(row) = greatest {
                state.max = Some(keys.row(row).as_ref().into());
            }
        }
    }
}

/// Returns Pearson's correlation between the rank of each row's key and its rank of arrival; equal
/// keys share the middle of their ranks.
pub(super) fn rank_correlation(rows: &[SampledRow]) -> Option<f64> {
    let mut by_arrival: Vec<&SampledRow> = rows.iter().collect();
    by_arrival.sort_by_key(|row| row.arrival);
    let by_key = by_arrival.into_iter().enumerate();
    let mut by_key: Vec<_> = by_key.map(|(arrival, row)| (head(row.key()), arrival, row.key())).collect();
    by_key.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.2.cmp(b.2)));
    let count = by_key.len() as f64;
    let mean = (count - 1.0) / 2.0;
    let (mut covariance, mut variance_of_rank, mut rank) = (0.0, 0.0, 0usize);
    for equal in by_key.chunk_by(|a, b| a.2 == b.2) {
        let middle = rank as f64 + (equal.len() as f64 - 1.0) / 2.0 - mean;
        variance_of_rank += middle * middle * equal.len() as f64;
        covariance += equal.iter().map(|(_, arrival, _)| middle * (*arrival as f64 - mean)).sum::<f64>();
        rank += equal.len();
    }
    let variance_of_arrival = count * (count * count - 1.0) / 12.0;
    let product = (variance_of_rank * variance_of_arrival).sqrt();
    (product > 0.0).then(|| covariance / product)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(keys: impl IntoIterator<Item = u32>) -> Vec<SampledRow> {
        let row = |(arrival, key): (u64, u32)| {
            let mut row = SampledRow::default();
            row.arrival = arrival;
            row.set(&key.to_be_bytes(), std::iter::empty());
            row
        };
        (0..).zip(keys).map(row).collect()
    }

    #[test]
    fn rank_correlation_is_one_for_rising_keys_and_minus_one_for_falling_ones() {
        let close = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?}")
        };
        close(rank_correlation(&sampled(0..100)), 1.0);
        close(rank_correlation(&sampled((0..100).rev())), -1.0);
        // Spearman's own formula, 1 - 6 sum(d^2) / (n (n^2 - 1)), for 2, 1, 4, 3.
        close(rank_correlation(&sampled([2, 1, 4, 3])), 1.0 - 6.0 * 4.0 / 60.0);
        assert_eq!(rank_correlation(&sampled([7, 7, 7])), None);
        assert_eq!(rank_correlation(&[]), None);
    }

    #[test]
    fn rank_correlation_misleads_both_ways() {
        // Each day runs from the first to the last key: every portion overlaps every other, and the
        // correlation is low.
        let days = rank_correlation(&sampled((0..100).flat_map(|_| 0..100))).unwrap();
        assert!(days.abs() < 0.1, "{days}");
        // Rows shuffled within each tenth: the correlation says monotonic, although half of the
        // rows are late.
        let shuffled = (0..1000).map(|row: u32| row / 100 * 100 + row * 37 % 100);
        let shuffled = rank_correlation(&sampled(shuffled)).unwrap();
        assert!(shuffled > 0.95, "{shuffled}");
    }
}
