//! Names of tables and their system tables in a session.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use crate::query::error::QueryError;
use crate::query::scan::named_table::NamedTable;
use crate::query::session::system::{partition_stats, portion_stats};

/// Computes the rows that a system table has about one table.
type SystemView = fn(&evenkeel_store::log::Snapshot) -> Result<RecordBatch, ArrowError>;

const SYSTEM: [(&str, SystemView); 2] =
    [("partition_stats", partition_stats), ("primary_index_portion_stats", portion_stats)];

/// Registers tables with their providers, and their system tables: under each name of a table, and
/// in schema `sys`, with the rows of all tables. Returns the names that users can query.
pub(in crate::query) fn register_tables(
    context: &SessionContext,
    tables: &[(NamedTable, Arc<dyn TableProvider>)],
) -> Result<Vec<String>, QueryError> {
    let schema = Arc::new(MemorySchemaProvider::new());
    let mut known = Vec::new();
    for (named, provider) in tables {
        for name in &named.names {
            context.register_table(TableReference::bare(name.clone()), Arc::clone(provider))?;
            known.push(name.clone());
        }
    }
    for (system_name, view) in SYSTEM {
        let mut parts = Vec::new();
        for (named, _) in tables {
            let batch = view(named.table.snapshot()).map_err(DataFusionError::from)?;
            let of_one = in_memory(vec![batch.clone()])?;
            for name in &named.names {
                let name = TableReference::bare(format!("{name}/.sys/{system_name}"));
                context.register_table(name, Arc::clone(&of_one))?;
            }
            parts.push(if tables.len() > 1 { with_table_name(named.name(), &batch)? } else { batch });
        }
        schema.register_table(system_name.to_owned(), in_memory(parts)?)?;
    }
    let system_names = schema.table_names().into_iter().map(|name| format!("sys.{name}"));
    known.extend(system_names.collect::<BTreeSet<_>>());
    if let Some(catalog) = context.catalog("datafusion") {
        catalog.register_schema("sys", schema)?;
    }
    Ok(known)
}

fn in_memory(batches: Vec<RecordBatch>) -> Result<Arc<dyn TableProvider>, DataFusionError> {
    let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    Ok(Arc::new(MemTable::try_new(schema, vec![batches])?))
}

/// Returns the rows of a system table with the name of their table in front.
fn with_table_name(name: &str, batch: &RecordBatch) -> Result<RecordBatch, DataFusionError> {
    let names: ArrayRef =
        Arc::new(StringArray::from_iter_values(std::iter::repeat_n(name, batch.num_rows())));
    let schema = batch.schema();
    let others =
        schema.fields().iter().map(|field| field.name().as_str()).zip(batch.columns().iter().cloned());
    Ok(RecordBatch::try_from_iter([("table", names)].into_iter().chain(others))?)
}
