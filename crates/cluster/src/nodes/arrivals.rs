//! Arrivals: rows of inputs on their way from the tasks that read them to those that write them,
//! and the entries that tasks report.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::internal_err;
use datafusion::error::Result;
use serde::{Deserialize, Serialize};

use super::external;
use evenkeel_input::source::Reject;
use evenkeel_model::remark::Remark;
use evenkeel_model::table::TableSpec;
use evenkeel_model::units::PartitionId;
use evenkeel_store::log::PortionEntry;

/// Partition number of rows that are notes, with other reports of the reader.
pub(super) const NOTES: u32 = u32::MAX;

/// Entry of the report of a task to the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ManifestEntry {
    /// A stored portion. It is invisible until it is committed.
    Portion { task: String, portion: PortionEntry },
    /// Summary of a task's work on one partition.
    Partition { task: String, partition: PartitionId, rows_in: u64, replaced: u64, portions: u64 },
    /// A part of an input that was read; the first part has the size and XXH3-128 of the whole
    /// input.
    Source {
        number: u64,
        /// Number of its first row in the input.
        first: u64,
        name: String,
        content: Option<(u64, String)>,
        rows: u64,
        rejected: u64,
        notes: Vec<Remark>,
    },
    /// An input whose content is in the table already.
    Skipped { number: u64, name: String, bytes: u64, xxh3: String },
    /// An empty input.
    Empty { number: u64, name: String },
    /// A row that does not fit the table.
    Reject { number: u64, reject: Box<Reject> },
}

/// Returns the columns of arrivals: the table's columns, all nullable; the partition (UInt32), the
/// position (UInt64), and a note (Utf8) in rows that contain nothing else.
pub(crate) fn arrival_schema(spec: &TableSpec) -> SchemaRef {
    let columns = spec.schema().fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let own = [
        Field::new("__partition", DataType::UInt32, false),
        Field::new("__sequence", DataType::UInt64, false),
        Field::new("__note", DataType::Utf8, true),
    ];
    Arc::new(Schema::new(columns.chain(own).collect::<Vec<_>>()))
}

/// Returns the columns by which arrivals are sorted: partition, primary key, position.
pub(crate) fn arrival_order(table: &TableSpec) -> Vec<usize> {
    let columns = table.columns().len();
    let key = table.primary_key().iter().copied();
    std::iter::once(columns).chain(key).chain([columns + 1]).collect()
}

/// Returns the notes in a batch of arrivals.
pub(super) fn notes_in(batch: &RecordBatch) -> Result<Vec<ManifestEntry>> {
    let Some(notes) = batch.columns().last().and_then(|column| column.as_any().downcast_ref::<StringArray>())
    else {
        return internal_err!("notes are text");
    };
    notes.iter().flatten().map(|line| serde_json::from_str(line).map_err(external)).collect()
}
