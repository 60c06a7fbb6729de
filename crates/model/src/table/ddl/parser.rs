//! Parses the clauses of `CREATE TABLE`.

use sqlparser::tokenizer::{Location, Token};

use crate::table::ddl::cursor::TokenCursor;
use crate::table::ddl::statement::{
    CreateTable, DdlError, DdlNote, PARTITIONS_OPTION, YDB_DEFAULT_PARTITIONS,
};
use crate::table::{Column, ColumnType, PlacementFunction, TableDefinition, Ttl};
use crate::units::{Micros, PartitionCount};

/// Reads one `CREATE TABLE` statement.
///
/// # Errors
/// [`DdlError`] with the line and column, counted from 1, of the first unexpected element.
pub fn parse_create_table(text: &str) -> Result<CreateTable, DdlError> {
    Parser { tokens: TokenCursor::new(text)?, notes: Vec::new() }.statement()
}

struct Parser {
    tokens: TokenCursor,
    notes: Vec<DdlNote>,
}

#[derive(Default)]
struct Options {
    store: bool,
    partitions: Option<PartitionCount>,
    ttl: Option<Ttl>,
}

impl Parser {
    fn statement(mut self) -> Result<CreateTable, DdlError> {
        self.tokens.keyword("CREATE", "CREATE TABLE")?;
        self.tokens.keyword("TABLE", "TABLE after CREATE")?;
        if self.tokens.accept("IF") {
            self.tokens.keyword("NOT", "NOT EXISTS after IF")?;
            self.tokens.keyword("EXISTS", "EXISTS after IF NOT")?;
        }
        let name = self.tokens.identifier("the table's name")?;
        let (columns, primary_key) = self.items()?;
        let partition_key = self.partition_by()?;
        let options = if self.tokens.accept("WITH") { self.options()? } else { Options::default() };
        while self.tokens.take_if(&Token::SemiColon) {}
        if !matches!(self.tokens.peek(), Token::EOF) {
            return Err(self.tokens.unexpected("the end of the statement (one CREATE TABLE per file)"));
        }
        if !options.store {
            self.notes.push(DdlNote::StoreAssumed);
        }
        let partitions = match options.partitions {
            Some(partitions) => partitions,
            None => self.default_partitions()?,
        };
        let ttl = self.ttl_of_key(options.ttl, &primary_key);
        let definition = TableDefinition {
            name,
            columns,
            primary_key,
            partition_key,
            partitions,
            placement: PlacementFunction::Ydb,
            ttl,
        };
        Ok(CreateTable { definition, notes: self.notes })
    }

    /// Returns the time to live if its column is in the primary key.
    fn ttl_of_key(&mut self, ttl: Option<Ttl>, primary_key: &[String]) -> Option<Ttl> {
        let ttl = ttl?;
        if primary_key.contains(&ttl.column) {
            return Some(ttl);
        }
        self.notes.push(DdlNote::TtlOutsideKey { column: ttl.column });
        None
    }

    fn default_partitions(&mut self) -> Result<PartitionCount, DdlError> {
        self.notes.push(DdlNote::PartitionsAssumed);
        let Location { line, column } = self.tokens.location();
        PartitionCount::new(YDB_DEFAULT_PARTITIONS).map_err(|source| DdlError::Partitions {
            line,
            column,
            source,
        })
    }

    fn items(&mut self) -> Result<(Vec<Column>, Vec<String>), DdlError> {
        let mut columns = Vec::new();
        let mut primary_key: Option<Vec<String>> = None;
        self.tokens.token(&Token::LParen, "( before the columns")?;
        loop {
            if self.tokens.take_if(&Token::RParen) {
                break;
            }
            if self.tokens.at("PRIMARY") && self.tokens.next_is("KEY") {
                if primary_key.is_some() {
                    return Err(self.tokens.unexpected("only one PRIMARY KEY"));
                }
                self.tokens.advance(2);
                primary_key = Some(self.tokens.names()?);
            } else if self.tokens.at("INDEX")
                && !matches!(self.tokens.token_at(1), Token::Comma | Token::RParen)
            {
                let Location { line, column } = self.tokens.location();
                return Err(DdlError::Index { line, column });
            } else if self.tokens.at("FAMILY") && matches!(self.tokens.token_at(2), Token::LParen) {
                self.skip_family()?;
            } else {
                columns.push(self.column()?);
            }
            if !self.tokens.take_if(&Token::Comma) {
                self.tokens.token(&Token::RParen, ", or ) after a column")?;
                break;
            }
        }
        Ok((columns, primary_key.unwrap_or_default()))
    }

    fn column(&mut self) -> Result<Column, DdlError> {
        let name = self.tokens.identifier("a column name")?;
        let column_type = self.column_type()?;
        let mut nullable = true;
        loop {
            if self.tokens.accept("NOT") {
                self.tokens.keyword("NULL", "NULL after NOT")?;
                nullable = false;
            } else if self.tokens.accept("NULL") {
                nullable = true;
            } else if self.tokens.accept("FAMILY") {
                let family = self.tokens.identifier("a family name")?;
                self.notes.push(DdlNote::Family { family, column: Some(name.clone()) });
            } else {
                return Ok(Column { name, column_type, nullable });
            }
        }
    }

    fn column_type(&mut self) -> Result<ColumnType, DdlError> {
        let Location { line, column } = self.tokens.location();
        let mut text = self.tokens.identifier("a column type")?;
        if self.tokens.take_if(&Token::LParen) {
            text.push('(');
            while !self.tokens.take_if(&Token::RParen) {
                match self.tokens.peek() {
                    Token::Number(number, _) => text.push_str(number),
                    Token::Comma => text.push(','),
                    _ => return Err(self.tokens.unexpected("numbers in the type's parentheses")),
                }
                self.tokens.advance(1);
            }
            text.push(')');
        }
        text.parse().map_err(|source| DdlError::Type { line, column, source })
    }

    fn skip_family(&mut self) -> Result<(), DdlError> {
        self.tokens.advance(1);
        let family = self.tokens.identifier("a family name")?;
        self.notes.push(DdlNote::Family { family, column: None });
        self.tokens.skip_parentheses()
    }

    fn partition_by(&mut self) -> Result<Vec<String>, DdlError> {
        if !self.tokens.accept("PARTITION") {
            return Ok(Vec::new());
        }
        self.tokens.keyword("BY", "BY after PARTITION")?;
        self.tokens.keyword("HASH", "HASH after PARTITION BY")?;
        self.tokens.names()
    }

    fn options(&mut self) -> Result<Options, DdlError> {
        let mut options = Options::default();
        self.tokens.token(&Token::LParen, "( after WITH")?;
        while !self.tokens.take_if(&Token::RParen) {
            let name = self.tokens.identifier("an option")?;
            self.tokens.token(&Token::Eq, "= after the option's name")?;
            self.option(&name, &mut options)?;
            if !self.tokens.take_if(&Token::Comma) {
                self.tokens.token(&Token::RParen, ", or ) after an option")?;
                break;
            }
        }
        Ok(options)
    }

    fn option(&mut self, name: &str, options: &mut Options) -> Result<(), DdlError> {
        if name.eq_ignore_ascii_case("STORE") {
            self.column_store()?;
            options.store = true;
        } else if name.eq_ignore_ascii_case(PARTITIONS_OPTION) {
            options.partitions = Some(self.partition_count()?);
        } else if name.eq_ignore_ascii_case("TTL") {
            let start = self.tokens.position();
            let ttl = self.ttl();
            if ttl.is_some() && matches!(self.tokens.peek(), Token::Comma | Token::RParen) {
                options.ttl = ttl;
            } else {
                self.tokens.rewind(start);
                self.notes.push(DdlNote::TtlUnknown);
                self.skip_option_value()?;
            }
        } else {
            self.notes.push(DdlNote::Option { name: name.to_owned() });
            self.skip_option_value()?;
        }
        Ok(())
    }

    /// Parses the value of `STORE`, which must be `COLUMN`.
    fn column_store(&mut self) -> Result<(), DdlError> {
        let Location { line, column } = self.tokens.location();
        let store = self.tokens.identifier("COLUMN")?;
        match store.eq_ignore_ascii_case("COLUMN") {
            true => Ok(()),
            false => Err(DdlError::NotColumnStore { line, column, found: store }),
        }
    }

    fn partition_count(&mut self) -> Result<PartitionCount, DdlError> {
        let Location { line, column } = self.tokens.location();
        let Token::Number(number, _) = self.tokens.peek() else {
            return Err(self.tokens.unexpected("a number of partitions"));
        };
        // A number beyond u64 is also too large.
        let count = number.parse().unwrap_or(u64::MAX);
        self.tokens.advance(1);
        PartitionCount::new(count).map_err(|source| DdlError::Partitions { line, column, source })
    }

    /// Parses `Interval("P30D") [DELETE] ON column`; `None` for YDB's other forms, which move rows
    /// to other storage.
    fn ttl(&mut self) -> Option<Ttl> {
        if !self.tokens.accept("Interval") || !self.tokens.take_if(&Token::LParen) {
            return None;
        }
        let keep = match self.tokens.peek() {
            Token::Word(word) => Micros::from_iso(&word.value)?,
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Micros::from_iso(text)?,
            _ => return None,
        };
        self.tokens.advance(1);
        if !self.tokens.take_if(&Token::RParen) {
            return None;
        }
        self.tokens.accept("DELETE");
        if !self.tokens.accept("ON") {
            return None;
        }
        Some(Ttl { column: self.tokens.identifier("a column").ok()?, keep })
    }

    /// Skips to the comma or parenthesis that ends an option's value.
    fn skip_option_value(&mut self) -> Result<(), DdlError> {
        loop {
            match self.tokens.peek() {
                Token::Comma | Token::RParen => return Ok(()),
                Token::LParen => self.tokens.skip_parentheses()?,
                Token::EOF => return Err(self.tokens.unexpected(") after the options")),
                _ => self.tokens.advance(1),
            }
        }
    }
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
