//! Replays an export, row by row in arrival order, under several strategies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::prelude::{IntoParallelRefMutIterator, ParallelIterator};

use crate::simulate::advice::{advise, recommend};
use crate::simulate::arrivals::{Arrived, Block, Rate, replay};
use crate::simulate::columns::{TableColumns, nullable, timed_uuids};
use crate::simulate::error::SimulateError;
use crate::simulate::load::{load, notes_on_time, unknown_order};
use crate::simulate::reads::{IndexHits, Reads, read_length};
use crate::simulate::result::{SimulateOptions, Simulation, StrategyReport};
use crate::simulate::runner::{Replayed, Runner};
use crate::simulate::scale::{MIN_HOT_ROWS, scaled, unsure};
use crate::simulate::splits::ModelParameters;
use crate::simulate::strategy::{Strategy, StrategyName};
use crate::simulate::survey::{Order, Source, Survey, survey};
use crate::simulate::table::Table;
use evenkeel_input::source::Export;
use evenkeel_model::remark::Remark;
use evenkeel_model::units::Micros;
use evenkeel_model::values::columns_to_read;
use evenkeel_stats::sketch::{DistinctKeys, KeyCounter, MAX_BYTES_ON_DISK, key_identities};

/// Memory for counting distinct keys; beyond it they spill to disk.
const KEY_BYTES: usize = 256 << 20;
/// The first reading of an export, and the clock and scale that follow from it.
struct Plan<'a> {
    export: &'a Export,
    options: &'a SimulateOptions,
    columns: TableColumns<'a>,
    source: Source<'a>,
    survey: Survey,
    parameters: ModelParameters,
    rate: Option<Rate>,
    read_length: Option<Micros>,
    unsure: Option<String>,
    notes: Vec<Remark>,
}

impl<'a> Plan<'a> {
    fn new(
        export: &'a Export,
        options: &'a SimulateOptions,
        stop: &AtomicBool,
    ) -> Result<Self, SimulateError> {
        let mut notes: Vec<Remark> = export.notes().iter().map(Remark::from).collect();
        let columns = TableColumns::resolve(export.columns(), options, &mut notes)?;
        let time = columns.time;
        let projection = columns_to_read(columns.all, &columns.named());
        let mut source = Source { export, projection, time, order: Order::Export };
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
        if rows_per_window < MIN_HOT_ROWS {
            let text = format!(
                "a window has {rows_per_window:.1} rows of the export on average, so that the hottest \
                    split may have many of them by chance; use a longer --window"
            );
            notes.push(Remark::new("few_rows_per_window", text));
        }
        let read_length = survey.range.filter(|_| time.is_some()).map(read_length);
        Ok(Self { export, options, columns, source, survey, parameters, rate, read_length, unsure, notes })
    }

    /// The second reading: inserts all rows under every strategy.
    fn replay(&self, progress: &(dyn Fn(u64) + Sync), stop: &AtomicBool) -> Result<Replay, SimulateError> {
        let table = Table {
            columns: self.columns.all,
            key: &self.columns.key,
            partition_key: &self.columns.partition_key,
            indexes: &self.columns.indexes,
            judged: self.options.judged,
            shard: &self.columns.shard,
        };
        let in_key = self.columns.in_key();
        let mut counts = RowCounts {
            rows: 0,
            keys: KeyCounter::new(),
            hits: IndexHits::new(&self.survey, &self.columns.indexes, self.columns.time, self.read_length),
        };
        let mut runners: Vec<Runner> = Vec::new();
        let mut each = |block: Block| -> Result<(), SimulateError> {
            if runners.is_empty() {
                for strategy in &self.options.strategies {
                    runners.push(table.runner(*strategy, self.options, &self.parameters, &block.arrived)?);
                }
            }
            let replay = || runners.par_iter_mut().try_for_each(|runner| runner.insert_block(&block));
            let (counted, replayed) = rayon::join(|| counts.add(&block, &in_key), replay);
            counted?;
            replayed?;
            progress(counts.rows);
            if stop.load(Ordering::Relaxed) { Err(SimulateError::Interrupted) } else { Ok(()) }
        };
        let sources = std::slice::from_ref(&self.source);
        replay(sources, self.options.on_unreadable, self.rate, self.parameters.window, &mut each)?;
        Ok(Replay { counts, runners })
    }

    fn report(mut self, replay: Replay, started: Instant) -> Result<Simulation, SimulateError> {
        let Replay { counts: RowCounts { rows, keys, hits }, runners } = replay;
        self.notes.extend(note_on_repeated_keys(rows, keys.finish(0)?.distinct));
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
            hits: &hits.rows,
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
struct Replay {
    counts: RowCounts,
    /// The replay of each strategy.
    runners: Vec<Runner>,
}

/// Counts of the rows that are the same for every strategy.
struct RowCounts {
    rows: u64,
    keys: KeyCounter<()>,
    hits: IndexHits,
}

impl RowCounts {
    fn add(&mut self, block: &Block, in_key: &[usize]) -> Result<(), SimulateError> {
        for Arrived { batch, .. } in &block.arrived {
            self.hits.count(batch)?;
            self.rows += batch.num_rows() as u64;
            let parts = in_key.iter().filter_map(|column| batch.columns().get(*column));
            self.keys.add(&key_identities(parts), |_| ());
            if self.keys.exact_bytes_after(1 << 17).is_some_and(|bytes| bytes > KEY_BYTES) {
                self.keys.reduce(MAX_BYTES_ON_DISK)?;
            }
        }
        Ok(())
    }
}

/// If the number of distinct keys is an estimate, only its certain part is reported.
fn note_on_repeated_keys(rows: u64, distinct: DistinctKeys) -> Option<Remark> {
    let repeated = rows.saturating_sub(if distinct.exact { distinct.estimate } else { distinct.upper });
    (repeated > 0).then(|| {
        let text = format!(
            "{} {repeated} rows have a key that exists already: Spanner refuses to insert them; they \
                count as writes here",
            if distinct.exact { "exactly" } else { "at least" }
        );
        Remark::new("keys_repeated", text)
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
        reads: reads.table_reads(design, &spaces)?,
        indexes: reads.index_reports(design, &spaces, &outcome, counted)?,
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
    let replay = plan.replay(progress, stop)?;
    plan.report(replay, started)
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
