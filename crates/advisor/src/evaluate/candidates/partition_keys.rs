//! Search for candidates for the partition key.

use std::collections::HashSet;

use crate::evaluate::candidates::considered::{Considerations, ConsideredCandidate, Purpose};
use crate::evaluate::candidates::natural_keys::UniqueKey;
use crate::evaluate::candidates::sampled_columns::SampledColumns;
use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::{denotes_period, is_derived};
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::{Role, RoleReport};
use evenkeel_model::table::Candidate;

/// Maximum number of single columns that are evaluated, apart from row ids.
const MAX_SINGLES: usize = 4;
/// Maximum number of row ids that are evaluated.
const MAX_ROW_IDS: usize = 1;
/// Largest ratio of a range to the numbers in use with which the numbers count as assigned in
/// sequence.
const MAX_GAPS: i128 = 3;
/// Number of rows up to which amounts may be unique by chance.
const FEW_ROWS: usize = 1_000;
/// Maximum number of columns that are paired with each other.
const MAX_PAIRED: usize = 3;
/// How many columns may identify a subject together; pairs are tried in any case.
const SUBJECT_COLUMNS: std::ops::RangeInclusive<usize> = 3..=4;

impl SampledColumns<'_> {
    /// Likelihood that an entity is looked up, joined and grouped by, estimated before all rows are
    /// counted.
    pub(super) fn weight(&self, at: usize, keys: &[UniqueKey]) -> f64 {
        let (Some(profile), Some(report)) = (self.columns.get(at), self.roles.get(at)) else { return 0.0 };
        let base = match report.role {
            Role::Entity => 1.0,
            Role::Dimension => 0.2,
            Role::RowId => 0.05,
            _ => return 0.0,
        };
        let fills = (profile.likely / (100.0 * self.fewest_partitions as f64)).min(1.0).sqrt();
        let heavy = profile.heaviest as f64 * self.fewest_partitions as f64 / self.rows.max(1) as f64;
        let natural = keys.iter().any(|key| key.by_nature && key.columns.contains(&at));
        report.identity(&self.roles)
            * base
            * fills
            * (1.0 + 0.5 * report.attributes(&self.roles))
            * if natural { 2.0 } else { 1.0 }
            / heavy.max(1.0)
    }

    /// The columns that identify a thing of the column at `at`, unless one of them cannot be in a
    /// key.
    pub(super) fn thing(&self, at: usize) -> Vec<usize> {
        let names = self.roles.get(at).map(RoleReport::thing).unwrap_or_default();
        let thing: Vec<usize> = names.iter().filter_map(|name| self.position(name)).collect();
        let can_be_in_key = |column: &usize| *column == at || self.can_be_in_key(*column);
        if thing.iter().all(can_be_in_key) { thing } else { vec![at] }
    }

    /// Finds candidates for the partition key. If `primary_keys` were given, only their columns are
    /// used, because a partition key is part of a primary key.
    pub(super) fn partition_keys(
        &self,
        primary_keys: &[Candidate],
        keys: &[UniqueKey],
    ) -> Vec<ConsideredCandidate> {
        let within: HashSet<&str> =
            primary_keys.iter().flat_map(Candidate::parts).map(|part| part.column.as_str()).collect();
        let mut considered = Considerations::new(Purpose::PartitionKey);
        let allowed = |at: usize| within.is_empty() || within.contains(self.name(at));
        let (mut places, mut few) = self.that_can_place_rows(&allowed, &mut considered);
        let by_weight = |a: &usize, b: &usize| self.weight(*b, keys).total_cmp(&self.weight(*a, keys));
        places.sort_by(by_weight);
        few.retain(|at| self.role(*at) != Role::Constant);
        let is_label = |at: &usize| self.roles.get(*at).is_some_and(|report| report.is_label);
        few.sort_by_key(|at| (is_label(at), std::cmp::Reverse(self.distinct(*at))));
        let (mut ids, others): (Vec<usize>, Vec<usize>) =
            places.iter().partition(|at| self.role(**at) == Role::RowId);
        // Numbers assigned in sequence rank before other columns that happen to be unique.
        let is_assigned = |at: &usize| match self.columns.get(*at) {
            Some(column) => match &column.form {
                Form::Whole(whole) => {
                    let is_dense = whole.greatest - whole.least < MAX_GAPS * column.distinct as i128;
                    whole.tail <= 0.02 && !whole.negative && (is_dense || self.rows > FEW_ROWS)
                }
                Form::Text(words) => words.opaque > 0.9 || words.are_codes(),
                _ => false,
            },
            None => false,
        };
        let is_named = |at: &usize| self.columns.get(*at).is_some_and(Profile::is_named_id);
        let repeats = |at: &usize| self.columns.get(*at).is_none_or(|column| !column.is_unique());
        // Values computed from a row, such as hashes, rank after identifiers assigned to it.
        let is_derived = |at: &usize| is_derived(self.name(*at));
        let is_contact = |at: &usize| self.roles.get(*at).is_some_and(|report| report.is_contact);
        ids.sort_by_key(|at| {
            (repeats(at), is_contact(at), !is_named(at), is_derived(at), is_label(at), !is_assigned(at), *at)
        });
        let series = self.time_of_series(keys, &others, &ids);
        if let Some(time) = series.filter(|time| time.iter().all(|at| allowed(*at))) {
            considered.keep(
                &self.names(time),
                "the rows are one series, and only the time distinguishes them".to_owned(),
            );
            return considered.all;
        }
        self.singles(&others, &ids, &mut considered);
        self.pairs(&others, &few, &ids, &allowed, &mut considered);
        // If no column is even, the combined natural key may be.
        let natural = keys.first().filter(|key| key.by_nature && key.columns.len() == 2);
        if let Some(key) =
            natural.filter(|key| key.columns.iter().all(|at| allowed(*at) && !self.is_time(*at)))
        {
            let mut columns = key.columns.clone();
            columns.sort_by_key(|at| self.role(*at) == Role::LineNumber);
            considered.keep(&self.names(&columns), "together they distinguish rows".to_owned());
        }
        self.pair_of_natural_key(keys, &allowed, &mut considered);
        self.subject_of_natural_key(keys, &allowed, &mut considered);
        for key in primary_keys.iter().filter(|key| key.is_plain()) {
            for length in 1..=key.parts().len() {
                let prefix: Vec<&str> =
                    key.parts().iter().take(length).map(|part| part.column.as_str()).collect();
                considered.keep(&prefix, "a prefix of a given primary key".to_owned());
            }
        }
        if !considered.all.iter().any(|candidate| candidate.kept) {
            self.makeshift(&allowed, &mut considered);
        }
        considered.all
    }

    /// The time of rows that form one series, or their date and time of day: only the time
    /// distinguishes them, and no column identifies their subject.
    fn time_of_series<'k>(
        &self,
        keys: &'k [UniqueKey],
        others: &[usize],
        ids: &[usize],
    ) -> Option<&'k [usize]> {
        let is_vague = |at: &usize| self.roles.get(*at).is_some_and(|report| report.is_vague);
        let has_thing =
            others.iter().any(|at| self.role(*at) != Role::Dimension && !is_vague(at)) || !ids.is_empty();
        let key = keys.first().filter(|key| !has_thing && key.by_nature && key.is_dense_among(self.rows))?;
        key.columns.iter().all(|at| self.role(*at) == Role::Time).then_some(&key.columns)
    }

    /// Returns the columns that can place rows and the columns with too few values; drops the
    /// others.
    fn that_can_place_rows(
        &self,
        allowed: &dyn Fn(usize) -> bool,
        considered: &mut Considerations,
    ) -> (Vec<usize>, Vec<usize>) {
        let mut places: Vec<usize> = Vec::new();
        let mut few: Vec<usize> = Vec::new();
        for (at, profile) in self.columns.iter().enumerate() {
            let (name, role) = (self.name(at), self.role(at));
            let fills = profile.likely >= self.fewest_partitions as f64 || profile.distinct == profile.rows;
            if let Some(reason) = self.partition_key_obstacle(at) {
                if profile.is_constant() && self.is_taken(profile) {
                    considered.drop_for_few_values(&[name], reason, !self.whole);
                } else {
                    considered.drop(&[name], reason);
                }
            } else if !allowed(at) {
                considered.drop(&[name], "it is in none of the given primary keys".to_owned());
            } else if role == Role::Time {
                considered.drop(
                    &[name],
                    "a time: rows of one moment would all go to one partition, and no query names it exactly"
                        .to_owned(),
                );
            } else if !role.can_place_rows() {
                considered.drop(&[name], format!("a {role}, which no query looks up"));
            } else if let Some(original) =
                self.roles.get(at).and_then(|report| report.copy_of.clone()).filter(|_| self.is_copy(at))
            {
                considered.drop(&[name], format!("one-to-one with {original}"));
            } else if !fills {
                few.push(at);
                considered.drop_for_few_values(
                    &[name],
                    format!(
                        "cannot fill {} partitions: {} values in {}",
                        self.fewest_partitions,
                        profile.distinct,
                        self.rows_in_words()
                    ),
                    !self.whole,
                );
            } else {
                places.push(at);
            }
        }
        (places, few)
    }

    /// Adds keys of one column: entities and dimensions, those most likely to be looked up first,
    /// and row ids.
    fn singles(&self, others: &[usize], ids: &[usize], considered: &mut Considerations) {
        for (position, at) in others.iter().enumerate() {
            let values = self.distinct(*at);
            let role = self.role(*at);
            let thing = self.names(&self.thing(*at));
            if position < MAX_SINGLES {
                let nulls = self.columns.get(*at).map_or(0, |column| column.nulls);
                let holes = if nulls > 0 { format!(", {nulls} of which have NULL") } else { String::new() };
                let reason = format!("{role} with {values} values in {}{holes}", self.rows_in_words());
                considered.keep(&thing, reason);
                if let [parents @ .., _] = thing.as_slice()
                    && !parents.is_empty()
                {
                    let reason = format!("identifies something only together with {}", parents.join(" and "));
                    considered.drop(&[self.name(*at)], reason);
                }
            } else {
                considered.drop(
                    &[self.name(*at)],
                    format!(
                        "{MAX_SINGLES} columns are more likely to be looked up; name it with --partition-key"
                    ),
                );
            }
        }
        for (position, at) in ids.iter().enumerate() {
            if position < MAX_ROW_IDS {
                considered.keep(&[self.name(*at)], "identifies the row".to_owned());
            } else {
                considered.drop(&[self.name(*at)], "another column identifies the row too".to_owned());
            }
        }
    }

    /// Adds keys of several columns: entities together, and with a column that splits heavy values.
    fn pairs(
        &self,
        others: &[usize],
        few: &[usize],
        ids: &[usize],
        allowed: &dyn Fn(usize) -> bool,
        considered: &mut Considerations,
    ) {
        let first: Vec<usize> = others.iter().chain(few).copied().take(MAX_PAIRED).collect();
        let values = |at: usize| self.columns.get(at).map_or(0.0, |column| column.likely);
        let with = |at: usize, other: &[usize]| {
            let mut columns = self.thing(at);
            columns.extend(other.iter().filter(|at| !columns.contains(at)).copied().collect::<Vec<_>>());
            columns
        };
        for (position, a) in first.iter().enumerate() {
            for b in first.iter().skip(position + 1) {
                let pair = with(*a, &self.thing(*b));
                if pair.len() == 2
                    && !self.determines(*a, *b)
                    && !self.determines(*b, *a)
                    && values(*a) * values(*b) >= self.fewest_partitions as f64
                {
                    considered.keep(&self.names(&pair), "two columns that rows are looked up by".to_owned());
                }
            }
        }
        let Some(local) = first.first().copied() else { return };
        let numbers_its_rows = |at: &usize| {
            let parents = self.roles.get(*at).map(|report| report.counts_within.as_slice());
            self.role(*at) == Role::LineNumber
                && parents == Some(&[self.name(local).to_owned()])
                && values(*at) >= 100.0 * self.fewest_partitions as f64
        };
        let numbers = (0..self.columns.len()).find(|at| numbers_its_rows(at) && allowed(*at));
        if let Some(number) = numbers.filter(|at| self.can_be_in_key(*at)) {
            considered.keep(
                &self.names(&with(local, &[number])),
                "with the number of the row in it, which splits heavy values".to_owned(),
            );
        }
        if let Some(id) = ids.first() {
            considered.keep(
                &self.names(&with(local, &[*id])),
                "with the row id, which splits heavy values".to_owned(),
            );
        }
        if let Some(time) = self.key_time().filter(|time| allowed(*time)) {
            considered.keep(
                &self.names(&with(local, &[time])),
                "with the time, which splits heavy values".to_owned(),
            );
        }
    }

    /// Adds two columns of a natural key of several: the one most likely to be looked up, and the
    /// first of the others, such as a warehouse and its district.
    fn pair_of_natural_key(
        &self,
        keys: &[UniqueKey],
        allowed: &dyn Fn(usize) -> bool,
        considered: &mut Considerations,
    ) {
        let Some(key) = keys.first().filter(|key| key.by_nature && key.columns.len() > 2) else { return };
        let places = |at: &usize| {
            allowed(*at)
                && matches!(self.role(*at), Role::Entity | Role::Dimension)
                && self.can_be_in_key(*at)
        };
        let mut columns: Vec<usize> = key.columns.iter().copied().filter(places).collect();
        columns.sort_unstable();
        let weight = |at: &usize| self.weight(*at, keys);
        let Some(first) = columns.iter().copied().max_by(|a, b| weight(a).total_cmp(&weight(b))) else {
            return;
        };
        if let Some(second) = columns.into_iter().find(|at| *at != first) {
            considered
                .keep(&self.names(&[first, second]), "together they are part of the natural key".to_owned());
        }
    }

    /// Adds the columns of a natural key without its times and line numbers, if several kinds
    /// together identify what a row is about, such as the partition of a topic that a group of
    /// consumers reads.
    fn subject_of_natural_key(
        &self,
        keys: &[UniqueKey],
        allowed: &dyn Fn(usize) -> bool,
        considered: &mut Considerations,
    ) {
        let Some(key) = keys.first().filter(|key| key.by_nature) else { return };
        let (counts, subject): (Vec<usize>, Vec<usize>) =
            key.columns.iter().partition(|at| matches!(self.role(**at), Role::Time | Role::LineNumber));
        let is_kind = |at: &usize| self.role(*at) == Role::Dimension && !denotes_period(self.name(*at));
        let is_of_kinds = subject.iter().all(|at| is_kind(at) && allowed(*at) && self.can_be_in_key(*at));
        if !counts.is_empty() && is_of_kinds && SUBJECT_COLUMNS.contains(&subject.len()) {
            considered.keep(
                &self.names(&subject),
                "together they identify the subject of a row, and the time its state".to_owned(),
            );
        }
    }

    /// Adds times and measures, those with the most values first, if no column identifies anything.
    fn makeshift(&self, allowed: &dyn Fn(usize) -> bool, considered: &mut Considerations) {
        let fills = |at: usize| {
            self.columns.get(at).is_some_and(|column| column.likely >= self.fewest_partitions as f64)
        };
        let mut left: Vec<usize> = (0..self.columns.len())
            .filter(|at| allowed(*at) && self.can_be_in_key(*at) && fills(*at))
            .collect();
        left.sort_by_key(|at| {
            let role = self.role(*at);
            // Names may be looked up, although they are not ids. Nobody looks up a measurement, but
            // rows may be read by their time.
            let is_text = role == Role::Text;
            let is_name = is_text && self.names_things(*at);
            (!is_name, is_text, role == Role::Measure, std::cmp::Reverse(self.distinct(*at)))
        });
        for at in left.iter().take(2) {
            considered.keep(&[self.name(*at)], format!("a {}, for lack of a better column", self.role(*at)));
        }
        if let [a, b, ..] = left.as_slice() {
            considered.keep(&[self.name(*a), self.name(*b)], "for lack of better columns".to_owned());
        }
    }
}

#[cfg(test)]
#[path = "partition_keys_tests.rs"]
mod tests;
