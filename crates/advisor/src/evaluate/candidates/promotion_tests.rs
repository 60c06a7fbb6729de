//! Promotion: texts and numbers of a natural key, and the things of lines.

use super::*;
use crate::evaluate::candidates::testing::{TestExport, numbers, texts};

#[test]
fn a_natural_key_makes_texts_things_and_numbers_lines_unless_the_user_said_otherwise() {
    let export = TestExport::new(&[
        ("a", None, numbers(50, |row| row % 3)),
        ("b", None, numbers(50, |row| row % 5)),
        ("c", Some(Role::Text), texts(50, |row| format!("t{row}"))),
        ("d", None, numbers(50, |row| row % 7)),
    ]);
    let mut sampled = export.sampled();
    for (at, role) in [(0, Role::Text), (1, Role::Measure), (3, Role::Dimension)] {
        sampled.roles[at].role = role;
    }
    sampled.promote(&[0, 1, 2, 3, 99]);
    let roles: Vec<Role> = sampled.roles.iter().map(|report| report.role).collect();
    assert_eq!(roles, [Role::Entity, Role::LineNumber, Role::Text, Role::Dimension]);
}

#[test]
fn a_title_without_blanks_names_a_page_and_other_contents_do_not() {
    let promoted = |name: &str, text: fn(i64) -> String| {
        let export = TestExport::new(&[(name, None::<Role>, texts(60, text))]);
        let mut sampled = export.sampled();
        sampled.roles[0].role = Role::Text;
        sampled.promote(&[0]);
        sampled.roles[0].role
    };
    assert_eq!(promoted("page_title", |row| format!("Page_{}", row % 20)), Role::Entity);
    assert_eq!(promoted("page_title", |row| format!("A page about {}", row % 20)), Role::Text);
    assert_eq!(promoted("path", |row| format!("/page/{}", row % 20)), Role::Text);
}

/// The roles of the columns of a key, and within what each of them counts, by the rows of an export
/// of three columns.
fn promoted(rows: &[(i64, i64, i64)], key: &[usize]) -> Vec<(Role, Vec<String>)> {
    let column = |of: fn(&(i64, i64, i64)) -> i64| numbers(rows.len() as i64, |row| of(&rows[row as usize]));
    let export = TestExport::new(&[
        ("whole", None::<Role>, column(|row| row.0)),
        ("thing", None, column(|row| row.1)),
        ("line", None, column(|row| row.2)),
    ]);
    let mut sampled = export.sampled();
    for report in &mut sampled.roles {
        report.role = Role::Dimension;
        report.counts_within.clear();
    }
    sampled.promote_parents(key);
    sampled.roles.into_iter().map(|report| (report.role, report.counts_within)).collect()
}

/// Rows of `wholes` with `things` each, which have different numbers of lines.
fn lines_of_things(wholes: i64, things: i64) -> Vec<(i64, i64, i64)> {
    let lines = |pair: i64| (1..=2 + (pair * 7 + pair / things) % 5).map(move |line| (pair, line));
    let rows = (0..wholes * things).flat_map(lines);
    rows.map(|(pair, line)| (pair / things, pair % things, line)).collect()
}

#[test]
fn lines_within_two_columns_make_the_finer_one_a_thing_of_the_other() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let lines = (Role::LineNumber, names(&["whole", "thing"]));
    let other = (Role::Dimension, Vec::new());
    let thing = (Role::Entity, names(&["whole"]));
    let few = lines_of_things(4, 20);
    assert_eq!(promoted(&few, &[0, 1, 2]), [other.clone(), thing, lines.clone()]);
    // With this many values, it identifies a thing alone.
    assert_eq!(promoted(&lines_of_things(4, 81), &[0, 1, 2]), [other.clone(), other.clone(), lines]);
    // A key of two columns has no lines within two.
    assert_eq!(promoted(&few, &[0, 2]), [other.clone(), other.clone(), other]);
}

#[test]
fn numbers_that_recur_for_each_combination_of_others_are_things_of_one_parent() {
    // Precincts of counties, with the votes for each candidate.
    let rows: Vec<(i64, i64, i64)> = (0..40_i64)
        .flat_map(|county| (1..=5 + county * 7 % 11).map(move |precinct| (county, precinct)))
        .flat_map(|(county, precinct)| (0..6).map(move |candidate| (county, precinct, candidate)))
        .collect();
    let other = (Role::Dimension, Vec::new());
    let precinct = (Role::Entity, vec!["whole".to_owned()]);
    assert_eq!(promoted(&rows, &[0, 1, 2]), [other.clone(), precinct, other]);
}
