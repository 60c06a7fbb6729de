//! Keys that a function is judged by.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ahash::AHashSet;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, Decimal128Type};

use crate::lint::{LintError, as_type, fail_if_stopped};
use evenkeel_input::source::{Export, OnUnreadable};
use evenkeel_model::remark::Remark;
use evenkeel_model::table::ColumnType;
use evenkeel_stats::sketch::key_identities;

/// Maximum number of distinct keys that are kept; further keys of an export are left out, with a
/// note.
pub const MAX_KEYS: usize = 5_000_000;

/// Distinct keys whose spread is checked.
#[derive(Debug, Clone)]
pub struct Domain {
    /// Source of the keys.
    pub name: String,
    /// Types of the columns.
    pub types: Vec<ColumnType>,
    /// Columns of the keys.
    pub columns: Vec<ArrayRef>,
    /// Notes on keys that were left out, one sentence each.
    pub notes: Vec<Remark>,
}

impl Domain {
    /// Returns the numbers of a range as one column.
    ///
    /// # Errors
    /// [`LintError`] if the type cannot hold them.
    pub fn range(range: Range<i64>, column_type: ColumnType) -> Result<Self, LintError> {
        let name = format!("{} to {}", range.start, range.end - 1);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
        let column = as_type(&numbers, column_type).ok_or_else(|| {
            let message = format!("{name} are not values of {column_type}");
            arrow::error::ArrowError::InvalidArgumentError(message)
        })?;
        Ok(Self { name, types: vec![column_type], columns: vec![column], notes: Vec::new() })
    }

    /// Reads the distinct keys of an export, by the names of their columns.
    ///
    /// # Errors
    /// [`LintError`] if a column is unknown, or the export cannot be read.
    pub fn from_export(export: &Export, key: &[String], stop: &AtomicBool) -> Result<Self, LintError> {
        let columns = export.columns();
        let position = |name: &String| {
            columns.iter().position(|column| column.name == *name).ok_or_else(|| LintError::UnknownColumn {
                column: name.clone(),
                known: columns.iter().map(|column| column.name.clone()).collect(),
            })
        };
        let positions: Vec<usize> = key.iter().map(position).collect::<Result<_, _>>()?;
        let mut seen: AHashSet<u64> = AHashSet::new();
        let mut kept: Vec<Vec<ArrayRef>> = vec![Vec::new(); positions.len()];
        let mut is_full = false;
        let projected = |column: usize| positions.contains(&column);
        export.read_columns::<LintError>(OnUnreadable::Fail, &projected, |_, batch| {
            let of_key: Vec<&ArrayRef> =
                positions.iter().filter_map(|column| batch.columns().get(*column)).collect();
            let identities = key_identities(of_key.iter().copied());
            let is_new = |(row, identity): (u32, &u64)| {
                if seen.len() < MAX_KEYS {
                    return seen.insert(*identity).then_some(row);
                }
                is_full |= !seen.contains(identity);
                None
            };
            let rows: UInt32Array = (0u32..).zip(&identities).filter_map(is_new).collect();
            for (kept, column) in kept.iter_mut().zip(&of_key) {
                kept.push(take(column, &rows, None)?);
            }
            fail_if_stopped(stop)?;
            Ok(!is_full)
        })?;
        let whole = |pieces: &Vec<ArrayRef>| {
            let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
            concat(&pieces)
        };
        if seen.is_empty() {
            return Err(LintError::NoKeys);
        }
        let mut notes = Vec::new();
        if is_full {
            let text = format!("only the first {MAX_KEYS} distinct keys are checked; there are more");
            notes.push(Remark::new("keys_cut_short", text));
        }
        let types =
            positions.iter().filter_map(|column| columns.get(*column)).map(|column| column.column_type);
        Ok(Self {
            name: format!("({}) of {}", key.join(", "), export.input_names().join(", ")),
            types: types.collect(),
            columns: kept.iter().map(whole).collect::<Result<_, _>>()?,
            notes,
        })
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }

    /// Returns the keys with one column as another type that holds its values without loss.
    pub(super) fn other_types(&self) -> Vec<OtherType> {
        let mut alternatives = Vec::new();
        for (position, (column_type, column)) in self.types.iter().zip(&self.columns).enumerate() {
            for (words, other, column) in others(*column_type, column) {
                let (mut types, mut columns) = (self.types.clone(), self.columns.clone());
                if let (Some(changed_type), Some(values)) =
                    (types.get_mut(position), columns.get_mut(position))
                {
                    (*changed_type, *values) = (other, column);
                }
                let words = match self.types.len() {
                    1 => words,
                    _ => format!("{words} for column {} of the key", position + 1),
                };
                alternatives.push(OtherType { words, column_type: other, types, columns });
            }
        }
        alternatives
    }
}

/// Keys with one column as another type.
pub(super) struct OtherType {
    /// Description: `type Utf8`.
    pub(super) words: String,
    /// Type that the column was converted to.
    pub(super) column_type: ColumnType,
    pub(super) types: Vec<ColumnType>,
    pub(super) columns: Vec<ArrayRef>,
}

/// Converts a column to other types, each with a description.
fn others(column_type: ColumnType, column: &ArrayRef) -> Vec<(String, ColumnType, ArrayRef)> {
    const OTHERS: [ColumnType; 5] =
        [ColumnType::Int32, ColumnType::Int64, ColumnType::Int16, ColumnType::Uint64, ColumnType::Utf8];
    let others = OTHERS.into_iter().filter(|other| *other != column_type);
    let mut alternatives: Vec<(String, ColumnType, ArrayRef)> = others
        .filter_map(|other| Some((format!("type {other}"), other, losslessly(column, other)?)))
        .collect();
    // A decimal can also be a number of its smallest units.
    if let DataType::Decimal128(_, scale) = column.data_type()
        && *scale > 0
    {
        let units = column.as_primitive::<Decimal128Type>().iter();
        let units: Option<Int64Array> =
            units.map(|units| units.map(i64::try_from).transpose()).collect::<Result<_, _>>().ok();
        let words = format!("type Int64, in units of 1e-{scale}");
        alternatives.extend(units.map(|units| (words, ColumnType::Int64, Arc::new(units) as ArrayRef)));
    }
    alternatives
}

/// Converts a column to another type, if that preserves all of its values.
fn losslessly(column: &ArrayRef, other: ColumnType) -> Option<ArrayRef> {
    let converted = as_type(column, other)?;
    let again = cast(&converted, column.data_type()).ok()?;
    (again.as_ref() == column.as_ref()).then_some(converted)
}
