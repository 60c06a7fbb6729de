//! Columns that number the rows, or things with several rows, within other columns.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::evaluate::roles::growing::grows_in;
pub(crate) use crate::evaluate::roles::line_numbers::{EQUAL_PARENTS, are_equally_many, counts_lines_of};
use crate::evaluate::roles::line_numbers::{
    MAX_PAIRED, RISING, are_unique_together, day_of, day_within, labels_lines_of, line_of, within_periods,
};
use crate::evaluate::roles::names::{Hint, denotes_staff};
use crate::evaluate::roles::profile::{Profile, by_fewest_values, distinct_together};
use crate::evaluate::roles::sequences::{
    MANY_NUMBERS, MIN_NUMBERS, MIN_OF_A_RANGE, MIN_STARTS, changes_with, has_the_same_range, ranges_of,
    series, starts_at_the_same,
};

/// The role of a column as a counter. Columns within which it counts are given by position.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Numbering {
    /// No recognizable numbering.
    #[default]
    None,
    /// The rows of each parent, from 0 or 1.
    Lines(Vec<usize>),
    /// The rows of each parent, from anywhere.
    Serial(Vec<usize>),
    /// Things that have rows within a parent, such as the orders of a tenant.
    Things(Vec<usize>),
    /// The rows of each parent in reverse, while another column counts up: the remaining number.
    Countdown(Vec<usize>),
    /// The rows of each parent, with gaps: revisions, offsets.
    Rising(usize),
    /// Nothing: an amount that grows within each parent, such as the distance that a vehicle has
    /// travelled.
    Growing(usize),
}

/// Maximum number of values of each of two columns that together number their rows.
const FEW_VALUES: usize = 64;
/// Smallest share of rows with the same number as the previous row or the next one, in a series.
const IN_SERIES: f64 = 0.8;
/// Probability below which the numbers of a parent are not a random draw from the numbers of all
/// parents.
const BY_CHANCE: f64 = 0.01;

impl Numbering {
    /// Finds the numbering of each column.
    pub(crate) fn find_all(columns: &[Profile<'_>]) -> Vec<Self> {
        let serial: Vec<Self> = columns.par_iter().map(|column| Self::serial(column, columns)).collect();
        // Order 17 of a tenant can have lines; order 17 alone is an order of each tenant.
        let mut composite: Vec<Vec<usize>> = serial
            .iter()
            .enumerate()
            .filter_map(|(at, numbering)| match numbering {
                Self::Things(parents) => Some([parents.as_slice(), &[at]].concat()),
                _ => None,
            })
            .collect();
        composite.extend(within_periods(&composite, columns));
        let numbering_of = |(column, serial): (&Profile<'_>, Self)| {
            if column.is_constant() {
                return Self::None;
            }
            let lines = line_of(column, columns, &composite);
            if !lines.is_empty() {
                return Self::Lines(lines);
            }
            if let Some(parent) = labels_lines_of(column, columns) {
                return Self::Lines(vec![parent]);
            }
            let rising = || rises_in(column, columns).map(Self::Rising);
            let ranges = || starts_low_in(column, columns).map(|parent| Self::Things(vec![parent]));
            let growing = || grows_in(column, columns).map(Self::Growing);
            if let Some(day) = day_of(column, columns) {
                return Self::Lines(vec![day]);
            }
            let numbering = if serial == Self::None {
                rising().or_else(ranges).or_else(growing).unwrap_or_default()
            } else {
                serial
            };
            match &numbering {
                Self::Things(parents) => match day_within(column, parents, columns) {
                    Some(day) => Self::Lines([parents.as_slice(), &[day]].concat()),
                    None => numbering,
                },
                _ => numbering,
            }
        };
        let mut numberings: Vec<Self> = columns.par_iter().zip(serial).map(numbering_of).collect();
        let counts_down: Vec<bool> =
            (0..columns.len()).into_par_iter().map(|at| counts_down(at, &numberings, columns)).collect();
        for (numbering, counts_down) in numberings.iter_mut().zip(counts_down) {
            if counts_down {
                *numbering = Self::Countdown(numbering.parents().to_vec());
            }
        }
        // Of two columns that rise within each other, the one with fewer values is the parent.
        let values = |at: usize| columns.get(at).map_or(0, |column| column.distinct);
        let rising: Vec<Option<usize>> = numberings
            .iter()
            .map(|numbering| match numbering {
                Self::Rising(parent) => Some(*parent),
                _ => None,
            })
            .collect();
        for (at, numbering) in numberings.iter_mut().enumerate() {
            let Some(parent) = rising.get(at).copied().flatten() else { continue };
            if rising.get(parent).copied().flatten() == Some(at) && values(parent) >= values(at) {
                *numbering = Self::None;
            }
        }
        // A number that begins again within something identifies nothing that has others.
        let counts: Vec<bool> = numberings
            .iter()
            .map(|numbering| matches!(numbering, Self::Lines(_) | Self::Serial(_) | Self::Rising(_)))
            .collect();
        let counts = |at: &usize| counts.get(*at) == Some(&true);
        for numbering in &mut numberings {
            let is_number = matches!(numbering, Self::Things(_) | Self::Serial(_) | Self::Rising(_));
            if is_number && numbering.parents().iter().any(counts) {
                *numbering = Self::None;
            }
        }
        numberings
    }

    /// Finds the columns within which a column has serial numbers.
    fn serial(column: &Profile<'_>, columns: &[Profile<'_>]) -> Self {
        let parents = serial_of(column, columns);
        let parts: Vec<&Profile<'_>> = parents.iter().filter_map(|at| columns.get(*at)).collect();
        match parts.as_slice() {
            [] => Self::None,
            all if are_unique_together(&[all, &[column]].concat()) => Self::Serial(parents),
            [parent] if has_own_numbers(parent, column) => Self::Things(parents),
            _ => Self::None,
        }
    }

    /// Columns within which it numbers rows or things.
    pub(super) fn parents(&self) -> &[usize] {
        match self {
            Self::None | Self::Growing(_) => &[],
            Self::Lines(parents)
            | Self::Serial(parents)
            | Self::Things(parents)
            | Self::Countdown(parents) => parents,
            Self::Rising(parent) => std::slice::from_ref(parent),
        }
    }
}

/// Finds the columns within whose values `column` numbers the rows one by one, such as the exchange
/// that numbers its trades or the topic and partition that number their records.
fn serial_of(column: &Profile<'_>, columns: &[Profile<'_>]) -> Vec<usize> {
    let Some(numbers) = column.numbers.as_ref() else { return Vec::new() };
    // A number that continues through all rows is not a number within a parent; if it starts again
    // now and then, rows are sorted by the parent.
    if column.rises || column.distinct < MIN_NUMBERS || numbers.iter().any(|number| *number < 0) {
        return Vec::new();
    }
    let everywhere = vec![0; numbers.len()];
    let starts = numbers.windows(2).filter(|pair| pair.first() > pair.last()).count();
    let is_sorted = series(numbers, &everywhere) >= IN_SERIES;
    if is_sorted && (starts < MIN_STARTS || starts_at_the_same(numbers)) {
        return Vec::new();
    }
    let can_number = |parent: &Profile<'_>| {
        parent.distinct * 4 <= parent.rows
            && !parent.is_constant()
            && !parent.is_moment()
            && !denotes_staff(&parent.column.name)
            && parent.column.name != column.column.name
    };
    let parents: Vec<usize> =
        (0..columns.len()).filter(|at| columns.get(*at).is_some_and(can_number)).collect();
    let codes = |at: usize| columns.get(at).map(|parent| parent.codes.as_slice()).unwrap_or_default();
    let numbers_within = |at: &&usize| {
        series(numbers, codes(**at)) >= IN_SERIES
            && (!is_sorted || changes_with(codes(**at), numbers))
            // A small range repeats by itself, such as hours of the day, so it needs better
            // evidence.
            && (column.distinct >= MANY_NUMBERS
                || columns.get(**at).is_some_and(|parent| are_unique_together(&[parent, column])))
    };
    if let Some(parent) = parents.iter().find(numbers_within) {
        return vec![*parent];
    }
    if column.distinct < MANY_NUMBERS {
        return Vec::new();
    }
    let few: Vec<usize> = parents
        .into_iter()
        .filter(|at| columns.get(*at).is_some_and(|parent| parent.distinct <= FEW_VALUES))
        .take(MAX_PAIRED)
        .collect();
    for (position, a) in few.iter().enumerate() {
        for b in few.iter().skip(position + 1) {
            let together = codes(*a).iter().zip(codes(*b)).map(|(a, b)| a * FEW_VALUES as u32 + b);
            let both: Option<Vec<&Profile<'_>>> = [*a, *b].iter().map(|at| columns.get(*at)).collect();
            if series(numbers, &together.collect::<Vec<_>>()) >= IN_SERIES
                && both.is_some_and(|both| are_unique_together(&[both.as_slice(), &[column]].concat()))
            {
                return vec![*a, *b];
            }
        }
    }
    Vec::new()
}

/// Finds the column with the fewest values within which the numbers of a column rise, or fall, from
/// row to row: revisions of documents, offsets within files.
fn rises_in(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<usize> {
    let numbers = column.numbers.as_ref()?;
    if column.distinct < MIN_NUMBERS || numbers.iter().any(|number| *number < 0) {
        return None;
    }
    if column.is_time() {
        return None;
    }
    let span = numbers.iter().max()? - numbers.iter().min()?;
    // A number that rises from row to row rises within every column; only one that starts again
    // when the parent changes is a number within the parent.
    let is_ordered = column.ascends >= RISING || column.ascends <= 1.0 - RISING;
    // If rows are sorted by the parent, whatever they are sorted by next rises within it.
    let is_contiguous = |parent: &Profile<'_>| {
        let changes = parent.codes.windows(2).filter(|pair| pair.first() != pair.last()).count();
        changes < 2 * parent.distinct
    };
    let rises = |parent: &Profile<'_>| {
        let mut last: Vec<Option<i128>> = vec![None; parent.distinct];
        let (mut pairs, mut above, mut below, mut restarts) = (0usize, 0usize, 0usize, 0usize);
        for (code, number) in parent.codes.iter().zip(numbers) {
            let Some(last) = last.get_mut(*code as usize) else { continue };
            if let Some(before) = last.replace(*number) {
                pairs += 1;
                restarts += usize::from((before - number).abs() * 2 > span && *number < before);
                above += usize::from(*number > before);
                below += usize::from(*number < before);
                // Most columns fail within a few rows, which keeps exports of many columns fast.
                if above.min(below) as f64 > (1.0 - RISING) * numbers.len() as f64 {
                    return false;
                }
            }
        }
        // Things that occur in the same order each day start again within their parent; numbers of
        // its rows never do.
        let goes_on = restarts * 10 <= parent.distinct && restarts * 1_000 <= pairs;
        pairs * 5 >= numbers.len()
            && above.max(below) as f64 >= RISING * pairs as f64
            && goes_on
            && !(is_contiguous(parent) && has_the_same_range(&parent.codes, parent.distinct, numbers))
    };
    // The first row of each parent has no predecessor; most columns of many values are excluded
    // here, which keeps exports of thousands of columns fast.
    let can_be_parent = |parent: &Profile<'_>| {
        parent.distinct >= MIN_NUMBERS
            && numbers.len().saturating_sub(parent.distinct) * 5 >= numbers.len()
            && parent.column.name != column.column.name
            && !parent.is_time()
    };
    let is_parent =
        |parent: &Profile<'_>| rises(parent) && (!is_ordered || changes_with(&parent.codes, numbers));
    by_fewest_values(columns, can_be_parent).find(|(_, parent)| is_parent(parent)).map(|(at, _)| at)
}

/// Finds the parent within which the numbers of a column, an identifier by its name, begin again: a
/// small parent has small numbers, which would not hold if all parents shared one sequence.
fn starts_low_in(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<usize> {
    let numbers = column.numbers.as_ref()?;
    if !column.is_named_id()
        || column.rises
        || column.distinct < MANY_NUMBERS
        || numbers.iter().any(|number| *number < 0)
    {
        return None;
    }
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    let up_to =
        |number: i128| sorted.partition_point(|other| *other <= number) as f64 / sorted.len().max(1) as f64;
    let is_parent = |parent: &Profile<'_>| {
        // The numbers of a tenant may begin at 1001; a parent that is no id gives no reason to
        // assume that.
        let first = sorted.first().copied().filter(|_| parent.is_named_id()).unwrap_or_default();
        let mut ranges = ranges_of(&parent.codes, parent.distinct, numbers);
        ranges.retain(|(rows, ..)| *rows >= MIN_OF_A_RANGE);
        // The largest parent has the whole range.
        let judged = ranges.len().saturating_sub(1);
        let is_low = |(rows, least, greatest): &&(i32, i128, i128)| {
            // The least of n numbers from a range is about an nth of it from its beginning.
            (least - first) * i128::from(*rows + 1) <= 6 * (greatest - first)
                && up_to(*greatest).powi(*rows) < BY_CHANCE
        };
        judged >= MIN_STARTS && ranges.iter().filter(is_low).count() * 2 >= judged
    };
    let can_be_parent = |parent: &Profile<'_>| {
        parent.column.name != column.column.name
            && !parent.column.column_type.is_time()
            && parent.distinct > MIN_STARTS
            && parent.distinct < column.distinct
            && parent.hint != Some(Hint::Line)
            && !denotes_staff(&parent.column.name)
            // A value that most rows have is an amount, such as zero.
            && (parent.heaviest * 2 <= parent.rows || parent.is_named_id())
    };
    by_fewest_values(columns, can_be_parent)
        .find(|(_, parent)| is_parent(parent) && repeats_in_others(parent, column))
        .map(|(at, _)| at)
}

/// Whether the numbers of a column fall within a parent while those of another column rise.
fn counts_down(at: usize, numberings: &[Numbering], columns: &[Profile<'_>]) -> bool {
    let (Some(column), Some(numbering @ (Numbering::Lines(parents) | Numbering::Serial(parents)))) =
        (columns.get(at), numberings.get(at))
    else {
        return false;
    };
    let goes_up = |(other, of_other): (&Profile<'_>, &Numbering)| {
        of_other.parents() == numbering.parents() && direction(other, parents, columns) > 0
    };
    // A rank or an id that falls is not a countdown.
    matches!(column.hint, None | Some(Hint::Measure | Hint::Line))
        && direction(column, parents, columns) < 0
        && columns.iter().zip(numberings).any(goes_up)
}

/// Returns 1 if numbers rise from row to row within one parent, -1 if they fall, otherwise 0.
fn direction(column: &Profile<'_>, parents: &[usize], columns: &[Profile<'_>]) -> i8 {
    let ([parent], Some(numbers)) = (parents, column.numbers.as_ref()) else { return 0 };
    let Some(parent) = columns.get(*parent) else { return 0 };
    let mut last: Vec<Option<i128>> = vec![None; parent.distinct];
    let (mut up, mut down) = (0usize, 0usize);
    for (code, number) in parent.codes.iter().zip(numbers) {
        let Some(last) = last.get_mut(*code as usize) else { continue };
        if let Some(before) = last.replace(*number) {
            up += usize::from(*number > before);
            down += usize::from(*number < before);
        }
    }
    match (up, down) {
        (up, down) if up > 0 && up as f64 >= RISING * (up + down) as f64 => 1,
        (up, down) if down > 0 && down as f64 >= RISING * (up + down) as f64 => -1,
        _ => 0,
    }
}

/// Whether each parent has its own numbers: parents with all numbers would contain the same things.
fn has_own_numbers(parent: &Profile<'_>, numbers: &Profile<'_>) -> bool {
    let pairs = distinct_together(&[parent, numbers], 0..numbers.rows);
    pairs * 2 <= parent.distinct * numbers.distinct
}

/// Whether parents share many numbers, as they do if each counts from the beginning.
fn repeats_in_others(parent: &Profile<'_>, numbers: &Profile<'_>) -> bool {
    distinct_together(&[parent, numbers], 0..numbers.rows) * 10 >= numbers.distinct * 12
}

#[cfg(test)]
#[path = "numbering_tests.rs"]
mod tests;
