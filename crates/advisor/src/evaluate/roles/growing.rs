//! Amounts that grow within each thing, such as the reading of a meter.

use crate::evaluate::roles::numbering::{MANY_NUMBERS, MIN_NUMBERS, MIN_OF_A_RANGE, by_fewest_values};
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::sequences::{MIN_STARTS, ranges_of};

/// An amount grows in at least one of this many rows.
const GROWS_AT_LEAST: usize = 4;
/// An amount grows over at most one of this many parts of the range of all parents.
const SMALL_PART: i128 = 10;

/// Finds the parent within which the numbers of a column, whose name says nothing, grow or stay as
/// they are from row to row, each over a small part of their range: the reading of each meter. Ids
/// that all parents share would grow over the whole range.
pub(super) fn grows_in(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<usize> {
    let numbers = column.numbers.as_ref()?;
    if column.hint.is_some() || column.is_unique() || column.distinct < MANY_NUMBERS {
        return None;
    }
    let span = numbers.iter().max()? - numbers.iter().min()?;
    let grows = |parent: &Profile<'_>| {
        let mut last: Vec<Option<i128>> = vec![None; parent.distinct];
        let (mut pairs, mut above) = (0usize, 0usize);
        for (code, number) in parent.codes.iter().zip(numbers) {
            let Some(last) = last.get_mut(*code as usize) else { continue };
            if let Some(before) = last.replace(*number) {
                if *number < before {
                    return false;
                }
                pairs += 1;
                above += usize::from(*number > before);
            }
        }
        pairs * 2 >= numbers.len() && above * GROWS_AT_LEAST >= pairs
    };
    let has_own_range = |parent: &Profile<'_>| {
        let mut ranges = ranges_of(&parent.codes, parent.distinct, numbers);
        ranges.retain(|(rows, ..)| *rows >= MIN_OF_A_RANGE);
        let small = ranges.iter().filter(|(_, least, greatest)| (greatest - least) * SMALL_PART <= span);
        ranges.len() >= MIN_STARTS && small.count() * 10 >= ranges.len() * 9
    };
    // Between rows of different parents, own ranges fall as often as they rise, and a sequence that
    // all share rises.
    let falls_between = |parent: &Profile<'_>| {
        let pairs = parent.codes.windows(2).zip(numbers.windows(2));
        let between: Vec<bool> = pairs
            .filter(|(codes, _)| codes.first() != codes.last())
            .map(|(_, numbers)| numbers.first() > numbers.last())
            .collect();
        between.iter().filter(|falls| **falls).count() * 4 >= between.len()
    };
    let can_be_parent = |parent: &Profile<'_>| {
        parent.distinct >= MIN_NUMBERS
            && parent.distinct * 2 <= parent.rows
            && parent.column.name != column.column.name
            && !parent.is_time()
    };
    by_fewest_values(columns, can_be_parent)
        .find(|(_, parent)| grows(parent) && falls_between(parent) && has_own_range(parent))
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use evenkeel_model::table::{Column, ColumnType};
    use evenkeel_stats::sketch::fold;

    use super::*;

    const ROWS: u64 = 8_000;

    fn random(row: u64, below: u64) -> u64 {
        fold(row, 11) % below
    }

    /// Whether the numbers grow within the values of another column.
    fn grows(name: &str, parent: impl Fn(u64) -> u64, number: impl Fn(u64) -> u64) -> bool {
        let declared = ["c1", name].map(|name| Column::required(name, ColumnType::Int64));
        let array = |value: &dyn Fn(u64) -> u64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| value(row).cast_signed())))
        };
        let batch = [RecordBatch::try_from_iter([("c1", array(&parent)), (name, array(&number))]).unwrap()];
        let profiles: Vec<Profile<'_>> = declared
            .iter()
            .enumerate()
            .map(|(index, column)| Profile::new(column, index, &batch, true))
            .collect();
        grows_in(&profiles[1], &profiles) == Some(0)
    }

    #[test]
    fn meters_grow_within_each_thing_whatever_the_order_of_the_rows() {
        // In each row a vehicle may have travelled on; in a tenth of the rows it has not.
        let distance =
            |vehicle: u64, row: u64| 9_000 * random(vehicle, 1_000) + (row - u64::from(row % 10 == 9)) * 7;
        let vehicle = |row: u64| random(row, 100);
        assert!(grows("c2", vehicle, |row| distance(vehicle(row), row)));
        let sorted = |row: u64| row / 80;
        assert!(grows("c2", sorted, |row| distance(sorted(row), row % 80)));
    }

    #[test]
    fn shared_ids_and_amounts_do_not_grow_within_things() {
        let user = |row: u64| random(row, 100);
        // Sessions that begin one after another, each with several rows.
        assert!(!grows("c2", user, |row| row / 4));
        // Sorted by user, each has sessions from all times.
        assert!(!grows("c2", |row| row / 80, |row| row % 80 / 2 * 1_000 + random(row / 80, 900)));
        assert!(!grows("c2", user, |row| 10_000 * user(row) + random(row, 500)));
        // A name says more than an order.
        assert!(!grows("order_id", |row| row / 80, |row| 1_000_000 * random(row / 80, 100) + row % 80 / 2));
    }
}
