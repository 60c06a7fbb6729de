//! Comparisons of text in forms that DataFusion does not plan: with a collation of bytes, which is
//! how text is compared anyway, and patterns with another escape character than the backslash.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, ObjectName, Value, ValueWithSpan, VisitMut, VisitorMut,
};

use crate::call;
use crate::walk::walk_mut;

/// Collations that compare bytes.
const OF_BYTES: [&str; 5] = ["c", "posix", "ucs_basic", "c.utf-8", "default"];

struct Comparisons;

/// Rewrites comparisons of text to equivalent forms. All others are unchanged.
pub fn plain_text_comparisons(statement: &mut impl VisitMut) {
    let _ = walk_mut(statement, &mut Comparisons);
}

impl VisitorMut for Comparisons {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match expression {
            Expr::Collate { expr, collation } if compares_bytes(collation) => {
                let inner = std::mem::replace(expr.as_mut(), Expr::value(Value::Null));
                *expression = inner;
            }
            // Bytes in hexadecimal digits, as PostgreSQL writes them.
            Expr::Cast { expr, data_type: DataType::Bytea, .. } => {
                if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) =
                    expr.as_ref()
                    && let Some(digits) = text.strip_prefix("\\x")
                    && digits.len().is_multiple_of(2)
                    && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
                {
                    *expression = Expr::value(Value::HexStringLiteral(digits.to_owned()));
                }
            }
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                let escape = escape_char.as_ref().and_then(|escape| single(&escape.value));
                let Some(escape) = escape.filter(|escape| !matches!(escape, '%' | '_')) else {
                    return ControlFlow::Continue(());
                };
                match pattern.as_mut() {
                    Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => {
                        *text = with_backslashes(text, escape);
                    }
                    computed => {
                        let inner = std::mem::replace(computed, Expr::value(Value::Null));
                        *computed = computed_with_backslashes(inner, escape);
                    }
                }
                *escape_char = None;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn compares_bytes(collation: &ObjectName) -> bool {
    let last = collation.0.last().and_then(|part| part.as_ident());
    last.is_some_and(|name| OF_BYTES.contains(&name.value.to_ascii_lowercase().as_str()))
}

/// Returns the character of a text that has one, other than the backslash.
fn single(value: &Value) -> Option<char> {
    let (Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text)) = value else { return None };
    let mut characters = text.chars();
    let first = characters.next().filter(|first| *first != '\\')?;
    characters.next().is_none().then_some(first)
}

/// Writes a pattern with backslashes as escapes.
fn with_backslashes(pattern: &str, escape: char) -> String {
    let mut written = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => written.push_str("\\\\"),
            character if character == escape => match characters.next() {
                Some(next) if matches!(next, '%' | '_' | '\\') => written.extend(['\\', next]),
                Some(next) => written.push(next),
                // An escape that escapes nothing matches itself.
                None => written.push(escape),
            },
            character => written.push(character),
        }
    }
    written
}

/// Placeholder for an escaped escape character, while others are replaced. It is not a character of
/// any language.
const ESCAPED: &str = "\u{10fffe}";

/// Writes a pattern that is computed with backslashes as escapes.
fn computed_with_backslashes(pattern: Expr, escape: char) -> Expr {
    let steps = [
        ("\\".to_owned(), "\\\\".to_owned()),
        (format!("{escape}{escape}"), ESCAPED.to_owned()),
        (format!("{escape}%"), "\\%".to_owned()),
        (format!("{escape}_"), "\\_".to_owned()),
        (escape.to_string(), String::new()),
        (ESCAPED.to_owned(), escape.to_string()),
    ];
    let text = |text| Expr::value(Value::SingleQuotedString(text));
    steps
        .into_iter()
        .fold(pattern, |pattern, (from, to)| call("replace", vec![pattern, text(from), text(to)]))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn collations_of_bytes_and_escapes_are_written_plainly() {
        for (sql, expected) in [
            ("SELECT a = 'x' COLLATE \"C\" FROM t", "SELECT a = 'x' FROM t"),
            ("SELECT a COLLATE pg_catalog.\"default\" FROM t", "SELECT a FROM t"),
            ("SELECT a COLLATE \"de_DE\" FROM t", "SELECT a COLLATE \"de_DE\" FROM t"),
            ("SELECT a LIKE 'x/%//\\%' ESCAPE '/'", "SELECT a LIKE 'x\\%/\\\\%'"),
            ("SELECT a ILIKE '!!x!_' ESCAPE '!'", "SELECT a ILIKE '!x\\_'"),
            ("SELECT a LIKE 'x\\%' ESCAPE '\\'", "SELECT a LIKE 'x\\%' ESCAPE '\\'"),
            ("SELECT '\\x41ff'::bytea, '\\x4'::bytea", "SELECT X'41ff', '\\x4'::BYTEA"),
            ("SELECT a LIKE b ESCAPE '%'", "SELECT a LIKE b ESCAPE '%'"),
        ] {
            let mut statements = Parser::parse_sql(&GenericDialect {}, sql).unwrap();
            plain_text_comparisons(&mut statements[0]);
            assert_eq!(statements[0].to_string(), expected);
        }
    }
}
