//! Statements that would do more than read.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::Statement;

/// Change that a statement would make, for kinds of statements that may name nonexistent tables;
/// `None` for all others, whose plans show it.
#[must_use]
pub fn declared_change(statement: &ParsedStatement) -> Option<&'static str> {
    let ParsedStatement::Statement(statement) = statement else { return None };
    match statement.as_ref() {
        Statement::CreateTable(_) | Statement::CreateView(_) | Statement::Drop { .. } => {
            Some("change what tables there are")
        }
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => Some("change rows"),
        _ => None,
    }
}

/// Side effect of a plan, such as "write files"; `None` if the plan is a query. Looks below an
/// EXPLAIN ANALYZE too, since it runs its statement.
///
/// # Errors
/// None that a caller can cause.
pub fn side_effect(plan: &LogicalPlan) -> Result<Option<&'static str>, DataFusionError> {
    let mut effect = None;
    plan.apply_with_subqueries(|node| {
        effect = match node {
            LogicalPlan::Ddl(_) => Some("change what tables there are"),
            LogicalPlan::Dml(_) => Some("change rows"),
            LogicalPlan::Copy(_) => Some("write files"),
            LogicalPlan::Statement(_) => Some("change the session"),
            _ => None,
        };
        Ok(if effect.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(effect)
}
