//! Counts of a primary key as bytes, and counts of later rows that are added to them.

use crate::evaluate::EvaluateError;
use crate::evaluate::pass::layout::{Portion, join_batches};
use crate::evaluate::pass::primary_key::arrivals::Arrivals;
use crate::evaluate::pass::primary_key::{
    ConditionKind, PrimaryKeyCounter, Repetition, SAMPLE_ROWS, SAMPLE_SEED,
};
use evenkeel_model::table::Candidate;
use evenkeel_model::wire::{Wire, WireError, WireReader};
use evenkeel_stats::sketch::{RepeatedKeys, Repeats, Reservoir, SpillError};

impl PrimaryKeyCounter {
    /// Key that is counted, and the partition key of the partitions within which it is counted.
    pub(crate) fn keys(&self) -> (&Candidate, &Candidate) {
        (&self.plan.candidate, &self.plan.partition_key)
    }

    /// Whether the key contains the time column.
    pub(crate) fn has_time(&self) -> bool {
        let mut conditions = self.plan.conditions.iter();
        conditions.any(|condition| {
            matches!(condition.kind, ConditionKind::TimeRanges(_)) && self.plan.key.contains(&condition.part)
        })
    }

    /// Bytes of the keys of all rows; 0 if they are not kept.
    pub(crate) fn bytes_of_rows(&self) -> u64 {
        match &self.repetition {
            Repetition::OfRows(keys) => keys.bytes(),
            Repetition::Sums(_) => 0,
        }
    }

    /// Whether the keys of all rows are known.
    pub(crate) fn has_rows(&self) -> bool {
        matches!(self.repetition, Repetition::OfRows(_))
    }

    /// Keeps only how many keys repeat, not which.
    pub(crate) fn keep_sums(&mut self, repeats: Repeats) {
        self.repetition = Repetition::Sums(repeats);
    }

    /// Appends the counts to `bytes`: with the keys of all rows if they are known and `with_rows`.
    /// Ends the current batch of the simulated ingest.
    pub(crate) fn put(&mut self, with_rows: bool, bytes: &mut Vec<u8>) -> Result<(), SpillError> {
        self.end_last_batch();
        match &self.repetition {
            Repetition::OfRows(keys) if with_rows => {
                true.put(bytes);
                keys.put(bytes)?;
            }
            _ => false.put(bytes),
        }
        self.arrivals.put(bytes);
        self.portions.put(bytes);
        (self.batches, self.batches_joined).put(bytes);
        self.sample.put(bytes);
        (self.rows, self.null_rows).put(bytes);
        (self.key_bytes, self.max_key_bytes).put(bytes);
        Ok(())
    }

    /// Loads the counts that [`PrimaryKeyCounter::put`] wrote for the same key into an empty
    /// counter. If the keys themselves were not saved, the number of repeats is set later.
    pub(crate) fn fill(&mut self, left: &mut WireReader<'_>) -> Result<(), WireError> {
        self.repetition = match bool::take(left)? {
            true => Repetition::OfRows(RepeatedKeys::take(self.plan.budget, left)?),
            false => Repetition::Sums(Repeats::default()),
        };
        let partitions = self.open.len();
        self.arrivals = Arrivals::take(left)?;
        self.portions = Wire::take(left)?;
        if self.arrivals.partitions() != partitions || self.portions.len() != partitions {
            return Err(WireError("it has other partitions"));
        }
        (self.batches, self.batches_joined) = Wire::take(left)?;
        if !self.batches_joined.is_power_of_two() {
            return Err(WireError("its batches are not joined in pairs"));
        }
        self.sample = Reservoir::take(SAMPLE_ROWS, SAMPLE_SEED, left)?;
        let conditions = self.plan.conditions.len();
        let mut portions = self.portions.iter().flatten().map(|portion| portion.columns.len());
        let mut sampled = self.sample.items().iter().map(|row| row.columns().count());
        if portions.any(|columns| columns != conditions) || sampled.any(|columns| columns != conditions) {
            return Err(WireError("it has other conditions"));
        }
        (self.rows, self.null_rows) = Wire::take(left)?;
        (self.key_bytes, self.max_key_bytes) = Wire::take(left)?;
        Ok(())
    }

    /// Adds the counts of later rows with the same key. Late rows are found as if both were one, as
    /// far as the counts allow; a batch of the simulated ingest ends between them.
    pub(crate) fn merge(&mut self, mut other: Self) -> Result<(), EvaluateError> {
        self.end_last_batch();
        other.end_last_batch();
        match (&mut self.repetition, other.repetition) {
            (Repetition::OfRows(keys), Repetition::OfRows(more)) => keys.merge(more)?,
            (Repetition::Sums(repeats), Repetition::Sums(more)) => {
                *repeats = std::mem::take(repeats).with(&more);
            }
            _ => return Err(EvaluateError::NotMergeable),
        }
        self.arrivals.merge(other.arrivals);
        while self.batches_joined < other.batches_joined {
            self.join_batches();
        }
        while other.batches_joined < self.batches_joined {
            other.portions.iter_mut().for_each(join_batches);
            other.batches_joined *= 2;
            other.batches = other.batches.div_ceil(2);
        }
        for (portions, more) in self.portions.iter_mut().zip(other.portions) {
            let later = |mut portion: Portion| {
                portion.batch += self.batches;
                portion
            };
            portions.extend(more.into_iter().map(later));
        }
        self.batches += other.batches;
        self.join_while_many();
        self.sample.merge(other.sample, |row, before| row.arrival += before);
        self.rows += other.rows;
        self.null_rows += other.null_rows;
        self.key_bytes += other.key_bytes;
        self.max_key_bytes = self.max_key_bytes.max(other.max_key_bytes);
        Ok(())
    }
}
