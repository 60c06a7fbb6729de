//! Blocks of batches for another thread, from all rows of an export or a range of them.

use std::ops::Range;

use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};

use crate::source::error::SourceError;
use crate::source::export::contents::Export;
use crate::source::export::reading::{ExportPlace, OnUnreadable, Unreadable};
use crate::source::input_path::InputPath;
use crate::source::open::Input;
use crate::source::options::InputOptions;

/// Maximum number of batches in a block.
const BATCHES_OF_BLOCK: usize = 16;
/// Approximate maximum size of a block in bytes if rows are wide. With one reading thread and
/// several workers, four blocks are in memory at one time: one is read, one is waiting, one is
/// prepared and one is counted.
const BYTES_OF_BLOCK: usize = 16 << 20;

/// A range of rows of an export whose inputs are Parquet files, counted from 0 over all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSpan {
    /// The rows.
    pub rows: Range<u64>,
    /// Number of rows of each input, as returned by [`row_counts`].
    pub row_counts: Vec<u64>,
}

impl RowSpan {
    /// Returns the rows of each input that are in the range, counted from 0 within the input;
    /// `None` for an input without such rows.
    fn rows_of_inputs(&self) -> impl Iterator<Item = Option<Range<u64>>> {
        let mut begin = 0u64;
        self.row_counts.iter().map(move |count| {
            let within = |row: u64| row.saturating_sub(begin).min(*count);
            let rows = within(self.rows.start)..within(self.rows.end);
            begin = begin.saturating_add(*count);
            (!rows.is_empty()).then_some(rows)
        })
    }
}

/// Returns the number of rows of each input, if all inputs are Parquet files that can be read by
/// ranges; otherwise `None`. An empty file among others has no rows.
///
/// # Errors
/// [`SourceError`] if an input cannot be read.
pub fn row_counts(inputs: &[InputPath], options: &InputOptions) -> Result<Option<Vec<u64>>, SourceError> {
    let count = |input: &InputPath| match input {
        InputPath::Stdin | InputPath::Copy { .. } => Ok(None),
        // Anything other than a regular file can be read only once.
        InputPath::File(path) if !path.is_file() => Ok(None),
        InputPath::File(_) | InputPath::Remote(_) => match Input::open_unknown(input, &[], options) {
            Err(SourceError::Empty { .. }) if inputs.len() > 1 => Ok(Some(0)),
            opened => Ok(opened?.row_count()),
        },
    };
    inputs.iter().map(count).collect()
}

impl Export {
    /// Reads like [`Export::read_columns`], but passes on blocks of several batches with a limited
    /// total size, for another thread. `each` returns whether to continue.
    ///
    /// # Errors
    /// See [`Export::read`].
    pub fn read_blocks<E: From<SourceError>>(
        &self,
        on_unreadable: OnUnreadable,
        projection: &[bool],
        each: impl FnMut(Vec<RecordBatch>) -> bool,
    ) -> Result<Unreadable, E> {
        let projection = &|column: usize| projection.get(column).copied().unwrap_or(true);
        let mut blocks = Blocks { together: Vec::new(), bytes: 0, each };
        let read = self.read_columns::<E>(on_unreadable, projection, |_, batch| Ok(blocks.add(batch)));
        blocks.end();
        read
    }

    /// Reads like [`Export::read_blocks`], but only a range of rows: row groups without any of them
    /// are not decoded.
    ///
    /// # Errors
    /// See [`Export::read`]; also [`SourceError::Changed`] if an input does not have the expected
    /// number of rows.
    pub fn read_span<E: From<SourceError>>(
        &self,
        span: &RowSpan,
        on_unreadable: OnUnreadable,
        projection: &[bool],
        each: impl FnMut(Vec<RecordBatch>) -> bool,
    ) -> Result<Unreadable, E> {
        let options = self.options_for(&|column: usize| projection.get(column).copied().unwrap_or(true));
        let mut unreadable = Unreadable::default();
        let mut blocks = Blocks { together: Vec::new(), bytes: 0, each };
        for ((path, rows), expected) in self.inputs.iter().zip(span.rows_of_inputs()).zip(&span.row_counts) {
            let Some(rows) = rows else { continue };
            let options = InputOptions { rows: Some(rows), ..options.clone() };
            let input = Input::open_unknown(path, &self.names(), &options)?;
            let found = input.row_count();
            if found != Some(*expected) {
                return Err(SourceError::Changed { file: path.name(), expected: *expected, found }.into());
            }
            let mut add = |_: &ExportPlace, batch| Ok::<bool, E>(blocks.add(batch));
            if !self.read_input(input, &options, on_unreadable, &mut unreadable, &mut add)? {
                return Ok(unreadable);
            }
        }
        blocks.end();
        Ok(unreadable)
    }
}

/// Collects batches into blocks.
struct Blocks<F> {
    together: Vec<RecordBatch>,
    bytes: usize,
    each: F,
}

impl<F: FnMut(Vec<RecordBatch>) -> bool> Blocks<F> {
    /// Adds a batch; returns whether to continue.
    fn add(&mut self, batch: RecordBatch) -> bool {
        self.bytes += batch.get_array_memory_size();
        self.together.push(batch);
        if self.together.len() < BATCHES_OF_BLOCK && self.bytes < BYTES_OF_BLOCK {
            return true;
        }
        self.bytes = 0;
        (self.each)(std::mem::take(&mut self.together))
    }

    /// Passes on the last block.
    fn end(mut self) {
        (self.each)(self.together);
    }
}
