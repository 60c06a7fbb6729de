//! Marks of the rows that delete.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray};
use arrow::compute::kernels::boolean::and;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{cast, is_null};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::source::deletes::Deletes;
use crate::source::raw::RawCells;
use evenkeel_model::table::{Column, filler};

/// Returns the marks of rows that delete; NULL if the column is. `None` if no row can delete.
/// Blanks around the text do not count.
///
/// # Errors
/// The type of the column if its values have no unique text.
pub(super) fn delete_marks(
    deletes: &Deletes,
    cells: &RawCells,
    rows: usize,
) -> Result<Option<BooleanArray>, DataType> {
    let (column, value) = match deletes {
        Deletes::None => return Ok(None),
        Deletes::All => return Ok(Some(BooleanArray::from(vec![true; rows]))),
        Deletes::Where { column, value } => (column, value.trim()),
    };
    let nulls = || Ok(Some(BooleanArray::new_null(rows)));
    let of_bytes = |cells: &BinaryArray| {
        let mark = |cell: &[u8]| cell.trim_ascii() == value.as_bytes();
        Ok(Some(cells.iter().map(|cell| cell.map(mark)).collect()))
    };
    let array = match cells {
        RawCells::Text(columns) => {
            return columns.iter().find(|(name, _)| name == column).map_or_else(nulls, |(_, c)| of_bytes(c));
        }
        RawCells::Arrow(batch) => match batch.column_by_name(column) {
            Some(array) => array,
            None => return nulls(),
        },
    };
    let data_type = array.data_type().clone();
    if data_type.is_floating() || data_type.is_decimal() || data_type.is_nested() {
        return Err(data_type);
    }
    if let DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) =
        data_type
    {
        let cells = cast(array, &DataType::Binary).map_err(|_| data_type.clone())?;
        return cells.as_binary_opt().map_or(Err(data_type), of_bytes);
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options).map_err(|_| data_type)?;
    let mark = |row: usize| array.is_valid(row).then(|| formatter.value(row).to_string().trim() == value);
    Ok(Some((0..rows).map(mark).collect()))
}

/// Replaces NULL by a filler in the rows that delete, if the column is NOT NULL.
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
