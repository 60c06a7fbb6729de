//! Cost of reads: the number of splits that contain the requested keys.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, Scalar, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::compute::kernels::cmp::not_distinct;
use arrow::datatypes::{DataType, TimestampMicrosecondType};

use crate::simulate::design::{Design, ReadConditions};
use crate::simulate::error::SimulateError;
use crate::simulate::index::Index;
use crate::simulate::key::KeyColumn;
use crate::simulate::result::{IndexReport, ReadKind, ReadReport};
use crate::simulate::splits::{DatabaseOutcome, KeySpace};
use crate::simulate::survey::Survey;
use evenkeel_model::table::Column;
use evenkeel_model::units::Micros;
use evenkeel_model::values::instants;

/// Counts the rows that reads through indexes find.
pub(super) struct IndexHits {
    /// Condition of the read through each index.
    conditions: Vec<Condition>,
    /// Rows that meet each condition.
    pub(super) rows: Vec<u64>,
}

/// Condition on the first column of an index.
enum Condition {
    /// A column and its value, from an array of one row.
    Equal(usize, ArrayRef),
    /// A range of time, with both ends included.
    Range(usize, i64, i64),
    Nothing,
}

impl IndexHits {
    pub(super) fn new(
        survey: &Survey,
        indexes: &[Index],
        time: Option<usize>,
        length: Option<Micros>,
    ) -> Self {
        let condition = |index: &Index| {
            let Some(first) = index.columns.first().map(|part| part.column) else {
                return Condition::Nothing;
            };
            let row = row_for(index, survey);
            match (survey.range, length, row.and_then(|row| row.columns().get(first))) {
                (Some((_, last)), Some(length), _) if time == Some(first) => {
                    Condition::Range(first, last - length.get() + 1, last)
                }
                (_, _, Some(value)) => Condition::Equal(first, Arc::clone(value)),
                _ => Condition::Nothing,
            }
        };
        Self { conditions: indexes.iter().map(condition).collect(), rows: vec![0; indexes.len()] }
    }

    /// Counts the rows of a batch.
    pub(super) fn count(&mut self, batch: &RecordBatch) -> Result<(), SimulateError> {
        for (condition, rows) in self.conditions.iter().zip(&mut self.rows) {
            *rows += match condition {
                Condition::Nothing => 0,
                Condition::Equal(column, value) => match batch.columns().get(*column) {
                    Some(array) => {
                        let same = not_distinct(array, &Scalar::new(Arc::clone(value)))?;
                        same.true_count() as u64
                    }
                    None => 0,
                },
                Condition::Range(column, first, last) => {
                    let times = batch.columns().get(*column).and_then(instants);
                    let times = times.as_ref().map(|times| times.as_primitive::<TimestampMicrosecondType>());
                    let within = |times: &TimestampMicrosecondArray| {
                        times.iter().flatten().filter(|micros| (first..=last).contains(&micros)).count()
                    };
                    times.map_or(0, within) as u64
                }
            };
        }
        Ok(())
    }
}

/// Returns a row whose values a read through an index looks up: the last row, or another one if the
/// last row has no entry.
fn row_for<'a>(index: &Index, survey: &'a Survey) -> Option<&'a RecordBatch> {
    let has_entry = |row: &&RecordBatch| {
        let is_null = |part: &KeyColumn| row.columns().get(part.column).is_none_or(|array| array.is_null(0));
        !index.null_filtered || !index.columns.iter().any(is_null)
    };
    let last = survey.last_row.as_ref();
    last.filter(has_entry).or_else(|| survey.some_rows.iter().find(has_entry)).or(last)
}

/// Inputs for determining the cost of reads.
pub(super) struct Reads<'a> {
    pub(super) survey: &'a Survey,
    pub(super) columns: &'a [Column],
    pub(super) key: &'a [usize],
    pub(super) time: Option<usize>,
    pub(super) owner: Option<usize>,
    pub(super) read_length: Option<Micros>,
    pub(super) indexes: &'a [Index],
    /// Number of rows that a read through each index finds.
    pub(super) hits: &'a [u64],
}

impl Reads<'_> {
    /// Returns the cost of a read through each index: of its newest rows, or of the rows with one
    /// value.
    pub(super) fn index_reports(
        &self,
        design: &Design,
        spaces: &[KeySpace],
        outcome: &DatabaseOutcome,
        counted: &[(u64, u64)],
    ) -> Result<Vec<IndexReport>, SimulateError> {
        let mut reports = Vec::new();
        let plans = design.plans.iter().zip(counted).skip(1);
        for ((index, (plan, (entries, bytes))), hits) in self.indexes.iter().zip(plans).zip(self.hits) {
            let Some(values) = row_for(index, self.survey).cloned() else { continue };
            let first = index.columns.first().map(|part| part.column);
            let range = match (first == self.time, self.time, self.survey.range, self.read_length) {
                (true, Some(time), Some((_, last)), Some(length)) => {
                    Some((time, self.bounds(time, last, length)?))
                }
                _ => None,
            };
            let fixed = if range.is_some() { Vec::new() } else { first.into_iter().collect() };
            let ranges = design.ranges(plan, &ReadConditions { fixed, values: values.clone(), range })?;
            let space = spaces.get(plan.space);
            let splits = space.map_or(0, |space| {
                ranges.as_deref().map_or(space.split_count(), |ranges| space.touched(ranges))
            });
            let covers = (0..self.columns.len()).all(|column| {
                index.storing.contains(&column)
                    || self.key.contains(&column)
                    || index.columns.iter().any(|part| part.column == column)
            });
            reports.push(IndexReport {
                name: index.name.clone(),
                interleaved: plan.space == 0,
                entries: *entries,
                hottest_share: outcome.spaces.get(plan.space).map_or(0.0, |space| space.hottest_share),
                bytes: *bytes,
                splits,
                matching_rows: *hits,
                back_joins: if covers { 0 } else { *hits },
            });
        }
        Ok(reports)
    }

    /// Returns the cost of reads of the table: of its newest rows, of one owner, and of one row.
    pub(super) fn table_reads(
        &self,
        design: &Design,
        spaces: &[KeySpace],
    ) -> Result<Vec<ReadReport>, SimulateError> {
        let (Some(table), Some(keys)) = (spaces.first(), design.plans.first()) else { return Ok(Vec::new()) };
        let Some(values) = self.survey.last_row.clone() else { return Ok(Vec::new()) };
        let conditions = |fixed: Vec<usize>, range| ReadConditions { fixed, values: values.clone(), range };
        let newest_first = self.time.and_then(|time| keys.descends(time));
        let report = |kind, conditions: ReadConditions, newest_first| {
            let ranges = design.ranges(keys, &conditions)?;
            let splits = ranges.as_deref().map_or(table.split_count(), |ranges| table.touched(ranges));
            Ok::<_, SimulateError>(ReadReport {
                rows: None,
                kind,
                splits,
                ranges: ranges.map(|ranges| ranges.len()),
                newest_first,
            })
        };
        let mut reports = Vec::new();
        if let (Some(time), Some((_, last)), Some(length)) = (self.time, self.survey.range, self.read_length)
        {
            let bounds = self.bounds(time, last, length)?;
            let in_order = newest_first.filter(|_| keys.leads_with(time));
            reports.push(report(
                ReadKind::TimeRange,
                conditions(Vec::new(), Some((time, bounds))),
                in_order,
            )?);
        }
        if let Some(owner) = self.owner {
            let in_order = newest_first.filter(|_| keys.leads_with(owner));
            reports.push(report(ReadKind::History, conditions(vec![owner], None), in_order)?);
        }
        reports.push(report(ReadKind::Row, conditions(self.key.to_vec(), None), None)?);
        Ok(reports)
    }

    /// Returns the bounds of the newest rows, in the type of the column: the first time, the one
    /// after the last, and each of these minus one unit.
    fn bounds(&self, time: usize, last: i64, length: Micros) -> Result<ArrayRef, SimulateError> {
        let column_type = self.columns.get(time).map(|column| column.column_type.arrow_type());
        let column_type = column_type.ok_or(SimulateError::Columns)?;
        let is_day = matches!(column_type, DataType::Date32);
        let unit = if is_day { Micros::DAY.get() } else { 1 };
        let first = last - length.get() + unit;
        let after = last + unit;
        let bounds = TimestampMicrosecondArray::from(vec![first, after, first - unit, after - unit]);
        Ok(cast(&(Arc::new(bounds) as ArrayRef), &column_type)?)
    }
}

/// Returns the longest of the usual lengths, up to an hour, that fits twice into the span of the
/// export.
pub(super) fn read_length((first, last): (i64, i64)) -> Micros {
    let span = last - first;
    let usual =
        [Micros::HOUR, Micros::new(600_000_000), Micros::MINUTE, Micros::new(10_000_000), Micros::SECOND];
    let fits = |length: &Micros| span >= 2 * length.get();
    usual.into_iter().find(fits).unwrap_or(Micros::new((span / 2).max(1)))
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;

    use super::*;

    #[test]
    fn the_length_of_a_read_fits_twice_into_the_export() {
        let usual = [3600, 600, 60, 10, 1].map(|seconds| seconds * 1_000_000_i64);
        for span in
            [0, 1, 2, 1_999_999, 2_000_000, 119_999_999, 120_000_000, 7_199_999_999, 7_200_000_000, 1 << 50]
        {
            let expected = usual.into_iter().filter(|length| 2 * length <= span).max();
            let length = read_length((-5, span - 5)).get();
            assert_eq!(length, expected.unwrap_or((span / 2).max(1)), "{span}");
        }
    }

    #[test]
    fn hits_are_counted_from_batch_to_batch_with_nulls_as_values() {
        let batch = |values: Vec<Option<i64>>| {
            let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(values.clone()));
            let numbers: ArrayRef = Arc::new(Int64Array::from(values));
            RecordBatch::try_from_iter([("time", times), ("number", numbers)]).unwrap()
        };
        let index = |column| Index {
            name: "index".to_owned(),
            columns: vec![KeyColumn { column, descending: false }],
            storing: Vec::new(),
            null_filtered: false,
            interleaved: false,
            shard: None,
        };
        let survey =
            |last| Survey { last_row: Some(batch(vec![last])), range: Some((1, 9)), ..Survey::default() };
        let hits = |last, filtered| {
            let indexes = [index(0), Index { null_filtered: filtered, ..index(1) }];
            let mut hits = IndexHits::new(&survey(last), &indexes, Some(0), Some(Micros::new(3)));
            hits.count(&batch(vec![Some(9), None, Some(6), Some(7)])).unwrap();
            hits.count(&batch(vec![Some(9), Some(8), None, None])).unwrap();
            hits.rows
        };
        // Times 7 to 9; the number 9, or NULL.
        assert_eq!(hits(Some(9), true), [4, 2]);
        assert_eq!(hits(None, false), [4, 3]);
        assert_eq!(hits(Some(5), false), [4, 0]);
    }
}
