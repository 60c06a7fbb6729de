//! Samples rows from all over an export, for callers that need its values before a full pass.
//!
//! ```text
//! a small export    all rows
//! Parquet           row ranges at equal distances; row groups without any are not decoded
//! CSV, NDJSON       all lines are read; blocks of records at equal distances are parsed
//! others            all rows are read; blocks of rows at equal distances are kept
//! ```
//! Each of several inputs has at least one place, and the rest are divided by size in bytes; if
//! there are more inputs than places, some inputs are left out. The same export always gives the
//! same rows.

use std::io::{Cursor, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use evenkeel_model::table::without_unused_text;
use evenkeel_model::values::row_bytes;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use crate::source::error::SourceError;
use crate::source::export::contents::Export;
use crate::source::export::reading::{ExportPlace, OnUnreadable, Unreadable};
use crate::source::export::sampled_lines::{Block, Lines, Thinned};
use crate::source::format::InputFormat;
use crate::source::input_path::InputPath;
use crate::source::open::Input;
use crate::source::options::InputOptions;
use crate::source::stored::open_decompressed;

/// Number of places to take rows from.
const PLACES: usize = 200;
/// Number of places in an export in an object store, in which each place may cost a row group.
const REMOTE_PLACES: usize = 24;

/// Share of an export that a set of rows covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Number of rows.
    pub rows: u64,
    /// Whether these are all rows of the export.
    pub whole: bool,
    /// Number of places that the rows are taken from; a place is a run of consecutive rows.
    pub places: u64,
    /// Number of inputs with such a place.
    pub inputs: u64,
    /// Total number of inputs.
    pub of_inputs: u64,
}

/// Sampled rows from all over an export.
#[derive(Debug, Clone)]
pub struct RowsAcross {
    /// The rows, in the order of the export; unless they are all rows, each place is one batch.
    pub batches: Vec<RecordBatch>,
    /// Share of the export that the rows cover.
    pub extent: Extent,
}

impl Export {
    /// Reads all rows, if they number at most `most_rows` and their values take about `most_bytes`;
    /// otherwise about the same amount from places at equal distances. Unreadable rows in these
    /// places are left out.
    ///
    /// # Errors
    /// [`SourceError`] if an input cannot be read, or if one of the first rows cannot and
    /// `on_unreadable` makes that an error.
    pub fn rows_across<E: From<SourceError> + Send>(
        &self,
        on_unreadable: OnUnreadable,
        (most_rows, most_bytes): (usize, usize),
        stop: &AtomicBool,
    ) -> Result<RowsAcross, E> {
        let (mut batches, mut rows, mut bytes, mut whole) = (Vec::new(), 0, 0, true);
        let is_large = self.has_more_rows_than(most_rows);
        self.read_columns::<E>(on_unreadable, &|_| true, |_, batch| {
            rows += batch.num_rows();
            // Not the memory, which depends on the format: rows of one buffer share it.
            bytes += row_bytes(&batch).iter().map(|bytes| *bytes as usize).sum::<usize>();
            batches.push(batch);
            whole = rows <= most_rows && bytes < most_bytes && !stop.load(Ordering::Relaxed);
            // The first batch shows the size of rows.
            whole &= !is_large;
            Ok(whole)
        })?;
        let of_inputs = self.inputs().len() as u64;
        let first = Extent {
            rows: rows as u64,
            whole,
            places: 1,
            inputs: if whole { of_inputs } else { 1 },
            of_inputs,
        };
        if whole || stop.load(Ordering::Relaxed) {
            return Ok(RowsAcross { batches, extent: first });
        }
        let plan = places_of_inputs(self.inputs());
        let places: usize = plan.iter().map(|(_, places)| places).sum();
        let row_bytes = (bytes / rows.max(1)).max(1);
        let block = Block {
            rows: (most_rows / places.max(1)).min(most_bytes / places.max(1) / row_bytes).max(1),
            bytes: (most_bytes / places.max(1)).max(1),
        };
        // A part of an input decodes whole row groups, which another part may have, too.
        let parts = rayon::current_num_threads().div_ceil(plan.len().max(1));
        let batches_of_inputs = plan
            .into_par_iter()
            .map(|(path, places)| self.rows_of_input::<E>(path, places, block, parts, stop))
            .collect::<Result<Vec<_>, E>>()?;
        let inputs = batches_of_inputs.iter().filter(|batches| !batches.is_empty()).count() as u64;
        let across: Vec<RecordBatch> = batches_of_inputs.into_iter().flatten().collect();
        // No input has a format that can be sampled: keep the first rows.
        if across.is_empty() {
            return Ok(RowsAcross { batches, extent: first });
        }
        let rows = across.iter().map(|batch| batch.num_rows() as u64).sum();
        let extent = Extent { rows, whole: false, places: across.len() as u64, inputs, of_inputs };
        Ok(RowsAcross { batches: across, extent })
    }

    /// Whether the inputs are known to have more rows than that, by their footers.
    fn has_more_rows_than(&self, most_rows: usize) -> bool {
        let options = self.options_for(&|_| true);
        let mut rows = 0;
        for path in self.inputs() {
            let input = Input::open_unknown(path, &self.column_names(), &options);
            let Some(more) = input.ok().and_then(|input| input.row_count()) else { return false };
            rows += more;
            if rows > most_rows as u64 {
                return true;
            }
        }
        false
    }

    fn column_names(&self) -> Vec<String> {
        self.columns().iter().map(|column| column.name.clone()).collect()
    }

    /// Reads rows from some places of an input, divided into `parts` that are read in parallel.
    fn rows_of_input<E: From<SourceError> + Send>(
        &self,
        path: &InputPath,
        places: usize,
        block: Block,
        parts: usize,
        stop: &AtomicBool,
    ) -> Result<Vec<RecordBatch>, E> {
        let names = self.column_names();
        let options = InputOptions { batch_rows: block.rows, ..self.options_for(&|_| true) };
        let input = match Input::open_unknown(path, &names, &options) {
            Err(SourceError::Empty { .. }) if self.inputs().len() > 1 => return Ok(Vec::new()),
            opened => opened?,
        };
        match (input.row_count(), input.format()) {
            (Some(rows), _) => {
                let places = places_of_rows(rows, places, block.rows);
                let of_part = places.len().div_ceil(parts.max(1));
                in_parallel(places.chunks(of_part.max(1)).collect(), |places| {
                    let options = InputOptions { places: places.to_vec(), ..options.clone() };
                    self.readable(Input::open_unknown(path, &names, &options)?, &options)
                })
            }
            (None, format @ (InputFormat::Csv | InputFormat::Ndjson)) => {
                let delimiter = input.delimiter();
                let options = InputOptions { format: Some(format), delimiter, ..options };
                let read = |source| SourceError::Read { file: path.name(), source };
                let lines = Lines::across(open_decompressed(path)?, delimiter, places, block, stop);
                let Lines { header, blocks } = lines.map_err(read)?;
                in_parallel(blocks, |records| {
                    let text = Box::new(Cursor::new(header.clone()).chain(Cursor::new(records)));
                    self.readable(Input::open_reader(&path.name(), text, &names, &options)?, &options)
                })
            }
            (None, _) => {
                let mut blocks = Thinned::new(places);
                self.each_readable(input, &options, &mut |batch| {
                    let mut begin = 0;
                    while begin < batch.num_rows() {
                        let rows = block.rows.min(batch.num_rows() - begin);
                        blocks.offer(|| copied(&batch.slice(begin, rows)));
                        begin += rows;
                    }
                })?;
                Ok(blocks.finish())
            }
        }
    }

    fn readable<E: From<SourceError>>(
        &self,
        input: Input,
        options: &InputOptions,
    ) -> Result<Vec<RecordBatch>, E> {
        let mut batches = Vec::new();
        self.each_readable(input, options, &mut |batch| batches.push(copied(&batch)))?;
        Ok(batches)
    }

    /// Reads the readable rows of an input. The pass over all rows reports the problems of the
    /// others.
    fn each_readable<E: From<SourceError>>(
        &self,
        input: Input,
        options: &InputOptions,
        each: &mut dyn FnMut(RecordBatch),
    ) -> Result<(), E> {
        let mut left_out = Unreadable::default();
        let mut each = |_: &ExportPlace, batch| {
            each(batch);
            Ok::<bool, E>(true)
        };
        self.read_input(input, options, OnUnreadable::Skip, &mut left_out, &mut each).map(|_| ())
    }
}

/// Reads parts of an input on all cores, and returns their batches in order.
fn in_parallel<P: Send, E: Send>(
    parts: Vec<P>,
    read: impl Fn(P) -> Result<Vec<RecordBatch>, E> + Send + Sync,
) -> Result<Vec<RecordBatch>, E> {
    let read: Vec<Vec<RecordBatch>> = parts.into_par_iter().map(read).collect::<Result<_, E>>()?;
    Ok(read.into_iter().flatten().collect())
}

/// Copies the rows of a place, without holding on to the memory of rows around it: a page of a
/// Parquet file can be as large as a row group.
fn copied(place: &RecordBatch) -> RecordBatch {
    let rows = UInt32Array::from_iter_values(0..place.num_rows() as u32);
    // Neither taking rows that exist nor keeping the columns as they are can fail.
    let copied = take_record_batch(place, &rows).and_then(|copied| without_unused_text(&copied));
    copied.unwrap_or_else(|_| place.clone())
}

/// Returns the inputs with the number of places in each.
fn places_of_inputs(inputs: &[InputPath]) -> Vec<(&InputPath, usize)> {
    let bytes: Vec<u64> = inputs.iter().map(|input| input.stored_bytes().max(1)).collect();
    let remote = inputs.iter().any(|input| matches!(input, InputPath::Remote(_)));
    let places = if remote { REMOTE_PLACES } else { PLACES };
    let counts = shares_of(&bytes, places);
    inputs.iter().zip(counts).filter(|(_, places)| *places > 0).collect()
}

/// Divides places by bytes: at least one for each input, if there are enough places.
fn shares_of(bytes: &[u64], places: usize) -> Vec<usize> {
    let total: u128 = bytes.iter().map(|bytes| u128::from(*bytes)).sum();
    let least = usize::from(bytes.len() <= places);
    let more = (places - least * bytes.len().min(places)) as u128;
    let mut before = 0u128;
    let share = |bytes: &u64| {
        let at = |bytes: u128| (bytes * more + total / 2) / total.max(1);
        let begin = at(before);
        before += u128::from(*bytes);
        least + usize::try_from(at(before) - begin).unwrap_or(0)
    };
    bytes.iter().map(share).collect()
}

/// Returns ranges of `length` rows at equal distances, including the first and the last rows; if
/// there are few rows, all of them.
fn places_of_rows(rows: u64, places: usize, length: usize) -> Vec<Range<u64>> {
    let (places, length) = (places.max(1) as u64, length.max(1) as u64);
    if rows <= places.saturating_mul(length) {
        return std::iter::once(0..rows).collect();
    }
    if places == 1 {
        let begin = (rows - length) / 2;
        return std::iter::once(begin..begin + length).collect();
    }
    let begin = |place: u64| {
        let at = u128::from(rows - length) * u128::from(place) / u128::from(places - 1);
        u64::try_from(at).unwrap_or(0)
    };
    (0..places).map(|place| begin(place)..begin(place) + length).collect()
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
