//! Tokens of statements, read from left to right.

use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::source::ddl::KeyColumns;

/// Maximum nesting of brackets.
const MAX_DEPTH: usize = 64;

/// Splits text into statements, without blanks and comments.
///
/// # Errors
/// The reason why the text cannot be split into tokens.
pub(super) fn statements(text: &str) -> Result<Vec<Vec<Token>>, String> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize().map_err(|error| error.to_string())?;
    let mut statements = vec![Vec::new()];
    let mut depth = 0usize;
    for token in tokens {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(format!("brackets are nested more than {MAX_DEPTH} deep"));
        }
        match token {
            Token::Whitespace(_) => {}
            Token::SemiColon => statements.push(Vec::new()),
            token => statements.last_mut().into_iter().for_each(|last| last.push(token.clone())),
        }
    }
    Ok(statements)
}

/// First words of elements in a list of columns that are not columns.
const CONSTRAINTS: [&str; 14] = [
    "PRIMARY",
    "CONSTRAINT",
    "UNIQUE",
    "KEY",
    "INDEX",
    "FOREIGN",
    "CHECK",
    "PROJECTION",
    "FULLTEXT",
    "SPATIAL",
    "FAMILY",
    "EXCLUDE",
    "LIKE",
    "SYNONYM",
];

/// A row of tokens, and the position in it.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'a> {
    tokens: &'a [Token],
}

impl<'a> Tokens<'a> {
    pub(super) fn new(tokens: &'a [Token]) -> Self {
        Self { tokens }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.tokens.is_empty()
    }

    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.tokens.first()
    }

    /// Skips a token; `None` at the end.
    pub(super) fn advance(&mut self) -> Option<&'a Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// Whether the next token opens brackets.
    pub(super) fn is_open(&self) -> bool {
        self.peek() == Some(&Token::LParen)
    }

    /// Whether the next tokens call a function.
    pub(super) fn is_call(&self, name: &str) -> bool {
        is_word(self.tokens.first(), name) && self.tokens.get(1) == Some(&Token::LParen)
    }

    /// Skips the word if it is the next token; case does not matter.
    pub(super) fn skips(&mut self, word: &str) -> bool {
        let is_next = is_word(self.peek(), word);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Reads a name or any other word.
    pub(super) fn word(&mut self) -> Option<String> {
        match self.advance()? {
            Token::Word(word) => Some(word.value.clone()),
            _ => None,
        }
    }

    /// Reads a name with the names of its schema: `public.events`.
    pub(super) fn qualified_name(&mut self) -> Option<String> {
        let mut name = self.word()?;
        while self.peek() == Some(&Token::Period) {
            self.advance();
            name = format!("{name}.{}", self.word()?);
        }
        Some(name)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        match self.peek()? {
            Token::Number(digits, _) => {
                self.advance();
                digits.parse().ok()
            }
            _ => None,
        }
    }

    /// Reads the tokens between a bracket and its counterpart, which may be missing at the end.
    pub(super) fn group(&mut self) -> Option<Tokens<'a>> {
        if !self.is_open() {
            return None;
        }
        self.advance();
        let mut depth = 1usize;
        let end = self.tokens.iter().position(|token| {
            match token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let end = end.unwrap_or(self.tokens.len());
        let group = self.tokens.get(..end)?;
        self.tokens = self.tokens.get(end + 1..).unwrap_or_default();
        Some(Tokens::new(group))
    }

    /// Splits at commas outside all brackets; parts without tokens are left out.
    pub(super) fn split_at_commas(&self) -> Vec<Tokens<'a>> {
        let (mut brackets, mut angles) = (0usize, 0usize);
        let (mut parts, mut start) = (Vec::new(), 0);
        for (at, token) in self.tokens.iter().enumerate() {
            match token {
                Token::LParen | Token::LBracket => brackets += 1,
                Token::RParen | Token::RBracket => brackets = brackets.saturating_sub(1),
                // Elsewhere these compare values.
                Token::Lt
                    if at.checked_sub(1).is_some_and(|before| is_nested_type(self.tokens.get(before))) =>
                {
                    angles += 1;
                }
                Token::Gt => angles = angles.saturating_sub(1),
                Token::ShiftRight => angles = angles.saturating_sub(2),
                Token::Comma if brackets == 0 && angles == 0 => {
                    parts.extend(self.tokens.get(start..at));
                    start = at + 1;
                }
                _ => {}
            }
        }
        parts.extend(self.tokens.get(start..));
        parts.into_iter().filter(|part| !part.is_empty()).map(Tokens::new).collect()
    }

    /// Whether an element of a list of columns is something else than a column.
    pub(super) fn is_constraint(&self) -> bool {
        let word = CONSTRAINTS.iter().any(|word| is_word(self.peek(), word));
        // A column may be called key or index.
        word && !matches!(self.peek(), Some(Token::Word(word)) if word.quote_style.is_some())
    }

    /// Whether these words follow one another.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        self.tokens.windows(words.len()).any(|window| are_words(window, words))
    }

    /// Skips to these words, wherever they are, and reads the key after them.
    pub(super) fn key_after(&mut self, words: &[&str]) -> Option<KeyColumns> {
        let at = self.tokens.windows(words.len()).position(|window| are_words(window, words))?;
        self.tokens = self.tokens.get(at + words.len()..)?;
        // PRIMARY KEY CLUSTERED (...), PRIMARY KEY USING INDEX
        while !self.is_open() {
            self.word()?;
        }
        self.key()
    }

    /// Reads the columns of a key, in brackets or a single one without: `(a, b DESC)`,
    /// `((a, b), c)`.
    pub(super) fn key(&mut self) -> Option<KeyColumns> {
        let mut key = KeyColumns { columns: Vec::new(), of_partition: Vec::new() };
        let Some(group) = self.group() else {
            key.columns.push(self.word()?);
            return Some(key);
        };
        for (position, mut element) in group.split_at_commas().into_iter().enumerate() {
            if element.is_open() {
                let inner: Vec<String> = element.key().map(|inner| inner.columns).unwrap_or_default();
                if position == 0 {
                    key.of_partition.clone_from(&inner);
                }
                key.columns.extend(inner);
            } else {
                key.columns.extend(element.word());
            }
        }
        Some(key)
    }

    /// Returns all words.
    pub(super) fn words(&self) -> Vec<String> {
        let word = |token: &Token| match token {
            Token::Word(word) => Some(word.value.clone()),
            _ => None,
        };
        self.tokens.iter().filter_map(word).collect()
    }

    /// Returns all texts in single quotes.
    pub(super) fn texts(&self) -> Vec<String> {
        let text = |token: &Token| match token {
            Token::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        };
        self.tokens.iter().filter_map(text).collect()
    }
}

/// Whether a token is the name of a type with arguments in angle brackets.
fn is_nested_type(token: Option<&Token>) -> bool {
    const NESTED: [&str; 8] = ["ARRAY", "MAP", "STRUCT", "LIST", "SET", "FROZEN", "TUPLE", "VECTOR"];
    NESTED.iter().any(|name| is_word(token, name))
}

fn is_word(token: Option<&Token>, word: &str) -> bool {
    matches!(token, Some(Token::Word(parsed)) if parsed.value.eq_ignore_ascii_case(word))
}

fn are_words(tokens: &[Token], words: &[&str]) -> bool {
    tokens.iter().zip(words).all(|(token, word)| is_word(Some(token), word))
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
