//! Spellings that are accepted, and spellings with several readings or no reading.

use arrow::array::AsArray;
use arrow::datatypes::{Decimal128Type, Float32Type, Float64Type, TimestampMicrosecondType};

use super::*;
use crate::text_value::TimestampFormat;

#[test]
fn points_in_time_with_several_readings_or_none_are_refused() {
    for text in [
        "2016-12-31T23:59:60Z",
        "2016-12-31 23:59:60",
        "2016-12-31T23:59:60.5Z",
        "2016-12-31 235960",
        "Sat, 31 Dec 2016 23:59:60 GMT",
        "2026-01-31T24:00:00Z",
        "2026-01-31T10:00:00.1234567891Z",
        "2026-01-31T10:00:00.1234560000001Z",
        "2026-01-31 10:00:00.00000000001 +0200",
        "2026/01/31 10:00:00.0000000001",
        "2026-01-31T10:00:00+99:99",
        "2026-01-31T10:00:00+12:75",
        "2026-01-31T10:00:00+24:00",
        "2026-01-31T10:00:00+1",
        "2026-01-31T10:00:00+02:00:00",
        "2026-01-31T10:00:00.",
        "2026-01-31T10:00:00.Z",
        "2026-01-31T",
        "2026-01-3110:00",
        "2026-01-311:00",
        "26/01/31",
        "1/2/03",
        "26-01-31",
        "+2026-01-31",
        "-2026-01-31",
        "12026-01-31",
        "2026/01-31",
        "2026.01.31",
        "20260131",
        "2026-W05-6",
        "2026-01-31T10",
        "2026-01-31T10:0",
        "2026-01-31T10:00:0",
        "2026-01-31T10:00:00 PM",
        "2026-01-31T10:00:00ZZ",
        "2026-01-31T10:00:00 Mars/Olympus",
        // A spring night without that hour, and an autumn night that has it twice.
        "2026-03-29T02:30:00 Europe/Berlin",
        "2026-10-25T02:30:00 Europe/Berlin",
        "Sat, 31 Jan 2026 10:00:00 A",
        "Sun, 31 Jan 2026 10:00:00 GMT",
        "٢٠٢٦-01-31",
    ] {
        assert_eq!(usual::<TimestampMicrosecondType>(text, ColumnType::Timestamp64), None, "{text}");
    }
    const TEN: i64 = 1_769_853_600_000_000;
    for (text, micros) in [
        ("2026-01-31T10:00:00.000000000000000000Z", TEN),
        ("2026-01-31T10:00:00.12345600000000000000Z", TEN + 123_456),
        ("2026-01-31 100000", TEN),
        ("2026-01-31t10:00:00z", TEN),
        ("2026-01-31T05:00:00-0500", TEN),
        ("2026-01-31 12:00:00 +02", TEN),
        ("2026-01-31 11:00:00 Europe/Berlin", TEN),
        ("2026-1-31 10:00", TEN),
        ("2026/1/31", TEN - 36_000_000_000),
        ("Sat, 31 Jan 2026 10:00:00 +0000", TEN),
        ("2026-02-01T09:59:00+23:59", TEN),
    ] {
        assert_eq!(usual::<TimestampMicrosecondType>(text, ColumnType::Timestamp64), Some(micros), "{text}");
    }
    let leap = column("2016-12-31T23:59:60Z", ColumnType::Timestamp, &TextFormat::default());
    assert!(leap.faults[0].fault.to_string().contains("is a leap second"), "{:?}", leap.faults);
}

#[test]
fn a_declared_format_takes_no_instant_that_cannot_be_held() {
    let read = |text: &str, pattern: &str| {
        value::<TimestampMicrosecondType>(text, ColumnType::Timestamp64, &format(pattern))
    };
    assert_eq!(read("31.01.2026 10:00:00.1234560000", "%d.%m.%Y %H:%M:%S%.f"), Some(1_769_853_600_123_456));
    assert_eq!(read("31.01.2026 10:00:00.1234560001", "%d.%m.%Y %H:%M:%S%.f"), None);
    assert_eq!(read("31.12.2016 23:59:60", "%d.%m.%Y %H:%M:%S"), None);
    assert_eq!(
        read("31.01.2026 10:00 EST", "%d.%m.%Y %H:%M EST"),
        Some(1_769_853_600_000_000),
        "literal text"
    );
    assert_eq!(read("31.01.26", "%d.%m.%Y"), None, "a year of two digits");
    assert_eq!(read("31.01.26", "%d.%m.%y"), Some(1_769_817_600_000_000));
    assert_eq!(read("31.01.0026", "%d.%m.%Y"), Some(-61_344_086_400_000_000));
    for pattern in ["%Y-%m-%d %H:%M %Z", "%Z"] {
        assert!(pattern.parse::<TimestampFormat>().is_err(), "{pattern}");
    }
    for (unit, text, micros) in [
        ("unix-s", "1.5", Some(1_500_000)),
        ("unix-s", "1.5000005", None),
        ("unix-s", "1e3", None),
        ("unix-s", "0x10", None),
        ("unix-ms", "-1", Some(-1000)),
        ("unix-us", "-1", Some(-1)),
        ("unix-ns", "1500", None),
        ("unix-ns", "-1000", Some(-1)),
        ("unix-s", "9223372036854775807", None),
        ("unix-s", "1 000", None),
    ] {
        assert_eq!(read(text, unit), micros, "{unit} {text}");
    }
}

#[test]
fn floats_have_the_spellings_of_decimal_text() {
    for (text, expected) in [
        ("inf", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
        ("1e5", 1e5),
        ("1E+5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("0e999", 0.0),
        ("-0.0e-999", -0.0),
        ("5e-324", 5e-324),
        ("1.7976931348623157e308", f64::MAX),
    ] {
        assert_eq!(usual::<Float64Type>(text, ColumnType::Double), Some(expected), "{text}");
    }
    assert!(usual::<Float64Type>("NaN", ColumnType::Double).is_some_and(f64::is_nan));
}

#[test]
fn what_is_no_float_is_refused() {
    for text in [
        "1e999",
        "-1e999",
        "1e-999",
        "-0.001e-400",
        "0x1p3",
        "0x10",
        "1_000",
        "1,5",
        "1 000",
        "1e",
        "e5",
        ".",
        "+",
        "",
        "1e5.0",
        "infin",
        "nano",
        "NaN(1)",
        "1d",
        "1f",
        "٣",
    ] {
        assert_eq!(usual::<Float64Type>(text, ColumnType::Double), None, "{text}");
    }
    for text in ["1e39", "1e-50", "-1e39"] {
        assert_eq!(usual::<Float32Type>(text, ColumnType::Float), None, "{text}");
    }
}

#[test]
fn a_decimal_comma_has_its_own_spellings() {
    for text in [
        "1.2e5",
        "1.23e5",
        "0.123",
        "1234.567",
        "1.5",
        "01.234",
        "1.234,5e3",
        "1,",
        "1.,5",
        ".123",
        "1,2,3",
        "inf,0",
        "1,5e",
    ] {
        assert_eq!(value::<Float64Type>(text, ColumnType::Double, &comma()), None, "{text}");
    }
    for (text, expected) in [
        ("1,2e5", 1.2e5),
        ("1e5", 1e5),
        ("1.234.567,5", 1_234_567.5),
        ("1234,5", 1234.5),
        ("-,5", -0.5),
        ("inf", f64::INFINITY),
    ] {
        assert_eq!(value::<Float64Type>(text, ColumnType::Double, &comma()), Some(expected), "{text}");
    }
}

#[test]
fn truth_values_are_a_few_words() {
    let truth = |text: &str| {
        let column = column(text, ColumnType::Bool, &TextFormat::default());
        column.faults.is_empty().then(|| column.values.as_boolean().value(0))
    };
    for text in ["true", "TRUE", "t", "Yes", "1"] {
        assert_eq!(truth(text), Some(true), "{text}");
    }
    for text in ["false", "F", "no", "0"] {
        assert_eq!(truth(text), Some(false), "{text}");
    }
    for text in ["", "y", "n", "on", "off", "2", "-1", "01", "1.0", "null", "truе"] {
        assert_eq!(truth(text), None, "{text}");
    }
}

#[test]
fn what_is_no_decimal_is_refused() {
    for text in ["+.", "-.", ".", "", "+", "-", "+-1", "1-2", "--1", "1.2.3", "1e2", "٣", "1 2"] {
        assert_eq!(
            usual::<Decimal128Type>(text, ColumnType::Decimal { precision: 22, scale: 9 }),
            None,
            "{text}"
        );
    }
}
