//! Backlog of each run, and its course over time.

use std::fmt::Write as _;

use crate::grid::{Heading, Layout, count, grid, number, percent};
use crate::nodes::design;
use crate::values::{instant, spark_of};
use evenkeel_capacity::{DesignReport, FaultKind, NodeSimulation, RunOutcome, RunReport};
use evenkeel_model::units::{ByteSize, elapsed};

/// Number of characters of a line over time.
const DRAWN: usize = 60;

/// Meaning of the figures of runs.
const LEGEND: &str = "most rows, bytes: largest backlog of all nodes; seconds: that the node or partition \
    with the longest queue needs to drain it; drained after: from the fault until nothing waits; others \
    busy: load since the fault of the busiest node that took over partitions\n";

/// Draws the backlog of each run, and explains the figures.
pub(super) fn runs(simulation: &NodeSimulation, layout: Layout) -> String {
    let others = [
        Heading::text("fault"),
        Heading::text("waiting from"),
        Heading::text("to"),
        Heading::number("most rows"),
        Heading::number("bytes"),
        Heading::number("seconds"),
        Heading::number("longest delay"),
        Heading::number("mean"),
        Heading::number("drained after"),
        Heading::number("others busy"),
        Heading::text("keeps up"),
    ];
    let row = |(design, run): (&DesignReport, &RunReport)| {
        let RunOutcome { peak, most_waiting_seconds, .. } = &run.outcome;
        let at = |micros: Option<i64>| micros.map(instant);
        let never = run.outcome.is_never_served();
        let or_never = |text: Option<String>| match text {
            Some(text) => text,
            None if never => "never".to_owned(),
            None => "-".to_owned(),
        };
        let mut cells = design::cells(design);
        cells.extend([
            fault(run),
            at(run.outcome.waiting_from_micros).unwrap_or_else(|| "-".to_owned()),
            or_never(at(run.outcome.waiting_until_micros)),
            peak.map_or("-".to_owned(), |peak| count(peak.rows.ceil() as u64)),
            peak.map_or("-".to_owned(), |peak| ByteSize(peak.bytes.ceil() as u64).to_string()),
            if *most_waiting_seconds > 0.0 { number(*most_waiting_seconds) } else { "-".to_owned() },
            or_never(run.outcome.longest_delay_seconds.map(seconds)),
            or_never(run.outcome.mean_delay_seconds.map(seconds)),
            match run.fault.is_some() {
                true => or_never(run.seconds_to_drain.map(seconds)),
                false => "-".to_owned(),
            },
            run.outcome.utilization_after_loss.map_or("-".to_owned(), percent),
            if run.keeps_up { "yes" } else { "NO" }.to_owned(),
        ]);
        cells
    };
    let all = simulation.designs.iter().flat_map(|design| design.runs.iter().map(move |run| (design, run)));
    grid(layout, &design::headings(others), all.map(row).collect()) + LEGEND
}

fn fault(run: &RunReport) -> String {
    match &run.fault {
        None => "none".to_owned(),
        Some(fault) if fault.kind == FaultKind::Slow => {
            format!("node {} at {}", fault.node, percent(fault.factor))
        }
        Some(fault) => format!("node {} lost {}", fault.node, instant(fault.at_micros)),
    }
}

/// Draws the backlog in rows at the end of each window, or the largest of neighbouring windows, for
/// each run that has one.
pub(super) fn over_time(simulation: &NodeSimulation) -> String {
    let mut text = String::new();
    for design in &simulation.designs {
        let waits = |run: &&RunReport| run.outcome.waiting_rows_by_window.iter().any(|rows| *rows > 0.0);
        for run in design.runs.iter().filter(waits) {
            let rows = &run.outcome.waiting_rows_by_window;
            let together = rows.len().div_ceil(DRAWN).max(1);
            let most = |rows: &[f64]| rows.iter().copied().fold(0.0, f64::max);
            let highest = most(rows);
            let line: String = rows.chunks(together).map(|rows| spark_of(most(rows), highest)).collect();
            let fault = run.fault.as_ref().map(|_| format!(", {}", fault(run)));
            let _ = writeln!(text, "{line}  {}{}", design.name(), fault.unwrap_or_default());
        }
    }
    text
}

fn seconds(seconds: f64) -> String {
    match seconds {
        0.0 => "0 s".to_owned(),
        short if short < 100.0 => format!("{short:.1} s"),
        long => elapsed((long * 1e6) as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_are_seconds_and_long_ones_have_larger_units() {
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(3.94), "3.9 s");
        assert_eq!(seconds(99.9), "99.9 s");
        assert_eq!(seconds(323.0), "5 m 23 s");
        assert_eq!(seconds(86_400.0 + 20.0 * 3600.0), "1 d 20 h");
    }
}
