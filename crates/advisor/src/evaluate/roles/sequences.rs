//! Sequences of numbers in the order of the rows.

use std::collections::HashMap;

/// Fewest values of a serial number, and fewest with which values may repeat in a parent.
pub(super) const MIN_NUMBERS: usize = 10;
pub(super) const MANY_NUMBERS: usize = 100;
/// Minimum number of rows of a parent that show the range of its numbers.
pub(super) const MIN_OF_A_RANGE: i32 = 8;
/// Number of restarts of a number above which rows are sorted by its parent.
pub(super) const MIN_STARTS: usize = 5;

/// Whether the parent changes when the numbers of sorted rows start again, and rarely at other
/// rows.
pub(super) fn changes_with(parents: &[u32], numbers: &[i128]) -> bool {
    let changes = parents.windows(2).map(|pair| pair.first() != pair.last());
    let starts = numbers.windows(2).map(|pair| pair.first() > pair.last());
    let (mut changed, mut started, mut both) = (0, 0, 0);
    for (change, start) in changes.zip(starts) {
        changed += usize::from(change);
        started += usize::from(start);
        both += usize::from(change && start);
    }
    started >= MIN_STARTS && both * 10 >= started * 8 && changed <= 2 * started
}

/// Whether the numbers run through the same range after each restart: they number the same things
/// in each parent, not its rows.
pub(super) fn starts_at_the_same(numbers: &[i128]) -> bool {
    let (Some(least), Some(greatest)) = (numbers.iter().min(), numbers.iter().max()) else { return false };
    let near = |number: &i128, end: &i128| (number - end).abs() * 10 <= greatest - least;
    let restarts = numbers.windows(2).filter_map(|pair| match pair {
        [last, first] if first < last => Some(near(last, greatest) || near(first, least)),
        _ => None,
    });
    let (same, all) = restarts.fold((0, 0), |(same, all), near| (same + usize::from(near), all + 1));
    same * 10 > all * 8
}

/// Share of the rows whose number equals that of the previous row with the same code, or follows it
/// at the most frequent distance; zero if the number rarely changes, or decreases.
pub(super) fn series(numbers: &[i128], codes: &[u32]) -> f64 {
    let parents = codes.iter().max().map_or(0, |most| *most as usize + 1);
    let mut last: Vec<Option<i128>> = vec![None; parents];
    let mut distances: HashMap<i128, usize, ahash::RandomState> = HashMap::default();
    let mut falls = 0;
    for (number, code) in numbers.iter().zip(codes) {
        if let Some(before) = last.get_mut(*code as usize).and_then(|last| last.replace(*number)) {
            *distances.entry(number - before).or_default() += 1;
            falls += usize::from(*number < before);
            if falls * 100 > numbers.len() {
                return 0.0;
            }
        }
    }
    let rows: usize = distances.values().sum();
    let same = distances.get(&0).copied().unwrap_or(0);
    let next = distances.iter().filter(|(distance, _)| **distance > 0).map(|(_, rows)| *rows).max();
    let next = next.unwrap_or(0);
    if next * 10 < rows || falls * 100 > rows || rows * 2 < numbers.len() {
        return 0.0;
    }
    (same + next) as f64 / rows as f64
}

/// Number of rows, least and greatest number of each parent.
pub(super) fn ranges_of(codes: &[u32], parents: usize, numbers: &[i128]) -> Vec<(i32, i128, i128)> {
    let mut ranges = vec![(0, i128::MAX, i128::MIN); parents];
    for (code, number) in codes.iter().zip(numbers) {
        if let Some((rows, least, greatest)) = ranges.get_mut(*code as usize) {
            *rows += 1;
            *least = (*least).min(*number);
            *greatest = (*greatest).max(*number);
        }
    }
    ranges
}

/// Whether most parents with several rows have numbers from the whole range: the same things, such
/// as the accounts of each day. Numbers of their rows would end at the number of these.
pub(super) fn has_the_same_range(codes: &[u32], parents: usize, numbers: &[i128]) -> bool {
    let (Some(least), Some(greatest)) = (numbers.iter().min(), numbers.iter().max()) else { return false };
    let mut ranges = ranges_of(codes, parents, numbers);
    ranges.retain(|(rows, ..)| *rows >= 3);
    // The least and the greatest of n numbers from a range are about an nth of it from its ends.
    let is_whole = |(rows, from, to): &&(i32, i128, i128)| {
        let near = (greatest - least) / i128::from(*rows).min(10) * 3 / 2;
        from - least <= near && greatest - to <= near
    };
    let is_spread = ranges.iter().filter(is_whole).count() * 10 >= ranges.len() * 6;
    !ranges.is_empty() && is_spread
}
