//! Relations whose rows are those of a table: their keys, and the partitions of these.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::query::scan::provider::SnapshotTable;
use evenkeel_model::table::TableSpec;
use evenkeel_placement::placement::Placement;

/// Placement of the rows of a relation, and the columns of the partition key in its output.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) placement: Placement,
    pub(super) key: Vec<Column>,
}

/// Columns of a table in the output of a plan, by their names in the table; `None` if the rows of
/// the plan are not those of one table, or it does not return all of the columns.
fn outputs(
    plan: &LogicalPlan,
    names: &dyn Fn(&TableSpec) -> Vec<String>,
) -> Option<(Arc<TableSpec>, Vec<Column>)> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let provider = source_as_provider(&scan.source).ok()?;
            let spec = Arc::clone(provider.downcast_ref::<SnapshotTable>()?.snapshot().spec());
            let column = |name: String| Column::new(Some(scan.table_name.clone()), name);
            let columns: Vec<Column> = names(&spec).into_iter().map(column).collect();
            let has_all = columns.iter().all(|column| plan.schema().has_column(column));
            has_all.then_some((spec, columns))
        }
        LogicalPlan::Filter(filter) => outputs(&filter.input, names),
        LogicalPlan::SubqueryAlias(alias) => {
            let (spec, columns) = outputs(&alias.input, names)?;
            let renamed = |column: Column| Column::new(Some(alias.alias.clone()), column.name);
            Some((spec, columns.into_iter().map(renamed).collect()))
        }
        LogicalPlan::Projection(projection) => {
            let (spec, columns) = outputs(&projection.input, names)?;
            let output = |column: &Column| {
                let place = projection.expr.iter().position(|expr| is(expr, column))?;
                projection.schema.columns().get(place).cloned()
            };
            let columns: Option<Vec<Column>> = columns.iter().map(output).collect();
            Some((spec, columns?))
        }
        _ => None,
    }
}

/// Columns of which no two rows of a plan have the same values: the primary key of its table.
pub(super) fn unique_columns(plan: &LogicalPlan) -> Option<Vec<Column>> {
    let name = |spec: &TableSpec, at: &usize| spec.columns().get(*at).map(|column| column.name.clone());
    let names = |spec: &TableSpec| spec.primary_key().iter().filter_map(|at| name(spec, at)).collect();
    outputs(plan, &names).map(|(_, columns)| columns)
}

impl Placed {
    /// Returns the placement of the rows of a table; `None` if a plan combines the rows of
    /// partitions, or does not return the key.
    pub(super) fn of(plan: &LogicalPlan) -> Option<Self> {
        let names =
            |spec: &TableSpec| spec.partition_key_columns().map(|column| column.name.clone()).collect();
        let (spec, key) = outputs(plan, &names)?;
        Some(Self { placement: Placement::for_table(&spec), key })
    }

    /// Whether rows with equal keys are in partitions that can be joined one by one.
    pub(super) fn fits(&self, other: &Self) -> bool {
        let (one, other) = (&self.placement, &other.placement);
        let (fine, coarse) = if one.partitions() < other.partitions() { (other, one) } else { (one, other) };
        one.function() == other.function()
            && one.key() == other.key()
            && fine.nesting(coarse.partitions()).is_some()
    }
}

/// Whether an expression is a column, by any name.
fn is(expr: &Expr, column: &Column) -> bool {
    match expr {
        Expr::Column(known) => known == column,
        Expr::Alias(alias) => is(&alias.expr, column),
        _ => false,
    }
}
