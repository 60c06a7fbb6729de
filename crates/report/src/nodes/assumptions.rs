//! Load, placement and capacities of a simulation of nodes, in sentences.

use crate::grid::{counted, number};
use crate::values::{instant, rate, rows_per_second};
use evenkeel_capacity::{Assignment, NodeParameters, NodeSimulation, Rate};
use evenkeel_model::units::ByteSize;
use evenkeel_stats::throughput::DEFAULT_PARTITION_RATE;

/// Lists the assumptions of the model, one per line.
pub(super) fn assumptions(simulation: &NodeSimulation) -> String {
    let parameters = &simulation.parameters;
    let lines = [
        rows(simulation),
        arrivals(simulation),
        format!("placed by {}, {}", parameters.placement, assignment(parameters.assignment)),
        capacity(parameters),
        "the rows of a window arrive evenly over it and are served evenly, the oldest of a partition first; \
         if a node cannot serve all of its partitions, they share its capacity evenly"
            .to_owned(),
        format!(
            "a lost node stays lost; {} later its partitions are served by the others, {}",
            parameters.recovery,
            match parameters.assignment {
                Assignment::LeastLoaded => "the heaviest first, each by the node with the least total load",
                Assignment::RoundRobin | Assignment::Contiguous => "assigned in turn",
            }
        ),
        format!(
            "keeps up: the average load is sustained, and no row waits longer than {}, plus {} after a loss",
            parameters.longest_delay, parameters.recovery
        ),
    ];
    lines.join("\n") + "\n"
}

/// Describes the rows of the export and their order.
fn rows(simulation: &NodeSimulation) -> String {
    format!(
        "{}, {} of values{}; {}",
        counted(simulation.rows, "row"),
        ByteSize(simulation.bytes),
        match simulation.parameters.scale {
            1.0 => String::new(),
            scale => format!(", each stands for {}", number(scale)),
        },
        match &simulation.time {
            Some(time) => format!("they arrive in the order of {time}"),
            None => "they arrive evenly spaced".to_owned(),
        }
    )
}

/// Describes the average and the greatest load.
fn arrivals(simulation: &NodeSimulation) -> String {
    let arrivals = &simulation.arrivals;
    format!(
        "{} of {} with rows: {}, {} on average; {}, {} in the busiest, from {}",
        counted(arrivals.windows as u64, "window"),
        simulation.parameters.window,
        rows_per_second(arrivals.average_rows_per_second),
        rate(arrivals.average_bytes_per_second),
        rows_per_second(arrivals.busiest_rows_per_second),
        rate(arrivals.busiest_bytes_per_second),
        instant(arrivals.busiest_start_micros)
    )
}

fn assignment(assignment: Assignment) -> &'static str {
    match assignment {
        Assignment::RoundRobin => "partitions assigned to nodes in turn",
        Assignment::LeastLoaded => {
            "partitions assigned to nodes by total load, the heaviest first (no real system knows it in advance)"
        }
        Assignment::Contiguous => "partitions assigned to nodes in contiguous ranges",
    }
}

fn capacity(parameters: &NodeParameters) -> String {
    let capacity = |owner: &str, rate: Rate| match rate_text(rate) {
        None => format!("{owner} is not limited"),
        Some(rate) => format!("{owner} handles {rate}"),
    };
    let default = Rate { rows_per_second: None, bytes_per_second: Some(DEFAULT_PARTITION_RATE) };
    let given = parameters.capacities.partition;
    let partition = capacity("a partition", if given.is_limited() { given } else { default });
    match parameters.headroom {
        Some(headroom) => format!(
            "assumed, as no capacity is given: all nodes of a design together handle {} times the rows of \
             the busiest window, each node the same; {partition}",
            number(headroom)
        ),
        None => format!("{}; {partition}", capacity("a node", parameters.capacities.node)),
    }
}

/// Formats the limits of a rate; `None` without limits.
pub(super) fn rate_text(limits: Rate) -> Option<String> {
    let parts = [limits.rows_per_second.map(rows_per_second), limits.bytes_per_second.map(rate)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_lists_its_limits_and_is_none_without_any() {
        let rate = |rows_per_second, bytes_per_second| rate_text(Rate { rows_per_second, bytes_per_second });
        assert_eq!(rate(Some(16_000.0), None).as_deref(), Some("16,000 rows/s"));
        assert_eq!(rate(None, Some(2e6)).as_deref(), Some("2.0 MB/s"));
        assert_eq!(rate(Some(0.5), Some(2e6)).as_deref(), Some("0.50 rows/s, 2.0 MB/s"));
        assert_eq!(rate(None, None), None);
    }
}
