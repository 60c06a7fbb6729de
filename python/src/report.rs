//! Reports of commands, as Python gets them.

use evenkeel::cli::Captured;

/// Report of a command: its result as JSON and as text, its page of HTML and the part of it that
/// fits in another page, and its notes.
pub(crate) type Report = (String, String, Option<String>, Option<String>, Vec<String>);

/// Converts what a command returned.
pub(crate) fn report(captured: Captured) -> Report {
    let Captured { value, text, page, fragment, notes } = captured;
    (value.to_string(), text, page, fragment, notes)
}
