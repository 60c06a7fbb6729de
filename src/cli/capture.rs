//! Results of commands that run inside another program instead of in a terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenkeel::source::Reading;
use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::Value;

use crate::cli::interrupt::Interrupt;

/// Everything that a command reports.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Captured {
    /// The result, as `--format json` prints it; `Null` if the command has no such form.
    pub value: Value,
    /// The result as text for people.
    pub text: String,
    /// The report as a page of HTML, if the command has one.
    pub page: Option<String>,
    /// The most important part of that page, to be shown within another one.
    pub fragment: Option<String>,
    /// Notes on the result, one sentence each.
    pub notes: Vec<String>,
}

/// State of a captured command, for the thread that waits for it.
#[derive(Debug, Default)]
pub struct Capture {
    interrupt: Arc<Interrupt>,
    reported: Mutex<Captured>,
    bar: Mutex<Option<Bar>>,
}

/// Progress of a step of a command.
#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    reading: Option<Reading>,
    unit: String,
}

/// Progress of a step of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Steps that are done.
    pub done: u64,
    /// Unit of the steps, such as `rows`.
    pub unit: String,
    /// Share of the step that is done, from 0 to 1, if its size is known.
    pub share: Option<f64>,
    /// Current input or part of the work, if the command names it.
    pub message: String,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Capture {
    /// Creates the state of a command that has not started.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Requests the command to stop. Returns whether it will end by itself, as soon as it has
    /// cleaned up; otherwise its future must be dropped.
    pub fn interrupt(&self) -> bool {
        self.interrupt.press()
    }

    /// Returns the state of interrupts, for the output of the command.
    pub(super) fn interrupts(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    /// Returns the progress of the current step; `None` between steps.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        let current = locked(&self.bar);
        let Bar { bar, reading, unit } = current.as_ref().filter(|current| !current.bar.is_finished())?;
        let done = bar.position();
        let of_length = bar.length().filter(|length| *length > 0).map(|length| done as f64 / length as f64);
        let share = reading.as_ref().map(Reading::share).or(of_length);
        Some(Progress { done, unit: unit.clone(), share, message: bar.message() })
    }

    /// Records text that is printed.
    pub(super) fn text(&self, text: &str) {
        locked(&self.reported).text.push_str(text);
    }

    /// Records a result.
    pub(super) fn value(&self, value: Value) {
        locked(&self.reported).value = value;
    }

    /// Records a page of HTML, and the part of it that fits in another page.
    pub(super) fn page(&self, page: Option<String>, fragment: Option<String>) {
        let mut reported = locked(&self.reported);
        reported.page = page;
        reported.fragment = fragment;
    }

    /// Records a note.
    pub(super) fn note(&self, text: &str) {
        locked(&self.reported).notes.push(text.to_owned());
    }

    /// Creates a hidden bar, and makes it the current one.
    pub(super) fn bar(&self, length: Option<u64>, unit: &str, reading: Option<Reading>) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden());
        *locked(&self.bar) = Some(Bar { bar: bar.clone(), reading, unit: unit.to_owned() });
        bar
    }

    /// Returns the captured output, and clears it.
    pub(super) fn take(&self) -> Captured {
        std::mem::take(&mut *locked(&self.reported))
    }
}
