//! Check of a text before it is parsed.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::limits::error::{MAX_BYTES, MAX_NAME_BYTES, MAX_TOKENS, SqlLimitError};
use crate::limits::nesting::Nesting;
use crate::limits::numbers::{check_number, check_precision};

/// Checks text before it is parsed as SQL. Text that is not SQL passes, and is left to the parser.
///
/// # Errors
/// [`SqlLimitError`] if it is too long, too deep, or has a number that no type holds.
pub fn check_text(sql: &str) -> Result<(), SqlLimitError> {
    if sql.len() > MAX_BYTES {
        return Err(SqlLimitError::Bytes { found: sql.len() });
    }
    let Ok(mut tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location() else {
        return Ok(());
    };
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    if tokens.len() > MAX_TOKENS {
        return Err(SqlLimitError::Tokens { found: tokens.len() });
    }
    let mut nesting = Nesting::new();
    for token in &tokens {
        let start = token.span.start;
        match &token.token {
            Token::Number(number, _) => {
                check_number(number, start)?;
                if nesting.expects_precision() {
                    check_precision(number, start)?;
                }
            }
            Token::Word(word) if word.value.len() > MAX_NAME_BYTES => {
                let (line, column) = (start.line, start.column);
                return Err(SqlLimitError::Name { found: word.value.len(), line, column });
            }
            _ => {}
        }
        nesting.read(&token.token);
        nesting.check(start)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(term: &str, separator: &str, terms: usize) -> String {
        vec![term; terms].join(separator)
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
        let blanks = " ".repeat(MAX_BYTES);
        assert_eq!(check_text(&blanks), Ok(()));
        assert_eq!(check_text(&format!("{blanks} ")), Err(SqlLimitError::Bytes { found: MAX_BYTES + 1 }));
        let names = |bytes| format!("SELECT {}(1), \"{}\"", "f".repeat(bytes), "c".repeat(bytes));
        assert_eq!(check_text(&names(MAX_NAME_BYTES)), Ok(()));
        let refused = check_text(&names(MAX_NAME_BYTES + 1));
        assert_eq!(refused, Err(SqlLimitError::Name { found: MAX_NAME_BYTES + 1, line: 1, column: 8 }));
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
}
