//! Names under which a session finds the table and its system tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

use crate::query::error::QueryError;
use crate::query::provider::SnapshotTable;
use crate::query::system::{partition_stats, portion_stats};

/// Name under which every table is available.
pub(super) const TABLE_ALIAS: &str = "t";

/// Registers the table and its system tables. Returns the names that users can query.
pub(super) fn register_tables(
    context: &SessionContext,
    table: &Arc<SnapshotTable>,
    provider: &Arc<dyn TableProvider>,
) -> Result<Vec<String>, QueryError> {
    let snapshot = table.snapshot();
    let own_name = snapshot.spec().name().to_owned();
    let mut names = vec![TABLE_ALIAS.to_owned()];
    if own_name != TABLE_ALIAS {
        names.push(own_name);
    }
    let system = [
        ("partition_stats", partition_stats(snapshot)),
        ("primary_index_portion_stats", portion_stats(snapshot)),
    ];
    let schema = Arc::new(MemorySchemaProvider::new());
    for (system_name, batch) in system {
        let batch = batch.map_err(DataFusionError::from)?;
        let view = Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?);
        schema.register_table(system_name.to_owned(), view.clone())?;
        for name in &names {
            context
                .register_table(TableReference::bare(format!("{name}/.sys/{system_name}")), view.clone())?;
        }
    }
    for name in &names {
        context.register_table(TableReference::bare(name.clone()), Arc::clone(provider))?;
    }
    let system_names = schema.table_names().into_iter().map(|name| format!("sys.{name}"));
    names.extend(system_names.collect::<BTreeSet<_>>());
    if let Some(catalog) = context.catalog("datafusion") {
        catalog.register_schema("sys", schema)?;
    }
    Ok(names)
}
