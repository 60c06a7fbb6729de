//! Renders a simulation of nodes as text.

mod assumptions;
mod backlog;
mod balance;
mod design;

use std::fmt::Write as _;

use crate::findings::findings;
use crate::grid::heading;
use crate::grid::{Heading, Layout, count, counted, grid, number, percent};
use crate::nodes::assumptions::assumptions;
use crate::nodes::backlog::{over_time, runs};
use crate::nodes::balance::designs;
use evenkeel_capacity::{DesignReport, NodeOutcome, NodeRecommendation, NodeSimulation};

/// Maximum number of nodes to list.
const NODES_SHOWN: usize = 16;

/// Renders how designs cope with the load, side by side.
#[must_use]
pub fn nodes(simulation: &NodeSimulation, layout: Layout) -> String {
    let mut text = heading(layout, "Nodes: a model, not a measurement");
    text.push_str(&assumptions(simulation));
    simulation.notes.iter().for_each(|note| {
        let _ = writeln!(text, "note: {note}");
    });
    let mut section = |title: &str, body: String| {
        let _ = write!(text, "\n{}{body}", heading(layout, title));
    };
    section("Balance and capacity", designs(simulation, layout));
    section("Backlog", runs(simulation, layout));
    let over_time = over_time(simulation);
    if !over_time.is_empty() {
        section("Backlog over time, in rows", over_time);
    }
    if let Some(design) = shown(simulation) {
        section(&format!("Nodes of {}", design.name()), nodes_of_design(design, layout));
    }
    let _ = writeln!(text, "\n{}", recommendation(simulation));
    text + &findings(layout, "Findings", &simulation.findings)
}

/// Returns the recommended design, else the first.
fn shown(simulation: &NodeSimulation) -> Option<&DesignReport> {
    let is_recommended = |design: &&DesignReport| {
        simulation.recommended.as_ref().is_some_and(|recommended| {
            design.partition_key == recommended.partition_key
                && (design.nodes, design.partitions) == (recommended.nodes, recommended.partitions)
        })
    };
    simulation.designs.iter().find(is_recommended).or(simulation.designs.first())
}

/// Draws the load and the longest queue of each node, in the run without a fault.
fn nodes_of_design(design: &DesignReport, layout: Layout) -> String {
    let Some(run) = design.without_fault() else { return String::new() };
    let headings = [
        Heading::number("node"),
        Heading::number("partitions"),
        Heading::number("rows"),
        Heading::number("share"),
        Heading::number("busy"),
        Heading::number("at most"),
        Heading::number("most waiting"),
        Heading::number("seconds"),
    ];
    let percent_of = |share: Option<f64>| share.map_or("-".to_owned(), percent);
    let row = |(number, node): (usize, &NodeOutcome)| {
        vec![
            number.to_string(),
            count(node.partitions as u64),
            count(node.rows.round() as u64),
            percent(node.rows / run.outcome.arrived_rows.max(f64::MIN_POSITIVE)),
            percent_of(node.utilization),
            percent_of(node.highest_utilization),
            count(node.most_waiting_rows.ceil() as u64),
            format!("{:.1}", node.most_waiting_seconds),
        ]
    };
    let nodes = &run.outcome.nodes;
    let mut text = grid(layout, &headings, nodes.iter().enumerate().take(NODES_SHOWN).map(row).collect());
    if nodes.len() > NODES_SHOWN {
        let _ = writeln!(text, "and {} more nodes", nodes.len() - NODES_SHOWN);
    }
    text
}

/// Names the recommended design and the rule that chose it, or the reason why no design is
/// recommended.
fn recommendation(simulation: &NodeSimulation) -> String {
    let Some(recommended) = &simulation.recommended else {
        return format!("no recommendation: {}", simulation.unsure.as_deref().unwrap_or_default());
    };
    let NodeRecommendation { partition_key, nodes, partitions, keeps_up_with, falls_behind_with } =
        recommended;
    let with = match keeps_up_with.as_slice() {
        [] => "without a fault".to_owned(),
        faults => format!("even with {}", faults.join(" and ")),
    };
    let but = match falls_behind_with.as_slice() {
        [] => String::new(),
        faults => format!("; it falls behind with {}", faults.join(" and ")),
    };
    format!(
        "recommended: HASH({}), {}, {} ({} for each)\n\
         of the designs that keep up with the most faults, the one with the fewest nodes, then the fewest \
         partitions, the most even load at any moment and the simplest key, whatever their order on the command \
         line; it keeps up {with}{but}",
        partition_key.join(", "),
        counted(*nodes as u64, "node"),
        counted(*partitions as u64, "partition"),
        number(*partitions as f64 / (*nodes).max(1) as f64)
    )
}
