//! Entries that each row creates: one in the table, one in each index.

use arrow::array::{Array, ArrayRef};

use crate::simulate::arrivals::Arrived;
use crate::simulate::design::encoder::{Encoder, Entries};
use crate::simulate::design::part::Part;
use crate::simulate::error::SimulateError;
use evenkeel_model::values::row_bytes;
use evenkeel_placement::placement::Placement;

/// An entry that each row creates.
#[derive(Debug)]
pub(crate) struct RowPlan {
    /// Position of the key space in the database.
    pub(crate) space: usize,
    pub(super) parts: Vec<Part>,
    pub(super) encoder: Encoder,
    /// Columns whose bytes are counted; all columns if `None`.
    pub(super) stored: Option<Vec<usize>>,
    /// Size of generated and derived columns, in bytes.
    pub(super) added_bytes: u32,
    /// Columns that must not be NULL, or there is no entry.
    pub(super) not_null: Vec<usize>,
}

impl RowPlan {
    /// Returns the entries of rows, for which `generated` columns have been generated.
    pub(super) fn entries(
        &self,
        arrived: &Arrived,
        generated: &[ArrayRef],
        placement: Option<&Placement>,
    ) -> Result<Entries, SimulateError> {
        let batch = &arrived.batch;
        let parts = self.parts.iter().filter(|part| !matches!(part, Part::Tag(_)));
        let values: Result<Vec<ArrayRef>, SimulateError> =
            parts.map(|part| part.values(batch, generated, placement)).collect();
        let mut bytes = match &self.stored {
            None => arrived.bytes.clone(),
            Some(columns) => row_bytes(&batch.project(columns)?),
        };
        bytes.iter_mut().for_each(|bytes| *bytes = bytes.saturating_add(self.added_bytes));
        let nulls: Vec<&ArrayRef> = self
            .not_null
            .iter()
            .filter_map(|column| batch.columns().get(*column))
            .filter(|array| array.null_count() > 0)
            .collect();
        let missing = |row: usize| nulls.iter().any(|array| array.is_null(row));
        let missing = (!nulls.is_empty()).then(|| (0..batch.num_rows()).map(missing).collect());
        self.encoder.entries(&values?, bytes, missing)
    }

    /// Whether the entries begin with a column, so that they are in its order.
    pub(crate) fn leads_with(&self, column: usize) -> bool {
        matches!(self.parts.first(), Some(Part::Column(key)) if key.column == column)
    }

    /// Whether a column is in descending order; `None` if it is not in the key.
    pub(crate) fn descends(&self, column: usize) -> Option<bool> {
        self.parts.iter().find_map(|part| match part {
            Part::Column(key) if key.column == column => Some(key.descending),
            _ => None,
        })
    }
}
