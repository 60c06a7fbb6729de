//! An evaluation that several machines share.
//!
//! ```text
//! rows -> stretches, cut where batches of the simulated ingest end
//!      -> PartitionKeys, each stretch alone -> states, which merge in order
//!      -> PrimaryKey, TimeAxis: all rows in order, one machine each -> results
//!      -> assemble -> the Evaluation that one machine would have made
//! ```
//! What is counted exactly is the same, however it is shared; sketches keep their bounds. States and results are read by the version of
//! the program that wrote them, and by no other.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::evaluate::EvaluateError;
use crate::evaluate::assess::read_into;
use crate::evaluate::evaluator::{Evaluation, Evaluator, time_column};
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::primary_key_report::PrimaryKeyReport;
use crate::evaluate::windows::TimeRange;
use crate::source::{Export, OnUnreadable, Stretch, Unreadable};
use crate::table::Column;
use crate::wire::{Wire, WireError, seal, unseal, wire};

/// What one pass over rows counts, where others count the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// All partition keys, of a stretch of the rows.
    PartitionKeys,
    /// The primary key of this number, from 0, and the time axis: of all rows, because their order matters.
    PrimaryKey(usize),
    /// The time axis alone, of all rows: which of them are late is known only to someone who saw those before.
    TimeAxis,
}

/// What a pass over all rows found.
#[derive(Debug)]
struct Whole {
    rows_read: u64,
    time_range: Option<TimeRange>,
    /// The number of the primary key that was counted, and its report.
    primary_key: Option<(usize, PrimaryKeyReport)>,
}

wire!(Whole { rows_read, time_range, primary_key });

/// The stretches that the rows of an export are counted in: at most so many, about equal, cut at multiples of `batch_rows`, so that the
/// batches of the simulated ingest are whole. Where rows that cannot be read are left out, the numbers of those behind them shift; and a
/// sample is drawn row by row. Both give one stretch.
#[must_use]
pub fn stretches(
    options: &EvaluateOptions,
    on_unreadable: OnUnreadable,
    rows: u64,
    most: usize,
) -> Vec<Range<u64>> {
    let whole = options.sample.is_some() || on_unreadable == OnUnreadable::Skip;
    let batch_rows = options.batch_rows.max(1);
    let batches = rows.div_ceil(batch_rows);
    let count = if whole { 1 } else { batches.min(most as u64).max(1) };
    // In 128 bits, since there may be 2^64 rows of one each.
    let bound = |number: u64| {
        let batch = u128::from(batches) * u128::from(number) / u128::from(count);
        u64::try_from(batch * u128::from(batch_rows)).unwrap_or(u64::MAX).min(rows)
    };
    (0..count).map(|number| bound(number)..bound(number + 1)).collect()
}

/// The passes over all rows that are needed beside those over so many stretches.
///
/// # Errors
/// [`EvaluateError`] where there is no such time column.
pub fn whole_shares(
    columns: &[Column],
    options: &EvaluateOptions,
    stretches: usize,
) -> Result<Vec<Share>, EvaluateError> {
    let time = time_column(columns, options.time.as_deref())?;
    let axis = options.primary_keys.is_empty() && stretches > 1 && time.is_some();
    let primary_keys = (0..options.primary_keys.len()).map(Share::PrimaryKey);
    Ok(primary_keys.chain(axis.then_some(Share::TimeAxis)).collect())
}

/// Counts a share of an export: of a stretch of its rows, or of all. Gives what [`assemble`] takes, and the rows that were left out.
/// `progress` is called with the rows read so far; `stop` ends it before its end.
///
/// # Errors
/// [`EvaluateError`] where rows cannot be read, or the key cannot be evaluated.
pub fn count_share(
    export: &Export,
    options: &EvaluateOptions,
    share: Share,
    stretch: Option<&Stretch>,
    on_unreadable: OnUnreadable,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<(Vec<u8>, Unreadable), EvaluateError> {
    let mut evaluator = Evaluator::for_share(export.columns(), options.clone(), share)?;
    let unreadable = read_into(&mut evaluator, progress, stop, |asked, each| match stretch {
        Some(stretch) => export.read_stretch(stretch, on_unreadable, asked, each),
        None => export.read_blocks(on_unreadable, asked, each),
    })?;
    let counted = match share {
        Share::PartitionKeys => evaluator.into_state()?,
        Share::PrimaryKey(_) | Share::TimeAxis => evaluator.into_whole(share)?,
    };
    Ok((counted, unreadable))
}

/// The evaluation that all shares make together: the states of the stretches of the rows, in order, and the results of the
/// [`whole_shares`], in any. It is that of one machine, but that a value of a heavy key may not be known yet, as
/// [`crate::evaluate::HeavyHitter::key`] has it.
///
/// # Errors
/// [`EvaluateError::Parts`] where a share is missing, comes twice, is damaged or is one of other options; [`EvaluateError::NoRows`] where
/// there are no rows.
pub fn assemble<S: AsRef<[u8]>, W: AsRef<[u8]>>(
    columns: &[Column],
    options: &EvaluateOptions,
    stretches: impl IntoIterator<Item = S>,
    wholes: impl IntoIterator<Item = W>,
) -> Result<Evaluation, EvaluateError> {
    let mut together = Evaluator::for_share(columns, options.clone(), Share::PartitionKeys)?;
    let mut count = 0;
    for state in stretches {
        together.merge_state(state.as_ref())?;
        count += 1;
    }
    let rows_read = together.rows_read();
    let mut evaluation = together.finish()?;
    let mut primary_keys: Vec<Option<PrimaryKeyReport>> = options.primary_keys.iter().map(|_| None).collect();
    let mut axis_is_whole = count == 1;
    for whole in wholes {
        let mut left = unseal(whole.as_ref())?;
        let whole = Whole::take(&mut left)?;
        left.end()?;
        if whole.rows_read != rows_read {
            let reason = format!("one has {} rows, the others {rows_read}", whole.rows_read);
            return Err(EvaluateError::Parts { reason });
        }
        if let Some((number, report)) = whole.primary_key {
            let place = primary_keys.get_mut(number).ok_or_else(|| no_such_key(number))?;
            if place.replace(report).is_some() {
                return Err(EvaluateError::Parts { reason: format!("primary key {number} comes twice") });
            }
        }
        evaluation.time_range = whole.time_range;
        axis_is_whole = true;
    }
    if !axis_is_whole && evaluation.time_range.is_some() {
        return Err(EvaluateError::Parts { reason: "the time axis is missing".to_owned() });
    }
    let found = (0..).zip(primary_keys).map(|(number, report)| report.ok_or_else(|| no_such_key(number)));
    evaluation.primary_keys = found.collect::<Result<_, _>>()?;
    Ok(evaluation)
}

pub(super) fn no_such_key(number: usize) -> EvaluateError {
    EvaluateError::Parts { reason: format!("there is no primary key {number}") }
}

impl Evaluator {
    /// What it counted, for [`Evaluator::merge_state`] of an evaluation with the same columns and options.
    ///
    /// # Errors
    /// [`EvaluateError::NotMergeable`] where there are primary keys.
    pub fn into_state(mut self) -> Result<Vec<u8>, EvaluateError> {
        if !self.counters.primary_keys.is_empty() {
            return Err(EvaluateError::NotMergeable);
        }
        Ok(seal(|bytes| {
            let (preparation, counters) = (&self.preparation, &mut self.counters);
            (preparation.rows_read, preparation.rows).put(bytes);
            preparation.axis.put(bytes);
            (counters.rows, counters.bytes).put(bytes);
            counters.partition_keys.len().put(bytes);
            counters.partition_keys.iter_mut().for_each(|key| key.put(bytes));
        }))
    }

    /// Adds the state of an evaluation with the same columns and options, of rows that come after these. After an error it is of no use
    /// any more.
    ///
    /// # Errors
    /// As for [`Evaluator::merge`], and [`EvaluateError::Parts`] where the state is damaged, or that of other options.
    pub fn merge_state(&mut self, state: &[u8]) -> Result<(), EvaluateError> {
        if !self.counters.primary_keys.is_empty() {
            return Err(EvaluateError::NotMergeable);
        }
        let mut left = unseal(state)?;
        let (preparation, counters) = (&mut self.preparation, &mut self.counters);
        let read_and_kept = Wire::take(&mut left)?;
        preparation.merge(preparation.axis.take(&mut left)?, read_and_kept)?;
        let window = preparation.axis.length();
        let (rows, bytes) = <(u64, u64)>::take(&mut left)?;
        if usize::take(&mut left)? != counters.partition_keys.len() {
            return Err(WireError("it has other keys").into());
        }
        // One key after the other, so that no more than one is in memory twice.
        for key in &mut counters.partition_keys {
            let more = key.take(&mut left)?;
            key.merge(more, window);
        }
        left.end()?;
        counters.keep_within_budget(0);
        counters.rows += rows;
        counters.bytes += bytes;
        Ok(())
    }

    /// What it found of all rows.
    ///
    /// # Errors
    /// [`EvaluateError`] where what was put on disk cannot be read back.
    fn into_whole(self, share: Share) -> Result<Vec<u8>, EvaluateError> {
        let Self { options, preparation, counters, .. } = self;
        let read = preparation.rows_read as f64 / counters.rows.max(1) as f64;
        let mut whole = Whole {
            rows_read: preparation.rows_read,
            time_range: preparation.axis.range(read),
            primary_key: None,
        };
        if let (Share::PrimaryKey(number), Some(key)) = (share, counters.primary_keys.into_iter().next()) {
            whole.primary_key = Some((number, key.finish(options.sample)?));
        }
        Ok(seal(|bytes| whole.put(bytes)))
    }
}
