//! Rows of inputs that delete.

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::is_null;
use arrow::compute::kernels::boolean::and;
use arrow::compute::kernels::zip::zip;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde::{Deserialize, Serialize};

use crate::source::raw::RawCells;
use evenkeel_model::table::{Column, filler};

/// Rows that delete the row with their primary key. Only their key columns matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deletes {
    /// No row deletes.
    #[default]
    None,
    /// Every row does; inputs need no columns but those of the key.
    All,
    /// Rows whose column has this text do. The table need not have the column.
    Where {
        /// Name of the column.
        column: String,
        /// The text.
        value: String,
    },
}

impl Deletes {
    /// Returns the marks of rows that delete; NULL if the column is. `None` if no row can delete.
    pub(super) fn marks(&self, cells: &RawCells, rows: usize) -> Option<BooleanArray> {
        match (self, cells) {
            (Self::None, _) => None,
            (Self::All, _) => Some(BooleanArray::from(vec![true; rows])),
            (Self::Where { column, value }, RawCells::Text(columns)) => {
                let found = columns.iter().find(|(name, _)| name == column);
                let Some((_, cells)) = found else { return Some(BooleanArray::new_null(rows)) };
                Some(
                    cells.iter().map(|cell| cell.map(|cell| cell.trim_ascii() == value.as_bytes())).collect(),
                )
            }
            (Self::Where { column, value }, RawCells::Arrow(batch)) => {
                let Some(array) = batch.column_by_name(column) else {
                    return Some(BooleanArray::new_null(rows));
                };
                let options = FormatOptions::default();
                // A type without text deletes nothing.
                let formatter = ArrayFormatter::try_new(array.as_ref(), &options).ok()?;
                let mark = |row: usize| {
                    array.is_valid(row).then(|| formatter.value(row).to_string().trim() == value.as_str())
                };
                Some((0..rows).map(mark).collect())
            }
        }
    }

    /// Whether inputs may lack a column.
    pub(super) fn needs_only_keys(&self) -> bool {
        *self == Self::All
    }
}

/// Replaces NULL by a filler in the rows that delete, if the column takes no NULL.
pub(super) fn filled(
    column: &Column,
    values: &ArrayRef,
    marks: &BooleanArray,
) -> Result<ArrayRef, ArrowError> {
    if column.nullable || values.null_count() == 0 {
        return Ok(ArrayRef::clone(values));
    }
    let filler = filler(values.data_type(), false, values.len())?;
    zip(&and(&is_null(values)?, marks)?, &filler, values)
}
