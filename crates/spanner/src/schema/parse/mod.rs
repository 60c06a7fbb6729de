//! Parses the keys of `CREATE TABLE` and `CREATE INDEX` in GoogleSQL and the PostgreSQL dialect.

mod column;
mod index;
mod statement;
mod table;

use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::schema::error::SchemaError;
use crate::schema::parse::statement::{Source, Statement};
use crate::schema::placed::ParsedStatements;
use crate::schema::tables::Schema;
use evenkeel_model::remark::Remark;

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
    let (mut schema, mut placed) = (Schema::default(), ParsedStatements::default());
    for statement in tokens.split(|token| matches!(token.token, Token::SemiColon | Token::EOF)) {
        if !statement.is_empty() {
            read_statement(Statement::new(statement, &source), &mut placed, &mut schema.notes)?;
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

fn read_statement(
    mut statement: Statement<'_>,
    placed: &mut ParsedStatements,
    notes: &mut Vec<Remark>,
) -> Result<(), SchemaError> {
    let first = statement.first_words();
    let (mut null_filtered, mut unique) = (false, false);
    let mut is_known = statement.accept("CREATE");
    while is_known {
        if statement.accept("TABLE") {
            placed.tables.push(statement.table()?);
            return Ok(());
        }
        if statement.accept("INDEX") {
            placed.indexes.push(statement.index(null_filtered, unique, notes)?);
            return Ok(());
        }
        let (is_null_filtered, is_unique) = (statement.accept("NULL_FILTERED"), statement.accept("UNIQUE"));
        null_filtered |= is_null_filtered;
        unique |= is_unique;
        is_known = is_null_filtered || is_unique;
    }
    notes.push(Remark::new("statement_left_out", format!("left out: {} ...", first.join(" "))));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tables::{Made, SchemaKey, Shard};

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
        assert_eq!(schema.notes, [Remark::new("statement_left_out", "left out: CREATE SEQUENCE Ids ...")]);

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
        ("CREATE TABLE t (a ^INTEGER) PRIMARY KEY (a)", "the type INTEGER is unknown; use INT64 or bigint"),
        ("CREATE TABLE t (a INT64, b ^STRNG(MAX)) PRIMARY KEY (a)", "column b: the type STRNG is unknown"),
        ("CREATE TABLE t (a INT64,\n b STRING^, c BOOL) PRIMARY KEY (a)", "STRING has no length; write STRING(n)"),
        ("CREATE TABLE t (a STRING(^0)) PRIMARY KEY (a)", "STRING has no length '0'"),
        ("CREATE TABLE t (a STRING(^9999999)) PRIMARY KEY (a)", "1 to 2621440, or MAX"),
        ("CREATE TABLE t (a BYTES(^-1)) PRIMARY KEY (a)", "BYTES has no length '-'"),
        ("CREATE TABLE t (a varchar(^MAX), PRIMARY KEY (a))", "VARCHAR has no length 'MAX'"),
        ("CREATE TABLE t (a INT64, b ^DOUBLE) PRIMARY KEY (a)", "use FLOAT64 or double precision"),
        ("CREATE TABLE t (a INT64, b ^DATETIME) PRIMARY KEY (a)", "use TIMESTAMP or timestamptz"),
        ("CREATE TABLE t (a bigint, b timestamp ^without time zone, PRIMARY KEY (a))", "Spanner has no timestamp without time zone"),
        ("CREATE TABLE t (a INT64, b ^STRUCT<x INT64>) PRIMARY KEY (a)", "the type STRUCT is unknown; use a separate table"),
        ("CREATE TABLE t (a INT64, b ARRAY^) PRIMARY KEY (a)", "ARRAY has no element type"),
        ("CREATE TABLE t (a INT64, b ARRAY<^WORD>) PRIMARY KEY (a)", "the type WORD is unknown"),
        ("CREATE TABLE t (a INT64, b ARRAY<^ARRAY<INT64>>) PRIMARY KEY (a)", "an array of arrays is not a type"),
        ("CREATE TABLE t (a INT64, b ARRAY<INT64^) PRIMARY KEY (a)", "the bracket of ARRAY< is open"),
        ("CREATE TABLE t (a bigint, b bigint[^x], PRIMARY KEY (a))", "the brackets of an array are open"),
        ("CREATE TABLE t (^a) PRIMARY KEY (a)", "column a: it has no type; write the type"),
        ("CREATE TABLE t (a INT64 ^b INT64) PRIMARY KEY (a)", "expected a comma, or NOT NULL, DEFAULT, AS or OPTIONS after the type, found 'b'"),
        ("CREATE TABLE t (a INT64 NOT NULL ^b INT64) PRIMARY KEY (a)", "found 'b', in CREATE TABLE t"),
        ("CREATE TABLE t (a INT64, ^A INT64) PRIMARY KEY (a)", "column A is declared twice; names differ by more than their case"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (^b)", "the primary key names b, which is not a column of t; declare it; t has a"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a, ^A)", "the primary key names A twice"),
        ("CREATE TABLE t (a INT64, b JSON) PRIMARY KEY (a, ^b)", "b has the type JSON, which keys cannot have"),
        ("CREATE TABLE t (a ARRAY<INT64>) PRIMARY KEY (^a)", "a has the type ARRAY<INT64>, which keys cannot have"),
        ("CREATE TABLE t (a bigint[], PRIMARY KEY (^a))", "a has the type BIGINT[], which keys cannot have"),
        ("CREATE TABLE ^t (a INT64)", "table t has no primary key; write PRIMARY KEY (columns)"),
        ("CREATE TABLE t (a bigint PRIMARY KEY, b bigint^ PRIMARY KEY)", "it has two primary keys; leave one"),
        ("CREATE TABLE t (a bigint PRIMARY KEY, ^PRIMARY KEY (a))", "it has two primary keys"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a ^DOWN)", "a comma, ASC or DESC after a column of the key, found 'DOWN'"),
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
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(^b)", "CREATE INDEX i: the index names b, which is not a column of t"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(a, ^a)", "the index names a twice"),
        ("CREATE TABLE t (a INT64, b JSON) PRIMARY KEY (a); CREATE INDEX i ON t(^b)", "b has the type JSON, which keys cannot have"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(a) STORING (^c)", "STORING names c, which is not a column of t"),
        ("CREATE TABLE t (a INT64, b INT64) PRIMARY KEY (a); CREATE INDEX i ON t(b) STORING (^b)", "the index has b twice"),
        ("CREATE TABLE t (a INT64, b INT64) PRIMARY KEY (a); CREATE INDEX i ON t(b) STORING (a, ^a)", "the index has a twice"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(a); CREATE INDEX ^I ON t(a)", "the name I is taken; tables and indexes share their names"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX ^t ON t(a)", "the name t is taken"),
        ("CREATE TABLE t (a INT64) PRIMARY KEY (a); CREATE INDEX i ON t(a), INTERLEAVE IN ^p", "it is interleaved in p, which is not declared here"),
        ("CREATE INDEX i ON ^t(a)", "index i is of table t, which is not declared here"),
        ("CREATE TABLE t (a INT64, FOREIGN KEY (a) REFERENCES ^u (b)) PRIMARY KEY (a)", "a foreign key references u, which is not declared here"),
        ("CREATE TABLE t (a INT64, CONSTRAINT c FOREIGN KEY (^x) REFERENCES t (a)) PRIMARY KEY (a)", "a foreign key names x, which is not a column of t"),
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
        ("CREATE TABLE t (a pkg.Message, b INT64) PRIMARY KEY (^a)", "a has the type PROTO, which keys cannot have"),
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
    fn a_fingerprint_of_columns_is_a_shard_and_one_of_their_functions_is_not() {
        let shard = |expression: &str| {
            let column =
                format!("s INT64 NOT NULL AS (MOD(FARM_FINGERPRINT({expression}), 16)) STORED HIDDEN");
            let text = format!("CREATE TABLE t (a INT64, b STRING(MAX), {column}) PRIMARY KEY (s, a)");
            let schema = parse_schema(&text).unwrap();
            match &schema.tables[0].columns[2].made {
                Some(Made::Shard(shard)) => Some(shard.columns.clone()),
                _ => None,
            }
        };
        assert_eq!(shard("CAST(a AS STRING(20))"), Some(vec!["a".into()]));
        assert_eq!(
            shard("CONCAT(CAST(CAST(a AS NUMERIC) AS STRING), '-', b)"),
            Some(vec!["a".into(), "b".into()])
        );
        assert_eq!(shard("b || CAST(a AS STRING)"), Some(vec!["b".into(), "a".into()]));
        assert_eq!(shard("a::text || b"), Some(vec!["a".into(), "b".into()]));
        assert_eq!(shard("LOWER(b)"), None);
        assert_eq!(shard("CONCAT(b, FORMAT('%d', a))"), None);
    }

    #[test]
    fn no_cut_of_a_schema_panics() {
        let text = "CREATE TABLE a.t (x INT64 AS (MOD(FARM_FINGERPRINT('y'), 5)) STORED, PRIMARY KEY (x DESC)), INTERLEAVE IN p;";
        for end in 0..text.len() {
            let _ = parse_schema(&text[..end]);
        }
    }
}
