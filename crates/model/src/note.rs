//! Remarks beside a result, and reasons why a value is not taken. Both keep values of rows apart from the words around
//! them, so that a result can be shown around without the values.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::bounded::{quote, quote_bytes};
use crate::table::ColumnType;

/// Why a value, or a whole row, is not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The value at fault, cut to a quotation; none for a row as a whole.
    value: Option<String>,
    /// The problem; it follows the quoted value.
    problem: Cow<'static, str>,
}

impl Fault {
    /// A fault of one value.
    #[must_use]
    pub fn of_value(value: &[u8], problem: impl Into<Cow<'static, str>>) -> Self {
        Self { value: Some(quote_bytes(value)), problem: problem.into() }
    }

    /// A fault of a row.
    #[must_use]
    pub fn of_row(problem: impl Into<Cow<'static, str>>) -> Self {
        Self { value: None, problem: problem.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = &self.value {
            write!(f, "'{value}' ")?;
        }
        f.write_str(&self.problem)
    }
}

/// A remark beside a result. It serializes as its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A column of nanoseconds, which an ingest refuses if they are finer than microseconds.
    NanosecondsRefused {
        /// The column.
        column: String,
    },
    /// A column of nanoseconds, which an evaluation cuts to microseconds.
    NanosecondsCut {
        /// The column.
        column: String,
    },
    /// A column whose type YDB does not have.
    ColumnLeftOut {
        /// The column.
        column: String,
        /// Its type in the file.
        found: String,
    },
    /// A column that is text because of a few values.
    ReadAsText {
        /// The column.
        column: String,
        /// The type of all other values.
        column_type: ColumnType,
        /// The first value of another type; none once it is masked.
        first: Option<Fault>,
    },
    /// Rows that cannot be read.
    RowsLeftOut {
        /// Number of them.
        rows: u64,
        /// Place of the first one, with its column: `x.csv, line 7, column 'n'`.
        place: String,
        /// Its fault; none once it is masked.
        first: Option<Fault>,
    },
    /// Nobody wants a primary key.
    NoPrimaryKey,
    /// Placement functions that cannot place these keys.
    PlacementsLeftOut {
        /// The reason.
        reason: String,
    },
    /// Candidates were found from a part of the rows.
    CandidatesFromSample {
        /// Rows that were looked at.
        rows: u64,
        /// Rows of the export.
        of_rows: u64,
        /// Places that they were read from.
        places: u64,
        /// Inputs that they were read from.
        inputs: u64,
        /// Inputs of the export.
        of_inputs: u64,
    },
    /// A column that was no candidate for its few values, of which the whole export has more.
    MoreValuesThanSampled {
        /// The column.
        column: String,
    },
    /// Times are shown as the time since the first one.
    TimesMasked,
}

impl Note {
    /// Its kind, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NanosecondsRefused { .. } => "nanoseconds_refused",
            Self::NanosecondsCut { .. } => "nanoseconds_cut",
            Self::ColumnLeftOut { .. } => "column_left_out",
            Self::ReadAsText { .. } => "read_as_text",
            Self::RowsLeftOut { .. } => "rows_left_out",
            Self::NoPrimaryKey => "no_primary_key",
            Self::PlacementsLeftOut { .. } => "placements_left_out",
            Self::CandidatesFromSample { .. } => "candidates_from_sample",
            Self::MoreValuesThanSampled { .. } => "more_values_than_sampled",
            Self::TimesMasked => "times_masked",
        }
    }

    /// The column that it is about; none for the input as a whole.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::NanosecondsRefused { column }
            | Self::NanosecondsCut { column }
            | Self::ColumnLeftOut { column, .. }
            | Self::MoreValuesThanSampled { column }
            | Self::ReadAsText { column, .. } => Some(column),
            Self::RowsLeftOut { .. }
            | Self::NoPrimaryKey
            | Self::PlacementsLeftOut { .. }
            | Self::CandidatesFromSample { .. }
            | Self::TimesMasked => None,
        }
    }

    /// Forgets the values of rows.
    pub fn mask(&mut self) {
        match self {
            Self::ReadAsText { first, .. } | Self::RowsLeftOut { first, .. } => *first = None,
            Self::NanosecondsRefused { .. }
            | Self::NanosecondsCut { .. }
            | Self::ColumnLeftOut { .. }
            | Self::NoPrimaryKey
            | Self::PlacementsLeftOut { .. }
            | Self::CandidatesFromSample { .. }
            | Self::MoreValuesThanSampled { .. }
            | Self::TimesMasked => {}
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NanosecondsRefused { column } => write!(
                f,
                "column '{0}' counts nanoseconds and a Timestamp microseconds: an ingest refuses finer values; \
                 --column {0}:utf8 keeps them as text",
                quote(column)
            ),
            Self::NanosecondsCut { column } => write!(
                f,
                "column '{}' counts nanoseconds; it is evaluated as the Timestamp of YDB, in microseconds",
                quote(column)
            ),
            Self::ColumnLeftOut { column, found } => {
                let (column, found) = (quote(column), quote(found));
                write!(f, "column '{column}' of type {found} has no YDB column type and is left out")
            }
            Self::ReadAsText { column, column_type, first } => {
                let column = quote(column);
                write!(
                    f,
                    "column '{column}' is read as text, because a few values are not of type {column_type}"
                )?;
                first.iter().try_for_each(|first| write!(f, ": {first}"))
            }
            Self::RowsLeftOut { rows, place, first } => {
                write!(f, "{rows} rows cannot be read and were left out; the first: {place}")?;
                first.iter().try_for_each(|first| write!(f, ": {first}"))
            }
            Self::NoPrimaryKey => {
                f.write_str("no primary key was looked for, so no CREATE TABLE is proposed")
            }
            Self::PlacementsLeftOut { reason } => write!(f, "left out: {reason}"),
            Self::CandidatesFromSample { rows, of_rows, places, inputs, of_inputs } => write!(
                f,
                "candidates were found from {rows} of {of_rows} rows, in {places} places of {inputs} of {of_inputs} inputs"
            ),
            Self::MoreValuesThanSampled { column } => write!(
                f,
                "column '{}' was dropped as a candidate for its few values among these rows; all rows have more: name it with \
                 --partition-key to have it evaluated",
                quote(column)
            ),
            Self::TimesMasked => f.write_str(
                "times are masked: the first one is shown as 1970-01-01, and others as the time since then",
            ),
        }
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "canary";

    fn fault() -> Option<Fault> {
        Some(Fault::of_value(CANARY.as_bytes(), "is not of type Int64"))
    }

    /// The note after `note`: every kind has its place here, so that a new one does not compile without a test.
    fn next(note: &Note) -> Option<Note> {
        let column = "n".to_owned();
        Some(match note {
            Note::NanosecondsRefused { .. } => Note::NanosecondsCut { column },
            Note::NanosecondsCut { .. } => Note::ColumnLeftOut { column, found: "List(Int32)".to_owned() },
            Note::ColumnLeftOut { .. } => {
                Note::ReadAsText { column, column_type: ColumnType::Int64, first: fault() }
            }
            Note::ReadAsText { .. } => {
                Note::RowsLeftOut { rows: 2, place: "x.csv, line 7".to_owned(), first: fault() }
            }
            Note::RowsLeftOut { .. } => Note::NoPrimaryKey,
            Note::NoPrimaryKey => Note::PlacementsLeftOut { reason: "Doris".to_owned() },
            Note::PlacementsLeftOut { .. } => {
                Note::CandidatesFromSample { rows: 1, of_rows: 2, places: 1, inputs: 1, of_inputs: 1 }
            }
            Note::CandidatesFromSample { .. } => Note::MoreValuesThanSampled { column },
            Note::MoreValuesThanSampled { .. } => Note::TimesMasked,
            Note::TimesMasked => return None,
        })
    }

    #[test]
    fn every_note_is_a_sentence_and_loses_its_values_when_it_is_masked() {
        let first = Note::NanosecondsRefused { column: "n".to_owned() };
        let notes: Vec<Note> = std::iter::successors(Some(first), next).collect();
        let quoting = notes.iter().filter(|note| note.to_string().contains(CANARY)).count();
        assert_eq!(quoting, 2, "those that quote a value do so before they are masked");
        let mut codes = std::collections::BTreeSet::new();
        for mut note in notes.clone() {
            let (text, code, column) = (note.to_string(), note.code(), note.column().map(ToOwned::to_owned));
            assert_eq!(serde_json::to_value(&note).unwrap(), text);
            note.mask();
            let masked = format!("{note} {}", serde_json::to_value(&note).unwrap());
            assert!(!masked.contains(CANARY), "{masked}");
            assert!(text.starts_with(&note.to_string()), "nothing else is lost: {text} {note}");
            assert_eq!((note.code(), note.column()), (code, column.as_deref()));
            assert!(codes.insert(code), "{code} is of two notes");
        }
        assert_eq!(codes.len(), notes.len());
    }

    #[test]
    fn a_fault_quotes_its_value_on_one_line_of_bounded_length() {
        assert_eq!(Fault::of_value(b"x\ny", "is not JSON").to_string(), "'x\\ny' is not JSON");
        assert_eq!(Fault::of_row("has 3 fields").to_string(), "has 3 fields");
        let long = Fault::of_value(&vec![b'x'; 20 << 20], "is not JSON").to_string();
        assert!(long.chars().count() < 150, "{}", long.len());
    }
}
