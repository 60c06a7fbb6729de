//! Distinct values in order.

use crate::portion::dictionary::interner::{ByteValues, NULL, Values};
use crate::portion::dictionary::kind::Kind;
use evenkeel_stats::numbering::prefix;

/// Distinct values in order, indexed by rank.
pub(super) enum SortedValues {
    /// Little-endian integers of one width.
    Fixed { data: Vec<u8>, width: usize },
    /// Text and bytes in order of first appearance, and the number of each rank.
    Bytes { values: ByteValues, order: Vec<u32> },
}

impl SortedValues {
    /// Returns the values in order, and the rank of each number.
    pub(super) fn new(values: Values, kind: Kind, width: usize) -> (Self, Vec<u32>) {
        let sign = if kind == Kind::Signed { 1 << 63 } else { 0 };
        let mut order: Vec<(u64, u32)> = match &values {
            Values::Numbers(numbers) => numbers.iter().map(|value| value ^ sign).zip(0..).collect(),
            Values::Bytes(bytes) => {
                (0..values.len() as u32).map(|number| (prefix(bytes.get(number)), number)).collect()
            }
        };
        match &values {
            Values::Numbers(_) => order.sort_unstable(),
            Values::Bytes(bytes) => {
                order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| bytes.get(a.1).cmp(bytes.get(b.1))))
            }
        }
        let mut ranks = vec![NULL; order.len()];
        for (rank, (_, number)) in (0u32..).zip(&order) {
            if let Some(slot) = ranks.get_mut(*number as usize) {
                *slot = rank;
            }
        }
        let sorted = match values {
            Values::Numbers(_) => {
                let stored =
                    order.iter().flat_map(|(word, _)| (word ^ sign).to_le_bytes().into_iter().take(width));
                Self::Fixed { data: stored.collect(), width }
            }
            Values::Bytes(values) => {
                Self::Bytes { values, order: order.into_iter().map(|(_, number)| number).collect() }
            }
        };
        (sorted, ranks)
    }

    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Fixed { data, width } => (data.len() / width) as u32,
            Self::Bytes { order, .. } => order.len() as u32,
        }
    }

    pub(super) fn get(&self, rank: u32) -> &[u8] {
        match self {
            Self::Fixed { data, width } => {
                let begin = rank as usize * width;
                data.get(begin..begin + width).unwrap_or_default()
            }
            Self::Bytes { values, order } => {
                order.get(rank as usize).map_or(&[], |number| values.get(*number))
            }
        }
    }

    /// Bytes of a value in plain encoding, which puts the length in front of text and bytes.
    pub(super) fn plain_length(&self, rank: u32) -> usize {
        match self {
            Self::Fixed { width, .. } => *width,
            Self::Bytes { .. } => size_of::<u32>() + self.get(rank).len(),
        }
    }
}
