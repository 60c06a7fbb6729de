//! The columns of sampled rows, with their roles, and whether they can be in a key.

use arrow::array::RecordBatch;

use crate::evaluate::nulls::can_be_filled_in;
use crate::evaluate::roles::carried_times::CarriedTimes;
use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::{
    denotes_birth, denotes_creation, denotes_creator, denotes_events, hints_behind_prefix, lateness,
};
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::{Relations, Role, RoleReport, infer_roles};
use evenkeel_input::source::RowsAcross;
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_model::time_reading::TimeReading;
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_placement::placement::Function;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

/// Export that is searched for candidates, and their purpose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Searched<'a> {
    /// Name of the export.
    pub(crate) export: &'a str,
    pub(crate) columns: &'a [Column],
    /// The time column, if the user named one that exists.
    pub(crate) time: Option<&'a str>,
    pub(crate) partitions: &'a [PartitionCount],
    pub(crate) function: Function,
    /// Roles that the user gave, by position.
    pub(crate) given: &'a [Option<Role>],
    /// Whether columns of narrow types can be read as wider ones, which keys take.
    pub(crate) widens: bool,
}

/// Maximum number of distinct points in time for a column to hold dates of things, not of events.
const FEW_TIMES: usize = 64;

/// Columns of sampled rows.
pub(super) struct SampledColumns<'a> {
    pub(super) columns: Vec<Profile<'a>>,
    pub(super) roles: Vec<RoleReport>,
    pub(super) rows: usize,
    /// Whether these are all rows.
    pub(super) whole: bool,
    pub(super) time: Option<String>,
    /// Whether the name of the export or of its time indicates that its rows are events.
    names_events: bool,
    pub(super) fewest_partitions: usize,
    function: Function,
    /// Whether columns of narrow types can be read as wider ones, which keys take.
    widens: bool,
}

/// Number of digits that always fit an Int64.
const DIGITS_OF_INT64: u8 = 18;

/// Returns the wider type that a system accepts in keys for values of a type; `None` if it accepts
/// the type itself, or no such type exists.
pub(crate) fn wider_key_type(function: Function, column_type: ColumnType) -> Option<ColumnType> {
    let wider = match column_type {
        ColumnType::Int8 | ColumnType::Int16 => ColumnType::Int32,
        ColumnType::Uuid => ColumnType::Utf8,
        ColumnType::Date32 => ColumnType::Timestamp64,
        ColumnType::Decimal { precision: ..=DIGITS_OF_INT64, scale: 0 } => ColumnType::Int64,
        _ => return None,
    };
    (!takes(function, column_type) && takes(function, wider)).then_some(wider)
}

/// Whether a system accepts keys of a type: YDB, or the system of `function`.
fn takes(function: Function, column_type: ColumnType) -> bool {
    match function {
        Function::Ydb(_) => column_type.is_key_type(),
        Function::System(system) => {
            !matches!(column_type, ColumnType::Decimal { .. }) && system.refuses(column_type).is_none()
        }
    }
}

impl<'a> SampledColumns<'a> {
    /// Inspects rows of an export.
    pub(super) fn new(searched: &Searched<'a>, rows: &RowsAcross) -> Self {
        let Searched { export, columns, time, partitions, function, given, widens } = *searched;
        let whole = rows.extent.whole;
        let behind_prefix = hints_behind_prefix(columns.iter().map(|column| column.name.as_str()));
        let mut columns: Vec<Profile<'a>> = columns
            .par_iter()
            .enumerate()
            .map(|(index, column)| Profile::new(column, index, &rows.batches, whole))
            .collect();
        for (column, hint) in columns.iter_mut().zip(behind_prefix) {
            column.hint = column.hint.or(hint);
        }
        let roles = infer_roles(export, &columns, &Relations::from_columns(&columns), given);
        let time = time.map(str::to_owned).or_else(|| event_time(&columns, &roles));
        let names_events = denotes_events(export) || time.as_deref().is_some_and(denotes_events);
        Self {
            names_events,
            rows: rows.batches.iter().map(RecordBatch::num_rows).sum(),
            whole,
            time,
            fewest_partitions: partitions.iter().map(|count| count.len()).min().unwrap_or(1),
            columns,
            roles,
            function,
            widens,
        }
    }

    /// Whether one of some columns is a time.
    pub(super) fn has_time(&self, columns: &[usize]) -> bool {
        columns.iter().any(|at| self.role(*at) == Role::Time)
    }

    pub(super) fn role(&self, at: usize) -> Role {
        self.roles.get(at).map_or(Role::Dimension, |report| report.role)
    }

    pub(super) fn is_copy(&self, at: usize) -> bool {
        let original = self.roles.get(at).and_then(|report| report.copy_of.as_deref());
        let first = original.and_then(|original| self.position(original));
        first.is_some_and(|first| self.columns.get(first).is_some_and(|first| self.obstacle(first).is_none()))
    }

    /// Position of the column with a name.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.column.name == name)
    }

    pub(super) fn name(&self, at: usize) -> &str {
        self.columns.get(at).map(|column| column.column.name.as_str()).unwrap_or_default()
    }

    /// Whether a column is the time column, and no id that begins with a time.
    pub(super) fn is_time(&self, at: usize) -> bool {
        self.time.as_deref() == Some(self.name(at))
            && self.time_reading().is_some_and(TimeReading::is_time_alone)
    }

    /// Reading of the time column as points in time; `None` if it has none.
    pub(super) fn time_reading(&self) -> Option<TimeReading> {
        let time = self.time.as_deref()?;
        let column = self.columns.iter().find(|column| column.column.name == time)?;
        let native = column.column.column_type.is_time().then_some(TimeReading::Native);
        native.or(column.times.map(|times| times.reading))
    }

    /// Returns why a column cannot be in any key; `None` if it can.
    pub(super) fn obstacle(&self, profile: &Profile<'_>) -> Option<String> {
        let column_type = profile.column.column_type;
        if !self.is_taken(profile) {
            let who =
                self.function.ydb_function().map_or_else(|| self.function.to_string(), |_| "YDB".to_owned());
            let wider = match column_type {
                ColumnType::Int8 | ColumnType::Int16 => "; as Int32 it could be in one",
                ColumnType::Float | ColumnType::Double if matches!(profile.form, Form::Whole(_)) => {
                    "; its numbers are whole, and as Int64 it could be in one"
                }
                ColumnType::Uuid => "; as Utf8 it could be in one",
                _ => "",
            };
            return Some(format!("{who} accepts no {column_type} in a key{wider}"));
        }
        if profile.nulls > 0 {
            let (nulls, rows) = (profile.nulls, self.rows_in_words());
            return Some(format!("{nulls} of {rows} have NULL, and key columns are NOT NULL"));
        }
        let constant = profile.is_constant() && !profile.column.column_type.is_time();
        constant.then(|| format!("all of {} have one value", self.rows_in_words()))
    }

    /// Returns why a column cannot be in a partition key; `None` if it can. Unlike columns of
    /// a natural key, an entity may be NULL in a few rows, which are given a value.
    pub(super) fn partition_key_obstacle(&self, at: usize) -> Option<String> {
        let profile = self.columns.get(at)?;
        let is_filled_in = self.role(at) == Role::Entity
            && can_be_filled_in(profile.nulls as u64, self.rows as u64)
            && self.is_taken(profile)
            && !profile.is_constant();
        if is_filled_in { None } else { self.obstacle(profile) }
    }

    pub(super) fn rows_in_words(&self) -> String {
        if self.whole { format!("the {} rows", self.rows) } else { format!("{} sampled rows", self.rows) }
    }

    /// Whether the system accepts the type of a column in a key.
    pub(super) fn is_taken(&self, profile: &Profile<'_>) -> bool {
        let column_type = profile.column.column_type;
        takes(self.function, column_type)
            || (self.widens && wider_key_type(self.function, column_type).is_some())
    }

    /// Whether a column can be in a key.
    pub(super) fn can_be_in_key(&self, at: usize) -> bool {
        self.columns.get(at).is_some_and(|column| self.obstacle(column).is_none())
    }

    /// Whether rows that are equal in one column are equal in another one.
    pub(super) fn determines(&self, from: usize, to: usize) -> bool {
        let determined = self.roles.get(from).map(|report| report.determines.as_slice());
        determined.is_some_and(|determined| determined.iter().any(|name| name == self.name(to)))
    }

    /// Number of values of a column in the sampled rows.
    pub(super) fn distinct(&self, at: usize) -> usize {
        self.columns.get(at).map_or(0, |column| column.distinct)
    }

    /// The time column, if it can be in a key.
    pub(super) fn key_time(&self) -> Option<usize> {
        (0..self.columns.len()).find(|at| self.is_time(*at) && self.can_be_in_key(*at))
    }

    /// Whether rows have many different moments, rather than a few dates.
    pub(super) fn has_moments(&self) -> bool {
        self.key_time().is_some_and(|time| self.distinct(time) > FEW_TIMES && self.is_time_of_event(time))
    }

    /// Whether rows are events, each at a different moment.
    pub(super) fn has_events(&self) -> bool {
        self.names_events && self.has_moments()
    }

    /// Names of columns.
    pub(super) fn names(&self, columns: &[usize]) -> Vec<&str> {
        columns.iter().map(|at| self.name(*at)).collect()
    }
}

/// The time column in whose order rows seem to arrive: no births, points in time before dates, full
/// columns before columns with NULLs, the time of an event before that of its receipt or end,
/// sorted columns first, points in time before numbers. Without any, the time at the beginning of
/// the row ids, or numbers that rise with the rows from an unknown moment.
fn event_time(columns: &[Profile<'_>], roles: &[RoleReport]) -> Option<String> {
    let of_role = |role: Role| {
        let columns = columns.iter().zip(roles);
        columns.filter(move |(column, report)| report.role == role && column.filled() * 2 > column.rows)
    };
    let is_native = |column: &Profile<'_>| column.column.column_type.is_time();
    // If the user who created a record is known, the time of creation is the record's time.
    let records = columns.iter().any(|column| denotes_creator(&column.column.name));
    let rank = |column: &Profile<'_>| {
        let nulls = (column.nulls * 100).div_ceil(column.rows.max(1));
        let of_days = |times: CarriedTimes| times.reading.resolution() >= Micros::DAY;
        let is_date = (is_native(column) && !column.column.column_type.is_timestamp())
            || column.times.is_some_and(of_days);
        let name = &column.column.name;
        let is_record = records && denotes_creation(name);
        (denotes_birth(name), is_date, nulls, lateness(name), is_record, !column.rises, !is_native(column))
    };
    let times = of_role(Role::Time).filter(|(column, _)| is_native(column) || column.times.is_some());
    let best = times.min_by_key(|(column, _)| rank(column));
    let best = best.or_else(|| of_role(Role::RowId).find(|(_, report)| report.times.is_some()));
    let best = best.or_else(|| of_role(Role::Time).min_by_key(|(column, _)| rank(column)));
    best.map(|(column, _)| column.column.name.clone())
}

#[cfg(test)]
#[path = "sampled_columns_tests.rs"]
mod tests;
