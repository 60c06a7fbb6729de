//! Counts for one candidate for the partition key.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use serde_json::Value;

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::loads::LoadWindow;
use crate::evaluate::figures::moment::TimeOfKey;
use crate::evaluate::figures::partition_key::PlacementReport;
use crate::evaluate::figures::partition_key::{HeavyHitter, PartitionKeyReport};
use crate::evaluate::pass::batch::KeyedBatch;
use crate::evaluate::pass::cells::GroupCounter;
use crate::evaluate::pass::cells::by_partition;
use crate::evaluate::pass::context::{KeyContext, ReportContext};
use crate::evaluate::pass::preparation::{BatchKeys, CandidatePlan, Hashes};
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::{Micros, PartitionCount, PartitionId};
use evenkeel_model::wire::{Wire, WireError, WireReader, wire};
use evenkeel_stats::sketch::{KeyCounter, MAX_BYTES_ON_DISK, SpillError};
use evenkeel_stats::skew::KeyWeights;
use evenkeel_stats::windows::MomentAxis;

/// Number of heaviest keys that are shown.
const HEAVIEST_SHOWN: usize = 10;

/// Details of a heavy key.
#[derive(Debug, Clone)]
pub(crate) struct KeyOccurrence {
    pub(crate) values: Vec<Value>,
    /// Partition of the key in every placement.
    pub(crate) partitions: Vec<PartitionId>,
}

wire!(KeyOccurrence { values, partitions });

/// Details of a heavy key that the counts do not know.
#[derive(Debug, Clone)]
pub(crate) struct FoundKey {
    /// Position of the partition key among those that are counted.
    pub(crate) partition_key: usize,
    pub(crate) identity: u64,
    pub(crate) occurrence: KeyOccurrence,
}

wire!(FoundKey { partition_key, identity, occurrence });

/// Counts the rows of one candidate, batch by batch.
#[derive(Debug)]
pub(crate) struct PartitionKeyCounter {
    plan: Arc<CandidatePlan>,
    types: Vec<ColumnType>,
    time: TimeOfKey,
    groups: Vec<GroupCounter>,
    keys: KeyCounter<KeyOccurrence>,
    /// Number of each row's key in the current batch, while keys are few.
    numbers: Vec<u32>,
    rows: u64,
    null_rows: u64,
    key_bytes: u64,
    max_key_bytes: u64,
}

impl PartitionKeyCounter {
    pub(crate) fn new(plan: Arc<CandidatePlan>, types: Vec<ColumnType>, time: TimeOfKey) -> Self {
        let groups = plan.placements.iter().map(|joint| GroupCounter::new(Arc::clone(joint))).collect();
        Self {
            plan,
            types,
            time,
            groups,
            keys: KeyCounter::new(),
            numbers: Vec::new(),
            rows: 0,
            null_rows: 0,
            key_bytes: 0,
            max_key_bytes: 0,
        }
    }

    /// Counts the rows of batches, each with whether it ends a batch of the simulated ingest.
    pub(crate) fn add_all(
        &mut self,
        batches: &[(KeyedBatch, bool)],
        keys: Vec<BatchKeys>,
    ) -> Result<(), EvaluateError> {
        for ((batch, ends), key) in batches.iter().zip(keys) {
            self.add(batch, key)?;
            if *ends {
                self.groups.iter_mut().for_each(GroupCounter::end_batch);
            }
        }
        Ok(())
    }

    fn add(&mut self, batch: &KeyedBatch, prepared: BatchKeys) -> Result<(), EvaluateError> {
        let first_part = self.plan.key.first().and_then(|position| batch.part(*position));
        let of_part = || first_part.map(|part| part.identities.as_slice());
        let identities = prepared.identities.as_deref().or_else(of_part).unwrap_or_default();
        let numbered = self.keys.number(identities, &mut self.numbers);
        if numbered {
            self.place_new_keys(batch)?;
            if let Some(runs) = runs(&self.numbers) {
                let numbers = &self.numbers;
                self.groups.iter_mut().for_each(|group| {
                    group.add_runs(batch, &runs);
                    group.add_moments(batch, |group, row| {
                        group.cell_of_number.get(*numbers.get(row)? as usize).copied()
                    });
                });
                let (key, groups, numbers) = (&self.plan.key, &self.groups, &self.numbers);
                self.keys.add_runs(&runs, |row| KeyOccurrence {
                    values: batch.values(key, row),
                    partitions: groups
                        .iter()
                        .flat_map(|group| group.partitions_of(numbers.get(row)))
                        .collect(),
                });
                self.count_bytes(batch);
                return Ok(());
            }
            let numbers = &self.numbers;
            self.groups.iter_mut().for_each(|group| group.look_up(numbers));
        } else {
            // They were not prepared if keys became too many only now.
            let cells = prepared.cells.map_or_else(|| self.plan.cells(batch), Ok)?;
            self.groups.iter_mut().zip(cells).for_each(|(group, cells)| group.cells = cells);
        }
        self.groups.iter_mut().for_each(|group| {
            group.add(batch);
            group.add_moments(batch, |group, row| group.cells.get(row).copied());
        });
        let (key, groups) = (&self.plan.key, &self.groups);
        let occurrence_of = |row: usize| KeyOccurrence {
            values: batch.values(key, row),
            partitions: groups
                .iter()
                .flat_map(|group| group.partitions_of_cell(group.cells.get(row)))
                .collect(),
        };
        match numbered {
            true => self.keys.add_numbered(&self.numbers, occurrence_of),
            false => self.keys.add(identities, occurrence_of),
        }
        self.count_bytes(batch);
        Ok(())
    }

    fn count_bytes(&mut self, batch: &KeyedBatch) {
        self.rows += batch.rows as u64;
        self.null_rows += batch.null_rows(&self.plan.key);
        self.key_bytes += batch.parts_of(&self.plan.key).map(|part| part.bytes).sum::<u64>();
        self.max_key_bytes = batch.longest_key(&self.plan.key, self.max_key_bytes);
    }

    /// Places the keys that were numbered in this batch, each by its first row.
    fn place_new_keys(&mut self, batch: &KeyedBatch) -> Result<(), EvaluateError> {
        let Some(first) =
            self.groups.first().filter(|group| group.cell_of_number.len() < self.keys.numbered())
        else {
            return Ok(());
        };
        let mut known = first.cell_of_number.len() as u32;
        let is_new = |(row, number): (u32, &u32)| {
            let new = *number == known;
            known += u32::from(new);
            new.then_some(row)
        };
        let rows: Vec<u32> = (0u32..).zip(&self.numbers).filter_map(is_new).collect();
        let failed = |source| EvaluateError::Placement { key: self.plan.candidate.to_string(), source };
        let columns = batch.rows_of(&self.plan.key, &rows);
        let mut hashes = Hashes::default();
        for group in &mut self.groups {
            let hashes = hashes.for_batch(&group.joint, &columns).map_err(failed)?;
            group.joint.assign_hashes(hashes, &columns, &mut group.cells).map_err(failed)?;
            group.cell_of_number.extend_from_slice(&group.cells);
        }
        Ok(())
    }

    /// Returns the plan of the candidate.
    pub(crate) fn plan(&self) -> Arc<CandidatePlan> {
        Arc::clone(&self.plan)
    }

    /// Returns the numbers of partitions that are counted.
    pub(crate) fn partition_counts(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().flat_map(|group| group.joint.counts()).map(|count| count.len())
    }

    /// Returns the counter of distinct values.
    pub(crate) fn keys(&self) -> &KeyCounter<KeyOccurrence> {
        &self.keys
    }

    /// Reduces the memory for distinct values.
    pub(crate) fn reduce_keys(&mut self) -> Result<(), SpillError> {
        self.keys.reduce(MAX_BYTES_ON_DISK)
    }

    /// Ends the current batch of the simulated ingest, if it has rows.
    pub(crate) fn end_batch(&mut self) {
        self.groups
            .iter_mut()
            .filter(|group| group.rows != group.rows_before_batch)
            .for_each(GroupCounter::end_batch);
    }

    /// Combines the rows of each distinct value.
    pub(crate) fn put_together(&mut self) {
        self.keys.put_together();
    }

    /// Returns rows and bytes per partition so far, of the first placement.
    pub(crate) fn counted(&self) -> (Vec<u64>, Vec<u64>) {
        let first = self.groups.first().and_then(|group| Some((group, group.joint.partitions().first()?)));
        let by_partition = |(group, partitions): (&GroupCounter, &Vec<PartitionId>)| {
            (by_partition(&group.rows, partitions), by_partition(&group.bytes, partitions))
        };
        first.map(by_partition).unwrap_or_default()
    }

    /// Adds the counts of another counter of the same candidate, of later rows. No window of either
    /// is longer than `window`. `moments` is the axis of both.
    pub(crate) fn merge(
        &mut self,
        other: Self,
        window: Micros,
        moments: Option<&MomentAxis>,
    ) -> Result<(), SpillError> {
        self.keys.merge(other.keys)?;
        self.rows += other.rows;
        self.null_rows += other.null_rows;
        self.key_bytes += other.key_bytes;
        self.max_key_bytes = self.max_key_bytes.max(other.max_key_bytes);
        for (group, more) in self.groups.iter_mut().zip(other.groups) {
            group.merge(more, window, moments);
        }
        Ok(())
    }

    /// Prepares for [`PartitionKeyCounter::put`], which writes only from memory.
    pub(crate) fn read_back(&mut self) -> Result<(), SpillError> {
        self.keys.read_back()?;
        self.keys.put_together();
        Ok(())
    }

    /// Appends the counts to `bytes`, the distinct values as sketches if these are to be
    /// `estimated`.
    pub(crate) fn put(&self, estimated: bool, bytes: &mut Vec<u8>) -> Result<(), SpillError> {
        match estimated {
            true => self.keys.put_estimated(bytes)?,
            false => self.keys.put(bytes),
        }
        (self.rows, self.null_rows).put(bytes);
        (self.key_bytes, self.max_key_bytes).put(bytes);
        self.groups.iter().for_each(|group| group.put(bytes));
        Ok(())
    }

    /// Reads the counts of another counter of the same candidate.
    pub(crate) fn take(&self, left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let keys = KeyCounter::take(left)?;
        let (rows, null_rows) = Wire::take(left)?;
        let (key_bytes, max_key_bytes) = Wire::take(left)?;
        let groups = self.groups.iter().map(|group| group.take(left)).collect::<Result<_, _>>()?;
        let empty = Self::new(Arc::clone(&self.plan), self.types.clone(), self.time);
        Ok(Self { groups, keys, rows, null_rows, key_bytes, max_key_bytes, ..empty })
    }

    /// Counts the bytes of each window, too, for [`PartitionKeyCounter::loads`].
    pub(crate) fn weigh_windows(&mut self) {
        self.groups.iter_mut().for_each(GroupCounter::weigh_windows);
    }

    /// Returns the load on the partitions of each placement in windows of `length`.
    pub(crate) fn loads(&self, length: Micros) -> BTreeMap<PartitionCount, Vec<LoadWindow>> {
        self.groups.iter().flat_map(|group| group.loads(length)).collect()
    }

    /// Returns the figures of the candidate, and the rows of its keys.
    pub(crate) fn finish(
        self,
        how: ReportContext<'_>,
    ) -> Result<(PartitionKeyReport, KeyWeights), SpillError> {
        let counts = self.keys.finish(HEAVIEST_SHOWN)?;
        let rows = self.rows.max(1) as f64;
        let heaviest: Vec<PartitionId> = counts
            .heaviest
            .first()
            .and_then(|key| Some(key.value.as_ref()?.partitions.clone()))
            .unwrap_or_default();
        let hitters = counts.heaviest.into_iter().map(|key| HeavyHitter {
            identity: key.value.is_none().then_some(key.identity),
            key: key.value.map(|occurrence| occurrence.values).unwrap_or_default(),
            rows: key.rows,
            error: key.error,
            share: key.rows as f64 / rows,
            share_interval: how.sample.map(|drawn| drawn.share_of_key(key.rows, key.rows + key.error)),
        });
        let exact = counts.distinct.exact;
        let distinct = match how.sample {
            Some(drawn) => {
                let most = drawn.population.saturating_sub(drawn.rows).saturating_add(counts.distinct.upper);
                counts.distinct.scaled_to_whole(counts.keys_with_one_row, drawn.chance, most)
            }
            None => counts.distinct,
        };
        let of_key = KeyContext { weights: &counts.weights, distinct, exact };
        let time = self.time;
        let placements = self
            .groups
            .into_iter()
            .flat_map(|group| group.finish(how, time))
            .collect::<Vec<_>>()
            .into_par_iter()
            .enumerate()
            .map(|(index, placement)| placement.finish(&of_key, heaviest.get(index).copied(), how));
        let placements: Vec<PlacementReport> = placements.collect();
        let mut parts = self.plan.candidate.part_names().into_iter().zip(&self.types);
        // Other systems have already reported which types they accept.
        let of_ydb = placements
            .first()
            .is_none_or(|placement| placement.placement.function().ydb_function().is_some());
        let type_obstacle =
            parts.find(|(_, column_type)| of_ydb && !column_type.is_key_type()).map(|(part, column_type)| {
                format!("{part} is of type {column_type}, which YDB does not accept in keys")
            });
        let report = PartitionKeyReport {
            type_obstacle,
            partition_key: self.plan.candidate.part_names(),
            distinct,
            null_rows: self.null_rows,
            mean_key_bytes: self.key_bytes as f64 / rows,
            max_key_bytes: self.max_key_bytes,
            heavy_hitters: hitters.collect(),
            left_out: self.plan.left_out.clone(),
            over_time: placements.first().and_then(|placement| placement.over_time.clone()),
            placements,
            candidate: self.plan.candidate.clone(),
        };
        Ok((report, counts.weights))
    }
}

/// Returns the runs of equal numbers with their lengths; `None` if they are short.
fn runs(numbers: &[u32]) -> Option<Vec<(u32, u32)>> {
    const LONG: usize = 8;
    let ends = numbers.iter().zip(numbers.iter().skip(1)).filter(|(a, b)| a != b).count();
    if ends * LONG > numbers.len() {
        return None;
    }
    let runs = numbers.chunk_by(|a, b| a == b);
    Some(runs.filter_map(|run| Some((*run.first()?, run.len() as u32))).collect())
}

#[cfg(test)]
#[path = "partition_key_tests.rs"]
mod tests;
