//! A statement as tokens, read from left to right.

use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::schema::error::SchemaError;
use crate::schema::tables::SchemaKey;
use evenkeel_model::bounded::quote;

/// The source text, to quote from.
pub(super) struct Source<'a> {
    text: &'a str,
    /// Byte offsets of the beginnings of lines.
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self { text, lines: std::iter::once(0).chain(ends).collect() }
    }

    fn offset(&self, place: Location) -> usize {
        let line = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(begin) = self.lines.get(line).copied() else { return self.text.len() };
        let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let rest = self.text.get(begin..).unwrap_or_default();
        rest.char_indices().nth(column).map_or(self.text.len(), |(offset, _)| begin + offset)
    }

    /// Returns the source text of some tokens, on one line.
    fn text_of(&self, tokens: &[TokenWithSpan]) -> String {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return String::new() };
        let text = self.text.get(self.offset(first.span.start)..self.offset(last.span.end));
        text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A statement, or a part of one, and the position of the next token.
pub(super) struct Statement<'a> {
    tokens: &'a [TokenWithSpan],
    pub(super) position: usize,
    source: &'a Source<'a>,
    /// All tokens of the statement that `tokens` is a part of.
    whole: &'a [TokenWithSpan],
}

impl<'a> Statement<'a> {
    pub(super) fn new(tokens: &'a [TokenWithSpan], source: &'a Source<'a>) -> Self {
        Statement { tokens, position: 0, source, whole: tokens }
    }

    /// Returns a parser for some tokens of the same statement.
    pub(super) fn within(&self, tokens: &'a [TokenWithSpan]) -> Self {
        Statement { tokens, position: 0, source: self.source, whole: self.whole }
    }

    /// Returns a parser advanced by `tokens`.
    pub(super) fn ahead(&self, tokens: usize) -> Self {
        Statement { position: self.position + tokens, ..*self }
    }

    /// Returns the tokens that are left.
    pub(super) fn rest(&self) -> &'a [TokenWithSpan] {
        self.tokens.get(self.position..).unwrap_or_default()
    }

    /// Whether all tokens have been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.position >= self.tokens.len()
    }

    /// Returns the first words of the whole statement.
    pub(super) fn first_words(&self) -> Vec<String> {
        self.whole.iter().take(3).map(|token| quote(&token.token.to_string()).to_string()).collect()
    }

    /// Location of the next token, or of the last one.
    pub(super) fn place(&self) -> Location {
        let token = self.tokens.get(self.position).or(self.tokens.last()).or(self.whole.last());
        token.map_or(Location { line: 0, column: 0 }, |token| token.span.start)
    }

    /// Returns the source text up to the next comma outside parentheses, or up to a word that
    /// begins another clause.
    pub(super) fn clause(&mut self) -> String {
        let piece = split_at_commas(self.rest()).into_iter().next().unwrap_or_default();
        let next = piece.iter().skip(1).position(|token| is_word(&token.token, "CREATE"));
        let piece = next.and_then(|next| piece.get(..=next)).unwrap_or(piece);
        self.position += piece.len().max(1);
        self.source.text_of(piece)
    }

    /// Parses the table after `INTERLEAVE`.
    pub(super) fn parent(&mut self) -> Result<(String, Location), SchemaError> {
        self.expect("IN", "IN after INTERLEAVE")?;
        self.accept("PARENT");
        let at = self.place();
        Ok((self.name("the table that it is interleaved in")?, at))
    }

    pub(super) fn if_not_exists(&mut self) {
        if self.accept("IF") {
            self.accept("NOT");
            self.accept("EXISTS");
        }
    }

    /// Parses columns in parentheses, each with its order.
    pub(super) fn key_list(&mut self) -> Result<Vec<(SchemaKey, Location)>, SchemaError> {
        let body = self.brackets("( and the columns of the key")?;
        let mut keys = Vec::new();
        for item in split_at_commas(body) {
            let mut item = self.within(item);
            let at = item.place();
            let column = item.name("a column of the key")?;
            let descending = item.accept("DESC");
            if !descending {
                item.accept("ASC");
            }
            if item.accept("NULLS") && !item.accept("FIRST") {
                item.expect("LAST", "FIRST or LAST after NULLS")?;
            }
            if !item.is_at_end() {
                return Err(item.unexpected("a comma, ASC or DESC after a column of the key"));
            }
            keys.push((SchemaKey { column, descending }, at));
        }
        Ok(keys)
    }

    /// Returns the tokens between this parenthesis and the one that closes it.
    pub(super) fn brackets(&mut self, expected: &'static str) -> Result<&'a [TokenWithSpan], SchemaError> {
        if !matches!(self.peek(), Some(Token::LParen)) {
            return Err(self.unexpected(expected));
        }
        let first = self.position + 1;
        let mut depth = 0usize;
        for (offset, token) in self.tokens.iter().enumerate().skip(self.position) {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                self.position = offset + 1;
                return Ok(self.tokens.get(first..offset).unwrap_or_default());
            }
        }
        self.position = self.tokens.len();
        Err(self.unexpected("a closing bracket"))
    }

    /// Parses a name, quoted or not.
    pub(super) fn name(&mut self, expected: &'static str) -> Result<String, SchemaError> {
        let Some(Token::Word(word)) = self.peek() else { return Err(self.unexpected(expected)) };
        let mut name = word.value.clone();
        self.position += 1;
        // Only the last part of a qualified name counts.
        while matches!(self.peek(), Some(Token::Period)) {
            self.position += 1;
            if let Some(Token::Word(word)) = self.peek() {
                name.clone_from(&word.value);
                self.position += 1;
            }
        }
        Ok(name)
    }

    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.position).map(|token| &token.token)
    }

    /// Whether the next token is this word, not quoted.
    pub(super) fn is(&self, word: &str) -> bool {
        self.is_at(0, word)
    }

    pub(super) fn is_at(&self, ahead: usize, word: &str) -> bool {
        self.tokens.get(self.position + ahead).is_some_and(|token| is_word(&token.token, word))
    }

    /// Skips the next token if it is this word.
    pub(super) fn accept(&mut self, word: &str) -> bool {
        let is_next = self.is(word);
        self.position += usize::from(is_next);
        is_next
    }

    pub(super) fn expect(&mut self, word: &str, expected: &'static str) -> Result<(), SchemaError> {
        if self.accept(word) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// Returns the source text of some tokens, on one line.
    pub(super) fn text_of(&self, tokens: &[TokenWithSpan]) -> String {
        self.source.text_of(tokens)
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> SchemaError {
        let Location { line, column } = self.place();
        let found =
            self.peek().map_or("the end".to_owned(), |token| format!("'{}'", quote(&token.to_string())));
        SchemaError::Unexpected { line, column, expected, found, statement: self.first_words().join(" ") }
    }
}

pub(super) fn is_word(token: &Token, expected: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

/// Splits tokens at commas outside parentheses and type brackets.
pub(super) fn split_at_commas(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let (mut depth, mut types) = (0usize, 0usize);
    let mut behind_type = false;
    tokens
        .split(|token| {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                // Elsewhere, `<` is a comparison.
                Token::Lt if types > 0 || behind_type => types += 1,
                Token::Gt => types = types.saturating_sub(1),
                Token::ShiftRight => types = types.saturating_sub(2),
                _ => {}
            }
            behind_type = is_word(&token.token, "ARRAY") || is_word(&token.token, "STRUCT");
            depth == 0 && types == 0 && matches!(token.token, Token::Comma)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::GenericDialect;
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn tokens(text: &str) -> Vec<TokenWithSpan> {
        let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().unwrap();
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect()
    }

    #[test]
    fn source_text_is_quoted_whole_beside_wide_characters_and_lines() {
        for text in ["a 'é' b", "größe\n  INT64, ''", "'🦀🦀' , x\r\n y", "one"] {
            let (tokens, source) = (tokens(text), Source::new(text));
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(source.text_of(&tokens), words, "{text}");
            let last = words.rsplit(' ').next().unwrap();
            assert_eq!(source.text_of(&tokens[tokens.len() - 1..]), last, "{text}");
        }
        assert_eq!(Source::new("").text_of(&[]), "");
    }

    #[test]
    fn commas_separate_only_outside_of_brackets() {
        for (text, parts) in [
            ("a, b", 2),
            ("a (b, c), d", 2),
            ("a ((b, c), d), e, f", 3),
            ("a ARRAY<STRUCT<x INT64, y INT64>>, b", 2),
            ("CHECK (a < b), c", 2),
            ("a < b, c > d", 2),
            ("a),,b", 3),
        ] {
            assert_eq!(split_at_commas(&tokens(text)).len(), parts, "{text}");
        }
    }

    #[test]
    fn a_list_of_columns_has_orders_and_places() {
        let text = "(a, b.`Order` DESC NULLS LAST,\n c asc) rest";
        let (tokens, source) = (tokens(text), Source::new(text));
        let mut statement = Statement::new(&tokens, &source);
        let keys = statement.key_list().unwrap();
        let keys: Vec<_> =
            keys.iter().map(|(key, at)| (key.column.as_str(), key.descending, at.line, at.column)).collect();
        assert_eq!(keys, [("a", false, 1, 2), ("Order", true, 1, 5), ("c", false, 2, 2)]);
        assert!(statement.accept("REST") && statement.is_at_end() && !statement.accept("REST"));
    }

    #[test]
    fn an_error_names_the_place_and_the_beginning_of_the_statement() {
        let text = "CREATE TABLE t\n (a b c";
        let (tokens, source) = (tokens(text), Source::new(text));
        let mut statement = Statement::new(&tokens, &source);
        let error = |statement: &Statement<'_>| statement.unexpected("more").to_string();
        assert_eq!(error(&statement), "line 1, column 1: expected more, found 'CREATE', in CREATE TABLE t");
        statement.position = 3;
        assert!(statement.brackets("(").is_err());
        assert_eq!(error(&statement), "line 2, column 7: expected more, found the end, in CREATE TABLE t");
    }
}
