//! Keys as the systems see them: one value per column, regardless of its Arrow encoding.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, PrimitiveArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Float32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type,
};

use crate::placement::key_bytes::{PlacementError, Reader};
use crate::placement::systems::About;
use evenkeel_model::table::ColumnType;

/// One value of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer with its width in bytes: 1, 2, 4 or 8.
    Int(i64, u8),
    /// An unsigned integer with its width in bytes.
    Uint(u64, u8),
    /// 32-bit floating point.
    Float(f32),
    /// 64-bit floating point.
    Double(f64),
    /// Text as UTF-8.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A UUID, most significant byte first.
    Uuid([u8; 16]),
    /// Days since 1970.
    Date(i32),
    /// Microseconds since 1970 in UTC.
    Timestamp(i64),
}

/// A column of a key.
#[derive(Debug)]
pub struct KeyValues {
    values: Values,
    rows: usize,
}

#[derive(Debug)]
enum Values {
    /// NULL in every row.
    Null,
    Bool(BooleanArray),
    Int(PrimitiveArray<Int64Type>, u8),
    Uint(PrimitiveArray<UInt64Type>, u8),
    Float(PrimitiveArray<Float32Type>),
    Double(PrimitiveArray<Float64Type>),
    Text(BinaryViewArray),
    Bytes(BinaryViewArray),
    Uuid(FixedSizeBinaryArray),
    Date(PrimitiveArray<Date32Type>),
    Timestamp(PrimitiveArray<TimestampMicrosecondType>),
}

impl KeyValues {
    /// Reads `array` as `column_type`. `column` is the position in the key, for errors. If a system
    /// has no unsigned integers, they become the next wider signed ones, and Uint64 becomes the
    /// signed one of 8 bytes.
    ///
    /// # Errors
    /// [`PlacementError`] if the values are not of the type, or no type of the system holds them.
    pub(super) fn read(
        column: usize,
        column_type: ColumnType,
        array: &ArrayRef,
        about: &About,
    ) -> Result<Self, PlacementError> {
        let unsigned = about.unsigned;
        let reader = Reader { column, column_type };
        if let DataType::Dictionary(_, value_type) = array.data_type() {
            let values = reader.cast(array, value_type)?;
            return Self::read(column, column_type, &values, about);
        }
        let rows = array.len();
        if array.data_type() == &DataType::Null {
            return Ok(Self { values: Values::Null, rows });
        }
        let signed = |width: u8| Ok(Values::Int(reader.primitive::<Int64Type>(array)?, width));
        let whole = |width: u8| match unsigned {
            true => Ok(Values::Uint(reader.primitive::<UInt64Type>(array)?, width)),
            false => signed((2 * width).min(8))
                .map_err(|_| PlacementError::TooLarge { system: about.name, column }),
        };
        let values = match column_type {
            ColumnType::Bool => Values::Bool(reader.cast(array, &DataType::Boolean)?.as_boolean().clone()),
            ColumnType::Int8 => signed(1)?,
            ColumnType::Int16 => signed(2)?,
            ColumnType::Int32 => signed(4)?,
            ColumnType::Int64 => signed(8)?,
            ColumnType::Uint8 => whole(1)?,
            ColumnType::Uint16 => whole(2)?,
            ColumnType::Uint32 => whole(4)?,
            ColumnType::Uint64 => whole(8)?,
            ColumnType::Float => Values::Float(reader.primitive::<Float32Type>(array)?),
            ColumnType::Double => Values::Double(reader.primitive::<Float64Type>(array)?),
            ColumnType::Utf8 | ColumnType::Json | ColumnType::JsonDocument | ColumnType::ObjectId => {
                Values::Text(reader.byte_views(array)?)
            }
            ColumnType::String | ColumnType::Yson => Values::Bytes(reader.byte_views(array)?),
            ColumnType::Uuid => Values::Uuid(
                reader.cast(array, &DataType::FixedSizeBinary(16))?.as_fixed_size_binary().clone(),
            ),
            ColumnType::Date if about.narrow_times => {
                let days = reader.days(array)?.unary(|days| u64::from(days.cast_unsigned() & 0xFFFF));
                Values::Uint(days, 2)
            }
            ColumnType::Datetime if about.narrow_times => {
                let seconds = reader.seconds(array)?.unary(|seconds| seconds.cast_unsigned() & 0xFFFF_FFFF);
                Values::Uint(seconds, 4)
            }
            ColumnType::Date | ColumnType::Date32 => Values::Date(reader.days(array)?),
            ColumnType::Datetime
            | ColumnType::Datetime64
            | ColumnType::Timestamp
            | ColumnType::Timestamp64 => Values::Timestamp(reader.micros(array)?),
            ColumnType::Interval | ColumnType::Interval64 => {
                let micros = reader.cast(array, &DataType::Duration(TimeUnit::Microsecond))?;
                Values::Int(reader.primitive::<Int64Type>(&micros)?, 8)
            }
            ColumnType::Decimal { .. } => {
                return Err(PlacementError::Unmodelled { column_type });
            }
        };
        Ok(Self { values, rows })
    }

    /// Number of values.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of NULL values.
    pub(super) fn null_count(&self) -> usize {
        match &self.values {
            Values::Null => self.rows,
            Values::Bool(array) => array.null_count(),
            Values::Int(array, _) => array.null_count(),
            Values::Uint(array, _) => array.null_count(),
            Values::Float(array) => array.null_count(),
            Values::Double(array) => array.null_count(),
            Values::Text(array) | Values::Bytes(array) => array.null_count(),
            Values::Uuid(array) => array.null_count(),
            Values::Date(array) => array.null_count(),
            Values::Timestamp(array) => array.null_count(),
        }
    }

    /// Returns the value of a row; NULL if the row does not exist.
    #[inline]
    pub(super) fn value(&self, row: usize) -> Value<'_> {
        macro_rules! value {
            ($array:expr, $value:expr) => {
                if row < self.rows && $array.is_valid(row) { $value($array.value(row)) } else { Value::Null }
            };
        }
        match &self.values {
            Values::Null => Value::Null,
            Values::Bool(array) => value!(array, Value::Bool),
            Values::Int(array, width) => value!(array, |value| Value::Int(value, *width)),
            Values::Uint(array, width) => value!(array, |value| Value::Uint(value, *width)),
            Values::Float(array) => value!(array, Value::Float),
            Values::Double(array) => value!(array, Value::Double),
            Values::Text(array) => value!(array, Value::Text),
            Values::Bytes(array) => value!(array, Value::Bytes),
            Values::Uuid(array) => value!(array, uuid),
            Values::Date(array) => value!(array, Value::Date),
            Values::Timestamp(array) => value!(array, Value::Timestamp),
        }
    }

    /// Passes all values to `show` in order. The kind of value is checked once, so that `show` is
    /// compiled separately for each kind.
    #[inline(always)]
    pub(super) fn for_each(&self, mut show: impl FnMut(usize, Value<'_>)) {
        macro_rules! each {
            ($array:expr, $value:expr) => {{
                let value = $value;
                if $array.null_count() == 0 {
                    (0..self.rows).for_each(|row| show(row, value($array.value(row))));
                } else {
                    (0..self.rows).for_each(|row| {
                        show(row, if $array.is_valid(row) { value($array.value(row)) } else { Value::Null });
                    });
                }
            }};
        }
        macro_rules! words {
            ($array:expr, $value:expr) => {{
                let value = $value;
                match $array.nulls().filter(|nulls| nulls.null_count() > 0) {
                    None => {
                        $array.values().iter().enumerate().for_each(|(row, word)| show(row, value(*word)))
                    }
                    Some(nulls) => {
                        let valid = $array.values().iter().zip(nulls).enumerate();
                        valid.for_each(|(row, (word, is_valid))| {
                            show(row, if is_valid { value(*word) } else { Value::Null });
                        });
                    }
                }
            }};
        }
        match &self.values {
            Values::Null => (0..self.rows).for_each(|row| show(row, Value::Null)),
            Values::Bool(array) => each!(array, Value::Bool),
            Values::Int(array, 4) => words!(array, |value| Value::Int(value, 4)),
            Values::Int(array, 8) => words!(array, |value| Value::Int(value, 8)),
            Values::Int(array, width) => words!(array, |value| Value::Int(value, *width)),
            Values::Uint(array, width) => words!(array, |value| Value::Uint(value, *width)),
            Values::Float(array) => words!(array, Value::Float),
            Values::Double(array) => words!(array, Value::Double),
            Values::Text(array) => each!(array, Value::Text),
            Values::Bytes(array) => each!(array, Value::Bytes),
            Values::Uuid(array) => each!(array, uuid),
            Values::Date(array) => words!(array, Value::Date),
            Values::Timestamp(array) => words!(array, Value::Timestamp),
        }
    }
}

fn uuid(bytes: &[u8]) -> Value<'_> {
    bytes.try_into().map_or(Value::Null, Value::Uuid)
}

impl Reader {
    /// Returns text or bytes as views.
    fn byte_views(&self, array: &ArrayRef) -> Result<BinaryViewArray, PlacementError> {
        let array = match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => self.cast(array, &DataType::Utf8View)?,
            _ => ArrayRef::clone(array),
        };
        Ok(self.cast(&array, &DataType::BinaryView)?.as_binary_view().clone())
    }
}

/// Returns the bits of a number with a native width, in little-endian order, and its length in
/// bytes. `None` for other values.
#[inline]
pub(super) fn little_endian(value: Value<'_>) -> Option<(u64, u32)> {
    match value {
        Value::Bool(value) => Some((u64::from(value), 1)),
        Value::Int(value, width) => Some((value.cast_unsigned(), u32::from(width))),
        Value::Uint(value, width) => Some((value, u32::from(width))),
        Value::Float(value) => Some((u64::from(value.to_bits()), 4)),
        Value::Double(value) => Some((value.to_bits(), 8)),
        Value::Date(days) => Some((u64::from(days.cast_unsigned()), 4)),
        Value::Timestamp(micros) => Some((micros.cast_unsigned(), 8)),
        Value::Null | Value::Text(_) | Value::Bytes(_) | Value::Uuid(_) => None,
    }
}

/// Passes the little-endian bytes of a number, or the bytes of text, byte strings and UUIDs, to
/// `show`; `None` for NULL.
#[inline]
pub(super) fn with_bytes<T>(value: Value<'_>, show: impl FnOnce(&[u8]) -> T) -> Option<T> {
    match value {
        Value::Null => None,
        Value::Text(bytes) | Value::Bytes(bytes) => Some(show(bytes)),
        Value::Uuid(bytes) => Some(show(&bytes)),
        number => {
            let (bits, width) = little_endian(number)?;
            bits.to_le_bytes().get(..width as usize).map(show)
        }
    }
}

/// Returns the bits of a float as in Java, which has a single NaN.
pub(super) fn java_float(value: f32) -> u32 {
    if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() }
}

/// Returns the bits of a 64-bit float as in Java, which has a single NaN.
pub(super) fn java_double(value: f64) -> u64 {
    if value.is_nan() { 0x7FF8_0000_0000_0000 } else { value.to_bits() }
}

/// Appends an integer of `width` bytes, most significant first.
#[inline]
pub(super) fn push_big_endian(value: u64, width: u8, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(value.to_be_bytes().get(8 - usize::from(width.min(8))..).unwrap_or_default());
}

/// Days and microseconds from 1970 to 2000, the epoch of PostgreSQL and of systems built on it.
pub(super) const DAYS_TO_2000: i32 = 10_957;
pub(super) const MICROS_TO_2000: i64 = DAYS_TO_2000 as i64 * 86_400_000_000;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, NullArray, StringArray, UInt64Array};

    use super::*;
    use crate::placement::systems::{SYSTEMS, System};

    fn about(has_unsigned: bool) -> &'static About {
        let mut all = SYSTEMS.iter().map(|system: &&dyn System| system.about());
        all.find(|about| about.unsigned == has_unsigned && !about.narrow_times).unwrap()
    }

    fn read(column_type: ColumnType, array: ArrayRef, about: &About) -> Result<KeyValues, PlacementError> {
        KeyValues::read(2, column_type, &array, about)
    }

    fn unsigned(values: &[Option<u64>]) -> ArrayRef {
        Arc::new(UInt64Array::from(values.to_vec()))
    }

    #[test]
    fn without_unsigned_integers_the_next_wider_signed_ones_are_taken() {
        for (column_type, width, signed) in [
            (ColumnType::Uint8, 1, 2),
            (ColumnType::Uint16, 2, 4),
            (ColumnType::Uint32, 4, 8),
            (ColumnType::Uint64, 8, 8),
        ] {
            let taken =
                |has_unsigned| read(column_type, unsigned(&[Some(200)]), about(has_unsigned)).unwrap();
            assert_eq!(taken(true).value(0), Value::Uint(200, width), "{column_type}");
            assert_eq!(taken(false).value(0), Value::Int(200, signed), "{column_type}");
        }
        let error = read(ColumnType::Uint64, unsigned(&[Some(1 << 63)]), about(false)).unwrap_err();
        assert!(matches!(error, PlacementError::TooLarge { column: 2, .. }), "{error}");
    }

    #[test]
    fn every_value_is_visited_in_order_and_null_where_it_is() {
        let values =
            read(ColumnType::Int32, Arc::new(Int64Array::from(vec![Some(-1), None, Some(7)])), about(true));
        let values = values.unwrap();
        let mut visited = Vec::new();
        values.for_each(|row, value| visited.push((row, format!("{value:?}"))));
        let expected = ["Int(-1, 4)", "Null", "Int(7, 4)"].map(str::to_owned);
        assert_eq!(visited, expected.into_iter().enumerate().collect::<Vec<_>>());
        assert_eq!((values.rows(), values.null_count(), values.value(3)), (3, 1, Value::Null));
        let nothing = read(ColumnType::Int32, Arc::new(NullArray::new(2)), about(true)).unwrap();
        assert_eq!((nothing.rows(), nothing.null_count(), nothing.value(1)), (2, 2, Value::Null));
    }

    #[test]
    fn values_of_another_type_are_refused() {
        let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
        for column_type in [ColumnType::Int8, ColumnType::Uuid, ColumnType::Timestamp, ColumnType::Bool] {
            let error = read(column_type, Arc::clone(&text), about(true)).unwrap_err();
            assert!(matches!(error, PlacementError::Values { column: 2, .. }), "{error}");
        }
        let decimal = ColumnType::Decimal { precision: 22, scale: 9 };
        let error = read(decimal, text, about(true)).unwrap_err();
        assert!(matches!(error, PlacementError::Unmodelled { .. }), "{error}");
    }

    #[test]
    fn bytes_of_values_are_those_of_their_width() {
        let bytes = |value| with_bytes(value, <[u8]>::to_vec);
        assert_eq!(bytes(Value::Int(-2, 2)), Some(vec![0xfe, 0xff]));
        assert_eq!(bytes(Value::Date(1)), Some(vec![1, 0, 0, 0]));
        assert_eq!(bytes(Value::Text(b"ab")), Some(b"ab".to_vec()));
        assert_eq!(bytes(Value::Null), None);
        let mut big = vec![9];
        push_big_endian(0x0102_0304, 2, &mut big);
        push_big_endian(1, 8, &mut big);
        assert_eq!(big, [9, 3, 4, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn java_has_one_nan() {
        for nan in [f64::NAN, -f64::NAN, f64::from_bits(0x7FF8_0000_0000_0001)] {
            assert_eq!(java_double(nan), 0x7FF8_0000_0000_0000);
            assert_eq!(java_float(nan as f32), 0x7FC0_0000);
        }
        assert_eq!((java_float(-0.0), java_double(1.0)), (0x8000_0000, 0x3FF0_0000_0000_0000));
    }
}
