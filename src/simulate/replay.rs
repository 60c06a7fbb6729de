//! An export, row by row in the order of arrival, under several strategies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, Scalar, TimestampMicrosecondArray};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{cast, max, min};
use arrow::datatypes::TimestampMicrosecondType;
use rayon::prelude::{IntoParallelRefMutIterator, ParallelIterator};
use serde::Serialize;

use crate::simulate::design::{Asked, Design, KeyColumn};
use crate::simulate::index::{Index, IndexSpec};
use crate::simulate::splits::{Database, KeySpace, ModelParameters, Outcome};
use crate::simulate::{SimulateError, Strategy};
use crate::source::{Export, OnUnreadable};
use crate::table::Column;
use crate::units::Micros;
use crate::values::{instants, row_bytes, width};

/// Batches that are replayed together.
const BATCHES_TOGETHER: usize = 16;
/// Bytes of these, about, where rows are wide.
const BYTES_TOGETHER: usize = 16 << 20;
/// Full splits that the whole export makes where no scale is given.
const USUAL_SPLITS: f64 = 16.0;

/// A column of the primary key, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyOrder {
    /// The column.
    pub column: String,
    /// Whether it descends.
    pub descending: bool,
}

/// What is simulated.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The declared primary key.
    pub primary_key: Vec<KeyOrder>,
    /// Columns that hash partitions hash; where there are none, those of the primary key.
    pub partition_key: Vec<String>,
    /// Indexes of the table, whatever the strategy.
    pub indexes: Vec<IndexSpec>,
    /// The strategies.
    pub strategies: Vec<Strategy>,
    /// The model. Its scale counts only where it is not to be found.
    pub parameters: ModelParameters,
    /// Whether the scale is found, so that the export makes sixteen full splits.
    pub find_scale: bool,
    /// Rows of the real table per second, instead of the times of the export.
    pub rate: Option<f64>,
    /// The column of time; the only one where none is named.
    pub time: Option<String>,
    /// The column whose history is read; the first of the key that is no time where none is named.
    pub owner: Option<String>,
    /// Boundaries from the beginning, from the keys of the first rows.
    pub presplits: usize,
    /// Rows of a transaction.
    pub transaction_rows: u64,
    /// What is done with rows that cannot be read.
    pub on_unreadable: OnUnreadable,
}

/// What a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadKind {
    /// The rows of the newest stretch of time.
    TimeRange,
    /// The rows of one owner.
    History,
    /// One row by its declared key.
    Row,
}

/// What a read costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadReport {
    /// What it asks for.
    pub kind: ReadKind,
    /// Splits that it touches.
    pub splits: usize,
    /// Ranges of keys that it visits; none where it has to look through all.
    pub ranges: Option<usize>,
    /// Whether the newest rows come first, or last; none where they are in no order.
    pub newest_first: Option<bool>,
}

/// What an index costs and gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IndexReport {
    /// Its name.
    pub name: String,
    /// Whether its entries stand among the rows of the table.
    pub interleaved: bool,
    /// Its entries.
    pub entries: u64,
    /// Share of the entries that went to the hottest split of their window; of an interleaved index, that of the table.
    pub hottest_share: f64,
    /// Bytes of its entries.
    pub bytes: u64,
    /// Splits that a read of its first column touches: the newest stretch where that is the column of time, else one value.
    pub splits: usize,
    /// Rows that such a read finds.
    pub found: u64,
    /// Rows that it has to look up in the table for the columns that the index does not hold.
    pub back_joins: u64,
}

/// What became of one strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrategyReport {
    /// Its name.
    pub strategy: String,
    /// In words.
    pub words: String,
    /// Whether it models Spanner; else it is what this store does.
    pub is_range: bool,
    /// What writes did.
    pub outcome: Outcome,
    /// What reads cost in the end.
    pub reads: Vec<ReadReport>,
    /// Its indexes.
    pub indexes: Vec<IndexReport>,
}

/// A simulation: a model, not a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulation {
    /// Always true: the figures are those of a model.
    pub model: bool,
    /// The inputs.
    pub inputs: Vec<String>,
    /// Rows.
    pub rows: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// The declared key.
    pub primary_key: Vec<KeyOrder>,
    /// The column of time.
    pub time: Option<String>,
    /// Rows of the real table per second, where that was given.
    pub rate: Option<f64>,
    /// Rows that came more than one window after a later one.
    pub late_rows: u64,
    /// Length of the stretch of time that is read.
    pub read_length: Option<Micros>,
    /// The column whose history is read.
    pub owner: Option<String>,
    /// Rows of a transaction.
    pub transaction_rows: u64,
    /// Boundaries from the beginning.
    pub presplits: usize,
    /// What is assumed.
    pub parameters: ModelParameters,
    /// The strategies.
    pub strategies: Vec<StrategyReport>,
    /// What else is worth knowing, one sentence each.
    pub notes: Vec<String>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// What one reading tells before anything is simulated.
#[derive(Debug, Default)]
struct Survey {
    rows: u64,
    bytes: u64,
    range: Option<(i64, i64)>,
    late_rows: u64,
    without_time: u64,
    last_row: Option<RecordBatch>,
}

/// When rows come.
#[derive(Debug, Clone, Copy)]
enum Clock {
    Column(usize),
    /// From a point in time on, with so many microseconds between rows.
    Rate {
        from: i64,
        between: f64,
    },
}

/// Rows with what all strategies need of them.
struct Arrived {
    batch: RecordBatch,
    times: Vec<i64>,
    windows: Vec<i64>,
}

/// One strategy under way.
struct Runner {
    strategy: Strategy,
    design: Design,
    /// Entries and bytes of each plan.
    counted: Vec<(u64, u64)>,
    database: Database,
    transaction_rows: u64,
    rows_left: u64,
    key: Vec<u8>,
}

/// Replays an export. `progress` is called with the rows replayed so far; `stop` ends it before its end.
///
/// # Errors
/// [`SimulateError`] where the export cannot be read, or a column that was named does not suit.
pub fn simulate(
    export: &Export,
    options: &SimulateOptions,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<Simulation, SimulateError> {
    let started = Instant::now();
    let columns = export.columns();
    let key = key_columns(columns, &options.primary_key)?;
    let all: Vec<usize> = key.iter().map(|part| part.column).collect();
    let partition_key = match options.partition_key.as_slice() {
        [] => all.clone(),
        names => names.iter().map(|name| position(columns, name)).collect::<Result<_, _>>()?,
    };
    let time = time_column(columns, options.time.as_deref())?;
    if time.is_none() && options.rate.is_none() {
        return Err(SimulateError::NoClock);
    }
    let owner = match &options.owner {
        Some(name) => Some(position(columns, name)?),
        None => key
            .iter()
            .map(|part| part.column)
            .find(|column| columns.get(*column).is_some_and(|column| !column.column_type.is_time())),
    };
    let mut notes = export.notes().to_vec();
    let indexes = indexes_of(columns, &key, &options.indexes, &mut notes)?;
    let mut named = all.clone();
    named.extend(&partition_key);
    named.extend(time.iter().chain(&owner));
    named.extend(indexes.iter().flat_map(|index| index.columns.iter().map(|part| part.column)));
    let asked = asked_columns(columns, &named);
    let survey = survey(export, options, &asked, time, stop)?;
    let mut parameters = options.parameters.clone();
    if options.find_scale {
        let scale = USUAL_SPLITS * parameters.split_size.0 as f64 / survey.bytes.max(1) as f64;
        parameters.scale = round_to_two_digits(scale);
    }
    let clock = match options.rate {
        None => Clock::Column(time.unwrap_or_default()),
        Some(rate) => Clock::Rate {
            from: survey.range.map_or(0, |range| range.0),
            between: 1e6 * parameters.scale / rate,
        },
    };
    if options.rate.is_none() {
        if survey.late_rows * 20 > survey.rows {
            notes.push(format!(
                "{:.0} % of the rows come more than a window after a later one: the clock does not go back for them. Where the export is \
                 not in the order of arrival, sort it, or give --rate",
                100.0 * survey.late_rows as f64 / survey.rows as f64
            ));
        }
        if survey.without_time > 0 {
            notes.push(format!(
                "{} rows have no time: they come with the row before them",
                survey.without_time
            ));
        }
    }
    let mut designs = Vec::new();
    for strategy in &options.strategies {
        check_suited(*strategy, columns, &key)?;
        // Column tables have no indexes.
        let indexes: &[Index] = if strategy.is_range() { &indexes } else { &[] };
        let design = Design::new(*strategy, columns, &key, &partition_key, indexes, parameters.seed)?;
        designs.push((*strategy, design));
    }
    let mut first = None;
    let mut runners = Vec::new();
    let mut rows = 0;
    let mut clock_now = i64::MIN;
    let read_length = survey.range.filter(|_| time.is_some()).map(read_length);
    let mut found = Found::new(&survey, &indexes, time, read_length);
    let mut replay = |batches: Vec<RecordBatch>| -> Result<(), SimulateError> {
        let mut arrived = Vec::new();
        for batch in batches {
            let times = times(&batch, clock, rows)?;
            rows += batch.num_rows() as u64;
            let window = |micros: &i64| {
                clock_now = clock_now.max(parameters.window.slice_of(*micros));
                clock_now
            };
            let windows = times.iter().map(window).collect();
            found.count(&batch)?;
            arrived.push(Arrived { batch, times, windows });
        }
        if first.is_none() {
            for (strategy, design) in std::mem::take(&mut designs) {
                let presplits = match strategy.is_range() {
                    true => presplits(strategy, columns, &key, &partition_key, options.presplits, &arrived)?,
                    false => design.partition_boundaries()?,
                };
                let mut boundaries = Some(presplits);
                let space = |name: &String| {
                    let fixed = !strategy.is_range() && boundaries.is_some();
                    let space =
                        KeySpace::new(boundaries.take().unwrap_or_default(), fixed, parameters.servers);
                    (name.clone(), space)
                };
                let spaces = design.spaces.iter().map(space).collect();
                let database = Database::new(parameters.clone(), spaces);
                let transaction_rows = options.transaction_rows.max(1);
                let counted = vec![(0, 0); design.plans.len()];
                let key = Vec::new();
                runners.push(Runner {
                    strategy,
                    design,
                    counted,
                    database,
                    transaction_rows,
                    rows_left: 0,
                    key,
                });
            }
            first = Some(());
        }
        runners.par_iter_mut().try_for_each(|runner| runner.take(&arrived))?;
        progress(rows);
        if stop.load(Ordering::Relaxed) { Err(SimulateError::Interrupted) } else { Ok(()) }
    };
    read_blocks(export, options.on_unreadable, &asked, &mut replay)?;
    if rows == 0 {
        return Err(SimulateError::NoRows);
    }
    let reads = Reads {
        survey: &survey,
        columns,
        key: &all,
        time,
        owner,
        read_length,
        indexes: &indexes,
        found: &found.rows,
    };
    let strategies = runners.into_iter().map(|runner| runner.finish(&reads)).collect::<Result<_, _>>()?;
    let name_of = |column: usize| columns.get(column).map(|column| column.name.clone());
    Ok(Simulation {
        model: true,
        inputs: export.input_names(),
        rows,
        bytes: survey.bytes,
        primary_key: options.primary_key.clone(),
        time: time.and_then(name_of),
        rate: options.rate,
        late_rows: survey.late_rows,
        read_length,
        owner: owner.and_then(name_of),
        transaction_rows: options.transaction_rows,
        presplits: options.presplits,
        parameters,
        strategies,
        notes,
        seconds: started.elapsed().as_secs_f64(),
    })
}

impl Runner {
    fn take(&mut self, arrived: &[Arrived]) -> Result<(), SimulateError> {
        for rows in arrived {
            let entries = self.design.entries(&rows.batch, &rows.times)?;
            for (row, window) in rows.windows.iter().enumerate() {
                self.database.advance(*window);
                if self.rows_left == 0 {
                    self.database.begin_transaction();
                    self.rows_left = self.transaction_rows;
                }
                self.rows_left -= 1;
                for ((plan, entries), counted) in
                    self.design.plans.iter().zip(&entries).zip(&mut self.counted)
                {
                    if let Some((key, bytes)) = entries.entry(row, &mut self.key) {
                        self.database.insert(plan.space, key, bytes);
                        *counted = (counted.0 + 1, counted.1 + u64::from(bytes));
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(self, reads: &Reads<'_>) -> Result<StrategyReport, SimulateError> {
        let Self { strategy, design, counted, database, .. } = self;
        let (outcome, spaces) = database.finish();
        Ok(StrategyReport {
            strategy: strategy.to_string(),
            words: strategy.words(),
            is_range: strategy.is_range(),
            reads: reads.of_table(&design, &spaces)?,
            indexes: reads.of_indexes(&design, &spaces, &outcome, &counted)?,
            outcome,
        })
    }
}

/// Rows that reads through indexes find.
struct Found {
    /// Of each index, the column and the values that are looked for.
    asked: Vec<Wanted>,
    rows: Vec<u64>,
}

enum Wanted {
    Equal(usize, ArrayRef),
    /// From a point in time to another.
    Range(usize, i64, i64),
    Nothing,
}

impl Found {
    fn new(survey: &Survey, indexes: &[Index], time: Option<usize>, length: Option<Micros>) -> Self {
        let wanted = |index: &Index| {
            let Some(first) = index.columns.first().map(|part| part.column) else { return Wanted::Nothing };
            match (survey.range, length, survey.last_row.as_ref().and_then(|row| row.columns().get(first))) {
                (Some((_, last)), Some(length), _) if time == Some(first) => {
                    Wanted::Range(first, last - length.get() + 1, last)
                }
                (_, _, Some(value)) => Wanted::Equal(first, Arc::clone(value)),
                _ => Wanted::Nothing,
            }
        };
        Self { asked: indexes.iter().map(wanted).collect(), rows: vec![0; indexes.len()] }
    }

    fn count(&mut self, batch: &RecordBatch) -> Result<(), SimulateError> {
        for (asked, rows) in self.asked.iter().zip(&mut self.rows) {
            *rows += match asked {
                Wanted::Nothing => 0,
                Wanted::Equal(column, value) => match batch.columns().get(*column) {
                    Some(array) => {
                        let same = not_distinct(array, &Scalar::new(Arc::clone(value)))?;
                        same.true_count() as u64
                    }
                    None => 0,
                },
                Wanted::Range(column, first, last) => {
                    let times = batch.columns().get(*column).and_then(instants);
                    let times = times.as_ref().map(|times| times.as_primitive::<TimestampMicrosecondType>());
                    let within = |times: &TimestampMicrosecondArray| {
                        times.iter().flatten().filter(|micros| (first..=last).contains(&micros)).count()
                    };
                    times.map_or(0, within) as u64
                }
            };
        }
        Ok(())
    }
}

/// The reads that are weighed.
struct Reads<'a> {
    survey: &'a Survey,
    columns: &'a [Column],
    key: &'a [usize],
    time: Option<usize>,
    owner: Option<usize>,
    read_length: Option<Micros>,
    indexes: &'a [Index],
    /// Rows that a read through each index finds.
    found: &'a [u64],
}

impl Reads<'_> {
    /// Through each index: its newest rows, or those with one value.
    fn of_indexes(
        &self,
        design: &Design,
        spaces: &[KeySpace],
        outcome: &Outcome,
        counted: &[(u64, u64)],
    ) -> Result<Vec<IndexReport>, SimulateError> {
        let Some(values) = self.survey.last_row.clone() else { return Ok(Vec::new()) };
        let mut reports = Vec::new();
        let plans = design.plans.iter().zip(counted).skip(1);
        for ((index, (plan, (entries, bytes))), found) in self.indexes.iter().zip(plans).zip(self.found) {
            let first = index.columns.first().map(|part| part.column);
            let range = match (first == self.time, self.time, self.survey.range, self.read_length) {
                (true, Some(time), Some((_, last)), Some(length)) => {
                    Some((time, self.bounds(time, last, length)?))
                }
                _ => None,
            };
            let fixed = if range.is_some() { Vec::new() } else { first.into_iter().collect() };
            let ranges = design.ranges(plan, &Asked { fixed, values: values.clone(), range })?;
            let space = spaces.get(plan.space);
            let splits = space
                .map_or(0, |space| ranges.as_deref().map_or(space.len(), |ranges| space.touched(ranges)));
            let covers = (0..self.columns.len()).all(|column| {
                index.storing.contains(&column)
                    || self.key.contains(&column)
                    || index.columns.iter().any(|part| part.column == column)
            });
            reports.push(IndexReport {
                name: index.name.clone(),
                interleaved: plan.space == 0,
                entries: *entries,
                hottest_share: outcome.spaces.get(plan.space).map_or(0.0, |space| space.hottest_share),
                bytes: *bytes,
                splits,
                found: *found,
                back_joins: if covers { 0 } else { *found },
            });
        }
        Ok(reports)
    }

    fn of_table(&self, design: &Design, spaces: &[KeySpace]) -> Result<Vec<ReadReport>, SimulateError> {
        let (Some(table), Some(keys)) = (spaces.first(), design.plans.first()) else { return Ok(Vec::new()) };
        let ranges_of = |asked: &Asked| design.ranges(keys, asked);
        let Some(values) = self.survey.last_row.clone() else { return Ok(Vec::new()) };
        let asked = |fixed: Vec<usize>, range| Asked { fixed, values: values.clone(), range };
        let newest_first = self.time.and_then(|time| keys.descends(time));
        let report = |kind, asked: Asked, newest_first| {
            let ranges = ranges_of(&asked)?;
            let splits = ranges.as_deref().map_or(table.len(), |ranges| table.touched(ranges));
            Ok::<_, SimulateError>(ReadReport {
                kind,
                splits,
                ranges: ranges.map(|ranges| ranges.len()),
                newest_first,
            })
        };
        let mut reports = Vec::new();
        if let (Some(time), Some((_, last)), Some(length)) = (self.time, self.survey.range, self.read_length)
        {
            let bounds = self.bounds(time, last, length)?;
            let in_order = newest_first.filter(|_| keys.leads_with(time));
            reports.push(report(ReadKind::TimeRange, asked(Vec::new(), Some((time, bounds))), in_order)?);
        }
        if let Some(owner) = self.owner {
            let in_order = newest_first.filter(|_| keys.leads_with(owner));
            reports.push(report(ReadKind::History, asked(vec![owner], None), in_order)?);
        }
        reports.push(report(ReadKind::Row, asked(self.key.to_vec(), None), None)?);
        Ok(reports)
    }

    /// The bounds of the newest rows, in the type of the column: the first, the one after the last, and each less one.
    fn bounds(&self, time: usize, last: i64, length: Micros) -> Result<ArrayRef, SimulateError> {
        let column_type = self.columns.get(time).map(|column| column.column_type.arrow_type());
        let column_type = column_type.ok_or(SimulateError::NoRows)?;
        let is_day = matches!(column_type, arrow::datatypes::DataType::Date32);
        let unit = if is_day { Micros::DAY.get() } else { 1 };
        let first = last - length.get() + unit;
        let after = last + unit;
        let bounds = TimestampMicrosecondArray::from(vec![first, after, first - unit, after - unit]);
        Ok(cast(&(Arc::new(bounds) as ArrayRef), &column_type)?)
    }
}

/// An hour where the export spans two, else the tenth part of it.
fn read_length((first, last): (i64, i64)) -> Micros {
    let span = last - first;
    if span >= 2 * Micros::HOUR.get() { Micros::HOUR } else { Micros::new((span / 10).max(1)) }
}

fn round_to_two_digits(number: f64) -> f64 {
    if number <= 0.0 || !number.is_finite() {
        return 1.0;
    }
    let unit = 10f64.powf(number.log10().floor() - 1.0);
    (number / unit).round() * unit
}

fn position(columns: &[Column], name: &str) -> Result<usize, SimulateError> {
    columns.iter().position(|column| column.name == name).ok_or_else(|| SimulateError::UnknownColumn {
        column: name.to_owned(),
        known: columns.iter().map(|column| column.name.clone()).collect(),
    })
}

fn key_columns(columns: &[Column], key: &[KeyOrder]) -> Result<Vec<KeyColumn>, SimulateError> {
    let mut found: Vec<KeyColumn> = Vec::new();
    for part in key {
        let column = position(columns, &part.column)?;
        let column_type = columns.get(column).map(|column| column.column_type);
        if let Some(column_type) = column_type.filter(|column_type| !column_type.is_key_type()) {
            return Err(SimulateError::KeyType { column: part.column.clone(), column_type });
        }
        if found.iter().any(|known| known.column == column) {
            return Err(SimulateError::Repeated { column: part.column.clone() });
        }
        found.push(KeyColumn { column, descending: part.descending });
    }
    Ok(found)
}

fn indexes_of(
    columns: &[Column],
    key: &[KeyColumn],
    specs: &[IndexSpec],
    notes: &mut Vec<String>,
) -> Result<Vec<Index>, SimulateError> {
    let mut indexes: Vec<Index> = Vec::new();
    for spec in specs {
        if indexes.iter().any(|index| index.name == spec.name) {
            return Err(SimulateError::RepeatedIndex { name: spec.name.clone() });
        }
        let of_index = key_columns(columns, &spec.columns)?;
        if spec.interleaved && of_index.first() != key.first() {
            notes.push(format!(
                "index {} is not interleaved: its first column is not that of the primary key, so that its entries have no place among the \
                 rows",
                spec.name
            ));
        }
        indexes.push(Index {
            name: spec.name.clone(),
            columns: of_index,
            storing: spec.storing.iter().map(|name| position(columns, name)).collect::<Result<_, _>>()?,
            null_filtered: spec.null_filtered,
            interleaved: spec.interleaved,
            shards: spec.shards,
        });
    }
    Ok(indexes)
}

/// The column of time that is named, or the only point in time, or the only date.
fn time_column(columns: &[Column], name: Option<&str>) -> Result<Option<usize>, SimulateError> {
    if let Some(name) = name {
        let found = position(columns, name)?;
        let is_time = columns.get(found).is_some_and(|column| column.column_type.is_time());
        return if is_time { Ok(Some(found)) } else { Err(SimulateError::Time { column: name.to_owned() }) };
    }
    let of = |is: fn(crate::table::ColumnType) -> bool| -> Vec<usize> {
        let found = columns.iter().enumerate().filter(|(_, column)| is(column.column_type));
        found.map(|(position, _)| position).collect()
    };
    let points = of(crate::table::ColumnType::is_timestamp);
    let times = of(crate::table::ColumnType::is_time);
    Ok(match (points.as_slice(), times.as_slice()) {
        ([only], _) | ([], [only]) => Some(*only),
        _ => None,
    })
}

fn check_suited(strategy: Strategy, columns: &[Column], key: &[KeyColumn]) -> Result<(), SimulateError> {
    let unsuited = |what| Err(SimulateError::Unsuited { strategy: strategy.to_string(), what });
    let has_time =
        key.iter().any(|part| columns.get(part.column).is_some_and(|column| column.column_type.is_time()));
    match strategy {
        Strategy::Swapped if key.len() < 2 => unsuited("a key of two columns"),
        Strategy::Descending if !has_time => unsuited("a column of time in the key"),
        _ => Ok(()),
    }
}

/// Which columns have to be read, by position: those that are named, and those whose values differ in length.
fn asked_columns(columns: &[Column], named: &[usize]) -> Vec<bool> {
    let of_any_length = |column: &Column| width(column.column_type).is_none();
    columns
        .iter()
        .enumerate()
        .map(|(position, column)| named.contains(&position) || of_any_length(column))
        .collect()
}

/// Reads the whole export in a thread of its own, block by block.
fn read_blocks(
    export: &Export,
    on_unreadable: OnUnreadable,
    asked: &[bool],
    each: &mut dyn FnMut(Vec<RecordBatch>) -> Result<(), SimulateError>,
) -> Result<(), SimulateError> {
    let (sender, receiver) = sync_channel::<Vec<RecordBatch>>(1);
    let asked = &|column: usize| asked.get(column).copied().unwrap_or(true);
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let (mut together, mut bytes) = (Vec::new(), 0);
            let read = export.read_columns::<SimulateError>(on_unreadable, asked, |_, batch| {
                bytes += batch.get_array_memory_size();
                together.push(batch);
                if together.len() < BATCHES_TOGETHER && bytes < BYTES_TOGETHER {
                    return Ok(true);
                }
                bytes = 0;
                Ok(sender.send(std::mem::take(&mut together)).is_ok())
            });
            let _ = sender.send(together);
            read
        });
        let replayed = receiver.iter().try_for_each(each);
        drop(receiver);
        let read = reading.join().unwrap_or(Err(SimulateError::Interrupted));
        replayed.and(read.map(|_| ()))
    })
}

fn survey(
    export: &Export,
    options: &SimulateOptions,
    asked: &[bool],
    time: Option<usize>,
    stop: &AtomicBool,
) -> Result<Survey, SimulateError> {
    let mut survey = Survey::default();
    let window = options.parameters.window.get();
    let mut newest = i64::MIN;
    let asked = &|column: usize| asked.get(column).copied().unwrap_or(true);
    export.read_columns::<SimulateError>(options.on_unreadable, asked, |_, batch| {
        survey.rows += batch.num_rows() as u64;
        survey.bytes += row_bytes(&batch).iter().map(|bytes| u64::from(*bytes)).sum::<u64>();
        survey.last_row = Some(batch.slice(batch.num_rows() - 1, 1));
        if let Some(time) = time {
            let array = batch.columns().get(time).and_then(instants).ok_or(SimulateError::NoRows)?;
            let micros = array.as_primitive::<TimestampMicrosecondType>();
            survey.without_time += micros.null_count() as u64;
            if let (Some(first), Some(last)) = (min(micros), max(micros)) {
                let (least, most) = survey.range.unwrap_or((first, last));
                survey.range = Some((least.min(first), most.max(last)));
            }
            for micros in micros.iter().flatten() {
                survey.late_rows += u64::from(micros.saturating_add(window) < newest);
                newest = newest.max(micros);
            }
        }
        if stop.load(Ordering::Relaxed) { Err(SimulateError::Interrupted) } else { Ok(true) }
    })?;
    if survey.rows == 0 { Err(SimulateError::NoRows) } else { Ok(survey) }
}

/// When each row of a batch comes, in microseconds since 1970; one without a time comes with the row before it.
fn times(batch: &RecordBatch, clock: Clock, rows_before: u64) -> Result<Vec<i64>, SimulateError> {
    match clock {
        Clock::Rate { from, between } => {
            let at = |row: u64| from.saturating_add((row as f64 * between) as i64);
            Ok((rows_before..rows_before + batch.num_rows() as u64).map(at).collect())
        }
        Clock::Column(column) => {
            let array = batch.columns().get(column).and_then(instants).ok_or(SimulateError::NoRows)?;
            let mut last = 0;
            let micros = array.as_primitive::<TimestampMicrosecondType>().iter().map(|micros| {
                last = micros.unwrap_or(last);
                last
            });
            Ok(micros.collect())
        }
    }
}

/// The boundaries that divide the keys of the first rows evenly.
fn presplits(
    strategy: Strategy,
    columns: &[Column],
    key: &[KeyColumn],
    partition_key: &[usize],
    count: usize,
    first: &[Arrived],
) -> Result<Vec<Vec<u8>>, SimulateError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // What is made up is made up differently, as by whoever plans the boundaries.
    let mut design = Design::new(strategy, columns, key, partition_key, &[], u64::MAX)?;
    let mut keys = Vec::new();
    for rows in first {
        let made = design.entries(&rows.batch, &rows.times)?;
        let Some(table) = made.first() else { continue };
        for row in 0..rows.batch.num_rows() {
            let mut bytes = Vec::new();
            table.entry(row, &mut bytes);
            keys.push(bytes);
        }
    }
    keys.sort_unstable();
    let at = |number: usize| keys.get(number * keys.len() / (count + 1)).cloned();
    Ok((1..=count).filter_map(at).collect())
}
