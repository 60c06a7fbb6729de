//! Results without the values of rows.
//!
//! Every field of a result is named here, so that a new one does not compile until someone decides
//! whether it holds values. Figures, lengths, counts, and the names of columns and files are kept,
//! but not the values of folders such as `tenant=acme`. Keys become numbers, and times become
//! offsets from the first time. Findings are recomputed from the masked result, so they cannot
//! quote anything else.

use serde_json::Value;

use crate::evaluate::EvaluateError;
use crate::evaluate::advice::AdvisorReport;
use crate::evaluate::candidates::workload::StatementReport;
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::judged_windows::WindowFigures;
use crate::evaluate::figures::over_time::OverTime;
use crate::evaluate::figures::partition_key::{HeavyHitter, PartitionKeyReport, PlacementReport};
use crate::evaluate::figures::primary_key::{DuplicateExample, PrimaryKeyReport};
use crate::evaluate::roles::carried_times::CarriedTimes;
use evenkeel_input::source::SourceError;
use evenkeel_model::masked_path::{masked_path, masked_paths};
use evenkeel_model::note::Note;
use evenkeel_placement::placement::PlacementError;
use evenkeel_stats::windows::TimeRange;

/// Replacement for the reason of a fault that may quote values.
const MASKED: &str = "(the reason may quote values, and they are masked)";

impl AdvisorReport {
    /// Replaces the values of keys by numbers and times by the time since the first one, so that a
    /// result can be shared. Within a key, equal numbers mean equal values.
    pub fn mask_values(&mut self) {
        let Self {
            inputs,
            input_bytes: _,
            columns: _,
            roles,
            evaluation,
            considered: _,
            statements,
            ranking: _,
            recommendation,
            findings: _,
            unreadable_rows: _,
            notes,
            masked,
            seconds: _,
            wants_primary_key: _,
            considered_from: _,
            sorted_by: _,
            measured: _,
            profiles: _,
        } = self;
        if std::mem::replace(masked, true) {
            return;
        }
        if evaluation.time_range.is_some() {
            notes.push(Note::TimesMasked);
        }
        mask_evaluation(evaluation);
        roles.iter_mut().filter_map(|role| role.times.as_mut()).for_each(CarriedTimes::mask);
        statements.iter_mut().for_each(mask_statement);
        notes.iter_mut().for_each(Note::mask);
        for command in &mut recommendation.commands {
            *command = masked_paths(command, false);
        }
        inputs.iter_mut().for_each(|input| *input = masked_path(input));
        self.find_findings();
    }
}

fn mask_evaluation(evaluation: &mut Evaluation) {
    let Evaluation { rows: _, bytes: _, sample: _, time: _, time_range, candidates, primary_keys } =
        evaluation;
    let earliest = time_range.as_ref().map_or(0, |range| range.earliest_micros);
    if let Some(range) = time_range {
        let TimeRange {
            earliest_micros,
            latest_micros,
            null_rows: _,
            late_rows_by_more_than: _,
            average_rows_per_second: _,
            busy_rows_per_second: _,
        } = range;
        *latest_micros = latest_micros.saturating_sub(*earliest_micros);
        *earliest_micros = 0;
    }
    candidates.iter_mut().for_each(|key| mask_partition_key(key, earliest));
    primary_keys.iter_mut().for_each(mask_primary_key);
}

/// Replaces the values of a key by `number`.
fn mask_key(key: &mut [Value], number: usize) {
    key.fill(Value::from(format!("value {number}")));
}

/// Masks a key of rows from `earliest` on.
fn mask_partition_key(report: &mut PartitionKeyReport, earliest: i64) {
    let PartitionKeyReport {
        partition_key: _,
        distinct: _,
        null_rows: _,
        mean_key_bytes: _,
        max_key_bytes: _,
        type_obstacle: _,
        heavy_hitters,
        placements,
        left_out: _,
        over_time,
        candidate: _,
    } = report;
    for (number, hitter) in (1..).zip(heavy_hitters) {
        let HeavyHitter { key, identity, rows: _, error: _, share: _, share_interval: _ } = hitter;
        mask_key(key, number);
        *identity = None;
    }
    for placement in placements {
        mask_placement(placement, earliest);
    }
    over_time.iter_mut().for_each(|time| mask_over_time(time, earliest));
}

fn mask_placement(report: &mut PlacementReport, earliest: i64) {
    let PlacementReport {
        function: _,
        status: _,
        rows_per_partition: _,
        bytes_per_partition: _,
        skew: _,
        noise_floor: _,
        causes: _,
        empty_by_chance: _,
        share_of_heaviest_partition: _,
        over_time,
        capacity: _,
        per_batch: _,
        verdict: _,
        nodes: _,
        intervals: _,
        windows,
        placement: _,
    } = report;
    let first = windows.first().map_or((0, 0), |window| (window.number, window.start_micros));
    for window in windows {
        window.number -= first.0;
        window.start_micros -= first.1;
    }
    over_time.iter_mut().for_each(|time| mask_over_time(time, earliest));
}

/// Numbers windows from the window of the earliest row. Windows begin at multiples of their length,
/// so a difference to the row itself would reveal its place in the window.
fn mask_over_time(over_time: &mut OverTime, earliest: i64) {
    let OverTime {
        window_micros,
        windows: _,
        judged_windows: _,
        effective_partitions: _,
        share_of_fullest: _,
        lasting_share_of_fullest: _,
        worst_window,
        peak,
        pattern: _,
        evidence: _,
        examined,
        lasting_effective_partitions: _,
    } = over_time;
    for (window, length) in [(worst_window, examined.window_micros), (peak, *window_micros)] {
        let WindowFigures {
            start_micros,
            rows: _,
            partition: _,
            share_of_fullest: _,
            effective_partitions: _,
            rows_per_second_of_fullest: _,
        } = window;
        *start_micros -= length.slice_of(earliest).saturating_mul(length.get());
    }
}

fn mask_primary_key(report: &mut PrimaryKeyReport) {
    let PrimaryKeyReport {
        columns: _,
        unique: _,
        distinct_keys: _,
        duplicate_rows: _,
        identical_rows: _,
        conflicting_rows: _,
        duplicate_rows_interval: _,
        examples,
        null_rows: _,
        obstacles: _,
        mean_key_bytes: _,
        max_key_bytes: _,
        partitioned_by: _,
        partitions: _,
        in_order_fraction: _,
        late: _,
        rank_correlation: _,
        layout: _,
        pruning: _,
        candidate: _,
        placed_by: _,
        repeated,
        uniqueness: _,
    } = report;
    for (number, example) in (1..).zip(examples) {
        let DuplicateExample { key, first, second, differs_in: _ } = example;
        mask_key(key, number);
        for place in [first, second] {
            *place = masked_paths(place, true);
        }
    }
    repeated.clear();
}

/// Keeps the names of a statement and its columns, and masks the reason why it cannot be planned,
/// which may quote literals.
fn mask_statement(report: &mut StatementReport) {
    let StatementReport { statement: _, runs: _, fixed_columns: _, problem, fan_out: _ } = report;
    if let Some(problem) = problem {
        "it cannot be planned".clone_into(problem);
    }
}

impl EvaluateError {
    /// Returns the error without the values of rows.
    #[must_use]
    pub fn masked(self) -> Self {
        match self {
            Self::Source(source) => Self::Source(mask_source(source)),
            Self::Placement { key, source: PlacementError::OutOfRange { column, column_type, .. } } => {
                let reason = format!("key ({key}): a value of key column {column} is outside {column_type}");
                Self::Elsewhere { reason, too_large: false }
            }
            Self::Placement { source: PlacementError::Values { .. }, .. } | Self::Sort { .. } => {
                Self::Elsewhere { reason: format!("keys cannot be placed {MASKED}"), too_large: false }
            }
            // The error arrived as text from another machine, and may quote values.
            Self::Elsewhere { too_large, .. } => {
                Self::Elsewhere { reason: format!("the evaluation failed {MASKED}"), too_large }
            }
            other @ (Self::UnknownColumn { .. }
            | Self::UnknownRoleColumn { .. }
            | Self::NotTime { .. }
            | Self::Placement { .. }
            | Self::UnknownTime { .. }
            | Self::Time { .. }
            | Self::TooManyWindows { .. }
            | Self::NoRows
            | Self::Memory { .. }
            | Self::Spill(_)
            | Self::NotMergeable
            | Self::KeyParts { .. }
            | Self::Interrupted) => other,
        }
    }
}

/// Returns the error without the values of rows, which errors of parsers may quote.
#[must_use]
pub fn mask_source(error: SourceError) -> SourceError {
    match error {
        SourceError::Unreadable { mut reject } => {
            reject.mask();
            SourceError::Unreadable { reject }
        }
        SourceError::Format { file, format, .. } => {
            SourceError::Format { file, format, reason: MASKED.to_owned() }
        }
        SourceError::Infer { file, .. } => SourceError::Infer { file, reason: MASKED.to_owned() },
        SourceError::Arrow { file, .. } => SourceError::Infer { file, reason: MASKED.to_owned() },
        // A file without a header has values in place of column names.
        SourceError::RepeatedColumn { file, .. } => {
            SourceError::RepeatedColumn { file, column: "(masked)".to_owned() }
        }
        SourceError::HeaderLikeRow { file, column_type, .. } => {
            SourceError::HeaderLikeRow { file, name: "(masked)".to_owned(), column_type }
        }
        SourceError::OtherHeader { file, given, .. } => {
            SourceError::OtherHeader { file, unknown: "(masked)".to_owned(), given }
        }
        other => other,
    }
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
