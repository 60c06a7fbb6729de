//! Names that occur twice in the header of a text file.

use std::collections::HashSet;

/// A column whose name an earlier one has, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RenamedColumn {
    /// Name in the header.
    pub(super) name: String,
    /// The name that it gets.
    pub(super) new_name: String,
}

/// Appends a number to names that earlier columns have: `note`, `note_2`, `note_3`. Columns without
/// a name stay as they are.
pub(super) fn distinct_names(names: Vec<String>) -> (Vec<String>, Vec<RenamedColumn>) {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let (mut seen, mut renamed) = (HashSet::new(), Vec::new());
    let distinct = names.into_iter().map(|name| {
        if name.is_empty() || seen.insert(name.clone()) {
            return name;
        }
        let free = (2u64..).map(|number| format!("{name}_{number}")).find(|new| !taken.contains(new));
        let new_name = free.unwrap_or_else(|| name.clone());
        taken.insert(new_name.clone());
        renamed.push(RenamedColumn { name, new_name: new_name.clone() });
        new_name
    });
    (distinct.collect(), renamed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn distinct(names: &[&str]) -> Vec<String> {
        distinct_names(names.iter().map(|name| (*name).to_owned()).collect()).0
    }

    #[test]
    fn later_columns_get_numbers_that_no_column_has() {
        assert_eq!(distinct(&["a", "b", "a", "a"]), ["a", "b", "a_2", "a_3"]);
        assert_eq!(distinct(&["a", "a", "a_2", "a_2"]), ["a", "a_3", "a_2", "a_2_2"]);
        assert_eq!(distinct(&["", "a", "", "A"]), ["", "a", "", "A"]);
    }

    proptest! {
        #[test]
        fn all_names_differ_and_first_ones_are_kept(names in prop::collection::vec("(a|b|a_2|a_2_2|a_3|b_2)", 0..12)) {
            let (distinct, renamed) = distinct_names(names.clone());
            prop_assert_eq!(distinct.iter().collect::<HashSet<_>>().len(), names.len());
            let mut seen = HashSet::new();
            let mut renamed = renamed.into_iter();
            for (name, new) in names.into_iter().zip(distinct) {
                if seen.insert(name.clone()) {
                    prop_assert_eq!(name, new);
                } else {
                    prop_assert_eq!(renamed.next(), Some(RenamedColumn { name, new_name: new }));
                }
            }
            prop_assert_eq!(renamed.next(), None);
        }
    }
}
