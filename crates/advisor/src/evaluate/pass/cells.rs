//! Rows by cell: keys that no number of partitions separates are counted together.

use std::sync::Arc;

use crate::evaluate::figures::capacity::capacity;
use crate::evaluate::figures::interval::Intervals;
use crate::evaluate::figures::loads::LoadWindow;
use crate::evaluate::figures::moment::{TimeOfKey, examine};
use crate::evaluate::figures::over_time::{OverTime, Spread};
use crate::evaluate::figures::partition_key::{PerBatch, PlacementReport, SkewCauses};
use crate::evaluate::figures::weights::NodeLoads;
use crate::evaluate::pass::batch::KeyedBatch;
use crate::evaluate::pass::context::{KeyContext, ReportContext};
use evenkeel_model::units::{Micros, PartitionCount, PartitionId};
use evenkeel_model::wire::{Wire, WireError, WireReader, wire};
use evenkeel_placement::placement::{JointPlacement, Placement};
use evenkeel_stats::skew::{AtATime, NoiseFloor, SkewFigures, Verdict, expected_empty_partitions};
use evenkeel_stats::windows::{MomentAxis, MomentCounts, NO_WINDOW, Window, WindowCounts};

/// Counts the rows of placements that share cells.
#[derive(Debug, Clone)]
pub(super) struct GroupCounter {
    pub(super) joint: Arc<JointPlacement>,
    /// Cell of each numbered key.
    pub(super) cell_of_number: Vec<PartitionId>,
    /// Cell of each row in the current batch.
    pub(super) cells: Vec<PartitionId>,
    pub(super) rows: Vec<u64>,
    pub(super) bytes: Vec<u64>,
    pub(super) windows: WindowCounts,
    /// Bytes of the rows in `windows`, if they are wanted. Both see the same windows, which are at
    /// the same offsets.
    window_bytes: Option<WindowCounts>,
    pub(super) moments: MomentCounts,
    /// Rows at the end of the last batch.
    pub(super) rows_before_batch: Vec<u64>,
    pub(super) placements: Vec<PlacementBatches>,
}

/// Figures of one placement, batch by batch.
#[derive(Debug, Clone, Default)]
pub(super) struct PlacementBatches {
    pub(super) partitions_written: Vec<f64>,
    pub(super) share_of_fullest: Vec<f64>,
}

wire!(PlacementBatches { partitions_written, share_of_fullest });

/// Counts for one placement.
pub(super) struct PlacementCounts {
    pub(super) placement: Placement,
    pub(super) rows: Vec<u64>,
    pub(super) bytes: Vec<u64>,
    pub(super) windows: Vec<Window>,
    pub(super) over_time: Option<OverTime>,
    pub(super) batches: PlacementBatches,
}

/// Converts sums over cells to sums over partitions.
pub(super) fn by_partition(of_cells: &[u64], partitions: &[PartitionId]) -> Vec<u64> {
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
    pub(super) fn new(joint: Arc<JointPlacement>) -> Self {
        let cells = joint.cells();
        Self {
            cell_of_number: Vec::new(),
            cells: Vec::new(),
            rows: vec![0; cells],
            bytes: vec![0; cells],
            windows: WindowCounts::new(cells),
            window_bytes: None,
            moments: MomentCounts::new(cells),
            rows_before_batch: vec![0; cells],
            placements: vec![PlacementBatches::default(); joint.counts().len()],
            joint,
        }
    }

    /// Counts the bytes of each window, too.
    pub(super) fn weigh_windows(&mut self) {
        self.window_bytes = Some(WindowCounts::new(self.joint.cells()));
    }

    /// Returns the offsets of the counts of the windows of a batch.
    fn offsets(&mut self, batch: &KeyedBatch) -> Vec<usize> {
        let Some(windows) = &batch.windows else { return Vec::new() };
        if let Some(bytes) = &mut self.window_bytes {
            bytes.offsets(windows);
        }
        self.windows.offsets(windows)
    }

    fn add_to_window(&mut self, offset: usize, cell: PartitionId, rows: u64, bytes: u64) {
        self.windows.add(offset, cell, rows);
        if let Some(weighed) = &mut self.window_bytes {
            weighed.add(offset, cell, bytes);
        }
    }

    /// Looks up the cells of rows by the numbers of their keys.
    pub(super) fn look_up(&mut self, numbers: &[u32]) {
        let cell =
            |number: &u32| self.cell_of_number.get(*number as usize).copied().unwrap_or(PartitionId(0));
        self.cells.clear();
        self.cells.extend(numbers.iter().map(cell));
    }

    /// Returns the partitions of a key that has a number.
    pub(super) fn partitions_of(&self, number: Option<&u32>) -> impl Iterator<Item = PartitionId> {
        self.partitions_of_cell(number.and_then(|number| self.cell_of_number.get(*number as usize)))
    }

    pub(super) fn partitions_of_cell(&self, cell: Option<&PartitionId>) -> impl Iterator<Item = PartitionId> {
        let cell = cell.map_or(0, |cell| cell.index());
        self.joint.partitions().iter().filter_map(move |partitions| partitions.get(cell)).copied()
    }

    /// Counts the rows of the current batch. Consecutive rows in one cell and window are counted
    /// together.
    pub(super) fn add(&mut self, batch: &KeyedBatch) {
        let offsets = self.offsets(batch);
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

    /// Counts the rows of the current batch in short windows. `cell` gives the cell of a row.
    pub(super) fn add_moments(
        &mut self,
        batch: &KeyedBatch,
        cell: impl Fn(&Self, usize) -> Option<PartitionId>,
    ) {
        if let Some(rows) = &batch.moments {
            let mut moments = std::mem::replace(&mut self.moments, MomentCounts::new(0));
            moments.add(rows, |row| cell(self, row));
            self.moments = moments;
        }
    }

    /// Counts rows that arrive in runs of one key.
    pub(super) fn add_runs(&mut self, batch: &KeyedBatch, runs: &[(u32, u32)]) {
        let offsets = self.offsets(batch);
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
                    let bytes = batch.row_bytes.get(begin..begin + slots.len()).unwrap_or_default();
                    let bytes = bytes.iter().map(|bytes| u64::from(*bytes)).sum();
                    self.add_to_window(*offset, cell, slots.len() as u64, bytes);
                }
                begin += slots.len();
            }
            begin = end;
        }
    }

    /// Adds a row to the current run: cell, position of the window, rows and bytes. A row of
    /// another run ends it.
    #[inline]
    pub(super) fn extend(
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
    pub(super) fn count(
        &mut self,
        (cell, slot, rows, bytes): (PartitionId, u32, u64, u64),
        offsets: &[usize],
    ) {
        if let Some(sum) = self.rows.get_mut(cell.index()) {
            *sum += rows;
        }
        if let Some(sum) = self.bytes.get_mut(cell.index()) {
            *sum += bytes;
        }
        if let Some(offset) = offsets.get(slot as usize) {
            self.add_to_window(*offset, cell, rows, bytes);
        }
    }

    pub(super) fn end_batch(&mut self) {
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

    pub(super) fn put(&self, bytes: &mut Vec<u8>) {
        self.rows.put(bytes);
        self.bytes.put(bytes);
        self.rows_before_batch.put(bytes);
        self.windows.put(bytes);
        self.moments.put(bytes);
        self.placements.put(bytes);
    }

    pub(super) fn take(&self, left: &mut WireReader<'_>) -> Result<Self, WireError> {
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

    pub(super) fn merge(&mut self, mut other: Self, window: Micros, moments: Option<&MomentAxis>) {
        fn add(sum: &mut [u64], more: &[u64]) {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        add(&mut self.rows, &other.rows);
        add(&mut self.bytes, &other.bytes);
        add(&mut self.rows_before_batch, &other.rows_before_batch);
        self.windows.lengthen(window);
        other.windows.lengthen(window);
        self.windows.merge(other.windows);
        if let (Some(bytes), Some(mut more)) = (&mut self.window_bytes, other.window_bytes) {
            bytes.lengthen(window);
            more.lengthen(window);
            bytes.merge(more);
        }
        if let Some(axis) = moments {
            self.moments.merge(other.moments, axis);
        }
        for (placement, more) in self.placements.iter_mut().zip(other.placements) {
            placement.partitions_written.extend(more.partitions_written);
            placement.share_of_fullest.extend(more.share_of_fullest);
        }
    }

    /// Returns the load on the partitions of each placement in windows of `length`; none unless
    /// bytes are counted.
    pub(super) fn loads(&self, length: Micros) -> impl Iterator<Item = (PartitionCount, Vec<LoadWindow>)> {
        self.joint.counts().iter().zip(self.joint.partitions()).map(move |(count, partitions)| {
            let rows = self.windows.windows(length, partitions);
            let bytes = self.window_bytes.as_ref().map(|bytes| bytes.windows(length, partitions));
            let windows = rows.into_iter().zip(bytes.unwrap_or_default()).map(|(rows, bytes)| LoadWindow {
                start_micros: rows.start_micros,
                rows: rows.rows_per_partition,
                bytes: bytes.rows_per_partition,
            });
            (*count, windows.collect())
        })
    }

    /// Returns the counts of each placement.
    pub(super) fn finish(self, how: ReportContext<'_>, time: TimeOfKey) -> Vec<PlacementCounts> {
        let partitions = self.joint.partitions();
        let placement =
            |((partitions, placement), batches): ((&Vec<PartitionId>, &Placement), PlacementBatches)| {
                let length = how.windows.get(&placement.partitions().len());
                let windows = length.map(|length| self.windows.windows(*length, partitions));
                let windows = windows.unwrap_or_default();
                let over_time = length.zip(how.moments).and_then(|(length, moments)| {
                    let scales = moments.scales(&self.moments, partitions);
                    let (shown, is_requested) = ((windows.as_slice(), *length), how.window_is_requested);
                    let sample = how.sample.map_or(1.0, |drawn| drawn.chance);
                    let (examined, which) =
                        examine(scales, shown, is_requested, time, placement.partitions().len(), sample);
                    OverTime::from_examined(shown, (&examined, which))
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
    pub(super) fn finish(
        self,
        of_key: &KeyContext<'_>,
        heaviest: Option<PartitionId>,
        how: ReportContext<'_>,
    ) -> PlacementReport {
        let skew = SkewFigures::from_counts(&self.rows);
        let mut noise_floor = NoiseFloor::from_weights(&skew, of_key.weights);
        // For a sample, the keys of the whole export count against the rule of 100 to 1000.
        noise_floor.keys_per_partition = of_key.distinct.estimate as f64 / skew.partitions.max(1) as f64;
        let over_time = self.over_time;
        let at_a_time = over_time.as_ref().map_or(AtATime::Spread, |time| time.evidence.at_a_time());
        let verdict = Verdict::from_skew(&skew, Some(&noise_floor), at_a_time);
        let rows_of_heaviest = heaviest.and_then(|partition| self.rows.get(partition.index())).copied();
        let per_batch = Spread::from_values(&self.batches.partitions_written)
            .zip(Spread::from_values(&self.batches.share_of_fullest))
            .map(|(partitions_written, share_of_fullest)| PerBatch {
                batch_rows: how.batch_rows,
                batches: self.batches.partitions_written.len() as u64,
                partitions_written,
                share_of_fullest,
            });
        PlacementReport {
            function: self.placement.function(),
            status: self.placement.status(),
            empty_by_chance: expected_empty_partitions(skew.partitions, noise_floor.distinct_keys).0,
            causes: SkewCauses::new(&skew, &noise_floor, of_key.exact, verdict),
            verdict,
            share_of_heaviest_partition: rows_of_heaviest.unwrap_or(0) as f64 / skew.rows.max(1) as f64,
            capacity: capacity(&self.bytes, over_time.as_ref(), how.partition_rate),
            intervals: how.sample.map(|drawn| Intervals::new(&self.rows, drawn)),
            nodes: NodeLoads::new(&self.rows, how.weights),
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

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
