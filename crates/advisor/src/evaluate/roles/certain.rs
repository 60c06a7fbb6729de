//! Roles that single facts about the values decide, without scores.

use crate::evaluate::roles::epochs::{
    MOSTLY_ASCENDING, epoch, epoch_beside, epoch_near, is_apart_from_times, paced_by, part_of_day,
    truncated_time,
};
use crate::evaluate::roles::forms::{Form, WholeNumbers};
use crate::evaluate::roles::names::{self, Hint};
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::role::Role;
use evenkeel_model::table::ColumnType;

/// Smallest number of values with which rising numbers named like times are times, in whatever
/// unit.
const MIN_RISING: usize = 100;

/// Smallest number of values with which numbers below 2400 can be times of day.
pub(super) const MIN_TIMES_OF_DAY: usize = 24;

/// Share of texts that are dates above which the column is one of dates.
pub(super) const MOSTLY_DATES: f64 = 0.98;

/// Smallest number of values with which six-digit numbers that are all valid times of day are times
/// of day.
pub(super) const MIN_SECONDS_OF_DAY: usize = 100;

/// Smallest number of values with which six-digit numbers that are all valid dates are dates.
pub(super) const MIN_DATES: usize = 20;

/// Numbers that are years if they are named so.
const YEARS: std::ops::Range<i128> = 1_000..2_200;

/// Variance of the frequencies of numbers, relative to the variance that chance gives to equal
/// frequencies, below which no number has its own frequency.
pub(super) const SMOOTH: f64 = 3.0;

/// Whether each number occurs about as often as its neighbours.
pub(super) fn is_smooth(column: &Profile<'_>) -> bool {
    matches!(&column.form, Form::Whole(whole) if whole.dispersion < SMOOTH)
}

/// Infers a role that needs no scores.
pub(super) fn certain(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, Vec<String>)> {
    let column_type = column.column.column_type;
    if column.is_constant() || column.filled() == 0 {
        return Some((Role::Constant, vec!["one value in all sampled rows".to_owned()]));
    }
    if column_type.is_time() {
        return Some((Role::Time, vec![format!("type {column_type}")]));
    }
    if column.rises_strictly && column.nulls == 0 && names::is_row_number(&column.column.name) {
        return Some((
            Role::Measure,
            vec!["numbers the rows of the file, differently in each export".to_owned()],
        ));
    }
    if let Some(reading) = epoch(column).filter(|_| !is_apart_from_times(column, columns)) {
        return Some((Role::Time, vec![reading.to_string()]));
    }
    if let Some((reading, other)) = epoch_beside(column, columns) {
        return Some((Role::Time, vec![format!("{reading}, over the same range as {other}")]));
    }
    if let Some((reading, other)) = epoch_near(column, columns) {
        return Some((Role::Time, vec![format!("{reading}, within a day of {other} in each row")]));
    }
    if let Some(other) = paced_by(column, columns) {
        return Some((Role::Time, vec![format!("rises in step with {other}")]));
    }
    if let Some(other) = truncated_time(column, columns) {
        return Some((Role::Time, vec![format!("counts equal spans of {other}")]));
    }
    if let Form::Whole(whole) = &column.form
        && whole.six_digit_dates
        && column.distinct >= MIN_DATES
    {
        return Some((Role::Time, vec!["dates in six digits, YYMMDD".to_owned()]));
    }
    if let Some(evidence) = time_of_day(column) {
        return Some((Role::Time, vec![evidence.to_owned()]));
    }
    if let Some(date) = part_of_day(column, columns) {
        return Some((Role::Time, vec![format!("numbers the parts of each {date}")]));
    }
    if matches!(column.form, Form::Whole(_))
        && column.hint == Some(Hint::Time)
        && column.distinct >= MIN_RISING
        && column.ascends >= MOSTLY_ASCENDING
    {
        return Some((
            Role::Time,
            vec![format!("numbers that rise with the rows, named {}", column.column.name)],
        ));
    }
    // In a calendar table each row is a day.
    let is_row = column.is_unique();
    if matches!(column.form, Form::Whole(_)) && !is_row && names::denotes_calendar(&column.column.name) {
        return Some((
            Role::Time,
            vec![format!("numbers of days or times, by the name {}", column.column.name)],
        ));
    }
    let is_year = |whole: &WholeNumbers| YEARS.contains(&whole.least) && YEARS.contains(&whole.greatest);
    if matches!(&column.form, Form::Whole(whole) if is_year(whole))
        && !is_row
        && names::denotes_year(&column.column.name)
    {
        return Some((Role::Time, vec![format!("years, by the name {}", column.column.name)]));
    }
    if matches!(&column.form, Form::Text(words) if words.dates > MOSTLY_DATES) {
        return Some((Role::Time, vec!["dates or times of day, as text".to_owned()]));
    }
    if matches!(column.form, Form::Fractions) && names::denotes_julian_date(&column.column.name) {
        return Some((Role::Time, vec![format!("Julian dates, by the name {}", column.column.name)]));
    }
    if column.has_seconds_with_fractions() && names::hints(&column.column.name).contains(&Hint::Time) {
        return Some((Role::Time, vec!["seconds since 1970, with fractions".to_owned()]));
    }
    match column_type {
        ColumnType::Bool => Some((Role::Dimension, vec!["true or false".to_owned()])),
        ColumnType::Interval | ColumnType::Interval64 => {
            Some((Role::Measure, vec!["a length of time".to_owned()]))
        }
        ColumnType::Json | ColumnType::JsonDocument | ColumnType::Yson => {
            Some((Role::Text, vec![format!("type {column_type}")]))
        }
        _ => None,
    }
}

/// Returns the evidence that numbers or padded texts are times of day, if they are.
pub(super) fn time_of_day(column: &Profile<'_>) -> Option<&'static str> {
    let is_named_time = names::hints(&column.column.name).contains(&Hint::Time);
    if column.distinct >= MIN_SECONDS_OF_DAY
        && (column.fills_the_day() || (is_named_time && column.has_times_of_day()))
    {
        return Some("times of day, in hours, minutes and seconds");
    }
    let has_hours = matches!(&column.form, Form::Whole(whole) if whole.hours_and_minutes)
        || column.has_padded_hours_and_minutes();
    if is_named_time && column.distinct > MIN_TIMES_OF_DAY && has_hours {
        return Some("times of day, in hours and minutes");
    }
    None
}
