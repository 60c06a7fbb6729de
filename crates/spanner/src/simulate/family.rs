//! Rows of a parent and its children: which belong together, and which Spanner would reject.

use ahash::{AHashMap, AHashSet};
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, Scalar};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{and, cast};

use crate::simulate::error::SimulateError;
use crate::simulate::key::KeyColumn;
use evenkeel_model::remark::Remark;
use evenkeel_stats::sketch::key_identities;

/// Keys of the parents that arrived, and of the parents that children refer to.
#[derive(Default)]
pub(super) struct Family {
    /// Number of rows, of parents and children.
    pub(super) rows: u64,
    /// Number of rows of one tree, whose root has the key `root`.
    pub(super) tree_rows: u64,
    root: Vec<ArrayRef>,
    parents: AHashSet<u64>,
    repeated: u64,
    children: AHashMap<u64, u64>,
}

impl Family {
    /// Creates an empty family, which counts the rows of the tree whose root has the given key.
    pub(super) fn new(root: Vec<ArrayRef>) -> Self {
        Self { root, ..Self::default() }
    }

    /// Adds rows of parents or of children; `key` is the part that is the key of the parent.
    pub(super) fn add(
        &mut self,
        is_parent: bool,
        key: &[KeyColumn],
        batch: &RecordBatch,
    ) -> Result<(), SimulateError> {
        self.rows += batch.num_rows() as u64;
        self.tree_rows += rows_with(batch, key, &self.root)?;
        for identity in key_identities(key.iter().filter_map(|part| batch.columns().get(part.column))) {
            match is_parent {
                true => self.repeated += u64::from(!self.parents.insert(identity)),
                false => *self.children.entry(identity).or_default() += 1,
            }
        }
        Ok(())
    }

    /// Returns notes on rows that Spanner would reject.
    pub(super) fn notes(&self) -> Vec<Remark> {
        let mut notes = Vec::new();
        if self.repeated > 0 {
            notes.push(Remark::new(
                "parents_repeated",
                format!(
                    "{} parents have a key that exists already: Spanner refuses to insert them; they \
                        count as writes here",
                    self.repeated
                ),
            ));
        }
        let orphans = self.children.iter().filter(|(root, _)| !self.parents.contains(root));
        let orphans: u64 = orphans.map(|(_, rows)| rows).sum();
        if orphans > 0 {
            notes.push(Remark::new(
                "children_without_parent",
                format!(
                    "{orphans} children have no parent: Spanner refuses to insert them; they count as \
                        writes here"
                ),
            ));
        }
        notes
    }
}

/// Counts the rows whose key has the given values.
fn rows_with(batch: &RecordBatch, key: &[KeyColumn], values: &[ArrayRef]) -> Result<u64, SimulateError> {
    let mut same: Option<BooleanArray> = None;
    for (part, value) in key.iter().zip(values) {
        let Some(array) = batch.columns().get(part.column) else { continue };
        let value = cast(value, array.data_type())?;
        let equal = not_distinct(array, &Scalar::new(value))?;
        same = Some(match same {
            Some(same) => and(&same, &equal)?,
            None => equal,
        });
    }
    Ok(same.map_or(0, |same| same.true_count() as u64))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    fn batch(rows: &[(Option<i64>, &str)]) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>());
        let texts: ArrayRef = Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>());
        RecordBatch::try_from_iter([("number", numbers), ("text", texts)]).unwrap()
    }

    fn key(columns: &[usize]) -> Vec<KeyColumn> {
        columns.iter().map(|column| KeyColumn { column: *column, descending: false }).collect()
    }

    proptest! {
        #[test]
        fn orphans_and_repeated_parents_are_those_of_a_join(
            parents in proptest::collection::vec((proptest::option::of(0i64..6), proptest::sample::select(vec!["a", "b"])), 1..12),
            children in proptest::collection::vec((proptest::option::of(0i64..6), proptest::sample::select(vec!["a", "b"])), 1..12),
        ) {
            let root = *children.last().unwrap();
            let mut family = Family::new(batch(&[root]).columns().to_vec());
            let key = key(&[0, 1]);
            // Children may arrive before their parents.
            family.add(false, &key, &batch(&children)).unwrap();
            family.add(true, &key, &batch(&parents)).unwrap();
            let tree = parents.iter().chain(&children).filter(|row| **row == root).count() as u64;
            prop_assert_eq!((family.rows, family.tree_rows), ((parents.len() + children.len()) as u64, tree));
            let repeated = (0..parents.len()).filter(|at| parents[..*at].contains(&parents[*at])).count();
            let orphans = children.iter().filter(|child| !parents.contains(child)).count();
            let notes = family.notes();
            let starts = |start: String| notes.iter().any(|note| note.text().starts_with(&start));
            prop_assert_eq!(starts(format!("{repeated} parents have a key")), repeated > 0);
            prop_assert_eq!(starts(format!("{orphans} children have no parent")), orphans > 0);
            prop_assert_eq!(notes.len(), usize::from(repeated > 0) + usize::from(orphans > 0));
        }
    }

    #[test]
    fn keys_of_other_types_are_compared_by_their_values() {
        let mut family = Family::new(vec![Arc::new(StringArray::from(vec!["7"]))]);
        family.add(false, &key(&[0]), &batch(&[(Some(7), "x"), (None, "x"), (Some(70), "x")])).unwrap();
        assert_eq!(family.tree_rows, 1);
    }
}
