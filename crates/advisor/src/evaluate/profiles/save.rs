//! Saves evaluations as profiles.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use twox_hash::XxHash3_64;

use crate::evaluate::EvaluateError;
use crate::evaluate::advice::{Advice, Counting, advise_here};
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::look::Look;
use crate::evaluate::options::{AdvisorOptions, AlsoCounted, EvaluateOptions};
use crate::evaluate::profiles::{Header, Part, Profile, SavedLook, SavedRepeats};
use evenkeel_input::source::Export;
use evenkeel_model::note::Note;

/// Judges the keys of an export as [`crate::evaluate::advise`] does, and returns the counts as a
/// profile of about `most_bytes` bytes: if the distinct values of all keys need more, the largest
/// keys are stored as estimates.
///
/// # Errors
/// As for [`crate::evaluate::advise`].
pub fn advise_and_save(
    export: &Export,
    options: AdvisorOptions,
    most_bytes: u64,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<(crate::evaluate::AdvisorReport, Profile), EvaluateError> {
    let also_counted = match options.also_counted {
        AlsoCounted::Nothing => AlsoCounted::Columns,
        given => given,
    };
    let options = AdvisorOptions { also_counted, ..options };
    let (advice, counting) = advise_here(export, options, Some(most_bytes), progress, stop)?;
    let profile = Profile::new(&advice, counting.unwrap_or_default(), None);
    Ok((advice.report, profile))
}

impl Profile {
    /// Creates the profile of an evaluation, or of the `parts` that were merged.
    pub(super) fn new(advice: &Advice, counting: Counting, parts: Option<Vec<Part>>) -> Self {
        let Advice { report, options, columns, declared, look, values } = advice;
        let evaluation = &report.evaluation;
        let repeats =
            evaluation.primary_keys.iter().zip(&counting.has_rows).map(|(key, has_rows)| SavedRepeats {
                has_rows: *has_rows,
                distinct_keys: key.distinct_keys,
                duplicate_rows: key.duplicate_rows,
                identical_rows: key.identical_rows,
                conflicting_rows: key.conflicting_rows,
                examples: key.examples.clone(),
            });
        let partitioned_by = evaluation.primary_keys.iter().map(|key| key.placed_by.clone());
        let range = evaluation.time_range.as_ref();
        let without_values = |note: &Note| match note {
            Note::OfProfile { note, .. } => note.clone(),
            note => {
                let mut note = note.clone();
                note.mask();
                note.to_string()
            }
        };
        let inputs = &report.inputs;
        let first_input = inputs.first().cloned().unwrap_or_default();
        let header = Header {
            columns: columns.clone(),
            declared: declared.clone(),
            options: EvaluateOptions { partitioned_by: partitioned_by.collect(), ..options.evaluate.clone() },
            find_primary_keys: options.find_primary_keys,
            nodes: options.nodes.clone(),
            nodes_given: options.nodes_given,
            table: options.table.clone(),
            current_partition_key: options.current_partition_key.clone(),
            current_primary_key: options.current_primary_key.clone(),
            ttl: options.ttl.clone(),
            estimated: counting.estimated,
            repeats: repeats.collect(),
            look: SavedLook::from(look),
            rows: evaluation.rows,
            times: range.map(|range| (range.earliest_micros, range.latest_micros)),
            rows_without_time: range.map_or(0, |range| range.null_rows),
            input_bytes: report.input_bytes,
            unreadable_rows: report.unreadable_rows,
            notes: report.notes.iter().filter(|note| note.is_of_rows()).map(without_values).collect(),
            parts: parts.unwrap_or_else(|| {
                let checksum = checksum(evaluation, counting.checksum);
                vec![Part {
                    checksum,
                    rows: evaluation.rows,
                    first_input: first_input.clone(),
                    inputs: inputs.len(),
                }]
            }),
        };
        let name = match inputs.len() {
            0 | 1 => first_input,
            several => format!("{first_input} and {} more", several - 1),
        };
        Self { name, header, values: values.clone(), state: Some(counting.state), path: None }
    }
}

/// Checksum of rows, independent of their order and of the counted keys. Without the identities of
/// the rows, which are computed for primary keys, it is a checksum of the counts of the first key.
fn checksum(evaluation: &Evaluation, of_rows: u64) -> u64 {
    let range = evaluation.time_range.as_ref();
    let times = range.map(|range| (range.earliest_micros, range.latest_micros, range.null_rows));
    let first = evaluation.candidates.first().filter(|_| evaluation.primary_keys.is_empty());
    let first = first.and_then(|key| Some((&key.partition_key, key.placements.first()?)));
    let placed =
        first.map(|(key, placement)| (key, placement.function.to_string(), &placement.rows_per_partition));
    let facts = serde_json::json!([evaluation.rows, evaluation.bytes, times, of_rows, placed]);
    XxHash3_64::oneshot(facts.to_string().as_bytes())
}

impl From<&Look> for SavedLook {
    fn from(look: &Look) -> Self {
        Self {
            considered: look.considered.clone(),
            considered_from: look.considered_from,
            roles: look.roles.clone(),
            natural_key: look.natural_key.clone(),
            identifying: look.identifying.clone(),
            sorted_by: look.sorted_by.clone(),
        }
    }
}

impl From<SavedLook> for Look {
    fn from(saved: SavedLook) -> Self {
        let SavedLook { considered, considered_from, roles, natural_key, identifying, sorted_by } = saved;
        Self {
            considered,
            considered_from,
            roles,
            natural_key,
            identifying,
            sorted_by,
            rows: 0,
            fractional_times: BTreeMap::new(),
            search_cut_short: false,
        }
    }
}
