//! Candidates for partition keys: which columns and pairs of columns are evaluated.

use arrow::array::ArrayRef;
use evenkeel_stats::sketch::fold;

use super::*;
use crate::evaluate::candidates::testing::{TestExport, kept, numbers, numbers_after_nulls, texts, times};

type TestColumn<'c> = (&'c str, Role, ArrayRef);

/// Draws one of `below` values for a row, independently of other columns.
fn drawn(column: u64, below: u64) -> impl Fn(i64) -> i64 {
    move |row| (fold(fold(row.cast_unsigned(), column), 7) % below).cast_signed()
}

fn reason<'c>(considered: &'c [ConsideredCandidate], key: &[&str]) -> &'c str {
    &considered.iter().find(|candidate| candidate.key == key).unwrap().reason
}

#[test]
fn entities_weigh_more_than_kinds_and_row_ids_and_amounts_weigh_nothing() {
    let export = TestExport::new(&[
        ("a", Role::Entity, numbers(1_000, drawn(1, 50))),
        ("b", Role::Dimension, numbers(1_000, drawn(2, 50))),
        ("c", Role::RowId, numbers(1_000, drawn(3, 50))),
        ("d", Role::Measure, numbers(1_000, drawn(4, 50))),
        ("e", Role::Time, numbers(1_000, drawn(5, 50))),
        // Half of the rows have one value.
        ("f", Role::Entity, numbers(1_000, |row| if row % 2 == 0 { 0 } else { row % 97 })),
        ("g", Role::Entity, numbers(1_000, drawn(6, 500))),
    ]);
    let sampled = export.sampled();
    let weight = |at: usize| sampled.weight(at, &[]);
    assert!(weight(0) > weight(1) && weight(1) > weight(2) && weight(2) > 0.0);
    assert_eq!([weight(3), weight(4), weight(99)], [0.0; 3]);
    assert!(weight(5) < weight(0), "a heavy value counts against an entity");
    assert!(weight(6) > weight(0), "many values count for an entity");
    let natural = |by_nature| [UniqueKey { columns: vec![0, 1], repeats_by_chance: 9.0, by_nature }];
    assert_eq!(sampled.weight(0, &natural(true)), 2.0 * weight(0));
    assert_eq!(sampled.weight(0, &natural(false)), weight(0));
    assert_eq!(sampled.weight(6, &natural(true)), weight(6));
}

#[test]
fn a_few_entities_and_one_row_id_are_evaluated_alone() {
    let entity = |name: &'static str, column: u64, values: u64| {
        (name, Role::Entity, numbers(2_000, drawn(column, values)))
    };
    let export = TestExport::new(&[
        ("hash", Role::RowId, numbers(2_000, |row| row * 7_919 % 2_003)),
        entity("a", 1, 150),
        entity("b", 2, 250),
        entity("c", 3, 350),
        entity("d", 4, 450),
        entity("e", 5, 550),
        ("id", Role::RowId, numbers(2_000, |row| row * 7_907 % 2_003)),
    ]);
    let considered = export.sampled().partition_keys(&[], &[]);
    let kept = kept(&considered);
    let singles: Vec<&str> = kept.iter().map(String::as_str).filter(|key| !key.contains(',')).collect();
    // Most values first. Identifiers that are assigned rank before those that are computed.
    assert_eq!(singles, ["e", "d", "c", "b", "id"]);
    assert!(reason(&considered, &["a"]).contains("4 columns are more likely"));
    assert_eq!(reason(&considered, &["hash"]), "another column identifies the row too");
    // The first three in pairs, and the first with the row id, which splits its heavy values.
    for key in ["e,d", "e,c", "d,c", "e,id"] {
        assert!(kept.iter().any(|kept| kept == key), "{key}: {kept:?}");
    }
    assert!(!kept.iter().any(|kept| kept == "e,b"), "{kept:?}");
}

#[test]
fn columns_of_few_values_fill_partitions_only_in_pairs() {
    let city = drawn(2, 40);
    let export = TestExport::new(&[
        ("city", Role::Entity, numbers(1_000, &city)),
        // Follows from the city.
        ("country", Role::Dimension, numbers(1_000, |row| city(row) % 5)),
        ("kind", Role::Dimension, numbers(1_000, drawn(1, 4))),
    ]);
    for whole in [true, false] {
        let mut sampled = export.sampled();
        sampled.whole = whole;
        let considered = sampled.partition_keys(&[], &[]);
        assert_eq!(kept(&considered), ["city", "city,kind", "country,kind"]);
        let country = considered.iter().find(|candidate| candidate.key == ["country"]).unwrap();
        assert!(country.reason.starts_with("cannot fill 16 partitions: 5 values"), "{country:?}");
        // More rows may have more values.
        assert_eq!(country.too_few_values, !whole);
    }
    // 5 x 3 values are fewer than 16.
    let export = TestExport::new(&[
        ("country", Role::Dimension, numbers(1_000, drawn(2, 5))),
        ("kind", Role::Dimension, numbers(1_000, drawn(1, 3))),
        ("amount", Role::Measure, numbers(1_000, drawn(3, 500))),
    ]);
    let kept = kept(&export.sampled().partition_keys(&[], &[]));
    assert!(!kept.iter().any(|key| key == "country,kind"), "{kept:?}");
}

#[test]
fn rows_of_one_series_are_placed_by_their_time_alone() {
    let keys = |columns: &[TestColumn<'_>], natural: &UniqueKey| {
        let export = TestExport::new(columns);
        kept(&export.sampled().partition_keys(&[], std::slice::from_ref(natural)))
    };
    let [at, wind, station] = [
        ("at", Role::Time, times(1_000, |row| row * 60)),
        ("wind", Role::Measure, numbers(1_000, drawn(1, 300))),
        ("station", Role::Entity, numbers(1_000, drawn(2, 100))),
    ];
    let series = [at.clone(), wind.clone()];
    let mut natural = UniqueKey { columns: vec![0], repeats_by_chance: 100.0, by_nature: true };
    assert_eq!(keys(&series, &natural), ["at"]);
    assert!(!keys(&[at, wind, station], &natural).contains(&"at".to_owned()));
    // The times may be distinct by chance.
    natural.repeats_by_chance = 99.0;
    assert_ne!(keys(&series, &natural), ["at"]);
}

#[test]
fn prefixes_of_given_primary_keys_are_evaluated_whatever_they_are() {
    let export = TestExport::new(&[
        ("at", Role::Time, times(1_000, |row| row)),
        ("user", Role::Entity, numbers(1_000, drawn(1, 200))),
        ("shop", Role::Entity, numbers(1_000, drawn(2, 300))),
        ("fee", Role::Measure, numbers(1_000, drawn(3, 300))),
    ]);
    let given: [Candidate; 2] = ["at, user, fee".parse().unwrap(), "hour(at), user".parse().unwrap()];
    let considered = export.sampled().partition_keys(&given, &[]);
    let kept = kept(&considered);
    for key in ["at", "user", "user,at", "at,user,fee"] {
        assert!(kept.iter().any(|kept| kept == key), "{key}: {kept:?}");
    }
    assert_eq!(reason(&considered, &["at"]), "a prefix of a given primary key");
    assert_eq!(reason(&considered, &["shop"]), "it is in none of the given primary keys");
    assert!(kept.iter().all(|key| !key.contains("shop")), "{kept:?}");
}

#[test]
fn without_anything_that_is_looked_up_the_columns_of_most_values_remain() {
    let export = TestExport::new(&[
        ("x", Role::Measure, numbers(1_000, drawn(1, 900))),
        ("at", Role::Time, times(1_000, |row| row / 10)),
        ("note", Role::Text, texts(1_000, |row| format!("a longer remark on number {row}"))),
        ("with_null", Role::Measure, numbers_after_nulls(1_000, 400, |row| row)),
        ("few", Role::Measure, numbers(1_000, drawn(2, 9))),
    ]);
    let considered = export.sampled().partition_keys(&[], &[]);
    // A time comes before a measure, whatever their values, and a text last.
    assert_eq!(kept(&considered), ["x", "at", "at,x"]);
    assert_eq!(reason(&considered, &["x"]), "a measure, for lack of a better column");
    let nothing = TestExport::new(&[("few", Role::Measure, numbers(1_000, drawn(2, 9)))]);
    assert!(kept(&nothing.sampled().partition_keys(&[], &[])).is_empty());
}
