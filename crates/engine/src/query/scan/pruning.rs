//! Finds the partitions and portions that a predicate may match, including undecidable ones.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::SchemaRef;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;

use crate::query::scan::portion_statistics::scalar;
use evenkeel_model::table::{KeyRange, KeyValue, TableSpec};
use evenkeel_model::units::PartitionId;
use evenkeel_model::workload::combinations;
use evenkeel_placement::placement::Placement;
use evenkeel_sql::FixedColumns;
use evenkeel_store::log::PortionEntry;

/// Partitions that can hold rows matching `predicate`; `None` if that is every partition. This is
/// decided only if the predicate fixes each partition-key column to one value or a list of values.
pub(in crate::query) fn matching_partitions(
    spec: &TableSpec,
    schema: &SchemaRef,
    predicate: &Arc<dyn PhysicalExpr>,
) -> Option<BTreeSet<PartitionId>> {
    let fixed_columns = FixedColumns::from_predicate(predicate);
    let fixed = spec.partition_key_columns().map(|column| {
        let field = schema.field_with_name(&column.name).ok()?;
        ScalarValue::iter_to_array(fixed_columns.values(field)?).ok()
    });
    let columns = combinations(&fixed.collect::<Option<Vec<_>>>()?)?;
    let placed = Placement::for_table(spec).assign(&columns).ok()?;
    Some(placed.into_iter().collect())
}

/// For each portion, whether it can hold rows that match `predicate`, by the ranges of its
/// primary-key columns.
pub(in crate::query) fn matching_portions(
    spec: &TableSpec,
    schema: &SchemaRef,
    predicate: &Arc<dyn PhysicalExpr>,
    portions: &[Arc<PortionEntry>],
) -> Result<Vec<bool>> {
    let pruning = PruningPredicateBuilder::new()
        .with_file_schema(Arc::clone(schema))
        .try_build(Arc::clone(predicate))?;
    if pruning.always_true() {
        return Ok(vec![true; portions.len()]);
    }
    pruning.prune(&KeyStatistics { spec, schema, portions })
}

/// Ranges of the primary-key columns in the form that DataFusion's pruning reads.
struct KeyStatistics<'a> {
    spec: &'a TableSpec,
    schema: &'a SchemaRef,
    portions: &'a [Arc<PortionEntry>],
}

impl KeyStatistics<'_> {
    fn values(&self, column: &Column, value: fn(&KeyRange) -> Option<&KeyValue>) -> Option<ArrayRef> {
        let position = self.spec.primary_key_columns().position(|key| key.name == column.name)?;
        let data_type = self.schema.field_with_name(&column.name).ok()?.data_type();
        let scalars = self.portions.iter().map(|portion| {
            let value = portion.column_ranges.get(position).and_then(value);
            value.and_then(|value| scalar(value, data_type)).or_else(|| ScalarValue::try_from(data_type).ok())
        });
        ScalarValue::iter_to_array(scalars.collect::<Option<Vec<_>>>()?).ok()
    }
}

impl PruningStatistics for KeyStatistics<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.values(column, |range| range.min.first())
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.values(column, |range| range.max.first())
    }

    fn num_containers(&self) -> usize {
        self.portions.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let key = self.spec.primary_key_columns().any(|key| key.name == column.name);
        key.then(|| Arc::new(UInt64Array::from(vec![0; self.portions.len()])) as ArrayRef)
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from_iter_values(self.portions.iter().map(|portion| portion.rows))))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
