//! Waiting rows of one partition, in order of arrival.

use std::collections::VecDeque;

/// Parts of a piece smaller than this are rounding errors and are served with the rest.
const ROUNDING: f64 = 1e-9;

/// Rows that arrived evenly between two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Piece {
    /// Arrival of the first row, in seconds.
    pub(super) begins: f64,
    /// Arrival of the last row, in seconds.
    pub(super) ends: f64,
    pub(super) rows: f64,
    /// Bytes of the values of these rows.
    pub(super) bytes: f64,
    /// Seconds that the node needs to serve them.
    pub(super) node_seconds: f64,
    /// Seconds that the partition needs to serve them.
    pub(super) partition_seconds: f64,
}

impl Piece {
    /// Splits the piece into its first part and the rest.
    fn cut(self, share: f64) -> (Self, Self) {
        let middle = self.begins + share * (self.ends - self.begins);
        let part = |share: f64| Self {
            rows: self.rows * share,
            bytes: self.bytes * share,
            node_seconds: self.node_seconds * share,
            partition_seconds: self.partition_seconds * share,
            ..self
        };
        (Self { ends: middle, ..part(share) }, Self { begins: middle, ..part(1.0 - share) })
    }

    /// Returns the share of the piece that can be served within the given seconds of its node and
    /// of its partition.
    fn within(&self, node_seconds: f64, partition_seconds: f64) -> f64 {
        let rows_within = |budget: f64, cost: f64| if cost > 0.0 { budget / cost } else { 1.0 };
        let share = rows_within(node_seconds, self.node_seconds)
            .min(rows_within(partition_seconds, self.partition_seconds));
        if share >= 1.0 - ROUNDING { 1.0 } else { share.max(0.0) }
    }
}

/// Waiting rows of one partition, first in, first out.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    pieces: VecDeque<Piece>,
    amount: Amount,
}

/// Size of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) rows: f64,
    pub(super) bytes: f64,
    pub(super) node_seconds: f64,
    pub(super) partition_seconds: f64,
}

impl Amount {
    fn add(&mut self, sign: f64, piece: &Piece) {
        self.rows += sign * piece.rows;
        self.bytes += sign * piece.bytes;
        self.node_seconds += sign * piece.node_seconds;
        self.partition_seconds += sign * piece.partition_seconds;
    }
}

impl Queue {
    pub(super) fn push(&mut self, piece: Piece) {
        if piece.rows > 0.0 {
            self.amount.add(1.0, &piece);
            self.pieces.push_back(piece);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn amount(&self) -> Amount {
        self.amount
    }

    /// Returns the seconds the node needs for the rows that the partition can serve in
    /// `partition_seconds`.
    pub(super) fn node_seconds_within(&self, mut partition_seconds: f64) -> f64 {
        if self.amount.partition_seconds <= partition_seconds {
            return self.amount.node_seconds;
        }
        let mut demand = 0.0;
        for piece in &self.pieces {
            let share = piece.within(f64::INFINITY, partition_seconds);
            demand += share * piece.node_seconds;
            partition_seconds -= piece.partition_seconds;
            if share < 1.0 {
                break;
            }
        }
        demand
    }

    /// Serves the rows that fit into the given seconds of the node and of the partition, oldest
    /// first.
    pub(super) fn serve(&mut self, mut node_seconds: f64, mut partition_seconds: f64) -> Vec<Piece> {
        let mut served = Vec::new();
        while let Some(piece) = self.pieces.pop_front() {
            let share = piece.within(node_seconds, partition_seconds);
            if share >= 1.0 {
                node_seconds -= piece.node_seconds;
                partition_seconds -= piece.partition_seconds;
                served.push(piece);
                continue;
            }
            let (first, rest) = piece.cut(share);
            self.pieces.push_front(rest);
            if first.rows > 0.0 {
                served.push(first);
            }
            break;
        }
        match self.is_empty() {
            // Drop the rounding errors of the sums.
            true => self.amount = Amount::default(),
            false => served.iter().for_each(|piece| self.amount.add(-1.0, piece)),
        }
        served
    }
}

/// Returns the most that each consumer may get so that all together use `budget`: small demands are
/// met in full, and the others share the rest evenly (max-min fair). Infinite if all demands fit.
pub(super) fn fair_share(demands: &[f64], budget: f64) -> f64 {
    if demands.iter().sum::<f64>() <= budget * (1.0 + ROUNDING) {
        return f64::INFINITY;
    }
    let mut sorted = demands.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut rest = budget;
    for (position, demand) in sorted.iter().enumerate() {
        let share = rest / (sorted.len() - position) as f64;
        if *demand > share {
            return share;
        }
        rest -= demand;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::*;

    fn piece(begins: f64, rows: f64) -> Piece {
        Piece {
            begins,
            ends: begins + 1.0,
            rows,
            bytes: rows * 10.0,
            node_seconds: rows / 4.0,
            partition_seconds: rows / 2.0,
        }
    }

    #[test]
    fn the_oldest_rows_are_served_first_and_a_piece_may_be_cut() {
        let mut queue = Queue::default();
        queue.push(piece(0.0, 4.0));
        queue.push(piece(1.0, 8.0));
        queue.push(piece(2.0, 0.0));
        // The partition serves 8 rows in 4 seconds; the node needs 2 seconds for them.
        assert_eq!(queue.node_seconds_within(4.0), 2.0);
        let served = queue.serve(f64::INFINITY, 4.0);
        assert_eq!(served, [piece(0.0, 4.0), Piece { ends: 1.5, ..piece(1.0, 4.0) }]);
        assert_eq!((queue.amount().rows, queue.amount().bytes), (4.0, 40.0));
        assert_eq!(queue.serve(1.0, 10.0), [Piece { begins: 1.5, ends: 2.0, ..piece(0.0, 4.0) }]);
        assert!(queue.is_empty() && queue.serve(1.0, 1.0).is_empty());
    }

    #[test]
    fn nothing_is_served_in_no_time() {
        let mut queue = Queue::default();
        queue.push(piece(0.0, 4.0));
        assert!(queue.serve(0.0, 9.0).is_empty() && queue.serve(9.0, 0.0).is_empty());
        assert_eq!(queue.amount().rows, 4.0);
    }

    #[test]
    fn those_who_ask_for_little_get_it() {
        assert_eq!(fair_share(&[1.0, 5.0, 9.0], 15.0), f64::INFINITY);
        assert_eq!(fair_share(&[1.0, 5.0, 9.0], 9.0), 4.0);
        assert_eq!(fair_share(&[1.0, 5.0, 9.0], 12.0), 6.0);
        assert_eq!(fair_share(&[3.0, 3.0], 0.0), 0.0);
        assert_eq!(fair_share(&[], 1.0), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn shares_use_the_budget_up(demands in proptest::collection::vec(0.0f64..10.0, 1..20), budget in 0.0f64..60.0) {
            let share = fair_share(&demands, budget);
            let taken: f64 = demands.iter().map(|demand| demand.min(share)).sum();
            let all: f64 = demands.iter().sum();
            prop_assert!((taken - all.min(budget)).abs() < 1e-6, "{taken} of {all}, {budget}");
        }
    }
}
