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

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Expr, ObjectName, Query,
    Statement, Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};

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
    Set(String, Option<String>),
    /// Returns a setting to its value at the start.
    Reset(String),
    /// Returns all settings to their values at the start.
    ResetAll,
    /// Shows a setting.
    Show(String),
    /// Begins a transaction; with `true`, one that sees one version of each table.
    Begin {
        is_repeatable: bool,
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
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().map_err(
        |TokenizerError { message, location }| {
            let mut failure = Failure::new(SqlState::SYNTAX, format!("cannot read the SQL: {message}"));
            failure.place = Some((location.line, location.column));
            failure.located(text, 0)
        },
    )?;
    let lines = Lines::of(text);
    let mut pieces = Vec::new();
    let mut words: Vec<(Token, usize)> = Vec::new();
    let mut finish = |words: &mut Vec<(Token, usize)>, end: usize| {
        let Some(start) = words.first().map(|(_, start)| *start) else { return };
        let sql = text.get(start..end).unwrap_or_default().trim_end().to_owned();
        let before = text.get(..start).map_or(0, |before| before.chars().count());
        let words = words.drain(..).map(|(token, at)| Word { token, start: at - start }).collect();
        pieces.push(Piece { sql, before, words });
    };
    for TokenWithSpan { token, span } in tokens {
        let start = lines.byte(span.start.line, span.start.column);
        match token {
            Token::Whitespace(_) | Token::EOF => {}
            Token::SemiColon => finish(&mut words, start),
            token => words.push((token, start)),
        }
    }
    finish(&mut words, text.len());
    Ok(pieces)
}

/// Bytes at which the lines of a text begin.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Byte at a line and a column, both counted in characters from 1.
    fn byte(&self, line: u64, column: u64) -> usize {
        let line = usize::try_from(line).unwrap_or(1).saturating_sub(1);
        let column = usize::try_from(column).unwrap_or(1).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(self.text.len());
        let rest = self.text.get(start..).unwrap_or_default();
        start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
    }
}

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
    pub(crate) fn command(&self) -> Result<Command, Failure> {
        let Some(first) = self.word(0) else { return self.query(&self.sql) };
        Ok(match first.as_str() {
            "select" | "with" | "values" | "explain" | "table" => self.query(&self.sql)?,
            "copy" => self.copy()?,
            "set" => self.set()?,
            "reset" if self.is(1, &["all"]) => Command::ResetAll,
            "reset" => Command::Reset(self.setting(1)?.0),
            "show" => self.show()?,
            "begin" | "start" => Command::Begin { is_repeatable: self.is_repeatable() },
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
            "declare" => self.declare()?,
            "fetch" => self.fetch()?,
            "close" if self.is(1, &["all"]) => Command::Close(None),
            "close" => Command::Close(Some(self.name(1).ok_or_else(|| self.syntax("the name of a cursor"))?)),
            "prepare" | "execute" | "listen" | "notify" | "move" | "call" | "do" | "lock" => {
                let message = format!("{} is not supported", first.to_uppercase());
                return Err(Failure::new(SqlState::NOT_SUPPORTED, message));
            }
            _ => return self.other(&first),
        })
    }

    /// Refuses statements that change something, and reports all others as unreadable.
    fn other(&self, first: &str) -> Result<Command, Failure> {
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
        self.query(&self.sql)
    }

    /// Decides whether a query is about tables or about the catalog.
    fn query(&self, sql: &str) -> Result<Command, Failure> {
        // What cannot be parsed here is reported by the engine, whose dialect is another one.
        let parsed = Parser::parse_sql(&PostgreSqlDialect {}, sql);
        let Some(statement) = parsed.ok().and_then(|mut statements| statements.pop()) else {
            return Ok(Command::Query(sql.to_owned()));
        };
        let mut relations = Relations::default();
        let _ = statement.visit(&mut relations);
        match (relations.catalog, relations.tables) {
            (true, true) => Err(Failure::new(
                SqlState::NOT_SUPPORTED,
                "a query reads either tables or the catalog (pg_catalog, information_schema), not both",
            )),
            // Without a table, functions decide: those of PostgreSQL are known to the catalog.
            (false, false) if relations.functions.is_empty() => Ok(Command::Query(sql.to_owned())),
            (_, false) => Ok(Command::Catalog(sql.to_owned())),
            (false, true) => Ok(Command::Query(sql.to_owned())),
        }
    }

    fn copy(&self) -> Result<Command, Failure> {
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
        Ok(Command::Copy(Box::new(self.query(&sql)?), copy_options(&options, &legacy_options)?))
    }

    /// Reads `SET [SESSION | LOCAL] name {TO | =} value`.
    fn set(&self) -> Result<Command, Failure> {
        let at = if self.is(1, &["session", "local"]) && !self.is(2, &["to"]) { 2 } else { 1 };
        if self.is(at, &["transaction", "characteristics"]) {
            return Ok(if self.is_repeatable() {
                Command::Set("transaction_isolation".to_owned(), Some("repeatable read".to_owned()))
            } else {
                Command::Nothing("SET")
            });
        }
        if self.is(at, &["time"]) && self.is(at + 1, &["zone"]) {
            return Ok(Command::Set("timezone".to_owned(), self.value(at + 2)));
        }
        if self.is(at, &["names"]) {
            return Ok(Command::Set("client_encoding".to_owned(), self.value(at + 1)));
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
        Ok(Command::Set(name, self.value(next + 1)))
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

    /// Whether it names a level of isolation at which a transaction sees one version.
    fn is_repeatable(&self) -> bool {
        (0..self.words.len()).any(|at| {
            self.is(at, &["serializable"]) || (self.is(at, &["repeatable"]) && self.is(at + 1, &["read"]))
        })
    }

    /// Reads `DECLARE name ... CURSOR ... FOR query`.
    fn declare(&self) -> Result<Command, Failure> {
        let name = self.name(1).ok_or_else(|| self.syntax("the name of a cursor"))?;
        let cursor = (2..self.words.len()).find(|at| self.is(*at, &["cursor"]));
        let start = cursor.and_then(|cursor| (cursor..self.words.len()).find(|at| self.is(*at, &["for"])));
        let start = start.ok_or_else(|| self.syntax("CURSOR FOR and a query"))?;
        if (2..start).any(|at| self.is(at, &["scroll"]) && !self.is(at - 1, &["no"])) {
            return Err(Failure::new(SqlState::NOT_SUPPORTED, "cursors only go forward; leave out SCROLL"));
        }
        Ok(Command::Declare(name, Box::new(self.query(self.rest(start + 1))?)))
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
#[derive(Debug, Default)]
struct Relations {
    catalog: bool,
    tables: bool,
    functions: Vec<String>,
    /// Names of WITH clauses, which are neither.
    named: Vec<String>,
}

impl Visitor for Relations {
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
            None if self.named.iter().any(|named| named == name) => {}
            None if name.starts_with("pg_") => self.catalog = true,
            // Functions that return rows.
            None if ["generate_series", "unnest", "range", "string_to_array"].contains(&name) => {
                self.functions.push(name.to_owned());
            }
            _ => self.tables = true,
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match expression {
            Expr::Function(function) => self.functions.push(function.name.to_string()),
            // Names of objects as numbers, such as 'events'::regclass.
            Expr::Cast { data_type, .. } if data_type.to_string().to_ascii_lowercase().contains("reg") => {
                self.functions.push(data_type.to_string());
            }
            Expr::Identifier(name) if name.quote_style.is_none() => {
                let name = name.value.to_ascii_lowercase();
                if ["current_schema", "current_catalog", "current_user", "user", "session_user"]
                    .contains(&name.as_str())
                {
                    self.functions.push(name);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<Command> {
        split(text).unwrap().iter().map(|piece| piece.command().unwrap()).collect()
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
            "select 'events'::regclass",
            "select a.relname from pg_catalog.pg_class a join pg_namespace n on true",
        ] {
            assert_eq!(commands(sql), [catalog(sql)], "{sql}");
        }
        let both = split("select * from t join pg_class on true").unwrap().remove(0);
        assert_eq!(both.command().unwrap_err().code, SqlState::NOT_SUPPORTED);
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
            assert_eq!(split(sql).unwrap()[0].command().unwrap_err().code, SqlState::READ_ONLY, "{sql}");
        }
        for sql in ["copy t to '/tmp/x'", "copy (select 1) to program 'id'"] {
            assert_eq!(split(sql).unwrap()[0].command().unwrap_err().code.0, "42501", "{sql}");
        }
    }

    #[test]
    fn settings_and_transactions_are_read() {
        let set = |name: &str, value: &str| Command::Set(name.to_owned(), Some(value.to_owned()));
        for (sql, expected) in [
            ("SET x = 1", set("x", "1")),
            (
                "set session Evenkeel.Version to 'events=7, users=3'",
                set("evenkeel.version", "events=7, users=3"),
            ),
            ("SET LOCAL datestyle TO ISO, MDY", set("datestyle", "ISO, MDY")),
            ("SET TIME ZONE 'UTC'", set("timezone", "UTC")),
            ("SET NAMES 'UTF8'", set("client_encoding", "UTF8")),
            ("SET x TO DEFAULT", Command::Set("x".to_owned(), None)),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", Command::Nothing("SET")),
            ("RESET ALL", Command::ResetAll),
            ("SHOW TRANSACTION ISOLATION LEVEL", Command::Show("transaction_isolation".to_owned())),
            ("BEGIN", Command::Begin { is_repeatable: false }),
            (
                "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
                Command::Begin { is_repeatable: true },
            ),
            ("START TRANSACTION ISOLATION LEVEL SERIALIZABLE", Command::Begin { is_repeatable: true }),
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
            assert_eq!(split(sql).unwrap()[0].command().unwrap_err().code, SqlState::NOT_SUPPORTED, "{sql}");
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
