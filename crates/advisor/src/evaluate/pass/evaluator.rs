//! Evaluation of all candidates in one pass.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use arrow::array::RecordBatch;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::evaluation::{Evaluation, SampleReport};
use crate::evaluate::figures::interval::SampleSize;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::batch::KeyParts;
use crate::evaluate::pass::budgets::Budgets;
use crate::evaluate::pass::context::ReportContext;
use crate::evaluate::pass::counters::{Counters, partition_key_counters, primary_key_counters};
use crate::evaluate::pass::partition_key::PartitionKeyCounter;
use crate::evaluate::pass::plans::PrimaryKeyInputs;
use crate::evaluate::pass::preparation::{Preparation, PreparedBatches};
use crate::evaluate::pass::share::{Share, no_such_key};
use crate::evaluate::pass::time_column::{Clock, TimeColumn, time_column};
use evenkeel_model::table::Column;
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_model::values::width;
use evenkeel_placement::placement::Function;
use evenkeel_stats::skew::KeyWeights;
use evenkeel_stats::windows::{MomentAxis, TimeAxis, most_moments};

/// Rows per partition that the median window has if its length is chosen from the data: with fewer,
/// chance adds too much.
pub const ROWS_PER_PARTITION_OF_WINDOW: u64 = 10;
/// Number of partitions if none is requested: the default of YDB.
const DEFAULT_PARTITIONS: u64 = 64;

/// Evaluates keys on batches in one schema.
#[derive(Debug)]
pub struct Evaluator {
    pub(crate) options: EvaluateOptions,
    /// Columns whose values vary in length, which affects the bytes of a row.
    variable_length: Vec<usize>,
    /// Number of columns of a batch.
    columns: usize,
    pub(crate) preparation: Preparation,
    pub(crate) counters: Counters,
}

/// Whether windows count rows alone, or bytes, too.
#[derive(Debug, Clone, Copy)]
enum Weighing {
    Rows,
    /// Rows without a time column arrive at this many per second.
    RowsAndBytes {
        rate: Option<f64>,
    },
}

impl Evaluator {
    /// Creates an evaluation of rows with the given columns.
    ///
    /// # Errors
    /// [`EvaluateError`] if a key names a column that does not exist, or one that cannot serve.
    pub fn new(columns: &[Column], options: EvaluateOptions) -> Result<Self, EvaluateError> {
        Self::with_share(columns, options, None, Weighing::Rows)
    }

    /// Like [`Evaluator::new`], but does only a share of the work, within the memory that it has in
    /// the whole evaluation, and needs only the columns of that share.
    ///
    /// # Errors
    /// As for [`Evaluator::new`], and if there is no such primary key.
    pub fn for_share(
        columns: &[Column],
        options: EvaluateOptions,
        share: Share,
    ) -> Result<Self, EvaluateError> {
        Self::with_share(columns, options, Some(share), Weighing::Rows)
    }

    /// Like [`Evaluator::new`], but also counts the bytes of each window. Without a time column,
    /// rows arrive evenly spaced at `rate` rows per second.
    pub(super) fn for_loads(
        columns: &[Column],
        options: EvaluateOptions,
        rate: Option<f64>,
    ) -> Result<Self, EvaluateError> {
        Self::with_share(columns, options, None, Weighing::RowsAndBytes { rate })
    }

    fn with_share(
        columns: &[Column],
        options: EvaluateOptions,
        share: Option<Share>,
        weighing: Weighing,
    ) -> Result<Self, EvaluateError> {
        let has_partition_keys = matches!(share, None | Some(Share::PartitionKeys));
        let candidates = options.partition_keys.iter().chain(&options.also_counted);
        let candidates = candidates.filter(|_| has_partition_keys);
        let primary_candidates = primary_keys_of(share, options.primary_keys.len())?;
        let mut parts = KeyParts::default();
        let placements = placements(&options);
        let time = time_column(columns, &options)?;
        let counters = placements.iter().map(|(_, partitions)| partitions.len()).sum();
        let (per_window, rate) = match weighing {
            Weighing::Rows => (counters, None),
            Weighing::RowsAndBytes { rate } => (2 * counters, rate),
        };
        let budgets = Budgets::new(&options, per_window, time.is_some() || rate.is_some())?;
        let mut partition_keys =
            partition_key_counters(candidates, columns, &mut parts, &placements, time.as_ref())?;
        if matches!(weighing, Weighing::RowsAndBytes { .. }) {
            partition_keys.iter_mut().for_each(PartitionKeyCounter::weigh_windows);
        }
        let inputs =
            PrimaryKeyInputs { options: &options, columns, time: time.as_ref(), placements: &placements };
        let primary_keys =
            primary_key_counters(primary_candidates, &inputs, &mut parts, budgets.primary_key)?;
        let finest = time.as_ref().map_or(Micros::new(1), |time| resolution(time, columns));
        let most_moments = most_moments(counters);
        let moments =
            (time.is_some() && !partition_keys.is_empty()).then(|| MomentAxis::new(finest, most_moments));
        let variable_length = variable_length_columns(columns, share);
        let seed = ChaCha8Rng::seed_from_u64(0xE7E1);
        Ok(Self {
            preparation: Preparation {
                keys: partition_keys.iter().map(PartitionKeyCounter::plan).collect(),
                whole_rows: !primary_keys.is_empty(),
                parts,
                clock: time.map(Clock::Column).or(rate.map(Clock::Rate)),
                axis: TimeAxis::new(options.window, budgets.windows, finest),
                moments,
                window: options.window,
                most_windows: budgets.windows,
                batch_rows: options.batch_rows,
                sampling: options.sample.map(|fraction| (fraction, seed)),
                rows_read: 0,
                rows: 0,
            },
            counters: Counters {
                budget: budgets.partition_keys,
                partition_keys,
                primary_keys,
                rows: 0,
                bytes: 0,
                checksum: 0,
            },
            variable_length,
            columns: columns.len(),
            options,
        })
    }

    /// Whether the values of the column at a position are needed.
    fn reads(&self, column: usize) -> bool {
        let Preparation { whole_rows, parts, clock, .. } = &self.preparation;
        *whole_rows
            || parts.have(column)
            || clock.as_ref().and_then(Clock::column).is_some_and(|time| time.position == column)
            || self.variable_length.contains(&column)
    }

    /// Projection: whether the values of each column are needed. Those of others may be NULL.
    #[must_use]
    pub fn projection(&self) -> Vec<bool> {
        let mut projection: Vec<bool> = (0..self.columns).map(|column| self.reads(column)).collect();
        // No input has rows without a column.
        if let (false, Some(first)) = (projection.contains(&true), projection.first_mut()) {
            *first = true;
        }
        projection
    }

    /// Counts the rows of a batch, which has the columns that the evaluation was created for.
    ///
    /// # Errors
    /// [`EvaluateError`] if a value cannot be placed, or memory and disk do not suffice.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), EvaluateError> {
        let numbered = self.numbered();
        let prepared = self.preparation.prepare(std::slice::from_ref(batch), &numbered)?;
        self.counters.add(prepared)
    }

    /// Counts the rows of many batches, and prepares the next ones while some are counted. The
    /// figures are the same as for sequential batches. `next` returns some batches, or `None` at
    /// the end; `after` receives the number of rows read, and may end the count with an error.
    ///
    /// # Errors
    /// As for [`Evaluator::add`], and any error of `after`.
    pub fn add_all(
        &mut self,
        mut next: impl FnMut() -> Option<Vec<RecordBatch>>,
        mut after: impl FnMut(u64) -> Result<(), EvaluateError>,
    ) -> Result<(), EvaluateError> {
        let mut ready: Option<PreparedBatches> = None;
        loop {
            let batches = next();
            if batches.is_none() && ready.is_none() {
                return Ok(());
            }
            let numbered = self.numbered();
            let (preparation, counters) = (&mut self.preparation, &mut self.counters);
            let current = ready.take();
            let (counted, prepared) = rayon::join(
                || current.map_or(Ok(()), |current| counters.add(current)),
                || batches.map(|batches| preparation.prepare(&batches, &numbered)).transpose(),
            );
            counted?;
            ready = prepared?;
            after(self.rows_read())?;
        }
    }

    /// Returns, for each partition key, whether its keys are few enough to be numbered.
    fn numbered(&self) -> Vec<bool> {
        self.counters.partition_keys.iter().map(|key| key.keys().is_numbered()).collect()
    }

    /// Returns rows and bytes per partition so far, of the first placement of the first partition
    /// key; empty if there is none.
    #[must_use]
    pub fn counted(&self) -> (Vec<u64>, Vec<u64>) {
        self.counters.partition_keys.first().map(PartitionKeyCounter::counted).unwrap_or_default()
    }

    /// Returns the number of rows read so far.
    #[must_use]
    pub fn rows_read(&self) -> u64 {
        self.preparation.rows_read
    }

    /// Returns the figures of all rows.
    ///
    /// # Errors
    /// [`EvaluateError`] if there were no rows, or spilled data cannot be read back.
    pub fn finish(self) -> Result<Evaluation, EvaluateError> {
        Ok(self.finish_with_weights()?.0)
    }

    /// Like [`Evaluator::finish`]; also returns the rows of the values of each partition key.
    pub(super) fn finish_with_weights(self) -> Result<(Evaluation, Vec<KeyWeights>), EvaluateError> {
        let Self {
            options, preparation: Preparation { axis, moments, clock, rows_read, .. }, counters, ..
        } = self;
        if counters.rows == 0 {
            return Err(EvaluateError::NoRows);
        }
        let read = rows_read as f64 / counters.rows as f64;
        let time_range = axis.range(read);
        let sample =
            options.sample.map(|fraction| SampleReport { fraction, rows_read, rows_sampled: counters.rows });
        let drawn =
            options.sample.map(|chance| SampleSize { chance, population: rows_read, rows: counters.rows });
        let axis = time_range.is_some().then_some(&axis);
        // One length for each number of partitions, for all keys and functions.
        let counts = counters.partition_keys.iter().flat_map(PartitionKeyCounter::partition_counts);
        let counts: BTreeSet<usize> = counts.collect();
        let windows: HashMap<usize, Micros> = axis
            .map(|axis| counts.iter().map(|count| (*count, window_for(axis, *count))).collect())
            .unwrap_or_default();
        let how = ReportContext {
            windows: &windows,
            window_is_requested: options.window.is_some(),
            moments: moments.as_ref(),
            batch_rows: options.batch_rows,
            partition_rate: options.partition_rate,
            weights: &options.weights,
            sample: drawn,
        };
        let (partition_keys, primary_keys) = (counters.partition_keys, counters.primary_keys);
        let (finished, primary_keys) = rayon::join(
            || partition_keys.into_par_iter().map(|key| key.finish(how)).collect::<Result<Vec<_>, _>>(),
            || primary_keys.into_par_iter().map(|key| key.finish(drawn)).collect::<Result<_, _>>(),
        );
        let (candidates, weights) = finished?.into_iter().unzip();
        let evaluation = Evaluation {
            rows: counters.rows,
            bytes: counters.bytes,
            sample,
            time: clock.as_ref().and_then(Clock::column).map(|time| time.name.clone()),
            time_range,
            candidates,
            primary_keys: primary_keys?,
        };
        Ok((evaluation, weights))
    }
}

/// Returns the length of windows for a number of partitions.
pub(super) fn window_for(axis: &TimeAxis, partitions: usize) -> Micros {
    axis.final_length(ROWS_PER_PARTITION_OF_WINDOW * partitions as u64)
}

/// Resolution of the time column: no window is shorter.
fn resolution(time: &TimeColumn, columns: &[Column]) -> Micros {
    let column_type = columns.get(time.position).map(|column| column.column_type);
    let is_date = column_type.is_some_and(|column_type| column_type.is_time() && !column_type.is_timestamp());
    if is_date { Micros::DAY } else { time.reading.resolution() }
}

/// Returns the positions of the columns whose values vary in length, if a share counts bytes.
fn variable_length_columns(columns: &[Column], share: Option<Share>) -> Vec<usize> {
    // All shares that count bytes count whole rows.
    let variable_length = columns
        .iter()
        .enumerate()
        .filter(|(_, column)| width(column.column_type).is_none() && share != Some(Share::TimeAxis));
    variable_length.map(|(position, _)| position).collect()
}

/// Returns the positions of the primary keys that a share counts, of `count` in all.
fn primary_keys_of(share: Option<Share>, count: usize) -> Result<Range<usize>, EvaluateError> {
    match share {
        None => Ok(0..count),
        Some(Share::PrimaryKey(number)) if number < count => Ok(number..number + 1),
        Some(Share::PrimaryKey(number)) => Err(no_such_key(number)),
        Some(Share::PartitionKeys | Share::TimeAxis) => Ok(0..0),
    }
}

/// Returns each placement function with each number of partitions.
fn placements(options: &EvaluateOptions) -> Vec<(Function, PartitionCount)> {
    let counts = match options.partitions.as_slice() {
        [] => PartitionCount::new(DEFAULT_PARTITIONS).into_iter().collect(),
        given => given.to_vec(),
    };
    let functions = options.placements.iter();
    functions.flat_map(|function| counts.iter().map(move |count| (*function, *count))).collect()
}

#[cfg(test)]
#[path = "evaluator_tests.rs"]
mod tests;
