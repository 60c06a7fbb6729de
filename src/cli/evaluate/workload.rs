//! The statements of `evaluate --queries`.

use std::path::Path;

use arrow::datatypes::SchemaRef;
use evenkeel::bounded::quote;
use evenkeel::query::Params;
use evenkeel::sql::{QueryLog, is_query_log, plan_statements, read_query_log, read_statements};
use evenkeel::units::count;
use evenkeel::workload::PlannedStatement;

use crate::cli::evaluate::args::Args;
use crate::cli::{Failure, Output};

/// Reads and plans the statements or the query log of `--queries`.
pub(super) async fn statements(
    args: &Args,
    table: &str,
    schema: &SchemaRef,
    out: &Output,
) -> Result<Vec<PlannedStatement>, Failure> {
    let Some(path) = &args.queries else { return Ok(Vec::new()) };
    let params = Params::parse(&args.params).map_err(Failure::usage)?;
    if !is_query_log(path) {
        return Ok(plan_statements(&read_statements(path)?, schema, &params).await);
    }
    let log = read_query_log(path, table)?;
    let planned = plan_statements(&log.statements, schema, &params).await;
    out.note(&described_log(path, &log, &planned, args.mask_values));
    Ok(planned)
}

/// Describes how much of a query log is understood, with reasons for the rest; they may quote
/// literals.
fn described_log(path: &Path, log: &QueryLog, planned: &[PlannedStatement], is_masked: bool) -> String {
    let runs = |count: f64| format!("{:.1} %", 100.0 * count.abs() / log.runs.max(f64::MIN_POSITIVE));
    let understood = planned.iter().filter(|statement| statement.scans.is_ok());
    let understood: f64 = understood.map(|statement| statement.runs).sum();
    let failed = planned.iter().filter_map(|statement| Some((statement, statement.scans.as_ref().err()?)));
    let failed: Vec<(&PlannedStatement, &String)> = failed.collect();
    let mut text = format!(
        "{}: {} of {} runs understood, as {} statements",
        path.display(),
        runs(understood),
        count(log.runs as u64),
        count((planned.len() - failed.len()) as u64),
    );
    for (count, why) in [
        (log.runs_of_others, "do not read"),
        (log.runs_on_other_tables, "read other tables"),
        (log.runs_beyond, "are of statements beyond the 1,000 most frequent"),
    ] {
        if count > 0.0 {
            text.push_str(&format!("; {} {why}", runs(count)));
        }
    }
    if let Some((first, problem)) = failed.first() {
        let all_runs: f64 = failed.iter().map(|(statement, _)| statement.runs).sum();
        text.push_str(&format!("; {} cannot be planned, such as {}", runs(all_runs), first.name));
        if !is_masked {
            text.push_str(&format!(": {}", quote(problem)));
        }
    }
    text
}
