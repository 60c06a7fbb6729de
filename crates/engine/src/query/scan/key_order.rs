//! Order of rows by their key.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};

/// Returns the ascending order by the columns at `key`; `None` without columns.
pub fn key_ordering(schema: &SchemaRef, key: &[usize]) -> Option<LexOrdering> {
    let sort_by = |index: &usize| {
        let field = schema.fields().get(*index)?;
        Some(ascending(Arc::new(Column::new(field.name(), *index))))
    };
    LexOrdering::new(key.iter().map(sort_by).collect::<Option<Vec<_>>>()?)
}

fn ascending(expr: Arc<dyn PhysicalExpr>) -> PhysicalSortExpr {
    PhysicalSortExpr::new(expr, SortOptions { descending: false, nulls_first: true })
}
