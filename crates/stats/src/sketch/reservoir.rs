//! A uniform sample of a stream of unknown length.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Keeps `most` items of a stream, each with the same probability (Vitter, "Random Sampling with a
/// Reservoir", Algorithm R). Equal streams give equal samples.
#[derive(Debug, Clone)]
pub struct Reservoir<T> {
    items: Vec<T>,
    most: usize,
    seen: u64,
    random: ChaCha8Rng,
}

impl<T> Reservoir<T> {
    /// Creates an empty sample of at most `most` items.
    #[must_use]
    pub fn new(most: usize, seed: u64) -> Self {
        Self { items: Vec::new(), most, seen: 0, random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Offers an item, which is created only if it is kept.
    pub fn offer(&mut self, item: impl FnOnce() -> T) {
        self.seen += 1;
        if self.items.len() < self.most {
            self.items.push(item());
            return;
        }
        let place = self.random.random_range(0..self.seen);
        if let Ok(place) = usize::try_from(place)
            && let Some(slot) = self.items.get_mut(place)
        {
            *slot = item();
        }
    }

    /// Returns the sample.
    #[must_use]
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Returns the number of items offered.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Returns the share of the stream that was kept, at most 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.seen == 0 { 1.0 } else { self.items.len() as f64 / self.seen as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_stream_is_kept_whole_and_a_long_one_evenly() {
        let mut short = Reservoir::new(10, 1);
        (0..10).for_each(|item| short.offer(|| item));
        assert_eq!(short.items(), (0..10).collect::<Vec<_>>());
        let mut long = Reservoir::new(1000, 1);
        (0..100_000).for_each(|item| long.offer(|| item));
        assert_eq!((long.items().len(), long.seen()), (1000, 100_000));
        // Each half of the stream supplies half of the sample, within four standard deviations (16
        // each).
        let early = long.items().iter().filter(|item| **item < 50_000).count();
        assert!(early.abs_diff(500) < 64, "{early}");
    }
}
