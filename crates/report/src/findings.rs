//! Renders findings as text.

use crate::grid::Layout;
use crate::grid::heading;
use evenkeel_model::finding::Finding;

/// Lists findings under a title, after an empty line; nothing if there are none.
pub(crate) fn findings(layout: Layout, title: &str, findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let lines = findings.iter().map(|finding| {
        let Finding { severity, code, subject, message, advice, .. } = finding;
        format!("- {} [{code}] {subject}: {message}\n  {advice}\n", severity.word())
    });
    format!("\n{}{}", heading(layout, title), lines.collect::<String>())
}
