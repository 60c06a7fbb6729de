//! Parses `CREATE INDEX`.

use sqlparser::tokenizer::{Location, Token};

use crate::schema::error::SchemaError;
use crate::schema::parse::statement::Statement;
use crate::schema::placed::PlacedIndex;
use crate::schema::tables::{SchemaIndex, SchemaKey};
use evenkeel_model::remark::Remark;

impl Statement<'_> {
    /// Parses an index, after `INDEX`.
    pub(super) fn index(
        &mut self,
        null_filtered: bool,
        unique: bool,
        notes: &mut Vec<Remark>,
    ) -> Result<PlacedIndex, SchemaError> {
        self.if_not_exists();
        let at = self.place();
        let name = self.name("the index's name")?;
        self.expect("ON", "ON and the table")?;
        let table_at = self.place();
        let table = self.name("the table of the index")?;
        let (columns, column_places): (Vec<SchemaKey>, Vec<Location>) = self.key_list()?.into_iter().unzip();
        let (mut storing, mut parent) = (Vec::new(), None);
        let mut index = SchemaIndex {
            name,
            table,
            columns,
            storing: Vec::new(),
            unique,
            null_filtered,
            interleaved_in: None,
        };
        while !self.is_at_end() {
            if self.accept("STORING") || self.accept("INCLUDE") {
                let stored = self.key_list()?;
                (index.storing, storing) = stored.into_iter().map(|(part, at)| (part.column, at)).unzip();
            } else if self.accept("INTERLEAVE") {
                let (name, at) = self.parent()?;
                (index.interleaved_in, parent) = (Some(name), Some(at));
            } else if self.accept("WHERE") {
                // In the PostgreSQL dialect, the only condition is one that filters out NULL.
                index.null_filtered = true;
                self.position += self.rest().len();
            } else if self.is("CREATE") {
                return Err(self.unexpected("a semicolon before the next statement"));
            } else if matches!(self.peek(), Some(Token::Comma)) {
                self.position += 1;
            } else {
                let rest = self.clause();
                let text = format!("index {}: left out: {rest}", index.name);
                notes.push(Remark::new("clause_left_out", text));
            }
        }
        Ok(PlacedIndex { index, at, table: table_at, columns: column_places, storing, parent })
    }
}
