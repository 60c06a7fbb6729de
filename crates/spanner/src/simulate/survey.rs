//! The first reading of an export: its size, its times, and whether it is in their order.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, TimestampMicrosecondArray};
use arrow::compute::{max, min};

use crate::simulate::error::SimulateError;
use evenkeel_input::source::{Export, OnUnreadable};
use evenkeel_model::units::Micros;
use evenkeel_model::values::{instants, row_bytes};

/// Approximate number of rows to sample, in total and per batch.
const SOME_ROWS: usize = 64;
const ROWS_OF_BATCH: usize = 16;
/// Largest size of an export that is sorted by time, in bytes of memory.
const SORTED_BYTES: usize = 1 << 30;
/// An export counts as unsorted if more than one in this many of its rows is late.
const LATE: u64 = 20;

/// An export to be read, and how.
pub(super) struct Source<'a> {
    pub(super) export: &'a Export,
    /// Projection: whether each column is read.
    pub(super) projection: Vec<bool>,
    /// Position of the time column. Without one, the rows exist before all others.
    pub(super) time: Option<usize>,
    /// Order in which the rows are replayed.
    pub(super) order: Order,
}

/// Statistics from a first pass over an export, before anything is simulated.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) rows: u64,
    /// Size of the values, in bytes.
    pub(super) bytes: u64,
    /// First and last timestamp, in microseconds.
    pub(super) range: Option<(i64, i64)>,
    /// Rows whose time is more than one window before that of a preceding row.
    pub(super) late_rows: u64,
    /// Rows whose time is before a preceding row's.
    pub(super) out_of_order: u64,
    pub(super) without_time: u64,
    /// Rows whose time is not NULL.
    pub(super) with_time: u64,
    /// Memory that all rows would take at once, in bytes.
    pub(super) memory: usize,
    pub(super) last_row: Option<RecordBatch>,
    /// Number of NULLs in each column that is read.
    pub(super) nulls: Vec<u64>,
    /// Sampled rows, each as a separate batch, spread over the first batches.
    pub(super) some_rows: Vec<RecordBatch>,
}

/// Order in which rows are replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Stored order of the export.
    Export,
    /// Order of time, because the export is stored in another order.
    Time,
    /// Stored order, although it is not the order of time: there are too many rows to sort.
    Unknown,
}

impl Survey {
    /// Chooses the replay order. `is_clocked` is whether rows arrive at their recorded times. If
    /// they arrive at a constant rate instead, their order within a window matters too.
    pub(super) fn order(&self, is_clocked: bool) -> Order {
        let are_many = |rows: u64| rows * LATE > self.rows;
        let is_late = are_many(self.late_rows);
        match is_late || !is_clocked && are_many(self.out_of_order) {
            false => Order::Export,
            true if self.memory <= SORTED_BYTES => Order::Time,
            true if is_late => Order::Unknown,
            true => Order::Export,
        }
    }

    /// Adds the times of a batch; `newest` is the newest time of the batches so far.
    fn add_times(&mut self, times: &TimestampMicrosecondArray, window: Micros, newest: &mut i64) {
        self.without_time += times.null_count() as u64;
        self.with_time += (times.len() - times.null_count()) as u64;
        if let (Some(first), Some(last)) = (min(times), max(times)) {
            let (least, most) = self.range.unwrap_or((first, last));
            self.range = Some((least.min(first), most.max(last)));
        }
        for micros in times.iter().flatten() {
            self.out_of_order += u64::from(micros < *newest);
            self.late_rows += u64::from(micros.saturating_add(window.get()) < *newest);
            *newest = (*newest).max(micros);
        }
    }

    /// Microseconds from the first timestamp to the last.
    pub(super) fn span(&self) -> i64 {
        self.range.map_or(0, |(first, last)| last.saturating_sub(first))
    }
}

/// Reads an export once and collects statistics.
pub(super) fn survey(
    source: &Source<'_>,
    on_unreadable: OnUnreadable,
    window: Micros,
    stop: &AtomicBool,
) -> Result<Survey, SimulateError> {
    let mut survey = Survey::default();
    let mut newest = i64::MIN;
    let is_read = &|column: usize| source.projection.get(column).copied().unwrap_or(true);
    source.export.read_columns::<SimulateError>(on_unreadable, is_read, |_, batch| {
        survey.rows += batch.num_rows() as u64;
        survey.bytes += row_bytes(&batch).iter().map(|bytes| u64::from(*bytes)).sum::<u64>();
        survey.memory = survey.memory.saturating_add(memory_of(&batch));
        survey.nulls.resize(batch.num_columns(), 0);
        for (nulls, column) in survey.nulls.iter_mut().zip(batch.columns()) {
            *nulls += column.null_count() as u64;
        }
        survey.last_row = Some(batch.slice(batch.num_rows() - 1, 1));
        let step = (batch.num_rows() / ROWS_OF_BATCH).max(1);
        if survey.some_rows.len() < SOME_ROWS {
            survey.some_rows.extend((0..batch.num_rows()).step_by(step).map(|row| batch.slice(row, 1)));
        }
        if let Some(time) = source.time {
            let times = batch.columns().get(time).and_then(instants).ok_or(SimulateError::Columns)?;
            survey.add_times(times.as_primitive(), window, &mut newest);
        }
        if stop.load(Ordering::Relaxed) { Err(SimulateError::Interrupted) } else { Ok(true) }
    })?;
    if survey.rows == 0 { Err(SimulateError::NoRows) } else { Ok(survey) }
}

/// Approximate memory of a batch, excluding memory shared with others.
fn memory_of(batch: &RecordBatch) -> usize {
    let of_column = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(usize::MAX);
    batch.columns().iter().map(of_column).fold(0, usize::saturating_add)
}
