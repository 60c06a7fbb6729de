//! Spellings of timestamps and declared formats.

use super::*;

const TEN: i64 = 1_769_853_600_000_000; // 2026-01-31T10:00:00Z

#[test]
fn the_usual_spellings_are_read() {
    for text in [
        "2026-01-31T10:00:00Z",
        "2026-01-31T10:00:00",
        "2026-01-31 10:00:00",
        "2026-01-31 10:00:00.000000",
        "2026-01-31T12:00:00+02:00",
        "2026-01-31 12:00:00 +0200",
        "2026-01-31 10:00:00 UTC",
        "2026-01-31 10:00",
        "2026-01-31T10:00",
        "2026/01/31 10:00:00",
        "Sat, 31 Jan 2026 10:00:00 GMT",
    ] {
        assert_eq!(micros(text, &TimestampFormat::Usual), Ok(TEN), "{text}");
    }
    assert_eq!(micros("2026-01-31", &TimestampFormat::Usual), Ok(TEN - 36_000_000_000));
    assert_eq!(micros("2026-01-31T10:00:00.000001Z", &TimestampFormat::Usual), Ok(TEN + 1));
}

#[test]
fn numbers_need_a_unit() {
    assert!(micros("1769853600", &TimestampFormat::Usual).unwrap_err().contains("unix-s"));
    for (format, text) in [
        ("unix-s", "1769853600"),
        ("unix-s", "1769853600.0"),
        ("unix-ms", "1769853600000"),
        ("unix-us", "1769853600000000"),
        ("unix-ns", "1769853600000000000"),
    ] {
        assert_eq!(micros(text, &format.parse().unwrap()), Ok(TEN), "{format} {text}");
    }
    assert!(micros("17x", &"unix-s".parse().unwrap()).is_err());
    for (format, text, expected) in [
        ("unix-s", "1712534401.929722", Some(1_712_534_401_929_722)),
        ("unix-s", "1712534401.9297220000", Some(1_712_534_401_929_722)),
        ("unix-s", "-0.5", Some(-500_000)),
        ("unix-s", "-1.25", Some(-1_250_000)),
        ("unix-s", "0.0", Some(0)),
        ("unix-ms", "1712534401929.7", Some(1_712_534_401_929_700)),
        ("unix-us", "1712534401929722.0", Some(1_712_534_401_929_722)),
        ("unix-us", "1712534401929722.5", None),
        ("unix-s", "1712534401.9297221", None),
        ("unix-s", "1712534401.9297220001", None),
        ("unix-ns", "17125344019297220.5", None),
        ("unix-s", ".5", None),
        ("unix-s", "1.", None),
        ("unix-s", "1.5e3", None),
        ("unix-s", "1.2.3", None),
        ("unix-s", "9223372036854775807.5", None),
    ] {
        let found = micros(text, &format.parse().unwrap());
        assert_eq!(found.clone().ok(), expected, "{format} {text} {found:?}");
    }
}

#[test]
fn a_declared_format_is_the_only_one() {
    let format: TimestampFormat = "%d/%m/%Y %H:%M".parse().unwrap();
    assert_eq!(micros("31/01/2026 10:00", &format), Ok(TEN));
    assert!(micros("2026-01-31T10:00:00Z", &format).is_err());
    assert_eq!(micros("31.01.2026", &"%d.%m.%Y".parse().unwrap()), Ok(TEN - 36_000_000_000));
    assert_eq!(micros("31.01.2026 12:00 +0200", &"%d.%m.%Y %H:%M %z".parse().unwrap()), Ok(TEN));
    for text in ["", "seconds", "%Q"] {
        assert!(text.parse::<TimestampFormat>().is_err(), "{text}");
    }
}

#[test]
fn nothing_is_cut_off() {
    let usual = TimestampFormat::Usual;
    assert!(micros("2026-01-31T10:00:00.0000001Z", &usual).is_err());
    assert!(whole_second_millis("2026-01-31T10:00:00.5Z", &usual).is_err());
    assert!(days("2026-01-31T10:00:00Z", &usual).is_err());
    assert_eq!(days("1970-01-02", &usual), Ok(1));
    assert_eq!(days("1970-01-02", &"unix-ms".parse().unwrap()), Ok(1));
    assert_eq!(days("1970-01-02T00:00:00Z", &usual), Ok(1));
}

#[test]
fn nonsense_is_refused() {
    for text in ["", "soon", "2026-02-30", "2026-01-31T25:00:00Z", "10:00", "日本"] {
        assert!(micros(text, &TimestampFormat::Usual).is_err(), "{text}");
    }
}
