//! Time range and pace of an export, and the rows that arrive late.

use evenkeel_model::units::Micros;
use evenkeel_model::wire::wire;

/// Time range and pace of an export.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TimeRange {
    /// First instant, in microseconds since 1970.
    pub earliest_micros: i64,
    /// Last instant, in microseconds since 1970.
    pub latest_micros: i64,
    /// Number of rows without a time.
    pub null_rows: u64,
    /// Rows that follow one that is later by more than a second, a minute, an hour and a day.
    pub late_rows_by_more_than: [u64; 4],
    /// Average rows per second over the time that has rows.
    pub average_rows_per_second: f64,
    /// Rows per second of a busy time, exceeded by one window of a hundred.
    pub busy_rows_per_second: f64,
}

wire!(TimeRange {
    earliest_micros,
    latest_micros,
    null_rows,
    late_rows_by_more_than,
    average_rows_per_second,
    busy_rows_per_second,
});

/// Delays for which late rows are counted.
pub const LATE_BY: [Micros; 4] = [Micros::SECOND, Micros::MINUTE, Micros::HOUR, Micros::DAY];

/// Counts a row that is late by `micros` microseconds.
pub fn count_late(late_by: &mut [u64; 4], micros: i64) {
    for (rows, distance) in late_by.iter_mut().zip(LATE_BY) {
        *rows += u64::from(micros > distance.get());
    }
}

impl TimeRange {
    /// Returns the number of rows so late that windows of this length would not show them at the
    /// time they arrived: those after a row that is later by more than the longest of the distances
    /// within that length.
    #[must_use]
    pub fn rows_late_for(&self, window: Micros) -> u64 {
        let counted = LATE_BY.iter().zip(self.late_rows_by_more_than);
        let within = counted.clone().rfind(|(distance, _)| **distance <= window);
        within.or(counted.clone().next()).map_or(0, |(_, rows)| rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_late_by_each_distance_that_it_exceeds() {
        let mut late_by = [0; 4];
        for micros in [0, 1_000_000, 1_000_001, 60_000_001, 3_600_000_000, 86_400_000_001] {
            count_late(&mut late_by, micros);
        }
        // Exactly a second, or exactly an hour, is not more than that.
        assert_eq!(late_by, [4, 3, 1, 1]);
    }

    #[test]
    fn rows_are_late_for_a_window_by_the_longest_distance_within_it() {
        let range = TimeRange {
            earliest_micros: 0,
            latest_micros: 1,
            null_rows: 0,
            late_rows_by_more_than: [40, 30, 20, 10],
            average_rows_per_second: 1.0,
            busy_rows_per_second: 1.0,
        };
        let late = [1, 999_999, 1_000_000, 59_999_999, 60_000_000, 3_600_000_000, 90_000_000_000]
            .map(|window| range.rows_late_for(Micros::new(window)));
        // No distance is within a window shorter than a second; the shortest one represents it.
        assert_eq!(late, [40, 40, 40, 40, 30, 20, 10]);
    }
}
