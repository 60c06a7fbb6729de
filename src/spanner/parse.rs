//! `CREATE TABLE` and `CREATE INDEX` of GoogleSQL and of the PostgreSQL dialect, as far as keys go.

use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::bounded::quote;
use crate::spanner::{
    Dialect, Made, Schema, SchemaColumn, SchemaError, SchemaIndex, SchemaKey, SchemaTable, Shard,
};

/// Most shards that are modelled.
const MOST_SHARDS: u32 = 100_000;

/// Reads a schema. Statements that declare no table and no index are left out, with a note.
///
/// # Errors
/// [`SchemaError`] with the line and column, counted from 1, of the first thing that is not understood.
pub fn parse_schema(text: &str) -> Result<Schema, SchemaError> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().map_err(|error| {
        let (line, column) = (error.location.line, error.location.column);
        SchemaError::Text { line, column, message: error.message }
    })?;
    let source = Source::new(text);
    let tokens: Vec<TokenWithSpan> =
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let mut schema = Schema::default();
    for statement in tokens.split(|token| matches!(token.token, Token::SemiColon | Token::EOF)) {
        if !statement.is_empty() {
            Statement { tokens: statement, position: 0, source: &source }.read(&mut schema)?;
        }
    }
    let known = |name: &String| schema.tables.iter().any(|table| table.name.eq_ignore_ascii_case(name));
    let of_no_table = schema.indexes.iter().filter(|index| !known(&index.table));
    let notes: Vec<String> = of_no_table
        .map(|index| format!("index {} is of table {}, which is not declared here", index.name, index.table))
        .collect();
    schema.notes.extend(notes);
    if schema.tables.is_empty() { Err(SchemaError::NoTable) } else { Ok(schema) }
}

/// The text, to quote from.
struct Source<'a> {
    text: &'a str,
    /// Where lines begin.
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    fn new(text: &'a str) -> Self {
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

    /// What some tokens were read from, on one line.
    fn of(&self, tokens: &[TokenWithSpan]) -> String {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return String::new() };
        let text = self.text.get(self.offset(first.span.start)..self.offset(last.span.end));
        text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

struct Statement<'a> {
    tokens: &'a [TokenWithSpan],
    position: usize,
    source: &'a Source<'a>,
}

impl<'a> Statement<'a> {
    fn read(mut self, schema: &mut Schema) -> Result<(), SchemaError> {
        let first: Vec<String> = self.tokens.iter().take(3).map(|token| token.token.to_string()).collect();
        if !self.accept("CREATE") {
            schema.notes.push(format!("left out: {} ...", first.join(" ")));
            return Ok(());
        }
        let (mut null_filtered, mut unique, mut other) = (false, false, false);
        loop {
            if self.accept("TABLE") {
                let table = self.table()?;
                schema.tables.push(table);
                return Ok(());
            }
            if self.accept("INDEX") {
                let index = self.index(null_filtered, unique, &mut schema.notes)?;
                schema.indexes.push(index);
                return Ok(());
            }
            null_filtered |= self.is("NULL_FILTERED");
            unique |= self.is("UNIQUE");
            other |= !self.is("UNIQUE") && !self.is("NULL_FILTERED");
            if other || self.position >= self.tokens.len() {
                schema.notes.push(format!("left out: {} ...", first.join(" ")));
                return Ok(());
            }
            self.position += 1;
        }
    }

    fn table(&mut self) -> Result<SchemaTable, SchemaError> {
        self.if_not_exists();
        let name = self.name("the table's name")?;
        let mut table = SchemaTable {
            name,
            columns: Vec::new(),
            primary_key: Vec::new(),
            parent: None,
            clauses: String::new(),
            dialect: Dialect::Postgres,
        };
        let body = self.brackets("( and the columns")?;
        for item in split_at_commas(body) {
            let mut item = Statement { tokens: item, position: 0, source: self.source };
            if item.tokens.is_empty() {
                // A comma may stand behind the last column.
                continue;
            }
            let is_constraint =
                ["CONSTRAINT", "FOREIGN", "CHECK", "UNIQUE", "SYNONYM"].iter().any(|word| item.is(word));
            if item.is("PRIMARY") && item.is_at(1, "KEY") {
                item.position += 2;
                table.primary_key = item.key_list()?;
            } else if !is_constraint {
                let (column, is_key) = item.column()?;
                if is_key {
                    table.primary_key = vec![SchemaKey { column: column.name.clone(), descending: false }];
                }
                table.columns.push(column);
            }
        }
        while self.position < self.tokens.len() {
            if self.accept("PRIMARY") {
                self.expect("KEY", "KEY after PRIMARY")?;
                table.primary_key = self.key_list()?;
                table.dialect = Dialect::GoogleSql;
            } else if self.accept("INTERLEAVE") {
                table.parent = Some(self.parent()?);
            } else if self.is("CREATE") {
                return Err(self.unexpected("a semicolon before the next statement"));
            } else if matches!(self.peek(), Some(Token::Comma)) {
                self.position += 1;
            } else {
                let rest = self.clause();
                if !table.clauses.is_empty() {
                    table.clauses.push_str(", ");
                }
                table.clauses.push_str(&rest);
            }
        }
        if table.primary_key.is_empty() { Err(SchemaError::NoKey { table: table.name }) } else { Ok(table) }
    }

    /// A column, and whether it is the primary key by itself.
    fn column(&mut self) -> Result<(SchemaColumn, bool), SchemaError> {
        let name = self.name("a column")?;
        let rest = self.tokens.get(self.position..).unwrap_or_default();
        let has = |word: &str| rest.iter().any(|token| is_word(&token.token, word));
        let is_key = rest
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if is_word(&a.token, "PRIMARY") && is_word(&b.token, "KEY")));
        let made = if has("FARM_FINGERPRINT") {
            let mut numbers = rest.iter().filter_map(|token| match &token.token {
                Token::Number(number, _) => number.parse().ok(),
                _ => None,
            });
            let shards = numbers.next_back().filter(|shards| (1..=MOST_SHARDS).contains(shards));
            shards.map_or(Some(Made::Other), |shards| Some(Made::Shard(self.shard(rest, shards))))
        } else if has("GENERATE_UUID") || has("NEW_UUID") {
            Some(Made::Uuid)
        } else if has("GET_NEXT_SEQUENCE_VALUE") || has("NEXTVAL") || has("IDENTITY") || has("AUTO_INCREMENT")
        {
            Some(Made::Sequence)
        } else if has("AS") || has("GENERATED") {
            Some(Made::Other)
        } else {
            None
        };
        Ok((SchemaColumn { name, made, declaration: self.source.of(rest) }, is_key))
    }

    /// What a fingerprint is of, and whether its remainder may be negative: where MOD stands once, and ABS nowhere.
    fn shard(&self, rest: &[TokenWithSpan], shards: u32) -> Shard {
        let count = |word: &str| rest.iter().filter(|token| is_word(&token.token, word)).count();
        let words = rest.iter().skip_while(|token| !is_word(&token.token, "FARM_FINGERPRINT")).skip(1);
        let known =
            ["CAST", "CONCAT", "AS", "STRING", "STORED", "MOD", "ABS", "TEXT", "BYTES", "VARCHAR", "MAX"];
        let mut columns: Vec<String> = Vec::new();
        for token in words {
            if let Token::Word(word) = &token.token
                && !known.iter().any(|known| word.value.eq_ignore_ascii_case(known))
                && !columns.contains(&word.value)
            {
                columns.push(word.value.clone());
            }
        }
        Shard { shards, columns, signed: count("MOD") == 1 && count("ABS") == 0 }
    }

    /// The tokens up to a comma that stands in no brackets, or a word that begins another clause, as they are written.
    fn clause(&mut self) -> String {
        let rest = self.tokens.get(self.position..).unwrap_or_default();
        let piece = split_at_commas(rest).into_iter().next().unwrap_or_default();
        let next = piece.iter().skip(1).position(|token| is_word(&token.token, "CREATE"));
        let piece = next.and_then(|next| piece.get(..=next)).unwrap_or(piece);
        self.position += piece.len().max(1);
        self.source.of(piece)
    }

    fn index(
        &mut self,
        null_filtered: bool,
        unique: bool,
        notes: &mut Vec<String>,
    ) -> Result<SchemaIndex, SchemaError> {
        self.if_not_exists();
        let name = self.name("the index's name")?;
        self.expect("ON", "ON and the table")?;
        let table = self.name("the table of the index")?;
        let columns = self.key_list()?;
        let mut index = SchemaIndex {
            name,
            table,
            columns,
            storing: Vec::new(),
            unique,
            null_filtered,
            interleaved_in: None,
        };
        while self.position < self.tokens.len() {
            if self.accept("STORING") || self.accept("INCLUDE") {
                index.storing = self.key_list()?.into_iter().map(|part| part.column).collect();
            } else if self.accept("INTERLEAVE") {
                index.interleaved_in = Some(self.parent()?);
            } else if self.accept("WHERE") {
                // The PostgreSQL dialect filters NULL by a condition, and has no other.
                index.null_filtered = true;
                self.position = self.tokens.len();
            } else if self.is("CREATE") {
                return Err(self.unexpected("a semicolon before the next statement"));
            } else if matches!(self.peek(), Some(Token::Comma)) {
                self.position += 1;
            } else {
                let rest = self.clause();
                notes.push(format!("index {}: left out: {rest}", index.name));
            }
        }
        Ok(index)
    }

    fn parent(&mut self) -> Result<String, SchemaError> {
        self.expect("IN", "IN after INTERLEAVE")?;
        self.accept("PARENT");
        self.name("the table that it is interleaved in")
    }

    fn if_not_exists(&mut self) {
        if self.accept("IF") {
            self.accept("NOT");
            self.accept("EXISTS");
        }
    }

    fn key_list(&mut self) -> Result<Vec<SchemaKey>, SchemaError> {
        let body = self.brackets("( and the columns of the key")?;
        let mut keys = Vec::new();
        for item in split_at_commas(body) {
            let mut item = Statement { tokens: item, position: 0, source: self.source };
            let column = item.name("a column of the key")?;
            keys.push(SchemaKey { column, descending: item.is("DESC") });
        }
        Ok(keys)
    }

    /// The tokens between this bracket and the one that closes it.
    fn brackets(&mut self, expected: &'static str) -> Result<&'a [TokenWithSpan], SchemaError> {
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

    fn name(&mut self, expected: &'static str) -> Result<String, SchemaError> {
        let Some(Token::Word(word)) = self.peek() else { return Err(self.unexpected(expected)) };
        let mut name = word.value.clone();
        self.position += 1;
        // Of a name with a schema the last part counts.
        while matches!(self.peek(), Some(Token::Period)) {
            self.position += 1;
            if let Some(Token::Word(word)) = self.peek() {
                name.clone_from(&word.value);
                self.position += 1;
            }
        }
        Ok(name)
    }

    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.position).map(|token| &token.token)
    }

    fn is(&self, word: &str) -> bool {
        self.is_at(0, word)
    }

    fn is_at(&self, ahead: usize, word: &str) -> bool {
        self.tokens.get(self.position + ahead).is_some_and(|token| is_word(&token.token, word))
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.position += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str, expected: &'static str) -> Result<(), SchemaError> {
        if self.accept(word) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&self, expected: &'static str) -> SchemaError {
        let token = self.tokens.get(self.position).or(self.tokens.last());
        let place = token.map_or((0, 0), |token| (token.span.start.line, token.span.start.column));
        let found =
            self.peek().map_or("the end".to_owned(), |token| format!("'{}'", quote(&token.to_string())));
        SchemaError::Unexpected { line: place.0, column: place.1, expected, found }
    }
}

fn is_word(token: &Token, expected: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

/// The pieces between commas that stand in no brackets.
fn split_at_commas(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
    let (mut depth, mut types) = (0usize, 0usize);
    let mut behind_type = false;
    tokens
        .split(|token| {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                // Elsewhere these compare.
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
    use super::*;

    fn keys(keys: &[SchemaKey]) -> String {
        let text = |key: &SchemaKey| format!("{}{}", key.column, if key.descending { " DESC" } else { "" });
        keys.iter().map(text).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn both_dialects_are_read() {
        let google = "
            CREATE SEQUENCE Ids OPTIONS (sequence_kind = \"bit_reversed_positive\");
            CREATE TABLE Logs (
              ShardId INT64 NOT NULL AS (MOD(FARM_FINGERPRINT(CAST(LastAccess AS STRING)), 2048)) STORED,
              LastAccess TIMESTAMP NOT NULL,
              UserId STRING(1024), -- who
              Tags ARRAY<STRING(MAX)>,
            ) PRIMARY KEY (ShardId, LastAccess DESC, UserId),
              INTERLEAVE IN PARENT Users ON DELETE CASCADE;
            CREATE NULL_FILTERED INDEX ByAccess ON Logs(LastAccess) STORING (UserId), INTERLEAVE IN Users;";
        let schema = parse_schema(google).unwrap();
        let table = schema.table(None).unwrap();
        assert_eq!(
            (table.name.as_str(), table.columns.len(), table.parent.as_deref()),
            ("Logs", 4, Some("Users"))
        );
        assert_eq!(keys(&table.primary_key), "ShardId, LastAccess DESC, UserId");
        let shard = Shard { shards: 2048, columns: vec!["LastAccess".to_owned()], signed: true };
        assert_eq!(table.columns[0].made.clone(), Some(Made::Shard(shard)));
        let index = schema.indexes_of(table).next().unwrap();
        assert!(
            index.null_filtered
                && index.storing == ["UserId"]
                && index.interleaved_in.as_deref() == Some("Users")
        );
        assert_eq!(schema.notes, ["left out: CREATE SEQUENCE Ids ..."]);

        let postgres = "
            CREATE TABLE public.logs (
              id varchar(36) DEFAULT spanner.generate_uuid(),
              lastaccess timestamptz NOT NULL,
              PRIMARY KEY (lastaccess, id)
            );
            CREATE TABLE users (userid bigint DEFAULT nextval('ids') PRIMARY KEY);
            CREATE INDEX byaccess ON logs (lastaccess DESC) INCLUDE (id) WHERE lastaccess IS NOT NULL;";
        let schema = parse_schema(postgres).unwrap();
        let logs = schema.table(Some("LOGS")).unwrap();
        assert_eq!(
            (keys(&logs.primary_key).as_str(), logs.columns[0].made.clone()),
            ("lastaccess, id", Some(Made::Uuid))
        );
        let users = schema.table(Some("users")).unwrap();
        assert_eq!(
            (keys(&users.primary_key).as_str(), users.columns[0].made.clone()),
            ("userid", Some(Made::Sequence))
        );
        let index = schema.indexes_of(logs).next().unwrap();
        assert!(index.null_filtered && keys(&index.columns) == "lastaccess DESC" && index.storing == ["id"]);
        assert!(matches!(schema.table(None), Err(SchemaError::SeveralTables { .. })));
    }

    #[test]
    fn what_is_not_understood_is_named_by_its_place() {
        for (text, message) in [
            ("", "there is no CREATE TABLE"),
            ("CREATE VIEW v AS SELECT 1", "there is no CREATE TABLE"),
            ("CREATE TABLE t", "expected ( and the columns, found the end"),
            ("CREATE TABLE t (a INT64", "expected a closing bracket"),
            ("CREATE TABLE t (a INT64)", "table t has no primary key"),
            (
                "CREATE TABLE t (a INT64) PRIMARY a",
                "line 1, column 34: expected KEY after PRIMARY, found 'a'",
            ),
            ("CREATE TABLE t (1 INT64)", "expected a column, found '1'"),
            ("CREATE INDEX i t(a)", "expected ON and the table"),
            ("CREATE TABLE t (a STRING DEFAULT ('x)", "Unterminated string literal"),
        ] {
            let error = parse_schema(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn what_compares_is_no_bracket() {
        for text in [
            "CREATE TABLE t (a bigint, b bigint, CHECK (a < 5), PRIMARY KEY (a))",
            "CREATE TABLE t (a bigint, b bool AS (a < 5) STORED, c ARRAY<STRUCT<x INT64, y STRING(MAX)>>, PRIMARY KEY (a))",
        ] {
            let schema = parse_schema(text).unwrap();
            assert_eq!(schema.tables[0].primary_key[0].column, "a");
            assert!(schema.tables[0].columns.len() == 2 + usize::from(text.contains("ARRAY")), "{text}");
        }
    }

    #[test]
    fn no_cut_of_a_schema_panics() {
        let text = "CREATE TABLE a.t (x INT64 AS (MOD(FARM_FINGERPRINT('y'), 5)) STORED, PRIMARY KEY (x DESC)), INTERLEAVE IN p;";
        for end in 0..text.len() {
            let _ = parse_schema(&text[..end]);
        }
    }
}
