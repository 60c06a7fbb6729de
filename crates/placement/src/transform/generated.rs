//! Keys that a database generates.

use std::ops::RangeInclusive;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use uuid::{Builder, Uuid};

use crate::transform::bit_reverse;

/// `bit_reversed_positive`: a counter whose bits below the sign are reversed, without the values of
/// a skipped range.
#[derive(Debug, Clone)]
pub struct BitReversedSequence {
    counter: i64,
    skip: Option<RangeInclusive<i64>>,
}

impl BitReversedSequence {
    /// Creates a sequence whose counter begins at `start`, at least 1, and which never returns a
    /// value in `skip`.
    #[must_use]
    pub fn new(start: i64, skip: Option<RangeInclusive<i64>>) -> Self {
        Self { counter: start.max(1), skip }
    }
}

impl Iterator for BitReversedSequence {
    type Item = i64;

    /// Returns the next value; `None` after 2^63 - 1 of them.
    fn next(&mut self) -> Option<i64> {
        loop {
            let value = bit_reverse(self.counter, true);
            self.counter = self.counter.checked_add(1)?;
            if !self.skip.as_ref().is_some_and(|skip| skip.contains(&value)) {
                return Some(value);
            }
        }
    }
}

/// Versions of UUIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UuidKind {
    /// Version 4: random.
    Random,
    /// Version 1: begins with the low 32 bits of the time, in 100 ns.
    TimeLow,
    /// Version 7: begins with milliseconds since 1970.
    TimeHigh,
}

/// A source of UUIDs that depend only on the seed and the times.
#[derive(Debug, Clone)]
pub struct UuidSource {
    kind: UuidKind,
    random: ChaCha8Rng,
    /// Distinguishes UUIDs of the same moment.
    counter: u16,
    node: [u8; 6],
}

/// Number of 100 ns intervals from 1582-10-15, the start of the Gregorian calendar, to 1970.
const GREGORIAN_TICKS: u64 = 0x01B2_1DD2_1381_4000;

impl UuidSource {
    /// Creates a source of UUIDs of a kind.
    #[must_use]
    pub fn new(kind: UuidKind, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut node = [0; 6];
        random.fill_bytes(&mut node);
        Self { kind, random, counter: 0, node }
    }

    /// Returns the next UUID, generated at a point in time in microseconds since 1970.
    pub fn next_at(&mut self, micros: i64) -> Uuid {
        let micros = micros.max(0).cast_unsigned();
        match self.kind {
            UuidKind::Random => {
                let mut bytes = [0; 16];
                self.random.fill_bytes(&mut bytes);
                Builder::from_random_bytes(bytes).into_uuid()
            }
            UuidKind::TimeLow => {
                self.counter = self.counter.wrapping_add(1) & 0x3FFF;
                let ticks = micros.saturating_mul(10).saturating_add(GREGORIAN_TICKS);
                Builder::from_gregorian_timestamp(ticks, self.counter, &self.node).into_uuid()
            }
            UuidKind::TimeHigh => {
                let mut rest = [0; 10];
                self.random.fill_bytes(&mut rest);
                Builder::from_unix_timestamp_millis(micros / 1000, &rest).into_uuid()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_sequence_leaves_its_range_out_and_never_repeats() {
        let values: Vec<i64> = BitReversedSequence::new(1, None).take(3).collect();
        assert_eq!(values, [1 << 62, 1 << 61, (1 << 62) | (1 << 61)]);
        let skip = 1..=4_294_967_296_i64;
        let mut seen = HashSet::new();
        for value in BitReversedSequence::new(1, Some(skip.clone())).take(10_000) {
            assert!(value > 0 && !skip.contains(&value) && seen.insert(value));
        }
        // Values of a counter from 1 to 1000 cannot recur from 11,000 on.
        let before: HashSet<i64> = BitReversedSequence::new(1, None).take(1000).collect();
        assert!(BitReversedSequence::new(11_000, None).take(100_000).all(|value| !before.contains(&value)));
    }

    #[test]
    fn a_sequence_ends_where_its_counter_does() {
        assert_eq!(BitReversedSequence::new(i64::MAX, None).next(), None);
        // The skipped range covers every value, so the sequence only reaches its end.
        assert!(BitReversedSequence::new(i64::MAX - 2, Some(1..=i64::MAX)).next().is_none());
    }

    #[test]
    fn uuids_say_their_version_and_come_in_the_order_of_time_where_that_leads() {
        let at = 1_700_000_000_000_000;
        for (kind, version) in [(UuidKind::Random, 4), (UuidKind::TimeLow, 1), (UuidKind::TimeHigh, 7)] {
            let mut source = UuidSource::new(kind, 1);
            let made: Vec<Uuid> = (0..1000).map(|second| source.next_at(at + second * 1_000_000)).collect();
            assert!(made.iter().all(|uuid| uuid.get_version_num() == version));
            assert_eq!(made.iter().collect::<HashSet<_>>().len(), 1000);
            let rising = made.windows(2).filter(|pair| pair[0] < pair[1]).count();
            // Version 1 begins with the low bits of the time, which wrap around every 430 seconds.
            let expected = match kind {
                UuidKind::Random => 400..600,
                UuidKind::TimeLow => 995..999,
                UuidKind::TimeHigh => 999..1000,
            };
            assert!(expected.contains(&rising), "{kind:?}: {rising}");
            let mut again = UuidSource::new(kind, 1);
            assert_eq!(again.next_at(at), made[0]);
        }
    }
}
