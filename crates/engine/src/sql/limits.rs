//! Limits on SQL before it is parsed and planned: parser, planner and evaluator recurse over a
//! statement, and the time of some steps doubles with each level.
//!
//! ```text
//! text -> bytes -> tokens: count, depth of the tree they can form, numbers out of range -> parsed
//!      -> tables, each counted once per expansion of a WITH query that names it -> planned
//! ```
//! The text is measured rather than the tree: parsing a tree that is too deep, or even dropping it,
//! overflows the stack.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use datafusion::error::DataFusionError;
use datafusion::sql::parser::{DFParser, Statement};
use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use thiserror::Error;

/// Most bytes of one SQL text. A list of 50,000 keys has about half of that.
pub const MOST_BYTES: usize = 1 << 20;

/// Most words and signs of one text, not counting whitespace and comments.
pub const MOST_TOKENS: usize = 250_000;

/// Most nested levels of parentheses, brackets and CASE. Some rules of the parser try an expression
/// twice on each level.
pub const MOST_LEVELS: u32 = 24;

/// Most nested levels that the parser or the planner visits twice, so that each further level
/// doubles the time: subqueries, BETWEEN, IN, LIKE and functions that become CASE.
pub const MOST_DOUBLINGS: u32 = 8;

/// Functions that the planner replaces by a CASE in which an argument appears twice.
const DOUBLING: [&str; 5] = ["coalesce", "ifnull", "nvl", "nvl2", "nullif"];

/// Most operators and keywords between the root of an expression and its deepest operand. A tokio
/// thread's stack of 2 MiB is enough for that.
pub const MOST_DEPTH: u32 = 500;

/// Most uses of UNION, INTERSECT and EXCEPT in one text.
pub const MOST_SET_OPERATIONS: u32 = 100;

/// Most tables that a statement may name; those of a WITH query count once per expansion.
pub const MOST_TABLES: u64 = 128;

/// Most bytes of a name. The planner searches all known names for the most similar one, in a time
/// that grows with the length.
pub const MOST_NAME_BYTES: usize = 4096;

/// SQL that is refused before it is planned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum SqlLimitError {
    #[error("the SQL has {found} bytes; the limit is {MOST_BYTES}. Put long lists of values into a table")]
    Bytes { found: usize },
    #[error(
        "the SQL has {found} words and signs; the limit is {MOST_TOKENS}. Put long lists of values into a \
            table"
    )]
    Tokens { found: usize },
    #[error(
        "line {line}, column {column} of the SQL is nested more than {MOST_LEVELS} levels deep; give its inner parts names \
         in a WITH clause"
    )]
    Levels { line: u64, column: u64 },
    #[error(
        "line {line}, column {column} of the SQL: more than {MOST_DOUBLINGS} subqueries, or values of BETWEEN, IN, LIKE or coalesce, \
         are nested in each other; give the inner ones names in a WITH clause"
    )]
    Doublings { line: u64, column: u64 },
    #[error(
        "line {line}, column {column} of the SQL: this expression chains more than {MOST_DEPTH} operators and keywords, with \
         +, -, * and || counting twice; write many alternatives as column IN (...)"
    )]
    Depth { line: u64, column: u64 },
    #[error(
        "the SQL has more than {MOST_SET_OPERATIONS} of UNION, INTERSECT and EXCEPT; write rows as VALUES (...), (...)"
    )]
    SetOperations,
    #[error(
        "the SQL reads more than {MOST_TABLES} tables, counting those of a WITH query each time that it is named; run it in parts"
    )]
    Tables,
    #[error(
        "line {line}, column {column} of the SQL: a name has at most {MOST_NAME_BYTES} bytes, not {found}"
    )]
    Name { found: usize, line: u64, column: u64 },
    #[error("line {line}, column {column} of the SQL: DECIMAL has at most {MOST_PRECISION} digits, not {}", shortened(.number))]
    Precision { number: String, line: u64, column: u64 },
    #[error("line {line}, column {column} of the SQL: {} is beyond the range of Double", shortened(.number))]
    Double { number: String, line: u64, column: u64 },
    #[error(
        "line {line}, column {column} of the SQL: {number} is beyond the range of Int64 and Uint64; write \
         CAST('{number}' AS DECIMAL(38, 0)), or {number}.0 for a Double",
        number = shortened(.number)
    )]
    Integer { number: String, line: u64, column: u64 },
    #[error(
        "line {line}, column {column} of the SQL: {number} has more than the {DOUBLE_DIGITS} digits that a Double keeps; write \
         CAST('{number}' AS DECIMAL({precision}, {scale})), or fewer digits",
        number = shortened(.number)
    )]
    Digits { number: String, precision: usize, scale: usize, line: u64, column: u64 },
}

/// Digits that tell every two doubles apart; a number with more of them is meant to be exact.
const DOUBLE_DIGITS: usize = 17;

/// Most digits of a decimal. The planner keeps only the low eight bits of a precision.
const MOST_PRECISION: u64 = 76;

/// Most digits of a number that a message quotes.
const QUOTED_DIGITS: usize = 40;

fn shortened(number: &str) -> String {
    match number.char_indices().nth(QUOTED_DIGITS) {
        Some((end, _)) => format!("{}...", number.get(..end).unwrap_or_default()),
        None => number.to_owned(),
    }
}

impl From<SqlLimitError> for DataFusionError {
    fn from(error: SqlLimitError) -> Self {
        Self::External(Box::new(error))
    }
}

/// A level of parentheses, brackets or CASE.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// Whether it encloses the precision of a decimal.
    of_decimal: bool,
    /// Whether CASE opened it, so that END closes it.
    of_case: bool,
    /// Whether its contents are visited twice.
    doubles: bool,
    /// Operators and keywords since the last AND.
    operators: u32,
    /// Depth of the deepest level closed since the last AND.
    inner: u32,
    /// Number of ANDs since the last OR. `linked_by_and` is the depth of their operands.
    ands: u32,
    linked_by_and: u32,
    /// Number of ORs since the last comma. `linked_by_or` is the depth of their operands.
    ors: u32,
    linked_by_or: u32,
    /// Depth of the text before the last comma.
    before: u32,
    /// Most nested levels visited twice among those closed inside it.
    inner_doublings: u32,
}

impl Level {
    /// Upper bound on the depth of the tree for the text since the last comma: chains of operators
    /// lean to the left, OR links chains of AND, and AND links all other chains.
    fn depth(&self) -> u32 {
        self.ors.saturating_add(self.linked_by_or.max(self.depth_of_ands()))
    }

    fn depth_of_ands(&self) -> u32 {
        self.ands.saturating_add(self.linked_by_and.max(self.operators.saturating_add(self.inner)))
    }

    fn meet_and(&mut self) {
        self.linked_by_and = self.linked_by_and.max(self.operators.saturating_add(self.inner));
        self.ands += 1;
        (self.operators, self.inner) = (0, 0);
    }

    fn meet_or(&mut self) {
        self.linked_by_or = self.linked_by_or.max(self.depth_of_ands());
        self.ors += 1;
        (self.operators, self.inner, self.ands, self.linked_by_and) = (0, 0, 0, 0);
    }

    /// Begins another expression on the same level.
    fn meet_separator(&mut self) {
        let before = self.before.max(self.depth());
        let Self { of_case, doubles, inner_doublings, .. } = *self;
        *self = Self { of_case, doubles, inner_doublings, before, ..Self::default() };
    }

    /// Number of nested levels visited twice: those closed inside it, and the level itself.
    fn doublings(&self) -> u32 {
        self.inner_doublings + u32::from(self.doubles)
    }
}

/// Checks text before it is parsed as SQL. Text that is not SQL passes, and is left to the parser.
///
/// # Errors
/// [`SqlLimitError`] if it is too long, too deep, or has a number that no type holds.
pub fn check_text(sql: &str) -> Result<(), SqlLimitError> {
    if sql.len() > MOST_BYTES {
        return Err(SqlLimitError::Bytes { found: sql.len() });
    }
    let Ok(mut tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location() else {
        return Ok(());
    };
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    if tokens.len() > MOST_TOKENS {
        return Err(SqlLimitError::Tokens { found: tokens.len() });
    }
    let mut levels: Vec<Level> = Vec::new();
    let mut level = Level::default();
    let mut set_operations = 0;
    let mut before: &Token = &Token::EOF;
    for token in &tokens {
        let (line, column) = (token.span.start.line, token.span.start.column);
        let opens_case = matches!(&token.token, Token::Word(word) if word.keyword == Keyword::CASE);
        let closes_case =
            level.of_case && matches!(&token.token, Token::Word(word) if word.keyword == Keyword::END);
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(level);
                level = Level {
                    doubles: is_doubling_function(before),
                    of_decimal: is_decimal(before),
                    ..Level::default()
                };
            }
            _ if opens_case => {
                levels.push(level);
                level = Level { of_case: true, ..Level::default() };
            }
            Token::RParen | Token::RBracket | Token::RBrace => close(&mut level, &mut levels),
            _ if closes_case => close(&mut level, &mut levels),
            Token::Comma | Token::SemiColon => level.meet_separator(),
            Token::Number(number, _) => {
                check_number(number, line, column)?;
                let is_precision = level.of_decimal && before == &Token::LParen;
                if is_precision && number.parse::<u64>().is_ok_and(|digits| digits > MOST_PRECISION) {
                    return Err(SqlLimitError::Precision { number: number.clone(), line, column });
                }
            }
            Token::Word(word) if word.value.len() > MOST_NAME_BYTES => {
                return Err(SqlLimitError::Name { found: word.value.len(), line, column });
            }
            Token::Word(word) => match word.keyword {
                Keyword::NoKeyword => {}
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS => {
                    set_operations += 1;
                    level.meet_separator();
                }
                Keyword::AND => level.meet_and(),
                Keyword::OR | Keyword::XOR => level.meet_or(),
                Keyword::WHERE | Keyword::HAVING | Keyword::ON => level.meet_separator(),
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE if level.of_case => level.meet_separator(),
                keyword => {
                    if keyword == Keyword::SELECT {
                        level.meet_separator();
                    }
                    // A keyword after a sign is a name, as in `a + date`.
                    level.operators += u32::from(!is_sign(before));
                    level.doubles |= is_doubling_keyword(keyword);
                }
            },
            // These are planned as functions, and resolving their types recurses deeper.
            Token::StringConcat | Token::Plus | Token::Minus | Token::Mul => level.operators += 2,
            other if is_sign(other) => level.operators += 1,
            _ => {}
        }
        if levels.len() > MOST_LEVELS as usize {
            return Err(SqlLimitError::Levels { line, column });
        }
        if level.doublings() > MOST_DOUBLINGS {
            return Err(SqlLimitError::Doublings { line, column });
        }
        if level.depth() > MOST_DEPTH {
            return Err(SqlLimitError::Depth { line, column });
        }
        if set_operations > MOST_SET_OPERATIONS {
            return Err(SqlLimitError::SetOperations);
        }
        before = &token.token;
    }
    Ok(())
}

fn is_doubling_function(token: &Token) -> bool {
    matches!(token, Token::Word(word) if DOUBLING.iter().any(|name| word.value.eq_ignore_ascii_case(name)))
}

fn is_decimal(token: &Token) -> bool {
    use Keyword as K;
    matches!(token, Token::Word(word) if matches!(word.keyword, K::DECIMAL | K::NUMERIC | K::DEC | K::BIGDECIMAL | K::BIGNUMERIC))
}

fn is_doubling_keyword(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(keyword, K::SELECT | K::BETWEEN | K::IN | K::LIKE | K::ILIKE | K::SIMILAR)
}

/// Closes a level. Its depth becomes that of an operand of the enclosing level.
fn close(level: &mut Level, levels: &mut Vec<Level>) {
    let depth = level.before.max(level.depth()).saturating_add(1);
    if let Some(mut outer) = levels.pop() {
        outer.inner = outer.inner.max(depth);
        outer.inner_doublings = outer.inner_doublings.max(level.doublings());
        *level = outer;
    }
}

/// Whether a token is an operator sign: neither a word nor a value, separator or bracket.
fn is_sign(token: &Token) -> bool {
    !matches!(
        token,
        Token::EOF
            | Token::Word(_)
            | Token::Number(..)
            | Token::Comma
            | Token::SemiColon
            | Token::LParen
            | Token::RParen
            | Token::LBracket
            | Token::RBracket
            | Token::LBrace
            | Token::RBrace
            | Token::Period
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
    )
}

/// Refuses a number that would be read as an infinite Double, and one that would lose digits as a
/// Double: a Decimal that has the number would not equal it.
fn check_number(number: &str, line: u64, column: u64) -> Result<(), SqlLimitError> {
    let number = number.to_owned();
    if number.parse::<f64>().is_ok_and(f64::is_infinite) {
        return Err(SqlLimitError::Double { number, line, column });
    }
    let is_whole = number.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && number.parse::<u64>().is_err() {
        return Err(SqlLimitError::Integer { number, line, column });
    }
    if let Some((whole, fraction)) = number.split_once('.')
        && !fraction.contains(['e', 'E'])
    {
        let digits = format!("{whole}{}", fraction.trim_end_matches('0'));
        if digits.trim_start_matches('0').len() > DOUBLE_DIGITS {
            let scale = fraction.len();
            let precision = whole.trim_start_matches('0').len() + scale;
            return Err(SqlLimitError::Digits { number, precision, scale, line, column });
        }
    }
    Ok(())
}

/// Checks the number of tables that a statement reads if each WITH query is expanded at every use,
/// as the planner does.
///
/// # Errors
/// [`SqlLimitError::Tables`] if there are more than [`MOST_TABLES`].
pub fn check_tables(statement: &Statement) -> Result<(), SqlLimitError> {
    let mut statement = statement;
    while let Statement::Explain(explain) = statement {
        statement = &explain.statement;
    }
    let Statement::Statement(statement) = statement else { return Ok(()) };
    let mut tables = Tables::default();
    match statement.visit(&mut tables) {
        ControlFlow::Break(()) => Err(SqlLimitError::Tables),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Parses SQL within the limits.
///
/// # Errors
/// [`SqlLimitError`] if the SQL exceeds them, or an error of the parser.
pub fn parse_within_limits<E: From<SqlLimitError> + From<DataFusionError>>(
    sql: &str,
) -> Result<VecDeque<Statement>, E> {
    check_text(sql)?;
    let statements = DFParser::parse_sql(sql)?;
    statements.iter().try_for_each(check_tables)?;
    Ok(statements)
}

/// State of a query while it is visited.
#[derive(Debug, Default)]
struct Scope {
    /// Names of its WITH queries that are not visited yet; the last one is next.
    pending: Vec<String>,
    /// Number of tables of each WITH query that was visited.
    named: HashMap<String, u64>,
    /// Number of tables of the query so far.
    tables: u64,
}

/// Counts tables, query by query. The WITH queries of a query are visited before its body, in
/// order.
#[derive(Debug, Default)]
struct Tables {
    scopes: Vec<Scope>,
}

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        let pending = with.rev().map(|cte| cte.alias.name.value.clone()).collect();
        self.scopes.push(Scope { pending, ..Scope::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        let tables = self.scopes.pop().map_or(0, |scope| scope.tables);
        if tables > MOST_TABLES {
            return ControlFlow::Break(());
        }
        if let Some(outer) = self.scopes.last_mut() {
            match outer.pending.pop() {
                Some(name) => {
                    outer.named.insert(name, tables);
                }
                None => outer.tables = outer.tables.saturating_add(tables),
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let name = relation.to_string();
        let known = self.scopes.iter().rev().find_map(|scope| scope.named.get(name.trim_matches('"')));
        let tables = known.copied().unwrap_or(1).max(1);
        if let Some(scope) = self.scopes.last_mut() {
            scope.tables = scope.tables.saturating_add(tables);
            if scope.tables > MOST_TABLES {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(term: &str, separator: &str, terms: usize) -> String {
        vec![term; terms].join(separator)
    }

    fn tables(sql: &str) -> Result<(), SqlLimitError> {
        parse_within_limits::<crate::query::QueryError>(sql).map(|_| ()).map_err(|error| match error {
            crate::query::QueryError::Sql(limit) => limit,
            other => panic!("{sql}: {other}"),
        })
    }

    #[test]
    fn long_chains_are_refused_whatever_links_them() {
        for (term, link) in [
            ("1", " + "),
            ("1", "-"),
            ("id = 1", " OR "),
            ("NOT", " "),
            ("'a'", " || "),
            ("id", " IS NULL IS "),
            ("1::int", "::"),
            ("id", " & "),
            ("id", " -> "),
        ] {
            let sql = |terms| format!("SELECT {} FROM t", chain(term, link, terms));
            assert_eq!(check_text(&sql(100)), Ok(()), "{link}");
            assert!(matches!(check_text(&sql(50_000)), Err(SqlLimitError::Depth { .. })), "{link}");
        }
        let unions = |terms| chain("SELECT 1, 2", " UNION ALL ", terms);
        assert_eq!(check_text(&unions(101)), Ok(()));
        assert_eq!(check_text(&unions(102)), Err(SqlLimitError::SetOperations));
    }

    #[test]
    fn depth_adds_up_over_levels_and_lists_do_not() {
        let list = format!("SELECT * FROM t WHERE id IN ({})", chain("1 + 2", ", ", 40_000));
        assert_eq!(check_text(&list), Ok(()));
        let pairs = |terms| format!("SELECT 1 FROM t WHERE {}", chain("k = 1 AND v > 2 + 3", " OR ", terms));
        assert_eq!(check_text(&pairs(490)), Ok(()));
        assert!(matches!(check_text(&pairs(510)), Err(SqlLimitError::Depth { .. })));
        let whens = format!("SELECT CASE {} END", chain("WHEN k = 1 THEN 2", " ", 10_000));
        assert_eq!(check_text(&whens), Ok(()));
        let names = |terms| format!("SELECT {}", chain("date / id", " % ", terms));
        assert_eq!(check_text(&names(240)), Ok(()));
        let distinct = format!("SELECT {}", chain("k", " IS DISTINCT FROM ", 10_000));
        assert!(matches!(check_text(&distinct), Err(SqlLimitError::Depth { .. })));
        // Each level is below the limit, but their sum is not.
        let mut nested = "1".to_owned();
        for _ in 0..20 {
            nested = format!("({nested}{})", " + 1".repeat(20));
        }
        assert!(matches!(check_text(&format!("SELECT {nested}")), Err(SqlLimitError::Depth { .. })));
        let hidden = format!("SELECT f(1, {}, 2) + 1", chain("1", "+", 600));
        assert!(matches!(check_text(&hidden), Err(SqlLimitError::Depth { .. })));
    }

    #[test]
    fn levels_are_counted_whatever_opens_them() {
        let nested = |open: &str, close: &str, levels: usize| {
            format!("SELECT {}1{}", open.repeat(levels), close.repeat(levels))
        };
        for (open, close) in
            [("(", ")"), ("CAST(", " AS INT)"), ("[", "]"), ("CASE WHEN true THEN ", " END"), ("abs(", ")")]
        {
            assert_eq!(check_text(&nested(open, close, 20)), Ok(()), "{open}");
            let refused = check_text(&nested(open, close, 25));
            assert!(matches!(refused, Err(SqlLimitError::Levels { line: 1, .. })), "{open}: {refused:?}");
        }
        for (open, close) in [
            ("(SELECT ", ")"),
            ("SELECT * FROM (", ")"),
            ("coalesce(", ", 1)"),
            ("NULLIF(", ", 1)"),
            ("(", " BETWEEN 0 AND 5)"),
            ("(", " IN (1, 2, 3))"),
            ("(", " LIKE u)"),
        ] {
            assert_eq!(check_text(&nested(open, close, 7)), Ok(()), "{open}");
            let refused = check_text(&nested(open, close, 9));
            assert!(matches!(refused, Err(SqlLimitError::Doublings { line: 1, .. })), "{open}: {refused:?}");
        }
        assert_eq!(
            check_text("SELECT '((((((((((((((((((((((((((((((((((((((((((((' -- ((((((((((((("),
            Ok(())
        );
        let after = "SELECT (1), ".repeat(1_000);
        assert_eq!(check_text(&after), Ok(()));
    }

    #[test]
    fn decimals_that_a_double_does_not_keep_are_refused() {
        for number in
            ["0.1", "1.7976931348623157", "0.30000000000000004", "123456.50000000000000000000", "1e-300"]
        {
            assert_eq!(check_text(&format!("SELECT {number}")), Ok(()), "{number}");
        }
        let refused = check_text("SELECT 1 FROM t WHERE c = 099999999999999.9999").unwrap_err();
        assert!(
            matches!(refused, SqlLimitError::Digits { precision: 18, scale: 4, line: 1, .. }),
            "{refused:?}"
        );
        assert!(
            refused.to_string().contains("write CAST('099999999999999.9999' AS DECIMAL(18, 4))"),
            "{refused}"
        );
    }

    #[test]
    fn text_is_bounded() {
        let blanks = " ".repeat(MOST_BYTES);
        assert_eq!(check_text(&blanks), Ok(()));
        assert_eq!(check_text(&format!("{blanks} ")), Err(SqlLimitError::Bytes { found: MOST_BYTES + 1 }));
        let names = |bytes| format!("SELECT {}(1), \"{}\"", "f".repeat(bytes), "c".repeat(bytes));
        assert_eq!(check_text(&names(MOST_NAME_BYTES)), Ok(()));
        let refused = check_text(&names(MOST_NAME_BYTES + 1));
        assert_eq!(refused, Err(SqlLimitError::Name { found: MOST_NAME_BYTES + 1, line: 1, column: 8 }));
        let values = format!("VALUES {}", chain("(1)", ",", 63_000));
        assert_eq!(check_text(&values), Err(SqlLimitError::Tokens { found: 63_000 * 4 }));
    }

    #[test]
    fn numbers_that_no_type_holds_are_refused() {
        for number in ["0", "18446744073709551615", "1e308", "1e-999", "0.1", "12345678901234.5"] {
            assert_eq!(check_text(&format!("SELECT {number}")), Ok(()), "{number}");
        }
        for number in ["1e999", "1.5e309"] {
            assert!(matches!(check_text(&format!("SELECT {number}")), Err(SqlLimitError::Double { .. })));
        }
        for precision in [77, 256, 266, 1000] {
            let sql = format!("SELECT CAST(1 AS DECIMAL({precision}, 3)), 1::numeric( {precision} )");
            assert!(matches!(check_text(&sql), Err(SqlLimitError::Precision { .. })), "{precision}");
        }
        assert_eq!(check_text("SELECT CAST(1000 AS DECIMAL(76, 3)), (1000)"), Ok(()));
        let refused = check_text("SELECT\n  18446744073709551616").unwrap_err();
        assert!(matches!(refused, SqlLimitError::Integer { line: 2, column: 3, .. }), "{refused:?}");
        let long = check_text(&format!("SELECT {}", "9".repeat(500))).unwrap_err().to_string();
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn with_queries_count_as_often_as_they_are_expanded() {
        let doubling = |levels: usize| {
            let mut sql = "WITH a0 AS (SELECT * FROM t)".to_owned();
            for level in 1..=levels {
                let below = level - 1;
                sql.push_str(&format!(
                    ", a{level} AS (SELECT * FROM a{below} UNION ALL SELECT * FROM a{below})"
                ));
            }
            format!("{sql} SELECT count(*) FROM a{levels}")
        };
        assert_eq!(tables(&doubling(7)), Ok(()));
        for levels in [8, 30, 60] {
            assert_eq!(tables(&doubling(levels)), Err(SqlLimitError::Tables), "{levels}");
            assert_eq!(tables(&format!("EXPLAIN {}", doubling(levels))), Err(SqlLimitError::Tables));
        }
        let quoted = doubling(30).replace("a29", "\"a29\"");
        assert_eq!(tables(&quoted), Err(SqlLimitError::Tables));
        let recursive =
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT * FROM n";
        assert_eq!(tables(recursive), Ok(()));
        assert_eq!(tables(&format!("SELECT count(*) FROM {}", chain("t", ", ", 128))), Ok(()));
        assert_eq!(
            tables(&format!("SELECT count(*) FROM {}", chain("t", ", ", 129))),
            Err(SqlLimitError::Tables)
        );
        let inner = "SELECT * FROM t WHERE id IN (SELECT id FROM t UNION SELECT id FROM t)";
        assert_eq!(tables(inner), Ok(()));
    }
}
