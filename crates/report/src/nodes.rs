//! Renders a simulation of nodes as text.

use std::fmt::Write as _;

use crate::evaluation::{heading, instant, rate, rows_per_second, spark_of};
use crate::findings::findings;
use crate::grid::{Heading, Layout, count, counted, grid, number, percent};
use evenkeel_capacity::{
    Assignment, DesignReport, FaultKind, NodeOutcome, NodeParameters, NodeRecommendation, NodeSimulation,
    Outcome, Rate, RunReport,
};
use evenkeel_model::finding::Finding;
use evenkeel_model::units::{ByteSize, elapsed};
use evenkeel_stats::throughput::DEFAULT_PARTITION_RATE;

/// Number of characters of a line over time.
const DRAWN: usize = 60;
/// Largest number of nodes to list.
const NODES_SHOWN: usize = 16;

/// Renders the behaviour of designs under the load, side by side.
#[must_use]
pub fn nodes(simulation: &NodeSimulation, layout: Layout) -> String {
    let mut text = heading(layout, "Nodes: a model, not a measurement");
    assumptions(&mut text, simulation);
    simulation.notes.iter().for_each(|note| {
        let _ = writeln!(text, "note: {note}");
    });
    text.push('\n');
    text.push_str(&heading(layout, "How even, and how much it takes"));
    text.push_str(&designs(simulation, layout));
    text.push('\n');
    text.push_str(&heading(layout, "What waits"));
    text.push_str(&runs(simulation, layout));
    text.push('\n');
    let over_time = over_time(simulation);
    if !over_time.is_empty() {
        text.push_str(&heading(layout, "Rows that wait, over time"));
        text.push_str(&over_time);
        text.push('\n');
    }
    if let Some(design) = shown(simulation) {
        text.push_str(&heading(layout, &format!("Nodes of {}", design.name())));
        text.push_str(&of_nodes(design, layout));
        text.push('\n');
    }
    recommended(&mut text, simulation);
    if !simulation.findings.is_empty() {
        text.push('\n');
        text.push_str(&heading(layout, "Findings"));
        for finding in &simulation.findings {
            let Finding { severity, code, subject, message, advice, .. } = finding;
            let _ = writeln!(text, "- {} [{code}] {subject}: {message}\n  {advice}", severity.word());
        }
    }
    text
}

fn assumptions(text: &mut String, simulation: &NodeSimulation) {
    let NodeSimulation { parameters, arrivals, .. } = simulation;
    let _ = writeln!(
        text,
        "{}, {} of values{}; {}",
        counted(simulation.rows, "row"),
        ByteSize(simulation.bytes),
        match parameters.scale {
            1.0 => String::new(),
            scale => format!(", each counts for {}", number(scale)),
        },
        match &simulation.time {
            Some(time) => format!("they come along {time}"),
            None => "they come one after the other".to_owned(),
        }
    );
    let _ = writeln!(
        text,
        "{} of {} with rows: {}, {} on average; {}, {} in the busiest, from {}",
        counted(arrivals.windows as u64, "window"),
        parameters.window,
        rows_per_second(arrivals.average_rows_per_second),
        rate(arrivals.average_bytes_per_second),
        rows_per_second(arrivals.busiest_rows_per_second),
        rate(arrivals.busiest_bytes_per_second),
        instant(arrivals.busiest_start_micros)
    );
    let _ = writeln!(text, "placed by {}, {}", parameters.placement, dealt(parameters));
    let _ = writeln!(text, "{}", capacity(parameters));
    let _ = writeln!(
        text,
        "rows of a window come evenly over it and leave evenly, the oldest of a partition first; partitions of a node share it evenly where it has \
         not enough for all"
    );
    let _ = writeln!(
        text,
        "a lost node stays lost; {} later its partitions are served by the others, {}",
        parameters.recovery,
        match parameters.assignment {
            Assignment::LeastLoaded => "the heaviest first, each by the one with least in all",
            Assignment::RoundRobin | Assignment::Contiguous => "dealt in turn",
        }
    );
    let _ = writeln!(
        text,
        "keeps up: what comes on average is sustained, and no row waits longer than {}, after a loss longer than that and {}",
        parameters.longest_delay, parameters.recovery
    );
}

fn dealt(parameters: &NodeParameters) -> &'static str {
    match parameters.assignment {
        Assignment::RoundRobin => "partitions dealt to nodes in turn",
        Assignment::LeastLoaded => {
            "partitions dealt to nodes by what comes in all, the heaviest first, as nobody knows beforehand"
        }
        Assignment::Contiguous => {
            "partitions dealt to nodes one after the other, the first ones to the first node"
        }
    }
}

fn capacity(parameters: &NodeParameters) -> String {
    let of = |what: &str, rate: Rate| match takes(rate).as_str() {
        "-" => format!("{what} is not limited"),
        takes => format!("{what} takes {takes}"),
    };
    let default = Rate { rows_per_second: None, bytes_per_second: Some(DEFAULT_PARTITION_RATE) };
    let given = parameters.capacities.partition;
    let partition = if given.is_limited() { given } else { default };
    if let Some(headroom) = parameters.headroom {
        return format!(
            "assumed, as no capacity is given: all nodes of a design together take {} times the rows of the busiest window, each the same; {}",
            number(headroom),
            of("a partition", partition)
        );
    }
    format!("{}; {}", of("a node", parameters.capacities.node), of("a partition", partition))
}

fn takes(capacity: Rate) -> String {
    let parts = [capacity.rows_per_second.map(rows_per_second), capacity.bytes_per_second.map(rate)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

fn design_cells(design: &DesignReport) -> Vec<String> {
    vec![design.partition_key.join(", "), count(design.nodes as u64), count(design.partitions as u64)]
}

const DESIGN: [Heading; 3] =
    [Heading::text("partition key"), Heading::number("nodes"), Heading::number("partitions")];

fn designs(simulation: &NodeSimulation, layout: Layout) -> String {
    let others = [
        Heading::number("hottest partition"),
        Heading::number("at a time"),
        Heading::number("hottest node"),
        Heading::number("at a time"),
        Heading::number("by chance"),
        Heading::number("a node takes"),
        Heading::number("busy"),
        Heading::number("no queue up to"),
        Heading::number("long run"),
        Heading::number("sustains"),
    ];
    let row = |design: &DesignReport| {
        let mut cells = design_cells(design);
        let nodes = design.without_fault().map(|run| run.outcome.nodes.as_slice()).unwrap_or_default();
        let busiest = nodes.iter().filter_map(|node| node.utilization).reduce(f64::max);
        let up_to = |rate: Option<f64>| rate.map_or("-".to_owned(), rows_per_second);
        cells.extend([
            times(design.over_partitions.in_total.max_over_mean),
            times(design.over_partitions.max_over_mean_at_a_time),
            times(design.over_nodes.in_total.max_over_mean),
            times(design.over_nodes.max_over_mean_at_a_time),
            times(design.over_nodes.noise_floor.expected_max_over_mean_equal_keys),
            takes(design.capacities.node),
            busiest.map_or("-".to_owned(), percent),
            up_to(design.rows_per_second_without_queue),
            up_to(design.rows_per_second_in_the_long_run),
            up_to(design.sustained_rows_per_second),
        ]);
        cells
    };
    let headings: Vec<Heading> = DESIGN.into_iter().chain(others).collect();
    let mut text = grid(layout, &headings, simulation.designs.iter().map(row).collect());
    text.push_str(
        "hottest: its rate over the mean, over the whole time and within a window; by chance: of the hottest node, what a perfect hash gives to as many \
         equal keys; busy: of the hottest node, what is demanded on average; rows per second: no queue up to, at which nothing waits at the end of any \
         window; long run, at which what waits is taken in the end; sustains, at which the hottest partition or node is offered what it takes at a \
         time, as evaluate and bench ingest have it\n",
    );
    text
}

fn runs(simulation: &NodeSimulation, layout: Layout) -> String {
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
        let Outcome { peak, most_waiting_seconds, .. } = &run.outcome;
        let at = |micros: Option<i64>| micros.map(instant);
        let never = run.outcome.is_never_served();
        let or_never = |text: Option<String>| match text {
            Some(text) => text,
            None if never => "never".to_owned(),
            None => "-".to_owned(),
        };
        let mut cells = design_cells(design);
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
    let headings: Vec<Heading> = DESIGN.into_iter().chain(others).collect();
    let mut text = grid(layout, &headings, all.map(row).collect());
    text.push_str(
        "most rows, bytes: waiting on all nodes; seconds: that the node or partition with the longest queue needs for it; drained after: from the fault \
         until nothing waits; others busy: of the busiest node that took partitions of a lost one over, what is asked for since\n",
    );
    text
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
fn over_time(simulation: &NodeSimulation) -> String {
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

fn of_nodes(design: &DesignReport, layout: Layout) -> String {
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

fn recommended(text: &mut String, simulation: &NodeSimulation) {
    let Some(recommended) = &simulation.recommended else {
        let _ = writeln!(text, "none is recommended: {}", simulation.unsure.as_deref().unwrap_or_default());
        return;
    };
    let NodeRecommendation { partition_key, nodes, partitions, keeps_up_with, falls_behind_with } =
        recommended;
    let _ = writeln!(
        text,
        "recommended of these: HASH({}), {}, {} ({} for each)",
        partition_key.join(", "),
        counted(*nodes as u64, "node"),
        counted(*partitions as u64, "partition"),
        number(*partitions as f64 / (*nodes).max(1) as f64)
    );
    let and = |faults: &[String]| faults.join(" and ");
    let with = match keeps_up_with.as_slice() {
        [] => "as long as nothing goes wrong".to_owned(),
        faults => format!("also with {}", and(faults)),
    };
    let but = match falls_behind_with.as_slice() {
        [] => String::new(),
        faults => format!("; it falls behind with {}", and(faults)),
    };
    let _ = writeln!(
        text,
        "of those that keep up with the most faults, the one with the fewest nodes, then with the fewest partitions, the evenest load at a time and the \
         simplest key, in whichever order they are named; it keeps up {with}{but}"
    );
}

fn times(over_mean: f64) -> String {
    format!("{over_mean:.2}")
}

fn seconds(seconds: f64) -> String {
    match seconds {
        0.0 => "0 s".to_owned(),
        short if short < 100.0 => format!("{short:.1} s"),
        long => elapsed((long * 1e6) as i64),
    }
}
