//! The short windows of one key, length by length.

use crate::windows::counts::Window;
use crate::windows::moments::axis::MomentAxis;
use crate::windows::moments::batch::Moment;
use crate::windows::moments::counts::MomentCounts;
use evenkeel_model::units::{Micros, PartitionId};

/// Windows of one length, in order.
#[derive(Debug)]
pub struct Scale {
    /// Length of the windows.
    pub length: Micros,
    /// One of this many windows with rows is kept.
    pub one_in: u64,
    /// Windows that are kept.
    pub windows: Vec<Window>,
    /// The same windows with the rows of all keys.
    pub moments: Vec<Moment>,
}

impl MomentAxis {
    /// Iterates over the windows of every length, shortest first, with their counts over
    /// partitions.
    pub fn scales<'a>(
        &'a self,
        counts: &'a MomentCounts,
        partition_of_cell: &'a [PartitionId],
    ) -> impl Iterator<Item = Scale> + 'a {
        self.lengths.iter().enumerate().filter_map(move |(number, length)| {
            let known = number.min(self.levels.len() - 1);
            let (level, from) = (self.levels.get(known)?, self.lengths.get(known)?);
            // For lengths that have not begun, the last one that has begun holds all rows.
            let joined = (known < number).then(|| level.joined(*from, *length));
            let moments = joined.as_ref().unwrap_or(level).windows.values().copied().collect();
            let windows = counts.levels.get(known)?.windows(*length, partition_of_cell);
            Some(Scale { length: *length, one_in: 1u64 << level.thinned.min(63), windows, moments })
        })
    }
}
