//! Joins between exports: keys that keep a join within a partition, and their cost.
//!
//! ```text
//! tables ── joins given, or found from names and contained values ──► Join
//!        ── advise each, with the columns that it is joined by and how much each join moves
//!        ──► JoinReport: local or not, values found, evenness of the joint key
//! ```
//! Rows of two tables that are joined by equal values are in the same partition if both tables are
//! partitioned by those columns, over the same number of partitions, and the columns have types
//! whose equal values have equal hashes.

mod find;
mod key_sample;
mod names;
mod report;

use std::collections::BTreeSet;

use thiserror::Error;

use crate::evaluate::{AdvisorOptions, AdvisorReport, EvaluateError, JoinedColumn};
pub use crate::joins::find::find_joins;
pub use crate::joins::report::{JoinReport, JoinSide, KeyFigures, TableReport, TablesReport};
use crate::joins::report::{findings, report};
use evenkeel_input::source::{Export, SourceError};
use evenkeel_model::bounded::quote;
use evenkeel_model::units::PartitionCount;

/// Export of one table.
#[derive(Debug)]
pub struct TableExport<'a> {
    /// Name of the table.
    pub name: String,
    /// Rows of the table.
    pub export: &'a Export,
    /// Options for judging its keys.
    pub options: AdvisorOptions,
}

/// Reason why a join cannot be evaluated.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum JoinError {
    #[error("--join '{}': write TABLE.COLUMN=TABLE.COLUMN with two tables, such as orders.id=lines.order_id; the tables are: {}", quote(text), tables.join(", "))]
    Form { text: String, tables: Vec<String> },
    #[error("--join '{}': there is no table '{}'; the tables are: {}", quote(text), quote(table), known.join(", "))]
    UnknownTable { text: String, table: String, known: Vec<String> },
    #[error("--join '{}': table {table} has no column '{}'; it has: {}", quote(text), quote(column), known.join(", "))]
    UnknownColumn { text: String, table: String, column: String, known: Vec<String> },
    #[error(
        "two of the exports are of a table '{name}'; give their files other names, or put them in one folder"
    )]
    SameName { name: String },
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("column '{}' of {table} cannot be compared: {source}", quote(column))]
    Compare { table: String, column: String, source: arrow::error::ArrowError },
    #[error("table {table}: {source}")]
    Evaluate { table: String, source: EvaluateError },
}

/// Position of a table, and the name of one of its columns.
type ColumnOf = (usize, String);

/// Two columns by which tables are joined.
#[derive(Debug, Clone, PartialEq)]
pub struct Join {
    left: ColumnOf,
    right: ColumnOf,
    /// Share of the left column's values that the right one contains, and the reverse.
    contained: (f64, f64),
    /// Whether names and values suggested it.
    inferred: bool,
}

/// Whether exports are of different tables: one of them lacks more than a fifth of the columns of
/// the first. Later exports of one table may have a few columns more or less.
#[must_use]
pub fn are_different_tables(exports: &[&Export]) -> bool {
    let names = |export: &Export| -> BTreeSet<String> {
        export.columns().iter().map(|column| column.name.clone()).collect()
    };
    let all: Vec<BTreeSet<String>> = exports.iter().map(|export| names(export)).collect();
    let Some((first, others)) = all.split_first() else { return false };
    others.iter().any(|other| {
        let shared = first.intersection(other).count();
        5 * shared < 4 * first.len().min(other.len()).max(1)
    })
}

/// Judges the keys of all tables with the joins among their reads. `advise` judges the keys of one
/// table.
///
/// # Errors
/// [`JoinError`] if a table cannot be evaluated.
pub fn advise_tables(
    tables: &[TableExport<'_>],
    joins: &[Join],
    advise: &dyn Fn(&Export, AdvisorOptions) -> Result<AdvisorReport, EvaluateError>,
) -> Result<TablesReport, JoinError> {
    let bytes: Vec<u64> = tables.iter().map(|table| table.export.stored_bytes()).collect();
    let smaller = |join: &Join| {
        let bytes_of = |table: usize| bytes.get(table).copied().unwrap_or(0);
        bytes_of(join.left.0).min(bytes_of(join.right.0))
    };
    let options_of = |index: usize, table: &TableExport<'_>| {
        let mut options = table.options.clone();
        for join in joins {
            for ((table, column), (other, _)) in [(&join.left, &join.right), (&join.right, &join.left)] {
                let Some(other) = tables.get(*other).filter(|_| *table == index) else { continue };
                options.joined.push(JoinedColumn {
                    column: column.clone(),
                    with: other.name.clone(),
                    weight: smaller(join).max(1) as f64,
                });
            }
        }
        options
    };
    let failed = |table: &TableExport<'_>| {
        let table = table.name.clone();
        move |source| JoinError::Evaluate { table, source }
    };
    let mut reports = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        reports.push(advise(table.export, options_of(index, table)).map_err(failed(table))?);
    }
    // Joined tables need the same number of partitions.
    for _ in 0..tables.len() {
        let counts: Vec<u32> = reports.iter().map(|report| report.recommendation.partitions).collect();
        let wanted = |index: usize| {
            let joined = joins.iter().filter(|join| join.left.0 == index || join.right.0 == index);
            joined.flat_map(|join| [join.left.0, join.right.0]).filter_map(|table| counts.get(table)).max()
        };
        let mut changed = false;
        for (index, table) in tables.iter().enumerate() {
            let (Some(most), Some(report)) = (wanted(index), reports.get_mut(index)) else { continue };
            let Ok(count) = PartitionCount::new(u64::from(*most)) else { continue };
            if report.recommendation.partitions < *most {
                let mut options = options_of(index, table);
                options.evaluate.partitions = vec![count];
                *report = advise(table.export, options).map_err(failed(table))?;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let mut join_reports: Vec<JoinReport> =
        joins.iter().filter_map(|join| report(tables, &reports, join, smaller(join))).collect();
    join_reports.sort_by_key(|join| std::cmp::Reverse(join.moved_bytes));
    let names = tables.iter().map(|table| table.name.clone());
    Ok(TablesReport {
        join_findings: join_reports.iter().flat_map(findings).collect(),
        joins: join_reports,
        tables: names.zip(reports).map(|(table, report)| TableReport { table, report }).collect(),
    })
}

#[cfg(test)]
mod tests;
