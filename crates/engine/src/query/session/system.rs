//! The system tables, named after the `.sys` views of YDB.
//!
//! `sys.partition_stats`: one row per partition. `sys.primary_index_portion_stats`: one row per
//! portion. Rows are counted as stored: a superseded row counts in addition to the newer one until
//! their portions are merged.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::{MemTable, TableType};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use crate::query::scan::named_table::NamedTable;
use evenkeel_model::table::{KeyValue, TableSpec};
use evenkeel_store::log::PortionEntry;

/// Computes the rows that a system table has about the portions of one table.
type View = fn(&TableSpec, &[Arc<PortionEntry>]) -> Result<RecordBatch, ArrowError>;

/// System tables by name.
pub(super) const SYSTEM: [(&str, View); 2] =
    [("partition_stats", partition_stats), ("primary_index_portion_stats", portion_stats)];

/// A system table about one table or several, whose rows are computed when it is queried.
#[derive(Debug)]
pub(super) struct SystemTable {
    schema: SchemaRef,
    view: View,
    tables: Vec<NamedTable>,
    /// Whether the name of the table is the first column.
    has_name: bool,
}

impl SystemTable {
    /// Prepares a system table. With `has_name`, its first column is the name of the table.
    ///
    /// # Errors
    /// [`DataFusionError`] if the columns cannot be computed.
    pub(super) fn new(view: View, tables: Vec<NamedTable>, has_name: bool) -> Result<Self, DataFusionError> {
        let schema = match tables.first() {
            Some(first) => {
                with_table_name(first, has_name, &view(first.table.snapshot().spec(), &[])?)?.schema()
            }
            None => Arc::new(Schema::empty()),
        };
        Ok(Self { schema, view, tables, has_name })
    }
}

#[async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let rows = self.tables.iter().map(|named| {
            let portions = named.table.snapshot().portions();
            with_table_name(named, self.has_name, &(self.view)(named.table.snapshot().spec(), &portions)?)
        });
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        MemTable::try_new(self.schema(), vec![rows])?.scan(state, projection, filters, limit).await
    }
}

/// Returns the rows of a system table, with the name of their table in front if there is one.
fn with_table_name(
    named: &NamedTable,
    has_name: bool,
    rows: &RecordBatch,
) -> Result<RecordBatch, ArrowError> {
    if !has_name {
        return Ok(rows.clone());
    }
    let names = std::iter::repeat_n(named.name(), rows.num_rows());
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let schema = rows.schema();
    let others =
        schema.fields().iter().map(|field| field.name().as_str()).zip(rows.columns().iter().cloned());
    RecordBatch::try_from_iter([("table", names)].into_iter().chain(others))
}

/// `partition_stats`: partition, rows, bytes, portions.
fn partition_stats(spec: &TableSpec, portions: &[Arc<PortionEntry>]) -> Result<RecordBatch, ArrowError> {
    let partitions = spec.partitions();
    let mut rows = vec![0u64; partitions.len()];
    let mut bytes = rows.clone();
    let mut counts = rows.clone();
    for portion in portions {
        let index = portion.partition.index();
        if let (Some(rows), Some(bytes), Some(count)) =
            (rows.get_mut(index), bytes.get_mut(index), counts.get_mut(index))
        {
            *rows += portion.data_rows();
            *bytes += portion.bytes;
            *count += 1;
        }
    }
    let ids = UInt32Array::from_iter_values(partitions.ids().map(|id| id.0));
    RecordBatch::try_from_iter([
        ("partition", Arc::new(ids) as ArrayRef),
        ("rows", Arc::new(UInt64Array::from(rows))),
        ("bytes", Arc::new(UInt64Array::from(bytes))),
        ("portions", Arc::new(UInt64Array::from(counts))),
    ])
}

/// `primary_index_portion_stats`: partition, portion, rows, bytes, `min_key`, `max_key`, version,
/// deletes. The last one counts the keys that a portion deletes; such a portion has no rows.
fn portion_stats(spec: &TableSpec, portions: &[Arc<PortionEntry>]) -> Result<RecordBatch, ArrowError> {
    let types = spec.primary_key_types();
    let key = |values: &[KeyValue]| {
        let parts: Vec<String> = values.iter().zip(&types).map(|(value, t)| value.display(*t)).collect();
        format!("({})", parts.join(", "))
    };
    let number = |figure: fn(&PortionEntry) -> u64| {
        Arc::new(UInt64Array::from_iter_values(portions.iter().map(|portion| figure(portion)))) as ArrayRef
    };
    let text = |part: &dyn Fn(&PortionEntry) -> String| {
        Arc::new(StringArray::from_iter_values(portions.iter().map(|portion| part(portion)))) as ArrayRef
    };
    RecordBatch::try_from_iter([
        (
            "partition",
            Arc::new(UInt32Array::from_iter_values(portions.iter().map(|portion| portion.partition.0)))
                as ArrayRef,
        ),
        ("portion", text(&|portion| portion.path.clone())),
        ("rows", number(PortionEntry::data_rows)),
        ("bytes", number(|portion| portion.bytes)),
        ("min_key", text(&|portion| key(&portion.key_range.min))),
        ("max_key", text(&|portion| key(&portion.key_range.max))),
        ("version", number(|portion| portion.sequence.version.0)),
        ("deletes", number(PortionEntry::deleted_keys)),
    ])
}
