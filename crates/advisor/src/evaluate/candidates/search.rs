//! Search for candidates in rows from all over the inputs, each with the reason why it was kept or
//! dropped. The pass over all rows confirms or withdraws what it can.

use std::collections::{HashMap, HashSet};

use ahash::AHashSet;
use arrow::array::{Array as _, RecordBatch};
use serde::Serialize;

use evenkeel_input::source::RowsAcross;
use evenkeel_model::table::{Candidate, Column, ColumnType};
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::Function;
use evenkeel_stats::sketch::{column_identities, combine};

/// Maximum number of rows that are inspected.
pub(crate) const ROWS_LOOKED_AT: usize = 100_000;
/// Approximate limit on the bytes of these rows, if rows are wide.
pub(crate) const BYTES_LOOKED_AT: usize = 64 << 20;
/// Maximum number of single columns that are evaluated.
const MOST_SINGLES: usize = 6;
/// Maximum number of columns that are paired with the time, and with each other.
const MOST_PAIRED: usize = 3;
/// Maximum number of last columns that are tried if several make a key unique.
const MOST_VARIANTS: usize = 3;
/// Maximum number of columns of a primary key that is found.
const MOST_KEY_COLUMNS: usize = 4;

/// Candidate that was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsideredCandidate {
    /// Columns of the key.
    pub key: Vec<String>,
    /// Whether it is a candidate for the partition key or the primary key.
    pub role: Role,
    /// Whether it is evaluated.
    pub kept: bool,
    /// Reason why it was kept or dropped.
    pub reason: String,
    /// Whether it was dropped because the inspected rows have too few values, and these are not all
    /// rows.
    #[serde(skip)]
    pub(crate) too_few_values: bool,
}

/// Purpose of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Determines which partition a row goes to.
    PartitionKey,
    /// Determines the order of rows, and makes each one unique.
    PrimaryKey,
}

/// One column of the inspected rows.
struct Looked<'a> {
    column: &'a Column,
    identities: Vec<u64>,
    distinct: usize,
    /// Least number of values that the export probably has, by the values that places have in
    /// common.
    likely: f64,
    nulls: usize,
}

/// Search for candidates in rows of an export.
pub(crate) struct Finder<'a> {
    columns: Vec<Looked<'a>>,
    rows: usize,
    /// Whether these are all rows.
    whole: bool,
    time: Option<String>,
    fewest_partitions: usize,
    function: Function,
}

/// Whether a system accepts keys of a type: YDB, or the system of `function`.
fn takes(function: Function, column_type: ColumnType) -> bool {
    match function {
        Function::Ydb(_) => column_type.is_key_type(),
        Function::System(system) => {
            !matches!(column_type, ColumnType::Decimal { .. }) && system.refuses(column_type).is_none()
        }
    }
}

impl<'a> Finder<'a> {
    /// Inspects rows that have the columns `columns`.
    pub(crate) fn new(
        columns: &'a [Column],
        rows: &RowsAcross,
        time: Option<&str>,
        partitions: &[PartitionCount],
        function: Function,
    ) -> Self {
        let looked = |(index, column): (usize, &'a Column)| {
            let batches = &rows.batches;
            let (mut identities, mut places) = (Vec::new(), Vec::new());
            let mut nulls = 0;
            // Types that cannot be in a key need no inspection.
            if takes(function, column.column_type) {
                for array in batches.iter().filter_map(|batch| batch.columns().get(index)) {
                    identities.extend(column_identities(array));
                    places.push(array.len());
                    nulls += array.null_count();
                }
            }
            let distinct = distinct_of(&identities);
            let likely =
                if rows.extent.whole { distinct as f64 } else { likely_values(&identities, &places) };
            Looked { column, distinct, likely, identities, nulls }
        };
        let columns: Vec<Looked<'a>> = columns.iter().enumerate().map(looked).collect();
        Self {
            rows: rows.batches.iter().map(RecordBatch::num_rows).sum(),
            whole: rows.extent.whole,
            time: time.map(str::to_owned),
            fewest_partitions: partitions.iter().map(|count| count.len()).min().unwrap_or(1),
            columns,
            function,
        }
    }

    fn is_time(&self, looked: &Looked<'_>) -> bool {
        self.time.as_deref() == Some(looked.column.name.as_str())
    }

    /// Returns why a column cannot be in any key; `None` if it can.
    fn obstacle(&self, looked: &Looked<'_>) -> Option<String> {
        let column_type = looked.column.column_type;
        if !takes(self.function, column_type) {
            let who = self.function.of_ydb().map_or_else(|| self.function.to_string(), |_| "YDB".to_owned());
            return Some(format!("{who} takes no {column_type} in a key"));
        }
        if looked.nulls > 0 {
            let (nulls, rows) = (looked.nulls, self.rows_in_words());
            return Some(format!("{nulls} of {rows} have NULL, and key columns are NOT NULL"));
        }
        self.is_constant(looked).then(|| format!("all of {} have one value", self.rows_in_words()))
    }

    fn is_constant(&self, looked: &Looked<'_>) -> bool {
        looked.nulls == 0 && looked.distinct == 1 && self.rows > 1 && !looked.column.column_type.is_time()
    }

    fn rows_in_words(&self) -> String {
        if self.whole { format!("the {} rows", self.rows) } else { format!("{} sampled rows", self.rows) }
    }

    /// Returns the columns that can be in a key, those with the most values first.
    fn usable(&self) -> Vec<&Looked<'a>> {
        let mut usable: Vec<&Looked<'a>> =
            self.columns.iter().filter(|looked| self.obstacle(looked).is_none()).collect();
        // The sort is stable: columns with equally many values stay in the order of the export.
        usable.sort_by_key(|looked| std::cmp::Reverse(looked.distinct));
        usable
    }

    /// Finds candidates for the partition key: single columns and pairs, and prefixes of primary
    /// keys. If `primary_keys` were given, only their columns are used, because a partition key is
    /// part of a primary key.
    pub(crate) fn partition_keys(
        &self,
        primary_keys: &[Candidate],
        found_keys: &[Candidate],
    ) -> Vec<ConsideredCandidate> {
        let within: HashSet<&str> =
            primary_keys.iter().flat_map(Candidate::parts).map(|part| part.column.as_str()).collect();
        let mut found = Considerations::new(Role::PartitionKey);
        let mut singles = 0;
        for looked in self.columns.iter().filter(|looked| self.obstacle(looked).is_some()) {
            let (key, reason) = ([looked.column.name.as_str()], self.obstacle(looked).unwrap_or_default());
            if self.is_constant(looked) && takes(self.function, looked.column.column_type) {
                found.drop_for_few_values(&key, reason, !self.whole);
            } else {
                found.drop(&key, reason);
            }
        }
        let mut paired: Vec<&str> = Vec::new();
        for looked in self.usable() {
            let name = looked.column.name.as_str();
            let values = looked.distinct;
            if !within.is_empty() && !within.contains(name) {
                found.drop(&[name], "it is in none of the primary keys that were given".to_owned());
            } else if self.is_time(looked) {
                found.keep(
                    &[name],
                    format!("the time: even only if it is fine, {values} values in {}", self.rows_in_words()),
                );
            } else if looked.column.column_type.is_time() {
                found.drop(
                    &[name],
                    "it follows time: all rows of a moment would go to one partition".to_owned(),
                );
            } else if looked.likely < self.fewest_partitions as f64 && values < self.rows {
                found.drop_for_few_values(
                    &[name],
                    format!(
                        "cannot fill {} partitions: {values} values in {}",
                        self.fewest_partitions,
                        self.rows_in_words()
                    ),
                    !self.whole,
                );
            } else if singles >= MOST_SINGLES {
                found.drop(
                    &[name],
                    format!(
                        "{MOST_SINGLES} columns with more values come first; name it with --partition-key"
                    ),
                );
            } else {
                singles += 1;
                paired.push(name);
                found.keep(&[name], format!("{values} values in {}", self.rows_in_words()));
            }
        }
        if let Some(time) = self.time.as_deref().filter(|time| within.is_empty() || within.contains(time)) {
            for name in paired.iter().take(MOST_PAIRED) {
                found.keep(&[name, time], "with the time, which splits heavy values".to_owned());
            }
        }
        // A value that would overfill a partition is split by a column with many values.
        let heavy = self.usable().into_iter().filter(|looked| {
            heaviest_of(&looked.identities) * self.fewest_partitions > self.rows
                && paired.contains(&looked.column.name.as_str())
        });
        for looked in heavy {
            let name = looked.column.name.as_str();
            if let Some(other) = paired.iter().find(|other| **other != name) {
                found.keep(&[name, other], "with a column that splits its heavy values".to_owned());
            }
        }
        for (position, first) in paired.iter().take(MOST_PAIRED).enumerate() {
            for second in paired.iter().take(MOST_PAIRED).skip(position + 1) {
                found.keep(&[first, second], "a pair of columns with many values".to_owned());
            }
        }
        for key in primary_keys.iter().filter(|key| key.is_plain()) {
            for length in 1..=key.parts().len() {
                let prefix: Vec<&str> =
                    key.parts().iter().take(length).map(|part| part.column.as_str()).collect();
                found.keep(&prefix, "a prefix of a primary key that was given".to_owned());
            }
        }
        // In another order, the columns hash differently but spread alike.
        for key in found_keys.iter().take(1) {
            let names = key.columns();
            for length in 2..=names.len() {
                let prefix: Vec<&str> = names.iter().take(length).map(String::as_str).collect();
                let known = found.all.iter().any(|known| {
                    known.key.len() == length && known.key.iter().all(|name| prefix.contains(&name.as_str()))
                });
                if !known {
                    found.keep(&prefix, "a prefix of a primary key that was found".to_owned());
                }
            }
        }
        found.all
    }

    /// Finds candidates for the primary key: the fewest columns that distinguish the inspected
    /// rows, with the time first and second. Each contains the partition key if one was named.
    pub(crate) fn primary_keys(&self, partition_key: Option<&Candidate>) -> Vec<ConsideredCandidate> {
        let mut found = Considerations::new(Role::PrimaryKey);
        let usable = self.usable();
        let time = usable.iter().find(|looked| self.is_time(looked)).copied();
        let wanted = partition_key.filter(|key| key.is_plain()).map(Candidate::columns).unwrap_or_default();
        let wanted: Vec<&Looked<'a>> = wanted
            .iter()
            .filter_map(|name| self.columns.iter().find(|looked| looked.column.name == *name))
            .collect();
        let mut swapped_once = false;
        let start: Vec<&Looked<'a>> =
            time.into_iter().chain(wanted.iter().copied().filter(|w| !self.is_time(w))).collect();
        // A column with a distinct value in every row distinguishes rows by nature, not by chance.
        let id = usable.iter().find(|looked| {
            looked.distinct == self.rows && self.rows > 1 && !looked.column.column_type.is_time()
        });
        if let (Some(time), Some(id)) = (time, id) {
            let names = names_once([time].into_iter().chain(wanted.iter().copied()).chain([*id]));
            found.keep(&names, "the time, and a column that has a value of its own in each row".to_owned());
        }
        for key in self.until_unique(start, &usable) {
            let names: Vec<&str> = key.iter().map(|looked| looked.column.name.as_str()).collect();
            let left = self.rows - distinct_of(&identities_of(&key));
            let unique = match left {
                0 => format!("tells {} apart", self.rows_in_words()),
                left => format!("leaves {left} of {} with a key that another has", self.rows_in_words()),
            };
            if time.is_none() {
                found.keep(&names, unique);
                continue;
            }
            found.keep(&names, format!("in the order of time; {unique}"));
            if let ([time, second, rest @ ..], false) =
                (names.as_slice(), std::mem::replace(&mut swapped_once, true))
            {
                let swapped: Vec<&str> = [*second, *time].iter().chain(rest).copied().collect();
                found.keep(
                    &swapped,
                    "the same with the time second, for reading one value's history".to_owned(),
                );
            }
        }
        if let Some(looked) = id.filter(|_| time.is_none()) {
            let names = names_once([*looked].into_iter().chain(wanted.iter().copied()));
            found.keep(&names, format!("each of {} has its own value", self.rows_in_words()));
        }
        found.all
    }

    /// Adds the columns that distinguish the most rows, until all are distinct or there are enough
    /// columns. If several last columns do that, each gives a key, those with the fewest values
    /// first: they are names of kinds rather than measurements.
    fn until_unique<'b>(
        &self,
        mut key: Vec<&'b Looked<'a>>,
        usable: &[&'b Looked<'a>],
    ) -> Vec<Vec<&'b Looked<'a>>> {
        // The time may be fine enough to distinguish rows by itself; a key that reads use contains
        // something else too.
        if let ([only], true) = (key.as_slice(), self.time.is_some()) {
            let others = usable.iter().filter(|other| other.column != only.column);
            let second = others.clone().find(|other| other.distinct < self.rows).or(others.clone().next());
            if only.distinct == self.rows {
                key.extend(second);
            }
        }
        let mut distinct = distinct_of(&identities_of(&key));
        while distinct < self.rows && key.len() < MOST_KEY_COLUMNS {
            let others = usable.iter().filter(|other| !key.iter().any(|known| known.column == other.column));
            let with = |other: &&'b Looked<'a>| [key.as_slice(), std::slice::from_ref(other)].concat();
            let tried: Vec<(usize, &'b Looked<'a>)> =
                others.map(|other| (distinct_of(&identities_of(&with(other))), *other)).collect();
            let Some(most) =
                tried.iter().map(|(distinct, _)| *distinct).max().filter(|most| *most > distinct)
            else {
                break;
            };
            let best = tried.iter().filter(|(distinct, _)| *distinct == most).map(|(_, other)| *other);
            if most == self.rows {
                let mut last: Vec<&'b Looked<'a>> = best.collect();
                last.sort_by_key(|looked| looked.distinct);
                return last.iter().take(MOST_VARIANTS).map(with).collect();
            }
            key.extend(best.take(1));
            distinct = most;
        }
        if key.is_empty() { Vec::new() } else { vec![key] }
    }
}

/// Returns the names of columns, each once.
fn names_once<'b>(columns: impl Iterator<Item = &'b Looked<'b>>) -> Vec<&'b str> {
    let mut names = Vec::new();
    for name in columns.map(|looked| looked.column.name.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn identities_of(key: &[&Looked<'_>]) -> Vec<u64> {
    combine(&key.iter().map(|looked| looked.identities.as_slice()).collect::<Vec<_>>())
}

/// Candidates considered so far, each once.
struct Considerations {
    role: Role,
    all: Vec<ConsideredCandidate>,
}

impl Considerations {
    fn new(role: Role) -> Self {
        Self { role, all: Vec::new() }
    }

    fn add(&mut self, key: &[&str], kept: bool, reason: String) {
        let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
        match self.all.iter_mut().find(|known| known.key == key) {
            // A given prefix is evaluated, whatever else speaks against it.
            Some(known) if kept && !known.kept => {
                *known = ConsideredCandidate { kept, reason, ..known.clone() }
            }
            Some(_) => {}
            None => self.all.push(ConsideredCandidate {
                key,
                role: self.role,
                kept,
                reason,
                too_few_values: false,
            }),
        }
    }

    fn drop_for_few_values(&mut self, key: &[&str], reason: String, may_change: bool) {
        self.drop(key, reason);
        if let Some(last) = self.all.last_mut().filter(|last| last.key == key) {
            last.too_few_values = may_change;
        }
    }

    fn keep(&mut self, key: &[&str], reason: String) {
        self.add(key, true, reason);
    }

    fn drop(&mut self, key: &[&str], reason: String) {
        self.add(key, false, reason);
    }
}

/// Returns the number of rows with the most frequent identity.
fn heaviest_of(identities: &[u64]) -> usize {
    let mut sorted = identities.to_vec();
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0)
}

fn distinct_of(identities: &[u64]) -> usize {
    identities.iter().collect::<HashSet<_>>().len()
}

/// Estimates the least number of values of a column from some of its places, by Chao's estimator
/// ("Estimating the population size for capture-recapture data with unequal catchability", 1987).
/// If rows are sorted by the column, most values are in one place only, and there are many more; if
/// each value is in many places, there are no others.
fn likely_values(identities: &[u64], places: &[usize]) -> f64 {
    let mut places_with: HashMap<u64, u64> = HashMap::new();
    let mut rest = identities;
    for rows in places {
        let (place, behind) = rest.split_at((*rows).min(rest.len()));
        rest = behind;
        place
            .iter()
            .collect::<HashSet<_>>()
            .into_iter()
            .for_each(|value| *places_with.entry(*value).or_default() += 1);
    }
    let in_places = |number: u64| places_with.values().filter(|places| **places == number).count() as f64;
    let (once, twice) = (in_places(1), in_places(2));
    places_with.len() as f64 + once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0))
}

/// Counter, in the pass over all rows, of the values of columns that were dropped because the
/// inspected rows have too few.
#[derive(Debug)]
pub(crate) struct FewValues {
    columns: Vec<Counted>,
    /// Number of values from which a column would not have been dropped.
    enough: usize,
    rows: u64,
}

#[derive(Debug)]
struct Counted {
    name: String,
    position: usize,
    values: AHashSet<u64>,
    /// Value of the last row, which the next row usually has too.
    last: Option<u64>,
}

impl FewValues {
    pub(crate) fn new(
        considered: &[ConsideredCandidate],
        columns: &[Column],
        partitions: &[PartitionCount],
    ) -> Self {
        let doubtful = considered.iter().filter(|candidate| candidate.too_few_values && !candidate.kept);
        let counted = doubtful.filter_map(|candidate| {
            let name = candidate.key.first()?;
            let position = columns.iter().position(|column| column.name == *name)?;
            Some(Counted { name: name.clone(), position, values: AHashSet::new(), last: None })
        });
        let enough = partitions.iter().map(|count| count.len()).min().unwrap_or(1).max(2);
        Self { columns: counted.collect(), enough, rows: 0 }
    }

    /// Drops the columns that the pass does not read.
    pub(crate) fn keep_only(&mut self, asked: &[bool]) {
        self.columns.retain(|column| asked.get(column.position) == Some(&true));
    }

    /// Counts rows, in any order.
    pub(crate) fn count(&mut self, batches: &[RecordBatch]) {
        for batch in batches {
            self.rows += batch.num_rows() as u64;
            for column in &mut self.columns {
                let Some(array) = batch.columns().get(column.position) else { continue };
                if column.values.len() >= self.enough {
                    continue;
                }
                for value in column_identities(array) {
                    if column.last != Some(value) {
                        column.values.insert(value);
                        column.last = Some(value);
                    }
                }
            }
        }
    }

    /// Updates the reason of each column from the values in all rows, and returns the columns that
    /// should not have been dropped.
    pub(crate) fn settle(self, considered: &mut [ConsideredCandidate]) -> Vec<String> {
        let mut withdrawn = Vec::new();
        for Counted { name, values, .. } in self.columns {
            let Some(candidate) =
                considered.iter_mut().find(|c| c.too_few_values && c.key == [name.as_str()])
            else {
                continue;
            };
            let (values, rows) = (values.len(), self.rows);
            candidate.reason = if values >= self.enough {
                withdrawn.push(name.clone());
                format!(
                    "{}, but the {rows} rows have {} or more: name it with --partition-key to have it evaluated",
                    candidate.reason, self.enough
                )
            } else if values <= 1 {
                format!("all of the {rows} rows have one value")
            } else {
                format!("cannot fill {} partitions: {values} values in the {rows} rows", self.enough)
            };
        }
        withdrawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_input::source::Extent;
    use evenkeel_testkit::{AdEvents, ad_events_definition};

    fn found(
        primary_keys: &[&str],
        partition_key: Option<&str>,
    ) -> (Vec<ConsideredCandidate>, Vec<ConsideredCandidate>) {
        let columns = ad_events_definition().unwrap().columns;
        let options = AdEvents { rows: 20_000, duplicate_share: 0.0, ..AdEvents::default() };
        let batches: Vec<RecordBatch> = options.batches(5_000).unwrap().map(Result::unwrap).collect();
        let partitions = [PartitionCount::new(16).unwrap()];
        let extent = Extent { rows: 20_000, whole: true, places: 1, inputs: 1, of_inputs: 1 };
        let rows = RowsAcross { batches, extent };
        let finder = Finder::new(&columns, &rows, Some("event_timestamp"), &partitions, Function::default());
        let primary_keys: Vec<Candidate> = primary_keys.iter().map(|key| key.parse().unwrap()).collect();
        let partition_key = partition_key.map(|key| key.parse().unwrap());
        (finder.partition_keys(&primary_keys, &[]), finder.primary_keys(partition_key.as_ref()))
    }

    fn kept(considered: &[ConsideredCandidate]) -> Vec<String> {
        considered.iter().filter(|c| c.kept).map(|c| c.key.join(", ")).collect()
    }

    #[test]
    fn what_may_serve_is_kept_and_what_cannot_is_dropped_with_the_reason() {
        let (partition_keys, primary_keys) = found(&[], None);
        let names = kept(&partition_keys);
        for key in ["user_id", "event_timestamp", "campaign_id", "user_id, event_timestamp"] {
            assert!(names.iter().any(|name| name == key), "{key}: {names:?}");
        }
        let dropped = partition_keys.iter().find(|c| c.key == ["event_type"]).unwrap();
        assert!(!dropped.kept && dropped.reason.contains("cannot fill 16 partitions"), "{dropped:?}");
        let names = kept(&primary_keys);
        assert!(names[0].starts_with("event_timestamp, "), "{names:?}");
        assert!(names.iter().any(|name| name == "user_id, event_timestamp"), "{names:?}");
        assert!(names.iter().all(|name| name != "event_timestamp"), "{names:?}");
    }

    #[test]
    fn keys_that_are_given_bound_those_that_are_found() {
        let (partition_keys, _) = found(&["event_timestamp, user_id, campaign_id"], None);
        let names = kept(&partition_keys);
        assert!(names.iter().all(|name| !name.contains("event_id")), "{names:?}");
        assert!(names.iter().any(|name| name == "event_timestamp, user_id"), "{names:?}");
        let (_, primary_keys) = found(&[], Some("campaign_id"));
        assert!(kept(&primary_keys).iter().all(|key| key.contains("campaign_id")), "{primary_keys:?}");
    }

    #[test]
    fn a_sorted_column_has_more_values_than_a_few_places_show() {
        // 60 places of 10 rows: if sorted, each has a value of its own; if shuffled, each has some
        // of 12.
        let places = [10; 60];
        let sorted: Vec<u64> = (0..60).flat_map(|value| [value; 10]).collect();
        assert!(likely_values(&sorted, &places) > 1_000.0);
        let shuffled: Vec<u64> = (0..600u64).map(|row| row * 7 % 12).collect();
        assert_eq!(likely_values(&shuffled, &places), 12.0);
        // Twelve long runs: all values have been seen.
        let long: Vec<u64> = (0..600).map(|row| row / 50).collect();
        assert_eq!(likely_values(&long, &places), 12.0);
    }
}
