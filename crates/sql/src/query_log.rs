//! Query logs of other systems: statements with the number of times that each of them ran.
//!
//! | log | text | runs |
//! |---|---|---|
//! | YDB `.sys/query_metrics_one_minute` | `QueryText` | `Count` |
//! | PostgreSQL `pg_stat_statements` | `query` | `calls` |
//! | ClickHouse `system.query_log` | `query` | one per row, of finished queries by users |
//! | Spanner `QUERY_STATS_TOP_*` | `TEXT` | `EXECUTION_COUNT` |

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, Word};

use crate::statements::{Statement, StatementsError};
use evenkeel_input::source::{Export, InputOptions, OnUnreadable, SourceError, find_inputs};

/// Names of the column with the text of a statement, in lower case; the first existing one counts.
const TEXTS: [&str; 7] = ["querytext", "query_text", "text", "query", "statement", "sql", "normalized_query"];
/// Names of the column with the number of runs, in lower case.
const RUNS: [&str; 7] = ["count", "calls", "execution_count", "runs", "executions", "cnt", "count()"];
/// Maximum number of statements that are planned, by number of runs.
const MAX_STATEMENTS: usize = 1000;
/// Maximum length of a statement in bytes.
const LONGEST: usize = 1 << 20;

/// A query log: its reads of one table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryLog {
    /// Statements, by number of runs, most first. Statements that differ only in literals count as
    /// one.
    pub statements: Vec<Statement>,
    /// Number of runs of all statements.
    pub runs: f64,
    /// Number of runs that write, or do something else than read.
    pub runs_of_others: f64,
    /// Number of runs that read other tables.
    pub runs_on_other_tables: f64,
    /// Number of runs of statements beyond the 1,000 that ran most.
    pub runs_beyond: f64,
}

/// Whether a file holds a query log rather than SQL.
#[must_use]
pub fn is_query_log(path: &Path) -> bool {
    let is_sql = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sql"));
    path.is_file() && !is_sql && is_tabular(path)
}

fn is_tabular(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let endings = ["csv", "tsv", "ndjson", "jsonl", "json", "parquet", "pq", "arrow", "feather"];
    name.split('.').skip(1).any(|part| endings.contains(&part))
}

/// Reads the query log in a file. `table` is the name of the table of the export: statements on
/// others are left out, unless no statement names it.
///
/// # Errors
/// [`StatementsError`] if the file cannot be read, or has no column of statements.
pub fn read_query_log(path: &Path, table: &str) -> Result<QueryLog, StatementsError> {
    let log = |source| StatementsError::Log { path: path.to_owned(), source: Box::new(source) };
    let inputs = find_inputs(&[path.display().to_string()], None).map_err(log)?;
    let options = InputOptions { header_given: true, ..InputOptions::default() };
    let export = Export::open(&inputs.paths, options, &BTreeMap::new()).map_err(log)?;
    let names: Vec<String> = export.columns().iter().map(|column| column.name.clone()).collect();
    let position = |known: &[&str]| {
        known.iter().find_map(|known| names.iter().position(|name| name.eq_ignore_ascii_case(known)))
    };
    let Some(text) = position(&TEXTS) else {
        return Err(StatementsError::NoText { path: path.to_owned(), found: names });
    };
    let runs = position(&RUNS);
    let mut kinds: HashMap<String, Kind> = HashMap::new();
    let mut together = LogTotals::default();
    export
        .read::<SourceError>(OnUnreadable::Skip, |_, batch| {
            for (sql, runs) in rows_of(&batch, text, runs, &names) {
                let kind = kinds.entry(sql.clone()).or_insert_with(|| Kind::from_text(&sql));
                together.add(kind, runs);
            }
            Ok(true)
        })
        .map_err(log)?;
    Ok(together.log(table))
}

/// Returns the text and the runs of each row that counts.
fn rows_of(batch: &RecordBatch, text: usize, runs: Option<usize>, names: &[String]) -> Vec<(String, f64)> {
    let texts = |position: usize| cast(batch.column(position), &DataType::Utf8).ok();
    let Some(sql) = texts(text) else { return Vec::new() };
    let counts = runs.and_then(|position| cast(batch.column(position), &DataType::Float64).ok());
    // The log of ClickHouse has a row when a query begins, and one when it ends or fails.
    let named = |name: &str| names.iter().position(|column| column == name).and_then(texts);
    let (kind, initial) = (named("type"), named("is_initial_query"));
    let counts_row = |row: usize| {
        let is = |column: &Option<_>, wanted: &[&str]| {
            column.as_ref().is_none_or(|column: &arrow::array::ArrayRef| {
                let column = column.as_string::<i32>();
                column.is_null(row) || wanted.contains(&column.value(row))
            })
        };
        is(&kind, &["QueryFinish", "2"]) && is(&initial, &["1", "true"])
    };
    let sql = sql.as_string::<i32>();
    let weight = |row: usize| match &counts {
        Some(counts) if counts.is_valid(row) => counts.as_primitive::<Float64Type>().value(row).max(0.0),
        Some(_) => 0.0,
        None => 1.0,
    };
    let rows = (0..batch.num_rows()).filter(|row| sql.is_valid(*row) && counts_row(*row));
    rows.map(|row| (sql.value(row).to_owned(), weight(row))).collect()
}

/// Kind of a statement of a log.
enum Kind {
    Read(Read),
    Other,
}

/// A statement that reads.
#[derive(Clone)]
struct Read {
    /// Text for the planner: names of tables without their schema, parameters with `$`.
    sql: String,
    /// The text without literals, which statements that differ only in these share.
    form: String,
    /// Tables that it reads, without their schema.
    tables: Vec<String>,
}

impl Kind {
    fn from_text(text: &str) -> Self {
        let tokens =
            (text.len() <= LONGEST).then(|| Tokenizer::new(&GenericDialect {}, text).tokenize().ok());
        let Some(tokens) = tokens.flatten() else { return Self::Other };
        let is_blank = |token: &Token| matches!(token, Token::Whitespace(_));
        // Declarations and settings precede the statement itself.
        let mut statements = tokens.split(|token| *token == Token::SemiColon);
        let reads = |part: &&[Token]| {
            let first = part.iter().find(|token| !is_blank(token));
            matches!(first, Some(Token::LParen)) || ["SELECT", "WITH"].iter().any(|word| is_word(first, word))
        };
        match statements.find(reads) {
            Some(tokens) => Self::Read(Read::from_tokens(tokens)),
            None => Self::Other,
        }
    }
}

fn is_word(token: Option<&Token>, word: &str) -> bool {
    matches!(token, Some(Token::Word(parsed)) if parsed.value.eq_ignore_ascii_case(word))
}

/// Last part of a name: `events` of `public.events` and of `ads/events`.
fn last_part(name: &str) -> String {
    name.rsplit(['/', '.']).next().unwrap_or_default().to_owned()
}

fn quoted(name: &str) -> Token {
    Token::Word(Word {
        value: name.to_owned(),
        quote_style: Some('"'),
        keyword: datafusion::sql::sqlparser::keywords::Keyword::NoKeyword,
    })
}

impl Read {
    fn from_tokens(tokens: &[Token]) -> Self {
        let tokens: Vec<&Token> =
            tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        let mut read = Self { sql: String::new(), form: String::new(), tables: Vec::new() };
        let (mut at, mut unnamed) = (0, 0);
        let mut form: Vec<String> = Vec::new();
        while let Some(token) = tokens.get(at).copied() {
            // ClickHouse allows clauses after a query that the planner does not know.
            let is_addition = is_word(Some(token), "SETTINGS") || is_word(Some(token), "FORMAT");
            if is_addition && matches!(tokens.get(at + 1), Some(Token::Word(_))) && !read.tables.is_empty() {
                break;
            }
            let next = |ahead: usize| tokens.get(at + ahead).copied();
            let mut taken = 1;
            let written = match token {
                Token::Word(word) if is_before_table(at, &tokens) => {
                    let mut name = word.value.clone();
                    while let (Some(Token::Period), Some(Token::Word(part))) = (next(taken), next(taken + 1))
                    {
                        name = part.value.clone();
                        taken += 2;
                    }
                    let name = last_part(&name);
                    read.tables.push(name.clone());
                    quoted(&name)
                }
                Token::Word(word) if word.quote_style.is_none() && word.value.starts_with('@') => {
                    Token::Placeholder(word.value.replacen('@', "$", 1))
                }
                Token::Placeholder(name) if name == "?" => {
                    unnamed += 1;
                    Token::Placeholder(format!("$unnamed{unnamed}"))
                }
                Token::LBrace => match (next(1), next(2), next(3), next(4)) {
                    (Some(Token::Word(name)), Some(Token::Colon), Some(_), Some(Token::RBrace)) => {
                        taken = 5;
                        Token::Placeholder(format!("${}", name.value))
                    }
                    _ => token.clone(),
                },
                _ => token.clone(),
            };
            at += taken;
            let is_literal =
                matches!(written, Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_));
            let word = if is_literal { "?".to_owned() } else { written.to_string() };
            // Lists of any length are of one form.
            let repeats = matches!(form.as_slice(), [.., literal, comma] if literal == "?" && comma == ",");
            if is_literal && repeats {
                form.pop();
            } else {
                form.push(word.to_lowercase());
            }
            read.sql.push_str(&written.to_string());
            read.sql.push(' ');
        }
        read.form = form.join(" ");
        read
    }
}

/// Whether the word at a position is the name of a table: one that follows FROM, JOIN or a comma in
/// a list of tables is, unless it is a function.
fn is_before_table(at: usize, tokens: &[&Token]) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before).copied());
    (is_word(before, "FROM") || is_word(before, "JOIN"))
        && tokens.get(at + 1).copied() != Some(&Token::LParen)
}

/// Statements of one form, added up.
#[derive(Default)]
struct LogTotals {
    runs: f64,
    runs_of_others: f64,
    by_form: BTreeMap<String, (Read, f64)>,
}

impl LogTotals {
    fn add(&mut self, kind: &Kind, runs: f64) {
        self.runs += runs;
        match kind {
            Kind::Other => self.runs_of_others += runs,
            Kind::Read(read) => {
                let entry = self.by_form.entry(read.form.clone());
                entry.or_insert_with(|| (read.clone(), 0.0)).1 += runs;
            }
        }
    }

    fn log(self, table: &str) -> QueryLog {
        let mut reads: Vec<(Read, f64)> = self.by_form.into_values().collect();
        reads.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let table = last_part(table);
        let is_on_table =
            |(read, _): &(Read, f64)| read.tables.iter().any(|name| name.eq_ignore_ascii_case(&table));
        let mut log =
            QueryLog { runs: self.runs, runs_of_others: self.runs_of_others, ..QueryLog::default() };
        if reads.iter().any(is_on_table) {
            let (on_table, others): (Vec<_>, Vec<_>) = reads.into_iter().partition(is_on_table);
            log.runs_on_other_tables = others.iter().map(|(_, runs)| runs).sum();
            reads = on_table;
        }
        log.runs_beyond = reads.iter().skip(MAX_STATEMENTS).map(|(_, runs)| runs).sum();
        let statement = |(number, (read, runs)): (usize, (Read, f64))| Statement {
            name: format!("q{number}"),
            sql: read.sql.trim_end().to_owned(),
            runs,
        };
        log.statements = (1..).zip(reads.into_iter().take(MAX_STATEMENTS)).map(statement).collect();
        log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(name: &str, text: &str, table: &str) -> QueryLog {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        assert!(is_query_log(&path));
        read_query_log(&path, table).unwrap()
    }

    fn runs(log: &QueryLog) -> Vec<(&str, f64)> {
        log.statements.iter().map(|statement| (statement.sql.as_str(), statement.runs)).collect()
    }

    #[test]
    fn a_log_of_ydb_adds_up_minutes_and_literals_and_leaves_out_the_rest() {
        let lines = [
            (
                "--!syntax_v1\nPRAGMA TablePathPrefix('/x');\nDECLARE $u AS Utf8;\nSELECT * FROM `ads/events` WHERE user_id = $u;",
                70,
            ),
            ("SELECT * FROM `ads/events` WHERE user_id = 'u1'", 20),
            ("SELECT * FROM `ads/events` WHERE campaign_id IN (1, 2, 3)", 4),
            ("SELECT * FROM `ads/events` WHERE campaign_id IN (7)", 1),
            ("UPSERT INTO `ads/events` (id) VALUES (1)", 3),
            ("SELECT * FROM `ads/users`", 2),
        ];
        let text: String = lines
            .map(|(sql, count)| serde_json::json!({"QueryText": sql, "Count": count}).to_string() + "\n")
            .concat();
        let log = log("log.ndjson", &text, "events");
        assert_eq!(
            runs(&log),
            [
                ("SELECT * FROM \"events\" WHERE user_id = $u", 90.0),
                ("SELECT * FROM \"events\" WHERE campaign_id IN ( 1 , 2 , 3 )", 5.0),
            ]
        );
        assert_eq!((log.runs, log.runs_of_others, log.runs_on_other_tables), (100.0, 3.0, 2.0));
    }

    #[test]
    fn logs_of_postgresql_spanner_and_clickhouse() {
        let text = "query,calls\n\"SELECT * FROM public.events WHERE id = $1\",7\n\"BEGIN\",9\n";
        let query_log = log("pg.csv", text, "events");
        assert_eq!(runs(&query_log), [("SELECT * FROM \"events\" WHERE id = $1", 7.0)]);
        assert_eq!((query_log.runs, query_log.runs_of_others), (16.0, 9.0));
        let text = "TEXT,EXECUTION_COUNT\nSELECT a FROM Singers WHERE SingerId = @id,5\n";
        assert_eq!(
            runs(&log("spanner.csv", text, "x")),
            [("SELECT a FROM \"Singers\" WHERE SingerId = $id", 5.0)]
        );
        let text = "type,is_initial_query,query\nQueryStart,1,SELECT n FROM db.hits WHERE id = {id:UInt64}\n\
                    QueryFinish,1,SELECT n FROM db.hits WHERE id = {id:UInt64}\n\
                    QueryFinish,0,SELECT n FROM db.hits WHERE id = 3\nQueryFinish,1,SELECT n FROM db.hits WHERE id = 4\n";
        assert_eq!(runs(&log("ch.csv", text, "hits")), [("SELECT n FROM \"hits\" WHERE id = $id", 2.0)]);
    }

    #[test]
    fn a_log_without_statements_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        let error = read_query_log(&path, "t").unwrap_err().to_string();
        assert!(error.contains("no column has the text of statements") && error.contains("a, b"), "{error}");
        assert!(!is_query_log(folder.path()) && !is_query_log(Path::new("no/such/file.csv")));
    }
}
