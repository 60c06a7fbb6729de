//! Helpers of the tests of several modules.

use crate::capacity::Rate;

/// A second in microseconds.
pub(super) const SECOND: i64 = 1_000_000;

pub(super) fn rows_per_second(rate: f64) -> Rate {
    Rate { rows_per_second: Some(rate), bytes_per_second: None }
}

pub(super) fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
}

/// Returns the backlog at the end of each window of ten seconds, for a single queue that serves
/// `rate` rows per second.
pub(super) fn plain_queue(windows: &[u64], rate: f64) -> Vec<f64> {
    let mut waiting = 0.0;
    let next = |rows: &u64| {
        waiting = f64::max(waiting + *rows as f64 - rate * 10.0, 0.0);
        waiting
    };
    windows.iter().map(next).collect()
}
