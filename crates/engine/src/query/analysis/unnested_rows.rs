//! Rows that UNNEST repeats.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::opaque_casts::opaque_cast;
use crate::query::walk::WalkPlan;

/// Hides from DataFusion that the columns below UNNEST are unique.
///
/// DataFusion 55 considers them unique above it too, although it repeats rows: DISTINCT does
/// nothing, and a join finds at most one row. Unique columns are determined later. Runs before a
/// rule that recomputes the schemas of all nodes.
#[derive(Debug)]
pub(in crate::query) struct UnnestedRows {
    cast: Arc<ScalarUDF>,
}

impl UnnestedRows {
    pub(in crate::query) fn new() -> Self {
        Self { cast: Arc::new(opaque_cast()) }
    }

    /// Recomputes all columns, as themselves.
    fn hidden(&self, input: &LogicalPlan) -> Result<LogicalPlan> {
        let columns = input.schema().iter().map(|(qualifier, field)| {
            let column = Expr::Column(Column::from((qualifier, field)));
            let target = Expr::Literal(ScalarValue::try_from(field.data_type())?, None);
            let call = ScalarFunction::new_udf(Arc::clone(&self.cast), vec![column, target]);
            Ok(Expr::ScalarFunction(call).alias_qualified(qualifier.cloned(), field.name()))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        LogicalPlanBuilder::from(input.clone()).project(columns)?.build()
    }
}

impl AnalyzerRule for UnnestedRows {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries_dyn(|plan| match &plan {
            LogicalPlan::Unnest(unnest) => {
                let input = self.hidden(&unnest.input)?;
                Ok(Transformed::yes(plan.with_new_exprs(plan.expressions(), vec![input])?))
            }
            _ => Ok(Transformed::no(plan)),
        })?;
        Ok(rewritten.data)
    }

    fn name(&self) -> &'static str {
        "unnested_rows"
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::joins::{answer, tables};

    #[tokio::test]
    async fn repeated_rows_are_not_taken_for_unique_ones() {
        let tables = tables().await;
        let unnested = "(SELECT game, unnest([1, 2]) AS x FROM (SELECT DISTINCT game FROM small))";
        for (sql, expected) in [
            (format!("SELECT count(*) FROM (SELECT DISTINCT game FROM {unnested})"), 6),
            (format!("SELECT count(*) FROM {unnested}"), 12),
            (
                format!(
                    "SELECT count(*) FROM (SELECT a.player FROM small a JOIN {unnested} b ON a.game = b.game)"
                ),
                12,
            ),
            (
                format!(
                    "SELECT count(*) FROM (SELECT game, count(*) AS n FROM {unnested} GROUP BY game) WHERE n = 2"
                ),
                6,
            ),
        ] {
            let printed = answer(&tables.ours, &sql).await;
            assert!(printed.contains(&format!("| {expected} ")), "{sql}\n{printed}");
        }
    }
}
