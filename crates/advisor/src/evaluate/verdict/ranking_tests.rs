//! Order of the candidates, and the recommended key and number of partitions.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use evenkeel_input::source::InputOptions;
use evenkeel_model::table::{Column, ColumnType};
use serde_json::json;

use super::*;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::evaluator::Evaluator;
use crate::evaluate::roles::{Role, RoleReport};

const ROWS: u64 = 20_000;

fn columns() -> Vec<Column> {
    let names = ["user_id", "country", "at", "amount"];
    names.iter().map(|name| Column::nullable(*name, ColumnType::Uint64)).collect()
}

fn roles() -> Vec<RoleReport> {
    let columns = [
        ("user_id", Role::Entity),
        ("country", Role::Dimension),
        ("status", Role::Dimension),
        ("at", Role::Time),
        ("line", Role::LineNumber),
        ("amount", Role::Measure),
        ("number", Role::Entity),
    ];
    let report = |(column, role): &(&str, Role)| {
        let is_vague = *column == "number";
        let report = json!({
            "column": column, "role": role, "is_vague": is_vague,
            "evidence": [], "null_share": 0.0, "given": false,
        });
        serde_json::from_value(report).unwrap()
    };
    columns.iter().map(report).collect()
}

fn knowledge<'a>(roles: &'a [RoleReport], natural_key: &'a [String]) -> Knowledge<'a> {
    Knowledge { roles, natural_key, identifying: &[], joined: &[], of_events: false }
}

fn options(keys: &[&str], partitions: &[u64]) -> AdvisorOptions {
    let evaluate = EvaluateOptions {
        partition_keys: keys.iter().map(|key| key.parse().unwrap()).collect(),
        partitions: partitions.iter().map(|count| PartitionCount::new(*count).unwrap()).collect(),
        ..EvaluateOptions::default()
    };
    AdvisorOptions { evaluate, ..AdvisorOptions::default() }
}

/// Rows of 10,000 users in 5 countries, each at another time.
fn evaluated(options: &AdvisorOptions) -> Evaluation {
    let column =
        |value: fn(u64) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values((0..ROWS).map(value))) };
    let batch = RecordBatch::try_from_iter([
        ("user_id", column(|row| row % 10_000)),
        ("country", column(|row| row % 5)),
        ("at", column(|row| row)),
        ("amount", column(|row| row * row % 3_001)),
    ])
    .unwrap();
    let mut evaluator = Evaluator::new(&columns(), options.evaluate.clone()).unwrap();
    evaluator.add(&batch).unwrap();
    evaluator.finish().unwrap()
}

fn ranked(evaluation: &Evaluation, options: &AdvisorOptions) -> Ranked {
    let roles = roles();
    let needed = Needed::new(evaluation, options);
    rank_all(evaluation, &[], options.evaluate.partitions[0], &needed, &knowledge(&roles, &[]))
}

fn keys(ranked: &Ranked) -> Vec<String> {
    ranked.keys.iter().map(|key| key.partition_key.join(",")).collect()
}

fn chosen(evaluation: &Evaluation, options: &AdvisorOptions) -> Choice {
    let export = Export::with_columns(Vec::new(), InputOptions::default(), columns());
    recommend(evaluation, &[], &export, options, &knowledge(&roles(), &[]))
}

#[test]
fn classes_follow_the_kinds_of_columns_before_the_figures() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let roles = roles();
    let empty = Evaluation {
        rows: 0,
        bytes: 0,
        sample: None,
        time: None,
        time_range: None,
        candidates: Vec::new(),
        primary_keys: Vec::new(),
    };
    let pair = names(&["country", "status", "at"]);
    // Whether it qualifies, and the rate that it sustains, of 10.
    let even = (true, 10.0);
    let class = |natural_key: &[String], key: &[&str], (qualifies, rate): (bool, f64), wider: bool| {
        let knowledge = knowledge(&roles, natural_key);
        let workload = Workload::expected(&knowledge, &empty, PartitionCount::ONE, |_| true);
        let key = RankedKey {
            partition_key: names(key),
            qualifies,
            cost: 0.5,
            verdict: Verdict::Even,
            sustained_rate: rate,
            rate_if_even: 10.0,
            mean_partitions_read: None,
            statements_on_all: 0,
            mean_key_bytes: 8.0,
            null_rows: 0,
            obstacle: None,
        };
        Class::new(&key, &workload, &knowledge, |_| wider, |_| false)
    };
    assert_eq!(class(&[], &["user_id"], even, false), Class::Qualifies);
    assert_eq!(class(&[], &["user_id"], even, true), Class::SpreadByCount);
    assert_eq!(class(&[], &["user_id"], (false, 4.0), false), Class::Bearable);
    assert_eq!(class(&[], &["user_id"], (false, 3.0), false), Class::Uneven);
    assert_eq!(class(&[], &["user_id", "at"], even, false), Class::SpreadByCount);
    assert_eq!(class(&[], &["user_id", "line"], even, false), Class::SpreadByCount);
    // A column that may be an amount is never bearable.
    assert_eq!(class(&[], &["number"], even, false), Class::SpreadByCount);
    assert_eq!(class(&[], &["number"], (false, 9.0), false), Class::Uneven);
    // Kinds together are a thing if the natural key has them and the time.
    assert_eq!(class(&[], &["country", "status"], even, false), Class::Kinds);
    assert_eq!(class(&[], &["country", "status"], (false, 9.0), false), Class::Uneven);
    assert_eq!(class(&pair, &["country", "status"], even, false), Class::Qualifies);
    assert_eq!(class(&pair, &["country"], even, false), Class::Kinds);
    for key in [["at"].as_slice(), &["amount"], &["user_id", "amount"], &["country", "at"], &["line"]] {
        assert_eq!(class(&[], key, even, false), Class::Makeshift, "{key:?}");
    }
}

#[test]
fn the_order_of_the_candidates_does_not_matter() {
    let options = options(&["at", "amount", "user_id, at", "country", "user_id"], &[16]);
    let mut evaluation = evaluated(&options);
    let expected = keys(&ranked(&evaluation, &options));
    assert_eq!(expected[..3], ["user_id", "user_id,at", "country"], "{expected:?}");
    for _ in 1..evaluation.candidates.len() {
        evaluation.candidates.rotate_left(1);
        let ranked = ranked(&evaluation, &options);
        assert_eq!(keys(&ranked), expected);
        assert_eq!(ranked.best, Some(Class::Qualifies));
        assert_eq!(ranked.sufficient, [["user_id"]]);
    }
}

#[test]
fn keys_that_no_table_can_have_are_ranked_last_and_not_recommended() {
    let options = options(&["user_id", "country", "amount"], &[16]);
    let mut evaluation = evaluated(&options);
    evaluation.candidates[0].null_rows = ROWS / 2;
    let some = ranked(&evaluation, &options);
    assert_eq!(keys(&some).last().map(String::as_str), Some("user_id"));
    assert!(some.best.is_some() && some.sufficient.is_empty());
    evaluation.candidates.iter_mut().for_each(|key| key.type_obstacle = Some("a type".to_owned()));
    let none = ranked(&evaluation, &options);
    assert_eq!((none.keys.len(), none.best), (3, None));
    let choice = chosen(&evaluation, &options);
    assert_eq!(choice.ranking.len(), 3);
    assert!(choice.recommendation.partition_key.is_empty(), "{choice:?}");
    assert!(choice.recommendation.reasons[0].starts_with("no candidate can be"), "{choice:?}");
}

#[test]
fn the_smallest_number_of_partitions_that_sustains_the_rate_is_chosen() {
    // A partition sustains 1 MB/s, if all have the same load.
    let options = options(&["country", "user_id"], &[64, 4, 16]);
    let evaluation = evaluated(&options);
    for (ingest_rate, partitions, reason) in [
        (None, 4, "the smallest number evaluated that sustains"),
        (Some(2e6), 4, "the smallest number evaluated that sustains"),
        (Some(4.1e6), 16, "the smallest number evaluated that sustains"),
        (Some(16.1e6), 64, "the smallest number evaluated that sustains"),
        // None does: the largest that has enough values.
        (Some(1e9), 64, "no number evaluated sustains"),
    ] {
        let options = AdvisorOptions { ingest_rate, ..options.clone() };
        let choice = chosen(&evaluation, &options);
        assert_eq!(choice.partitions.map(PartitionCount::get), Some(partitions), "{ingest_rate:?}");
        let Recommendation { partition_key, partitions: of, reasons, .. } = choice.recommendation;
        assert_eq!((partition_key.join(",").as_str(), of), ("user_id", partitions), "{ingest_rate:?}");
        assert!(reasons.iter().any(|words| words.contains(reason)), "{ingest_rate:?}: {reasons:?}");
    }
    let nowhere = AdvisorOptions { evaluate: EvaluateOptions::default(), ..options };
    assert_eq!(chosen(&evaluation, &nowhere).partitions, None);
}

#[test]
fn a_key_with_too_few_values_for_the_partitions_is_no_good_one() {
    let evaluation = |partitions| evaluated(&options(&["country", "user_id"], &[partitions]));
    let weak = |key: &str, partitions: u64| {
        let evaluation = evaluation(partitions);
        let options = options(&["country", "user_id"], &[partitions]);
        let ranked = ranked(&evaluation, &options);
        let chosen = ranked.keys.iter().find(|ranked| ranked.partition_key == [key]).unwrap();
        weakness(chosen, &evaluation, ranked.partitions, &knowledge(&roles(), &[]))
    };
    let reason = weak("country", 16).unwrap();
    assert!(reason.contains("HASH(country) has 5 values for 16 partitions"), "{reason}");
    assert_eq!(weak("country", 2), None);
    assert_eq!(weak("user_id", 16), None);
}
