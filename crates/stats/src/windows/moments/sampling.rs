//! Lengths of the short windows, and the choice of kept windows.

use evenkeel_model::units::Micros;

/// Lengths of the windows. Queues even out load peaks shorter than a second, and rates of
/// partitions are per second.
pub(super) const LENGTHS: [Micros; 6] = [
    Micros::SECOND,
    Micros::new(10_000_000),
    Micros::MINUTE,
    Micros::new(600_000_000),
    Micros::HOUR,
    Micros::DAY,
];
/// Maximum number of counters for the windows of one length, over all partitions.
const MAX_COUNTERS: usize = 1 << 17;
/// Bounds of the number of windows kept of one length.
const MAX_KEPT: (usize, usize) = (64, 4096);

/// Returns the number of windows kept of each length, for a key with `counters` counters in total.
pub fn most_moments(counters: usize) -> usize {
    (MAX_COUNTERS / counters.max(1)).clamp(MAX_KEPT.0, MAX_KEPT.1)
}

/// Returns the most counters that short windows need, for a key with `counters` in total.
pub fn moment_counters(counters: usize) -> usize {
    LENGTHS.len() * most_moments(counters) * counters
}

/// Whether a window is kept. The number is mixed as in splitmix64, so that windows at regular
/// intervals are sampled equally well.
pub(super) fn is_kept(window: i64, thinned: u32) -> bool {
    let mut mixed = window.cast_unsigned().wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    mixed.leading_zeros() >= thinned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_zero_bit_keeps_half_of_the_windows_kept_before() {
        // Windows at regular intervals, as at the start of every hour.
        let windows: Vec<i64> = (-32_768..32_768).map(|number| number * 3600).collect();
        for thinned in 0..7 {
            let kept = |zeros| windows.iter().filter(move |window| is_kept(**window, zeros));
            let expected = windows.len() as f64 / f64::from(1 << thinned);
            // Five standard deviations of a binomial distribution, which are at most this.
            let error = kept(thinned).count() as f64 - expected;
            assert!(error.abs() <= 5.0 * expected.sqrt(), "{thinned}: {error}");
            assert!(kept(thinned + 1).all(|window| is_kept(*window, thinned)));
        }
    }

    #[test]
    fn fewer_windows_are_kept_of_keys_with_more_counters() {
        assert_eq!(
            [0, 1, 32, 33, 2048, 2049, 1 << 30].map(most_moments),
            [4096, 4096, 4096, 3971, 64, 64, 64]
        );
        assert_eq!(moment_counters(100), 6 * 1310 * 100);
    }
}
