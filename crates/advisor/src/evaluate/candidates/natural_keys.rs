//! Natural keys: sets of columns that distinguish the rows, and not by chance.

use ahash::AHashMap;
use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat, take};

use crate::evaluate::candidates::sampled_columns::SampledColumns;
use crate::evaluate::candidates::unique_keys::{minimal_unique, rows_once};
use crate::evaluate::figures::uniqueness::{UniqueBy, Uniqueness};
use crate::evaluate::roles::forms::{Form, Words};
use crate::evaluate::roles::names::{Hint, is_later, is_of_receipt};
use crate::evaluate::roles::profile::{Profile, distinct_together};
use crate::evaluate::roles::{Role, RoleReport};
use evenkeel_model::units::Micros;

/// Expected number of chance repeats above which having none is evidence of a natural key.
const EVIDENCE: f64 = 5.0;
/// Repeats expected by chance for each row that repeats a natural key.
const REPEATS_PER_EXCEPTION: f64 = 100.0;

/// Mean number of words below which texts may be names of things, or search terms.
const MOST_WORDS_OF_NAMES: f64 = 4.0;
/// Largest mean number of characters with which texts may be names of things.
const MOST_CHARACTERS_OF_NAMES: f64 = 60.0;
/// Weight of the logarithm of the repeats expected by chance, relative to the roles of the columns.
const WEIGHT_OF_EVIDENCE: f64 = 0.2;

/// If one key has this many times as many repeats expected by chance as another, the other is an
/// accident.
const LESS_LIKELY: f64 = 10.0;

/// If at least this share of the rows would repeat a key by chance, the rows fill the combinations
/// of its columns: each warehouse has each item.
const DENSE: f64 = 0.1;

/// Smallest share of rows with a distinct value in a column that is nearly a row id.
const NEARLY_UNIQUE: f64 = 0.9;

/// If at most this share of the things have numbers that begin at 0 or 1, the numbers are not
/// counts.
const FEW_BEGIN: f64 = 0.2;

/// Rows of a value from which numbers repeat often.
const OFTEN: usize = 20;

/// Maximum number of levels of a measurement.
const MOST_LEVELS: usize = 16;

/// Columns that distinguish the sampled rows.
#[derive(Debug, Clone)]
pub(super) struct UniqueKey {
    pub(super) columns: Vec<usize>,
    /// Rows that would repeat the key if its columns had their values by chance.
    repeats_by_chance: f64,
    /// Whether chance would have made some rows equal, or a column numbers the rows within the
    /// others.
    pub(super) by_nature: bool,
}

impl UniqueKey {
    /// Whether many of `rows` rows would repeat the key by chance.
    pub(super) fn is_dense_among(&self, rows: usize) -> bool {
        self.repeats_by_chance >= DENSE * rows as f64
    }

    /// Whether the evidence for the key is about as strong as for another.
    pub(super) fn is_as_likely_as(&self, other: &Self) -> bool {
        LESS_LIKELY * self.repeats_by_chance >= other.repeats_by_chance
    }
}

/// Keys that distinguish the sampled rows.
#[derive(Debug, Default)]
pub(crate) struct FoundKeys {
    /// The most natural ones first.
    pub(crate) keys: Vec<UniqueKey>,
    /// Whether no key is natural, and some sets of columns were not tried.
    pub(crate) cut_short: bool,
}

impl SampledColumns<'_> {
    /// Finds the smallest sets of columns that distinguish the rows, natural ones first.
    pub(super) fn unique_keys(&self, batches: &[RecordBatch]) -> FoundKeys {
        // A row that was sent again differs only in the time of its receipt.
        let sent: Vec<&Profile<'_>> = (0..self.columns.len())
            .filter(|at| !self.is_time_of_receipt(*at))
            .filter_map(|at| self.columns.get(at))
            .collect();
        let once = rows_once(&sent);
        if once.len() < 2 {
            return FoundKeys::default();
        }
        let usable =
            |at: &usize| self.can_be_in_key(*at) && !self.is_copy(*at) && !self.is_time_of_receipt(*at);
        let all: Vec<usize> = (0..self.columns.len()).filter(usable).collect();
        let (mut first, second): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|at| self.role(*at).can_identify_rows() && !self.is_wordy(*at));
        // Of wide exports only the first are combined, which must have the numbers of lines.
        first.sort_by_key(|at| (self.role(*at) != Role::LineNumber, std::cmp::Reverse(self.distinct(*at))));
        let tolerated = once.len() / 1_000;
        let natural = |columns: &[usize], tolerated| {
            let unique_sets = minimal_unique(&self.columns, columns, &once, tolerated);
            (self.judged(unique_sets.keys, batches, &once, columns.len()), unique_sets.cut_short)
        };
        let is_natural = |key: &UniqueKey| key.by_nature;
        let (mut keys, mut cut_short) = natural(&first, 0);
        if !keys.iter().any(is_natural) && tolerated > 0 {
            keys.extend(natural(&first, tolerated).0.into_iter().filter(is_natural));
        }
        // A page has no id but its title; a number may have been taken for a measure.
        let names_things = |at: &&usize| self.names_things(**at);
        let may_number = |at: &&usize| self.may_number(**at);
        let is_level = |at: &&usize| self.is_level(**at);
        for others in [
            second.iter().filter(names_things).collect::<Vec<_>>(),
            second.iter().filter(may_number).collect(),
            second.iter().filter(is_level).collect(),
        ] {
            if !others.is_empty() && !keys.iter().any(is_natural) {
                let with_others: Vec<usize> = first.iter().chain(others).copied().collect();
                keys.extend(natural(&with_others, 0).0.into_iter().filter(is_natural));
            }
        }
        // If nothing else distinguishes rows, a text or a level may: the moves of an opening, the
        // bins of a forecast. Events may happen again, whatever their texts were so far.
        let may_tell_apart = |at: &&usize| self.may_tell_apart(**at);
        let others: Vec<usize> = second.iter().filter(may_tell_apart).copied().collect();
        if keys.is_empty() && !others.is_empty() && self.time.is_none() {
            let all: Vec<usize> = first.iter().chain(&others).copied().collect();
            keys.extend(natural(&all, 0).0.into_iter().filter(is_natural));
        }
        if first.is_empty() {
            let unique_sets = minimal_unique(&self.columns, &second, &once, 0);
            keys = self.judged(unique_sets.keys, batches, &once, second.len());
            cut_short = unique_sets.cut_short;
        }
        // Untried sets have more columns than the keys found.
        cut_short &= !keys.iter().any(|key| key.by_nature);
        let mut ranked: Vec<_> = keys.into_iter().map(|key| (self.rank(&key), key)).collect();
        ranked.sort_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        let mut keys: Vec<UniqueKey> = ranked.into_iter().map(|(_, key)| key).collect();
        if let Some(finer) = self.with_finer_time(&keys) {
            let finer = keys.remove(finer);
            keys.insert(0, finer);
        }
        FoundKeys { keys, cut_short }
    }

    /// Position of a natural key that replaces a time of the first key by one that determines it:
    /// the start of a shift, rather than the day.
    fn with_finer_time(&self, keys: &[UniqueKey]) -> Option<usize> {
        let first = keys.first().filter(|key| key.by_nature)?;
        let determines = |at: usize, other: usize| {
            self.roles
                .get(at)
                .is_some_and(|report| report.determines.iter().any(|name| name == self.name(other)))
        };
        let is_finer = |at: usize, other: usize| {
            self.role(at) == Role::Time
                && self.role(other) == Role::Time
                && !is_later(self.name(at))
                && determines(at, other)
        };
        let others = |key: &UniqueKey, than: &UniqueKey| -> Vec<usize> {
            key.columns.iter().copied().filter(|at| !than.columns.contains(at)).collect()
        };
        keys.iter().position(|key| {
            let (own, replaced) = (others(key, first), others(first, key));
            key.by_nature
                && matches!((own.as_slice(), replaced.as_slice()), ([own], [replaced]) if is_finer(*own, *replaced))
        })
    }

    /// Judges keys of `column_count` columns. Of the many sets of several columns that are tried,
    /// some repeat in no row by chance even if five repeats are expected.
    fn judged(
        &self,
        keys: Vec<Vec<usize>>,
        batches: &[RecordBatch],
        rows: &[u32],
        column_count: usize,
    ) -> Vec<UniqueKey> {
        // Rows that were sent again would make equal values look common.
        let once = UInt32Array::from(rows.to_vec());
        let judge = |columns: Vec<usize>| {
            let arrays: Option<Vec<ArrayRef>> = columns
                .iter()
                .map(|at| {
                    let parts: Vec<&dyn Array> = batches
                        .iter()
                        .filter_map(|batch| batch.columns().get(*at))
                        .map(AsRef::as_ref)
                        .collect();
                    take(&concat(&parts).ok()?, &once, None).ok()
                })
                .collect();
            let uniqueness = arrays.and_then(|arrays| Uniqueness::by_chance(&arrays, rows.len() as u64));
            let profiles: Vec<&Profile<'_>> = columns.iter().filter_map(|at| self.columns.get(*at)).collect();
            let repeated = rows.len() - distinct_together(&profiles, rows.iter().map(|row| *row as usize));
            let is_numbered = repeated == 0 && columns.iter().any(|at| self.counts_within(*at, &columns));
            let by_nature = is_numbered
                || uniqueness.is_some_and(|unique| match unique.by {
                    // Any two times distinguish rows.
                    UniqueBy::ManyValues => {
                        repeated == 0
                            && !(columns.len() > 1 && columns.iter().any(|at| self.is_other_time(*at)))
                    }
                    UniqueBy::Nature => {
                        let tried = ln_sets(column_count, columns.len());
                        unique.repeats_by_chance
                            >= (EVIDENCE + tried).max(REPEATS_PER_EXCEPTION * repeated as f64)
                    }
                    UniqueBy::Chance => false,
                });
            let repeats_by_chance = uniqueness.map_or(0.0, |unique| unique.repeats_by_chance);
            let by_nature = by_nature && !(self.has_events() && self.meets_once(&columns));
            UniqueKey { columns, repeats_by_chance, by_nature }
        };
        // A time of day distinguishes rows together with its date.
        let with_date = |mut columns: Vec<usize>| {
            let date = self.key_time().filter(|_| columns.iter().any(|at| self.completes_date(*at)));
            columns.extend(date.filter(|date| !columns.contains(date)));
            columns
        };
        keys.into_iter().map(with_date).map(judge).collect()
    }

    /// Whether several things identify rows without the time of the event: they will meet again at
    /// another moment, even if they have not yet.
    fn meets_once(&self, key: &[usize]) -> bool {
        let is_row = |at: &usize| {
            matches!(self.role(*at), Role::RowId | Role::LineNumber)
                || self.distinct(*at) as f64 >= NEARLY_UNIQUE * self.rows as f64
        };
        key.len() > 1
            && !self.has_time(key)
            && !key.iter().any(is_row)
            && self.key_time().is_some_and(|time| !is_later(self.name(time)))
    }

    /// Whether a column has short texts that repeat and may name things.
    pub(super) fn names_things(&self, at: usize) -> bool {
        let Some(column) = self.columns.get(at) else { return false };
        let is_short = |words: &Words| {
            words.mean_chars <= MOST_CHARACTERS_OF_NAMES
                && words.mean_words < MOST_WORDS_OF_NAMES
                && words.structured < 0.5
        };
        (self.role(at) == Role::Text || self.is_wordy(at))
            && matches!(&column.form, Form::Text(words) if is_short(words))
            && column.distinct * 2 < column.rows
    }

    /// Whether a column has addresses of things that have ids.
    fn is_address_beside_id(&self, at: usize) -> bool {
        let is_id = |(other, report): (usize, &RoleReport)| {
            let is_named = self.columns.get(other).is_some_and(Profile::is_named_id);
            is_named && report.role == Role::Entity && !report.is_address && self.can_be_in_key(other)
        };
        self.roles.get(at).is_some_and(|report| report.is_address) && self.roles.iter().enumerate().any(is_id)
    }

    /// Whether a column has several words in each value, and is not named as an identifier: a label
    /// represents the ids that determine it.
    pub(super) fn is_wordy(&self, at: usize) -> bool {
        let has_words =
            |column: &Profile<'_>| column.form.is_words() && !column.is_unique() && !column.is_named_id();
        self.role(at) != Role::Time && self.columns.get(at).is_some_and(has_words)
    }

    /// Whether a column could be a counter: integers from 0 or 1, in steps of 1, and not named
    /// like an amount.
    fn may_number(&self, at: usize) -> bool {
        let Some(column) = self.columns.get(at) else { return false };
        let from_one = |form: &Form| matches!(form, Form::Whole(whole) if (0..=1).contains(&whole.least) && whole.step == 1);
        self.role(at) == Role::Measure && from_one(&column.form) && column.hint != Some(Hint::Measure)
    }

    /// Whether a column is a text, or has numbers that repeat often and that its name does not call
    /// amounts.
    fn may_tell_apart(&self, at: usize) -> bool {
        let Some(column) = self.columns.get(at) else { return false };
        let repeats = column.distinct * OFTEN <= column.filled();
        column.hint != Some(Hint::Measure) && (self.role(at) == Role::Text || repeats)
    }

    /// Whether a column has a few, equally frequent numbers: depths or heights at which something
    /// else is measured.
    fn is_level(&self, at: usize) -> bool {
        self.role(at) == Role::Measure
            && self.columns.get(at).is_some_and(|column| {
                (2..=MOST_LEVELS).contains(&column.distinct)
                    && column.nulls == 0
                    && column.heaviest * column.distinct <= 2 * column.rows
            })
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

    /// Whether a column is the time of day of rows whose event time is a date.
    fn completes_date(&self, at: usize) -> bool {
        let of_days = |time: &Profile<'_>| {
            let column_type = time.column.column_type;
            (column_type.is_time() && !column_type.is_timestamp())
                || time.times.is_some_and(|times| {
                    let is_midnight = |micros: i64| micros.rem_euclid(Micros::DAY.get()) == 0;
                    times.reading.resolution() >= Micros::DAY
                        || (is_midnight(times.earliest_micros) && is_midnight(times.latest_micros))
                })
        };
        let time = self.columns.iter().find(|column| self.time.as_deref() == Some(&column.column.name));
        time.is_some_and(of_days) && self.columns.get(at).is_some_and(Profile::is_time_of_day)
    }

    /// Whether a column is a time other than the event time.
    fn is_other_time(&self, at: usize) -> bool {
        self.role(at) == Role::Time && !self.is_time(at) && !self.completes_date(at)
    }

    /// Whether a key can have a time whose name does not call it an end or a change.
    fn has_earlier_time(&self) -> bool {
        let is_earlier =
            |at: usize| self.role(at) == Role::Time && !is_later(self.name(at)) && self.can_be_in_key(at);
        (0..self.columns.len()).any(is_earlier)
    }

    /// Whether a column is the time at which rows were received or loaded, and there is another
    /// time.
    pub(super) fn is_time_of_receipt(&self, at: usize) -> bool {
        let is_of_receipt = |at: usize| self.role(at) == Role::Time && is_of_receipt(self.name(at));
        is_of_receipt(at) && self.has_earlier_time()
    }

    /// Whether a column numbers the rows within others.
    fn has_parents(&self, at: usize) -> bool {
        self.roles.get(at).is_some_and(|report| !report.counts_within.is_empty())
    }

    /// Whether the numbers of each thing rise with time, but seldom start at 0 or 1: its age, or
    /// its hours of operation.
    fn is_age(&self, at: usize) -> bool {
        let column = self.columns.get(at).filter(|column| column.hint != Some(Hint::Line));
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

    /// Whether a column numbers the rows within others of a key.
    pub(super) fn counts_within(&self, at: usize, key: &[usize]) -> bool {
        let Some(report) = self.roles.get(at).filter(|report| report.role == Role::LineNumber) else {
            return false;
        };
        let is_in_key = |parent: &String| key.iter().any(|at| self.name(*at) == parent);
        !report.counts_within.is_empty() && report.counts_within.iter().all(is_in_key)
    }

    /// Order of unique keys: natural keys first, then keys without times and without text, then the
    /// shortest; entities before dimensions, and then the columns that would repeat most often if
    /// they did not identify rows.
    fn rank(&self, key: &UniqueKey) -> (bool, bool, usize, bool, usize, bool, f64, usize) {
        let is_dense = key.columns.len() > 2 && key.is_dense_among(self.rows);
        let weight = |at: &usize| match self.role(*at) {
            Role::RowId => 0.0,
            Role::Entity => 0.5,
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
            // The end of what the row begins is the worse choice.
            Role::Time => {
                usize::from(self.is_other_time(*at))
                    + usize::from(is_later(self.name(*at)) && self.has_earlier_time())
            }
            Role::LineNumber => usize::from(
                (self.has_parents(*at) && !self.counts_within(*at, &key.columns)) || self.is_age(*at),
            ),
            Role::Entity => usize::from(self.is_address_beside_id(*at)),
            _ => 0,
        };
        let strange: usize = key.columns.iter().map(strangeness).sum();
        let evidence = if key.columns.len() > 1 { key.repeats_by_chance.max(1.0).ln() } else { 0.0 };
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
}

/// Natural logarithm of the number of sets of `size` of `column_count` columns.
fn ln_sets(column_count: usize, size: usize) -> f64 {
    (0..size.min(column_count)).map(|taken| ((column_count - taken) as f64 / (taken + 1) as f64).ln()).sum()
}
