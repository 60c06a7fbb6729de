//! The edited line: completion, colours, and its end.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use evenkeel::sql::quoted_name;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use crate::cli::shell::commands::COMMANDS;
use crate::cli::shell::lexer::{Kind, is_blank, is_complete, is_of_word, pieces};

/// Words of SQL that are coloured and completed.
const KEYWORDS: &[&str] = &[
    "ALL",
    "AND",
    "ANTI",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CROSS",
    "DATE",
    "DESC",
    "DISTINCT",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "FALSE",
    "FILTER",
    "FIRST",
    "FROM",
    "FULL",
    "GROUP",
    "GROUPING",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "RANGE",
    "RECURSIVE",
    "RIGHT",
    "ROLLUP",
    "ROWS",
    "SELECT",
    "SEMI",
    "SETS",
    "THEN",
    "TIMESTAMP",
    "TRUE",
    "UNION",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
];

const KEYWORD: &str = "\x1b[1;34m";
const TEXT: &str = "\x1b[32m";
const NAME: &str = "\x1b[33m";
const NUMBER: &str = "\x1b[36m";
const COMMENT: &str = "\x1b[90m";
const RESET: &str = "\x1b[0m";

/// Words for completion, which change with the tables.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Names of tables, exports and columns.
    pub(super) names: Vec<String>,
    pub(super) functions: Vec<String>,
}

/// Helper for the edited line.
pub(super) struct LineHelper {
    pub(super) words: Arc<Mutex<Words>>,
    files: FilenameCompleter,
}

impl LineHelper {
    pub(super) fn new(words: Arc<Mutex<Words>>) -> Self {
        Self { words, files: FilenameCompleter::new() }
    }
}

/// Lines that end the shell without a backslash.
pub(super) const WORDS_TO_LEAVE: [&str; 2] = ["exit", "quit"];

/// Whether the input is complete.
fn is_whole(text: &str) -> bool {
    let trimmed = text.trim();
    // A command on a separate line discards an unfinished statement.
    let has_command = trimmed.lines().last().is_some_and(|line| line.trim_start().starts_with('\\'));
    let is = |word: &str| trimmed.trim_end_matches(';').eq_ignore_ascii_case(word);
    has_command
        || is_blank(text)
        || is_complete(text)
        || WORDS_TO_LEAVE.iter().any(|word| is(word))
        || is("help")
}

impl Validator for LineHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let whole = is_whole(context.input());
        Ok(if whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Highlighter for LineHelper {
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        Cow::Owned(coloured(line))
    }

    fn highlight_char(&self, _line: &str, _pos: usize, _kind: CmdKind) -> bool {
        true
    }
}

fn coloured(line: &str) -> String {
    if line.trim_start().starts_with('\\') {
        return line.to_owned();
    }
    let mut text = String::with_capacity(2 * line.len());
    for piece in pieces(line) {
        let is_keyword =
            || KEYWORDS.binary_search_by(|keyword| (**keyword).cmp(&piece.text.to_ascii_uppercase())).is_ok();
        let colour = match piece.kind {
            Kind::Word if is_keyword() => KEYWORD,
            Kind::Text => TEXT,
            Kind::Name => NAME,
            Kind::Number => NUMBER,
            Kind::Comment => COMMENT,
            _ => "",
        };
        match colour {
            "" => text.push_str(piece.text),
            colour => text.extend([colour, piece.text, RESET]),
        }
    }
    text
}

impl Hinter for LineHelper {
    type Hint = String;
}

impl Completer for LineHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..pos).unwrap_or(line);
        if ["\\o ", "\\i "].iter().any(|command| before.trim_start().starts_with(command)) {
            return self.files.complete(line, pos, context);
        }
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, candidates) = completions(before, &words);
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Helper for LineHelper {}

/// Returns the start of the text before the cursor to be replaced, and the candidates.
fn completions(before: &str, words: &Words) -> (usize, Vec<String>) {
    if before.starts_with('\\') && !before.contains(char::is_whitespace) {
        let commands = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
        return (0, commands.filter(|name| name.starts_with(before)).collect());
    }
    let start = before
        .rfind(|c: char| !is_of_word(c) && c != '"')
        .map_or(0, |at| at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    let typed = before.get(start..).unwrap_or_default();
    let lower = typed.trim_start_matches('"').to_lowercase();
    let begins = |word: &&String| word.to_lowercase().starts_with(&lower);
    let mut candidates: Vec<String> = words.names.iter().filter(begins).map(|name| in_sql(name)).collect();
    if before.starts_with('\\') || typed.starts_with('"') {
        return (start, candidates);
    }
    if !typed.is_empty() {
        candidates.extend(words.functions.iter().filter(begins).map(|name| format!("{name}(")));
        let is_lower = typed.chars().all(|c| !c.is_uppercase());
        let keywords = KEYWORDS.iter().filter(|word| word.to_lowercase().starts_with(&lower));
        candidates
            .extend(keywords.map(|word| if is_lower { word.to_lowercase() } else { (*word).to_owned() }));
    }
    (start, candidates)
}

/// Writes a name as SQL needs it: in quotes unless it is a plain word.
fn in_sql(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !KEYWORDS.contains(&name.to_ascii_uppercase().as_str());
    if is_plain { name.to_owned() } else { quoted_name(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let names = ["events", "users", "Event Time", "sys.partition_stats"];
        Words { names: names.map(str::to_owned).into(), functions: vec!["encode".into(), "exp".into()] }
    }

    #[test]
    fn keywords_are_sorted_for_the_search() {
        assert!(KEYWORDS.is_sorted());
    }

    #[test]
    fn names_functions_keywords_and_commands_are_completed() {
        for (before, start, expected) in [
            ("SELECT * FROM ev", 14, vec!["events", "\"Event Time\""]),
            ("SELECT * FROM \"Ev", 14, vec!["events", "\"Event Time\""]),
            (
                "select e",
                7,
                vec!["events", "\"Event Time\"", "encode(", "exp(", "else", "end", "except", "exists"],
            ),
            ("SELECT max(us", 11, vec!["users", "using"]),
            ("\\ti", 0, vec!["\\timing"]),
            ("\\d us", 3, vec!["users"]),
        ] {
            let expected = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(completions(before, &words()), (start, expected), "{before}");
        }
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let line = "SELECT 'it''s', \"b\", 1.5 -- é\nFROM t";
        let plain = [KEYWORD, TEXT, NAME, NUMBER, COMMENT, RESET]
            .iter()
            .fold(coloured(line), |text, colour| text.replace(colour, ""));
        assert_eq!(plain, line);
        assert!(coloured(line).starts_with(KEYWORD));
    }

    #[test]
    fn lines_are_whole_with_a_semicolon_and_commands_without() {
        for whole in ["", "\\d", "SELECT 1;", "quit", "EXIT;", "-- nothing"] {
            assert!(is_whole(whole), "{whole}");
        }
        for open in ["SELECT 1", "SELECT ';", "quit now"] {
            assert!(!is_whole(open), "{open}");
        }
    }
}
