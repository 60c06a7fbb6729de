//! Reports on joins: whether keys keep them within partitions, and their cost.

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::compute::cast;
use serde::Serialize;

use crate::evaluate::AdvisorReport;
use crate::joins::{ColumnOf, Join, TableExport};
use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::{ByteSize, PartitionCount};
use evenkeel_placement::placement::{Function, Placement};
use evenkeel_stats::skew::Verdict;

/// One side of a join.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JoinSide {
    /// Name of the table.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Type of the column.
    #[serde(rename = "type")]
    pub column_type: ColumnType,
    /// Share of its distinct values that the other column has, from all rows; a sample of the
    /// values beyond half a million.
    pub values_found: f64,
    /// Recommended partition key of the table.
    pub recommended: Vec<String>,
    /// Figures of the recommended key.
    pub recommended_figures: Option<KeyFigures>,
    /// Figures of the column as the partition key.
    pub joined_figures: Option<KeyFigures>,
}

/// Balance of a partition key over the recommended number of partitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KeyFigures {
    /// Rows of the fullest partition over the mean.
    pub max_over_mean: f64,
    /// Rate of inserts that the table sustains, in bytes per second.
    pub sustained_rate: f64,
    /// Verdict on the balance.
    pub verdict: Verdict,
}

/// A join, and whether the recommended keys keep it within partitions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JoinReport {
    /// Left side.
    pub left: JoinSide,
    /// Right side.
    pub right: JoinSide,
    /// Whether names and values suggested the join, rather than the user.
    #[serde(rename = "found")]
    pub inferred: bool,
    /// Whether equal values of both columns have equal hashes.
    pub hashes_alike: bool,
    /// Whether each pair of joined rows is in one partition.
    pub local: bool,
    /// Bytes that a join sends between partitions: the stored size of the smaller table; 0 if
    /// local.
    pub moved_bytes: u64,
}

/// Report on the keys of one table.
#[derive(Debug, Serialize)]
pub struct TableReport {
    /// Name of the table.
    pub table: String,
    /// Report on its keys.
    #[serde(flatten)]
    pub report: AdvisorReport,
}

/// Report on the keys of several tables.
#[derive(Debug, Serialize)]
pub struct TablesReport {
    /// Joins, by bytes moved, largest first.
    pub joins: Vec<JoinReport>,
    /// Problems with the joins.
    pub join_findings: Vec<Finding>,
    /// Tables in the order of the inputs.
    pub tables: Vec<TableReport>,
}

/// Reports on one join, whose smaller table has `smaller_bytes`.
pub(super) fn report(
    tables: &[TableExport<'_>],
    reports: &[AdvisorReport],
    join: &Join,
    smaller_bytes: u64,
) -> Option<JoinReport> {
    let side = |(table, column): &ColumnOf, values_found: f64| {
        let (export, report) = (tables.get(*table)?, reports.get(*table)?);
        let column_type = report.columns.iter().find(|other| other.name == *column)?.column_type;
        let figures = |key: &[String]| {
            let key = report.evaluation.candidates.iter().find(|other| other.partition_key == key)?;
            let count = PartitionCount::new(u64::from(report.recommendation.partitions)).ok()?;
            let placement = key.over(count)?;
            Some(KeyFigures {
                max_over_mean: placement.skew.max_over_mean,
                sustained_rate: placement.capacity.sustained,
                verdict: placement.verdict,
            })
        };
        Some(JoinSide {
            table: export.name.clone(),
            column: column.clone(),
            column_type,
            values_found,
            recommended: report.recommendation.partition_key.clone(),
            recommended_figures: figures(&report.recommendation.partition_key),
            joined_figures: figures(std::slice::from_ref(column)),
        })
    };
    let (left, right) = (side(&join.left, join.contained.0)?, side(&join.right, join.contained.1)?);
    let function = tables.first()?.options.evaluate.placements.first().copied().unwrap_or_default();
    let hashes_alike = hashes_alike(function, left.column_type, right.column_type);
    let partitions = |table: usize| reports.get(table).map(|report| report.recommendation.partitions);
    let by_column = |side: &JoinSide| side.recommended == [side.column.as_str()];
    let counts = (partitions(join.left.0), partitions(join.right.0));
    let alike = hashes_alike && by_column(&left) && by_column(&right) && counts.0 == counts.1;
    let local = alike || counts == (Some(1), Some(1));
    let moved_bytes = if local { 0 } else { smaller_bytes };
    Some(JoinReport { left, right, inferred: join.inferred, hashes_alike, local, moved_bytes })
}

/// Whether equal values of two types have equal hashes: tried with values that both have.
pub(super) fn hashes_alike(function: Function, left: ColumnType, right: ColumnType) -> bool {
    if left == right {
        return true;
    }
    let numbers: ArrayRef = std::sync::Arc::new(Int64Array::from_iter_values([0, 1, 2, 7, 42, 99, 100, 127]));
    let texts: ArrayRef =
        std::sync::Arc::new(StringArray::from_iter_values(["0", "1", "a", "user-17", "0042"]));
    let many = PartitionCount::new(65_536).ok();
    [numbers, texts].iter().any(|values| {
        let hashes = |column_type: ColumnType| {
            let values = cast(values, &column_type.arrow_type()).ok()?;
            Placement::new(function, many?, vec![column_type]).assign(&[values]).ok()
        };
        let (left, right) = (hashes(left), hashes(right));
        left.is_some() && left == right
    })
}

pub(super) fn findings(join: &JoinReport) -> Vec<Finding> {
    let JoinReport { left, right, hashes_alike, .. } = join;
    let subject = Subject::from(join.to_string());
    let mut findings = Vec::new();
    if !hashes_alike {
        findings.push(Finding {
            code: FindingCode::JoinTypes,
            severity: Severity::Problem,
            subject: subject.clone(),
            message: format!(
                "{}.{} is of type {} and {}.{} of type {}: equal values have different hashes, so no join is local",
                left.table, left.column, left.column_type, right.table, right.column, right.column_type
            ),
            measured: 1.0,
            threshold: 0.0,
            advice: "Declare both columns with the same type.".to_owned(),
        });
    }
    let most = left.values_found.max(right.values_found);
    if most == 0.0 {
        findings.push(Finding {
            code: FindingCode::JoinFindsNothing,
            severity: Severity::Warning,
            subject,
            message: format!(
                "no value of {}.{} is in {}.{}",
                left.table, left.column, right.table, right.column
            ),
            measured: most,
            threshold: 0.0,
            advice: "Check the columns, and the spelling of their values.".to_owned(),
        });
    }
    findings
}

impl std::fmt::Display for JoinReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { left, right, .. } = self;
        write!(f, "{}.{} = {}.{}", left.table, left.column, right.table, right.column)
    }
}

impl JoinReport {
    /// Describes the rows that the join sends between partitions, and how to avoid it.
    #[must_use]
    pub fn explain(&self) -> String {
        let sides = [&self.left, &self.right];
        if self.local {
            return match sides.iter().all(|side| side.recommended == [side.column.as_str()]) {
                true => "local: both tables are partitioned by it".to_owned(),
                false => "local: there is one partition".to_owned(),
            };
        }
        let moved = ByteSize(self.moved_bytes);
        let mut reasons: Vec<String> = sides
            .iter()
            .filter(|side| side.recommended != [side.column.as_str()])
            .map(|side| match side.recommended.as_slice() {
                [] => format!("no partition key was found for {}", side.table),
                key => format!("{} is partitioned by HASH({})", side.table, key.join(", ")),
            })
            .collect();
        if reasons.is_empty() {
            reasons.push("the types of the columns differ".to_owned());
        }
        format!("not local, since {}; a join sends {moved} between partitions", reasons.join(" and "))
    }
}
