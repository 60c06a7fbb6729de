//! Newest point in time in a table, the default of `$now`.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::prelude::SessionContext;

use crate::query::catalog::TABLE_ALIAS;
use crate::query::error::QueryError;
use crate::query::portion_statistics::scalar;
use evenkeel_model::table::KeyValue;
use evenkeel_store::log::Snapshot;

/// Type of a point in time in SQL.
const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Returns the newest point in time in the table; NULL if the table has no rows, `None` if it has
/// no times.
pub(super) async fn newest_time(
    snapshot: &Snapshot,
    context: &SessionContext,
) -> Result<Option<ScalarValue>, QueryError> {
    let spec = snapshot.spec();
    let Some(column) = spec.time_column() else { return Ok(None) };
    let newest = match spec.primary_key().iter().position(|index| *index == column) {
        Some(position) => Some(newest_in_key(snapshot, position, spec.schema().field(column).data_type())?),
        None => newest_in_rows(context, spec.schema().field(column).name()).await?,
    };
    Ok(newest.map(|newest| newest.cast_to(&MICROS)).transpose()?)
}

/// Largest value of a column of the primary key, by the ranges of the portions. They are exact: the
/// newest row of a key has the same key as the rows that it superseded.
fn newest_in_key(
    snapshot: &Snapshot,
    position: usize,
    data_type: &DataType,
) -> Result<ScalarValue, QueryError> {
    let portions = snapshot.portions();
    let newest: Option<&KeyValue> =
        portions.iter().filter_map(|portion| portion.column_ranges.get(position)?.max.first()).max();
    let newest = newest.and_then(|value| scalar(value, data_type));
    Ok(newest.map_or_else(|| ScalarValue::try_from(data_type), Ok)?)
}

/// Largest value of a column among the visible rows.
async fn newest_in_rows(context: &SessionContext, column: &str) -> Result<Option<ScalarValue>, QueryError> {
    let name = column.replace('"', "\"\"");
    let sql = format!("SELECT max(\"{name}\") FROM {TABLE_ALIAS}");
    let batches = context.sql(&sql).await?.collect().await?;
    let newest = batches.first().and_then(|batch| batch.columns().first());
    Ok(newest.map(|array| ScalarValue::try_from_array(array, 0)).transpose()?)
}
