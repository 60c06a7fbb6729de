//! Columns of numbers that are points in time.

use crate::evaluate::roles::names;
use crate::evaluate::roles::names::Hint;
use crate::evaluate::roles::profile::Profile;
use evenkeel_model::time_reading::TimeReading;

/// Smallest share of rows with at least the value of the previous row in numbers that may be times.
pub(super) const MOSTLY_ASCENDING: f64 = 0.7;

/// Returns how to read numbers as points in time if another column has times of about the same
/// range, such as the end of something with a start.
pub(super) fn epoch_beside<'p>(
    column: &Profile<'_>,
    columns: &'p [Profile<'_>],
) -> Option<(TimeReading, &'p str)> {
    let times = column.times.filter(|times| times.reading.is_time_alone())?;
    if matches!(column.hint, Some(Hint::Identifier | Hint::Entity | Hint::Text)) {
        return None;
    }
    let is_beside = |other: &&Profile<'_>| {
        let known = other.times.filter(|_| other.column.name != column.column.name && epoch(other).is_some());
        known.is_some_and(|known| {
            let length = known.latest_micros.abs_diff(known.earliest_micros);
            let near = |a: i64, b: i64| a.abs_diff(b) <= length / 10;
            near(known.earliest_micros, times.earliest_micros)
                && near(known.latest_micros, times.latest_micros)
        })
    };
    let other = columns.iter().find(is_beside)?;
    Some((times.reading, &other.column.name))
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;
/// Share of rows in which two columns hold nearly the same time, above which both count as times.
const NEAR: f64 = 0.99;
/// Last time, in 2034, of rows in no order: greater numbers are serial numbers of devices.
const LATEST: i64 = 2_050_000_000_000_000;
/// Shortest range of times of rows in no order. A few consecutive ids, read as seconds, would span
/// less.
const SHORTEST: u64 = 60_000_000;
/// Longest range of times, in days, that is narrow compared with the years that numbers may
/// represent.
const NARROW_DAYS: u64 = 1_100;

/// Returns how to read numbers as points in time if they are near another time in nearly every row,
/// whatever their name: the start of a visit, which some systems use as its id.
pub(super) fn epoch_near<'p>(
    column: &Profile<'_>,
    columns: &'p [Profile<'_>],
) -> Option<(TimeReading, &'p str)> {
    let reading = column.times.filter(|times| times.reading.is_time_alone())?.reading;
    let own = column.micros.as_ref()?;
    let is_near = |other: &&Profile<'_>| {
        let Some(others) = other.micros.as_ref().filter(|_| other.column.name != column.column.name) else {
            return false;
        };
        let near = own.iter().zip(others).filter(|(a, b)| a.abs_diff(**b) <= DAY.cast_unsigned()).count();
        own.len() == others.len() && near as f64 >= NEAR * own.len() as f64 && near > 20
    };
    let other = columns.iter().find(is_near)?;
    Some((reading, &other.column.name))
}

/// Whether numbers that are distinct in each row would be times far from every other time of the
/// export: identifiers assigned in order.
pub(super) fn is_apart_from_times(column: &Profile<'_>, columns: &[Profile<'_>]) -> bool {
    let Some(own) = column.times.filter(|times| !times.reading.is_written_out()) else { return false };
    if !column.is_unique() || names::hints(&column.column.name).contains(&Hint::Time) {
        return false;
    }
    let length = |(first, last): (i64, i64)| last.saturating_sub(first).max(0);
    let range = |other: &Profile<'_>| {
        let name = &other.column.name;
        // Births and planned dates are far from the time of an event.
        let is_near = *name != column.column.name && !names::denotes_birth(name) && !names::is_later(name);
        let micros = other.micros.as_ref().filter(|_| is_near)?;
        Some((*micros.iter().min()?, *micros.iter().max()?))
    };
    let shared =
        |(first, last): (i64, i64)| length((first.max(own.earliest_micros), last.min(own.latest_micros)));
    let others: Vec<(i64, i64)> = columns.iter().filter_map(range).collect();
    let own = length((own.earliest_micros, own.latest_micros));
    !others.is_empty() && others.iter().all(|other| shared(*other) < own / 2)
}

/// Name of a date column whose hours, half hours or quarter hours a column numbers. The day on
/// which clocks are set back has up to four more.
pub(super) fn part_of_day<'p>(column: &Profile<'_>, columns: &'p [Profile<'_>]) -> Option<&'p str> {
    let numbers = column.numbers.as_ref().filter(|_| names::denotes_part_of_day(&column.column.name))?;
    let (least, greatest) = (*numbers.iter().min()?, *numbers.iter().max()?);
    let parts = greatest - least + 1;
    let is_whole_day =
        (24..=25).contains(&parts) || (48..=50).contains(&parts) || (96..=100).contains(&parts);
    if !(0..=1).contains(&least) || !is_whole_day || column.distinct as i128 != parts {
        return None;
    }
    let is_date = |other: &&Profile<'_>| {
        let days = other.micros.as_ref().filter(|_| other.distinct > 1);
        days.is_some_and(|micros| micros.iter().all(|micros| micros.rem_euclid(DAY) == 0))
    };
    columns.iter().find(is_date).map(|date| date.column.name.as_str())
}

/// Fewest spans of time that show that they are equal.
const MIN_SPANS: usize = 30;

/// Name of a time column whose equal spans, such as weeks or quarters, a column counts.
pub(super) fn truncated_time<'p>(column: &Profile<'_>, columns: &'p [Profile<'_>]) -> Option<&'p str> {
    let numbers = column.numbers.as_ref()?;
    if column.is_named_id() || column.distinct < MIN_SPANS || column.distinct * 2 > column.rows {
        return None;
    }
    let counts_spans = |other: &&Profile<'_>| {
        let Some(micros) = other.micros.as_ref().filter(|micros| micros.len() == numbers.len()) else {
            return false;
        };
        if other.column.name == column.column.name || other.distinct < 2 * column.distinct {
            return false;
        }
        let mut rows: Vec<(i64, i128)> = micros.iter().copied().zip(numbers.iter().copied()).collect();
        rows.sort_unstable();
        if rows.windows(2).any(|pair| matches!(pair, [(_, a), (_, b)] if a > b)) {
            return false;
        }
        let mut starts: Vec<(i64, i64)> = Vec::new();
        for of_value in rows.chunk_by(|a, b| a.1 == b.1) {
            let (Some((first, _)), Some((last, _))) = (of_value.first(), of_value.last()) else { continue };
            starts.push((*first, last - first));
        }
        // The first and the last span may be cut.
        let whole = starts.get(1..starts.len().saturating_sub(1)).unwrap_or_default();
        let mut spans: Vec<i64> =
            starts.windows(2).filter_map(|pair| Some(pair.last()?.0 - pair.first()?.0)).collect();
        spans.sort_unstable();
        let median = spans.get(spans.len() / 2).copied().unwrap_or(0);
        let is_regular = |span: &i64| (span - median).abs() * 5 <= median;
        let regular = spans.iter().filter(|span| is_regular(span)).count();
        let filled = whole.iter().filter(|(_, length)| length * 2 >= median).count();
        median > 0 && regular * 10 >= spans.len() * 9 && filled * 10 >= whole.len() * 9
    };
    columns.iter().find(counts_spans).map(|other| other.column.name.as_str())
}

/// Share of steps with the same pace above which numbers are paced by a time.
const PACED: f64 = 0.9;

/// Name of a time column with which numbers rise evenly, each with one time and several rows: the
/// number of a sample, a tick. Numbers of things rise by one, regardless of the time between them.
pub(super) fn paced_by<'p>(column: &Profile<'_>, columns: &'p [Profile<'_>]) -> Option<&'p str> {
    let numbers = column.numbers.as_ref()?;
    let is_named = column.is_named_id() && !names::denotes_step(&column.column.name);
    if is_named || column.is_time() || column.distinct < MIN_SPANS || column.distinct * 2 > column.rows {
        return None;
    }
    let paces = |other: &&Profile<'_>| {
        let Some(micros) = other.micros.as_ref().filter(|micros| micros.len() == numbers.len()) else {
            return false;
        };
        let mut pairs: Vec<(i128, i64)> = numbers.iter().copied().zip(micros.iter().copied()).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let next = |pair: &[(i128, i64)]| matches!(pair, [(a, _), (b, _)] if b - a == 1);
        let serial = pairs.windows(2).filter(|pair| next(pair)).count();
        if pairs.len() != column.distinct || serial * 2 > pairs.len() {
            return false;
        }
        let mut paces: Vec<f64> = pairs
            .windows(2)
            .filter_map(|pair| match pair {
                [(a, from), (b, to)] => Some((to - from) as f64 / (b - a) as f64),
                _ => None,
            })
            .collect();
        paces.sort_unstable_by(f64::total_cmp);
        let median = paces.get(paces.len() / 2).copied().unwrap_or(0.0);
        let same = paces.iter().filter(|pace| (*pace - median).abs() <= 0.02 * median).count();
        median > 0.0 && same as f64 >= PACED * paces.len() as f64
    };
    columns.iter().find(paces).map(|other| other.column.name.as_str())
}

/// Returns how to read numbers as points in time, if they are plain times and their name does not
/// say otherwise.
pub(super) fn epoch(column: &Profile<'_>) -> Option<TimeReading> {
    let reading = column.times?.reading;
    if !reading.is_time_alone() {
        return None;
    }
    // "ts_ms" is a time in a unit that lengths of time have too.
    let hints = names::hints(&column.column.name);
    let varies = match hints.last() {
        _ if hints.contains(&Hint::Time) && hints.last() != Some(&Hint::Identifier) => true,
        None | Some(Hint::Measure) if names::is_later(&column.column.name) => true,
        // "gameStart" is the start of games, and does not identify one.
        Some(Hint::Identifier | Hint::Entity | Hint::Text)
            if !reading.is_written_out() && !names::denotes_bound(&column.column.name) =>
        {
            false
        }
        _ if reading.is_written_out() => true,
        // Rows mostly arrive, or are sorted within something, by time; telephone numbers are not.
        _ => {
            let narrow = column.times.is_some_and(|times| {
                let span = times.latest_micros.abs_diff(times.earliest_micros);
                times.latest_micros <= LATEST
                    && span >= SHORTEST
                    && times.latest_micros.abs_diff(times.earliest_micros)
                        <= NARROW_DAYS * DAY.cast_unsigned()
            });
            column.distinct > 20
                && !column.is_serial()
                && (column.ascends >= MOSTLY_ASCENDING || (narrow && !column.is_unique()))
        }
    };
    varies.then_some(reading)
}
