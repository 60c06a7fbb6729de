//! Sets of portions of one partition, for compaction.

use std::sync::Arc;

use evenkeel_model::table::KeyRange;
use evenkeel_store::log::PortionEntry;

pub(super) type Portions = Vec<Arc<PortionEntry>>;

/// Scope of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Only the merges that the [`CompactionPolicy`](crate::compact::CompactionPolicy) finds
    /// worthwhile.
    Policy,
    /// Everything, into one sorted run per partition.
    Everything,
}

pub(super) fn contains(set: &[Arc<PortionEntry>], portion: &Arc<PortionEntry>) -> bool {
    set.iter().any(|other| Arc::ptr_eq(other, portion))
}

/// Key range from the smallest first key to the largest last key of the set.
pub(super) fn hull(set: &[Arc<PortionEntry>]) -> Option<KeyRange> {
    let min = set.iter().map(|portion| &portion.key_range.min).min()?;
    let max = set.iter().map(|portion| &portion.key_range.max).max()?;
    Some(KeyRange { min: min.clone(), max: max.clone() })
}

/// Portions that cover the most covered key, oldest first.
pub(super) fn deepest(portions: &[Arc<PortionEntry>]) -> Option<Portions> {
    let mut begins: Vec<&Arc<PortionEntry>> = portions.iter().collect();
    begins.sort_by(|a, b| a.key_range.min.cmp(&b.key_range.min));
    let mut open: Vec<&Arc<PortionEntry>> = Vec::new();
    let mut deepest: Vec<&Arc<PortionEntry>> = Vec::new();
    for portion in begins {
        open.retain(|other| other.key_range.max >= portion.key_range.min);
        open.push(portion);
        if open.len() > deepest.len() {
            deepest.clone_from(&open);
        }
    }
    let mut deepest: Vec<_> = deepest.into_iter().cloned().collect();
    deepest.sort_by_key(|portion| portion.sequence);
    (!deepest.is_empty()).then_some(deepest)
}

/// Maximum number of portions that cover one key.
pub(super) fn depth(portions: &[Arc<PortionEntry>]) -> usize {
    deepest(portions).map_or(0, |covering| covering.len())
}
