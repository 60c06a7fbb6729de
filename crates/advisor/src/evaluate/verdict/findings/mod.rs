//! Findings: problems to look out for.

mod partition_key;
mod primary_key;
mod statements;
#[cfg(test)]
mod testing;
mod words;

use crate::evaluate::candidates::workload::StatementReport;
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::partition_key::PlacementReport;
use crate::evaluate::figures::recommendation::{RankedKey, Recommendation};
use crate::evaluate::verdict::findings::partition_key::{balance, defects, node_counts, values};
use crate::evaluate::verdict::findings::primary_key::{append, nulls, rows_lost, unique_by_chance};
use crate::evaluate::verdict::findings::statements::reach;
use crate::evaluate::verdict::findings::words::percent;
use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};
use evenkeel_model::units::{ByteRate, Micros, PartitionCount};
use evenkeel_stats::skew::{MIN_ROWS_PER_PARTITION, Verdict};

/// Sample size below which a sample is not reliable.
const MIN_SAMPLED: u64 = 10_000;
/// Fraction of rows out of time order above which they are reported.
const UNORDERED: f64 = 0.01;

/// Returns the findings, the most severe first.
///
/// `wants_primary_key` says whether a primary key was searched for or named.
pub(crate) fn find_findings(
    evaluation: &Evaluation,
    statements: &[StatementReport],
    ranking: &[RankedKey],
    recommendation: &Recommendation,
    wants_primary_key: bool,
    sorted_by: Option<&str>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let partitions = PartitionCount::new(u64::from(recommendation.partitions)).ok();
    no_key(evaluation, recommendation, wants_primary_key, &mut findings);
    findings.extend(partitions.and_then(|partitions| few_rows(evaluation, partitions)));
    for key in &evaluation.candidates {
        if let Some(placement) = partitions.and_then(|count| key.over(count)) {
            balance(key, placement, &mut findings);
        }
        values(key, evaluation.rows, &mut findings);
        defects(key, &mut findings);
    }
    node_counts(evaluation, &mut findings);
    for key in &evaluation.primary_keys {
        rows_lost(key, &mut findings);
        nulls(key, evaluation, &mut findings);
        unique_by_chance(key, recommendation, &mut findings);
        append(key, &mut findings);
    }
    if let Some(placement) = chosen_placement(evaluation, recommendation) {
        peak(placement, evaluation, recommendation, &mut findings);
    }
    reach(statements, evaluation, ranking, &mut findings);
    time(evaluation, sorted_by, &mut findings);
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Adds a finding for each wanted kind of key that has no usable candidate.
fn no_key(
    evaluation: &Evaluation,
    recommendation: &Recommendation,
    wants_primary_key: bool,
    findings: &mut Vec<Finding>,
) {
    let mut add = |code, what: &str, tried: usize, advice: &str| {
        findings.push(Finding {
            code,
            severity: Severity::Problem,
            subject: "the export".into(),
            message: match tried {
                0 => format!("no column can be in a {what}"),
                _ => format!("none of {tried} candidates can be a {what}"),
            },
            measured: 0.0,
            threshold: 1.0,
            advice: advice.to_owned(),
        });
    };
    if recommendation.partition_key.is_empty() {
        let advice = "Key columns have no NULL and a type that keys can have. Name candidates with --partition-key, or export an id.";
        add(FindingCode::NoUsablePartitionKey, "partition key", evaluation.candidates.len(), advice);
    }
    let usable =
        evaluation.primary_keys.iter().any(|key| key.obstacles.is_empty() && key.candidate.is_plain());
    if wants_primary_key && !usable {
        let advice = "Key columns have no NULL and a type that keys can have. Name candidates with --primary-key, or export an id.";
        add(FindingCode::NoUsablePrimaryKey, "primary key", evaluation.primary_keys.len(), advice);
    }
}

/// Reports too few rows to judge partition keys: all keys, or only those with about as many values
/// as rows.
fn few_rows(evaluation: &Evaluation, partitions: PartitionCount) -> Option<Finding> {
    let placements = evaluation.candidates.iter().filter_map(|key| key.over(partitions));
    let withheld = placements.clone().filter(|placement| placement.verdict == Verdict::FewRows).count();
    let all = placements.count();
    let each = evaluation.rows as f64 / partitions.len() as f64;
    (withheld > 0).then(|| Finding {
        code: FindingCode::FewRows,
        severity: if withheld == all { Severity::Problem } else { Severity::Warning },
        subject: "the export".into(),
        message: format!(
            "{} rows are too few to judge {withheld} of {all} partition keys over {partitions} partitions: {each:.1} rows for each",
            evaluation.rows
        ),
        measured: each,
        threshold: MIN_ROWS_PER_PARTITION as f64,
        advice: "Evaluate more rows, or fewer partitions. Until then the balance of these keys is not judged.".to_owned(),
    })
}

/// Returns the recommended placement.
fn chosen_placement<'a>(
    evaluation: &'a Evaluation,
    recommendation: &Recommendation,
) -> Option<&'a PlacementReport> {
    let mut keys = evaluation.candidates.iter();
    let key = keys.find(|key| key.partition_key == recommendation.partition_key)?;
    key.over(PartitionCount::new(u64::from(recommendation.partitions)).ok()?)
}

/// Compares the load of the busiest partition with the capacity of a partition.
fn peak(
    placement: &PlacementReport,
    evaluation: &Evaluation,
    recommendation: &Recommendation,
    findings: &mut Vec<Finding>,
) {
    let Some(time) = &placement.over_time else { return };
    // A single instant has no rate.
    if evaluation.time_range.as_ref().is_some_and(|range| range.earliest_micros == range.latest_micros) {
        return;
    }
    let read =
        evaluation.sample.map_or(1.0, |sample| sample.rows_read as f64 / evaluation.rows.max(1) as f64);
    let row_bytes = evaluation.bytes as f64 / evaluation.rows.max(1) as f64;
    let rate = time.peak.rows_per_second_of_fullest * row_bytes * read;
    let capacity = placement.capacity.per_partition;
    if rate > capacity {
        findings.push(Finding {
            code: FindingCode::PeakRate,
            severity: Severity::Warning,
            subject: Subject::PartitionKey(recommendation.partition_key.clone()),
            message: format!(
                "in the busiest window of {} one partition would have to sustain {}, but it handles {}",
                time.window_micros,
                ByteRate(rate),
                ByteRate(capacity)
            ),
            measured: rate,
            threshold: capacity,
            advice: "Use more partitions, or buffer the peak.".to_owned(),
        });
    }
}

fn time(evaluation: &Evaluation, sorted_by: Option<&str>, findings: &mut Vec<Finding>) {
    if let Some(sample) = evaluation.sample.filter(|sample| sample.rows_sampled < MIN_SAMPLED) {
        findings.push(Finding {
            code: FindingCode::SmallSample,
            severity: Severity::Problem,
            subject: "--sample".into(),
            message: format!("the sample has {} of {} rows", sample.rows_sampled, sample.rows_read),
            measured: sample.rows_sampled as f64,
            threshold: MIN_SAMPLED as f64,
            advice: "Use a larger sample: so few rows say little about keys.".to_owned(),
        });
    }
    let mut add = |code, message, measured, threshold, advice: &str| {
        findings.push(Finding {
            code,
            severity: Severity::Note,
            subject: evaluation.time.as_deref().unwrap_or("time").into(),
            message,
            measured,
            threshold,
            advice: advice.to_owned(),
        });
    };
    let Some(range) = &evaluation.time_range else {
        add(
            FindingCode::NoTime,
            "there is no time column: hotspots over time cannot be detected".to_owned(),
            0.0,
            1.0,
            "Name the column with --time.",
        );
        return;
    };
    if range.null_rows > 0 {
        add(
            FindingCode::TimeMissing,
            format!("{} of {} rows have no time and are in no window", range.null_rows, evaluation.rows),
            range.null_rows as f64,
            0.0,
            "Figures over time cover the other rows.",
        );
    }
    let window = evaluation.candidates.iter().find_map(|key| Some(key.over_time.as_ref()?.window_micros));
    let window = window.unwrap_or(Micros::HOUR);
    let unordered = range.rows_late_for(window) as f64 / evaluation.rows.max(1) as f64;
    if unordered > UNORDERED {
        add(
            FindingCode::TimeUnordered,
            format!(
                "{} of the rows come after rows of a later window ({window}){}",
                percent(unordered),
                sorted_by.map_or(String::new(), |column| format!("; the export is sorted by {column}"))
            ),
            unordered,
            UNORDERED,
            "Windows follow the time in the rows; rows that arrive in another order load partitions in another order too.",
        );
    }
    let judged = evaluation.candidates.iter().any(|key| key.over_time.is_some());
    if !judged && !evaluation.candidates.is_empty() {
        add(
            FindingCode::WindowsTooSmall,
            "no window of time has 2 rows for each partition, so patterns over time are not judged"
                .to_owned(),
            0.0,
            2.0,
            "Evaluate more rows, fewer partitions, or a longer --window.",
        );
    }
}

#[cfg(test)]
mod tests;
