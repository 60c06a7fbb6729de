//! Intervals for figures that are known from a sample of the rows.
//!
//! Every row is drawn by a chance of its own, whatever its key and its place. Given how many were drawn, the sample is therefore a
//! simple random one without replacement, and the rows that it has of a partition, or of a key, follow a hypergeometric law in
//! which only the rows of the export are unknown: N of S in the export, x of n in the sample. The keys decide which N there are,
//! but no interval supposes anything about them.
//!
//! - The fullest partition, and with it max/mean and the idle fraction: exact limits for a hypergeometric count (Clopper and Pearson,
//!   "The Use of Confidence or Fiducial Limits", 1934). The fullest of a sample is likely one that got more rows than its share,
//!   so the lower limit holds for all partitions together: of those with N rows there are at most S/N (Bonferroni). The
//!   upper limit needs no such correction: the fullest partition of the export is no fuller in the sample than the sample's fullest.
//! - The CV and the effective partitions follow from D = sum of (N/S - 1/P)^2. The sample's own D is too large by what the draw adds.
//!   The interval has every D under which the measured sum of squares is neither among the lowest 2.5 % nor among the highest;
//!   its mean and variance are those of a quadratic form of counts, its law a scaled noncentral chi-square (Pearson's statistic
//!   of unequal cells; Sankaran, "Approximations to the non-central chi-square distribution", 1963).

use serde::Serialize;

use evenkeel_model::wire::wire;

/// What an interval may miss on each side.
const EACH_SIDE: f64 = 0.025;
/// The same in standard deviations of a normal law.
const DEVIATIONS: f64 = 1.959_964;
/// Deviations for a sum of squares: those of 1.5 % on each side. Its variance is itself estimated, too low if the sample has too few
/// rows of heavy partitions.
const DEVIATIONS_OF_SQUARES: f64 = 2.170_09;
/// In samples of fewer rows that estimate is too coarse for an interval of the CV.
const FEWEST_FOR_CV: u64 = 200;
/// Variance of repeated rows over their mean, at most: that of the rows beyond the first where a key's rows follow a Poisson law.
const SCATTER_OF_REPEATS: f64 = 1.4;

/// An interval that holds the figure of the whole export with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

wire!(Interval { lower, upper });

/// How many rows of how many are in a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drawn {
    /// The chance that each row had.
    pub(crate) chance: f64,
    /// Rows of the export.
    pub(crate) of: u64,
    /// Rows of the sample.
    pub(crate) rows: u64,
}

impl Drawn {
    /// The rows in the export of a key, of which the sample has `found` to `most`, as a share of all rows. It holds for all keys
    /// together, since the keys that are shown are those which the sample has most of.
    pub(crate) fn share_of_key(self, found: u64, most: u64) -> Interval {
        let all = self.of.max(1) as f64;
        Interval { lower: self.fewest(found, self.of) as f64 / all, upper: self.most(most) as f64 / all }
    }

    /// The rows of the export whose key an earlier row has, where the sample has `repeated` such rows and `distinct` keys. Of a key
    /// with two rows both are drawn with a chance of f^2, of one with very many a share of f.
    pub(crate) fn repeated_rows(self, repeated: u64, distinct: u64) -> Interval {
        let half = DEVIATIONS / 2.0 * SCATTER_OF_REPEATS.sqrt();
        let lower = ((repeated as f64).sqrt() - half).max(0.0).powi(2) / self.chance;
        let upper = (((repeated + 1) as f64).sqrt() + half).powi(2) / (self.chance * self.chance);
        // The rows of the sample are rows of the export too.
        let (least, most) = (repeated as f64, self.of.saturating_sub(distinct) as f64);
        Interval { lower: lower.clamp(least, most.max(least)), upper: upper.clamp(least, most.max(least)) }
    }

    /// The fewest rows that the fullest of so many partitions, or any key, can have in the export.
    fn fewest(self, found: u64, partitions: u64) -> u64 {
        let likely = |rows: u64| {
            let alike = (partitions as f64).min(self.of as f64 / rows.max(1) as f64);
            alike * self.at_least(found, rows) >= EACH_SIDE
        };
        let (mut low, mut high) = (found, self.of - (self.rows - found).min(self.of));
        while low < high {
            let middle = low.midpoint(high);
            if likely(middle) { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// The most rows that a partition or a key of which the sample has `found` rows can have in the export.
    fn most(self, found: u64) -> u64 {
        let (mut low, mut high) = (found, self.of - (self.rows - found.min(self.rows)).min(self.of));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.at_most(found, middle) >= EACH_SIDE { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// The chance that the sample has at least `found` of `rows` rows.
    fn at_least(self, found: u64, rows: u64) -> f64 {
        let mean = self.rows as f64 * (rows as f64 / self.of.max(1) as f64);
        match found.checked_sub(1) {
            Some(below) if (found as f64) <= mean => 1.0 - self.tail(below, rows, false),
            Some(_) => self.tail(found, rows, true),
            None => 1.0,
        }
    }

    /// The chance that the sample has at most `found` of `rows` rows.
    fn at_most(self, found: u64, rows: u64) -> f64 {
        let mean = self.rows as f64 * (rows as f64 / self.of.max(1) as f64);
        if (found as f64) >= mean {
            1.0 - self.tail(found + 1, rows, true)
        } else {
            self.tail(found, rows, false)
        }
    }

    /// The sum of the hypergeometric chances from `found` on, up or down, away from the mean.
    fn tail(self, found: u64, rows: u64, up: bool) -> f64 {
        let (drawn, others) = (self.rows, self.of.saturating_sub(rows));
        let (least, most) = (drawn.saturating_sub(others), drawn.min(rows));
        if found < least || found > most {
            return 0.0;
        }
        let mut chance =
            (ln_choose(rows, found) + ln_choose(others, drawn - found) - ln_choose(self.of, drawn)).exp();
        let (mut sum, mut at) = (0.0, found);
        loop {
            sum += chance;
            if at == if up { most } else { least } || chance < sum * 1e-12 {
                return sum.min(1.0);
            }
            // Rows inside and outside that are still to be drawn, before and behind the step.
            let step = if up { at } else { at - 1 };
            let inside = (rows - step) as f64 * (drawn - step) as f64;
            let outside = (step + 1) as f64 * ((others + step + 1) - drawn) as f64;
            (chance, at) = if up {
                (chance * (inside / outside), at + 1)
            } else {
                (chance * (outside / inside), at - 1)
            };
        }
    }
}

/// ln(n!), to about 1e-10 of small and 1e-16 of itself of large numbers.
fn ln_factorial(n: u64) -> f64 {
    if n < 16 {
        return (2..=n).map(|factor| (factor as f64).ln()).sum();
    }
    let n = n as f64;
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3)) + 1.0 / (1260.0 * n.powi(5));
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + series
}

fn ln_choose(of: u64, some: u64) -> f64 {
    ln_factorial(of) - ln_factorial(some) - ln_factorial(of.saturating_sub(some))
}

/// Intervals of the skew figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Intervals {
    /// Of max / mean.
    pub max_over_mean: Interval,
    /// Of the CV; none where the sample has too few rows.
    pub cv: Option<Interval>,
    /// Of the idle fraction.
    pub idle_fraction: Interval,
    /// Of the effective partitions; none where the sample has too few rows.
    pub effective_partitions: Option<Interval>,
    /// Of the share of the fullest partition.
    pub share_of_fullest: Interval,
    /// Why there are not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_interval: Option<String>,
}

impl Intervals {
    /// The intervals for an export of `of` rows, of which a sample has these rows per partition.
    pub(crate) fn new(rows: &[u64], drawn: Drawn) -> Self {
        let partitions = rows.len().max(1) as f64;
        let share_of_fullest = share_of_fullest(rows, drawn);
        let over_mean = |share: f64| share * partitions;
        let idle = |share: f64| 1.0 - 1.0 / over_mean(share);
        let Interval { lower, upper } = share_of_fullest;
        let squares =
            (drawn.rows >= FEWEST_FOR_CV || drawn.rows >= drawn.of).then(|| unevenness(rows, drawn));
        Self {
            max_over_mean: Interval { lower: over_mean(lower), upper: over_mean(upper) },
            cv: squares.map(|Interval { lower, upper }| Interval {
                lower: (lower * partitions).sqrt(),
                upper: (upper * partitions).sqrt(),
            }),
            idle_fraction: Interval { lower: idle(lower), upper: idle(upper) },
            effective_partitions: squares.map(|Interval { lower, upper }| Interval {
                lower: 1.0 / (1.0 / partitions + upper),
                upper: 1.0 / (1.0 / partitions + lower),
            }),
            share_of_fullest,
            no_interval: squares.is_none().then(|| {
                format!(
                    "no interval of the CV and of the effective partitions: the sample has {} rows, and fewer than {FEWEST_FOR_CV} \
                     say nothing about these",
                    drawn.rows
                )
            }),
        }
    }
}

/// The share of all rows that the fullest partition of the export has.
fn share_of_fullest(rows: &[u64], drawn: Drawn) -> Interval {
    let partitions = rows.len().max(1) as u64;
    let found = rows.iter().copied().max().unwrap_or(0);
    let all = drawn.of.max(1) as f64;
    // One of them has at least the mean.
    let least = 1.0 / partitions as f64;
    let lower = (drawn.fewest(found, partitions) as f64 / all).max(least);
    Interval { lower, upper: (drawn.most(found) as f64 / all).clamp(lower, 1.0) }
}

/// The sum of (share of a partition - 1/P)^2 in the export.
fn unevenness(rows: &[u64], drawn: Drawn) -> Interval {
    let partitions = rows.len().max(1) as f64;
    let n = drawn.rows.max(1) as f64;
    let even = n / partitions;
    let deviations = || rows.iter().map(|rows| *rows as f64 - even);
    let measured: f64 = deviations().map(|deviation| deviation * deviation).sum();
    let most = 1.0 - 1.0 / partitions;
    if drawn.rows >= drawn.of || rows.len() < 2 {
        let exact = measured / (n * n);
        return Interval { lower: exact, upper: exact };
    }
    let left = (drawn.of - drawn.rows) as f64 / (drawn.of - 1).max(1) as f64;
    // Sums of the squares and cubes of the shares in the export, without bias: by pairs and triples of sampled rows.
    let counts = || rows.iter().map(|rows| *rows as f64);
    let second = counts().map(|x| x * (x - 1.0)).sum::<f64>() / (n * (n - 1.0));
    let third = counts().map(|x| x * (x - 1.0) * (x - 2.0)).sum::<f64>() / (n * (n - 1.0) * (n - 2.0));
    let squares_by_chance = left * (2.0 * (partitions - 1.0)).sqrt() / (n * partitions);
    let sum = SumOfSquares {
        partitions,
        n,
        left,
        squares: (second - 1.0 / partitions).max(squares_by_chance),
        cubes: third - 3.0 * second / partitions + 2.0 / (partitions * partitions),
    };
    // Where the deviation of the measured sum falls through a limit.
    let crossing = |measured: f64, limit: f64| {
        if sum.standing(measured, 0.0) <= limit {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, most);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if sum.standing(measured, middle) > limit { low = middle } else { high = middle }
        }
        f64::midpoint(low, high)
    };
    // A sample that is more even than chance has it says no more than one that is as even.
    let by_chance = sum.moments(0.0).0;
    let lower = crossing(measured, DEVIATIONS_OF_SQUARES);
    Interval { lower, upper: crossing(measured.max(by_chance), -DEVIATIONS_OF_SQUARES).max(lower) }
}

/// The sum of squares of the counts' deviations from their mean, as a random number.
struct SumOfSquares {
    partitions: f64,
    n: f64,
    /// Share of the export that was not drawn: how much less than with replacement counts scatter.
    left: f64,
    /// Sums of the squares and cubes of the partitions' deviations, in shares, as the sample lets expect.
    squares: f64,
    cubes: f64,
}

impl SumOfSquares {
    /// Its mean and variance if the sum of squares in the export is `squares`, with deviations in proportion to those of the sample:
    /// those of a multinomial draw (Simpson, "Measurement of Diversity", 1949), which scatters less the more of the export is drawn.
    fn moments(&self, squares: f64) -> (f64, f64) {
        let Self { partitions, n, left, .. } = *self;
        let scale = if self.squares > 0.0 { (squares / self.squares).sqrt() } else { 0.0 };
        let cubes = self.cubes * scale.powi(3);
        // Drawn apart further than they are, shares may not all be above 0.
        let (within, beyond) = (scale.min(1.0), scale.max(1.0));
        let (squares_within, cubes_within) = (self.squares * within.powi(2), self.cubes * within.powi(3));
        let even = 1.0 / partitions;
        let second = even + squares;
        let mean = n * n * squares + left * n * (1.0 - second);
        let spread = |squares: f64, cubes: f64| (even * squares + cubes - squares * squares).max(0.0);
        let of_deviations =
            (spread(squares_within, cubes_within) * beyond * beyond).max(spread(squares, cubes));
        let of_noise = (second - second * second).max(0.0);
        let variance = 4.0 * n * (n - 1.0) * (n - 2.0).max(0.0) * left * of_deviations
            + 2.0 * left * left * n * (n - 1.0) * of_noise;
        (mean, variance.max(f64::MIN_POSITIVE))
    }

    /// The standard deviations, of a normal law, that `measured` lies above the middle.
    fn standing(&self, measured: f64, squares: f64) -> f64 {
        let (mean, variance) = self.moments(squares);
        let freedom = self.partitions - 1.0;
        // A noncentral chi-square times a scale that has this mean and variance; where there is none, a central one.
        let rest = mean * mean - freedom * variance / 2.0;
        if rest >= 0.0 {
            let scale = variance / (2.0 * (mean + rest.sqrt()));
            chi_square_standing(measured / scale, freedom, (mean / scale - freedom).max(0.0))
        } else {
            let scale = variance / (2.0 * mean.max(f64::MIN_POSITIVE));
            chi_square_standing(measured / scale, 2.0 * mean * mean / variance, 0.0)
        }
    }
}

/// Sankaran's approximation.
fn chi_square_standing(value: f64, freedom: f64, noncentral: f64) -> f64 {
    let (k, l) = (freedom, noncentral);
    let h = 1.0 - 2.0 / 3.0 * (k + l) * (k + 3.0 * l) / (k + 2.0 * l).powi(2);
    let p = (k + 2.0 * l) / (k + l).powi(2);
    let m = (h - 1.0) * (1.0 - 3.0 * h);
    let middle = 1.0 + h * p * (h - 1.0 - 0.5 * (2.0 - h) * m * p);
    ((value.max(0.0) / (k + l)).powf(h) - middle) / (h * (2.0 * p).sqrt() * (1.0 + 0.5 * m * p))
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Binomial, Distribution};
    use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

    use super::*;
    use evenkeel_stats::sketch::DistinctKeys;
    use evenkeel_stats::skew::SkewFigures;

    const PARTITIONS: usize = 64;
    const SAMPLES: u32 = 1000;
    /// Of 1,000 samples, 95 % hold to within three standard deviations.
    const FEWEST_HELD: f64 = 0.93;

    /// An export: how many keys have how many rows each, and the rows per partition.
    struct Shape {
        name: &'static str,
        keys: Vec<(u64, u64)>,
        partitions: Vec<u64>,
    }

    impl Shape {
        /// Keys with these rows, placed by chance; the partitions stay the same however the export is drawn from.
        fn new(name: &'static str, mut rows: Vec<u64>) -> Self {
            let mut random = ChaCha8Rng::seed_from_u64(rows.len() as u64);
            let mut partitions = vec![0; PARTITIONS];
            rows.iter().for_each(|rows| partitions[random.random_range(0..PARTITIONS)] += rows);
            rows.sort_unstable();
            let keys = rows.chunk_by(|a, b| a == b).map(|alike| (alike[0], alike.len() as u64)).collect();
            Self { name, keys, partitions }
        }

        fn rows(&self) -> u64 {
            self.partitions.iter().sum()
        }
    }

    fn shapes() -> Vec<Shape> {
        let rows = 200_000;
        let zipf = (1..=20_000u64).map(|rank| rows / (10 * rank) + 1).collect();
        // Hours of two days by kind of event: a busy afternoon, and kinds from frequent to rare.
        let busy = |hour: u64| 200 + 4000 / (1 + (hour % 24).abs_diff(14).pow(2));
        let composite = (0..48).flat_map(|hour| [8u64, 5, 3, 2, 1, 1].map(|kind| busy(hour) * kind / 4));
        let mut nearly_unique = vec![1; 196_000];
        nearly_unique.extend([2; 2_000]);
        vec![
            Shape::new("nearly unique", nearly_unique),
            Shape::new("users", vec![2; 100_000]),
            Shape::new("zipf users", zipf),
            Shape::new("16 keys", vec![rows / 16; 16]),
            Shape::new("49 keys", vec![rows / 49; 49]),
            Shape::new("hour and kind", composite.collect()),
        ]
    }

    fn binomial(rows: u64, chance: f64, random: &mut ChaCha8Rng) -> u64 {
        Binomial::new(rows, chance).unwrap().sample(random)
    }

    /// The sampled rows of keys, each with the rows that it has in the export: of keys with equal rows, how many have none, one, two
    /// and so on, drawn one number after the other.
    fn draw_keys(shape: &Shape, chance: f64, random: &mut ChaCha8Rng) -> Vec<(u64, u64, u64)> {
        let mut drawn = Vec::new();
        for (rows, keys) in &shape.keys {
            if *keys < 20 {
                drawn.extend((0..*keys).map(|_| (binomial(*rows, chance, random), *rows, 1)));
                continue;
            }
            let (mut left, mut found, mut beyond) = (*keys, 0, 1.0f64);
            let mut of_found = (1.0 - chance).powf(*rows as f64);
            while left > 0 && found <= *rows {
                let share = if found == *rows { 1.0 } else { (of_found / beyond).clamp(0.0, 1.0) };
                let alike = binomial(left, share, random);
                drawn.push((found, *rows, alike));
                left -= alike;
                beyond -= of_found;
                of_found *= (*rows - found) as f64 / (found + 1) as f64 * chance / (1.0 - chance);
                found += 1;
            }
        }
        drawn.retain(|(found, _, keys)| *found > 0 && *keys > 0);
        drawn
    }

    /// How often an interval held its figure, and how wide it was on average.
    #[derive(Default)]
    struct Held {
        held: u32,
        of: u32,
        width: f64,
    }

    impl Held {
        fn add(&mut self, interval: Interval, truth: f64) {
            let slack = 1e-9 * truth.abs();
            self.held += u32::from(interval.lower <= truth + slack && truth - slack <= interval.upper);
            self.of += 1;
            self.width += interval.upper - interval.lower;
        }

        fn share(&self) -> f64 {
            f64::from(self.held) / f64::from(self.of)
        }
    }

    #[test]
    fn of_1000_samples_of_every_shape_of_key_95_of_100_hold_each_figure() {
        let shapes = shapes();
        let cases: Vec<(&Shape, f64)> =
            shapes.iter().flat_map(|shape| [0.002, 0.02, 0.3].map(|chance| (shape, chance))).collect();
        let lines: Vec<(String, Vec<String>)> = cases
            .par_iter()
            .map(|(shape, chance)| {
                let mut random = ChaCha8Rng::seed_from_u64(11);
                let truth = SkewFigures::of(&shape.partitions);
                let names = ["max/mean", "idle", "share of fullest", "CV", "effective"];
                let mut held: [Held; 5] = Default::default();
                for _ in 0..SAMPLES {
                    let draw = |rows: &u64| binomial(*rows, *chance, &mut random);
                    let sample: Vec<u64> = shape.partitions.iter().map(draw).collect();
                    let drawn = Drawn { chance: *chance, of: shape.rows(), rows: sample.iter().sum() };
                    let found = Intervals::new(&sample, drawn);
                    held[0].add(found.max_over_mean, truth.max_over_mean);
                    held[1].add(found.idle_fraction, truth.idle_fraction);
                    held[2].add(found.share_of_fullest, truth.share_of_fullest);
                    held[3].add(found.cv.unwrap(), truth.cv);
                    held[4].add(found.effective_partitions.unwrap(), truth.effective_partitions);
                }
                let shares: Vec<String> = names
                    .iter()
                    .zip(&held)
                    .map(|(name, held)| {
                        format!("{name} {:.3}, width {:.3}", held.share(), held.width / f64::from(held.of))
                    })
                    .collect();
                let line = format!("{} at {chance}: {}", shape.name, shares.join("; "));
                let mut faults: Vec<String> = names
                    .iter()
                    .zip(&held)
                    .filter(|(_, held)| held.share() < FEWEST_HELD)
                    .map(|(name, held)| format!("{} at {chance}: {name} {}", shape.name, held.share()))
                    .collect();
                // In units of what a draw of as many rows moves a figure by.
                let rows = shape.rows() as f64 * chance;
                let noise = (PARTITIONS as f64 / rows).sqrt();
                let wide =
                    [(held[0].width, 7.0 * noise * truth.max_over_mean.sqrt()), (held[3].width, 1.5 * noise)];
                for (width, most) in wide {
                    if width / f64::from(SAMPLES) > most {
                        faults.push(format!("{} at {chance}: width {width}", shape.name));
                    }
                }
                (line, faults)
            })
            .collect();
        lines.iter().for_each(|(line, _)| println!("{line}"));
        let faults: Vec<&String> = lines.iter().flat_map(|(_, faults)| faults).collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }

    #[test]
    fn of_1000_samples_95_of_100_hold_the_heaviest_keys_their_number_and_those_that_repeat() {
        for shape in shapes() {
            for chance in [0.002, 0.02, 0.3] {
                let mut random = ChaCha8Rng::seed_from_u64(12);
                let rows = shape.rows();
                let keys: u64 = shape.keys.iter().map(|(_, keys)| keys).sum();
                let (mut heaviest, mut distinct, mut repeated) =
                    (Held::default(), Held::default(), Held::default());
                for _ in 0..SAMPLES {
                    let mut sample = draw_keys(&shape, chance, &mut random);
                    sample.sort_unstable_by(|a, b| b.cmp(a));
                    let sum = |of: fn(&(u64, u64, u64)) -> u64| sample.iter().map(of).sum::<u64>();
                    let found = sum(|(_, _, keys)| *keys);
                    let drawn = Drawn { chance, of: rows, rows: sum(|(found, _, keys)| found * keys) };
                    let once = sample.iter().filter(|(found, ..)| *found == 1).map(|(_, _, keys)| keys).sum();
                    let shown = sample
                        .iter()
                        .flat_map(|(found, rows, keys)| std::iter::repeat_n((*found, *rows), *keys as usize));
                    for (found, truth) in shown.take(3) {
                        heaviest.add(drawn.share_of_key(found, found), truth as f64 / rows as f64);
                    }
                    let exact = DistinctKeys { estimate: found, exact: true, lower: found, upper: found };
                    let whole = exact.of_whole(Some(once), chance, rows - drawn.rows + found);
                    assert!(whole.lower <= whole.estimate && whole.estimate <= whole.upper, "{whole:?}");
                    let bounds = Interval { lower: whole.lower as f64, upper: whole.upper as f64 };
                    distinct.add(bounds, keys as f64);
                    repeated.add(drawn.repeated_rows(drawn.rows - found, found), (rows - keys) as f64);
                }
                let held = [heaviest.share(), distinct.share(), repeated.share()];
                println!("{} at {chance}: heaviest, distinct, repeated {held:?}", shape.name);
                assert!(held.iter().all(|held| *held >= FEWEST_HELD), "{} at {chance}: {held:?}", shape.name);
            }
        }
    }

    #[test]
    fn limits_of_a_count_are_those_of_the_hypergeometric_law() {
        // 20 of 100 rows are drawn, 3 of them of one partition. By binomials over 100!/(20! 80!), in another order of factors.
        let drawn = Drawn { chance: 0.2, of: 100, rows: 20 };
        let choose = |n: u64, k: u64| (1..=k).map(|i| (n - k + i) as f64 / i as f64).product::<f64>();
        let at =
            |rows: u64, found: u64| choose(rows, found) * choose(100 - rows, 20 - found) / choose(100, 20);
        for rows in 20..80 {
            let most: f64 = (0..=3).map(|found| at(rows, found)).sum();
            let least: f64 = (3..=20u64.min(rows)).map(|found| at(rows, found)).sum();
            assert!((drawn.at_most(3, rows) - most).abs() < 1e-9, "{rows}");
            assert!((drawn.at_least(3, rows) - least).abs() < 1e-9, "{rows}");
        }
        let most = drawn.most(3);
        assert!(drawn.at_most(3, most) >= 0.025 && drawn.at_most(3, most + 1) < 0.025, "{most}");
        // All rows were drawn: nothing is unknown.
        let all = Drawn { chance: 1.0, of: 100, rows: 100 };
        assert_eq!((all.fewest(30, 64), all.most(30)), (30, 30));
        let all = Drawn { of: 4_000_000_000, rows: 4_000_000_000, chance: 1.0 };
        assert_eq!((all.fewest(1_000_000_000, 64), all.most(1_000_000_000)), (1_000_000_000, 1_000_000_000));
        // None were, of a very large export.
        let none = Drawn { of: u64::MAX / 4, rows: 0, chance: 1e-9 };
        assert_eq!(none.fewest(0, 64), 0);
        assert_eq!(none.most(0), u64::MAX / 4);
    }

    #[test]
    fn the_limits_of_a_whole_export_are_its_figures_and_of_few_rows_there_is_no_cv() {
        let rows = [5u64, 9, 0, 2];
        let all = Drawn { chance: 1.0, of: 16, rows: 16 };
        let (found, truth) = (Intervals::new(&rows, all), SkewFigures::of(&rows));
        let same = |interval: Interval, truth: f64| {
            assert!(
                (interval.lower - truth).abs() < 1e-9 && (interval.upper - truth).abs() < 1e-9,
                "{interval:?}"
            );
        };
        same(found.cv.unwrap(), truth.cv);
        same(found.effective_partitions.unwrap(), truth.effective_partitions);
        same(found.max_over_mean, truth.max_over_mean);
        same(found.idle_fraction, truth.idle_fraction);
        let few = Intervals::new(&rows, Drawn { chance: 0.01, of: 1600, rows: 16 });
        assert!(few.cv.is_none() && few.effective_partitions.is_none());
        assert!(few.no_interval.is_some_and(|reason| reason.contains("16 rows")));
        let one = Intervals::new(&[500], Drawn { chance: 0.1, of: 5000, rows: 500 });
        same(one.cv.unwrap(), 0.0);
        same(one.max_over_mean, 1.0);
        same(one.effective_partitions.unwrap(), 1.0);
    }
}
