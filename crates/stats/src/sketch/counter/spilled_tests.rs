//! Rows of keys in any order, some moved to disk and back, compared with a map from key to rows.

use std::collections::BTreeMap;

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;
use crate::sketch::counter::values::Values;
use crate::sketch::fold;
use evenkeel_model::wire::{seal, unseal};

#[derive(Debug, Clone, Copy)]
enum Step {
    Add(u64),
    PutAside(u64, u64),
    WriteOut,
    ReadBack,
    PutTogether,
    Send,
}

/// Keys of three parts that share two places of the front, and the bits between the two.
fn identities() -> impl Strategy<Value = u64> {
    let parts = proptest::sample::select(vec![0u64, 1, 511]);
    (parts, 0u64..3, 0u64..2).prop_map(|(part, middle, place)| (part << 55) | (middle << 20) | place)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        9 => identities().prop_map(Step::Add),
        3 => (identities(), 1u64..4).prop_map(|(identity, rows)| Step::PutAside(identity, rows)),
        1 => Just(Step::WriteOut),
        1 => Just(Step::ReadBack),
        1 => Just(Step::PutTogether),
        1 => Just(Step::Send),
    ];
    proptest::collection::vec(step, 0..80)
}

/// Returns the counts as they arrive on another machine.
fn sent(mut spilled: Spilled) -> Spilled {
    spilled.read_back().unwrap();
    let sealed = seal(|bytes| spilled.put(bytes));
    let mut left = unseal(&sealed).unwrap();
    let arrived = Spilled::take(&mut left).unwrap();
    left.end().unwrap();
    arrived
}

fn take(spilled: Spilled, step: Step) -> Spilled {
    let mut spilled = spilled;
    match step {
        Step::Add(identity) => {
            let at_hand = spilled.add(identity);
            assert_eq!(at_hand, spilled.rows_at_hand(identity));
        }
        Step::PutAside(identity, rows) => spilled.put_aside(identity, rows),
        Step::WriteOut => spilled.write_out().unwrap(),
        Step::ReadBack => spilled.read_back().unwrap(),
        Step::PutTogether => spilled.put_together(),
        Step::Send => return sent(spilled),
    }
    spilled
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_row_is_lost_or_counted_twice_wherever_it_is_kept(steps in steps(), most in 0usize..5) {
        let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
        for step in &steps {
            match step {
                Step::Add(identity) => *rows.entry(*identity).or_default() += 1,
                Step::PutAside(identity, more) => *rows.entry(*identity).or_default() += more,
                _ => {}
            }
        }
        let counted = || steps.iter().fold(Spilled::default(), |spilled, step| take(spilled, *step));
        let spilled = counted();
        for (identity, rows) in &rows {
            prop_assert!(spilled.rows_at_hand(*identity) <= *rows, "{}", identity);
        }
        let (mut visited, mut each) = (BTreeMap::new(), BTreeMap::new());
        spilled.visit(&mut |identity, rows| *visited.entry(identity).or_default() += rows).unwrap();
        prop_assert_eq!(&visited, &rows);
        counted().each(&mut |identity, rows| *each.entry(identity).or_default() += rows).unwrap();
        prop_assert_eq!(&each, &rows);

        let totals = spilled.total(most).unwrap();
        let mut weights = KeyWeights::default();
        rows.values().for_each(|rows| weights.add(*rows));
        prop_assert_eq!(totals.weights, weights);
        prop_assert_eq!(totals.keys_with_one_row, rows.values().filter(|rows| **rows == 1).count() as u64);
        let mut sorted: Vec<(u64, u64)> = rows.into_iter().collect();
        sorted.sort_by_key(|(identity, rows)| (u64::MAX - rows, *identity));
        sorted.truncate(most);
        let heaviest = Values::<u64>::default().with_values(totals.heaviest);
        let heaviest: Vec<(u64, u64)> = heaviest.iter().map(|key| (key.identity, key.rows)).collect();
        prop_assert_eq!(heaviest, sorted);
    }
}

#[test]
fn a_key_is_at_hand_until_another_takes_its_place() {
    let mut spilled = Spilled::default();
    let (key, rival) = (5, 5 + FRONT_SLOTS as u64);
    assert_eq!([(); 3].map(|()| spilled.add(key)), [1, 2, 3]);
    assert_eq!(spilled.bytes_of_keys(), 0, "nothing is buffered");
    assert_eq!(spilled.add(rival), 1);
    assert_eq!((spilled.rows_at_hand(key), spilled.rows_at_hand(rival)), (0, 1));
    assert_eq!(spilled.bytes_of_keys(), 16, "a key with its three rows");
    assert_eq!(spilled.add(key), 1);
    assert_eq!(spilled.bytes_of_keys(), 16 + 8, "and one with a single row");
    spilled.add(rival);
    assert_eq!(spilled.bytes_of_keys(), 16 + 8 + 8);
    // The key has 3 + 1 rows; each is in the list once.
    spilled.put_together();
    assert_eq!(spilled.bytes_of_keys(), 16 + 8);
}

#[test]
fn keys_on_disk_take_no_memory() {
    let nothing = Spilled::default().bytes_after(0);
    let mut spilled = Spilled::default();
    for round in 1..=3 {
        spilled.put_aside(1, 1);
        spilled.put_aside(u64::MAX, 2);
        assert!(spilled.bytes_after(0) > nothing, "{round}");
        spilled.write_out().unwrap();
        assert_eq!(spilled.bytes_after(0), nothing, "{round}");
        assert_eq!((spilled.bytes_on_disk(), spilled.bytes_of_keys()), (24 * round, 24 * round));
    }
    spilled.read_back().unwrap();
    assert_eq!((spilled.bytes_on_disk(), spilled.bytes_of_keys()), (0, 72));
    assert!(spilled.bytes_after(0) > nothing);
}

#[test]
fn rows_take_no_more_memory_than_was_foreseen() {
    let mut spilled = Spilled::default();
    for (batch, rows) in [10_000u64, 500, 50_000, 3_000, 100_000].into_iter().enumerate() {
        let foreseen = spilled.bytes_after(rows as usize);
        // Keys of one row, then keys with two rows one after the other.
        let key = |row: u64| fold(if batch % 2 == 0 { row } else { row / 2 }, batch as u64);
        (0..rows).for_each(|row| {
            spilled.add(key(row));
        });
        assert!(spilled.bytes_after(0) <= foreseen, "{batch}");
    }
}
