//! The time axis of an export, whose windows grow until they are few enough.

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::min;
use arrow::datatypes::TimestampMicrosecondType;

use crate::windows::lengths::{LENGTHS, USUAL};
use crate::windows::range::{LATE_BY, TimeRange, count_late};
use evenkeel_model::units::Micros;
use evenkeel_model::wire::{Wire, WireError, WireReader};

/// Maximum number of windows that are counted separately while reading.
pub const MAX_WINDOWS: usize = 1000;
/// Maximum number of windows that are shown at the end.
const MAX_SHOWN: usize = 500;
/// Below this number, windows are not joined any further for lack of rows.
const MIN_SHOWN: usize = 24;
/// Marks a row without a time, which is in no window.
pub const NO_WINDOW: u32 = u32::MAX;

/// The windows of a batch of rows.
#[derive(Debug, Clone)]
pub struct WindowedRows {
    /// Length of the windows.
    pub length: Micros,
    /// Numbers of the windows that have rows.
    pub windows: Vec<i64>,
    /// Window of each row, as a position in `windows`, or [`NO_WINDOW`].
    pub slots: Vec<u32>,
}

/// Time axis that all candidates share.
#[derive(Debug, Clone)]
pub struct TimeAxis {
    /// Position in [`LENGTHS`]; `None` if the length was requested.
    level: Option<usize>,
    /// Maximum number of windows of a requested length.
    most_requested: usize,
    length: Micros,
    rows_of_window: BTreeMap<i64, u64>,
    /// Latest instant so far, in microseconds since 1970.
    latest: Option<i64>,
    earliest: Option<i64>,
    /// Greatest length that divides the distances between instants; 0 if there is only one instant.
    step: i64,
    /// Number of rows with a time.
    rows: u64,
    /// Number of rows without a time, which are in no window.
    pub null_rows: u64,
    /// Rows that follow one that is later by more than each of [`LATE_BY`].
    late_by: [u64; 4],
}

impl TimeAxis {
    /// Creates an axis with windows of length `requested`, at most `most_requested` of them, or of
    /// a length derived from the data, which is `finest` or longer.
    pub fn new(requested: Option<Micros>, most_requested: usize, finest: Micros) -> Self {
        let level = LENGTHS.iter().position(|length| *length >= finest.get()).unwrap_or(0);
        let finest = LENGTHS.get(level).map_or(finest, |length| Micros::new(*length));
        Self {
            most_requested,
            level: requested.is_none().then_some(level),
            length: requested.unwrap_or(finest),
            rows_of_window: BTreeMap::new(),
            latest: None,
            earliest: None,
            step: 0,
            rows: 0,
            null_rows: 0,
            late_by: [0; 4],
        }
    }

    /// Sorts the rows of a batch into windows. `times` are instants in microseconds. Returns `None`
    /// if a requested length makes more than `most_requested` windows.
    pub fn add(&mut self, times: &ArrayRef) -> Option<WindowedRows> {
        let times = times.as_primitive::<TimestampMicrosecondType>();
        self.null_rows += times.null_count() as u64;
        self.rows += (times.len() - times.null_count()) as u64;
        let Some(low) = min(times) else {
            let slots = vec![NO_WINDOW; times.len()];
            return Some(WindowedRows { length: self.length, windows: Vec::new(), slots });
        };
        self.note_times(times, low);
        // The first batch alone may span a day: avoid sorting it into microseconds first.
        while self.level.is_some()
            && self.rows_of_window.is_empty()
            && self.are_too_many(times)
            && self.lengthen()
        {}
        loop {
            let windowed = self.slots(times);
            let fresh = windowed.windows.iter().filter(|w| !self.rows_of_window.contains_key(w)).count();
            let windows = self.rows_of_window.len() + fresh;
            if self.level.is_none() && windows > self.most_requested {
                return None;
            }
            if self.level.is_none() || windows <= MAX_WINDOWS || !self.lengthen() {
                self.count(&windowed);
                return Some(windowed);
            }
        }
    }

    /// Updates the range of times and the late rows; `low` is the earliest of these times.
    fn note_times(&mut self, times: &PrimitiveArray<TimestampMicrosecondType>, low: i64) {
        let mut latest = self.latest.unwrap_or(low);
        let origin = self.earliest.unwrap_or(low);
        for at in times.iter().flatten() {
            if self.step != 1 {
                self.step = common_step(self.step, at.saturating_sub(origin));
            }
            if at < latest {
                count_late(&mut self.late_by, latest.saturating_sub(at));
            }
            latest = latest.max(at);
        }
        self.latest = Some(latest);
        self.earliest = Some(self.earliest.map_or(low, |earliest| earliest.min(low)));
    }

    fn count(&mut self, windowed: &WindowedRows) {
        let mut rows = vec![0u64; windowed.windows.len()];
        for slot in &windowed.slots {
            if let Some(rows) = rows.get_mut(*slot as usize) {
                *rows += 1;
            }
        }
        for (window, rows) in windowed.windows.iter().zip(rows) {
            *self.rows_of_window.entry(*window).or_default() += rows;
        }
    }

    /// Whether rows fall into more than [`MAX_WINDOWS`] windows, which the first rows usually
    /// show.
    fn are_too_many(&self, times: &PrimitiveArray<TimestampMicrosecondType>) -> bool {
        let mut windows = HashSet::new();
        let mut fresh = times.iter().flatten().filter(|at| windows.insert(self.length.slice_of(*at)));
        fresh.nth(MAX_WINDOWS).is_some()
    }

    /// Switches to the next length; returns false after the last one.
    fn lengthen(&mut self) -> bool {
        let Some(next) = self.level.map(|level| level + 1) else { return false };
        let Some(length) = LENGTHS.get(next) else { return false };
        let factor = length / self.length.get();
        self.level = Some(next);
        self.length = Micros::new(*length);
        let mut joined = BTreeMap::new();
        for (window, rows) in &self.rows_of_window {
            *joined.entry(window.div_euclid(factor)).or_default() += rows;
        }
        self.rows_of_window = joined;
        true
    }

    fn slots(&self, times: &PrimitiveArray<TimestampMicrosecondType>) -> WindowedRows {
        let mut slot_of: HashMap<i64, u32> = HashMap::new();
        let mut windows = Vec::new();
        let mut slots = Vec::with_capacity(times.len());
        // Consecutive rows usually share a window.
        let (mut begin, mut end, mut slot) = (1i64, 0i64, NO_WINDOW);
        for row in 0..times.len() {
            if times.is_null(row) {
                slots.push(NO_WINDOW);
                continue;
            }
            let at = times.value(row);
            if !(begin..end).contains(&at) {
                let window = self.length.slice_of(at);
                begin = window.saturating_mul(self.length.get());
                end = begin.saturating_add(self.length.get());
                // A batch has fewer than 2^32 rows.
                slot = *slot_of.entry(window).or_insert_with(|| {
                    windows.push(window);
                    windows.len() as u32 - 1
                });
            }
            slots.push(slot);
        }
        WindowedRows { length: self.length, windows, slots }
    }

    /// Adds the rows of another part of the export, which follow these. Returns `None` if a
    /// requested length then makes more than `most_requested` windows.
    pub fn merge(&mut self, mut other: Self) -> Option<()> {
        while self.length < other.length && self.lengthen() {}
        while other.length < self.length && other.lengthen() {}
        // Whether the other's rows follow a later one of these is known only for whole windows, so
        // the late rows are a lower bound if the two overlap in time.
        for ((rows, more), by) in self.late_by.iter_mut().zip(other.late_by).zip(LATE_BY) {
            let end = self.latest.map(|latest| latest.saturating_sub(by.get()));
            let length = other.length.get();
            let is_late = |window: &i64| {
                let last = window.saturating_mul(length).saturating_add(length - 1);
                end.is_some_and(|end| last < end)
            };
            let late = other.rows_of_window.iter().filter(|(window, _)| is_late(window));
            *rows += more.max(late.map(|(_, rows)| rows).sum());
        }
        for (window, rows) in other.rows_of_window {
            *self.rows_of_window.entry(window).or_default() += rows;
        }
        while self.level.is_some() && self.rows_of_window.len() > MAX_WINDOWS && self.lengthen() {}
        if let (Some(one), Some(other_one)) = (self.earliest, other.earliest) {
            self.step = common_step(common_step(self.step, other.step), other_one.saturating_sub(one));
        } else {
            self.step = self.step.max(other.step);
        }
        self.earliest = [self.earliest, other.earliest].into_iter().flatten().min();
        self.latest = self.latest.max(other.latest);
        self.rows += other.rows;
        self.null_rows += other.null_rows;
        (self.level.is_some() || self.rows_of_window.len() <= self.most_requested).then_some(())
    }

    /// Returns the length of the windows in which rows are counted.
    pub fn length(&self) -> Micros {
        self.length
    }

    /// Appends the counts.
    pub fn put(&self, bytes: &mut Vec<u8>) {
        self.level.put(bytes);
        self.rows_of_window.len().put(bytes);
        self.rows_of_window.iter().for_each(|(window, rows)| (*window, *rows).put(bytes));
        (self.earliest, self.latest).put(bytes);
        self.step.put(bytes);
        (self.rows, self.null_rows).put(bytes);
        self.late_by.put(bytes);
    }

    /// Reads the counts of another axis with the same options.
    pub fn take(&self, left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let level: Option<usize> = Wire::take(left)?;
        let length = match (level, self.level) {
            (None, None) => Some(self.length),
            (Some(level), Some(_)) => LENGTHS.get(level).map(|length| Micros::new(*length)),
            _ => None,
        };
        let length = length.ok_or(WireError("its windows have another length"))?;
        let rows_of_window = Vec::<(i64, u64)>::take(left)?.into_iter().collect();
        let (earliest, latest) = Wire::take(left)?;
        let step: i64 = Wire::take(left)?;
        let (rows, null_rows) = Wire::take(left)?;
        Ok(Self {
            level,
            most_requested: self.most_requested,
            length,
            rows_of_window,
            latest,
            earliest,
            step,
            rows,
            null_rows,
            late_by: Wire::take(left)?,
        })
    }

    /// Returns the time range of the export; `None` if no row has a time. `read` is the number of
    /// rows of the export for each row counted.
    pub fn range(&self, read: f64) -> Option<TimeRange> {
        // Rates are computed over a second or more; a shorter time is not a load.
        let length = self.final_length(1).max(Micros::SECOND);
        let counts = self.rows_by((length.get() / self.length.get()).max(1));
        let seconds = length.max(self.length).seconds();
        let busy = counts.get((counts.len() * 99 / 100).min(counts.len().saturating_sub(1)))?;
        Some(TimeRange {
            average_rows_per_second: self.rows as f64 * read / (counts.len() as f64 * seconds),
            busy_rows_per_second: *busy as f64 * read / seconds,
            earliest_micros: self.earliest?,
            latest_micros: self.latest?,
            null_rows: self.null_rows,
            late_rows_by_more_than: self.late_by,
        })
    }

    /// Returns the smallest possible distance between instants of the export, such as an hour if
    /// all are on the hour. With a single instant, the largest common unit that divides it.
    fn resolution(&self) -> i64 {
        let units = [Micros::DAY, Micros::HOUR, Micros::MINUTE].map(Micros::get);
        match (self.step, self.earliest) {
            (0, Some(only)) => {
                units.into_iter().find(|unit| only % unit == 0).unwrap_or(Micros::SECOND.get())
            }
            (step, _) => step,
        }
    }

    /// Returns the length of the windows that are shown: the shortest usual one that is not shorter
    /// than the distance between instants, makes at most `MAX_SHOWN` windows and, if possible,
    /// gives the median one at least `rows` rows.
    pub fn final_length(&self, rows: u64) -> Micros {
        if self.level.is_none() {
            return self.length;
        }
        let mut usual: Vec<i64> =
            LENGTHS.iter().chain(&USUAL).copied().chain([2 * self.length.get()]).collect();
        let shortest = self.length.get().max(self.resolution());
        let longest = usual.iter().copied().max().unwrap_or_default();
        usual.retain(|length| *length >= shortest.min(longest) && length % self.length.get() == 0);
        usual.sort_unstable();
        let first = Micros::new(usual.first().copied().unwrap_or(self.length.get()));
        let mut best = first;
        for length in usual {
            let counts = self.rows_by(length / self.length.get());
            if counts.len() <= MAX_SHOWN {
                let enough = counts.get(counts.len() / 2).is_none_or(|median| *median >= rows);
                if counts.len() >= MIN_SHOWN || best == first {
                    best = Micros::new(length);
                }
                if enough || counts.len() < MIN_SHOWN {
                    break;
                }
            }
        }
        best
    }

    /// Returns the rows of every window of `factor` times the length, in ascending order.
    fn rows_by(&self, factor: i64) -> Vec<u64> {
        let mut joined: BTreeMap<i64, u64> = BTreeMap::new();
        for (window, rows) in &self.rows_of_window {
            *joined.entry(window.div_euclid(factor)).or_default() += rows;
        }
        let mut counts: Vec<u64> = joined.into_values().collect();
        counts.sort_unstable();
        counts
    }
}

/// Returns the greatest common divisor of a step and the distance of two instants.
fn common_step(step: i64, distance: i64) -> i64 {
    let (mut one, mut other) = (step.unsigned_abs(), distance.unsigned_abs());
    while other != 0 {
        (one, other) = (other, one % other);
    }
    i64::try_from(one).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "axis_tests.rs"]
mod tests;
