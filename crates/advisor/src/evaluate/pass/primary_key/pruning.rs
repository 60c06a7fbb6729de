//! Shares of the data that reads by conditions leave unread.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;

use crate::evaluate::figures::primary_key::Pruning;
use crate::evaluate::pass::layout::{KeyBytes, Portion, Ranges, pruned_share};
use crate::evaluate::pass::primary_key::key_rows::{KeyRows, SampledRow, head};
use evenkeel_model::table::ColumnType;
use evenkeel_model::time_reading::TimeReading;
use evenkeel_model::units::Micros;
use evenkeel_stats::sketch::Reservoir;

/// Rows that a merged portion keeps together, as columnar stores commonly do.
const GROUP_ROWS: usize = 1 << 17;
/// Conditions that are tried on a column.
const CONDITIONS: usize = 100;

/// Column that conditions are tried on, in the key or not.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    /// Name of the column.
    pub(crate) name: String,
    /// Position of its part among all.
    pub(crate) part: usize,
    /// Type of the column.
    pub(crate) column_type: ColumnType,
    /// Kind of condition that is tried.
    pub(crate) kind: ConditionKind,
}

/// Kind of condition that is tried on a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionKind {
    /// Values of the column, one by one.
    Equal,
    /// Ranges of an hour and of a day.
    TimeRanges(TimeReading),
}

/// Row group of a merged portion.
struct RowGroup(Vec<(KeyBytes, KeyBytes)>);

impl Ranges for RowGroup {
    fn range(&self, column: usize) -> Option<(&[u8], &[u8])> {
        self.0.get(column).map(|(min, max)| (min.as_ref(), max.as_ref()))
    }
}

/// Reads that are tried on both layouts: portions as batches make them, and merged ones.
pub(super) struct Reads<'c> {
    pub(super) conditions: &'c [Condition],
    /// Conversions of the columns of the conditions.
    pub(super) rows_of_columns: &'c [KeyRows],
    pub(super) sample: &'c Reservoir<SampledRow>,
}

impl Reads<'_> {
    /// Tries conditions with values of the sample on both layouts.
    pub(super) fn tried(&self, portions: &[Vec<Portion>]) -> Vec<Pruning> {
        let groups = self.merged_row_groups();
        let mut tried = Vec::new();
        for (column, condition) in self.conditions.iter().enumerate() {
            let name = &condition.name;
            let kinds = match condition.kind {
                ConditionKind::Equal => vec![(format!("{name} = a value"), None)],
                ConditionKind::TimeRanges(reading) => vec![
                    (format!("an hour of {name}"), Some((reading, Micros::HOUR))),
                    (format!("a day of {name}"), Some((reading, Micros::DAY))),
                ],
            };
            for (text, length) in kinds {
                let conditions = self.values(column, length);
                let portions = pruned_share(portions.iter().flatten(), column, &conditions);
                let merged = pruned_share(groups.iter(), column, &conditions);
                if let (Some(portions_pruned), Some(merged_row_groups_pruned)) = (portions, merged) {
                    tried.push(Pruning { condition: text, portions_pruned, merged_row_groups_pruned });
                }
            }
        }
        tried
    }

    /// Returns ranges around values that are chosen evenly from the sample.
    fn values(&self, column: usize, slices: Option<(TimeReading, Micros)>) -> Vec<(KeyBytes, KeyBytes)> {
        let rows = self.sample.items();
        let step = (rows.len() / CONDITIONS).max(1);
        let values = rows.iter().step_by(step).filter_map(|row| row.columns().nth(column));
        match slices {
            None => values.map(|value| (value.into(), value.into())).collect(),
            Some((reading, length)) => {
                values.filter_map(|value| self.time_range(column, value, reading, length)).collect()
            }
        }
    }

    /// Returns the slice of time of a length that contains a value, as bytes.
    fn time_range(
        &self,
        column: usize,
        value: &[u8],
        reading: TimeReading,
        length: Micros,
    ) -> Option<(KeyBytes, KeyBytes)> {
        let rows = self.rows_of_columns.get(column)?;
        let parser = rows.parser();
        let arrays = rows.arrays([parser.parse(value)]).ok()?;
        let array = arrays.first()?;
        let at = reading.instants(array)?;
        let at = at.as_primitive::<TimestampMicrosecondType>();
        let at = at.is_valid(0).then(|| at.value(0))?;
        let begin = length.slice_of(at).saturating_mul(length.get());
        let ends = [begin, begin + length.get() - 1];
        let ends: ArrayRef = match reading {
            TimeReading::Native => Arc::new(TimestampMicrosecondArray::from(ends.to_vec())),
            epoch => Arc::new(epoch.numbers(&ends)?),
        };
        let ends = arrow::compute::cast(&ends, array.data_type()).ok()?;
        let rows = rows.convert_again(&[ends]).ok()?;
        Some((rows.row(0).as_ref().into(), rows.row(1).as_ref().into()))
    }

    /// Returns the row groups of partitions that are merged into one portion each: the sample in
    /// key order, cut at the ends of the row groups of the whole.
    fn merged_row_groups(&self) -> Vec<RowGroup> {
        let rows = self.sample.items().iter();
        let mut rows: Vec<_> = rows.map(|row| (row.partition, head(row.key()), row)).collect();
        rows.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| a.2.key().cmp(b.2.key())));
        let rows: Vec<&SampledRow> = rows.into_iter().map(|(_, _, row)| row).collect();
        let group_rows = ((GROUP_ROWS as f64 * self.sample.share()) as usize).max(1);
        let range_of = |rows: &[&SampledRow], column: usize| {
            let mut values = rows.iter().filter_map(|row| row.columns().nth(column));
            let first = values.next()?;
            let ends = values.fold((first, first), |(min, max), value| (min.min(value), max.max(value)));
            Some((ends.0.into(), ends.1.into()))
        };
        rows.chunk_by(|a, b| a.partition == b.partition)
            .flat_map(|partition| partition.chunks(group_rows))
            .map(|rows| {
                let columns = 0..self.conditions.len();
                RowGroup(columns.filter_map(|column| range_of(rows, column)).collect())
            })
            .collect()
    }
}
