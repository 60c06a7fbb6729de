//! Columns of numbers that are points in time.

use crate::evaluate::roles::names;
use crate::evaluate::roles::names::Hint;
use crate::evaluate::roles::profile::Profile;
use evenkeel_model::time_reading::TimeReading;

/// Share of the rows with at least the value of the row before from which numbers may be times.
pub(super) const MOSTLY_ASCENDING: f64 = 0.7;

/// Returns how to read numbers as points in time if another column has times of about the same
/// range: the end of what has a start.
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

/// Returns how to read numbers as points in time, if that is all they are and their name does not
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
        None if names::is_later(&column.column.name) => true,
        Some(Hint::Identifier | Hint::Entity | Hint::Text) if !reading.is_written_out() => false,
        _ if reading.is_written_out() => true,
        // Rows mostly arrive, or are sorted within something, by time; telephone numbers are not.
        _ => column.distinct > 20 && column.ascends >= MOSTLY_ASCENDING && !column.is_serial(),
    };
    varies.then_some(reading)
}
