//! Remarks on a result, and reasons why a value is rejected. Both keep row values apart from the
//! surrounding words, so that a result can be shared without the values.

use crate::masked_path::{masked_path, masked_paths};
use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::bounded::quote_bytes;
use crate::remark::Remark;
use crate::table::ColumnType;

/// Reason why a value, or a whole row, is rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The rejected value, cut to a quotation; `None` if the whole row is at fault.
    value: Option<String>,
    /// Description of the problem; follows the quoted value.
    problem: Cow<'static, str>,
}

impl Fault {
    /// Creates a fault of one value.
    #[must_use]
    pub fn in_value(value: &[u8], problem: impl Into<Cow<'static, str>>) -> Self {
        Self { value: Some(quote_bytes(value)), problem: problem.into() }
    }

    /// Creates a fault of a whole row.
    #[must_use]
    pub fn in_row(problem: impl Into<Cow<'static, str>>) -> Self {
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

/// A note on a result. Serializes as a [`Remark`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// A column counts nanoseconds; an ingest refuses values finer than microseconds.
    NanosecondsRefused {
        /// Name of the column.
        column: String,
    },
    /// A column counts nanoseconds; an evaluation cuts them to microseconds.
    NanosecondsCut {
        /// Name of the column.
        column: String,
    },
    /// A column has times in a zone, which are read as UTC.
    ZoneIgnored {
        /// Name of the column.
        column: String,
        /// Name of the zone.
        zone: String,
    },
    /// The first line of a text file has numbers, which are taken for names.
    NumbersAsNames {
        /// The first of them.
        first: String,
    },
    /// A column has a type that YDB does not accept in keys, and is read as a wider one.
    ReadWider {
        /// Name of the column.
        column: String,
        /// Type of the column in the file.
        file_type: ColumnType,
        /// Type that it is read as.
        column_type: ColumnType,
    },
    /// Columns of text have numbers with decimal commas.
    DecimalCommas {
        /// Names of the columns.
        columns: Vec<String>,
    },
    /// Columns of text have dates or times in the form of a country.
    LocalTimes {
        /// Names of the columns.
        columns: Vec<String>,
        /// `strftime` formats that read them, one for each order of day and month that fits.
        formats: Vec<String>,
    },
    /// The search for primary keys ended before all sets of columns were tried.
    KeySearchCutShort,
    /// A column has a type that YDB lacks.
    ColumnLeftOut {
        /// Name of the column.
        column: String,
        /// Type of the column in the file.
        file_type: String,
    },
    /// Columns of a text file have no name.
    NamelessColumns {
        /// Their positions in the file, from 1.
        positions: Vec<usize>,
    },
    /// A column has the name of an earlier one in the header, and got another one.
    ColumnRenamed {
        /// Name in the header.
        column: String,
        /// The name that it got.
        new_name: String,
    },
    /// An input has columns that the first rows of the export do not have.
    UnknownColumns {
        /// Names of the columns, as messages show them.
        columns: Vec<String>,
        /// Name of the first input that has one of them.
        file: String,
    },
    /// An input lacks columns of the export, which are NULL in its rows.
    MissingColumns {
        /// Names of the columns.
        columns: Vec<String>,
        /// Name of the first input that lacks one of them.
        file: String,
    },
    /// A column is read as text because of a few values.
    ReadAsText {
        /// Name of the column.
        column: String,
        /// The type of all other values.
        column_type: ColumnType,
        /// The first value of another type; `None` once masked.
        first: Option<Fault>,
    },
    /// Numbers have more digits than their type keeps.
    DigitsLost {
        /// Name of the column.
        column: String,
    },
    /// Strings of JSON are read as whole numbers.
    QuotedNumbers {
        /// Name of the column.
        column: String,
        /// The type of its values.
        column_type: ColumnType,
    },
    /// Some rows cannot be read.
    RowsLeftOut {
        /// Number of rows.
        rows: u64,
        /// Place of the first row, with its column: `x.csv, line 7, column 'n'`.
        place: String,
        /// Fault of the first row; `None` once masked.
        first: Option<Fault>,
    },
    /// No primary key was requested.
    NoPrimaryKey,
    /// Some placement functions cannot place these keys.
    PlacementsLeftOut {
        /// Reason why they were left out.
        reason: String,
    },
    /// Candidates were found from a part of the rows.
    CandidatesFromSample {
        /// Number of rows examined.
        rows: u64,
        /// Number of rows in the export.
        of_rows: u64,
        /// Number of places that the rows were read from.
        places: u64,
        /// Number of inputs that the rows were read from.
        inputs: u64,
        /// Number of inputs in the export.
        of_inputs: u64,
    },
    /// A column was dropped as a candidate because of its few values in the sample; the whole
    /// export has more.
    MoreValuesThanSampled {
        /// Name of the column.
        column: String,
    },
    /// Times are shown relative to the first one.
    TimesMasked,
    /// A profile that was merged has a note on its rows.
    OfProfile {
        /// File of the profile.
        file: String,
        /// Number of other profiles with the same note.
        more: u64,
        /// The note.
        note: String,
    },
    /// Two profiles that were merged overlap in time.
    ProfilesOverlap {
        /// File of the profile that begins first.
        one: String,
        /// File of the other profile.
        other: String,
    },
    /// Roles and candidates come from one of several profiles.
    InferredFromProfile {
        /// File of the profile.
        file: String,
        /// Number of rows of the profile.
        rows: u64,
    },
    /// A primary key is left out because its repeats across profiles are not known.
    RepeatsUnknown {
        /// The key.
        key: String,
    },
    /// Keys are left out because some profiles do not count them.
    KeysNotInAllProfiles {
        /// The keys.
        keys: Vec<String>,
        /// Number of all profiles.
        profiles: u64,
        /// File of one of the profiles.
        file: String,
    },
}

impl Note {
    /// Returns the kind of the note, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NanosecondsRefused { .. } => "nanoseconds_refused",
            Self::NanosecondsCut { .. } => "nanoseconds_cut",
            Self::ZoneIgnored { .. } => "zone_ignored",
            Self::NumbersAsNames { .. } => "numbers_as_names",
            Self::ReadWider { .. } => "read_wider",
            Self::DecimalCommas { .. } => "decimal_commas",
            Self::LocalTimes { .. } => "local_times",
            Self::KeySearchCutShort => "key_search_cut_short",
            Self::ColumnLeftOut { .. } => "column_left_out",
            Self::NamelessColumns { .. } => "nameless_columns",
            Self::ColumnRenamed { .. } => "column_renamed",
            Self::UnknownColumns { .. } => "unknown_columns",
            Self::MissingColumns { .. } => "missing_columns",
            Self::ReadAsText { .. } => "read_as_text",
            Self::QuotedNumbers { .. } => "quoted_numbers",
            Self::DigitsLost { .. } => "digits_lost",
            Self::RowsLeftOut { .. } => "rows_left_out",
            Self::NoPrimaryKey => "no_primary_key",
            Self::PlacementsLeftOut { .. } => "placements_left_out",
            Self::CandidatesFromSample { .. } => "candidates_from_sample",
            Self::MoreValuesThanSampled { .. } => "more_values_than_sampled",
            Self::TimesMasked => "times_masked",
            Self::OfProfile { .. } => "of_profile",
            Self::ProfilesOverlap { .. } => "profiles_overlap",
            Self::InferredFromProfile { .. } => "inferred_from_profile",
            Self::RepeatsUnknown { .. } => "repeats_unknown",
            Self::KeysNotInAllProfiles { .. } => "keys_not_in_all_profiles",
        }
    }

    /// Whether the note is about the rows of an export, not about the evaluation.
    #[must_use]
    pub fn is_of_rows(&self) -> bool {
        match self {
            Self::RowsLeftOut { .. }
            | Self::NumbersAsNames { .. }
            | Self::NamelessColumns { .. }
            | Self::UnknownColumns { .. }
            | Self::MissingColumns { .. }
            | Self::DecimalCommas { .. }
            | Self::LocalTimes { .. }
            | Self::OfProfile { .. } => true,
            Self::MoreValuesThanSampled { .. } => false,
            other => other.column().is_some(),
        }
    }

    /// Returns the column that the note is about; `None` if it is about the input as a whole.
    #[must_use]
    pub fn column(&self) -> Option<&str> {
        match self {
            Self::NanosecondsRefused { column }
            | Self::NanosecondsCut { column }
            | Self::ZoneIgnored { column, .. }
            | Self::ReadWider { column, .. }
            | Self::ColumnLeftOut { column, .. }
            | Self::ColumnRenamed { column, .. }
            | Self::MoreValuesThanSampled { column }
            | Self::QuotedNumbers { column, .. }
            | Self::DigitsLost { column }
            | Self::ReadAsText { column, .. } => Some(column),
            Self::RowsLeftOut { .. }
            | Self::NumbersAsNames { .. }
            | Self::NamelessColumns { .. }
            | Self::UnknownColumns { .. }
            | Self::MissingColumns { .. }
            | Self::DecimalCommas { .. }
            | Self::LocalTimes { .. }
            | Self::NoPrimaryKey
            | Self::PlacementsLeftOut { .. }
            | Self::CandidatesFromSample { .. }
            | Self::KeySearchCutShort
            | Self::OfProfile { .. }
            | Self::ProfilesOverlap { .. }
            | Self::InferredFromProfile { .. }
            | Self::RepeatsUnknown { .. }
            | Self::KeysNotInAllProfiles { .. }
            | Self::TimesMasked => None,
        }
    }

    /// Adds the columns of another note of the same kind, unless the notes differ otherwise, and
    /// returns whether it did.
    pub fn absorb(&mut self, other: &Self) -> bool {
        let (columns, more) = match (self, other) {
            (Self::DecimalCommas { columns }, Self::DecimalCommas { columns: more }) => (columns, more),
            (
                Self::LocalTimes { columns, formats },
                Self::LocalTimes { columns: more, formats: of_other },
            ) if formats == of_other => (columns, more),
            _ => return false,
        };
        columns.extend(more.iter().cloned());
        true
    }

    /// Removes the values of rows.
    pub fn mask(&mut self) {
        match self {
            Self::ReadAsText { first, .. } | Self::RowsLeftOut { first, .. } => *first = None,
            Self::UnknownColumns { file, .. }
            | Self::MissingColumns { file, .. }
            | Self::KeysNotInAllProfiles { file, .. }
            | Self::InferredFromProfile { file, .. } => *file = masked_path(file),
            Self::OfProfile { file, note, .. } => {
                *file = masked_path(file);
                *note = masked_paths(note, true);
            }
            Self::ProfilesOverlap { one, other } => {
                *one = masked_path(one);
                *other = masked_path(other);
            }
            Self::NanosecondsRefused { .. }
            | Self::NanosecondsCut { .. }
            | Self::QuotedNumbers { .. }
            | Self::DigitsLost { .. }
            | Self::ZoneIgnored { .. }
            | Self::NumbersAsNames { .. }
            | Self::NamelessColumns { .. }
            | Self::DecimalCommas { .. }
            | Self::LocalTimes { .. }
            | Self::ReadWider { .. }
            | Self::ColumnLeftOut { .. }
            | Self::ColumnRenamed { .. }
            | Self::NoPrimaryKey
            | Self::KeySearchCutShort
            | Self::PlacementsLeftOut { .. }
            | Self::CandidatesFromSample { .. }
            | Self::MoreValuesThanSampled { .. }
            | Self::RepeatsUnknown { .. }
            | Self::TimesMasked => {}
        }
    }
}

impl From<&Note> for Remark {
    fn from(note: &Note) -> Self {
        match note.column() {
            Some(column) => Self::on_column(note.code(), column, note.to_string()),
            None => Self::new(note.code(), note.to_string()),
        }
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Remark::from(self).serialize(serializer)
    }
}

#[cfg(test)]
#[path = "note_tests.rs"]
mod tests;
