//! Parses the keys of `CREATE TABLE` and `CREATE INDEX` in GoogleSQL and the PostgreSQL dialect.

use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::schema::check::{Placed, PlacedColumn, PlacedIndex, PlacedTable, PlacedType, Reference};
use crate::schema::types::read_type;
use crate::schema::{
    Dialect, Made, Schema, SchemaColumn, SchemaError, SchemaIndex, SchemaKey, SchemaTable, Shard,
};
use evenkeel_model::bounded::quote;

/// Largest number of shards that can be modelled.
const MOST_SHARDS: u32 = 100_000;

/// Words that may follow the type of a column.
const ATTRIBUTES: [&str; 16] = [
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
];

/// Reads a schema. Statements that declare neither a table nor an index are skipped, with a note.
///
/// # Errors
/// [`SchemaError`] with the line and column, counted from 1, of the first problem: syntax that is
/// not understood, or something that Spanner would reject, such as an unknown type, a name that is
/// undeclared or declared twice, or an invalid key.
pub fn parse_schema(text: &str) -> Result<Schema, SchemaError> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().map_err(|error| {
        let (line, column) = (error.location.line, error.location.column);
        SchemaError::Text { line, column, message: error.message }
    })?;
    let source = Source::new(text);
    let tokens: Vec<TokenWithSpan> =
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
    let (mut schema, mut placed) = (Schema::default(), Placed::default());
    for statement in tokens.split(|token| matches!(token.token, Token::SemiColon | Token::EOF)) {
        if !statement.is_empty() {
            Statement { tokens: statement, position: 0, source: &source, whole: statement }
                .read(&mut placed, &mut schema.notes)?;
        }
    }
    if placed.tables.is_empty() && placed.indexes.is_empty() {
        return Err(SchemaError::NoTable);
    }
    placed.check()?;
    schema.tables = placed.tables.into_iter().map(|placed| placed.table).collect();
    schema.indexes = placed.indexes.into_iter().map(|placed| placed.index).collect();
    Ok(schema)
}

/// The source text, to quote from.
struct Source<'a> {
    text: &'a str,
    /// Byte offsets at which lines begin.
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

    /// Returns the source text of some tokens, on one line.
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
    /// All tokens of the statement that `tokens` is a part of.
    whole: &'a [TokenWithSpan],
}

impl<'a> Statement<'a> {
    /// Returns a parser for some tokens of the same statement.
    fn within(&self, tokens: &'a [TokenWithSpan]) -> Self {
        Statement { tokens, position: 0, source: self.source, whole: self.whole }
    }

    fn first_words(&self) -> Vec<String> {
        self.whole.iter().take(3).map(|token| quote(&token.token.to_string()).to_string()).collect()
    }

    /// Location of the next token, or of the last one.
    fn place(&self) -> Location {
        let token = self.tokens.get(self.position).or(self.tokens.last()).or(self.whole.last());
        token.map_or(Location { line: 0, column: 0 }, |token| token.span.start)
    }

    fn read(mut self, placed: &mut Placed, notes: &mut Vec<String>) -> Result<(), SchemaError> {
        let first = self.first_words();
        if !self.accept("CREATE") {
            notes.push(format!("left out: {} ...", first.join(" ")));
            return Ok(());
        }
        let (mut null_filtered, mut unique, mut other) = (false, false, false);
        loop {
            if self.accept("TABLE") {
                let table = self.table()?;
                placed.tables.push(table);
                return Ok(());
            }
            if self.accept("INDEX") {
                let index = self.index(null_filtered, unique, notes)?;
                placed.indexes.push(index);
                return Ok(());
            }
            null_filtered |= self.is("NULL_FILTERED");
            unique |= self.is("UNIQUE");
            other |= !self.is("UNIQUE") && !self.is("NULL_FILTERED");
            if other || self.position >= self.tokens.len() {
                notes.push(format!("left out: {} ...", first.join(" ")));
                return Ok(());
            }
            self.position += 1;
        }
    }

    fn table(&mut self) -> Result<PlacedTable, SchemaError> {
        self.if_not_exists();
        let at = self.place();
        let name = self.name("the table's name")?;
        let mut table = SchemaTable {
            name,
            columns: Vec::new(),
            primary_key: Vec::new(),
            parent: None,
            clauses: String::new(),
            dialect: Dialect::Postgres,
        };
        let (mut columns, mut key, mut parent, mut references) = (Vec::new(), Vec::new(), None, Vec::new());
        let body = self.brackets("( and the columns")?;
        for item in split_at_commas(body) {
            let mut item = self.within(item);
            if item.tokens.is_empty() {
                // A trailing comma is allowed after the last column.
                continue;
            }
            let is_constraint =
                ["CONSTRAINT", "FOREIGN", "CHECK", "UNIQUE", "SYNONYM"].iter().any(|word| item.is(word));
            if item.is("PRIMARY") && item.is_at(1, "KEY") {
                item.one_key(&table)?;
                item.position += 2;
                (table.primary_key, key) = item.key_list()?.into_iter().unzip();
            } else if is_constraint {
                references.extend(item.reference()?);
            } else {
                let (column, place, is_key) = item.column()?;
                if is_key {
                    item.one_key(&table)?;
                    table.primary_key = vec![SchemaKey { column: column.name.clone(), descending: false }];
                    key = vec![place.at];
                }
                table.columns.push(column);
                columns.push(place);
            }
        }
        while self.position < self.tokens.len() {
            if self.is("PRIMARY") {
                self.one_key(&table)?;
                self.position += 1;
                self.expect("KEY", "KEY after PRIMARY")?;
                (table.primary_key, key) = self.key_list()?.into_iter().unzip();
                table.dialect = Dialect::GoogleSql;
            } else if self.accept("INTERLEAVE") {
                let (name, at) = self.parent()?;
                (table.parent, parent) = (Some(name), Some(at));
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
        Ok(PlacedTable { table, at, columns, key, parent, references })
    }

    /// Fails if the table already has a primary key.
    fn one_key(&self, table: &SchemaTable) -> Result<(), SchemaError> {
        if table.primary_key.is_empty() {
            return Ok(());
        }
        let Location { line, column } = self.place();
        Err(SchemaError::Refused {
            line,
            column,
            statement: format!("CREATE TABLE {}", quote(&table.name)),
            problem: "it has two primary keys".to_owned(),
            next: "leave one of them out".to_owned(),
        })
    }

    /// Parses a constraint, and returns the foreign key if it is one.
    fn reference(&mut self) -> Result<Option<Reference>, SchemaError> {
        if self.accept("CONSTRAINT") {
            self.name("the name of the constraint")?;
        }
        if !(self.is("FOREIGN") && self.is_at(1, "KEY")) {
            return Ok(None);
        }
        self.position += 2;
        let names = |keys: Vec<(SchemaKey, Location)>| {
            keys.into_iter().map(|(key, at)| (key.column, at)).collect::<Vec<_>>()
        };
        let columns = names(self.key_list()?);
        self.expect("REFERENCES", "REFERENCES and the table")?;
        let at = self.place();
        let table = (self.name("the table that is referenced")?, at);
        let is_named = matches!(self.peek(), Some(Token::LParen));
        let referenced = if is_named { names(self.key_list()?) } else { Vec::new() };
        Ok(Some(Reference { columns, table, referenced }))
    }

    /// Parses a column: its declaration, its location and type, and whether it is the primary key
    /// by itself.
    fn column(&mut self) -> Result<(SchemaColumn, PlacedColumn, bool), SchemaError> {
        let at = self.place();
        let name = self.name("a column")?;
        let column_type = self.column_type()?;
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
        let declaration = self.source.of(rest);
        Ok((SchemaColumn { name, made, declaration }, PlacedColumn { at, column_type }, is_key))
    }

    /// Parses the type after a column name, without advancing; only an attribute may follow the
    /// type.
    fn column_type(&self) -> Result<PlacedType, SchemaError> {
        let rest = self.tokens.get(self.position..).unwrap_or_default();
        let read = match read_type(rest) {
            Ok(read) => read,
            Err(problem) => {
                let at = Self { position: self.position + problem.token, ..self.within(self.tokens) }.place();
                return Ok(Err((at, problem)));
            }
        };
        let mut next = Self { position: self.position + read.tokens, ..self.within(self.tokens) };
        // A SERIAL column generates its own values.
        while next.position < next.tokens.len() {
            if next.accept("NULL") || next.accept("HIDDEN") || next.accept("STORED") || next.accept("VIRTUAL")
            {
                continue;
            }
            if next.is("NOT") && next.is_at(1, "NULL") || next.is("PRIMARY") && next.is_at(1, "KEY") {
                next.position += 2;
                continue;
            }
            let is_attribute = ATTRIBUTES.iter().any(|word| next.is(word))
                || next.is("AUTO_INCREMENT")
                || next.is("COLLATE");
            if !is_attribute {
                return Err(next.unexpected("a comma, or NOT NULL, DEFAULT, AS or OPTIONS behind the type"));
            }
            // Expressions are not parsed.
            break;
        }
        Ok(Ok(read))
    }

    /// Columns that a fingerprint is computed from. Its remainder may be negative if MOD occurs
    /// exactly once and ABS does not occur.
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

    /// Returns the source text up to the next comma outside parentheses, or up to a word that
    /// begins another clause.
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
    ) -> Result<PlacedIndex, SchemaError> {
        self.if_not_exists();
        let at = self.place();
        let name = self.name("the index's name")?;
        self.expect("ON", "ON and the table")?;
        let table_at = self.place();
        let table = self.name("the table of the index")?;
        let (columns, column_places): (Vec<SchemaKey>, Vec<Location>) = self.key_list()?.into_iter().unzip();
        let (mut storing, mut parent) = (Vec::new(), None);
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
                let stored = self.key_list()?;
                (index.storing, storing) = stored.into_iter().map(|(part, at)| (part.column, at)).unzip();
            } else if self.accept("INTERLEAVE") {
                let (name, at) = self.parent()?;
                (index.interleaved_in, parent) = (Some(name), Some(at));
            } else if self.accept("WHERE") {
                // In the PostgreSQL dialect, the only condition is one that filters out NULL.
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
        Ok(PlacedIndex { index, at, table: table_at, columns: column_places, storing, parent })
    }

    fn parent(&mut self) -> Result<(String, Location), SchemaError> {
        self.expect("IN", "IN after INTERLEAVE")?;
        self.accept("PARENT");
        let at = self.place();
        Ok((self.name("the table that it is interleaved in")?, at))
    }

    fn if_not_exists(&mut self) {
        if self.accept("IF") {
            self.accept("NOT");
            self.accept("EXISTS");
        }
    }

    fn key_list(&mut self) -> Result<Vec<(SchemaKey, Location)>, SchemaError> {
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
            if item.position < item.tokens.len() {
                return Err(item.unexpected("a comma, ASC or DESC behind a column of the key"));
            }
            keys.push((SchemaKey { column, descending }, at));
        }
        Ok(keys)
    }

    /// Returns the tokens between this parenthesis and the one that closes it.
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
        let Location { line, column } = self.place();
        let found =
            self.peek().map_or("the end".to_owned(), |token| format!("'{}'", quote(&token.to_string())));
        SchemaError::Unexpected { line, column, expected, found, statement: self.first_words().join(" ") }
    }
}

fn is_word(token: &Token, expected: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

/// Splits tokens at commas outside parentheses and type brackets.
fn split_at_commas(tokens: &[TokenWithSpan]) -> Vec<&[TokenWithSpan]> {
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
            CREATE TABLE Users (ShardId INT64 NOT NULL) PRIMARY KEY (ShardId);
            CREATE NULL_FILTERED INDEX ByAccess ON Logs(LastAccess) STORING (Tags), INTERLEAVE IN Users;";
        let schema = parse_schema(google).unwrap();
        let table = schema.table(Some("Logs")).unwrap();
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
                && index.storing == ["Tags"]
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
            CREATE INDEX byaccess ON logs (lastaccess DESC NULLS LAST) INCLUDE (id) WHERE lastaccess IS NOT NULL;";
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
            "CREATE TABLE t (a bigint, b bool AS (a < 5) STORED, c ARRAY<STRING(MAX)>, PRIMARY KEY (a))",
        ] {
            let schema = parse_schema(text).unwrap();
            assert_eq!(schema.tables[0].primary_key[0].column, "a");
            assert!(schema.tables[0].columns.len() == 2 + usize::from(text.contains("ARRAY")), "{text}");
        }
    }

    /// Statements that Spanner rejects, each with the reason to report. `^` marks the expected
    /// location.
    const REFUSED: [(&str, &str); 60] = [
        ("CREATE TABLE t (a ^INT6) PRIMARY KEY (a)", "CREATE TABLE t: column a: the type INT6 is unknown; types are BOOL"),
        ("CREATE TABLE t (a ^INTEGER) PRIMARY KEY (a)", "the type INTEGER is unknown; take INT64 or bigint"),
        ("CREATE TABLE t (a INT64, b ^STRNG(MAX)) PRIMARY KEY (a)", "column b: the type STRNG is unknown"),
        ("CREATE TABLE t (a INT64,\n b STRING^, c BOOL) PRIMARY KEY (a)", "STRING has no length; write STRING(n)"),
        ("CREATE TABLE t (a STRING(^0)) PRIMARY KEY (a)", "STRING has no length '0'"),
        ("CREATE TABLE t (a STRING(^9999999)) PRIMARY KEY (a)", "1 to 2621440, or MAX"),
        ("CREATE TABLE t (a BYTES(^-1)) PRIMARY KEY (a)", "BYTES has no length '-'"),
        ("CREATE TABLE t (a varchar(^MAX), PRIMARY KEY (a))", "VARCHAR has no length 'MAX'"),
        ("CREATE TABLE t (a INT64, b ^DOUBLE) PRIMARY KEY (a)", "take FLOAT64 or double precision"),
        ("CREATE TABLE t (a INT64, b ^DATETIME) PRIMARY KEY (a)", "take TIMESTAMP or timestamptz"),
        ("CREATE TABLE t (a bigint, b timestamp ^without time zone, PRIMARY KEY (a))", "Spanner has no timestamp without time zone"),
        ("CREATE TABLE t (a INT64, b ^STRUCT<x INT64>) PRIMARY KEY (a)", "the type STRUCT is unknown; take a table"),
        ("CREATE TABLE t (a INT64, b ARRAY^) PRIMARY KEY (a)", "ARRAY has no type of its elements"),
        ("CREATE TABLE t (a INT64, b ARRAY<^WORD>) PRIMARY KEY (a)", "the type WORD is unknown"),
        ("CREATE TABLE t (a INT64, b ARRAY<^ARRAY<INT64>>) PRIMARY KEY (a)", "an array of arrays is no type"),
        ("CREATE TABLE t (a INT64, b ARRAY<INT64^) PRIMARY KEY (a)", "the bracket of ARRAY< is open"),
        ("CREATE TABLE t (a bigint, b bigint[^x], PRIMARY KEY (a))", "the brackets of an array are open"),
        ("CREATE TABLE t (^a) PRIMARY KEY (a)", "column a: it has no type; write the type"),
        ("CREATE TABLE t (a INT64 ^b INT64) PRIMARY KEY (a)", "expected a comma, or NOT NULL, DEFAULT, AS or OPTIONS behind the type, found 'b'"),
        ("CREATE TABLE t (a INT64 NOT NULL ^b INT64) PRIMARY KEY (a)", "found 'b', in CREATE TABLE t"),
        ("CREATE TABLE t (a INT64, ^A INT64) PRIMARY KEY (a)", "column A is declared twice; names differ by more than their case"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (^b)", "the primary key names b, which is no column of t; declare it; t has a"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a, ^A)", "the primary key names A twice"),
        ("CREATE TABLE t (a INT64, b JSON) PRIMARY KEY (a, ^b)", "b has the type JSON, which no key takes"),
        ("CREATE TABLE t (a ARRAY<INT64>) PRIMARY KEY (^a)", "a has the type ARRAY<INT64>, which no key takes"),
        ("CREATE TABLE t (a bigint[], PRIMARY KEY (^a))", "a has the type BIGINT[], which no key takes"),
        ("CREATE TABLE ^t (a INT64)", "table t has no primary key; write PRIMARY KEY (columns)"),
        ("CREATE TABLE t (a bigint PRIMARY KEY, b bigint^ PRIMARY KEY)", "it has two primary keys; leave one"),
        ("CREATE TABLE t (a bigint PRIMARY KEY, ^PRIMARY KEY (a))", "it has two primary keys"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a ^DOWN)", "a comma, ASC or DESC behind a column of the key, found 'DOWN'"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a ^b)", "a comma, ASC or DESC"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a), INTERLEAVE IN PARENT ^p", "it is interleaved in p, which is not declared here; add the statement of p"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a), INTERLEAVE IN ^p", "it is interleaved in p, which is not declared here"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a), INTERLEAVE IN PARENT ^t", "it is interleaved in itself"),
        (
            "CREATE TABLE p (a INT64) PRIMARY KEY (a), INTERLEAVE IN PARENT ^t;
             CREATE TABLE t (a INT64, b INT64) PRIMARY KEY (a, b), INTERLEAVE IN PARENT p",
            "CREATE TABLE p: it is interleaved in itself, by way of t",
        ),
        (
            "CREATE TABLE p (a INT64) PRIMARY KEY (a);
             CREATE TABLE t (a INT64, b INT64) PRIMARY KEY (^b, a), INTERLEAVE IN PARENT p",
            "its key does not begin with that of p, in which it is interleaved; let it begin with a",
        ),
        (
            "CREATE TABLE p (a INT64) PRIMARY KEY (a DESC);
             CREATE TABLE t (a INT64, b INT64) PRIMARY KEY (^a, b), INTERLEAVE IN PARENT p",
            "its key does not begin with that of p",
        ),
        (
            "CREATE TABLE p (a INT64) PRIMARY KEY (a);
             CREATE TABLE t (a STRING(MAX), b INT64) PRIMARY KEY (^a, b), INTERLEAVE IN PARENT p",
            "of the same types and in the same order",
        ),
        (
            "CREATE TABLE p (a INT64, b INT64) PRIMARY KEY (a, b);
             CREATE TABLE t (a INT64) PRIMARY KEY (a), INTERLEAVE IN PARENT ^p",
            "let it begin with a, b",
        ),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE TABLE ^T (b INT64) PRIMARY KEY (b)", "table T is declared twice"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON ^u(a)", "index i is of table u, which is not declared here; add its statement; declared are t"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(^b)", "CREATE INDEX i: the index names b, which is no column of t"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(a, ^a)", "the index names a twice"),
        ("CREATE TABLE t (a INT64, b JSON) PRIMARY KEY (a); CREATE INDEX i ON t(^b)", "b has the type JSON, which no key takes"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(a) STORING (^c)", "STORING names c, which is no column of t"),
        ("CREATE TABLE t (a INT64, b INT64) PRIMARY KEY (a); CREATE INDEX i ON t(b) STORING (^b)", "the index has b twice"),
        ("CREATE TABLE t (a INT64, b INT64) PRIMARY KEY (a); CREATE INDEX i ON t(b) STORING (a, ^a)", "the index has a twice"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(a); CREATE INDEX ^I ON t(a)", "the name I is taken; tables and indexes share their names"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX ^t ON t(a)", "the name t is taken"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(a), INTERLEAVE IN ^p", "it is interleaved in p, which is not declared here"),
        ("CREATE INDEX i ON ^t(a)", "index i is of table t, which is not declared here"),
        ("CREATE TABLE t (a INT64, FOREIGN KEY (a) REFERENCES ^u (b)) PRIMARY KEY (a)", "a foreign key references u, which is not declared here"),
        ("CREATE TABLE t (a INT64, CONSTRAINT c FOREIGN KEY (^x) REFERENCES t (a)) PRIMARY KEY (a)", "a foreign key names x, which is no column of t"),
        ("CREATE TABLE t (a INT64, FOREIGN KEY (a) REFERENCES t (^z)) PRIMARY KEY (a)", "a foreign key names z"),
        ("CREATE TABLE t (a INT64) PRIMARY ^a", "expected KEY after PRIMARY, found 'a'"),
        ("CREATE TABLE t (^1 INT64) PRIMARY KEY (a)", "expected a column, found '1'"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a)\n^CREATE TABLE u (a INT64) PRIMARY KEY (a)", "a semicolon before the next statement"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY ^a", "expected ( and the columns of the key"),
        (
            "CREATE TABLE t (a INT64, b INT64, c INT64, d INT64, e INT64, f INT64, g INT64, h INT64, i INT64, j INT64, k INT64, l INT64, m INT64,
             n INT64, o INT64, p INT64, q INT64) PRIMARY KEY (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ^q)",
            "the primary key has 17 columns; a key has at most 16",
        ),
        ("CREATE TABLE t (a pkg.Message, b INT64) PRIMARY KEY (^a)", "a has the type PROTO, which no key takes"),
    ];

    #[test]
    fn what_spanner_refuses_is_refused_in_one_line_that_says_where() {
        let mut wrong = Vec::new();
        for (marked, message) in REFUSED {
            let at = marked.find('^').unwrap_or_else(|| panic!("{marked}"));
            let before = &marked[..at];
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            let text = marked.replacen('^', "", 1);
            let error = parse_schema(&text).map_or_else(|error| error.to_string(), |_| "taken".to_owned());
            // If something is absent, the location before it is as good as the one after it.
            let near = column.saturating_sub(8)..column + 12;
            let is_there = near
                .map(|column| format!("line {line}, column {column}: "))
                .any(|place| error.starts_with(&place));
            if !error.contains(message) || !is_there || error.contains('\n') || error.len() >= 500 {
                wrong.push(format!("line {line}, column {column}: {text}\n{error}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    }

    #[test]
    fn what_spanner_takes_is_taken() {
        for text in [
            "CREATE TABLE t (a FLOAT64, b NUMERIC, c UUID, d DATE, e BYTES(16), f BOOL) PRIMARY KEY (a, b DESC, c, d ASC, e, f)",
            "CREATE TABLE t (a numeric(10, 2), b double precision, c character varying(10), d text, e timestamp with time zone, \
             f spanner.commit_timestamp, g bigint[], h float8, i int8, PRIMARY KEY (a, c, f))",
            "CREATE TABLE t (a INT64 NOT NULL HIDDEN, b STRING(MAX) NOT NULL DEFAULT (\"x, y\") OPTIONS (x = 1), c ARRAY<FLOAT32>(vector_length=>128), \
             d `my.pkg.Message`, e my.pkg.Kind, f TOKENLIST AS (TOKENIZE_FULLTEXT(b)) STORED HIDDEN, CHECK (a > 5)) PRIMARY KEY (a)",
            "CREATE TABLE t (a INT64 NOT NULL GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE), b JSON) PRIMARY KEY (a), ROW DELETION POLICY (x)",
            "CREATE TABLE t (a INT64 AUTO_INCREMENT PRIMARY KEY, b STRING(36) UNIQUE)",
            "CREATE TABLE c (a INT64, b INT64) PRIMARY KEY (A, b), INTERLEAVE IN PARENT p; CREATE TABLE p (A INT64) PRIMARY KEY (a);
             CREATE UNIQUE INDEX i ON c(a, b DESC) STORING (), INTERLEAVE IN P",
        ] {
            // Spanner does not allow an empty list.
            let text = text.replace(" STORING ()", "");
            parse_schema(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
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
