//! Kinds of values that a dictionary can hold.

use arrow::datatypes::{DataType, TimeUnit};

/// Storage and order of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Signed,
    Unsigned,
    Text,
    Bytes,
}

impl Kind {
    /// Returns the kind of a column's values; `None` if only the library can write them.
    pub(super) fn from_type(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, _) => Some(Self::Signed),
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => Some(Self::Unsigned),
            DataType::Utf8 | DataType::Utf8View => Some(Self::Text),
            DataType::Binary | DataType::BinaryView => Some(Self::Bytes),
            _ => None,
        }
    }
}
