//! `SET`, `SHOW` and levels of isolation.

use datafusion::sql::sqlparser::tokenizer::Token;

use crate::failure::{Failure, SqlState};
use crate::statement::{Command, Piece, Setting, Word};

impl Piece {
    /// Reads `SET [SESSION | LOCAL] name {TO | =} value`.
    pub(super) fn set(&self) -> Result<Command, Failure> {
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
            let is_own = ["none", "default"].into_iter().any(|word| self.is(at + 1, &[word]));
            return match is_own {
                true => Ok(Command::Nothing("SET")),
                false => Err(Failure::new(SqlState::INVALID_PARAMETER, "there are no roles to change to")),
            };
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
    pub(super) fn setting(&self, mut at: usize) -> Result<(String, usize), Failure> {
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

    pub(super) fn show(&self) -> Result<Command, Failure> {
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
    pub(super) fn isolation(&self) -> Option<&'static str> {
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
}
