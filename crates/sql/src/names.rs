//! Names in SQL text.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Writes a name in quotes, so that it may contain any character and be a reserved word.
#[must_use]
pub fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether a name stands before a period, as that of a table before a column.
#[must_use]
pub fn names_table(sql: &str, name: &str) -> bool {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else { return false };
    let is_name = |token: &Token| matches!(token, Token::Word(word) if word.value == name);
    tokens.windows(2).any(|pair| matches!(pair, [first, Token::Period] if is_name(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_before_columns_are_those_of_tables() {
        for (sql, is_table) in [
            ("a.x = 1", true),
            ("\"a\".x = 1", true),
            ("x = 'a.x'", false),
            ("b.a = 1 -- a.", false),
            ("'", false),
        ] {
            assert_eq!(names_table(sql, "a"), is_table, "{sql}");
        }
    }
}
