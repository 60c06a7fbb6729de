//! Interactive input of statements.

use std::io::{self, Write};
use std::sync::{Arc, PoisonError};

use evenkeel::bounded::message;
use evenkeel::report;
use evenkeel::units::Version;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor};

use crate::cli::Failure;
use crate::cli::shell::editor::{LineHelper, Words};
use crate::cli::shell::{Flow, Shell, history};

/// Maximum number of table versions in the prompt.
const SHOWN_PINS: usize = 2;

type LineEditor = Editor<LineHelper, FileHistory>;

impl Shell<'_> {
    /// Reads input until its end. Errors are shown, and the shell continues.
    pub(super) async fn converse(&mut self) -> Result<(), Failure> {
        self.out.text(&format!(
            "evenkeel {}: {}. \\? lists the commands.\n",
            env!("CARGO_PKG_VERSION"),
            self.summary()
        ))?;
        self.learn_words().await;
        let mut editor = self.editor()?;
        let history = match history::file() {
            Ok(path) => path,
            Err(error) => {
                self.out.note(&format!("history is not saved: {error}"));
                None
            }
        };
        if let Some(path) = &history {
            // An unreadable history is replaced by an empty one.
            let _ = editor.load_history(path);
        }
        loop {
            let prompt = self.prompt();
            let read = tokio::task::spawn_blocking(move || {
                let line = editor.readline(&prompt);
                (editor, line)
            });
            let line;
            (editor, line) = read.await?;
            let line = match line {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => continue,
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            if !line.trim().is_empty() && !history::may_hold_secret(&line) {
                let added = editor.add_history_entry(line.trim_end());
                if let (Ok(true), Some(path)) = (added, &history) {
                    // The shell is useful without a history, too.
                    let _ = editor.append_history(path);
                }
            }
            match self.run_text(&line, None).await {
                Ok(Flow::Continue) => {}
                Ok(Flow::Leave) => return Ok(()),
                Err(error) => show(&error),
            }
        }
    }

    fn editor(&self) -> Result<LineEditor, Failure> {
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .color_mode(if has_colours { ColorMode::Enabled } else { ColorMode::Disabled })
            .max_history_size(10_000)?
            .history_ignore_space(true)
            .build();
        let mut editor = LineEditor::with_config(config)?;
        editor.set_helper(Some(LineHelper::new(Arc::clone(&self.words))));
        Ok(editor)
    }

    fn prompt(&self) -> String {
        let is_single = self.tables.tables.len() == 1;
        let pin = |(name, version): (&String, &Version)| match is_single {
            true => version.to_string(),
            false => format!("{name}={version}"),
        };
        match self.pins.iter().map(pin).collect::<Vec<_>>().as_slice() {
            [] => "evenkeel> ".to_owned(),
            pins if pins.len() <= SHOWN_PINS => format!("evenkeel@{}> ", pins.join(",")),
            pins => format!("evenkeel@{} versions> ", pins.len()),
        }
    }

    /// Counts the opened tables and exports: `2 tables, 1 export`.
    fn summary(&self) -> String {
        let tables = report::counted(self.tables.tables.len() as u64, "table");
        match self.tables.exports.len() as u64 {
            0 => tables,
            exports => format!("{tables}, {}", report::counted(exports, "export")),
        }
    }

    /// Collects the names for completion.
    pub(super) async fn learn_words(&self) {
        let mut names = self.session.names().to_vec();
        for name in self.session.names() {
            if let Ok(schema) = self.session.schema_of(name).await {
                names.extend(schema.fields().iter().map(|field| field.name().clone()));
            }
        }
        names.sort();
        names.dedup();
        let words = Words { names, functions: self.session.function_names() };
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }
}

/// Shows an error in the conversation.
fn show(error: &Failure) {
    if let Failure::Usage(error) | Failure::Failed(error) = error {
        // If standard error is closed, nothing can be reported.
        let _ = writeln!(io::stderr(), "error: {}", message(&error.to_string()));
    }
}
