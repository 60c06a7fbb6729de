//! Bytes of key values, by column type.

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
            ValueBytes::Word(word, count) => bytes.extend_from_slice(&word.to_le_bytes()[..count as usize]),
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
    let expected = |width: usize| vec![[&[0xfe_u8][..], &[0xff; 7]].concat()[..width].to_vec(), Vec::new()];
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
    assert!(matches!(error(ColumnType::Int8, ints(&[Some(128)])), PlacementError::Values { column: 3, .. }));
    assert!(matches!(error(ColumnType::Uint32, ints(&[Some(-1)])), PlacementError::Values { .. }));
    assert!(matches!(error(ColumnType::Uuid, ints(&[Some(1)])), PlacementError::NoLayout { .. }));
}
