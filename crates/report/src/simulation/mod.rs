//! Renders a simulation of range splits as text.

mod against_hash;
mod assumptions;
mod conclusion;
mod reads;
mod writes;

use std::fmt::Write as _;

use crate::findings::findings;
use crate::grid::Layout;
use crate::grid::heading;
use crate::simulation::conclusion::recommendation;
use crate::simulation::reads::{indexes, reads};
use crate::simulation::writes::{over_time, writes};
use evenkeel_spanner::simulate::Simulation;

pub(crate) use against_hash::{against_hash, cost_of_change};
pub(crate) use assumptions::assumptions;
pub(crate) use conclusion::sentence;
pub(crate) use writes::{hottest_share, patterns};

/// Renders the effects of strategies on writes and reads, side by side.
#[must_use]
pub fn simulation(simulation: &Simulation, layout: Layout) -> String {
    let mut text = heading(layout, "Range splits: a model, not a measurement");
    text.push_str(&assumptions(simulation));
    simulation.notes.iter().for_each(|note| {
        let _ = writeln!(text, "note: {note}");
    });
    let mut section = |title, body: String| {
        let _ = write!(text, "\n{}{body}", heading(layout, title));
    };
    section("Writes", writes(simulation, layout));
    section("Reads and transactions, in splits touched", reads(simulation, layout));
    if simulation.strategies.iter().any(|report| !report.indexes.is_empty()) {
        section("Indexes", indexes(simulation, layout));
    }
    if simulation.strategies.iter().any(|report| !report.is_range) {
        section("Against hash partitions", against_hash::section(simulation, layout));
    }
    section("Over time", over_time(simulation));
    text.push('\n');
    for report in &simulation.strategies {
        let _ = writeln!(text, "{}: {}", report.strategy, sentence(simulation, report));
    }
    // Only a comparison of the key's strategies ends in a recommendation.
    if simulation.strategies.iter().any(|report| report.reads.len() > 1) {
        let _ = writeln!(text, "\n{}", recommendation(simulation));
    }
    text + &findings(layout, &format!("Findings on {}", simulation.judged()), &simulation.findings)
}
