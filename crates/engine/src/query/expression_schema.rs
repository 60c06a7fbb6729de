//! The columns that the expressions of a plan node refer to.

use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::utils::merge_schema;

/// Returns the columns of a node's inputs. The filters of a scan refer to all columns of its table,
/// no matter which of them the scan returns.
pub(super) fn expression_schema(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        let of_table = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
        schema.merge(&of_table);
    }
    Ok(schema)
}
