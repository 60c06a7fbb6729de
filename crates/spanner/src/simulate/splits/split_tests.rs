//! Splits of a key space whose keys are numbers, alone or divided in two.

use evenkeel_model::units::{ByteSize, Micros};
use proptest::prelude::{prop_assert_eq, proptest};

use super::*;

/// From 30 rows in a window on a split is warm, and from 60 on hot; 1000 bytes are too large.
fn parameters() -> ModelParameters {
    ModelParameters {
        split_size: ByteSize(1000),
        split_rate: 1.0,
        window: Micros::MINUTE,
        delay_windows: 2,
        quiet_windows: 2,
        ..ModelParameters::default()
    }
}

fn first() -> Split {
    Split::new(Box::default(), 0, Origin::Given, 0)
}

fn at(number: u32) -> Boundary {
    Boundary { key: number.to_be_bytes().into(), lead: 4, inside: false }
}

/// Inserts a row for each number, which is its key.
fn insert(split: &mut Split, numbers: impl IntoIterator<Item = u32>, bytes: u32) {
    let mut random = SplitMix::new(1);
    for number in numbers {
        let key = number.to_be_bytes();
        let key = Key { bytes: &key, lead: 4, root: 4 };
        split.insert(key, bytes, 1, Some(&Sampling::default()), &mut random);
    }
}

/// Plays a window with a row for each number, and judges the split at its end.
fn play(split: &mut Split, numbers: impl IntoIterator<Item = u32>) {
    split.window_rows = 0;
    insert(split, numbers, 1);
    split.judge(&parameters(), false);
}

/// Few bytes, so that keys often begin alike.
fn bytes(most: usize) -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    proptest::collection::vec(proptest::sample::select(vec![0u8, 1, 255]), 0..most)
}

proptest! {
    #[test]
    fn a_split_begins_by_a_key_if_its_start_is_not_above_it(
        both in bytes(12), start in bytes(3), key in bytes(3),
    ) {
        let (start, key) = ([both.clone(), start].concat(), [both, key].concat());
        let split = Split::new(start.clone().into_boxed_slice(), 0, Origin::Given, 0);
        prop_assert_eq!(split.begins_by(&key, prefix(&key)), start <= key);
    }

    #[test]
    fn parts_have_the_rows_on_their_side_and_joined_they_are_the_whole(
        rows in proptest::collection::vec((0u32..100, 1u32..1000), 1..300), boundary in 0u32..100,
    ) {
        let mut lower = first();
        rows.iter().for_each(|(number, bytes)| insert(&mut lower, [*number], *bytes));
        let whole = (lower.rows, lower.bytes);
        let upper = lower.divide(at(boundary), Origin::Size, 3);
        let side = |is_above: bool| {
            let side = rows.iter().filter(|(number, _)| (*number >= boundary) == is_above);
            side.fold((0, 0), |(rows, sum), (_, bytes)| (rows + 1, sum + u64::from(*bytes)))
        };
        prop_assert_eq!((lower.rows, lower.bytes), side(false));
        prop_assert_eq!((upper.rows, upper.bytes), side(true));
        prop_assert_eq!(upper.start().to_vec(), boundary.to_be_bytes().to_vec());
        lower.join(upper, &Sampling::default());
        prop_assert_eq!((lower.rows, lower.bytes), whole);
    }
}

#[test]
fn a_split_that_is_too_large_is_divided_where_half_of_its_bytes_are() {
    let boundary = |rows: &[(u32, u32)]| {
        let mut split = first();
        rows.iter().for_each(|(number, bytes)| insert(&mut split, [*number], *bytes));
        split.size_boundary(&parameters())
    };
    let even: Vec<(u32, u32)> = (0..100).map(|number| (number, 10)).collect();
    assert_eq!(boundary(&even), Some(at(50)));
    assert_eq!(boundary(&even[..99]), None, "990 bytes are not too large");
    // Bytes count, not rows, and not the order in which they arrived.
    assert_eq!(boundary(&[(2, 250), (0, 500), (1, 250)]), Some(at(1)));
    assert_eq!(boundary(&[(7, 600), (7, 600)]), None, "rows of one key stay together");
}

#[test]
fn a_hot_split_is_divided_at_the_middle_of_its_load_after_the_delay() {
    let due = |rows: u32| {
        let mut split = first();
        let play = |_| {
            play(&mut split, 0..rows);
            split.due_boundary()
        };
        (1..=5).map(play).collect::<Vec<_>>()
    };
    // It is watched from the end of the first window on. The third is compared with the second.
    assert_eq!(due(60), [None, None, None, None, Some(at(30))]);
    assert!(due(59).iter().all(Option::is_none), "a warm split is not divided");
}

#[test]
fn what_dividing_does_not_cool_is_told_with_the_reason() {
    let stuck = |windows: &[Vec<u32>], is_moving: bool| {
        let mut split = first();
        for numbers in windows {
            split.window_rows = 0;
            insert(&mut split, numbers.iter().copied(), 1);
            split.judge(&parameters(), is_moving);
        }
        split.stuck()
    };
    let mut one_row = vec![vec![7; 60]; 3];
    assert_eq!(stuck(&one_row, false), Some((Obstacle::SingleRow, 60)));
    one_row.push(Vec::new());
    assert_eq!(stuck(&one_row, false), None, "a quiet window forgets it");
    let ascending = [0u32, 70, 140].map(|least| (least..least + 70).collect::<Vec<u32>>());
    assert_eq!(stuck(&ascending, false), Some((Obstacle::MovingHotspot, 70)));
    let spread = vec![(0..60).collect::<Vec<u32>>(); 3];
    assert_eq!(stuck(&spread, false), None, "it can be divided");
    // Too little is known of one window, unless load has left another split for this one.
    assert_eq!(stuck(&spread[..1], false), None);
    assert_eq!(stuck(&spread[..1], true), Some((Obstacle::MovingHotspot, 60)));
}

#[test]
fn a_split_has_cooled_if_it_was_hot_and_is_not_even_warm() {
    let mut split = first();
    play(&mut split, 0..59);
    split.window_rows = 0;
    assert!(!split.has_cooled(&parameters()), "it was only warm");
    play(&mut split, 0..60);
    for (rows, has_cooled) in [(0, true), (29, true), (30, false), (60, false)] {
        split.window_rows = rows;
        assert_eq!(split.has_cooled(&parameters()), has_cooled, "{rows}");
    }
}

#[test]
fn quiet_neighbours_that_load_divided_are_joined_if_they_are_small() {
    let may_join = |origin: Origin, bytes: u32, quiet_windows: u32| {
        let mut lower = first();
        insert(&mut lower, 0..10, bytes);
        let mut upper = lower.divide(at(5), origin, 1);
        for _ in 0..quiet_windows {
            play(&mut lower, []);
            play(&mut upper, []);
        }
        lower.may_join(&upper, &parameters())
    };
    assert!(may_join(Origin::Load, 99, 2));
    assert!(!may_join(Origin::Load, 99, 1), "not yet quiet long enough");
    assert!(!may_join(Origin::Load, 100, 2), "together they would be too large");
    assert!(!may_join(Origin::Size, 99, 2) && !may_join(Origin::Given, 99, 2));
}

#[test]
fn a_division_by_load_that_waits_passes_to_the_part_that_it_divides() {
    // Dividing by size at the same key leaves nothing to divide.
    for (divided_at, of_lower, of_upper) in
        [(20, None, Some(at(30))), (40, Some(at(30)), None), (30, None, None)]
    {
        let mut lower = first();
        (0..3).for_each(|_| play(&mut lower, 0..60));
        let mut upper = lower.divide(at(divided_at), Origin::Size, 1);
        let due = |split: &mut Split| (0..3).find_map(|_| split.due_boundary());
        assert_eq!((due(&mut lower), due(&mut upper)), (of_lower, of_upper), "divided at {divided_at}");
    }
}

#[test]
fn a_transaction_is_new_to_a_split_at_its_first_row_there() {
    let (mut split, mut random) = (first(), SplitMix::new(1));
    let key = Key { bytes: b"k", lead: 1, root: 1 };
    let is_new = [1, 1, 2, 2, 2, 3].map(|transaction| split.insert(key, 1, transaction, None, &mut random));
    assert_eq!(is_new, [true, false, true, false, false, true]);
}
