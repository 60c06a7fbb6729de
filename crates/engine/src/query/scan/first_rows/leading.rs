//! The condition of a reader that keeps the rows whose keys are among the best.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowPredicate;
use parquet::schema::types::SchemaDescriptor;

use super::Best;

/// Keeps rows by their keys. It must see only rows that all conditions of the query keep.
pub(in crate::query::scan) struct LeadingRows {
    columns: ProjectionMask,
    key: Arc<dyn PhysicalExpr>,
    best: Arc<Best>,
}

impl LeadingRows {
    /// Prepares the condition for a file with these columns, on which `key` is.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the file does not have the
    /// columns of the key.
    pub(in crate::query::scan) fn new(
        key: &Arc<dyn PhysicalExpr>,
        columns: &Schema,
        file: &SchemaDescriptor,
        best: &Arc<Best>,
    ) -> Result<Self> {
        let own: BTreeSet<usize> = collect_columns(key).iter().map(|column| column.index()).collect();
        let own: Vec<usize> = own.into_iter().collect();
        let key = reassign_expr_columns(Arc::clone(key), &columns.project(&own)?)?;
        Ok(Self { columns: ProjectionMask::roots(file, own), key, best: Arc::clone(best) })
    }
}

impl ArrowPredicate for LeadingRows {
    fn projection(&self) -> &ProjectionMask {
        &self.columns
    }

    fn evaluate(&mut self, batch: RecordBatch) -> Result<BooleanArray, ArrowError> {
        let keys = self.key.evaluate(&batch).and_then(|keys| keys.into_array(batch.num_rows()));
        let kept = keys.and_then(|keys| self.best.keep(&keys));
        kept.map_err(|error| ArrowError::ExternalError(Box::new(error)))
    }
}
