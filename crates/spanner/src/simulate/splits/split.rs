//! A split: the rows between two boundaries, and samples of their keys.

use serde::Serialize;

use crate::simulate::splits::key::{Key, StartKey};
use crate::simulate::splits::parameters::{ModelParameters, Sampling};
use crate::simulate::splits::random::SplitMix;
use crate::simulate::splits::sample::{Balance, Boundary, Sample, Samples, Watch, middle};
use evenkeel_stats::numbering::prefix;

/// Reason why dividing a hot split does not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// Nearly all load is on one key, and a row cannot be divided.
    SingleRow,
    /// The load moves: a boundary would leave all new rows on one side.
    MovingHotspot,
}

/// Origin of a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    /// Present before the first row.
    Given,
    Size,
    Load,
}

/// A division that has been decided but not carried out.
#[derive(Debug, Clone)]
struct Pending {
    boundary: Boundary,
    /// Number of window ends until it takes effect, including the end of the deciding window.
    windows: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Split {
    /// First key; empty for the first split.
    start: Box<[u8]>,
    /// Length of the first column of `start`.
    lead: usize,
    /// First eight bytes of `start`, as a number.
    head: u64,
    /// Origin of the lower boundary.
    origin: Origin,
    /// Whether the lower boundary separates rows of one root.
    inside_root: bool,
    rows: u64,
    bytes: u64,
    pub(super) window_rows: u64,
    pub(super) server: usize,
    last_transaction: u64,
    samples: Samples,
    watch: Option<Watch>,
    pending: Option<Pending>,
    obstacle: Option<Obstacle>,
    /// Whether the split was hot in the previous window.
    was_hot: bool,
    quiet_windows: u32,
}

/// Final figures of a split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SplitFigures {
    /// First column of the start key, as text; `None` for the first split, which begins before all
    /// keys.
    pub starts_at: Option<String>,
    /// Start key of the split.
    #[serde(skip)]
    pub(crate) start: StartKey,
    /// Number of rows.
    pub rows: u64,
    /// Size of the rows, in bytes.
    pub bytes: u64,
    /// Whether the lower boundary separates rows of one root.
    pub inside_root: bool,
}

impl Split {
    pub(super) fn new(start: Box<[u8]>, lead: usize, origin: Origin, server: usize) -> Self {
        Self {
            head: prefix(&start),
            start,
            lead,
            origin,
            inside_root: false,
            rows: 0,
            bytes: 0,
            window_rows: 0,
            server,
            last_transaction: 0,
            samples: Samples::default(),
            watch: None,
            pending: None,
            obstacle: None,
            was_hot: false,
            quiet_windows: 0,
        }
    }

    /// First key; empty for the first split.
    pub(super) fn start(&self) -> &[u8] {
        &self.start
    }

    /// Whether the split begins at a key, whose first bytes are `head`, or before it.
    #[inline]
    pub(super) fn begins_by(&self, key: &[u8], head: u64) -> bool {
        self.head < head || self.head == head && *self.start <= *key
    }

    /// Returns the final figures.
    pub(super) fn figures(&self) -> SplitFigures {
        SplitFigures {
            starts_at: None,
            start: StartKey { bytes: self.start.to_vec(), lead: self.lead },
            rows: self.rows,
            bytes: self.bytes,
            inside_root: self.inside_root,
        }
    }

    /// Inserts a row, which is sampled if `sampling` is given. Returns whether the split is new to
    /// the transaction.
    #[inline]
    pub(super) fn insert(
        &mut self,
        key: Key<'_>,
        bytes: u32,
        transaction: u64,
        sampling: Option<&Sampling>,
        random: &mut SplitMix,
    ) -> bool {
        self.rows += 1;
        self.bytes += u64::from(bytes);
        self.window_rows += 1;
        if let Some(sampling) = sampling {
            if self.samples.wants() {
                self.samples.add(Sample::new(key, bytes), sampling.size_keys, random);
            }
            if let Some(watch) = self.watch.as_mut() {
                watch.see(key, sampling.load_keys, random);
            }
        }
        std::mem::replace(&mut self.last_transaction, transaction) != transaction
    }

    /// Reason why dividing the split does not help, and the rows that it received in the window.
    pub(super) fn stuck(&self) -> Option<(Obstacle, u64)> {
        Some((self.obstacle?, self.window_rows))
    }

    /// Whether the split was hot in the previous window and is not even warm in this one.
    pub(super) fn has_cooled(&self, parameters: &ModelParameters) -> bool {
        self.was_hot && parameters.score(self.window_rows) < parameters.warm
    }

    /// Decides at the end of a window whether to divide the split by load, and schedules its
    /// division. `is_moving` is whether load has left another split for this one.
    pub(super) fn judge(&mut self, parameters: &ModelParameters, is_moving: bool) {
        let score = parameters.score(self.window_rows);
        self.obstacle = None;
        self.was_hot = score >= parameters.hot;
        if score < parameters.warm {
            self.watch = None;
            self.quiet_windows = self.quiet_windows.saturating_add(1);
            return;
        }
        self.quiet_windows = 0;
        let watch = self.watch.get_or_insert_default();
        if score >= parameters.hot && self.pending.is_none() {
            match watch.balance(parameters) {
                Balance::At(boundary) if boundary.key > self.start => {
                    self.pending =
                        Some(Pending { boundary, windows: parameters.delay_windows.saturating_add(1) });
                }
                Balance::SingleRow => self.obstacle = Some(Obstacle::SingleRow),
                Balance::Moving => self.obstacle = Some(Obstacle::MovingHotspot),
                Balance::Unknown if is_moving => self.obstacle = Some(Obstacle::MovingHotspot),
                Balance::At(_) | Balance::Unknown => {}
            }
        }
        watch.turn();
    }

    /// Counts down to the scheduled division, and returns its boundary if it is due.
    pub(super) fn due_boundary(&mut self) -> Option<Boundary> {
        let pending = self.pending.as_mut()?;
        pending.windows = pending.windows.saturating_sub(1);
        let is_due = pending.windows == 0;
        self.pending.take_if(|_| is_due).map(|pending| pending.boundary)
    }

    /// Returns the boundary for dividing a split that is too large, if it has one.
    pub(super) fn size_boundary(&self, parameters: &ModelParameters) -> Option<Boundary> {
        let is_large = self.bytes as f64 >= parameters.scaled_size();
        if is_large { self.middle(parameters.sampling.root_share) } else { None }
    }

    /// Whether the next split may be joined to this one: it was divided off by load, both have been
    /// quiet long enough, and together they are not too large.
    pub(super) fn may_join(&self, next: &Self, parameters: &ModelParameters) -> bool {
        let is_quiet =
            |split: &Self| split.quiet_windows >= parameters.quiet_windows && split.pending.is_none();
        next.origin == Origin::Load
            && is_quiet(self)
            && is_quiet(next)
            && ((self.bytes + next.bytes) as f64) < parameters.scaled_size()
    }

    /// Joins the next split to this one.
    pub(super) fn join(&mut self, next: Self, sampling: &Sampling) {
        self.rows += next.rows;
        self.bytes += next.bytes;
        self.samples.join(next.samples, sampling.size_keys);
    }

    /// Returns the boundary below which half of the bytes are; `None` if all rows have one key.
    fn middle(&self, root_share: f64) -> Option<Boundary> {
        let mut sorted: Vec<&Sample> = self.samples.rows.iter().collect();
        sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        middle(&sorted, false, root_share).filter(|boundary| boundary.key > self.start)
    }

    /// Splits off the part from `boundary` up; the samples determine how rows are shared.
    pub(super) fn divide(&mut self, boundary: Boundary, origin: Origin, server: usize) -> Self {
        let mut upper = Self::new(boundary.key, boundary.lead, origin, server);
        upper.inside_root = boundary.inside;
        let (rows, bytes) = self.samples.shares_below(&upper.start);
        let below = |share: f64, whole: u64| ((share * whole as f64).round() as u64).min(whole);
        let (rows, bytes) = (below(rows, self.rows), below(bytes, self.bytes));
        (upper.rows, upper.bytes) = (self.rows - rows, self.bytes - bytes);
        (self.rows, self.bytes) = (rows, bytes);
        (self.samples, upper.samples) = std::mem::take(&mut self.samples).divide(&upper.start);
        if let Some(pending) = self.pending.take() {
            let part = if pending.boundary.key >= upper.start { &mut upper } else { &mut *self };
            // A boundary at the very start of a part has nothing left to divide.
            if pending.boundary.key != part.start {
                part.pending = Some(pending);
            }
        }
        if let Some(watch) = self.watch.take() {
            (self.watch, upper.watch) = watch.divide(&upper.start);
        }
        (self.obstacle, self.quiet_windows) = (None, 0);
        upper
    }
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
