//! Keys that all of some profiles count.

use crate::evaluate::EvaluateError;
use crate::evaluate::candidates::considered::{ConsideredCandidate, Purpose};
use crate::evaluate::options::{AdvisorOptions, AlsoCounted, EvaluateOptions};
use crate::evaluate::pass::time_column::time_column;
use crate::evaluate::profiles::{Header, Profile, ProfileError};
use evenkeel_model::note::Note;
use evenkeel_model::table::{Candidate, Transform};

/// Keys that all profiles count.
pub(super) struct CommonKeys {
    /// Partition keys that some profile judges.
    pub(super) judged: Vec<Candidate>,
    /// The other partition keys.
    also_counted: Vec<Candidate>,
    primary_keys: Vec<PrimaryKey>,
    pub(super) notes: Vec<Note>,
}

/// Primary key that all profiles count.
struct PrimaryKey {
    key: Candidate,
    partitioned_by: Candidate,
    repeats: Repetition,
}

/// Method of finding the repeats of a primary key over all profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repetition {
    /// From the keys of all rows.
    OfRows,
    /// By adding the counts of each profile, because no key can occur in two of them.
    Sums,
    Unknown,
}

impl CommonKeys {
    pub(super) fn from_profiles(profiles: &[Profile]) -> Result<Self, ProfileError> {
        let Some((first, others)) = profiles.split_first() else { return Err(ProfileError::None) };
        let judged = |profile: &Profile| profile.header.options.partition_keys.clone();
        let mut all: Vec<Candidate> = profiles.iter().flat_map(judged).collect();
        all.extend(first.header.options.also_counted.iter().cloned());
        let mut known: Vec<Candidate> = Vec::new();
        for key in all.into_iter().filter(|key| profiles.iter().all(|profile| profile.counts(key))) {
            if !known.contains(&key) {
                known.push(key);
            }
        }
        let is_judged = |key: &Candidate| {
            profiles.iter().any(|profile| profile.header.options.partition_keys.contains(key))
        };
        let (mut judged, mut also_counted): (Vec<_>, Vec<_>) = known.into_iter().partition(is_judged);
        if judged.is_empty() {
            judged = std::mem::take(&mut also_counted);
        }
        if judged.is_empty() {
            return Err(no_common_key(profiles));
        }
        let mut common = Self { judged, also_counted, primary_keys: Vec::new(), notes: Vec::new() };
        for (key, by) in first.primary_keys() {
            if others.iter().all(|other| other.primary_keys().any(|own| own == (key, by))) {
                common.add_primary_key(key, by, profiles)?;
            }
        }
        common.note_missing(profiles);
        Ok(common)
    }

    fn add_primary_key(
        &mut self,
        key: &Candidate,
        by: &Candidate,
        profiles: &[Profile],
    ) -> Result<(), EvaluateError> {
        let repeats = match profiles {
            [_] => Repetition::OfRows,
            several if several.iter().all(|profile| profile.has_rows_of(key)) => Repetition::OfRows,
            several if has_time(key, several)? && are_apart(several) => Repetition::Sums,
            _ => Repetition::Unknown,
        };
        match repeats {
            Repetition::Unknown => self.notes.push(Note::RepeatsUnknown { key: key.to_string() }),
            Repetition::OfRows | Repetition::Sums => {}
        }
        self.primary_keys.push(PrimaryKey { key: key.clone(), partitioned_by: by.clone(), repeats });
        Ok(())
    }

    /// Primary keys whose repeats are known.
    fn known_primary_keys(&self) -> impl Iterator<Item = &PrimaryKey> {
        self.primary_keys.iter().filter(|key| key.repeats != Repetition::Unknown)
    }

    /// Whether the repeats of a primary key are added up.
    pub(super) fn adds_repeats(&self, key: &Candidate) -> bool {
        self.primary_keys.iter().any(|known| known.key == *key && known.repeats == Repetition::Sums)
    }

    /// Notes the keys that some profiles judge, and others do not count.
    fn note_missing(&mut self, profiles: &[Profile]) {
        let mut missing: Vec<String> = Vec::new();
        for profile in profiles {
            let of_rows = profile.primary_keys().map(|(key, _)| key);
            let of_rows = of_rows.filter(|key| !self.primary_keys.iter().any(|known| known.key == **key));
            let of_rows = of_rows.map(|key| format!("PRIMARY KEY ({key})"));
            let judged = profile.header.options.partition_keys.iter();
            let judged = judged.filter(|key| !self.judged.contains(key)).map(|key| format!("HASH({key})"));
            for key in of_rows.chain(judged) {
                if !missing.contains(&key) {
                    missing.push(key);
                }
            }
        }
        if let (false, Some(first)) = (missing.is_empty(), profiles.first()) {
            let (file, profile_count) = (first.name.clone(), profiles.len() as u64);
            self.notes.push(Note::KeysNotInAllProfiles { keys: missing, profiles: profile_count, file });
        }
    }

    /// Whether a candidate is judged.
    pub(super) fn judges(&self, candidate: &ConsideredCandidate) -> bool {
        let key = Candidate::from_columns(&candidate.key);
        match candidate.purpose {
            Purpose::PartitionKey => self.judged.contains(&key),
            Purpose::PrimaryKey => self.known_primary_keys().any(|known| known.key == key),
        }
    }

    /// Returns options with these keys, counted as in the profiles; `latest` is the header of the
    /// profile with the last rows.
    pub(super) fn options(&self, options: AdvisorOptions, latest: &Header) -> AdvisorOptions {
        let Header { options: own, find_primary_keys, nodes, nodes_given, .. } = latest;
        let primary_keys: Vec<Candidate> = self.known_primary_keys().map(|known| known.key.clone()).collect();
        let current = options.current_partition_key.or(latest.current_partition_key.clone());
        let current_primary_key = latest.current_primary_key.clone();
        AdvisorOptions {
            find_primary_keys: *find_primary_keys && !primary_keys.is_empty(),
            current_partition_key: current.filter(|key| self.judged.contains(key)),
            current_primary_key: current_primary_key.filter(|key| primary_keys.contains(key)),
            evaluate: EvaluateOptions {
                partition_keys: self.judged.clone(),
                also_counted: self.also_counted.clone(),
                primary_keys,
                partitioned_by: self.known_primary_keys().map(|known| known.partitioned_by.clone()).collect(),
                memory: options.evaluate.memory,
                ..own.clone()
            },
            also_counted: AlsoCounted::Nothing,
            nodes: nodes.clone(),
            nodes_given: *nodes_given,
            ttl: latest.ttl.clone(),
            has_file_per_partition: false,
            partition_rows: Vec::new(),
            ..options
        }
    }
}

impl Profile {
    /// Whether a partition key is counted.
    fn counts(&self, key: &Candidate) -> bool {
        let EvaluateOptions { partition_keys, also_counted, .. } = &self.header.options;
        partition_keys.contains(key) || also_counted.contains(key)
    }

    /// Primary keys, each with the partition key in whose partitions its rows are counted.
    fn primary_keys(&self) -> impl Iterator<Item = (&Candidate, &Candidate)> {
        self.header.options.primary_keys.iter().zip(&self.header.options.partitioned_by)
    }

    fn has_rows_of(&self, key: &Candidate) -> bool {
        let keys = self.header.options.primary_keys.iter().zip(&self.header.repeats);
        keys.filter(|(known, _)| *known == key).all(|(_, repeats)| repeats.has_rows)
    }
}

/// Whether a key contains the time of its rows, which all have one.
fn has_time(key: &Candidate, profiles: &[Profile]) -> Result<bool, EvaluateError> {
    let Some(first) = profiles.first() else { return Ok(false) };
    let time = time_column(&first.header.columns, &first.header.options)?;
    let is_time = |name: &str| time.as_ref().is_some_and(|time| time.name == *name);
    let mut parts = key.parts().iter();
    let is_in_key = parts.any(|part| is_time(&part.column) && part.transform == Transform::Identity);
    Ok(is_in_key && profiles.iter().all(|profile| profile.header.rows_without_time == 0))
}

/// Whether the rows of each profile are known to be later than those of the previous one.
fn are_apart(profiles: &[Profile]) -> bool {
    let mut pairs = profiles.iter().zip(profiles.iter().skip(1));
    pairs.all(|(a, b)| a.times_between(b).is_some_and(|(latest, earliest)| latest < earliest))
}

fn no_common_key(profiles: &[Profile]) -> ProfileError {
    let list = |profile: &Profile| {
        let keys = profile.header.options.partition_keys.iter().map(ToString::to_string);
        keys.collect::<Vec<_>>().join("), (")
    };
    match profiles {
        [first, .., last] => ProfileError::NoCommonKey {
            file: first.name.clone(),
            other: last.name.clone(),
            keys: list(first),
            other_keys: list(last),
        },
        _ => ProfileError::None,
    }
}
