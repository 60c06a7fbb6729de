//! What one candidate for the partition key would do with the rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use rayon::prelude::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use serde::Serialize;
use serde_json::Value;

use crate::evaluate::EvaluateError;
use crate::evaluate::capacity::capacity;
use crate::evaluate::moment::{TimeOfKey, examine};
use crate::evaluate::nodes::NodeLoads;
use crate::evaluate::over_time::{OverTime, Spread};
use crate::evaluate::preparation::{Hashes, KeyOfBatch, KeyPlan};
use crate::evaluate::prepared::Prepared;
use crate::evaluate::sample::{Drawn, Interval, Intervals};
use evenkeel_model::table::{Candidate, ColumnType, PlacementFunction};
use evenkeel_model::units::Micros;
use evenkeel_model::units::{PartitionCount, PartitionId};
use evenkeel_model::wire::{Left, Wire, WireError, wire};
use evenkeel_placement::placement::systems::Status;
use evenkeel_placement::placement::{Function, JointPlacement, Placement};
use evenkeel_stats::sketch::{DistinctKeys, KeyCounter};
use evenkeel_stats::skew::{
    AtATime, BEYOND_CHANCE, KeyWeights, NoiseFloor, SkewFigures, Verdict, expected_empty_partitions,
    leaves_empty,
};
use evenkeel_stats::throughput::Capacity;
use evenkeel_stats::windows::{MomentAxis, MomentCounts, NO_WINDOW, Window, WindowCounts};

/// Heaviest keys that are shown.
const HEAVIEST_SHOWN: usize = 10;

/// A key with many rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeavyHitter {
    /// Its values, in the order of the key. None of a key that never stood out while rows came: [`crate::evaluate::assess`] reads the
    /// export again for these; an [`crate::evaluate::Evaluator`] alone cannot.
    pub key: Vec<Value>,
    /// What to find it by in the export, where its values are not known yet.
    #[serde(skip)]
    pub(super) identity: Option<u64>,
    /// Its rows, at least; exact where `error` is 0.
    pub rows: u64,
    /// So many more rows it may have.
    pub error: u64,
    /// Share of all rows, by `rows`.
    pub share: f64,
    /// Where only a sample was read: a 95 % interval of its share of the whole export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_interval: Option<Interval>,
}

/// What skew is made of, in parts of the CV, and in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkewCauses {
    /// What a perfect hash gives to so many keys, were they equal.
    pub too_few_keys: f64,
    /// What unequal keys add to that.
    pub heavy_keys: f64,
    /// What is left for the hash function, beyond chance: 0 where the rows are within five standard deviations of what these keys let
    /// expect.
    pub hash_function: f64,
    /// The same in words.
    pub words: String,
}

/// How rows arrive, batch by batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerBatch {
    /// Rows of a batch.
    pub batch_rows: u64,
    /// Batches; a last one with fewer rows is not counted.
    pub batches: u64,
    /// Partitions that a batch writes to.
    pub partitions_written: Spread,
    /// Share of a batch's rows in its fullest partition.
    pub share_of_fullest: Spread,
}

/// One placement of the rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacementReport {
    /// The placement function.
    pub function: String,
    /// How far it is checked.
    pub status: Status,
    /// Rows per partition.
    pub rows_per_partition: Vec<u64>,
    /// Bytes of values per partition, before compression.
    pub bytes_per_partition: Vec<u64>,
    /// Skew of the rows.
    #[serde(flatten)]
    pub skew: SkewFigures,
    /// What a perfect hash would give.
    #[serde(flatten)]
    pub noise_floor: NoiseFloor,
    /// What the skew is made of.
    pub causes: SkewCauses,
    /// Partitions without a key that a perfect hash leaves, on average.
    pub empty_by_chance: f64,
    /// Share of the rows in the partition of the heaviest key.
    pub share_of_heaviest_partition: f64,
    /// Balance over time, where there is a time column and a window has enough rows.
    pub over_time: Option<OverTime>,
    /// The rate of inserts that the table can take.
    pub capacity: Capacity,
    /// How rows arrive, where there is at least one whole batch.
    pub per_batch: Option<PerBatch>,
    /// The judgement.
    pub verdict: Verdict,
    /// What nodes with weights get, where these are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeLoads>,
    /// Where only a sample was read: 95 % intervals of the figures of the whole export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
    /// The windows themselves.
    #[serde(skip)]
    pub windows: Vec<Window>,
    /// The placement itself.
    #[serde(skip)]
    pub(super) placement: Placement,
}

/// What a candidate for the partition key would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionKeyReport {
    /// The parts of the key.
    pub partition_key: Vec<String>,
    /// Distinct values.
    pub distinct: DistinctKeys,
    /// Rows with NULL in some part.
    pub null_rows: u64,
    /// Bytes of a key, on average.
    pub mean_key_bytes: f64,
    /// Bytes of the longest key.
    pub max_key_bytes: u64,
    /// Why YDB does not take it in a key, where its type is the reason.
    pub type_obstacle: Option<String>,
    /// The heaviest values.
    pub heavy_hitters: Vec<HeavyHitter>,
    /// Every placement, in the order in which they were asked for.
    pub placements: Vec<PlacementReport>,
    /// Functions that take no such key, each with the reason.
    pub left_out: Vec<String>,
    /// Balance over time of the placement that is recommended, else of the first.
    pub over_time: Option<OverTime>,
    /// The key itself.
    #[serde(skip)]
    pub candidate: Candidate,
}

impl PlacementReport {
    /// Whether all partitions have the same share of the hashes.
    #[must_use]
    pub fn has_even_ranges(&self) -> bool {
        self.placement.function().has_even_ranges()
    }

    /// Whether the function has few active partitions at a time, by its own rule.
    pub(super) fn has_active_partitions(&self) -> bool {
        matches!(self.placement.function(), Function::Ydb(PlacementFunction::YdbCloudLogs { .. }))
    }

    /// Whether the hash function leaves partitions empty that chance would fill: that does not depend on how many rows the keys have.
    #[must_use]
    pub fn leaves_empty(&self) -> bool {
        self.has_even_ranges() && leaves_empty(&self.skew, &self.noise_floor)
    }
}

impl PartitionKeyReport {
    /// The placement over so many partitions; the first one of several functions.
    #[must_use]
    pub fn over(&self, partitions: PartitionCount) -> Option<&PlacementReport> {
        self.placements.iter().find(|placement| placement.skew.partitions == partitions.len())
    }

    /// Finds the partitions of the heaviest key, by a row that has it.
    pub(super) fn place_heaviest(&mut self, key: &[ArrayRef], row: usize) -> Result<(), EvaluateError> {
        let key: Vec<ArrayRef> = key.iter().map(|array| array.slice(row, 1)).collect();
        for report in &mut self.placements {
            let placed = report.placement.assign(&key);
            let placed = placed
                .map_err(|source| EvaluateError::Placement { key: self.candidate.to_string(), source })?;
            let rows = placed.first().and_then(|partition| report.rows_per_partition.get(partition.index()));
            report.share_of_heaviest_partition =
                rows.copied().unwrap_or(0) as f64 / report.skew.rows.max(1) as f64;
        }
        Ok(())
    }
}

/// What is remembered of a heavy key.
#[derive(Debug, Clone)]
pub(super) struct KeyFound {
    values: Vec<Value>,
    /// Its partition in every placement.
    partitions: Vec<PartitionId>,
}

wire!(KeyFound { values, partitions });

/// Counts the rows of one candidate, batch by batch.
#[derive(Debug, Clone)]
pub(super) struct PartitionKeyCounter {
    plan: Arc<KeyPlan>,
    types: Vec<ColumnType>,
    time: TimeOfKey,
    groups: Vec<GroupCounter>,
    keys: KeyCounter<KeyFound>,
    /// The number of each row's key in the batch under way, while keys are few.
    numbers: Vec<u32>,
    rows: u64,
    null_rows: u64,
    key_bytes: u64,
    max_key_bytes: u64,
}

/// Counts the rows of placements that share cells.
#[derive(Debug, Clone)]
struct GroupCounter {
    joint: Arc<JointPlacement>,
    /// The cell of each numbered key.
    cell_of_number: Vec<PartitionId>,
    /// The cell of each row in the batch under way.
    cells: Vec<PartitionId>,
    rows: Vec<u64>,
    bytes: Vec<u64>,
    windows: WindowCounts,
    moments: MomentCounts,
    /// Rows when the last batch ended.
    rows_before_batch: Vec<u64>,
    placements: Vec<PlacementBatches>,
}

/// The batches of one placement.
#[derive(Debug, Clone, Default)]
struct PlacementBatches {
    partitions_written: Vec<f64>,
    share_of_fullest: Vec<f64>,
}

wire!(PlacementBatches { partitions_written, share_of_fullest });

/// What was counted for one placement.
struct PlacementCounts {
    placement: Placement,
    rows: Vec<u64>,
    bytes: Vec<u64>,
    windows: Vec<Window>,
    over_time: Option<OverTime>,
    batches: PlacementBatches,
}

/// What the placements of one key share.
struct OfKey<'a> {
    weights: &'a KeyWeights,
    distinct: DistinctKeys,
    /// Whether the weights are counted, not estimated.
    exact: bool,
}

/// Where a counter's figures come from.
#[derive(Clone, Copy)]
pub(super) struct Finishing<'a> {
    /// The length of windows for each number of partitions, where there is time.
    pub(super) windows: &'a HashMap<usize, Micros>,
    /// Whether that length was asked for.
    pub(super) window_is_asked: bool,
    /// The short windows, where there is time.
    pub(super) moments: Option<&'a MomentAxis>,
    pub(super) batch_rows: u64,
    pub(super) partition_rate: f64,
    pub(super) weights: &'a [f64],
    /// The sample that was counted, if that is not all rows.
    pub(super) sample: Option<Drawn>,
}

impl PartitionKeyCounter {
    pub(super) fn new(plan: Arc<KeyPlan>, types: Vec<ColumnType>, time: TimeOfKey) -> Self {
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

    /// Counts the rows of batches, each with whether a batch of the simulated ingest ends with it.
    pub(super) fn add_all(
        &mut self,
        batches: &[(Prepared, bool)],
        keys: Vec<KeyOfBatch>,
    ) -> Result<(), EvaluateError> {
        for ((batch, ends), key) in batches.iter().zip(keys) {
            self.add(batch, key)?;
            if *ends {
                self.groups.iter_mut().for_each(GroupCounter::end_batch);
            }
        }
        Ok(())
    }

    fn add(&mut self, batch: &Prepared, prepared: KeyOfBatch) -> Result<(), EvaluateError> {
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
                self.keys.add_runs(&runs, |row| KeyFound {
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
            // They were not found beforehand where keys became too many only now.
            let cells = prepared.cells.map_or_else(|| self.plan.cells(batch), Ok)?;
            self.groups.iter_mut().zip(cells).for_each(|(group, cells)| group.cells = cells);
        }
        self.groups.iter_mut().for_each(|group| {
            group.add(batch);
            group.add_moments(batch, |group, row| group.cells.get(row).copied());
        });
        let (key, groups) = (&self.plan.key, &self.groups);
        let found = |row: usize| KeyFound {
            values: batch.values(key, row),
            partitions: groups
                .iter()
                .flat_map(|group| group.partitions_of_cell(group.cells.get(row)))
                .collect(),
        };
        match numbered {
            true => self.keys.add_numbered(&self.numbers, found),
            false => self.keys.add(identities, found),
        }
        self.count_bytes(batch);
        Ok(())
    }

    fn count_bytes(&mut self, batch: &Prepared) {
        self.rows += batch.rows as u64;
        self.null_rows += batch.null_rows(&self.plan.key);
        self.key_bytes += batch.parts_of(&self.plan.key).map(|part| part.bytes).sum::<u64>();
        self.max_key_bytes = batch.longest_key(&self.plan.key, self.max_key_bytes);
    }

    /// Places keys that have a number since this batch: each by its first row.
    fn place_new_keys(&mut self, batch: &Prepared) -> Result<(), EvaluateError> {
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
            let hashes = hashes.of(&group.joint, &columns).map_err(failed)?;
            group.joint.assign_hashes(hashes, &columns, &mut group.cells).map_err(failed)?;
            group.cell_of_number.extend_from_slice(&group.cells);
        }
        Ok(())
    }

    /// What it counts.
    pub(super) fn plan(&self) -> Arc<KeyPlan> {
        Arc::clone(&self.plan)
    }

    /// The numbers of partitions that it counts for.
    pub(super) fn partition_counts(&self) -> impl Iterator<Item = usize> {
        self.groups.iter().flat_map(|group| group.joint.counts()).map(|count| count.len())
    }

    /// The counter of its distinct values.
    pub(super) fn keys(&self) -> &KeyCounter<KeyFound> {
        &self.keys
    }

    /// Lets sketches count its distinct values from now on.
    pub(super) fn estimate_keys(&mut self) {
        self.keys.estimate();
    }

    /// Rows and bytes per partition so far, of the first placement.
    pub(super) fn counted(&self) -> (Vec<u64>, Vec<u64>) {
        let first = self.groups.first().and_then(|group| Some((group, group.joint.partitions().first()?)));
        let by_partition = |(group, partitions): (&GroupCounter, &Vec<PartitionId>)| {
            (by_partition(&group.rows, partitions), by_partition(&group.bytes, partitions))
        };
        first.map(by_partition).unwrap_or_default()
    }

    /// Adds what another counter of the same candidate counted, of rows that come later. No window of either is longer than `window`.
    /// `moments` is the axis of both.
    pub(super) fn merge(&mut self, other: Self, window: Micros, moments: Option<&MomentAxis>) {
        self.keys.merge(other.keys);
        self.rows += other.rows;
        self.null_rows += other.null_rows;
        self.key_bytes += other.key_bytes;
        self.max_key_bytes = self.max_key_bytes.max(other.max_key_bytes);
        for (group, more) in self.groups.iter_mut().zip(other.groups) {
            group.merge(more, window, moments);
        }
    }

    /// Appends what it counted.
    pub(super) fn put(&mut self, bytes: &mut Vec<u8>) {
        self.keys.put_together();
        self.keys.put(bytes);
        (self.rows, self.null_rows).put(bytes);
        (self.key_bytes, self.max_key_bytes).put(bytes);
        self.groups.iter().for_each(|group| group.put(bytes));
    }

    /// What another counter of the same candidate counted.
    pub(super) fn take(&self, left: &mut Left<'_>) -> Result<Self, WireError> {
        let keys = KeyCounter::take(left)?;
        let (rows, null_rows) = Wire::take(left)?;
        let (key_bytes, max_key_bytes) = Wire::take(left)?;
        let groups = self.groups.iter().map(|group| group.take(left)).collect::<Result<_, _>>()?;
        let empty = Self::new(Arc::clone(&self.plan), self.types.clone(), self.time);
        Ok(Self { groups, keys, rows, null_rows, key_bytes, max_key_bytes, ..empty })
    }

    pub(super) fn finish(self, how: Finishing<'_>) -> PartitionKeyReport {
        let counts = self.keys.finish(HEAVIEST_SHOWN);
        let rows = self.rows.max(1) as f64;
        let heaviest: Vec<PartitionId> = counts
            .heaviest
            .first()
            .and_then(|key| Some(key.value.as_ref()?.partitions.clone()))
            .unwrap_or_default();
        let hitters = counts.heaviest.into_iter().map(|key| HeavyHitter {
            identity: key.value.is_none().then_some(key.identity),
            key: key.value.map(|found| found.values).unwrap_or_default(),
            rows: key.rows,
            error: key.error,
            share: key.rows as f64 / rows,
            share_interval: how.sample.map(|drawn| drawn.share_of_key(key.rows, key.rows + key.error)),
        });
        let exact = counts.distinct.exact;
        let distinct = match how.sample {
            Some(drawn) => {
                let most = drawn.of.saturating_sub(drawn.rows).saturating_add(counts.distinct.upper);
                counts.distinct.of_whole(counts.keys_with_one_row, drawn.chance, most)
            }
            None => counts.distinct,
        };
        let of_key = OfKey { weights: &counts.weights, distinct, exact };
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
        // Other systems have said already what they take.
        let of_ydb =
            placements.first().is_none_or(|placement| placement.placement.function().of_ydb().is_some());
        let type_obstacle = parts
            .find(|(_, column_type)| of_ydb && !column_type.is_key_type())
            .map(|(part, column_type)| format!("{part} is of type {column_type}, which YDB takes in no key"));
        PartitionKeyReport {
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
        }
    }
}

/// The runs of equal numbers with their lengths, where they are long.
fn runs(numbers: &[u32]) -> Option<Vec<(u32, u32)>> {
    const LONG: usize = 8;
    let ends = numbers.iter().zip(numbers.iter().skip(1)).filter(|(a, b)| a != b).count();
    if ends * LONG > numbers.len() {
        return None;
    }
    let runs = numbers.chunk_by(|a, b| a == b);
    Some(runs.filter_map(|run| Some((*run.first()?, run.len() as u32))).collect())
}

/// Sums over cells as sums over partitions.
fn by_partition(of_cells: &[u64], partitions: &[PartitionId]) -> Vec<u64> {
    let count = partitions.iter().map(|partition| partition.index() + 1).max().unwrap_or(0);
    let mut sums = vec![0; count];
    for (more, partition) in of_cells.iter().zip(partitions) {
        if let Some(sum) = sums.get_mut(partition.index()) {
            *sum += more;
        }
    }
    sums
}

impl GroupCounter {
    fn new(joint: Arc<JointPlacement>) -> Self {
        let cells = joint.cells();
        Self {
            cell_of_number: Vec::new(),
            cells: Vec::new(),
            rows: vec![0; cells],
            bytes: vec![0; cells],
            windows: WindowCounts::new(cells),
            moments: MomentCounts::new(cells),
            rows_before_batch: vec![0; cells],
            placements: vec![PlacementBatches::default(); joint.counts().len()],
            joint,
        }
    }

    /// Finds the cells of rows by the numbers of their keys.
    fn look_up(&mut self, numbers: &[u32]) {
        let cell =
            |number: &u32| self.cell_of_number.get(*number as usize).copied().unwrap_or(PartitionId(0));
        self.cells.clear();
        self.cells.extend(numbers.iter().map(cell));
    }

    /// The partitions of a key that has a number.
    fn partitions_of(&self, number: Option<&u32>) -> impl Iterator<Item = PartitionId> {
        self.partitions_of_cell(number.and_then(|number| self.cell_of_number.get(*number as usize)))
    }

    fn partitions_of_cell(&self, cell: Option<&PartitionId>) -> impl Iterator<Item = PartitionId> {
        let cell = cell.map_or(0, |cell| cell.index());
        self.joint.partitions().iter().filter_map(move |partitions| partitions.get(cell)).copied()
    }

    /// Counts the rows of the batch under way. Rows that follow each other in one cell and window are counted together.
    fn add(&mut self, batch: &Prepared) {
        let offsets = batch.windows.as_ref().map(|windows| self.windows.offsets(windows)).unwrap_or_default();
        let cells = std::mem::take(&mut self.cells);
        let mut run = (cells.first().copied().unwrap_or(PartitionId(0)), NO_WINDOW, 0, 0);
        let rows = cells.iter().zip(&batch.row_bytes);
        match &batch.windows {
            Some(windows) => {
                for ((cell, bytes), slot) in rows.zip(&windows.slots) {
                    self.extend(&mut run, (*cell, *slot, *bytes), &offsets);
                }
            }
            None => {
                rows.for_each(|(cell, bytes)| self.extend(&mut run, (*cell, NO_WINDOW, *bytes), &offsets))
            }
        }
        self.count(run, &offsets);
        self.cells = cells;
    }

    /// Counts the rows of the batch under way in short windows. `cell` gives the cell of a row.
    fn add_moments(&mut self, batch: &Prepared, cell: impl Fn(&Self, usize) -> Option<PartitionId>) {
        if let Some(rows) = &batch.moments {
            let mut moments = std::mem::replace(&mut self.moments, MomentCounts::new(0));
            moments.add(rows, |row| cell(self, row));
            self.moments = moments;
        }
    }

    /// Counts rows that come in runs of one key.
    fn add_runs(&mut self, batch: &Prepared, runs: &[(u32, u32)]) {
        let offsets = batch.windows.as_ref().map(|windows| self.windows.offsets(windows)).unwrap_or_default();
        let mut begin = 0;
        for (number, rows) in runs {
            let end = begin + *rows as usize;
            let cell = self.cell_of_number.get(*number as usize).copied().unwrap_or(PartitionId(0));
            let bytes = batch.row_bytes.get(begin..end).unwrap_or_default();
            let bytes = bytes.iter().map(|bytes| u64::from(*bytes)).sum();
            self.count((cell, NO_WINDOW, u64::from(*rows), bytes), &offsets);
            let slots = batch.windows.as_ref().and_then(|windows| windows.slots.get(begin..end));
            for slots in slots.unwrap_or_default().chunk_by(|a, b| a == b) {
                if let Some(offset) = slots.first().and_then(|slot| offsets.get(*slot as usize)) {
                    self.windows.add(*offset, cell, slots.len() as u64);
                }
            }
            begin = end;
        }
    }

    /// Adds a row to the run under way: cell, position of the window, rows and bytes. A row of another run ends it.
    #[inline]
    fn extend(
        &mut self,
        run: &mut (PartitionId, u32, u64, u64),
        row: (PartitionId, u32, u32),
        offsets: &[usize],
    ) {
        let (cell, slot, bytes) = row;
        if run.0 != cell || run.1 != slot {
            self.count(*run, offsets);
            *run = (cell, slot, 0, 0);
        }
        run.2 += 1;
        run.3 += u64::from(bytes);
    }

    #[inline]
    fn count(&mut self, (cell, slot, rows, bytes): (PartitionId, u32, u64, u64), offsets: &[usize]) {
        if let Some(sum) = self.rows.get_mut(cell.index()) {
            *sum += rows;
        }
        if let Some(sum) = self.bytes.get_mut(cell.index()) {
            *sum += bytes;
        }
        if let Some(offset) = offsets.get(slot as usize) {
            self.windows.add(*offset, cell, rows);
        }
    }

    fn end_batch(&mut self) {
        let rows: Vec<u64> =
            self.rows.iter().zip(&self.rows_before_batch).map(|(now, before)| now - before).collect();
        for (placement, partitions) in self.placements.iter_mut().zip(self.joint.partitions()) {
            let (mut written, mut all, mut most) = (0u32, 0u64, 0u64);
            for rows in by_partition(&rows, partitions) {
                written += u32::from(rows > 0);
                all += rows;
                most = most.max(rows);
            }
            placement.partitions_written.push(f64::from(written));
            placement.share_of_fullest.push(most as f64 / all.max(1) as f64);
        }
        self.rows_before_batch.clone_from(&self.rows);
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        self.rows.put(bytes);
        self.bytes.put(bytes);
        self.rows_before_batch.put(bytes);
        self.windows.put(bytes);
        self.moments.put(bytes);
        self.placements.put(bytes);
    }

    fn take(&self, left: &mut Left<'_>) -> Result<Self, WireError> {
        let taken = Self {
            rows: Wire::take(left)?,
            bytes: Wire::take(left)?,
            rows_before_batch: Wire::take(left)?,
            windows: self.windows.take(left)?,
            moments: self.moments.take(left)?,
            placements: Wire::take(left)?,
            ..Self::new(Arc::clone(&self.joint))
        };
        let cells = [&taken.rows, &taken.bytes, &taken.rows_before_batch].map(Vec::len);
        if cells != [self.joint.cells(); 3] || taken.placements.len() != self.placements.len() {
            return Err(WireError("it has other partitions"));
        }
        Ok(taken)
    }

    fn merge(&mut self, mut other: Self, window: Micros, moments: Option<&MomentAxis>) {
        fn add(sum: &mut [u64], more: &[u64]) {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        add(&mut self.rows, &other.rows);
        add(&mut self.bytes, &other.bytes);
        add(&mut self.rows_before_batch, &other.rows_before_batch);
        self.windows.lengthen(window);
        other.windows.lengthen(window);
        self.windows.merge(other.windows);
        if let Some(axis) = moments {
            self.moments.merge(other.moments, axis);
        }
        for (placement, more) in self.placements.iter_mut().zip(other.placements) {
            placement.partitions_written.extend(more.partitions_written);
            placement.share_of_fullest.extend(more.share_of_fullest);
        }
    }

    /// The counts of each placement.
    fn finish(self, how: Finishing<'_>, time: TimeOfKey) -> Vec<PlacementCounts> {
        let partitions = self.joint.partitions();
        let placement =
            |((partitions, placement), batches): ((&Vec<PartitionId>, &Placement), PlacementBatches)| {
                let length = how.windows.get(&placement.partitions().len());
                let windows = length.map(|length| self.windows.windows(*length, partitions));
                let windows = windows.unwrap_or_default();
                let over_time = length.zip(how.moments).and_then(|(length, moments)| {
                    let scales = moments.scales(&self.moments, partitions);
                    let (shown, asked) = ((windows.as_slice(), *length), how.window_is_asked);
                    let sample = how.sample.map_or(1.0, |drawn| drawn.chance);
                    let (examined, which) =
                        examine(scales, shown, asked, time, placement.partitions().len(), sample);
                    OverTime::of_examined(shown, (&examined, which))
                });
                PlacementCounts {
                    placement: placement.clone(),
                    rows: by_partition(&self.rows, partitions),
                    bytes: by_partition(&self.bytes, partitions),
                    over_time,
                    windows,
                    batches,
                }
            };
        partitions.iter().zip(self.joint.placements()).zip(self.placements.clone()).map(placement).collect()
    }
}

impl PlacementCounts {
    fn finish(
        self,
        of_key: &OfKey<'_>,
        heaviest: Option<PartitionId>,
        how: Finishing<'_>,
    ) -> PlacementReport {
        let skew = SkewFigures::of(&self.rows);
        let mut noise_floor = NoiseFloor::of(&skew, of_key.weights);
        // Of a sample, the keys of the whole count against the rule of 100 to 1000.
        noise_floor.keys_per_partition = of_key.distinct.estimate as f64 / skew.partitions.max(1) as f64;
        let over_time = self.over_time;
        let at_a_time = over_time.as_ref().map_or(AtATime::Spread, |time| time.evidence.at_a_time());
        let verdict = Verdict::of(&skew, Some(&noise_floor), at_a_time);
        let rows_of_heaviest = heaviest.and_then(|partition| self.rows.get(partition.index())).copied();
        let per_batch = Spread::of(&self.batches.partitions_written)
            .zip(Spread::of(&self.batches.share_of_fullest))
            .map(|(partitions_written, share_of_fullest)| PerBatch {
                batch_rows: how.batch_rows,
                batches: self.batches.partitions_written.len() as u64,
                partitions_written,
                share_of_fullest,
            });
        PlacementReport {
            function: self.placement.function().to_string(),
            status: self.placement.status(),
            empty_by_chance: expected_empty_partitions(skew.partitions, noise_floor.distinct_keys).0,
            causes: SkewCauses::of(&skew, &noise_floor, of_key.exact, verdict),
            verdict,
            share_of_heaviest_partition: rows_of_heaviest.unwrap_or(0) as f64 / skew.rows.max(1) as f64,
            capacity: capacity(&self.bytes, over_time.as_ref(), how.partition_rate),
            intervals: how.sample.map(|drawn| Intervals::new(&self.rows, drawn)),
            nodes: NodeLoads::of(&self.rows, how.weights),
            rows_per_partition: self.rows,
            bytes_per_partition: self.bytes,
            skew,
            noise_floor,
            over_time,
            per_batch,
            windows: self.windows,
            placement: self.placement,
        }
    }
}

impl SkewCauses {
    /// What the skew is made of, and what is at fault. Where the weights of the keys are estimated, the expectation is too low to blame the
    /// function by.
    #[must_use]
    pub fn of(skew: &SkewFigures, floor: &NoiseFloor, exact: bool, verdict: Verdict) -> Self {
        let beyond = floor.deviations > BEYOND_CHANCE && skew.cv > floor.expected_cv_weighted;
        let above = if beyond { skew.cv - floor.expected_cv_weighted } else { 0.0 };
        let hash_function = if exact { above } else { 0.0 };
        let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
        let mut words = format!(
            "the CV is {}; a perfect hash gives {} to {} equal keys in {} partitions",
            percent(skew.cv),
            percent(floor.expected_cv_equal_keys),
            floor.distinct_keys,
            skew.partitions,
        );
        if floor.cv_of_heavy_keys > 0.001 {
            words.push_str(&format!(
                ", and {} to these, which differ in rows",
                percent(floor.expected_cv_weighted)
            ));
        }
        words.push_str(&if hash_function > 0.0 {
            format!("; the other {} are the hash function's own", percent(hash_function))
        } else if above > 0.0 {
            "; keys are estimated here, so the rest is not explained".to_owned()
        } else if leaves_empty(skew, floor) {
            "; the hash function leaves partitions empty that chance would fill".to_owned()
        } else {
            match verdict {
                Verdict::Even | Verdict::Empty => "; chance explains it".to_owned(),
                Verdict::FewRows => format!("; {} rows are too few to say more", skew.rows),
                Verdict::HeavyKeys => "; keys with many rows are at fault, not the hash function".to_owned(),
                Verdict::FewKeys => {
                    "; the small number of keys is at fault, not the hash function".to_owned()
                }
                Verdict::Moving => {
                    "; in total chance explains it, but at any one time few partitions are at work".to_owned()
                }
                Verdict::Uneven => "; at any one time the same few partitions are at work".to_owned(),
            }
        });
        Self {
            too_few_keys: floor.expected_cv_equal_keys,
            heavy_keys: floor.cv_of_heavy_keys,
            hash_function,
            words,
        }
    }
}
