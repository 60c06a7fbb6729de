//! What the figures mean, in one word and one sentence.

use serde::Serialize;

use crate::skew::{NoiseFloor, SkewFigures};

/// The judgement of a partition key or of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There are no rows to judge.
    Empty,
    /// As even as chance allows.
    Even,
    /// Even or not in total, at any one time few partitions take most rows.
    Moving,
    /// Single keys have so many rows that their partitions stand out.
    HeavyKeys,
    /// There are too few distinct keys for the number of partitions.
    FewKeys,
    /// Uneven, and the keys do not explain it, or were not counted.
    Uneven,
}

/// Up to this max/mean a table counts as even whatever the reason: the fullest partition has 15 % more than its share.
const EVEN_MAX_OVER_MEAN: f64 = 1.15;
/// Up to this multiple of the CV that a perfect hash gives, unevenness is chance: a CV of N counts scatters by about
/// 1/sqrt(2N), 18 % for 16 partitions, so 1.6 is more than three standard deviations.
const CHANCE_FACTOR: f64 = 1.6;
/// YDB advises at least 100 distinct keys per partition.
const FEWEST_KEYS_PER_PARTITION: f64 = 100.0;
/// A window or commit with fewer rows per partition than this says nothing: a handful of rows cannot be spread evenly.
const FEWEST_ROWS_PER_PARTITION: u64 = 10;
/// In a window, fewer effective partitions than this part of the table's own say that the load moves.
const MOVING_FRACTION: f64 = 0.6;

/// Whether so many rows say anything about the balance of one window or commit.
#[must_use]
pub fn are_enough_rows(rows: u64, partitions: usize) -> bool {
    rows >= FEWEST_ROWS_PER_PARTITION * partitions as u64
}

impl Verdict {
    /// Judges a table or a candidate. `median_effective` is the median over windows of time of the effective partitions.
    #[must_use]
    pub fn of(skew: &SkewFigures, floor: Option<&NoiseFloor>, median_effective: Option<f64>) -> Self {
        if skew.rows == 0 {
            return Self::Empty;
        }
        if let Some(effective) = median_effective
            && effective < skew.partitions as f64 / 2.0
            && effective < skew.effective_partitions * MOVING_FRACTION
        {
            return Self::Moving;
        }
        if skew.max_over_mean <= EVEN_MAX_OVER_MEAN {
            return Self::Even;
        }
        let Some(floor) = floor else { return Self::Uneven };
        if floor.expected_cv_weighted > 2.0 * floor.expected_cv_equal_keys {
            return Self::HeavyKeys;
        }
        if floor.keys_per_partition < FEWEST_KEYS_PER_PARTITION {
            return Self::FewKeys;
        }
        if skew.cv <= CHANCE_FACTOR * floor.expected_cv_weighted { Self::Even } else { Self::Uneven }
    }

    /// One word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Even => "even",
            Self::Moving => "moving hotspot",
            Self::HeavyKeys => "heavy keys",
            Self::FewKeys => "too few keys",
            Self::Uneven => "uneven",
        }
    }

    /// One sentence, with advice where something is wrong.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Empty => "There are no rows yet.",
            Self::Even => "Rows spread as evenly as chance allows for these keys.",
            Self::Moving => {
                "At any one time few partitions take most of the rows, while the others wait: the key follows time. Hash a \
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
            Self::Uneven => "Rows are uneven, more than the keys explain by chance.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skew::KeyWeights;

    fn judged(counts: &[u64], keys: &[u64], effective: Option<f64>) -> Verdict {
        let mut weights = KeyWeights::default();
        keys.iter().for_each(|rows| weights.add(*rows));
        let figures = SkewFigures::of(counts);
        Verdict::of(&figures, Some(&NoiseFloor::of(&figures, &weights)), effective)
    }

    #[test]
    fn each_reason_has_its_verdict() {
        assert_eq!(judged(&[0, 0], &[], None), Verdict::Empty);
        assert_eq!(judged(&[100, 101], &[1; 201], None), Verdict::Even);
        assert_eq!(judged(&[100, 100, 100, 100], &[1; 400], Some(1.0)), Verdict::Moving);
        assert_eq!(judged(&[900, 100], &[[800].as_slice(), &[1; 200]].concat(), None), Verdict::HeavyKeys);
        assert_eq!(judged(&[300, 100], &[100; 4], None), Verdict::FewKeys);
        assert_eq!(judged(&[900, 100], &[1; 1000], None), Verdict::Uneven);
        assert_eq!(Verdict::of(&SkewFigures::of(&[9, 1]), None, None), Verdict::Uneven);
    }

    #[test]
    fn the_limit_of_evenness_is_taken_in() {
        assert_eq!(judged(&[115, 85], &[1; 200], None), Verdict::Even);
        assert_eq!(judged(&[1160, 840], &[1; 2000], None), Verdict::Uneven);
    }
}
