//! Search for candidates for the partition key.

use std::collections::HashSet;

use crate::evaluate::candidates::considered::{Considerations, ConsideredCandidate, Purpose};
use crate::evaluate::candidates::natural_keys::UniqueKey;
use crate::evaluate::candidates::sampled_columns::SampledColumns;
use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::is_derived;
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::{Role, RoleReport};
use evenkeel_model::table::Candidate;

/// Maximum number of single columns that are evaluated, apart from row ids.
const MOST_SINGLES: usize = 4;
/// Maximum number of row ids that are evaluated.
const MOST_ROW_IDS: usize = 1;
/// Largest ratio of a range to the numbers in use with which the numbers count as assigned in
/// sequence.
const MOST_GAPS: i128 = 3;
/// Number of rows up to which amounts may be unique by chance.
const FEW_ROWS: usize = 1_000;
/// Maximum number of columns that are paired with each other.
const MOST_PAIRED: usize = 3;

impl SampledColumns<'_> {
    /// How much an entity is likely to be looked up, joined and grouped by, before all rows are
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
        let position = |name: &String| self.columns.iter().position(|column| column.column.name == *name);
        let thing: Vec<usize> = names.iter().filter_map(position).collect();
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
                    let is_dense = whole.greatest - whole.least < MOST_GAPS * column.distinct as i128;
                    whole.tail <= 0.02 && !whole.negative && (is_dense || self.rows > FEW_ROWS)
                }
                Form::Text(words) => words.opaque > 0.9 || (words.codes > 0.9 && words.mean_words < 1.1),
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
            if position < MOST_SINGLES {
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
                        "{MOST_SINGLES} columns are more likely to be looked up; name it with --partition-key"
                    ),
                );
            }
        }
        for (position, at) in ids.iter().enumerate() {
            if position < MOST_ROW_IDS {
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
        let first: Vec<usize> = others.iter().chain(few).copied().take(MOST_PAIRED).collect();
        let values = |at: usize| self.columns.get(at).map_or(0.0, |column| column.likely);
        let determined = |from: usize, to: usize| {
            let report = self.roles.get(from);
            report.is_some_and(|report| report.determines.iter().any(|name| name == self.name(to)))
        };
        let with = |at: usize, other: &[usize]| {
            let mut columns = self.thing(at);
            columns.extend(other.iter().filter(|at| !columns.contains(at)).copied().collect::<Vec<_>>());
            columns
        };
        for (position, a) in first.iter().enumerate() {
            for b in first.iter().skip(position + 1) {
                let pair = with(*a, &self.thing(*b));
                if pair.len() == 2
                    && !determined(*a, *b)
                    && !determined(*b, *a)
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
mod tests {
    use arrow::array::ArrayRef;
    use evenkeel_stats::sketch::fold;

    use super::*;
    use crate::evaluate::candidates::testing::{
        TestExport, kept, numbers, numbers_after_nulls, texts, times,
    };

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
}
