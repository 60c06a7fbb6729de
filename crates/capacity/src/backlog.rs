//! Delays and backlog of a run, over all nodes.

use crate::outcome::Peak;
use crate::queue::Piece;

/// Delays and backlog so far; times are seconds since the start.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pub(super) served_rows: f64,
    /// Sum over the served rows of the seconds that they waited.
    pub(super) row_seconds: f64,
    pub(super) longest_delay: f64,
    pub(super) peak: Option<Peak>,
    pub(super) waiting_from: Option<f64>,
    pub(super) waiting_until: f64,
    pub(super) waiting_seconds: f64,
}

impl Backlog {
    /// Counts the rows that a partition serves in a step, which leave evenly over it.
    pub(super) fn serve(&mut self, served: &[Piece], from: f64, length: f64) {
        let rows: f64 = served.iter().map(|piece| piece.rows).sum();
        self.served_rows += rows;
        let mut left = 0.0;
        for piece in served {
            let delay = |left: f64, arrived: f64| (from + length * left / rows - arrived).max(0.0);
            let first = delay(left, piece.begins);
            left += piece.rows;
            let last = delay(left, piece.ends);
            self.row_seconds += piece.rows * (first + last) / 2.0;
            self.longest_delay = self.longest_delay.max(first).max(last);
        }
    }

    /// Records a step at the beginning or end of which rows wait.
    pub(super) fn wait(&mut self, from: f64, to: f64) {
        self.waiting_seconds += to - from;
        self.waiting_until = to;
        self.waiting_from.get_or_insert(from);
    }

    /// Records the rows that wait at one moment.
    pub(super) fn record(&mut self, moment: Peak) {
        if self.peak.is_none_or(|peak| moment.rows > peak.rows) {
            self.peak = Some(moment);
        }
    }
}
