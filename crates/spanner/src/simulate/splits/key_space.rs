//! An ordered key space: of a table with everything interleaved in it, or of an index.

use crate::simulate::splits::key::{Key, KeyRange, StartKey};
use crate::simulate::splits::parameters::{ModelParameters, Sampling};
use crate::simulate::splits::random::SplitMix;
use crate::simulate::splits::split::{Obstacle, Origin, Split, SplitFigures};
use evenkeel_stats::numbering::prefix;

/// Changes to a key space at the end of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) by_size: u64,
    pub(super) by_load: u64,
    pub(super) merges: u64,
}

/// Splits in key order: each extends to the start of the next, so there are no gaps.
#[derive(Debug, Clone)]
pub(crate) struct KeySpace {
    splits: Vec<Split>,
    /// Whether the splits never change, as those of hash partitions.
    fixed: bool,
    sampling: Sampling,
    last: usize,
}

impl KeySpace {
    /// Creates a key space that is divided at `boundaries` from the beginning, with its splits
    /// assigned to the servers in turn. If it is `fixed`, it never changes.
    pub(crate) fn new(mut boundaries: Vec<StartKey>, fixed: bool, parameters: &ModelParameters) -> Self {
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
    pub(crate) fn split_count(&self) -> usize {
        self.splits.len()
    }

    /// Returns the figures of the splits, in key order.
    pub(super) fn figures(&self) -> impl Iterator<Item = SplitFigures> {
        self.splits.iter().map(Split::figures)
    }

    /// Returns the number of splits that a read of these ranges touches.
    pub(crate) fn touched(&self, ranges: &[KeyRange]) -> usize {
        let mut touched = vec![false; self.splits.len()];
        for range in ranges {
            let first = self.place_of(&range.start, prefix(&range.start));
            let end = match &range.end {
                Some(end) => self.splits.partition_point(|split| split.start() < end.as_slice()),
                None => self.splits.len(),
            };
            touched.iter_mut().take(end.max(first + 1)).skip(first).for_each(|touched| *touched = true);
        }
        touched.into_iter().filter(|touched| *touched).count()
    }

    /// Returns the position of the split of a key, whose first bytes are `head`.
    fn place_of(&self, key: &[u8], head: u64) -> usize {
        self.splits.partition_point(|split| split.begins_by(key, head)).saturating_sub(1)
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
        let sampling = (!self.fixed).then_some(&self.sampling);
        let split = self.splits.get_mut(place);
        split.is_some_and(|split| split.insert(key, bytes, transaction, sampling, random))
    }

    /// Returns the position of the split of a key, often the previous key's.
    #[inline]
    fn find(&mut self, key: &[u8]) -> usize {
        let head = prefix(key);
        let here = self.splits.get(self.last).is_some_and(|split| split.begins_by(key, head));
        let next = self.splits.get(self.last + 1);
        if !here || next.is_some_and(|split| split.begins_by(key, head)) {
            self.last = self.place_of(key, head);
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
        self.splits.iter().filter_map(Split::stuck)
    }

    /// Decides at the end of a window which splits to divide by load, and schedules their division.
    pub(super) fn judge(&mut self, parameters: &ModelParameters) {
        if self.fixed {
            return;
        }
        // Load that leaves one split for another is moving, even if no split sees it for two
        // windows.
        let left_one = self.splits.iter().any(|split| split.has_cooled(parameters));
        let all: u64 = self.splits.iter().map(|split| split.window_rows).sum();
        for split in &mut self.splits {
            let is_moving = left_one && split.window_rows * 2 >= all;
            split.judge(parameters, is_moving);
        }
    }

    /// Divides and joins splits at the end of a window. `server` returns the server of a new split,
    /// given the divided one's.
    pub(super) fn change(
        &mut self,
        parameters: &ModelParameters,
        mut server: impl FnMut(usize) -> usize,
    ) -> Changes {
        let mut changes = Changes::default();
        if self.fixed {
            return changes;
        }
        let mut divided = Vec::with_capacity(self.splits.len() + 4);
        for mut split in std::mem::take(&mut self.splits) {
            let mut above = Vec::new();
            if let Some(boundary) = split.due_boundary() {
                let to = server(split.server);
                above.push(split.divide(boundary, Origin::Load, to));
                changes.by_load += 1;
            }
            // A window may add more than one split can hold. The lowest part is on top of the
            // stack.
            above.push(split);
            while let Some(mut part) = above.pop() {
                let Some(boundary) = part.size_boundary(parameters) else {
                    divided.push(part);
                    continue;
                };
                let to = server(part.server);
                above.push(part.divide(boundary, Origin::Size, to));
                above.push(part);
                changes.by_size += 1;
            }
        }
        self.splits = divided;
        changes.merges = self.join_quiet(parameters);
        self.last = 0;
        changes
    }

    /// Joins neighbours that were divided by load, once both have been quiet long enough. Returns
    /// the number of splits joined.
    fn join_quiet(&mut self, parameters: &ModelParameters) -> u64 {
        let before = self.splits.len();
        let mut joined: Vec<Split> = Vec::with_capacity(before);
        for split in std::mem::take(&mut self.splits) {
            match joined.last_mut().filter(|last| last.may_join(&split, parameters)) {
                Some(last) => last.join(split, &parameters.sampling),
                None => joined.push(split),
            }
        }
        self.splits = joined;
        (before - self.splits.len()) as u64
    }

    /// Starts the next window.
    pub(super) fn turn(&mut self) {
        self.splits.iter_mut().for_each(|split| split.window_rows = 0);
    }
}
