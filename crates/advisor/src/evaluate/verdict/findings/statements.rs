//! Statements that a key serves badly.

use crate::evaluate::candidates::workload::{FanOut, Reach, StatementReport, listed};
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::recommendation::RankedKey;
use crate::evaluate::verdict::findings::words::hash;
use evenkeel_model::finding::{Finding, FindingCode, Severity};
use evenkeel_stats::skew::Verdict;

/// Adds findings for statements that a key makes worse than another candidate does.
pub(super) fn reach(
    statements: &[StatementReport],
    evaluation: &Evaluation,
    ranking: &[RankedKey],
    findings: &mut Vec<Finding>,
) {
    // Answering from one partition does not justify an overloaded key.
    let serves = |key: &[String]| {
        ranking.iter().any(|ranked| {
            ranked.partition_key == key && ranked.obstacle.is_none() && ranked.verdict == Verdict::Even
        })
    };
    // For a key that spreads badly, fan-out is no argument either way.
    for key in evaluation.candidates.iter().filter(|key| serves(&key.partition_key)) {
        let worse = statements.iter().filter_map(|statement| {
            let own = statement.under(&key.partition_key)?;
            let better = statement
                .fan_out
                .iter()
                .filter(|other| other.reach == Reach::One && serves(&other.partition_key));
            let best = better.min_by_key(|other| other.partition_key.len())?;
            (own.reach == Reach::All && own.partitions > 1).then_some((statement.statement.as_str(), best))
        });
        let worse: Vec<(&str, &FanOut)> = worse.collect();
        if worse.is_empty() {
            continue;
        }
        let words = worse.iter().map(|(statement, best)| {
            format!("{statement} (HASH({}) answers it from one)", best.partition_key.join(", "))
        });
        let words: Vec<String> = words.collect();
        findings.push(Finding {
            code: FindingCode::FanOut,
            severity: Severity::Warning,
            subject: hash(key),
            message: format!("all partitions are read by {}", listed(&words)),
            measured: worse.len() as f64,
            threshold: 0.0,
            advice: "Statements visit one partition when they fix every column of the partition key. Weigh that against how evenly \
                     the shorter key spreads."
                .to_owned(),
        });
    }
    let planned = statements.iter().filter(|statement| statement.problem.is_none()).count();
    if planned == 0 && !statements.is_empty() {
        findings.push(Finding {
            code: FindingCode::NoStatementPlanned,
            severity: Severity::Warning,
            subject: "--queries".into(),
            message: format!(
                "none of the {} statements can be planned, so none of them counts",
                statements.len()
            ),
            measured: 0.0,
            threshold: 1.0,
            advice: "Write them for the columns of this export.".to_owned(),
        });
    }
    for statement in statements {
        if let Some(problem) = &statement.problem {
            findings.push(Finding {
                code: FindingCode::StatementNotPlanned,
                severity: Severity::Note,
                subject: statement.statement.clone().into(),
                message: problem.clone(),
                measured: 1.0,
                threshold: 0.0,
                advice: "Its fan-out is not known; write it for the columns of this export.".to_owned(),
            });
        }
    }
}

#[cfg(test)]
#[path = "statements_tests.rs"]
mod tests;
