//! Key counters, compared with sorting: exact, sampled, on disk, and merged.

use super::*;
use crate::sketch::counter::sketches::FREQUENT_SLOTS;
use crate::sketch::fold;
use evenkeel_model::wire::{seal, unseal};

/// Identities of `keys` keys: key i occurs about rows / (i + 1) / ln(keys) times, a Zipf
/// distribution, plus once each.
fn zipf(keys: u64, rows: u64) -> Vec<u64> {
    let scale = rows as f64 / (keys as f64).ln();
    let times = |key: u64| (scale / (key + 1) as f64) as u64 + 1;
    (0..keys).flat_map(|key| std::iter::repeat_n(fold(key, 7), times(key) as usize)).collect()
}

fn counted(budget: usize, identities: &[u64]) -> KeyCounter<u64> {
    counted_on_disk(budget, 0, identities)
}

fn counted_on_disk(budget: usize, on_disk: u64, identities: &[u64]) -> KeyCounter<u64> {
    let mut counter = KeyCounter::new();
    for batch in identities.chunks(1000) {
        counter.add(batch, |row| batch[row]);
        if counter.exact_bytes_after(1000).is_some_and(|bytes| bytes > budget) {
            counter.reduce(on_disk).unwrap();
        }
    }
    counter
}

#[test]
fn an_exact_counter_equals_sorting() {
    let identities = zipf(5_000, 60_000);
    let counts = counted(1 << 30, &identities).finish(10).unwrap();
    let mut sorted = identities.clone();
    sorted.sort_unstable();
    let mut expected: Vec<u64> = sorted.chunk_by(|a, b| a == b).map(|key| key.len() as u64).collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(counts.distinct, DistinctKeys { estimate: 5000, exact: true, lower: 5000, upper: 5000 });
    assert_eq!(counts.weights.rows, identities.len() as u64);
    let squares: u64 = expected.iter().map(|rows| rows * rows).sum();
    assert_eq!(counts.weights.sum_of_squares, u128::from(squares));
    let heaviest: Vec<u64> = counts.heaviest.iter().map(|key| key.rows).collect();
    assert_eq!(heaviest, expected[..10]);
    assert_eq!(counts.heaviest[0].value, Some(fold(0, 7)));
    let once = expected.iter().filter(|rows| **rows == 1).count() as u64;
    assert_eq!(counts.keys_with_one_row, Some(once));
}

#[test]
fn a_sample_bounds_the_keys_of_the_whole() {
    let identities = zipf(20_000, 100_000);
    // Every tenth row.
    let sampled: Vec<u64> = identities.iter().copied().step_by(10).collect();
    let counts = counted(1 << 30, &sampled).finish(1).unwrap();
    let rows = (identities.len() - sampled.len()) as u64;
    let most = rows + counts.distinct.upper;
    let whole = counts.distinct.scaled_to_whole(counts.keys_with_one_row, 0.1, most);
    assert!(whole.lower < 20_000 && 20_000 < whole.upper && !whole.exact, "{whole:?}");
    assert!(whole.lower <= whole.estimate && whole.estimate <= whole.upper, "{whole:?}");
}

#[test]
fn beyond_its_budget_a_counter_keeps_its_error_bounds() {
    let identities = zipf(300_000, 1_000_000);
    let exact = counted(1 << 30, &identities).finish(50).unwrap();
    let sketched = counted(1 << 20, &identities).finish(50).unwrap();
    assert!(exact.distinct.exact && !sketched.distinct.exact);
    let relative = sketched.distinct.estimate as f64 / exact.distinct.estimate as f64;
    assert!((relative - 1.0).abs() < 0.02, "{relative}");
    assert!(sketched.distinct.lower <= sketched.distinct.estimate);
    for (approximate, truth) in sketched.heaviest.iter().zip(&exact.heaviest).take(20) {
        assert_eq!(approximate.value, truth.value);
        assert!(
            approximate.rows <= truth.rows && truth.rows <= approximate.rows + approximate.error,
            "{approximate:?} {truth:?}"
        );
        assert!(approximate.error as f64 <= 3.5 / FREQUENT_SLOTS as f64 * identities.len() as f64 + 1.0);
    }
    let ratio = sketched.weights.sum_of_squares as f64 / exact.weights.sum_of_squares as f64;
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn on_disk_a_counter_stays_exact() {
    let mixed: Vec<u64> = (0..900_000).map(|row| fold(fold(row, 3) % 400_000, 7)).collect();
    for identities in [zipf(300_000, 1_000_000), mixed, zipf(2_000, 30_000)] {
        let exact = counted(1 << 30, &identities).finish(50).unwrap();
        for budget in [1 << 16, 5 << 20, 6 << 20, 8 << 20] {
            let counter = counted_on_disk(budget, 1 << 30, &identities);
            let is_reduced = !matches!(counter.counts, Counts::Numbered(_));
            let counts = counter.finish(50).unwrap();
            assert!(is_reduced || identities.len() < 100_000);
            // With small budgets, the minimum memory of exact counting makes sketches count.
            assert!(counts.distinct.exact || budget < 5 << 20);
            if counts.distinct.exact {
                assert_eq!((counts.distinct, &counts.weights), (exact.distinct, &exact.weights));
                assert_eq!(counts.heaviest, exact.heaviest);
                assert_eq!(counts.keys_with_one_row, exact.keys_with_one_row);
            }
        }
        let (first, second) = identities.split_at(identities.len() / 3);
        let mut whole = counted_on_disk(6 << 20, 1 << 30, first);
        whole.merge(sent(counted_on_disk(6 << 20, 1 << 30, second))).unwrap();
        assert_eq!(whole.finish(1).unwrap().weights, exact.weights);
    }
}

#[test]
fn a_file_may_not_exceed_its_limit() {
    let identities: Vec<u64> = (0..1_000_000).map(|row| fold(row, 7)).collect();
    assert!(counted_on_disk(6 << 20, 16 << 20, &identities).finish(1).unwrap().distinct.exact);
    assert!(!counted_on_disk(6 << 20, 4 << 20, &identities).finish(1).unwrap().distinct.exact);
}

/// Returns the counter as it arrives on another machine.
fn sent(mut counter: KeyCounter<u64>) -> KeyCounter<u64> {
    counter.read_back().unwrap();
    counter.put_together();
    let sealed = seal(|bytes| counter.put(bytes));
    let mut left = unseal(&sealed).unwrap();
    let arrived = KeyCounter::take(&mut left).unwrap();
    left.end().unwrap();
    arrived
}

fn merged(budget: usize, parts: &[&[u64]]) -> KeyCounts<u64> {
    let mut whole = KeyCounter::new();
    parts.iter().for_each(|part| whole.merge(sent(counted(budget, part))).unwrap());
    whole.finish(20).unwrap()
}

#[test]
fn parts_merge_to_the_whole() {
    let few = zipf(2_000, 30_000);
    let mixed =
        |rows: u64, keys: u64| -> Vec<u64> { (0..rows).map(|row| fold(fold(row, 3) % keys, 7)).collect() };
    // Numbered, numbered only within each part, and numbered in no part.
    for identities in [few, mixed(600_000, 100_000), mixed(300_000, 250_000), mixed(800_000, 400_000)] {
        let whole = counted(1 << 30, &identities).finish(20).unwrap();
        for count in [1, 2, 3, 7] {
            let parts: Vec<&[u64]> = identities.chunks(identities.len().div_ceil(count)).collect();
            let mut merged = merged(1 << 30, &parts);
            assert_eq!((merged.distinct, &merged.weights), (whole.distinct, &whole.weights));
            assert_eq!(merged.keys_with_one_row, whole.keys_with_one_row);
            // Whether the value of a key is remembered may depend on the parts; the choice of
            // the heaviest keys does not.
            for (key, of_whole) in merged.heaviest.iter_mut().zip(&whole.heaviest) {
                assert!(key.value.is_none_or(|value| value == key.identity));
                key.value = of_whole.value;
            }
            assert_eq!(merged.heaviest, whole.heaviest);
        }
    }
}

#[test]
fn a_merged_counter_counts_on() {
    let identities = zipf(2_000, 30_000);
    let (first, second) = identities.split_at(10_000);
    let mut counter = KeyCounter::new();
    counter.merge(sent(counted(1 << 30, first))).unwrap();
    assert!(!counter.is_numbered() && !counter.number(second, &mut Vec::new()));
    counter.add(second, |row| second[row]);
    assert_eq!(counter.finish(10).unwrap(), counted(1 << 30, &identities).finish(10).unwrap());
}

#[test]
fn the_state_of_sketches_is_they_themselves() {
    let identities = zipf(300_000, 500_000);
    let counter = counted(1 << 20, &identities);
    let counts = counter.finish(20).unwrap();
    assert_eq!(merged(1 << 20, &[&identities]), counts);
    assert_eq!(sent(counted(1 << 20, &identities)).finish(20).unwrap(), counts);
}

#[test]
fn any_bytes_are_read_without_harm() {
    for counter in [
        counted(1 << 30, &zipf(50, 500)),
        counted(1 << 30, &zipf(140_000, 140_000)),
        counted(0, &zipf(50, 500)),
    ] {
        let mut bytes = Vec::new();
        counter.put(&mut bytes);
        for step in 0..2_000 {
            let mut damaged = bytes.clone();
            let place =
                fold(step, 1) as usize % bytes.len().min(if step % 2 == 0 { 100 } else { usize::MAX });
            damaged[place] ^= fold(step, 2) as u8;
            damaged.truncate(if step % 3 == 0 { fold(step, 4) as usize % bytes.len() } else { bytes.len() });
            let sealed = seal(|bytes| bytes.extend_from_slice(&damaged));
            let _ = KeyCounter::<u64>::take(&mut unseal(&sealed).unwrap());
        }
    }
}

#[test]
fn the_heaviest_do_not_depend_on_how_rows_are_cut() {
    // More keys than are numbered, many of them with equally many rows.
    let mut identities: Vec<u64> = (0..400_000).map(|row| fold(row % 190_000, 7)).collect();
    identities.extend((0..3000).map(|row| fold(row % 1500, 9)));
    let counted = |rows: usize| {
        let mut counter = KeyCounter::new();
        for batch in identities.chunks(rows) {
            counter.add(batch, |row| batch[row]);
        }
        counter.finish(20).unwrap()
    };
    let whole = counted(identities.len());
    assert_eq!(whole.distinct.estimate, 191_500);
    for rows in [977, 65_536] {
        assert_eq!(counted(rows), whole, "{rows}");
    }
}

#[test]
fn a_sketched_part_merges_with_an_exact_one() {
    let identities = zipf(300_000, 500_000);
    let (first, second) = identities.split_at(identities.len() / 2);
    let mut merged = counted(1 << 30, first);
    merged.merge(counted(1 << 20, second)).unwrap();
    let merged = merged.finish(3).unwrap();
    assert!(!merged.distinct.exact);
    assert!((merged.distinct.estimate as f64 / 300_000.0 - 1.0).abs() < 0.02);
    assert_eq!(merged.weights.rows, identities.len() as u64);
}

#[test]
fn keys_that_all_come_once_have_no_heaviest_beyond_one_row() {
    let identities: Vec<u64> = (0..100_000).map(|key| fold(key, 3)).collect();
    let counts = counted(1 << 30, &identities).finish(3).unwrap();
    assert_eq!(counts.weights.heaviest, 1);
    assert!(counts.heaviest.iter().all(|key| key.rows == 1));
    let nothing = KeyCounter::<u64>::new().finish(3).unwrap();
    assert_eq!((nothing.distinct.estimate, nothing.heaviest.len()), (0, 0));
}
