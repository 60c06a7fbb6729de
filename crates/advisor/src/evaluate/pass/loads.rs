//! Load on partitions over time, counted in the same pass as the figures of an evaluation.

use std::sync::atomic::AtomicBool;

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::loads::{KeyLoads, Loads};
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::evaluator::{Evaluator, window_for};
use crate::evaluate::pass::reader::read_into;
use evenkeel_input::source::{Export, OnUnreadable, Unreadable};

/// Counts the load on the partitions of each partition key of `options`, over all rows of an
/// export, regardless of sampling options. Rows arrive at the times of the time column or, without
/// one, evenly spaced at `rate` rows per second, if that is given. `progress` is called with the
/// number of rows read so far; setting `stop` cancels the count.
///
/// # Errors
/// [`EvaluateError`] if the export cannot be read, or a key cannot be evaluated.
pub fn count_loads(
    export: &Export,
    options: EvaluateOptions,
    rate: Option<f64>,
    on_unreadable: OnUnreadable,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<Loads, EvaluateError> {
    let options = EvaluateOptions { sample: None, ..options };
    let mut evaluator = Evaluator::for_loads(export.columns(), options, rate)?;
    let unreadable = read_into(&mut evaluator, progress, stop, |projection, each| {
        export.read_blocks(on_unreadable, projection, each)
    })?;
    evaluator.finish_loads(unreadable)
}

impl Evaluator {
    fn finish_loads(self, unreadable: Unreadable) -> Result<Loads, EvaluateError> {
        let rows_without_time = self.preparation.axis.null_rows;
        let counters = &self.counters.partition_keys;
        let most = counters.iter().flat_map(|key| key.partition_counts()).max().unwrap_or(1);
        let window = window_for(&self.preparation.axis, most);
        let windows: Vec<_> = counters.iter().map(|key| key.loads(window)).collect();
        let (evaluation, weights) = self.finish_with_weights()?;
        let keys = evaluation.candidates.into_iter().zip(weights).zip(windows);
        Ok(Loads {
            rows: evaluation.rows,
            bytes: evaluation.bytes,
            rows_without_time,
            time: evaluation.time,
            time_range: evaluation.time_range,
            window,
            keys: keys.map(|((report, weights), windows)| KeyLoads { report, weights, windows }).collect(),
            unreadable,
        })
    }
}
