//! Roles that single facts about the values decide, without scores.

use crate::evaluate::roles::epochs::{
    MOSTLY_ASCENDING, epoch, epoch_beside, epoch_near, is_apart_from_times, paced_by, part_of_day,
    truncated_time,
};
use crate::evaluate::roles::forms::{Form, WholeNumbers};
use crate::evaluate::roles::names::{self, Hint};
use crate::evaluate::roles::profile::Profile;
use crate::role::Role;
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

/// A rule that decides the role of a column, beside all columns, by one fact; returns the role and
/// the evidence.
type Rule = fn(&Profile<'_>, &[Profile<'_>]) -> Option<(Role, String)>;

/// The rules in the order in which they are tried: the first that decides, does.
const RULES: &[Rule] = &[
    of_one_value,
    of_time_type,
    numbering_rows,
    read_as_time,
    over_range_of_time,
    near_time,
    in_step_with_time,
    counting_spans,
    six_digit_date,
    hour_of_day,
    part_of_date,
    rising_time,
    calendar_key,
    year,
    written_date,
    julian_date,
    seconds_with_fractions,
    position_on_sequence,
    allele,
    of_other_type,
];

/// Infers a role that needs no scores.
pub(super) fn certain(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, Vec<String>)> {
    let (role, evidence) = RULES.iter().find_map(|rule| rule(column, columns))?;
    Some((role, vec![evidence]))
}

fn of_one_value(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let is_one = column.is_constant() || column.filled() == 0;
    is_one.then(|| (Role::Constant, "one value in all sampled rows".to_owned()))
}

fn of_time_type(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let column_type = column.column.column_type;
    column_type.is_time().then(|| (Role::Time, format!("type {column_type}")))
}

fn numbering_rows(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let numbers_rows =
        column.rises_strictly && column.nulls == 0 && names::is_row_number(&column.column.name);
    numbers_rows
        .then(|| (Role::Measure, "numbers the rows of the file, differently in each export".to_owned()))
}

fn read_as_time(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, String)> {
    let reading = epoch(column).filter(|_| !is_apart_from_times(column, columns))?;
    Some((Role::Time, reading.to_string()))
}

fn over_range_of_time(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, String)> {
    let (reading, other) = epoch_beside(column, columns)?;
    Some((Role::Time, format!("{reading}, over the same range as {other}")))
}

fn near_time(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, String)> {
    let (reading, other) = epoch_near(column, columns)?;
    Some((Role::Time, format!("{reading}, within a day of {other} in each row")))
}

fn in_step_with_time(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, String)> {
    let other = paced_by(column, columns)?;
    Some((Role::Time, format!("rises in step with {other}")))
}

fn counting_spans(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, String)> {
    let other = truncated_time(column, columns)?;
    Some((Role::Time, format!("counts equal spans of {other}")))
}

fn six_digit_date(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let Form::Whole(whole) = &column.form else { return None };
    (whole.six_digit_dates && column.distinct >= MIN_DATES)
        .then(|| (Role::Time, "dates in six digits, YYMMDD".to_owned()))
}

fn hour_of_day(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    Some((Role::Time, time_of_day(column)?.to_owned()))
}

fn part_of_date(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, String)> {
    let date = part_of_day(column, columns)?;
    Some((Role::Time, format!("numbers the parts of each {date}")))
}

fn rising_time(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let rises = matches!(column.form, Form::Whole(_))
        && column.hint == Some(Hint::Time)
        && column.distinct >= MIN_RISING
        && column.ascends >= MOSTLY_ASCENDING;
    rises.then(|| (Role::Time, format!("numbers that rise with the rows, named {}", column.column.name)))
}

/// In a calendar table each row is a day: there the key identifies rows.
fn calendar_key(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let is_key = matches!(column.form, Form::Whole(_))
        && !column.is_unique()
        && names::denotes_calendar(&column.column.name);
    is_key.then(|| (Role::Time, format!("numbers of days or times, by the name {}", column.column.name)))
}

/// In a calendar table each row may be a year: there the year identifies rows.
fn year(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let is_year = |whole: &WholeNumbers| YEARS.contains(&whole.least) && YEARS.contains(&whole.greatest);
    let are_years = matches!(&column.form, Form::Whole(whole) if is_year(whole))
        && !column.is_unique()
        && names::denotes_year(&column.column.name);
    are_years.then(|| (Role::Time, format!("years, by the name {}", column.column.name)))
}

fn written_date(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let are_dates = matches!(&column.form, Form::Text(words) if words.dates > MOSTLY_DATES);
    are_dates.then(|| (Role::Time, "dates or times of day, as text".to_owned()))
}

fn julian_date(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let is_named = matches!(column.form, Form::Fractions) && names::denotes_julian_date(&column.column.name);
    is_named.then(|| (Role::Time, format!("Julian dates, by the name {}", column.column.name)))
}

fn seconds_with_fractions(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let are_seconds =
        column.has_seconds_with_fractions() && names::hints(&column.column.name).contains(&Hint::Time);
    are_seconds.then(|| (Role::Time, "seconds since 1970, with fractions".to_owned()))
}

/// Positions of bases: they repeat on each chromosome, and identify nothing without it.
fn position_on_sequence(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, String)> {
    let sequence = columns.get(sequence_of_bases(column, columns)?)?;
    // Few rows share a position, unless rows are what was found there in many samples.
    let role = if column.distinct * 2 > column.rows { Role::Entity } else { Role::LineNumber };
    Some((role, format!("positions on each {}", sequence.column.name)))
}

/// Bases at a position: kinds of variants, however long they are.
fn allele(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<(Role, String)> {
    if !matches!(column.form, Form::Text(_)) || !names::denotes_allele(&column.column.name) {
        return None;
    }
    let has_positions = columns.iter().any(|other| sequence_of_bases(other, columns).is_some());
    has_positions.then(|| (Role::Dimension, "bases at each position".to_owned()))
}

/// Returns the column with the chromosomes on which a column has positions.
pub(super) fn sequence_of_bases(column: &Profile<'_>, columns: &[Profile<'_>]) -> Option<usize> {
    if !matches!(column.form, Form::Whole(_)) || !names::denotes_base_position(&column.column.name) {
        return None;
    }
    columns.iter().position(|other| names::denotes_sequence_of_bases(&other.column.name))
}

fn of_other_type(column: &Profile<'_>, _: &[Profile<'_>]) -> Option<(Role, String)> {
    let column_type = column.column.column_type;
    match column_type {
        ColumnType::Bool => Some((Role::Dimension, "true or false".to_owned())),
        ColumnType::Interval | ColumnType::Interval64 => Some((Role::Measure, "a length of time".to_owned())),
        ColumnType::Json | ColumnType::JsonDocument | ColumnType::Yson => {
            Some((Role::Text, format!("type {column_type}")))
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
