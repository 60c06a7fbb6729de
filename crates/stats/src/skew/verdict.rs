//! Meaning of the figures, in one word and one sentence.

use serde::Serialize;

use crate::skew::{BEYOND_CHANCE, NoiseFloor, SkewFigures, expected_empty_partitions};

/// Verdict on a partition key or a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There are no rows to judge.
    Empty,
    /// There are too few rows to judge.
    FewRows,
    /// As even as chance allows, and even enough to work with.
    Even,
    /// Even or not in total: at any moment few partitions get most rows.
    Moving,
    /// Single keys have enough rows to make their partitions stand out.
    HeavyKeys,
    /// There are too few distinct keys for the number of partitions.
    FewKeys,
    /// Uneven, and the keys do not explain it or were not counted.
    Uneven,
}

/// Distribution of rows at any moment, compared with that in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtATime {
    /// Spread over the partitions, or not known.
    Spread,
    /// Concentrated on few partitions, which change over time.
    Moves,
    /// Concentrated on few partitions, always the same ones.
    Stays,
}

/// Up to this max/mean a table counts as even for any reason: the fullest partition has 15 % more
/// than its share.
pub const EVEN_MAX_OVER_MEAN: f64 = 1.15;
/// Up to this max/mean a table counts as even if chance explains it: it sustains three quarters of
/// the inserts that it would with equal partitions. 100 keys for each of 1000 partitions give this
/// value.
const EVEN_BY_CHANCE: f64 = 4.0 / 3.0;
/// Smallest share of effective partitions with which a table counts as even.
const EVEN_EFFECTIVE: f64 = 0.9;
/// Unequal rows of keys are a separate reason if they add this share to the CV of as many equal
/// keys.
const HEAVY_ADDS: f64 = 0.1;
/// Standard deviations beyond which chance does not explain empty partitions.
const EMPTY_BEYOND_CHANCE: f64 = 5.0;
/// Smallest number of distinct keys per partition that YDB advises.
pub const MIN_KEYS_PER_PARTITION: u64 = 100;
/// Minimum number of rows per partition that allow a verdict: a handful of rows cannot be spread
/// evenly. Some keys need more.
pub const MIN_ROWS_PER_PARTITION: u64 = 10;
/// From this balance on, rows count as spread over the partitions at any moment: half-way between all
/// in one partition and all partitions equal.
const EVEN_BALANCE: f64 = 0.5;
/// The load moves if the balance at any moment is less than this share of that in total.
const MOVING_FRACTION: f64 = 0.6;

/// Whether the rows suffice to judge the balance of a table, or of one window or commit.
#[must_use]
pub fn are_enough_rows(rows: u64, partitions: usize) -> bool {
    rows >= MIN_ROWS_PER_PARTITION * partitions as u64
}

/// Returns effective partitions on a scale from 0, all rows in one, to 1, all partitions equal; 1
/// for a single partition. Two partitions are thus judged on the same scale as many.
#[must_use]
pub fn balance(effective: f64, partitions: usize) -> f64 {
    if partitions < 2 { 1.0 } else { ((effective - 1.0) / (partitions as f64 - 1.0)).clamp(0.0, 1.0) }
}

impl AtATime {
    /// Classifies by the [`balance`] at any moment and of all rows.
    #[must_use]
    pub fn from_balances(at_a_time: f64, in_total: f64) -> Self {
        if at_a_time >= EVEN_BALANCE {
            Self::Spread
        } else if at_a_time < MOVING_FRACTION * in_total {
            Self::Moves
        } else {
            Self::Stays
        }
    }
}

impl Verdict {
    /// Judges a table or a candidate.
    #[must_use]
    pub fn from_skew(skew: &SkewFigures, floor: Option<&NoiseFloor>, at_a_time: AtATime) -> Self {
        if skew.rows == 0 {
            return Self::Empty;
        }
        if !are_enough_rows(skew.rows, skew.partitions) {
            let repeats = floor.is_some_and(|floor| floor.has_only_repeated_keys(skew));
            return if repeats { Self::FewKeys } else { Self::FewRows };
        }
        if at_a_time == AtATime::Moves {
            return Self::Moving;
        }
        let effective = skew.effective_partitions >= EVEN_EFFECTIVE * skew.partitions as f64;
        let has_keys = floor.is_none_or(|floor| floor.keys_per_partition >= 1.0);
        let may_be_even = effective && has_keys && at_a_time == AtATime::Spread;
        if may_be_even && skew.max_over_mean <= EVEN_MAX_OVER_MEAN {
            return Self::Even;
        }
        let Some(floor) = floor else { return Self::Uneven };
        if floor.deviations > BEYOND_CHANCE || leaves_empty(skew, floor) {
            return Self::Uneven;
        }
        let few_keys = floor.keys_per_partition < MIN_KEYS_PER_PARTITION as f64;
        if few_keys && floor.keys_follow_rows(skew.rows) {
            return Self::FewRows;
        }
        if floor.expected_cv_weighted > 2.0 * floor.expected_cv_equal_keys {
            return Self::HeavyKeys;
        }
        if few_keys {
            return Self::FewKeys;
        }
        if may_be_even && skew.max_over_mean <= EVEN_BY_CHANCE {
            return Self::Even;
        }
        // Chance explains it, but it is still too uneven.
        if floor.cv_of_heavy_keys > HEAVY_ADDS * floor.expected_cv_equal_keys {
            Self::HeavyKeys
        } else {
            Self::FewKeys
        }
    }

    /// Returns the verdict in one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::FewRows => "too few rows",
            Self::Even => "even",
            Self::Moving => "moving hotspot",
            Self::HeavyKeys => "heavy keys",
            Self::FewKeys => "too few keys",
            Self::Uneven => "uneven",
        }
    }

    /// Returns the verdict in one sentence, with advice if something is wrong.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Empty => "There are no rows yet.",
            Self::FewRows => {
                "There are too few rows to judge: even a perfect hash would spread them unevenly."
            }
            Self::Even => "Rows spread as evenly as chance allows for these keys.",
            Self::Moving => {
                "At any one time few partitions get most of the rows, while the others are idle: the key \
                    follows time. Hash a \
                 column with many values at any moment, such as a user id."
            }
            Self::HeavyKeys => {
                "Keys differ so much in rows that some partitions stand out. Add a column to the partition key that splits the \
                 heavy ones."
            }
            Self::FewKeys => {
                "There are too few distinct keys for so many partitions; YDB advises 100 to 1000 per partition. Add a \
                 column, or use fewer partitions."
            }
            Self::Uneven => {
                "Rows are uneven, and the keys, as far as they were counted, do not explain it. 'evenkeel \
                    lint' checks the hash function on them."
            }
        }
    }
}

/// Whether partitions are empty that chance would fill; the rows of the keys do not matter for
/// that.
#[must_use]
pub fn leaves_empty(skew: &SkewFigures, floor: &NoiseFloor) -> bool {
    let (mean, deviation) = expected_empty_partitions(skew.partitions, floor.distinct_keys);
    skew.empty_partitions as f64 > mean + EMPTY_BEYOND_CHANCE * deviation + 1.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::skew::KeyWeights;

    fn judged(counts: &[u64], keys: &[u64], at_a_time: AtATime) -> Verdict {
        let mut weights = KeyWeights::default();
        keys.iter().for_each(|rows| weights.add(*rows));
        let figures = SkewFigures::from_counts(counts);
        Verdict::from_skew(&figures, Some(&NoiseFloor::from_weights(&figures, &weights)), at_a_time)
    }

    #[test]
    fn each_reason_has_its_verdict() {
        let spread = AtATime::Spread;
        assert_eq!(judged(&[0, 0], &[], spread), Verdict::Empty);
        assert_eq!(judged(&[100, 101], &[1; 201], spread), Verdict::Even);
        assert_eq!(judged(&[100, 100, 100, 100], &[1; 400], AtATime::Moves), Verdict::Moving);
        assert_eq!(judged(&[900, 100], &[[800].as_slice(), &[1; 200]].concat(), spread), Verdict::HeavyKeys);
        assert_eq!(judged(&[300, 100], &[100; 4], spread), Verdict::FewKeys);
        assert_eq!(judged(&[900, 100], &[1; 1000], spread), Verdict::Uneven);
        assert_eq!(Verdict::from_skew(&SkewFigures::from_counts(&[90, 10]), None, spread), Verdict::Uneven);
    }

    #[test]
    fn the_limit_of_evenness_is_taken_in() {
        assert_eq!(judged(&[115, 85], &[1; 200], AtATime::Spread), Verdict::Even);
        assert_eq!(judged(&[1160, 840], &[1; 2000], AtATime::Spread), Verdict::Uneven);
    }

    #[test]
    fn few_rows_are_judged_by_no_key() {
        // A unique id, and a constant.
        for keys in [vec![1; 5], vec![5]] {
            assert_eq!(judged(&[5, 0, 0, 0], &keys, AtATime::Spread), Verdict::FewRows);
        }
        // Rows that repeat a few keys would not be spread by more rows.
        let mut counts = vec![0u64; 64];
        counts[7] = 500;
        assert_eq!(judged(&counts, &[500], AtATime::Spread), Verdict::FewKeys);
        counts[8] = 40;
        assert_eq!(
            judged(&counts, &[[500].as_slice(), &[1; 40]].concat(), AtATime::Spread),
            Verdict::FewRows
        );
        // An id with enough rows to count, but too few to predict the number of ids.
        let mut counts = [20u64; 16];
        (counts[3], counts[4]) = (30, 10);
        assert_eq!(judged(&counts, &[1; 320], AtATime::Spread), Verdict::FewRows);
        // The same rows with few keys: the keys are the reason.
        assert_eq!(judged(&counts, &[10; 32], AtATime::Spread), Verdict::FewKeys);
    }

    #[test]
    fn a_large_unevenness_is_not_even_because_chance_explains_it() {
        // 3200 keys for 16 partitions, some with 60 rows instead of 10.
        let keys: Vec<u64> = (0..3200).map(|key| if key % 40 == 0 { 60 } else { 10 }).collect();
        let mut counts = vec![2250u64; 16];
        (counts[0], counts[1]) = (4072, 428);
        let figures = SkewFigures::from_counts(&counts);
        assert!(figures.max_over_mean > 1.8);
        assert_ne!(judged(&counts, &keys, AtATime::Spread), Verdict::Even);
        // 100 keys for each of 2000 partitions: the fullest is more than a third above its share,
        // and chance explains it.
        let mut counts = vec![1000u64; 2000];
        (counts[0], counts[1]) = (1350, 650);
        assert_eq!(judged(&counts, &[10; 200_000], AtATime::Spread), Verdict::FewKeys);
    }

    #[test]
    fn two_partitions_can_move_as_many_can() {
        for partitions in [2, 3, 4, 16, 256] {
            let even = balance(partitions as f64, partitions);
            assert_eq!(
                AtATime::from_balances(balance(1.0, partitions), even),
                AtATime::Moves,
                "{partitions}"
            );
            assert_eq!(AtATime::from_balances(even, even), AtATime::Spread, "{partitions}");
            let one = balance(1.0 + 0.1 * (partitions - 1) as f64, partitions);
            assert_eq!(AtATime::from_balances(one, one), AtATime::Stays, "{partitions}");
        }
        assert_eq!(AtATime::from_balances(balance(1.0, 1), balance(1.0, 1)), AtATime::Spread);
    }

    proptest! {
        #[test]
        fn even_is_within_what_chance_allows_and_even_enough(
            partitions in 1usize..40,
            keys in prop::collection::vec((1u64..200, any::<u64>()), 1..3000),
            crowded in 1usize..40,
        ) {
            // Keys at random, in all partitions or only in some of them.
            let used = crowded.min(partitions) as u64;
            let mut counts = vec![0u64; partitions];
            let mut weights = KeyWeights::default();
            for (rows, at) in keys {
                counts[(at % used) as usize] += rows;
                weights.add(rows);
            }
            let figures = SkewFigures::from_counts(&counts);
            let floor = NoiseFloor::from_weights(&figures, &weights);
            for at_a_time in [AtATime::Spread, AtATime::Moves, AtATime::Stays] {
                if Verdict::from_skew(&figures, Some(&floor), at_a_time) == Verdict::Even {
                    prop_assert_eq!(at_a_time, AtATime::Spread);
                    prop_assert!(figures.max_over_mean <= EVEN_BY_CHANCE, "{figures:?}");
                    prop_assert!(figures.effective_partitions >= EVEN_EFFECTIVE * partitions as f64);
                    let small = figures.max_over_mean <= EVEN_MAX_OVER_MEAN;
                    prop_assert!(small || floor.deviations <= BEYOND_CHANCE, "{floor:?}");
                    prop_assert!(are_enough_rows(figures.rows, partitions));
                    prop_assert!(weights.distinct >= partitions as u64);
                }
            }
        }
    }
}
