//! Search for candidates for the primary key.

use crate::evaluate::candidates::considered::{Considerations, ConsideredCandidate, Purpose};
use crate::evaluate::candidates::natural_keys::UniqueKey;
use crate::evaluate::candidates::sampled_columns::SampledColumns;
use crate::evaluate::candidates::unique_keys::MAX_KEY_COLUMNS;
use crate::evaluate::roles::Role;
use crate::evaluate::roles::names::denotes_action;
use crate::evaluate::roles::profile::{Profile, distinct_together};
use evenkeel_model::table::Candidate;

/// Maximum number of natural keys that primary keys are made of.
const MAX_VARIANTS: usize = 2;
/// Maximum number of partition keys that primary keys are made for.
const MAX_LIKELY: usize = 2;
/// Maximum number of primary keys that are evaluated.
const MAX_PRIMARY_KEYS: usize = 6;

impl SampledColumns<'_> {
    /// Finds candidates for the primary key: the smallest natural key, with each of the likely
    /// partition keys in it, in the orders that fit reading by time and by entity.
    pub(super) fn primary_keys(
        &self,
        keys: &[UniqueKey],
        given: Option<&Candidate>,
        partition_keys: &[ConsideredCandidate],
    ) -> Vec<ConsideredCandidate> {
        let mut considered = Considerations::new(Purpose::PrimaryKey);
        let within: Vec<Vec<usize>> = match given.filter(|key| key.is_plain()) {
            Some(key) => vec![key.columns().iter().filter_map(|name| self.position(name)).collect()],
            None => self.likely_partition_keys(partition_keys, keys),
        };
        for (place, partition_key) in within.iter().enumerate() {
            // A column that places rows may identify them itself.
            if let [only] = partition_key.as_slice()
                && self.role(*only) == Role::RowId
                && self.columns.get(*only).is_some_and(Profile::is_unique)
            {
                considered
                    .keep(&[self.name(*only)], format!("it alone distinguishes {}", self.rows_in_words()));
                continue;
            }
            let mut keys = self.best_unique_keys(keys, partition_key);
            // Events that happen to differ will repeat: no column identifies them.
            if self.has_moments() && keys.iter().all(|key| !key.by_nature && self.has_kind(key)) {
                keys.clear();
            }
            for key in keys.iter().take(if place == 0 { MAX_VARIANTS } else { 1 }) {
                for (order, columns) in self.orders(partition_key, key) {
                    let names: Vec<&str> = columns.iter().map(|at| self.name(*at)).collect();
                    let unique = if key.by_nature {
                        "unique by nature"
                    } else {
                        "unique in these rows, perhaps by chance"
                    };
                    considered
                        .keep(&names, format!("{order}; distinguishes {}, {unique}", self.rows_in_words()));
                }
            }
            if keys.is_empty() {
                let names = self.most_distinguishing(partition_key);
                let names: Vec<&str> = names.iter().map(|at| self.name(*at)).collect();
                if !names.is_empty() {
                    considered.keep(&names, "no columns distinguish all rows; these come closest".to_owned());
                }
            }
        }
        considered.all.truncate(MAX_PRIMARY_KEYS);
        considered.all
    }

    /// Whether a column may identify events together with their time: a thing other than a page, or
    /// what happened, rather than its circumstances or its outcome.
    fn may_identify_events(&self, at: usize) -> bool {
        match self.role(at) {
            Role::Dimension => denotes_action(self.name(at)),
            _ => self.roles.get(at).is_none_or(|report| !report.is_page),
        }
    }

    /// Whether a key has a kind of thing or a name, which tell rows apart by chance.
    fn has_kind(&self, key: &UniqueKey) -> bool {
        let is_kind = |at: &usize| {
            self.role(*at) == Role::Dimension
                || self.roles.get(*at).is_some_and(|report| report.is_label || report.is_page)
        };
        key.columns.iter().any(is_kind)
    }

    /// The natural keys; if there are none, the first key that is unique by chance, preferably one
    /// of the same length that contains the partition key.
    fn best_unique_keys<'k>(&self, keys: &'k [UniqueKey], within: &[usize]) -> Vec<&'k UniqueKey> {
        let mut natural: Vec<&UniqueKey> = keys.iter().filter(|key| key.by_nature).collect();
        // An identifier of the row needs no alternative, nor do numbers within a parent.
        if let Some(first) = natural.first()
            && (matches!(first.columns.as_slice(), [only] if self.role(*only) == Role::RowId)
                || first.columns.iter().any(|at| self.counts_within(*at, &first.columns)))
        {
            return vec![first];
        }
        if let Some(first) = natural.first().copied() {
            // A key without a time still distinguishes rows after they are loaded again.
            natural.retain(|key| {
                key.is_as_likely_as(first) && (self.has_time(&first.columns) || !self.has_time(&key.columns))
            });
        }
        if natural.is_empty() {
            // A flag distinguishes rows by chance, without identifying them.
            let is_flag = |at: &usize| self.role(*at) == Role::Dimension && self.distinct(*at) <= 2;
            let keys: Vec<&UniqueKey> = keys.iter().filter(|key| !key.columns.iter().any(is_flag)).collect();
            let length = keys.first().map_or(0, |key| key.columns.len());
            let holds = |key: &&&UniqueKey| {
                key.columns.len() <= length && within.iter().all(|at| key.columns.contains(at))
            };
            keys.iter().find(holds).or(keys.first()).copied().into_iter().collect()
        } else {
            natural
        }
    }

    /// The partition keys that will most probably be recommended, judging by the sampled rows:
    /// entities and the row id, others only without these, and one that is part of the most natural
    /// key.
    fn likely_partition_keys(
        &self,
        considered: &[ConsideredCandidate],
        unique_keys: &[UniqueKey],
    ) -> Vec<Vec<usize>> {
        let kept: Vec<Vec<usize>> = considered
            .iter()
            .filter(|candidate| candidate.kept)
            .map(|candidate| candidate.key.iter().filter_map(|name| self.position(name)).collect())
            .collect();
        let of_role = |role: Role| {
            let stands_for = move |key: &&Vec<usize>| {
                key.last().is_some_and(|last| self.role(*last) == role && self.thing(*last) == **key)
            };
            kept.iter().filter(stands_for).cloned()
        };
        let mut keys: Vec<Vec<usize>> = of_role(Role::Entity).take(MAX_LIKELY).collect();
        keys.extend(of_role(Role::RowId).take(1));
        for key in kept.iter().take(MAX_LIKELY) {
            if keys.len() < MAX_LIKELY && !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        if let Some(natural) = unique_keys.first().filter(|key| key.by_nature) {
            let is_part = |key: &&Vec<usize>| key.iter().all(|at| natural.columns.contains(at));
            if !keys.iter().any(|key| is_part(&key)) {
                keys.extend(kept.iter().find(is_part).cloned());
            }
        }
        if keys.is_empty() { vec![Vec::new()] } else { keys }
    }

    /// Orders of the columns of a primary key, each with a reason.
    fn orders(&self, partition_key: &[usize], key: &UniqueKey) -> Vec<(&'static str, Vec<usize>)> {
        let time = self.key_time();
        let rest: Vec<usize> = {
            let mut rest: Vec<usize> = key
                .columns
                .iter()
                .copied()
                .filter(|at| !partition_key.contains(at) && Some(*at) != time)
                .collect();
            // Parents before the columns that count within them, the row id last.
            rest.sort_by_key(|at| match self.role(*at) {
                Role::Entity => 0,
                Role::Dimension => 1,
                Role::Time => 2,
                Role::LineNumber => 3,
                _ => 4,
            });
            rest
        };
        let own = partition_key.to_vec();
        // The table of the entities themselves is read by their id; so are lines by their parent.
        let of_rows = rest.is_empty() && own == key.columns;
        let needs_time = time.is_some_and(|time| key.columns.contains(&time));
        // Rows with several row ids are things.
        let ids = self.roles.iter().filter(|report| report.role == Role::RowId).count();
        let is_event = self.has_moments()
            && ids < 2
            && key.columns.iter().any(|at| self.role(*at) == Role::RowId)
            && !of_rows;
        match time.filter(|time| !own.contains(time)) {
            Some(time) if (needs_time || is_event) && !self.sorts_by_time(time) && !own.is_empty() => vec![(
                "each value's rows together, since the times sort by their day or month as text",
                [own, vec![time], rest].concat(),
            )],
            Some(time) if needs_time || is_event => vec![
                ("in the order of time", [vec![time], own.clone(), rest.clone()].concat()),
                ("each value's rows together, in the order of time", [own, vec![time], rest].concat()),
            ],
            _ => vec![(
                "the partition key first, then columns that distinguish its rows",
                [own, rest].concat(),
            )],
        }
    }

    /// Whether a time sorts chronologically, and not as text that begins with a day.
    fn sorts_by_time(&self, at: usize) -> bool {
        let times = self.columns.get(at).and_then(|column| column.times);
        times.is_none_or(|times| times.reading.keeps_order())
    }

    /// The partition key, the time and the columns that distinguish the most rows.
    fn most_distinguishing(&self, partition_key: &[usize]) -> Vec<usize> {
        let mut key = partition_key.to_vec();
        let usable: Vec<usize> = (0..self.columns.len())
            .filter(|at| self.can_be_in_key(*at) && self.role(*at).can_identify_rows() && !self.is_copy(*at))
            .filter(|at| !self.is_wordy(*at) || self.role(*at) == Role::Entity)
            .filter(|at| !self.has_moments() || self.may_identify_events(*at))
            .filter(|at| !self.is_time_of_receipt(*at))
            .collect();
        let distinct = |key: &[usize]| {
            let profiles: Vec<&Profile<'_>> = key.iter().filter_map(|at| self.columns.get(*at)).collect();
            distinct_together(&profiles, 0..self.rows)
        };
        let mut distinguished = distinct(&key);
        while key.len() < MAX_KEY_COLUMNS && distinguished < self.rows {
            let others = usable.iter().filter(|at| !key.contains(at));
            let best = others
                .map(|at| (distinct(&[key.as_slice(), &[*at]].concat()), *at))
                .max_by_key(|(distinct, at)| (*distinct, std::cmp::Reverse(*at)));
            match best {
                // A column that distinguishes hardly any more rows does not complete a key, nor
                // does one of a few kinds that leaves most equal rows equal.
                Some((with, at))
                    if (with - distinguished) * 100 > self.rows
                        && (self.role(at) != Role::Dimension
                            || (self.rows - with) * 2 <= self.rows - distinguished) =>
                {
                    key.push(at);
                    distinguished = with;
                }
                _ => break,
            }
        }
        if let Some(time) = key.iter().position(|at| self.is_time(*at) && self.sorts_by_time(*at)) {
            let time = key.remove(time);
            key.insert(0, time);
        }
        key
    }
}
