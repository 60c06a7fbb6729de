//! Set operations that keep equal rows.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier, Visitor};

use crate::walk::walk;

/// Whether a statement has EXCEPT ALL or INTERSECT ALL. DataFusion removes or returns all equal
/// rows at once, while SQL counts them.
#[must_use]
pub fn counts_equal_rows(statement: &Statement) -> bool {
    let Statement::Statement(statement) = statement else { return false };
    walk(statement.as_ref(), &mut Counting).is_break()
}

struct Counting;

impl Visitor for Counting {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if counts(&query.body) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Queries in parentheses are visited separately.
fn counts(body: &SetExpr) -> bool {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return false };
    let is_all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
    is_all && *op != SetOperator::Union || counts(left) || counts(right)
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;

    #[test]
    fn counting_is_found_wherever_it_stands() {
        let detects = |sql: &str| {
            let mut statements = DFParserBuilder::new(sql).build().unwrap().parse_statements().unwrap();
            counts_equal_rows(&statements.pop_front().unwrap())
        };
        for sql in [
            "SELECT 1 EXCEPT ALL SELECT 2",
            "SELECT 1 UNION ALL (SELECT 1 INTERSECT ALL SELECT 2)",
            "SELECT 1 UNION SELECT 1 EXCEPT ALL SELECT 2",
            "SELECT * FROM (SELECT 1 EXCEPT ALL SELECT 2) AS x",
            "WITH x AS (SELECT 1 EXCEPT ALL SELECT 2) SELECT * FROM x",
            "SELECT 1 WHERE 1 IN (SELECT 1 INTERSECT ALL SELECT 2)",
        ] {
            assert!(detects(sql), "{sql}");
        }
        for sql in [
            "SELECT 1 EXCEPT SELECT 2",
            "SELECT 1 UNION ALL SELECT 2",
            "SELECT 1 INTERSECT DISTINCT SELECT 2",
        ] {
            assert!(!detects(sql), "{sql}");
        }
    }
}
