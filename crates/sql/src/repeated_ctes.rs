//! Queries in WITH that a statement names several times.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{
    Cte, Ident, ObjectName, Query, SetExpr, Statement as SqlStatement, TableFactor, Visitor, VisitorMut,
};

use crate::explained::sql_of;
use crate::walk::{walk, walk_mut};

/// Begins the alias of a query in WITH, before its number and name.
const MARK: &str = "_once_";

/// Gives each query in WITH that is named more than once an alias by which its copies in the plan
/// can be recognized: DataFusion plans such a query again for each reference.
///
/// ```text
/// WITH q AS (SELECT ...)  ->  WITH q AS (SELECT * FROM (SELECT ...) AS _once_1_q)
/// ```
pub fn mark_repeated_ctes(statement: &mut Statement) {
    if let Some(statement) = sql_of(statement) {
        let mut mentions = Mentions::default();
        let _ = walk(statement, &mut mentions);
        let _ = walk_mut(statement, &mut Marker { mentions, marked: 0 });
    }
}

/// Returns the name of the query, if an alias is one of those that [`mark_repeated_ctes`] gives.
#[must_use]
pub fn marked_cte(alias: &str) -> Option<&str> {
    let (number, name) = alias.strip_prefix(MARK)?.split_once('_')?;
    number.parse::<usize>().is_ok().then_some(name)
}

/// Number of times that each table is named.
#[derive(Default)]
struct Mentions(HashMap<String, usize>);

impl Visitor for Mentions {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        if let [part] = name.0.as_slice()
            && let Some(ident) = part.as_ident()
        {
            *self.0.entry(ident.value.clone()).or_default() += 1;
        }
        ControlFlow::Continue(())
    }
}

struct Marker {
    mentions: Mentions,
    marked: usize,
}

impl VisitorMut for Marker {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let name = &cte.alias.name.value;
            let mut own = Mentions::default();
            let _ = walk(cte.query.as_ref(), &mut own);
            let is_recursive = own.0.contains_key(name);
            if !is_recursive && self.mentions.0.get(name).is_some_and(|mentions| *mentions > 1) {
                self.marked += 1;
                mark(cte, self.marked);
            }
        }
        ControlFlow::Continue(())
    }
}

fn mark(cte: &mut Cte, number: usize) {
    let Some(mut outer) = parsed("SELECT * FROM (SELECT 1) AS q") else { return };
    let SetExpr::Select(select) = outer.body.as_mut() else { return };
    let Some(TableFactor::Derived { subquery, alias: Some(alias), .. }) =
        select.from.first_mut().map(|from| &mut from.relation)
    else {
        return;
    };
    std::mem::swap(subquery, &mut cte.query);
    alias.name = Ident::with_quote('"', format!("{MARK}{number}_{}", cte.alias.name.value));
    alias.columns = std::mem::take(&mut cte.alias.columns);
    cte.query = outer;
}

fn parsed(sql: &str) -> Option<Box<Query>> {
    let statement = DFParserBuilder::new(sql).build().ok()?.parse_statement().ok()?;
    let Statement::Statement(statement) = statement else { return None };
    match *statement {
        SqlStatement::Query(query) => Some(query),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_that_are_named_twice_are_marked() {
        let marked = |sql: &str| {
            let mut statements = DFParserBuilder::new(sql).build().unwrap().parse_statements().unwrap();
            let mut statement = statements.pop_front().unwrap();
            mark_repeated_ctes(&mut statement);
            statement.to_string()
        };
        for (sql, expected) in [
            (
                "WITH q AS (SELECT 1 AS a) SELECT * FROM q JOIN q AS r ON q.a = r.a",
                "WITH q AS (SELECT * FROM (SELECT 1 AS a) AS \"_once_1_q\") SELECT * FROM q JOIN q AS r ON q.a = r.a",
            ),
            (
                "WITH q (a, b) AS (SELECT 1, 2) SELECT * FROM q, q AS r WHERE EXISTS (SELECT * FROM q)",
                "WITH q AS (SELECT * FROM (SELECT 1, 2) AS \"_once_1_q\" (a, b)) \
                 SELECT * FROM q, q AS r WHERE EXISTS (SELECT * FROM q)",
            ),
            (
                "WITH p AS (SELECT 1 AS a), q AS (SELECT * FROM p) SELECT * FROM q, q AS r",
                "WITH p AS (SELECT 1 AS a), q AS (SELECT * FROM (SELECT * FROM p) AS \"_once_1_q\") \
                 SELECT * FROM q, q AS r",
            ),
        ] {
            assert_eq!(marked(sql), expected);
        }
        for unchanged in [
            "WITH q AS (SELECT 1 AS a) SELECT * FROM q, x.q AS r",
            "WITH RECURSIVE q AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM q WHERE a < 5) SELECT * FROM q, q AS r",
            "SELECT * FROM q, q AS r",
        ] {
            assert_eq!(marked(unchanged), unchanged);
        }
    }

    #[test]
    fn marks_are_recognized() {
        assert_eq!(marked_cte("_once_1_per_user"), Some("per_user"));
        assert_eq!(marked_cte("_once_12_"), Some(""));
        for other in ["once_1_q", "_once_q", "_once_q_1", "q"] {
            assert_eq!(marked_cte(other), None, "{other}");
        }
    }
}
