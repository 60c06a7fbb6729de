//! Plans of statements.

use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::repeated_columns::{number_repeated_columns, repeats_a_column};

/// Plans a statement. Numbers the columns that a SELECT returns again, as joins do.
///
/// # Errors
/// Those of DataFusion's planner.
// Boxed: otherwise each crate that waits for a plan would compile the planner again.
pub fn plan_statement(state: &SessionState, mut statement: Statement) -> BoxFuture<'_, Result<LogicalPlan>> {
    let plan = async move {
        for beside_all in [false, true] {
            match state.statement_to_plan(statement.clone()).await {
                Err(error) if repeats_a_column(&error) => {
                    number_repeated_columns(&mut statement, beside_all);
                }
                planned => return planned,
            }
        }
        state.statement_to_plan(statement).await
    };
    plan.boxed()
}
