//! Overlap of key ranges.

use serde::Serialize;

use evenkeel_model::wire::wire;

/// Portions of similar overlap depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DepthBucket {
    /// Maximum depth in this bucket; greater than in the previous bucket.
    pub depth: u64,
    /// Number of portions that are deeper than the previous bucket, and no deeper than this one.
    pub portions: u64,
}

/// Overlap depth of portions, as defined by Snowflake's SYSTEM$CLUSTERING_INFORMATION. The depth of
/// a portion is the number of portions that cover its first key, itself included: 1 is no overlap.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OverlapDepth {
    /// Mean over the portions; 0 without portions.
    pub average_depth: f64,
    /// Maximum depth of a portion.
    pub max_depth: u64,
    /// Portions by depth: 1, 2, up to 4, up to 8 and so on; empty buckets are omitted.
    pub depth_histogram: Vec<DepthBucket>,
}

wire!(DepthBucket { depth, portions });
wire!(OverlapDepth { average_depth, max_depth, depth_histogram });

/// Returns, for each range in the order of first keys, the number of ranges that cover its first
/// key. Both ends belong to a range.
#[must_use]
pub fn depths<K: Ord>(ranges: &[(K, K)]) -> Vec<u64> {
    let mut begins: Vec<&K> = ranges.iter().map(|(min, _)| min).collect();
    let mut ends: Vec<&K> = ranges.iter().map(|(_, max)| max).collect();
    begins.sort_unstable();
    ends.sort_unstable();
    let mut depths = Vec::with_capacity(ranges.len());
    let (mut begun, mut ended) = (0u64, 0usize);
    for same in begins.chunk_by(|a, b| a == b) {
        begun += same.len() as u64;
        while let (Some(end), Some(here)) = (ends.get(ended), same.first())
            && end < here
        {
            ended += 1;
        }
        depths.extend(std::iter::repeat_n(begun - ended as u64, same.len()));
    }
    depths
}

impl OverlapDepth {
    /// Computes the figures from the depths of all portions.
    #[must_use]
    pub fn from_depths(mut depths: Vec<u64>) -> Self {
        depths.sort_unstable();
        let mut histogram: Vec<DepthBucket> = Vec::new();
        for depth in &depths {
            let bucket = depth.next_power_of_two();
            match histogram.last_mut() {
                Some(last) if last.depth == bucket => last.portions += 1,
                _ => histogram.push(DepthBucket { depth: bucket, portions: 1 }),
            }
        }
        Self {
            average_depth: depths.iter().sum::<u64>() as f64 / depths.len().max(1) as f64,
            max_depth: depths.last().copied().unwrap_or(0),
            depth_histogram: histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn buckets_hold_depths_up_to_powers_of_two() {
        let depth = OverlapDepth::from_depths(vec![5, 1, 1, 2, 3, 4, 9]);
        let buckets: Vec<(u64, u64)> = depth.depth_histogram.iter().map(|b| (b.depth, b.portions)).collect();
        assert_eq!(buckets, [(1, 2), (2, 1), (4, 2), (8, 1), (16, 1)]);
        assert_eq!((depth.max_depth, depth.average_depth), (9, 25.0 / 7.0));
        assert_eq!(OverlapDepth::from_depths(Vec::new()), OverlapDepth::default());
    }

    proptest! {
        #[test]
        fn depths_are_those_counted_one_by_one(ranges in proptest::collection::vec((0u8..30, 0u8..10), 0..40)) {
            let ranges: Vec<(u8, u8)> = ranges.into_iter().map(|(min, length)| (min, min + length)).collect();
            let at = |key: u8| ranges.iter().filter(|(min, max)| *min <= key && key <= *max).count() as u64;
            let mut expected: Vec<u64> = ranges.iter().map(|(min, _)| at(*min)).collect();
            let mut found = depths(&ranges);
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
