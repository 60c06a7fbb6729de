//! Key spaces of a table and its indexes, on servers, with a clock.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::simulate::splits::heat::{HeatMap, HeatSamples};
use crate::simulate::splits::key::Key;
use crate::simulate::splits::key_space::{Changes, KeySpace};
use crate::simulate::splits::parameters::ModelParameters;
use crate::simulate::splits::random::SplitMix;
use crate::simulate::splits::servers::Servers;
use crate::simulate::splits::split::{Obstacle, SplitFigures};
use crate::simulate::splits::timeline::{Period, Relief, Timeline};

/// Rows written to hot splits that dividing does not cool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stuck {
    /// Position of the key space.
    pub space: usize,
    /// Reason why dividing does not help.
    pub obstacle: Obstacle,
    /// Number of such splits, counted in every window.
    pub splits: u64,
    /// Number of rows written to them.
    pub rows: u64,
}

/// Final figures of a key space.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpaceFigures {
    /// Name of the table or the index.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Size of the rows, in bytes.
    pub bytes: u64,
    /// Number of rows that arrived while the clock was running; the others existed before.
    pub rows_in_time: u64,
    /// Share of these that went to the hottest split of their window.
    pub hottest_share: f64,
    /// Figures of the splits, in key order.
    pub splits: Vec<SplitFigures>,
}

/// Result of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DatabaseOutcome {
    /// Figures of the key spaces.
    pub spaces: Vec<SpaceFigures>,
    /// All windows as one period.
    pub whole: Period,
    /// Periods in order of time.
    pub timeline: Timeline,
    /// Duration of hot splits.
    pub relief: Relief,
    /// Rows written to hot splits that dividing does not cool.
    pub stuck: Vec<Stuck>,
    /// Number of transactions.
    pub transactions: u64,
    /// Mean number of splits that a transaction touches. More than one means a two-phase commit.
    pub splits_per_transaction: f64,
    /// Largest number of splits that a transaction touches.
    pub most_splits_per_transaction: u64,
    /// Share of the transactions that touch more than one split.
    pub two_phase_share: f64,
    /// Heat map of the writes.
    pub heat: HeatMap,
}

/// Key spaces that share servers.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    parameters: ModelParameters,
    names: Vec<String>,
    spaces: Vec<KeySpace>,
    /// For each space: rows that arrived while the clock was running, and those of them in the
    /// hottest split of their window.
    hottest_rows: Vec<(u64, u64)>,
    random: SplitMix,
    /// Divisions before the first window.
    before: Changes,
    /// Whether the current window is the last.
    ending: bool,
    /// Current window; `None` until the clock starts.
    window: Option<i64>,
    timeline: Timeline,
    relief: Relief,
    stuck: BTreeMap<(usize, Obstacle), (u64, u64)>,
    heat: HeatSamples,
    transactions: u64,
    /// Splits touched by the current transaction, and by all transactions.
    touched: u64,
    touched_in_all: u64,
    most_touched: u64,
    two_phase: u64,
}

impl Database {
    /// Creates a database from key spaces without rows.
    pub(crate) fn new(parameters: ModelParameters, spaces: Vec<(String, KeySpace)>) -> Self {
        let (names, spaces): (Vec<String>, Vec<KeySpace>) = spaces.into_iter().unzip();
        Self {
            hottest_rows: vec![(0, 0); spaces.len()],
            before: Changes::default(),
            ending: false,
            random: SplitMix::new(parameters.seed),
            parameters,
            names,
            spaces,
            window: None,
            timeline: Timeline::default(),
            relief: Relief::default(),
            stuck: BTreeMap::new(),
            heat: HeatSamples::default(),
            transactions: 0,
            touched: 0,
            touched_in_all: 0,
            most_touched: 0,
            two_phase: 0,
        }
    }

    /// Advances the clock to a window, numbered since 1970. The clock never runs backwards.
    pub(crate) fn advance(&mut self, to: i64) {
        let Some(now) = self.window else {
            self.begin();
            self.window = Some(to);
            return;
        };
        if to <= now {
            return;
        }
        self.end_window(now);
        // Without rows, nothing changes once all delays are over.
        let settled = now.saturating_add(
            1 + i64::from(self.parameters.quiet_windows) * 2 + i64::from(self.parameters.delay_windows),
        );
        (now + 1..to.min(settled)).for_each(|window| self.end_window(window));
        self.window = Some(to);
    }

    /// Divides the splits of rows that exist before the first window starts.
    fn begin(&mut self) {
        let servers = self.parameters.servers.max(1);
        let mut next = 0;
        let mut place = |_| {
            next = (next + 1) % servers;
            next
        };
        for space in &mut self.spaces {
            let changes = space.change(&self.parameters, &mut place);
            self.before.by_size += changes.by_size;
            space.turn();
        }
    }

    /// Begins a transaction, for which touched splits are counted.
    pub(crate) fn begin_transaction(&mut self) {
        self.end_transaction();
        self.transactions += 1;
    }

    fn end_transaction(&mut self) {
        self.touched_in_all += self.touched;
        self.most_touched = self.most_touched.max(self.touched);
        self.two_phase += u64::from(self.touched > 1);
        self.touched = 0;
    }

    /// Inserts a row into the key space at position `space`.
    #[inline]
    pub(crate) fn insert(&mut self, space: usize, key: Key<'_>, bytes: u32) {
        let Some(rows) = self.spaces.get_mut(space) else { return };
        let new = rows.insert(key, bytes, self.transactions, &mut self.random);
        self.touched += u64::from(new);
        if let Some(window) = self.window {
            self.heat.see(space, key, window, &mut self.random);
        }
    }

    fn end_window(&mut self, window: i64) {
        for (hottest, space) in self.hottest_rows.iter_mut().zip(&self.spaces) {
            let rows = || space.splits().iter().map(|split| split.window_rows);
            *hottest = (hottest.0 + rows().sum::<u64>(), hottest.1 + rows().max().unwrap_or(0));
        }
        let servers = Servers::new(self.parameters.servers, &self.spaces);
        let mut period = self.load_of_window(window, &servers);
        // The last window may be cut short, and a window without rows is no relief.
        if period.hot_windows > 0 || (!self.ending && period.rows > 0) {
            self.relief.push(window, period.hot_windows > 0);
        }
        self.change_splits(&mut period, servers);
        self.timeline.push(period);
    }

    /// Returns the figures of a window at its end, before splits change.
    fn load_of_window(&mut self, window: i64, servers: &Servers) -> Period {
        let parameters = &self.parameters;
        let by_size = std::mem::take(&mut self.before).by_size;
        let mut period = Period { begin: window, windows: 1, by_size, ..Period::default() };
        let mut squares = 0.0;
        for split in self.spaces.iter().flat_map(KeySpace::splits) {
            let rows = split.window_rows;
            period.rows += rows;
            period.hottest_rows = period.hottest_rows.max(rows);
            squares += (rows as f64).powi(2);
            if parameters.score(rows) >= parameters.hot {
                period.hot_rows += rows;
            }
        }
        let all = period.rows as f64;
        let effective = |squares: f64| if squares > 0.0 { all * all / squares } else { 0.0 };
        period.effective_splits = effective(squares);
        let loads = || servers.loads.iter().map(|load| *load as f64);
        period.effective_servers = effective(loads().map(|load| load.powi(2)).sum());
        let busy = loads().filter(|load| all > 0.0 && load * servers.loads.len() as f64 >= 0.1 * all);
        period.busy_servers = busy.count() as f64;
        period.highest_score = parameters.score(period.hottest_rows);
        period.hot_windows = u64::from(period.highest_score >= parameters.hot);
        period
    }

    /// Divides, joins and moves splits at the end of a window, and counts that in its figures.
    fn change_splits(&mut self, period: &mut Period, mut servers: Servers) {
        for (number, space) in self.spaces.iter_mut().enumerate() {
            space.judge(&self.parameters);
            for (obstacle, rows) in space.stuck() {
                let (splits, all) = self.stuck.entry((number, obstacle)).or_default();
                *splits += 1;
                *all += rows;
            }
            let changes = space.change(&self.parameters, |_| servers.place_split());
            period.by_size += changes.by_size;
            period.by_load += changes.by_load;
            period.merges += changes.merges;
        }
        period.moves = u64::from(servers.move_one(&mut self.spaces));
        self.spaces.iter_mut().for_each(KeySpace::turn);
        period.splits = self.spaces.iter().map(KeySpace::split_count).sum();
    }

    /// Ends the last window, and returns the figures of all rows and the key spaces.
    pub(crate) fn finish(mut self) -> (DatabaseOutcome, Vec<KeySpace>) {
        self.end_transaction();
        if self.window.is_none() {
            self.begin();
        }
        self.ending = true;
        self.end_window(self.window.unwrap_or(0));
        let spaces = self.names.into_iter().zip(&self.spaces).zip(&self.hottest_rows);
        let spaces =
            spaces.map(|((name, space), (in_time, hottest))| space_figures(name, space, *in_time, *hottest));
        let stuck = self.stuck.into_iter();
        let transactions = self.transactions.max(1) as f64;
        let outcome = DatabaseOutcome {
            spaces: spaces.collect(),
            whole: self.timeline.whole(),
            timeline: self.timeline,
            relief: self.relief,
            stuck: stuck
                .map(|((space, obstacle), (splits, rows))| Stuck { space, obstacle, splits, rows })
                .collect(),
            transactions: self.transactions,
            splits_per_transaction: self.touched_in_all as f64 / transactions,
            most_splits_per_transaction: self.most_touched,
            two_phase_share: self.two_phase as f64 / transactions,
            heat: self.heat.map(self.spaces.len()),
        };
        (outcome, self.spaces)
    }
}

fn space_figures(name: String, space: &KeySpace, rows_in_time: u64, hottest: u64) -> SpaceFigures {
    let splits: Vec<SplitFigures> = space.figures().collect();
    SpaceFigures {
        name,
        rows: splits.iter().map(|split| split.rows).sum(),
        bytes: splits.iter().map(|split| split.bytes).sum(),
        rows_in_time,
        hottest_share: hottest as f64 / rows_in_time.max(1) as f64,
        splits,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::simulate::splits::key::{KeyRange, StartKey};
    use evenkeel_model::units::ByteSize;
    use evenkeel_stats::skew::{KeyWeights, NoiseFloor, SkewFigures};

    fn database(parameters: &ModelParameters, boundaries: Vec<Vec<u8>>, fixed: bool) -> Database {
        let boundaries = boundaries.into_iter().map(|bytes| StartKey { lead: bytes.len(), bytes }).collect();
        let space = KeySpace::new(boundaries, fixed, parameters);
        Database::new(parameters.clone(), vec![("table".to_owned(), space)])
    }

    fn insert(database: &mut Database, key: u64, bytes: u32) {
        let key = key.to_be_bytes();
        database.insert(0, Key { bytes: &key, lead: 8, root: 8 }, bytes);
    }

    /// Parameters under which a few thousand rows divide a split.
    fn small() -> ModelParameters {
        ModelParameters { split_size: ByteSize(64 << 10), split_rate: 1.0, ..ModelParameters::default() }
    }

    fn mixed(number: u64) -> u64 {
        SplitMix::new(number).next()
    }

    #[test]
    fn a_key_that_rises_always_inserts_into_the_last_split() {
        let mut database = database(&small(), Vec::new(), false);
        let mut largest = 0;
        for row in 0..40_000_u64 {
            database.advance((row / 200) as i64);
            insert(&mut database, row, 100);
            let last = database.spaces[0].splits().last().unwrap();
            let key = row.to_be_bytes();
            assert_eq!(database.spaces[0].touched(&[KeyRange::with_prefix(&key)]), 1);
            // The last split received every row of this window, so no other split was written to.
            assert_eq!(last.window_rows, row % 200 + 1, "{row}");
            largest = database.spaces[0].split_count();
        }
        let (outcome, _) = database.finish();
        assert_eq!(outcome.whole.hottest_rows, 40_000);
        assert_eq!((outcome.whole.by_load, outcome.relief.relieved_after), (0, None));
        assert!(outcome.whole.by_size > 50 && largest > 50, "{}", outcome.whole.by_size);
        let stuck = outcome.stuck[0];
        assert!(stuck.obstacle == Obstacle::MovingHotspot && stuck.rows > 35_000, "{stuck:?}");
        assert_eq!(outcome.heat.pattern(), crate::simulate::splits::HeatPattern::MonotonicKeys);
    }

    #[test]
    fn keys_that_are_anywhere_spread_to_within_chance() {
        let boundaries = (1..16_u64).map(|part| (part << 60).to_be_bytes().to_vec()).collect();
        let mut database = database(&small(), boundaries, true);
        for row in 0..200_000 {
            database.advance((row / 1000) as i64);
            insert(&mut database, mixed(row), 100);
        }
        let (outcome, _) = database.finish();
        let rows: Vec<u64> = outcome.spaces[0].splits.iter().map(|split| split.rows).collect();
        let mut weights = KeyWeights::default();
        (0..200_000).for_each(|_| weights.add(1));
        let skew = SkewFigures::from_counts(&rows);
        let (floor, cv) = (NoiseFloor::from_weights(&skew, &weights), skew.cv);
        assert!(cv < 1.6 * floor.expected_cv_weighted, "{cv} {floor:?}");
        assert_eq!((outcome.whole.splits, outcome.whole.by_size), (16, 0));
    }

    #[test]
    fn splits_of_keys_that_are_anywhere_get_what_their_width_says() {
        // These splits have divided by size and by load.
        let mut database = database(&small(), Vec::new(), false);
        for row in 0..60_000 {
            database.advance((row / 600) as i64);
            insert(&mut database, mixed(row), 100);
        }
        let rows = 20_000;
        database.advance(1_000_000);
        (60_000..60_000 + rows).for_each(|row| insert(&mut database, mixed(row), 100));
        let splits = database.spaces[0].splits();
        assert!(splits.len() > 60, "{}", splits.len());
        let start = |split: &crate::simulate::splits::split::Split| {
            split.start().try_into().map_or(0, u64::from_be_bytes) as f64
        };
        let ends = splits.iter().skip(1).map(start).chain([u64::MAX as f64]);
        let chi_square: f64 = splits
            .iter()
            .zip(ends)
            .map(|(split, end)| {
                let expected = rows as f64 * (end - start(split)) / u64::MAX as f64;
                (split.window_rows as f64 - expected).powi(2) / expected
            })
            .sum();
        let freedom = (splits.len() - 1) as f64;
        // Within five standard deviations of its mean.
        assert!((chi_square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "{chi_square} {freedom}");
    }

    #[test]
    fn load_divides_until_no_split_is_hot_and_quiet_parts_are_joined() {
        // 600 rows per window, at a capacity of 60 rows per split.
        let mut database = database(&small(), Vec::new(), false);
        for row in 0..60_000 {
            database.advance((row / 600) as i64);
            insert(&mut database, mixed(row), 0);
        }
        let busy = database.spaces[0].split_count();
        assert!((11..=40).contains(&busy), "{busy}");
        database.advance(1000);
        let (outcome, spaces) = database.finish();
        assert!(outcome.relief.relieved_after.is_some_and(|windows| windows < 40), "{:?}", outcome.relief);
        assert_eq!(spaces[0].split_count(), 1, "{:?}", outcome.whole);
        assert!(outcome.whole.by_load >= 10 && outcome.whole.merges == outcome.whole.by_load);
        assert!(outcome.whole.busy_servers > 3.0, "{}", outcome.whole.busy_servers);
    }

    #[test]
    fn one_row_is_never_divided() {
        let mut database = database(&small(), Vec::new(), false);
        for row in 0..20_000_u64 {
            database.advance((row / 600) as i64);
            // One key receives all rows, except for an occasional other one.
            insert(&mut database, if row.is_multiple_of(500) { mixed(row) } else { 7 << 40 }, 1);
        }
        let (outcome, _) = database.finish();
        assert_eq!((outcome.whole.by_load, outcome.relief.relieved_after), (0, None));
        assert_eq!(outcome.stuck[0].obstacle, Obstacle::SingleRow);
    }

    #[test]
    fn transactions_count_the_splits_they_touch() {
        let boundaries = vec![vec![128]];
        let mut database = database(&small(), boundaries, true);
        database.advance(0);
        for keys in [[1_u64, 2], [1, u64::MAX], [u64::MAX, u64::MAX - 1]] {
            database.begin_transaction();
            keys.into_iter().for_each(|key| insert(&mut database, key, 1));
        }
        let (outcome, _) = database.finish();
        assert_eq!((outcome.transactions, outcome.most_splits_per_transaction), (3, 2));
        assert!((outcome.two_phase_share - 1.0 / 3.0).abs() < 1e-9);
        assert!((outcome.splits_per_transaction - 4.0 / 3.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn no_row_is_lost_and_splits_leave_no_gap(
            rows in proptest::collection::vec((0u8..4, any::<u16>(), 0u32..3000), 1..3000),
            jumps in proptest::collection::vec(0i64..200, 1..8),
            seed: u64,
        ) {
            let parameters = ModelParameters { seed, quiet_windows: 3, delay_windows: 1, ..small() };
            let replay = || {
                let mut database = database(&parameters, vec![vec![9]], false);
                let (mut clock, mut inserted, mut bytes) = (0, 0, 0);
                for (number, (kind, key, size)) in rows.iter().enumerate() {
                    if number % 100 == 0 {
                        clock += 1 + jumps[number / 100 % jumps.len()] / 50;
                    }
                    let key = match kind {
                        0 => number as u64,
                        1 => mixed(u64::from(*key)),
                        2 => u64::from(*key) << 48,
                        _ => 42,
                    };
                    database.advance(clock);
                    insert(&mut database, key, *size);
                    (inserted, bytes) = (inserted + 1, bytes + u64::from(*size));
                    if number % 100 == 0 {
                        let splits: Vec<_> = database.spaces[0].figures().collect();
                        assert!(splits[0].start.bytes.is_empty());
                        assert!(splits.windows(2).all(|pair| pair[0].start < pair[1].start));
                        assert_eq!(splits.iter().map(|split| split.rows).sum::<u64>(), inserted);
                        assert_eq!(splits.iter().map(|split| split.bytes).sum::<u64>(), bytes);
                    }
                }
                database.finish().0
            };
            let outcome = replay();
            prop_assert_eq!(outcome.whole.rows, rows.len() as u64);
            prop_assert!(outcome.whole.hottest_rows <= outcome.whole.rows);
            let splits = outcome.whole.splits as u64;
            prop_assert_eq!(splits, 2 + outcome.whole.by_size + outcome.whole.by_load - outcome.whole.merges);
            // The same seed gives the same timeline.
            prop_assert_eq!(replay(), outcome);
        }
    }
}
