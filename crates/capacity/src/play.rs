//! Replay of arriving rows against nodes, and the backlog that builds there.
//!
//! **Input**: rows and bytes of every partition in every window of time, a cluster, and optionally
//! a fault. **Output**: where rows waited, how many and how long. The full definition:
//!
//! 1. The rows of a partition arrive evenly over their window and have the same size.
//! 2. Time advances in steps. Each window is one step, split where a fault begins or recovery ends.
//!    Time without rows advances in steps of one window, and longer ones the longer no rows have
//!    arrived ([`REST`]), until nothing waits.
//! 3. In a step of t seconds, each partition serves at most its capacity for t, and the partitions
//!    of a node together serve at most the node's capacity for t. Rows that were waiting and rows
//!    that arrive in the step can be served in it, the oldest of a partition first. If a node
//!    cannot serve all of them, its partitions share its capacity evenly, and those that demand
//!    less get their full demand.
//! 4. The rows that a partition serves in a step leave evenly over it.
//!
//! A row therefore waits from its arrival until it leaves, and not at all if its partition serves
//! everything that arrived in the step. A queue holds the rows that have arrived but not left at
//! the end of a step. Queues that build and clear within a window are not visible; a shorter window
//! shows more.

use crate::arrivals::{Arrivals, Work};
use crate::backlog::Backlog;
use crate::cluster::{NodeCluster, NodeFault};
use crate::node::Node;
use crate::outcome::{NodeOutcome, Peak, RunOutcome};
use crate::queue::{Piece, Queue, fair_share};
use evenkeel_advisor::evaluate::LoadWindow;

/// Steps without rows last one window, or this share of the time since the last rows, to bound
/// their number.
const REST: f64 = 1.0 / 64.0;

/// Replays arrivals against a cluster.
#[must_use]
pub fn play(arrivals: &Arrivals, cluster: &NodeCluster, fault: Option<NodeFault>) -> RunOutcome {
    let loads = arrivals.loads(&cluster.capacities);
    let mut player = Player::new(arrivals, cluster, &loads, fault);
    let window = arrivals.window.seconds();
    for (slice, work) in arrivals.windows.iter().zip(arrivals.work(&cluster.capacities)) {
        let begins = arrivals.seconds_of(slice.start_micros);
        player.rest(Some(begins));
        let arriving = ArrivingRows { slice, work: &work, window, scale: arrivals.scale };
        player.advance(begins, begins + window, Some(arriving));
        player.windows.push(player.waiting_rows());
    }
    let (served, waiting) = (player.backlog.served_rows, player.waiting_rows());
    player.rest(None);
    player.finish(served, waiting)
}

/// Rows that arrive in a window.
#[derive(Clone, Copy)]
struct ArrivingRows<'a> {
    slice: &'a LoadWindow,
    work: &'a Work,
    window: f64,
    scale: f64,
}

impl ArrivingRows<'_> {
    /// Returns the rows of a partition that arrive between two moments.
    fn piece(&self, partition: usize, from: f64, to: f64) -> Piece {
        let share = (to - from) / self.window;
        let rows =
            |amounts: &[u64]| amounts.get(partition).map_or(0.0, |rows| *rows as f64 * self.scale * share);
        let seconds = |work: &[f64]| work.get(partition).map_or(0.0, |seconds| seconds * share);
        Piece {
            begins: from,
            ends: to,
            rows: rows(&self.slice.rows),
            bytes: rows(&self.slice.bytes),
            node_seconds: seconds(&self.work.node),
            partition_seconds: seconds(&self.work.partition),
        }
    }
}

/// A change of the nodes.
#[derive(Clone, Copy)]
enum Event {
    Lost(usize),
    Recovered(usize),
}

struct Player<'a> {
    arrivals: &'a Arrivals,
    cluster: &'a NodeCluster,
    loads: &'a [f64],
    nodes: Vec<Node>,
    /// Node of each partition; it may be lost.
    node_of: Vec<usize>,
    queues: Vec<Queue>,
    /// Pending events, the next one first.
    events: Vec<(f64, Event)>,
    now: f64,
    arrived_rows: f64,
    backlog: Backlog,
    /// Rows waiting at the end of each window.
    windows: Vec<f64>,
}

impl<'a> Player<'a> {
    fn new(
        arrivals: &'a Arrivals,
        cluster: &'a NodeCluster,
        loads: &'a [f64],
        fault: Option<NodeFault>,
    ) -> Self {
        let count = cluster.nodes.max(1);
        let mut nodes = vec![Node::new(); count];
        let mut events = Vec::new();
        match fault {
            Some(NodeFault::Slow { node, factor }) => {
                if let Some(node) = nodes.get_mut(node) {
                    node.factor = factor;
                }
            }
            Some(NodeFault::Lost { node, after_seconds }) => {
                events.push((after_seconds, Event::Lost(node)));
                events.push((after_seconds + cluster.recovery.seconds(), Event::Recovered(node)));
            }
            None => {}
        }
        Self {
            arrivals,
            cluster,
            loads,
            nodes,
            node_of: cluster.assignment.assign(loads, count),
            queues: vec![Queue::default(); arrivals.partitions()],
            events,
            now: 0.0,
            arrived_rows: 0.0,
            backlog: Backlog::default(),
            windows: Vec::new(),
        }
    }

    fn waiting_rows(&self) -> f64 {
        self.queues.iter().map(|queue| queue.amount().rows).sum()
    }

    fn is_anything_waiting(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Returns the share of its capacity that the node of a partition has.
    fn factor(&self, node: usize) -> f64 {
        self.nodes.get(node).map_or(0.0, |node| node.factor)
    }

    /// Whether any waiting rows are at a node that can serve them.
    fn is_anything_served(&self) -> bool {
        self.queues
            .iter()
            .zip(&self.node_of)
            .any(|(queue, node)| !queue.is_empty() && self.factor(*node) > 0.0)
    }

    /// Serves the backlog while no rows arrive, until the next ones, or until nothing more can be
    /// served.
    fn rest(&mut self, until: Option<f64>) {
        let (from, window) = (self.now, self.arrivals.window.seconds());
        while until.is_none_or(|until| self.now < until) {
            if !self.is_anything_waiting() || (!self.is_anything_served() && self.events.is_empty()) {
                break;
            }
            let end = self.now + window.max((self.now - from) * REST);
            self.advance(self.now, until.map_or(end, |until| end.min(until)), None);
        }
        if let Some(until) = until {
            self.apply_events(until);
            self.now = until;
        }
    }

    /// Applies the events up to a moment.
    fn apply_events(&mut self, now: f64) {
        while let Some((_, event)) = self.events.first().copied().filter(|(at, _)| *at <= now) {
            self.events.remove(0);
            match event {
                Event::Lost(lost) => {
                    if let Some(node) = self.nodes.get_mut(lost) {
                        node.factor = 0.0;
                    }
                }
                Event::Recovered(lost) => self.reassign_partitions(lost),
            }
        }
    }

    /// Assigns the partitions of a lost node to others.
    fn reassign_partitions(&mut self, lost: usize) {
        let moved = self.cluster.assignment.without(lost, &self.node_of, self.loads, self.nodes.len());
        for (before, after) in self.node_of.iter().zip(&moved) {
            if let Some(node) = self.nodes.get_mut(*after).filter(|_| before != after) {
                node.has_taken_over = true;
            }
        }
        self.node_of = moved;
    }

    /// Advances in steps that end at events.
    fn advance(&mut self, from: f64, to: f64, arriving: Option<ArrivingRows<'_>>) {
        let mut from = from;
        self.apply_events(from);
        while from < to {
            let next = self.events.first().map_or(to, |(at, _)| at.clamp(from, to));
            self.step(from, next, arriving);
            self.apply_events(next);
            from = next;
        }
        self.now = to;
    }

    fn step(&mut self, from: f64, to: f64, arriving: Option<ArrivingRows<'_>>) {
        let length = to - from;
        if length <= 0.0 {
            return;
        }
        let was_waiting = self.is_anything_waiting();
        if let Some(arriving) = arriving {
            self.arrive(&arriving, from, to);
        }
        let shares = self.shares(length);
        for (queue, node) in self.queues.iter_mut().zip(&self.node_of) {
            let (Some(share), Some(node)) = (shares.get(*node), self.nodes.get(*node)) else { continue };
            // A lost node serves nothing, whether it is limited or not.
            if !node.is_lost() {
                self.backlog.serve(&queue.serve(*share, node.factor * length), from, length);
            }
        }
        self.record_backlog(from, to, was_waiting);
    }

    /// Returns the most seconds of its node that each partition gets in a step, by node.
    fn shares(&self, length: f64) -> Vec<f64> {
        let mut demands: Vec<Vec<f64>> = vec![Vec::new(); self.nodes.len()];
        for (queue, node) in self.queues.iter().zip(&self.node_of) {
            if let Some(demands) = demands.get_mut(*node) {
                demands.push(queue.node_seconds_within(self.factor(*node) * length));
            }
        }
        let share = |(node, demands): (&Node, &Vec<f64>)| fair_share(demands, node.factor * length);
        self.nodes.iter().zip(&demands).map(share).collect()
    }

    /// Adds arriving rows to the queues of their partitions.
    fn arrive(&mut self, arriving: &ArrivingRows<'_>, from: f64, to: f64) {
        let mut demands = vec![0.0; self.nodes.len()];
        for (partition, (queue, node)) in self.queues.iter_mut().zip(&self.node_of).enumerate() {
            let piece = arriving.piece(partition, from, to);
            self.arrived_rows += piece.rows;
            if let (Some(demand), Some(node)) = (demands.get_mut(*node), self.nodes.get_mut(*node)) {
                *demand += piece.node_seconds;
                node.arrive(piece.rows);
            }
            queue.push(piece);
        }
        self.nodes.iter_mut().zip(demands).for_each(|(node, demand)| node.demand(demand, to - from));
    }

    /// Records the backlog at the end of a step.
    fn record_backlog(&mut self, from: f64, to: f64, was_waiting: bool) {
        let is_waiting = self.is_anything_waiting();
        if was_waiting || is_waiting {
            self.backlog.wait(from, to);
        }
        if !is_waiting {
            return;
        }
        let mut of_nodes = vec![(0.0, 0.0); self.nodes.len()];
        let (mut rows, mut bytes) = (0.0, 0.0);
        for (queue, number) in self.queues.iter().zip(&self.node_of).filter(|(queue, _)| !queue.is_empty()) {
            let waiting = queue.amount();
            (rows, bytes) = (rows + waiting.rows, bytes + waiting.bytes);
            if let (Some(of_node), Some(node)) = (of_nodes.get_mut(*number), self.nodes.get_mut(*number)) {
                *of_node = (of_node.0 + waiting.rows, of_node.1 + waiting.node_seconds);
                node.wait_seconds(waiting.partition_seconds);
            }
        }
        for (node, (rows, seconds)) in self.nodes.iter_mut().zip(of_nodes) {
            node.wait(rows, seconds);
        }
        self.backlog.record(Peak { at_micros: self.arrivals.micros_of(to), rows, bytes });
    }

    /// Builds the outcome from the rows served and waiting at the end of the last window.
    fn finish(self, served_rows: f64, waiting_rows: f64) -> RunOutcome {
        let is_limited = self.cluster.capacities.node.is_limited();
        let is_served = !self.is_anything_waiting();
        let after_loss = self.nodes.iter().filter_map(Node::utilization_after_loss).reduce(f64::max);
        let partitions = |number: usize| self.node_of.iter().filter(|node| **node == number).count();
        let nodes: Vec<NodeOutcome> = self
            .nodes
            .into_iter()
            .enumerate()
            .map(|(number, node)| node.finish(partitions(number), is_limited))
            .collect();
        let Backlog {
            row_seconds, longest_delay, peak, waiting_from, waiting_until, waiting_seconds, ..
        } = self.backlog;
        let micros_of = |seconds: f64| self.arrivals.micros_of(seconds);
        RunOutcome {
            arrived_rows: self.arrived_rows,
            served_rows,
            waiting_rows,
            peak,
            most_waiting_seconds: nodes.iter().map(|node| node.most_waiting_seconds).fold(0.0, f64::max),
            waiting_from_micros: waiting_from.map(micros_of),
            waiting_until_micros: waiting_from.filter(|_| is_served).map(|_| micros_of(waiting_until)),
            waiting_seconds: is_served.then_some(waiting_seconds),
            longest_delay_seconds: is_served.then_some(longest_delay),
            mean_delay_seconds: is_served.then(|| row_seconds / self.arrived_rows.max(f64::MIN_POSITIVE)),
            utilization_after_loss: after_loss.filter(|_| is_limited),
            waiting_rows_by_window: self.windows,
            nodes,
        }
    }
}

#[cfg(test)]
#[path = "play_tests.rs"]
mod tests;
