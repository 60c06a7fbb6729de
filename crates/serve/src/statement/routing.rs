//! The choice between the engine and the catalog, by the relations and functions of a query.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Query, Visitor};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use evenkeel_sql::walk;

use crate::failure::{Failure, SqlState};
use crate::statement::Command;

/// Names that mark a query as one for the engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownNames {
    /// Functions, in lower case.
    pub(crate) functions: BTreeSet<String>,
    /// Tables and exports.
    pub(crate) tables: BTreeSet<String>,
}

impl KnownNames {
    /// Whether the engine has a function. The catalog answers `version`, as PostgreSQL does.
    fn has(&self, function: &str) -> bool {
        let name = function.to_ascii_lowercase();
        name != "version" && self.functions.contains(&name)
    }
}

/// Decides whether a query is about tables or about the catalog.
pub(super) fn query(sql: &str, known: &KnownNames) -> Result<Command, Failure> {
    // The engine, whose dialect differs, reports text that cannot be parsed here.
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, sql);
    let Some(statement) = parsed.ok().and_then(|mut statements| statements.pop()) else {
        return Ok(Command::Query(sql.to_owned()));
    };
    let mut relations = Relations { known, catalog: false, tables: false, foreign: false, named: Vec::new() };
    let _ = walk(&statement, &mut relations);
    match (relations.catalog, relations.tables) {
        (true, true) => Err(Failure::new(
            SqlState::NOT_SUPPORTED,
            "a query reads either tables or the catalog (pg_catalog, information_schema), not both",
        )),
        (false, true) => Ok(Command::Query(sql.to_owned())),
        (true, false) => Ok(Command::Catalog(sql.to_owned())),
        // Without a table, functions decide: the catalog knows those of PostgreSQL.
        (false, false) if relations.foreign => Ok(Command::Catalog(sql.to_owned())),
        (false, false) => Ok(Command::Query(sql.to_owned())),
    }
}

/// Whether a query reads tables, the catalog or neither.
#[derive(Debug)]
struct Relations<'a> {
    known: &'a KnownNames,
    catalog: bool,
    tables: bool,
    /// Whether it calls functions that only PostgreSQL has.
    foreign: bool,
    /// Names of WITH clauses, which are neither.
    named: Vec<String>,
}

impl Visitor for Relations<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(with) = &query.with {
            self.named
                .extend(with.cte_tables.iter().map(|table| table.alias.name.value.to_ascii_lowercase()));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let parts: Vec<String> = relation
            .0
            .iter()
            .filter_map(|part| part.as_ident())
            .map(|part| part.value.to_ascii_lowercase())
            .collect();
        let schema = parts.len().checked_sub(2).and_then(|at| parts.get(at)).map(String::as_str);
        let name = parts.last().map(String::as_str).unwrap_or_default();
        match schema {
            Some("pg_catalog" | "information_schema") => self.catalog = true,
            // A table and a query in WITH may share a name. The engine distinguishes them.
            None if self.named.iter().any(|named| named == name) => {
                self.tables |= self.known.tables.contains(name);
            }
            None if name.starts_with("pg_") => self.catalog = true,
            // Functions that return rows.
            None if name == "unnest" => {}
            None if ["generate_series", "range", "string_to_array"].contains(&name) => self.foreign = true,
            _ => self.tables = true,
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(function) => self.foreign |= !self.known.has(&function.name.to_string()),
            // Names of objects as numbers, such as 'events'::regclass.
            Expr::Cast { data_type, .. } => {
                let name = data_type.to_string().to_ascii_lowercase();
                self.foreign |= name.starts_with("reg") || name.starts_with("pg_catalog.") || name == "oid";
            }
            Expr::Identifier(name) if name.quote_style.is_none() => {
                const SPECIAL: [&str; 5] =
                    ["current_schema", "current_catalog", "current_user", "user", "session_user"];
                self.foreign |= SPECIAL.contains(&name.value.to_ascii_lowercase().as_str());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
