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
    /// Position of the key space: 0 is the table, the others are its indexes.
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
    /// All windows, added up.
    pub whole: Period,
    /// Periods in order of time.
    pub timeline: Timeline,
    /// Duration of hot splits, in windows.
    pub relief: Relief,
    /// Rows written to hot splits that dividing does not cool.
    pub stuck: Vec<Stuck>,
    /// Number of transactions, each of consecutive rows.
    pub transactions: u64,
    /// Mean number of splits that a transaction touches. More than one means a two-phase commit.
    pub splits_per_transaction: f64,
    /// Maximum number of splits that a transaction touches.
    pub most_splits_per_transaction: u64,
    /// Share of the transactions that touch more than one split.
    pub two_phase_share: f64,
    /// Heat map of the writes.
    pub heat: HeatMap,
}

/// Key spaces of a table and its indexes, whose splits share the servers.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    parameters: ModelParameters,
    names: Vec<String>,
    spaces: Vec<KeySpace>,
    /// For each space: rows that arrived while the clock was running, and those of them in the
    /// hottest split of their window.
    hottest_rows: Vec<(u64, u64)>,
    random: SplitMix,
    /// Divisions made before the clock starts.
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
#[path = "database_tests.rs"]
mod tests;
