//! `DECLARE` and `FETCH` of cursors.

use datafusion::sql::sqlparser::tokenizer::Token;

use crate::failure::{Failure, SqlState};
use crate::statement::routing::query;
use crate::statement::{Command, KnownNames, Piece};

impl Piece {
    /// Reads `DECLARE name ... CURSOR ... FOR query`.
    pub(super) fn declare(&self, known: &KnownNames) -> Result<Command, Failure> {
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
    pub(super) fn fetch(&self) -> Result<Command, Failure> {
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
