//! The text of a client as statements.
//!
//! ```text
//! text ── tokens ── one piece per statement ── Command
//!                                               ├─ Query      on the tables
//!                                               ├─ Catalog    on what PostgreSQL knows about tables
//!                                               ├─ Copy       a query whose rows are sent as a file
//!                                               ├─ cursors, settings, transactions
//!                                               └─ all others are refused: nothing is written
//! ```

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Expr, ObjectName, Query,
    Statement, Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};
use evenkeel_engine::query::QueryError;
use evenkeel_engine::sql::check_text;

use crate::copy::{CopyFormat, CopyOptions};
use crate::failure::{Failure, SqlState};

/// One statement of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub(crate) sql: String,
    /// Characters of the text before it.
    pub(crate) before: usize,
    words: Vec<Word>,
}

/// A token other than white space, and its place in the piece, in bytes.
#[derive(Debug, Clone, PartialEq)]
struct Word {
    token: Token,
    start: usize,
}

/// A change of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    /// Whether it holds until the end of the transaction only.
    pub(crate) is_local: bool,
}

/// What a statement does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// A query on tables.
    Query(String),
    /// A query on the catalog, or on no table.
    Catalog(String),
    /// A query whose rows are copied.
    Copy(Box<Command>, CopyOptions),
    /// Sets a setting; `None` for its default.
    Set(Setting),
    /// Returns a setting to its value at the start.
    Reset(String),
    /// Returns all settings to their values at the start.
    ResetAll,
    /// Shows a setting.
    Show(String),
    /// Begins a transaction, at a level of isolation if it names one.
    Begin {
        isolation: Option<&'static str>,
    },
    Commit,
    Rollback,
    /// Statements that change nothing here, with the tag that answers them.
    Nothing(&'static str),
    /// Forgets a prepared statement; `None` for all.
    Deallocate(Option<String>),
    /// Forgets settings, prepared statements and cursors.
    DiscardAll,
    /// Declares a cursor.
    Declare(String, Box<Command>),
    /// Fetches rows from a cursor; `None` for all that are left.
    Fetch(String, Option<usize>),
    /// Closes a cursor; `None` for all.
    Close(Option<String>),
}

/// Splits a text into its statements.
pub(crate) fn split(text: &str) -> Result<Vec<Piece>, Failure> {
    // Before anything is parsed: parsers are recursive.
    check_text(text).map_err(QueryError::from)?;
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().map_err(
        |TokenizerError { message, location }| {
            let mut failure = Failure::new(SqlState::SYNTAX, format!("cannot read the SQL: {message}"));
            failure.place = Some((location.line, location.column));
            failure.located(text, 0)
        },
    )?;
    let places = Places::of(text);
    let mut pieces = Vec::new();
    let mut words: Vec<(Token, usize)> = Vec::new();
    let mut finish = |words: &mut Vec<(Token, usize)>, end: usize| {
        let Some(first) = words.first().map(|(_, first)| *first) else { return };
        let (start, end) = (places.byte(first), places.byte(end));
        let sql = text.get(start..end).unwrap_or_default().trim_end().to_owned();
        let word = |(token, at)| Word { token, start: places.byte(at) - start };
        pieces.push(Piece { sql, before: first, words: words.drain(..).map(word).collect() });
    };
    for TokenWithSpan { token, span } in tokens {
        let start = places.character(span.start.line, span.start.column);
        match token {
            Token::Whitespace(_) | Token::EOF => {}
            Token::SemiColon => finish(&mut words, start),
            token => words.push((token, start)),
        }
    }
    finish(&mut words, places.bytes.len());
    Ok(pieces)
}

/// Places in a text.
struct Places {
    /// Byte of each character.
    bytes: Vec<usize>,
    /// First character of each line.
    lines: Vec<usize>,
    end: usize,
}

impl Places {
    fn of(text: &str) -> Self {
        let bytes = text.char_indices().map(|(at, _)| at).collect();
        let ends = text.chars().enumerate().filter(|(_, c)| *c == '\n').map(|(at, _)| at + 1);
        Self { bytes, lines: std::iter::once(0).chain(ends).collect(), end: text.len() }
    }

    /// Character at a line and a column, both counted from 1.
    fn character(&self, line: u64, column: u64) -> usize {
        let before = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
        let start = self.lines.get(before(line)).copied().unwrap_or(self.bytes.len());
        start.saturating_add(before(column))
    }

    fn byte(&self, character: usize) -> usize {
        self.bytes.get(character).copied().unwrap_or(self.end)
    }
}

/// Names by which a query is recognised as one that the engine runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Functions, in lower case.
    pub(crate) functions: BTreeSet<String>,
    /// Tables and exports.
    pub(crate) tables: BTreeSet<String>,
}

impl Known {
    /// Whether the engine has a function. `version` is asked for that of PostgreSQL.
    fn has(&self, function: &str) -> bool {
        let name = function.to_ascii_lowercase();
        name != "version" && self.functions.contains(&name)
    }
}

/// Most parameters of a statement: their number has 16 bits in messages.
const MOST_PARAMETERS: usize = 65_535;

impl Piece {
    /// Word at a position, in lower case unless it is quoted.
    fn word(&self, at: usize) -> Option<String> {
        match &self.words.get(at)?.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
            _ => None,
        }
    }

    /// Whether a position has one of some words.
    fn is(&self, at: usize, words: &[&str]) -> bool {
        self.word(at).is_some_and(|word| words.contains(&word.as_str()))
    }

    /// Name at a position: a word, in lower case unless it is quoted.
    fn name(&self, at: usize) -> Option<String> {
        match &self.words.get(at)?.token {
            Token::Word(word) if word.quote_style.is_some() => Some(word.value.clone()),
            _ => self.word(at),
        }
    }

    /// Number of its parameters: the greatest one of `$1`, `$2` and so on.
    pub(crate) fn parameters(&self) -> usize {
        let number = |word: &Word| match &word.token {
            Token::Placeholder(name) => name.trim_start_matches('$').parse().ok(),
            _ => None,
        };
        self.words.iter().filter_map(number).max().unwrap_or(0)
    }

    /// Text from a position on.
    fn rest(&self, at: usize) -> &str {
        self.words.get(at).and_then(|word| self.sql.get(word.start..)).unwrap_or_default()
    }

    fn syntax(&self, expected: &str) -> Failure {
        Failure::new(SqlState::SYNTAX, format!("cannot read the SQL: expected {expected}"))
    }

    /// Reads what the statement does.
    pub(crate) fn command(&self, known: &Known) -> Result<Command, Failure> {
        if self.parameters() > MOST_PARAMETERS {
            let message = format!("a statement has at most {MOST_PARAMETERS} parameters, from $1 on");
            return Err(Failure::new(SqlState::TOO_LARGE, message));
        }
        let Some(first) = self.word(0) else { return query(&self.sql, known) };
        Ok(match first.as_str() {
            "select" | "with" | "values" | "explain" | "table" => query(&self.sql, known)?,
            "copy" => self.copy(known)?,
            "set" => self.set()?,
            "reset" if self.is(1, &["all"]) => Command::ResetAll,
            "reset" => Command::Reset(self.setting(1)?.0),
            "show" => self.show()?,
            "begin" | "start" => Command::Begin { isolation: self.isolation() },
            "commit" | "end" => Command::Commit,
            "rollback" if !self.is(1, &["to"]) && !self.is(2, &["to"]) => Command::Rollback,
            "abort" => Command::Rollback,
            "rollback" => Command::Nothing("ROLLBACK"),
            "savepoint" => Command::Nothing("SAVEPOINT"),
            "release" => Command::Nothing("RELEASE"),
            "unlisten" => Command::Nothing("UNLISTEN"),
            "deallocate" => {
                let at = if self.is(1, &["prepare"]) { 2 } else { 1 };
                let name = self.name(at).ok_or_else(|| self.syntax("the name of a prepared statement"))?;
                Command::Deallocate((!self.is(at, &["all"])).then_some(name))
            }
            "discard" if self.is(1, &["all"]) => Command::DiscardAll,
            "discard" => Command::Nothing("DISCARD"),
            "declare" => self.declare(known)?,
            "fetch" => self.fetch()?,
            "close" if self.is(1, &["all"]) => Command::Close(None),
            "close" => Command::Close(Some(self.name(1).ok_or_else(|| self.syntax("the name of a cursor"))?)),
            "prepare" | "execute" | "listen" | "notify" | "move" | "call" | "do" | "lock" => {
                let message = format!("{} is not supported", first.to_uppercase());
                return Err(Failure::new(SqlState::NOT_SUPPORTED, message));
            }
            _ => return self.other(&first, known),
        })
    }

    /// Refuses statements that change something, and reports all others as unreadable.
    fn other(&self, first: &str, known: &Known) -> Result<Command, Failure> {
        const CHANGES: [&str; 24] = [
            "insert",
            "update",
            "delete",
            "merge",
            "truncate",
            "create",
            "alter",
            "drop",
            "grant",
            "revoke",
            "comment",
            "vacuum",
            "analyze",
            "analyse",
            "reindex",
            "cluster",
            "refresh",
            "import",
            "load",
            "security",
            "reassign",
            "checkpoint",
            "upsert",
            "replace",
        ];
        if CHANGES.contains(&first) {
            let message = format!(
                "cannot execute {}: this server only reads. To add rows, use 'evenkeel ingest', and to delete some, 'evenkeel delete'",
                first.to_uppercase()
            );
            return Err(Failure::new(SqlState::READ_ONLY, message));
        }
        query(&self.sql, known)
    }

    fn copy(&self, known: &Known) -> Result<Command, Failure> {
        let parsed = Parser::parse_sql(&PostgreSqlDialect {}, &self.sql).map_err(|error| {
            Failure::from(datafusion::common::DataFusionError::from(error)).located(&self.sql, self.before)
        })?;
        let Some(Statement::Copy { source, to, target, options, legacy_options, .. }) =
            parsed.into_iter().next()
        else {
            return Err(self.syntax("COPY"));
        };
        if !to {
            return Err(Failure::new(
                SqlState::READ_ONLY,
                "cannot execute COPY FROM: this server only reads",
            ));
        }
        if target != CopyTarget::Stdout {
            return Err(Failure::new(
                SqlState("42501"),
                "COPY writes to STDOUT only: no statement writes files or runs programs on the server",
            ));
        }
        let sql = match source {
            CopySource::Table { table_name, columns } => {
                let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
                let columns = if names.is_empty() { "*".to_owned() } else { names.join(", ") };
                format!("SELECT {columns} FROM {table_name}")
            }
            CopySource::Query(query) => query.to_string(),
        };
        Ok(Command::Copy(Box::new(query(&sql, known)?), copy_options(&options, &legacy_options)?))
    }

    /// Reads `SET [SESSION | LOCAL] name {TO | =} value`.
    fn set(&self) -> Result<Command, Failure> {
        let is_scoped = self.is(1, &["session", "local"]) && !self.is(2, &["to"]);
        let at = if is_scoped { 2 } else { 1 };
        let is_local = is_scoped && self.is(1, &["local"]);
        let set = |name: &str, value| Command::Set(Setting { name: name.to_owned(), value, is_local });
        if self.is(at, &["transaction", "characteristics"]) {
            let of_session = self.is(at, &["characteristics"]);
            let name = if of_session { "default_transaction_isolation" } else { "transaction_isolation" };
            return Ok(match self.isolation() {
                Some(level) => set(name, Some(level.to_owned())),
                None => Command::Nothing("SET"),
            });
        }
        if self.is(at, &["time"]) && self.is(at + 1, &["zone"]) {
            return Ok(set("timezone", self.value(at + 2)));
        }
        if self.is(at, &["names"]) {
            return Ok(set("client_encoding", self.value(at + 1)));
        }
        if self.is(at, &["role"]) || (self.is(at, &["authorization"])) {
            return Ok(Command::Nothing("SET"));
        }
        let (name, next) = self.setting(at)?;
        let is_assigned =
            self.is(next, &["to"]) || matches!(self.words.get(next).map(|word| &word.token), Some(Token::Eq));
        if !is_assigned {
            return Err(self.syntax("TO or = after the name of a setting"));
        }
        Ok(set(&name, self.value(next + 1)))
    }

    /// Reads the name of a setting, which may have dots; returns the position after it.
    fn setting(&self, mut at: usize) -> Result<(String, usize), Failure> {
        let missing = || self.syntax("the name of a setting");
        let mut name = self.name(at).ok_or_else(missing)?;
        at += 1;
        while matches!(self.words.get(at).map(|word| &word.token), Some(Token::Period)) {
            name = format!("{name}.{}", self.name(at + 1).ok_or_else(missing)?);
            at += 2;
        }
        Ok((name.to_ascii_lowercase(), at))
    }

    /// Value from a position on; `None` for `DEFAULT`. Several are separated by commas.
    fn value(&self, at: usize) -> Option<String> {
        if self.is(at, &["default"]) {
            return None;
        }
        let words = self.words.get(at..).unwrap_or_default();
        let text = |word: &Word| match &word.token {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
            Token::Word(word) => word.value.clone(),
            Token::Comma => ", ".to_owned(),
            other => other.to_string(),
        };
        Some(words.iter().map(text).collect())
    }

    fn show(&self) -> Result<Command, Failure> {
        if self.is(1, &["tables", "columns", "functions"]) {
            return Ok(Command::Query(self.sql.clone()));
        }
        if self.is(1, &["time"]) && self.is(2, &["zone"]) {
            return Ok(Command::Show("timezone".to_owned()));
        }
        if self.is(1, &["transaction"]) && self.is(2, &["isolation"]) {
            return Ok(Command::Show("transaction_isolation".to_owned()));
        }
        Ok(Command::Show(self.setting(1)?.0))
    }

    /// Level of isolation that it names.
    fn isolation(&self) -> Option<&'static str> {
        const LEVELS: [(&[&str], &str); 4] = [
            (&["serializable"], "serializable"),
            (&["repeatable", "read"], "repeatable read"),
            (&["read", "committed"], "read committed"),
            (&["read", "uncommitted"], "read uncommitted"),
        ];
        let is_at = |at: usize, words: &[&str]| (at..).zip(words).all(|(at, word)| self.is(at, &[*word]));
        let is_named = |words: &[&str]| (0..self.words.len()).any(|at| is_at(at, words));
        LEVELS.iter().find(|(words, _)| is_named(words)).map(|(_, level)| *level)
    }

    /// Reads `DECLARE name ... CURSOR ... FOR query`.
    fn declare(&self, known: &Known) -> Result<Command, Failure> {
        let name = self.name(1).ok_or_else(|| self.syntax("the name of a cursor"))?;
        let cursor = (2..self.words.len()).find(|at| self.is(*at, &["cursor"]));
        let start = cursor.and_then(|cursor| (cursor..self.words.len()).find(|at| self.is(*at, &["for"])));
        let start = start.ok_or_else(|| self.syntax("CURSOR FOR and a query"))?;
        if (2..start).any(|at| self.is(at, &["scroll"]) && !self.is(at - 1, &["no"])) {
            return Err(Failure::new(SqlState::NOT_SUPPORTED, "cursors only go forward; leave out SCROLL"));
        }
        Ok(Command::Declare(name, Box::new(query(self.rest(start + 1), known)?)))
    }

    /// Reads `FETCH [NEXT | FORWARD] [count | ALL] [FROM | IN] name`.
    fn fetch(&self) -> Result<Command, Failure> {
        let backward = ["prior", "first", "last", "absolute", "relative", "backward"];
        if self.is(1, &backward) && self.words.len() > 2 {
            return Err(Failure::new(SqlState::NOT_SUPPORTED, "cursors only go forward"));
        }
        let mut at = 1;
        let mut count = Some(1);
        if self.is(at, &["next", "forward"]) && self.words.len() > 2 {
            at += 1;
        }
        if self.is(at, &["all"]) {
            (count, at) = (None, at + 1);
        } else if let Some(Token::Number(number, _)) = self.words.get(at).map(|word| &word.token) {
            (count, at) = (Some(number.parse().map_err(|_| self.syntax("a number of rows"))?), at + 1);
        }
        if self.is(at, &["from", "in"]) {
            at += 1;
        }
        let name = self.name(at).ok_or_else(|| self.syntax("the name of a cursor"))?;
        Ok(Command::Fetch(name, count))
    }
}

/// Decides whether a query is about tables or about the catalog.
fn query(sql: &str, known: &Known) -> Result<Command, Failure> {
    // What cannot be parsed here is reported by the engine, whose dialect is another one.
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, sql);
    let Some(statement) = parsed.ok().and_then(|mut statements| statements.pop()) else {
        return Ok(Command::Query(sql.to_owned()));
    };
    let mut relations = Relations { known, catalog: false, tables: false, foreign: false, named: Vec::new() };
    let _ = statement.visit(&mut relations);
    match (relations.catalog, relations.tables) {
        (true, true) => Err(Failure::new(
            SqlState::NOT_SUPPORTED,
            "a query reads either tables or the catalog (pg_catalog, information_schema), not both",
        )),
        (false, true) => Ok(Command::Query(sql.to_owned())),
        (true, false) => Ok(Command::Catalog(sql.to_owned())),
        // Without a table, functions decide: those of PostgreSQL are known to the catalog.
        (false, false) if relations.foreign => Ok(Command::Catalog(sql.to_owned())),
        (false, false) => Ok(Command::Query(sql.to_owned())),
    }
}

fn copy_options(options: &[CopyOption], legacy: &[CopyLegacyOption]) -> Result<CopyOptions, Failure> {
    let mut found = CopyOptions::default();
    let mut is_csv = false;
    for option in options {
        match option {
            CopyOption::Format(name) => match name.value.to_ascii_lowercase().as_str() {
                "text" => {}
                "csv" => is_csv = true,
                "binary" => found.format = CopyFormat::Binary,
                other => {
                    let message = format!("COPY format \"{other}\" not recognized; use text, csv or binary");
                    return Err(Failure::new(SqlState::INVALID_PARAMETER, message));
                }
            },
            CopyOption::Delimiter(delimiter) => found.delimiter = Some(*delimiter),
            CopyOption::Null(null) => found.null = Some(null.clone()),
            CopyOption::Header(has_header) => found.has_header = *has_header,
            CopyOption::Quote(quote) => found.quote = *quote,
            CopyOption::Escape(escape) => found.escape = Some(*escape),
            CopyOption::Encoding(encoding) if is_utf8(encoding) => {}
            other => return Err(refused(other)),
        }
    }
    for option in legacy {
        match option {
            CopyLegacyOption::Binary => found.format = CopyFormat::Binary,
            CopyLegacyOption::Delimiter(delimiter) => found.delimiter = Some(*delimiter),
            CopyLegacyOption::Null(null) => found.null = Some(null.clone()),
            CopyLegacyOption::Header => found.has_header = true,
            CopyLegacyOption::Csv(csv) => {
                is_csv = true;
                for option in csv {
                    match option {
                        CopyLegacyCsvOption::Header => found.has_header = true,
                        CopyLegacyCsvOption::Quote(quote) => found.quote = *quote,
                        CopyLegacyCsvOption::Escape(escape) => found.escape = Some(*escape),
                        other => return Err(refused(other)),
                    }
                }
            }
            other => return Err(refused(other)),
        }
    }
    if is_csv {
        found.format = CopyFormat::Csv;
    }
    Ok(found)
}

fn refused(option: impl std::fmt::Display) -> Failure {
    Failure::new(SqlState::NOT_SUPPORTED, format!("the COPY option {option} is not supported"))
}

pub(crate) fn is_utf8(encoding: &str) -> bool {
    let plain: String = encoding.chars().filter(char::is_ascii_alphanumeric).collect();
    ["utf8", "unicode"].contains(&plain.to_ascii_lowercase().as_str())
}

/// Whether a query reads tables, the catalog or neither.
#[derive(Debug)]
struct Relations<'a> {
    known: &'a Known,
    catalog: bool,
    tables: bool,
    /// Whether it calls what only PostgreSQL has.
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
            // A table and what WITH names may have one name. The engine tells them apart.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Known { functions: names(&["lower", "count", "version", "abs"]), tables: names(&["t", "u"]) }
    }

    fn commands(text: &str) -> Vec<Command> {
        split(text).unwrap().iter().map(|piece| piece.command(&known()).unwrap()).collect()
    }

    fn query(sql: &str) -> Command {
        Command::Query(sql.to_owned())
    }

    fn catalog(sql: &str) -> Command {
        Command::Catalog(sql.to_owned())
    }

    #[test]
    fn a_text_is_split_at_its_semicolons_alone() {
        let text = " select ';' -- ; \n; /* ; */ select \"a;b\" from t ;; select $$;$$;\n";
        let pieces: Vec<String> = split(text).unwrap().into_iter().map(|piece| piece.sql).collect();
        assert_eq!(pieces, ["select ';' -- ;", "select \"a;b\" from t", "select $$;$$"]);
        assert!(split(" ; -- nothing\n ; ").unwrap().is_empty());
        let pieces = split("select 'ä'; select ö").unwrap();
        assert_eq!(pieces[1].before, 12);
        assert!(split("select 'open").is_err());
    }

    #[test]
    fn queries_on_tables_and_on_the_catalog_are_told_apart() {
        for sql in [
            "select 1",
            "select a from pgtable",
            "with pg_x as (select 1) select * from pg_x",
            "select lower(a) from t, u",
            "select abs(-1), count(*)",
            "with t as (select * from t) select pg_typeof(a) from t",
            "values (1)",
            "explain select * from t",
            "table t",
        ] {
            assert_eq!(commands(sql), [query(sql)], "{sql}");
        }
        for sql in [
            "select * from pg_class",
            "select * from information_schema.tables",
            "select version()",
            "select current_schema",
            "select v from generate_series(1, 3) as s(v)",
            "select 'events'::regclass",
            "select a.relname from pg_catalog.pg_class a join pg_namespace n on true",
        ] {
            assert_eq!(commands(sql), [catalog(sql)], "{sql}");
        }
        let both = split("select * from t join pg_class on true").unwrap().remove(0);
        assert_eq!(both.command(&known()).unwrap_err().code, SqlState::NOT_SUPPORTED);
    }

    #[test]
    fn what_no_thread_could_parse_is_refused_first() {
        for part in ["\n+1", "\n::int", "\nunion all\nselect abs(1)", " and true"] {
            let deep = format!("select abs(1){}", part.repeat(5000));
            let refused = split(&deep).and_then(|pieces| pieces[0].command(&known()));
            assert!(refused.is_err(), "{part}");
        }
        let large = split("select $65536").unwrap()[0].command(&known()).unwrap_err();
        assert_eq!(large.code, SqlState::TOO_LARGE);
        assert!(split("select $65535").unwrap()[0].command(&known()).is_ok());
        // On one line, in time that grows with its length.
        let list = format!("select {}", vec!["1"; 20_000].join(","));
        assert_eq!(split(&list).unwrap()[0].words.len(), 40_000);
    }

    #[test]
    fn nothing_that_writes_is_run() {
        for sql in [
            "insert into t values (1)",
            "delete from t",
            "create table x (a int)",
            "drop table t",
            "truncate t",
            "alter system set x = 1",
            "copy t from stdin",
            "vacuum",
        ] {
            assert_eq!(
                split(sql).unwrap()[0].command(&known()).unwrap_err().code,
                SqlState::READ_ONLY,
                "{sql}"
            );
        }
        for sql in ["copy t to '/tmp/x'", "copy (select 1) to program 'id'"] {
            assert_eq!(split(sql).unwrap()[0].command(&known()).unwrap_err().code.0, "42501", "{sql}");
        }
    }

    #[test]
    fn settings_and_transactions_are_read() {
        let set_in = |name: &str, value: Option<&str>, is_local: bool| {
            Command::Set(Setting { name: name.to_owned(), value: value.map(str::to_owned), is_local })
        };
        let set = |name: &str, value: &str| set_in(name, Some(value), false);
        for (sql, expected) in [
            ("SET x = 1", set("x", "1")),
            (
                "set session Evenkeel.Version to 'events=7, users=3'",
                set("evenkeel.version", "events=7, users=3"),
            ),
            ("SET LOCAL datestyle TO ISO, MDY", set_in("datestyle", Some("ISO, MDY"), true)),
            ("SET TIME ZONE 'UTC'", set("timezone", "UTC")),
            ("SET NAMES 'UTF8'", set("client_encoding", "UTF8")),
            ("SET x TO DEFAULT", set_in("x", None, false)),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", Command::Nothing("SET")),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                set("default_transaction_isolation", "repeatable read"),
            ),
            ("RESET ALL", Command::ResetAll),
            ("SHOW TRANSACTION ISOLATION LEVEL", Command::Show("transaction_isolation".to_owned())),
            ("BEGIN", Command::Begin { isolation: None }),
            (
                "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
                Command::Begin { isolation: Some("repeatable read") },
            ),
            (
                "START TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                Command::Begin { isolation: Some("serializable") },
            ),
            ("END", Command::Commit),
            ("ROLLBACK", Command::Rollback),
            ("ROLLBACK TO SAVEPOINT a", Command::Nothing("ROLLBACK")),
            ("DEALLOCATE PREPARE \"S_1\"", Command::Deallocate(Some("S_1".to_owned()))),
            ("DEALLOCATE ALL", Command::Deallocate(None)),
            ("DISCARD ALL", Command::DiscardAll),
        ] {
            assert_eq!(commands(sql), [expected], "{sql}");
        }
    }

    #[test]
    fn cursors_and_copies_are_read() {
        let declared = Command::Declare("c".to_owned(), Box::new(query("select * from t")));
        assert_eq!(commands("DECLARE c NO SCROLL CURSOR WITH HOLD FOR select * from t"), [declared]);
        let fetch = |count| Command::Fetch("c".to_owned(), count);
        for (sql, count) in [
            ("FETCH c", Some(1)),
            ("FETCH NEXT FROM c", Some(1)),
            ("FETCH FORWARD 100 FROM c", Some(100)),
            ("FETCH 5 IN c", Some(5)),
            ("FETCH ALL c", None),
        ] {
            assert_eq!(commands(sql), [fetch(count)], "{sql}");
        }
        for sql in
            ["FETCH BACKWARD 1 FROM c", "DECLARE c SCROLL CURSOR FOR select 1", "PREPARE a AS select 1"]
        {
            assert_eq!(
                split(sql).unwrap()[0].command(&known()).unwrap_err().code,
                SqlState::NOT_SUPPORTED,
                "{sql}"
            );
        }
        let csv = CopyOptions { format: CopyFormat::Csv, has_header: true, ..CopyOptions::default() };
        let binary = CopyOptions { format: CopyFormat::Binary, ..CopyOptions::default() };
        for (sql, of, options) in [
            ("COPY t TO STDOUT", "SELECT * FROM t", CopyOptions::default()),
            ("COPY s.t (a, \"B\") TO STDOUT WITH CSV HEADER", "SELECT a, \"B\" FROM s.t", csv),
            ("COPY (SELECT 1 AS a FROM t) TO STDOUT (FORMAT \"binary\")", "SELECT 1 AS a FROM t", binary),
        ] {
            assert_eq!(commands(sql), [Command::Copy(Box::new(query(of)), options)], "{sql}");
        }
    }
}
