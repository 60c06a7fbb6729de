//! Order of unique keys: the most natural ones first.

use ahash::AHashMap;

use crate::evaluate::candidates::natural_keys::UniqueKey;
use crate::evaluate::candidates::sampled_columns::SampledColumns;
use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::{Hint, denotes_staff, is_later};
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::{Role, RoleReport};

/// Weight of the logarithm of the repeats expected by chance, relative to the roles of the columns.
const WEIGHT_OF_EVIDENCE: f64 = 0.2;
/// Expected number of repeats above which more are no further evidence.
const AMPLE_EVIDENCE: f64 = 1_000.0;

/// If at most this share of the things have numbers that begin at 0 or 1, the numbers are not
/// counts.
const FEW_BEGIN: f64 = 0.2;

impl SampledColumns<'_> {
    /// Order of unique keys: natural keys first, then keys without times and without text, then the
    /// shortest; entities before dimensions, and then the columns that would repeat most often if
    /// they did not identify rows.
    pub(super) fn rank(&self, key: &UniqueKey) -> (bool, bool, usize, bool, usize, bool, f64, usize) {
        let is_dense = key.columns.len() > 2 && key.is_dense_among(self.rows);
        let weight = |at: &usize| match self.role(*at) {
            Role::RowId => 0.0,
            // A name is no better than the number of the line that it names.
            Role::Entity if self.roles.get(*at).is_some_and(|report| report.is_label) => 0.8,
            Role::Entity => 0.5,
            // A line that its name calls one needs no other evidence.
            Role::LineNumber if self.is_named_line(*at, &key.columns) => 0.4,
            Role::LineNumber => 0.7,
            Role::Time => 1.0,
            Role::Dimension => 1.2,
            Role::Constant | Role::Measure | Role::Text => 3.0,
        };
        let makeshift = key.columns.iter().filter(|at| !self.role(**at).can_identify_rows()).count();
        let sum: f64 = key.columns.iter().map(weight).sum();
        // A time that is not the event time is an accident in a key. So is a line number without
        // its parent.
        let strangeness = |at: &usize| match self.role(*at) {
            // Lines are numbered within it, such as those of the documents of each year.
            Role::Time if self.has_lines_in(*at, &key.columns) => 0,
            // The end of what the row begins is the worse choice.
            Role::Time => usize::from(self.is_other_time(*at)) + usize::from(self.has_earlier_time(*at)),
            Role::LineNumber => usize::from(
                (self.has_parents(*at) && !self.counts_within(*at, &key.columns)) || self.is_age(*at),
            ),
            Role::Entity => usize::from(self.is_address_beside_id(*at) || denotes_staff(self.name(*at))),
            // Where the content of the row is stored.
            Role::RowId => usize::from(self.roles.get(*at).is_some_and(|report| report.is_page)),
            _ => 0,
        };
        let strange: usize = key.columns.iter().map(strangeness).sum();
        let strange = strange + usize::from(self.spells_out_time(&key.columns));
        let repeats = if key.columns.len() > 1 { key.repeats_by_chance } else { 1.0 };
        let evidence = repeats.clamp(1.0, AMPLE_EVIDENCE).ln();
        let sum = sum - WEIGHT_OF_EVIDENCE * evidence;
        let position = key.columns.iter().sum();
        // Times distinguish rows by their many values; if a dense key does, that is no coincidence.
        let has_time = self.has_time(&key.columns);
        let length = key.columns.len() + usize::from(has_time) - usize::from(is_dense);
        // The hash of a content distinguishes rows until one content occurs twice.
        let is_digest = key.columns.len() == 1 && key.columns.iter().all(|at| self.is_digest(*at));
        let meets_once = !key.by_nature && self.meets_once(&key.columns);
        (!key.by_nature, is_digest, makeshift + strange, meets_once, length, has_time, sum, position)
    }

    /// Whether a column is named as a line number, and counts within other columns of a key.
    fn is_named_line(&self, at: usize, key: &[usize]) -> bool {
        self.columns.get(at).is_some_and(|column| column.hint == Some(Hint::Line))
            && self.counts_within(at, key)
    }

    /// Whether a column of a key counts within another one of its columns.
    fn has_lines_in(&self, at: usize, key: &[usize]) -> bool {
        let names_it = |line: &usize| {
            self.roles
                .get(*line)
                .is_some_and(|line| line.counts_within.iter().any(|parent| parent == self.name(at)))
        };
        key.iter().any(|line| names_it(line) && self.counts_within(*line, key))
    }

    /// Position of a key that replaces a time of the first, natural key: by one that determines it,
    /// such as the start of a shift rather than the day, or by the beginning of what it ends.
    pub(super) fn with_finer_time(&self, keys: &[UniqueKey]) -> Option<usize> {
        let first = keys.first().filter(|key| key.by_nature)?;
        let is_finer = |key: &UniqueKey, at: usize, other: usize| {
            self.role(at) == Role::Time
                && self.role(other) == Role::Time
                && !is_later(self.name(at))
                && (is_later(self.name(other)) || (key.by_nature && self.determines(at, other)))
                && !self.has_lines_in(other, &first.columns)
        };
        keys.iter().position(|key| {
            let (own, replaced) = (key.without(first), first.without(key));
            matches!((own.as_slice(), replaced.as_slice()), ([own], [replaced]) if is_finer(key, *own, *replaced))
        })
    }

    /// Whether several columns of a key only say together what a time says: a flag for each year.
    fn spells_out_time(&self, key: &[usize]) -> bool {
        let follow_from = |time: usize| {
            let follows = |at: &&usize| self.role(**at) == Role::Dimension && self.determines(time, **at);
            key.iter().filter(follows).count()
        };
        let is_time =
            |at: &usize| self.role(*at) == Role::Time && self.can_be_in_key(*at) && !key.contains(at);
        (0..self.columns.len()).filter(is_time).any(|time| follow_from(time) > 1)
    }

    /// Whether a column has addresses of things that have ids.
    fn is_address_beside_id(&self, at: usize) -> bool {
        let is_id = |(other, report): (usize, &RoleReport)| {
            let is_named = self.columns.get(other).is_some_and(Profile::is_named_id);
            is_named && report.role == Role::Entity && !report.is_address && self.can_be_in_key(other)
        };
        self.roles.get(at).is_some_and(|report| report.is_address) && self.roles.iter().enumerate().any(is_id)
    }

    /// Whether a column is the hash of a content, and another column numbers rows.
    fn is_digest(&self, at: usize) -> bool {
        let Some(column) = self.columns.get(at) else { return false };
        let is_line = |at: usize| self.role(at) == Role::LineNumber && self.has_parents(at);
        let has_lines = (0..self.columns.len()).any(is_line);
        let is_long =
            matches!(&column.form, Form::Text(words) if words.opaque > 0.9 && words.mean_chars >= 40.0);
        has_lines && (is_long || column.hint == Some(Hint::Attribute))
    }

    /// Whether a column numbers the rows within others.
    fn has_parents(&self, at: usize) -> bool {
        self.roles.get(at).is_some_and(|report| !report.counts_within.is_empty())
    }

    /// Whether the numbers of each thing rise with time, but seldom start at 0 or 1: its age, or
    /// its hours of operation.
    fn is_age(&self, at: usize) -> bool {
        let is_named = |column: &&Profile<'_>| matches!(column.hint, Some(Hint::Line | Hint::Identifier));
        let column = self.columns.get(at).filter(|column| !is_named(column));
        let Some(numbers) = column.and_then(|column| column.numbers.as_ref()) else { return false };
        let parents = self.roles.get(at).map(|report| report.counts_within.as_slice()).unwrap_or_default();
        let [parent] = parents else { return false };
        let Some(parent) = self.columns.iter().find(|column| column.column.name == *parent) else {
            return false;
        };
        if !(0..self.columns.len()).any(|other| self.is_time(other)) {
            return false;
        }
        let mut least: AHashMap<u32, i128> = AHashMap::new();
        for (thing, number) in parent.codes.iter().zip(numbers) {
            let known = least.entry(*thing).or_insert(*number);
            *known = (*known).min(*number);
        }
        let begin = least.values().filter(|number| **number <= 1).count();
        begin as f64 <= FEW_BEGIN * least.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::candidates::testing::{TestExport, numbers, times};

    fn key(columns: &[usize], by_nature: bool) -> UniqueKey {
        UniqueKey { columns: columns.to_vec(), repeats_by_chance: 30.0, by_nature }
    }

    #[test]
    fn natural_short_keys_of_things_come_before_others() {
        let export = TestExport::new(&[
            ("a", Role::Entity, numbers(400, |row| row % 20)),
            ("b", Role::Entity, numbers(400, |row| row / 20)),
            ("c", Role::Dimension, numbers(400, |row| row % 7)),
            ("d", Role::Measure, numbers(400, |row| row * row % 301)),
            ("at", Role::Time, times(400, |row| row)),
            ("ended_at", Role::Time, times(400, |row| row + row % 3)),
        ]);
        let sampled = export.sampled();
        // From the best to the worst.
        let keys = [
            key(&[0], true),
            key(&[0, 1], true),
            key(&[0, 2], true),
            key(&[0, 1, 2], true),
            key(&[0, 1, 4], true),
            key(&[0, 1, 2, 3], true),
            key(&[0, 5], true),
            key(&[0], false),
        ];
        let of = |key: &UniqueKey| sampled.rank(key);
        for pair in keys.windows(2) {
            assert!(of(&pair[0]) < of(&pair[1]), "{pair:?}");
        }
        let likely = UniqueKey { repeats_by_chance: 5_000.0, ..key(&[1, 2], true) };
        assert!(of(&likely) < of(&key(&[0, 2], true)), "more evidence outweighs the position");
    }

    #[test]
    fn the_time_that_determines_another_one_replaces_it() {
        // A shift starts at one of four moments of a day.
        let export = TestExport::new(&[
            ("worker", Role::Entity, numbers(800, |row| row % 10)),
            ("day", Role::Time, times(800, |row| row / 80 * 86_400)),
            ("start", Role::Time, times(800, |row| row / 20 * 21_600)),
        ]);
        let sampled = export.sampled();
        let (of_day, of_start) = (key(&[0, 1], true), key(&[0, 2], true));
        assert_eq!(sampled.with_finer_time(&[of_day.clone(), of_start.clone()]), Some(1));
        assert_eq!(sampled.with_finer_time(&[of_start.clone(), of_day.clone()]), None);
        assert_eq!(sampled.with_finer_time(&[of_day, key(&[0, 2], false)]), None);
        assert_eq!(sampled.with_finer_time(&[key(&[0, 1], false), of_start]), None);
        assert_eq!(sampled.with_finer_time(&[]), None);
        // Most prices have no end yet, which makes those that have one look natural.
        let export = TestExport::new(&[
            ("tariff", Role::Entity, numbers(800, |row| row % 100)),
            ("valid_from", Role::Time, times(800, |row| row / 100 * 86_400)),
            ("valid_to", Role::Time, times(800, |row| (row / 100).max(3) * 86_400)),
        ]);
        let sampled = export.sampled();
        assert_eq!(sampled.with_finer_time(&[key(&[0, 2], true), key(&[0, 1], false)]), Some(1));
        assert_eq!(sampled.with_finer_time(&[key(&[0, 1], true), key(&[0, 2], true)]), None);
    }
}
