//! Confidence intervals of sampled figures: 95 of 100 intervals contain the true figure.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Binomial, Distribution};
use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use super::*;
use evenkeel_stats::sketch::DistinctKeys;
use evenkeel_stats::skew::SkewFigures;

const PARTITIONS: usize = 64;
const SAMPLES: u32 = 1000;
/// Of 1,000 intervals, 95 % contain the figure, to within three standard deviations.
const MIN_HELD: f64 = 0.93;

/// Export, as the number of keys for each number of rows, and the rows per partition.
struct Shape {
    name: &'static str,
    keys: Vec<(u64, u64)>,
    partitions: Vec<u64>,
}

impl Shape {
    /// Creates keys with these rows and places them at random. The partitions are the same for
    /// all samples of the export.
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
    // Rows per hour of two days and kind of event: a busy afternoon, and kinds from frequent to
    // rare.
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

/// Draws the sampled rows of keys, each with its rows in the export. For keys with equally many
/// rows, it draws in turn how many keys have none, one, two and so on.
fn draw_keys(shape: &Shape, chance: f64, random: &mut ChaCha8Rng) -> Vec<(u64, u64, u64)> {
    let mut drawn = Vec::new();
    for (rows, keys) in &shape.keys {
        if *keys < 20 {
            drawn.extend((0..*keys).map(|_| (binomial(*rows, chance, random), *rows, 1)));
            continue;
        }
        let (mut left, mut sampled, mut beyond) = (*keys, 0, 1.0f64);
        let mut probability = (1.0 - chance).powf(*rows as f64);
        while left > 0 && sampled <= *rows {
            let share = if sampled == *rows { 1.0 } else { (probability / beyond).clamp(0.0, 1.0) };
            let alike = binomial(left, share, random);
            drawn.push((sampled, *rows, alike));
            left -= alike;
            beyond -= probability;
            probability *= (*rows - sampled) as f64 / (sampled + 1) as f64 * chance / (1.0 - chance);
            sampled += 1;
        }
    }
    drawn.retain(|(sampled, _, keys)| *sampled > 0 && *keys > 0);
    drawn
}

/// Number of times that an interval contained its figure, and its average width.
#[derive(Default)]
struct Held {
    held: u32,
    trials: u32,
    width: f64,
}

impl Held {
    fn add(&mut self, interval: Interval, truth: f64) {
        let slack = 1e-9 * truth.abs();
        self.held += u32::from(interval.lower <= truth + slack && truth - slack <= interval.upper);
        self.trials += 1;
        self.width += interval.upper - interval.lower;
    }

    fn share(&self) -> f64 {
        f64::from(self.held) / f64::from(self.trials)
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
            let truth = SkewFigures::from_counts(&shape.partitions);
            let names = ["max/mean", "idle", "share of fullest", "CV", "effective"];
            let mut held: [Held; 5] = Default::default();
            for _ in 0..SAMPLES {
                let draw = |rows: &u64| binomial(*rows, *chance, &mut random);
                let sample: Vec<u64> = shape.partitions.iter().map(draw).collect();
                let drawn =
                    SampleSize { chance: *chance, population: shape.rows(), rows: sample.iter().sum() };
                let intervals = Intervals::new(&sample, drawn);
                held[0].add(intervals.max_over_mean, truth.max_over_mean);
                held[1].add(intervals.idle_fraction, truth.idle_fraction);
                held[2].add(intervals.share_of_fullest, truth.share_of_fullest);
                held[3].add(intervals.cv.unwrap(), truth.cv);
                held[4].add(intervals.effective_partitions.unwrap(), truth.effective_partitions);
            }
            let shares: Vec<String> = names
                .iter()
                .zip(&held)
                .map(|(name, held)| {
                    format!("{name} {:.3}, width {:.3}", held.share(), held.width / f64::from(held.trials))
                })
                .collect();
            let line = format!("{} at {chance}: {}", shape.name, shares.join("; "));
            let mut faults: Vec<String> = names
                .iter()
                .zip(&held)
                .filter(|(_, held)| held.share() < MIN_HELD)
                .map(|(name, held)| format!("{} at {chance}: {name} {}", shape.name, held.share()))
                .collect();
            // In units of the change in a figure that drawing this many rows causes.
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
                let sum = |figure: fn(&(u64, u64, u64)) -> u64| sample.iter().map(figure).sum::<u64>();
                let sampled_keys = sum(|(_, _, keys)| *keys);
                let drawn =
                    SampleSize { chance, population: rows, rows: sum(|(sampled, _, keys)| sampled * keys) };
                let once = sample.iter().filter(|(sampled, ..)| *sampled == 1).map(|(_, _, keys)| keys).sum();
                let shown = sample
                    .iter()
                    .flat_map(|(sampled, rows, keys)| std::iter::repeat_n((*sampled, *rows), *keys as usize));
                for (sampled, truth) in shown.take(3) {
                    heaviest.add(drawn.share_of_key(sampled, sampled), truth as f64 / rows as f64);
                }
                let exact = DistinctKeys {
                    estimate: sampled_keys,
                    exact: true,
                    lower: sampled_keys,
                    upper: sampled_keys,
                };
                let whole = exact.scaled_to_whole(Some(once), chance, rows - drawn.rows + sampled_keys);
                assert!(whole.lower <= whole.estimate && whole.estimate <= whole.upper, "{whole:?}");
                let bounds = Interval { lower: whole.lower as f64, upper: whole.upper as f64 };
                distinct.add(bounds, keys as f64);
                repeated
                    .add(drawn.repeated_rows(drawn.rows - sampled_keys, sampled_keys), (rows - keys) as f64);
            }
            let held = [heaviest.share(), distinct.share(), repeated.share()];
            println!("{} at {chance}: heaviest, distinct, repeated {held:?}", shape.name);
            assert!(held.iter().all(|held| *held >= MIN_HELD), "{} at {chance}: {held:?}", shape.name);
        }
    }
}

#[test]
fn limits_of_a_count_are_those_of_the_hypergeometric_law() {
    // 20 of 100 rows are drawn, 3 of them from one partition. Computed from binomials over
    // 100!/(20! 80!), with the factors in another order.
    let drawn = SampleSize { chance: 0.2, population: 100, rows: 20 };
    let choose = |n: u64, k: u64| (1..=k).map(|i| (n - k + i) as f64 / i as f64).product::<f64>();
    let at =
        |rows: u64, sampled: u64| choose(rows, sampled) * choose(100 - rows, 20 - sampled) / choose(100, 20);
    for rows in 20..80 {
        let most: f64 = (0..=3).map(|sampled| at(rows, sampled)).sum();
        let least: f64 = (3..=20u64.min(rows)).map(|sampled| at(rows, sampled)).sum();
        assert!((drawn.at_most(3, rows) - most).abs() < 1e-9, "{rows}");
        assert!((drawn.at_least(3, rows) - least).abs() < 1e-9, "{rows}");
    }
    let most = drawn.most(3);
    assert!(drawn.at_most(3, most) >= 0.025 && drawn.at_most(3, most + 1) < 0.025, "{most}");
    // All rows were drawn: nothing is unknown.
    let all = SampleSize { chance: 1.0, population: 100, rows: 100 };
    assert_eq!((all.fewest(30, 64), all.most(30)), (30, 30));
    let all = SampleSize { population: 4_000_000_000, rows: 4_000_000_000, chance: 1.0 };
    assert_eq!((all.fewest(1_000_000_000, 64), all.most(1_000_000_000)), (1_000_000_000, 1_000_000_000));
    // No row was drawn, from a very large export.
    let none = SampleSize { population: u64::MAX / 4, rows: 0, chance: 1e-9 };
    assert_eq!(none.fewest(0, 64), 0);
    assert_eq!(none.most(0), u64::MAX / 4);
}

#[test]
fn the_limits_of_a_whole_export_are_its_figures_and_of_few_rows_there_is_no_cv() {
    let rows = [5u64, 9, 0, 2];
    let all = SampleSize { chance: 1.0, population: 16, rows: 16 };
    let (intervals, truth) = (Intervals::new(&rows, all), SkewFigures::from_counts(&rows));
    let same = |interval: Interval, truth: f64| {
        assert!(
            (interval.lower - truth).abs() < 1e-9 && (interval.upper - truth).abs() < 1e-9,
            "{interval:?}"
        );
    };
    same(intervals.cv.unwrap(), truth.cv);
    same(intervals.effective_partitions.unwrap(), truth.effective_partitions);
    same(intervals.max_over_mean, truth.max_over_mean);
    same(intervals.idle_fraction, truth.idle_fraction);
    let few = Intervals::new(&rows, SampleSize { chance: 0.01, population: 1600, rows: 16 });
    assert!(few.cv.is_none() && few.effective_partitions.is_none());
    assert!(few.no_interval.is_some_and(|reason| reason.contains("16 rows")));
    let one = Intervals::new(&[500], SampleSize { chance: 0.1, population: 5000, rows: 500 });
    same(one.cv.unwrap(), 0.0);
    same(one.max_over_mean, 1.0);
    same(one.effective_partitions.unwrap(), 1.0);
}
