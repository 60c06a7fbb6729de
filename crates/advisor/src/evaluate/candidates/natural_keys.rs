//! Natural keys: sets of columns that distinguish the rows, and not by chance.

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat, take};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::evaluate::candidates::sampled_columns::SampledColumns;
use crate::evaluate::candidates::unique_keys::{minimal_unique, rows_once};
use crate::evaluate::figures::uniqueness::{UniqueBy, Uniqueness};
use crate::evaluate::roles::Role;
use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::{Hint, Lateness, denotes_receipt, lateness};
use crate::evaluate::roles::profile::{FEW_ROWS, Profile, distinct_together};
use evenkeel_model::units::Micros;

/// Expected number of chance repeats above which having none is evidence of a natural key.
const EVIDENCE: f64 = 5.0;
/// Repeats expected by chance for each row that repeats a natural key.
const REPEATS_PER_EXCEPTION: f64 = 100.0;

/// Mean number of words below which texts may be names of things, or search terms.
const MAX_WORDS_OF_NAMES: f64 = 4.0;

/// If one key has this many times as many repeats expected by chance as another, the other is an
/// accident.
const LESS_LIKELY: f64 = 10.0;

/// If at least this share of the rows would repeat a key by chance, the rows fill the combinations
/// of its columns: each warehouse has each item.
const DENSE: f64 = 0.1;

/// Maximum number of columns of a key that has measures and texts.
const MAX_MAKESHIFT_COLUMNS: usize = 3;

/// Smallest share of rows with a distinct value in a column that is nearly a row id.
const NEARLY_UNIQUE: f64 = 0.9;

/// Rows of a value from which numbers repeat often.
const OFTEN: usize = 20;

/// Maximum number of levels of a measurement.
const MAX_LEVELS: usize = 16;

/// Columns that distinguish the sampled rows.
#[derive(Debug, Clone)]
pub(super) struct UniqueKey {
    pub(super) columns: Vec<usize>,
    /// Rows that would repeat the key if its columns had their values by chance.
    pub(super) repeats_by_chance: f64,
    /// Whether chance would have made some rows equal, or a column numbers the rows within the
    /// others.
    pub(super) by_nature: bool,
}

impl UniqueKey {
    /// Whether many of `rows` rows would repeat the key by chance.
    pub(super) fn is_dense_among(&self, rows: usize) -> bool {
        self.repeats_by_chance >= DENSE * rows as f64
    }

    /// Columns that another key does not have.
    pub(super) fn without(&self, other: &Self) -> Vec<usize> {
        self.columns.iter().copied().filter(|at| !other.columns.contains(at)).collect()
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
        let search = |columns: &[usize], tolerated| {
            let unique_sets = minimal_unique(&self.columns, columns, &once, tolerated);
            (self.judged(unique_sets.keys, batches, &once, columns.len()), unique_sets.cut_short)
        };
        let is_natural = |key: &UniqueKey| key.by_nature;
        let (mut keys, mut cut_short) = search(&first, 0);
        if !keys.iter().any(is_natural) && tolerated > 0 {
            keys.extend(search(&first, tolerated).0.into_iter().filter(is_natural));
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
                keys.extend(search(&with_others, 0).0.into_iter().filter(is_natural));
            }
        }
        // If nothing else distinguishes rows, a text or a level may: the moves of an opening, the
        // bins of a forecast. Events may happen again, whatever their texts were so far.
        let may_tell_apart = |at: &&usize| self.may_tell_apart(**at);
        let others: Vec<usize> = second.iter().filter(may_tell_apart).copied().collect();
        if keys.is_empty() && !others.is_empty() && self.time.is_none() {
            let all: Vec<usize> = first.iter().chain(&others).copied().collect();
            keys.extend(search(&all, 0).0.into_iter().filter(is_natural));
        }
        if first.is_empty() {
            (keys, cut_short) = search(&second, 0);
        } else if keys.is_empty() && self.leave_most_equal(&first, &once) {
            // Rather than losing most rows, a key has measures and texts.
            let all: Vec<usize> = first.iter().chain(&second).copied().collect();
            (keys, cut_short) = search(&all, 0);
            keys.retain(|key| key.columns.len() <= MAX_MAKESHIFT_COLUMNS);
            keys.iter_mut().for_each(|key| key.by_nature = false);
        }
        // Untried sets have more columns than the keys found.
        cut_short &= !keys.iter().any(|key| key.by_nature);
        let mut ranked: Vec<_> = keys.into_iter().map(|key| (self.rank(&key), key)).collect();
        ranked.sort_by(|(a, _), (b, _)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        let mut keys: Vec<UniqueKey> = ranked.into_iter().map(|(_, key)| key).collect();
        if let Some(finer) = self.with_finer_time(&keys) {
            let finer = UniqueKey { by_nature: true, ..keys.remove(finer) };
            keys.insert(0, finer);
        }
        if let Some(coordinates) = self.log_coordinates(&once) {
            keys.insert(0, coordinates);
            cut_short = false;
        }
        FoundKeys { keys, cut_short }
    }

    /// Whether most of some rows are equal to others in all of these columns.
    fn leave_most_equal(&self, columns: &[usize], rows: &[u32]) -> bool {
        let profiles: Vec<&Profile<'_>> = columns.iter().filter_map(|at| self.columns.get(*at)).collect();
        distinct_together(&profiles, rows.iter().map(|row| *row as usize)) * 2 < rows.len()
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
            // The number of a contract is assigned to be unique.
            let is_row_id =
                matches!(columns.as_slice(), [only] if repeated == 0 && self.is_named_row_id(*only));
            let by_nature = is_numbered
                || is_row_id
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
            let date = columns.iter().find_map(|at| self.date_of(*at));
            columns.extend(date.filter(|date| !columns.contains(date)));
            columns
        };
        // The numbers of several logs may differ only because each began at another one.
        let with_parents = |columns: Vec<usize>| match columns.as_slice() {
            [only] if self.parents(*only).iter().all(|at| self.can_be_in_key(*at)) => {
                [columns.as_slice(), &self.parents(*only)].concat()
            }
            _ => columns,
        };
        keys.into_par_iter().map(with_date).map(with_parents).map(judge).collect()
    }

    /// Whether several things identify rows without the time of the event: they will meet again at
    /// another moment, even if they have not yet. A thing that has one time, such as an auction,
    /// will not.
    pub(super) fn meets_once(&self, key: &[usize]) -> bool {
        let is_row = |at: &usize| {
            matches!(self.role(*at), Role::RowId | Role::LineNumber)
                || self.distinct(*at) as f64 >= NEARLY_UNIQUE * self.rows as f64
        };
        key.len() > 1
            && !self.has_time(key)
            && !key.iter().any(is_row)
            && self.key_time().is_some_and(|time| {
                self.is_time_of_event(time) && !key.iter().any(|at| self.determines(*at, time))
            })
    }

    /// Whether a column identifies rows by its values and by its name, which is not that of users or
    /// devices, who come back.
    fn is_named_row_id(&self, at: usize) -> bool {
        self.rows > FEW_ROWS
            && self.roles.get(at).is_some_and(|report| report.role == Role::RowId && !report.recurs)
            && self.columns.get(at).is_some_and(Profile::is_named_id)
    }

    /// Whether a column has short texts that repeat and may name things.
    pub(super) fn names_things(&self, at: usize) -> bool {
        let Some(column) = self.columns.get(at) else { return false };
        (self.role(at) == Role::Text || self.is_wordy(at))
            && matches!(&column.form, Form::Text(words) if words.may_be_names(MAX_WORDS_OF_NAMES))
            && column.distinct * 2 < column.rows
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
                (2..=MAX_LEVELS).contains(&column.distinct)
                    && column.nulls == 0
                    && column.heaviest * column.distinct <= 2 * column.rows
            })
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

    /// Returns the date of a time of day: the event time, or the one date of all rows.
    fn date_of(&self, at: usize) -> Option<usize> {
        if self.completes_date(at) {
            return self.key_time();
        }
        let is_date = |other: &usize| {
            let date = self.columns.get(*other).map(|column| column.column.column_type);
            self.role(*other) == Role::Constant
                && date.is_some_and(|date| date.is_time() && !date.is_timestamp())
        };
        let is_of_day = self.columns.get(at).is_some_and(Profile::is_time_of_day);
        (0..self.columns.len()).find(is_date).filter(|_| is_of_day)
    }

    /// Whether a column is a time other than the event time. A year may be the only time there is.
    pub(super) fn is_other_time(&self, at: usize) -> bool {
        self.role(at) == Role::Time && self.time.is_some() && !self.is_time(at) && !self.completes_date(at)
    }

    /// Whether a key can have another time that, by its name, is closer to the event of the row.
    pub(super) fn has_earlier_time(&self, than: usize) -> bool {
        let lateness_of_it = lateness(self.name(than));
        let is_earlier = |at: usize| {
            self.role(at) == Role::Time && self.can_be_in_key(at) && lateness(self.name(at)) < lateness_of_it
        };
        (0..self.columns.len()).any(is_earlier)
    }

    /// Whether a time is that of the event, as far as names tell: the time of its record is, if
    /// another column is the time of receipt.
    pub(super) fn is_time_of_event(&self, time: usize) -> bool {
        let is_later_than_record =
            |at: usize| self.role(at) == Role::Time && lateness(self.name(at)) == Lateness::Later;
        match lateness(self.name(time)) {
            Lateness::Event => true,
            Lateness::Recorded => (0..self.columns.len()).any(is_later_than_record),
            Lateness::Later => false,
        }
    }

    /// Whether a column is the time at which rows were received or loaded, and there is another
    /// time.
    pub(super) fn is_time_of_receipt(&self, at: usize) -> bool {
        let denotes_receipt = |at: usize| self.role(at) == Role::Time && denotes_receipt(self.name(at));
        denotes_receipt(at) && self.has_earlier_time(at)
    }

    /// Columns within which a line number counts; none for other columns.
    fn parents(&self, at: usize) -> Vec<usize> {
        let report = self.roles.get(at).filter(|report| report.role == Role::LineNumber);
        let names = report.map(|report| report.counts_within.as_slice()).unwrap_or_default();
        names.iter().filter_map(|name| self.position(name)).collect()
    }

    /// Whether a column numbers the rows within others of a key, which identify as many things as
    /// all columns within which it counts. Another line number may stand for one of these: the
    /// number of a passenger for the name.
    pub(super) fn counts_within(&self, at: usize, key: &[usize]) -> bool {
        let all = self.parents(at);
        let in_key: Vec<usize> = all.iter().copied().filter(|parent| key.contains(parent)).collect();
        let things = |parents: &[usize]| {
            let profiles: Vec<&Profile<'_>> = parents.iter().filter_map(|at| self.columns.get(*at)).collect();
            distinct_together(&profiles, 0..self.rows)
        };
        if in_key.is_empty() || in_key.len() == all.len() {
            return !in_key.is_empty();
        }
        let of_all = things(&all);
        let are_as_many = |columns: &[usize]| of_all.abs_diff(things(columns)) * 1_000 <= of_all;
        let others: Vec<usize> = key.iter().copied().filter(|other| *other != at).collect();
        let has_lines = others.iter().any(|other| self.role(*other) == Role::LineNumber);
        are_as_many(&in_key) || (has_lines && are_as_many(&others))
    }
}

/// Natural logarithm of the number of sets of `size` of `column_count` columns.
fn ln_sets(column_count: usize, size: usize) -> f64 {
    (0..size.min(column_count)).map(|taken| ((column_count - taken) as f64 / (taken + 1) as f64).ln()).sum()
}

#[cfg(test)]
#[path = "natural_keys_tests.rs"]
mod tests;
