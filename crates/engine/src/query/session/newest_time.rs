//! Newest point in time in the tables of a session, the default of `$now`.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{ScalarValue, TableReference};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::ident;
use datafusion::prelude::SessionContext;

use crate::query::error::QueryError;
use crate::query::scan::named_table::NamedTable;
use crate::query::scan::portion_statistics::scalar;
use evenkeel_model::table::KeyValue;
use evenkeel_store::log::Snapshot;

/// Type of a point in time in SQL.
const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Returns the newest point in time in all tables; NULL if the tables with times have no rows,
/// `None` if no table has times.
pub(in crate::query) async fn newest_time(
    tables: &[NamedTable],
    context: &SessionContext,
) -> Result<Option<ScalarValue>, QueryError> {
    let mut newest: Option<ScalarValue> = None;
    for named in tables {
        let Some(time) = newest_of(named, context).await? else { continue };
        newest = Some(match newest {
            Some(other) if time.is_null() || other > time => other,
            _ => time,
        });
    }
    Ok(newest)
}

async fn newest_of(named: &NamedTable, context: &SessionContext) -> Result<Option<ScalarValue>, QueryError> {
    let snapshot = named.table.snapshot();
    let spec = snapshot.spec();
    let Some(column) = spec.time_column() else { return Ok(None) };
    let newest = match spec.primary_key().iter().position(|index| *index == column) {
        // Ranges do not exclude deleted rows.
        Some(position) if !snapshot.has_deletes() => {
            Some(newest_in_key(snapshot, position, spec.schema().field(column).data_type())?)
        }
        _ => newest_in_rows(context, named.name(), spec.schema().field(column).name()).await?,
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
async fn newest_in_rows(
    context: &SessionContext,
    table: &str,
    column: &str,
) -> Result<Option<ScalarValue>, QueryError> {
    // The function of the session, as in SQL.
    let newest = context.udaf("max")?.call(vec![ident(column)]);
    let rows = context.table(TableReference::bare(table)).await?;
    let batches = rows.aggregate(Vec::new(), vec![newest])?.collect().await?;
    let newest = batches.first().and_then(|batch| batch.columns().first());
    Ok(newest.map(|array| ScalarValue::try_from_array(array, 0)).transpose()?)
}
