//! Evaluation that several machines share.
//!
//! ```text
//! rows -> ranges, cut at the ends of batches of the simulated ingest
//!      -> PartitionKeys, each range alone -> states, which merge in order
//!      -> PrimaryKey, TimeAxis: all rows in order, one machine each -> results
//!      -> assemble -> the Evaluation that one machine would have made
//! ```
//! Exact counts are the same however the evaluation is shared; sketches keep their bounds. Results
//! can be read only by the version of the program that wrote them; states are also stored in
//! profiles.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::interval::SampleSize;
use crate::evaluate::figures::primary_key::PrimaryKeyReport;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::evaluator::Evaluator;
use crate::evaluate::pass::reader::read_into;
use crate::evaluate::pass::share::{Share, no_such_key};
use crate::evaluate::pass::time_column::time_column;
use evenkeel_input::source::{Export, OnUnreadable, RowSpan, Unreadable};
use evenkeel_model::table::Column;
use evenkeel_model::wire::{Wire, WireError, seal, unseal, wire};
use evenkeel_stats::windows::TimeRange;

/// Result of a pass over all rows.
#[derive(Debug)]
struct PassResult {
    rows_read: u64,
    time_range: Option<TimeRange>,
    /// Number of the primary key that was counted, and its report.
    primary_key: Option<(usize, PrimaryKeyReport)>,
}

wire!(PassResult { rows_read, time_range, primary_key });

/// Returns the ranges in which the rows of an export are counted: at most `most`, about equal, cut
/// at multiples of `batch_rows` to keep the batches of the simulated ingest whole. There is only
/// one range if unreadable rows are skipped, which shifts the numbers of the rows after them, or if
/// rows are sampled, because a sample is drawn row by row.
#[must_use]
pub fn spans(
    options: &EvaluateOptions,
    on_unreadable: OnUnreadable,
    rows: u64,
    most: usize,
) -> Vec<Range<u64>> {
    let whole = options.sample.is_some() || on_unreadable == OnUnreadable::Skip;
    let batch_rows = options.batch_rows.max(1);
    let batches = rows.div_ceil(batch_rows);
    let count = if whole { 1 } else { batches.min(most as u64).max(1) };
    // Computed in 128 bits, since there may be 2^64 rows in batches of one row.
    let bound = |number: u64| {
        let batch = u128::from(batches) * u128::from(number) / u128::from(count);
        u64::try_from(batch * u128::from(batch_rows)).unwrap_or(u64::MAX).min(rows)
    };
    (0..count).map(|number| bound(number)..bound(number + 1)).collect()
}

/// Returns the passes over all rows that are needed in addition to the passes over ranges of rows.
///
/// # Errors
/// [`EvaluateError`] if there is no such time column.
pub fn whole_shares(
    columns: &[Column],
    options: &EvaluateOptions,
    spans: usize,
) -> Result<Vec<Share>, EvaluateError> {
    let time = time_column(columns, options)?;
    let axis = options.primary_keys.is_empty() && spans > 1 && time.is_some();
    let primary_keys = (0..options.primary_keys.len()).map(Share::PrimaryKey);
    Ok(primary_keys.chain(axis.then_some(Share::TimeAxis)).collect())
}

/// Counts a share of an export, over a range of its rows or all of them. Returns the input of
/// [`assemble`], and the rows that were left out. `progress` is called with the number of rows read
/// so far; setting `stop` cancels the count.
///
/// # Errors
/// [`EvaluateError`] if rows cannot be read, or the key cannot be evaluated.
pub fn count_share(
    export: &Export,
    options: &EvaluateOptions,
    share: Share,
    span: Option<&RowSpan>,
    on_unreadable: OnUnreadable,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<(Vec<u8>, Unreadable), EvaluateError> {
    let mut evaluator = Evaluator::for_share(export.columns(), options.clone(), share)?;
    let unreadable = read_into(&mut evaluator, progress, stop, |projection, each| match span {
        Some(span) => export.read_span(span, on_unreadable, projection, each),
        None => export.read_blocks(on_unreadable, projection, each),
    })?;
    let counted = match share {
        Share::PartitionKeys => evaluator.state()?,
        Share::PrimaryKey(_) | Share::TimeAxis => evaluator.into_whole(share)?,
    };
    Ok((counted, unreadable))
}

/// Assembles the evaluation from all shares: the states of the ranges of rows, in order, and the
/// results of the [`whole_shares`], in any order. It equals the evaluation by one machine, except
/// that the values of a heavy key may not be known yet, see [`crate::evaluate::HeavyHitter::key`].
///
/// # Errors
/// [`EvaluateError::KeyParts`] if a share is missing, duplicated, damaged or made with other
/// options; [`EvaluateError::NoRows`] if there are no rows.
pub fn assemble<S: AsRef<[u8]>, W: AsRef<[u8]>>(
    columns: &[Column],
    options: &EvaluateOptions,
    spans: impl IntoIterator<Item = S>,
    wholes: impl IntoIterator<Item = W>,
) -> Result<Evaluation, EvaluateError> {
    let mut together = Evaluator::for_share(columns, options.clone(), Share::PartitionKeys)?;
    let mut count = 0;
    for state in spans {
        together.merge_state(state.as_ref())?;
        count += 1;
    }
    let rows_read = together.rows_read();
    let mut evaluation = together.finish()?;
    let mut primary_keys: Vec<Option<PrimaryKeyReport>> = options.primary_keys.iter().map(|_| None).collect();
    let mut axis_is_whole = count == 1;
    for whole in wholes {
        let mut left = unseal(whole.as_ref())?;
        let whole = PassResult::take(&mut left)?;
        left.end()?;
        if whole.rows_read != rows_read {
            let reason = format!("one has {} rows, the others {rows_read}", whole.rows_read);
            return Err(EvaluateError::KeyParts { reason });
        }
        if let Some((number, report)) = whole.primary_key {
            let place = primary_keys.get_mut(number).ok_or_else(|| no_such_key(number))?;
            if place.replace(report).is_some() {
                return Err(EvaluateError::KeyParts { reason: format!("primary key {number} occurs twice") });
            }
        }
        evaluation.time_range = whole.time_range;
        axis_is_whole = true;
    }
    if !axis_is_whole && evaluation.time_range.is_some() {
        return Err(EvaluateError::KeyParts { reason: "the time axis is missing".to_owned() });
    }
    let missing =
        |number: usize| EvaluateError::KeyParts { reason: format!("primary key {number} is missing") };
    let reports = (0..).zip(primary_keys).map(|(number, report)| report.ok_or_else(|| missing(number)));
    evaluation.primary_keys = reports.collect::<Result<_, _>>()?;
    Ok(evaluation)
}

impl Evaluator {
    /// Adds the state of an evaluation with the same columns and options, of later rows. After an
    /// error, this evaluation can no longer be used.
    ///
    /// # Errors
    /// As for [`Evaluator::merge`], and [`EvaluateError::KeyParts`] if the state is damaged, or
    /// made with other options.
    pub fn merge_state(&mut self, state: &[u8]) -> Result<(), EvaluateError> {
        if !self.counters.primary_keys.is_empty() {
            return Err(EvaluateError::NotMergeable);
        }
        let mut left = unseal(state)?;
        let (preparation, counters) = (&mut self.preparation, &mut self.counters);
        let read_and_kept = Wire::take(&mut left)?;
        let axis = preparation.axis.take(&mut left)?;
        let moments = preparation.moments.as_ref().map(|moments| moments.take(&mut left)).transpose()?;
        preparation.merge(axis, moments, read_and_kept)?;
        let (window, moments) = (preparation.axis.length(), preparation.moments.as_ref());
        let (rows, bytes) = <(u64, u64)>::take(&mut left)?;
        let checksum = u64::take(&mut left)?;
        if usize::take(&mut left)? != counters.partition_keys.len() {
            return Err(WireError("it has other keys").into());
        }
        // Merge key by key, so that no more than one is in memory twice.
        for key in &mut counters.partition_keys {
            let more = key.take(&mut left)?;
            key.merge(more, window, moments)?;
        }
        if usize::take(&mut left)? != 0 {
            return Err(EvaluateError::NotMergeable);
        }
        left.end()?;
        counters.keep_within_budget(0)?;
        counters.rows += rows;
        counters.bytes += bytes;
        counters.checksum = counters.checksum.wrapping_add(checksum);
        Ok(())
    }

    /// Returns the result of a pass over all rows.
    ///
    /// # Errors
    /// [`EvaluateError`] if spilled data cannot be read back.
    fn into_whole(self, share: Share) -> Result<Vec<u8>, EvaluateError> {
        let Self { options, preparation, counters, .. } = self;
        let read = preparation.rows_read as f64 / counters.rows.max(1) as f64;
        let mut whole = PassResult {
            rows_read: preparation.rows_read,
            time_range: preparation.axis.range(read),
            primary_key: None,
        };
        if let (Share::PrimaryKey(number), Some(key)) = (share, counters.primary_keys.into_iter().next()) {
            let (population, rows) = (preparation.rows_read, counters.rows);
            let drawn = options.sample.map(|chance| SampleSize { chance, population, rows });
            whole.primary_key = Some((number, key.finish(drawn)?));
        }
        Ok(seal(|bytes| whole.put(bytes)))
    }
}

#[cfg(test)]
#[path = "shards_tests.rs"]
mod tests;
