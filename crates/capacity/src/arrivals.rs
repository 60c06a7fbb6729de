//! Load on partitions, window by window.

use crate::capacity::{Capacities, Rate};
use evenkeel_advisor::evaluate::LoadWindow;
use evenkeel_model::units::Micros;

/// Load on the partitions of one design, window by window.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrivals {
    /// Length of a window.
    pub window: Micros,
    /// Number of rows that each row of the export stands for.
    pub scale: f64,
    /// The windows that have rows, in order.
    pub windows: Vec<LoadWindow>,
}

impl Arrivals {
    /// Returns the number of partitions.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.windows.first().map_or(0, |window| window.rows.len())
    }

    /// Returns the start of the first window, in microseconds since 1970.
    pub(super) fn start_micros(&self) -> i64 {
        self.windows.first().map_or(0, |window| window.start_micros)
    }

    /// Converts a point in time into seconds since the start.
    pub(super) fn seconds_of(&self, micros: i64) -> f64 {
        micros.saturating_sub(self.start_micros()) as f64 / 1e6
    }

    /// Converts seconds since the start into a point in time.
    pub(super) fn micros_of(&self, seconds: f64) -> i64 {
        self.start_micros().saturating_add((seconds * 1e6).round() as i64)
    }

    /// Returns the service time that each partition demands of its node and of itself in each
    /// window, in seconds.
    pub(super) fn work(&self, capacities: &Capacities) -> Vec<Work> {
        let of_window = |window: &LoadWindow| {
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

    /// Returns the total demand of each partition: in rows, in bytes if nodes are limited in bytes
    /// alone, or in seconds of the node if they are limited in both. Rows and bytes are whole
    /// numbers, so that the assignment of partitions does not vary with the capacity of nodes.
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

/// Service time that each partition demands in a window, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Work {
    /// Seconds of the capacity of its node.
    pub(super) node: Vec<f64>,
    /// Seconds of the capacity of the partition itself.
    pub(super) partition: Vec<f64>,
}
