//! Balance of designs, and the rates that they sustain.

use crate::grid::{Heading, Layout, grid, percent};
use crate::nodes::assumptions::rate_text;
use crate::nodes::design;
use crate::values::rows_per_second;
use evenkeel_capacity::{DesignReport, NodeSimulation};

/// Meaning of the figures of designs.
const LEGEND: &str = "hottest: rate over the mean, over the whole time and within a window (in window); by chance: the \
    hottest node if a perfect hash placed as many equal keys; busy: average load of the hottest node; rows \
    per second: no queue up to: the highest rate at which nothing waits at the end of any window; long run: \
    the highest rate at which every backlog drains in the end; sustains: the rate at which the hottest \
    partition or node at any moment is at its capacity, as in evaluate and bench ingest\n";

/// Draws the balance and the capacity of each design, and explains them.
pub(super) fn designs(simulation: &NodeSimulation, layout: Layout) -> String {
    let others = [
        Heading::number("hottest partition"),
        Heading::number("in window"),
        Heading::number("hottest node"),
        Heading::number("in window"),
        Heading::number("by chance"),
        Heading::number("node handles"),
        Heading::number("busy"),
        Heading::number("no queue up to"),
        Heading::number("long run"),
        Heading::number("sustains"),
    ];
    let row = |design: &DesignReport| {
        let mut cells = design::cells(design);
        let nodes = design.without_fault().map(|run| run.outcome.nodes.as_slice()).unwrap_or_default();
        let busiest = nodes.iter().filter_map(|node| node.utilization).reduce(f64::max);
        let up_to = |rate: Option<f64>| rate.map_or("-".to_owned(), rows_per_second);
        cells.extend([
            times(design.over_partitions.in_total.max_over_mean),
            times(design.over_partitions.max_over_mean_at_a_time),
            times(design.over_nodes.in_total.max_over_mean),
            times(design.over_nodes.max_over_mean_at_a_time),
            times(design.over_nodes.noise_floor.expected_max_over_mean_equal_keys),
            rate_text(design.capacities.node).unwrap_or_else(|| "-".to_owned()),
            busiest.map_or("-".to_owned(), percent),
            up_to(design.rows_per_second_without_queue),
            up_to(design.rows_per_second_in_the_long_run),
            up_to(design.sustained_rows_per_second),
        ]);
        cells
    };
    grid(layout, &design::headings(others), simulation.designs.iter().map(row).collect()) + LEGEND
}

fn times(over_mean: f64) -> String {
    format!("{over_mean:.2}")
}
