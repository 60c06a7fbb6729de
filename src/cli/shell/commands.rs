//! Commands of the shell, which begin with a backslash.

use std::path::PathBuf;
use std::time::Duration;

use evenkeel::units::Version;

use crate::cli::Failure;

/// A command.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    Quit,
    Help,
    /// The tables, or one of them.
    Describe(Option<String>),
    Skew(Option<String>),
    Explain(Option<String>),
    Last,
    Watch(Duration),
    Refresh,
    Version(Option<(Option<String>, Pin)>),
    Set(Option<(String, String)>),
    Unset(String),
    Timing(Option<bool>),
    Expanded(Option<bool>),
    Format(Option<String>),
    Rows(Option<usize>),
    Output(Option<PathBuf>),
    Include(PathBuf),
}

/// The version that a table is read at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pin {
    Newest,
    At(Version),
}

/// Commands with their arguments and descriptions, in the order of the help.
pub(super) const COMMANDS: &[(&str, &str, &str)] = &[
    ("\\d", "[NAME]", "tables and exports, or the keys, columns and partitions of one"),
    ("\\skew", "[TABLE]", "how evenly the rows of a table are spread over its partitions"),
    ("\\explain", "[SQL]", "partitions and portions that a query reads, and why; without SQL, the last one"),
    ("\\last", "", "the last result again, in a pager"),
    ("\\watch", "[SECONDS]", "run the last query again and again on the newest rows, until Ctrl-C"),
    ("\\refresh", "", "read the newest version of all tables from now on"),
    ("\\version", "[[TABLE] N]", "read a table at a version, or at the newest one; without N, show them"),
    ("\\set", "[NAME VALUE]", "set the value of $NAME in queries; without a name, show all"),
    ("\\unset", "NAME", "remove the value of $NAME"),
    ("\\timing", "[on|off]", "show the duration of queries"),
    ("\\x", "[on|off]", "show each row as lines of a name and a value"),
    ("\\format", "[FORMAT]", "table, markdown, csv, json or ndjson"),
    ("\\rows", "[COUNT]", "maximum number of rows to show as a table"),
    ("\\o", "[FILE]", "write results to a file whose ending is a format; without one, to the terminal"),
    ("\\i", "FILE", "run the statements and commands in a file"),
    ("\\?", "", "this help"),
    ("\\q", "", "leave, as with Ctrl-D"),
];

impl Command {
    /// Reads a line that begins with a backslash.
    pub(super) fn parse(line: &str) -> Result<Self, Failure> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim().trim_end_matches(';').trim_end();
        let words = words(rest);
        let wrong = |usage: &str| Failure::wrong_usage(format!("write {name} {usage}"));
        let one = |usage: &str| match words.as_slice() {
            [] => Ok(None),
            [word] => Ok(Some(word.clone())),
            _ => Err(wrong(usage)),
        };
        Ok(match name {
            "\\q" | "\\quit" => Self::Quit,
            "\\?" | "\\h" | "\\help" => Self::Help,
            "\\d" | "\\dt" | "\\d+" | "\\l" => Self::Describe(one("[NAME]")?),
            "\\skew" => Self::Skew(one("[TABLE]")?),
            "\\explain" => Self::Explain((!rest.is_empty()).then(|| rest.to_owned())),
            "\\last" => Self::Last,
            "\\watch" => {
                let seconds = match one("[SECONDS]")? {
                    None => 2.0,
                    Some(text) => text.parse().map_err(|_| wrong("[SECONDS]"))?,
                };
                let is_time = (0.1..=86_400.0).contains(&seconds);
                let wait = Duration::try_from_secs_f64(seconds).ok().filter(|_| is_time);
                Self::Watch(wait.ok_or_else(|| wrong("[SECONDS], from 0.1 to 86400"))?)
            }
            "\\refresh" => Self::Refresh,
            "\\version" => Self::Version(match words.as_slice() {
                [] => None,
                [table @ .., pin] => {
                    let pin = self::pin(pin).filter(|_| table.len() < 2);
                    Some((table.first().cloned(), pin.ok_or_else(|| wrong("[TABLE] N, or newest"))?))
                }
            }),
            "\\set" => Self::Set(match rest.split_once(char::is_whitespace) {
                None if rest.is_empty() => None,
                None => return Err(wrong("NAME VALUE")),
                Some((name, value)) => {
                    let name = name.trim_start_matches('$').to_owned();
                    Some((name, value.trim().trim_matches('\'').to_owned()))
                }
            }),
            "\\unset" => {
                Self::Unset(one("NAME")?.ok_or_else(|| wrong("NAME"))?.trim_start_matches('$').to_owned())
            }
            "\\timing" => Self::Timing(switch(one("[on|off]")?.as_deref()).map_err(|()| wrong("[on|off]"))?),
            "\\x" => Self::Expanded(switch(one("[on|off]")?.as_deref()).map_err(|()| wrong("[on|off]"))?),
            "\\format" => Self::Format(one("[FORMAT]")?),
            "\\rows" => {
                let count = one("[COUNT]")?.map(|text| text.replace(['_', ','], "").parse());
                Self::Rows(count.transpose().map_err(|_| wrong("[COUNT]"))?)
            }
            "\\o" => Self::Output((!rest.is_empty()).then(|| unquoted(rest).into())),
            "\\i" if !rest.is_empty() => Self::Include(unquoted(rest).into()),
            "\\i" => return Err(wrong("FILE")),
            _ => return Err(Failure::wrong_usage(format!("there is no command {name}; \\? lists them"))),
        })
    }
}

fn pin(text: &str) -> Option<Pin> {
    match text.eq_ignore_ascii_case("newest") {
        true => Some(Pin::Newest),
        false => text.parse().ok().map(|version| Pin::At(Version(version))),
    }
}

/// Splits text at blanks outside quotes, which are removed.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

/// Removes the quotes around a path.
fn unquoted(text: &str) -> String {
    let inner = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    ['"', '\''].into_iter().find_map(inner).unwrap_or(text).to_owned()
}

/// Reads `on` or `off`; `None` means the other state.
fn switch(text: Option<&str>) -> Result<Option<bool>, ()> {
    match text.map(str::to_ascii_lowercase).as_deref() {
        None => Ok(None),
        Some("on" | "true" | "1") => Ok(Some(true)),
        Some("off" | "false" | "0") => Ok(Some(false)),
        Some(_) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_take_the_arguments_that_the_help_names() {
        let at = |version| Pin::At(Version(version));
        for (line, expected) in [
            ("\\d", Command::Describe(None)),
            ("\\d events;", Command::Describe(Some("events".into()))),
            ("\\d \"My Table\"", Command::Describe(Some("My Table".into()))),
            ("\\version 'My Table' 3", Command::Version(Some((Some("My Table".into()), at(3))))),
            ("\\timing", Command::Timing(None)),
            ("\\timing OFF", Command::Timing(Some(false))),
            ("\\version 7", Command::Version(Some((None, at(7))))),
            ("\\version events newest", Command::Version(Some((Some("events".into()), Pin::Newest)))),
            ("\\set $campaign 'a b'", Command::Set(Some(("campaign".into(), "a b".into())))),
            ("\\o my file.csv", Command::Output(Some("my file.csv".into()))),
            ("\\watch 0.5", Command::Watch(Duration::from_millis(500))),
            ("\\rows 10,000", Command::Rows(Some(10_000))),
            ("\\explain SELECT 1;", Command::Explain(Some("SELECT 1".into()))),
        ] {
            assert_eq!(Command::parse(line).unwrap(), expected, "{line}");
        }
        for wrong in
            ["\\nothing", "\\watch 0", "\\watch soon", "\\x maybe", "\\i", "\\set x", "\\version a b c"]
        {
            assert!(Command::parse(wrong).is_err(), "{wrong}");
        }
        for (name, arguments, _) in COMMANDS {
            if !arguments.is_empty() && !arguments.starts_with('[') {
                assert!(Command::parse(name).is_err(), "{name} needs {arguments}");
            } else {
                assert!(Command::parse(name).is_ok(), "{name}");
            }
        }
    }
}
