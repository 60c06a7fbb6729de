//! Counts of an evaluation as bytes, and counts of later rows that are added to them.
//!
//! ```text
//! state    rows read and kept | time axis | short windows, if any | rows, bytes, checksum
//!          | count, each partition key | count, each primary key | checksum
//! ```

use crate::evaluate::EvaluateError;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::evaluator::Evaluator;
use crate::evaluate::pass::partition_key::PartitionKeyCounter;
use crate::evaluate::pass::primary_key::PrimaryKeyCounter;
use evenkeel_model::table::Candidate;
use evenkeel_model::wire::{Wire, WireError, seal, unseal};

/// About the most bytes of the sketches of one key.
const MAX_SKETCH_BYTES: u64 = 7 << 18;

impl Evaluator {
    /// Returns the counts so far, for [`Evaluator::merge_state`] of an evaluation with the same
    /// columns and options.
    ///
    /// # Errors
    /// [`EvaluateError::Spill`] if data on disk cannot be read back.
    pub fn state(&mut self) -> Result<Vec<u8>, EvaluateError> {
        self.state_of(&Reductions::default())
    }

    /// Like [`Evaluator::state`], with less of some keys. If there are primary keys, this ends the
    /// current batch of the simulated ingest.
    pub(crate) fn state_of(&mut self, reductions: &Reductions) -> Result<Vec<u8>, EvaluateError> {
        let Self { preparation, counters, .. } = self;
        for (at, key) in counters.partition_keys.iter_mut().enumerate() {
            if !reductions.estimated.contains(&at) {
                key.read_back()?;
            }
        }
        let mut put_keys = |bytes: &mut Vec<u8>| {
            counters.partition_keys.len().put(bytes);
            for (at, key) in counters.partition_keys.iter().enumerate() {
                key.put(reductions.estimated.contains(&at), bytes)?;
            }
            counters.primary_keys.len().put(bytes);
            for (at, key) in counters.primary_keys.iter_mut().enumerate() {
                key.put(!reductions.without_rows.contains(&at), bytes)?;
            }
            Ok::<(), EvaluateError>(())
        };
        let mut written = Ok(());
        let sealed = seal(|bytes| {
            (preparation.rows_read, preparation.rows).put(bytes);
            preparation.axis.put(bytes);
            preparation.moments.iter().for_each(|moments| moments.put(bytes));
            (counters.rows, counters.bytes).put(bytes);
            counters.checksum.put(bytes);
            written = put_keys(bytes);
        });
        written.map(|()| sealed)
    }

    /// Loads the counts of an evaluation with the same columns and options into an empty one.
    ///
    /// # Errors
    /// [`EvaluateError::KeyParts`] if the state is damaged, or made with other options.
    pub(crate) fn fill(&mut self, state: &[u8]) -> Result<(), EvaluateError> {
        let mut left = unseal(state)?;
        let (preparation, counters) = (&mut self.preparation, &mut self.counters);
        (preparation.rows_read, preparation.rows) = Wire::take(&mut left)?;
        preparation.axis = preparation.axis.take(&mut left)?;
        if let Some(moments) = &mut preparation.moments {
            *moments = moments.take(&mut left)?;
        }
        (counters.rows, counters.bytes) = Wire::take(&mut left)?;
        counters.checksum = Wire::take(&mut left)?;
        if usize::take(&mut left)? != counters.partition_keys.len() {
            return Err(WireError("it has other keys").into());
        }
        for key in &mut counters.partition_keys {
            *key = key.take(&mut left)?;
        }
        if usize::take(&mut left)? != counters.primary_keys.len() {
            return Err(WireError("it has other keys").into());
        }
        counters.primary_keys.iter_mut().try_for_each(|key| key.fill(&mut left))?;
        left.end()?;
        counters.keep_within_budget(0)
    }

    /// Adds the counts of later rows with the same columns and options. A batch of the simulated
    /// ingest ends between them. Late rows are known exactly if the rows do not overlap in time,
    /// nor in the keys.
    ///
    /// # Errors
    /// [`EvaluateError::NotMergeable`] if the options differ; [`EvaluateError::TooManyWindows`] if
    /// a requested length makes too many; [`EvaluateError::Spill`] if memory and disk do not
    /// suffice.
    pub fn merge(&mut self, other: Self) -> Result<(), EvaluateError> {
        let (counters, more) = (&mut self.counters, other.counters);
        let alike = counters.partition_keys.len() == more.partition_keys.len()
            && counters.primary_keys.len() == more.primary_keys.len()
            && self.options == other.options;
        if !alike {
            return Err(EvaluateError::NotMergeable);
        }
        let preparation = other.preparation;
        self.preparation.merge(
            preparation.axis,
            preparation.moments,
            (preparation.rows_read, preparation.rows),
        )?;
        let (window, moments) = (self.preparation.axis.length(), self.preparation.moments.as_ref());
        for (key, more) in counters.partition_keys.iter_mut().zip(more.partition_keys) {
            key.merge(more, window, moments)?;
        }
        for (key, more) in counters.primary_keys.iter_mut().zip(more.primary_keys) {
            key.merge(more)?;
        }
        counters.keep_within_budget(0)?;
        counters.rows += more.rows;
        counters.bytes += more.bytes;
        counters.checksum = counters.checksum.wrapping_add(more.checksum);
        Ok(())
    }

    /// Ends the current batch of the simulated ingest.
    pub(crate) fn end_batch(&mut self) {
        self.counters.partition_keys.iter_mut().for_each(PartitionKeyCounter::end_batch);
    }

    /// Keeps only the keys of `options`, in their order, and adopts these options.
    pub(crate) fn retain(&mut self, options: &EvaluateOptions) {
        let counters = &mut self.counters;
        let kept: Vec<&Candidate> = options.partition_keys.iter().chain(&options.also_counted).collect();
        let place = |key: &PartitionKeyCounter| kept.iter().position(|kept| **kept == key.plan().candidate);
        counters.partition_keys.retain(|key| place(key).is_some());
        counters.partition_keys.sort_by_key(place);
        let place =
            |key: &PrimaryKeyCounter| options.primary_keys.iter().position(|kept| kept == key.keys().0);
        counters.primary_keys.retain(|key| place(key).is_some());
        counters.primary_keys.sort_by_key(place);
        self.options = options.clone();
        self.preparation.keys = counters.partition_keys.iter().map(PartitionKeyCounter::plan).collect();
    }

    /// Chooses the keys to reduce, so that the data that grows with the distinct values takes about
    /// `most` bytes: first primary keys that contain the time, which rarely repeat at other times,
    /// then the largest key.
    pub(crate) fn reductions(&mut self, most: u64) -> Reductions {
        let counters = &mut self.counters;
        counters.partition_keys.iter_mut().for_each(PartitionKeyCounter::put_together);
        let partition_keys = counters.partition_keys.iter().enumerate().map(|(at, key)| {
            (false, key.keys().exact_bytes().unwrap_or(0).saturating_sub(MAX_SKETCH_BYTES), true, at)
        });
        let primary_keys = counters.primary_keys.iter().enumerate();
        let primary_keys = primary_keys.map(|(at, key)| (key.has_time(), key.bytes_of_rows(), false, at));
        let mut keys: Vec<(bool, u64, bool, usize)> = partition_keys.chain(primary_keys).collect();
        keys.retain(|(_, gain, ..)| *gain > 0);
        keys.sort_unstable();
        let mut reductions = Reductions::default();
        let mut all: u64 = keys.iter().map(|(_, gain, ..)| gain).sum();
        while all > most
            && let Some((_, gain, is_partition_key, at)) = keys.pop()
        {
            if is_partition_key { &mut reductions.estimated } else { &mut reductions.without_rows }.push(at);
            all -= gain;
        }
        reductions
    }
}

/// Numbers of the keys that are kept in reduced form.
#[derive(Debug, Default)]
pub(crate) struct Reductions {
    /// Partition keys whose distinct values are kept as sketches.
    pub(crate) estimated: Vec<usize>,
    /// Primary keys whose rows are not to be kept.
    pub(crate) without_rows: Vec<usize>,
}
