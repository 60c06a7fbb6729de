//! Joins between exports: which keys keep a join within a partition, and what that costs.
//!
//! ```text
//! tables ── joins given, or found from names and contained values ──► Join
//!        ── advise each, with the columns that it is joined by and how much each join moves
//!        ──► JoinReport: local or not, values found, evenness of the joint key
//! ```
//! Rows of two tables that are joined by equal values lie in the same partition if both tables are
//! partitioned by those columns, over the same number of partitions, and the columns have types whose
//! equal values have equal hashes.

mod key_sample;
mod names;

use std::collections::BTreeSet;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::Float64Type;
use serde::Serialize;
use thiserror::Error;

use crate::evaluate::{AdvisorOptions, AdvisorReport, EvaluateError, JoinedColumn};
use crate::joins::key_sample::KeySample;
use crate::joins::names::{Alike, alike};
use evenkeel_input::source::{Export, OnUnreadable, SourceError};
use evenkeel_model::bounded::quote;
use evenkeel_model::finding::{Finding, FindingCode, Severity};
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_model::units::{ByteSize, PartitionCount};
use evenkeel_placement::placement::{Function, Placement};
use evenkeel_stats::skew::Verdict;

/// Least share of the values of one column that the other has, for a join that names suggest.
const CONTAINED: f64 = 0.95;

/// Export of one table.
#[derive(Debug)]
pub struct TableExport<'a> {
    /// Name of the table.
    pub name: String,
    /// Rows of the table.
    pub export: &'a Export,
    /// How to judge its keys.
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
    /// Share of the values of the column that are among those of the other: of the left, of the right.
    contained: (f64, f64),
    /// Whether names and values suggested it.
    found: bool,
}

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
    /// Share of its distinct values that the other column has, from all rows; a sample of the values
    /// beyond half a million.
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
    /// Judgement of the balance.
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
    pub found: bool,
    /// Whether equal values of both columns have equal hashes.
    pub hashes_alike: bool,
    /// Whether each pair of joined rows is in one partition.
    pub local: bool,
    /// Bytes that a join sends between partitions: those of the smaller table, as stored; 0 if local.
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
    /// Joins, those that move most first.
    pub joins: Vec<JoinReport>,
    /// Problems with the joins.
    pub join_findings: Vec<Finding>,
    /// Tables in the order of the inputs.
    pub tables: Vec<TableReport>,
}

/// Whether exports are those of different tables: one of them lacks more than a fifth of the columns
/// of the first. Later exports of one table may have a few columns more or less.
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

/// Returns the joins that were named as `TABLE.COLUMN=TABLE.COLUMN`; if none were, those that names
/// and contained values suggest.
///
/// # Errors
/// [`JoinError`] if there is no such table or column, or an export cannot be read.
pub fn find_joins(tables: &[TableExport<'_>], named: &[String]) -> Result<Vec<Join>, JoinError> {
    for (index, table) in tables.iter().enumerate() {
        if tables.iter().skip(index + 1).any(|other| other.name == table.name) {
            return Err(JoinError::SameName { name: table.name.clone() });
        }
    }
    if !named.is_empty() {
        let mut joins: Vec<(ColumnOf, ColumnOf)> = Vec::new();
        for text in named {
            let join = parse(tables, text)?;
            if !joins.contains(&join) {
                joins.push(join);
            }
        }
        return joins.into_iter().map(|(left, right)| measure(tables, left, right)).collect();
    }
    let mut found = Vec::new();
    for (index, left) in tables.iter().enumerate() {
        for (offset, right) in tables.iter().skip(index + 1).enumerate() {
            for a in left.export.columns().iter().filter(|column| joins_by(column.column_type)) {
                for b in right.export.columns().iter().filter(|column| joins_by(column.column_type)) {
                    let Some(names) = alike((&left.name, &a.name), (&right.name, &b.name)) else { continue };
                    let sides = (Side::read(left, a)?, Side::read(right, b)?);
                    let (left, right) = ((index, a.name.clone()), (index + 1 + offset, b.name.clone()));
                    let join = Join { left, right, contained: sides.0.contained(&sides.1), found: true };
                    if is_likely(names, &sides, join.contained, &a.name) {
                        found.push(join);
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Types that ids have.
fn joins_by(column_type: ColumnType) -> bool {
    use ColumnType::{Double, Int8, Int16, Int32, Int64, String, Uint8, Uint16, Uint32, Uint64, Utf8, Uuid};
    // Whole numbers with NULLs are written as Double by some programs.
    matches!(
        column_type,
        Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64 | Utf8 | String | Uuid | Double
    )
}

/// Whether names and values together show a join: one side has each value once and the values of the
/// other, or both name an entity and one has the values of the other.
fn is_likely(names: Alike, (left, right): &(Side, Side), contained: (f64, f64), column: &str) -> bool {
    let refers = (right.sample.is_unique() && contained.0 >= CONTAINED)
        || (left.sample.is_unique() && contained.1 >= CONTAINED);
    let shares = names == Alike::Same
        && crate::evaluate::is_identifier(column)
        && contained.0.max(contained.1) >= CONTAINED;
    refers || shares
}

/// A column with a sample of its values.
struct Side {
    sample: KeySample,
}

impl Side {
    fn read(table: &TableExport<'_>, column: &Column) -> Result<Self, JoinError> {
        let mut sample = KeySample::default();
        let position = table.export.columns().iter().position(|other| other.name == column.name);
        let compared =
            |source| JoinError::Compare { table: table.name.clone(), column: column.name.clone(), source };
        table.export.read_columns::<JoinError>(
            OnUnreadable::Skip,
            &|at| Some(at) == position,
            |_, batch| {
                if let Some(values) = batch.column_by_name(&column.name) {
                    sample.add(&readable(values)).map_err(compared)?;
                }
                Ok(true)
            },
        )?;
        Ok(Self { sample })
    }

    fn contained(&self, other: &Self) -> (f64, f64) {
        (self.sample.share_in(&other.sample), other.sample.share_in(&self.sample))
    }
}

/// Makes values of different types comparable: UUIDs become text, and so do floats, whole ones without
/// a decimal point.
fn readable(values: &ArrayRef) -> ArrayRef {
    if let Some(numbers) = values.as_primitive_opt::<Float64Type>() {
        // Up to 2^53 a Double holds whole numbers exactly.
        let whole = |number: f64| (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64);
        let texts = numbers.iter().map(|number| {
            number.map(|number| whole(number).map_or_else(|| number.to_string(), |whole| whole.to_string()))
        });
        return std::sync::Arc::new(texts.collect::<StringArray>());
    }
    if let Some(ids) = values.as_fixed_size_binary_opt() {
        let text = |id: &[u8]| uuid::Uuid::from_slice(id).ok().map(|id| id.to_string());
        return std::sync::Arc::new(ids.iter().map(|id| id.and_then(text)).collect::<StringArray>());
    }
    ArrayRef::clone(values)
}

/// Reads `TABLE.COLUMN=TABLE.COLUMN`; names of columns may have dots and equals signs themselves.
fn parse(tables: &[TableExport<'_>], text: &str) -> Result<(ColumnOf, ColumnOf), JoinError> {
    let side = |text: &str| {
        let (table, column) = text.trim().split_once('.')?;
        let table = tables.iter().position(|other| other.name == table.trim())?;
        Some((table, column.trim().to_owned()))
    };
    let has = |(table, column): &ColumnOf| {
        tables.get(*table).is_some_and(|of| of.export.columns().iter().any(|other| other.name == *column))
    };
    let splits = text.match_indices('=').filter_map(|(at, _)| {
        let (left, right) = (text.get(..at)?, text.get(at + 1..)?);
        Some((side(left)?, side(right)?))
    });
    let splits: Vec<_> = splits.filter(|(left, right)| left.0 != right.0).collect();
    if let Some(found) = splits.iter().find(|(left, right)| has(left) && has(right)) {
        return Ok(found.clone());
    }
    let Some((left, right)) = splits.into_iter().next() else {
        let known = || tables.iter().map(|table| table.name.clone()).collect();
        let sides = text.split_once('=').map(|(left, right)| [left, right]);
        let named = sides.into_iter().flatten().filter_map(|side| Some(side.trim().split_once('.')?.0));
        let mut unknown = named.filter(|name| !tables.iter().any(|table| table.name == *name));
        return Err(match unknown.next() {
            Some(table) => {
                JoinError::UnknownTable { text: text.to_owned(), table: table.to_owned(), known: known() }
            }
            None => JoinError::Form { text: text.to_owned(), tables: known() },
        });
    };
    let (table, column) = if has(&left) { right } else { left };
    let known = tables.get(table).map(|of| of.export.columns()).unwrap_or_default();
    Err(JoinError::UnknownColumn {
        text: text.to_owned(),
        table: tables.get(table).map(|of| of.name.clone()).unwrap_or_default(),
        column,
        known: known.iter().map(|column| column.name.clone()).collect(),
    })
}

fn measure(tables: &[TableExport<'_>], left: ColumnOf, right: ColumnOf) -> Result<Join, JoinError> {
    let read = |(table, name): &ColumnOf| {
        let table = tables.get(*table);
        let column = table.and_then(|of| of.export.columns().iter().find(|column| column.name == *name));
        table.zip(column).map_or_else(
            || Ok(Side { sample: KeySample::default() }),
            |(table, column)| Side::read(table, column),
        )
    };
    let contained = read(&left)?.contained(&read(&right)?);
    Ok(Join { left, right, contained, found: false })
}

/// Judges the keys of all tables with the joins among their reads. `advise` judges those of one.
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
        let of = |table: usize| bytes.get(table).copied().unwrap_or(0);
        of(join.left.0).min(of(join.right.0))
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
    let mut found: Vec<JoinReport> =
        joins.iter().filter_map(|join| report(tables, &reports, join, smaller(join))).collect();
    found.sort_by_key(|join| std::cmp::Reverse(join.moved_bytes));
    let names = tables.iter().map(|table| table.name.clone());
    Ok(TablesReport {
        join_findings: found.iter().flat_map(findings).collect(),
        joins: found,
        tables: names.zip(reports).map(|(table, report)| TableReport { table, report }).collect(),
    })
}

fn report(
    tables: &[TableExport<'_>],
    reports: &[AdvisorReport],
    join: &Join,
    smaller_bytes: u64,
) -> Option<JoinReport> {
    let side = |(table, column): &ColumnOf, values_found: f64| {
        let (of, report) = (tables.get(*table)?, reports.get(*table)?);
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
            table: of.name.clone(),
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
    Some(JoinReport { left, right, found: join.found, hashes_alike, local, moved_bytes })
}

/// Whether equal values of two types have equal hashes: tried with values that both have.
fn hashes_alike(function: Function, left: ColumnType, right: ColumnType) -> bool {
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

fn findings(join: &JoinReport) -> Vec<Finding> {
    let JoinReport { left, right, hashes_alike, .. } = join;
    let subject = join.to_string();
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
            advice: "Check the columns, and how they spell their values.".to_owned(),
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
    /// Says what the join sends between partitions, and what would keep it from that.
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

#[cfg(test)]
mod tests;
