//! Confidence intervals for figures that are estimated from a sample of the rows.
//!
//! Every row is drawn independently with the same probability, whatever its key and position. Given
//! the sample size, the sample is therefore a simple random one without replacement, and the
//! sampled rows of a partition or key follow a hypergeometric distribution whose only unknown is
//! the number of rows in the export: N of S in the export, x of n in the sample. The keys determine
//! N, but no interval assumes anything about them.
//!
//! - The fullest partition, and with it max/mean and the idle fraction: exact limits for a
//!   hypergeometric count (Clopper and Pearson, "The Use of Confidence or Fiducial Limits", 1934).
//!   The fullest partition of a sample probably got more rows than its share, so the lower limit
//!   holds for all partitions together: at most S/N of them have N rows (Bonferroni). The upper
//!   limit needs no such correction: in the sample, the fullest partition of the export is no
//!   fuller than the sample's fullest.
//! - The CV and the effective partitions follow from D = sum of (N/S - 1/P)^2. The sample's own D
//!   is too large by the variance that the draw adds. The interval contains every D under which the
//!   measured sum of squares is neither among the lowest 2.5 % nor among the highest. The mean and
//!   variance of that sum are those of a quadratic form of counts, and its distribution is a scaled
//!   noncentral chi-square (Pearson's statistic of unequal cells; Sankaran, "Approximations to the
//!   non-central chi-square distribution", 1963).

use serde::Serialize;

use evenkeel_model::wire::wire;

/// Probability that an interval misses the figure on each side.
const EACH_SIDE: f64 = 0.025;
/// Standard deviations of a normal distribution that leave [`EACH_SIDE`] in each tail.
const DEVIATIONS: f64 = 1.959_964;
/// Standard deviations for a sum of squares: 1.5 % on each side. The variance is itself an
/// estimate, which is too low if the sample has too few rows of heavy partitions.
const DEVIATIONS_OF_SQUARES: f64 = 2.170_09;
/// Minimum number of sampled rows for an interval of the CV; in smaller samples, that estimate is
/// too coarse.
const MIN_FOR_CV: u64 = 200;
/// Upper limit of the variance of repeated rows over their mean: the value for the rows beyond the
/// first if the rows of a key follow a Poisson distribution.
const SCATTER_OF_REPEATS: f64 = 1.4;

/// Interval that contains the figure of the whole export with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end, in the unit of the figure.
    pub lower: f64,
    /// Upper end, in the unit of the figure.
    pub upper: f64,
}

wire!(Interval { lower, upper });

/// Size of a sample and of its export.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampleSize {
    /// Probability that a row is drawn.
    pub(crate) chance: f64,
    /// Number of rows of the export.
    pub(crate) population: u64,
    /// Number of rows of the sample.
    pub(crate) rows: u64,
}

impl SampleSize {
    /// Returns the interval of a key's share of all rows in the export, if the sample has `sampled`
    /// to `most` of its rows. It holds for all keys together, because the reported keys are those
    /// with the most sampled rows.
    pub(crate) fn share_of_key(self, sampled: u64, most: u64) -> Interval {
        let all = self.population.max(1) as f64;
        Interval {
            lower: self.fewest(sampled, self.population) as f64 / all,
            upper: self.most(most) as f64 / all,
        }
    }

    /// Returns the interval of the number of rows in the export that repeat the key of an earlier
    /// row, if the sample has `repeated` such rows and `distinct` keys. If a key has two rows, both
    /// are drawn with probability f^2; if it has very many, a share of f is drawn.
    pub(crate) fn repeated_rows(self, repeated: u64, distinct: u64) -> Interval {
        let half = DEVIATIONS / 2.0 * SCATTER_OF_REPEATS.sqrt();
        let lower = ((repeated as f64).sqrt() - half).max(0.0).powi(2) / self.chance;
        let upper = (((repeated + 1) as f64).sqrt() + half).powi(2) / (self.chance * self.chance);
        // The rows of the sample are rows of the export too.
        let (least, most) = (repeated as f64, self.population.saturating_sub(distinct) as f64);
        Interval { lower: lower.clamp(least, most.max(least)), upper: upper.clamp(least, most.max(least)) }
    }

    /// Returns the fewest rows that the fullest of `partitions` partitions, or any key, can have in
    /// the export.
    fn fewest(self, sampled: u64, partitions: u64) -> u64 {
        let likely = |rows: u64| {
            let alike = (partitions as f64).min(self.population as f64 / rows.max(1) as f64);
            alike * self.at_least(sampled, rows) >= EACH_SIDE
        };
        let (mut low, mut high) = (sampled, self.population - (self.rows - sampled).min(self.population));
        while low < high {
            let middle = low.midpoint(high);
            if likely(middle) { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Returns the most rows that a partition or key can have in the export, if the sample has
    /// `sampled` of them.
    fn most(self, sampled: u64) -> u64 {
        let (mut low, mut high) =
            (sampled, self.population - (self.rows - sampled.min(self.rows)).min(self.population));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.at_most(sampled, middle) >= EACH_SIDE { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// Returns the probability that the sample has at least `sampled` of `rows` rows.
    fn at_least(self, sampled: u64, rows: u64) -> f64 {
        let mean = self.rows as f64 * (rows as f64 / self.population.max(1) as f64);
        match sampled.checked_sub(1) {
            Some(below) if (sampled as f64) <= mean => 1.0 - self.tail(below, rows, false),
            Some(_) => self.tail(sampled, rows, true),
            None => 1.0,
        }
    }

    /// Returns the probability that the sample has at most `sampled` of `rows` rows.
    fn at_most(self, sampled: u64, rows: u64) -> f64 {
        let mean = self.rows as f64 * (rows as f64 / self.population.max(1) as f64);
        if (sampled as f64) >= mean {
            1.0 - self.tail(sampled + 1, rows, true)
        } else {
            self.tail(sampled, rows, false)
        }
    }

    /// Sums the hypergeometric probabilities from `sampled` on, up or down, away from the mean.
    fn tail(self, sampled: u64, rows: u64, up: bool) -> f64 {
        let (drawn, others) = (self.rows, self.population.saturating_sub(rows));
        let (least, most) = (drawn.saturating_sub(others), drawn.min(rows));
        if sampled < least || sampled > most {
            return 0.0;
        }
        let mut chance = (ln_choose(rows, sampled) + ln_choose(others, drawn - sampled)
            - ln_choose(self.population, drawn))
        .exp();
        let (mut sum, mut at) = (0.0, sampled);
        loop {
            sum += chance;
            if at == if up { most } else { least } || chance < sum * 1e-12 {
                return sum.min(1.0);
            }
            // Rows inside and outside that are still to be drawn, before and after the step.
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

/// Returns ln(n!), to about 1e-10 for small n and to a relative 1e-16 for large n.
fn ln_factorial(n: u64) -> f64 {
    if n < 16 {
        return (2..=n).map(|factor| (factor as f64).ln()).sum();
    }
    let n = n as f64;
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3)) + 1.0 / (1260.0 * n.powi(5));
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + series
}

fn ln_choose(n: u64, k: u64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n.saturating_sub(k))
}

/// Intervals of the skew figures of the whole export, from a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Intervals {
    /// Interval of the rows of the fullest partition over the mean.
    pub max_over_mean: Interval,
    /// Interval of the CV; `None` if the sample has too few rows.
    pub cv: Option<Interval>,
    /// Interval of the idle fraction.
    pub idle_fraction: Interval,
    /// Interval of the effective partitions; `None` if the sample has too few rows.
    pub effective_partitions: Option<Interval>,
    /// Interval of the share of the fullest partition.
    pub share_of_fullest: Interval,
    /// Reason why some intervals are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_interval: Option<String>,
}

impl Intervals {
    /// Computes the intervals from the sampled rows of each partition.
    pub(crate) fn new(rows: &[u64], drawn: SampleSize) -> Self {
        let partitions = rows.len().max(1) as f64;
        let share_of_fullest = share_of_fullest(rows, drawn);
        let over_mean = |share: f64| share * partitions;
        let idle = |share: f64| 1.0 - 1.0 / over_mean(share);
        let Interval { lower, upper } = share_of_fullest;
        let squares =
            (drawn.rows >= MIN_FOR_CV || drawn.rows >= drawn.population).then(|| unevenness(rows, drawn));
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
                    "no interval of the CV and of the effective partitions: the sample has {} rows, and fewer than {MIN_FOR_CV} \
                     are not enough for these",
                    drawn.rows
                )
            }),
        }
    }
}

/// Returns the interval of the fullest partition's share of all rows in the export.
fn share_of_fullest(rows: &[u64], drawn: SampleSize) -> Interval {
    let partitions = rows.len().max(1) as u64;
    let fullest = rows.iter().copied().max().unwrap_or(0);
    let all = drawn.population.max(1) as f64;
    // The fullest partition has at least the mean.
    let least = 1.0 / partitions as f64;
    let lower = (drawn.fewest(fullest, partitions) as f64 / all).max(least);
    Interval { lower, upper: (drawn.most(fullest) as f64 / all).clamp(lower, 1.0) }
}

/// Returns the interval of the sum of (share of a partition - 1/P)^2 in the export.
fn unevenness(rows: &[u64], drawn: SampleSize) -> Interval {
    let partitions = rows.len().max(1) as f64;
    let n = drawn.rows.max(1) as f64;
    let even = n / partitions;
    let deviations = || rows.iter().map(|rows| *rows as f64 - even);
    let measured: f64 = deviations().map(|deviation| deviation * deviation).sum();
    let most = 1.0 - 1.0 / partitions;
    if drawn.rows >= drawn.population || rows.len() < 2 {
        let exact = measured / (n * n);
        return Interval { lower: exact, upper: exact };
    }
    let left = (drawn.population - drawn.rows) as f64 / (drawn.population - 1).max(1) as f64;
    // Unbiased estimates of the sums of squares and cubes of the shares in the export, from pairs
    // and triples of sampled rows.
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
    // Finds the unevenness at which the deviation of the measured sum crosses a limit.
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
    // A sample that is more even than by chance carries no more information than one exactly as
    // even as chance.
    let by_chance = sum.moments(0.0).0;
    let lower = crossing(measured, DEVIATIONS_OF_SQUARES);
    Interval { lower, upper: crossing(measured.max(by_chance), -DEVIATIONS_OF_SQUARES).max(lower) }
}

/// Sum of squares of the counts' deviations from their mean, as a random variable.
struct SumOfSquares {
    partitions: f64,
    n: f64,
    /// Share of the export that was not drawn: the factor by which counts vary less than with
    /// replacement.
    left: f64,
    /// Sums of the squares and cubes of the partitions' deviations, in shares, as estimated from
    /// the sample.
    squares: f64,
    cubes: f64,
}

impl SumOfSquares {
    /// Returns the mean and variance if the sum of squares in the export is `squares`, with
    /// deviations proportional to the sample's. They follow from a multinomial draw (Simpson,
    /// "Measurement of Diversity", 1949), which varies less the more of the export is drawn.
    fn moments(&self, squares: f64) -> (f64, f64) {
        let Self { partitions, n, left, .. } = *self;
        let scale = if self.squares > 0.0 { (squares / self.squares).sqrt() } else { 0.0 };
        let cubes = self.cubes * scale.powi(3);
        // With deviations larger than the sample's, some shares could fall below 0.
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

    /// Returns the distance of `measured` above the median, in standard deviations of a normal
    /// distribution.
    fn standing(&self, measured: f64, squares: f64) -> f64 {
        let (mean, variance) = self.moments(squares);
        let freedom = self.partitions - 1.0;
        // A scaled noncentral chi-square with this mean and variance, or a central one if none
        // exists.
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

/// Converts a noncentral chi-square to normal deviations by Sankaran's approximation.
fn chi_square_standing(value: f64, freedom: f64, noncentral: f64) -> f64 {
    let (k, l) = (freedom, noncentral);
    let h = 1.0 - 2.0 / 3.0 * (k + l) * (k + 3.0 * l) / (k + 2.0 * l).powi(2);
    let p = (k + 2.0 * l) / (k + l).powi(2);
    let m = (h - 1.0) * (1.0 - 3.0 * h);
    let middle = 1.0 + h * p * (h - 1.0 - 0.5 * (2.0 - h) * m * p);
    ((value.max(0.0) / (k + l)).powf(h) - middle) / (h * (2.0 * p).sqrt() * (1.0 + 0.5 * m * p))
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
