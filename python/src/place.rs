//! Partitions of the keys in whole arrays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow::compute::concat;
use arrow::datatypes::{Field, Schema};
use evenkeel::placement::{Function, Placement};
use evenkeel::source::{Conform, InputOptions, SourceError};
use evenkeel::table::{Column, ColumnType};
use evenkeel::units::PartitionCount;
use pyo3::prelude::*;
use pyo3_arrow::PyArray;
use pyo3_arrow::input::AnyArray;

use crate::errors::{exception, failed, usage};
use crate::source::broken_text;
use evenkeel::cli::ErrorPlace;

/// Returns the partition of each key, or its hash. `columns` are those of the key, in hash order,
/// with their names.
#[pyfunction]
pub(crate) fn place(
    py: Python<'_>,
    columns: Vec<(String, AnyArray)>,
    types: Option<Vec<String>>,
    partitions: u64,
    placement: &str,
    hashes: bool,
) -> PyResult<PyArray> {
    let function: Function = placement.parse().map_err(|error| usage(py, error))?;
    let partitions = PartitionCount::new(partitions).map_err(|error| usage(py, error))?;
    let (mut names, mut arrays) = (Vec::new(), Vec::new());
    for (name, column) in columns {
        let array = whole(column)?;
        match array.as_struct_opt() {
            // A frame: its columns are those of the key.
            Some(frame) => {
                names.extend(frame.column_names().into_iter().map(str::to_owned));
                arrays.extend(frame.columns().iter().cloned());
            }
            None => {
                names.push(name);
                arrays.push(array);
            }
        }
    }
    let types: PyResult<Vec<ColumnType>> = match types {
        Some(types) if types.len() != arrays.len() => {
            return Err(usage(py, format!("{} types are given for {} columns", types.len(), arrays.len())));
        }
        Some(types) => types.iter().map(|name| name.parse().map_err(|error| usage(py, error))).collect(),
        None => arrays.iter().zip(&names).map(|(array, name)| type_of(py, name, array)).collect(),
    };
    let types = types?;
    for (name, array) in names.iter().zip(&arrays) {
        if arrays.iter().any(|other| other.len() != array.len()) {
            return Err(usage(py, "the columns of a key have different lengths"));
        }
        if let Some(row) = broken_text(array).map_err(|error| failed(py, error.into()))? {
            let row = row as u64 + 1;
            return Err(of_row(py, row, name, &format!("row {row}, column '{name}': text is not UTF-8")));
        }
    }
    if arrays.is_empty() {
        return Err(usage(py, "the key has no columns"));
    }
    let placed = py.detach(|| placed(&names, &arrays, &types, function, partitions, hashes));
    placed.map(PyArray::from_array_ref).map_err(|error| match error {
        Refused::Usage(text) => usage(py, text),
        Refused::Row { row, column, text } => of_row(py, row, &column, &text),
        Refused::Failed(error) => failed(py, error),
    })
}

/// Creates the exception for a value that cannot be placed.
fn of_row(py: Python<'_>, row: u64, column: &str, text: &str) -> PyErr {
    let place = ErrorPlace { row: Some(row), column: Some(column.to_owned()), ..ErrorPlace::default() };
    exception(py, "UsageError", text, &place)
}

/// Reason why keys cannot be placed.
enum Refused {
    Usage(String),
    Row { row: u64, column: String, text: String },
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn whole(column: AnyArray) -> PyResult<ArrayRef> {
    let (chunks, field) = column.into_chunked_array()?.into_inner();
    let chunks: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
    match chunks.as_slice() {
        [] => Ok(arrow::array::new_empty_array(field.data_type())),
        chunks => concat(chunks).map_err(|error| pyo3_arrow::error::PyArrowError::from(error).into()),
    }
}

fn type_of(py: Python<'_>, name: &str, array: &ArrayRef) -> PyResult<ColumnType> {
    ColumnType::from_arrow(array.data_type()).map_err(|error| usage(py, format!("column {name}: {error}")))
}

fn placed(
    names: &[String],
    arrays: &[ArrayRef],
    types: &[ColumnType],
    function: Function,
    partitions: PartitionCount,
    hashes: bool,
) -> Result<ArrayRef, Refused> {
    let column = |(name, column_type): (&String, &ColumnType)| Column {
        name: name.clone(),
        column_type: *column_type,
        nullable: true,
    };
    let columns: Vec<Column> = names.iter().zip(types).map(column).collect();
    let field = |(name, array): (&String, &ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let given = Schema::new(names.iter().zip(arrays).map(field).collect::<Vec<_>>());
    let wanted = Schema::new(
        columns
            .iter()
            .map(|column| Field::new(&column.name, column.column_type.arrow_type(), true))
            .collect::<Vec<_>>(),
    );
    let batch = RecordBatch::try_new(Arc::new(given), arrays.to_vec())?;
    let conform = Conform::to_columns("keys", columns.into(), Arc::new(wanted), &InputOptions::default());
    let refused = |error: SourceError| Refused::Usage(error.to_string());
    let conformed = conform.conform((batch, 1).into()).map_err(refused)?;
    if let Some(reject) = conformed.rejects.first() {
        let row = match reject.position {
            evenkeel::source::RowPosition::Row(row) | evenkeel::source::RowPosition::Line(row) => row,
        };
        let column = reject.column.clone().unwrap_or_default();
        return Err(Refused::Row { row, column, text: reject.to_string() });
    }
    let key = conformed.batch.columns();
    let nulls = function.nulls();
    if !nulls.is_empty() && key.iter().any(|column| column.null_count() > 0) {
        return Err(Refused::Usage(format!("{function} {nulls}")));
    }
    let placement = Placement::new(function, partitions, types.to_vec());
    let refused = |error: evenkeel::placement::PlacementError| Refused::Usage(error.to_string());
    Ok(match hashes {
        true => {
            let hashes = placement.hash(key).map_err(refused)?;
            // As the system writes them: some have signed hashes.
            let signed = |hash: &u64| function.hash_text(*hash).parse::<i64>();
            match function.hash_text(u64::MAX).starts_with('-') {
                true => Arc::new(Int64Array::from(hashes.iter().map(signed).collect::<Result<Vec<_>, _>>()?)),
                false => Arc::new(UInt64Array::from(hashes)),
            }
        }
        false => {
            let partitions = placement.assign(key).map_err(refused)?;
            Arc::new(UInt32Array::from_iter_values(partitions.into_iter().map(|partition| partition.0)))
        }
    })
}
