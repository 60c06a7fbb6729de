//! Forms of values: numbers, dates, objects and lists, and codes that resemble them.

use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array};

use super::*;

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
fn dates_beside_words_for_null_are_dates() {
    let texts = ["NULL", "2016-03-12", "2017-01-01", "NULL"].map(str::to_owned);
    let Form::Text(words) = form_of_texts(texts.to_vec()) else { panic!("dates are texts") };
    assert_eq!(words.dates, 1.0);
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
