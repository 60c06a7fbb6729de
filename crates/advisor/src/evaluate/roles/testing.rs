//! Profiles of columns, for tests.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use evenkeel_model::table::{Column, ColumnType};

use crate::evaluate::roles::profile::Profile;

/// Passes the profiles of the columns of an export to `judge`.
pub(in crate::evaluate) fn with_profiles<T>(
    columns: &[(&str, ArrayRef)],
    judge: impl FnOnce(&[Profile<'_>]) -> T,
) -> T {
    let batch = [RecordBatch::try_from_iter(columns.to_vec()).unwrap()];
    let declare = |(name, array): &(&str, ArrayRef)| {
        Column::nullable(*name, ColumnType::from_arrow(array.data_type()).unwrap())
    };
    let declared: Vec<Column> = columns.iter().map(declare).collect();
    let profiles: Vec<Profile<'_>> = declared
        .iter()
        .enumerate()
        .map(|(index, column)| Profile::new(column, index, &batch, true))
        .collect();
    judge(&profiles)
}

/// Returns a column of whole numbers.
pub(in crate::evaluate) fn int64(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}
