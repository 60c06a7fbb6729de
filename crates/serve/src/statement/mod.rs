//! The text of a client as statements.
//!
//! ```text
//! text ── tokens ── one piece per statement ── Command
//!                                               ├─ Query      on the tables
//!                                               ├─ Catalog    on the catalog of PostgreSQL
//!                                               ├─ Copy       COPY of the rows of a query
//!                                               ├─ cursors, settings, transactions
//!                                               └─ all others are refused: nothing is written
//! ```

mod copy;
mod cursors;
mod routing;
mod settings;
mod split;

use datafusion::sql::sqlparser::tokenizer::Token;

use crate::copy::CopyOptions;
use crate::failure::{Failure, SqlState};
pub(crate) use crate::statement::copy::is_utf8;
pub(crate) use crate::statement::routing::KnownNames;
use crate::statement::routing::query;
pub(crate) use crate::statement::split::split;

/// One statement of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Piece {
    pub(crate) sql: String,
    /// Number of characters of the text before it.
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

/// Command of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// A query on tables.
    Query(String),
    /// A query on the catalog, or on no table.
    Catalog(String),
    /// A COPY of the rows of a query.
    Copy(Box<Command>, CopyOptions),
    /// Sets a setting; `None` for its default.
    Set(Setting),
    /// Resets a setting to its initial value.
    Reset(String),
    /// Resets all settings to their initial values.
    ResetAll,
    /// Shows a setting.
    Show(String),
    /// Begins a transaction, at a level of isolation if it names one.
    Begin {
        isolation: Option<&'static str>,
    },
    Commit,
    Rollback,
    /// Statements without effect here, with the command tag of the response.
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

/// Maximum number of parameters of a statement: messages count them in 16 bits.
const MAX_PARAMETERS: usize = 65_535;

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

    /// Remaining text from a position.
    fn rest(&self, at: usize) -> &str {
        self.words.get(at).and_then(|word| self.sql.get(word.start..)).unwrap_or_default()
    }

    fn syntax(&self, expected: &str) -> Failure {
        Failure::new(SqlState::SYNTAX, format!("cannot read the SQL: expected {expected}"))
    }

    /// Returns the command of the statement.
    pub(crate) fn command(&self, known: &KnownNames) -> Result<Command, Failure> {
        if self.parameters() > MAX_PARAMETERS {
            let message = format!("a statement has at most {MAX_PARAMETERS} parameters, from $1 on");
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
    fn other(&self, first: &str, known: &KnownNames) -> Result<Command, Failure> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::CopyFormat;

    fn known() -> KnownNames {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        KnownNames { functions: names(&["lower", "count", "version", "abs"]), tables: names(&["t", "u"]) }
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
        for (sql, source, options) in [
            ("COPY t TO STDOUT", "SELECT * FROM t", CopyOptions::default()),
            ("COPY s.t (a, \"B\") TO STDOUT WITH CSV HEADER", "SELECT a, \"B\" FROM s.t", csv),
            ("COPY (SELECT 1 AS a FROM t) TO STDOUT (FORMAT \"binary\")", "SELECT 1 AS a FROM t", binary),
        ] {
            assert_eq!(commands(sql), [Command::Copy(Box::new(query(source)), options)], "{sql}");
        }
    }
}
