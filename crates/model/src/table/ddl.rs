//! Reads and writes YQL's `CREATE TABLE` for column tables.
//!
//! ```text
//! CREATE TABLE [IF NOT EXISTS] name (
//!     column Type [NOT NULL | NULL] [FAMILY family], ...
//!     PRIMARY KEY (column, ...)
//! )
//! [PARTITION BY HASH(column, ...)]
//! [WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = N, ...)] [;]
//! ```
//! The option `TTL = Interval("P30D") [DELETE] ON column` is accepted if the column is in the
//! primary key. Names may be quoted with backticks. A clause that changes how YDB stores the table
//! but has no meaning here (a column family, a tier) is not rejected: it is reported in
//! [`CreateTable::notes`].

use std::fmt::{self, Write as _};

use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use thiserror::Error;

use crate::bounded::{message, quote};
use crate::table::{Column, ColumnType, ColumnTypeError, PlacementFunction, TableDefinition, TableSpec, Ttl};
use crate::units::{Micros, PartitionCount, PartitionCountError};

/// Option that fixes the number of partitions of a column table, both the minimum and the maximum.
const PARTITIONS_OPTION: &str = "AUTO_PARTITIONING_MIN_PARTITIONS_COUNT";
/// Number of partitions that YDB gives a column table if the DDL does not specify it.
const YDB_DEFAULT_PARTITIONS: u64 = 64;

/// A parsed statement. The definition is not yet checked: see [`TableSpec::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTable {
    /// The declared table.
    pub definition: TableDefinition,
    /// Clauses that have no effect, and assumptions about what the statement leaves open; one
    /// sentence each.
    pub notes: Vec<DdlNote>,
}

/// A remark on a statement: a clause without effect, or an assumption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DdlNote {
    /// The statement does not say that the table is a column table.
    StoreAssumed,
    /// The statement does not give the number of partitions.
    PartitionsAssumed,
    /// The time to live refers to a column outside the primary key.
    TtlOutsideKey {
        /// Name of the column.
        column: String,
    },
    /// The time to live has an unknown form.
    TtlUnknown,
    /// A column family.
    Family {
        /// Name of the family.
        family: String,
        /// The column assigned to the family; `None` for the declaration of the family.
        column: Option<String>,
    },
    /// An option without effect.
    Option {
        /// Name of the option.
        name: String,
    },
}

impl fmt::Display for DdlNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StoreAssumed => f.write_str("STORE = COLUMN is not given; a column table is assumed"),
            Self::PartitionsAssumed => write!(
                f,
                "{PARTITIONS_OPTION} is not given; the table gets {YDB_DEFAULT_PARTITIONS} partitions, as \
                    in YDB"
            ),
            Self::TtlOutsideKey { column } => write!(
                f,
                "TTL is left out: '{}' is not in the primary key, and portions record only the ranges of \
                    key columns",
                quote(column)
            ),
            Self::TtlUnknown => f.write_str(
                "TTL is left out: only Interval(\"P30D\") ON column, in days, hours, minutes or seconds, \
                    is supported here",
            ),
            Self::Family { family, column: Some(column) } => {
                write!(f, "FAMILY {} of column {} has no effect here", quote(family), quote(column))
            }
            Self::Family { family, column: None } => write!(f, "FAMILY {} has no effect here", quote(family)),
            Self::Option { name } => write!(f, "option {} has no effect here", quote(name)),
        }
    }
}

/// Reason why a statement cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum DdlError {
    #[error("line {line}, column {column}: {message}")]
    Text { line: u64, column: u64, message: String },
    #[error("line {line}, column {column}: expected {expected}, found {found}")]
    Unexpected { line: u64, column: u64, expected: &'static str, found: String },
    #[error("line {line}, column {column}: {source}")]
    Type { line: u64, column: u64, source: ColumnTypeError },
    #[error("line {line}, column {column}: {source}")]
    Partitions { line: u64, column: u64, source: PartitionCountError },
    #[error(
        "line {line}, column {column}: STORE = {found}: only column tables (STORE = COLUMN) are partitioned by hash", found = quote(found)
)]
    NotColumnStore { line: u64, column: u64, found: String },
    #[error("line {line}, column {column}: column tables have no secondary indexes; remove the INDEX clause")]
    Index { line: u64, column: u64 },
}

/// Reads one `CREATE TABLE` statement.
///
/// # Errors
/// [`DdlError`] with the line and column, counted from 1, of the first unexpected element.
pub fn parse_create_table(text: &str) -> Result<CreateTable, DdlError> {
    let dialect = GenericDialect {};
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location().map_err(|error| DdlError::Text {
        line: error.location.line,
        column: error.location.column,
        message: message(&error.message),
    })?;
    let tokens = tokens.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
    Parser { tokens, position: 0, notes: Vec::new() }.statement()
}

struct Parser {
    tokens: Vec<TokenWithSpan>,
    position: usize,
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
        self.keyword("CREATE", "CREATE TABLE")?;
        self.keyword("TABLE", "TABLE after CREATE")?;
        if self.accept("IF") {
            self.keyword("NOT", "NOT EXISTS after IF")?;
            self.keyword("EXISTS", "EXISTS after IF NOT")?;
        }
        let name = self.identifier("the table's name")?;
        let (columns, primary_key) = self.items()?;
        let partition_key = self.partition_by()?;
        let options = if self.accept("WITH") { self.options()? } else { Options::default() };
        while self.take_if(&Token::SemiColon) {}
        if !matches!(self.peek(), Token::EOF) {
            return Err(self.unexpected("the end of the statement (one CREATE TABLE per file)"));
        }
        if !options.store {
            self.notes.push(DdlNote::StoreAssumed);
        }
        let partitions = match options.partitions {
            Some(partitions) => partitions,
            None => self.default_partitions()?,
        };
        let ttl = options.ttl.filter(|ttl| {
            let in_key = primary_key.contains(&ttl.column);
            if !in_key {
                self.notes.push(DdlNote::TtlOutsideKey { column: ttl.column.clone() });
            }
            in_key
        });
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

    fn default_partitions(&mut self) -> Result<PartitionCount, DdlError> {
        self.notes.push(DdlNote::PartitionsAssumed);
        let Location { line, column } = self.location();
        PartitionCount::new(YDB_DEFAULT_PARTITIONS).map_err(|source| DdlError::Partitions {
            line,
            column,
            source,
        })
    }

    fn items(&mut self) -> Result<(Vec<Column>, Vec<String>), DdlError> {
        let mut columns = Vec::new();
        let mut primary_key: Option<Vec<String>> = None;
        self.token(&Token::LParen, "( before the columns")?;
        loop {
            if self.take_if(&Token::RParen) {
                break;
            }
            if self.at("PRIMARY") && self.next_is("KEY") {
                if primary_key.is_some() {
                    return Err(self.unexpected("only one PRIMARY KEY"));
                }
                self.position += 2;
                primary_key = Some(self.names()?);
            } else if self.at("INDEX") && !matches!(self.token_at(1), Token::Comma | Token::RParen) {
                let Location { line, column } = self.location();
                return Err(DdlError::Index { line, column });
            } else if self.at("FAMILY") && matches!(self.token_at(2), Token::LParen) {
                self.skip_family()?;
            } else {
                columns.push(self.column()?);
            }
            if !self.take_if(&Token::Comma) {
                self.token(&Token::RParen, ", or ) after a column")?;
                break;
            }
        }
        Ok((columns, primary_key.unwrap_or_default()))
    }

    fn column(&mut self) -> Result<Column, DdlError> {
        let name = self.identifier("a column name")?;
        let column_type = self.column_type()?;
        let mut nullable = true;
        loop {
            if self.accept("NOT") {
                self.keyword("NULL", "NULL after NOT")?;
                nullable = false;
            } else if self.accept("NULL") {
                nullable = true;
            } else if self.accept("FAMILY") {
                let family = self.identifier("a family name")?;
                self.notes.push(DdlNote::Family { family, column: Some(name.clone()) });
            } else {
                return Ok(Column { name, column_type, nullable });
            }
        }
    }

    fn column_type(&mut self) -> Result<ColumnType, DdlError> {
        let Location { line, column } = self.location();
        let mut text = self.identifier("a column type")?;
        if self.take_if(&Token::LParen) {
            text.push('(');
            while !self.take_if(&Token::RParen) {
                match self.peek() {
                    Token::Number(number, _) => text.push_str(number),
                    Token::Comma => text.push(','),
                    _ => return Err(self.unexpected("numbers in the type's parentheses")),
                }
                self.position += 1;
            }
            text.push(')');
        }
        text.parse().map_err(|source| DdlError::Type { line, column, source })
    }

    fn skip_family(&mut self) -> Result<(), DdlError> {
        self.position += 1;
        let family = self.identifier("a family name")?;
        self.notes.push(DdlNote::Family { family, column: None });
        self.skip_parentheses()
    }

    fn partition_by(&mut self) -> Result<Vec<String>, DdlError> {
        if !self.accept("PARTITION") {
            return Ok(Vec::new());
        }
        self.keyword("BY", "BY after PARTITION")?;
        self.keyword("HASH", "HASH after PARTITION BY")?;
        self.names()
    }

    fn options(&mut self) -> Result<Options, DdlError> {
        let mut options = Options::default();
        self.token(&Token::LParen, "( after WITH")?;
        while !self.take_if(&Token::RParen) {
            let name = self.identifier("an option")?;
            self.token(&Token::Eq, "= after the option's name")?;
            self.option(&name, &mut options)?;
            if !self.take_if(&Token::Comma) {
                self.token(&Token::RParen, ", or ) after an option")?;
                break;
            }
        }
        Ok(options)
    }

    fn option(&mut self, name: &str, options: &mut Options) -> Result<(), DdlError> {
        let Location { line, column } = self.location();
        if name.eq_ignore_ascii_case("STORE") {
            let found = self.identifier("COLUMN")?;
            if !found.eq_ignore_ascii_case("COLUMN") {
                return Err(DdlError::NotColumnStore { line, column, found });
            }
            options.store = true;
        } else if name.eq_ignore_ascii_case(PARTITIONS_OPTION) {
            let Token::Number(number, _) = self.peek() else {
                return Err(self.unexpected("a number of partitions"));
            };
            let count = number.parse().unwrap_or(u64::MAX);
            self.position += 1;
            options.partitions = Some(PartitionCount::new(count).map_err(|source| DdlError::Partitions {
                line,
                column,
                source,
            })?);
        } else {
            let start = self.position;
            let ttl = if name.eq_ignore_ascii_case("TTL") { self.ttl() } else { None };
            if ttl.is_some() && matches!(self.peek(), Token::Comma | Token::RParen) {
                options.ttl = ttl;
            } else {
                self.position = start;
                self.notes.push(match name.eq_ignore_ascii_case("TTL") {
                    true => DdlNote::TtlUnknown,
                    false => DdlNote::Option { name: name.to_owned() },
                });
                self.skip_option_value()?;
            }
        }
        Ok(())
    }

    /// Parses `Interval("P30D") [DELETE] ON column`; `None` for YDB's other forms, which move rows
    /// to other storage.
    fn ttl(&mut self) -> Option<Ttl> {
        if !self.accept("Interval") || !self.take_if(&Token::LParen) {
            return None;
        }
        let keep = match self.peek() {
            Token::Word(word) => Micros::from_iso(&word.value)?,
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Micros::from_iso(text)?,
            _ => return None,
        };
        self.position += 1;
        if !self.take_if(&Token::RParen) {
            return None;
        }
        self.accept("DELETE");
        if !self.accept("ON") {
            return None;
        }
        Some(Ttl { column: self.identifier("a column").ok()?, keep })
    }

    /// Skips to the comma or parenthesis that ends an option's value.
    fn skip_option_value(&mut self) -> Result<(), DdlError> {
        loop {
            match self.peek() {
                Token::Comma | Token::RParen => return Ok(()),
                Token::LParen => self.skip_parentheses()?,
                Token::EOF => return Err(self.unexpected(") after the options")),
                _ => self.position += 1,
            }
        }
    }

    fn skip_parentheses(&mut self) -> Result<(), DdlError> {
        self.token(&Token::LParen, "(")?;
        let mut depth = 1;
        while depth > 0 {
            match self.peek() {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::EOF => return Err(self.unexpected(")")),
                _ => {}
            }
            self.position += 1;
        }
        Ok(())
    }

    /// Parses `(a, b, c)`; like YQL, allows a trailing comma.
    fn names(&mut self) -> Result<Vec<String>, DdlError> {
        let mut names = Vec::new();
        self.token(&Token::LParen, "( before the columns of a key")?;
        while !self.take_if(&Token::RParen) {
            names.push(self.identifier("a column name")?);
            if !self.take_if(&Token::Comma) {
                self.token(&Token::RParen, ", or ) after a column name")?;
                break;
            }
        }
        Ok(names)
    }

    fn identifier(&mut self, expected: &'static str) -> Result<String, DdlError> {
        match self.peek() {
            Token::Word(word) => {
                let name = word.value.clone();
                self.position += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn token_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.position + ahead).map_or(&Token::EOF, |token| &token.token)
    }

    fn peek(&self) -> &Token {
        self.token_at(0)
    }

    fn is_word(token: &Token, text: &str) -> bool {
        matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
    }

    fn at(&self, text: &str) -> bool {
        Self::is_word(self.peek(), text)
    }

    fn next_is(&self, text: &str) -> bool {
        Self::is_word(self.token_at(1), text)
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.at(text);
        self.position += usize::from(found);
        found
    }

    fn keyword(&mut self, text: &str, expected: &'static str) -> Result<(), DdlError> {
        if self.accept(text) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn take_if(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        self.position += usize::from(found);
        found
    }

    fn token(&mut self, token: &Token, expected: &'static str) -> Result<(), DdlError> {
        if self.take_if(token) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn location(&self) -> Location {
        let token = self.tokens.get(self.position).or(self.tokens.last());
        token.map_or(Location { line: 1, column: 1 }, |token| {
            if self.position < self.tokens.len() { token.span.start } else { token.span.end }
        })
    }

    fn unexpected(&self, expected: &'static str) -> DdlError {
        let Location { line, column } = self.location();
        let found = match self.peek() {
            Token::EOF => "the end of the text".to_owned(),
            token => format!("'{}'", quote(&token.to_string())),
        };
        DdlError::Unexpected { line, column, expected, found }
    }
}

/// Writes the YQL that declares `spec`; [`parse_create_table`] reads it back.
#[must_use]
pub fn write_create_table(spec: &TableSpec) -> String {
    let quoted = |name: &str| {
        let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if plain { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
    };
    let list = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let definition = spec.definition();
    let mut text = String::new();
    if definition.placement != PlacementFunction::Ydb {
        // YQL has no clause for the placement function.
        let _ = writeln!(text, "-- placement function: {}", definition.placement);
    }
    let _ = writeln!(text, "CREATE TABLE {} (", quoted(&definition.name));
    for column in &definition.columns {
        let null = if column.nullable { "" } else { " NOT NULL" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    {} {}{null},", quoted(&column.name), column.column_type);
    }
    let ttl = definition.ttl.as_ref().map_or_else(String::new, |ttl| {
        format!(",\n    TTL = Interval(\"{}\") ON {}", ttl.keep.iso(), quoted(&ttl.column))
    });
    let _ = write!(
        text,
        "    PRIMARY KEY ({})\n)\nPARTITION BY HASH({})\nWITH (\n    STORE = COLUMN,\n    {PARTITIONS_OPTION} = {}{ttl}\n);\n",
        list(&definition.primary_key),
        list(&definition.partition_key),
        definition.partitions,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = "CREATE TABLE t (a Int64 NOT NULL, PRIMARY KEY (a)) WITH (STORE = COLUMN)";

    fn parsed(text: &str) -> CreateTable {
        parse_create_table(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_statement_of_the_ydb_documentation_is_read() {
        let create = parsed(include_str!("../../../../data/ad_events.sql"));
        let spec = TableSpec::new(create.definition).unwrap();
        assert_eq!(spec.name(), "ad_events");
        assert_eq!(spec.definition().primary_key, ["event_timestamp", "user_id", "campaign_id"]);
        assert_eq!(spec.definition().partition_key, ["user_id", "event_timestamp"]);
        assert_eq!(spec.partitions().get(), 16);
        assert_eq!(create.notes, []);
    }

    #[test]
    fn what_is_written_is_read_back_the_same() {
        let mut columns: Vec<Column> = ColumnType::ALL
            .into_iter()
            .enumerate()
            .map(|(i, t)| Column::nullable(format!("c {i}"), t))
            .collect();
        columns.push(Column::required("key", ColumnType::Utf8));
        let spec = TableSpec::new(TableDefinition {
            name: "shop/events".into(),
            columns,
            primary_key: vec!["key".into()],
            partition_key: vec!["key".into()],
            partitions: PartitionCount::new(7).unwrap(),
            placement: PlacementFunction::Ydb,
            ttl: None,
        })
        .unwrap();
        let create = parsed(&write_create_table(&spec));
        assert_eq!(create.definition, *spec.definition());
    }

    #[test]
    fn what_is_assumed_or_ignored_is_noted() {
        let text = "create table if not exists `a/b` (\n k Uint64 not null family fast, v Decimal(10, 2) null,\n\
                    primary key (k,),\n family fast (compression = \"lz4\"))\n\
                    with (ttl = Interval(\"P1D\") on at);";
        let create = parsed(text);
        assert_eq!(create.definition.name, "a/b");
        assert_eq!(create.definition.columns[1].column_type, ColumnType::Decimal { precision: 10, scale: 2 });
        assert_eq!(create.definition.partitions.get(), 64);
        assert_eq!(create.definition.partition_key, Vec::<String>::new());
        assert_eq!(create.notes.len(), 5, "{:?}", create.notes);
    }

    #[test]
    fn a_ttl_is_read_and_written() {
        let text = |ttl: &str| {
            format!(
                "CREATE TABLE t (at Timestamp NOT NULL, v Date, PRIMARY KEY (at)) WITH (STORE = COLUMN, TTL = {ttl}, A = 1)"
            )
        };
        for ttl in ["Interval(\"P30D\") ON at", "interval('P30D') delete on `at`"] {
            let create = parsed(&text(ttl));
            assert_eq!(create.definition.ttl, Some("at=30d".parse().unwrap()));
            let spec = TableSpec::new(create.definition).unwrap();
            let written = write_create_table(&spec);
            assert!(written.contains("    TTL = Interval(\"P30D\") ON at\n"), "{written}");
            assert_eq!(parsed(&written).definition.ttl, spec.definition().ttl);
        }
        for ttl in [
            "Interval(\"P30D\") ON v",
            "Interval(\"P30D\") TO EXTERNAL DATA SOURCE `/s3` ON at",
            "Interval(7) ON at",
        ] {
            let create = parsed(&text(ttl));
            assert_eq!(create.definition.ttl, None);
            assert!(
                create
                    .notes
                    .iter()
                    .any(|note| matches!(note, DdlNote::TtlOutsideKey { .. } | DdlNote::TtlUnknown)),
                "{:?}",
                create.notes
            );
        }
    }

    #[test]
    fn errors_name_line_column_and_what_was_expected() {
        let cases = [
            ("", "line 1, column 1: expected CREATE TABLE, found the end of the text"),
            ("SELECT 1", "line 1, column 1: expected CREATE TABLE, found 'SELECT'"),
            ("CREATE TABLE t\n(a Nope)", "line 2, column 4: unknown column type 'Nope'"),
            ("CREATE TABLE t (a Int64", "expected , or ) after a column, found the end of the text"),
            (
                "CREATE TABLE t (a Int64) PARTITION BY RANGE(a)",
                "expected HASH after PARTITION BY, found 'RANGE'",
            ),
            ("CREATE TABLE t (a Int64) WITH (STORE = ROW)", "only column tables"),
            ("CREATE TABLE t (a Int64, INDEX i GLOBAL ON (a))", "no secondary indexes"),
            (
                "CREATE TABLE t (a Int64) WITH (AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 0)",
                "a table has 1 to 100000 partitions, not 0",
            ),
            ("CREATE TABLE t (a Int64); DROP TABLE t", "expected the end of the statement"),
            ("CREATE TABLE t (a 'x')", "expected a column type"),
            ("CREATE TABLE `t (a Int64)", "line 1"),
        ];
        for (text, expected) in cases {
            let error = parse_create_table(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn no_cut_of_a_statement_panics() {
        for end in 0..=MINIMAL.len() {
            let _ = parse_create_table(&MINIMAL[..end]);
        }
        assert!(parse_create_table(MINIMAL).is_ok());
    }
}
