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
    /// This many low bytes of a number, least significant first.
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
mod tests {
    use arrow::array::{
        Date32Array, DurationMillisecondArray, Int32Array, NullArray, TimestampMicrosecondArray,
        TimestampSecondArray,
    };

    use super::*;

    /// Returns the bytes of each row.
    fn bytes_of(column_type: ColumnType, array: ArrayRef) -> Result<Vec<Vec<u8>>, PlacementError> {
        let column = KeyColumn::new(3, column_type, &array)?;
        assert_eq!(column.rows(), array.len());
        let of_row = |row: usize| {
            let mut bytes = Vec::new();
            column.bytes().visit(row, |value| match value {
                ValueBytes::Word(word, count) => {
                    bytes.extend_from_slice(&word.to_le_bytes()[..count as usize])
                }
                ValueBytes::Slice(slice) => bytes.extend_from_slice(slice),
            });
            assert_eq!(column.bytes().length(row), bytes.len());
            bytes
        };
        Ok((0..array.len()).map(of_row).collect())
    }

    fn ints(values: &[Option<i32>]) -> ArrayRef {
        Arc::new(Int32Array::from(values.to_vec()))
    }

    #[test]
    fn a_number_has_the_bytes_of_its_type_least_significant_first() {
        let minus_two = || ints(&[Some(-2), None]);
        let expected =
            |width: usize| vec![[&[0xfe_u8][..], &[0xff; 7]].concat()[..width].to_vec(), Vec::new()];
        for (column_type, width) in
            [(ColumnType::Int8, 1), (ColumnType::Int16, 2), (ColumnType::Int32, 4), (ColumnType::Int64, 8)]
        {
            assert_eq!(bytes_of(column_type, minus_two()).unwrap(), expected(width), "{column_type}");
        }
        let word = |column_type| bytes_of(column_type, ints(&[Some(0x0102)])).unwrap().remove(0);
        assert_eq!(word(ColumnType::Uint16), [2, 1]);
        assert_eq!(word(ColumnType::Uint64), [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(word(ColumnType::Double), 258f64.to_le_bytes());
        assert_eq!(word(ColumnType::Float), 258f32.to_le_bytes());
        assert_eq!(word(ColumnType::Bool), [1]);
    }

    #[test]
    fn times_have_the_unit_and_width_of_their_type() {
        // 2001-09-09T01:46:40Z is 1e9 seconds after 1970, and 11574 days.
        let seconds = || -> ArrayRef { Arc::new(TimestampSecondArray::from(vec![1_000_000_000])) };
        let one = |column_type, array| bytes_of(column_type, array).unwrap().remove(0);
        assert_eq!(one(ColumnType::Date, seconds()), 11_574u16.to_le_bytes());
        assert_eq!(one(ColumnType::Date32, seconds()), 11_574u32.to_le_bytes());
        assert_eq!(one(ColumnType::Datetime, seconds()), 1_000_000_000u32.to_le_bytes());
        assert_eq!(one(ColumnType::Datetime64, seconds()), 1_000_000_000u64.to_le_bytes());
        assert_eq!(one(ColumnType::Timestamp, seconds()), 1_000_000_000_000_000u64.to_le_bytes());
        // Before 1970, a second begins before its microseconds.
        let before: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![-1]).with_timezone("+02:00"));
        assert_eq!(one(ColumnType::Datetime64, Arc::clone(&before)), (-1i64).to_le_bytes());
        assert_eq!(one(ColumnType::Timestamp64, before), (-1i64).to_le_bytes());
        let interval: ArrayRef = Arc::new(DurationMillisecondArray::from(vec![-5]));
        assert_eq!(one(ColumnType::Interval, interval), (-5000i64).to_le_bytes());
    }

    #[test]
    fn text_and_bytes_are_the_same_in_every_encoding() {
        let values = [Some("h\u{e9}"), None, Some("")];
        let plain: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let expected = [vec![b'h', 0xc3, 0xa9], Vec::new(), Vec::new()];
        let encodings = [
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::Utf8View,
            dictionary,
            DataType::Binary,
            DataType::LargeBinary,
            DataType::BinaryView,
        ];
        for encoding in encodings {
            let array = cast_with_options(&plain, &encoding, &CastOptions::default()).unwrap();
            for column_type in [ColumnType::Utf8, ColumnType::Json, ColumnType::String] {
                let found = bytes_of(column_type, Arc::clone(&array)).unwrap();
                assert_eq!(found, expected, "{encoding} as {column_type}");
            }
        }
        let fixed: ArrayRef =
            Arc::new(FixedSizeBinaryArray::try_from_iter([[1u8, 2], [3, 4]].into_iter()).unwrap());
        assert_eq!(bytes_of(ColumnType::String, fixed).unwrap(), [[1, 2], [3, 4]]);
    }

    #[test]
    fn nulls_decimals_and_rows_that_do_not_exist_have_no_bytes() {
        let nothing: ArrayRef = Arc::new(NullArray::new(2));
        assert_eq!(bytes_of(ColumnType::Int64, nothing).unwrap(), [[0u8; 0]; 2]);
        let decimal = ColumnType::Decimal { precision: 22, scale: 9 };
        assert_eq!(bytes_of(decimal, ints(&[Some(1)])).unwrap(), [[0u8; 0]]);
        let column = KeyColumn::new(0, ColumnType::Int32, &ints(&[Some(1)])).unwrap();
        assert_eq!(column.bytes().length(1), 0);
    }

    #[test]
    fn values_that_do_not_fit_are_refused_with_their_column() {
        let error = |column_type, array| bytes_of(column_type, array).unwrap_err();
        let date = |days: i32| -> ArrayRef { Arc::new(Date32Array::from(vec![Some(0), None, Some(days)])) };
        assert!(bytes_of(ColumnType::Date, date(65_535)).is_ok());
        for days in [-1, 65_536] {
            let refused = error(ColumnType::Date, date(days));
            assert!(
                matches!(refused, PlacementError::OutOfRange { column: 3, value, .. } if value == i64::from(days)),
                "{refused}"
            );
        }
        let late: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1i64 << 32]));
        assert!(matches!(error(ColumnType::Datetime, late), PlacementError::OutOfRange { .. }));
        assert!(matches!(
            error(ColumnType::Int8, ints(&[Some(128)])),
            PlacementError::Values { column: 3, .. }
        ));
        assert!(matches!(error(ColumnType::Uint32, ints(&[Some(-1)])), PlacementError::Values { .. }));
        assert!(matches!(error(ColumnType::Uuid, ints(&[Some(1)])), PlacementError::NoLayout { .. }));
    }
}
