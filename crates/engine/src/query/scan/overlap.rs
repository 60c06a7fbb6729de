//! Finds the portions of a partition that share keys.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use evenkeel_model::table::KeyValue;
use evenkeel_store::log::PortionEntry;

/// Portions of one partition whose key ranges overlap, possibly through a third portion; the newest
/// is first. A group of one holds each key once.
pub type OverlapGroup = Vec<Arc<PortionEntry>>;

/// Groups portions of one partition. Two groups share no key, and groups are in key order. A group
/// of deletes alone has no visible rows and is left out.
pub(in crate::query) fn group_by_overlap(portions: &[Arc<PortionEntry>]) -> Vec<OverlapGroup> {
    let mut groups = group_all_by_overlap(portions);
    groups.retain(|group| group.iter().any(|portion| !portion.deletes));
    groups
}

/// Groups portions like [`group_by_overlap`], without leaving any out.
pub(in crate::query) fn group_all_by_overlap(portions: &[Arc<PortionEntry>]) -> Vec<OverlapGroup> {
    let mut sorted = portions.to_vec();
    sorted.sort_by(|a, b| (&a.key_range.min, a.sequence).cmp(&(&b.key_range.min, b.sequence)));
    let mut groups: Vec<OverlapGroup> = Vec::new();
    let mut end = None;
    for portion in sorted {
        let max = portion.key_range.max.clone();
        match (groups.last_mut(), end.as_mut()) {
            (Some(group), Some(reached)) if portion.key_range.min <= *reached => {
                if max > *reached {
                    *reached = max;
                }
                group.push(portion);
            }
            _ => {
                groups.push(vec![portion]);
                end = Some(max);
            }
        }
    }
    for group in &mut groups {
        group.sort_by_key(|portion| Reverse(portion.sequence));
    }
    groups
}

/// Packs overlapping portions of one partition into as few runs as the deepest overlap has
/// portions. Within a run, portions share no key and are in key order.
pub(in crate::query) fn pack_into_runs(portions: &[Arc<PortionEntry>]) -> Vec<Vec<Arc<PortionEntry>>> {
    let mut sorted = portions.to_vec();
    sorted.sort_by(|a, b| (&a.key_range.min, a.sequence).cmp(&(&b.key_range.min, b.sequence)));
    let mut runs: Vec<Vec<Arc<PortionEntry>>> = Vec::new();
    // Runs by their last key; the one that ends first is free first.
    let mut ends: BinaryHeap<Reverse<(Vec<KeyValue>, usize)>> = BinaryHeap::new();
    for portion in sorted {
        let free = ends.peek().is_some_and(|Reverse((end, _))| *end < portion.key_range.min);
        let run = if free { ends.pop().map(|Reverse((_, run))| run) } else { None };
        let run = run.unwrap_or(runs.len());
        ends.push(Reverse((portion.key_range.max.clone(), run)));
        match runs.get_mut(run) {
            Some(run) => run.push(portion),
            None => runs.push(vec![portion]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::*;
    use evenkeel_model::table::{KeyRange, KeyValue};
    use evenkeel_model::units::{PartitionId, Version};
    use evenkeel_store::log::Sequence;

    fn portion(version: u64, min: i64, max: i64) -> Arc<PortionEntry> {
        let key_range = KeyRange { min: vec![KeyValue::Int(min)], max: vec![KeyValue::Int(max)] };
        Arc::new(PortionEntry {
            path: format!("{version}"),
            partition: PartitionId(0),
            sequence: Sequence { version: Version(version), ordinal: 0 },
            rows: 1,
            bytes: 1,
            column_ranges: vec![],
            key_range,
            xxh3: String::new(),
            deletes: false,
        })
    }

    fn names(groups: &[Vec<Arc<PortionEntry>>]) -> Vec<Vec<&str>> {
        groups.iter().map(|group| group.iter().map(|p| p.path.as_str()).collect()).collect()
    }

    #[test]
    fn chains_of_overlaps_are_one_group_with_the_newest_first() {
        let portions =
            [portion(1, 0, 5), portion(2, 5, 9), portion(3, 10, 12), portion(4, 1, 2), portion(5, 12, 20)];
        assert_eq!(names(&group_by_overlap(&portions)), [vec!["4", "2", "1"], vec!["5", "3"]]);
        assert!(group_by_overlap(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn runs_are_as_many_as_the_deepest_overlap(ranges in proptest::collection::vec((0i64..40, 0i64..9), 1..30)) {
            let portions: Vec<_> =
                ranges.iter().zip(1..).map(|((min, width), version)| portion(version, *min, min + width)).collect();
            let runs = pack_into_runs(&portions);
            let ranges: Vec<_> = portions.iter().map(|p| (p.key_range.min.clone(), p.key_range.max.clone())).collect();
            let deepest = evenkeel_stats::overlap::depths(&ranges).into_iter().max();
            prop_assert!(Some(runs.len() as u64) == deepest);
            prop_assert!(runs.iter().map(Vec::len).sum::<usize>() == portions.len());
            for run in &runs {
                prop_assert!(run.windows(2).all(|pair| pair[0].key_range.max < pair[1].key_range.min));
            }
        }

        #[test]
        fn no_two_groups_share_a_key(ranges in proptest::collection::vec((0i64..40, 0i64..9), 1..20)) {
            let portions: Vec<_> =
                ranges.iter().zip(1..).map(|((min, width), version)| portion(version, *min, min + width)).collect();
            let groups = group_by_overlap(&portions);
            let count: usize = groups.iter().map(Vec::len).sum();
            prop_assert!(count == portions.len());
            for (index, group) in groups.iter().enumerate() {
                for other in groups.iter().skip(index + 1) {
                    for (a, b) in group.iter().flat_map(|a| other.iter().map(move |b| (a, b))) {
                        prop_assert!(!a.key_range.overlaps(&b.key_range) && a.key_range.max < b.key_range.min);
                    }
                }
            }
        }
    }
}
