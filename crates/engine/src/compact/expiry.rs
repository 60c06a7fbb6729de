//! Rows and deletes that need not be kept.

use std::sync::Arc;

use evenkeel_model::table::KeyValue;
use evenkeel_store::log::PortionEntry;

use crate::compact::portions::{Portions, Scope, contains, depth, hull};

/// Smallest value of a key column that has not expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expiry {
    /// Position of the column within the primary key.
    pub(super) column: usize,
    /// Rows with a smaller value have expired.
    pub(super) oldest_kept: KeyValue,
}

/// Splits the portions into fully expired ones to drop and the others. A portion whose rows have
/// all expired stays while an older one shares keys with it: dropped alone, it would uncover the
/// rows that it superseded. Deletes are dropped once nothing older is left.
pub(super) fn split_expired(portions: &[Arc<PortionEntry>], expiry: Option<&Expiry>) -> (Portions, Portions) {
    let mut by_age = portions.to_vec();
    by_age.sort_by_key(|portion| portion.sequence);
    let (mut dropped, mut kept): (Portions, Portions) = (Vec::new(), Vec::new());
    for portion in by_age {
        let all_expired =
            expiry.is_some_and(|expiry| portion.has_expired(expiry.column, &expiry.oldest_kept));
        // Rows and deletes of equal age are parts of one run, and share no key.
        let uncovers = kept.iter().any(|older| {
            older.key_range.overlaps(&portion.key_range)
                && !(portion.deletes && older.sequence == portion.sequence)
        });
        if (all_expired || portion.deletes) && !uncovers { dropped.push(portion) } else { kept.push(portion) }
    }
    (dropped, kept)
}

/// Sets around portions whose rows have partly expired, see [`is_worth_expiring`], together with
/// the older portions that share keys with them.
pub(super) fn partly_expired(
    free: &mut Portions,
    all: &[Arc<PortionEntry>],
    expiry: Option<&Expiry>,
    scope: Scope,
    max_runs: usize,
) -> Vec<Portions> {
    let Some(expiry) = expiry else { return Vec::new() };
    let mut merges = Vec::new();
    for portion in free.clone() {
        if !is_worth_expiring(&portion, expiry, scope) || !contains(free, &portion) {
            continue;
        }
        let mut set = vec![Arc::clone(&portion)];
        while let Some(hull) = hull(&set) {
            let newest = set.iter().map(|member| member.sequence).max();
            let older = all.iter().find(|other| {
                Some(other.sequence) <= newest && hull.overlaps(&other.key_range) && !contains(&set, other)
            });
            match older {
                Some(older) => set.push(Arc::clone(older)),
                None => break,
            }
        }
        if set.iter().all(|member| contains(free, member)) && depth(&set) <= max_runs {
            free.retain(|other| !contains(&set, other));
            merges.push(set);
        }
    }
    merges
}

/// Whether half of the portion's time range has expired, or any part of it if everything is
/// compacted.
fn is_worth_expiring(portion: &PortionEntry, expiry: &Expiry, scope: Scope) -> bool {
    let Some(range) = portion.column_ranges.get(expiry.column) else { return false };
    match (range.min.first(), range.max.first(), &expiry.oldest_kept) {
        (Some(KeyValue::Int(min)), Some(KeyValue::Int(max)), KeyValue::Int(kept)) => {
            let (min, max, kept) = (i128::from(*min), i128::from(*max), i128::from(*kept));
            kept > min && (scope == Scope::Everything || (kept - min) * 2 >= max - min)
        }
        _ => false,
    }
}
