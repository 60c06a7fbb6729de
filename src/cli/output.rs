//! Output of results, notes and failures.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use evenkeel::TableError;
use evenkeel::bounded::message;
use evenkeel::capacity::CapacityError;
use evenkeel::compact::CompactionError;
use evenkeel::delta::DeltaError;
use evenkeel::evaluate::EvaluateError;
use evenkeel::ingest::IngestError;
use evenkeel::query::QueryError;
use evenkeel::repartition::RepartitionError;
use evenkeel::report::Layout;
use evenkeel::sink::SinkError;
use evenkeel::source::Reading;
use evenkeel::spanner::simulate::SimulateError;
use evenkeel::units::ByteSize;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;
use tokio::sync::Notify;

use crate::cli::capture::Capture;

/// Exit code after Ctrl-C: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;
/// Exit code if a result meets a threshold.
const THRESHOLD: u8 = 3;
/// Interval at which a spinner turns if nothing else moves it.
const TICK: Duration = Duration::from_millis(200);
/// Characters of a progress bar.
const BAR_WIDTH: usize = 30;

/// Output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
    /// Markdown.
    Markdown,
}

impl Format {
    /// Returns the layout of text; `None` for JSON.
    pub(crate) fn layout(self) -> Option<Layout> {
        match self {
            Self::Table => Some(Layout::Plain),
            Self::Markdown => Some(Layout::Markdown),
            Self::Json => None,
        }
    }
}

/// Reason why a command does not exit with 0.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments do not fit together or do not parse.
    Usage(anyhow::Error),
    /// The work failed.
    Failed(anyhow::Error),
    /// The work is done, and a `--fail-on` threshold was met.
    Threshold(String),
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        // A refused declaration is wrong usage, not a failure of the work.
        let refused = matches!(
            error.downcast_ref(),
            Some(
                TableError::Spec(_)
                    | TableError::Repartition(RepartitionError::Nothing { .. })
                    | TableError::Delta(DeltaError::UnknownColumn { .. } | DeltaError::NoColumns)
            )
        );
        if refused { Self::Usage(error) } else { Self::Failed(error) }
    }
}

impl Failure {
    /// Creates a failure of the arguments.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self::Usage(error.into())
    }

    /// Creates a failure of the arguments from a message.
    pub(crate) fn wrong_usage(message: impl Into<String>) -> Self {
        Self::Usage(anyhow::anyhow!(message.into()))
    }

    /// Adds the path of the output file if writing it failed.
    pub(crate) fn of_sink(self, path: &Path) -> Self {
        match self {
            Self::Failed(error) if error.is::<SinkError>() => {
                Self::Failed(anyhow::anyhow!("{}: {error}", path.display()))
            }
            other => other,
        }
    }

    /// Adds a hint if a damaged file of the table in `dir` may be the cause.
    pub(crate) fn with_hint_of_damage(self, dir: &Path) -> Self {
        match self {
            Self::Failed(error) if may_be_damage(&error) => {
                let dir = dir.display();
                Self::Failed(anyhow::anyhow!(
                    "{error}. A file of the table may be damaged, or was deleted by a cleaning while it \
                        was read: 'evenkeel check {dir}' finds out; 'evenkeel query {dir} --skip-damaged' reads the rest"
                ))
            }
            other => other,
        }
    }

    /// Prefixes the message with the place of the failure, such as a file and a line.
    pub(crate) fn at(self, place: &str) -> Self {
        let placed = |error: anyhow::Error| anyhow::anyhow!("{place}: {error}");
        match self {
            Self::Usage(error) => Self::Usage(placed(error)),
            Self::Failed(error) => Self::Failed(placed(error)),
            threshold @ Self::Threshold(_) => threshold,
        }
    }

    /// Adds the hint that `hint` returns, if any.
    pub(crate) fn with_hint(self, hint: impl Fn(&anyhow::Error) -> Option<String>) -> Self {
        let hinted = |error: anyhow::Error| match hint(&error) {
            Some(hint) => anyhow::anyhow!("{error}. {hint}"),
            None => error,
        };
        match self {
            Self::Usage(error) => Self::Usage(hinted(error)),
            Self::Failed(error) => Self::Failed(hinted(error)),
            threshold @ Self::Threshold(_) => threshold,
        }
    }

    /// Whether the work was interrupted.
    pub(crate) fn is_interrupt(&self) -> bool {
        matches!(self, Self::Failed(error) if is_interrupt(error))
    }

    /// Prints the failure and returns the exit code. A closed pipe, as left by `head`, is no
    /// failure.
    pub(crate) fn report(&self) -> u8 {
        let (error, code) = match self {
            Self::Threshold(crossings) => {
                let _ = writeln!(io::stderr(), "{crossings}");
                return THRESHOLD;
            }
            Self::Usage(error) => (error, 2),
            Self::Failed(error) if is_interrupt(error) => (error, INTERRUPTED),
            Self::Failed(error) => (error, 1),
        };
        let closed = error.chain().any(|cause| {
            cause.downcast_ref::<io::Error>().is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
        });
        if closed {
            return 0;
        }
        // If standard error is closed too, nothing can be reported. `message` limits the text,
        // since libraries quote input of any form.
        let _ = writeln!(io::stderr(), "error: {}", message(&error.to_string()));
        code
    }
}

/// Whether reading a file failed, rather than the query.
fn may_be_damage(error: &anyhow::Error) -> bool {
    let query = match error.downcast_ref() {
        Some(TableError::Query(query)) => Some(query),
        _ => error.downcast_ref::<QueryError>(),
    };
    query.is_some_and(QueryError::is_of_a_file)
}

fn is_interrupt(error: &anyhow::Error) -> bool {
    let of_table = matches!(
        error.downcast_ref(),
        Some(
            TableError::Ingest(IngestError::Interrupted)
                | TableError::Compaction(CompactionError::Interrupted)
                | TableError::Repartition(RepartitionError::Ingest(IngestError::Interrupted))
        )
    );
    of_table
        || matches!(error.downcast_ref(), Some(EvaluateError::Interrupted))
        || matches!(error.downcast_ref(), Some(SimulateError::Interrupted))
        || matches!(error.downcast_ref(), Some(CapacityError::Interrupted))
}

/// Standard output for results and standard error for everything else.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: io::Stdout,
    /// Gets everything instead, if the command runs inside another program.
    capture: Option<Arc<Capture>>,
    interrupt: Arc<Interrupt>,
}

/// State of the handling of Ctrl-C.
#[derive(Debug, Default)]
pub(crate) struct Interrupt {
    /// Notified when Ctrl-C is pressed.
    pressed: Arc<Notify>,
    /// Whether the command listens and cleans up by itself.
    awaited: AtomicBool,
    /// Whether the command goes on after Ctrl-C, which ends a part of its work.
    repeated: AtomicBool,
    /// Milliseconds that the command needs to end by itself; 0 for the usual time.
    patience: AtomicU64,
}

impl Interrupt {
    /// Records that Ctrl-C was pressed, and returns whether the command will end by itself.
    pub(crate) fn press(&self) -> bool {
        self.pressed.notify_one();
        self.awaited.load(Ordering::Relaxed)
    }

    /// Time that the command needs to end by itself, if it is not the usual one.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let millis = self.patience.load(Ordering::Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Whether the command goes on after Ctrl-C.
    pub(crate) fn is_repeated(&self) -> bool {
        self.repeated.load(Ordering::Relaxed)
    }
}

impl Output {
    pub(crate) fn new(interrupt: Arc<Interrupt>) -> Self {
        Self { stdout: io::stdout(), capture: None, interrupt }
    }

    /// Creates the output of a command inside another program.
    pub(crate) fn captured(capture: Arc<Capture>, interrupt: Arc<Interrupt>) -> Self {
        Self { stdout: io::stdout(), capture: Some(capture), interrupt }
    }

    /// Returns the notification of Ctrl-C. The command promises to listen and to end by itself.
    pub(crate) fn interrupt(&self) -> Arc<Notify> {
        self.interrupt.awaited.store(true, Ordering::Relaxed);
        Arc::clone(&self.interrupt.pressed)
    }

    /// Like [`Output::interrupt`], for a command that may need some time to end by itself.
    #[cfg(feature = "serve")]
    pub(crate) fn interrupt_within(&self, patience: Duration) -> Arc<Notify> {
        let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        self.interrupt.patience.store(millis, Ordering::Relaxed);
        self.interrupt()
    }

    /// Returns the notification of every Ctrl-C. The command goes on after it.
    pub(crate) fn repeated_interrupts(&self) -> Arc<Notify> {
        self.interrupt.repeated.store(true, Ordering::Relaxed);
        Arc::clone(&self.interrupt.pressed)
    }

    /// Prints a result as it is.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        if let Some(capture) = &self.capture {
            capture.text(text);
            return Ok(());
        }
        self.stdout.write_all(text.as_bytes())?;
        Ok(self.stdout.flush()?)
    }

    /// Prints a result as text, or as JSON if requested.
    pub(crate) fn result<T: Serialize>(
        &mut self,
        format: Format,
        value: &T,
        render: impl FnOnce(&T, Layout) -> String,
    ) -> Result<(), Failure> {
        if let Some(capture) = &self.capture {
            capture.value(serde_json::to_value(value)?);
            return self.text(&render(value, Layout::Plain));
        }
        match format.layout() {
            Some(layout) => self.text(&render(value, layout)),
            None => self.text(&format!("{}\n", serde_json::to_string_pretty(value)?)),
        }
    }

    /// Adds a page to the result of a command inside another program, and the part of the page that
    /// fits in another one; other outputs write pages only on request.
    pub(crate) fn page(&self, pages: impl FnOnce() -> (Option<String>, Option<String>)) {
        if let Some(capture) = &self.capture {
            let (page, fragment) = pages();
            capture.page(page, fragment);
        }
    }

    /// Prints a note beside the result.
    pub(crate) fn note(&self, text: &str) {
        if let Some(capture) = &self.capture {
            return capture.note(text);
        }
        let _ = writeln!(io::stderr(), "note: {text}");
    }

    /// Returns standard output as a stream, and whether it is a terminal.
    pub(crate) fn stdout(&self) -> (io::Stdout, bool) {
        (io::stdout(), self.stdout.is_terminal())
    }

    /// Runs work in a separate thread. It gets a progress bar, and a flag that is set when Ctrl-C
    /// is pressed.
    pub(crate) async fn in_background<T: Send + 'static>(
        &self,
        reading: Option<Reading>,
        work: impl FnOnce(&ProgressBar, &AtomicBool) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let bar = self.progress_of(reading);
        let pressed = self.interrupt();
        let (stopped, counter) = (Arc::clone(&stop), bar.clone());
        let mut work = tokio::task::spawn_blocking(move || work(&counter, &stopped));
        let done = tokio::select! {
            done = &mut work => done,
            () = pressed.notified() => {
                stop.store(true, Ordering::Relaxed);
                work.await
            }
        };
        bar.finish_and_clear();
        Ok(done?)
    }

    /// Creates a progress bar for rows that are read, which shows how much of the inputs that is,
    /// if their size is known.
    pub(crate) fn progress_of(&self, reading: Option<Reading>) -> ProgressBar {
        if let Some(capture) = &self.capture {
            return capture.bar(None, "rows", reading);
        }
        let bar = self.progress(None, "rows");
        let Some(reading) = reading else { return bar };
        let template = "{part} {human_pos} rows, {rate}/s {msg}";
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let style = style.with_key("rate", rate);
        let part = move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
            let share = reading.share();
            let full = "█".repeat((share * BAR_WIDTH as f64) as usize);
            // A bar cannot report errors of its own.
            let _ =
                write!(text, "{full:░<BAR_WIDTH$} {:3.0} % of {}", 100.0 * share, ByteSize(reading.bytes));
        };
        bar.set_style(style.with_key("part", part));
        bar
    }

    /// Creates a progress bar on standard error, if that is a terminal. Without a length it shows a
    /// spinner.
    pub(crate) fn progress(&self, length: Option<u64>, unit: &str) -> ProgressBar {
        if let Some(capture) = &self.capture {
            return capture.bar(length, unit, None);
        }
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(length, target);
        let template = match length {
            Some(_) => format!("{{bar:30}} {{human_pos}} of {{human_len}} {unit}, {{rate}}/s {{msg}}"),
            None => format!("{{spinner}} {{human_pos}} {unit}, {{rate}}/s {{msg}}"),
        };
        // The template is constant; if it were wrong, the plain bar would do.
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("rate", rate));
        bar.enable_steady_tick(TICK);
        bar
    }
}

/// Writes the steps of a bar per second.
fn rate(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    // A bar cannot report errors of its own.
    let _ = write!(text, "{}", HumanCount(state.per_sec() as u64));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(failure: &Failure) -> String {
        match failure {
            Failure::Usage(error) => format!("usage: {error}"),
            Failure::Failed(error) => format!("failed: {error}"),
            Failure::Threshold(text) => format!("threshold: {text}"),
        }
    }

    #[test]
    fn a_hint_keeps_the_kind_of_the_failure() {
        let hinted = |failure: Failure| text(&failure.with_hint(|_| Some("try again".to_owned())));
        assert_eq!(hinted(Failure::wrong_usage("no column 'x'")), "usage: no column 'x'. try again");
        assert_eq!(hinted(anyhow::anyhow!("disk full").into()), "failed: disk full. try again");
        assert_eq!(hinted(Failure::Threshold("met".to_owned())), "threshold: met");
        assert_eq!(text(&Failure::wrong_usage("x").with_hint(|_| None)), "usage: x");
    }

    #[test]
    fn a_hint_of_damage_needs_a_query_that_failed_on_a_file() {
        let other = Failure::from(anyhow::anyhow!("disk full")).with_hint_of_damage(Path::new("events"));
        assert_eq!(text(&other), "failed: disk full");
    }

    #[test]
    fn interrupts_of_every_kind_of_work_are_recognized() {
        for error in [
            anyhow::Error::from(TableError::Ingest(IngestError::Interrupted)),
            TableError::Compaction(CompactionError::Interrupted).into(),
            EvaluateError::Interrupted.into(),
            SimulateError::Interrupted.into(),
            CapacityError::Interrupted.into(),
        ] {
            assert!(is_interrupt(&error), "{error:?}");
        }
        assert!(!is_interrupt(&anyhow::anyhow!("interrupted")));
    }

    #[test]
    fn pressing_ctrl_c_is_left_to_a_command_only_once_it_listens() {
        let interrupt = Arc::new(Interrupt::default());
        assert!(!interrupt.press());
        let _listens = Output::new(Arc::clone(&interrupt)).interrupt();
        assert!(interrupt.press());
    }
}
