//! Rows that are numbered within a parent, such as the lines of an order.

use std::collections::HashMap;

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};

use super::*;
use crate::evaluate::roles::testing::{int64, with_profiles};

/// The parents within which the last of the columns is a serial number.
fn parents(columns: &[(&str, Vec<i64>)]) -> Vec<String> {
    let arrays: Vec<(&str, ArrayRef)> =
        columns.iter().map(|(name, values)| (*name, int64(values.iter().copied()))).collect();
    let serial = with_profiles(&arrays, |profiles| serial_of(profiles.last().unwrap(), profiles));
    serial.iter().map(|at| columns[*at].0.to_owned()).collect()
}

/// Numbers the rows with each combination of codes, from a start that depends on them.
fn numbered(codes: &[i64], step: i64) -> Vec<i64> {
    let mut next: HashMap<i64, i64> = HashMap::new();
    codes
        .iter()
        .map(|code| {
            let number = next.entry(*code).or_insert(code * 777);
            *number += step;
            *number
        })
        .collect()
}

#[test]
fn rows_that_a_parent_numbers_are_found_whatever_the_step_and_the_order() {
    let exchange: Vec<i64> = (0..6_000).map(|row| row * row % 7).collect();
    for step in [1, 2] {
        assert_eq!(
            parents(&[("exchange", exchange.clone()), ("trade", numbered(&exchange, step))]),
            ["exchange"]
        );
    }
    let mut sorted = (0..6_000).map(|row| row * 97 % 31).collect::<Vec<i64>>();
    sorted.sort_unstable();
    assert_eq!(parents(&[("topic", sorted.clone()), ("offset", numbered(&sorted, 1))]).len(), 0);
    let falling: Vec<i64> = sorted.iter().rev().copied().collect();
    assert_eq!(parents(&[("topic", falling.clone()), ("offset", numbered(&falling, 1))]), ["topic"]);
}

#[test]
fn two_columns_may_number_their_rows_together() {
    let topic: Vec<i64> = (0..8_000).map(|row| row * row % 11 % 4).collect();
    let partition: Vec<i64> = (0..8_000).map(|row| (row * row + row) % 13 % 5).collect();
    let both: Vec<i64> =
        topic.iter().zip(&partition).map(|(topic, partition)| topic * 10 + partition).collect();
    let actual = parents(&[("topic", topic), ("partition", partition), ("offset", numbered(&both, 1))]);
    assert_eq!(actual, ["topic", "partition"]);
}

#[test]
fn ids_meters_and_grids_are_no_serial_numbers() {
    let device: Vec<i64> = (0..6_000).map(|row| row * 31 % 40).collect();
    let id: Vec<i64> = (0..6_000).collect();
    assert_eq!(parents(&[("device", device.clone()), ("id", id)]).len(), 0);
    let order: Vec<i64> = (0..6_000).map(|row| row / 3).collect();
    assert_eq!(parents(&[("product", device.clone()), ("order", order)]).len(), 0);
    let reading: Vec<i64> = (0..6_000).map(|row| row * 5 + row * row % 3).collect();
    assert_eq!(parents(&[("device", device), ("reading", reading)]).len(), 0);
    let warehouse: Vec<i64> = (0..6_000).map(|row| row / 200).collect();
    let item: Vec<i64> = (0..6_000).map(|row| row % 200).collect();
    assert_eq!(parents(&[("warehouse", warehouse), ("item", item)]).len(), 0);
}

fn numberings(columns: &[(&str, ArrayRef)]) -> Vec<Numbering> {
    with_profiles(columns, Numbering::find_all)
}

/// The order and the number of each line.
fn lines() -> Vec<(i64, i64)> {
    (0..1_500).flat_map(|order| (1..=2 + order * order % 7).map(move |line| (order, line))).collect()
}

#[test]
fn lines_are_found_as_numbers_as_padded_text_and_with_gaps() {
    let orders = || int64(lines().into_iter().map(|line| line.0));
    let numbers = int64(lines().into_iter().map(|line| line.1));
    let padded: ArrayRef =
        Arc::new(StringArray::from_iter_values(lines().iter().map(|line| format!("{:03}", line.1 * 10))));
    let with_gaps = int64(lines().iter().enumerate().map(|(row, line)| line.1 * 3 + row as i64 % 2 - 2));
    for (what, number) in [("numbers", numbers), ("text", padded), ("gaps", with_gaps)] {
        let actual = numberings(&[("order", orders()), ("line", number)]);
        assert_eq!(actual[1], Numbering::Lines(vec![0]), "{what}");
    }
    let amounts = int64((0..lines().len() as i64).map(|row| row * row % 97));
    assert_eq!(numberings(&[("order", orders()), ("amount", amounts)])[1], Numbering::None);
}

#[test]
fn lines_of_things_that_are_numbered_within_others_need_both() {
    // Tenant 0 has most orders; each numbers its own from 1.
    let mut next = [0i64; 12];
    let mut rows = Vec::new();
    for at in 0..4_000usize {
        let tenant = if at % 2 == 0 { 0 } else { 1 + (at * 7 + at / 5) % 11 };
        next[tenant] += 1;
        (1..=1 + at as i64 % 4).for_each(|line| rows.push((tenant as i64, next[tenant], line)));
    }
    let actual = numberings(&[
        ("tenant", int64(rows.iter().map(|row| row.0))),
        ("order", int64(rows.iter().map(|row| row.1))),
        ("line", int64(rows.iter().map(|row| row.2))),
    ]);
    assert_eq!(actual[1..], [Numbering::Things(vec![0]), Numbering::Lines(vec![0, 1])]);
}

#[test]
fn lines_of_documents_that_are_numbered_anew_each_year_need_the_year() {
    let mut next = [[0i64; 2]; 12];
    let mut rows = Vec::new();
    for at in 0..4_000usize {
        let company = if at % 2 == 0 { 0 } else { 1 + (at * 7 + at / 5) % 11 };
        let year = at / 2_000;
        next[company][year] += 1;
        let number = next[company][year];
        (1..=1 + at as i64 % 4)
            .for_each(|line| rows.push((company as i64, year as i64 + 2025, number, line)));
    }
    let named = |name: &'static str| {
        numberings(&[
            ("company", int64(rows.iter().map(|row| row.0))),
            (name, int64(rows.iter().map(|row| row.1))),
            ("document_no", int64(rows.iter().map(|row| row.2))),
            ("line", int64(rows.iter().map(|row| row.3))),
        ])
    };
    assert_eq!(named("fiscal_year")[2..], [Numbering::Things(vec![0]), Numbering::Lines(vec![0, 2, 1])]);
    // Only its name says that a number is a period.
    assert_ne!(named("variant")[3], Numbering::Lines(vec![0, 2, 1]));
}

#[test]
fn the_same_things_in_every_parent_are_not_numbered_within_it() {
    // Each employee has each of 15 lines of a payslip.
    let rows: Vec<(i64, i64)> =
        (0..6).flat_map(|_| (0..15).flat_map(|line| (0..140).map(move |who| (line, who)))).collect();
    let actual = numberings(&[
        ("item", int64(rows.iter().map(|row| row.0))),
        ("employee", int64(rows.iter().map(|row| row.1 + 1))),
    ]);
    assert!(!matches!(actual[1], Numbering::Things(_)), "{actual:?}");
}

#[test]
fn things_are_numbered_within_parents_whose_numbers_end_where_their_sizes_do() {
    let drawn = |row: i64, below: i64| {
        (row.wrapping_add(below).wrapping_mul(-7_046_029_254_386_353_131) >> 33).rem_euclid(below)
    };
    let tenant = |row: i64| drawn(row, 89);
    // A number below the size of the tenant, in no order.
    let number = |row: i64| 1 + drawn(row, 100_003) % (10 + 20 * tenant(row));
    let rows = || 0..12_000i64;
    let columns = |name: &'static str| {
        numberings(&[("tenant", int64(rows().map(tenant))), (name, int64(rows().map(number)))])
    };
    assert_eq!(columns("document_no")[1], Numbering::Things(vec![0]));
    // Amounts grow with the tenant too: only the name distinguishes them.
    assert_eq!(columns("amount")[1], Numbering::None);
    // One sequence for all tenants.
    let shared = |row: i64| 1 + drawn(row, 2_003);
    let actual =
        numberings(&[("tenant", int64(rows().map(tenant))), ("document_no", int64(rows().map(shared)))]);
    assert_eq!(actual[1], Numbering::None);
}

#[test]
fn lines_may_be_numbered_within_two_columns_together() {
    let mut rows = Vec::new();
    for at in 0..900i64 {
        (1..=3 + at * at % 9).for_each(|line| rows.push((at / 60, at % 60, line)));
    }
    let actual = numberings(&[
        ("court", int64(rows.iter().map(|row| row.0))),
        ("case", int64(rows.iter().map(|row| row.1))),
        ("entry", int64(rows.iter().map(|row| row.2))),
    ]);
    assert_eq!(actual[2], Numbering::Lines(vec![0, 1]));
}

#[test]
fn numbers_that_rise_within_a_parent_are_found_in_interleaved_rows() {
    let document = |row: i64| row * 7_919 % 211;
    let revisions = |row: i64| row / 40 + document(row) % 5;
    let actual = numberings(&[
        ("document", int64((0..8_000).map(document))),
        ("revision", int64((0..8_000).map(revisions))),
        ("size", int64((0..8_000).map(|row| row * row % 1_009))),
    ]);
    assert_eq!(actual, [Numbering::None, Numbering::Rising(0), Numbering::None]);
}

/// The numbering of texts named `name` in parents with these numbers of rows.
fn parent_of_texts(
    name: &str,
    rows_of_parents: &[usize],
    label: impl Fn(usize, usize) -> String,
) -> Numbering {
    let rows = rows_of_parents.iter().enumerate();
    let rows: Vec<(usize, usize)> =
        rows.flat_map(|(parent, count)| (0..*count).map(move |line| (parent, line))).collect();
    let games = int64(rows.iter().map(|(parent, _)| *parent as i64));
    let labels: ArrayRef =
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(parent, line)| label(*parent, *line))));
    numberings(&[("game", games), (name, labels)]).pop().unwrap()
}

#[test]
fn texts_may_number_the_rows_of_a_parent() {
    let uneven: Vec<usize> = (0..60).map(|parent| 15 + parent * 37 % 41).collect();
    let in_order = |_: usize, line: usize| if line == 0 { "0X".to_owned() } else { line.to_string() };
    assert_eq!(parent_of_texts("PointNumber", &uneven, in_order), Numbering::Lines(vec![0]));
    // A name that denotes no number; parents that all have the same things; things of which each
    // parent has some.
    assert_eq!(parent_of_texts("Point", &uneven, in_order), Numbering::None);
    assert_eq!(parent_of_texts("PointNumber", &[30; 60], in_order), Numbering::None);
    let scattered = |parent: usize, line: usize| format!("{}X", (parent * 7 + line * 3) % 61);
    assert_eq!(parent_of_texts("PointNumber", &uneven, scattered), Numbering::None);
}
