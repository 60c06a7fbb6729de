//! Simulation of an export against several designs.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::advice::{advise, recommend};
use crate::arrivals::Arrivals;
use crate::design::Design;
use crate::error::CapacityError;
use crate::fault::NodeChoice;
use crate::load::{CountedKey, LoadCount, count};
use crate::result::{ArrivalFigures, DesignReport, NodeOptions, NodeParameters, NodeSimulation, Shape};
use evenkeel_advisor::evaluate::LoadWindow;
use evenkeel_input::source::Export;
use evenkeel_model::remark::Remark;
use evenkeel_model::table::{Candidate, only_time_column};
use evenkeel_model::units::{Micros, PartitionCount};

/// Replays an export against nodes. `progress` is called with the number of rows read so far;
/// setting `stop` aborts the simulation.
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
    if options.time.is_none() && options.rate.is_none() && only_time_column(export.columns()).is_none() {
        return Err(CapacityError::NoClock);
    }
    let partitions: BTreeSet<PartitionCount> = options.shapes.iter().map(|shape| shape.partitions).collect();
    let mut counted = count(export, options, partitions.into_iter().collect(), progress, stop)?;
    let (arrivals, scale) = scale_arrivals(&mut counted, options.rate)?;
    let parameters = parameters(options, counted.window, scale);
    let designs = designs(options, &counted.keys, &parameters, &arrivals)?;
    let mut simulation = NodeSimulation {
        model: true,
        inputs: export.input_names(),
        rows: counted.rows,
        bytes: counted.bytes,
        rows_without_time: counted.without_time,
        notes: notes(export, &counted, &parameters),
        time: counted.time,
        parameters,
        arrivals,
        designs,
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

/// Scales the counted rows to the requested rate; returns the total load and the number of rows
/// that each row counts for.
fn scale_arrivals(
    counted: &mut LoadCount,
    rate: Option<f64>,
) -> Result<(ArrivalFigures, f64), CapacityError> {
    let arrivals = counted.keys.first().and_then(|key| key.arrivals.values().next());
    let own = ArrivalFigures::from_arrivals(arrivals.ok_or(CapacityError::NoRows)?);
    // Evenly spaced rows already have the requested rate.
    let scale = match (&counted.time, rate) {
        (Some(_), Some(rate)) => rate / own.average_rows_per_second,
        _ => 1.0,
    };
    for arrivals in counted.keys.iter_mut().flat_map(|key| key.arrivals.values_mut()) {
        arrivals.scale = scale;
    }
    Ok((own.scaled(scale), scale))
}

fn parameters(options: &NodeOptions, window: Micros, scale: f64) -> NodeParameters {
    let is_given = options.capacities.node.is_limited() || options.capacities.partition.is_limited();
    NodeParameters {
        placement: options.placement.to_string(),
        assignment: options.assignment,
        window,
        scale,
        rate: options.rate,
        capacities: options.capacities,
        headroom: (!is_given).then_some(options.headroom),
        recovery: options.recovery,
        longest_delay: options.longest_delay.unwrap_or(window.max(Micros::SECOND)),
    }
}

/// Replays every key on every shape.
fn designs(
    options: &NodeOptions,
    keys: &[CountedKey],
    parameters: &NodeParameters,
    figures: &ArrivalFigures,
) -> Result<Vec<DesignReport>, CapacityError> {
    let keys = options.partition_keys.iter().zip(keys);
    let designs: Vec<(&Candidate, &CountedKey, Shape)> =
        keys.flat_map(|(key, load)| options.shapes.iter().map(move |shape| (key, load, *shape))).collect();
    designs
        .par_iter()
        .map(|(key, load, shape)| {
            Design { parameters, figures, shape: *shape }.report(key, load, &options.faults)
        })
        .collect()
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

fn notes(export: &Export, counted: &LoadCount, parameters: &NodeParameters) -> Vec<Remark> {
    let mut notes: Vec<Remark> = export.notes().iter().map(Remark::from).collect();
    if counted.unreadable_rows > 0 {
        let rows = evenkeel_model::units::counted(counted.unreadable_rows, "row");
        notes.push(Remark::new("rows_left_out", format!("left out {rows} that cannot be read")));
    }
    if counted.without_time > 0 {
        let rows = evenkeel_model::units::counted(counted.without_time, "row");
        notes.push(Remark::new("rows_without_time", format!("left out {rows} without a time")));
    }
    let late = counted.range.rows_late_for(parameters.window);
    if late * 20 > counted.rows {
        let text = format!(
            "{late} rows follow one that is later by more than a window: the model replays them at their \
                own time, whatever the order of the export"
        );
        notes.push(Remark::new("not_in_time_order", text));
    }
    notes
}

impl ArrivalFigures {
    /// Computes the figures of all partitions together; each row counts for itself.
    fn from_arrivals(arrivals: &Arrivals) -> Self {
        let seconds = arrivals.window.seconds();
        let sum = |amounts: &[u64]| amounts.iter().sum::<u64>();
        let windows = arrivals.windows.len();
        let (mut rows, mut bytes, mut busiest): (u64, u64, Option<(u64, &LoadWindow)>) = (0, 0, None);
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

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
