//! Samples of keys, which determine the boundary when a split is divided.

use std::ops::Range;

use crate::simulate::splits::key::Key;
use crate::simulate::splits::parameters::ModelParameters;
use crate::simulate::splits::random::SplitMix;

/// A sampled row of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) key: Box<[u8]>,
    /// Length of the first key column.
    lead: usize,
    /// Length of the key of the row's root.
    root: usize,
    bytes: u32,
}

impl Sample {
    pub(super) fn new(key: Key<'_>, bytes: u32) -> Self {
        Self { key: key.bytes.into(), lead: key.lead, root: key.root, bytes }
    }
}

/// Sample of about every `each`-th row of a split.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    pub(super) rows: Vec<Sample>,
    each: u64,
    until_next: u64,
}

impl Default for Samples {
    fn default() -> Self {
        Self { rows: Vec::new(), each: 1, until_next: 0 }
    }
}

impl Samples {
    /// Whether the next row is to be sampled.
    #[inline]
    pub(super) fn wants(&mut self) -> bool {
        if self.until_next > 0 {
            self.until_next -= 1;
            return false;
        }
        true
    }

    /// Adds a row, and keeps at most `most` rows in all.
    pub(super) fn add(&mut self, sample: Sample, most: usize, random: &mut SplitMix) {
        if self.rows.len() >= most {
            self.thin();
        }
        self.rows.push(sample);
        // The gap is random, between 0 and twice its mean, so that periodic rows do not bias the
        // sample.
        self.until_next = random.below(2 * self.each - 1);
    }

    fn thin(&mut self) {
        let mut kept = false;
        self.rows.retain(|_| {
            kept = !kept;
            kept
        });
        self.each *= 2;
    }

    /// Divides the sample into the rows below `boundary` and the others.
    pub(super) fn divide(self, boundary: &[u8]) -> (Self, Self) {
        let (below, above): (Vec<_>, Vec<_>) =
            self.rows.into_iter().partition(|sample| sample.key.as_ref() < boundary);
        let part = |rows| Self { rows, each: self.each, until_next: self.until_next };
        (part(below), part(above))
    }

    /// Adds the sample of a neighbour, and keeps at most `most` rows in all.
    pub(super) fn join(&mut self, mut other: Self, most: usize) {
        while self.each < other.each {
            self.thin();
        }
        while other.each < self.each {
            other.thin();
        }
        self.rows.append(&mut other.rows);
        while self.rows.len() > most {
            self.thin();
        }
    }

    /// Returns the shares of rows and of bytes below `boundary`; one half each if nothing is known.
    pub(super) fn shares_below(&self, boundary: &[u8]) -> (f64, f64) {
        let bytes = |samples: &mut dyn Iterator<Item = &Sample>| {
            samples.fold((0.0, 0.0), |(rows, bytes), sample| (rows + 1.0, bytes + f64::from(sample.bytes)))
        };
        let all = bytes(&mut self.rows.iter());
        let below = bytes(&mut self.rows.iter().filter(|sample| sample.key.as_ref() < boundary));
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.5 };
        (share(below.0, all.0), share(below.1, all.1))
    }
}

/// Sample of the keys written to a warm split in one window.
#[derive(Debug, Clone, Default)]
pub(super) struct Watch {
    keys: Vec<Sample>,
    seen: u64,
    /// Smallest and largest key of the previous window, both included.
    before: Option<Range<Box<[u8]>>>,
}

/// Key at which a split is divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Boundary {
    pub(super) key: Box<[u8]>,
    /// Length of the first key column.
    pub(super) lead: usize,
    /// Whether the boundary separates rows of one root.
    pub(super) inside: bool,
}

/// Boundary at which to divide a split, or the reason why that does not help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Balance {
    At(Boundary),
    SingleRow,
    Moving,
    /// Too few keys are sampled, or there is no earlier window to compare with.
    Unknown,
}

impl Watch {
    #[inline]
    pub(super) fn see(&mut self, key: Key<'_>, most: usize, random: &mut SplitMix) {
        self.seen += 1;
        let sample = || Sample::new(key, 1);
        if self.keys.len() < most {
            self.keys.push(sample());
            return;
        }
        let place = random.below(self.seen) as usize;
        if let Some(kept) = self.keys.get_mut(place) {
            *kept = sample();
        }
    }

    /// Starts the next window.
    pub(super) fn turn(&mut self) {
        let least = self.keys.iter().map(|sample| &sample.key).min().cloned();
        let most = self.keys.iter().map(|sample| &sample.key).max().cloned();
        let before = least.zip(most).map(|(start, end)| Range { start, end });
        *self = Self { before, ..Self::default() };
    }

    /// Passes the range of the previous window to both parts of a split that is divided at
    /// `boundary`. A part gets `None` if that range does not extend into it.
    pub(super) fn divide(self, boundary: &[u8]) -> (Option<Self>, Option<Self>) {
        let Some(before) = self.before else { return (None, None) };
        let (below, above) = (before.start.as_ref() < boundary, before.end.as_ref() >= boundary);
        let part = |has: bool| has.then(|| Self { before: Some(before.clone()), ..Self::default() });
        (part(below), part(above))
    }

    /// Returns the boundary that divides the load of this window evenly.
    pub(super) fn balance(&self, parameters: &ModelParameters) -> Balance {
        let ModelParameters { single_row_share, moving_share, sampling, .. } = parameters;
        let Some(Range { start: least, end: most }) = &self.before else { return Balance::Unknown };
        if self.keys.len() < sampling.fewest_load_keys {
            return Balance::Unknown;
        }
        let share = |count: usize| count as f64 / self.keys.len() as f64;
        let mut keys: Vec<&Sample> = self.keys.iter().collect();
        keys.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let heaviest = keys.chunk_by(|a, b| a.key == b.key).map(<[_]>::len).max().unwrap_or(0);
        if share(heaviest) >= *single_row_share {
            return Balance::SingleRow;
        }
        let ahead = keys.iter().filter(|sample| sample.key > *most).count();
        let behind = keys.iter().filter(|sample| sample.key < *least).count();
        if share(ahead.max(behind)) >= *moving_share {
            return Balance::Moving;
        }
        middle(&keys, true, sampling.root_share).map_or(Balance::SingleRow, Balance::At)
    }
}

/// Returns the key that divides sorted samples most evenly, by rows or by bytes: the first key of a
/// root if that leaves at least `root_share` on either side, or is as even as any other key. `None`
/// if all samples have one key.
pub(super) fn middle(sorted: &[&Sample], by_rows: bool, root_share: f64) -> Option<Boundary> {
    let weight = |sample: &Sample| if by_rows { 1.0 } else { f64::from(sample.bytes.max(1)) };
    let all: f64 = sorted.iter().map(|sample| weight(sample)).sum();
    // Best candidates at a root and at any row, each with its distance from the middle.
    let mut best: [Option<(f64, Candidate<'_>)>; 2] = [None, None];
    let mut below = 0.0;
    for pair in sorted.windows(2) {
        let [before, sample] = pair else { continue };
        below += weight(before);
        let off = (below / all - 0.5).abs();
        let root = sample.key.get(..sample.root).unwrap_or_default();
        let of_root = before.key.as_ref() < root;
        let of_row = before.key < sample.key;
        let inside = sample.root < sample.key.len();
        let lead = sample.lead;
        let candidates = [
            (of_root, Candidate { key: root, lead, inside: false }),
            (of_row, Candidate { key: &sample.key, lead, inside }),
        ];
        for (slot, (possible, candidate)) in best.iter_mut().zip(candidates) {
            if possible && slot.is_none_or(|(least, _)| off < least) {
                *slot = Some((off, candidate));
            }
        }
    }
    let [at_root, at_row] = best;
    let even_enough = |off: f64| off <= 0.5 - root_share || at_row.is_none_or(|(least, _)| off <= least);
    let chosen = at_root.filter(|(off, _)| even_enough(*off)).or(at_row);
    chosen.map(|(_, Candidate { key, lead, inside })| Boundary { key: key.into(), lead, inside })
}

/// A possible boundary.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    key: &'a [u8],
    lead: usize,
    inside: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(keys: &[&str], root: usize) -> Vec<Sample> {
        keys.iter()
            .map(|key| {
                Sample::new(Key { bytes: key.as_bytes(), lead: key.len(), root: root.min(key.len()) }, 1)
            })
            .collect()
    }

    fn whole(key: &str) -> Key<'_> {
        Key { bytes: key.as_bytes(), lead: key.len(), root: key.len() }
    }

    fn middle_of(keys: &[&str], root: usize) -> Option<(String, bool)> {
        let samples = samples(keys, root);
        middle(&samples.iter().collect::<Vec<_>>(), true, 0.2)
            .map(|at| (String::from_utf8(at.key.into_vec()).unwrap(), at.inside))
    }

    #[test]
    fn the_middle_is_at_a_root_where_that_is_even_enough() {
        assert_eq!(middle_of(&["a1", "a2", "b1", "b2"], 2), Some(("b1".to_owned(), false)));
        assert_eq!(middle_of(&["a1", "a2", "b1", "b2"], 1), Some(("b".to_owned(), false)));
        // Rows of one root are separated only if they are too many.
        assert_eq!(middle_of(&["a1", "b1", "b2", "b3"], 1), Some(("b".to_owned(), false)));
        assert_eq!(
            middle_of(&["a1", "b1", "b2", "b3", "b4", "b5", "b6", "b7"], 1),
            Some(("b4".to_owned(), true))
        );
        assert_eq!(middle_of(&["a1", "a1", "a1"], 2), None);
        assert_eq!(middle_of(&[], 0), None);
    }

    #[test]
    fn a_watch_tells_a_single_row_and_a_moving_hotspot() {
        let mut random = SplitMix::new(1);
        let mut balance = |before: &[&str], now: &[&str]| {
            let mut watch = Watch::default();
            before.iter().for_each(|key| watch.see(whole(key), 128, &mut random));
            watch.turn();
            // Repeat each key, so that there are enough samples.
            (0..4).for_each(|_| now.iter().for_each(|key| watch.see(whole(key), 128, &mut random)));
            watch.balance(&ModelParameters::default())
        };
        let at =
            |key: &str| Balance::At(Boundary { key: key.as_bytes().into(), lead: key.len(), inside: false });
        assert_eq!(balance(&["a", "b"], &["c", "d"]), Balance::Moving);
        assert_eq!(balance(&["c", "d"], &["a", "b"]), Balance::Moving);
        assert_eq!(balance(&["a", "z"], &["m", "m", "m"]), Balance::SingleRow);
        assert_eq!(balance(&["a", "z"], &["b", "c", "d", "e"]), at("d"));
        // One key with 60 % of the load can be separated from the rest.
        assert_eq!(balance(&["a", "z"], &["m", "m", "m", "b", "c"]), at("m"));
        assert_eq!(balance(&[], &["a", "b"]), Balance::Unknown);
    }

    #[test]
    fn samples_stand_for_equally_many_rows() {
        let mut random = SplitMix::new(3);
        let mut samples = Samples::default();
        for row in 0..100_000_u32 {
            if samples.wants() {
                let key = row.to_be_bytes();
                samples.add(Sample::new(Key { bytes: &key, lead: 4, root: 4 }, 1), 512, &mut random);
            }
        }
        assert!((256..=512).contains(&samples.rows.len()));
        let (rows, _) = samples.shares_below(&25_000_u32.to_be_bytes());
        assert!((rows - 0.25).abs() < 0.06, "{rows}");
        let (below, mut above) = samples.divide(&50_000_u32.to_be_bytes());
        assert!(below.rows.iter().all(|sample| sample.key.as_ref() < 50_000_u32.to_be_bytes().as_slice()));
        let parts = below.rows.len() + above.rows.len();
        above.join(below, 512);
        assert_eq!(above.rows.len(), parts);
    }
}
