//! The commands that README.md and the pages of docs/guide show give the output that they show.
//!
//! A block with the info string `console` has commands, `$ evenkeel ...`, each with its expected
//! output: standard output, then standard error. A line `...` stands for any lines, `[..]` within a
//! line for any characters. `< FILE` at the end of a command gives it standard input. The blocks of
//! a page run in order, in a directory that has copies of the folders `data` and `queries`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::project;

/// A command of a page and the lines that it is expected to print.
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut inside, mut continued) = (false, false);
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            (inside, continued) = (!inside && line == "```console", false);
        } else if let (true, Some(step)) = (continued, steps.last_mut()) {
            continued = line.ends_with('\\');
            step.command = format!("{} {}", step.command.trim_end_matches('\\').trim_end(), line.trim());
        } else if let (true, Some(command)) = (inside, line.strip_prefix("$ ")) {
            continued = command.ends_with('\\');
            let command = command.to_owned();
            steps.push(Step { line: number + 1, command, expected: Vec::new() });
        } else if let (true, Some(step)) = (inside, steps.last_mut()) {
            step.expected.push(line.to_owned());
        }
    }
    steps
}

/// Splits a command at blanks outside quotes.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in command.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    assert!(quote.is_none(), "a quote stays open: {command}");
    words
}

fn line_matches(expected: &str, found: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == found,
        Some((before, rest)) => found.strip_prefix(before).is_some_and(|found| {
            let ends = found.char_indices().map(|(at, _)| at).chain([found.len()]);
            ends.into_iter().any(|at| line_matches(rest, &found[at..]))
        }),
    }
}

fn lines_match(expected: &[String], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((any, rest)) if any == "..." => {
            (0..=found.len()).any(|skipped| lines_match(rest, &found[skipped..]))
        }
        Some((line, rest)) => found
            .split_first()
            .is_some_and(|(first, others)| line_matches(line, first.trim_end()) && lines_match(rest, others)),
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let guide = std::fs::read_dir(project("docs/guide")).unwrap();
    let mut pages: Vec<PathBuf> = guide.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages.push(project("README.md"));
    pages
}

#[test]
fn commands_print_what_the_pages_show() {
    let mut wrong = Vec::new();
    for page in pages() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["data", "queries"] {
            copy(&project(folder), &dir.path().join(folder));
        }
        for step in steps(&std::fs::read_to_string(&page).unwrap()) {
            let words = words(&step.command);
            let (program, arguments) = words.split_first().unwrap();
            assert_eq!(program, "evenkeel", "{}:{}", page.display(), step.line);
            let (arguments, input) = match arguments {
                [arguments @ .., sign, file] if sign == "<" => {
                    (arguments, Stdio::from(File::open(dir.path().join(file)).unwrap()))
                }
                _ => (arguments, Stdio::null()),
            };
            let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
                .args(arguments)
                .stdin(input)
                .current_dir(dir.path())
                .output()
                .unwrap();
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8(text).unwrap();
            if !lines_match(&step.expected, &text.lines().collect::<Vec<_>>()) {
                let (page, line) = (page.display(), step.line);
                wrong.push(format!("{page}:{line}: $ {}\n{text}", step.command));
            }
        }
    }
    assert!(wrong.is_empty(), "{} commands print something else:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn pages_are_short_and_narrow_and_their_links_lead_somewhere() {
    let readme = std::fs::read_to_string(project("README.md")).unwrap();
    assert!(readme.lines().count() <= 180, "README.md has {} lines", readme.lines().count());
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let folder = page.parent().unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !link.is_empty() && !link.contains("://") {
                assert!(folder.join(link).exists(), "{}: no file {link}", page.display());
            }
        }
        let mut is_code = false;
        for (number, line) in text.lines().enumerate() {
            is_code ^= line.starts_with("```");
            let is_free = is_code || line.starts_with('|') || line.contains("](");
            let width = line.chars().count();
            assert!(is_free || width <= 100, "{}:{}: {width} columns", page.display(), number + 1);
        }
    }
}

#[test]
fn output_matches_as_the_pages_write_it() {
    let page = "text\n```console\n$ evenkeel a \\\n    'b c'\none\n...\nlast [..] s\n$ evenkeel d\n```\n```sh\n$ x\n```\n";
    let found = steps(page);
    assert_eq!(found.len(), 2);
    assert_eq!(words(&found[0].command), ["evenkeel", "a", "b c"]);
    let matches = |text: &str| lines_match(&found[0].expected, &text.lines().collect::<Vec<_>>());
    assert!(matches("one\nlast 1.5 s") && matches("one\ntwo\nthree\nlast 1.5 s"));
    assert!(!matches("one\nlast 1.5 ms") && !matches("two\nlast 1 s") && !matches("one\nlast 1 s\nmore"));
}
