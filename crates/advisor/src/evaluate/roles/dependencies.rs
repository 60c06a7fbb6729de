//! Columns that follow from one another in the sampled rows.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::{self, Hint};
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::texts::Words;

/// Dependencies between columns, by position.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    /// Columns that each column determines: rows that are equal in it are equal in them.
    pub(crate) determines: Vec<Vec<usize>>,
    /// Column that is one-to-one with each column and represents it, if any.
    pub(crate) copy_of: Vec<Option<usize>>,
    /// Two columns that together determine each column of numbers, if there are such.
    pub(crate) follows: Vec<Option<(usize, usize)>>,
}

/// Maximum number of columns that are tried in pairs.
const MAX_PAIRED: usize = 16;
/// Number of values above which a column of numbers may be an attribute of a pair.
const MANY_VALUES: usize = 64;
/// Share of the rows that must repeat a value for a dependency to mean anything.
const REPEATED: f64 = 0.2;

impl Dependencies {
    pub(crate) fn from_columns(columns: &[Profile<'_>]) -> Self {
        let determines: Vec<Vec<usize>> = columns
            .par_iter()
            .enumerate()
            .map(|(from, column)| {
                let repeats = column.rows.saturating_sub(column.distinct) as f64;
                if column.is_constant() || repeats < REPEATED * column.rows as f64 {
                    return Vec::new();
                }
                let repeats = some_repeats(column);
                let others = columns
                    .iter()
                    .enumerate()
                    .filter(|(to, other)| *to != from && !other.is_constant())
                    .filter(|(_, other)| repeats.iter().all(|(a, b)| are_equal(other, *a, *b)))
                    .filter(|(_, other)| determines(column, other))
                    .filter(|(_, other)| !is_rescaled(column, other));
                others.map(|(to, _)| to).collect()
            })
            .collect();
        let one_to_one = |a: usize, b: usize| {
            let has =
                |from: usize, to: usize| determines.get(from).is_some_and(|to_all| to_all.contains(&to));
            has(a, b) && has(b, a)
        };
        // Of several one-to-one columns, the one named as an identifier represents all.
        let rank = |at: usize| {
            let column = columns.get(at);
            let hint = column.and_then(|column| column.hint);
            let is_derived = column.is_some_and(|column| names::is_derived(&column.column.name));
            // A code stands for the kind that words describe.
            let describes_kind =
                |column: &Profile<'_>| column.form.is_words() && column.distinct <= MANY_VALUES;
            let is_label =
                column.is_some_and(|column| names::is_label(&column.column.name) || describes_kind(column));
            let is_time = column.is_some_and(Profile::is_moment);
            let order = match hint {
                _ if is_derived => 6,
                Some(Hint::Identifier) => 0,
                Some(Hint::Entity) if !is_label => 1,
                // Each order has a different moment, which does not represent the order.
                _ if column.is_some_and(has_many_codes) => 2,
                // A date represents the day of its month: the next month has the same days.
                _ if is_time => 3,
                // A name belongs to a code.
                _ if is_label => 5,
                _ => 4,
            };
            (order, at)
        };
        // A place has coordinates, which do not represent it.
        let is_amount = |at: usize| {
            columns.get(at).is_some_and(|column| match &column.form {
                Form::Fractions => true,
                Form::Text(words) => words.decimals > 0.5,
                _ => false,
            })
        };
        let is_text = |at: usize| columns.get(at).is_some_and(|column| matches!(column.form, Form::Text(_)));
        let can_represent =
            |other: usize, column: usize| is_amount(column) || !is_text(column) || !is_amount(other);
        let copy_of = (0..columns.len())
            .map(|column| {
                let others = (0..columns.len())
                    .filter(|other| one_to_one(*other, column) && can_represent(*other, column));
                others.min_by_key(|other| rank(*other)).filter(|other| rank(*other) < rank(column))
            })
            .collect();
        let follows = (0..columns.len()).into_par_iter().map(|column| follows(column, columns)).collect();
        Self { determines, copy_of, follows }
    }
}

/// Number of values above which codes do not number weeks or quarters.
const MANY_CODES: usize = 500;

/// Whether a column has codes of many things: one word with digits in each row.
fn has_many_codes(column: &Profile<'_>) -> bool {
    let are_codes = |words: &Words| words.are_codes() && words.dates < 0.5;
    column.distinct > MANY_CODES && matches!(&column.form, Form::Text(words) if are_codes(words))
}

/// Correlation above which numbers are the same amount in another unit.
const RESCALED: f64 = 0.9999;

/// Whether a column has the numbers of another one in another unit, as a commission is a share of a
/// price: no property of its values.
fn is_rescaled(column: &Profile<'_>, other: &Profile<'_>) -> bool {
    let (own, others) = (&column.numbers, other.numbers.as_ref().or(other.amounts.as_ref()));
    own.as_ref().zip(others).is_some_and(|(own, others)| {
        column.distinct > MANY_VALUES && correlation(own, others).abs() >= RESCALED
    })
}

/// Correlation of pairs of numbers after Pearson; 0 if either is constant.
fn correlation(a: &[i128], b: &[i128]) -> f64 {
    let rows = a.len().min(b.len()).max(1) as f64;
    let mean = |numbers: &[i128]| numbers.iter().map(|number| *number as f64).sum::<f64>() / rows;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut both, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (*a as f64 - mean_a, *b as f64 - mean_b);
        both += a * b;
        of_a += a * a;
        of_b += b * b;
    }
    if of_a > 0.0 && of_b > 0.0 { both / (of_a * of_b).sqrt() } else { 0.0 }
}

/// Number of pairs of rows that suffices for most columns to show that no other column determines
/// them.
const SOME_REPEATS: usize = 16;

/// Returns some pairs of rows with the same value.
fn some_repeats(column: &Profile<'_>) -> Vec<(usize, usize)> {
    let mut first_rows: Vec<Option<usize>> = vec![None; column.distinct];
    let repeat = |(row, code): (usize, &u32)| {
        let first = first_rows.get_mut(*code as usize)?;
        let repeat = first.map(|first| (first, row));
        first.get_or_insert(row);
        repeat
    };
    column.codes.iter().enumerate().filter_map(repeat).take(SOME_REPEATS).collect()
}

/// Whether two rows have the same value.
fn are_equal(column: &Profile<'_>, a: usize, b: usize) -> bool {
    column.codes.get(a) == column.codes.get(b)
}

/// Whether rows that are equal in `from` are equal in `to`.
fn determines(from: &Profile<'_>, to: &Profile<'_>) -> bool {
    if to.distinct > from.distinct {
        return false;
    }
    let mut known: Vec<Option<u32>> = vec![None; from.distinct];
    from.codes.iter().zip(&to.codes).all(|(from, to)| match known.get_mut(*from as usize) {
        Some(Some(known)) => known == to,
        Some(unknown) => {
            *unknown = Some(*to);
            true
        }
        None => false,
    })
}

/// Finds two columns that together determine a column of numbers: origin and destination determine
/// the distance.
fn follows(at: usize, columns: &[Profile<'_>]) -> Option<(usize, usize)> {
    let column = columns.get(at)?;
    if column.numbers.is_none() || column.distinct <= MANY_VALUES {
        return None;
    }
    let mut others: Vec<usize> = (0..columns.len())
        .filter(|other| {
            columns.get(*other).is_some_and(|profile| {
                *other != at && !profile.is_constant() && profile.distinct * 2 < profile.rows
            })
        })
        .collect();
    // Distances follow from places rather than from other amounts.
    let rank = |other: &usize| {
        let other = columns.get(*other);
        (
            other.is_some_and(|profile| profile.hint == Some(Hint::Measure)),
            std::cmp::Reverse(other.map(|profile| profile.distinct)),
        )
    };
    others.sort_by_key(rank);
    others.truncate(MAX_PAIRED);
    for (position, a) in others.iter().enumerate() {
        for b in others.iter().skip(position + 1) {
            if let (Some(first), Some(second)) = (columns.get(*a), columns.get(*b))
                && !determines(first, column)
                && !determines(second, column)
                && determine_together(first, second, column)
            {
                return Some((*a, *b));
            }
        }
    }
    None
}

/// Whether rows that are equal in two columns are equal in a third, and enough of them are.
fn determine_together(a: &Profile<'_>, b: &Profile<'_>, to: &Profile<'_>) -> bool {
    let mut known: HashMap<u64, u32, ahash::RandomState> = HashMap::default();
    let mut repeated = 0;
    for ((a, b), to) in a.codes.iter().zip(&b.codes).zip(&to.codes) {
        match known.entry(u64::from(*a) << 32 | u64::from(*b)) {
            Entry::Occupied(first) if first.get() == to => repeated += 1,
            Entry::Occupied(_) => return false,
            Entry::Vacant(vacant) => {
                vacant.insert(*to);
            }
        }
    }
    repeated as f64 >= REPEATED * to.rows as f64
}
