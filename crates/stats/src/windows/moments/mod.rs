//! Short windows, from a second on: which partitions are busy at any moment.
//!
//! ```text
//! windows of 1 s     sampled: those whose hashed number begins with `thinned` zero bits
//! windows of 10 s    sampled, less thinly
//! windows of 1 min   complete, until there are more windows than may be kept; then the next
//!                    length begins with all of their rows
//! ```
//! The choice of windows depends only on which windows have rows, not on the order of rows, on
//! batches or on the parts that are merged. A kept window has all of its rows.

mod axis;
mod batch;
mod counts;
mod sampling;
mod scale;

pub use crate::windows::moments::axis::MomentAxis;
pub use crate::windows::moments::batch::{Moment, MomentRows};
pub use crate::windows::moments::counts::MomentCounts;
pub use crate::windows::moments::sampling::{moment_counters, most_moments};
pub use crate::windows::moments::scale::Scale;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, TimestampMicrosecondArray};

    use super::*;
    use crate::windows::counts::Window;
    use crate::windows::moments::sampling::LENGTHS;
    use evenkeel_model::units::{Micros, PartitionId};
    use evenkeel_model::wire::{seal, unseal};

    const MOST: usize = 64;

    fn counted(values: &[(i64, u32)], batch_rows: usize) -> (MomentAxis, MomentCounts) {
        let (mut axis, mut counts) = (MomentAxis::new(Micros::new(1), MOST), MomentCounts::new(4));
        for batch in values.chunks(batch_rows) {
            let times: ArrayRef =
                Arc::new(TimestampMicrosecondArray::from_iter_values(batch.iter().map(|(at, _)| *at)));
            let rows = axis.add(&times);
            counts.add(&rows, |row| Some(PartitionId(batch[row].1)));
        }
        (axis, counts)
    }

    type Figures = Vec<(Micros, u64, Vec<Window>, Vec<Moment>)>;

    fn figures((axis, counts): &(MomentAxis, MomentCounts)) -> Figures {
        let partitions = [0, 1, 2, 3].map(PartitionId);
        let scales = axis.scales(counts, &partitions);
        scales.map(|scale| (scale.length, scale.one_in, scale.windows, scale.moments)).collect()
    }

    /// Counts the rows of each window and partition by plain division, and whether all share one
    /// time.
    fn plain(values: &[(i64, u32)], length: Micros) -> BTreeMap<i64, (Vec<u64>, bool)> {
        let mut windows: BTreeMap<i64, (Vec<u64>, Vec<i64>)> = BTreeMap::new();
        for (at, partition) in values {
            let window =
                windows.entry(at.div_euclid(length.get())).or_insert_with(|| (vec![0; 4], Vec::new()));
            window.0[*partition as usize] += 1;
            window.1.push(*at);
        }
        let mixed = |times: &[i64]| times.iter().any(|at| *at != times[0]);
        windows.into_iter().map(|(number, (rows, times))| (number, (rows, mixed(&times)))).collect()
    }

    fn values(rows: i64, spacing: i64) -> Vec<(i64, u32)> {
        // Every time occurs twice, and times are not in order.
        (0..rows).map(|row| ((row ^ 5) / 2 * spacing, (row % 4) as u32)).collect()
    }

    #[test]
    fn windows_that_are_kept_are_whole_and_the_last_length_has_them_all() {
        for spacing in [1_000, 300_000, 1_000_000, 7_000_000, 3_600_000_000, 90_000_000_000] {
            let values = values(3_000, spacing);
            let by_length = figures(&counted(&values, 100));
            assert_eq!(by_length.len(), LENGTHS.len());
            for (length, one_in, windows, moments) in by_length {
                let expected = plain(&values, length);
                let kept = windows.len();
                assert!(kept <= MOST || length == Micros::DAY, "{spacing} {length}: {kept}");
                assert!(one_in > 1 || kept == expected.len(), "{spacing} {length}: {kept}");
                assert!(kept > MOST / 8 || kept == expected.len(), "{spacing} {length}: {kept}");
                for (window, moment) in windows.iter().zip(&moments) {
                    let (rows, mixed) = &expected[&window.number];
                    assert_eq!(
                        (&window.rows_per_partition, moment.mixed),
                        (rows, *mixed),
                        "{spacing} {length}"
                    );
                    assert_eq!(moment.rows, rows.iter().sum::<u64>());
                }
            }
        }
    }

    #[test]
    fn short_windows_do_not_depend_on_batches_order_or_parts() {
        for spacing in [1_000, 400_000, 60_000_000] {
            let values = values(4_000, spacing);
            let whole = figures(&counted(&values, 4_000));
            for batch_rows in [1, 7, 900] {
                assert_eq!(figures(&counted(&values, batch_rows)), whole, "{spacing} {batch_rows}");
            }
            let mut turned = values.clone();
            turned.reverse();
            let half = turned.len() / 2;
            turned[..half].sort_by_key(|(at, _)| at % 7_001);
            assert_eq!(figures(&counted(&turned, 500)), whole, "{spacing}");
            for parts in [2, 5, 40] {
                let (mut axis, mut counts) = counted(&[], 1);
                for part in values.chunks(values.len().div_ceil(parts)) {
                    let (more, of_key) = counted(part, 64);
                    let sealed = seal(|bytes| {
                        more.put(bytes);
                        of_key.put(bytes);
                    });
                    let mut left = unseal(&sealed).unwrap();
                    let (more, of_key) = (axis.take(&mut left).unwrap(), counts.take(&mut left).unwrap());
                    axis.merge(more);
                    counts.merge(of_key, &axis);
                }
                assert_eq!(figures(&(axis, counts)), whole, "{spacing} {parts}");
            }
        }
    }

    #[test]
    fn rows_without_a_time_are_in_no_window_and_the_ends_of_time_are_taken() {
        let mut axis = MomentAxis::new(Micros::new(1), MOST);
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
            None,
            Some(i64::MIN),
            Some(i64::MAX),
            None,
            Some(5),
        ]));
        let rows = axis.add(&times);
        let mut counts = MomentCounts::new(1);
        counts.add(&rows, |_| Some(PartitionId(0)));
        let rows: u64 = figures(&(axis, counts))[0].3.iter().map(|moment| moment.rows).sum();
        assert_eq!(rows, 3);
    }
}
