//! Parses `CREATE TABLE`.

use sqlparser::tokenizer::{Location, Token};

use crate::schema::dialect::Dialect;
use crate::schema::error::SchemaError;
use crate::schema::parse::statement::{Statement, split_at_commas};
use crate::schema::placed::{PlacedTable, Reference};
use crate::schema::tables::{SchemaKey, SchemaTable};
use evenkeel_model::bounded::quote;

impl Statement<'_> {
    /// Parses a table, after `TABLE`.
    pub(super) fn table(&mut self) -> Result<PlacedTable, SchemaError> {
        self.if_not_exists();
        let at = self.place();
        let table = SchemaTable {
            name: self.name("the table's name")?,
            columns: Vec::new(),
            primary_key: Vec::new(),
            parent: None,
            clauses: String::new(),
            dialect: Dialect::Postgres,
        };
        let mut placed = PlacedTable {
            table,
            at,
            columns: Vec::new(),
            key: Vec::new(),
            parent: None,
            references: Vec::new(),
        };
        for element in split_at_commas(self.brackets("( and the columns")?) {
            // A trailing comma is allowed after the last column.
            if !element.is_empty() {
                self.within(element).table_element(&mut placed)?;
            }
        }
        while !self.is_at_end() {
            self.table_clause(&mut placed)?;
        }
        Ok(placed)
    }

    /// Parses a column, a constraint or the primary key, between the parentheses of a table.
    fn table_element(&mut self, placed: &mut PlacedTable) -> Result<(), SchemaError> {
        let is_constraint =
            ["CONSTRAINT", "FOREIGN", "CHECK", "UNIQUE", "SYNONYM"].iter().any(|word| self.is(word));
        if self.is("PRIMARY") && self.is_at(1, "KEY") {
            return self.primary_key(placed);
        }
        if is_constraint {
            placed.references.extend(self.reference()?);
            return Ok(());
        }
        let (column, place, is_key) = self.column()?;
        if is_key {
            self.one_key(&placed.table)?;
            placed.table.primary_key = vec![SchemaKey { column: column.name.clone(), descending: false }];
            placed.key = vec![place.at];
        }
        placed.table.columns.push(column);
        placed.columns.push(place);
        Ok(())
    }

    /// Parses a clause after the parentheses of a table.
    fn table_clause(&mut self, placed: &mut PlacedTable) -> Result<(), SchemaError> {
        if self.is("PRIMARY") {
            self.primary_key(placed)?;
            placed.table.dialect = Dialect::GoogleSql;
        } else if self.accept("INTERLEAVE") {
            let (name, at) = self.parent()?;
            (placed.table.parent, placed.parent) = (Some(name), Some(at));
        } else if self.is("CREATE") {
            return Err(self.unexpected("a semicolon before the next statement"));
        } else if matches!(self.peek(), Some(Token::Comma)) {
            self.position += 1;
        } else {
            let clause = self.clause();
            let clauses = &mut placed.table.clauses;
            if !clauses.is_empty() {
                clauses.push_str(", ");
            }
            clauses.push_str(&clause);
        }
        Ok(())
    }

    fn primary_key(&mut self, placed: &mut PlacedTable) -> Result<(), SchemaError> {
        self.one_key(&placed.table)?;
        self.accept("PRIMARY");
        self.expect("KEY", "KEY after PRIMARY")?;
        (placed.table.primary_key, placed.key) = self.key_list()?.into_iter().unzip();
        Ok(())
    }

    /// Fails if the table already has a primary key.
    fn one_key(&self, table: &SchemaTable) -> Result<(), SchemaError> {
        if table.primary_key.is_empty() {
            return Ok(());
        }
        let Location { line, column } = self.place();
        Err(SchemaError::Refused {
            line,
            column,
            statement: format!("CREATE TABLE {}", quote(&table.name)),
            problem: "it has two primary keys".to_owned(),
            next: "leave one of them out".to_owned(),
        })
    }

    /// Parses a constraint, and returns the foreign key if it is one.
    fn reference(&mut self) -> Result<Option<Reference>, SchemaError> {
        if self.accept("CONSTRAINT") {
            self.name("the name of the constraint")?;
        }
        if !(self.is("FOREIGN") && self.is_at(1, "KEY")) {
            return Ok(None);
        }
        self.position += 2;
        let names = |keys: Vec<(SchemaKey, Location)>| {
            keys.into_iter().map(|(key, at)| (key.column, at)).collect::<Vec<_>>()
        };
        let columns = names(self.key_list()?);
        self.expect("REFERENCES", "REFERENCES and the table")?;
        let at = self.place();
        let table = (self.name("the table that is referenced")?, at);
        let is_named = matches!(self.peek(), Some(Token::LParen));
        let referenced = if is_named { names(self.key_list()?) } else { Vec::new() };
        Ok(Some(Reference { columns, table, referenced }))
    }
}
