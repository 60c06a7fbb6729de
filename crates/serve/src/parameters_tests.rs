//! Arrays, intervals and bytes as parameters.

use super::*;

fn items(text: &str) -> Option<Vec<String>> {
    let shown = |item: Option<String>| item.map_or_else(|| "NULL".to_owned(), |item| format!("<{item}>"));
    Some(array_items(text)?.into_iter().map(shown).collect())
}

#[test]
fn arrays_in_text_are_read() {
    for (text, expected) in [
        ("{}", vec![]),
        ("{a,b}", vec!["<a>", "<b>"]),
        ("{\"p\", \"f\" , t }", vec!["<p>", "<f>", "<t>"]),
        ("{NULL,\"NULL\",null}", vec!["NULL", "<NULL>", "NULL"]),
        ("{\"a,b\",\"\",\"q\\\"\\\\\"}", vec!["<a,b>", "<>", "<q\"\\>"]),
        ("{a b, c}", vec!["<a b>", "<c>"]),
        ("{\u{2000},\u{a0}x\u{a0}}", vec!["<\u{2000}>", "<\u{a0}x\u{a0}>"]),
        ("{\\ a\\ ,\\null, n\\ull }", vec!["< a >", "<null>", "<null>"]),
        (" { a\t,\n\"b\" } ", vec!["<a>", "<b>"]),
    ] {
        assert_eq!(items(text).unwrap(), expected, "{text}");
    }
    for text in ["a", "{a", "{{1},{2}}", "{\"a}", "{a,}", "{,a}", "{a\"b\"}", "{\"b\"a}", "{a}}", "{a\\}"] {
        assert_eq!(items(text), None, "{text}");
    }
}

#[test]
fn values_take_the_type_of_the_query_if_they_are_the_same_there() {
    let read = |text: &str, declared: Option<&Type>, inferred: &DataType| {
        read(1, Some(text.as_bytes()), false, declared, Some(inferred)).unwrap()
    };
    let unsigned = DataType::UInt64;
    let value = |value| Parameter::Value(value);
    assert_eq!(read("7", Some(&Type::INT2), &unsigned), value(ScalarValue::UInt64(Some(7))));
    assert_eq!(read("-7", Some(&Type::INT2), &unsigned), value(ScalarValue::Int16(Some(-7))));
    assert_eq!(read("1.5", Some(&Type::FLOAT8), &unsigned), value(ScalarValue::Float64(Some(1.5))));
    assert_eq!(read("7", None, &unsigned), Parameter::Text("7".to_owned()));
    assert_eq!(read("7", Some(&Type::UNKNOWN), &unsigned), Parameter::Text("7".to_owned()));
}

#[test]
fn intervals_are_read_with_clocks_and_units() {
    let read = |text: &str| typed(1, text, &Type::INTERVAL, &to_arrow(&Type::INTERVAL).unwrap()).unwrap();
    for (text, days, nanos) in [
        ("1 day 02:03:04.5", 1, 7_384_500_000_000),
        ("-1 days -00:00:01", -1, -1_000_000_000),
        ("36:00:00", 0, 129_600_000_000_000),
        ("2 hours", 0, 7_200_000_000_000),
    ] {
        let expected = IntervalMonthDayNano::new(0, days, nanos);
        assert_eq!(read(text), ScalarValue::IntervalMonthDayNano(Some(expected)), "{text}");
    }
}

#[test]
fn bytes_that_are_no_value_are_refused() {
    for (base, bytes) in [
        (Type::INT4, &[1u8, 2, 3][..]),
        (Type::INT4, &[1, 2, 3, 4, 5]),
        (Type::UUID, &[0; 15]),
        (Type::NUMERIC, &[0, 1]),
        (Type::TEXT, &[0xff]),
        (Type::INT4_ARRAY, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1]),
    ] {
        let refused = read(1, Some(bytes), true, Some(&base), None).unwrap_err();
        assert_eq!(refused.code, SqlState::INVALID_BINARY, "{base} {bytes:?}");
    }
}
