//! A uniform sample of a stream of unknown length.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use evenkeel_model::wire::{Wire, WireError, WireReader};

/// Keeps `most` items of a stream, each with the same probability (Vitter, "Random Sampling with a
/// Reservoir", Algorithm X). Equal streams give equal samples.
///
/// The n-th item replaces another one with probability `most` / n. Instead of a random number for
/// each item, there is one for each that is kept: the next is kept as soon as the probability of
/// having kept none since the last one falls below it.
#[derive(Debug, Clone)]
pub struct Reservoir<T> {
    items: Vec<T>,
    most: usize,
    seen: u64,
    /// Probability that no item since the last kept one is kept.
    none_kept: f64,
    /// Random number in [0, 1) for the next kept item.
    next: f64,
    random: ChaCha8Rng,
}

impl<T> Reservoir<T> {
    /// Creates an empty sample of at most `most` items.
    #[must_use]
    pub fn new(most: usize, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        Self { items: Vec::new(), most, seen: 0, none_kept: 1.0, next: random.random(), random }
    }

    /// Offers an item. If it is kept, returns the place for it: a new one, or that of the item that
    /// it replaces.
    pub fn offer(&mut self) -> Option<&mut T>
    where
        T: Default,
    {
        self.seen += 1;
        if self.items.len() < self.most {
            self.items.push(T::default());
            return self.items.last_mut();
        }
        self.none_kept *= 1.0 - self.most as f64 / self.seen as f64;
        if self.none_kept > self.next {
            return None;
        }
        (self.none_kept, self.next) = (1.0, self.random.random());
        let place = self.random.random_range(0..self.most.max(1));
        self.items.get_mut(place)
    }

    /// Adds a sample of the same size of the items that follow. Two samples that are whole streams
    /// make the sample of both; otherwise each item of either stream has the same chance, but the
    /// sample is not the one of a single pass. `follow` changes an item of the other sample, given
    /// the number of items before its stream.
    pub fn merge(&mut self, mut other: Self, follow: impl Fn(&mut T, u64)) {
        let both = self.seen + other.seen;
        other.items.iter_mut().for_each(|item| follow(item, self.seen));
        if self.items.len() + other.items.len() <= self.most {
            self.items.extend(other.items);
            self.seen = both;
            return;
        }
        let mut left = (self.seen, other.seen);
        let mut from = (std::mem::take(&mut self.items), other.items);
        let size = self.most.min(from.0.len() + from.1.len());
        // As many of each as a draw without replacement from both streams gives.
        let mut taken = (0, 0);
        for _ in 0..size {
            let is_first = self.random.random_range(0..(left.0 + left.1).max(1)) < left.0;
            if is_first && taken.0 < from.0.len() || taken.1 >= from.1.len() {
                (taken.0, left.0) = (taken.0 + 1, left.0.saturating_sub(1));
            } else {
                (taken.1, left.1) = (taken.1 + 1, left.1.saturating_sub(1));
            }
        }
        for (items, count) in [(&mut from.0, taken.0), (&mut from.1, taken.1)] {
            while items.len() > count {
                items.swap_remove(self.random.random_range(0..items.len()));
            }
        }
        self.items = from.0;
        self.items.extend(from.1);
        self.seen = both;
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

impl<T: Wire> Reservoir<T> {
    /// Appends the sample to `bytes`.
    pub fn put(&self, bytes: &mut Vec<u8>) {
        self.seen.put(bytes);
        self.items.put(bytes);
    }

    /// Reads the output of [`Reservoir::put`] for a sample of the same size.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are cut, or have more items.
    pub fn take(most: usize, seed: u64, left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let (seen, items) = (u64::take(left)?, Vec::<T>::take(left)?);
        if items.len() > most || items.len() as u64 > seen {
            return Err(WireError("it has too many items"));
        }
        // The same choices again and again would prefer the items at some positions.
        Ok(Self { items, seen, ..Self::new(most, seed ^ seen) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer<T: Default>(sample: &mut Reservoir<T>, items: impl IntoIterator<Item = T>) {
        for item in items {
            if let Some(place) = sample.offer() {
                *place = item;
            }
        }
    }

    #[test]
    fn a_short_stream_is_kept_whole_and_a_long_one_evenly() {
        let mut short = Reservoir::new(10, 1);
        offer(&mut short, 0..10);
        assert_eq!(short.items(), (0..10).collect::<Vec<_>>());
        let mut long = Reservoir::new(1000, 1);
        offer(&mut long, 0..100_000);
        assert_eq!((long.items().len(), long.seen()), (1000, 100_000));
        // Each half of the stream supplies half of the sample, within four standard deviations (16
        // each).
        let early = long.items().iter().filter(|item| **item < 50_000).count();
        assert!(early.abs_diff(500) < 64, "{early}");
    }

    #[test]
    fn every_item_has_the_same_chance() {
        const SAMPLES: u64 = 20_000;
        let mut kept = [0_u32; 40];
        for seed in 0..SAMPLES {
            let mut sample = Reservoir::new(5, seed);
            offer(&mut sample, 0..kept.len());
            sample.items().iter().for_each(|item| kept[*item] += 1);
        }
        // Five of 40 items in each sample, within five standard deviations (47 each).
        assert!(kept.iter().all(|kept| kept.abs_diff(2_500) < 235), "{kept:?}");
        let mut none = Reservoir::new(0, 1);
        offer(&mut none, 0..10);
        assert_eq!((none.items().len(), none.seen()), (0, 10));
    }

    #[test]
    fn samples_of_two_streams_make_one_of_both() {
        let sample_of = |items: std::ops::Range<u64>| {
            let mut sample = Reservoir::new(1000, 1);
            offer(&mut sample, items);
            let mut bytes = Vec::new();
            sample.put(&mut bytes);
            let sealed = evenkeel_model::wire::seal(|sealed| sealed.extend_from_slice(&bytes));
            Reservoir::<u64>::take(1000, 2, &mut evenkeel_model::wire::unseal(&sealed).unwrap()).unwrap()
        };
        let mut short = sample_of(0..400);
        short.merge(sample_of(400..1000), |_, before| assert_eq!(before, 400));
        assert_eq!(short.items(), (0..1000).collect::<Vec<_>>());
        // A quarter of the stream supplies a quarter of the sample, within four deviations (14
        // each).
        let mut long = sample_of(0..20_000);
        long.merge(sample_of(20_000..80_000), |_, _| ());
        assert_eq!((long.items().len(), long.seen()), (1000, 80_000));
        let early = long.items().iter().filter(|item| **item < 20_000).count();
        assert!(early.abs_diff(250) < 56, "{early}");
        let early = long.items().iter().filter(|item| **item < 50_000).count();
        assert!(early.abs_diff(625) < 64, "{early}");
        // A long one and one that is whole.
        let mut mixed = sample_of(0..10_000);
        mixed.merge(sample_of(10_000..10_100), |_, _| ());
        assert_eq!(mixed.items().len(), 1000);
        let late = mixed.items().iter().filter(|item| **item >= 10_000).count();
        assert!(late < 30, "{late}");
    }
}
