//! Candidates for natural keys: which columns and combinations identify rows, and which do not.

use super::*;
use crate::evaluate::candidates::testing::{TestExport, numbers, texts, times};

/// The keys that are found, by the names of their columns, and whether each is natural.
fn found(export: &TestExport) -> Vec<(String, bool)> {
    let sampled = export.sampled();
    let keys = sampled.unique_keys(&export.rows.batches).keys;
    let named = |mut key: UniqueKey| {
        key.columns.sort_unstable();
        (sampled.names(&key.columns).join(","), key.by_nature)
    };
    keys.into_iter().map(named).collect()
}

fn natural(export: &TestExport) -> Vec<String> {
    found(export).into_iter().filter(|(_, by_nature)| *by_nature).map(|(key, _)| key).collect()
}

#[test]
fn ids_in_sequence_are_natural_and_numbers_that_rarely_repeat_may_not_be() {
    // No two rows share a number: of numbers up to 100, this is no chance.
    for (number, by_nature) in
        [(numbers(100, |row| row + 1), true), (numbers(100, |row| row * 48_271 % 999_983), false)]
    {
        let export = TestExport::new(&[("number", Role::Entity, number)]);
        assert_eq!(found(&export), [("number".to_owned(), by_nature)]);
    }
}

#[test]
fn a_named_number_of_rows_is_natural_unless_there_are_few_rows_or_it_comes_back() {
    let code = |row: i64| format!("{:06}", row * 48_271 % 999_983);
    for (name, rows, by_nature) in
        [("contract_no", 100, true), ("contract_no", 60, false), ("x", 100, false), ("user_id", 100, false)]
    {
        let export = TestExport::new(&[(name, Role::RowId, texts(rows, code))]);
        assert_eq!(found(&export), [(name.to_owned(), by_nature)], "{rows} rows");
    }
}

#[test]
fn combinations_that_fill_a_grid_are_one_dense_key() {
    let grid = |cells: i64| {
        TestExport::new(&[
            ("warehouse", Role::Entity, numbers(cells, |row| row % 1_000 / 50)),
            ("item", Role::Entity, numbers(cells, |row| row % 50)),
            ("stock", Role::Measure, numbers(cells, |row| 100 + 3 * row)),
        ])
    };
    let export = grid(1_000);
    assert_eq!(found(&export), [("warehouse,item".to_owned(), true)]);
    let key = export.sampled().unique_keys(&export.rows.batches).keys.remove(0);
    assert!(key.is_dense_among(1_000), "{key:?}");
    // Two of each cell: no columns distinguish them.
    assert_eq!(found(&grid(2_000)), []);
}

#[test]
fn rows_that_were_sent_again_do_not_hide_the_key_of_their_content() {
    let export = TestExport::new(&[
        ("number", Role::Entity, numbers(400, |row| row / 2)),
        ("at", Role::Time, times(400, |row| row / 2 % 90)),
        ("received_at", Role::Time, times(400, |row| row + 7)),
    ]);
    assert_eq!(natural(&export), ["number"]);
    // Without another time, the receipt is the time of the row.
    let export = TestExport::new(&[("received_at", Role::Time, times(400, |row| row))]);
    assert!(!export.sampled().is_time_of_receipt(0));
}

#[test]
fn one_row_of_a_thousand_may_repeat_a_natural_key() {
    for (repeated, expected) in [(0, 1), (1, 1), (3, 1), (4, 0)] {
        let number = |row: i64| if row < 2 * repeated && row % 2 == 0 { row + 1 } else { row };
        let export = TestExport::new(&[
            ("number", Role::Entity, numbers(3_000, number)),
            ("amount", Role::Measure, numbers(3_000, |row| 3 * row + 100)),
        ]);
        assert_eq!(natural(&export), vec!["number"; expected], "{repeated}");
    }
}

#[test]
fn things_of_events_will_meet_again_at_another_moment() {
    let export = TestExport::new(&[
        ("user", Role::Entity, numbers(300, |row| row % 20)),
        ("shop", Role::Entity, numbers(300, |row| row / 20)),
        ("at", Role::Time, times(300, |row| row)),
        ("number", Role::RowId, numbers(300, |row| row)),
    ]);
    let sampled = export.sampled();
    assert!(sampled.meets_once(&[0, 1]));
    for key in [[0].as_slice(), &[0, 2], &[0, 3]] {
        assert!(!sampled.meets_once(key), "{key:?}");
    }
    // Rows that are no events have all of their pairs.
    let export = TestExport::new(&[
        ("user", Role::Entity, numbers(300, |row| row % 20)),
        ("shop", Role::Entity, numbers(300, |row| row / 20)),
    ]);
    assert!(!export.sampled().meets_once(&[0, 1]));
    assert_eq!(found(&export), [("user,shop".to_owned(), true)]);
}

#[test]
fn short_texts_that_repeat_name_things() {
    let name = |row: i64| format!("Ann Lee {}", row % 9);
    let export = TestExport::new(&[
        ("a", Role::Text, texts(90, name)),
        ("b", Role::Text, texts(90, |row| format!("a remark on what became of {}", row % 9))),
        ("c", Role::Text, texts(90, |row| format!("Ann Lee {row}"))),
        ("d", Role::Text, texts(90, |row| format!("{{\"a\": {}}}", row % 9))),
        ("e", Role::Text, texts(90, |row| "x".repeat(61) + &(row % 9).to_string())),
        ("f", Role::Dimension, texts(90, |row| format!("x{}", row % 9))),
        ("g", Role::Text, numbers(90, |row| row % 9)),
    ]);
    let sampled = export.sampled();
    let found: Vec<usize> = (0..9).filter(|at| sampled.names_things(*at)).collect();
    assert_eq!(found, [0]);
}

#[test]
fn the_number_of_sets_is_that_of_the_triangle_of_pascal() {
    let mut row = vec![1.0f64];
    for columns in 0..=40 {
        for (size, sets) in row.iter().enumerate() {
            let found = ln_sets(columns, size);
            assert!((found - sets.ln()).abs() < 1e-9, "{size} of {columns}: {found}");
        }
        let inner: Vec<f64> = row.windows(2).map(|pair| pair[0] + pair[1]).collect();
        row = [[1.0].as_slice(), inner.as_slice(), [1.0].as_slice()].concat();
    }
}

#[test]
fn a_key_has_texts_and_measures_rather_than_losing_most_rows() {
    let text = |row: i64| format!("a remark on what became of number {}", row / 3);
    let keys = |unique: bool| {
        let export = TestExport::new(&[
            ("kind", Role::Dimension, numbers(300, |row| row % 3)),
            ("remark", Role::Text, texts(300, text)),
            ("at", Role::Time, times(300, move |row| if unique { row / 2 } else { row / 150 })),
        ]);
        found(&export)
    };
    assert_eq!(keys(false), [("kind,remark".to_owned(), false)]);
    // The kind and the time leave few rows equal, or none.
    assert!(keys(true).iter().all(|(key, _)| !key.contains("remark")), "{:?}", keys(true));
}

#[test]
fn a_number_counts_within_its_log_even_if_the_logs_began_elsewhere() {
    // Entries of four logs in turn, of which each numbers its own.
    let begins = [4_500_000, 1_200_000, 8_000_000, 1_199_000];
    let entry = |row: i64| begins[(row % 4) as usize] + row / 4;
    let export = TestExport::new(&[
        ("log", None, texts(2_000, |row| format!("log {}", row % 4))),
        ("entry_index", None, numbers(2_000, entry)),
        ("certificate", None, texts(2_000, |row| format!("{:016x}", (row / 2 * 7_919) << 20))),
    ]);
    assert_eq!(natural(&export).first().map(String::as_str), Some("log,entry_index"));
}

#[test]
fn the_number_of_a_passenger_stands_for_the_name() {
    // Bookings of one to four passengers with two to five flights; names recur in other bookings.
    let mut rows: Vec<[i64; 4]> = Vec::new();
    for booking in 0..400 {
        for passenger in 0..1 + booking % 4 {
            for flight in 0..2 + booking * 7 % 4 {
                rows.push([booking, 1 + passenger, 1 + flight, (booking * 31 + passenger * 17) % 290]);
            }
        }
    }
    let column = |at: usize| numbers(rows.len() as i64, |row| rows[row as usize][at]);
    let name = texts(rows.len() as i64, |row| format!("person {}", rows[row as usize][3]));
    let export = TestExport::new(&[
        ("booking", None, column(0)),
        ("passenger_no", None, column(1)),
        ("flight_no", None, column(2)),
        ("passenger_name", None, name),
    ]);
    assert_eq!(natural(&export).first().map(String::as_str), Some("booking,passenger_no,flight_no"));
}
