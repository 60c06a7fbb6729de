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
use crate::simulate::scale::{FEWEST_HOT_ROWS, scaled, unsure};
use crate::simulate::splits::ModelParameters;
use crate::simulate::strategy::{Strategy, StrategyName};
use crate::simulate::survey::{Order, Source, Survey, survey};
use crate::simulate::table::Table;
use evenkeel_input::source::Export;
use evenkeel_model::units::Micros;
use evenkeel_model::values::columns_to_read;
use evenkeel_stats::sketch::{DistinctKeys, KeyCounter, MOST_BYTES_ON_DISK, key_identities};

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
    notes: Vec<String>,
}

impl<'a> Plan<'a> {
    fn new(
        export: &'a Export,
        options: &'a SimulateOptions,
        stop: &AtomicBool,
    ) -> Result<Self, SimulateError> {
        let mut notes: Vec<String> = export.notes().iter().map(ToString::to_string).collect();
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
                self.keys.reduce(MOST_BYTES_ON_DISK)?;
            }
        }
        Ok(())
    }
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
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;
    use crate::simulate::index::parse_key_order;
    use crate::simulate::key::KeyOrder;
    use crate::simulate::result::{RateSource, ReadKind};
    use evenkeel_input::source::{InputOptions, InputPath, OnUnreadable};
    use evenkeel_model::finding::FindingCode;
    use evenkeel_model::table::ColumnType;

    /// Rows of a table: time in seconds, user, and note, which may be empty.
    fn export(dir: &Path, rows: &[(u32, u32, &str)]) -> Export {
        let mut text = "at,user,note\n".to_owned();
        for (at, user, note) in rows {
            let (minutes, seconds) = (at / 60, at % 60);
            writeln!(text, "2024-05-06T{:02}:{:02}:{seconds:02}Z,{user},{note}", minutes / 60, minutes % 60)
                .unwrap();
        }
        let path = dir.join("rows.csv");
        std::fs::write(&path, text).unwrap();
        let types = [("at", ColumnType::Timestamp), ("user", ColumnType::Int64), ("note", ColumnType::Utf8)];
        let types = types.map(|(name, column_type)| (name.to_owned(), column_type)).into();
        Export::open(&[InputPath::File(path)], InputOptions::default(), &types).unwrap()
    }

    fn key(text: &str) -> Vec<KeyOrder> {
        parse_key_order(text).unwrap()
    }

    /// One row per second in each split is a score of 100; windows have ten seconds.
    fn options(primary_key: &str, strategies: &[&str]) -> SimulateOptions {
        SimulateOptions {
            primary_key: key(primary_key),
            partition_key: Vec::new(),
            indexes: Vec::new(),
            strategies: strategies.iter().map(|name| name.parse().unwrap()).collect(),
            parameters: ModelParameters {
                split_rate: 2.0,
                window: Micros::new(10_000_000),
                ..ModelParameters::default()
            },
            judged: None,
            shard_columns: Vec::new(),
            find_scale: true,
            rate: None,
            time: None,
            owner: None,
            presplits: 0,
            transaction_rows: 1,
            on_unreadable: OnUnreadable::Fail,
        }
    }

    fn run(rows: &[(u32, u32, &str)], options: &SimulateOptions) -> Result<Simulation, SimulateError> {
        run_until(rows, options, &AtomicBool::new(false))
    }

    fn run_until(
        rows: &[(u32, u32, &str)],
        options: &SimulateOptions,
        stop: &AtomicBool,
    ) -> Result<Simulation, SimulateError> {
        let dir = tempfile::tempdir().unwrap();
        simulate(&export(dir.path(), rows), options, &|_| (), stop)
    }

    /// Eight rows in each of 600 seconds, of 97 users.
    fn steady() -> Vec<(u32, u32, &'static str)> {
        (0..4800).map(|row| (row / 8, row * 7919 % 97, if row % 3 == 0 { "" } else { "x" })).collect()
    }

    #[test]
    fn every_strategy_gets_every_row_once() {
        let rows = steady();
        let mut options =
            options("at, user, note", &["declared", "swapped", "desc", "shard-8", "uuid4", "hash-16"]);
        options.indexes =
            vec!["by_note(note) null_filtered".parse().unwrap(), "by_user(user)".parse().unwrap()];
        options.transaction_rows = 10;
        let simulation = run(&rows, &options).unwrap();
        assert_eq!(simulation.rows, 4800);
        // Found by the values of the last row.
        let (_, last_user, last_note) = *rows.last().unwrap();
        let with_note = rows.iter().filter(|row| !row.2.is_empty()).count() as u64;
        let same_note = rows.iter().filter(|row| row.2 == last_note).count() as u64;
        let same_user = rows.iter().filter(|row| row.1 == last_user).count() as u64;
        for report in &simulation.strategies {
            let outcome = &report.outcome;
            assert_eq!(outcome.transactions, 480);
            let splits = &outcome.spaces[0].splits;
            assert_eq!(splits.iter().map(|split| split.rows).sum::<u64>(), 4800, "{}", report.strategy);
            assert_eq!(splits.iter().filter(|split| split.starts_at.is_none()).count(), 1);
            if !report.is_range {
                assert_eq!((splits.len(), report.indexes.len()), (16, 0));
                continue;
            }
            let [by_note, by_user] = report.indexes.as_slice() else { panic!("{}", report.strategy) };
            assert_eq!((by_note.entries, by_note.matching_rows), (with_note, same_note));
            assert_eq!((by_user.entries, by_user.matching_rows, by_user.back_joins), (4800, same_user, 0));
            assert_eq!(outcome.whole.rows, 4800 * 2 + with_note);
        }
    }

    #[test]
    fn hash_partitions_have_the_rows_that_their_placement_gives_them() {
        let rows = steady();
        let mut options = options("at, user, note", &["hash-16"]);
        options.partition_key = vec!["user".to_owned()];
        let simulation = run(&rows, &options).unwrap();
        let splits = &simulation.strategies[0].outcome.spaces[0].splits;
        // All rows of a user are in one partition, so each size is a sum of users' sizes; and the
        // largest share of a window is at least that of the largest partition.
        let mut users: BTreeMap<u32, u64> = BTreeMap::new();
        rows.iter().for_each(|row| *users.entry(row.1).or_default() += 1);
        let largest = splits.iter().map(|split| split.rows).max().unwrap();
        assert!(largest >= *users.values().max().unwrap() && largest < 4800, "{largest}");
        assert!(simulation.strategies[0].outcome.spaces[0].hottest_share >= largest as f64 / 4800.0);
        assert_eq!(simulation.strategies[0].outcome.whole.by_load, 0);
    }

    #[test]
    fn a_key_that_follows_time_is_found_and_another_recommended() {
        let simulation = run(&steady(), &options("at, user", &["declared", "shard-16"])).unwrap();
        let [declared, shards] = simulation.strategies.as_slice() else { panic!() };
        // Eight rows per second go to the last split; two would make it hot.
        assert!((declared.outcome.whole.highest_score - 400.0).abs() < 1e-9);
        assert!(
            declared.outcome.spaces[0].hottest_share > 0.99 && shards.outcome.spaces[0].hottest_share < 0.5
        );
        assert_eq!(simulation.recommended.map(|name| name.to_string()).as_deref(), Some("shard-16"));
        assert!(simulation.findings.iter().any(|finding| finding.code == FindingCode::MonotonicKey));
        assert!((simulation.load.rows_per_second.unwrap() - 8.0).abs() < 0.1);
        assert_eq!(simulation.load.source, RateSource::Measured);
        let rows_read = |report: &StrategyReport| {
            report.reads.iter().map(|read| (read.kind, read.ranges)).collect::<Vec<_>>()
        };
        let reads = [(ReadKind::TimeRange, Some(1)), (ReadKind::History, None), (ReadKind::Row, Some(1))];
        assert_eq!(rows_read(declared), reads);
        assert_eq!(rows_read(shards)[0], (ReadKind::TimeRange, Some(16)));
    }

    #[test]
    fn rows_out_of_order_are_replayed_in_order() {
        let rows = steady();
        let mut shuffled = rows.clone();
        shuffled.sort_by_key(|row| (row.1 * 31 % 89, row.0));
        let options = options("at, user, note", &["declared", "swapped"]);
        let (expected, found) = (run(&rows, &options).unwrap(), run(&shuffled, &options).unwrap());
        assert!(found.load.is_sorted_by_time && !expected.load.is_sorted_by_time);
        for (expected, found) in expected.strategies.iter().zip(&found.strategies) {
            assert_eq!(found.outcome.spaces[0].rows, expected.outcome.spaces[0].rows);
            // The order within a second differs, but not the rows of a window.
            assert_eq!(found.outcome.whole.windows, expected.outcome.whole.windows);
            assert_eq!(found.outcome.timeline.periods.len(), expected.outcome.timeline.periods.len());
            let rows = |report: &StrategyReport| {
                report.outcome.timeline.periods.iter().map(|period| period.rows).collect::<Vec<_>>()
            };
            assert_eq!(rows(found), rows(expected));
        }
    }

    #[test]
    fn repeated_keys_are_counted() {
        let rows = [(0, 1, "a"), (1, 2, "b"), (2, 1, "c"), (3, 1, "d")];
        let simulation = run(&rows, &options("user", &["declared"])).unwrap();
        assert!(simulation.notes.iter().any(|note| note.starts_with("exactly 2 rows have a key")));
        assert!(simulation.unsure.is_some() && simulation.recommended.is_none());
        let simulation = run(&rows, &options("at", &["declared"])).unwrap();
        assert!(!simulation.notes.iter().any(|note| note.contains("have a key")));
    }

    #[test]
    fn unsuitable_options_are_refused() {
        let rows = [(0, 1, "a"), (1, 2, "b")];
        let error = |primary_key, strategy| run(&rows, &options(primary_key, &[strategy])).unwrap_err();
        assert!(matches!(error("nobody", "declared"), SimulateError::UnknownColumn { .. }));
        assert!(matches!(error("user, USER", "declared"), SimulateError::Repeated { .. }));
        assert!(matches!(error("user", "swapped"), SimulateError::Unsuited { .. }));
        assert!(matches!(error("user", "desc"), SimulateError::Unsuited { .. }));
        let mut twice = options("user", &["declared"]);
        twice.indexes = vec!["i(at)".parse().unwrap(), "i(user)".parse().unwrap()];
        assert!(matches!(run(&rows, &twice), Err(SimulateError::RepeatedIndex { .. })));
        let no_time = SimulateOptions { time: Some("note".to_owned()), ..options("user", &["declared"]) };
        assert!(matches!(run(&rows, &no_time), Err(SimulateError::Time { .. })));
        let stopped = AtomicBool::new(true);
        let stopped = run_until(&rows, &options("user", &["declared"]), &stopped);
        assert!(matches!(stopped, Err(SimulateError::Interrupted)));
    }
}
