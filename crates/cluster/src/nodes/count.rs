//! Counts keys on a part of an export.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{BinaryArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use super::{Work, external, read_assignments};
use evenkeel_advisor::evaluate::{EvaluateOptions, Share, count_share};
use evenkeel_input::source::{Export, InputOptions, InputPath, OnUnreadable, RowSpan};
use evenkeel_model::table::Column;

/// Size of a piece of a state in one row, in bytes, so that no message is too long.
const PIECE_BYTES: usize = 4 << 20;

/// Specification of a count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CountSpec {
    pub inputs: Vec<InputPath>,
    pub reading: InputOptions,
    pub columns: Vec<Column>,
    pub options: EvaluateOptions,
    pub on_unreadable: OnUnreadable,
}

/// A share of the counting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CountAssignment {
    /// Position among all assignments.
    pub number: u64,
    pub share: Share,
    /// Rows to count; `None` for all.
    pub span: Option<RowSpan>,
}

/// Returns the columns of the output: the number of the assignment (as text), rows that could not
/// be read (JSON, in the first piece), and a piece of the state.
pub(crate) fn count_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("assignment", DataType::Utf8, false),
        Field::new("unreadable", DataType::Utf8, true),
        Field::new("piece", DataType::Binary, false),
    ]))
}

#[derive(Debug)]
pub(super) struct Count {
    spec: Arc<CountSpec>,
}

impl Count {
    pub(super) fn new(spec: &CountSpec) -> Self {
        Self { spec: Arc::new(spec.clone()) }
    }
}

impl Work for Count {
    fn schema(&self) -> SchemaRef {
        count_schema()
    }

    fn describe(&self) -> String {
        format!("TaskExec: count keys of {} inputs", self.spec.inputs.len())
    }

    fn run(
        &self,
        input: SendableRecordBatchStream,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let spec = Arc::clone(&self.spec);
        let pieces = async move {
            let assignments: Vec<CountAssignment> = read_assignments(input).await?;
            let each = stream::iter(assignments).then(move |assignment| {
                let spec = Arc::clone(&spec);
                async move {
                    let gone = Gone(Arc::new(AtomicBool::new(false)));
                    let stop = Arc::clone(&gone.0);
                    let counted = tokio::task::spawn_blocking(move || count(&spec, &assignment, &stop)).await;
                    drop(gone);
                    let batches = counted.map_err(external)??;
                    Ok::<_, DataFusionError>(stream::iter(batches.into_iter().map(Ok)))
                }
            });
            Ok::<_, DataFusionError>(each.try_flatten())
        };
        let pieces = stream::once(pieces).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(count_schema(), pieces)))
    }
}

/// Stops the counting if its consumer is gone.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn count(spec: &CountSpec, assignment: &CountAssignment, stop: &AtomicBool) -> Result<Vec<RecordBatch>> {
    let export = Export::with_columns(spec.inputs.clone(), spec.reading.clone(), spec.columns.clone());
    let counted = count_share(
        &export,
        &spec.options,
        assignment.share,
        assignment.span.as_ref(),
        spec.on_unreadable,
        &|_| {},
        stop,
    );
    let (state, unreadable) = counted.map_err(external)?;
    let json = serde_json::to_string(&unreadable).map_err(external)?;
    let mut pieces: Vec<&[u8]> = state.chunks(PIECE_BYTES).collect();
    if pieces.is_empty() {
        pieces.push(&[]);
    }
    let number = assignment.number.to_string();
    let batch = |(place, piece): (usize, &[u8])| {
        let columns: [Arc<dyn arrow::array::Array>; 3] = [
            Arc::new(StringArray::from(vec![number.as_str()])),
            Arc::new(StringArray::from(vec![(place == 0).then_some(json.as_str())])),
            Arc::new(BinaryArray::from(vec![piece])),
        ];
        Ok(RecordBatch::try_new(count_schema(), columns.to_vec())?)
    };
    pieces.into_iter().enumerate().map(batch).collect()
}
