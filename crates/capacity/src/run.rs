//! Simulation of an export against several designs.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::CapacityError;
use crate::advice::{advise, recommend};
use crate::design::Design;
use crate::load::{Clock, Counted, CountedKey, Plan, column_named, count};
use crate::{
    ArrivalFigures, ArrivalWindow, Arrivals, DesignReport, NodeChoice, NodeOptions, NodeParameters,
    NodeSimulation, Shape,
};
use evenkeel_input::source::Export;
use evenkeel_model::table::{Candidate, Column, only_time_column};
use evenkeel_model::units::{Micros, PartitionCount};

/// Plays an export against nodes. `progress` is called with the number of rows read so far; setting
/// `stop` aborts the simulation.
///
/// # Errors
/// [`CapacityError`] if the export cannot be read, a named column is unsuitable, or a fault names a
/// node that does not exist.
pub fn simulate_nodes(
    export: &Export,
    options: &NodeOptions,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<NodeSimulation, CapacityError> {
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
        return Err(CapacityError::NoRows);
    };
    let own = ArrivalFigures::of(arrivals);
    // Rows that arrive one after the other already have the requested rate.
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
    let designs: Result<Vec<DesignReport>, CapacityError> = shapes
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

/// Rejects a fault at a node that some design lacks, before any row is read.
fn check_nodes(options: &NodeOptions) -> Result<(), CapacityError> {
    for fault in &options.faults {
        let NodeChoice::Number(node) = fault.node() else { continue };
        if let Some(shape) = options.shapes.iter().find(|shape| node >= shape.nodes) {
            let (fault, nodes) = (fault.to_string(), shape.nodes);
            return Err(CapacityError::UnknownNode { fault, node, nodes, last: nodes.saturating_sub(1) });
        }
    }
    Ok(())
}

fn clock(columns: &[Column], options: &NodeOptions) -> Result<Clock, CapacityError> {
    let column = match &options.time {
        Some(name) => {
            let found = column_named(columns, name)?;
            if !columns.get(found).is_some_and(|column| column.column_type.is_time()) {
                return Err(CapacityError::Time { column: name.clone() });
            }
            Some(found)
        }
        None => only_time_column(columns),
    };
    match (column, options.rate) {
        (Some(column), _) => Ok(Clock::Column(column)),
        (None, Some(rate)) => Ok(Clock::Rate(rate)),
        (None, None) => Err(CapacityError::NoClock),
    }
}

fn notes(export: &Export, counted: &Counted, parameters: &NodeParameters) -> Vec<String> {
    let mut notes: Vec<String> = export.notes().iter().map(ToString::to_string).collect();
    if counted.unreadable_rows > 0 {
        notes.push(format!("{} rows cannot be read and were left out", counted.unreadable_rows));
    }
    if counted.without_time > 0 {
        notes.push(format!("{} rows have no time and were left out", counted.without_time));
    }
    let late = counted.range.rows_late_for(parameters.window);
    if late * 20 > counted.rows {
        notes.push(format!(
            "{late} rows follow one that is later by more than a window: the model replays them at their \
                own time, whatever the order of the export"
        ));
    }
    notes
}

impl ArrivalFigures {
    /// Computes the figures of all partitions together; each row counts for itself.
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
