//! The counters of all candidates, within the memory that they have together.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::moment::TimeOfKey;
use crate::evaluate::pass::batch::KeyParts;
use crate::evaluate::pass::partition_key::PartitionKeyCounter;
use crate::evaluate::pass::plans::{PrimaryKeyInputs, placeable, types_of};
use crate::evaluate::pass::preparation::{BatchKeys, CandidatePlan, PreparedBatches};
use crate::evaluate::pass::primary_key::PrimaryKeyCounter;
use crate::evaluate::pass::time_column::{TimeColumn, time_of_part};
use evenkeel_model::table::{Candidate, Column};
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::{Function, JointPlacement};

/// Counters of prepared batches.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Bytes for the distinct values of all partition keys together.
    pub(crate) budget: usize,
    pub(crate) partition_keys: Vec<PartitionKeyCounter>,
    pub(crate) primary_keys: Vec<PrimaryKeyCounter>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Sum of the identities of all rows, if they are computed: a checksum that no order changes.
    pub(crate) checksum: u64,
}

impl Counters {
    /// Counts the rows of prepared batches.
    pub(super) fn add(&mut self, prepared: PreparedBatches) -> Result<(), EvaluateError> {
        let PreparedBatches { batches, keys } = prepared;
        let (partition_keys, primary_keys) = (&mut self.partition_keys, &mut self.primary_keys);
        let (first, second) = rayon::join(
            || {
                let add =
                    |(key, known): (&mut PartitionKeyCounter, Vec<BatchKeys>)| key.add_all(&batches, known);
                partition_keys.par_iter_mut().zip(keys).with_max_len(1).try_for_each(add)
            },
            || primary_keys.par_iter_mut().with_max_len(1).try_for_each(|key| key.add_all(&batches)),
        );
        first?;
        second?;
        let rows: usize = batches.iter().map(|(batch, _)| batch.rows).sum();
        self.keep_within_budget(rows)?;
        self.rows += rows as u64;
        let identities = batches.iter().flat_map(|(batch, _)| &batch.row_identities);
        self.checksum = identities.fold(self.checksum, |sum, identity| sum.wrapping_add(*identity));
        let bytes = batches.iter().flat_map(|(batch, _)| &batch.row_bytes);
        self.bytes += bytes.map(|bytes| u64::from(*bytes)).sum::<u64>();
        Ok(())
    }

    /// Reduces the memory of the key with the most distinct values, before the next rows could
    /// exceed the budget of all.
    pub(crate) fn keep_within_budget(&mut self, next: usize) -> Result<(), EvaluateError> {
        loop {
            let bytes_after = |key: &PartitionKeyCounter| key.keys().exact_bytes_after(next).unwrap_or(0);
            let bytes: Vec<usize> = self.partition_keys.iter().map(bytes_after).collect();
            if bytes.iter().sum::<usize>() <= self.budget {
                return Ok(());
            }
            let largest = bytes.iter().enumerate().max_by_key(|(_, bytes)| **bytes).map(|(index, _)| index);
            let Some(largest) = largest.and_then(|index| self.partition_keys.get_mut(index)) else {
                return Ok(());
            };
            largest.reduce_keys()?;
        }
    }
}

/// Makes the counters of the candidates for the partition key.
pub(super) fn partition_key_counters<'c>(
    candidates: impl Iterator<Item = &'c Candidate>,
    columns: &[Column],
    parts: &mut KeyParts,
    placements: &[(Function, PartitionCount)],
    time: Option<&TimeColumn>,
) -> Result<Vec<PartitionKeyCounter>, EvaluateError> {
    let mut counters = Vec::new();
    for candidate in candidates {
        let key = parts.resolve(candidate, columns)?;
        counters.push(partition_key_counter(candidate, key, parts, placements, time)?);
    }
    Ok(counters)
}

/// Makes the counter of a candidate for the partition key; `key` has the positions of its parts.
fn partition_key_counter(
    candidate: &Candidate,
    key: Vec<usize>,
    parts: &KeyParts,
    placements: &[(Function, PartitionCount)],
    time: Option<&TimeColumn>,
) -> Result<PartitionKeyCounter, EvaluateError> {
    let types = types_of(parts, &key);
    // Keys that cannot be placed at all are found before the first row.
    let (placements, left_out) = placeable(candidate, &types, placements)?;
    let of_key = key.iter().map(|position| time_of_part(parts.get(*position), time));
    let time_of_key = of_key.fold(TimeOfKey::None, TimeOfKey::with);
    let together = |same: &[(Function, PartitionCount)]| {
        let counts: Vec<PartitionCount> = same.iter().map(|(_, count)| *count).collect();
        Some(JointPlacement::group(same.first()?.0, &counts, &types))
    };
    let placements =
        placements.chunk_by(|a, b| a.0 == b.0).filter_map(together).flatten().map(Arc::new).collect();
    let plan = Arc::new(CandidatePlan { candidate: candidate.clone(), key, left_out, placements });
    Ok(PartitionKeyCounter::new(plan, types, time_of_key))
}

/// Makes the counters of the candidates for the primary key at some positions, each within a
/// budget.
pub(super) fn primary_key_counters(
    positions: Range<usize>,
    inputs: &PrimaryKeyInputs<'_>,
    parts: &mut KeyParts,
    budget: usize,
) -> Result<Vec<PrimaryKeyCounter>, EvaluateError> {
    let mut counters = Vec::new();
    for position in positions {
        let Some(candidate) = inputs.options.primary_keys.get(position) else { continue };
        let given = inputs.options.partitioned_by.get(position);
        counters.push(PrimaryKeyCounter::new(inputs.plan(candidate, given, parts, budget)?)?);
    }
    Ok(counters)
}
