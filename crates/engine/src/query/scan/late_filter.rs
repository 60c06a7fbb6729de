//! Conditions that are evaluated after decoding, for scans that keep rows close to each other.
//!
//! The reader of Parquet evaluates conditions first, and decodes the other columns for the rows
//! left. If those are far apart, pages are skipped. Otherwise it decodes all rows anyway, and
//! describing which to keep, run by run, takes longer than to decode the columns and to filter
//! them. So the first files of a scan are measured:
//!
//! ```text
//! file 1, 2  reader with conditions ── Measured ──► Density
//! file 3...  Density::is_high ─► reader without conditions ─► LateFilter
//!            else             ─► reader with conditions
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{BatchCoalescer, and_kleene, prep_null_mask_filter};
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use datafusion::common::cast::as_boolean_array;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowPredicate, RowFilter};

use crate::query::scan::scan_filters::evaluated_parts;

/// Rows from one that is kept to the next, at most, for which reading decodes all rows. The reader
/// of Parquet has the same limit.
const ROWS_APART: f64 = 64.0;

/// How close to each other the rows are that the conditions of a scan keep.
#[derive(Debug, Default)]
pub(super) struct Density {
    stages: Mutex<Vec<Stage>>,
}

/// Rows that one condition saw, of those that the conditions before it kept.
#[derive(Debug, Default, Clone, Copy)]
struct Stage {
    rows: u64,
    kept: u64,
    /// Number of groups of adjacent rows that it kept.
    runs: u64,
}

impl Density {
    fn add(&self, stage: usize, selected: &BooleanArray) {
        let selected = match selected.null_count() {
            0 => selected.clone(),
            _ => prep_null_mask_filter(selected),
        };
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        if stages.len() <= stage {
            stages.resize(stage + 1, Stage::default());
        }
        if let Some(of) = stages.get_mut(stage) {
            of.rows += selected.len() as u64;
            of.kept += selected.true_count() as u64;
            of.runs += runs(selected.values());
        }
    }

    /// Whether the rows that all conditions keep are so close together that reading decodes all.
    /// Groups of adjacent rows are taken to be as long as those of the condition that keeps the
    /// shortest.
    pub(super) fn is_high(&self) -> bool {
        let stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(first), Some(last)) = (stages.first(), stages.last()) else { return false };
        let lengths = stages.iter().filter(|of| of.runs > 0).map(|of| of.kept as f64 / of.runs as f64);
        let length = lengths.fold(f64::INFINITY, f64::min);
        last.kept as f64 / length * ROWS_APART > first.rows as f64
    }
}

/// Number of groups of adjacent ones.
fn runs(bits: &BooleanBuffer) -> u64 {
    let mut last = 0;
    let starts = bits.bit_chunks().iter_padded().map(|chunk| {
        let starts = chunk & !(chunk << 1 | last);
        last = chunk >> 63;
        u64::from(starts.count_ones())
    });
    starts.sum()
}

/// A condition of a reader, whose results are counted.
struct Measured {
    condition: Box<dyn ArrowPredicate>,
    stage: usize,
    density: Arc<Density>,
}

impl ArrowPredicate for Measured {
    fn projection(&self) -> &ProjectionMask {
        self.condition.projection()
    }

    fn evaluate(&mut self, batch: RecordBatch) -> Result<BooleanArray, ArrowError> {
        let selected = self.condition.evaluate(batch)?;
        self.density.add(self.stage, &selected);
        Ok(selected)
    }
}

/// Counts what the conditions of a reader keep.
pub(super) fn measured(filter: RowFilter, density: &Arc<Density>) -> RowFilter {
    let conditions = filter.into_predicates().into_iter().enumerate().map(|(stage, condition)| {
        Box::new(Measured { condition, stage, density: Arc::clone(density) }) as Box<dyn ArrowPredicate>
    });
    RowFilter::new(conditions.collect())
}

/// Conditions on decoded rows.
#[derive(Debug)]
pub(super) struct LateFilter {
    /// Positions of the columns of the file to decode, in order.
    pub(super) decoded: Vec<usize>,
    /// Positions of the columns to return among those.
    returned: Vec<usize>,
    /// Conditions, each with the positions of its columns among those decoded.
    parts: Vec<(Vec<usize>, Arc<dyn PhysicalExpr>)>,
}

impl LateFilter {
    /// Prepares conditions on rows of which some columns, in order, are to be returned.
    ///
    /// # Errors
    /// [`DataFusionError`] if a condition has a column that the file does not have.
    pub(super) fn new(
        predicate: &Arc<dyn PhysicalExpr>,
        returned: &[usize],
        columns: &Schema,
    ) -> Result<Self> {
        let mut decoded: Vec<usize> =
            collect_columns(predicate).iter().map(|column| column.index()).collect();
        decoded.extend(returned);
        decoded.sort_unstable();
        decoded.dedup();
        let among = |file: &[usize]| -> Vec<usize> {
            file.iter().filter_map(|column| decoded.binary_search(column).ok()).collect()
        };
        let mut parts = Vec::new();
        for part in evaluated_parts(predicate) {
            let mut own: Vec<usize> = collect_columns(&part).iter().map(|column| column.index()).collect();
            own.sort_unstable();
            own.dedup();
            let part = reassign_expr_columns(part, &columns.project(&own)?)?;
            parts.push((among(&own), part));
        }
        Ok(Self { returned: among(returned), parts, decoded })
    }

    /// Returns for each row whether it is kept. Later conditions see only the rows left if these
    /// are few.
    fn kept(&self, rows: &RecordBatch) -> Result<BooleanArray> {
        let mut kept: Option<BooleanArray> = None;
        for (columns, part) in &self.parts {
            let own = rows.project(columns)?;
            let value = match &kept {
                Some(kept) if kept.true_count() * 2 < rows.num_rows() => {
                    part.evaluate_selection(&own, kept)?
                }
                _ => part.evaluate(&own)?,
            };
            let value = value.into_array(rows.num_rows())?;
            let selected = as_boolean_array(&value)?;
            let both = match kept {
                None => selected.clone(),
                Some(kept) => and_kleene(&kept, selected)?,
            };
            let both = if both.null_count() > 0 { prep_null_mask_filter(&both) } else { both };
            let is_empty = !both.has_true();
            kept = Some(both);
            if is_empty {
                break;
            }
        }
        Ok(kept.unwrap_or_else(|| BooleanArray::new(BooleanBuffer::new_set(rows.num_rows()), None)))
    }

    /// Returns the rows of a stream that are kept, in batches of `batch_size` rows.
    pub(super) fn filtered<S>(
        self: Arc<Self>,
        rows: S,
        batch_size: usize,
    ) -> BoxStream<'static, Result<RecordBatch>>
    where
        S: Stream<Item = Result<RecordBatch>> + Send + Unpin + 'static,
    {
        let state = Filtering { filter: self, batch_size, waiting: None, is_done: false };
        futures::stream::try_unfold((rows, state), |(mut rows, mut state)| async move {
            loop {
                if let Some(batch) = state.next_batch() {
                    return Ok(Some((batch, (rows, state))));
                }
                if state.is_done {
                    return Ok(None);
                }
                match rows.next().await.transpose()? {
                    Some(decoded) => {
                        if let Some(batch) = state.add(&decoded)? {
                            return Ok(Some((batch, (rows, state))));
                        }
                    }
                    None => state.finish()?,
                }
            }
        })
        .boxed()
    }
}

/// Rows that are kept, until there are enough for a batch.
struct Filtering {
    filter: Arc<LateFilter>,
    batch_size: usize,
    waiting: Option<BatchCoalescer>,
    is_done: bool,
}

impl Filtering {
    /// Filters decoded rows. Rows without columns only have a number, and are returned at once.
    fn add(&mut self, decoded: &RecordBatch) -> Result<Option<RecordBatch>> {
        let kept = self.filter.kept(decoded)?;
        let returned = decoded.project(&self.filter.returned)?;
        if returned.num_columns() == 0 {
            let options = RecordBatchOptions::new().with_row_count(Some(kept.true_count()));
            let rows = RecordBatch::try_new_with_options(returned.schema(), Vec::new(), &options)?;
            return Ok((rows.num_rows() > 0).then_some(rows));
        }
        let batch_size = self.batch_size;
        let waiting = self.waiting.get_or_insert_with(|| BatchCoalescer::new(returned.schema(), batch_size));
        waiting.push_batch_with_filter(returned, &kept)?;
        Ok(None)
    }

    fn next_batch(&mut self) -> Option<RecordBatch> {
        self.waiting.as_mut()?.next_completed_batch()
    }

    fn finish(&mut self) -> Result<(), DataFusionError> {
        self.is_done = true;
        match &mut self.waiting {
            Some(waiting) => Ok(waiting.finish_buffered_batch()?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_across_words() {
        let count = |rows: Vec<bool>| runs(&BooleanBuffer::from(rows));
        assert_eq!(count(vec![]), 0);
        assert_eq!(count(vec![true; 1000]), 1);
        assert_eq!(count((0..1000).map(|row| row % 2 == 0).collect()), 500);
        assert_eq!(count((0..1000).map(|row| row / 64 % 2 == 1).collect()), 7 + 1);
        assert_eq!(count((0..1000).map(|row| (60..70).contains(&row) || row == 127).collect()), 2);
    }

    #[test]
    fn rows_are_close_if_the_reader_would_decode_all() {
        let density = |stages: &[fn(usize) -> bool]| {
            let density = Density::default();
            let mut rows = 6400;
            for (stage, keeps) in stages.iter().enumerate() {
                let selected: BooleanArray = (0..rows).map(|row| Some(keeps(row))).collect();
                density.add(stage, &selected);
                rows = selected.true_count();
            }
            density.is_high()
        };
        assert!(!density(&[]));
        assert!(density(&[|row| row % 3 == 0]));
        assert!(density(&[|row| row % 63 == 0]));
        assert!(!density(&[|row| row % 65 == 0]));
        // All rows, or long runs of them: little to describe.
        assert!(!density(&[|_| true]));
        assert!(!density(&[|row| row % 400 < 200]));
        // The rows that all conditions keep matter, not those of the first.
        assert!(!density(&[|row| row % 3 == 0, |row| row == 5]));
        assert!(!density(&[|row| row % 3 == 0, |_| false]));
        assert!(density(&[|row| row % 3 == 0, |_| true]));
        assert!(!density(&[|row| row < 640, |row| row % 8 == 0]));
        assert!(density(&[|row| row < 3200, |row| row % 4 == 0]));
    }
}
