//! Findings about rows that wait: designs that fall behind, with and without a fault.

use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};

use crate::result::{DesignReport, FaultKind, NodeSimulation, RunReport};

/// If the hottest node of a window has at least this many times the mean, more nodes do not help.
const UNEVEN_NODES: f64 = 1.5;

/// Formats rows per second, with decimals if there are few.
pub(super) fn rows(rows: f64) -> String {
    if rows < 10.0 { format!("{rows:.2}") } else { format!("{rows:.0}") }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        long if long >= 172_800.0 => format!("{:.1} days", long / 86_400.0),
        long if long >= 7200.0 => format!("{:.1} h", long / 3600.0),
        long if long >= 120.0 => format!("{:.1} min", long / 60.0),
        short => format!("{short:.1} s"),
    }
}

/// Returns the longest delay of a run, the allowed one, and a description of both.
fn delay(simulation: &NodeSimulation, run: &RunReport) -> (f64, f64, String) {
    let parameters = &simulation.parameters;
    let is_lost = run.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Lost);
    let recovery = if is_lost { parameters.recovery.seconds() } else { 0.0 };
    let allowed = parameters.longest_delay.seconds() + recovery;
    match run.outcome.longest_delay_seconds {
        Some(longest) => (
            longest,
            allowed,
            format!("rows wait up to {}, more than {}", seconds(longest), seconds(allowed)),
        ),
        None => {
            let rows = run.outcome.waiting_rows;
            (rows, 0.0, format!("{rows:.0} rows are never served: no other node is left"))
        }
    }
}

/// Reports a design that falls behind without a fault.
pub(super) fn falls_behind(simulation: &NodeSimulation, design: &DesignReport) -> Option<Finding> {
    let run = design.without_fault().filter(|run| !run.keeps_up)?;
    let (measured, threshold, words) = delay(simulation, run);
    let average = simulation.arrivals.average_rows_per_second;
    let sustained = design.sustained_rows_per_second.unwrap_or(f64::INFINITY);
    let in_the_long_run = design.rows_per_second_in_the_long_run.unwrap_or(f64::INFINITY);
    let grows = in_the_long_run < average;
    let average = rows(average);
    let sustained_rows = rows(sustained);
    let hottest = if design.limited_by_partition { &design.over_partitions } else { &design.over_nodes };
    let count = if design.limited_by_partition { design.partitions } else { design.nodes };
    let share = hottest.sustained_over_mean / count.max(1) as f64;
    let why = match (design.is_sustained, grows) {
        (false, true) => format!(
            "{average} rows arrive per second on average, but it sustains {sustained_rows}: the queue \
                grows for as long as rows arrive"
        ),
        (false, false) => format!(
            "{average} rows arrive per second on average, but it sustains {sustained_rows}: at any moment one \
                {} gets {:.0} % of them",
            if design.limited_by_partition { "partition" } else { "node" },
            share * 100.0
        ),
        (true, _) => format!(
            "it sustains {sustained_rows} rows per second, more than the average of {average}, but not \
                the busy times"
        ),
    };
    // A queue may be invisible because it clears within its window.
    let is_late = run.outcome.longest_delay_seconds.is_none_or(|longest| longest > threshold);
    let (measured, threshold, message) = match is_late {
        true => (measured, threshold, format!("{words}; {why}")),
        false => (simulation.arrivals.average_rows_per_second, sustained, why),
    };
    let nodes_at_a_time =
        design.over_nodes.max_over_mean_at_a_time.max(design.over_nodes.sustained_over_mean);
    let is_uneven = nodes_at_a_time >= UNEVEN_NODES;
    let what = match (design.limited_by_partition, is_uneven) {
        (true, _) => {
            "The hottest partition is the limit, so more nodes do not help: use another partition key, or \
                more partitions."
        }
        (false, true) => {
            "At any moment only a few nodes carry the load, so more nodes hardly help: use a partition key that \
                spreads the rows of each moment."
        }
        (false, false) => "Use more nodes, or larger ones.",
    };
    Some(Finding {
        code: FindingCode::FallsBehind,
        severity: Severity::Problem,
        subject: Subject::from(design.name()),
        message,
        measured,
        threshold,
        advice: what.to_owned(),
    })
}

/// Reports a fault that a design does not survive although it keeps up without it; a design that
/// falls behind anyway is reported only once.
pub(super) fn falls_behind_with_fault(
    simulation: &NodeSimulation,
    design: &DesignReport,
    run: usize,
) -> Option<Finding> {
    design.without_fault().filter(|run| run.keeps_up)?;
    let run = design.runs.get(run).filter(|run| !run.keeps_up)?;
    let fault = run.fault.as_ref()?;
    let (measured, threshold, words) = delay(simulation, run);
    let others = run.outcome.utilization_after_loss.map(|others| {
        format!("; after failover a surviving node would run at {:.0} % of its capacity", others * 100.0)
    });
    let advice = match fault.kind {
        FaultKind::Lost => {
            "Use one node more than the load needs, and enough partitions per node that the partitions \
                of a lost one spread over all others."
        }
        FaultKind::Slow => {
            "A slow node delays its partitions: move some of them away from it, or add nodes until a \
                fraction of one can carry its share."
        }
    };
    Some(Finding {
        code: FindingCode::NoFaultHeadroom,
        severity: Severity::Warning,
        subject: Subject::from(design.name()),
        message: format!(
            "keeps up, but not with {} (node {}): {words}{}",
            fault.requested,
            fault.node,
            others.unwrap_or_default()
        ),
        measured,
        threshold,
        advice: advice.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_shown_in_the_largest_unit_of_which_there_are_two() {
        let shown = [0.04, 119.94, 120.0, 7199.0, 7200.0, 172_799.0, 172_800.0].map(seconds);
        assert_eq!(shown, ["0.0 s", "119.9 s", "2.0 min", "120.0 min", "2.0 h", "48.0 h", "2.0 days"]);
    }
}
