//! Parses a column of `CREATE TABLE`: its type, and the generator of its values.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::schema::error::SchemaError;
use crate::schema::parse::statement::{Statement, is_word};
use crate::schema::placed::{PlacedColumn, PlacedType};
use crate::schema::tables::{Made, SchemaColumn, Shard};
use crate::schema::types::read_type;

/// Maximum number of shards that can be modelled.
const MAX_SHARDS: u32 = 100_000;

/// Words that may follow the type of a column.
const ATTRIBUTES: [&str; 18] = [
    "NOT",
    "NULL",
    "DEFAULT",
    "AS",
    "GENERATED",
    "OPTIONS",
    "PRIMARY",
    "HIDDEN",
    "STORED",
    "VIRTUAL",
    "ON",
    "PLACEMENT",
    "UNIQUE",
    "REFERENCES",
    "CHECK",
    "CONSTRAINT",
    "AUTO_INCREMENT",
    "COLLATE",
];

impl Statement<'_> {
    /// Parses a column: its declaration, its location and type, and whether it is the primary key
    /// by itself.
    pub(super) fn column(&mut self) -> Result<(SchemaColumn, PlacedColumn, bool), SchemaError> {
        let at = self.place();
        let name = self.name("a column")?;
        let column_type = self.column_type()?;
        let rest = self.rest();
        let is_key = rest
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if is_word(&a.token, "PRIMARY") && is_word(&b.token, "KEY")));
        let column = SchemaColumn { name, made: generator(rest), declaration: self.text_of(rest) };
        Ok((column, PlacedColumn { at, column_type }, is_key))
    }

    /// Parses the type after a column name, without advancing; only an attribute may follow the
    /// type.
    fn column_type(&self) -> Result<PlacedType, SchemaError> {
        let read = match read_type(self.rest()) {
            Ok(read) => read,
            Err(problem) => return Ok(Err((self.ahead(problem.token).place(), problem))),
        };
        let mut next = self.ahead(read.tokens);
        let short = ["NULL", "HIDDEN", "STORED", "VIRTUAL"];
        while !next.is_at_end() {
            if short.iter().any(|word| next.accept(word)) {
                continue;
            }
            if next.is("NOT") && next.is_at(1, "NULL") || next.is("PRIMARY") && next.is_at(1, "KEY") {
                next.position += 2;
                continue;
            }
            if !ATTRIBUTES.iter().any(|word| next.is(word)) {
                return Err(next.unexpected("a comma, or NOT NULL, DEFAULT, AS or OPTIONS after the type"));
            }
            // Expressions are not parsed.
            break;
        }
        Ok(Ok(read))
    }
}

/// Returns the generator of the values of a column, from the tokens after its name.
fn generator(rest: &[TokenWithSpan]) -> Option<Made> {
    let has = |words: &[&str]| rest.iter().any(|token| words.iter().any(|word| is_word(&token.token, word)));
    if has(&["FARM_FINGERPRINT"]) {
        let mut numbers = rest.iter().filter_map(|token| match &token.token {
            Token::Number(number, _) => number.parse().ok(),
            _ => None,
        });
        let shards = numbers.next_back().filter(|shards| (1..=MAX_SHARDS).contains(shards));
        let shard = shards.and_then(|shards| fingerprint_shard(rest, shards));
        return Some(shard.map_or(Made::Other, Made::Shard));
    }
    if has(&["GENERATE_UUID", "NEW_UUID"]) {
        return Some(Made::Uuid);
    }
    if has(&["GET_NEXT_SEQUENCE_VALUE", "NEXTVAL", "IDENTITY", "AUTO_INCREMENT"]) {
        return Some(Made::Sequence);
    }
    has(&["AS", "GENERATED"]).then_some(Made::Other)
}

/// Returns the shard with the columns that its fingerprint is computed from; `None` if another
/// function changes their values first. The remainder may be negative if `MOD` occurs exactly once
/// and `ABS` does not occur.
fn fingerprint_shard(rest: &[TokenWithSpan], shards: u32) -> Option<Shard> {
    let count = |word: &str| rest.iter().filter(|token| is_word(&token.token, word)).count();
    let function = rest.iter().position(|token| is_word(&token.token, "FARM_FINGERPRINT"))?;
    let tokens: Vec<&Token> = rest.iter().skip(function + 1).map(|token| &token.token).collect();
    let mut columns: Vec<String> = Vec::new();
    let mut depth = 0_u32;
    let mut is_type = false;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen if depth <= 1 => break,
            Token::RParen => depth -= 1,
            Token::Word(_) if ["CAST", "CONCAT", "MAX"].iter().any(|word| is_word(token, word)) => {}
            Token::Word(_) if is_type || is_word(token, "AS") => {}
            Token::Word(_) if tokens.get(at + 1) == Some(&&Token::LParen) => return None,
            Token::Word(word) if !columns.contains(&word.value) => columns.push(word.value.clone()),
            _ => {}
        }
        is_type = is_word(token, "AS") || **token == Token::DoubleColon;
    }
    Some(Shard { shards, columns, signed: count("MOD") == 1 && count("ABS") == 0 })
}
