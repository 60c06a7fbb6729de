//! Statements and commands from standard input and from files.

use std::io::{self, BufRead, Read};
use std::path::Path;

use evenkeel::bounded::{SQL, read_text};

use crate::cli::Failure;
use crate::cli::shell::lexer::{first_statement, is_blank, is_complete};
use crate::cli::shell::{Flow, Shell, running};

/// Maximum nesting of files that run each other.
const MAX_INCLUDED: usize = 20;

impl Shell<'_> {
    /// Runs the statements from standard input. The first error ends the script.
    pub(super) async fn read_script(&mut self) -> Result<(), Failure> {
        let mut lines = io::BufReader::new(io::stdin());
        let mut text = String::new();
        let mut is_first = true;
        loop {
            let read =
                lines.by_ref().take(SQL.bytes).read_line(&mut text).map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData => anyhow::anyhow!("standard input: it is not text in UTF-8"),
                    _ => error.into(),
                })?;
            if std::mem::take(&mut is_first) && text.starts_with('\u{FEFF}') {
                text.remove(0);
            }
            if text.len() as u64 > SQL.bytes {
                return Err(anyhow::anyhow!("standard input: a statement has more than {SQL}").into());
            }
            let is_command = text.trim_start().starts_with('\\');
            // Only a line with a semicolon can end a statement; a long one is not looked through
            // for each line.
            let may_end = text.get(text.len().saturating_sub(read)..).is_some_and(|line| line.contains(';'));
            if read > 0 && !is_command && !(may_end && is_complete(&text)) {
                continue;
            }
            if self.run_text(&std::mem::take(&mut text), None).await? == Flow::Leave || read == 0 {
                return Ok(());
            }
        }
    }

    /// Runs the commands and statements in a text; the last statement needs no semicolon. `name` is
    /// the name of the file with the text, for messages.
    pub(super) async fn run_text(&mut self, text: &str, name: Option<&str>) -> Result<Flow, Failure> {
        let mut rest = text.trim_start();
        while !is_blank(rest) {
            let (piece, after) = match rest.starts_with('\\') {
                true => rest.split_once('\n').unwrap_or((rest, "")),
                false => match first_statement(rest) {
                    Some(pieces) => pieces,
                    None => match rest.find("\n\\") {
                        Some(at) => {
                            self.out.note("the unfinished statement above the command is ignored");
                            ("", rest.get(at + 1..).unwrap_or_default())
                        }
                        None => (rest, ""),
                    },
                },
            };
            let line = text.len().checked_sub(rest.len()).and_then(|at| text.get(..at));
            let line = line.map_or(0, |before| before.matches('\n').count()) + 1;
            let ended = self.run_one(piece.trim()).await;
            let ended = ended.map_err(|failure| match name {
                Some(name) if !running::is_cancelled(&failure) => failure.at(&format!("{name}, line {line}")),
                _ => failure,
            });
            if ended? == Flow::Leave {
                return Ok(Flow::Leave);
            }
            rest = after.trim_start();
        }
        Ok(Flow::Continue)
    }

    /// Runs the statements and commands in a file.
    pub(super) async fn include(&mut self, path: &Path) -> Result<Flow, Failure> {
        let text = read_text(path, SQL)?;
        if self.including == MAX_INCLUDED {
            let path = path.display();
            return Err(anyhow::anyhow!(
                "{path}: {MAX_INCLUDED} files run each other; does a file run itself?"
            )
            .into());
        }
        self.including += 1;
        let ended = self.run_text(&text, Some(&path.display().to_string())).await;
        self.including -= 1;
        ended
    }
}
