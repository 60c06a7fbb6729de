//! Times of rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::moment::TimeOfKey;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::batch::ResolvedPart;
use evenkeel_model::table::{Column, Transform, only_time_column};
use evenkeel_model::time_reading::TimeReading;
use evenkeel_model::units::Micros;

/// Column with the arrival time of rows.
#[derive(Debug, Clone)]
pub(crate) struct TimeColumn {
    pub(crate) position: usize,
    pub(crate) name: String,
    pub(crate) reading: TimeReading,
}

/// Source of the times of rows.
#[derive(Debug, Clone)]
pub(crate) enum Clock {
    /// A column of the export.
    Column(TimeColumn),
    /// Rows arrive evenly spaced, at this many per second.
    Rate(f64),
}

impl Clock {
    /// Returns the times of the rows of a batch in microseconds, given the number of rows before
    /// it.
    pub(super) fn times(&self, batch: &RecordBatch, first_row: u64) -> Result<ArrayRef, EvaluateError> {
        match self {
            Self::Column(time) => {
                let times = batch.columns().get(time.position);
                let times = times.and_then(|column| time.reading.instants(column));
                times.ok_or_else(|| EvaluateError::Time { column: time.name.clone() })
            }
            Self::Rate(rate) => {
                let at = |row: u64| (row as f64 * 1e6 / rate) as i64;
                let rows = first_row..first_row + batch.num_rows() as u64;
                Ok(Arc::new(TimestampMicrosecondArray::from_iter_values(rows.map(at))))
            }
        }
    }

    /// Returns the column, if the times are in one.
    pub(super) fn column(&self) -> Option<&TimeColumn> {
        match self {
            Self::Column(time) => Some(time),
            Self::Rate(_) => None,
        }
    }
}

/// Returns the time column: the named one, otherwise the only point in time, otherwise the only
/// date.
pub(crate) fn time_column(
    columns: &[Column],
    options: &EvaluateOptions,
) -> Result<Option<TimeColumn>, EvaluateError> {
    let at = |position: usize, reading: TimeReading| {
        columns.get(position).map(|column| TimeColumn { position, name: column.name.clone(), reading })
    };
    if let Some(name) = &options.time {
        let position = columns.iter().position(|column| column.name == *name);
        let position = position.ok_or_else(|| EvaluateError::UnknownTime {
            column: name.to_owned(),
            known: columns.iter().filter(|c| c.column_type.is_time()).map(|c| c.name.clone()).collect(),
        })?;
        let is_time = columns.get(position).is_some_and(|column| column.column_type.is_time());
        return match (is_time, options.time_reading) {
            (true, _) => Ok(at(position, TimeReading::Native)),
            (false, TimeReading::Native) => Err(EvaluateError::Time { column: name.to_owned() }),
            (false, reading) => Ok(at(position, reading)),
        };
    }
    Ok(only_time_column(columns).and_then(|position| at(position, TimeReading::Native)))
}

/// Returns the form in which a part of a key contains the time column.
pub(super) fn time_of_part(part: Option<&ResolvedPart>, time: Option<&TimeColumn>) -> TimeOfKey {
    let of_part = |(part, time): &(&ResolvedPart, &TimeColumn)| {
        part.column == time.position && time.reading.is_time_alone()
    };
    match part.zip(time).filter(of_part) {
        None => TimeOfKey::None,
        Some((part, _)) => match part.part.transform {
            Transform::Identity => TimeOfKey::Instant,
            Transform::Date => TimeOfKey::Slice(Micros::DAY),
            Transform::Truncate(length) => TimeOfKey::Slice(length),
        },
    }
}
