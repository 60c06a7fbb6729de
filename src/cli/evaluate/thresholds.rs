//! Thresholds of `--fail-on`.

use evenkeel::evaluate::{AdvisorReport, Drift};
use evenkeel::finding::Severity;
use serde_json::Value;

use crate::cli::Failure;
use crate::cli::evaluate::args::Args;

/// Returns the subjects of thresholds: the given keys, else the recommended ones, and the export as
/// a whole.
fn subjects(
    args: &Args,
    assessment: &AdvisorReport,
    drift: &[Drift],
) -> Result<Vec<(String, Value)>, Failure> {
    let mut subjects = Vec::new();
    for key in &assessment.evaluation.candidates {
        let recommended = key.partition_key == assessment.recommendation.partition_key;
        if args.partition_keys.is_empty() && !recommended {
            continue;
        }
        let name = format!("HASH({})", key.partition_key.join(", "));
        let mut of_key = serde_json::to_value(key)?;
        if let Some(fields) = of_key.as_object_mut() {
            fields.remove("placements");
        }
        subjects.push((name.clone(), of_key));
        for placement in &key.placements {
            let name =
                format!("{name} over {} partitions by {}", placement.skew.partitions, placement.function);
            subjects.push((name, serde_json::to_value(placement)?));
        }
    }
    for key in &assessment.evaluation.primary_keys {
        let recommended = key.columns == assessment.recommendation.primary_key;
        if !args.primary_keys.is_empty() || recommended {
            subjects.push((format!("PRIMARY KEY ({})", key.columns.join(", ")), serde_json::to_value(key)?));
        }
    }
    let count = |severity: Severity| {
        assessment.findings.iter().filter(|finding| finding.severity == severity).count()
    };
    let whole = serde_json::json!({
        "rows": assessment.evaluation.rows,
        "bytes": assessment.evaluation.bytes,
        "unreadable_rows": assessment.unreadable_rows,
        "problems": count(Severity::Problem),
        "warnings": count(Severity::Warning),
        "drift": drift.iter().filter(|drift| drift.notable).count(),
        "partitions": assessment.recommendation.partitions,
    });
    subjects.push(("the export".to_owned(), whole));
    Ok(subjects)
}

/// Returns a line for each threshold that a figure meets, of the keys, the export, or a further
/// subject.
pub(super) fn crossed(
    args: &Args,
    assessment: &AdvisorReport,
    drift: &[Drift],
    further: Option<(String, Value)>,
) -> Result<Vec<String>, Failure> {
    if args.fail_on.is_empty() {
        return Ok(Vec::new());
    }
    let mut subjects = subjects(args, assessment, drift)?;
    subjects.extend(further);
    let mut lines = Vec::new();
    for threshold in &args.fail_on {
        for crossing in threshold.check(&subjects).map_err(Failure::usage)? {
            let (figure, value, subject) = (crossing.figure, crossing.value, crossing.subject);
            lines.push(format!("threshold {threshold} is met: {figure} is {value} for {subject}"));
        }
    }
    Ok(lines)
}

/// Fails if a threshold is met.
pub(super) fn check(lines: &[String]) -> Result<(), Failure> {
    if lines.is_empty() { Ok(()) } else { Err(Failure::Threshold(lines.join("\n"))) }
}
