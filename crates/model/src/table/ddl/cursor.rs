//! Reads the tokens of a statement from left to right.

use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::bounded::{message, quote};
use crate::table::ddl::statement::DdlError;

/// Tokens without white space, and the position of the next one.
pub(super) struct TokenCursor {
    tokens: Vec<TokenWithSpan>,
    position: usize,
}

impl TokenCursor {
    /// Splits a text into tokens and starts before the first of them.
    pub(super) fn new(text: &str) -> Result<Self, DdlError> {
        let dialect = GenericDialect {};
        let tokens =
            Tokenizer::new(&dialect, text).tokenize_with_location().map_err(|error| DdlError::Text {
                line: error.location.line,
                column: error.location.column,
                message: message(&error.message),
            })?;
        let tokens = tokens.into_iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).collect();
        Ok(Self { tokens, position: 0 })
    }

    /// Position of the next token.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn advance(&mut self, tokens: usize) {
        self.position += tokens;
    }

    /// Goes back to a position that [`TokenCursor::position`] returned.
    pub(super) fn rewind(&mut self, position: usize) {
        self.position = position;
    }

    pub(super) fn token_at(&self, ahead: usize) -> &Token {
        self.tokens.get(self.position + ahead).map_or(&Token::EOF, |token| &token.token)
    }

    pub(super) fn peek(&self) -> &Token {
        self.token_at(0)
    }

    fn is_word(token: &Token, text: &str) -> bool {
        matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
    }

    /// Whether the next token is this keyword.
    pub(super) fn at(&self, text: &str) -> bool {
        Self::is_word(self.peek(), text)
    }

    /// Whether the token after the next is this keyword.
    pub(super) fn next_is(&self, text: &str) -> bool {
        Self::is_word(self.token_at(1), text)
    }

    /// Skips a keyword if it is next, and returns whether it was.
    pub(super) fn accept(&mut self, text: &str) -> bool {
        let is_next = self.at(text);
        self.position += usize::from(is_next);
        is_next
    }

    pub(super) fn keyword(&mut self, text: &str, expected: &'static str) -> Result<(), DdlError> {
        if self.accept(text) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Skips a token if it is next, and returns whether it was.
    pub(super) fn take_if(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == token;
        self.position += usize::from(is_next);
        is_next
    }

    pub(super) fn token(&mut self, token: &Token, expected: &'static str) -> Result<(), DdlError> {
        if self.take_if(token) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    pub(super) fn identifier(&mut self, expected: &'static str) -> Result<String, DdlError> {
        match self.peek() {
            Token::Word(word) => {
                let name = word.value.clone();
                self.position += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Parses `(a, b, c)`; like YQL, allows a trailing comma.
    pub(super) fn names(&mut self) -> Result<Vec<String>, DdlError> {
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

    pub(super) fn skip_parentheses(&mut self) -> Result<(), DdlError> {
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

    pub(super) fn location(&self) -> Location {
        let token = self.tokens.get(self.position).or(self.tokens.last());
        token.map_or(Location { line: 1, column: 1 }, |token| {
            if self.position < self.tokens.len() { token.span.start } else { token.span.end }
        })
    }

    /// Error at the next token.
    pub(super) fn unexpected(&self, expected: &'static str) -> DdlError {
        let Location { line, column } = self.location();
        let found = match self.peek() {
            Token::EOF => "the end of the text".to_owned(),
            token => format!("'{}'", quote(&token.to_string())),
        };
        DdlError::Unexpected { line, column, expected, found }
    }
}
