//! The short windows of a batch of rows.

use std::collections::HashMap;

use arrow::array::{Array, PrimitiveArray};
use arrow::datatypes::TimestampMicrosecondType;

use crate::windows::moments::sampling::is_kept;
use evenkeel_model::units::Micros;
use evenkeel_model::wire::wire;

/// One window, with the rows of all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Number of rows in the window.
    pub rows: u64,
    /// Earliest time of its rows.
    pub(super) instant: i64,
    /// Whether its rows have different times.
    pub mixed: bool,
}

wire!(Moment { rows, instant, mixed });

impl Moment {
    pub(super) fn join(&mut self, other: Self) {
        self.rows += other.rows;
        self.mixed |= other.mixed || other.instant != self.instant;
        self.instant = self.instant.min(other.instant);
    }
}

/// Rows of a batch in windows that are kept, of one length.
#[derive(Debug, Clone)]
pub(super) struct KeptRows {
    pub(super) windows: Vec<i64>,
    /// Runs of consecutive rows in one window: its position in `windows`, the first row and the
    /// end.
    pub(super) runs: Vec<(u32, u32, u32)>,
}

/// The short windows of a batch.
#[derive(Debug, Clone)]
pub struct MomentRows {
    pub(super) lengths: &'static [Micros],
    pub(super) shape: Vec<u32>,
    pub(super) levels: Vec<KeptRows>,
}

/// Windows of a batch, before it is known which of them are kept.
pub(super) struct BatchWindows {
    slot_of: HashMap<i64, u32>,
    pub(super) windows: Vec<(i64, Moment)>,
    runs: Vec<(u32, u32, u32)>,
}

impl BatchWindows {
    pub(super) fn new(
        times: &PrimitiveArray<TimestampMicrosecondType>,
        length: Micros,
        thinned: u32,
    ) -> Self {
        let mut batch = Self { slot_of: HashMap::new(), windows: Vec::new(), runs: Vec::new() };
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
                batch.add(window, moment, first as u32, row as u32);
            }
        }
        batch
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
    pub(super) fn kept(self, thinned: u32) -> KeptRows {
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
