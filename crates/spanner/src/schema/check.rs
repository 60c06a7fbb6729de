//! Rejects statements that parse but that Spanner would reject: names that are undeclared or
//! declared twice, unknown types, invalid keys. Simulating such statements would model a different
//! table.

use std::fmt::Display;

use sqlparser::tokenizer::Location;

use crate::schema::error::SchemaError;
use crate::schema::placed::{ParsedStatements, PlacedIndex, PlacedTable, Reference};
use crate::schema::tables::SchemaKey;
use crate::schema::types::TypeProblem;
use evenkeel_model::bounded::quote;

/// Limits on the columns of a key and on the depth of interleaving (Spanner, "Quotas and limits").
const MAX_KEY_COLUMNS: usize = 16;
const MAX_LEVELS: usize = 7;

fn alike(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn error(at: Location, statement: &str, problem: String, next: impl Into<String>) -> SchemaError {
    let (line, column) = (at.line, at.column);
    SchemaError::Refused { line, column, statement: statement.to_owned(), problem, next: next.into() }
}

/// Returns the first name that occurs twice.
fn repeated<'a, T>(names: impl Iterator<Item = (&'a str, T)>) -> Option<(&'a str, T)> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, place) in names {
        if seen.iter().any(|known| alike(known, name)) {
            return Some((name, place));
        }
        seen.push(name);
    }
    None
}

/// Lists the names of some columns, at most a dozen.
fn few<'a>(names: impl Iterator<Item = &'a String>) -> String {
    const MOST: usize = 12;
    let names: Vec<String> = names.map(|name| quote(name).to_string()).collect();
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown} and {} more", names.len() - MOST) } else { shown }
}

impl ParsedStatements {
    pub(super) fn check(&self) -> Result<(), SchemaError> {
        let names = self.tables.iter().map(|table| (table.table.name.as_str(), table.at));
        if let Some((name, at)) = repeated(names) {
            let name = quote(name);
            let next = "leave one of them out, or rename it";
            return Err(error(
                at,
                &format!("CREATE TABLE {name}"),
                format!("table {name} is declared twice"),
                next,
            ));
        }
        self.tables.iter().try_for_each(|table| self.check_table(table))?;
        let names = self.tables.iter().map(|table| (table.table.name.as_str(), table.at));
        let names = names.chain(self.indexes.iter().map(|index| (index.index.name.as_str(), index.at)));
        if let Some((name, at)) = repeated(names) {
            let name = quote(name);
            let next = "tables and indexes share their names: rename it";
            return Err(error(
                at,
                &format!("CREATE INDEX {name}"),
                format!("the name {name} is taken"),
                next,
            ));
        }
        self.indexes.iter().try_for_each(|index| self.check_index(index))
    }

    fn table(&self, name: &str) -> Option<&PlacedTable> {
        self.tables.iter().find(|table| alike(&table.table.name, name))
    }

    fn declared(&self) -> String {
        few(self.tables.iter().map(|table| &table.table.name))
    }

    fn check_table(&self, placed: &PlacedTable) -> Result<(), SchemaError> {
        let table = &placed.table;
        let statement = format!("CREATE TABLE {}", quote(&table.name));
        let names = table.columns.iter().zip(&placed.columns);
        if let Some((name, at)) =
            repeated(names.clone().map(|(column, place)| (column.name.as_str(), place.at)))
        {
            let problem = format!("column {} is declared twice", quote(name));
            return Err(error(at, &statement, problem, "names differ by more than their case: rename one"));
        }
        for (column, place) in names {
            if let Err((at, TypeProblem { problem, next, .. })) = &place.column_type {
                return Err(error(
                    *at,
                    &statement,
                    format!("column {}: {problem}", quote(&column.name)),
                    next.as_str(),
                ));
            }
        }
        if table.primary_key.is_empty() {
            let problem = format!("table {} has no primary key", quote(&table.name));
            return Err(error(
                placed.at,
                &statement,
                problem,
                "write PRIMARY KEY (columns) after the columns",
            ));
        }
        self.check_key(placed, &table.primary_key, &placed.key, &statement, "the primary key")?;
        for reference in &placed.references {
            self.check_reference(placed, reference, &statement)?;
        }
        match (&table.parent, placed.parent) {
            (Some(parent), Some(at)) => self.check_parent(placed, parent, at, &statement),
            _ => Ok(()),
        }
    }

    /// Checks that the columns of a key exist, occur once, and have types that a key may have.
    fn check_key(
        &self,
        table: &PlacedTable,
        key: &[SchemaKey],
        places: &[Location],
        statement: &str,
        role: &str,
    ) -> Result<(), SchemaError> {
        for (part, at) in key.iter().zip(places) {
            let position = self.column(table, &part.column, *at, statement, role)?;
            let column_type = table.columns.get(position).and_then(|column| column.column_type.as_ref().ok());
            if let Some(column_type) = column_type.filter(|column_type| !column_type.is_key_type) {
                let problem = format!(
                    "{} has the type {}, which keys cannot have",
                    quote(&part.column),
                    quote(&column_type.name)
                );
                return Err(error(
                    *at,
                    statement,
                    problem,
                    "choose another column, or store a part of this one in a separate column",
                ));
            }
        }
        let names = key.iter().map(|part| part.column.as_str()).zip(places);
        if let Some((name, at)) = repeated(names) {
            let problem = format!("{role} names {} twice", quote(name));
            return Err(error(*at, statement, problem, "name each column once"));
        }
        if let Some(at) = places.get(MAX_KEY_COLUMNS) {
            let problem = format!("{role} has {} columns", key.len());
            return Err(error(*at, statement, problem, format!("a key has at most {MAX_KEY_COLUMNS}")));
        }
        Ok(())
    }

    /// Returns the position of a column in the table.
    fn column(
        &self,
        table: &PlacedTable,
        name: &str,
        at: Location,
        statement: &str,
        role: &str,
    ) -> Result<usize, SchemaError> {
        let position = table.table.columns.iter().position(|column| alike(&column.name, name));
        position.ok_or_else(|| {
            let columns = few(table.table.columns.iter().map(|column| &column.name));
            let (name, table) = (quote(name), quote(&table.table.name));
            let problem = format!("{role} names {name}, which is not a column of {table}");
            error(at, statement, problem, format!("declare it; {table} has {columns}"))
        })
    }

    fn check_reference(
        &self,
        table: &PlacedTable,
        reference: &Reference,
        statement: &str,
    ) -> Result<(), SchemaError> {
        let role = "a foreign key";
        for (name, at) in &reference.columns {
            self.column(table, name, *at, statement, role)?;
        }
        let (name, at) = &reference.table;
        let Some(referenced) = self.table(name) else {
            let problem = format!("{role} references {}, which is not declared here", quote(name));
            let next =
                format!("add its statement, or leave the foreign key out; declared are {}", self.declared());
            return Err(error(*at, statement, problem, next));
        };
        for (name, at) in &reference.referenced {
            self.column(referenced, name, *at, statement, role)?;
        }
        Ok(())
    }

    fn check_parent(
        &self,
        child: &PlacedTable,
        parent: &str,
        at: Location,
        statement: &str,
    ) -> Result<(), SchemaError> {
        let name = quote(parent);
        let Some(parent) = self.table(parent) else {
            let problem = format!("it is interleaved in {name}, which is not declared here");
            let next = format!(
                "add the statement of {name}, or leave INTERLEAVE out to model the keys alone; declared are {}",
                self.declared()
            );
            return Err(error(at, statement, problem, next));
        };
        self.check_ancestors(child, parent, at, statement)?;
        check_key_prefix(child, parent, at, statement)
    }

    /// Rejects cycles and chains of parents that are too long.
    fn check_ancestors(
        &self,
        child: &PlacedTable,
        parent: &PlacedTable,
        at: Location,
        statement: &str,
    ) -> Result<(), SchemaError> {
        let (mut above, mut levels) = (Some(parent), 1);
        while let Some(table) = above {
            if alike(&table.table.name, &child.table.name) {
                let problem = format!("it is interleaved in itself, by way of {}", parent_name(child));
                return Err(error(
                    at,
                    statement,
                    problem,
                    "a table is interleaved in one that is declared before it",
                ));
            }
            levels += 1;
            if levels > MAX_LEVELS {
                let problem = format!("more than {MAX_LEVELS} tables are interleaved in each other");
                return Err(error(at, statement, problem, "leave INTERLEAVE out of the lowest"));
            }
            above = table.table.parent.as_ref().and_then(|parent| self.table(parent));
        }
        Ok(())
    }

    fn check_index(&self, placed: &PlacedIndex) -> Result<(), SchemaError> {
        let index = &placed.index;
        let statement = format!("CREATE INDEX {}", quote(&index.name));
        let Some(table) = self.table(&index.table) else {
            let problem = format!(
                "index {} is of table {}, which is not declared here",
                quote(&index.name),
                quote(&index.table)
            );
            let next = format!("add its statement; declared are {}", self.declared());
            return Err(error(placed.table, &statement, problem, next));
        };
        self.check_key(table, &index.columns, &placed.columns, &statement, "the index")?;
        for (name, at) in index.storing.iter().zip(&placed.storing) {
            self.column(table, name, *at, &statement, "STORING")?;
        }
        let stored = index.storing.iter().map(String::as_str).zip(&placed.storing);
        let keys = index.columns.iter().map(|part| part.column.as_str()).zip(&placed.columns);
        if let Some((name, at)) = repeated(keys.chain(stored)) {
            let problem = format!("the index has {} twice", quote(name));
            return Err(error(
                *at,
                &statement,
                problem,
                "name each column once, in its key or after STORING",
            ));
        }
        match (&index.interleaved_in, placed.parent) {
            (Some(parent), Some(at)) if self.table(parent).is_none() => {
                let problem = format!("it is interleaved in {}, which is not declared here", quote(parent));
                let next =
                    format!("add its statement, or leave INTERLEAVE out; declared are {}", self.declared());
                Err(error(at, &statement, problem, next))
            }
            _ => Ok(()),
        }
    }
}

/// Checks that the key of a child begins with that of its parent.
fn check_key_prefix(
    child: &PlacedTable,
    parent: &PlacedTable,
    at: Location,
    statement: &str,
) -> Result<(), SchemaError> {
    let (theirs, ours) = (&parent.table.primary_key, &child.table.primary_key);
    let type_of = |table: &PlacedTable, name: &str| {
        let position = table.table.columns.iter().position(|column| alike(&column.name, name))?;
        let column_type = table.columns.get(position)?.column_type.as_ref().ok()?;
        Some(column_type.name.clone())
    };
    for (number, key) in theirs.iter().enumerate() {
        let own = ours.get(number);
        let is_same = own.is_some_and(|own| {
            alike(&own.column, &key.column)
                && own.descending == key.descending
                && type_of(child, &own.column) == type_of(parent, &key.column)
        });
        if !is_same {
            let place = child.key.get(number).copied().unwrap_or(at);
            let key_of_parent = few(theirs.iter().map(|key| &key.column));
            let problem = format!(
                "its key does not begin with that of {}, in which it is interleaved",
                parent_name(child)
            );
            let next = format!("let it begin with {key_of_parent}, of the same types and in the same order");
            return Err(error(place, statement, problem, next));
        }
    }
    Ok(())
}

/// Name of a table's parent, as the table spells it.
fn parent_name(child: &PlacedTable) -> impl Display {
    quote(child.table.parent.as_deref().unwrap_or_default())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
