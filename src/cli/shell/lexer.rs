//! Pieces of SQL text: for the ends of statements, for colours and for completion.

/// Kind of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    /// A name in quotes.
    Name,
    /// A text in quotes.
    Text,
    Number,
    Comment,
    Semicolon,
    Blank,
    Other,
}

/// A piece of SQL text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// Whether its closing quote or the end of its comment is missing.
    pub(super) is_open: bool,
}

/// Splits text into pieces, which together are the text.
pub(super) fn pieces(sql: &str) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        // In E'...' a backslash escapes the next character.
        let escapes = pieces.last().is_some_and(|piece| piece.text.eq_ignore_ascii_case("e"));
        let (kind, length, is_open) = match first {
            '\'' => quoted(rest, '\'', escapes, Kind::Text),
            '"' | '`' => quoted(rest, first, false, Kind::Name),
            ';' => (Kind::Semicolon, 1, false),
            _ if rest.starts_with("--") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len()), false),
            _ if rest.starts_with("/*") => comment(rest),
            '$' if dollar_quote(rest).is_some() => {
                let tag = dollar_quote(rest).unwrap_or_default();
                let end = rest.get(tag.len()..).and_then(|text| text.find(tag));
                let length = end.map_or(rest.len(), |end| end + 2 * tag.len());
                (Kind::Text, length, end.is_none())
            }
            _ if first.is_whitespace() => (Kind::Blank, length_while(rest, char::is_whitespace), false),
            _ if first.is_ascii_digit() => {
                (Kind::Number, length_while(rest, |c| c.is_alphanumeric() || matches!(c, '.' | '_')), false)
            }
            _ if is_of_word(first) => (Kind::Word, length_while(rest, is_of_word), false),
            _ => (Kind::Other, first.len_utf8(), false),
        };
        let (text, after) = rest.split_at(length);
        pieces.push(Piece { kind, text, is_open });
        rest = after;
    }
    pieces
}

/// Whether a character is part of a name without quotes, or of a parameter.
pub(super) fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// Returns the quote that text begins with, such as `$$` or `$body$`.
fn dollar_quote(text: &str) -> Option<&str> {
    let tag = text.strip_prefix('$')?;
    let length = tag.find(|character: char| !(character.is_alphanumeric() || character == '_'))?;
    let is_quote = tag.get(length..)?.starts_with('$') && !tag.starts_with(|c: char| c.is_ascii_digit());
    if is_quote { text.get(..length + 2) } else { None }
}

fn length_while(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|character| !is_part(character)).unwrap_or(text.len())
}

/// Returns the extent of a text that begins with a quote; a doubled quote is part of it.
fn quoted(text: &str, quote: char, escapes: bool, kind: Kind) -> (Kind, usize, bool) {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if escapes && character == '\\' {
            characters.next();
        } else if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return (kind, at + 1, false);
        }
    }
    (kind, text.len(), true)
}

/// Returns the extent of a comment, which may contain nested ones.
fn comment(text: &str) -> (Kind, usize, bool) {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return (Kind::Comment, at, false);
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    (Kind::Comment, text.len(), true)
}

/// Splits off the first statement, without its semicolon; `None` if no semicolon ends it.
pub(super) fn first_statement(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for piece in pieces(text) {
        if piece.kind == Kind::Semicolon {
            return Some((text.get(..at)?, text.get(at + 1..)?));
        }
        at += piece.text.len();
    }
    None
}

/// Whether text consists of blanks and whole comments.
pub(super) fn is_blank(text: &str) -> bool {
    pieces(text).iter().all(|piece| matches!(piece.kind, Kind::Blank | Kind::Comment) && !piece.is_open)
}

/// Whether a semicolon ends the text, followed only by comments.
pub(super) fn is_complete(text: &str) -> bool {
    let pieces = pieces(text);
    let last = pieces.iter().rev().find(|piece| !matches!(piece.kind, Kind::Blank | Kind::Comment));
    last.is_some_and(|piece| piece.kind == Kind::Semicolon) && !pieces.iter().any(|piece| piece.is_open)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn a_semicolon_in_a_text_a_name_or_a_comment_ends_nothing() {
        for (text, statement, rest) in [
            ("SELECT 1; SELECT 2;", "SELECT 1", " SELECT 2;"),
            ("SELECT ';', 'it''s;' ;", "SELECT ';', 'it''s;' ", ""),
            ("SELECT \"a;b\", `c;d`;x", "SELECT \"a;b\", `c;d`", "x"),
            ("SELECT 1 -- no; end\n;", "SELECT 1 -- no; end\n", ""),
            ("SELECT /* a; /* nested; */ b; */ 1;", "SELECT /* a; /* nested; */ b; */ 1", ""),
            ("SELECT E'it\\'s;';", "SELECT E'it\\'s;'", ""),
            ("SELECT 'a\\';", "SELECT 'a\\'", ""),
            ("SELECT $$a;b$$, $x$ ;$$ $x$, $now;", "SELECT $$a;b$$, $x$ ;$$ $x$, $now", ""),
        ] {
            assert_eq!(first_statement(text), Some((statement, rest)), "{text}");
        }
        for open in ["SELECT 1", "SELECT 'a;", "SELECT 1 /* ; ", "SELECT \"a;", "-- ;"] {
            assert_eq!(first_statement(open), None, "{open}");
            assert!(!is_complete(open), "{open}");
        }
        assert!(is_complete("SELECT 1; -- done"));
        assert!(!is_complete("SELECT 1; SELECT"));
        assert!(is_blank(" -- nothing\n/* at all */ ") && !is_blank("/* open") && !is_blank("x"));
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole_text(text in "[ a-z0-9;'\"`/*\\-\\\\$\né]{0,60}") {
            let together: String = pieces(&text).iter().map(|piece| piece.text).collect();
            prop_assert_eq!(&together, &text);
            if let Some((statement, rest)) = first_statement(&text) {
                prop_assert_eq!(format!("{statement};{rest}"), text);
            }
        }
    }
}
