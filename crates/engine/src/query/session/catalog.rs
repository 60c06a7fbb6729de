//! Names of tables and their system tables in a session.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::TableReference;
use datafusion::prelude::SessionContext;

use crate::query::error::QueryError;
use crate::query::scan::named_table::NamedTable;
use crate::query::session::system::{SYSTEM, SystemTable};

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
        for (named, _) in tables {
            let of_one: Arc<dyn TableProvider> =
                Arc::new(SystemTable::new(view, vec![named.clone()], false)?);
            for name in &named.names {
                let name = TableReference::bare(format!("{name}/.sys/{system_name}"));
                context.register_table(name, Arc::clone(&of_one))?;
            }
        }
        let all: Vec<NamedTable> = tables.iter().map(|(named, _)| named.clone()).collect();
        let has_name = all.len() > 1;
        let of_all = SystemTable::new(view, all, has_name)?;
        schema.register_table(system_name.to_owned(), Arc::new(of_all))?;
    }
    let system_names = schema.table_names().into_iter().map(|name| format!("sys.{name}"));
    known.extend(system_names.collect::<BTreeSet<_>>());
    if let Some(catalog) = context.catalog("datafusion") {
        catalog.register_schema("sys", schema)?;
    }
    Ok(known)
}
