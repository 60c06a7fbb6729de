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
use evenkeel_stats::sketch::{KeyCounter, MOST_BYTES_ON_DISK, SpillError};
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
    /// Number of the partition key.
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
        self.keys.reduce(MOST_BYTES_ON_DISK)
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
mod tests {
    use arrow::array::{ArrayRef, Int8Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
    use arrow::compute::take_record_batch;
    use evenkeel_model::table::{Candidate, Column};
    use evenkeel_placement::placement::{Function, Placement};
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;
    use crate::evaluate::options::EvaluateOptions;
    use crate::evaluate::pass::evaluator::Evaluator;

    proptest! {
        #[test]
        fn runs_are_the_rows_again_unless_they_are_short(
            lengths in proptest::collection::vec((0u32..3, 1usize..30), 0..12),
        ) {
            let all = lengths.iter().flat_map(|(number, rows)| std::iter::repeat_n(*number, *rows));
            let numbers: Vec<u32> = all.collect();
            let changes = numbers.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let found = runs(&numbers);
            prop_assert_eq!(found.is_some(), changes * 8 <= numbers.len());
            if let Some(found) = found {
                prop_assert_eq!(found.len(), changes + usize::from(!numbers.is_empty()));
                let again = found.iter().flat_map(|(number, rows)| std::iter::repeat_n(*number, *rows as usize));
                prop_assert_eq!(again.collect::<Vec<u32>>(), numbers);
            }
        }
    }

    /// Rows of keys, each of which has 20 rows more than the one before. One name is NULL.
    fn sorted() -> RecordBatch {
        let keys = || (0..40u64).flat_map(|key| std::iter::repeat_n(key, key as usize * 20 + 5));
        let name = |key: u64| (key != 7).then(|| "n".repeat(key as usize % 6 + 1) + &key.to_string());
        let names: ArrayRef = Arc::new(keys().map(name).collect::<StringArray>());
        let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(keys().map(|key| key / 3)));
        RecordBatch::try_from_iter([("name", names), ("number", numbers)]).unwrap()
    }

    fn evaluator(columns: &[Column], key: &str, function: &str) -> Evaluator {
        let options = EvaluateOptions {
            partition_keys: vec![key.parse().unwrap()],
            placements: vec![function.parse().unwrap()],
            partitions: [5, 16].map(|count| PartitionCount::new(count).unwrap()).to_vec(),
            ..EvaluateOptions::default()
        };
        Evaluator::new(columns, options).unwrap()
    }

    /// The report on a key, without the values of heavy keys, after batches of `batch_rows`.
    fn report(batch: &RecordBatch, key: &str, batch_rows: usize) -> PartitionKeyReport {
        let types = [("name", ColumnType::Utf8), ("number", ColumnType::Uint64)];
        let columns = types.map(|(name, column_type)| Column::nullable(name, column_type));
        let mut evaluator = evaluator(&columns, key, "ydb");
        for begin in (0..batch.num_rows()).step_by(batch_rows) {
            let rows = batch_rows.min(batch.num_rows() - begin);
            evaluator.add(&batch.slice(begin, rows)).unwrap();
        }
        let counted = evaluator.counted();
        let mut report = evaluator.finish().unwrap().candidates.remove(0);
        let first = &report.placements[0];
        assert_eq!(counted, (first.rows_per_partition.clone(), first.bytes_per_partition.clone()));
        for hitter in &mut report.heavy_hitters {
            (hitter.key, hitter.identity) = (Vec::new(), None);
        }
        report
    }

    #[test]
    fn sorted_and_shuffled_rows_of_a_key_have_the_figures_of_a_naive_count() {
        let sorted = sorted();
        let rows = sorted.num_rows();
        let order = UInt32Array::from_iter_values(
            (0..rows as u32).map(|row| (u64::from(row) * 7_919 % rows as u64) as u32),
        );
        let shuffled = take_record_batch(&sorted, &order).unwrap();
        for key in ["name", "number", "number, name"] {
            let expected = report(&sorted, key, rows);
            for batch_rows in [rows, 333] {
                assert_eq!(report(&shuffled, key, batch_rows), expected, "{key} {batch_rows}");
                assert_eq!(report(&sorted, key, batch_rows), expected, "{key} {batch_rows}");
            }
            let parts: Vec<&str> = key.split(", ").collect();
            let columns: Vec<ArrayRef> =
                parts.iter().map(|part| Arc::clone(sorted.column_by_name(part).unwrap())).collect();
            let types: Vec<ColumnType> =
                columns.iter().map(|column| ColumnType::from_arrow(column.data_type()).unwrap()).collect();
            for (count, placement) in [5, 16].into_iter().zip(&expected.placements) {
                let partitions = PartitionCount::new(count).unwrap();
                let mut naive = vec![0u64; partitions.len()];
                let placed = Placement::new(Function::default(), partitions, types.clone());
                for partition in placed.assign(&columns).unwrap() {
                    naive[partition.index()] += 1;
                }
                assert_eq!(placement.rows_per_partition, naive, "{key} {count}");
            }
            let has_name = parts.contains(&"name");
            assert_eq!(expected.null_rows, if has_name { 7 * 20 + 5 } else { 0 }, "{key}");
            let bytes = |key: u64| match (has_name, parts.len()) {
                (false, _) => 8,
                (true, parts) => {
                    let name = if key == 7 { 0 } else { key % 6 + 1 + key.to_string().len() as u64 };
                    name + 8 * (parts as u64 - 1)
                }
            };
            let sum: u64 = (0..40).map(|key| bytes(key) * (key * 20 + 5)).sum();
            assert_eq!(expected.mean_key_bytes, sum as f64 / rows as f64, "{key}");
            assert_eq!(Some(expected.max_key_bytes), (0..40).map(bytes).max(), "{key}");
            // Three names have each number.
            let mut of_keys: Vec<u64> = if has_name {
                (0..40).map(|key| key * 20 + 5).collect()
            } else {
                (0..40u64)
                    .step_by(3)
                    .map(|key| (key..(key + 3).min(40)).map(|key| key * 20 + 5).sum::<u64>())
                    .collect()
            };
            assert_eq!(expected.distinct.estimate, of_keys.len() as u64, "{key}");
            of_keys.sort_unstable_by_key(|rows| std::cmp::Reverse(*rows));
            let heaviest: Vec<u64> = expected.heavy_hitters.iter().map(|hitter| hitter.rows).collect();
            assert_eq!(heaviest, of_keys[..10], "{key}");
        }
    }

    #[test]
    fn types_that_ydb_takes_in_no_key_are_an_obstacle_there_alone() {
        let column = Column::nullable("small", ColumnType::Int8);
        let values: ArrayRef = Arc::new(Int8Array::from_iter_values(0..100));
        let batch = RecordBatch::try_from_iter([("small", values)]).unwrap();
        for (function, obstacle) in
            [("ydb", Some("small is of type Int8, which YDB does not accept in keys")), ("kudu", None)]
        {
            let mut evaluator = evaluator(std::slice::from_ref(&column), "small", function);
            evaluator.add(&batch).unwrap();
            let report = evaluator.finish().unwrap().candidates.remove(0);
            assert_eq!(report.type_obstacle.as_deref(), obstacle, "{function}");
            assert_eq!(report.candidate, Candidate::from_columns(&["small"]));
        }
    }

    #[test]
    fn the_values_of_the_heaviest_keys_are_known_in_the_order_of_their_rows() {
        let columns = ["name", "number"].map(|name| {
            Column::nullable(name, if name == "name" { ColumnType::Utf8 } else { ColumnType::Uint64 })
        });
        let mut evaluator = evaluator(&columns, "number, name", "ydb");
        evaluator.add(&sorted()).unwrap();
        let report = evaluator.finish().unwrap().candidates.remove(0);
        let first = &report.heavy_hitters[0];
        assert_eq!(first.key, [Value::from(13), Value::from("nnnn39")]);
        assert_eq!((first.rows, first.error), (39 * 20 + 5, 0));
        // 20 x (0 + 1 + ... + 39) + 40 x 5 rows.
        assert_eq!(first.share, 785.0 / 15_800.0);
        let placement = &report.placements[1];
        assert!(placement.share_of_heaviest_partition >= first.share, "{placement:?}");
    }
}
