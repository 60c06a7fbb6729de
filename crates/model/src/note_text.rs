//! The sentences of notes.

use std::fmt;

use crate::bounded::quote;
use crate::note::Note;
use crate::units::{count, counted};

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NanosecondsRefused { column } => write!(
                f,
                "column '{0}' has nanoseconds, but a Timestamp has microseconds: an ingest refuses finer \
                    values; --column {0}:utf8 keeps them as text",
                quote(column)
            ),
            Self::NanosecondsCut { column } => write!(
                f,
                "column '{}' has nanoseconds; it is evaluated as a YDB Timestamp, in microseconds",
                quote(column)
            ),
            Self::ZoneIgnored { column, zone } => write!(
                f,
                "column '{}' has times in the zone {}; they are read as UTC, so export them in UTC if hours matter",
                quote(column),
                quote(zone)
            ),
            Self::ReadWider { column, file_type, column_type } => write!(
                f,
                "column '{}' of type {file_type} is read as {column_type}, since keys cannot be {file_type}",
                quote(column)
            ),
            Self::ColumnLeftOut { column, file_type } => {
                let (column, file_type) = (quote(column), quote(file_type));
                write!(f, "column '{column}' of type {file_type} has no YDB column type and is left out")
            }
            Self::ReadAsText { column, column_type, first } => {
                let column = quote(column);
                write!(
                    f,
                    "column '{column}' is read as text, because a few values are not of type {column_type}"
                )?;
                first.iter().try_for_each(|first| write!(f, ": {first}"))
            }
            Self::DigitsLost { column } => write!(
                f,
                "column '{}' has numbers with more than 17 significant digits and is read as Double, which cannot hold them \
                 all; declare it as decimal(35,N) to keep every digit",
                quote(column)
            ),
            Self::QuotedNumbers { column, column_type } => {
                let column = quote(column);
                write!(
                    f,
                    "column '{column}' has whole numbers in quotes and is read as {column_type}; declare it as utf8 to keep it as text"
                )
            }
            Self::MoreValuesThanSampled { column } => write!(
                f,
                "column '{}' was dropped as a candidate because it has few values in these rows; all rows \
                    have more: to evaluate it, name it with --partition-key",
                quote(column)
            ),
            other => other.fmt_of_input(f),
        }
    }
}

impl Note {
    /// Writes a note that is not about one column.
    fn fmt_of_input(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NumbersAsNames { first } => write!(
                f,
                "the first line, with '{}', is read as the header; if it is a row, name the columns with --names",
                quote(first)
            ),
            Self::DecimalCommas { columns } => {
                let (was, its) = was_read(columns);
                write!(
                    f,
                    "{} {was} read as text because {its} numbers have decimal commas; to read them as numbers, add --decimal-comma",
                    quoted(columns)
                )
            }
            Self::LocalTimes { columns, formats } => fmt_local_times(columns, formats, f),
            Self::KeySearchCutShort => f.write_str(
                "the search for a primary key ended before all sets of columns were tried, and found none that identifies \
                 rows; if you know one, name it with --primary-key",
            ),
            Self::NamelessColumns { positions } => {
                let (word, verb) = match positions.len() {
                    1 => ("column", "has no name and is"),
                    _ => ("columns", "have no names and are"),
                };
                let positions: Vec<String> = positions.iter().map(ToString::to_string).collect();
                write!(f, "{word} {} {verb} left out; --names names all columns", shown(&positions))
            }
            Self::ColumnRenamed { column, new_name } => write!(
                f,
                "the header names column '{}' twice; the later one is read as '{}'",
                quote(column),
                quote(new_name)
            ),
            Self::UnknownColumns { columns, file } => write!(
                f,
                "left out, because the first rows of the export do not have them: {} of {}; to evaluate them, \
                 put rows that have them first",
                shown(columns),
                quote(file)
            ),
            Self::MissingColumns { columns, file } => {
                let columns: Vec<String> = columns.iter().map(|column| quote(column).to_string()).collect();
                write!(f, "{} lacks columns, which are NULL in its rows: {}", quote(file), shown(&columns))
            }
            Self::RowsLeftOut { rows, place, first } => {
                let rows = counted(*rows, "row");
                write!(f, "left out {rows} that cannot be read; the first: {place}")?;
                first.iter().try_for_each(|first| write!(f, ": {first}"))
            }
            Self::NoPrimaryKey => {
                f.write_str("no primary key was searched for, so no CREATE TABLE is proposed")
            }
            Self::PlacementsLeftOut { reason } => write!(f, "left out: {reason}"),
            Self::CandidatesFromSample { rows, of_rows, places, inputs, of_inputs } => {
                write!(
                    f,
                    "candidates were found in a sample of {} of {}, from {places} places",
                    count(*rows),
                    counted(*of_rows, "row")
                )?;
                if *of_inputs > 1 {
                    write!(f, " in {inputs} of {of_inputs} inputs")?;
                }
                Ok(())
            }
            Self::TimesMasked => f.write_str(
                "times are masked: the first is shown as 1970-01-01, the others by their distance from it",
            ),
            other => other.fmt_of_profiles(f),
        }
    }

    /// Writes a note on profiles that were merged.
    fn fmt_of_profiles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfProfile { file, more: 0, note } => write!(f, "{}: {note}", quote(file)),
            Self::OfProfile { file, more, note } => {
                write!(f, "{} and {} more: {note}", quote(file), counted(*more, "profile"))
            }
            Self::ProfilesOverlap { one, other } => write!(
                f,
                "{} and {} overlap in time: rows that are late because of the other profile may be more than shown",
                quote(one),
                quote(other)
            ),
            Self::InferredFromProfile { file, rows } => write!(
                f,
                "roles and candidates were determined from {}, of {} rows",
                quote(file),
                count(*rows)
            ),
            Self::RepeatsUnknown { key } => write!(
                f,
                "PRIMARY KEY ({}) is left out, because some profiles were too small for the keys of all rows, which may \
                 repeat in others; save them with a larger --profile-size",
                quote(key)
            ),
            Self::KeysNotInAllProfiles { keys, profiles, file } => {
                let keys: Vec<String> = keys.iter().map(|key| quote(key).to_string()).collect();
                write!(f, "left out, because not all {profiles} profiles count them: {}", shown(&keys))?;
                write!(
                    f,
                    "; to compare them, save the profiles with --like {}, or name the keys",
                    quote(file)
                )
            }
            _ => Ok(()),
        }
    }
}

/// Writes which columns have local dates, and the option that reads them.
fn fmt_local_times(columns: &[String], formats: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (was, its) = was_read(columns);
    let column = columns.first().map(|column| quote(column).to_string()).unwrap_or_default();
    write!(
        f,
        "{} {was} read as text because {its} dates are in a local format; to read them as dates or times, add \
         --timestamp-format ",
        quoted(columns)
    )?;
    match formats {
        [day, month] => {
            write!(f, "'{column}={day}' if the day comes first, or '{column}={month}' if the month does")?
        }
        formats => write!(f, "'{column}={}'", formats.join(" "))?,
    }
    f.write_str(if columns.len() > 1 { " (and likewise for each of the other columns)" } else { "" })
}

/// Verb and pronoun for columns.
fn was_read(columns: &[String]) -> (&'static str, &'static str) {
    if columns.len() == 1 { ("was", "its") } else { ("were", "their") }
}

/// Names of columns in quotes.
fn quoted(columns: &[String]) -> String {
    shown(&columns.iter().map(|column| format!("'{}'", quote(column))).collect::<Vec<_>>())
}

/// Returns the first of several things, and the number of the others.
fn shown(things: &[String]) -> String {
    const SHOWN: usize = 3;
    match things.get(..SHOWN) {
        Some(first) if things.len() > SHOWN => {
            format!("{} and {} more", first.join(", "), count((things.len() - SHOWN) as u64))
        }
        _ => things.join(", "),
    }
}
