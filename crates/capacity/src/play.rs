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

use crate::arrivals::Work;
use crate::capacity::Capacities;
use crate::queue::{Piece, Queue, fair_share};
use crate::{ArrivalWindow, Arrivals, Assignment, NodeOutcome, Outcome, Peak};
use evenkeel_model::units::Micros;

/// Steps without rows last one window, or this share of the time since the last rows, to bound
/// their number.
const REST: f64 = 1.0 / 64.0;

/// Nodes and their capacities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cluster {
    /// Number of nodes; 0 counts as 1.
    pub nodes: usize,
    /// Rule that assigns partitions to nodes.
    pub assignment: Assignment,
    /// Capacities of nodes and partitions.
    pub capacities: Capacities,
    /// Time from the loss of a node until other nodes serve its partitions.
    pub recovery: Micros,
}

/// A fault of one node of a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NodeFault {
    /// The node and its partitions have only this share of their capacity.
    Slow {
        /// Number of the node.
        node: usize,
        /// Share that is left: above 0, at most 1.
        factor: f64,
    },
    /// The node is lost for good.
    Lost {
        /// Number of the node.
        node: usize,
        /// Seconds from the start of the first window.
        after_seconds: f64,
    },
}

/// Plays arrivals against a cluster.
#[must_use]
pub fn play(arrivals: &Arrivals, cluster: &Cluster, fault: Option<NodeFault>) -> Outcome {
    let loads = arrivals.loads(&cluster.capacities);
    let mut player = Player::new(arrivals, cluster, &loads, fault);
    let window = arrivals.window.seconds();
    for (slice, work) in arrivals.windows.iter().zip(arrivals.work(&cluster.capacities)) {
        let begins = arrivals.seconds_of(slice.start_micros);
        player.rest(Some(begins));
        player.advance(
            begins,
            begins + window,
            Some(Coming { slice, work: &work, window, scale: arrivals.scale }),
        );
        player.windows.push(player.waiting_rows());
    }
    let (served, waiting) = (player.served_rows, player.waiting_rows());
    player.rest(None);
    player.finish(served, waiting)
}

/// Rows that arrive in a window.
#[derive(Clone, Copy)]
struct Coming<'a> {
    slice: &'a ArrivalWindow,
    work: &'a Work,
    window: f64,
    scale: f64,
}

impl Coming<'_> {
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

/// Something that happens to the nodes.
#[derive(Clone, Copy)]
enum Event {
    Lost(usize),
    Recovered(usize),
}

/// State of a node during a run.
#[derive(Debug, Clone, Default)]
struct Node {
    /// Share of its capacity that is available.
    factor: f64,
    outcome: NodeOutcome,
    /// Demanded and available service time, in seconds, over windows with rows.
    asked: f64,
    had: f64,
    /// Both since it took over partitions of a lost node.
    asked_since: f64,
    had_since: f64,
    has_taken_over: bool,
}

struct Player<'a> {
    arrivals: &'a Arrivals,
    cluster: &'a Cluster,
    loads: &'a [f64],
    nodes: Vec<Node>,
    /// Node of each partition, including lost nodes.
    node_of: Vec<usize>,
    queues: Vec<Queue>,
    /// Pending events, the next one first.
    events: Vec<(f64, Event)>,
    now: f64,
    arrived_rows: f64,
    served_rows: f64,
    /// Sum over the served rows of the seconds that they waited.
    row_seconds: f64,
    longest_delay: f64,
    peak: Option<Peak>,
    waiting_from: Option<f64>,
    waiting_until: f64,
    waiting_seconds: f64,
    windows: Vec<f64>,
}

impl<'a> Player<'a> {
    fn new(arrivals: &'a Arrivals, cluster: &'a Cluster, loads: &'a [f64], fault: Option<NodeFault>) -> Self {
        let count = cluster.nodes.max(1);
        let mut nodes = vec![Node { factor: 1.0, ..Node::default() }; count];
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
            node_of: cluster.assignment.deal(loads, count),
            queues: vec![Queue::default(); arrivals.partitions()],
            events,
            now: 0.0,
            arrived_rows: 0.0,
            served_rows: 0.0,
            row_seconds: 0.0,
            longest_delay: 0.0,
            peak: None,
            waiting_from: None,
            waiting_until: 0.0,
            waiting_seconds: 0.0,
            windows: Vec::new(),
        }
    }

    fn waiting_rows(&self) -> f64 {
        self.queues.iter().map(|queue| queue.amount().rows).sum()
    }

    fn is_anything_waiting(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Whether any waiting rows are at a node that can serve them.
    fn is_anything_served(&self) -> bool {
        let is_served = |node: &usize| self.nodes.get(*node).is_some_and(|node| node.factor > 0.0);
        self.queues.iter().zip(&self.node_of).any(|(queue, node)| !queue.is_empty() && is_served(node))
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
            self.happen(until);
            self.now = until;
        }
    }

    /// Applies the events up to a moment.
    fn happen(&mut self, now: f64) {
        while let Some((_, event)) = self.events.first().copied().filter(|(at, _)| *at <= now) {
            self.events.remove(0);
            match event {
                Event::Lost(lost) => {
                    if let Some(node) = self.nodes.get_mut(lost) {
                        node.factor = 0.0;
                    }
                }
                Event::Recovered(lost) => {
                    let assignment = self.cluster.assignment;
                    let moved = assignment.without(lost, &self.node_of, self.loads, self.nodes.len());
                    for (before, after) in self.node_of.iter().zip(&moved) {
                        if let Some(node) = self.nodes.get_mut(*after).filter(|_| before != after) {
                            node.has_taken_over = true;
                        }
                    }
                    self.node_of = moved;
                }
            }
        }
    }

    /// Advances in steps that end at events.
    fn advance(&mut self, from: f64, to: f64, coming: Option<Coming<'_>>) {
        let mut from = from;
        self.happen(from);
        while from < to {
            let next = self.events.first().map_or(to, |(at, _)| at.clamp(from, to));
            self.step(from, next, coming);
            self.happen(next);
            from = next;
        }
        self.now = to;
    }

    fn step(&mut self, from: f64, to: f64, coming: Option<Coming<'_>>) {
        let length = to - from;
        if length <= 0.0 {
            return;
        }
        let was_waiting = self.is_anything_waiting();
        if let Some(coming) = coming {
            self.arrive(&coming, from, to);
        }
        let mut asked: Vec<Vec<f64>> = vec![Vec::new(); self.nodes.len()];
        for (queue, node) in self.queues.iter().zip(&self.node_of) {
            let factor = self.nodes.get(*node).map_or(0.0, |node| node.factor);
            if let Some(asked) = asked.get_mut(*node) {
                asked.push(queue.node_seconds_within(factor * length));
            }
        }
        let shares =
            self.nodes.iter().zip(&asked).map(|(node, asked)| fair_share(asked, node.factor * length));
        let shares: Vec<f64> = shares.collect();
        for (queue, node) in self.queues.iter_mut().zip(&self.node_of) {
            let factor = self.nodes.get(*node).map_or(0.0, |node| node.factor);
            // A lost node serves nothing, whether it is limited or not.
            if factor <= 0.0 {
                continue;
            }
            let share = shares.get(*node).copied().unwrap_or(0.0);
            let served = queue.serve(share, factor * length);
            let rows: f64 = served.iter().map(|piece| piece.rows).sum();
            self.served_rows += rows;
            let mut left = 0.0;
            for piece in &served {
                let delay = |left: f64, came: f64| (from + length * left / rows - came).max(0.0);
                let first = delay(left, piece.begins);
                left += piece.rows;
                let last = delay(left, piece.ends);
                self.row_seconds += piece.rows * (first + last) / 2.0;
                self.longest_delay = self.longest_delay.max(first).max(last);
            }
        }
        self.look(from, to, was_waiting);
    }

    /// Adds arriving rows to the queues of their partitions.
    fn arrive(&mut self, coming: &Coming<'_>, from: f64, to: f64) {
        let mut asked = vec![0.0; self.nodes.len()];
        for (partition, (queue, node)) in self.queues.iter_mut().zip(&self.node_of).enumerate() {
            let piece = coming.piece(partition, from, to);
            self.arrived_rows += piece.rows;
            if let (Some(asked), Some(node)) = (asked.get_mut(*node), self.nodes.get_mut(*node)) {
                *asked += piece.node_seconds;
                node.outcome.rows += if node.factor > 0.0 { piece.rows } else { 0.0 };
            }
            queue.push(piece);
        }
        for (node, asked) in self.nodes.iter_mut().zip(asked).filter(|(node, _)| node.factor > 0.0) {
            let had = (to - from) * node.factor;
            (node.asked, node.had) = (node.asked + asked, node.had + had);
            if node.has_taken_over {
                (node.asked_since, node.had_since) = (node.asked_since + asked, node.had_since + had);
            }
            let highest = node.outcome.highest_utilization.unwrap_or(0.0).max(asked / had);
            node.outcome.highest_utilization = Some(highest);
        }
    }

    /// Records the backlog at the end of a step.
    fn look(&mut self, from: f64, to: f64, was_waiting: bool) {
        let is_waiting = self.is_anything_waiting();
        if was_waiting || is_waiting {
            self.waiting_seconds += to - from;
            self.waiting_until = to;
            self.waiting_from.get_or_insert(from);
        }
        if !is_waiting {
            return;
        }
        let mut of_nodes = vec![(0.0, 0.0); self.nodes.len()];
        let (mut rows, mut bytes) = (0.0, 0.0);
        for (queue, number) in self.queues.iter().zip(&self.node_of).filter(|(queue, _)| !queue.is_empty()) {
            let waiting = queue.amount();
            (rows, bytes) = (rows + waiting.rows, bytes + waiting.bytes);
            let (Some(of_node), Some(node)) = (of_nodes.get_mut(*number), self.nodes.get_mut(*number)) else {
                continue;
            };
            *of_node = (of_node.0 + waiting.rows, of_node.1 + waiting.node_seconds);
            if node.factor > 0.0 {
                let alone = waiting.partition_seconds / node.factor;
                node.outcome.most_waiting_seconds = node.outcome.most_waiting_seconds.max(alone);
            }
        }
        for (node, (rows, seconds)) in self.nodes.iter_mut().zip(of_nodes) {
            let outcome = &mut node.outcome;
            outcome.most_waiting_rows = outcome.most_waiting_rows.max(rows);
            if node.factor > 0.0 {
                outcome.most_waiting_seconds = outcome.most_waiting_seconds.max(seconds / node.factor);
            }
        }
        if self.peak.is_none_or(|peak| rows > peak.rows) {
            self.peak = Some(Peak { at_micros: self.arrivals.micros_of(to), rows, bytes });
        }
    }

    /// Builds the outcome from the rows served and waiting at the end of the last window.
    fn finish(self, served_rows: f64, waiting_rows: f64) -> Outcome {
        let is_limited = self.cluster.capacities.node.is_limited();
        let is_served = !self.is_anything_waiting();
        let share = |asked: f64, had: f64| (is_limited && had > 0.0).then(|| asked / had);
        let after = self.nodes.iter().filter(|node| node.has_taken_over && node.factor > 0.0);
        let after = after.filter_map(|node| share(node.asked_since, node.had_since)).reduce(f64::max);
        let mut nodes = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            nodes.push(NodeOutcome {
                partitions: self.node_of.iter().filter(|of| **of == number).count(),
                utilization: share(node.asked, node.had),
                highest_utilization: node.outcome.highest_utilization.filter(|_| is_limited),
                ..node.outcome.clone()
            });
        }
        let began = self.waiting_from;
        Outcome {
            arrived_rows: self.arrived_rows,
            served_rows,
            waiting_rows,
            peak: self.peak,
            most_waiting_seconds: nodes.iter().map(|node| node.most_waiting_seconds).fold(0.0, f64::max),
            waiting_from_micros: began.map(|seconds| self.arrivals.micros_of(seconds)),
            waiting_until_micros: began
                .filter(|_| is_served)
                .map(|_| self.arrivals.micros_of(self.waiting_until)),
            waiting_seconds: is_served.then_some(self.waiting_seconds),
            longest_delay_seconds: is_served.then_some(self.longest_delay),
            mean_delay_seconds: is_served
                .then(|| self.row_seconds / self.arrived_rows.max(f64::MIN_POSITIVE)),
            utilization_after_loss: after,
            waiting_rows_by_window: self.windows,
            nodes,
        }
    }
}
