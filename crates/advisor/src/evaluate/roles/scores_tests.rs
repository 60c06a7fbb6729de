//! Roles of columns, from the evidence in their values.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, StringArray};
use evenkeel_stats::sketch::fold;

use super::*;
use crate::evaluate::roles::testing::{int64, with_profiles};

const ROLES: [Role; 3] = [Role::Entity, Role::Dimension, Role::Measure];

#[test]
fn the_sum_of_the_evidence_decides_and_the_first_role_among_equals() {
    let decided = |evidence: &[(Role, f64, &str)]| {
        let mut scores = Scores::default();
        evidence.iter().for_each(|(role, weight, words)| scores.add(*role, *weight, *words));
        scores.decide(&ROLES)
    };
    let none = Vec::<String>::new();
    assert_eq!(decided(&[]), (Role::Entity, none.clone()));
    assert_eq!(decided(&[(Role::Measure, 1.0, "a"), (Role::Dimension, 1.0, "b")]).0, Role::Dimension);
    assert_eq!(decided(&[(Role::Entity, -0.5, "a")]), (Role::Dimension, none));
    // Only the given roles can win.
    assert_eq!(decided(&[(Role::Time, 9.0, "a"), (Role::Measure, 0.1, "b")]).0, Role::Measure);
    // Evidence against a role, and evidence without words, counts but is not shown.
    let evidence = [
        (Role::Measure, 2.0, "second"),
        (Role::Entity, 5.0, "other"),
        (Role::Measure, 4.0, "first"),
        (Role::Measure, 3.0, ""),
        (Role::Measure, -1.0, "against"),
    ];
    assert_eq!(decided(&evidence), (Role::Measure, vec!["first".to_owned(), "second".to_owned()]));
    assert_eq!(Scores::default().decide(&[]), (Role::Dimension, Vec::new()));
}

#[test]
fn an_entity_is_vague_until_other_evidence_says_the_same() {
    let mut scores = Scores::default();
    assert!(!scores.is_vague());
    scores.add_vague(2.0, "values that repeat".to_owned());
    scores.add(Role::Measure, 9.0, "an amount");
    // Evidence against an entity is none for it.
    scores.add(Role::Entity, -1.0, "");
    assert!(scores.is_vague());
    scores.add(Role::Entity, 0.5, "its name");
    assert!(!scores.is_vague());
}

fn profile_of<T>(name: &str, array: ArrayRef, judge: impl Fn(&Profile<'_>) -> T) -> T {
    with_profiles(&[(name, array)], |profiles| judge(&profiles[0]))
}

fn texts(rows: usize, text: impl Fn(usize) -> String) -> ArrayRef {
    Arc::new(StringArray::from_iter_values((0..rows).map(text)))
}

fn numbers(rows: i64, number: impl Fn(i64) -> i64) -> ArrayRef {
    int64((0..rows).map(number))
}

/// The sum of the scores of a role.
fn total(array: ArrayRef, role: Role) -> f64 {
    profile_of("x1", array, |column| {
        let mut scores = Scores::default();
        match &column.form {
            Form::Whole(whole) => score_numbers(column, whole, &mut scores),
            Form::Text(words) => score_text(column, words, &mut scores),
            form => panic!("{form:?}"),
        }
        scores.total(role)
    })
}

#[test]
fn longer_texts_are_rather_contents_and_less_rather_ids() {
    let words = |count: usize| {
        texts(500, move |row| format!("{}{}", "word ".repeat(count), ["a", "b", "c", "d", "e"][row % 5]))
    };
    // One word, a few, a sentence, a paragraph; each in a hundred rows.
    let lengths = [0, 2, 9, 20];
    for pair in lengths.windows(2) {
        let text = |count| total(words(count), Role::Text);
        let id = |count| total(words(count), Role::RowId);
        assert!(text(pair[0]) <= text(pair[1]), "{pair:?}");
        assert!(id(pair[0]) >= id(pair[1]), "{pair:?}");
    }
    assert!(total(words(20), Role::Text) > 0.0 && total(words(0), Role::Text) < 0.0);
    // Sentences that a few rows share are no kinds.
    let sentences = |values: usize| texts(500, move |row| format!("what became of {}", row % values));
    let text = |values| total(sentences(values), Role::Text);
    assert!(text(25) < text(26) && text(26) == text(500));
}

#[test]
fn forms_of_texts_that_hold_something_else_decide() {
    let decimals = texts(200, |row| format!("{}.5", row % 90));
    assert!(total(decimals.clone(), Role::Measure) > total(decimals, Role::Text));
    let objects = texts(200, |row| format!("{{\"a\": {row}}}"));
    assert!(total(objects.clone(), Role::Text) > 10.0 && total(objects, Role::RowId) < 0.0);
    let digest = texts(200, |row| format!("{:064x}", row * 7_919));
    assert!(total(digest.clone(), Role::Entity) > 0.0 && total(digest, Role::Text) < 0.0);
    // Each row of a short export may have another client.
    let clients = texts(200, |row| format!("10.1.{}.{}", row / 100, row % 100));
    assert!(total(clients, Role::RowId) < 0.0);
    // Longer than any hash.
    let long = texts(200, |row| format!("{:073x}", row * 7_919));
    assert!(total(long, Role::Text) > 0.0);
}

#[test]
fn numbers_below_zero_often_zero_or_around_a_mean_are_amounts() {
    let even = |row: i64| row * 7_919 % 997;
    let measure = |number: &dyn Fn(i64) -> i64| total(numbers(2_000, number), Role::Measure);
    let plain = measure(&even);
    assert!(measure(&|row| even(row) - 400) > plain, "below zero");
    assert!(measure(&|row| if row % 3 == 0 { 0 } else { 1 + even(row) }) > plain, "often zero");
    // The sum of several draws crowds around their mean.
    let drawn = |row: i64, draw: u64| (fold(row.cast_unsigned(), draw) % 101).cast_signed();
    let sum = |row: i64| (1..=6).map(|draw| drawn(row, draw)).sum::<i64>();
    assert!(measure(&sum) > plain, "around a mean");
    // Few values show nothing of their distribution.
    assert!(measure(&|row| even(row) % 60) <= plain, "few values");
    let doubles: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..2_000u32).map(|row| f64::from(row * 7_919 % 997))));
    assert!(total(doubles, Role::Measure) > plain, "a type of amounts");
}

#[test]
fn values_of_each_row_identify_rows_and_a_few_values_are_kinds() {
    let cardinality = |array: ArrayRef, role: Role| {
        profile_of("x1", array, |column| {
            let mut scores = Scores::default();
            score_cardinality(column, &mut scores);
            scores.total(role)
        })
    };
    let shuffled = || numbers(2_000, |row| row * 7_919 % 2_003);
    let rising = || numbers(2_000, |row| 3 * row);
    assert!(cardinality(shuffled(), Role::RowId) > 0.0);
    assert!(cardinality(rising(), Role::RowId) > cardinality(shuffled(), Role::RowId));
    // Amounts rarely repeat; identifiers of rows never do.
    let rarely = || numbers(2_000, |row| (row * 7_919 % 2_003).max(5));
    assert!(cardinality(rarely(), Role::RowId) < cardinality(shuffled(), Role::RowId));
    assert!(cardinality(rarely(), Role::Measure) > 0.0);
    let of_values = |values: i64, role: Role| cardinality(numbers(20_000, |row| row * 3 % values), role);
    for role in [Role::Dimension, Role::Entity] {
        let scores = [64, 65, 1_000, 1_001].map(|values| of_values(values, role));
        let [kinds, some, still, many] = scores;
        assert_eq!(some, still, "{role}");
        let falls = kinds > some && still > many;
        let rises = kinds < some && still < many;
        assert!(if role == Role::Dimension { falls } else { rises }, "{role}: {scores:?}");
    }
    // In a few rows, a few values are no categories.
    let of_few = |values: i64| {
        [Role::Dimension, Role::Entity].map(|role| cardinality(numbers(54, |row| row % values), role))
    };
    let ([kind, thing], [category, other]) = (of_few(28), of_few(27));
    assert!(kind < category && thing > other);
    // Each of a few rows is distinct for lack of rows.
    assert_eq!(cardinality(numbers(64, |row| row), Role::Dimension), 0.0);
    assert!(cardinality(numbers(65, |row| row), Role::Dimension) > 0.0);
}

#[test]
fn rising_steps_are_no_things() {
    let entity = |name: &str, number: &dyn Fn(i64) -> i64| {
        profile_of(name, numbers(2_000, number), |column| {
            let mut scores = Scores::default();
            let Form::Whole(whole) = &column.form else { panic!("{:?}", column.form) };
            score_numbers(column, whole, &mut scores);
            scores.total(Role::Entity)
        })
    };
    assert!(entity("step", &|row| row / 10) < 0.0);
    assert!(entity("order", &|row| row / 10) > 0.0 && entity("step", &|row| row % 200) > 0.0);
    assert!(entity("step_id", &|row| row / 10) > 0.0);
}

#[test]
fn codes_of_rows_are_told_from_their_contents() {
    let both = |name: &str, array: ArrayRef| {
        profile_of(name, array, |column| (is_unique_text(column), is_unique_code(column)))
    };
    assert_eq!(both("x", texts(90, |row| format!("A-{row:04}"))), (false, true));
    assert_eq!(both("x", texts(90, |row| format!("Q-{row:020}"))), (true, true));
    assert_eq!(both("x_id", texts(90, |row| format!("Q-{row:020}"))), (false, true));
    assert_eq!(both("x", texts(90, |row| format!("remark on {row}"))), (true, false));
    assert_eq!(both("x", texts(90, |row| format!("Q-{:020}", row % 80))), (false, false));
    assert_eq!(both("x", texts(90, |row| format!("10.0.0.{row}"))), (false, true));
    assert_eq!(both("x", texts(90, |row| format!("{row:032x}"))), (false, true));
    assert_eq!(both("x", numbers(90, |row| row)), (false, false));
}
