//! Rows of one key by short window.

use crate::windows::counts::WindowCounts;
use crate::windows::moments::axis::MomentAxis;
use crate::windows::moments::batch::MomentRows;
use crate::windows::moments::sampling::{LENGTHS, is_kept};
use evenkeel_model::units::{Micros, PartitionId};
use evenkeel_model::wire::{Wire, WireError, WireReader};

/// Rows of one key by short window and cell.
#[derive(Debug, Clone)]
pub struct MomentCounts {
    cells: usize,
    shape: Vec<u32>,
    pub(super) levels: Vec<WindowCounts>,
}

impl MomentCounts {
    /// Creates empty counts for `cells` cells.
    pub fn new(cells: usize) -> Self {
        Self { cells, shape: Vec::new(), levels: Vec::new() }
    }

    /// Counts the rows of a batch. `cell` returns the cell of a row.
    pub fn add(&mut self, rows: &MomentRows, cell: impl Fn(usize) -> Option<PartitionId>) {
        self.fit(&rows.shape, rows.lengths);
        for (counts, kept) in self.levels.iter_mut().zip(&rows.levels) {
            let offsets: Vec<usize> = kept.windows.iter().map(|window| counts.offset(*window)).collect();
            for (slot, first, end) in &kept.runs {
                let Some(offset) = offsets.get(*slot as usize) else { continue };
                for row in *first..*end {
                    if let Some(cell) = cell(row as usize) {
                        counts.add(*offset, cell, 1);
                    }
                }
            }
        }
    }

    /// Begins lengths and drops windows as the axis did.
    fn fit(&mut self, shape: &[u32], lengths: &[Micros]) {
        for (number, length) in lengths.iter().take(shape.len()).enumerate() {
            if self.levels.len() == number {
                // The previous one is still complete.
                let mut next = match number.checked_sub(1).and_then(|before| self.levels.get(before)) {
                    Some(before) => before.clone(),
                    None => WindowCounts::with_length(self.cells, *length),
                };
                next.lengthen(*length);
                self.levels.push(next);
                self.shape.push(0);
            }
        }
        // Windows can be dropped only now, because the next length needed all of them.
        for ((level, own), thinned) in self.levels.iter_mut().zip(&mut self.shape).zip(shape) {
            if *own < *thinned {
                *own = *thinned;
                level.retain(|window| is_kept(window, *thinned));
            }
        }
    }

    /// Adds the counts of other rows; `axis` is the merged axis of both.
    pub fn merge(&mut self, mut other: Self, axis: &MomentAxis) {
        let shape = axis.shape();
        self.fit(&shape, axis.lengths);
        other.fit(&shape, axis.lengths);
        self.levels.iter_mut().zip(other.levels).for_each(|(level, more)| level.merge(more));
    }

    /// Appends the counts.
    pub fn put(&self, bytes: &mut Vec<u8>) {
        self.shape.put(bytes);
        self.levels.iter().for_each(|level| level.put(bytes));
    }

    /// Reads counts made elsewhere for the same number of cells.
    pub fn take(&self, left: &mut WireReader<'_>) -> Result<Self, WireError> {
        let shape: Vec<u32> = Wire::take(left)?;
        if shape.len() > LENGTHS.len() {
            return Err(WireError("it has other short windows"));
        }
        let empty = WindowCounts::new(self.cells);
        let levels = shape.iter().map(|_| empty.take(left)).collect::<Result<_, _>>()?;
        Ok(Self { cells: self.cells, shape, levels })
    }
}
