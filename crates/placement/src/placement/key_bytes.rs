//! Bytes that one key column adds to the hash input, regardless of its Arrow encoding.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    LargeBinaryArray, LargeStringArray, PrimitiveArray, StringArray, StringViewArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use thiserror::Error;

use evenkeel_model::table::ColumnType;
use evenkeel_model::units::counted;

/// Reason why keys cannot be placed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum PlacementError {
    #[error("a key of type {column_type} has no published byte layout in YDB and cannot be placed")]
    NoLayout { column_type: ColumnType },
    #[error("key column {column} holds Arrow type {found}, which cannot be read as {column_type}: {source}")]
    Values { column: usize, column_type: ColumnType, found: DataType, source: ArrowError },
    #[error("how {column_type} is hashed is not modelled")]
    Unmodelled { column_type: ColumnType },
    #[error("{system} {reason}")]
    System { system: &'static str, reason: String },
    #[error(
        "{system} has no unsigned integers, and key column {column} has one above 2^63 - 1; read it as \
            text (--type COLUMN:utf8)"
    )]
    TooLarge { system: &'static str, column: usize },
    #[error("key column {column}: value {value} is outside {column_type}")]
    OutOfRange { column: usize, column_type: ColumnType, value: i64 },
    #[error("the key has {}, but {found} were given", counted(*expected as u64, "column"))]
    ColumnCount { expected: usize, found: usize },
    #[error("key column {column} has {found} rows, the first column has {expected}")]
    RowCount { column: usize, expected: usize, found: usize },
    #[error(
        "placement ydb-cloud-logs needs a key of at least two columns, the first of them a Timestamp without nulls"
    )]
    CloudLogsKey,
}

/// One key column, converted to the width in which YDB hashes it.
#[derive(Debug, Clone)]
pub(super) struct KeyColumn {
    rows: usize,
    bytes: KeyBytes,
}

/// Values of a key column in the form in which they are hashed.
#[derive(Debug, Clone)]
pub(super) enum KeyBytes {
    /// Adds no bytes: Decimal, and columns that are entirely NULL.
    Nothing,
    W1(Vec<u8>, Option<NullBuffer>),
    W2(Vec<u16>, Option<NullBuffer>),
    W4(Vec<u32>, Option<NullBuffer>),
    W8(Vec<u64>, Option<NullBuffer>),
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    Utf8View(StringViewArray),
    Binary(BinaryArray),
    LargeBinary(LargeBinaryArray),
    BinaryView(BinaryViewArray),
    FixedBinary(FixedSizeBinaryArray),
}

impl KeyColumn {
    /// Reads `array` as `column_type`. `column` is the position in the key, for errors.
    pub(super) fn new(
        column: usize,
        column_type: ColumnType,
        array: &ArrayRef,
    ) -> Result<Self, PlacementError> {
        Ok(Self { rows: array.len(), bytes: KeyBytes::new(column, column_type, array)? })
    }

    /// Number of rows of the column.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn bytes(&self) -> &KeyBytes {
        &self.bytes
    }
}

impl KeyBytes {
    /// Reads `array` as `column_type`. `column` is the position in the key, for errors.
    pub(super) fn new(
        column: usize,
        column_type: ColumnType,
        array: &ArrayRef,
    ) -> Result<Self, PlacementError> {
        let reader = Reader { column, column_type };
        if matches!(array.data_type(), DataType::Null) {
            return Ok(Self::Nothing);
        }
        if let DataType::Dictionary(_, value_type) = array.data_type() {
            let values = reader.cast(array, value_type)?;
            return Self::new(column, column_type, &values);
        }
        Ok(match column_type {
            ColumnType::Decimal { .. } => Self::Nothing,
            ColumnType::Uuid => return Err(PlacementError::NoLayout { column_type }),
            ColumnType::Bool => Self::boolean(reader.cast(array, &DataType::Boolean)?.as_boolean()),
            ColumnType::Int8 => w1(reader.primitive::<Int8Type>(array)?, |v| v.cast_unsigned()),
            ColumnType::Uint8 => w1(reader.primitive::<UInt8Type>(array)?, |v| v),
            ColumnType::Int16 => w2(reader.primitive::<Int16Type>(array)?, |v| v.cast_unsigned()),
            ColumnType::Uint16 => w2(reader.primitive::<UInt16Type>(array)?, |v| v),
            ColumnType::Int32 => w4(reader.primitive::<Int32Type>(array)?, |v| v.cast_unsigned()),
            ColumnType::Uint32 => w4(reader.primitive::<UInt32Type>(array)?, |v| v),
            ColumnType::Float => w4(reader.primitive::<Float32Type>(array)?, f32::to_bits),
            ColumnType::Int64 => w8(reader.primitive::<Int64Type>(array)?, |v| v.cast_unsigned()),
            ColumnType::Uint64 => w8(reader.primitive::<UInt64Type>(array)?, |v| v),
            ColumnType::Double => w8(reader.primitive::<Float64Type>(array)?, f64::to_bits),
            ColumnType::Date => reader.narrow(&reader.days(array)?, Self::W2)?,
            ColumnType::Date32 => w4(reader.days(array)?, |v| v.cast_unsigned()),
            ColumnType::Datetime => reader.narrow(&reader.seconds(array)?, Self::W4)?,
            ColumnType::Datetime64 => w8(reader.seconds(array)?, |v| v.cast_unsigned()),
            ColumnType::Timestamp | ColumnType::Timestamp64 => {
                w8(reader.micros(array)?, |v| v.cast_unsigned())
            }
            ColumnType::Interval | ColumnType::Interval64 => {
                let micros = reader.cast(array, &DataType::Duration(TimeUnit::Microsecond))?;
                w8(reader.primitive::<Int64Type>(&micros)?, |v| v.cast_unsigned())
            }
            ColumnType::Utf8 | ColumnType::Json | ColumnType::JsonDocument | ColumnType::ObjectId => {
                reader.text(array)?
            }
            ColumnType::String | ColumnType::Yson => reader.bytes(array)?,
        })
    }

    fn boolean(array: &BooleanArray) -> Self {
        Self::W1((0..array.len()).map(|row| u8::from(array.value(row))).collect(), array.nulls().cloned())
    }

    /// Passes the bytes of one row to `show`; none for NULL or a row that does not exist.
    #[inline]
    pub(super) fn visit(&self, row: usize, mut show: impl FnMut(ValueBytes<'_>)) {
        fn word<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, row: usize) -> Option<T> {
            values.get(row).copied().filter(|_| nulls.is_none_or(|nulls| nulls.is_valid(row)))
        }
        macro_rules! variable {
            ($array:expr, $bytes:expr) => {
                if $array.is_valid(row) {
                    show(ValueBytes::Slice($bytes($array.value(row))));
                }
            };
        }
        match self {
            Self::Nothing => {}
            Self::W1(values, nulls) => {
                word(values, nulls.as_ref(), row)
                    .into_iter()
                    .for_each(|v| show(ValueBytes::Word(v.into(), 1)));
            }
            Self::W2(values, nulls) => {
                word(values, nulls.as_ref(), row)
                    .into_iter()
                    .for_each(|v| show(ValueBytes::Word(v.into(), 2)));
            }
            Self::W4(values, nulls) => {
                word(values, nulls.as_ref(), row)
                    .into_iter()
                    .for_each(|v| show(ValueBytes::Word(v.into(), 4)));
            }
            Self::W8(values, nulls) => {
                word(values, nulls.as_ref(), row).into_iter().for_each(|v| show(ValueBytes::Word(v, 8)));
            }
            Self::Utf8(array) => variable!(array, str::as_bytes),
            Self::LargeUtf8(array) => variable!(array, str::as_bytes),
            Self::Utf8View(array) => variable!(array, str::as_bytes),
            Self::Binary(array) => variable!(array, std::convert::identity),
            Self::LargeBinary(array) => variable!(array, std::convert::identity),
            Self::BinaryView(array) => variable!(array, std::convert::identity),
            Self::FixedBinary(array) => variable!(array, std::convert::identity),
        }
    }

    /// Number of bytes that the row adds.
    #[inline]
    pub(super) fn length(&self, row: usize) -> usize {
        let mut length = 0;
        self.visit(row, |bytes| {
            length = match bytes {
                ValueBytes::Word(_, count) => count as usize,
                ValueBytes::Slice(bytes) => bytes.len(),
            };
        });
        length
    }
}

/// The bytes of one value.
pub(super) enum ValueBytes<'a> {
    /// Number, and how many of its low bytes to use, least significant first.
    Word(u64, u32),
    /// Text or bytes.
    Slice(&'a [u8]),
}

fn w1<T: ArrowPrimitiveType>(array: PrimitiveArray<T>, bits: impl Fn(T::Native) -> u8) -> KeyBytes {
    KeyBytes::W1(array.values().iter().map(|v| bits(*v)).collect(), array.nulls().cloned())
}

fn w2<T: ArrowPrimitiveType>(array: PrimitiveArray<T>, bits: impl Fn(T::Native) -> u16) -> KeyBytes {
    KeyBytes::W2(array.values().iter().map(|v| bits(*v)).collect(), array.nulls().cloned())
}

fn w4<T: ArrowPrimitiveType>(array: PrimitiveArray<T>, bits: impl Fn(T::Native) -> u32) -> KeyBytes {
    KeyBytes::W4(array.values().iter().map(|v| bits(*v)).collect(), array.nulls().cloned())
}

fn w8<T: ArrowPrimitiveType>(array: PrimitiveArray<T>, bits: impl Fn(T::Native) -> u64) -> KeyBytes {
    KeyBytes::W8(array.values().iter().map(|v| bits(*v)).collect(), array.nulls().cloned())
}

/// Reads arrays as one key column, with errors that name it.
pub(super) struct Reader {
    pub(super) column: usize,
    pub(super) column_type: ColumnType,
}

impl Reader {
    pub(super) fn cast(&self, array: &ArrayRef, to: &DataType) -> Result<ArrayRef, PlacementError> {
        if array.data_type() == to {
            return Ok(Arc::clone(array));
        }
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(array, to, &strict).map_err(|source| PlacementError::Values {
            column: self.column,
            column_type: self.column_type,
            found: array.data_type().clone(),
            source,
        })
    }

    pub(super) fn primitive<T: ArrowPrimitiveType>(
        &self,
        array: &ArrayRef,
    ) -> Result<PrimitiveArray<T>, PlacementError> {
        Ok(self.cast(array, &T::DATA_TYPE)?.as_primitive::<T>().clone())
    }

    pub(super) fn days(&self, array: &ArrayRef) -> Result<PrimitiveArray<Date32Type>, PlacementError> {
        self.primitive::<Date32Type>(array)
    }

    /// Returns instants in microseconds. A zone changes only how a timestamp is displayed.
    pub(super) fn micros(
        &self,
        array: &ArrayRef,
    ) -> Result<PrimitiveArray<TimestampMicrosecondType>, PlacementError> {
        let zone = match array.data_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        };
        let micros = self.cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone))?;
        Ok(micros.as_primitive::<TimestampMicrosecondType>().clone())
    }

    pub(super) fn seconds(&self, array: &ArrayRef) -> Result<PrimitiveArray<Int64Type>, PlacementError> {
        if let DataType::Timestamp(TimeUnit::Second, _) = array.data_type() {
            return self.primitive::<Int64Type>(array);
        }
        Ok(self.micros(array)?.unary(|micros| micros.div_euclid(1_000_000)))
    }

    /// Narrows to the unsigned width of YDB; rejects values that do not fit instead of hashing
    /// other bytes.
    fn narrow<T, N>(
        &self,
        array: &PrimitiveArray<T>,
        wrap: impl Fn(Vec<N>, Option<NullBuffer>) -> KeyBytes,
    ) -> Result<KeyBytes, PlacementError>
    where
        T: ArrowPrimitiveType<Native: Into<i64>>,
        N: TryFrom<i64> + Default,
    {
        let mut values = Vec::with_capacity(array.len());
        for value in array.iter() {
            let Some(value) = value else {
                values.push(N::default());
                continue;
            };
            let value: i64 = value.into();
            values.push(N::try_from(value).map_err(|_| PlacementError::OutOfRange {
                column: self.column,
                column_type: self.column_type,
                value,
            })?);
        }
        Ok(wrap(values, array.nulls().cloned()))
    }

    fn text(&self, array: &ArrayRef) -> Result<KeyBytes, PlacementError> {
        Ok(match array.data_type() {
            DataType::LargeUtf8 => KeyBytes::LargeUtf8(array.as_string::<i64>().clone()),
            DataType::Utf8View => KeyBytes::Utf8View(array.as_string_view().clone()),
            _ => KeyBytes::Utf8(self.cast(array, &DataType::Utf8)?.as_string::<i32>().clone()),
        })
    }

    fn bytes(&self, array: &ArrayRef) -> Result<KeyBytes, PlacementError> {
        Ok(match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => self.text(array)?,
            DataType::LargeBinary => KeyBytes::LargeBinary(array.as_binary::<i64>().clone()),
            DataType::BinaryView => KeyBytes::BinaryView(array.as_binary_view().clone()),
            DataType::FixedSizeBinary(_) => KeyBytes::FixedBinary(array.as_fixed_size_binary().clone()),
            _ => KeyBytes::Binary(self.cast(array, &DataType::Binary)?.as_binary::<i32>().clone()),
        })
    }
}

#[cfg(test)]
#[path = "key_bytes_tests.rs"]
mod tests;
