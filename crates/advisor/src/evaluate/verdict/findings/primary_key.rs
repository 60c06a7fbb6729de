//! Problems of a primary key: rows that it loses, and the order of rows.

use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::primary_key::{DuplicateExample, PrimaryKeyReport};
use crate::evaluate::figures::recommendation::Recommendation;
use crate::evaluate::figures::uniqueness::{UniqueBy, Uniqueness};
use crate::evaluate::verdict::findings::words::percent;
use crate::evaluate::verdict::reasons::unique_words;
use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};

/// Rank correlation at which MongoDB `analyzeShardKey` calls a key monotonic.
const MONOTONIC: f64 = 0.7;

/// Minimum fraction of the rows in key order for a primary key to count as appended to.
const APPENDS: f64 = 0.9;

/// Write amplification above which merging is a cost.
const AMPLIFICATION: f64 = 2.0;

/// Expected number of repeats above which having none is evidence of an identifier.
const MAX_BY_CHANCE: f64 = 5.0;

/// Names two rows that share a key, by their places.
fn collision(key: &PrimaryKeyReport) -> String {
    let example = key.examples.iter().find(|example| !example.differs_in.is_empty());
    example.map_or(String::new(), |example| {
        let DuplicateExample { first, second, differs_in, .. } = example;
        let listed = differs_in.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        let more = if differs_in.len() > 4 { " and others" } else { "" };
        format!("; {first} and {second} differ in {listed}{more}")
    })
}

pub(super) fn rows_lost(key: &PrimaryKeyReport, findings: &mut Vec<Finding>) {
    let subject = Subject::PrimaryKey(key.columns.clone());
    if key.conflicting_rows > 0 {
        findings.push(Finding {
            code: FindingCode::ConflictingRows,
            severity: Severity::Problem,
            subject: subject.clone(),
            message: format!(
                "{} rows have the key of an earlier row and other values: an upsert would lose the rows that they replace{}",
                key.conflicting_rows,
                collision(key)
            ),
            measured: key.conflicting_rows as f64,
            threshold: 0.0,
            advice: "If they are versions of one row, keep the newest: that is what an upsert does. If they are separate \
                     rows, add a column that distinguishes them: an id of the event, a sequence number of its source, or a finer time."
                .to_owned(),
        });
    }
    if key.identical_rows > 0 {
        findings.push(Finding {
            code: FindingCode::IdenticalRows,
            severity: Severity::Note,
            subject: subject.clone(),
            message: format!(
                "{} rows are copies of an earlier row: an upsert keeps one of each",
                key.identical_rows
            ),
            measured: key.identical_rows as f64,
            threshold: 0.0,
            advice: "If they are deliveries of one event, load with upsert, which drops copies; if each is a separate event, give them an id.".to_owned(),
        });
    }
    for obstacle in &key.obstacles {
        findings.push(Finding {
            code: FindingCode::PrimaryKeyImpossible,
            severity: Severity::Problem,
            subject: subject.clone(),
            message: obstacle.clone(),
            measured: 1.0,
            threshold: 0.0,
            advice: "Leave the column out, or change it to fit.".to_owned(),
        });
    }
}

/// Adds a finding for rows with NULL in a key that a table can have, unless that is already known
/// of the partition key within it.
pub(super) fn nulls(key: &PrimaryKeyReport, evaluation: &Evaluation, findings: &mut Vec<Finding>) {
    let mut partition_keys = evaluation.candidates.iter();
    let within = partition_keys.find(|other| other.candidate == key.placed_by);
    let is_known = within.is_some_and(|within| within.null_rows == key.null_rows);
    if key.null_rows == 0 || is_known || !key.obstacles.is_empty() {
        return;
    }
    findings.push(Finding {
        code: FindingCode::NullKeys,
        severity: Severity::Warning,
        subject: Subject::PrimaryKey(key.columns.clone()),
        message: format!("{} of {} rows have NULL in the key", key.null_rows, evaluation.rows),
        measured: key.null_rows as f64,
        threshold: 0.0,
        advice: "Key columns are NOT NULL: give these rows a value, or leave the column out of the key."
            .to_owned(),
    });
}

/// Adds a finding for a key that no row repeats but that more rows may repeat.
pub(super) fn unique_by_chance(
    key: &PrimaryKeyReport,
    recommendation: &Recommendation,
    findings: &mut Vec<Finding>,
) {
    let Some(Uniqueness { by: UniqueBy::Chance, repeats_by_chance }) = key.uniqueness else { return };
    let is_chosen = key.columns.iter().all(|column| recommendation.primary_key.contains(column));
    findings.push(Finding {
        code: FindingCode::UniqueByChance,
        severity: if is_chosen { Severity::Warning } else { Severity::Note },
        subject: Subject::PrimaryKey(key.columns.clone()),
        message: unique_words(key),
        measured: repeats_by_chance,
        threshold: MAX_BY_CHANCE,
        advice: "Add a column that identifies a row, such as an id of the event, or evaluate more rows."
            .to_owned(),
    });
}

pub(super) fn append(key: &PrimaryKeyReport, findings: &mut Vec<Finding>) {
    let subject = Subject::PrimaryKey(key.columns.clone());
    let amplification = key.layout.write_amplification;
    if amplification > AMPLIFICATION {
        findings.push(Finding {
            code: FindingCode::Rewrites,
            severity: Severity::Warning,
            subject: subject.clone(),
            message: format!(
                "only {} of the rows arrive in key order; on average {:.1} batches of {} rows overlap, and merging them writes each row \
                 {amplification:.1} times",
                percent(key.in_order_fraction),
                key.layout.depth.average_depth,
                key.layout.batch_rows,
            ),
            measured: amplification,
            threshold: AMPLIFICATION,
            advice: "Begin the primary key with the column in whose order rows arrive, such as the time.".to_owned(),
        });
    }
    if let Some(correlation) = key.rank_correlation {
        let (says, is) = (correlation >= MONOTONIC, key.in_order_fraction >= APPENDS);
        if says != is {
            findings.push(Finding {
                code: FindingCode::RankCorrelationMisleads,
                severity: Severity::Note,
                subject,
                message: format!(
                    "the rank correlation of {correlation:.2} says {}, while {} of the rows arrive in key order",
                    if says { "monotonic" } else { "not monotonic" },
                    percent(key.in_order_fraction),
                ),
                measured: correlation,
                threshold: MONOTONIC,
                advice: "Trust the order and the overlap: the correlation does not see order within short ranges, nor runs \
                         that start over."
                    .to_owned(),
            });
        }
    }
}

#[cfg(test)]
#[path = "primary_key_tests.rs"]
mod tests;
