//! `evenkeel sql`: a shell for SQL.
//!
//! ```text
//! line ── editor (completion, colours, until a semicolon) ── history
//!      ├─ commands: \d, \explain, ...  ── Shell
//!      └─ lexer: one statement ── running (progress, Ctrl-C) ── results (screen, file, pager)
//! ```

mod commands;
mod conversation;
mod describe;
mod editor;
mod engine;
mod history;
mod lexer;
mod results;
mod running;
mod script;
mod terminal;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use clap::Args as ClapArgs;
use evenkeel::query::{Params, QueryLimits, TableSession};
use evenkeel::report;
use evenkeel::units::Version;
use tokio::sync::Notify;

use crate::cli::limits::LimitArgs;
use crate::cli::query::params_of;
use crate::cli::shell::commands::{COMMANDS, Command, Pin};
use crate::cli::shell::editor::{WORDS_TO_LEAVE, Words};
use crate::cli::shell::engine::Engine;
use crate::cli::shell::lexer::is_blank;
use crate::cli::shell::results::{ResultHead, Results};
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

A statement ends with a semicolon. \\? lists the commands, Tab completes names, and Ctrl-C cancels a query. Input \
is kept in ~/.local/state/evenkeel/history, or in the file that EVENKEEL_HISTORY names, except lines that may \
contain a password or a key.")]
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

    /// Maximum number of rows to show as a table; the rest is counted.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    rows: usize,

    #[command(flatten)]
    limits: LimitArgs,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let limits = args.limits.limits()?;
    if args.places.iter().any(|place| place == "-" || place.ends_with("=-")) {
        return Err(Failure::wrong_usage("standard input contains the statements; name files or tables"));
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

/// Opens a session whose queries have their limits from [`running`].
fn session(tables: &Tables, limits: &QueryLimits) -> Result<TableSession, Failure> {
    tables.session_with(&QueryLimits { timeout: None, ..limits.clone() })
}

/// Whether the shell continues.
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
    /// Versions to read tables at, if not the newest.
    pins: BTreeMap<String, Version>,
    params: BTreeMap<String, String>,
    results: Results,
    is_timed: bool,
    /// The last query, and its rows.
    last: Option<(String, Option<ResultHead>)>,
    words: Arc<Mutex<Words>>,
    interrupts: Arc<Notify>,
    /// Runtime for queries.
    engine: Engine,
    /// Number of files being run, each by the previous one.
    including: usize,
}

impl Shell<'_> {
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

    async fn explain(&mut self, sql: Option<String>) -> Result<(), Failure> {
        let sql = sql.map_or_else(|| self.last_query().map(str::to_owned), Ok)?;
        let explanation =
            self.session.explain(&sql, &self.params(&sql)?).await.map_err(Failure::from_query)?;
        self.out.text(&report::explanation(&explanation))
    }

    fn last_query(&self) -> Result<&str, Failure> {
        let last = self.last.as_ref().map(|(sql, _)| sql.as_str());
        last.ok_or_else(|| Failure::wrong_usage("no query has run yet"))
    }

    fn show_last(&mut self) -> Result<(), Failure> {
        self.last_query()?;
        let Some((_, Some(kept))) = &self.last else {
            return Err(Failure::wrong_usage("no rows of the last query were kept; run it again"));
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

    /// Moves all tables to their newest versions, or to the versions that were set.
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
