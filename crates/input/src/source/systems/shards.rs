//! Files whose names mark them as parts of one set: `rows.avro-00002-of-00010`.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::error::SourceError;
use crate::source::systems::listing::ListedFile;

/// Checks that each set is complete.
///
/// # Errors
/// [`SourceError::MissingParts`] if some are missing.
pub(in crate::source) fn check<'a>(files: impl Iterator<Item = &'a ListedFile>) -> Result<(), SourceError> {
    let mut sets: BTreeMap<(&str, &str, u64), (BTreeSet<u64>, String)> = BTreeMap::new();
    for file in files {
        if let Some((before, number, count, after)) = part_of(&file.path) {
            let (numbers, _) =
                sets.entry((before, after, count)).or_insert_with(|| (BTreeSet::new(), file.input.name()));
            numbers.insert(number);
        }
    }
    for ((_, _, count), (numbers, file)) in sets {
        if let Some(first) = (0..count).find(|number| !numbers.contains(number)) {
            let missing = count.saturating_sub(numbers.len() as u64);
            return Err(SourceError::MissingParts { file, count, missing, first });
        }
    }
    Ok(())
}

/// Splits a name with `-NNNNN-of-NNNNN` in it: the prefix, the two numbers, and the suffix.
pub(super) fn part_of(name: &str) -> Option<(&str, u64, u64, &str)> {
    let (before, after) = name.rsplit_once("-of-")?;
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let (count, after) = after.split_at(digits);
    let (before, number) = before.rsplit_once('-')?;
    let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(count) || !is_number(number) {
        return None;
    }
    Some((before, number.parse().ok()?, count.parse().ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_recognised_by_both_numbers() {
        assert_eq!(part_of("a/T.avro-00002-of-00010"), Some(("a/T.avro", 2, 10, "")));
        assert_eq!(part_of("rows-00000-of-00001.csv.gz"), Some(("rows", 0, 1, ".csv.gz")));
        for name in ["rows.csv", "out-of-memory.csv", "a-1-of-2.csv", "a-00001-of-x.csv"] {
            assert_eq!(part_of(name), None, "{name}");
        }
    }
}
