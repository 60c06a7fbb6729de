//! Effect of chance on partition sizes, compared with simulations and exact results.

use proptest::prelude::*;

use super::*;

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn the_noise_floor_agrees_with_itself_and_with_the_rule_of_ydb() {
    // 100 to 1000 keys per partition mean a CV of about 10 % to 3 %.
    assert!((expected_cv_equal_keys(64, 6_400) - 0.1).abs() < 0.001);
    assert!((expected_cv_equal_keys(64, 64_000) - 0.0316).abs() < 0.001);
    close(expected_cv_weighted(64, 6_400.0 * 3.0, 6_400.0 * 9.0), expected_cv_equal_keys(64, 6_400));
    close(expected_cv_weighted(64, 0.0, 0.0), 0.0);
    close(expected_cv_equal_keys(1, 10), 0.0);
}

#[test]
fn the_expected_maximum_agrees_with_simulations() {
    // Mean of 20,000 random placements of 1, 3, 10, 100 and 1000 keys per partition.
    for (partitions, simulated) in [
        (12, [2.879, 2.035, 1.545, 1.166, 1.052]),
        (64, [3.961, 2.575, 1.813, 1.242, 1.075]),
        (128, [4.377, 2.778, 1.909, 1.27, 1.083]),
    ] {
        for (per_partition, expected) in [1, 3, 10, 100, 1000].into_iter().zip(simulated) {
            let found = expected_max_over_mean_equal_keys(partitions, partitions as u64 * per_partition);
            assert!(
                (found / expected - 1.0f64).abs() < 0.03,
                "{partitions} x {per_partition}: {found}, {expected}"
            );
        }
    }
    close(expected_max_over_mean_equal_keys(8, 0), 1.0);
    // Just before and after the point from which the sum starts above 0.
    let (below, above) =
        (expected_max_over_mean_equal_keys(16, 16_000), expected_max_over_mean_equal_keys(16, 16_016));
    assert!((below - above).abs() < 1e-4, "{below} {above}");
    let many = expected_max_over_mean_equal_keys(16, 16_000_000_000);
    assert!(many > 1.0 && many < 1.0001, "{many}");
}

/// Returns the mean of the largest count over all N^k ways to place k keys, by enumerating the
/// counts partition by partition.
fn enumerated(partitions: usize, keys: usize) -> f64 {
    fn sum(partitions: usize, left: usize, most: usize, ways: f64) -> f64 {
        if partitions == 1 {
            return ways * most.max(left) as f64;
        }
        let choose = |count: usize| (0..count).fold(1.0, |c, i| c * (left - i) as f64 / (i + 1) as f64);
        (0..=left).map(|count| sum(partitions - 1, left - count, most.max(count), ways * choose(count))).sum()
    }
    sum(partitions, keys, 0, 1.0) / (partitions as f64).powi(keys as i32)
}

#[test]
fn the_expected_maximum_of_few_keys_is_that_of_all_placements() {
    for (most_partitions, most_keys) in [(4, 12), (7, 7), (12, 4)] {
        for partitions in 1..=most_partitions {
            for keys in 1..=most_keys {
                let mean = keys as f64 / partitions as f64;
                let expected = enumerated(partitions, keys) / mean;
                let found = expected_max_over_mean_equal_keys(partitions, keys as u64);
                assert!((found - expected).abs() < 1e-9, "{partitions} {keys}: {found}, {expected}");
            }
        }
    }
    // One key is in one partition, whatever their number; two keys share one of N partitions.
    for partitions in [2, 64, 1000, 65_536] {
        let n = partitions as f64;
        assert!((expected_max_over_mean_equal_keys(partitions, 1) / n - 1.0).abs() < 1e-9);
        let two = expected_max_over_mean_equal_keys(partitions, 2);
        assert!((two / ((1.0 + 1.0 / n) * n / 2.0) - 1.0).abs() < 1e-9, "{partitions}: {two}");
    }
}

#[test]
fn the_expected_maximum_of_many_keys_is_close_to_the_exact_one() {
    for partitions in [2, 3, 5, 12, 64, 500, 5000] {
        for keys in [65u64, 100, 129, 300] {
            let mean = keys as f64 / partitions as f64;
            let expected = expected_max_exactly(partitions, keys as usize) / mean;
            let found = expected_max_over_mean_equal_keys(partitions, keys);
            assert!((found / expected - 1.0).abs() < 0.005, "{partitions} {keys}: {found}, {expected}");
        }
    }
}

#[test]
fn chance_is_not_blamed_and_a_defect_is() {
    // Keys of very different weights, placed at random repeatedly.
    for (partitions, light, heavy, seeds) in [
        (2, 40, 0, 400),
        (2, 3000, 2, 400),
        (16, 2000, 3, 400),
        (64, 0, 2, 400),
        (64, 6400, 30, 200),
        (300, 50, 5, 200),
    ] {
        let mut blamed = 0;
        for seed in 0u64..seeds {
            let mut counts = vec![0u64; partitions];
            let mut weights = KeyWeights::default();
            for key in 0u64..light + heavy {
                let rows = if key < heavy { 100 } else { 1 + key % 3 };
                let hash = evenkeel_placement::placement::hash_bytes(
                    &[seed.to_le_bytes(), key.to_le_bytes()].concat(),
                );
                counts[(hash % partitions as u64) as usize] += rows;
                weights.add(rows);
            }
            let floor = NoiseFloor::from_weights(&SkewFigures::from_counts(&counts), &weights);
            blamed += u32::from(floor.deviations > BEYOND_CHANCE);
        }
        assert_eq!(blamed, 0, "{partitions} {light} {heavy}");
    }
    // Half of the partitions stay empty.
    let mut weights = KeyWeights::default();
    (0..1600).for_each(|_| weights.add(10));
    let counts: Vec<u64> = (0..16).map(|partition| if partition % 2 == 0 { 2000 } else { 0 }).collect();
    let floor = NoiseFloor::from_weights(&SkewFigures::from_counts(&counts), &weights);
    assert!(floor.deviations > 20.0, "{floor:?}");
}

proptest! {
    #[test]
    fn the_expected_maximum_is_between_its_bounds_and_falls_with_keys(partitions in 1usize..300, keys in 1u64..3000) {
        let max_over_mean = expected_max_over_mean_equal_keys(partitions, keys);
        let most = partitions as f64;
        // No placement is more even than this one.
        let least = (keys as f64 / most).ceil() * most / keys as f64;
        prop_assert!(max_over_mean >= least.min(most) - 1e-9 && max_over_mean <= most + 1e-9, "{max_over_mean}");
        let more = expected_max_over_mean_equal_keys(partitions, keys * 2);
        prop_assert!(more <= max_over_mean + 1e-6, "{max_over_mean} {more}");
    }
}

#[test]
fn a_perfect_hash_has_the_expected_cv() {
    // The hash of consecutive numbers simulates a random placement of 20,000 keys into 32
    // partitions.
    let mut counts = [0u64; 32];
    for key in 0u64..20_000 {
        let hash = evenkeel_placement::placement::hash_bytes(&key.to_le_bytes());
        counts[(hash % 32) as usize] += 1;
    }
    let cv = SkewFigures::from_counts(&counts).cv;
    let expected = expected_cv_equal_keys(32, 20_000);
    // The CV of 32 counts itself varies by about 1 / sqrt(2 x 31) = 13 %; allow three times
    // that.
    assert!((cv / expected - 1.0).abs() < 0.39, "{cv} against {expected}");
}
