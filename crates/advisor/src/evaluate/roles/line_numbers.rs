//! Columns that number the lines of things: the rows of each parent, from 0 or 1.

use crate::evaluate::roles::names::{
    Hint, denotes_code, denotes_number, denotes_period, denotes_staff, has_several_words,
};
use crate::evaluate::roles::profile::{
    Profile, codes_together, combination, distinct_together, rows_of_codes,
};
use ahash::AHashSet;

/// Maximum number of columns that are tried in pairs.
pub(super) const MAX_PAIRED: usize = 12;
/// Smallest share of rows with a greater number than the previous row of the same parent, in a
/// series with gaps.
pub(super) const RISING: f64 = 0.99;

/// Fewest days, and fewest rows of each, that show that its rows are numbered.
const MIN_DAYS: usize = 3;
const MIN_OF_A_DAY: usize = 20;
/// Greatest number of periods within which things are numbered.
const MAX_PERIODS: usize = 64;
/// Greatest number of a line.
const MAX_LINES: i128 = 10_000;
/// Share of the parents within which a line number counts without gaps; places of a sample cut some
/// parents in two.
const WITHOUT_GAPS: f64 = 0.9;
/// Number of rows that may show that numbers do not count the rows of a parent.
const FIRST_ROWS: usize = 8_192;
/// Fewest texts that number lines, and fewest parents of such lines.
const MIN_LABELS: usize = 10;
/// Share of rows whose text is one of the first in their parent above which texts number its lines.
const MOSTLY_EARLY: f64 = 0.95;
/// Share of parents with the same number of rows above which all are assumed to have it.
pub(crate) const EQUAL_PARENTS: f64 = 0.9;
/// Like [`EQUAL_PARENTS`] for days, some of which a sample cuts off.
const EQUAL_DAYS: f64 = 0.85;

/// Finds the columns within whose values `column` counts, by ones, or by tens if lines are numbered
/// so that others can be inserted: one column, or the columns of `composite` that identify one
/// thing.
pub(super) fn line_of(column: &Profile<'_>, columns: &[Profile<'_>], composite: &[Vec<usize>]) -> Vec<usize> {
    let Some(numbers) = column.numbers.as_ref() else { return Vec::new() };
    let step = if numbers.iter().all(|number| number % 10 == 0) { 10 } else { 1 };
    let numbers: Vec<i128> = numbers.iter().map(|number| number / step).collect();
    let (least, greatest) = (numbers.iter().min().copied(), numbers.iter().max().copied());
    let (Some(least @ 0..=1), Some(0..=MAX_LINES)) = (least, greatest) else { return Vec::new() };
    if column.distinct < fewest_lines(column) || denotes_code(&column.column.name) {
        return Vec::new();
    }
    let can_have_lines = |parent: &Profile<'_>| parent.column.name != column.column.name && !parent.is_time();
    // "session_line_num" counts within sessions, rather than within their processes.
    let noun = column.noun.as_ref().filter(|_| has_several_words(&column.column.name));
    let has_its_name = |parent: &Profile<'_>| noun.is_some() && parent.noun.as_ref() == noun;
    let mut single: Vec<(usize, &Profile<'_>)> =
        columns.iter().enumerate().filter(|(_, parent)| can_have_lines(parent)).collect();
    single.sort_by_key(|(_, parent)| !has_its_name(parent));
    let firsts = numbers.iter().filter(|number| **number == least).count();
    let counts = |(_, parent): &&(usize, &Profile<'_>)| {
        may_be_parent(parent, firsts) && counts_within(&numbers, least, &parent.codes, parent.distinct)
    };
    if let Some((parent, _)) = single.iter().find(counts) {
        return vec![*parent];
    }
    let have_lines = |parents: &&Vec<usize>| {
        let profiles: Vec<&Profile<'_>> = parents.iter().filter_map(|at| columns.get(*at)).collect();
        if profiles.iter().any(|parent| parent.column.name == column.column.name)
            || repeats_soon(&numbers, |row| combination(&profiles, row))
        {
            return false;
        }
        let (codes, distinct) = codes_together(&profiles);
        counts_within(&numbers, least, &codes, distinct)
    };
    let pairs = pairs_of(column, columns);
    composite.iter().chain(&pairs).find(have_lines).cloned().unwrap_or_default()
}

/// Adds a period, by its name, to the columns that identify each thing: documents are numbered anew
/// each year.
pub(super) fn within_periods(composite: &[Vec<usize>], columns: &[Profile<'_>]) -> Vec<Vec<usize>> {
    let is_period = |at: &usize| {
        columns.get(*at).is_some_and(|period| {
            (2..=MAX_PERIODS).contains(&period.distinct) && denotes_period(&period.column.name)
        })
    };
    if composite.is_empty() {
        return Vec::new();
    }
    let periods: Vec<usize> = (0..columns.len()).filter(is_period).take(MAX_PAIRED).collect();
    let with_period = |thing: &Vec<usize>| -> Vec<Vec<usize>> {
        periods
            .iter()
            .filter(|at| !thing.contains(at))
            .map(|at| [thing.as_slice(), &[*at]].concat())
            .collect()
    };
    composite.iter().flat_map(with_period).collect()
}

/// Returns the number of values from which a column may count lines. Of two numbers only a name
/// says that they count: flags do not.
fn fewest_lines(column: &Profile<'_>) -> usize {
    if column.hint == Some(Hint::Line) { 2 } else { 3 }
}

/// Whether a column may be the parent of lines, if `firsts` lines have the first number: nearly
/// each parent has one, or its rows are consecutive. [`counts_within`] decides.
fn may_be_parent(parent: &Profile<'_>, firsts: usize) -> bool {
    let most_repeated = parent.rows / 1_000;
    (firsts + most_repeated) as f64 >= WITHOUT_GAPS * parent.distinct as f64
        || parent.changes * 2 <= parent.rows
}

/// Finds the date column within whose days a column numbers all rows, from 0 or 1: the trades of a
/// day.
pub(super) fn day_of(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<usize> {
    let numbers = column.numbers.as_ref()?;
    let least = numbers.iter().min().copied().filter(|least| (0..=1).contains(least))?;
    let counts = |day: &Profile<'_>| {
        let mut days: Vec<(i128, i128)> = vec![(0, i128::MIN); day.distinct];
        for (code, number) in day.codes.iter().zip(numbers) {
            if let Some((rows, most)) = days.get_mut(*code as usize) {
                *rows += 1;
                *most = (*most).max(*number);
            }
        }
        if are_equally_many(days.iter().map(|(rows, _)| *rows), EQUAL_DAYS) {
            return false;
        }
        let full = days.iter().filter(|(rows, most)| *rows == most - least + 1).count();
        full as f64 >= WITHOUT_GAPS * days.len() as f64 && are_unique_together(&[day, column])
    };
    columns.iter().position(|day| is_day(day) && counts(day))
}

/// Finds the date column within whose days a column numbers all rows of each parent, from 0 or 1:
/// the trades of an exchange.
pub(super) fn day_within(column: &Profile<'_>, parents: &[usize], columns: &[Profile<'_>]) -> Option<usize> {
    let numbers = column.numbers.as_ref()?;
    let least = numbers.iter().min().copied().filter(|least| (0..=1).contains(least))?;
    let numbers_rows = |day: &Profile<'_>| {
        let parents = parents.iter().filter_map(|at| columns.get(*at));
        let together: Vec<&Profile<'_>> = parents.chain([day]).collect();
        let (codes, distinct) = codes_together(&together);
        counts_within(numbers, least, &codes, distinct)
    };
    columns.iter().position(|day| is_day(day) && numbers_rows(day))
}

/// Finds the column whose rows a column numbers by texts, such as "0X", "1", "2" and "2a": rows of
/// a parent are consecutive, and a parent with a few rows has the texts that nearly all have.
pub(super) fn labels_lines_of(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<usize> {
    if column.numbers.is_some()
        || column.distinct < MIN_LABELS
        || column.distinct * 2 > column.rows
        || !denotes_number(&column.column.name)
    {
        return None;
    }
    let rows_of_labels = rows_of_codes(&column.codes, column.distinct);
    let mut labels: Vec<usize> = (0..column.distinct).collect();
    labels.sort_by_key(|label| std::cmp::Reverse(rows_of_labels.get(*label).copied()));
    let mut ranks = vec![0_usize; column.distinct];
    for (rank, label) in labels.into_iter().enumerate() {
        if let Some(place) = ranks.get_mut(label) {
            *place = rank;
        }
    }
    let has_labels = |parent: &Profile<'_>| {
        let rows = rows_of_codes(&parent.codes, parent.distinct);
        if are_equally_many(rows.iter().map(|rows| *rows as i128), EQUAL_PARENTS) {
            return false;
        }
        let is_early = |(label, code): &(&u32, &u32)| {
            let rank = ranks.get(**label as usize).copied().unwrap_or(usize::MAX);
            rank < rows.get(**code as usize).map_or(0, |rows| rows + rows / 8 + 2)
        };
        let early = column.codes.iter().zip(&parent.codes).filter(is_early).count();
        early as f64 >= MOSTLY_EARLY * column.rows as f64 && are_unique_together(&[parent, column])
    };
    let can_be_parent = |parent: &Profile<'_>| {
        parent.gathered
            && !parent.is_time()
            && parent.distinct >= MIN_LABELS
            && parent.distinct * 2 <= parent.rows
    };
    columns.iter().position(|parent| can_be_parent(parent) && has_labels(parent))
}

/// Whether a column has dates of several days with many rows each.
fn is_day(day: &Profile<'_>) -> bool {
    day.is_time() && day.distinct >= MIN_DAYS && day.distinct * MIN_OF_A_DAY <= day.rows
}

/// Whether a column counts the rows of the things that other columns identify together.
pub(crate) fn counts_lines_of(column: &Profile<'_>, parents: &[&Profile<'_>]) -> bool {
    let Some(numbers) = column.numbers.as_ref() else { return false };
    let (least, greatest) = (numbers.iter().min().copied(), numbers.iter().max().copied());
    let (Some(least @ 0..=1), Some(0..=MAX_LINES)) = (least, greatest) else { return false };
    let (codes, distinct) = codes_together(parents);
    column.distinct >= fewest_lines(column)
        && !denotes_code(&column.column.name)
        && counts_within(numbers, least, &codes, distinct)
}

/// Pairs of other columns that may together be the parent of a column.
fn pairs_of(column: &Profile<'_>, columns: &[Profile<'_>]) -> Vec<Vec<usize>> {
    let can_be_part = |at: &usize| {
        columns.get(*at).is_some_and(|part| {
            part.distinct * 4 <= part.rows
                && !part.is_constant()
                && !part.is_moment()
                && !denotes_staff(&part.column.name)
                && part.column.name != column.column.name
        })
    };
    let parts: Vec<usize> = (0..columns.len()).filter(can_be_part).take(MAX_PAIRED).collect();
    let mut pairs: Vec<Vec<usize>> = parts
        .iter()
        .enumerate()
        .flat_map(|(position, a)| parts.iter().skip(position + 1).map(move |b| vec![*a, *b]))
        .collect();
    // Columns with the most values first: a kind adds nothing to a parent.
    let values = |at: &usize| columns.get(*at).map_or(0, |part| part.distinct);
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.iter().map(values).product::<usize>()));
    pairs
}

/// Whether numbers from `least` on count the rows of each of `parents` parents.
fn counts_within(numbers: &[i128], least: i128, codes: &[u32], parents: usize) -> bool {
    // Parents with one row are no evidence, nor is a single parent.
    if parents < 10 || parents * 10 > codes.len() * 9 {
        return false;
    }
    if repeats_soon(numbers, |row| codes.get(row).copied().unwrap_or_default().into()) {
        return false;
    }
    let mut seen: Vec<(usize, i128)> = vec![(0, i128::MIN); parents];
    for (code, number) in codes.iter().zip(numbers) {
        if let Some((rows, most)) = seen.get_mut(*code as usize) {
            *rows += 1;
            *most = (*most).max(*number);
        }
    }
    if are_equally_many(seen.iter().map(|(rows, _)| *rows as i128), EQUAL_PARENTS) {
        return false;
    }
    let full = seen.iter().filter(|(rows, most)| *rows as i128 == most - least + 1).count();
    if (full as f64) < WITHOUT_GAPS * parents as f64 && !rises_within(codes, numbers) {
        return false;
    }
    let mut lines: Vec<(u32, i128)> = codes.iter().copied().zip(numbers.iter().copied()).collect();
    lines.sort_unstable();
    let repeated = lines.windows(2).filter(|pair| pair.first() == pair.last()).count();
    !repeat_often(repeated, codes.len())
}

/// Whether more rows repeat the number of another row of their parent than lines do.
fn repeat_often(repeated: usize, rows: usize) -> bool {
    repeated * 1_000 > rows
}

/// Whether the first rows alone repeat numbers of their parents too often. Most columns are no
/// parents, which the first few hundred of the sampled rows show.
fn repeats_soon(numbers: &[i128], parent: impl Fn(usize) -> u64) -> bool {
    let mut lines = AHashSet::new();
    let mut repeated = 0;
    numbers.iter().take(FIRST_ROWS).enumerate().any(|(row, number)| {
        repeated += usize::from(!lines.insert((parent(row), *number)));
        repeat_often(repeated, numbers.len())
    })
}

/// Whether nearly all parents have the same number of rows: these are the same things in each of
/// them, not its parts.
pub(crate) fn are_equally_many(rows_of_parents: impl Iterator<Item = i128>, share: f64) -> bool {
    let mut rows: Vec<i128> = rows_of_parents.collect();
    rows.sort_unstable();
    let median = rows.get(rows.len() / 2).copied().unwrap_or_default();
    let same = rows.iter().filter(|rows| **rows == median).count();
    same as f64 > share * rows.len() as f64
}

/// Whether the rows of each parent are consecutive with rising numbers, and the numbers often start
/// again with the next parent: lines with gaps, as after a filter.
fn rises_within(parents: &[u32], numbers: &[i128]) -> bool {
    let (mut within, mut rises, mut between, mut falls) = (0usize, 0usize, 0usize, 0usize);
    for (parent, number) in parents.windows(2).zip(numbers.windows(2)) {
        if parent.first() == parent.last() {
            within += 1;
            rises += usize::from(number.first() < number.last());
        } else {
            between += 1;
            falls += usize::from(number.first() > number.last());
        }
    }
    within * 2 > numbers.len() && rises as f64 >= RISING * within as f64 && falls * 2 > between
}

/// Whether almost no row equals another in all columns.
pub(super) fn are_unique_together(columns: &[&Profile<'_>]) -> bool {
    let rows = columns.first().map_or(0, |column| column.rows);
    (rows - distinct_together(columns, 0..rows)) * 1_000 <= rows
}
