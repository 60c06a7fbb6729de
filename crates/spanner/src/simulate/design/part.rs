//! Parts of a key, and their values.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Int64Type};
use arrow::row::{RowConverter, SortField};

use crate::simulate::error::SimulateError;
use crate::simulate::key::KeyColumn;
use evenkeel_placement::placement::Placement;
use evenkeel_placement::transform::{fingerprints, shard_id, signed_shard_id};

/// One part of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Column(KeyColumn),
    /// A number derived from columns.
    Derived {
        columns: Vec<usize>,
        function: Derived,
    },
    /// A column that the database generates: the first or the second.
    Generated(usize),
    /// Distinguishes interleaved tables; follows the key of the root.
    Tag(u8),
}

/// Function of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Derived {
    /// Remainder of the fingerprint by this number, from 0 up.
    Shard(u32),
    /// Remainder of the fingerprint by this number, which may be negative.
    SignedShard(u32),
    /// Number of the hash partition.
    Partition,
}

impl Part {
    /// Order of the values. NULL sorts before every value, and therefore last in descending order.
    pub(super) fn sort_options(&self) -> SortOptions {
        match self {
            Self::Column(key) => SortOptions { descending: key.descending, nulls_first: !key.descending },
            _ => SortOptions { descending: false, nulls_first: true },
        }
    }

    /// Encodes values of the part as bytes of a key.
    pub(super) fn encode(&self, values: &ArrayRef) -> Result<Vec<Vec<u8>>, SimulateError> {
        let field = SortField::new_with_options(values.data_type().clone(), self.sort_options());
        let rows = RowConverter::new(vec![field])?.convert_columns(std::slice::from_ref(values))?;
        Ok(rows.iter().map(|row| row.data().to_vec()).collect())
    }

    /// Returns the values of the part, for the rows of a batch and their generated columns.
    pub(super) fn values(
        &self,
        batch: &RecordBatch,
        generated: &[ArrayRef],
        placement: Option<&Placement>,
    ) -> Result<ArrayRef, SimulateError> {
        match self {
            Self::Column(key) => {
                let column = column_of(batch, key.column)?;
                match column.data_type() {
                    // Only some formats deliver text as views.
                    DataType::Utf8 => Ok(cast(&column, &DataType::Utf8View)?),
                    DataType::BinaryView => Ok(cast(&column, &DataType::Binary)?),
                    _ => Ok(column),
                }
            }
            Self::Derived { columns, function } => {
                let columns: Result<Vec<ArrayRef>, SimulateError> =
                    columns.iter().map(|column| column_of(batch, *column)).collect();
                function.values(&columns?, placement)
            }
            Self::Generated(number) => generated.get(*number).cloned().ok_or(SimulateError::Columns),
            Self::Tag(_) => Err(SimulateError::Columns),
        }
    }
}

impl Derived {
    fn values(&self, columns: &[ArrayRef], placement: Option<&Placement>) -> Result<ArrayRef, SimulateError> {
        let values: Int64Array = match (self, placement) {
            (Self::Partition, Some(placement)) => {
                let partitions = placement.assign(columns)?.into_iter();
                partitions.map(|partition| Some(i64::from(partition.0))).collect()
            }
            (Self::Shard(shards), _) => {
                fingerprints(columns)?.unary::<_, Int64Type>(|fingerprint| shard_id(fingerprint, *shards))
            }
            (Self::SignedShard(shards), _) => {
                fingerprints(columns)?.unary(|fingerprint| signed_shard_id(fingerprint, *shards))
            }
            (Self::Partition, None) => return Err(SimulateError::Columns),
        };
        Ok(Arc::new(values))
    }

    /// Returns all values that the function can have.
    pub(super) fn possible_values(&self, placement: Option<&Placement>) -> ArrayRef {
        let values = match self {
            Self::Shard(shards) => 0..i64::from(*shards),
            Self::SignedShard(shards) => 1 - i64::from(*shards)..i64::from(*shards),
            Self::Partition => 0..placement.map_or(0, |placement| i64::from(placement.partitions().get())),
        };
        Arc::new(Int64Array::from_iter_values(values))
    }
}

fn column_of(batch: &RecordBatch, column: usize) -> Result<ArrayRef, SimulateError> {
    batch.columns().get(column).cloned().ok_or(SimulateError::Columns)
}
