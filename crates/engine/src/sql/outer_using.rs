//! Outer joins whose columns are joined by name.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    JoinConstraint, JoinOperator, Select, TableFactor, TableWithJoins, Visit, Visitor,
};

/// Whether a statement has an outer join with USING or NATURAL. DataFusion takes the joined column
/// from the table whose name sorts first, so that it is NULL if only the other table has the row.
/// SQL requires the value of the table that has it.
pub(crate) fn has_outer_join_by_name(statement: &Statement) -> bool {
    let Statement::Statement(statement) = statement else { return false };
    statement.visit(&mut OuterJoins).is_break()
}

struct OuterJoins;

impl Visitor for OuterJoins {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.from.iter().any(joins_by_name) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } if joins_by_name(table_with_joins) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn joins_by_name(table: &TableWithJoins) -> bool {
    table.joins.iter().any(|join| match &join.join_operator {
        JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)
        | JoinOperator::Right(on)
        | JoinOperator::RightOuter(on)
        | JoinOperator::FullOuter(on) => matches!(on, JoinConstraint::Using(_) | JoinConstraint::Natural),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;

    #[test]
    fn outer_joins_by_name_are_found_wherever_they_stand() {
        let found = |sql: &str| {
            let mut statements = DFParserBuilder::new(sql).build().unwrap().parse_statements().unwrap();
            has_outer_join_by_name(&statements.pop_front().unwrap())
        };
        for sql in [
            "SELECT * FROM a LEFT JOIN b USING (k)",
            "SELECT * FROM a NATURAL FULL JOIN b",
            "SELECT * FROM c, (a RIGHT OUTER JOIN b USING (k))",
            "SELECT 1 WHERE EXISTS (SELECT * FROM a JOIN c USING (k) LEFT JOIN b USING (k))",
            "WITH x AS (SELECT * FROM a FULL JOIN b USING (k)) SELECT * FROM x",
            "SELECT 1 UNION ALL SELECT 1 FROM a LEFT JOIN b USING (k)",
        ] {
            assert!(found(sql), "{sql}");
        }
        for sql in [
            "SELECT * FROM a JOIN b USING (k)",
            "SELECT * FROM a LEFT JOIN b ON a.k = b.k",
            "SELECT * FROM a NATURAL JOIN b",
        ] {
            assert!(!found(sql), "{sql}");
        }
    }
}
