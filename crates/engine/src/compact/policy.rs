//! Decides which portions are worth merging, from the data that the log records about them.

use std::sync::Arc;

use crate::compact::expiry::{Expiry, partly_expired, split_expired};
use crate::compact::portions::{Portions, Scope, contains, deepest, depth, hull};
use evenkeel_model::units::ByteSize;
use evenkeel_store::log::{PortionEntry, Sequence};

/// Rules for merging portions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionPolicy {
    /// Maximum number of portions that may cover one key; if there are more, some are merged.
    pub max_depth: usize,
    /// Target size of a merged portion.
    pub target: ByteSize,
    /// Number of small neighbours in key order that triggers a merge. Fewer are merged once they
    /// fill three quarters of the target.
    pub fan_in: usize,
}

impl Default for CompactionPolicy {
    fn default() -> Self {
        Self { max_depth: 8, target: ByteSize::mib(64), fan_in: 64 }
    }
}

/// Work decided on for the portions of one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// Portions to be dropped unread: portions whose rows have all expired, and deletes that delete
    /// nothing.
    pub(super) expired: Vec<Arc<PortionEntry>>,
    /// Sets of portions, each to be merged into one run. No portion is in two sets.
    pub(super) merges: Vec<Merge>,
}

impl Decision {
    /// Whether there is nothing to do.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.expired.is_empty() && self.merges.is_empty()
    }
}

/// Portions of one partition that become one sorted run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Merge {
    /// The portions, oldest first.
    pub(super) portions: Vec<Arc<PortionEntry>>,
    /// Whether no older portion outside the set shares keys with it. If so, expired rows may be
    /// dropped, since they hide nothing.
    pub(super) hides_nothing: bool,
}

impl Merge {
    /// Bytes of the portions.
    #[must_use]
    pub(super) fn bytes(&self) -> u64 {
        self.portions.iter().map(|portion| portion.bytes).sum()
    }

    /// Rows of the portions, without deletes.
    #[must_use]
    pub(super) fn rows(&self) -> u64 {
        self.portions.iter().map(|portion| portion.data_rows()).sum()
    }

    /// Rows and deletes of the portions.
    #[must_use]
    pub(super) fn rows_and_deletes(&self) -> u64 {
        self.portions.iter().map(|portion| portion.rows).sum()
    }

    /// Whether deletes must survive the merge, because older rows outside the set may have their
    /// keys.
    #[must_use]
    pub(super) fn keeps_deletes(&self) -> bool {
        !self.hides_nothing && self.portions.iter().any(|portion| portion.deletes)
    }

    /// Age of the resulting run: the newest portion's.
    #[must_use]
    pub(super) fn sequence(&self) -> Option<Sequence> {
        self.portions.iter().map(|portion| portion.sequence).max()
    }
}

impl CompactionPolicy {
    /// Decides what to do now with `portions`, all of one partition. Carrying out the decision and
    /// deciding again terminates. At most `max_runs` overlapping portions are merged at one time.
    #[must_use]
    pub(super) fn decide(
        &self,
        portions: &[Arc<PortionEntry>],
        scope: Scope,
        expiry: Option<&Expiry>,
        max_runs: usize,
    ) -> Decision {
        let max_runs = max_runs.max(2);
        let (expired, kept) = split_expired(portions, expiry);
        let mut free = kept.clone();
        let mut merges = match scope {
            Scope::Everything => everything(&mut free, max_runs, self.target.0),
            Scope::Policy => {
                let mut merges = self.too_deep(&mut free, &kept, max_runs);
                merges.extend(self.too_small(&mut free, &kept, max_runs));
                merges
            }
        };
        merges.extend(partly_expired(&mut free, &kept, expiry, scope, max_runs));
        let hides_nothing = |set: &[Arc<PortionEntry>]| {
            let newest = set.iter().map(|portion| portion.sequence).max();
            let hull = hull(set);
            kept.iter().all(|other| {
                Some(other.sequence) > newest
                    || contains(set, other)
                    || hull.as_ref().is_none_or(|hull| !hull.overlaps(&other.key_range))
            })
        };
        let merges = merges
            .into_iter()
            .map(|mut set| {
                set.sort_by_key(|portion| portion.sequence);
                Merge { hides_nothing: hides_nothing(&set), portions: set }
            })
            .collect();
        Decision { expired, merges }
    }

    /// Sets whose merges reduce the depth of overlap to the limit.
    fn too_deep(&self, free: &mut Portions, all: &[Arc<PortionEntry>], max_runs: usize) -> Vec<Portions> {
        let mut merges: Vec<Portions> = Vec::new();
        while let Some(deepest) = deepest(free).filter(|covering| covering.len() > self.max_depth.max(1)) {
            let least = deepest.len() - self.max_depth.max(1) + 1;
            let window = cheapest_window(&deepest, least.min(max_runs), max_runs);
            let mut set = limited(closed(window, all), max_runs);
            if is_one_run(&set) {
                set = limited(closed(deepest.clone(), all), max_runs);
            }
            // Portions that are already in another merge wait for the next round.
            if set.iter().all(|portion| contains(free, portion)) && !is_one_run(&set) {
                free.retain(|portion| !contains(&set, portion));
                merges.push(set);
            } else {
                free.retain(|portion| !contains(&deepest, portion));
            }
        }
        merges
    }

    /// Ranges of neighbours in key order that are all small.
    fn too_small(&self, free: &mut Portions, all: &[Arc<PortionEntry>], max_runs: usize) -> Vec<Portions> {
        let mut merges = Vec::new();
        // A portion of a quarter of the target stays as it is. The others are sorted into tiers, so
        // that each row is written once per tier.
        let fan_in = self.fan_in.max(2);
        let mut bounds = vec![self.target.0 / 4];
        while let Some(smaller) = bounds.last().map(|bound| bound / fan_in as u64).filter(|bound| *bound > 0)
        {
            bounds.push(smaller);
        }
        let mut sorted = all.to_vec();
        sorted.sort_by(|a, b| (&a.key_range.min, a.sequence).cmp(&(&b.key_range.min, b.sequence)));
        for bound in bounds.into_iter().rev() {
            let small = |portion: &Arc<PortionEntry>| portion.bytes < bound && contains(free, portion);
            let windows: Vec<Portions> = sorted
                .chunk_by(|a, b| small(a) && small(b))
                .filter(|neighbours| neighbours.first().is_some_and(small))
                .flat_map(|neighbours| self.cut(neighbours))
                .collect();
            let largest = bound == self.target.0 / 4;
            let worth = |window: &Portions| {
                let bytes: u64 = window.iter().map(|portion| portion.bytes).sum();
                window.len() >= fan_in || (largest && window.len() > 1 && bytes >= self.target.0 / 4 * 3)
            };
            for window in windows.into_iter().filter(worth) {
                // If other portions lie between them in key and age, they are not contiguous, and
                // the depth of overlap decides.
                if depth(&window) <= max_runs
                    && closed(window.clone(), all).len() == window.len()
                    && !is_merged(&window)
                {
                    free.retain(|portion| !contains(&window, portion));
                    merges.push(window);
                }
            }
        }
        merges
    }

    /// Cuts a range of neighbours into windows of at most the target size.
    fn cut(&self, neighbours: &[Arc<PortionEntry>]) -> Vec<Portions> {
        let mut windows: Vec<Portions> = Vec::new();
        let mut bytes = 0;
        for portion in neighbours {
            match windows.last_mut() {
                Some(window) if bytes + portion.bytes <= self.target.0 => window.push(Arc::clone(portion)),
                _ => {
                    windows.push(vec![Arc::clone(portion)]);
                    bytes = 0;
                }
            }
            bytes += portion.bytes;
        }
        windows
    }
}

/// Whether the portions are parts of one run, whose rows and deletes may overlap. No merge changes
/// that.
fn is_one_run(set: &[Arc<PortionEntry>]) -> bool {
    set.windows(2).all(|pair| matches!(pair, [a, b] if a.sequence == b.sequence))
}

/// Whether a merge would leave the set as it is: the rows and the deletes of one run.
fn is_merged(set: &[Arc<PortionEntry>]) -> bool {
    let deletes = set.iter().filter(|portion| portion.deletes).count();
    is_one_run(set) && deletes <= 1 && set.len() - deletes <= 1
}

/// Adds every portion that must be merged with the set. A run has a single age, so portions between
/// portions of the set in key and age belong to it. So do portions of equal age, which are parts of
/// one run.
fn closed(mut set: Portions, all: &[Arc<PortionEntry>]) -> Portions {
    loop {
        let oldest = set.iter().map(|portion| portion.sequence).min();
        let newest = set.iter().map(|portion| portion.sequence).max();
        let (Some(hull), Some(oldest), Some(newest)) = (hull(&set), oldest, newest) else { return set };
        let between = all.iter().filter(|other| {
            (oldest..=newest).contains(&other.sequence)
                && hull.overlaps(&other.key_range)
                && !contains(&set, other)
        });
        let between: Vec<_> = between.cloned().collect();
        if between.is_empty() {
            return set;
        }
        set.extend(between);
    }
}

/// Limits a closed set to the overlap that may be merged at one time. If the set is deeper, returns
/// the cheapest part that is not: neighbours in age, which are closed too.
fn limited(mut set: Portions, max_runs: usize) -> Portions {
    if depth(&set) <= max_runs {
        return set;
    }
    set.sort_by_key(|portion| portion.sequence);
    let runs: Vec<&[Arc<PortionEntry>]> = set.chunk_by(|a, b| a.sequence == b.sequence).collect();
    let bytes = |runs: &&[&[Arc<PortionEntry>]]| -> u64 {
        runs.iter().flat_map(|run| run.iter()).map(|portion| portion.bytes).sum()
    };
    let cheapest = runs.windows(max_runs.max(2)).min_by_key(bytes).map(<[_]>::concat);
    cheapest.unwrap_or_else(|| set.clone())
}

/// Returns the window that writes the fewest bytes for each portion that it saves, among the
/// windows of `least` to `most` portions that are adjacent in age.
fn cheapest_window(covering: &[Arc<PortionEntry>], least: usize, most: usize) -> Portions {
    let mut best: Option<(f64, &[Arc<PortionEntry>])> = None;
    for width in least.max(2)..=most.min(covering.len()).max(least.max(2)) {
        for window in covering.windows(width) {
            let bytes: u64 = window.iter().map(|portion| portion.bytes).sum();
            let cost = bytes as f64 / (width - 1) as f64;
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, window));
            }
        }
    }
    best.map_or_else(|| covering.to_vec(), |(_, window)| window.to_vec())
}

/// Returns one set of everything or, if more portions overlap than may be merged at one time, sets
/// of neighbours in age. A single run is not merged unless its portions are many times smaller than
/// the target.
fn everything(free: &mut Portions, max_runs: usize, target: u64) -> Vec<Portions> {
    let mut all = std::mem::take(free);
    let one_run =
        all.iter().map(|portion| portion.sequence).collect::<std::collections::BTreeSet<_>>().len() < 2;
    let bytes: u64 = all.iter().map(|portion| portion.bytes).sum();
    let needless = all.len() as u64 > 2 * (bytes / target.max(1) + 1);
    if one_run && !needless {
        *free = all;
        return Vec::new();
    }
    if depth(&all) <= max_runs {
        return vec![all];
    }
    all.sort_by_key(|portion| portion.sequence);
    let runs: Vec<Portions> = all.chunk_by(|a, b| a.sequence == b.sequence).map(<[_]>::to_vec).collect();
    runs.chunks(max_runs).filter(|chunk| chunk.len() > 1).map(<[_]>::concat).collect()
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
