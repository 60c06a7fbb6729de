//! Values as PostgreSQL writes them, in text and binary.

use std::sync::Arc;

use arrow::array::{
    BooleanArray, Date32Array, Decimal128Array, Decimal256Array, DictionaryArray, DurationMicrosecondArray,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array, IntervalMonthDayNanoArray, ListArray,
    NullArray, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt64Array,
};
use arrow::datatypes::{Int32Type, IntervalMonthDayNano, i256};
use datafusion::common::ScalarValue;
use proptest::prelude::*;

use super::*;
use crate::parameters::{Parameter, read};
use crate::types::from_arrow;

fn texts(array: impl Array + 'static) -> Vec<Option<String>> {
    written(&(Arc::new(array) as ArrayRef), Format::Text)
        .into_iter()
        .map(|bytes| bytes.map(|bytes| String::from_utf8(bytes).unwrap()))
        .collect()
}

fn written(array: &ArrayRef, format: Format) -> Vec<Option<Vec<u8>>> {
    let column = column(array, &from_arrow(array.data_type()), format).unwrap();
    let value = |row: usize| {
        let mut bytes = BytesMut::new();
        column.write_with_length(row, &mut bytes).unwrap();
        let length = i32::from_be_bytes(bytes[..4].try_into().unwrap());
        assert_eq!(length, if column.is_null(row) { -1 } else { i32::try_from(bytes.len() - 4).unwrap() });
        (length >= 0).then(|| bytes[4..].to_vec())
    };
    (0..array.len()).map(value).collect()
}

fn all(expected: &[&str]) -> Vec<Option<String>> {
    expected.iter().map(|text| Some((*text).to_owned())).collect()
}

/// Texts that PostgreSQL 16 writes for these values, with TimeZone UTC.
#[test]
fn texts_are_those_of_postgres() {
    assert_eq!(texts(BooleanArray::from(vec![true, false])), all(&["t", "f"]));
    assert_eq!(texts(UInt64Array::from(vec![u64::MAX, 0])), all(&["18446744073709551615", "0"]));
    let floats = vec![0.0, -0.0, 1.0, 1.5, 1e14, 1e15, 1e20, -1e-4, 1e-5, 0.1 + 0.2, f64::MAX, 5e-324];
    let expected = [
        "0",
        "-0",
        "1",
        "1.5",
        "100000000000000",
        "1e+15",
        "1e+20",
        "-0.0001",
        "1e-05",
        "0.30000000000000004",
        "1.7976931348623157e+308",
        "5e-324",
    ];
    assert_eq!(texts(Float64Array::from(floats)), all(&expected));
    let special = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    assert_eq!(texts(Float64Array::from(special)), all(&["NaN", "Infinity", "-Infinity"]));
    let floats = vec![1e5, 1e6, 16_777_216.0, 0.1, 3.4e38];
    assert_eq!(
        texts(Float32Array::from(floats)),
        all(&["100000", "1e+06", "1.6777216e+07", "0.1", "3.4e+38"])
    );
    let decimals = Decimal128Array::from(vec![12_345, -5, 0]).with_precision_and_scale(10, 2).unwrap();
    assert_eq!(texts(decimals), all(&["123.45", "-0.05", "0.00"]));
    let nines = "9".repeat(76);
    let most = i256::from_string(&nines).unwrap();
    let decimal = Decimal256Array::from(vec![most]).with_precision_and_scale(76, 10).unwrap();
    assert_eq!(texts(decimal), all(&[&format!("{}.{}", "9".repeat(66), "9".repeat(10))]));
    let dates = Date32Array::from(vec![0, 19_782, -719_162, -719_163, -719_528, 2_932_896]);
    let expected = ["1970-01-01", "2024-02-29", "0001-01-01", "0001-12-31 BC", "0001-01-01 BC", "9999-12-31"];
    assert_eq!(texts(dates), all(&expected));
    let times =
        TimestampMicrosecondArray::from(vec![0, 1, -1, 1_000_000, 1_500_000, -62_135_596_800_000_001]);
    let expected = [
        "1970-01-01 00:00:00",
        "1970-01-01 00:00:00.000001",
        "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:01",
        "1970-01-01 00:00:01.5",
        "0001-12-31 23:59:59.999999 BC",
    ];
    assert_eq!(texts(times), all(&expected));
    let zoned = TimestampSecondArray::from(vec![1_700_000_000]).with_timezone("Europe/Berlin");
    assert_eq!(texts(zoned), all(&["2023-11-14 22:13:20+00"]));
    assert_eq!(texts(TimestampNanosecondArray::from(vec![-1])), all(&["1969-12-31 23:59:59.999999"]));
    let times = Time64MicrosecondArray::from(vec![0, 86_399_999_999]);
    assert_eq!(texts(times), all(&["00:00:00", "23:59:59.999999"]));
    let spans = DurationMicrosecondArray::from(vec![0, 178_200_000_000, -1, 90_061_500_000]);
    assert_eq!(texts(spans), all(&["00:00:00", "49:30:00", "-00:00:00.000001", "25:01:01.5"]));
    let interval = |months, days, nanos| IntervalMonthDayNano::new(months, days, nanos);
    let intervals = IntervalMonthDayNanoArray::from(vec![
        interval(14, 3, 14_706_700_000_000),
        interval(-1, 1, 0),
        interval(0, -1, 3_600_000_000_000),
        interval(1, 0, 0),
    ]);
    let expected = ["1 year 2 mons 3 days 04:05:06.7", "-1 mons +1 day", "-1 days +01:00:00", "1 mon"];
    assert_eq!(texts(intervals), all(&expected));
    let bytes = FixedSizeBinaryArray::try_from_iter([[0x01u8, 0xff]].into_iter()).unwrap();
    assert_eq!(texts(bytes), all(&["\\x01ff"]));
    let uuid = uuid_bytes();
    let uuids = FixedSizeBinaryArray::try_from_iter([uuid].into_iter()).unwrap();
    assert_eq!(texts(uuids), all(&["f79c3e09-677c-4bbd-a479-3f349cb785e7"]));
}

fn uuid_bytes() -> [u8; 16] {
    0xf79c_3e09_677c_4bbd_a479_3f34_9cb7_85e7_u128.to_be_bytes()
}

#[test]
fn null_is_null_whatever_holds_it() {
    assert_eq!(texts(NullArray::new(2)), [None, None]);
    assert_eq!(texts(Int32Array::from(vec![None, Some(1)])), [None, Some("1".to_owned())]);
    // NULL as a value of the dictionary, and as a key.
    let values = Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef;
    let keys = Int32Array::from(vec![Some(0), Some(1), None]);
    let dictionary = DictionaryArray::<Int32Type>::try_new(keys, values).unwrap();
    assert_eq!(texts(dictionary), [Some("a".to_owned()), None, None]);
}

#[test]
fn arrays_are_quoted_where_they_have_to_be() {
    let rows = vec![
        Some(vec![Some("a"), None, Some("b c"), Some(""), Some("null"), Some("x\"\\y"), Some("{,}")]),
        Some(vec![]),
        None,
    ];
    let mut builder = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
    for row in rows {
        match row {
            Some(items) => builder.append_value(items),
            None => builder.append_null(),
        }
    }
    let list = builder.finish();
    let expected = r#"{a,NULL,"b c","","null","x\"\\y","{,}"}"#;
    assert_eq!(texts(list.clone()), [Some(expected.to_owned()), Some("{}".to_owned()), None]);
    // The same without its first row.
    assert_eq!(texts(list.slice(1, 2)), [Some("{}".to_owned()), None]);
    let numbers = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(-2)])]);
    assert_eq!(texts(numbers), all(&["{1,-2}"]));
}

#[test]
fn what_no_type_of_postgres_holds_is_an_error() {
    let dates = Arc::new(Date32Array::from(vec![i32::MAX])) as ArrayRef;
    let column = column(&dates, &from_arrow(dates.data_type()), Format::Text).unwrap();
    assert!(column.write(0, &mut BytesMut::new()).is_err());
}

/// Reads a binary value as a parameter of its type would be read.
fn read_back(bytes: &[u8], data_type: &DataType) -> ScalarValue {
    let base = from_arrow(data_type).base;
    match read(1, Some(bytes), true, Some(&base), Some(data_type)).unwrap() {
        Parameter::Value(value) => value,
        Parameter::Text(text) => panic!("{text}"),
    }
}

fn check_binary(value: ScalarValue) -> Result<(), TestCaseError> {
    let array = value.to_array().unwrap();
    let bytes = written(&array, Format::Binary).remove(0).unwrap();
    let back = read_back(&bytes, array.data_type());
    prop_assert_eq!(&back, &value);
    // And as text.
    let text = written(&array, Format::Text).remove(0).unwrap();
    let base = from_arrow(array.data_type()).base;
    let data_type = array.data_type();
    if !matches!(data_type, DataType::Timestamp(..) | DataType::Interval(_) | DataType::Float64) {
        match read(1, Some(&text), false, Some(&base), Some(data_type)).unwrap() {
            Parameter::Value(back) => prop_assert_eq!(back, value),
            // The engine reads it, as the type of the query.
            Parameter::Text(back) => prop_assert_eq!(back.as_bytes(), text),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn values_come_back(
        integer in any::<i64>(),
        small in any::<i16>(),
        unsigned in any::<u64>(),
        float in any::<f64>().prop_filter("NaN is not equal to itself", |float| !float.is_nan()),
        digits in -99_999_999_999_999_999_999_999_999_999_999_999_999i128..=99_999_999_999_999_999_999_999_999_999_999_999_999,
        scale in 0i8..=38,
        // Half of the texts consist of characters that arrays quote, escape or trim.
        text in prop_oneof!["\\PC*", "[ \t\n\r\u{b}\u{c}\u{85}\u{a0}\u{2000}\u{3000}{},\"\\\\nulNUL]{0,6}"],
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        days in -719_162i32..2_932_896,
        micros in -62_000_000_000_000_000i64..250_000_000_000_000_000,
        flag in any::<bool>(),
    ) {
        for value in [
            ScalarValue::Int64(Some(integer)),
            ScalarValue::Int16(Some(small)),
            ScalarValue::UInt64(Some(unsigned)),
            ScalarValue::Float64(Some(float)),
            ScalarValue::Decimal128(Some(digits), 38, scale),
            ScalarValue::Utf8(Some(text.clone())),
            ScalarValue::Binary(Some(bytes.clone())),
            ScalarValue::FixedSizeBinary(16, Some(uuid_bytes().to_vec())),
            ScalarValue::Date32(Some(days)),
            ScalarValue::TimestampMicrosecond(Some(micros), None),
            ScalarValue::Boolean(Some(flag)),
            ScalarValue::List(ScalarValue::new_list(
                &[ScalarValue::Utf8(Some(text)), ScalarValue::Utf8(None), ScalarValue::Utf8(Some(String::new()))],
                &DataType::Utf8,
                true,
            )),
        ] {
            check_binary(value)?;
        }
    }

    /// The shortest digits that PostgreSQL writes are read as the same float.
    #[test]
    fn floats_in_text_are_exact(float in any::<f64>(), small in any::<f32>()) {
        let text = texts(Float64Array::from(vec![float])).remove(0).unwrap();
        let back: f64 = text.parse().unwrap();
        prop_assert!(back.to_bits() == float.to_bits() || (back.is_nan() && float.is_nan()), "{}", text);
        let text = texts(Float32Array::from(vec![small])).remove(0).unwrap();
        let back: f32 = text.parse().unwrap();
        prop_assert!(back.to_bits() == small.to_bits() || (back.is_nan() && small.is_nan()), "{}", text);
    }
}
