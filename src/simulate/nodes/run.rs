//! An export against several designs.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::simulate::SimulateError;
use crate::simulate::nodes::advice::{advise, recommend};
use crate::simulate::nodes::capacity::{Capacities, Rate, Room};
use crate::simulate::nodes::load::{Clock, Counted, CountedKey, Plan, column_named, count};
use crate::simulate::nodes::{
    ArrivalFigures, ArrivalWindow, Arrivals, Cluster, DesignReport, Fault, FaultReport, Lost, Moment,
    NodeChoice, NodeFault, NodeOptions, NodeParameters, NodeSimulation, Outcome, RunReport, Shape, Slow,
    Unevenness, play,
};
use crate::skew::{KeyWeights, NoiseFloor, SkewFigures, expected_max_over_mean_equal_keys};
use crate::source::Export;
use crate::table::{Candidate, Column, only_time_column};
use crate::units::{Micros, PartitionCount};

/// Plays an export against nodes. `progress` is called with the rows read so far; `stop` ends it before its end.
///
/// # Errors
/// [`SimulateError`] where the export cannot be read, a column that was named does not suit, or a fault is at a node that there is not.
pub fn simulate_nodes(
    export: &Export,
    options: &NodeOptions,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<NodeSimulation, SimulateError> {
    let started = Instant::now();
    check_nodes(options)?;
    let columns = export.columns();
    let clock = clock(columns, options)?;
    let mut partitions: Vec<PartitionCount> = options.shapes.iter().map(|shape| shape.partitions).collect();
    partitions.sort_unstable();
    partitions.dedup();
    let plan = Plan {
        keys: &options.partition_keys,
        function: options.placement,
        partitions: &partitions,
        clock,
        window: options.window,
        on_unreadable: options.on_unreadable,
    };
    let mut counted = count(export, &plan, progress, stop)?;
    let Some(arrivals) = counted.keys.first().and_then(|key| key.arrivals.values().next()) else {
        return Err(SimulateError::NoRows);
    };
    let own = ArrivalFigures::of(arrivals);
    // Rows that come one after the other have the rate already.
    let scale = match (clock, options.rate) {
        (Clock::Column(_), Some(rate)) => rate / own.average_rows_per_second,
        _ => 1.0,
    };
    for arrivals in counted.keys.iter_mut().flat_map(|key| key.arrivals.values_mut()) {
        arrivals.scale = scale;
    }
    let arrivals = ArrivalFigures { windows: own.windows, ..own.scaled(scale) };
    let is_given = options.capacities.node.is_limited() || options.capacities.partition.is_limited();
    let longest_delay = options.longest_delay.unwrap_or(counted.window.max(Micros::SECOND));
    let parameters = NodeParameters {
        placement: options.placement.to_string(),
        assignment: options.assignment,
        window: counted.window,
        scale,
        rate: options.rate,
        capacities: options.capacities,
        headroom: (!is_given).then_some(options.headroom),
        recovery: options.recovery,
        longest_delay,
    };
    let shapes = options.partition_keys.iter().zip(&counted.keys);
    let shapes: Vec<(&Candidate, &CountedKey, Shape)> =
        shapes.flat_map(|(key, load)| options.shapes.iter().map(move |shape| (key, load, *shape))).collect();
    let designs: Result<Vec<DesignReport>, SimulateError> = shapes
        .par_iter()
        .map(|(key, load, shape)| {
            let design = Design { parameters: &parameters, figures: &arrivals, shape: *shape };
            design.report(key, load, &options.faults)
        })
        .collect();
    let mut simulation = NodeSimulation {
        model: true,
        inputs: export.input_names(),
        rows: counted.rows,
        bytes: counted.bytes,
        rows_without_time: counted.without_time,
        time: match clock {
            Clock::Column(column) => columns.get(column).map(|column| column.name.clone()),
            Clock::Rate(_) => None,
        },
        notes: notes(export, &counted, &parameters),
        parameters,
        arrivals,
        designs: designs?,
        unsure: None,
        recommended: None,
        findings: Vec::new(),
        seconds: 0.0,
    };
    (simulation.recommended, simulation.unsure) = recommend(&simulation);
    simulation.findings = advise(&simulation);
    simulation.seconds = started.elapsed().as_secs_f64();
    Ok(simulation)
}

/// A fault at a node that some design has not is found before the first row.
fn check_nodes(options: &NodeOptions) -> Result<(), SimulateError> {
    for fault in &options.faults {
        let NodeChoice::Number(node) = fault.node() else { continue };
        if let Some(shape) = options.shapes.iter().find(|shape| node >= shape.nodes) {
            let (fault, nodes) = (fault.to_string(), shape.nodes);
            return Err(SimulateError::UnknownNode { fault, node, nodes, last: nodes.saturating_sub(1) });
        }
    }
    Ok(())
}

fn clock(columns: &[Column], options: &NodeOptions) -> Result<Clock, SimulateError> {
    let column = match &options.time {
        Some(name) => {
            let found = column_named(columns, name)?;
            if !columns.get(found).is_some_and(|column| column.column_type.is_time()) {
                return Err(SimulateError::Time { column: name.clone() });
            }
            Some(found)
        }
        None => only_time_column(columns),
    };
    match (column, options.rate) {
        (Some(column), _) => Ok(Clock::Column(column)),
        (None, Some(rate)) => Ok(Clock::Rate(rate)),
        (None, None) => Err(SimulateError::NoClock),
    }
}

fn notes(export: &Export, counted: &Counted, parameters: &NodeParameters) -> Vec<String> {
    let mut notes = export.notes().to_vec();
    if counted.unreadable_rows > 0 {
        notes.push(format!("{} rows cannot be read and are left out", counted.unreadable_rows));
    }
    if counted.without_time > 0 {
        notes.push(format!("{} rows have no time and are left out", counted.without_time));
    }
    let late = counted.range.rows_late_for(parameters.window);
    if late * 20 > counted.rows {
        notes.push(format!(
            "{late} rows stand behind one that is later by more than a window: here they come at their own time, whatever the order of the export"
        ));
    }
    notes
}

impl ArrivalFigures {
    /// Of what comes to all partitions together; each row counts for itself.
    fn of(arrivals: &Arrivals) -> Self {
        let seconds = arrivals.window.seconds();
        let sum = |amounts: &[u64]| amounts.iter().sum::<u64>();
        let windows = arrivals.windows.len();
        let (mut rows, mut bytes, mut busiest): (u64, u64, Option<(u64, &ArrivalWindow)>) = (0, 0, None);
        for window in &arrivals.windows {
            let of_window = sum(&window.rows);
            (rows, bytes) = (rows + of_window, bytes + sum(&window.bytes));
            if busiest.is_none_or(|(most, _)| of_window > most) {
                busiest = Some((of_window, window));
            }
        }
        let rate = |amount: u64, windows: usize| amount as f64 / (seconds * windows.max(1) as f64);
        Self {
            windows,
            average_rows_per_second: rate(rows, windows),
            average_bytes_per_second: rate(bytes, windows),
            busiest_rows_per_second: busiest.map_or(0.0, |(rows, _)| rate(rows, 1)),
            busiest_bytes_per_second: busiest.map_or(0.0, |(_, window)| rate(sum(&window.bytes), 1)),
            busiest_start_micros: busiest.map_or(0, |(_, window)| window.start_micros),
        }
    }

    fn scaled(self, scale: f64) -> Self {
        Self {
            average_rows_per_second: self.average_rows_per_second * scale,
            average_bytes_per_second: self.average_bytes_per_second * scale,
            busiest_rows_per_second: self.busiest_rows_per_second * scale,
            busiest_bytes_per_second: self.busiest_bytes_per_second * scale,
            ..self
        }
    }
}

/// One design, for any partition key.
struct Design<'a> {
    parameters: &'a NodeParameters,
    figures: &'a ArrivalFigures,
    shape: Shape,
}

impl Design<'_> {
    /// What was given, or what each node takes where all together take what the busiest window brings, and as much more as is asked for.
    fn capacities(&self) -> Capacities {
        match self.parameters.headroom {
            None => self.parameters.capacities,
            Some(headroom) => {
                let rows = self.figures.busiest_rows_per_second * headroom / self.shape.nodes.max(1) as f64;
                let node = Rate { rows_per_second: Some(rows), bytes_per_second: None };
                Capacities { node, partition: Rate::default() }
            }
        }
    }

    fn report(
        &self,
        key: &Candidate,
        load: &CountedKey,
        faults: &[Fault],
    ) -> Result<DesignReport, SimulateError> {
        let Some(arrivals) = load.arrivals.get(&self.shape.partitions) else {
            return Err(SimulateError::Columns);
        };
        let capacities = self.capacities();
        let cluster = Cluster {
            nodes: self.shape.nodes,
            assignment: self.parameters.assignment,
            capacities,
            recovery: self.parameters.recovery,
        };
        let loads = arrivals.loads(&capacities);
        let node_of = cluster.assignment.deal(&loads, cluster.nodes);
        let by_partition = |window: &ArrivalWindow| window.rows.clone();
        let by_node = |window: &ArrivalWindow| summed(&window.rows, &node_of, cluster.nodes);
        let weights = &load.counts.weights;
        let (of_nodes, of_partitions) = rooms(arrivals, &capacities, &node_of, cluster.nodes);
        let room = of_nodes.and(of_partitions);
        let rate = |room: f64| room.is_finite().then_some(room * self.figures.average_rows_per_second);
        let mut runs = vec![self.run(arrivals, &cluster, None)];
        for fault in faults {
            let planned = self.planned(fault, arrivals, &loads, &node_of)?;
            runs.push(self.run(arrivals, &cluster, Some(planned)));
        }
        Ok(DesignReport {
            partition_key: key.part_names(),
            nodes: self.shape.nodes,
            partitions: self.shape.partitions.len(),
            partitions_per_node: self.shape.partitions.len() as f64 / self.shape.nodes.max(1) as f64,
            capacities,
            over_partitions: Unevenness::of(arrivals, self.shape.partitions.len(), by_partition, weights),
            over_nodes: Unevenness::of(arrivals, self.shape.nodes, by_node, weights),
            rows_per_second_without_queue: rate(room.in_every_slice),
            sustained_rows_per_second: rate(room.in_the_long_run),
            limited_by_partition: of_partitions.in_the_long_run < of_nodes.in_the_long_run,
            runs,
        })
    }

    /// The fault at its node and time.
    fn planned(
        &self,
        fault: &Fault,
        arrivals: &Arrivals,
        loads: &[f64],
        node_of: &[usize],
    ) -> Result<(NodeFault, FaultReport), SimulateError> {
        let node = match fault.node() {
            NodeChoice::Number(number) => number,
            NodeChoice::Hottest => hottest(loads, node_of, self.shape.nodes),
        };
        let last = arrivals.windows.last().map_or(0, |window| window.start_micros);
        let end = last.saturating_add(arrivals.window.get());
        let (planned, kind, factor, at_micros) = match fault {
            Fault::Slow(Slow { factor, .. }) => {
                (NodeFault::Slow { node, factor: *factor }, "slow", *factor, arrivals.start_micros())
            }
            Fault::Lost(Lost { at, .. }) => {
                let at_micros = match at {
                    Moment::After(after) => arrivals.start_micros().saturating_add(after.get()),
                    Moment::Busiest => self.figures.busiest_start_micros,
                };
                if at_micros >= end {
                    let fault = fault.to_string();
                    let span = (end - arrivals.start_micros()) as f64 / 3.6e9;
                    return Err(SimulateError::LateFault { fault, hours: span });
                }
                let after_seconds = arrivals.seconds_of(at_micros);
                (NodeFault::Lost { node, after_seconds }, "lost", 0.0, at_micros)
            }
        };
        Ok((planned, FaultReport { asked: fault.to_string(), kind, node, factor, at_micros }))
    }

    fn run(
        &self,
        arrivals: &Arrivals,
        cluster: &Cluster,
        fault: Option<(NodeFault, FaultReport)>,
    ) -> RunReport {
        let outcome = play(arrivals, cluster, fault.as_ref().map(|(fault, _)| *fault));
        let recovery = match &fault {
            Some((NodeFault::Lost { .. }, _)) => self.parameters.recovery.seconds(),
            _ => 0.0,
        };
        let allowed = self.parameters.longest_delay.seconds() + recovery;
        let fault = fault.map(|(_, report)| report);
        RunReport {
            keeps_up: outcome.longest_delay_seconds.is_some_and(|delay| delay <= allowed),
            seconds_to_drain: fault.as_ref().and_then(|fault| drained_after(fault, &outcome)),
            fault,
            outcome,
        }
    }
}

/// Seconds from a fault until nothing waits for good.
fn drained_after(fault: &FaultReport, outcome: &Outcome) -> Option<f64> {
    let until = outcome.waiting_until_micros.filter(|until| *until > fault.at_micros)?;
    Some(until.saturating_sub(fault.at_micros) as f64 / 1e6)
}

/// The sums of the figures of each node's partitions.
fn summed<T: Copy + Default + std::ops::AddAssign>(
    of_partitions: &[T],
    node_of: &[usize],
    nodes: usize,
) -> Vec<T> {
    let mut sums = vec![T::default(); nodes.max(1)];
    for (figure, node) in of_partitions.iter().zip(node_of) {
        if let Some(sum) = sums.get_mut(*node) {
            *sum += *figure;
        }
    }
    sums
}

/// The node to which most comes; the first one of several.
fn hottest(loads: &[f64], node_of: &[usize], nodes: usize) -> usize {
    let sums = summed(loads, node_of, nodes);
    let by_load = |a: &(usize, &f64), b: &(usize, &f64)| a.1.total_cmp(b.1).then(b.0.cmp(&a.0));
    sums.iter().enumerate().max_by(by_load).map_or(0, |(node, _)| node)
}

/// The room of nodes, and that of partitions.
fn rooms(arrivals: &Arrivals, capacities: &Capacities, node_of: &[usize], nodes: usize) -> (Room, Room) {
    let seconds = arrivals.window.seconds();
    let work = arrivals.work(capacities);
    let of_nodes: Vec<Vec<f64>> = work.iter().map(|work| summed(&work.node, node_of, nodes)).collect();
    let node = of_nodes.iter().map(|seconds_of| (seconds, seconds_of.as_slice()));
    let partition = work.iter().map(|work| (seconds, work.partition.as_slice()));
    (Room::of(node, &vec![1.0; nodes.max(1)]), Room::of(partition, &vec![1.0; arrivals.partitions()]))
}

impl Unevenness {
    /// Of what comes to each of `count` in every window.
    fn of(
        arrivals: &Arrivals,
        count: usize,
        rows_of: impl Fn(&ArrivalWindow) -> Vec<u64>,
        keys: &KeyWeights,
    ) -> Self {
        let mut total = vec![0u64; count];
        let (mut hottest, mut by_chance, mut chance) = (0u64, 0.0, BTreeMap::new());
        for window in &arrivals.windows {
            let rows = rows_of(window);
            hottest += rows.iter().copied().max().unwrap_or(0);
            let of_window: u64 = rows.iter().sum();
            // Chance changes little with the rows: it is computed once for all numbers of rows with the same first seven bits.
            let dropped = (u64::BITS - of_window.leading_zeros()).saturating_sub(7);
            let about = of_window >> dropped << dropped;
            let expected =
                chance.entry(about).or_insert_with(|| expected_max_over_mean_equal_keys(count, about));
            by_chance += *expected * of_window as f64;
            total.iter_mut().zip(rows).for_each(|(total, rows)| *total += rows);
        }
        let in_total = SkewFigures::of(&total);
        let rows = in_total.rows.max(1) as f64;
        Self {
            noise_floor: NoiseFloor::of(&in_total, keys),
            max_over_mean_at_a_time: hottest as f64 * count as f64 / rows,
            max_over_mean_at_a_time_by_chance: by_chance / rows,
            in_total,
        }
    }
}
