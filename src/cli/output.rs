//! Output of results, notes and failures.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use evenkeel::report::Layout;
use evenkeel::source::Reading;
use evenkeel::units::ByteSize;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;
use tokio::sync::Notify;

use crate::cli::capture::Capture;
use crate::cli::failure::Failure;
use crate::cli::interrupt::Interrupt;

/// Interval at which an idle spinner turns.
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

/// Standard output for results and standard error for everything else.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: io::Stdout,
    /// Receives everything instead, if the command runs inside another program.
    capture: Option<Arc<Capture>>,
    interrupt: Arc<Interrupt>,
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
        self.interrupt.listen()
    }

    /// Like [`Output::interrupt`], for a command that may need some time to end by itself.
    #[cfg(feature = "serve")]
    pub(crate) fn interrupt_within(&self, patience: Duration) -> Arc<Notify> {
        self.interrupt.listen_within(patience)
    }

    /// Returns the notification of every Ctrl-C. The command continues after it.
    pub(crate) fn repeated_interrupts(&self) -> Arc<Notify> {
        self.interrupt.listen_repeatedly()
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

    /// Prints a note to standard error.
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
            // A bar cannot report its own errors.
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
    // A bar cannot report its own errors.
    let _ = write!(text, "{}", HumanCount(state.per_sec() as u64));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressing_ctrl_c_is_left_to_a_command_only_once_it_listens() {
        let interrupt = Arc::new(Interrupt::default());
        assert!(!interrupt.press());
        let _listens = Output::new(Arc::clone(&interrupt)).interrupt();
        assert!(interrupt.press());
    }
}
