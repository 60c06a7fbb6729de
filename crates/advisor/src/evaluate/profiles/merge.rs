//! Merging of profiles.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::evaluate::EvaluateError;
use crate::evaluate::advice::{Advice, AdvisorReport, Counting, EvaluatedExport};
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::merged_profile::MergedProfile;
use crate::evaluate::look::Look;
use crate::evaluate::options::{AdvisorOptions, EvaluateOptions};
use crate::evaluate::pass::evaluator::Evaluator;
use crate::evaluate::pass::partition_key::{FoundKey, KeyOccurrence};
use crate::evaluate::pass::primary_key::EXAMPLES;
use crate::evaluate::profiles::check::check;
use crate::evaluate::profiles::common_keys::CommonKeys;
use crate::evaluate::profiles::{Header, Part, Profile, ProfileError, SavedRepeats};
use evenkeel_input::source::{Export, Extent, InputOptions};
use evenkeel_model::note::Note;
use evenkeel_model::table::Candidate;
use evenkeel_stats::sketch::Repeats;

/// Maximum number of values of heavy keys that a merged profile keeps.
const MAX_VALUES: usize = 4096;

/// Judges the keys of several exports from their profiles, as if they were one. Keys that only some
/// of them count are left out, with a note. The keys and the counting parameters come from the
/// profiles, not from `options`. If `save` gives a size, the merged counts are returned as a
/// profile too.
///
/// # Errors
/// [`ProfileError`] if the profiles do not fit together, or are damaged.
pub fn advise_merged(
    profiles: Vec<Profile>,
    options: AdvisorOptions,
    save: Option<u64>,
    stop: &AtomicBool,
) -> Result<(AdvisorReport, Option<Profile>), ProfileError> {
    let started = Instant::now();
    let profiles = in_order_of_time(profiles);
    check(&profiles)?;
    let common = CommonKeys::from_profiles(&profiles)?;
    let (Some(base), Some(latest)) =
        (profiles.iter().max_by_key(|profile| profile.inferred()), profiles.last())
    else {
        return Err(ProfileError::None);
    };
    let options = common.options(options, &latest.header);
    let mut look = Look::from(base.header.look.clone());
    look.considered.retain(|candidate| !candidate.kept || common.judges(candidate));
    let is_one = profiles.len() == 1;
    if !is_one {
        look.considered_from = look.considered_from.map(|extent| Extent { whole: false, ..extent });
    }
    let inferred = look.clone();
    let mut notes = notes_of(&profiles);
    notes.extend(common.notes.iter().cloned());
    let has_none = !latest.header.find_primary_keys && latest.header.options.primary_keys.is_empty();
    notes.extend(has_none.then_some(Note::NoPrimaryKey));
    let mut pairs = profiles.iter().zip(profiles.iter().skip(1));
    let overlap = pairs.find(|(a, b)| a.times_between(b).is_some_and(|(latest, first)| latest > first));
    notes.extend(overlap.map(|(a, b)| Note::ProfilesOverlap { one: a.name.clone(), other: b.name.clone() }));
    let of_look = Note::InferredFromProfile { file: base.name.clone(), rows: base.rows() };
    let merged =
        profiles.iter().map(|profile| MergedProfile { file: profile.name.clone(), rows: profile.rows() });
    let merged: Vec<MergedProfile> = merged.collect();
    let columns = base.header.columns.clone();
    let declared = latest.header.declared.clone();
    let unreadable_rows = profiles.iter().map(|profile| profile.header.unreadable_rows).sum();
    let input_bytes = profiles.iter().map(|profile| profile.header.input_bytes).sum();
    let parts: Vec<Part> = profiles.iter().flat_map(|profile| profile.header.parts.clone()).collect();
    let saved: Vec<SavedFacts> =
        profiles.iter().map(|profile| SavedFacts::new(profile, &options.evaluate)).collect();
    let mut together: Option<Evaluator> = None;
    for profile in profiles {
        if stop.load(Ordering::Relaxed) {
            return Err(EvaluateError::Interrupted.into());
        }
        let counted = profile.into_evaluator(&options.evaluate, &common)?;
        match &mut together {
            Some(together) => together.merge(counted)?,
            none => *none = Some(counted),
        }
    }
    let Some(mut together) = together else { return Err(ProfileError::None) };
    let counting = save.map(|most| Counting::new(&mut together, most)).transpose()?;
    let mut evaluation = together.finish()?;
    evaluation.candidates.truncate(options.evaluate.partition_keys.len());
    let values = add_saved(&mut evaluation, &saved);
    let confirmed = look.confirm(&evaluation);
    notes.extend(if is_one { confirmed } else { Some(of_look) });
    let export = Export::with_columns(
        Vec::new(),
        InputOptions { declared: declared.clone(), ..InputOptions::default() },
        columns.clone(),
    );
    let evaluated = EvaluatedExport { evaluation, look, notes, unreadable_rows, measured: None };
    let mut report = evaluated.report(&export, &options, started);
    report.inputs = merged.iter().map(|profile| profile.file.clone()).collect();
    report.input_bytes = input_bytes;
    report.profiles = merged;
    let advice = Advice { report, options, columns, declared, look: inferred, values };
    let profile = counting.map(|counting| Profile::new(&advice, counting, Some(parts)));
    Ok((advice.report, profile))
}

/// Arranges profiles by their first point in time, if all have one.
fn in_order_of_time(mut profiles: Vec<Profile>) -> Vec<Profile> {
    if profiles.iter().all(|profile| profile.header.times.is_some()) {
        profiles.sort_by_key(|profile| profile.header.times);
    }
    profiles
}

impl Profile {
    /// Rank of its roles and candidates: results of a search are preferred, then results from the
    /// most rows.
    fn inferred(&self) -> (bool, u64) {
        (!self.header.look.considered.is_empty(), self.header.rows)
    }

    /// Last point in time of this profile, and first one of the next.
    pub(super) fn times_between(&self, next: &Self) -> Option<(i64, i64)> {
        Some((self.header.times?.1, next.header.times?.0))
    }

    /// Returns the counts of some of the keys.
    fn into_evaluator(
        self,
        options: &EvaluateOptions,
        common: &CommonKeys,
    ) -> Result<Evaluator, ProfileError> {
        let state = self.state()?;
        let Self { name, header: Header { columns, options: own, repeats, .. }, .. } = self;
        let own = EvaluateOptions { memory: options.memory, ..own };
        let mut evaluator = Evaluator::new(&columns, own)?;
        evaluator.fill(&state).map_err(|error| match error {
            EvaluateError::KeyParts { reason } => ProfileError::Damaged { file: name, reason },
            other => other.into(),
        })?;
        drop(state);
        for (key, repeats) in evaluator.counters.primary_keys.iter_mut().zip(&repeats) {
            if !key.has_rows() || common.adds_repeats(key.keys().0) {
                key.keep_sums(repeats.sums());
            }
        }
        // The rows of each profile are ingested separately.
        evaluator.end_batch();
        evaluator.retain(options);
        Ok(evaluator)
    }
}

impl SavedRepeats {
    fn sums(&self) -> Repeats {
        Repeats {
            distinct_keys: self.distinct_keys,
            duplicate_rows: self.duplicate_rows,
            identical_rows: self.identical_rows,
            conflicting_rows: self.conflicting_rows,
            examples: Vec::new(),
        }
    }
}

/// Facts of a profile about the counted keys, other than the counts.
struct SavedFacts {
    values: HashMap<(usize, u64), KeyOccurrence>,
    repeats: Vec<SavedRepeats>,
}

impl SavedFacts {
    fn new(profile: &Profile, options: &EvaluateOptions) -> Self {
        let own = &profile.header.options;
        let place = |of_own: usize| {
            let key = own.partition_keys.iter().chain(&own.also_counted).nth(of_own)?;
            options.partition_keys.iter().chain(&options.also_counted).position(|other| other == key)
        };
        let value =
            |key: &FoundKey| Some(((place(key.partition_key)?, key.identity), key.occurrence.clone()));
        let values = profile.values.iter().filter_map(value);
        let repeats = |key: &Candidate| {
            let place = own.primary_keys.iter().position(|other| other == key)?;
            profile.header.repeats.get(place).cloned()
        };
        Self { values: values.collect(), repeats: options.primary_keys.iter().filter_map(repeats).collect() }
    }
}

/// Adds the values of heavy keys and the examples of repeated keys that the profiles know, and
/// returns all known values.
fn add_saved(evaluation: &mut Evaluation, saved: &[SavedFacts]) -> Vec<FoundKey> {
    for (number, report) in evaluation.candidates.iter_mut().enumerate() {
        for place in 0..report.heavy_hitters.len() {
            let Some(hitter) = report.heavy_hitters.get_mut(place) else { continue };
            let Some(identity) = hitter.identity else { continue };
            let known = saved.iter().find_map(|saved| saved.values.get(&(number, identity)));
            let Some(known) = known else { continue };
            (hitter.identity, hitter.key) = (None, known.values.clone());
            if place == 0 {
                report.place_heaviest(&known.partitions);
            }
        }
    }
    for (number, report) in evaluation.primary_keys.iter_mut().enumerate() {
        let of_key = saved.iter().filter_map(|saved| saved.repeats.get(number));
        report.examples = of_key.flat_map(|repeats| repeats.examples.clone()).collect();
        report.examples.sort_by_key(|example| example.differs_in.is_empty());
        report.examples.truncate(EXAMPLES);
    }
    let values = saved.iter().flat_map(|saved| &saved.values);
    let mut values: HashMap<(usize, u64), KeyOccurrence> =
        values.map(|(key, occurrence)| (*key, occurrence.clone())).take(MAX_VALUES).collect();
    let mut values: Vec<FoundKey> = values
        .drain()
        .map(|((partition_key, identity), occurrence)| FoundKey { partition_key, identity, occurrence })
        .collect();
    values.sort_by_key(|key| (key.partition_key, key.identity));
    values
}

/// Returns the notes of the profiles, each sentence once.
fn notes_of(profiles: &[Profile]) -> Vec<Note> {
    let mut notes: Vec<(&String, &Profile, u64)> = Vec::new();
    for profile in profiles {
        for note in &profile.header.notes {
            match notes.iter_mut().find(|(known, ..)| *known == note) {
                Some((_, _, profiles)) => *profiles += 1,
                None => notes.push((note, profile, 1)),
            }
        }
    }
    let note = |(note, first, profiles): (&String, &Profile, u64)| Note::OfProfile {
        file: first.name.clone(),
        more: profiles - 1,
        note: note.clone(),
    };
    notes.into_iter().map(note).collect()
}
