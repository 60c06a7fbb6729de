//! Rows by window of time and partition.

use std::collections::{BTreeMap, HashMap};

use crate::windows::WindowedRows;
use evenkeel_model::units::Micros;
use evenkeel_model::units::PartitionId;
use evenkeel_model::wire::{Wire, WireError, WireReader};

/// Rows by window and partition.
#[derive(Debug, Clone)]
pub struct WindowCounts {
    length: Option<Micros>,
    partitions: usize,
    position: HashMap<i64, usize>,
    /// Counts of all `partitions`, window by window.
    counts: Vec<u64>,
}

impl WindowCounts {
    /// Creates empty counts.
    pub fn new(partitions: usize) -> Self {
        Self { length: None, partitions, position: HashMap::new(), counts: Vec::new() }
    }

    /// Like [`WindowCounts::new`], for windows of a given length.
    pub(super) fn with_length(partitions: usize, length: Micros) -> Self {
        Self { length: Some(length), ..Self::new(partitions) }
    }

    /// Drops the windows for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(i64) -> bool) {
        let fresh = Self { length: self.length, ..Self::new(self.partitions) };
        let old = std::mem::replace(self, fresh);
        for (window, offset) in old.position.into_iter().filter(|(window, _)| keep(*window)) {
            let to = self.offset(window);
            self.add_counts(to, old.counts.get(offset..offset + old.partitions).unwrap_or_default());
        }
    }

    /// Returns the offsets of the counts of a batch's windows. From batch to batch, lengths may
    /// only grow.
    pub fn offsets(&mut self, rows: &WindowedRows) -> Vec<usize> {
        self.lengthen(rows.length);
        rows.windows.iter().map(|window| self.offset(*window)).collect()
    }

    /// Counts rows of one partition in the window whose counts begin at `offset`.
    #[inline]
    pub fn add(&mut self, offset: usize, partition: PartitionId, rows: u64) {
        if let Some(count) = self.counts.get_mut(offset + partition.index()) {
            *count += rows;
        }
    }

    /// Returns the offset of a window's counts.
    pub fn offset(&mut self, window: i64) -> usize {
        let next = self.counts.len();
        let offset = *self.position.entry(window).or_insert(next);
        if offset == next {
            self.counts.resize(next + self.partitions, 0);
        }
        offset
    }

    /// Joins windows into windows of a multiple of their length.
    pub fn lengthen(&mut self, length: Micros) {
        let before = *self.length.get_or_insert(length);
        if before >= length {
            return;
        }
        let old = std::mem::replace(self, Self::new(self.partitions));
        self.length = Some(length);
        let mut windows: Vec<(i64, usize)> = old.position.into_iter().collect();
        windows.sort_unstable();
        for (window, offset) in windows {
            let joined = self.offset(length.slice_of(window.saturating_mul(before.get())));
            self.add_counts(joined, old.counts.get(offset..offset + old.partitions).unwrap_or_default());
        }
    }

    fn add_counts(&mut self, offset: usize, more: &[u64]) {
        if let Some(counts) = self.counts.get_mut(offset..offset + self.partitions) {
            counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        }
    }

    /// Adds the counts of other rows, from the same axis or another one.
    pub fn merge(&mut self, mut other: Self) {
        let (Some(own), Some(others)) = (self.length, other.length) else {
            if self.length.is_none() {
                *self = other;
            }
            return;
        };
        self.lengthen(own.max(others));
        other.lengthen(own.max(others));
        for (window, from) in &other.position {
            let to = self.offset(*window);
            self.add_counts(to, other.counts.get(*from..from + other.partitions).unwrap_or_default());
        }
    }

    /// Appends the windows in order, each with its counts.
    pub fn put(&self, bytes: &mut Vec<u8>) {
        self.length.put(bytes);
        let mut windows: Vec<(&i64, &usize)> = self.position.iter().collect();
        windows.sort_unstable();
        windows.len().put(bytes);
        for (window, offset) in windows {
            window.put(bytes);
            let counts = self.counts.get(*offset..offset + self.partitions).unwrap_or_default();
            counts.iter().for_each(|rows| rows.put(bytes));
        }
    }

    /// Reads counts made elsewhere for the same number of partitions.
    pub fn take(&self, left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let mut taken = Self { length: Wire::take(left)?, ..Self::new(self.partitions) };
        for _ in 0..usize::take(left)? {
            let begin = taken.counts.len();
            if taken.position.insert(i64::take(left)?, begin).is_some() {
                return Err(WireError("a window occurs twice"));
            }
            for _ in 0..self.partitions {
                taken.counts.push(u64::take(left)?);
            }
        }
        Ok(taken)
    }

    /// Returns the windows of `length`, a multiple of the present one, in order, with cells joined
    /// into their partitions.
    pub fn windows(&self, length: Micros, partition_of_cell: &[PartitionId]) -> Vec<Window> {
        let partitions = partition_of_cell.iter().map(|partition| partition.index() + 1).max().unwrap_or(0);
        let present = self.length.unwrap_or(length);
        let mut windows: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
        for (window, offset) in &self.position {
            let joined = match present < length {
                true => length.slice_of(window.saturating_mul(present.get())),
                false => *window,
            };
            let rows = windows.entry(joined).or_insert_with(|| vec![0; partitions]);
            let cells = self.counts.get(*offset..offset + self.partitions).unwrap_or_default();
            for (more, partition) in cells.iter().zip(partition_of_cell) {
                if let Some(rows) = rows.get_mut(partition.index()) {
                    *rows += more;
                }
            }
        }
        let window = |(number, rows_per_partition): (i64, Vec<u64>)| Window {
            number,
            start_micros: number.saturating_mul(length.get()),
            rows_per_partition,
        };
        windows.into_iter().map(window).collect()
    }
}

/// A slice of time and the rows of each partition in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Number of windows of this length since 1970.
    pub number: i64,
    /// Start of the window, in microseconds since 1970.
    pub start_micros: i64,
    /// Number of rows of each partition.
    pub rows_per_partition: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_model::wire::{seal, unseal};

    const PARTITIONS: [PartitionId; 2] = [PartitionId(0), PartitionId(1)];

    /// Counts rows given as seconds and partitions.
    fn counted(length: Micros, rows: &[(i64, u32)]) -> WindowCounts {
        let mut counts = WindowCounts::with_length(2, length);
        for (second, partition) in rows {
            let offset = counts.offset(length.slice_of(second * 1_000_000));
            counts.add(offset, PartitionId(*partition), 1);
        }
        counts
    }

    fn shown(counts: &WindowCounts, length: Micros) -> Vec<(i64, Vec<u64>)> {
        let windows = counts.windows(length, &PARTITIONS).into_iter();
        windows.map(|window| (window.start_micros / 1_000_000, window.rows_per_partition)).collect()
    }

    const ROWS: [(i64, u32); 6] = [(-61, 0), (-1, 1), (0, 0), (59, 1), (60, 1), (3_600, 0)];

    #[test]
    fn windows_are_joined_into_longer_ones_before_1970_too() {
        let mut counts = counted(Micros::SECOND, &ROWS);
        let minutes =
            [(-120, vec![1, 0]), (-60, vec![0, 1]), (0, vec![1, 1]), (60, vec![0, 1]), (3_600, vec![1, 0])];
        assert_eq!(shown(&counts, Micros::MINUTE), minutes);
        counts.lengthen(Micros::MINUTE);
        assert_eq!(shown(&counts, Micros::MINUTE), minutes);
        assert_eq!(
            shown(&counts, Micros::HOUR),
            [(-3_600, vec![1, 1]), (0, vec![1, 2]), (3_600, vec![1, 0])]
        );
    }

    #[test]
    fn cells_are_joined_into_their_partitions() {
        let windows = counted(Micros::MINUTE, &ROWS).windows(Micros::DAY, &[PartitionId(0), PartitionId(0)]);
        let rows: Vec<Vec<u64>> = windows.into_iter().map(|window| window.rows_per_partition).collect();
        assert_eq!(rows, [[2], [4]]);
    }

    #[test]
    fn parts_of_different_lengths_merge_to_the_longer_one() {
        for (first, second) in [(Micros::SECOND, Micros::MINUTE), (Micros::MINUTE, Micros::SECOND)] {
            let mut merged = WindowCounts::new(2);
            merged.merge(counted(first, &ROWS[..3]));
            merged.merge(WindowCounts::new(2));
            merged.merge(counted(second, &ROWS[3..]));
            let whole = shown(&counted(Micros::MINUTE, &ROWS), Micros::MINUTE);
            assert_eq!(shown(&merged, Micros::MINUTE), whole);
        }
    }

    #[test]
    fn dropped_windows_leave_the_others_as_they_were() {
        let mut counts = counted(Micros::MINUTE, &ROWS);
        counts.retain(|minute| minute % 2 == 0);
        let kept = [(-120, vec![1, 0]), (0, vec![1, 1]), (3_600, vec![1, 0])];
        assert_eq!(shown(&counts, Micros::MINUTE), kept);
    }

    #[test]
    fn counts_are_read_as_they_were_written_and_a_window_twice_is_refused() {
        let counts = counted(Micros::MINUTE, &ROWS);
        let sealed = seal(|bytes| counts.put(bytes));
        let read = WindowCounts::new(2).take(&mut unseal(&sealed).unwrap()).unwrap();
        assert_eq!(shown(&read, Micros::MINUTE), shown(&counts, Micros::MINUTE));
        let twice = seal(|bytes| {
            Some(Micros::MINUTE).put(bytes);
            2usize.put(bytes);
            for _ in 0..2 {
                7i64.put(bytes);
                (1u64, 1u64).put(bytes);
            }
        });
        assert!(WindowCounts::new(2).take(&mut unseal(&twice).unwrap()).is_err());
        let cut = seal(|bytes| Some(Micros::MINUTE).put(bytes));
        assert!(WindowCounts::new(2).take(&mut unseal(&cut).unwrap()).is_err());
    }
}
