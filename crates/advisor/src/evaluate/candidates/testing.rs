//! Exports of a few columns, for the tests of the search.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use evenkeel_input::source::{Extent, RowsAcross};
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::Function;

use crate::evaluate::candidates::considered::ConsideredCandidate;
use crate::evaluate::candidates::sampled_columns::{SampledColumns, Searched};
use crate::evaluate::roles::Role;
use crate::evaluate::roles::testing::int64;

/// Rows of an export that is placed over 16 partitions.
pub(super) struct TestExport {
    columns: Vec<Column>,
    given: Vec<Option<Role>>,
    partitions: [PartitionCount; 1],
    pub(super) rows: RowsAcross,
    pub(super) time: Option<&'static str>,
    pub(super) widens: bool,
}

impl TestExport {
    /// Creates an export of columns, each with the role that the user gave.
    pub(super) fn new<R: Copy + Into<Option<Role>>>(columns: &[(&str, R, ArrayRef)]) -> Self {
        let declared = columns.iter().map(|(name, _, array)| {
            Column::nullable(*name, ColumnType::from_arrow(array.data_type()).unwrap())
        });
        let arrays = columns.iter().map(|(name, _, array)| (*name, Arc::clone(array)));
        let batch = RecordBatch::try_from_iter(arrays).unwrap();
        let rows = batch.num_rows() as u64;
        let extent = Extent { rows, whole: true, places: 1, inputs: 1, of_inputs: 1 };
        Self {
            columns: declared.collect(),
            given: columns.iter().map(|(_, role, _)| (*role).into()).collect(),
            partitions: [PartitionCount::new(16).unwrap()],
            rows: RowsAcross { batches: vec![batch], extent },
            time: None,
            widens: false,
        }
    }

    pub(super) fn sampled(&self) -> SampledColumns<'_> {
        let searched = Searched {
            export: "t",
            columns: &self.columns,
            time: self.time,
            partitions: &self.partitions,
            function: Function::default(),
            given: &self.given,
            widens: self.widens,
        };
        SampledColumns::new(&searched, &self.rows)
    }
}

pub(super) fn numbers(rows: i64, value: impl Fn(i64) -> i64) -> ArrayRef {
    int64((0..rows).map(value))
}

/// Numbers, with NULL in the first `nulls` rows.
pub(super) fn numbers_after_nulls(rows: i64, nulls: i64, value: impl Fn(i64) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter((0..rows).map(|row| (row >= nulls).then(|| value(row)))))
}

pub(super) fn texts(rows: i64, value: impl Fn(i64) -> String) -> ArrayRef {
    Arc::new(StringArray::from_iter_values((0..rows).map(value)))
}

/// Points in time, in seconds after the beginning of 2026.
pub(super) fn times(rows: i64, second: impl Fn(i64) -> i64) -> ArrayRef {
    const BEGIN: i64 = 1_767_225_600;
    let micros = (0..rows).map(|row| (BEGIN + second(row)) * 1_000_000);
    Arc::new(TimestampMicrosecondArray::from_iter_values(micros))
}

/// The keys that are evaluated.
pub(super) fn kept(considered: &[ConsideredCandidate]) -> Vec<String> {
    let kept = considered.iter().filter(|candidate| candidate.kept);
    kept.map(|candidate| candidate.key.join(",")).collect()
}
