//! Amounts that grow within each thing, such as the reading of a meter.

use crate::evaluate::roles::profile::{Profile, by_fewest_values};
use crate::evaluate::roles::sequences::{MANY_NUMBERS, MIN_NUMBERS, MIN_OF_A_RANGE, MIN_STARTS, ranges_of};

/// An amount rises at least once in this many rows.
const ROWS_PER_RISE: usize = 4;
/// The range of one parent is at most one of this many parts of the range of all.
const SMALL_PART: i128 = 10;

/// Finds the parent within which the numbers of a column, whose name says nothing, grow or stay as
/// they are from row to row, each over its own small part of their range: the reading of each
/// meter. Ids that all parents share would grow over the whole range, positions would begin again
/// at zero, and the rows of a document have one moment.
pub(super) fn grows_in(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<usize> {
    let numbers = column.numbers.as_ref()?;
    if column.hint.is_some() || column.is_unique() || column.distinct < MANY_NUMBERS {
        return None;
    }
    let first = numbers.iter().min()?;
    let span = numbers.iter().max()? - first;
    let moments: Vec<&Profile<'_>> = columns.iter().filter(|other| other.is_moment()).collect();
    let is_one_moment = |a: usize, b: usize| {
        moments.iter().any(|moment| moment.distinct > 1 && moment.codes.get(a) == moment.codes.get(b))
    };
    let grows = |parent: &Profile<'_>| {
        let mut last: Vec<Option<(usize, i128)>> = vec![None; parent.distinct];
        let (mut pairs, mut above, mut together) = (0usize, 0usize, 0usize);
        for (row, (code, number)) in parent.codes.iter().zip(numbers).enumerate() {
            let Some(last) = last.get_mut(*code as usize) else { continue };
            if let Some((row_before, before)) = last.replace((row, *number)) {
                if *number < before {
                    return false;
                }
                pairs += 1;
                above += usize::from(*number > before);
                together += usize::from(*number == before && is_one_moment(row_before, row));
            }
        }
        let stays = pairs - above;
        pairs * 2 >= numbers.len() && above * ROWS_PER_RISE >= pairs && together * 2 <= stays
    };
    let has_own_range = |parent: &Profile<'_>| {
        let mut ranges = ranges_of(&parent.codes, parent.distinct, numbers);
        ranges.retain(|(rows, ..)| *rows >= MIN_OF_A_RANGE);
        let small = ranges.iter().filter(|(_, least, greatest)| (greatest - least) * SMALL_PART <= span);
        let apart = ranges.iter().filter(|(_, least, _)| (least - first) * SMALL_PART > span);
        ranges.len() >= MIN_STARTS
            && small.count() * 10 >= ranges.len() * 9
            && apart.count() * 2 >= ranges.len()
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

    use arrow::array::{ArrayRef, TimestampMicrosecondArray};
    use evenkeel_stats::sketch::fold;

    use super::*;
    use crate::evaluate::roles::testing::{int64, with_profiles};

    const ROWS: u64 = 8_000;

    fn random(row: u64, below: u64) -> u64 {
        fold(row, 11) % below
    }

    /// Whether the numbers grow within the values of another column.
    fn grows(name: &str, parent: impl Fn(u64) -> u64, number: impl Fn(u64) -> u64) -> bool {
        let columns = [("c1", numbers(parent)), (name, numbers(number))];
        with_profiles(&columns, |profiles| grows_in(&profiles[1], profiles)) == Some(0)
    }

    fn numbers(number: impl Fn(u64) -> u64) -> ArrayRef {
        int64((0..ROWS).map(|row| number(row).cast_signed()))
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
    fn shared_ids_and_positions_do_not_grow_within_things() {
        let user = |row: u64| random(row, 100);
        // Sessions that begin one after another, each with several rows.
        assert!(!grows("c2", user, |row| row / 4));
        // Sorted by user, each has sessions from all times.
        assert!(!grows("c2", |row| row / 80, |row| row % 80 / 2 * 1_000 + random(row / 80, 900)));
        // Positions begin again in each session; a few sessions are long.
        let session = |row: u64| row / 80;
        let length = |session: u64| if session.is_multiple_of(20) { 9_000 } else { 60 };
        assert!(!grows("c2", session, |row| row % 80 * length(session(row))));
        // A name says more than an order.
        let meter = |row: u64| 1_000_000 * random(row / 80, 100) + row % 80 / 2;
        assert!(grows("c2", session, meter));
        assert!(!grows("order_id", session, meter));
    }

    #[test]
    fn rows_of_a_document_have_one_moment() {
        let store = |row: u64| random(row / 2, 40);
        let receipt = |row: u64| store(row) * 1_000_000 + row / 2 * 3;
        let found = |at: &dyn Fn(u64) -> u64| {
            let times = TimestampMicrosecondArray::from_iter_values(
                (0..ROWS).map(|row| 1_772_323_200_000_000 + at(row).cast_signed() * 1_000_000),
            );
            let times: ArrayRef = Arc::new(times);
            let columns = [("c1", numbers(store)), ("c2", numbers(receipt)), ("c3", times)];
            with_profiles(&columns, |profiles| grows_in(&profiles[1], profiles))
        };
        assert_eq!(found(&|row| row / 2), None);
        assert_eq!(found(&|row| row), Some(0));
    }
}
