//! `evenkeel sql`: a shell for SQL.
//!
//! ```text
//! line ── editor (completion, colours, until a semicolon) ── history
//!      ├─ commands: \d, \explain, ...  ── Shell
//!      └─ lexer: one statement ── running (progress, Ctrl-C) ── results (screen, file, pager)
//! ```

mod commands;
mod describe;
mod editor;
mod engine;
mod history;
mod lexer;
mod results;
mod running;
mod terminal;

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use clap::Args as ClapArgs;
use evenkeel::bounded::{SQL, message, read_text};
use evenkeel::query::{Params, QueryLimits, TableSession};
use evenkeel::report;
use evenkeel::units::Version;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor};
use tokio::sync::Notify;

use crate::cli::limits::LimitArgs;
use crate::cli::query::{failure, params_of};
use crate::cli::shell::commands::{COMMANDS, Command, Pin};
use crate::cli::shell::editor::{LineHelper, WORDS_TO_LEAVE, Words};
use crate::cli::shell::engine::Engine;
use crate::cli::shell::lexer::{first_statement, is_blank, is_complete};
use crate::cli::shell::results::{Kept, Results};
use crate::cli::shell::terminal::Terminal;
use crate::cli::tables::{ExportArgs, NamedPlace, Tables};
use crate::cli::{Failure, Output};

/// Run SQL in a shell, on tables, folders of tables and exports.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel sql events                                 a table, available as t and under its own name
  evenkeel sql ads/ users=users.parquet               all tables of a folder, and an export
  evenkeel sql events < statements.sql                a script; the first error ends it

A statement ends with a semicolon. \\? lists the commands, Tab completes names, and Ctrl-C cancels a query. What is \
typed is kept in ~/.local/state/evenkeel/history, or in the file that EVENKEEL_HISTORY names, except lines that may \
hold a password or a key.")]
pub(crate) struct Args {
    /// Directories of tables, folders of tables, and exports in any input format; NAME=PLACE gives
    /// a table or an export a name.
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<String>,

    #[command(flatten)]
    exports: ExportArgs,

    /// Value for $NAME in queries, converted to the type that the query needs.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,

    /// Largest number of rows to show as a table; the rest is counted.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    rows: usize,

    #[command(flatten)]
    limits: LimitArgs,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let limits = args.limits.limits()?;
    if args.places.iter().any(|place| place == "-" || place.ends_with("=-")) {
        return Err(Failure::wrong_usage("standard input has the statements; name files or tables"));
    }
    let places: Vec<NamedPlace> = args.places.iter().map(|place| NamedPlace::parse(place)).collect();
    let tables = Tables::open(&places, &args.exports, out).await?;
    let mut params = BTreeMap::new();
    for param in &args.params {
        Params::parse(std::slice::from_ref(param)).map_err(Failure::usage)?;
        params.extend(param.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    let is_typed = io::stdin().is_terminal();
    let mut shell = Shell {
        session: session(&tables, &limits)?,
        limits,
        places,
        exports: args.exports,
        tables,
        pins: BTreeMap::new(),
        params,
        results: Results::new(args.rows),
        is_timed: false,
        last: None,
        words: Arc::default(),
        // A script ends with Ctrl-C.
        interrupts: if is_typed { out.repeated_interrupts() } else { Arc::default() },
        engine: Engine::start()?,
        including: 0,
        out,
    };
    let _terminal = Terminal::remember();
    let ended = if is_typed { shell.converse().await } else { shell.read_script().await };
    crate::cli::remove_spilled();
    ended
}

/// Most files that may run each other.
const MOST_INCLUDED: usize = 20;

/// Opens a session whose queries have their limits from [`running`].
fn session(tables: &Tables, limits: &QueryLimits) -> Result<TableSession, Failure> {
    tables.session_with(&QueryLimits { timeout: None, ..limits.clone() })
}

/// Whether the shell goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Continue,
    Leave,
}

/// The state of a shell.
struct Shell<'a> {
    out: &'a mut Output,
    places: Vec<NamedPlace>,
    exports: ExportArgs,
    tables: Tables,
    session: TableSession,
    limits: QueryLimits,
    /// Versions that tables are read at, if not the newest.
    pins: BTreeMap<String, Version>,
    params: BTreeMap<String, String>,
    results: Results,
    is_timed: bool,
    /// The last query, and its rows.
    last: Option<(String, Option<Kept>)>,
    words: Arc<Mutex<Words>>,
    interrupts: Arc<Notify>,
    /// Runtime for queries.
    engine: Engine,
    /// Number of files that are being run, each by the one before it.
    including: usize,
}

type LineEditor = Editor<LineHelper, FileHistory>;

impl Shell<'_> {
    /// Reads what is typed until the end. Errors are shown, and the shell goes on.
    async fn converse(&mut self) -> Result<(), Failure> {
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
                self.out.note(&format!("what is typed is not kept: {error}"));
                None
            }
        };
        if let Some(path) = &history {
            // A history that cannot be read is begun anew.
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
                    // The shell is of use without a history.
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
        match self.pins.values().next() {
            Some(version) => format!("evenkeel@{version}> "),
            None => "evenkeel> ".to_owned(),
        }
    }

    /// Counts what the shell has opened: `2 tables, 1 export`.
    fn summary(&self) -> String {
        let tables = report::counted(self.tables.tables.len() as u64, "table");
        match self.tables.exports.len() as u64 {
            0 => tables,
            exports => format!("{tables}, {}", report::counted(exports, "export")),
        }
    }

    /// Collects the names for completion.
    async fn learn_words(&self) {
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

    /// Runs what comes from standard input. The first error ends the script.
    async fn read_script(&mut self) -> Result<(), Failure> {
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

    /// Runs the commands and statements in a text; the last statement needs no semicolon.
    /// `name` is that of the file with the text, for messages.
    async fn run_text(&mut self, text: &str, name: Option<&str>) -> Result<Flow, Failure> {
        let mut rest = text.trim_start();
        while !is_blank(rest) {
            let (piece, after) = match rest.starts_with('\\') {
                true => rest.split_once('\n').unwrap_or((rest, "")),
                false => match first_statement(rest) {
                    Some(found) => found,
                    None => match rest.find("\n\\") {
                        Some(at) => {
                            self.out.note("the unfinished statement above the command is left out");
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

    async fn run_one(&mut self, text: &str) -> Result<Flow, Failure> {
        if text.starts_with('\\') {
            let command = Command::parse(text)?;
            let runs_queries = matches!(command, Command::Watch(_) | Command::Include(_));
            let interrupts = Arc::clone(&self.interrupts);
            let work = Box::pin(self.command(command));
            if runs_queries {
                // Its queries listen to Ctrl-C.
                return work.await;
            }
            running::forget(&interrupts);
            return tokio::select! {
                done = work => done,
                () = interrupts.notified() => Err(running::cancelled("it")),
            };
        }
        if WORDS_TO_LEAVE.iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return Ok(Flow::Leave);
        }
        if text.eq_ignore_ascii_case("help") {
            self.help()?;
        } else if !is_blank(text) {
            self.query(text).await?;
        }
        Ok(Flow::Continue)
    }

    /// Runs a query and shows its result.
    async fn query(&mut self, sql: &str) -> Result<(), Failure> {
        let started = Instant::now();
        // A query that fails can be run again, too.
        self.last = Some((sql.to_owned(), None));
        let params = self.params(sql)?;
        let kept = self.answer(sql, &params).await?;
        self.last = Some((sql.to_owned(), kept));
        for note in self.session.notes() {
            self.out.note(&note.to_string());
        }
        if self.is_timed {
            self.out.text(&format!("{:.3} s\n", started.elapsed().as_secs_f64()))?;
        }
        Ok(())
    }

    /// Returns the values of the parameters that a query uses.
    fn params(&self, sql: &str) -> Result<Params, Failure> {
        let written: Vec<String> =
            self.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let used: Vec<String> = params_of(sql, &written).cloned().collect();
        Params::parse(&used).map_err(Failure::usage)
    }

    async fn command(&mut self, command: Command) -> Result<Flow, Failure> {
        match command {
            Command::Quit => return Ok(Flow::Leave),
            Command::Help => self.help()?,
            Command::Describe(name) => self.describe(name.as_deref()).await?,
            Command::Skew(name) => self.skew(name.as_deref()).await?,
            Command::Explain(sql) => self.explain(sql).await?,
            Command::Last => self.show_last()?,
            Command::Watch(wait) => self.watch(wait).await?,
            Command::Refresh => {
                let tables = Tables::open(&self.places, &self.exports, self.out).await?;
                self.pins.clear();
                self.adopt(tables).await?;
                self.out.text(&describe::versions(&self.tables))?;
            }
            Command::Version(None) => self.out.text(&describe::versions(&self.tables))?,
            Command::Version(Some((table, pin))) => self.pin(table, pin).await?,
            Command::Set(None) => {
                let lines = self.params.iter().map(|(name, value)| format!("${name} = '{value}'\n"));
                self.out.text(&lines.collect::<String>())?;
            }
            Command::Set(Some((name, value))) => {
                Params::parse(&[format!("{name}={value}")]).map_err(Failure::usage)?;
                self.params.insert(name, value);
            }
            Command::Unset(name) => {
                if self.params.remove(&name).is_none() {
                    return Err(Failure::wrong_usage(format!("${name} has no value")));
                }
            }
            Command::Timing(on) => {
                self.is_timed = on.unwrap_or(!self.is_timed);
                self.confirm("times are shown", self.is_timed)?;
            }
            Command::Expanded(on) => {
                self.results.is_expanded = on.unwrap_or(!self.results.is_expanded);
                self.confirm("each row is shown as lines of a name and a value", self.results.is_expanded)?;
            }
            Command::Format(name) => {
                self.results.set_format(name.as_deref())?;
                self.out.text(&format!("results are shown as {}\n", self.results.format_name()))?;
            }
            Command::Rows(count) => {
                self.results.rows = count.unwrap_or(self.results.rows);
                let rows = report::counted(self.results.rows as u64, "row");
                self.out.text(&format!("tables are shown with up to {rows}\n"))?;
            }
            Command::Output(path) => {
                path.iter().try_for_each(|path| self.tables.check_output(path))?;
                self.results.write_to(path)?;
            }
            Command::Include(path) => return self.include(&path).await,
        }
        Ok(Flow::Continue)
    }

    fn confirm(&mut self, what: &str, is_on: bool) -> Result<(), Failure> {
        self.out.text(&format!("{what}: {}\n", if is_on { "on" } else { "off" }))
    }

    fn help(&mut self) -> Result<(), Failure> {
        let line = |(name, arguments, what): &(&str, &str, &str)| {
            format!("  {:<24}{what}\n", format!("{name} {arguments}"))
        };
        let commands: String = COMMANDS.iter().map(line).collect();
        self.out.text(&format!("A statement ends with a semicolon. Commands:\n{commands}"))
    }

    /// Runs the statements and commands in a file.
    async fn include(&mut self, path: &Path) -> Result<Flow, Failure> {
        let text = read_text(path, SQL)?;
        if self.including == MOST_INCLUDED {
            let path = path.display();
            return Err(anyhow::anyhow!(
                "{path}: {MOST_INCLUDED} files run each other; does one run itself?"
            )
            .into());
        }
        self.including += 1;
        let ended = self.run_text(&text, Some(&path.display().to_string())).await;
        self.including -= 1;
        ended
    }

    async fn explain(&mut self, sql: Option<String>) -> Result<(), Failure> {
        let sql = sql.map_or_else(|| self.last_query().map(str::to_owned), Ok)?;
        let (scans, plan) = self.session.explain(&sql, &self.params(&sql)?).await.map_err(failure)?;
        self.out.text(&format!("{}\n{plan}", report::scans(&scans)))
    }

    fn last_query(&self) -> Result<&str, Failure> {
        let last = self.last.as_ref().map(|(sql, _)| sql.as_str());
        last.ok_or_else(|| Failure::wrong_usage("there is no last query yet"))
    }

    fn show_last(&mut self) -> Result<(), Failure> {
        self.last_query()?;
        let Some((_, Some(kept))) = &self.last else {
            return Err(Failure::wrong_usage("the last query has no rows that were kept; run it again"));
        };
        let text = self.results.text(kept, usize::MAX)?;
        results::page(&text, self.out)
    }

    /// Runs the last query again and again on the newest rows, until Ctrl-C.
    async fn watch(&mut self, wait: std::time::Duration) -> Result<(), Failure> {
        let sql = self.last_query()?.to_owned();
        loop {
            let now = chrono::Local::now().format("%H:%M:%S");
            self.out.text(&format!("-- {now}, every {} s --\n", wait.as_secs_f64()))?;
            self.reopen().await?;
            match self.query(&sql).await {
                Err(error) if running::is_cancelled(&error) => return Ok(()),
                done => done?,
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.interrupts.notified() => return Ok(()),
            }
        }
    }

    /// Moves all tables to their newest versions, or to those that are set.
    async fn reopen(&mut self) -> Result<(), Failure> {
        let mut tables = self.tables.clone();
        for (name, table) in &mut tables.tables {
            match self.pins.get(name) {
                Some(version) => table.move_to(table.log().at(*version).await?),
                None => table.refresh().await?,
            }
        }
        self.adopt(tables).await
    }

    async fn adopt(&mut self, tables: Tables) -> Result<(), Failure> {
        self.session = session(&tables, &self.limits)?;
        self.tables = tables;
        self.learn_words().await;
        Ok(())
    }

    /// Reads a table at a version from now on.
    async fn pin(&mut self, table: Option<String>, pin: Pin) -> Result<(), Failure> {
        let name = self.table(table.as_deref())?.0.clone();
        let before = self.pins.clone();
        match pin {
            Pin::At(version) => drop(self.pins.insert(name, version)),
            Pin::Newest => drop(self.pins.remove(&name)),
        }
        if let Err(error) = self.reopen().await {
            self.pins = before;
            return Err(error);
        }
        self.out.text(&describe::versions(&self.tables))
    }
}

/// Shows an error in the conversation.
fn show(error: &Failure) {
    if let Failure::Usage(error) | Failure::Failed(error) = error {
        // If standard error is closed, nothing can be reported.
        let _ = writeln!(io::stderr(), "error: {}", message(&error.to_string()));
    }
}
