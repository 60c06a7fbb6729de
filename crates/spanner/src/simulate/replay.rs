//! Replays an export, row by row in arrival order, under several strategies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::prelude::{IntoParallelRefMutIterator, ParallelIterator};

use crate::simulate::advice::{advise, recommend};
use crate::simulate::arrivals::{Arrived, BEFORE, Block, Order, Rate, Source, Survey, replay, survey};
use crate::simulate::columns::{
    check_suited, indexes_of, key_columns, nullable, position, time_column, timed_uuids,
};
use crate::simulate::design::{Design, Hashed, name_keys};
use crate::simulate::index::Index;
use crate::simulate::key::KeyColumn;
use crate::simulate::reads::{Found, Reads, read_length};
use crate::simulate::result::{Load, RateSource, SimulateOptions, Simulation, StrategyReport};
use crate::simulate::splits::{Database, KeySpace, ModelParameters, Outcome, StartKey};
use crate::simulate::{SimulateError, Strategy, StrategyName};
use evenkeel_input::source::Export;
use evenkeel_model::table::Column;
use evenkeel_model::units::Micros;
use evenkeel_model::values::columns_to_read;
use evenkeel_stats::sketch::{DistinctKeys, KeyCounter, key_identities};

/// Memory limit for counting distinct keys exactly.
const KEY_BYTES: usize = 256 << 20;
/// Number of full splits that the whole export makes if no scale is given.
const USUAL_SPLITS: f64 = 16.0;
/// Number of first rows that boundaries are derived from, since later keys are not known in
/// advance.
const PRESPLIT_ROWS: usize = 10_000;
/// Smallest number of rows of the export that should be needed to make a split hot in a window;
/// fewer come together by chance.
const FEWEST_HOT_ROWS: f64 = 20.0;
/// Fewest windows that show the effect of a load: the split is watched, divided after the delay,
/// and seen again.
const FEWEST_WINDOWS: f64 = 5.0;

/// Replay of one strategy in progress, with a design for each source.
pub(super) struct Runner {
    designs: Vec<Design>,
    /// Number and size of the entries, for each plan of each source.
    counted: Vec<Vec<(u64, u64)>>,
    database: Database,
    transaction_rows: u64,
    rows_left: u64,
    key: Vec<u8>,
}

/// Result of replaying one strategy.
pub(super) struct Replayed {
    pub(super) designs: Vec<Design>,
    pub(super) counted: Vec<Vec<(u64, u64)>>,
    pub(super) outcome: Outcome,
    pub(super) spaces: Vec<KeySpace>,
}

impl Runner {
    pub(super) fn new(designs: Vec<Design>, database: Database, transaction_rows: u64) -> Self {
        let counted = designs.iter().map(|design| vec![(0, 0); design.plans.len()]).collect();
        let transaction_rows = transaction_rows.max(1);
        Self { designs, counted, database, transaction_rows, rows_left: 0, key: Vec::new() }
    }

    pub(super) fn take(&mut self, block: &Block) -> Result<(), SimulateError> {
        let mut entries = Vec::with_capacity(block.arrived.len());
        for arrived in &block.arrived {
            let design = self.designs.get_mut(arrived.source);
            entries.push(design.map_or(Ok(Vec::new()), |design| design.entries(arrived))?);
        }
        for (at, rows) in &block.order {
            let (Some(arrived), Some(entries)) = (block.arrived.get(*at), entries.get(*at)) else { continue };
            let counted = self.counted.get_mut(arrived.source);
            let (Some(design), Some(counted)) = (self.designs.get(arrived.source), counted) else { continue };
            for (row, window) in rows.clone().zip(arrived.windows.get(rows.clone()).unwrap_or_default()) {
                if *window != BEFORE {
                    self.database.advance(*window);
                }
                if self.rows_left == 0 {
                    self.database.begin_transaction();
                    self.rows_left = self.transaction_rows;
                }
                self.rows_left -= 1;
                for ((plan, entries), counted) in design.plans.iter().zip(entries).zip(&mut *counted) {
                    if let Some((key, bytes)) = entries.entry(row, &mut self.key) {
                        self.database.insert(plan.space, key, bytes);
                        *counted = (counted.0 + 1, counted.1 + u64::from(bytes));
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Replayed, SimulateError> {
        let Self { designs, counted, database, .. } = self;
        let (mut outcome, spaces) = database.finish();
        name_keys(&designs, &mut outcome)?;
        Ok(Replayed { designs, counted, outcome, spaces })
    }
}

/// Columns that the options name, by position.
struct Columns<'a> {
    all: &'a [Column],
    key: Vec<KeyColumn>,
    partition_key: Vec<usize>,
    shard: Vec<usize>,
    indexes: Vec<Index>,
    time: Option<usize>,
    owner: Option<usize>,
}

impl<'a> Columns<'a> {
    fn resolve(
        all: &'a [Column],
        options: &SimulateOptions,
        notes: &mut Vec<String>,
    ) -> Result<Self, SimulateError> {
        let positions = |names: &[String]| -> Result<Vec<usize>, SimulateError> {
            names.iter().map(|name| position(all, name)).collect()
        };
        let key = key_columns(all, &options.primary_key)?;
        let in_key = || key.iter().map(|part| part.column);
        let partition_key = match options.partition_key.as_slice() {
            [] => in_key().collect(),
            names => positions(names)?,
        };
        // If there are several time columns, the one in the key determines when rows arrive.
        let time_in_key = || in_key().find(|column| is_time(all, *column));
        let time = time_column(all, options.time.as_deref())?.or_else(time_in_key);
        if time.is_none() && options.rate.is_none() {
            return Err(SimulateError::NoClock);
        }
        let owner = match &options.owner {
            Some(name) => Some(position(all, name)?),
            None => in_key().find(|column| !is_time(all, *column)),
        };
        let shard = positions(&options.shard_columns)?;
        let indexes = indexes_of(all, &key, &options.indexes, notes)?;
        for strategy in &options.strategies {
            check_suited(*strategy, all, &key)?;
        }
        Ok(Self { all, key, partition_key, shard, indexes, time, owner })
    }

    /// Returns the positions of the columns of the key.
    fn in_key(&self) -> Vec<usize> {
        self.key.iter().map(|part| part.column).collect()
    }

    /// Returns the positions of all columns that are named.
    fn named(&self) -> Vec<usize> {
        let mut named = self.in_key();
        named.extend(self.partition_key.iter().chain(&self.shard));
        named.extend(self.time.iter().chain(&self.owner));
        for index in &self.indexes {
            named.extend(index.columns.iter().map(|part| part.column));
            named.extend(index.shard.iter().flat_map(|shard| &shard.columns));
        }
        named
    }

    fn name(&self, column: Option<usize>) -> Option<String> {
        column.and_then(|column| self.all.get(column)).map(|column| column.name.clone())
    }
}

/// The first reading of an export, and the clock and scale that follow from it.
struct Plan<'a> {
    export: &'a Export,
    options: &'a SimulateOptions,
    columns: Columns<'a>,
    source: Source<'a>,
    survey: Survey,
    parameters: ModelParameters,
    rate: Option<Rate>,
    read_length: Option<Micros>,
    unsure: Option<String>,
    notes: Vec<String>,
}

impl<'a> Plan<'a> {
    fn new(
        export: &'a Export,
        options: &'a SimulateOptions,
        stop: &AtomicBool,
    ) -> Result<Self, SimulateError> {
        let mut notes: Vec<String> = export.notes().iter().map(ToString::to_string).collect();
        let columns = Columns::resolve(export.columns(), options, &mut notes)?;
        let time = columns.time;
        let asked = columns_to_read(columns.all, &columns.named());
        let mut source = Source { export, asked, time, order: Order::Export };
        let survey = survey(&source, options.on_unreadable, options.parameters.window, stop)?;
        source.order = survey.order(options.rate.is_none());
        let parameters = scaled(options, survey.bytes);
        let rate = options.rate.map(|rate| Rate {
            from: survey.range.map_or(0, |range| range.0),
            between: 1e6 * parameters.load_scale / rate,
        });
        let name = columns.name(time).unwrap_or_default();
        notes.extend(notes_on_time(&survey, source.order, &name, rate.is_none()));
        let span = match (&rate, survey.range) {
            (Some(rate), _) => rate.between * survey.rows as f64,
            (None, range) => range.map_or(0.0, |(first, last)| (last - first) as f64),
        };
        let unsure = unknown_order(source.order).or_else(|| unsure(&parameters, span));
        let window = parameters.window.get() as f64;
        let rows_per_window = survey.rows as f64 * window / span.max(window);
        if rows_per_window < FEWEST_HOT_ROWS {
            notes.push(format!(
                "a window has {rows_per_window:.1} rows of the export on average, so that the hottest \
                    split may have many of them by chance; use a longer --window"
            ));
        }
        let read_length = survey.range.filter(|_| time.is_some()).map(read_length);
        Ok(Self { export, options, columns, source, survey, parameters, rate, read_length, unsure, notes })
    }

    /// The second reading: inserts all rows under every strategy.
    fn replay(&self, progress: &(dyn Fn(u64) + Sync), stop: &AtomicBool) -> Result<Counted, SimulateError> {
        let in_key = self.columns.in_key();
        let table = Table {
            columns: self.columns.all,
            key: &self.columns.key,
            partition_key: &self.columns.partition_key,
            indexes: &self.columns.indexes,
            judged: self.options.judged,
            shard: &self.columns.shard,
        };
        let mut found = Found::new(&self.survey, &self.columns.indexes, self.columns.time, self.read_length);
        let (mut runners, mut rows) = (Vec::new(), 0);
        let mut keys = KeyCounter::new();
        let mut take = |block: Block| -> Result<(), SimulateError> {
            if runners.is_empty() {
                for strategy in &self.options.strategies {
                    runners.push(table.runner(*strategy, self.options, &self.parameters, &block.arrived)?);
                }
            }
            let mut count = || -> Result<(), SimulateError> {
                for arrived in &block.arrived {
                    found.count(&arrived.batch)?;
                    rows += arrived.batch.num_rows() as u64;
                    let parts = in_key.iter().filter_map(|column| arrived.batch.columns().get(*column));
                    keys.add(&key_identities(parts), |_| ());
                    if keys.exact_bytes_after(1 << 17).is_some_and(|bytes| bytes > KEY_BYTES) {
                        keys.estimate();
                    }
                }
                Ok(())
            };
            let replay = || runners.par_iter_mut().try_for_each(|runner| runner.take(&block));
            let (counted, replayed) = rayon::join(&mut count, replay);
            counted?;
            replayed?;
            progress(rows);
            if stop.load(Ordering::Relaxed) { Err(SimulateError::Interrupted) } else { Ok(()) }
        };
        let sources = std::slice::from_ref(&self.source);
        replay(sources, self.options.on_unreadable, self.rate, self.parameters.window, &mut take)?;
        Ok(Counted { rows, distinct: keys.finish(0).distinct, found: found.rows, runners })
    }

    fn report(mut self, counted: Counted, started: Instant) -> Result<Simulation, SimulateError> {
        let Counted { rows, distinct, found, runners } = counted;
        self.notes.extend(note_on_repeated_keys(rows, distinct));
        let Self { export, options, columns, source, survey, parameters, read_length, unsure, notes, .. } =
            self;
        let in_key = columns.in_key();
        let reads = Reads {
            survey: &survey,
            columns: columns.all,
            key: &in_key,
            time: columns.time,
            owner: columns.owner,
            read_length,
            indexes: &columns.indexes,
            found: &found,
        };
        let strategies = options.strategies.iter().zip(runners);
        let strategies = strategies.map(|(strategy, runner)| strategy_report(*strategy, runner, &reads));
        let mut simulation = Simulation {
            model: true,
            inputs: export.input_names(),
            rows,
            bytes: survey.bytes,
            primary_key: options.primary_key.clone(),
            time: columns.name(columns.time),
            rate: options.rate,
            load: load(&survey, &parameters, options.rate, source.order),
            late_rows: survey.late_rows,
            read_length,
            owner: columns.name(columns.owner),
            transaction_rows: options.transaction_rows,
            presplits: options.presplits.min(usize::try_from(rows).unwrap_or(usize::MAX)),
            parameters,
            is_scale_found: options.find_scale,
            strategies: strategies.collect::<Result<_, _>>()?,
            notes,
            nullable: nullable(columns.all, &columns.named(), &survey.nulls),
            timed_uuids: timed_uuids(columns.all, &in_key, &survey.some_rows),
            judged: options.judged,
            unsure,
            recommended: None,
            findings: Vec::new(),
            seconds: started.elapsed().as_secs_f64(),
        };
        simulation.recommended = recommend(&simulation);
        simulation.findings = advise(&simulation);
        Ok(simulation)
    }
}

/// Results of the second reading.
struct Counted {
    rows: u64,
    distinct: DistinctKeys,
    /// Rows that a read through each index finds.
    found: Vec<u64>,
    /// The replay of each strategy.
    runners: Vec<Runner>,
}

/// If the number of distinct keys is an estimate, only its certain part is reported.
fn note_on_repeated_keys(rows: u64, distinct: DistinctKeys) -> Option<String> {
    let repeated = rows.saturating_sub(if distinct.exact { distinct.estimate } else { distinct.upper });
    (repeated > 0).then(|| {
        format!(
            "{} {repeated} rows have a key that exists already: Spanner refuses to insert them; they \
                count as writes here",
            if distinct.exact { "exactly" } else { "at least" }
        )
    })
}

fn strategy_report(
    strategy: Strategy,
    runner: Runner,
    reads: &Reads<'_>,
) -> Result<StrategyReport, SimulateError> {
    let Replayed { designs, counted, mut outcome, spaces } = runner.finish()?;
    // Index entries that are interleaved with the table are not rows of it.
    let rows_of_table = counted.first().and_then(|plans| plans.first()).map_or(0, |(entries, _)| *entries);
    if let Some(space) = outcome.spaces.first_mut().filter(|space| space.rows_in_time > rows_of_table) {
        let hottest = space.hottest_share * space.rows_in_time as f64;
        space.hottest_share = (hottest / rows_of_table.max(1) as f64).min(1.0);
        space.rows_in_time = rows_of_table;
    }
    let (Some(design), Some(counted)) = (designs.first(), counted.first()) else {
        return Err(SimulateError::Columns);
    };
    Ok(StrategyReport {
        strategy: StrategyName::Table(strategy),
        words: strategy.words(),
        is_range: strategy.is_range(),
        reads: reads.of_table(design, &spaces)?,
        indexes: reads.of_indexes(design, &spaces, &outcome, counted)?,
        outcome,
    })
}

/// Replays an export. Calls `progress` with the number of rows replayed so far; setting `stop`
/// interrupts the replay.
///
/// # Errors
/// [`SimulateError`] if the export cannot be read, or a named column is unsuitable.
pub fn simulate(
    export: &Export,
    options: &SimulateOptions,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<Simulation, SimulateError> {
    let started = Instant::now();
    let plan = Plan::new(export, options, stop)?;
    let counted = plan.replay(progress, stop)?;
    plan.report(counted, started)
}

/// Returns the parameters with the given scale, or with the one that makes the usual number of
/// splits of `bytes` bytes.
pub(super) fn scaled(options: &SimulateOptions, bytes: u64) -> ModelParameters {
    let mut parameters = options.parameters.clone();
    if options.find_scale {
        let scale = USUAL_SPLITS * parameters.split_size.0 as f64 / bytes.max(1) as f64;
        parameters.scale = round_to_two_digits(scale);
        parameters.load_scale = 1.0;
        // The measured load is not scaled. Only at a given rate may each row represent several, up
        // to a limit: with fewer rows in a window, hot splits would arise by chance.
        if options.rate.is_some() {
            let most = round_to_two_digits(parameters.hot_rows() / FEWEST_HOT_ROWS);
            parameters.load_scale = parameters.scale.min(most);
        }
    } else {
        parameters.load_scale = parameters.scale;
    }
    parameters
}

fn round_to_two_digits(number: f64) -> f64 {
    if number <= 0.0 || !number.is_finite() {
        return 1.0;
    }
    let unit = 10f64.powf(number.log10().floor() - 1.0);
    (number / unit).round() * unit
}

/// Returns a warning if the scale is so large that a few rows of the export make a split hot.
fn few_rows(parameters: &ModelParameters) -> Option<String> {
    let rows = parameters.hot_rows();
    // Rounding may lower the number slightly.
    (rows < 0.9 * FEWEST_HOT_ROWS).then(|| {
        format!(
            "a split is hot from {rows:.1} rows of the export in a window on, which so few rows reach by \
                chance: use more rows, a longer --window or a smaller --scale"
        )
    })
}

/// Returns the reason why load cannot be judged, if there are too few rows or too few windows.
pub(super) fn unsure(parameters: &ModelParameters, span: f64) -> Option<String> {
    let windows = span / parameters.window.get() as f64;
    few_rows(parameters).or_else(|| {
        (windows < FEWEST_WINDOWS).then(|| {
            format!(
                "all rows arrive within {windows:.1} windows of {}, too few to see splits divide: use \
                    more rows, a shorter --window or a lower --rate",
                parameters.window
            )
        })
    })
}

fn is_time(columns: &[Column], column: usize) -> bool {
    columns.get(column).is_some_and(|column| column.column_type.is_time())
}

/// Returns the load of the real table.
pub(super) fn load(survey: &Survey, parameters: &ModelParameters, rate: Option<f64>, order: Order) -> Load {
    let measured = (survey.span() > 0).then(|| survey.with_time as f64 * 1e6 / survey.span() as f64);
    let rows_per_second = rate.or(measured.map(|rows| rows * parameters.load_scale));
    Load {
        rows_per_second,
        bytes_per_second: rows_per_second.map(|rows| rows * survey.bytes as f64 / survey.rows.max(1) as f64),
        source: match rate {
            Some(_) => RateSource::Given,
            None if parameters.load_scale == 1.0 => RateSource::Measured,
            None => RateSource::Scaled,
        },
        span_micros: survey.span(),
        is_sorted_by_time: order == Order::Time,
    }
}

/// Returns the reason why load cannot be judged, if the arrival order of the rows is unknown.
pub(super) fn unknown_order(order: Order) -> Option<String> {
    (order == Order::Unknown).then(|| {
        "the export is not in the order of its times, and too large to sort here: sort it by time, or use \
            a part of it"
            .to_owned()
    })
}

/// Returns notes on the times of the rows.
pub(super) fn notes_on_time(survey: &Survey, order: Order, time: &str, is_clocked: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if order == Order::Time {
        notes.push(format!(
            "the export is not in the order of {time}: {:.0} % of its rows follow a later one. They are \
                replayed in the order of their times",
            100.0 * survey.out_of_order as f64 / survey.rows.max(1) as f64
        ));
    }
    if is_clocked && survey.without_time > 0 {
        notes.push(format!(
            "{} rows have no time: they arrive with the row before them, or before all \
            others if there is none",
            survey.without_time
        ));
    }
    notes
}

/// A declared table.
struct Table<'a> {
    columns: &'a [Column],
    key: &'a [KeyColumn],
    partition_key: &'a [usize],
    indexes: &'a [Index],
    judged: Option<Strategy>,
    /// Columns that the shard of the judged strategy is computed from.
    shard: &'a [usize],
}

impl Table<'_> {
    fn design(&self, strategy: Strategy, indexes: &[Index], seed: u64) -> Result<Design, SimulateError> {
        let is_judged = self.judged == Some(strategy);
        let shard = (is_judged && !self.shard.is_empty()).then_some(self.shard);
        let hashed = Hashed { partition_key: self.partition_key, shard };
        Design::new(strategy, self.columns, self.key, hashed, indexes, seed)
    }

    /// Creates the runner of a strategy; `first` are the first rows.
    fn runner(
        &self,
        strategy: Strategy,
        options: &SimulateOptions,
        parameters: &ModelParameters,
        first: &[Arrived],
    ) -> Result<Runner, SimulateError> {
        // Column tables have no indexes.
        let indexes = if strategy.is_range() { self.indexes } else { &[] };
        let design = self.design(strategy, indexes, parameters.seed)?;
        let boundaries = match strategy.is_range() {
            true => self.presplits(strategy, options.presplits, first)?,
            false => design.partition_boundaries()?,
        };
        let mut boundaries = Some(boundaries);
        let space = |name: &String| {
            let fixed = !strategy.is_range() && boundaries.is_some();
            let space = KeySpace::new(boundaries.take().unwrap_or_default(), fixed, parameters);
            (name.clone(), space)
        };
        let spaces = design.spaces.iter().map(space).collect();
        let database = Database::new(parameters.clone(), spaces);
        Ok(Runner::new(vec![design], database, options.transaction_rows))
    }

    /// Returns the boundaries that divide the keys of the first rows evenly.
    fn presplits(
        &self,
        strategy: Strategy,
        count: usize,
        first: &[Arrived],
    ) -> Result<Vec<StartKey>, SimulateError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        // Generated values use another seed, since they are not known when boundaries are planned.
        let mut design = self.design(strategy, &[], u64::MAX)?;
        let mut keys = Vec::new();
        for rows in first {
            let made = design.entries(rows)?;
            let Some(table) = made.first() else { continue };
            for row in 0..rows.batch.num_rows().min(PRESPLIT_ROWS - keys.len()) {
                let mut bytes = Vec::new();
                let lead = table.entry(row, &mut bytes).map_or(0, |(key, _)| key.lead);
                keys.push(StartKey { bytes, lead });
            }
        }
        keys.sort_unstable();
        let at = |number: usize| keys.get(number * keys.len() / (count + 1)).cloned();
        Ok((1..=count).filter_map(at).collect())
    }
}
