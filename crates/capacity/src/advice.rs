//! Advice drawn from the figures: the recommended design, and the problems of the others.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::delays::{falls_behind, falls_behind_with_fault, rows};
use crate::result::{DesignReport, NodeRecommendation, NodeSimulation};
use evenkeel_advisor::evaluate::ROWS_PER_PARTITION_OF_WINDOW;
use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};
use evenkeel_model::table::{KeyPart, Transform};
use evenkeel_stats::skew::are_enough_rows;

/// The load moves if the hottest partition of a window has this many times the load of the hottest
/// one over the whole time, and of the load expected by chance.
const MOVES: f64 = 1.5;
/// Distinct keys per partition below which YDB advises against this number of partitions.
const MIN_KEYS: f64 = 100.0;
/// Multiple of the share of one node that a single partition may have.
const HOT_PARTITION: f64 = 1.15;
/// Multiple of the mean that the hottest node may have because of the assignment alone.
const UNEVEN_DEAL: f64 = 1.05;

/// Returns the smallest design that keeps up with the most faults, or the reason why no design is
/// recommended.
pub(super) fn recommend(simulation: &NodeSimulation) -> (Option<NodeRecommendation>, Option<String>) {
    let nodes: BTreeSet<usize> = simulation.designs.iter().map(|design| design.nodes).collect();
    if simulation.parameters.headroom.is_some() && nodes.len() > 1 {
        let reason = "no capacity is given, so that the nodes of each design are as strong as they have to be, and their number cannot be judged: \
                      give --node-rows-per-second or --node-bytes-per-second";
        return (None, Some(reason.to_owned()));
    }
    let keeping = || {
        let is_keeping = |design: &&DesignReport| design.without_fault().is_some_and(|run| run.keeps_up);
        simulation.designs.iter().filter(is_keeping)
    };
    let faults = |design: &DesignReport, keeps_up: bool| -> Vec<String> {
        let runs = design.runs.iter().filter(|run| run.keeps_up == keeps_up);
        runs.filter_map(|run| Some(run.fault.as_ref()?.requested.clone())).collect()
    };
    let cost = |design: &&DesignReport| Cost::from_design(design, faults(design, false).len());
    let Some(best) = keeping().min_by_key(cost) else {
        let reason =
            "no design keeps up; use more or stronger nodes, or a partition key that spreads concurrent rows";
        return (None, Some(reason.to_owned()));
    };
    let recommended = NodeRecommendation {
        partition_key: best.partition_key.clone(),
        nodes: best.nodes,
        partitions: best.partitions,
        keeps_up_with: faults(best, true),
        falls_behind_with: faults(best, false),
    };
    (Some(recommended), None)
}

/// Sort key for designs that keep up, most important criterion first. The order in which the
/// designs were named does not matter.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    faults_that_it_falls_behind_with: usize,
    nodes: usize,
    partitions: usize,
    node_unevenness: u64,
    partition_unevenness: u64,
    parts: usize,
    derived_parts: usize,
    name: Vec<String>,
}

impl Cost {
    fn from_design(design: &DesignReport, faults: usize) -> Self {
        // Loads that differ by less than a quarter of the mean count as equal: such differences are
        // random.
        let quarters = |over_mean: f64| (over_mean * 4.0).round() as u64;
        let derived = |part: &&KeyPart| part.transform != Transform::Identity;
        Self {
            faults_that_it_falls_behind_with: faults,
            nodes: design.nodes,
            partitions: design.partitions,
            node_unevenness: quarters(design.over_nodes.sustained_over_mean),
            partition_unevenness: quarters(design.over_partitions.sustained_over_mean),
            parts: design.candidate.parts().len(),
            derived_parts: design.candidate.parts().iter().filter(derived).count(),
            name: design.partition_key.clone(),
        }
    }
}

/// Returns the findings, most severe first. A finding that holds for several designs of a key is
/// reported for the one with the most nodes and partitions.
pub(super) fn advise(simulation: &NodeSimulation) -> Vec<Finding> {
    let windows = simulation.arrivals.windows;
    let mut keys: Vec<&[String]> = Vec::new();
    for design in &simulation.designs {
        if !keys.contains(&design.partition_key.as_slice()) {
            keys.push(&design.partition_key);
        }
    }
    let mut findings = Vec::new();
    for key in keys {
        let of_key = simulation.designs.iter().filter(|design| design.partition_key == key);
        let mut designs: Vec<&DesignReport> = of_key.collect();
        designs.sort_by_key(|design| Reverse((design.nodes, design.partitions)));
        findings.extend(first_of(&designs, |design| falls_behind(simulation, design)));
        let runs = designs.iter().map(|design| design.runs.len()).max().unwrap_or(0);
        for run in 1..runs {
            findings.extend(first_of(&designs, |design| falls_behind_with_fault(simulation, design, run)));
        }
        findings.extend(first_of(&designs, idle_nodes));
        findings.extend(first_of(&designs, uneven_assignment));
        findings.extend(first_of(&designs, hot_partition));
        findings.extend(first_of(&designs, |design| moving_hotspot(windows, design)));
        findings.extend(first_of(&designs, few_keys));
    }
    findings.extend(few_rows(simulation));
    findings.extend(assumed_capacity(simulation));
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Returns the finding of the first design that has one, noting how many others have it too.
fn first_of(designs: &[&DesignReport], rule: impl Fn(&DesignReport) -> Option<Finding>) -> Option<Finding> {
    let mut all = designs.iter().filter_map(|design| rule(design));
    let mut first = all.next()?;
    match all.count() {
        0 => {}
        1 => first.message.push_str("; the same holds for another design of this key"),
        others => first.message.push_str(&format!("; the same holds for {others} other designs of this key")),
    }
    Some(first)
}

fn idle_nodes(design: &DesignReport) -> Option<Finding> {
    (design.partitions < design.nodes).then(|| Finding {
        code: FindingCode::IdleNodes,
        severity: Severity::Warning,
        subject: Subject::from(design.name()),
        message: format!(
            "{} of {} nodes have no partition, and are idle",
            design.nodes - design.partitions,
            design.nodes
        ),
        measured: design.partitions_per_node,
        threshold: 1.0,
        advice: "Use at least as many partitions as nodes; YDB advises 4 per node.".to_owned(),
    })
}

fn uneven_assignment(design: &DesignReport) -> Option<Finding> {
    let most = design.partitions.div_ceil(design.nodes.max(1)) as f64 / design.partitions_per_node;
    let is_told = design.partitions > design.nodes && most >= UNEVEN_DEAL;
    is_told.then(|| Finding {
        code: FindingCode::UnevenAssignment,
        severity: Severity::Note,
        subject: Subject::from(design.name()),
        message: format!(
            "partitions do not divide evenly among nodes: some have {}, {:.0} % more than the mean",
            design.partitions.div_ceil(design.nodes.max(1)),
            (most - 1.0) * 100.0
        ),
        measured: most,
        threshold: UNEVEN_DEAL,
        advice: "Use a multiple of the number of nodes.".to_owned(),
    })
}

fn hot_partition(design: &DesignReport) -> Option<Finding> {
    let share = design.over_partitions.in_total.share_of_fullest;
    let even = 1.0 / design.nodes.max(1) as f64;
    (design.nodes > 1 && design.partitions >= design.nodes && share >= HOT_PARTITION * even).then(|| Finding {
        code: FindingCode::HotPartition,
        severity: Severity::Warning,
        subject: Subject::from(design.name()),
        message: format!(
            "partition {} has {:.1} % of the rows, more than the {:.1} % that a node should have: its \
                node is the hottest, however partitions are assigned",
            design.over_partitions.in_total.fullest_partition,
            share * 100.0,
            even * 100.0
        ),
        measured: share,
        threshold: HOT_PARTITION * even,
        advice: "A partition lives on one node: add a column to the partition key that splits its heavy keys. More nodes do not help.".to_owned(),
    })
}

fn moving_hotspot(windows: usize, design: &DesignReport) -> Option<Finding> {
    let partitions = &design.over_partitions;
    let in_windows = partitions.max_over_mean_at_a_time;
    let lasting = partitions.sustained_over_mean;
    let others = partitions.in_total.max_over_mean.max(partitions.max_over_mean_at_a_time_by_chance);
    let of_window = partitions.in_total.rows / windows.max(1) as u64;
    let in_total = partitions.in_total.max_over_mean;
    let (when, at_a_time, threshold) = match lasting >= MOVES * in_total {
        // This figure excludes chance.
        true => ("at any moment", lasting, MOVES * in_total),
        false if are_enough_rows(of_window, design.partitions) => {
            ("within a window", in_windows, MOVES * others)
        }
        false => return None,
    };
    (at_a_time >= threshold).then(|| Finding {
        code: FindingCode::MovingHotspot,
        severity: Severity::Warning,
        subject: Subject::from(design.name()),
        message: format!(
            "{when} the hottest partition gets {at_a_time:.1} times the mean, over the whole time {:.1} times: the load moves from partition to partition",
            partitions.in_total.max_over_mean
        ),
        measured: at_a_time,
        threshold,
        advice: "Hash a column with many values at any moment, such as a user id, so that the queue is \
            not on one node at any moment.".to_owned(),
    })
}

fn few_keys(design: &DesignReport) -> Option<Finding> {
    let floor = &design.over_partitions.noise_floor;
    let even = design.over_partitions.in_total.max_over_mean;
    (floor.keys_per_partition < MIN_KEYS && even > 1.15).then(|| Finding {
        code: FindingCode::FewDistinctKeys,
        severity: Severity::Note,
        subject: Subject::from(design.name()),
        message: format!(
            "{} distinct keys are {:.1} per partition: even a perfect hash of equal keys would give the \
                fullest {:.2} times the mean",
            floor.distinct_keys, floor.keys_per_partition, floor.expected_max_over_mean_equal_keys
        ),
        measured: floor.keys_per_partition,
        threshold: MIN_KEYS,
        advice: "Add a column to the partition key, or use fewer partitions.".to_owned(),
    })
}

fn few_rows(simulation: &NodeSimulation) -> Option<Finding> {
    let most = simulation.designs.iter().map(|design| design.partitions).max()?;
    let counted = simulation.rows - simulation.rows_without_time.min(simulation.rows);
    let of_window = counted as f64 / simulation.arrivals.windows.max(1) as f64;
    let each = of_window / most as f64;
    (each < ROWS_PER_PARTITION_OF_WINDOW as f64).then(|| Finding {
        code: FindingCode::FewRows,
        severity: Severity::Note,
        subject: Subject::from(format!("windows of {}", simulation.parameters.window)),
        message: format!(
            "a window has {of_window:.1} rows of the export on average, {each:.1} for each \
            of {most} partitions: with so few, peaks arise by chance"
        ),
        measured: each,
        threshold: ROWS_PER_PARTITION_OF_WINDOW as f64,
        advice: "Use more rows, fewer partitions or a longer --window.".to_owned(),
    })
}

fn assumed_capacity(simulation: &NodeSimulation) -> Option<Finding> {
    let headroom = simulation.parameters.headroom?;
    Some(Finding {
        code: FindingCode::AssumedCapacity,
        severity: Severity::Note,
        subject: Subject::from("capacity".to_owned()),
        message: format!(
            "none is given: all nodes of a design together are assumed to handle {headroom} times the {} \
                rows per second of the busiest window",
            rows(simulation.arrivals.busiest_rows_per_second)
        ),
        measured: headroom,
        threshold: 1.0,
        advice: "Measure the capacity of a node, and set it with --node-rows-per-second or \
                --node-bytes-per-second."
            .to_owned(),
    })
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
