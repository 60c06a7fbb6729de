//! Conditions that are evaluated after decoding, for scans that keep rows close to each other.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::Schema;
use datafusion::common::cast::as_boolean_array;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use crate::query::scan::density::Density;
use crate::query::scan::kept_rows::{Cost, KeptRows};
use crate::query::scan::scan_filters::cost;

/// Conditions on decoded rows.
#[derive(Debug)]
pub(super) struct LateFilter {
    /// Positions of the columns of the file to decode, in order.
    pub(super) decoded: Vec<usize>,
    /// Positions of the columns to return among those.
    returned: Vec<usize>,
    /// Conditions, each with the positions of its columns among those decoded.
    parts: Vec<(Vec<usize>, Cost, Arc<dyn PhysicalExpr>)>,
}

impl LateFilter {
    /// Prepares conditions, in this order, on rows of which some columns, in order, are to be
    /// returned.
    ///
    /// # Errors
    /// [`DataFusionError`] if a condition has a column that the file does not have.
    pub(super) fn new(
        conditions: &[Arc<dyn PhysicalExpr>],
        returned: &[usize],
        columns: &Schema,
    ) -> Result<Self> {
        let mut decoded: Vec<usize> =
            conditions.iter().flat_map(collect_columns).map(|column| column.index()).collect();
        decoded.extend(returned);
        decoded.sort_unstable();
        decoded.dedup();
        let among = |file: &[usize]| -> Vec<usize> {
            file.iter().filter_map(|column| decoded.binary_search(column).ok()).collect()
        };
        let mut parts = Vec::new();
        for part in conditions {
            let mut own: Vec<usize> = collect_columns(part).iter().map(|column| column.index()).collect();
            own.sort_unstable();
            own.dedup();
            let cost = cost(part, columns);
            let part = reassign_expr_columns(Arc::clone(part), &columns.project(&own)?)?;
            parts.push((among(&own), cost, part));
        }
        Ok(Self { returned: among(returned), parts, decoded })
    }

    /// Cost of each condition.
    pub(super) fn costs(&self) -> Vec<Cost> {
        self.parts.iter().map(|(_, cost, _)| *cost).collect()
    }

    /// Returns for each row whether it is kept, by conditions in an order.
    fn kept(&self, rows: &RecordBatch, order: &[usize]) -> Result<BooleanArray> {
        let mut kept = KeptRows::new(rows.num_rows());
        for (columns, cost, part) in order.iter().filter_map(|position| self.parts.get(*position)) {
            kept.retain(rows.project(columns)?, *cost, |rows| {
                let values = part.evaluate(rows)?.into_array(rows.num_rows())?;
                Ok::<_, DataFusionError>(as_boolean_array(&values)?.clone())
            })?;
        }
        Ok(kept.finish())
    }

    /// Returns the rows of a stream that are kept, in batches of `batch_size` rows. `density` is what
    /// is known of the conditions.
    pub(super) fn filtered<S>(
        self: Arc<Self>,
        rows: S,
        density: &Density,
        batch_size: usize,
    ) -> BoxStream<'static, Result<RecordBatch>>
    where
        S: Stream<Item = Result<RecordBatch>> + Send + Unpin + 'static,
    {
        let order = density.order(&self.costs());
        let state = Filtering { filter: self, order, batch_size, waiting: None, is_done: false };
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
    /// Order of the conditions.
    order: Vec<usize>,
    batch_size: usize,
    waiting: Option<BatchCoalescer>,
    is_done: bool,
}

impl Filtering {
    /// Filters decoded rows. Rows without columns only have a number, and are returned at once.
    fn add(&mut self, decoded: &RecordBatch) -> Result<Option<RecordBatch>> {
        let kept = self.filter.kept(decoded, &self.order)?;
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
