//! A text as its statements.

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError};
use evenkeel_engine::query::QueryError;
use evenkeel_sql::check_text;

use crate::failure::{Failure, SqlState};
use crate::statement::{Piece, Word};

/// Splits a text into its statements.
pub(crate) fn split(text: &str) -> Result<Vec<Piece>, Failure> {
    // Checked before anything is parsed, because parsers are recursive.
    check_text(text).map_err(QueryError::from)?;
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().map_err(
        |TokenizerError { message, location }| {
            let mut failure = Failure::new(SqlState::SYNTAX, format!("cannot read the SQL: {message}"));
            failure.place = Some((location.line, location.column));
            failure.located(text, 0)
        },
    )?;
    let places = Places::new(text);
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
    fn new(text: &str) -> Self {
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
