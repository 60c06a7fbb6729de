//! State of a node during a run.

use crate::outcome::NodeOutcome;

/// Load, backlog and availability of a node during a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// Share of its capacity that is available.
    pub(super) factor: f64,
    pub(super) has_taken_over: bool,
    outcome: NodeOutcome,
    /// Service time over windows with rows.
    service: Service,
    /// Service time since the node took over partitions of a lost one.
    service_since: Service,
}

/// Demanded and available service time, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Service {
    demanded: f64,
    available: f64,
}

impl Service {
    fn add(&mut self, demanded: f64, available: f64) {
        self.demanded += demanded;
        self.available += available;
    }

    fn utilization(self) -> Option<f64> {
        (self.available > 0.0).then(|| self.demanded / self.available)
    }
}

impl Node {
    /// Creates a node with its full capacity.
    pub(super) fn new() -> Self {
        Self { factor: 1.0, ..Self::default() }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.factor <= 0.0
    }

    /// Counts rows that arrive at the node, unless it is lost.
    pub(super) fn arrive(&mut self, rows: f64) {
        self.outcome.rows += if self.is_lost() { 0.0 } else { rows };
    }

    /// Counts the service time that the rows of a step demand, unless the node is lost.
    pub(super) fn demand(&mut self, demanded: f64, step_seconds: f64) {
        if self.is_lost() {
            return;
        }
        let available = step_seconds * self.factor;
        self.service.add(demanded, available);
        if self.has_taken_over {
            self.service_since.add(demanded, available);
        }
        let highest = self.outcome.highest_utilization.unwrap_or(0.0).max(demanded / available);
        self.outcome.highest_utilization = Some(highest);
    }

    /// Records rows that wait at the end of a step, and the seconds that they need.
    pub(super) fn wait(&mut self, rows: f64, node_seconds: f64) {
        self.outcome.most_waiting_rows = self.outcome.most_waiting_rows.max(rows);
        self.wait_seconds(node_seconds);
    }

    /// Records the seconds that the backlog of one of its partitions or of all of them needs,
    /// unless the node is lost.
    pub(super) fn wait_seconds(&mut self, seconds: f64) {
        if !self.is_lost() {
            let most = self.outcome.most_waiting_seconds.max(seconds / self.factor);
            self.outcome.most_waiting_seconds = most;
        }
    }

    /// Returns the utilization since the node took over partitions, if it did.
    pub(super) fn utilization_after_loss(&self) -> Option<f64> {
        if self.has_taken_over && !self.is_lost() { self.service_since.utilization() } else { None }
    }

    /// Returns the outcome of a node that has `partitions` partitions at the end.
    pub(super) fn finish(self, partitions: usize, is_limited: bool) -> NodeOutcome {
        NodeOutcome {
            partitions,
            utilization: self.service.utilization().filter(|_| is_limited),
            highest_utilization: self.outcome.highest_utilization.filter(|_| is_limited),
            ..self.outcome
        }
    }
}
