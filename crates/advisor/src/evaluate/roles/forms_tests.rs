//! Forms of values: numbers, dates, objects and lists, and codes that resemble them.

use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array};

use super::*;

#[test]
fn measured_texts_are_numbers_with_a_fraction_or_a_bound() {
    for text in ["1.5", "-0,25", "<0.5", "> 12.75", "+3.0"] {
        assert!(is_decimal(text), "{text}");
    }
    for text in ["15", "1.2.3", "v1.5", "10.0.0.1", "1.", ".5", "a,b", "2026-01-01", ""] {
        assert!(!is_decimal(text), "{text}");
    }
}

#[test]
fn numbers_with_marks_and_missing_values_are_numbers() {
    let form = |texts: &[&str]| form_of_texts(texts.iter().map(|text| (*text).to_owned()).collect());
    for texts in [
        ["NA", "12", "-5", "0"],
        ["1,083", "91", "2,000,000", "7"],
        ["$5,000", "-$12", "€ 7", "£1"],
        ["12%", "5 %", "n/a", "100%"],
    ] {
        assert!(matches!(form(&texts), Form::Whole(_)), "{texts:?}");
    }
    assert_eq!(form(&["NULL", "1.5", "2", "1,000.25"]), Form::Fractions);
    assert_eq!(form(&["NA", "1e+05", "4700.28", "0"]), Form::Fractions);
    for texts in [
        ["12", "5", "7", "4711"],
        ["NA", "007", "12", "5"],
        ["NA", "A5", "12", "5"],
        ["1,08", "91", "x", "1,2,3"],
    ] {
        assert!(matches!(form(&texts), Form::Text(_)), "{texts:?}");
    }
    assert!(matches!(form(&["NA", "-", "NA", "-"]), Form::Text(_)));
}

#[test]
fn dates_with_the_year_last_and_times_of_day_are_told_from_codes() {
    for text in ["31.01.2026", "1/31/2026", "28-02-1999", "01.07.2025 06:00", "31/12/2026 23:59:59.5"] {
        assert!(is_written_date(text), "{text}");
    }
    for text in
        ["2026-01-31", "31.13.2026", "10.0.0.1", "1.2.3", "31.01.26", "01-02-3000", "31.01.2026 x", ""]
    {
        assert!(!is_written_date(text), "{text}");
    }
    for text in ["01Sep23", "01-SEP-23", "1-Jan-2026", "31-DEC-25 10.15.00.000000 PM", "05/Mar/2026 10:00:00"]
    {
        assert!(is_written_date(text), "{text}");
    }
    for text in ["SEP23", "01Sep", "32Sep23", "1Set23", "A01Sep23", "01Sep234", "", "01Sep23 x"] {
        assert!(!is_written_date(text), "{text}");
    }
    for text in ["09:30", "09:30:00", "23:59:60.123456", "00:00:00Z", "7:10 PM", "11:05:09 am"] {
        assert!(is_time_of_day(text), "{text}");
    }
    for text in
        ["9:30", "PM", " AM", "7 PM", "09:61", "aa:bb:cc", "00:1b:44:11:3a:b7", "10:20:30:40", "", "25:00"]
    {
        assert!(!is_time_of_day(text), "{text}");
    }
}

#[test]
fn objects_and_lists_are_told_from_texts_with_braces() {
    for text in ["{\"a\":1}", "{}", "[1, 2]", "a:2:{s:4:\"name\";i:7;}", "O:8:\"stdClass\":0:{}"] {
        assert!(is_structured(text), "{text}");
    }
    for text in ["a note: see: {5}", "{5}", "a:b:{c}", "On: 8: {x}", "", "x{y}"] {
        assert!(!is_structured(text), "{text}");
    }
}

#[test]
fn dates_without_an_end_are_dates() {
    assert!(["31.12.9999", "12/31/2999", "31-DEC-9999 00.00.00"].into_iter().all(is_end_of_time));
    assert!(!["9999", "31.12.2026", "AB9999", "99.99.9999", ""].into_iter().any(is_end_of_time));
}

#[test]
fn dates_beside_words_for_null_are_dates() {
    for text in ["2016-03-12", "2016-03-12 10:00", "2016-12-31T23:59:59Z"] {
        assert!(is_iso_date(text), "{text}");
    }
    for text in ["2016-13-01", "2016-3-12", "2016-03-12x", "20160312", "ab16-03-12", "2016-03-1é"] {
        assert!(!is_iso_date(text), "{text}");
    }
    let texts = ["NULL", "2016-03-12", "2017-01-01", "NULL"].map(str::to_owned);
    let Form::Text(words) = form_of_texts(texts.to_vec()) else { panic!("dates are texts") };
    assert_eq!(words.dates, 1.0);
}

#[test]
fn months_of_years_are_told_from_codes() {
    for text in ["Jan-2026", "DEC-99", "jan 2026", "01/2026", "12/1999", "2026-01", "1999/12"] {
        assert!(is_month_of_year(text), "{text}");
    }
    for text in [
        "01-2026", "13/2026", "1/2", "A-2026", "Jan-202", "Jan-", "-2026", "01/26", "2026-13", "2200-01",
        "2026-1", "",
    ] {
        assert!(!is_month_of_year(text), "{text}");
    }
}

#[test]
fn numbers_that_crowd_around_a_mean_are_told_from_those_that_fill_a_range() {
    let share = |numbers: Vec<i128>| WholeNumbers::from_numbers(numbers).unwrap().middle;
    let even = share((0..1_000).collect());
    assert!((0.45..0.55).contains(&even), "{even}");
    // Sums of four numbers.
    let sums = (0..10_000i128).map(|at| at % 10 + at / 10 % 10 + at / 100 % 10 + at / 1_000).collect();
    assert!(share(sums) > 0.75);
}

#[test]
fn whole_numbers_in_a_float_column_are_whole() {
    let array: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(7.0)]));
    assert_eq!(whole_numbers(&array), Some(vec![1, 7]));
    let array: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.5]));
    assert_eq!(whole_numbers(&array), None);
    let array: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX]));
    assert_eq!(whole_numbers(&array), Some(vec![i128::from(i64::MIN), i128::from(i64::MAX)]));
}
