//! Report on one partition key with a given number of nodes and partitions.

use crate::arrivals::Arrivals;
use crate::capacity::{Capacities, Headroom, Rate};
use crate::cluster::{NodeCluster, NodeFault};
use crate::error::CapacityError;
use crate::fault::{LossTime, Lost, NodeChoice, RequestedFault, Slow};
use crate::load::CountedKey;
use crate::outcome::RunOutcome;
use crate::play::play;
use crate::result::{
    ArrivalFigures, DesignReport, FaultKind, FaultReport, NodeParameters, RunReport, Shape, Unevenness,
};
use evenkeel_advisor::evaluate::LoadWindow;
use evenkeel_model::table::Candidate;
use evenkeel_stats::skew::{KeyWeights, MaxOverMeanByChance, NoiseFloor, SkewFigures};
use evenkeel_stats::throughput::{Capacity, Concentration, DEFAULT_PARTITION_RATE, sustains};

/// One design, for any partition key.
pub(super) struct Design<'a> {
    pub(super) parameters: &'a NodeParameters,
    pub(super) figures: &'a ArrivalFigures,
    pub(super) shape: Shape,
}

impl Design<'_> {
    /// Returns the given capacities, with defaults. If the headroom applies, all nodes together
    /// handle the load of the busiest window times the headroom. A partition without a capacity
    /// gets the default one.
    fn capacities(&self) -> Capacities {
        let Capacities { mut node, mut partition } = self.parameters.capacities;
        if let Some(headroom) = self.parameters.headroom {
            let rows = self.figures.busiest_rows_per_second * headroom / self.shape.nodes.max(1) as f64;
            node = Rate { rows_per_second: Some(rows), bytes_per_second: None };
        }
        if !partition.is_limited() {
            partition.bytes_per_second = Some(DEFAULT_PARTITION_RATE);
        }
        Capacities { node, partition }
    }

    /// Returns the total rows per second that the busiest resource sustains, the lower of its
    /// limits in rows and in bytes.
    fn sustained(&self, in_rows: Concentration, in_bytes: Concentration, each: Rate) -> Option<f64> {
        let row_bytes = self.figures.average_bytes_per_second / self.figures.average_rows_per_second;
        let by_rows = each.rows_per_second.map(|rate| Capacity::new(in_rows, rate).sustained);
        let by_bytes = each.bytes_per_second.map(|rate| Capacity::new(in_bytes, rate).sustained / row_bytes);
        by_rows.into_iter().chain(by_bytes).filter(|rate| rate.is_finite()).reduce(f64::min)
    }

    pub(super) fn report(
        &self,
        key: &Candidate,
        load: &CountedKey,
        faults: &[RequestedFault],
    ) -> Result<DesignReport, CapacityError> {
        let Some(arrivals) = load.arrivals.get(&self.shape.partitions) else {
            return Err(CapacityError::Columns);
        };
        let capacities = self.capacities();
        let cluster = NodeCluster {
            nodes: self.shape.nodes,
            assignment: self.parameters.assignment,
            capacities,
            recovery: self.parameters.recovery,
        };
        let loads = arrivals.loads(&capacities);
        let node_of = cluster.assignment.assign(&loads, cluster.nodes);
        let Some(of_partitions) = load.concentrations.get(&self.shape.partitions).copied() else {
            return Err(CapacityError::Columns);
        };
        let totals = Totals::from_arrivals(arrivals);
        let windows: Vec<Vec<u64>> =
            arrivals.windows.iter().map(|window| summed(&window.rows, &node_of, cluster.nodes)).collect();
        let by_nodes = |totals: &[u64]| {
            let windows = windows.iter().map(Vec::as_slice);
            of_partitions.over_nodes(&summed(totals, &node_of, cluster.nodes), windows, &[])
        };
        let (node_rows, node_bytes) = (by_nodes(&totals.rows), by_nodes(&totals.bytes));
        let partition_rows = of_partitions.with_total(&totals.rows);
        let sustained_by_nodes = self.sustained(node_rows, node_bytes, capacities.node);
        let sustained_by_partitions = self.sustained(partition_rows, of_partitions, capacities.partition);
        let limited_by_partition = match (sustained_by_partitions, sustained_by_nodes) {
            (Some(partitions), Some(nodes)) => partitions < nodes,
            (partitions, None) => partitions.is_some(),
            (None, _) => false,
        };
        let sustained = sustained_by_partitions.into_iter().chain(sustained_by_nodes).reduce(f64::min);
        let is_sustained =
            sustained.is_none_or(|sustained| sustains(sustained, self.figures.average_rows_per_second));
        let by_partition = |window: &LoadWindow| window.rows.clone();
        let by_node = |window: &LoadWindow| summed(&window.rows, &node_of, cluster.nodes);
        let weights = &load.weights;
        let (headroom_of_nodes, headroom_of_partitions) =
            headrooms(arrivals, &capacities, &node_of, cluster.nodes);
        let headroom = headroom_of_nodes.and(headroom_of_partitions);
        let rate =
            |headroom: f64| headroom.is_finite().then_some(headroom * self.figures.average_rows_per_second);
        let mut runs = vec![self.run(arrivals, &cluster, is_sustained, None)];
        for fault in faults {
            let planned = self.planned(fault, arrivals, &loads, &node_of)?;
            runs.push(self.run(arrivals, &cluster, is_sustained, Some(planned)));
        }
        Ok(DesignReport {
            partition_key: key.part_names(),
            candidate: key.clone(),
            nodes: self.shape.nodes,
            partitions: self.shape.partitions.len(),
            partitions_per_node: self.shape.partitions.len() as f64 / self.shape.nodes.max(1) as f64,
            capacities,
            over_partitions: Unevenness::from_arrivals(
                arrivals,
                self.shape.partitions.len(),
                by_partition,
                weights,
                partition_rows,
            ),
            over_nodes: Unevenness::from_arrivals(arrivals, self.shape.nodes, by_node, weights, node_rows),
            rows_per_second_without_queue: rate(headroom.in_every_slice),
            sustained_rows_per_second: sustained,
            is_sustained,
            rows_per_second_in_the_long_run: rate(headroom.in_the_long_run),
            limited_by_partition,
            runs,
        })
    }

    /// Resolves the node and the time of a fault.
    fn planned(
        &self,
        fault: &RequestedFault,
        arrivals: &Arrivals,
        loads: &[f64],
        node_of: &[usize],
    ) -> Result<(NodeFault, FaultReport), CapacityError> {
        let node = match fault.node() {
            NodeChoice::Number(number) => number,
            NodeChoice::Hottest => hottest(loads, node_of, self.shape.nodes),
        };
        let last = arrivals.windows.last().map_or(0, |window| window.start_micros);
        let end = last.saturating_add(arrivals.window.get());
        let (planned, kind, factor, at_micros) = match fault {
            RequestedFault::Slow(Slow { factor, .. }) => {
                (NodeFault::Slow { node, factor: *factor }, FaultKind::Slow, *factor, arrivals.start_micros())
            }
            RequestedFault::Lost(Lost { at, .. }) => {
                let at_micros = match at {
                    LossTime::After(after) => arrivals.start_micros().saturating_add(after.get()),
                    LossTime::Busiest => self.figures.busiest_start_micros,
                };
                if at_micros >= end {
                    let fault = fault.to_string();
                    let span = (end - arrivals.start_micros()) as f64 / 3.6e9;
                    return Err(CapacityError::LateFault { fault, hours: span });
                }
                let after_seconds = arrivals.seconds_of(at_micros);
                (NodeFault::Lost { node, after_seconds }, FaultKind::Lost, 0.0, at_micros)
            }
        };
        Ok((planned, FaultReport { requested: fault.to_string(), kind, node, factor, at_micros }))
    }

    fn run(
        &self,
        arrivals: &Arrivals,
        cluster: &NodeCluster,
        is_sustained: bool,
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
            keeps_up: is_sustained && outcome.longest_delay_seconds.is_some_and(|delay| delay <= allowed),
            seconds_to_drain: fault.as_ref().and_then(|fault| drained_after(fault, &outcome)),
            fault,
            outcome,
        }
    }
}

/// Returns the seconds from a fault until the backlog finally clears.
fn drained_after(fault: &FaultReport, outcome: &RunOutcome) -> Option<f64> {
    let until = outcome.waiting_until_micros.filter(|until| *until > fault.at_micros)?;
    Some(until.saturating_sub(fault.at_micros) as f64 / 1e6)
}

/// Total load on each partition.
struct Totals {
    rows: Vec<u64>,
    bytes: Vec<u64>,
}

impl Totals {
    fn from_arrivals(arrivals: &Arrivals) -> Self {
        let mut totals = Self { rows: vec![0; arrivals.partitions()], bytes: vec![0; arrivals.partitions()] };
        for window in &arrivals.windows {
            totals.rows.iter_mut().zip(&window.rows).for_each(|(total, rows)| *total += rows);
            totals.bytes.iter_mut().zip(&window.bytes).for_each(|(total, bytes)| *total += bytes);
        }
        totals
    }
}

/// Sums the figures of each node's partitions.
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

/// Returns the node with the highest load, or the first of several.
fn hottest(loads: &[f64], node_of: &[usize], nodes: usize) -> usize {
    let sums = summed(loads, node_of, nodes);
    let by_load = |a: &(usize, &f64), b: &(usize, &f64)| a.1.total_cmp(b.1).then(b.0.cmp(&a.0));
    sums.iter().enumerate().max_by(by_load).map_or(0, |(node, _)| node)
}

/// Returns the headroom of nodes and of partitions.
fn headrooms(
    arrivals: &Arrivals,
    capacities: &Capacities,
    node_of: &[usize],
    nodes: usize,
) -> (Headroom, Headroom) {
    let seconds = arrivals.window.seconds();
    let work = arrivals.work(capacities);
    let of_nodes: Vec<Vec<f64>> = work.iter().map(|work| summed(&work.node, node_of, nodes)).collect();
    let node = of_nodes.iter().map(|seconds_of| (seconds, seconds_of.as_slice()));
    let partition = work.iter().map(|work| (seconds, work.partition.as_slice()));
    (
        Headroom::from_slices(node, &vec![1.0; nodes.max(1)]),
        Headroom::from_slices(partition, &vec![1.0; arrivals.partitions()]),
    )
}

impl Unevenness {
    /// Computes the unevenness of `count` partitions or nodes from the rows of each in every
    /// window.
    fn from_arrivals(
        arrivals: &Arrivals,
        count: usize,
        rows_of: impl Fn(&LoadWindow) -> Vec<u64>,
        keys: &KeyWeights,
        concentration: Concentration,
    ) -> Self {
        let mut total = vec![0u64; count];
        let (mut hottest, mut by_chance) = (0u64, 0.0);
        let mut chance = MaxOverMeanByChance::over(count);
        for window in &arrivals.windows {
            let rows = rows_of(window);
            hottest += rows.iter().copied().max().unwrap_or(0);
            let of_window: u64 = rows.iter().sum();
            by_chance += chance.expected(of_window) * of_window as f64;
            total.iter_mut().zip(rows).for_each(|(total, rows)| *total += rows);
        }
        let in_total = SkewFigures::from_counts(&total);
        let rows = in_total.rows.max(1) as f64;
        Self {
            noise_floor: NoiseFloor::from_weights(&in_total, keys),
            max_over_mean_at_a_time: hottest as f64 * count as f64 / rows,
            max_over_mean_at_a_time_by_chance: by_chance / rows,
            sustained_over_mean: concentration.over_mean(),
            in_total,
        }
    }
}

#[cfg(test)]
#[path = "design_tests.rs"]
mod tests;
