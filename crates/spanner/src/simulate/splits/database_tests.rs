//! Splits of a simulated database: inserts, load, and splits that are divided and joined.

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::simulate::splits::key::{KeyRange, StartKey};
use evenkeel_model::units::ByteSize;
use evenkeel_stats::skew::{KeyWeights, NoiseFloor, SkewFigures};

fn database(parameters: &ModelParameters, boundaries: Vec<Vec<u8>>, fixed: bool) -> Database {
    let boundaries = boundaries.into_iter().map(|bytes| StartKey { lead: bytes.len(), bytes }).collect();
    let space = KeySpace::new(boundaries, fixed, parameters);
    Database::new(parameters.clone(), vec![("table".to_owned(), space)])
}

fn insert(database: &mut Database, key: u64, bytes: u32) {
    let key = key.to_be_bytes();
    database.insert(0, Key { bytes: &key, lead: 8, root: 8 }, bytes);
}

/// Parameters under which a few thousand rows divide a split.
fn small() -> ModelParameters {
    ModelParameters { split_size: ByteSize(64 << 10), split_rate: 1.0, ..ModelParameters::default() }
}

fn mixed(number: u64) -> u64 {
    SplitMix::new(number).next()
}

#[test]
fn a_key_that_rises_always_inserts_into_the_last_split() {
    let mut database = database(&small(), Vec::new(), false);
    let mut largest = 0;
    for row in 0..40_000_u64 {
        database.advance((row / 200) as i64);
        insert(&mut database, row, 100);
        let last = database.spaces[0].splits().last().unwrap();
        let key = row.to_be_bytes();
        assert_eq!(database.spaces[0].touched(&[KeyRange::with_prefix(&key)]), 1);
        // The last split received every row of this window, so no other split was written to.
        assert_eq!(last.window_rows, row % 200 + 1, "{row}");
        largest = database.spaces[0].split_count();
    }
    let (outcome, _) = database.finish();
    assert_eq!(outcome.whole.hottest_rows, 40_000);
    assert_eq!((outcome.whole.by_load, outcome.relief.relieved_after), (0, None));
    assert!(outcome.whole.by_size > 50 && largest > 50, "{}", outcome.whole.by_size);
    let stuck = outcome.stuck[0];
    assert!(stuck.obstacle == Obstacle::MovingHotspot && stuck.rows > 35_000, "{stuck:?}");
    assert_eq!(outcome.heat.pattern(), crate::simulate::splits::HeatPattern::MonotonicKeys);
}

#[test]
fn keys_that_are_anywhere_spread_to_within_chance() {
    let boundaries = (1..16_u64).map(|part| (part << 60).to_be_bytes().to_vec()).collect();
    let mut database = database(&small(), boundaries, true);
    for row in 0..200_000 {
        database.advance((row / 1000) as i64);
        insert(&mut database, mixed(row), 100);
    }
    let (outcome, _) = database.finish();
    let rows: Vec<u64> = outcome.spaces[0].splits.iter().map(|split| split.rows).collect();
    let mut weights = KeyWeights::default();
    (0..200_000).for_each(|_| weights.add(1));
    let skew = SkewFigures::from_counts(&rows);
    let (floor, cv) = (NoiseFloor::from_weights(&skew, &weights), skew.cv);
    assert!(cv < 1.6 * floor.expected_cv_weighted, "{cv} {floor:?}");
    assert_eq!((outcome.whole.splits, outcome.whole.by_size), (16, 0));
}

#[test]
fn splits_of_keys_that_are_anywhere_get_what_their_width_says() {
    // These splits have divided by size and by load.
    let mut database = database(&small(), Vec::new(), false);
    for row in 0..60_000 {
        database.advance((row / 600) as i64);
        insert(&mut database, mixed(row), 100);
    }
    let rows = 20_000;
    database.advance(1_000_000);
    (60_000..60_000 + rows).for_each(|row| insert(&mut database, mixed(row), 100));
    let splits = database.spaces[0].splits();
    assert!(splits.len() > 60, "{}", splits.len());
    let start = |split: &crate::simulate::splits::split::Split| {
        split.start().try_into().map_or(0, u64::from_be_bytes) as f64
    };
    let ends = splits.iter().skip(1).map(start).chain([u64::MAX as f64]);
    let chi_square: f64 = splits
        .iter()
        .zip(ends)
        .map(|(split, end)| {
            let expected = rows as f64 * (end - start(split)) / u64::MAX as f64;
            (split.window_rows as f64 - expected).powi(2) / expected
        })
        .sum();
    let freedom = (splits.len() - 1) as f64;
    // Within five standard deviations of its mean.
    assert!((chi_square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "{chi_square} {freedom}");
}

#[test]
fn load_divides_until_no_split_is_hot_and_quiet_parts_are_joined() {
    // 600 rows per window, at a capacity of 60 rows per split.
    let mut database = database(&small(), Vec::new(), false);
    for row in 0..60_000 {
        database.advance((row / 600) as i64);
        insert(&mut database, mixed(row), 0);
    }
    let busy = database.spaces[0].split_count();
    assert!((11..=40).contains(&busy), "{busy}");
    database.advance(1000);
    let (outcome, spaces) = database.finish();
    assert!(outcome.relief.relieved_after.is_some_and(|windows| windows < 40), "{:?}", outcome.relief);
    assert_eq!(spaces[0].split_count(), 1, "{:?}", outcome.whole);
    assert!(outcome.whole.by_load >= 10 && outcome.whole.merges == outcome.whole.by_load);
    assert!(outcome.whole.busy_servers > 3.0, "{}", outcome.whole.busy_servers);
}

#[test]
fn one_row_is_never_divided() {
    let mut database = database(&small(), Vec::new(), false);
    for row in 0..20_000_u64 {
        database.advance((row / 600) as i64);
        // One key receives all rows, except for an occasional other one.
        insert(&mut database, if row.is_multiple_of(500) { mixed(row) } else { 7 << 40 }, 1);
    }
    let (outcome, _) = database.finish();
    assert_eq!((outcome.whole.by_load, outcome.relief.relieved_after), (0, None));
    assert_eq!(outcome.stuck[0].obstacle, Obstacle::SingleRow);
}

#[test]
fn transactions_count_the_splits_they_touch() {
    let boundaries = vec![vec![128]];
    let mut database = database(&small(), boundaries, true);
    database.advance(0);
    for keys in [[1_u64, 2], [1, u64::MAX], [u64::MAX, u64::MAX - 1]] {
        database.begin_transaction();
        keys.into_iter().for_each(|key| insert(&mut database, key, 1));
    }
    let (outcome, _) = database.finish();
    assert_eq!((outcome.transactions, outcome.most_splits_per_transaction), (3, 2));
    assert!((outcome.two_phase_share - 1.0 / 3.0).abs() < 1e-9);
    assert!((outcome.splits_per_transaction - 4.0 / 3.0).abs() < 1e-9);
}

proptest! {
    #[test]
    fn no_row_is_lost_and_splits_leave_no_gap(
        rows in proptest::collection::vec((0u8..4, any::<u16>(), 0u32..3000), 1..3000),
        jumps in proptest::collection::vec(0i64..200, 1..8),
        seed: u64,
    ) {
        let parameters = ModelParameters { seed, quiet_windows: 3, delay_windows: 1, ..small() };
        let replay = || {
            let mut database = database(&parameters, vec![vec![9]], false);
            let (mut clock, mut inserted, mut bytes) = (0, 0, 0);
            for (number, (kind, key, size)) in rows.iter().enumerate() {
                if number % 100 == 0 {
                    clock += 1 + jumps[number / 100 % jumps.len()] / 50;
                }
                let key = match kind {
                    0 => number as u64,
                    1 => mixed(u64::from(*key)),
                    2 => u64::from(*key) << 48,
                    _ => 42,
                };
                database.advance(clock);
                insert(&mut database, key, *size);
                (inserted, bytes) = (inserted + 1, bytes + u64::from(*size));
                if number % 100 == 0 {
                    let splits: Vec<_> = database.spaces[0].figures().collect();
                    assert!(splits[0].start.bytes.is_empty());
                    assert!(splits.windows(2).all(|pair| pair[0].start < pair[1].start));
                    assert_eq!(splits.iter().map(|split| split.rows).sum::<u64>(), inserted);
                    assert_eq!(splits.iter().map(|split| split.bytes).sum::<u64>(), bytes);
                }
            }
            database.finish().0
        };
        let outcome = replay();
        prop_assert_eq!(outcome.whole.rows, rows.len() as u64);
        prop_assert!(outcome.whole.hottest_rows <= outcome.whole.rows);
        let splits = outcome.whole.splits as u64;
        prop_assert_eq!(splits, 2 + outcome.whole.by_size + outcome.whole.by_load - outcome.whole.merges);
        // The same seed gives the same timeline.
        prop_assert_eq!(replay(), outcome);
    }
}
