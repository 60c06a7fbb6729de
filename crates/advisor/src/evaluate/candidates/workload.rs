//! Number of partitions that a statement visits under each partition key.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, TimestampMicrosecondArray, UInt64Array};
use arrow::compute::{partition, sort, take};
use serde::Serialize;

use evenkeel_model::table::{Candidate, Column, ColumnType, KeyPart, Transform};
use evenkeel_model::units::Micros;
use evenkeel_model::units::{PartitionCount, PartitionId};
use evenkeel_model::values::derived_column;
use evenkeel_model::values::instants;
use evenkeel_model::workload::{MAX_KEYS, PlannedStatement, ScanCondition, combinations};
use evenkeel_placement::placement::{Function, Placement};

/// Whether a statement visits one partition, some or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// At most one partition.
    One,
    /// Several, but not all.
    Some,
    /// All partitions.
    All,
}

impl Reach {
    /// Returns the reach as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Some => "some",
            Self::All => "all",
        }
    }
}

/// Fan-out of one statement under one partition key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FanOut {
    /// Parts of the partition key.
    pub partition_key: Vec<String>,
    /// Partitions that the statement visits; if it has several scans, of the one that visits the
    /// most.
    pub partitions_read: usize,
    /// Number of partitions of the table.
    pub partitions: usize,
    /// Whether that is one partition, some or all.
    pub reach: Reach,
}

/// Fan-out of one statement under every partition key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatementReport {
    /// Name of the statement.
    pub statement: String,
    /// Number of times that it runs: its weight among the statements.
    pub runs: f64,
    /// Columns that the conditions of its first scan fix to values.
    pub fixed_columns: Vec<String>,
    /// Reason why it cannot be planned; `None` if it can.
    pub problem: Option<String>,
    /// Fan-out under each candidate, in their order.
    pub fan_out: Vec<FanOut>,
}

impl StatementReport {
    /// Returns the fan-out under a partition key.
    #[must_use]
    pub fn under(&self, partition_key: &[String]) -> Option<&FanOut> {
        self.fan_out.iter().find(|fan_out| fan_out.partition_key == partition_key)
    }
}

/// Lists names of statements, of many only the first ones: `q1, q2 and 7 more`.
pub(crate) fn listed(names: &[String]) -> String {
    const LONGEST_LIST: usize = 5;
    match names.len().checked_sub(LONGEST_LIST) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names.get(..LONGEST_LIST).unwrap_or(names).join(", ")),
    }
}

/// Computes the partitions that statements visit under each candidate, over a number of partitions.
pub(crate) fn fan_out(
    statements: &[PlannedStatement],
    candidates: &[Candidate],
    columns: &[Column],
    function: Function,
    partitions: PartitionCount,
) -> Vec<StatementReport> {
    let report = |statement: &PlannedStatement| {
        let scans = match &statement.scans {
            Ok(scans) => scans,
            Err(problem) => {
                return StatementReport {
                    statement: statement.name.clone(),
                    runs: statement.runs,
                    fixed_columns: Vec::new(),
                    problem: Some(problem.clone()),
                    fan_out: Vec::new(),
                };
            }
        };
        let fan_out = candidates.iter().map(|candidate| {
            let read =
                scans.iter().map(|scan| partitions_read(scan, candidate, columns, function, partitions));
            let partitions_read = read.max().unwrap_or(0);
            let reach = match partitions_read {
                0 | 1 => Reach::One,
                all if all >= partitions.len() => Reach::All,
                _ => Reach::Some,
            };
            FanOut {
                partition_key: candidate.part_names(),
                partitions_read,
                partitions: partitions.len(),
                reach,
            }
        });
        StatementReport {
            statement: statement.name.clone(),
            runs: statement.runs,
            fixed_columns: scans.first().map(ScanCondition::fixed_columns).unwrap_or_default(),
            problem: None,
            fan_out: fan_out.collect(),
        }
    };
    statements.iter().map(report).collect()
}

/// Returns the columns that any of the statements fixes to values.
pub(crate) fn equality_columns(statements: &[PlannedStatement]) -> Vec<String> {
    let scans = statements.iter().filter_map(|statement| statement.scans.as_ref().ok()).flatten();
    scans.flat_map(ScanCondition::fixed_columns).collect::<BTreeSet<_>>().into_iter().collect()
}

fn partitions_read(
    scan: &ScanCondition,
    candidate: &Candidate,
    columns: &[Column],
    function: Function,
    partitions: PartitionCount,
) -> usize {
    let placed = || -> Option<BTreeSet<PartitionId>> {
        let values = candidate.parts().iter().map(|part| values_of(scan, part));
        let keys = combinations(&values.collect::<Option<Vec<_>>>()?)?;
        let types = candidate.parts().iter().map(|part| part_type(part, columns));
        let placement = Placement::new(function, partitions, types.collect::<Option<Vec<_>>>()?);
        Some(placement.assign(&keys).ok()?.into_iter().collect())
    };
    placed().map_or(partitions.len(), |placed| placed.len())
}

fn part_type(part: &KeyPart, columns: &[Column]) -> Option<ColumnType> {
    Some(match part.transform {
        Transform::Identity => columns.iter().find(|column| column.name == part.column)?.column_type,
        Transform::Date => ColumnType::Date,
        Transform::Truncate(_) => ColumnType::Timestamp,
    })
}

/// Returns the possible values of a part of a key under the conditions of a scan. A derived part
/// follows from its column if the column is fixed or limited to a range: the statement is assumed
/// to name the derived column too.
fn values_of(scan: &ScanCondition, part: &KeyPart) -> Option<ArrayRef> {
    if part.transform == Transform::Identity {
        return scan.fixed_values(&part.column).cloned();
    }
    let times = match scan.fixed_values(&part.column) {
        Some(values) => instants(values)?,
        None => {
            let length = match part.transform {
                Transform::Truncate(length) => length,
                _ => Micros::DAY,
            };
            slices(scan.time_range(&part.column)?, length)?
        }
    };
    distinct(&derived_column(&times, part.transform)?)
}

/// Returns the distinct values.
fn distinct(values: &ArrayRef) -> Option<ArrayRef> {
    let sorted = sort(values, None).ok()?;
    let ranges = partition(std::slice::from_ref(&sorted)).ok()?.ranges();
    let firsts = UInt64Array::from_iter_values(ranges.iter().map(|range| range.start as u64));
    take(&sorted, &firsts, None).ok()
}

/// Returns one instant of every slice of time between two bounds; `None` if there are more than
/// [`MAX_KEYS`].
fn slices((low, high): (i64, i64), length: Micros) -> Option<ArrayRef> {
    let (first, last) = (length.slice_of(low), length.slice_of(high));
    if last < first || usize::try_from(last - first).ok()? >= MAX_KEYS {
        return None;
    }
    let starts = (first..=last).map(|slice| slice.saturating_mul(length.get()));
    Some(Arc::new(TimestampMicrosecondArray::from_iter_values(starts)))
}

#[cfg(test)]
mod tests {
    use arrow::array::{StringArray, UInt64Array};

    use evenkeel_model::table::{TableSpec, parse_create_table};

    use super::*;

    fn text(value: &str) -> ArrayRef {
        Arc::new(StringArray::from(vec![value]))
    }

    fn numbers(values: &[u64]) -> ArrayRef {
        Arc::new(UInt64Array::from(values.to_vec()))
    }

    fn scan(fixed: &[(&str, ArrayRef)], times: Option<(i64, i64)>) -> ScanCondition {
        let fixed = fixed.iter().map(|(name, values)| ((*name).to_owned(), ArrayRef::clone(values)));
        let ranges = times.map(|range| ("event_timestamp".to_owned(), range));
        ScanCondition::new(fixed.collect(), ranges.into_iter().collect())
    }

    /// Returns how many of 64 partitions a statement with these scans reads under each key.
    fn read(scans: &[ScanCondition], keys: &[&str]) -> Vec<usize> {
        let create = parse_create_table(include_str!("../../../../../data/ad_events.sql")).unwrap();
        let spec = TableSpec::new(create.definition).unwrap();
        let planned = [PlannedStatement { name: "s".into(), runs: 1.0, scans: Ok(scans.to_vec()) }];
        let candidates: Vec<Candidate> = keys.iter().map(|key| key.parse().unwrap()).collect();
        let partitions = PartitionCount::new(64).unwrap();
        let report = fan_out(&planned, &candidates, spec.columns(), Function::default(), partitions);
        assert_eq!(report[0].problem, None);
        report[0].fan_out.iter().map(|fan_out| fan_out.partitions_read).collect()
    }

    #[test]
    fn the_scenarios_of_the_ydb_documentation() {
        let keys = [
            "user_id",
            "campaign_id",
            "user_id, event_timestamp",
            "hour(event_timestamp)",
            "date(event_timestamp)",
        ];
        assert_eq!(read(&[scan(&[("user_id", text("u1"))], None)], &keys), [1, 64, 64, 64, 64]);
        // An hour up to 2026-01-01T12:34:56 overlaps two full hours and one day.
        let now = 1_767_270_896_000_000;
        let clicks = scan(&[("campaign_id", numbers(&[1]))], Some((now - 3_600_000_000, now)));
        assert_eq!(read(&[clicks], &keys), [64, 1, 64, 2, 1]);
        assert_eq!(read(&[scan(&[], None)], &keys), [64; 5]);
    }

    #[test]
    fn lists_are_some_partitions_and_the_worst_scan_counts() {
        let list = scan(&[("campaign_id", numbers(&[1, 2, 3]))], None);
        let some = read(&[list], &["campaign_id"])[0];
        assert!((2..=3).contains(&some), "{some}");
        let union = [scan(&[("user_id", text("a"))], None), scan(&[("campaign_id", numbers(&[1]))], None)];
        assert_eq!(read(&union, &["user_id", "campaign_id"]), [64, 64]);
    }

    #[test]
    fn times_of_one_hour_are_one_key_however_many_they_are() {
        let hour = 1_767_225_600_000_000i64;
        let times = (0..20_000).map(|second| hour + second % 3600 * 1_000_000);
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(times));
        let scans = [scan(&[("event_timestamp", times)], None)];
        assert_eq!(read(&scans, &["hour(event_timestamp)", "event_timestamp"]), [1, 64]);
    }
}
