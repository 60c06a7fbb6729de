//! Lengths and counts of time windows.

use std::sync::Arc;

use arrow::array::TimestampMicrosecondArray;

use super::*;
use crate::windows::counts::WindowCounts;
use evenkeel_model::units::PartitionId;
use evenkeel_model::wire::{seal, unseal};

fn times(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from_iter_values(values))
}

#[test]
fn whatever_the_span_there_are_200_to_500_windows() {
    for span in [1_000i64, 77_777, 1_000_000, 3_600_000_000, 49 * 3_600_000_000, 400 * 86_400_000_000] {
        let mut axis = TimeAxis::new(None, 0, Micros::new(1));
        let rows = 50_000i64;
        for batch in 0..10 {
            let first = batch * rows / 10;
            axis.add(&times((first..first + rows / 10).map(|row| row * span / rows))).unwrap();
        }
        let length = axis.final_length(1);
        let windows = axis.rows_by(length.get() / axis.length.get()).len();
        assert!((200..=501).contains(&windows), "{span}: {windows} windows of {length}");
    }
}

#[test]
fn few_rows_get_longer_windows() {
    let mut axis = TimeAxis::new(None, 0, Micros::new(1));
    axis.add(&times((0..10_000).map(|row| row * 1_000_000))).unwrap();
    let length = axis.final_length(160);
    let counts = axis.rows_by(length.get() / axis.length.get());
    assert!(counts[counts.len() / 2] >= 160, "{length}: {counts:?}");
}

#[test]
fn one_row_far_away_does_not_lengthen_the_windows_of_the_others() {
    let mut axis = TimeAxis::new(None, 0, Micros::new(1));
    axis.add(&times((0..400).map(|row| 1_700_000_000_000_000 + row * 1_000_000))).unwrap();
    axis.add(&times([0])).unwrap();
    assert!(axis.final_length(1) <= Micros::SECOND);
    let range = axis.range(1.0).unwrap();
    assert_eq!((range.late_rows_by_more_than, range.rows_late_for(Micros::HOUR)), ([1; 4], 1));
    assert_eq!(range.earliest_micros, 0);
}

#[test]
fn counts_are_those_of_plain_division_whatever_the_batches() {
    let values: Vec<i64> = (0..20_000).map(|row| (row * 7_919) % 3_000_000_000).collect();
    let partition = |row: usize| PartitionId((row % 4) as u32);
    let counted = |batch_rows: usize| {
        let (mut axis, mut counts) = (TimeAxis::new(None, 0, Micros::new(1)), WindowCounts::new(4));
        for (batch, chunk) in values.chunks(batch_rows).enumerate() {
            let rows = axis.add(&times(chunk.iter().copied())).unwrap();
            let offsets = counts.offsets(&rows);
            for (row, slot) in rows.slots.iter().enumerate() {
                counts.add(offsets[*slot as usize], partition(batch * batch_rows + row), 1);
            }
        }
        counts.windows(Micros::MINUTE, &[0, 1, 2, 3].map(PartitionId))
    };
    let mut expected: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    for (row, at) in values.iter().enumerate() {
        expected.entry(at / 60_000_000).or_insert_with(|| vec![0; 4])[row % 4] += 1;
    }
    for batch_rows in [1, 333, 20_000] {
        let found: BTreeMap<_, _> =
            counted(batch_rows).into_iter().map(|w| (w.number, w.rows_per_partition)).collect();
        assert_eq!(found, expected, "{batch_rows}");
    }
}

#[test]
fn windows_do_not_depend_on_the_batches_or_the_parts() {
    // Two bursts, years apart; every batch has rows of both, or not.
    let burst = |begin: i64| (0..1500).map(move |row| begin + row * 700);
    let values: Vec<i64> = burst(0).chain(burst(300_000_000_000_000)).collect();
    let counted = |values: &[i64], batch_rows: usize| {
        let mut axis = TimeAxis::new(None, 0, Micros::new(1));
        values
            .chunks(batch_rows)
            .for_each(|batch| assert!(axis.add(&times(batch.iter().copied())).is_some()));
        axis
    };
    let whole = counted(&values, 100);
    for batch_rows in [1, 2, 1501, 3000] {
        let axis = counted(&values, batch_rows);
        assert_eq!((axis.length, &axis.rows_of_window), (whole.length, &whole.rows_of_window));
    }
    for parts in [2, 3, 7] {
        let mut merged = TimeAxis::new(None, 0, Micros::new(1));
        for part in values.chunks(values.len().div_ceil(parts)) {
            let mut bytes = Vec::new();
            counted(part, 100).put(&mut bytes);
            let sealed = seal(|sealed| sealed.extend_from_slice(&bytes));
            merged.merge(merged.take(&mut unseal(&sealed).unwrap()).unwrap()).unwrap();
        }
        assert_eq!((merged.length, &merged.rows_of_window), (whole.length, &whole.rows_of_window));
        assert_eq!(merged.range(1.0), whole.range(1.0));
    }
}

#[test]
fn windows_are_not_shorter_than_the_distance_between_instants() {
    const HOUR: i64 = 3_600_000_000;
    let begin = 1_767_225_600_000_000;
    let axis = |instants: &[i64], rows: usize| {
        let mut axis = TimeAxis::new(None, 0, Micros::new(1));
        let rows: Vec<i64> = instants.iter().flat_map(|at| vec![begin + at; rows]).collect();
        rows.chunks(97).for_each(|batch| drop(axis.add(&times(batch.iter().copied()))));
        axis
    };
    let every = |step: i64, count: i64| (0..count).map(|number| number * step).collect::<Vec<_>>();
    for (instants, expected) in [
        (every(HOUR, 48), HOUR),
        (every(24 * HOUR, 30), 24 * HOUR),
        (every(24 * HOUR, 5), 24 * HOUR),
        (every(7 * 24 * HOUR, 40), 7 * 24 * HOUR),
        (every(5 * 60_000_000, 100), 5 * 60_000_000),
        // Midnights three hours east of Greenwich.
        (every(24 * HOUR, 30).into_iter().map(|at| at - 3 * HOUR).collect(), 24 * HOUR),
        (vec![0], 24 * HOUR),
        (vec![HOUR], HOUR),
        (vec![HOUR + 123], 1_000_000),
    ] {
        let axis = axis(&instants, 1000);
        assert_eq!(axis.final_length(1).get(), expected, "{instants:?}");
        let seconds = expected as f64 / 1e6;
        let busy = axis.range(1.0).unwrap().busy_rows_per_second;
        assert!((busy - 1000.0 / seconds).abs() < 1e-9, "{instants:?}: {busy}");
        let (one, other) = instants.split_at(instants.len() / 2);
        let mut merged = TimeAxis::new(None, 0, Micros::new(1));
        for part in [one, other] {
            let mut bytes = Vec::new();
            let part: Vec<i64> = part.iter().flat_map(|at| vec![begin + at; 1000]).collect();
            let mut part_axis = TimeAxis::new(None, 0, Micros::new(1));
            part_axis.add(&times(part)).unwrap();
            part_axis.put(&mut bytes);
            let sealed = seal(|sealed| sealed.extend_from_slice(&bytes));
            merged.merge(merged.take(&mut unseal(&sealed).unwrap()).unwrap()).unwrap();
        }
        assert_eq!(merged.final_length(1).get(), expected, "merged {instants:?}");
    }
}

#[test]
fn a_requested_length_stays_and_has_a_limit() {
    let mut axis = TimeAxis::new(Some(Micros::SECOND), 50_000, Micros::new(1));
    assert!(axis.add(&times((0..5000).map(|row| row * 1_000_000))).is_some());
    assert_eq!(axis.final_length(1_000_000), Micros::SECOND);
    assert!(axis.add(&times((0..100_000).map(|row| row * 1_000_000))).is_none());
}
