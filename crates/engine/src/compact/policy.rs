//! Decides which portions are worth merging, from the data that the log records about them.

use std::sync::Arc;

use crate::compact::expiry::{Expiry, partly_expired, split_expired};
use crate::compact::portions::{Portions, Scope, contains, deepest, depth, hull};
use evenkeel_model::units::ByteSize;
use evenkeel_store::log::{PortionEntry, Sequence};

/// Rules for merging portions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionPolicy {
    /// Most portions that may cover one key; if there are more, some are merged.
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
mod tests {
    use proptest::prelude::{Just, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use super::*;
    use evenkeel_model::table::{KeyRange, KeyValue};
    use evenkeel_model::units::{PartitionId, Version};
    use evenkeel_stats::overlap::depths;

    const TARGET: u64 = 6400;

    fn policy() -> CompactionPolicy {
        CompactionPolicy { max_depth: 3, target: ByteSize(TARGET), fan_in: 4 }
    }

    fn portion(version: u64, min: i64, max: i64, bytes: u64) -> Arc<PortionEntry> {
        let range =
            |min: i64, max: i64| KeyRange { min: vec![KeyValue::Int(min)], max: vec![KeyValue::Int(max)] };
        Arc::new(PortionEntry {
            path: format!("v{version} {min}..{max}"),
            partition: PartitionId(0),
            sequence: Sequence { version: Version(version), ordinal: 0 },
            rows: bytes / 10,
            bytes,
            column_ranges: vec![range(min, max)],
            key_range: range(min, max),
            xxh3: String::new(),
            deletes: false,
        })
    }

    fn versions(merges: &[Merge]) -> Vec<Vec<u64>> {
        merges.iter().map(|merge| merge.portions.iter().map(|p| p.sequence.version.0).collect()).collect()
    }

    fn decided(portions: &[Arc<PortionEntry>]) -> Vec<Vec<u64>> {
        versions(&policy().decide(portions, Scope::Policy, None, 100).merges)
    }

    #[test]
    fn decisions_by_table() {
        let many = |n: u64, bytes: u64| {
            (0..n).map(|i| portion(i, i as i64 * 10, i as i64 * 10 + 5, bytes)).collect()
        };
        let cases: [(&str, Portions, Vec<Vec<u64>>); 9] = [
            ("nothing", vec![], vec![]),
            ("one portion", vec![portion(1, 0, 9, 1)], vec![]),
            (
                "three deep is allowed",
                vec![portion(1, 0, 9, 9), portion(2, 0, 9, 9), portion(3, 0, 9, 9)],
                vec![],
            ),
            (
                "four deep: the cheapest neighbours in age, and as many as are as cheap",
                vec![
                    portion(1, 0, 9, 900),
                    portion(2, 0, 9, 800),
                    portion(3, 0, 9, 10),
                    portion(4, 0, 9, 10),
                ],
                vec![vec![3, 4]],
            ),
            (
                "portions between in age and key belong to the set",
                vec![
                    portion(1, 0, 9, 500),
                    portion(2, 0, 4, 1),
                    portion(3, 20, 29, 1),
                    portion(4, 0, 29, 1),
                    portion(5, 0, 9, 900),
                ],
                vec![vec![2, 3, 4]],
            ),
            ("neighbours without overlap stay while they are few", many(3, 300), vec![]),
            ("and are merged once they are many", many(4, 300), vec![vec![0, 1, 2, 3]]),
            ("or once they fill the target", many(3, 1590), vec![]),
            ("large ones stay", many(9, TARGET / 4), vec![]),
        ];
        for (name, portions, expected) in cases {
            assert_eq!(decided(&portions), expected, "{name}");
        }
        // Two are enough if they fill three quarters of the target; bounds are tried from the
        // smallest.
        let filled = [
            portion(1, 0, 5, 1590),
            portion(2, 10, 15, 1590),
            portion(3, 20, 25, 1590),
            portion(4, 30, 35, 100),
        ];
        assert_eq!(decided(&filled), [vec![1, 2, 3, 4]]);
    }

    #[test]
    fn everything_becomes_one_run_and_a_run_stays() {
        let portions = [portion(1, 0, 9, 1), portion(2, 20, 29, 1), portion(3, 40, 49, 1)];
        let all = policy().decide(&portions, Scope::Everything, None, 100);
        assert_eq!(versions(&all.merges), [vec![1, 2, 3]]);
        let run = [portion(7, 0, 9, TARGET), portion(7, 20, 29, 1)];
        assert!(policy().decide(&run, Scope::Everything, None, 100).is_empty());
        let crumbs = [portion(7, 0, 9, 1), portion(7, 20, 29, 1), portion(7, 30, 39, 1)];
        assert_eq!(versions(&policy().decide(&crumbs, Scope::Everything, None, 100).merges), [vec![7, 7, 7]]);
        let deep: Vec<_> = (0..7).map(|version| portion(version, 0, 9, 1)).collect();
        let chunks = policy().decide(&deep, Scope::Everything, None, 3);
        assert_eq!(versions(&chunks.merges), [vec![0, 1, 2], vec![3, 4, 5]]);
    }

    #[test]
    fn expired_portions_go_unless_they_would_uncover_what_they_replaced() {
        let expiry = Expiry { column: 0, oldest_kept: KeyValue::Int(50) };
        let expired = |portions: &[Arc<PortionEntry>]| {
            let decision = policy().decide(portions, Scope::Policy, Some(&expiry), 100);
            let dropped: Vec<u64> = decision.expired.iter().map(|p| p.sequence.version.0).collect();
            (dropped, versions(&decision.merges))
        };
        assert_eq!(expired(&[portion(1, 0, 49, 1), portion(2, 10, 50, 1)]), (vec![1], vec![vec![2]]));
        // Portion 1 is partly alive. Portion 2 may hide rows of it, so it is not dropped yet.
        assert_eq!(expired(&[portion(1, 0, 90, 1), portion(2, 10, 40, 1)]), (vec![], vec![vec![1]]));
        assert_eq!(expired(&[portion(1, 10, 40, 1), portion(2, 0, 49, 1)]), (vec![1, 2], vec![]));
        assert_eq!(expired(&[portion(1, 45, 90, 1)]), (vec![], vec![]));
        let all = policy().decide(&[portion(1, 45, 90, 1)], Scope::Everything, Some(&expiry), 100);
        assert!(all.merges[0].hides_nothing);
    }

    #[test]
    fn deletes_go_once_nothing_older_is_left() {
        let deletes = |version: u64, min: i64, max: i64| {
            Arc::new(PortionEntry { deletes: true, ..portion(version, min, max, 10).as_ref().clone() })
        };
        let dropped = |portions: &[Arc<PortionEntry>]| {
            let decision = policy().decide(portions, Scope::Policy, None, 100);
            decision.expired.iter().map(|p| p.sequence.version.0).collect::<Vec<_>>()
        };
        assert_eq!(dropped(&[deletes(1, 0, 9)]), [1]);
        assert_eq!(dropped(&[portion(1, 0, 9, 1), deletes(2, 5, 20)]), [0u64; 0]);
        assert_eq!(dropped(&[portion(1, 0, 9, 1), deletes(2, 10, 20)]), [2]);
        // Deletes affect neither newer rows nor rows of the same commit.
        assert_eq!(dropped(&[deletes(1, 0, 9), portion(1, 0, 9, 1), portion(2, 0, 9, 1)]), [1]);
        assert_eq!(dropped(&[deletes(1, 0, 9), deletes(2, 0, 9)]), [1, 2]);
        // A merge of new portions keeps them as long as an older one shares keys.
        let old = portion(1, 0, 9, TARGET);
        let more = [old, deletes(2, 0, 9), portion(3, 0, 9, 10), portion(4, 0, 9, 10)];
        let merges = policy().decide(&more, Scope::Policy, None, 100).merges;
        assert_eq!(versions(&merges), [vec![2, 3, 4]]);
        assert!(merges[0].keeps_deletes());
        let all = policy().decide(&more, Scope::Everything, None, 100).merges;
        assert!(!all[0].keeps_deletes());
        // Rows and deletes of one run are as merged as can be.
        let run = [portion(1, 0, 9, TARGET), portion(5, 0, 9, TARGET * 3 / 8), deletes(5, 0, 9)];
        assert!(policy().decide(&run, Scope::Policy, None, 100).is_empty());
    }

    /// Applies a decision to the metadata, as if no key occurred twice.
    fn carry_out(portions: &mut Vec<Arc<PortionEntry>>, decision: &Decision, written: &mut u64) {
        portions.retain(|portion| !contains(&decision.expired, portion));
        for merge in &decision.merges {
            portions.retain(|portion| !contains(&merge.portions, portion));
            let (deletes, rows): (Portions, Portions) =
                merge.portions.iter().cloned().partition(|portion| portion.deletes);
            if let Some(hull) = hull(&deletes).filter(|_| merge.keeps_deletes()) {
                let bytes = deletes.iter().map(|portion| portion.bytes).sum();
                let (KeyValue::Int(min), KeyValue::Int(max)) = (&hull.min[0], &hull.max[0]) else { panic!() };
                let of_run = portion(merge.sequence().unwrap().version.0, *min, *max, bytes);
                portions.push(Arc::new(PortionEntry { deletes: true, ..of_run.as_ref().clone() }));
            }
            let Some(hull) = hull(&rows) else { continue };
            let (KeyValue::Int(min), KeyValue::Int(max)) = (&hull.min[0], &hull.max[0]) else { panic!() };
            let pieces = (merge.bytes() / TARGET).max(1).min((max - min).max(1) as u64);
            let width = (max - min) / pieces as i64;
            for piece in 0..pieces as i64 {
                let end = if piece + 1 == pieces as i64 { *max } else { min + (piece + 1) * width - 1 };
                portions.push(portion(
                    merge.sequence().unwrap().version.0,
                    min + piece * width,
                    end.max(min + piece * width),
                    merge.bytes() / pieces,
                ));
            }
            *written += merge.bytes();
        }
    }

    /// Bytes rewritten per ingested byte, and the greatest depth left after any batch.
    fn amplification(batches: u64, batch: impl Fn(u64) -> Arc<PortionEntry>) -> (f64, u64) {
        let policy = CompactionPolicy { max_depth: 8, target: ByteSize(TARGET), fan_in: 64 };
        let (mut portions, mut came, mut written, mut deepest) = (Vec::new(), 0, 0, 0);
        for version in 0..batches {
            let new = batch(version);
            came += new.bytes;
            portions.push(new);
            loop {
                let decision = policy.decide(&portions, Scope::Policy, None, 100);
                if decision.is_empty() {
                    break;
                }
                carry_out(&mut portions, &decision, &mut written);
            }
            let ranges: Vec<_> =
                portions.iter().map(|p| (p.key_range.min.clone(), p.key_range.max.clone())).collect();
            deepest = deepest.max(depths(&ranges).into_iter().max().unwrap());
        }
        (written as f64 / came as f64, deepest)
    }

    #[test]
    fn appended_data_is_hardly_rewritten_and_scattered_data_is() {
        let appended = amplification(300, |v| portion(v, v as i64 * 1000, v as i64 * 1000 + 999, 200));
        let late = amplification(300, |v| portion(v, v as i64 * 1000 - 1500, v as i64 * 1000 + 999, 200));
        let scattered = amplification(300, |v| portion(v, 0, 1_000_000, 200));
        println!("appended {appended:?}, with late rows {late:?}, scattered {scattered:?}");
        assert!(appended.0 <= 1.0, "{appended:?}");
        assert!(late.0 <= 1.5, "{late:?}");
        assert!(scattered.0 > 2.0 && scattered.0 < 8.0, "{scattered:?}");
        assert!(appended.1 == 1 && late.1 <= 8 && scattered.1 <= 8);
    }

    proptest! {
        #[test]
        fn every_merge_keeps_the_order_of_ages_and_asking_ends(
            shapes in proptest::collection::vec(
                (0i64..60, 0i64..30, prop_oneof![1u64..50, Just(2000u64), Just(30_000u64)], proptest::bool::weighted(0.25)),
                1..40
            ),
            max_runs in 2usize..6,
            everything in proptest::prelude::any::<bool>(),
            max_depth in 1usize..5,
            oldest_kept in proptest::option::of(0i64..60),
        ) {
            let of_shape = |((min, width, bytes, deletes), version): (&(i64, i64, u64, bool), u64)| {
                let rows = portion(version, *min, min + width, *bytes);
                Arc::new(PortionEntry { deletes: *deletes, ..rows.as_ref().clone() })
            };
            let mut portions: Vec<_> = shapes.iter().zip(1..).map(of_shape).collect();
            let has_deletes = shapes.iter().any(|shape| shape.3);
            let scope = if everything { Scope::Everything } else { Scope::Policy };
            let policy = || CompactionPolicy { max_depth, ..policy() };
            let expiry = oldest_kept.map(|kept| Expiry { column: 0, oldest_kept: KeyValue::Int(kept) });
            let mut rounds = 0;
            loop {
                let decision = policy().decide(&portions, scope, expiry.as_ref(), max_runs);
                if decision.is_empty() { break; }
                let mut seen = decision.expired.clone();
                for merge in &decision.merges {
                    for member in &merge.portions {
                        prop_assert!(!contains(&seen, member), "a portion in two sets");
                        seen.push(Arc::clone(member));
                    }
                    let hull = hull(&merge.portions).unwrap();
                    let deep = deepest(&merge.portions).unwrap().len();
                    // The rows and the deletes of a run overlap.
                    let most = max_runs * if has_deletes { 2 } else { 1 };
                    prop_assert!(deep <= most, "{deep} runs at one time, {max_runs} are allowed");
                    let (oldest, newest) = (merge.portions[0].sequence, merge.sequence().unwrap());
                    let outside = |other: &&Arc<PortionEntry>| {
                        !contains(&merge.portions, other) && !contains(&decision.expired, other)
                    };
                    for other in portions.iter().filter(outside) {
                        let between = other.sequence > oldest && other.sequence < newest;
                        prop_assert!(!(between && hull.overlaps(&other.key_range)), "{} is torn", other.path);
                    }
                }
                let mut written = 0;
                carry_out(&mut portions, &decision, &mut written);
                rounds += 1;
                // Rewriting partly expired portions changes nothing here, since no rows are
                // dropped.
                if expiry.is_some() && rounds > 3 { break; }
                prop_assert!(rounds < 200, "it does not end");
            }
            if expiry.is_none() && !everything {
                let ranges: Vec<_> =
                    portions.iter().map(|p| (p.key_range.min.clone(), p.key_range.max.clone())).collect();
                // The rows and the deletes of one run may overlap.
                let most = if has_deletes { max_depth.max(2) } else { max_depth };
                prop_assert!(depths(&ranges).into_iter().max().unwrap_or(0) <= most as u64);
            }
            if expiry.is_none() && everything {
                let ages: std::collections::BTreeSet<_> = portions.iter().map(|p| p.sequence).collect();
                // Of deletes alone nothing is left.
                let has_rows = shapes.iter().any(|shape| !shape.3);
                prop_assert_eq!(ages.len(), usize::from(has_rows));
            }
        }
    }
}
