//! Search for the smallest sets of columns that distinguish the sampled rows.
//!
//! Sets are refuted by pairs of rows that are equal in all of their columns ("agree sets"), which
//! neighbours in the order of each column supply first, and every set that fails afterwards. Sets
//! that survive are checked on all sampled rows. (As in Gordian, DUCC and HPIValid, with a bound on
//! the number of columns of a set and on the number of checks.)

use ahash::AHashSet;

use crate::evaluate::roles::profile::{Profile, combination};

/// Maximum number of columns of a key.
pub(crate) const MAX_KEY_COLUMNS: usize = 5;
/// Maximum number of columns of a key that is found by dropping columns.
const MAX_WIDE_KEY_COLUMNS: usize = 10;
/// Maximum number of columns that are combined.
const MAX_COLUMNS: usize = 40;
/// Maximum number of sets that are checked on all sampled rows.
const MAX_CHECKS: usize = 2_000;
/// Maximum number of keys that are returned.
const MAX_KEYS: usize = 60;

/// Outcome of a search.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct UniqueKeys {
    /// Minimal sets of positions that distinguish all rows but a few, the smallest first.
    pub(crate) keys: Vec<Vec<usize>>,
    /// Whether the search ended before all sets were tried.
    pub(crate) cut_short: bool,
}

/// Finds the minimal sets of the columns at `eligible` that leave at most `tolerated` rows
/// undistinguished. Rows that are equal in every column of the export count once: `rows` lists one
/// of each.
pub(crate) fn minimal_unique(
    columns: &[Profile<'_>],
    eligible: &[usize],
    rows: &[u32],
    tolerated: usize,
) -> UniqueKeys {
    let mut minimal = UniqueKeys { keys: Vec::new(), cut_short: eligible.len() > MAX_COLUMNS };
    let eligible: Vec<&Profile<'_>> =
        eligible.iter().take(MAX_COLUMNS).filter_map(|index| columns.get(*index)).collect();
    let positions: Vec<usize> = eligible
        .iter()
        .filter_map(|column| columns.iter().position(|other| other.column.name == column.column.name))
        .collect();
    let mut agreed = if tolerated == 0 { neighbours(&eligible, rows) } else { Vec::new() };
    let mut unique: Vec<u64> = Vec::new();
    let mut checks = 0;
    for size in 1..=MAX_KEY_COLUMNS.min(eligible.len()) {
        let mut sets = sets_of(eligible.len(), size);
        while let Some(set) = sets.next_set() {
            if unique.iter().any(|known| set & known == *known)
                || agreed.iter().any(|agree| set & agree == set)
                || too_few(&eligible, set, rows.len() - tolerated.min(rows.len()))
            {
                continue;
            }
            if checks >= MAX_CHECKS || unique.len() >= MAX_KEYS {
                minimal.cut_short = true;
                break;
            }
            checks += 1;
            match check(&eligible, set, rows, tolerated) {
                None => unique.push(set),
                Some(agree) if tolerated == 0 => agreed.push(agree),
                Some(_) => {}
            }
        }
    }
    if unique.is_empty() {
        unique.extend(wide_key(&eligible, &positions, rows, tolerated));
    }
    minimal.keys = unique
        .into_iter()
        .map(|set| {
            positions.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1).map(|(_, at)| *at).collect()
        })
        .collect();
    minimal
}

/// Finds one minimal set wider than the combined sets, up to [`MAX_WIDE_KEY_COLUMNS`]: starting
/// from all columns, drops those that are not needed, the last column of the export first, as keys
/// are usually at the front.
fn wide_key(columns: &[&Profile<'_>], positions: &[usize], rows: &[u32], tolerated: usize) -> Option<u64> {
    let mut set = columns.iter().enumerate().map(|(bit, _)| 1u64 << bit).sum();
    if columns.len() <= MAX_KEY_COLUMNS || check(columns, set, rows, tolerated).is_some() {
        return None;
    }
    let mut last_first: Vec<(usize, usize)> = positions.iter().copied().enumerate().collect();
    last_first.sort_by_key(|(_, position)| std::cmp::Reverse(*position));
    for (bit, _) in last_first {
        let without = set & !(1u64 << bit);
        if check(columns, without, rows, tolerated).is_none() {
            set = without;
        }
    }
    (set.count_ones() as usize <= MAX_WIDE_KEY_COLUMNS).then_some(set)
}

/// Sets of `size` of `column_count` columns, as bits, in increasing order.
fn sets_of(column_count: usize, size: usize) -> Sets {
    Sets { next: Some((1u64 << size) - 1), end: 1u64 << column_count }
}

struct Sets {
    next: Option<u64>,
    end: u64,
}

impl Sets {
    fn next_set(&mut self) -> Option<u64> {
        let set = self.next.filter(|set| *set < self.end)?;
        // The next larger number with as many bits (Warren, "Hacker's Delight", 2-1).
        let lowest = set & set.wrapping_neg();
        let ripple = set + lowest;
        self.next = Some(ripple | (((set ^ ripple) / lowest) >> 2));
        Some(set)
    }
}

/// Whether the columns of a set have too few values to distinguish the rows.
fn too_few(columns: &[&Profile<'_>], set: u64, rows: usize) -> bool {
    let members = columns.iter().enumerate().filter(|(bit, _)| set >> bit & 1 == 1);
    members.map(|(_, column)| column.distinct as f64).product::<f64>() < rows as f64
}

/// Columns in which two rows are equal.
fn agreement(columns: &[&Profile<'_>], a: u32, b: u32) -> u64 {
    let equal = |column: &Profile<'_>| column.codes.get(a as usize) == column.codes.get(b as usize);
    columns.iter().enumerate().filter(|(_, column)| equal(column)).map(|(bit, _)| 1u64 << bit).sum()
}

/// Agreements of rows that follow each other, and that have equal values of a column.
fn neighbours(columns: &[&Profile<'_>], rows: &[u32]) -> Vec<u64> {
    let mut agreed: AHashSet<u64> = AHashSet::new();
    for pair in rows.windows(2) {
        if let [a, b] = pair {
            agreed.insert(agreement(columns, *a, *b));
        }
    }
    for column in columns {
        let mut last: Vec<Option<u32>> = vec![None; column.distinct];
        for row in rows {
            let Some(code) = column.codes.get(*row as usize) else { continue };
            let Some(last) = last.get_mut(*code as usize) else { continue };
            if let Some(before) = last.replace(*row) {
                agreed.insert(agreement(columns, before, *row));
            }
        }
    }
    let mut agreed: Vec<u64> = agreed.into_iter().collect();
    agreed.sort_by_key(|set| std::cmp::Reverse(set.count_ones()));
    let mut largest: Vec<u64> = Vec::new();
    for set in agreed {
        if !largest.iter().any(|known| set & known == set) {
            largest.push(set);
        }
    }
    largest
}

/// Checks a set on all rows; returns an agreement that refutes it.
fn check(columns: &[&Profile<'_>], set: u64, rows: &[u32], tolerated: usize) -> Option<u64> {
    let members: Vec<&Profile<'_>> = columns
        .iter()
        .enumerate()
        .filter(|(bit, _)| set >> bit & 1 == 1)
        .map(|(_, column)| *column)
        .collect();
    let key = |row: u32| combination(&members, row as usize);
    let mut seen: AHashSet<u64> = AHashSet::with_capacity(rows.len());
    let mut repeated = 0;
    for row in rows {
        if !seen.insert(key(*row)) {
            repeated += 1;
            if repeated > tolerated {
                let wanted = key(*row);
                let first = rows.iter().find(|other| key(**other) == wanted).copied().unwrap_or(*row);
                return Some(agreement(columns, first, *row) | set);
            }
        }
    }
    None
}

/// Lists one row of each group of rows that are equal in every column.
pub(crate) fn rows_once(columns: &[&Profile<'_>]) -> Vec<u32> {
    let rows = columns.iter().map(|column| column.rows).min().unwrap_or(0);
    let mut seen: AHashSet<u64> = AHashSet::with_capacity(rows);
    (0..rows)
        .filter(|row| seen.insert(combination(columns, *row)))
        .filter_map(|row| u32::try_from(row).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::ArrayRef;
    use evenkeel_stats::sketch::fold;

    use super::*;
    use crate::evaluate::roles::testing::{int64, with_profiles};

    const NAMES: [&str; 8] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];

    /// All minimal sets of columns that distinguish all rows.
    fn by_force(columns: &[Vec<i64>]) -> Vec<Vec<usize>> {
        let rows = columns[0].len();
        let is_unique = |set: usize| {
            let keys: std::collections::BTreeSet<Vec<i64>> = (0..rows)
                .map(|row| {
                    (0..columns.len()).filter(|c| set >> c & 1 == 1).map(|c| columns[c][row]).collect()
                })
                .collect();
            keys.len() == rows
        };
        let unique: Vec<usize> = (1..1 << columns.len()).filter(|set| is_unique(*set)).collect();
        let minimal =
            unique.iter().filter(|set| !unique.iter().any(|other| other != *set && other & *set == *other));
        let mut sets: Vec<Vec<usize>> =
            minimal.map(|set| (0..columns.len()).filter(|c| set >> c & 1 == 1).collect()).collect();
        sets.sort();
        sets
    }

    #[test]
    fn all_minimal_keys_are_found() {
        for seed in 0..200u64 {
            let rows = 20 + seed as usize % 60;
            let values: Vec<Vec<i64>> = (0..5u64)
                .map(|column| {
                    let most = [2, 3, 7, 20, 60][((column + seed) % 5) as usize];
                    (0..rows as u64).map(|row| (fold(fold(row, column), seed) % most) as i64).collect()
                })
                .collect();
            let columns: Vec<(&str, ArrayRef)> =
                NAMES.into_iter().zip(values.iter().map(|values| int64(values.iter().copied()))).collect();
            let (once, mut actual) = with_profiles(&columns, |profiles| {
                let once = rows_once(&profiles.iter().collect::<Vec<_>>());
                let keys = minimal_unique(profiles, &[0, 1, 2, 3, 4], &once, 0).keys;
                (once, keys)
            });
            let distinct: std::collections::BTreeSet<Vec<i64>> =
                (0..rows).map(|row| values.iter().map(|column| column[row]).collect()).collect();
            assert_eq!(once.len(), distinct.len(), "seed {seed}");
            let kept: Vec<Vec<i64>> =
                values.iter().map(|column| once.iter().map(|row| column[*row as usize]).collect()).collect();
            actual.sort();
            assert_eq!(actual, by_force(&kept), "seed {seed}");
        }
    }

    #[test]
    fn a_key_of_many_columns_has_those_that_come_first() {
        // Seven columns of three values each, and one that follows from the first two.
        let digit = |row: i64, column: u32| row / 3i64.pow(column) % 3;
        let column = |c: u32| {
            int64((0..3i64.pow(7)).map(|row| match c {
                7 => digit(row, 0) * 3 + digit(row, 1),
                _ => digit(row, c),
            }))
        };
        let columns: Vec<(&str, ArrayRef)> = NAMES.into_iter().zip((0..8).map(column)).collect();
        let rows: Vec<u32> = (0..3u32.pow(7)).collect();
        let keys = |eligible: &[usize]| {
            with_profiles(&columns, |profiles| minimal_unique(profiles, eligible, &rows, 0).keys)
        };
        assert_eq!(keys(&[7, 0, 1, 2, 3, 4, 5, 6]), [[0, 1, 2, 3, 4, 5, 6]]);
        assert!(keys(&[0, 1, 2, 3, 4, 5]).is_empty());
    }

    #[test]
    fn a_few_repeats_can_be_tolerated() {
        let ids = int64((0..1000).map(|row| if row == 7 { 6 } else { row }));
        let all: Vec<u32> = (0..1000).collect();
        let keys = |repeats| {
            with_profiles(&[("id", Arc::clone(&ids))], |profiles| {
                minimal_unique(profiles, &[0], &all, repeats).keys
            })
        };
        assert!(keys(0).is_empty());
        assert_eq!(keys(1), [[0]]);
    }
}
