//! Number of tables that a statement reads.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visitor};

use crate::limits::error::{MAX_TABLES, SqlLimitError};
use crate::walk::walk;

/// Checks the number of tables that a statement reads if each WITH query is expanded at every use,
/// as the planner does.
///
/// # Errors
/// [`SqlLimitError::Tables`] if there are more than [`MAX_TABLES`].
pub(crate) fn check_tables(statement: &Statement) -> Result<(), SqlLimitError> {
    let mut statement = statement;
    while let Statement::Explain(explain) = statement {
        statement = &explain.statement;
    }
    let Statement::Statement(statement) = statement else { return Ok(()) };
    let mut tables = Tables::default();
    match walk(statement.as_ref(), &mut tables) {
        ControlFlow::Break(()) => Err(SqlLimitError::Tables),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// State of a query while it is visited.
#[derive(Debug, Default)]
struct Scope {
    /// Names of its WITH queries that are not visited yet; the last one is next.
    pending: Vec<String>,
    /// Number of tables of each WITH query that was visited.
    named: HashMap<String, u64>,
    /// Number of tables of the query so far.
    tables: u64,
}

/// Counts tables, query by query. The WITH queries of a query are visited before its body, in
/// order.
#[derive(Debug, Default)]
struct Tables {
    scopes: Vec<Scope>,
}

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        let pending = with.rev().map(|cte| cte.alias.name.value.clone()).collect();
        self.scopes.push(Scope { pending, ..Scope::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        let tables = self.scopes.pop().map_or(0, |scope| scope.tables);
        if tables > MAX_TABLES {
            return ControlFlow::Break(());
        }
        if let Some(outer) = self.scopes.last_mut() {
            match outer.pending.pop() {
                Some(name) => {
                    outer.named.insert(name, tables);
                }
                None => outer.tables = outer.tables.saturating_add(tables),
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = relation.to_string();
        let known = self.scopes.iter().rev().find_map(|scope| scope.named.get(name.trim_matches('"')));
        let tables = known.copied().unwrap_or(1).max(1);
        if let Some(scope) = self.scopes.last_mut() {
            scope.tables = scope.tables.saturating_add(tables);
            if scope.tables > MAX_TABLES {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn tables(sql: &str) -> Result<(), SqlLimitError> {
        DFParser::parse_sql(sql).unwrap().iter().try_for_each(check_tables)
    }

    #[test]
    fn with_queries_count_as_often_as_they_are_expanded() {
        let doubling = |levels: usize| {
            let mut sql = "WITH a0 AS (SELECT * FROM t)".to_owned();
            for level in 1..=levels {
                let below = level - 1;
                sql.push_str(&format!(
                    ", a{level} AS (SELECT * FROM a{below} UNION ALL SELECT * FROM a{below})"
                ));
            }
            format!("{sql} SELECT count(*) FROM a{levels}")
        };
        assert_eq!(tables(&doubling(7)), Ok(()));
        for levels in [8, 30, 60] {
            assert_eq!(tables(&doubling(levels)), Err(SqlLimitError::Tables), "{levels}");
            assert_eq!(tables(&format!("EXPLAIN {}", doubling(levels))), Err(SqlLimitError::Tables));
        }
        let quoted = doubling(30).replace("a29", "\"a29\"");
        assert_eq!(tables(&quoted), Err(SqlLimitError::Tables));
        let recursive =
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT * FROM n";
        assert_eq!(tables(recursive), Ok(()));
        assert_eq!(tables(&format!("SELECT count(*) FROM {}", vec!["t"; 128].join(", "))), Ok(()));
        assert_eq!(
            tables(&format!("SELECT count(*) FROM {}", vec!["t"; 129].join(", "))),
            Err(SqlLimitError::Tables)
        );
        let inner = "SELECT * FROM t WHERE id IN (SELECT id FROM t UNION SELECT id FROM t)";
        assert_eq!(tables(inner), Ok(()));
    }
}
