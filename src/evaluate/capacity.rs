//! The rate of inserts that a table can take, from what one partition can.

use serde::Serialize;

use crate::evaluate::over_time::OverTime;

/// Inserts that one partition takes, in bytes per second: about 1 MB/s (YDB documentation, "Choosing keys for maximum
/// column-oriented table performance": 1 GB/s into 1000 partitions).
pub const DEFAULT_PARTITION_RATE: f64 = 1e6;

/// Rates in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Capacity {
    /// What one partition takes.
    pub per_partition: f64,
    /// What the table would take if all partitions were equally busy.
    pub if_even: f64,
    /// What it takes when rows come in any order: limited by the partition with the most bytes.
    pub in_total: f64,
    /// What it takes when rows come in the order of time: limited by the fullest partition at a time, in the middle of the windows that
    /// are judged, less what chance adds to it there. Equal to `in_total` without windows.
    pub sustained: f64,
    /// The same for the window that is worst.
    pub worst_window: f64,
}

impl Capacity {
    /// The rates for partitions with so many bytes, each of which takes `per_partition` bytes per second.
    #[must_use]
    pub fn of(bytes: &[u64], over_time: Option<&OverTime>, per_partition: f64) -> Self {
        let all: u64 = bytes.iter().sum();
        let most = bytes.iter().copied().max().unwrap_or(0);
        let even_share = 1.0 / bytes.len().max(1) as f64;
        let total_share = if all == 0 { even_share } else { most as f64 / all as f64 };
        let lasting = over_time.map(|time| time.lasting_share_of_fullest);
        let share = |of_window: Option<f64>| of_window.map_or(total_share, |share| share.max(total_share));
        Self {
            per_partition,
            if_even: per_partition / even_share,
            in_total: per_partition / total_share,
            sustained: per_partition / share(lasting.map(|spread| spread.median)),
            worst_window: per_partition / share(lasting.map(|spread| spread.max)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Micros;
    use crate::windows::Window;

    #[test]
    fn the_fullest_partition_limits_the_table() {
        let even = Capacity::of(&[5; 8], None, 1e6);
        assert_eq!([even.if_even, even.in_total, even.sustained], [8e6; 3]);
        let half = Capacity::of(&[50, 25, 25, 0], None, 1e6);
        assert_eq!([half.if_even, half.in_total, half.worst_window], [4e6, 2e6, 2e6]);
        assert_eq!(Capacity::of(&[0, 0], None, 1e6).in_total, 2e6);
    }

    #[test]
    fn one_partition_at_a_time_limits_it_to_one() {
        let window = |number: i64| Window {
            number,
            start_micros: number,
            rows_per_partition: (0..8).map(|p| if number == p { 80_000 } else { 0 }).collect(),
        };
        let over_time = OverTime::of(&(0..8).map(window).collect::<Vec<_>>(), Micros::SECOND).unwrap();
        let capacity = Capacity::of(&[80_000; 8], Some(&over_time), 1e6);
        assert_eq!(capacity.in_total, 8e6);
        assert!((capacity.sustained / 1e6 - 1.0).abs() < 0.01, "{capacity:?}");
    }
}
