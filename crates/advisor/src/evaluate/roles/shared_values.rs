//! Columns that refer to the same things: the sender and the receiver of a payment, the two teams
//! of a match.

use ahash::AHashSet;

use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::profile::Profile;

/// Fewest values that two columns must share.
const MIN_SHARED: usize = 10;
/// Smallest share of the values of the column with fewer values that both must have.
const MOSTLY_SHARED: f64 = 0.5;
/// Largest share of the rows with the same value in both columns; above it, one is a copy of the
/// other.
const MOSTLY_EQUAL: f64 = 0.5;
/// Maximum number of columns that are compared with each other.
const MAX_COMPARED: usize = 32;

/// Finds, for each column of texts that repeat, the first other one that has mostly the same
/// values. Numbers share values by chance.
pub(super) fn sharing_values(columns: &[Profile<'_>]) -> Vec<Option<usize>> {
    let can_share = |column: &Profile<'_>| {
        matches!(&column.form, Form::Text(words) if words.dates < MOSTLY_SHARED)
            && column.distinct >= MIN_SHARED
            && column.distinct * 2 <= column.rows
    };
    let compared: Vec<(usize, AHashSet<u64>)> = columns
        .iter()
        .enumerate()
        .filter(|(_, column)| can_share(column))
        .map(|(at, column)| (at, column.values.iter().copied().collect()))
        .take(MAX_COMPARED)
        .collect();
    let mut sharing = vec![None; columns.len()];
    for (at, own) in &compared {
        let shares = |(other, others): &&(usize, AHashSet<u64>)| {
            let shared = own.intersection(others).count();
            let fewer = own.len().min(others.len());
            other != at
                && shared >= MIN_SHARED
                && shared as f64 >= MOSTLY_SHARED * fewer as f64
                && equal_rows(columns, *at, *other) <= MOSTLY_EQUAL
        };
        if let Some(entry) = sharing.get_mut(*at) {
            *entry = compared.iter().find(shares).map(|(other, _)| *other);
        }
    }
    sharing
}

/// Share of the rows with the same value in two columns.
fn equal_rows(columns: &[Profile<'_>], a: usize, b: usize) -> f64 {
    let (Some(a), Some(b)) = (columns.get(a), columns.get(b)) else { return 0.0 };
    let equal = a.row_values().zip(b.row_values()).filter(|(a, b)| a == b).count();
    equal as f64 / a.rows.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray};

    use super::*;
    use crate::evaluate::roles::testing::with_profiles;

    /// The positions of the partners of columns of texts.
    fn partners(columns: &[Vec<String>]) -> Vec<Option<usize>> {
        let names: Vec<String> = (0..columns.len()).map(|at| format!("c{at}")).collect();
        let array = |texts: &Vec<String>| -> ArrayRef { Arc::new(StringArray::from_iter_values(texts)) };
        let columns: Vec<(&str, ArrayRef)> =
            names.iter().map(String::as_str).zip(columns.iter().map(array)).collect();
        with_profiles(&columns, sharing_values)
    }

    fn texts(rows: usize, value: impl Fn(usize) -> String) -> Vec<String> {
        (0..rows).map(value).collect()
    }

    #[test]
    fn parties_share_their_values() {
        let sender = texts(600, |row| format!("account {}", row * 7 % 40));
        let receiver = texts(600, |row| format!("account {}", (row * 11 + 3) % 60));
        let city = texts(600, |row| format!("city {}", row * 13 % 40));
        assert_eq!(partners(&[city, sender, receiver]), [None, Some(2), Some(1)]);
    }

    #[test]
    fn copies_few_values_and_ids_of_rows_are_no_parties() {
        let name = texts(600, |row| format!("market {}", row % 50));
        let spelled = texts(600, |row| format!("market {}{}", row % 50, if row % 50 < 5 { "!" } else { "" }));
        assert_eq!(partners(&[name.clone(), spelled]), [None, None], "one is mostly a copy of the other");
        let [yes, no] = [1, 3].map(|step| texts(600, move |row| format!("kind {}", row / step % 5)));
        assert_eq!(partners(&[yes, no]), [None, None], "a few kinds");
        let id = texts(600, |row| format!("post {row}"));
        let parent = texts(600, |row| format!("post {}", row / 4));
        assert_eq!(partners(&[id, parent]), [None, None], "a reference to another row");
        let other = texts(600, |row| format!("market {}", 40 + row * 7 % 50));
        assert_eq!(partners(&[name, other]), [None, None], "a fifth of the values");
    }
}
