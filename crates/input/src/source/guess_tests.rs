//! Types of columns that every value may have, and remarks on odd values. `infer.rs` tests the
//! types of whole files.

use proptest::prelude::*;

use super::*;

fn column<T: AsRef<str>>(values: &[T]) -> BinaryArray {
    BinaryArray::from_iter_values(values.iter().map(|value| value.as_ref().as_bytes()))
}

/// Returns a guess after it has looked at some values.
fn after<T: AsRef<str>>(mut guess: Guess, values: &[T]) -> Guess {
    guess.look_at(&column(values), &TextFormat::default());
    guess
}

fn type_of<T: AsRef<str>>(guess: Guess, values: &[T]) -> ColumnType {
    after(guess, values).column_type()
}

proptest! {
    #[test]
    fn a_column_has_the_first_type_that_each_of_its_values_may_have_alone(
        values in proptest::collection::vec(proptest::sample::select(vec![
            "0", "1", "-1", "007", "+5", " 2", "5.0", "1.5", "-0.25", "1e5", "nan", "",
            "9223372036854775808", "18446744073709551615", "18446744073709551616",
            "9007199254740993", "9007199254740993.5", "true", "FALSE", "yes", "x",
            "2026-01-31", "1950-01-31", "2026-01-31T10:00:00Z", "1950-01-31T10:00:00Z",
            "2026-01-31 00:00:00", "31.01.2026", "1,5",
        ]), 1..6),
        cut in 0..6usize,
        json: bool,
    ) {
        let new = || if json { Guess::json_text() } else { Guess::any() };
        let mut common = new().candidates;
        for value in &values {
            let alone = after(new(), &[*value]).candidates;
            common.retain(|column_type| alone.contains(column_type));
        }
        prop_assert_eq!(type_of(new(), &values), common[0]);
        // Neither the batches nor the order matter.
        let (first, rest) = values.split_at(cut.min(values.len()));
        let batches = [column(rest), column(first)];
        let found = type_of_values(batches.iter(), &TextFormat::default(), json);
        prop_assert_eq!(found, Some(common[0]));
    }

    #[test]
    fn a_whole_number_has_more_digits_than_a_double_if_the_double_is_another_number(
        near in prop_oneof![any::<u64>(), (1u64 << 53) - 99..(1 << 53) + 99],
        is_negative: bool,
    ) {
        let text = format!("{}{near}", if is_negative { "-" } else { "" });
        let is_another = (near as f64) as u128 != u128::from(near);
        prop_assert_eq!(has_more_digits_than_double(format!("{text}.00").as_bytes()), is_another);
        prop_assert_eq!(has_more_digits_than_double(text.as_bytes()), near > 1 << 53);
        // Another note reports digits of a fraction that a Double loses.
        let half = format!("{text}.5");
        prop_assert!(!has_more_digits_than_double(half.as_bytes()));
    }
}

#[test]
fn a_column_has_the_most_special_type_of_all_that_fit() {
    use ColumnType::{Bool, Date, Date32, Double, Int64, Timestamp, Timestamp64, Uint64, Utf8};
    for (values, expected) in [
        (&["1", "-1"][..], Int64),
        (&["1", "0"], Int64),
        (&["5.0"], Int64),
        (&["1", "18446744073709551615"], Uint64),
        // No type of whole numbers has both, and a Double would lose digits.
        (&["-1", "18446744073709551615"], Utf8),
        (&["18446744073709551616"], Utf8),
        (&["1", "1.5"], Double),
        (&["1.5", "9007199254740993"], Utf8),
        (&["1.5", "9007199254740992"], Double),
        (&["007", "1"], Utf8),
        (&["+49301234", "1"], Utf8),
        (&["true", "FALSE"], Bool),
        (&["yes", "no"], Utf8),
        (&["2026-01-31"], Date),
        (&["2026-01-31", "1950-01-31"], Date32),
        (&["2026-01-31", "2026-01-31T10:00:00Z"], Timestamp),
        (&["2026-01-31", "1950-01-31T10:00:00Z"], Timestamp64),
        // A time of day at midnight is one.
        (&["2026-01-31 00:00:00"], Timestamp),
        (&["1", "2026-01-31"], Utf8),
    ] {
        assert_eq!(type_of(Guess::any(), values), expected, "{values:?}");
    }
}

#[test]
fn numbers_that_are_two_numbers_with_a_point_are_text() {
    // Google Analytics identifies browsers in this way.
    let client = "1234567.1699999999";
    assert_eq!(type_of(Guess::any(), &[client, "987654.1700000000"]), ColumnType::Utf8);
    for other in ["1.5", "123.1699999999", "1234567.2699999999", "1234567.169999999"] {
        assert_eq!(type_of(Guess::any(), &[client, other]), ColumnType::Double, "{other}");
    }
    // Asterisk identifies calls in this way. Only in many rows are those no times with fractions.
    let calls: Vec<String> = (1..=MANY).map(|call| format!("1664765557.{call}")).collect();
    assert_eq!(type_of(Guess::any(), &calls), ColumnType::Utf8);
    assert_eq!(type_of(Guess::any(), &calls[1..]), ColumnType::Double);
    let with_zero: Vec<String> = (0..MANY).map(|call| format!("1664765557.{call:03}")).collect();
    assert_eq!(type_of(Guess::any(), &with_zero), ColumnType::Double);
}

#[test]
fn a_column_without_values_is_text_unless_its_type_is_given() {
    let nulls = BinaryArray::from_opt_vec(vec![None, None]);
    for (mut guess, expected) in [
        (Guess::any(), ColumnType::Utf8),
        (Guess::number(), ColumnType::Utf8),
        (Guess::object_ids(), ColumnType::Utf8),
        (Guess::only(ColumnType::Int64), ColumnType::Int64),
    ] {
        guess.look_at(&nulls, &TextFormat::default());
        assert!(!guess.seen_value);
        assert_eq!(guess.column_type(), expected);
        assert_eq!(guess.note("c"), None);
    }
    assert_eq!(type_of_values([&nulls, &nulls].into_iter(), &TextFormat::default(), false), None);
    let id = "546651e74bf6e4cb017c5312";
    assert_eq!(type_of(Guess::object_ids(), &[id]), ColumnType::ObjectId);
    assert_eq!(type_of(Guess::object_ids(), &[id, "7"]), ColumnType::Utf8);
    assert_eq!(type_of(Guess::number(), &["2026-01-31"]), ColumnType::Utf8);
    assert_eq!(type_of(Guess::text(), &["1"]), ColumnType::Utf8);
    // A given type stays, whatever the values are.
    assert_eq!(type_of(Guess::only(ColumnType::Int64), &["x"]), ColumnType::Int64);
}

#[test]
fn strings_of_json_are_whole_numbers_and_noted_but_no_fractions() {
    for (values, column_type) in [
        (&["1", "-2"][..], ColumnType::Int64),
        (&["18446744073709551615"], ColumnType::Uint64),
        (&["1", " 2"], ColumnType::Utf8),
        (&["01"], ColumnType::Utf8),
        (&["1.5"], ColumnType::Utf8),
        (&["true"], ColumnType::Utf8),
    ] {
        let guess = after(Guess::json_text(), values);
        assert_eq!(guess.column_type(), column_type, "{values:?}");
        let noted = Note::QuotedNumbers { column: "c".to_owned(), column_type };
        let expected = (column_type != ColumnType::Utf8).then_some(noted);
        assert_eq!(guess.note("c"), expected, "{values:?}");
    }
}

#[test]
fn one_odd_value_in_a_hundred_is_noted_with_the_type_of_the_others() {
    let rows = |count: usize, odd: &str| -> Vec<String> {
        (0..count).map(|row| if row == 7 { odd.to_owned() } else { row.to_string() }).collect()
    };
    let guess = after(Guess::any(), &rows(NEARLY, "soon"));
    assert_eq!(guess.column_type(), ColumnType::Utf8);
    let Some(Note::ReadAsText { column, column_type, first: Some(first) }) = guess.note("c") else {
        panic!("{:?}", guess.note("c"));
    };
    assert_eq!((column.as_str(), column_type), ("c", ColumnType::Int64));
    assert!(first.to_string().starts_with("'soon' "), "{first}");
    assert_eq!(after(Guess::any(), &rows(NEARLY - 1, "soon")).note("c"), None);
    // In JSON, strings may be numbers by chance.
    assert_eq!(after(Guess::json_text(), &rows(NEARLY, "soon")).note("c"), None);
    // A value of another type of numbers is not odd.
    assert_eq!(after(Guess::any(), &rows(NEARLY, "1.5")).note("c"), None);
}

#[test]
fn decimal_points_are_those_of_columns_of_numbers_with_fractions() {
    for (values, has_points) in [
        (&["1.5", "2"][..], true),
        (&["1", "2"], false),
        (&["5.0"], false),
        (&["1.5", "x"], false),
        (&["v1.5"], false),
    ] {
        assert_eq!(after(Guess::any(), values).has_decimal_points(), has_points, "{values:?}");
    }
}
