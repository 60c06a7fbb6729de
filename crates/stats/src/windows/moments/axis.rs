//! The axis of short windows that all keys share.

use std::collections::BTreeMap;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::TimestampMicrosecondType;

use crate::windows::moments::batch::{BatchWindows, Moment, MomentRows};
use crate::windows::moments::sampling::{LENGTHS, is_kept};
use evenkeel_model::units::Micros;
use evenkeel_model::wire::{Wire, WireError, WireReader};

/// The windows of one length.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    pub(super) thinned: u32,
    pub(super) windows: BTreeMap<i64, Moment>,
}

/// Short windows, shared by all keys.
#[derive(Debug, Clone)]
pub struct MomentAxis {
    pub(super) lengths: &'static [Micros],
    most: usize,
    /// Windows of the first lengths; the last level is complete, unless there is no longer length.
    pub(super) levels: Vec<Level>,
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
            let batch = BatchWindows::new(times, *length, level.thinned);
            self.make_way(number, &batch.windows);
            if let Some(level) = self.levels.get_mut(number) {
                for (window, moment) in &batch.windows {
                    if is_kept(*window, level.thinned) {
                        level.add(*window, *moment);
                    }
                }
                levels.push(batch.kept(level.thinned));
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
            // Lengths that start at this level have no rows of the other part.
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
    pub fn take(&self, left: &mut WireReader<'_>) -> Result<Self, WireError> {
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

    pub(super) fn joined(&self, from: Micros, to: Micros) -> Self {
        let mut joined = Self::default();
        for (window, moment) in &self.windows {
            joined.add(to.slice_of(window.saturating_mul(from.get())), *moment);
        }
        joined
    }
}
