//! What comes to partitions, window by window.

use crate::capacity::{Capacities, Rate};
use evenkeel_model::units::Micros;

/// What comes to partitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    /// Length of a window.
    pub window: Micros,
    /// Rows that each row counts for.
    pub scale: f64,
    /// The windows that have rows, in order.
    pub windows: Vec<ArrivalWindow>,
}

/// A slice of time with what comes to each partition in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivalWindow {
    /// Where it begins, in microseconds since 1970.
    pub start_micros: i64,
    /// Rows.
    pub rows: Vec<u64>,
    /// Bytes of their values.
    pub bytes: Vec<u64>,
}

impl Arrivals {
    /// Partitions.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.windows.first().map_or(0, |window| window.rows.len())
    }

    /// Where the first window begins, in microseconds since 1970.
    pub(super) fn start_micros(&self) -> i64 {
        self.windows.first().map_or(0, |window| window.start_micros)
    }

    /// Seconds of a point in time since then.
    pub(super) fn seconds_of(&self, micros: i64) -> f64 {
        micros.saturating_sub(self.start_micros()) as f64 / 1e6
    }

    /// The point in time so many seconds since then.
    pub(super) fn micros_of(&self, seconds: f64) -> i64 {
        self.start_micros().saturating_add((seconds * 1e6).round() as i64)
    }

    /// Seconds of node and of partition that each partition asks for in each window.
    pub(super) fn work(&self, capacities: &Capacities) -> Vec<Work> {
        let of_window = |window: &ArrivalWindow| {
            let amounts = || window.rows.iter().zip(&window.bytes);
            let scaled = |amount: &u64| *amount as f64 * self.scale;
            Work {
                node: amounts()
                    .map(|(rows, bytes)| capacities.node.seconds(scaled(rows), scaled(bytes)))
                    .collect(),
                partition: amounts()
                    .map(|(rows, bytes)| capacities.partition.seconds(scaled(rows), scaled(bytes)))
                    .collect(),
            }
        };
        self.windows.iter().map(of_window).collect()
    }

    /// What each partition asks for in all: rows, or bytes where its node is limited in these alone, or seconds of the node where it is in
    /// both. Rows and bytes are whole numbers, so that partitions are dealt alike whatever nodes take.
    pub(super) fn loads(&self, capacities: &Capacities) -> Vec<f64> {
        let Rate { rows_per_second, bytes_per_second } = capacities.node;
        let mut loads = vec![0.0; self.partitions()];
        for window in &self.windows {
            for (load, (rows, bytes)) in loads.iter_mut().zip(window.rows.iter().zip(&window.bytes)) {
                let (rows, bytes) = (*rows as f64, *bytes as f64);
                *load += match (rows_per_second, bytes_per_second) {
                    (Some(_), Some(_)) => capacities.node.seconds(rows, bytes),
                    (None, Some(_)) => bytes,
                    (_, None) => rows,
                };
            }
        }
        loads
    }
}

/// Seconds that each partition asks for in a window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    /// Of its node.
    pub(super) node: Vec<f64>,
    /// Of itself.
    pub(super) partition: Vec<f64>,
}
