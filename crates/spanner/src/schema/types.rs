//! Column types, as written in Spanner statements.
//!
//! Sources: the GoogleSQL reference of data definition (scalar types, `ARRAY<...>`) and the list of
//! types of the PostgreSQL dialect. Types of both dialects are accepted in every statement.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use evenkeel_model::bounded::quote;

/// Longest `STRING` and `varchar`, in characters, and longest `BYTES`, in bytes.
const LONGEST_STRING: u64 = 2_621_440;
const LONGEST_BYTES: u64 = 10_485_760;

/// Single-word types that a key column may have.
const KEY_TYPES: [&str; 25] = [
    "BOOL",
    "BOOLEAN",
    "INT64",
    "INT8",
    "BIGINT",
    "SERIAL",
    "BIGSERIAL",
    "FLOAT32",
    "FLOAT64",
    "FLOAT4",
    "FLOAT8",
    "REAL",
    "NUMERIC",
    "DECIMAL",
    "STRING",
    "BYTES",
    "VARCHAR",
    "TEXT",
    "BYTEA",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMPTZ",
    "UUID",
    "ENUM",
    "COMMIT_TIMESTAMP",
];
/// Single-word types that no key column may have.
const OTHER_TYPES: [&str; 5] = ["JSON", "JSONB", "TOKENLIST", "INTERVAL", "PROTO"];
/// Types of other systems, and the types to use instead.
const INSTEAD: [(&str, &str); 24] = [
    ("INT", "INT64 or bigint"),
    ("INTEGER", "INT64 or bigint"),
    ("INT2", "INT64 or bigint"),
    ("INT4", "INT64 or bigint"),
    ("INT16", "INT64 or bigint"),
    ("INT32", "INT64 or bigint"),
    ("SMALLINT", "INT64 or bigint"),
    ("TINYINT", "INT64 or bigint"),
    ("UINT64", "INT64, or NUMERIC beyond 2^63"),
    ("UINT32", "INT64 or bigint"),
    ("FLOAT", "FLOAT64 or double precision"),
    ("CHAR", "STRING(n) or varchar(n)"),
    ("CHARACTER", "STRING(n) or varchar(n)"),
    ("NVARCHAR", "STRING(n) or varchar(n)"),
    ("UTF8", "STRING(MAX) or text"),
    ("CLOB", "STRING(MAX) or text"),
    ("BLOB", "BYTES(MAX) or bytea"),
    ("BINARY", "BYTES(n) or bytea"),
    ("VARBINARY", "BYTES(n) or bytea"),
    ("DATETIME", "TIMESTAMP or timestamptz"),
    ("TIME", "TIMESTAMP or timestamptz"),
    ("STRUCT", "a separate table, interleaved"),
    ("MAP", "JSON, or a separate table"),
    ("LIST", "ARRAY<type>"),
];

/// A type that was parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypeText {
    /// Number of tokens that the type spans.
    pub(super) tokens: usize,
    /// Name of the type without its length, in capital letters.
    pub(super) name: String,
    /// Whether a key column may have this type.
    pub(super) is_key_type: bool,
}

/// An invalid type: the token, the reason, and the replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypeProblem {
    pub(super) token: usize,
    pub(super) problem: String,
    pub(super) next: String,
}

/// Parses the type at the start of `tokens`.
pub(super) fn read_type(tokens: &[TokenWithSpan]) -> Result<TypeText, TypeProblem> {
    let mut reader = Reader { tokens, position: 0 };
    let mut read = reader.scalar_or_array()?;
    // Arrays in the notation of the PostgreSQL dialect.
    while reader.accept(&Token::LBracket) {
        if matches!(reader.peek(), Some(Token::Number(..))) {
            reader.position += 1;
        }
        if !reader.accept(&Token::RBracket) {
            return Err(reader.problem("the brackets of an array are open", "write type[]"));
        }
        read.is_key_type = false;
        read.name.push_str("[]");
    }
    read.tokens = reader.position;
    Ok(read)
}

struct Reader<'a> {
    tokens: &'a [TokenWithSpan],
    position: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.position).map(|token| &token.token)
    }

    fn accept(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.position += usize::from(is_next);
        is_next
    }

    /// Returns the next word in capital letters.
    fn word(&self) -> Option<String> {
        match self.peek() {
            Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
            _ => None,
        }
    }

    fn accept_word(&mut self, expected: &str) -> bool {
        let is_next = self.word().as_deref() == Some(expected);
        self.position += usize::from(is_next);
        is_next
    }

    fn problem(&self, problem: impl Into<String>, next: impl Into<String>) -> TypeProblem {
        TypeProblem { token: self.position, problem: problem.into(), next: next.into() }
    }

    fn scalar_or_array(&mut self) -> Result<TypeText, TypeProblem> {
        let begin = self.position;
        // Names of message types are qualified by a package, or quoted.
        if matches!(self.peek(), Some(Token::Word(word)) if word.quote_style.is_some()) {
            self.position += 1;
            return Ok(self.message());
        }
        let Some(mut name) = self.word() else {
            return Err(
                self.problem("it has no type", "write the type after the name, such as INT64 or STRING(MAX)")
            );
        };
        self.position += 1;
        if self.accept(&Token::Period) {
            let Some(last) = self.word() else {
                return Err(self.problem("a name of a type ends with a period", "write the whole name"));
            };
            self.position += 1;
            match name == "SPANNER" && (last == "COMMIT_TIMESTAMP" || last == "TOKENLIST") {
                true => name = last,
                false => {
                    while self.accept(&Token::Period) {
                        self.position += usize::from(self.word().is_some());
                    }
                    return Ok(self.message());
                }
            }
        }
        match name.as_str() {
            "ARRAY" => return self.array(),
            "DOUBLE" => {
                return match self.accept_word("PRECISION") {
                    true => Ok(self.read("DOUBLE PRECISION", true)),
                    false => {
                        self.position = begin;
                        Err(self.problem("the type DOUBLE is unknown", "use FLOAT64 or double precision"))
                    }
                };
            }
            "CHARACTER" if self.accept_word("VARYING") => "VARCHAR".clone_into(&mut name),
            _ => {}
        }
        let is_key_type = KEY_TYPES.contains(&name.as_str());
        if !is_key_type && !OTHER_TYPES.contains(&name.as_str()) {
            self.position = begin;
            let instead = INSTEAD.iter().find(|(known, _)| *known == name);
            let next = match instead {
                Some((_, instead)) => format!("use {instead}"),
                None => "types are BOOL, INT64, FLOAT32, FLOAT64, NUMERIC, STRING(n), BYTES(n), DATE, TIMESTAMP, JSON, UUID, ARRAY<type>, and in \
                         the PostgreSQL dialect boolean, bigint, real, double precision, numeric, varchar, text, bytea, date, timestamptz, jsonb, uuid"
                    .to_owned(),
            };
            return Err(self.problem(format!("the type {} is unknown", quote(&name)), next));
        }
        if name == "TIMESTAMP"
            && self.word().as_deref().is_some_and(|word| word == "WITH" || word == "WITHOUT")
        {
            let has_zone = self.accept_word("WITH");
            if !(has_zone && self.accept_word("TIME") && self.accept_word("ZONE")) {
                return Err(self.problem("Spanner has no timestamp without time zone", "use timestamptz"));
            }
        }
        self.length(&name)?;
        Ok(self.read(&name, is_key_type))
    }

    fn read(&self, name: &str, is_key_type: bool) -> TypeText {
        TypeText { tokens: self.position, name: name.to_owned(), is_key_type }
    }

    fn message(&self) -> TypeText {
        self.read("PROTO", false)
    }

    fn array(&mut self) -> Result<TypeText, TypeProblem> {
        if !self.accept(&Token::Lt) {
            return Err(self.problem("ARRAY has no element type", "write ARRAY<type>"));
        }
        if self.word().as_deref() == Some("ARRAY") {
            let next = "put the inner arrays into a separate table";
            return Err(self.problem("an array of arrays is not a type", next));
        }
        let element = self.scalar_or_array()?;
        if !self.accept(&Token::Gt) {
            return Err(self.problem("the bracket of ARRAY< is open", "write ARRAY<type>"));
        }
        // Skip the length of a vector.
        if matches!(self.peek(), Some(Token::LParen)) {
            let end = self.tokens.iter().skip(self.position).position(|token| token.token == Token::RParen);
            self.position += end.map_or(1, |end| end + 1);
        }
        Ok(self.read(&format!("ARRAY<{}>", element.name), false))
    }

    /// Parses a length in parentheses, which STRING and BYTES require.
    fn length(&mut self, name: &str) -> Result<(), TypeProblem> {
        let (needed, longest) = match name {
            "STRING" => (true, LONGEST_STRING),
            "BYTES" => (true, LONGEST_BYTES),
            "VARCHAR" => (false, LONGEST_STRING),
            // Skip the precision that NUMERIC may have in the PostgreSQL dialect, and anything in
            // parentheses after the name of a message type.
            "NUMERIC" | "DECIMAL" | "PROTO" | "ENUM" => {
                if matches!(self.peek(), Some(Token::LParen)) {
                    let end =
                        self.tokens.iter().skip(self.position).position(|token| token.token == Token::RParen);
                    self.position += end.map_or(1, |end| end + 1);
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let words = || format!("write {name}(n) with 1 to {longest}{}", if needed { ", or MAX" } else { "" });
        if !self.accept(&Token::LParen) {
            return if needed { Err(self.problem(format!("{name} has no length"), words())) } else { Ok(()) };
        }
        let is_length = match self.peek() {
            Some(Token::Number(number, _)) => {
                number.parse::<u64>().is_ok_and(|length| (1..=longest).contains(&length))
            }
            Some(Token::Word(word)) => needed && word.value.eq_ignore_ascii_case("MAX"),
            _ => false,
        };
        if !is_length {
            let next =
                self.peek().map_or("the end".to_owned(), |token| format!("'{}'", quote(&token.to_string())));
            return Err(self.problem(format!("{name} has no length {next}"), words()));
        }
        self.position += 1;
        match self.accept(&Token::RParen) {
            true => Ok(()),
            false => Err(self.problem(format!("the bracket of {name} is open"), words())),
        }
    }
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
