//! Short windows, from a second on: which partitions are busy at a time.
//!
//! ```text
//! windows of 1 s     sampled: those whose hashed number begins with `thinned` zero bits
//! windows of 10 s    sampled, less thinly
//! windows of 1 min   complete, until there are more windows than may be kept; then the next
//!                    length begins with all of their rows
//! ```
//! The choice of windows depends only on which windows have rows, not on the order of rows, on
//! batches or on the parts that are merged. A window that is kept has all of its rows.

use std::collections::{BTreeMap, HashMap};

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::TimestampMicrosecondType;

use crate::windows::counts::{Window, WindowCounts};
use evenkeel_model::units::{Micros, PartitionId};
use evenkeel_model::wire::{Left, Wire, WireError, wire};

/// Lengths of the windows. Queues even out load peaks shorter than a second, and rates of
/// partitions are per second.
const LENGTHS: [Micros; 6] = [
    Micros::SECOND,
    Micros::new(10_000_000),
    Micros::MINUTE,
    Micros::new(600_000_000),
    Micros::HOUR,
    Micros::DAY,
];
/// Maximum number of counters for the windows of one length, over all partitions.
const MOST_COUNTERS: usize = 1 << 17;
/// Bounds of the number of windows kept of one length.
const MOST_KEPT: (usize, usize) = (64, 4096);

/// Returns the number of windows kept of each length, for a key with `counters` counters in total.
pub fn most_moments(counters: usize) -> usize {
    (MOST_COUNTERS / counters.max(1)).clamp(MOST_KEPT.0, MOST_KEPT.1)
}

/// Returns the most counters that short windows need, for a key with `counters` in total.
pub fn moment_counters(counters: usize) -> usize {
    LENGTHS.len() * most_moments(counters) * counters
}

/// One window, with the rows of all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Number of rows in the window.
    pub rows: u64,
    /// Earliest time of its rows.
    instant: i64,
    /// Whether its rows have different times.
    pub mixed: bool,
}

wire!(Moment { rows, instant, mixed });

impl Moment {
    fn join(&mut self, other: Self) {
        self.rows += other.rows;
        self.mixed |= other.mixed || other.instant != self.instant;
        self.instant = self.instant.min(other.instant);
    }
}

/// The windows of one length.
#[derive(Debug, Clone, Default)]
struct Level {
    thinned: u32,
    windows: BTreeMap<i64, Moment>,
}

/// Short windows, shared by all keys.
#[derive(Debug, Clone)]
pub struct MomentAxis {
    lengths: &'static [Micros],
    most: usize,
    /// Windows of the first lengths; the last level is complete, unless there is no longer length.
    levels: Vec<Level>,
}

/// Rows of a batch in windows that are kept, of one length.
#[derive(Debug, Clone)]
struct KeptRows {
    windows: Vec<i64>,
    /// Runs of consecutive rows in one window: its position in `windows`, the first row and the
    /// end.
    runs: Vec<(u32, u32, u32)>,
}

/// The short windows of a batch.
#[derive(Debug, Clone)]
pub struct MomentRows {
    lengths: &'static [Micros],
    shape: Vec<u32>,
    levels: Vec<KeptRows>,
}

/// Whether a window is kept. The number is mixed as in splitmix64, so that windows at regular
/// intervals are sampled equally well.
fn is_kept(window: i64, thinned: u32) -> bool {
    let mut mixed = window.cast_unsigned().wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    mixed.leading_zeros() >= thinned
}

/// Windows of a batch, before it is known which of them are kept.
struct Found {
    slot_of: HashMap<i64, u32>,
    windows: Vec<(i64, Moment)>,
    runs: Vec<(u32, u32, u32)>,
}

impl Found {
    fn new(times: &PrimitiveArray<TimestampMicrosecondType>, length: Micros, thinned: u32) -> Self {
        let mut found = Self { slot_of: HashMap::new(), windows: Vec::new(), runs: Vec::new() };
        let mut row = 0;
        while row < times.len() {
            if times.is_null(row) {
                row += 1;
                continue;
            }
            let window = length.slice_of(times.value(row));
            let begin = window.saturating_mul(length.get());
            let range = begin..begin.saturating_add(length.get());
            let first = row;
            let mut moment = Moment { rows: 0, instant: times.value(row), mixed: false };
            // The first row belongs to the window even at the limits of 64 bits.
            while row < times.len()
                && times.is_valid(row)
                && (row == first || range.contains(&times.value(row)))
            {
                moment.join(Moment { rows: 1, instant: times.value(row), mixed: false });
                row += 1;
            }
            if is_kept(window, thinned) {
                found.add(window, moment, first as u32, row as u32);
            }
        }
        found
    }

    fn add(&mut self, window: i64, moment: Moment, first: u32, end: u32) {
        // A batch has fewer than 2^32 rows.
        let next = self.windows.len() as u32;
        let slot = *self.slot_of.entry(window).or_insert(next);
        match self.windows.get_mut(slot as usize) {
            Some((_, known)) => known.join(moment),
            None => self.windows.push((window, moment)),
        }
        self.runs.push((slot, first, end));
    }

    /// Returns the rows in windows that are kept.
    fn kept(self, thinned: u32) -> KeptRows {
        let mut windows = Vec::new();
        let mut slots = Vec::with_capacity(self.windows.len());
        for (window, _) in self.windows {
            let kept = is_kept(window, thinned);
            slots.push(kept.then_some(windows.len() as u32));
            windows.extend(kept.then_some(window));
        }
        let run = |(slot, first, end): (u32, u32, u32)| {
            slots.get(slot as usize).copied().flatten().map(|slot| (slot, first, end))
        };
        KeptRows { windows, runs: self.runs.into_iter().filter_map(run).collect() }
    }
}

impl MomentAxis {
    /// Creates an axis with windows no shorter than `finest`, at most `most` of each length.
    pub fn new(finest: Micros, most: usize) -> Self {
        let first = LENGTHS.iter().position(|length| *length >= finest).unwrap_or(LENGTHS.len() - 1);
        let lengths = LENGTHS.get(first..).unwrap_or(&LENGTHS);
        Self { lengths, most, levels: vec![Level::default()] }
    }

    /// Sorts the rows of a batch into windows. `times` are instants in microseconds.
    pub fn add(&mut self, times: &ArrayRef) -> MomentRows {
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let mut levels = Vec::new();
        let mut number = 0;
        while let (Some(level), Some(length)) = (self.levels.get(number), self.lengths.get(number)) {
            let found = Found::new(times, *length, level.thinned);
            self.make_way(number, &found.windows);
            if let Some(level) = self.levels.get_mut(number) {
                for (window, moment) in &found.windows {
                    if is_kept(*window, level.thinned) {
                        level.add(*window, *moment);
                    }
                }
                levels.push(found.kept(level.thinned));
            }
            number += 1;
        }
        MomentRows { lengths: self.lengths, shape: self.shape(), levels }
    }

    /// Thins the windows of one length until there are few enough, including these.
    fn make_way(&mut self, number: usize, fresh: &[(i64, Moment)]) {
        while let Some(level) = self.levels.get(number) {
            let is_fresh =
                |window: &i64| is_kept(*window, level.thinned) && !level.windows.contains_key(window);
            let fresh = fresh.iter().filter(|(window, _)| is_fresh(window)).count();
            if level.windows.len() + fresh <= self.most || level.thinned >= u64::BITS {
                return;
            }
            if number + 1 == self.levels.len() {
                self.begin_next();
            }
            if let Some(level) = self.levels.get_mut(number) {
                level.thin(level.thinned + 1);
            }
        }
    }

    /// Begins the next length from the windows of the last one, which are complete.
    fn begin_next(&mut self) {
        let (Some(last), Some(length), Some(next)) = (
            self.levels.last(),
            self.lengths.get(self.levels.len() - 1),
            self.lengths.get(self.levels.len()),
        ) else {
            return;
        };
        let joined = last.joined(*length, *next);
        self.levels.push(joined);
    }

    /// Returns how much the windows of each length are thinned.
    pub fn shape(&self) -> Vec<u32> {
        self.levels.iter().map(|level| level.thinned).collect()
    }

    /// Adds the rows of another part of the export.
    pub fn merge(&mut self, mut other: Self) {
        while self.levels.len() < other.levels.len() {
            self.begin_next();
        }
        while other.levels.len() < self.levels.len() {
            other.begin_next();
        }
        let mut number = 0;
        while let (Some(level), Some(more)) = (self.levels.get_mut(number), other.levels.get_mut(number)) {
            let thinned = level.thinned.max(more.thinned);
            level.thin(thinned);
            more.thin(thinned);
            let fresh: Vec<(i64, Moment)> =
                more.windows.iter().map(|(window, moment)| (*window, *moment)).collect();
            let levels = self.levels.len();
            self.make_way(number, &fresh);
            // A length that begins here has no rows of the other part yet.
            if levels < self.levels.len() {
                other.begin_next();
            }
            if let Some(level) = self.levels.get_mut(number) {
                for (window, moment) in fresh {
                    if is_kept(window, level.thinned) {
                        level.add(window, moment);
                    }
                }
            }
            number += 1;
        }
    }

    /// Appends the counts.
    pub fn put(&self, bytes: &mut Vec<u8>) {
        self.levels.len().put(bytes);
        for level in &self.levels {
            level.thinned.put(bytes);
            level.windows.len().put(bytes);
            level.windows.iter().for_each(|(window, moment)| {
                window.put(bytes);
                moment.put(bytes);
            });
        }
    }

    /// Reads the counts of another axis with the same options.
    pub fn take(&self, left: &mut Left<'_>) -> Result<Self, WireError> {
        let levels = usize::take(left)?;
        if levels == 0 || levels > self.lengths.len() {
            return Err(WireError("it has other short windows"));
        }
        let mut taken = Self { levels: Vec::new(), ..self.clone() };
        for _ in 0..levels {
            let mut level = Level { thinned: Wire::take(left)?, windows: BTreeMap::new() };
            for _ in 0..usize::take(left)? {
                let window = i64::take(left)?;
                level.windows.insert(window, Moment::take(left)?);
            }
            taken.levels.push(level);
        }
        Ok(taken)
    }

    /// Iterates over the windows of every length, shortest first, with their counts over
    /// partitions.
    pub fn scales<'a>(
        &'a self,
        counts: &'a MomentCounts,
        partition_of_cell: &'a [PartitionId],
    ) -> impl Iterator<Item = Scale> + 'a {
        self.lengths.iter().enumerate().filter_map(move |(number, length)| {
            let known = number.min(self.levels.len() - 1);
            let (level, from) = (self.levels.get(known)?, self.lengths.get(known)?);
            // For lengths that have not begun, the last one that has begun holds all rows.
            let joined = (known < number).then(|| level.joined(*from, *length));
            let moments = joined.as_ref().unwrap_or(level).windows.values().copied().collect();
            let windows = counts.levels.get(known)?.windows(*length, partition_of_cell);
            Some(Scale { length: *length, one_in: 1u64 << level.thinned.min(63), windows, moments })
        })
    }
}

impl Level {
    fn add(&mut self, window: i64, moment: Moment) {
        self.windows.entry(window).and_modify(|known| known.join(moment)).or_insert(moment);
    }

    fn thin(&mut self, thinned: u32) {
        if self.thinned < thinned {
            self.thinned = thinned;
            self.windows.retain(|window, _| is_kept(*window, thinned));
        }
    }

    fn joined(&self, from: Micros, to: Micros) -> Self {
        let mut joined = Self::default();
        for (window, moment) in &self.windows {
            joined.add(to.slice_of(window.saturating_mul(from.get())), *moment);
        }
        joined
    }
}

/// Windows of one length, in order.
#[derive(Debug)]
pub struct Scale {
    /// Length of the windows.
    pub length: Micros,
    /// One of this many windows with rows is kept.
    pub one_in: u64,
    /// Windows that are kept.
    pub windows: Vec<Window>,
    /// The same windows with the rows of all keys.
    pub moments: Vec<Moment>,
}

/// Rows of one key by short window and cell.
#[derive(Debug, Clone)]
pub struct MomentCounts {
    cells: usize,
    shape: Vec<u32>,
    levels: Vec<WindowCounts>,
}

impl MomentCounts {
    /// Creates empty counts for `cells` cells.
    pub fn new(cells: usize) -> Self {
        Self { cells, shape: Vec::new(), levels: Vec::new() }
    }

    /// Counts the rows of a batch. `cell` returns the cell of a row.
    pub fn add(&mut self, rows: &MomentRows, cell: impl Fn(usize) -> Option<PartitionId>) {
        self.fit(&rows.shape, rows.lengths);
        for (counts, kept) in self.levels.iter_mut().zip(&rows.levels) {
            let offsets: Vec<usize> = kept.windows.iter().map(|window| counts.offset(*window)).collect();
            for (slot, first, end) in &kept.runs {
                let Some(offset) = offsets.get(*slot as usize) else { continue };
                for row in *first..*end {
                    if let Some(cell) = cell(row as usize) {
                        counts.add(*offset, cell, 1);
                    }
                }
            }
        }
    }

    /// Begins lengths and drops windows as the axis did.
    fn fit(&mut self, shape: &[u32], lengths: &[Micros]) {
        for (number, length) in lengths.iter().take(shape.len()).enumerate() {
            if self.levels.len() == number {
                // The previous one is still complete.
                let mut next = match number.checked_sub(1).and_then(|before| self.levels.get(before)) {
                    Some(before) => before.clone(),
                    None => WindowCounts::of_length(self.cells, *length),
                };
                next.lengthen(*length);
                self.levels.push(next);
                self.shape.push(0);
            }
        }
        // Windows can be dropped only now, because the next length needed all of them.
        for ((level, own), thinned) in self.levels.iter_mut().zip(&mut self.shape).zip(shape) {
            if *own < *thinned {
                *own = *thinned;
                level.retain(|window| is_kept(window, *thinned));
            }
        }
    }

    /// Adds the counts of other rows; `axis` is the merged axis of both.
    pub fn merge(&mut self, mut other: Self, axis: &MomentAxis) {
        let shape = axis.shape();
        self.fit(&shape, axis.lengths);
        other.fit(&shape, axis.lengths);
        self.levels.iter_mut().zip(other.levels).for_each(|(level, more)| level.merge(more));
    }

    /// Appends the counts.
    pub fn put(&self, bytes: &mut Vec<u8>) {
        self.shape.put(bytes);
        self.levels.iter().for_each(|level| level.put(bytes));
    }

    /// Reads counts made elsewhere for the same number of cells.
    pub fn take(&self, left: &mut Left<'_>) -> Result<Self, WireError> {
        let shape: Vec<u32> = Wire::take(left)?;
        if shape.len() > LENGTHS.len() {
            return Err(WireError("it has other short windows"));
        }
        let empty = WindowCounts::new(self.cells);
        let levels = shape.iter().map(|_| empty.take(left)).collect::<Result<_, _>>()?;
        Ok(Self { cells: self.cells, shape, levels })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::TimestampMicrosecondArray;

    use super::*;
    use evenkeel_model::wire::{seal, unseal};

    const MOST: usize = 64;

    fn counted(values: &[(i64, u32)], batch_rows: usize) -> (MomentAxis, MomentCounts) {
        let (mut axis, mut counts) = (MomentAxis::new(Micros::new(1), MOST), MomentCounts::new(4));
        for batch in values.chunks(batch_rows) {
            let times: ArrayRef =
                Arc::new(TimestampMicrosecondArray::from_iter_values(batch.iter().map(|(at, _)| *at)));
            let rows = axis.add(&times);
            counts.add(&rows, |row| Some(PartitionId(batch[row].1)));
        }
        (axis, counts)
    }

    type Figures = Vec<(Micros, u64, Vec<Window>, Vec<Moment>)>;

    fn figures((axis, counts): &(MomentAxis, MomentCounts)) -> Figures {
        let partitions = [0, 1, 2, 3].map(PartitionId);
        let scales = axis.scales(counts, &partitions);
        scales.map(|scale| (scale.length, scale.one_in, scale.windows, scale.moments)).collect()
    }

    /// Counts the rows of each window and partition by plain division, and whether all share one
    /// time.
    fn plain(values: &[(i64, u32)], length: Micros) -> BTreeMap<i64, (Vec<u64>, bool)> {
        let mut windows: BTreeMap<i64, (Vec<u64>, Vec<i64>)> = BTreeMap::new();
        for (at, partition) in values {
            let window =
                windows.entry(at.div_euclid(length.get())).or_insert_with(|| (vec![0; 4], Vec::new()));
            window.0[*partition as usize] += 1;
            window.1.push(*at);
        }
        let mixed = |times: &[i64]| times.iter().any(|at| *at != times[0]);
        windows.into_iter().map(|(number, (rows, times))| (number, (rows, mixed(&times)))).collect()
    }

    fn values(rows: i64, spacing: i64) -> Vec<(i64, u32)> {
        // Every time occurs twice, and times are not in order.
        (0..rows).map(|row| ((row ^ 5) / 2 * spacing, (row % 4) as u32)).collect()
    }

    #[test]
    fn windows_that_are_kept_are_whole_and_the_last_length_has_them_all() {
        for spacing in [1_000, 300_000, 1_000_000, 7_000_000, 3_600_000_000, 90_000_000_000] {
            let values = values(3_000, spacing);
            let found = figures(&counted(&values, 100));
            assert_eq!(found.len(), LENGTHS.len());
            for (length, one_in, windows, moments) in found {
                let expected = plain(&values, length);
                let kept = windows.len();
                assert!(kept <= MOST || length == Micros::DAY, "{spacing} {length}: {kept}");
                assert!(one_in > 1 || kept == expected.len(), "{spacing} {length}: {kept}");
                assert!(kept > MOST / 8 || kept == expected.len(), "{spacing} {length}: {kept}");
                for (window, moment) in windows.iter().zip(&moments) {
                    let (rows, mixed) = &expected[&window.number];
                    assert_eq!(
                        (&window.rows_per_partition, moment.mixed),
                        (rows, *mixed),
                        "{spacing} {length}"
                    );
                    assert_eq!(moment.rows, rows.iter().sum::<u64>());
                }
            }
        }
    }

    #[test]
    fn short_windows_do_not_depend_on_batches_order_or_parts() {
        for spacing in [1_000, 400_000, 60_000_000] {
            let values = values(4_000, spacing);
            let whole = figures(&counted(&values, 4_000));
            for batch_rows in [1, 7, 900] {
                assert_eq!(figures(&counted(&values, batch_rows)), whole, "{spacing} {batch_rows}");
            }
            let mut turned = values.clone();
            turned.reverse();
            let half = turned.len() / 2;
            turned[..half].sort_by_key(|(at, _)| at % 7_001);
            assert_eq!(figures(&counted(&turned, 500)), whole, "{spacing}");
            for parts in [2, 5, 40] {
                let (mut axis, mut counts) = counted(&[], 1);
                for part in values.chunks(values.len().div_ceil(parts)) {
                    let (more, of_key) = counted(part, 64);
                    let sealed = seal(|bytes| {
                        more.put(bytes);
                        of_key.put(bytes);
                    });
                    let mut left = unseal(&sealed).unwrap();
                    let (more, of_key) = (axis.take(&mut left).unwrap(), counts.take(&mut left).unwrap());
                    axis.merge(more);
                    counts.merge(of_key, &axis);
                }
                assert_eq!(figures(&(axis, counts)), whole, "{spacing} {parts}");
            }
        }
    }

    #[test]
    fn rows_without_a_time_are_in_no_window_and_the_ends_of_time_are_taken() {
        let mut axis = MomentAxis::new(Micros::new(1), MOST);
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
            None,
            Some(i64::MIN),
            Some(i64::MAX),
            None,
            Some(5),
        ]));
        let rows = axis.add(&times);
        let mut counts = MomentCounts::new(1);
        counts.add(&rows, |_| Some(PartitionId(0)));
        let found: u64 = figures(&(axis, counts))[0].3.iter().map(|moment| moment.rows).sum();
        assert_eq!(found, 3);
    }
}
