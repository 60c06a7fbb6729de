//! An ordered key space: of a table with everything interleaved in it, or of an index.

use serde::Serialize;

use crate::simulate::splits::sample::{Balance, Boundary, Sample, Samples, SplitMix, Watch, middle};
use crate::simulate::splits::{ModelParameters, Obstacle, Sampling};
use evenkeel_stats::numbering::prefix;

/// Key of a row, as bytes that sort like the key.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// Whole key.
    pub bytes: &'a [u8],
    /// Length of the first column.
    pub lead: usize,
    /// Length of the part that is the key of the row's root; that of the whole key if the row is a
    /// root itself.
    pub root: usize,
}

/// Key at which a split begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartKey {
    /// Whole key, or the part that distinguishes it from the preceding key; empty if the split
    /// begins before all keys.
    pub bytes: Vec<u8>,
    /// Length of the first column.
    pub lead: usize,
}

impl StartKey {
    /// Returns the first column.
    #[must_use]
    pub fn first_column(&self) -> &[u8] {
        self.bytes.get(..self.lead).unwrap_or(&self.bytes)
    }
}

/// Half-open range of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key of the range.
    pub start: Vec<u8>,
    /// First key after the range; `None` if the range has no end.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Returns the range of all keys that begin with `prefix`.
    #[must_use]
    pub fn of_prefix(prefix: &[u8]) -> Self {
        let raised = prefix.iter().rposition(|byte| *byte < u8::MAX);
        let end = raised.and_then(|at| {
            let mut end = prefix.get(..=at)?.to_vec();
            *end.last_mut()? += 1;
            Some(end)
        });
        Self { start: prefix.to_vec(), end }
    }
}

/// Origin of a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Origin {
    /// Present from the beginning.
    Given,
    Size,
    Load,
}

/// A division that has been decided but not carried out.
#[derive(Debug, Clone)]
struct Pending {
    boundary: Boundary,
    /// Number of window ends until it takes effect, including that of the window in which it was
    /// decided.
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
    /// First column of the key at which the split begins, as text; `None` for the first split,
    /// which begins before all keys.
    pub starts_at: Option<String>,
    /// Key at which the split begins.
    #[serde(skip)]
    pub start: StartKey,
    /// Number of rows.
    pub rows: u64,
    /// Size of the rows, in bytes.
    pub bytes: u64,
    /// Whether the lower boundary separates rows of one root.
    pub inside_root: bool,
}

/// Changes to a key space at the end of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) by_size: u64,
    pub(super) by_load: u64,
    pub(super) merges: u64,
}

/// Splits in key order: each extends to the start of the next, so there are no gaps.
#[derive(Debug, Clone)]
pub struct KeySpace {
    splits: Vec<Split>,
    /// Whether the splits never change.
    fixed: bool,
    sampling: Sampling,
    last: usize,
}

impl Split {
    fn new(start: Box<[u8]>, lead: usize, origin: Origin, server: usize) -> Self {
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

    #[cfg(test)]
    pub(super) fn start(&self) -> &[u8] {
        &self.start
    }

    fn is_at_most(&self, key: &[u8], head: u64) -> bool {
        self.head < head || self.head == head && *self.start <= *key
    }

    /// Returns the boundary below which half of the bytes are; `None` if all rows have one key.
    fn middle(&self, root_share: f64) -> Option<Boundary> {
        let mut sorted: Vec<&Sample> = self.samples.rows.iter().collect();
        sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        middle(&sorted, false, root_share).filter(|boundary| boundary.key > self.start)
    }

    /// Splits off the part from `boundary` up; the samples determine how rows are shared.
    fn divide(&mut self, boundary: Boundary, origin: Origin, server: usize) -> Self {
        let mut upper = Self::new(boundary.key, boundary.lead, origin, server);
        upper.inside_root = boundary.inside;
        let (rows, bytes) = self.samples.shares_below(&upper.start);
        let below = |share: f64, whole: u64| ((share * whole as f64).round() as u64).min(whole);
        let (rows, bytes) = (below(rows, self.rows), below(bytes, self.bytes));
        (upper.rows, upper.bytes) = (self.rows - rows, self.bytes - bytes);
        (self.rows, self.bytes) = (rows, bytes);
        (self.samples, upper.samples) = std::mem::take(&mut self.samples).divide(&upper.start);
        if let Some(pending) = self.pending.take() {
            let part = if pending.boundary.key > upper.start { &mut upper } else { &mut *self };
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

impl KeySpace {
    /// Creates a key space that is divided at `boundaries` from the beginning, with its splits
    /// assigned to the servers in turn. If it is `fixed`, it never changes.
    #[must_use]
    pub fn new(mut boundaries: Vec<StartKey>, fixed: bool, parameters: &ModelParameters) -> Self {
        let (servers, sampling) = (parameters.servers, parameters.sampling);
        boundaries.sort_unstable();
        boundaries.dedup();
        let boundaries = boundaries.into_iter().filter(|start| !start.bytes.is_empty());
        let starts = std::iter::once(StartKey::default()).chain(boundaries);
        let splits = starts.enumerate().map(|(number, start)| {
            Split::new(start.bytes.into_boxed_slice(), start.lead, Origin::Given, number % servers.max(1))
        });
        Self { splits: splits.collect(), fixed, sampling, last: 0 }
    }

    /// Returns the number of splits.
    #[must_use]
    pub fn len(&self) -> usize {
        self.splits.len()
    }

    /// Always false: there is at least one split.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.splits.is_empty()
    }

    /// Returns the figures of the splits, in key order.
    pub fn figures(&self) -> impl Iterator<Item = SplitFigures> {
        self.splits.iter().map(|split| SplitFigures {
            starts_at: None,
            start: StartKey { bytes: split.start.to_vec(), lead: split.lead },
            rows: split.rows,
            bytes: split.bytes,
            inside_root: split.inside_root,
        })
    }

    /// Returns the number of splits that a read of these ranges touches.
    #[must_use]
    pub fn touched(&self, ranges: &[KeyRange]) -> usize {
        let mut touched = vec![false; self.splits.len()];
        for range in ranges {
            let first = self.place_of(&range.start);
            let end = match &range.end {
                Some(end) => self.splits.partition_point(|split| split.start.as_ref() < end.as_slice()),
                None => self.splits.len(),
            };
            touched.iter_mut().take(end.max(first + 1)).skip(first).for_each(|touched| *touched = true);
        }
        touched.into_iter().filter(|touched| *touched).count()
    }

    fn place_of(&self, key: &[u8]) -> usize {
        let head = prefix(key);
        self.splits.partition_point(|split| split.is_at_most(key, head)).saturating_sub(1)
    }

    /// Inserts a row. Returns whether its split is new to the transaction.
    #[inline]
    pub(super) fn insert(
        &mut self,
        key: Key<'_>,
        bytes: u32,
        transaction: u64,
        random: &mut SplitMix,
    ) -> bool {
        let place = self.find(key.bytes);
        let Some(split) = self.splits.get_mut(place) else { return false };
        split.rows += 1;
        split.bytes += u64::from(bytes);
        split.window_rows += 1;
        if !self.fixed {
            if split.samples.wants() {
                split.samples.add(Sample::of(key, bytes), self.sampling.size_keys, random);
            }
            if let Some(watch) = split.watch.as_mut() {
                watch.see(key, self.sampling.load_keys, random);
            }
        }
        std::mem::replace(&mut split.last_transaction, transaction) != transaction
    }

    /// Returns the position of the split of a key, often that of the previous key.
    #[inline]
    fn find(&mut self, key: &[u8]) -> usize {
        let head = prefix(key);
        let here = self.splits.get(self.last).is_some_and(|split| split.is_at_most(key, head));
        let next = self.splits.get(self.last + 1);
        if !here || next.is_some_and(|split| split.is_at_most(key, head)) {
            self.last = self.splits.partition_point(|split| split.is_at_most(key, head)).saturating_sub(1);
        }
        self.last
    }

    pub(super) fn splits(&self) -> &[Split] {
        &self.splits
    }

    pub(super) fn splits_mut(&mut self) -> &mut [Split] {
        &mut self.splits
    }

    /// Returns the rows of the window in splits that are too hot and that dividing does not cool,
    /// each with the reason.
    pub(super) fn stuck(&self) -> impl Iterator<Item = (Obstacle, u64)> {
        self.splits.iter().filter_map(|split| Some((split.obstacle?, split.window_rows)))
    }

    /// Decides at the end of a window which splits to divide by load, and schedules their division.
    pub(super) fn judge(&mut self, parameters: &ModelParameters) {
        if self.fixed {
            return;
        }
        // Load that leaves one split for another is moving, even if no split sees it for two
        // windows.
        let left_one = self
            .splits
            .iter()
            .any(|split| split.was_hot && parameters.score(split.window_rows) < parameters.warm);
        let all: u64 = self.splits.iter().map(|split| split.window_rows).sum();
        for split in &mut self.splits {
            let score = parameters.score(split.window_rows);
            split.obstacle = None;
            split.was_hot = score >= parameters.hot;
            if score < parameters.warm {
                split.watch = None;
                split.quiet_windows = split.quiet_windows.saturating_add(1);
                continue;
            }
            split.quiet_windows = 0;
            let watch = split.watch.get_or_insert_default();
            if score >= parameters.hot && split.pending.is_none() {
                match watch.balance(parameters) {
                    Balance::At(boundary) if boundary.key > split.start => {
                        split.pending =
                            Some(Pending { boundary, windows: parameters.delay_windows.saturating_add(1) });
                    }
                    Balance::SingleRow => split.obstacle = Some(Obstacle::SingleRow),
                    Balance::Moving => split.obstacle = Some(Obstacle::MovingHotspot),
                    Balance::Unknown if left_one && split.window_rows * 2 >= all => {
                        split.obstacle = Some(Obstacle::MovingHotspot)
                    }
                    Balance::At(_) | Balance::Unknown => {}
                }
            }
            watch.turn();
        }
    }

    /// Divides and joins splits at the end of a window. `server` returns the server of a new split.
    pub(super) fn change(
        &mut self,
        parameters: &ModelParameters,
        mut server: impl FnMut(usize) -> usize,
    ) -> Changes {
        let mut changes = Changes::default();
        if self.fixed {
            return changes;
        }
        let size = parameters.scaled_size();
        let mut divided = Vec::with_capacity(self.splits.len() + 4);
        for mut split in std::mem::take(&mut self.splits) {
            let mut above = Vec::new();
            if let Some(pending) = split.pending.as_mut() {
                pending.windows = pending.windows.saturating_sub(1);
            }
            if let Some(pending) = split.pending.take_if(|pending| pending.windows == 0) {
                let to = server(split.server);
                above.push(split.divide(pending.boundary, Origin::Load, to));
                changes.by_load += 1;
            }
            // A window may add more than one split can hold. The lowest part is on top of the
            // stack.
            above.push(split);
            while let Some(mut part) = above.pop() {
                let boundary = if part.bytes as f64 >= size {
                    part.middle(parameters.sampling.root_share)
                } else {
                    None
                };
                match boundary {
                    Some(boundary) => {
                        let to = server(part.server);
                        above.push(part.divide(boundary, Origin::Size, to));
                        above.push(part);
                        changes.by_size += 1;
                    }
                    None => divided.push(part),
                }
            }
        }
        self.splits = divided;
        changes.merges = self.join_quiet(parameters);
        self.last = 0;
        changes
    }

    /// Joins neighbours that were divided by load, once both have been quiet long enough.
    fn join_quiet(&mut self, parameters: &ModelParameters) -> u64 {
        let quiet =
            |split: &Split| split.quiet_windows >= parameters.quiet_windows && split.pending.is_none();
        let mut joined: Vec<Split> = Vec::with_capacity(self.splits.len());
        let mut merges = 0;
        for split in std::mem::take(&mut self.splits) {
            let fits = |last: &&mut Split| {
                split.origin == Origin::Load
                    && quiet(last)
                    && quiet(&split)
                    && ((last.bytes + split.bytes) as f64) < parameters.scaled_size()
            };
            match joined.last_mut().filter(fits) {
                Some(last) => {
                    last.rows += split.rows;
                    last.bytes += split.bytes;
                    last.samples.join(split.samples, parameters.sampling.size_keys);
                    merges += 1;
                }
                None => joined.push(split),
            }
        }
        self.splits = joined;
        merges
    }

    /// Starts the next window.
    pub(super) fn turn(&mut self) {
        self.splits.iter_mut().for_each(|split| split.window_rows = 0);
    }
}
