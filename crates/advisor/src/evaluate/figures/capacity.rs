//! Rate of inserts that a candidate sustains, by the model of [`evenkeel_stats::throughput`].

use crate::evaluate::figures::over_time::OverTime;
use evenkeel_stats::throughput::{Capacity, Concentration, LastingShare};

/// Returns the rates that partitions with these bytes sustain, if each handles `per_partition`
/// bytes per second.
pub(crate) fn capacity(bytes: &[u64], over_time: Option<&OverTime>, per_partition: f64) -> Capacity {
    let lasting = over_time.map(|time| time.lasting_share_of_fullest);
    let lasting = lasting.map(|spread| LastingShare { median: spread.median, worst: spread.max });
    Capacity::new(Concentration::from_amounts(bytes, lasting), per_partition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_model::units::Micros;
    use evenkeel_stats::windows::Window;

    #[test]
    fn one_partition_at_a_time_limits_it_to_one() {
        let window = |number: i64| Window {
            number,
            start_micros: number,
            rows_per_partition: (0..8).map(|p| if number == p { 80_000 } else { 0 }).collect(),
        };
        let over_time =
            OverTime::from_windows(&(0..8).map(window).collect::<Vec<_>>(), Micros::SECOND).unwrap();
        let capacity = capacity(&[80_000; 8], Some(&over_time), 1e6);
        assert_eq!(capacity.in_total, 8e6);
        assert!((capacity.sustained / 1e6 - 1.0).abs() < 0.01, "{capacity:?}");
    }
}
