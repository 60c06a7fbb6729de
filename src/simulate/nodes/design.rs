//! One partition key on so many nodes with so many partitions.

use crate::simulate::SimulateError;
use crate::simulate::nodes::capacity::{Capacities, Rate, Room};
use crate::simulate::nodes::load::CountedKey;
use crate::simulate::nodes::{
    ArrivalFigures, ArrivalWindow, Arrivals, Cluster, DesignReport, Fault, FaultReport, Lost, Moment,
    NodeChoice, NodeFault, NodeParameters, Outcome, RunReport, Shape, Slow, Unevenness, play,
};
use crate::skew::{KeyWeights, MaxOverMeanByChance, NoiseFloor, SkewFigures};
use crate::table::Candidate;

/// One design, for any partition key.
pub(super) struct Design<'a> {
    pub(super) parameters: &'a NodeParameters,
    pub(super) figures: &'a ArrivalFigures,
    pub(super) shape: Shape,
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

    pub(super) fn report(
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
        let (mut hottest, mut by_chance) = (0u64, 0.0);
        let mut chance = MaxOverMeanByChance::over(count);
        for window in &arrivals.windows {
            let rows = rows_of(window);
            hottest += rows.iter().copied().max().unwrap_or(0);
            let of_window: u64 = rows.iter().sum();
            by_chance += chance.of(of_window) * of_window as f64;
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
