//! Sampled columns: widened types, reasons against keys, the event time, copies and roles.

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Float64Array, Int8Array};

use super::*;
use crate::evaluate::candidates::testing::{TestExport, numbers, numbers_after_nulls, texts, times};

#[test]
fn a_type_is_widened_only_if_the_system_refuses_it_and_takes_the_wider_one() {
    let decimal = |precision, scale| ColumnType::Decimal { precision, scale };
    let wider =
        |function: &str, column_type: ColumnType| wider_key_type(function.parse().unwrap(), column_type);
    for (function, column_type, expected) in [
        ("ydb", ColumnType::Int8, Some(ColumnType::Int32)),
        ("ydb", ColumnType::Int16, Some(ColumnType::Int32)),
        ("ydb", ColumnType::Int32, None),
        ("ydb", ColumnType::Uuid, Some(ColumnType::Utf8)),
        ("ydb", ColumnType::Date32, Some(ColumnType::Timestamp64)),
        ("ydb", ColumnType::Date, None),
        ("ydb", ColumnType::Double, None),
        ("ydb", decimal(18, 0), Some(ColumnType::Int64)),
        // Some of these are no Int64.
        ("ydb", decimal(19, 0), None),
        ("ydb", decimal(18, 1), None),
        ("kudu", ColumnType::Uuid, Some(ColumnType::Utf8)),
        ("kudu", ColumnType::Int8, None),
        ("mongodb", ColumnType::Uuid, None),
        ("mongodb", ColumnType::Date32, Some(ColumnType::Timestamp64)),
    ] {
        assert_eq!(wider(function, column_type), expected, "{function} {column_type}");
    }
    for function in Function::all() {
        for column_type in ColumnType::ALL {
            let Some(wider) = wider_key_type(function, column_type) else { continue };
            assert_eq!(wider_key_type(function, wider), None, "{function} {column_type}");
        }
    }
}

#[test]
fn what_keeps_a_column_out_of_keys_is_said() {
    let whole: ArrayRef = Arc::new(Float64Array::from_iter_values((0..100u32).map(f64::from)));
    let small: ArrayRef = Arc::new(Int8Array::from_iter_values(0..100));
    let mut export = TestExport::new(&[
        ("user", Role::Entity, numbers_after_nulls(100, 5, |row| row / 2)),
        ("shop", Role::Entity, numbers_after_nulls(100, 6, |row| row / 2)),
        ("kind", Role::Dimension, numbers_after_nulls(100, 1, |row| row % 7)),
        ("one", Role::Entity, numbers(100, |_| 1)),
        ("at", Role::Time, times(100, |_| 0)),
        ("whole", Role::Entity, whole),
        ("small", Role::Entity, small),
    ]);
    let expected = [
        Some("5 of the 100 rows have NULL, and key columns are NOT NULL"),
        Some("6 of the 100 rows have NULL, and key columns are NOT NULL"),
        Some("1 of the 100 rows have NULL, and key columns are NOT NULL"),
        Some("all of the 100 rows have one value"),
        // The rows of another export have another time.
        None,
        Some("YDB accepts no Double in a key; its numbers are whole, and as Int64 it could be in one"),
        Some("YDB accepts no Int8 in a key; as Int32 it could be in one"),
    ];
    {
        let sampled = export.sampled();
        let found: Vec<Option<String>> =
            sampled.columns.iter().map(|column| sampled.obstacle(column)).collect();
        assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        // Of an entity, a twentieth of the rows is filled in.
        let can_place: Vec<bool> = (0..7).map(|at| sampled.partition_key_obstacle(at).is_none()).collect();
        assert_eq!(can_place, [true, false, false, false, true, false, false]);
    }
    export.widens = true;
    let sampled = export.sampled();
    let can_be_in_key: Vec<bool> = (0..7).map(|at| sampled.can_be_in_key(at)).collect();
    assert_eq!(can_be_in_key, [false, false, false, false, true, false, true]);
}

#[test]
fn the_event_time_is_the_one_in_whose_order_rows_arrive() {
    let rising = || times(100, |row| row * 60);
    let mixed = || times(100, |row| row * 37 % 100 * 60);
    let half_null: ArrayRef = {
        let date = |row: i32| (row % 2 == 0).then_some(20_000 + row);
        Arc::new(Date32Array::from_iter((0..100).map(date)))
    };
    let dates: ArrayRef = Arc::new(Date32Array::from_iter_values(20_000..20_100));
    let ids = || numbers(100, |row| row * 7_919 % 1_009);
    for (columns, expected) in [
        (vec![("updated_at", rising()), ("created_at", mixed())], Some("created_at")),
        (vec![("birth_date", rising()), ("updated_at", mixed())], Some("updated_at")),
        (vec![("day", dates.clone()), ("at", mixed())], Some("at")),
        (vec![("first", mixed()), ("second", rising())], Some("second")),
        (vec![("first", mixed()), ("second", mixed())], Some("first")),
        // Rarely filled, it is the time of few events.
        (vec![("day", half_null.clone()), ("id", ids())], None),
        (vec![("day", half_null), ("date", dates)], Some("date")),
        (vec![("id", ids())], None),
    ] {
        let columns: Vec<_> = columns.into_iter().map(|(name, array)| (name, None::<Role>, array)).collect();
        let mut export = TestExport::new(&columns);
        assert_eq!(export.sampled().time.as_deref(), expected, "{columns:?}");
        // The user knows better.
        export.time = Some("id");
        assert_eq!(export.sampled().time.as_deref(), Some("id"));
    }
}

#[test]
fn a_copy_gives_way_only_to_an_original_that_can_be_in_a_key() {
    let name = texts(200, |row| format!("Ann {}th", row * 31 % 20));
    let code = numbers(200, |row| row * 31 % 20);
    let fractions: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..200u32).map(|row| f64::from(row * 31 % 20))));
    for (id, is_copy) in [(code, true), (fractions, false)] {
        let export =
            TestExport::new(&[("user_id", Role::Entity, id), ("user_name", Role::Entity, name.clone())]);
        let sampled = export.sampled();
        assert_eq!(sampled.roles[1].copy_of.as_deref(), Some("user_id"));
        assert_eq!([sampled.is_copy(0), sampled.is_copy(1)], [false, is_copy]);
    }
}

#[test]
fn rows_have_moments_if_they_have_many_times_that_are_not_later() {
    for (name, moments, expected) in [("at", 64, false), ("at", 65, true), ("updated_at", 65, false)] {
        let export = TestExport::new(&[(name, Role::Time, times(500, |row| row % moments))]);
        let sampled = export.sampled();
        assert_eq!(sampled.key_time(), Some(0));
        assert_eq!(sampled.has_moments(), expected, "{name} {moments}");
        // The name of the export says nothing of events.
        assert!(!sampled.has_events());
    }
}
