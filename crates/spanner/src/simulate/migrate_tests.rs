//! Migrations to generated keys, which must not collide with existing or future keys.

use std::fmt::Write as _;

use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;
use evenkeel_input::source::{InputOptions, InputPath};
use evenkeel_model::table::ColumnType;

fn migrated(values: &[i64], kind: Option<KeyKind>, headroom: f64) -> Result<Migration, String> {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "id\n".to_owned();
    values.iter().for_each(|value| writeln!(text, "{value}").unwrap());
    let path = dir.path().join("ids.csv");
    std::fs::write(&path, text).unwrap();
    let types = [("id".to_owned(), ColumnType::Int64)].into();
    let export = Export::open(&[InputPath::File(path)], InputOptions::default(), &types).unwrap();
    migrate(&export, "id", kind, headroom, &AtomicBool::new(false)).map_err(|error| error.to_string())
}

/// Whether the planned sequence ever returns a value: it returns the reversal of every counter
/// from its first on, except for skipped values.
fn gives(migration: &Migration, value: i64) -> bool {
    let counter = bit_reverse(value, true);
    let is_skipped = migration.skip_range.is_some_and(|(least, most)| (least..=most).contains(&value));
    value > 0 && counter >= migration.start_counter.unwrap_or(1) && !is_skipped
}

/// Returns the value that the old counter issues `number` steps after its largest.
fn to_come(migration: &Migration, number: i64) -> i64 {
    match migration.kind {
        KeyKind::BitReversed => bit_reverse(migration.counters.unwrap().1 + number, true),
        _ => migration.range.unwrap().1.max(0) + number,
    }
}

/// Asserts that the sequence never returns an existing value, or one that is promised to be
/// free.
fn check(values: &[i64], headroom: f64, migration: &Migration) {
    let free = migration.free_values.unwrap().cast_signed();
    assert!(free >= 1, "{values:?} {migration:?}");
    let (_, most) = migration.counters.or(migration.range).unwrap();
    assert!(free as f64 >= (most.max(0) as f64 * headroom).floor(), "{headroom} {migration:?}");
    assert!(!values.iter().any(|value| gives(migration, *value)), "{values:?} {migration:?}");
    let near = (1..=free.min(300)).chain((free - free.min(300) + 1)..=free);
    for number in near.chain((0..60).map(|bit| 1 << bit).filter(|number| *number <= free)) {
        let value = to_come(migration, number);
        assert!(!gives(migration, value), "{value} of {values:?} {migration:?}");
    }
    assert!(migration.start_counter.is_none_or(|start| start <= MAX_SKIPPED));
    assert!(migration.skip_range.is_none_or(|(least, most)| least == 1 && most <= MAX_SKIPPED));
}

#[test]
fn a_full_range_is_no_safe_one() {
    // Without headroom, a range up to a power of two used to be full.
    for most in [1, 2, 4, 1024, 8192, 1 << 40, (1 << 62) - 1] {
        for headroom in [0.0, 1e-18, 1e-9, 0.1, 1.0] {
            match migrated(&[most], Some(KeyKind::Sequential), headroom) {
                Ok(migration) => check(&[most], headroom, &migration),
                Err(error) => assert!(most >= 1 << 40 && error.contains("less than half"), "{error}"),
            }
        }
    }
    let migration = migrated(&[8192], Some(KeyKind::Sequential), 0.0).unwrap();
    assert_eq!((migration.skip_range, migration.free_values), (Some((1, 16_384)), Some(8192)));
    // Nor is a start counter right after the last one.
    let migration = migrated(&[bit_reverse(1000, true)], Some(KeyKind::BitReversed), 0.0).unwrap();
    assert_eq!((migration.start_counter, migration.free_values), (Some(1002), Some(1)));
}

#[test]
fn the_ends_of_the_numbers_are_planned_or_refused() {
    let kinds = [None, Some(KeyKind::Sequential), Some(KeyKind::BitReversed)];
    for values in [
        vec![i64::MIN],
        vec![i64::MIN, -1, 0],
        vec![-1, -2, -3],
        vec![0],
        vec![1 << 62],
        vec![(1 << 62) + 1],
        vec![i64::MAX],
        vec![i64::MIN, i64::MAX],
        vec![1, i64::MAX - 1],
        vec![-5, 7],
    ] {
        for (kind, headroom) in
            kinds.iter().flat_map(|kind| [0.0, 0.1, 1.0].map(|headroom| (*kind, headroom)))
        {
            match migrated(&values, kind, headroom) {
                Ok(migration) => check(&values, headroom, &migration),
                Err(error) => assert!(
                    ["less than half", "negative"].iter().any(|why| error.contains(why)),
                    "{values:?}: {error}"
                ),
            }
        }
    }
}

fn ids() -> impl Strategy<Value = i64> {
    prop_oneof![
        1i64..5000,
        -50i64..50,
        (1i64..5000).prop_map(|counter| bit_reverse(counter, true)),
        (0u32..63, -2i64..3).prop_map(|(bit, near)| (1i64 << bit).saturating_add(near)),
        Just(i64::MAX),
        Just(i64::MIN),
        proptest::num::i64::ANY,
    ]
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    #[test]
    fn no_plan_meets_what_is_there_or_may_still_come(
        ids in proptest::collection::hash_set(ids(), 1..20), headroom in prop_oneof![Just(0.0), 0.0f64..1.0], kind in 0usize..3,
    ) {
        let ids: Vec<i64> = ids.into_iter().collect();
        let kind = [None, Some(KeyKind::Sequential), Some(KeyKind::BitReversed)][kind];
        if let Ok(migration) = migrated(&ids, kind, headroom) {
            check(&ids, headroom, &migration);
            // The sequence behaves as `gives` predicts.
            let skip = migration.skip_range.map(|(least, most)| least..=most);
            for value in BitReversedSequence::new(migration.start_counter.unwrap_or(1), skip).take(2000) {
                prop_assert!(gives(&migration, value));
            }
            prop_assert_eq!(migration.collisions, 0);
        }
    }
}
