//! The rate of inserts that a candidate sustains, by the model of [`crate::capacity`].

use crate::capacity::{Capacity, Concentration, Lasting};
use crate::evaluate::over_time::OverTime;

impl Capacity {
    /// The rates for partitions with so many bytes, each of which takes `per_partition` bytes per second.
    #[must_use]
    pub fn of(bytes: &[u64], over_time: Option<&OverTime>, per_partition: f64) -> Self {
        let lasting = over_time.map(|time| time.lasting_share_of_fullest);
        let lasting = lasting.map(|spread| Lasting { median: spread.median, worst: spread.max });
        Self::new(Concentration::of(bytes, lasting), per_partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Micros;
    use crate::windows::Window;

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
