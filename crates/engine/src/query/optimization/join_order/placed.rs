//! Relations whose rows are in the partitions of their keys.

use datafusion::common::Column;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::query::scan::provider::SnapshotTable;
use evenkeel_placement::placement::Placement;

/// Placement of the rows of a relation, and the columns of the partition key in its output.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) placement: Placement,
    pub(super) key: Vec<Column>,
}

impl Placed {
    /// Returns the placement of the rows of a table; `None` if a plan combines the rows of
    /// partitions, or does not return the key.
    pub(super) fn of(plan: &LogicalPlan) -> Option<Self> {
        match plan {
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source).ok()?;
                let spec = provider.downcast_ref::<SnapshotTable>()?.snapshot().spec();
                let name = |name: &str| Column::new(Some(scan.table_name.clone()), name);
                let key: Vec<Column> =
                    spec.partition_key_columns().map(|column| name(&column.name)).collect();
                let has_key = key.iter().all(|column| plan.schema().has_column(column));
                has_key.then(|| Self { placement: Placement::for_table(spec), key })
            }
            LogicalPlan::Filter(filter) => Self::of(&filter.input),
            LogicalPlan::SubqueryAlias(alias) => {
                let placed = Self::of(&alias.input)?;
                let renamed = |column: Column| Column::new(Some(alias.alias.clone()), column.name);
                Some(Self { key: placed.key.into_iter().map(renamed).collect(), ..placed })
            }
            LogicalPlan::Projection(projection) => {
                let placed = Self::of(&projection.input)?;
                let output = |column: &Column| {
                    let place = projection.expr.iter().position(|expr| is(expr, column))?;
                    projection.schema.columns().get(place).cloned()
                };
                let key: Option<Vec<Column>> = placed.key.iter().map(output).collect();
                Some(Self { key: key?, ..placed })
            }
            _ => None,
        }
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
