//! Separates the lines of a dump of PostgreSQL into statements and rows.
//!
//! Text that looks like a statement may be a part of a text, of a comment or of the body of a
//! function, so these are followed from line to line.

/// Place in the statements of a dump.
#[derive(Debug, Default)]
pub(super) struct Statements {
    place: Place,
    /// Whether a statement has begun and not ended.
    is_within: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Plain,
    /// Within quotes of this kind.
    Quoted(u8),
    /// Within a text with backslash escapes.
    Escaped,
    /// Within a body, up to this mark: `$$`, `$_$`.
    Body(Vec<u8>),
    /// Within a comment of several lines, and others within it.
    Comment(u32),
}

/// Kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Begins a statement.
    Begins,
    /// Continues a statement.
    Continues,
    /// Blank, a comment, or a command of psql.
    Other,
}

impl Statements {
    /// Takes the next line, without its end.
    pub(super) fn take(&mut self, line: &[u8]) -> Line {
        let was_within = self.is_within || self.place != Place::Plain;
        if !was_within && line.first() == Some(&b'\\') {
            return Line::Other;
        }
        let mut rest = line;
        while !rest.is_empty() {
            rest = self.step(rest);
        }
        match (was_within, self.is_within || has_words(line)) {
            (true, _) => Line::Continues,
            (false, true) => Line::Begins,
            (false, false) => Line::Other,
        }
    }

    /// Whether the last statement has ended.
    pub(super) fn is_between(&self) -> bool {
        !self.is_within && self.place == Place::Plain
    }

    /// Processes the first token of a line, and returns the rest.
    fn step<'a>(&mut self, line: &'a [u8]) -> &'a [u8] {
        let skip = |count: usize| line.get(count..).unwrap_or_default();
        match &self.place {
            Place::Plain => self.step_of_statement(line),
            Place::Quoted(quote) => match line.iter().position(|byte| byte == quote) {
                // A doubled quote begins the text again.
                Some(at) => {
                    self.place = Place::Plain;
                    skip(at + 1)
                }
                None => &[],
            },
            Place::Escaped => match line.iter().position(|byte| matches!(byte, b'\\' | b'\'')) {
                Some(at) if line.get(at) == Some(&b'\\') => skip(at + 2),
                Some(at) => {
                    self.place = Place::Plain;
                    skip(at + 1)
                }
                None => &[],
            },
            Place::Body(mark) => match line.windows(mark.len()).position(|part| part == mark.as_slice()) {
                Some(at) => {
                    let end = at + mark.len();
                    self.place = Place::Plain;
                    skip(end)
                }
                None => &[],
            },
            Place::Comment(depth) => {
                let depth = *depth;
                let next = line.windows(2).position(|pair| matches!(pair, b"*/" | b"/*"));
                let Some(at) = next else { return &[] };
                let deeper = line.get(at) == Some(&b'/');
                self.place = match (deeper, depth) {
                    (true, depth) => Place::Comment(depth + 1),
                    (false, 0 | 1) => Place::Plain,
                    (false, depth) => Place::Comment(depth - 1),
                };
                skip(at + 2)
            }
        }
    }

    /// Takes the next step within a statement, outside quotes and comments.
    fn step_of_statement<'a>(&mut self, line: &'a [u8]) -> &'a [u8] {
        let skip = |count: usize| line.get(count..).unwrap_or_default();
        let (first, second) = (line.first().copied(), line.get(1).copied());
        match (first, second) {
            (Some(b'-'), Some(b'-')) => return &[],
            (Some(b'/'), Some(b'*')) => {
                self.place = Place::Comment(1);
                return skip(2);
            }
            (Some(b'E' | b'e'), Some(b'\'')) => {
                self.is_within = true;
                self.place = Place::Escaped;
                return skip(2);
            }
            (Some(quote @ (b'\'' | b'"')), _) => {
                self.is_within = true;
                self.place = Place::Quoted(quote);
            }
            (Some(b'$'), _) => {
                if let Some(mark) = mark_of(line) {
                    self.is_within = true;
                    self.place = Place::Body(mark.to_vec());
                    return skip(mark.len());
                }
            }
            (Some(b';'), _) => self.is_within = false,
            (Some(byte), _) if !byte.is_ascii_whitespace() => {
                self.is_within = true;
                // A word as a whole: a `$` or an `E` within it has no meaning.
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
                if is_word(&byte) {
                    let is_of_word = |byte: &u8| is_word(byte) || *byte == b'$';
                    let length = line.iter().take_while(|byte| is_of_word(byte)).count();
                    return skip(length);
                }
            }
            _ => {}
        }
        skip(1)
    }
}

/// Whether a line has anything but blanks and a comment.
fn has_words(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    !text.is_empty() && !text.starts_with(b"--") && !text.starts_with(b"/*")
}

/// Returns the mark that begins a body: `$$` or `$name$`.
fn mark_of(line: &[u8]) -> Option<&[u8]> {
    let name = line.get(1..)?;
    let length = name
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_' || **byte >= 0x80)
        .count();
    let is_parameter = name.first().is_some_and(u8::is_ascii_digit);
    (name.get(length) == Some(&b'$') && !is_parameter).then(|| line.get(..length + 2))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Line> {
        let mut statements = Statements::default();
        text.lines().map(|line| statements.take(line.as_bytes())).collect()
    }

    #[test]
    fn what_stands_in_texts_bodies_and_comments_begins_no_statement() {
        use Line::{Begins, Continues, Other};
        for (text, expected) in [
            ("SELECT 1;\nCOPY t (a) FROM stdin;", vec![Begins, Begins]),
            ("--\n-- x; y\n\n\\restrict a'b\nSELECT 1;", vec![Other, Other, Other, Other, Begins]),
            (
                "CREATE FUNCTION f() AS $_$\nCOPY t (a) FROM stdin;\n1\n$_$;\nSELECT 1;",
                vec![Begins, Continues, Continues, Continues, Begins],
            ),
            (
                "COMMENT ON t IS 'it''s\nCOPY t (a) FROM stdin;\n';\nX;",
                vec![Begins, Continues, Continues, Begins],
            ),
            ("A E'\\'\nCOPY t;\n';\nX;", vec![Begins, Continues, Continues, Begins]),
            ("CREATE TABLE \"a;b\" (\n x int -- y;\n);\nX;", vec![Begins, Continues, Continues, Begins]),
            ("/* a /* b */\nCOPY */\nX;", vec![Other, Continues, Begins]),
            ("SELECT a$b$c, $1;\nX;", vec![Begins, Begins]),
        ] {
            assert_eq!(lines(text), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_endless(text in "[-'\"$;/*\\\\aE \n]{0,60}") {
            let _ = lines(&text);
        }
    }
}
