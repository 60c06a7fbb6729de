//! Where one candidate sends the rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Date32Type, TimeUnit, TimestampMicrosecondType};
use serde::Serialize;
use thiserror::Error;

use crate::evaluate::candidate::{Candidate, Transform};
use crate::placement::{Placement, PlacementError};
use crate::skew::{KeyWeights, NoiseFloor, SkewFigures, Verdict, are_enough_rows, median};
use crate::table::{Column, ColumnType, PlacementFunction};
use crate::units::PartitionCount;

const MICROS_PER_HOUR: i64 = 3_600_000_000;
const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;

/// Why a candidate cannot be evaluated.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum EvaluateError {
    #[error("key ({candidate}): there is no column '{column}'; there are: {}", known.join(", "))]
    UnknownColumn { candidate: String, column: String, known: Vec<String> },
    #[error("key ({candidate}): column '{column}' of type {column_type} is not a point in time")]
    NotTime { candidate: String, column: String, column_type: ColumnType },
    #[error("key ({candidate}): {source}")]
    Placement { candidate: String, source: PlacementError },
    #[error("the time column '{column}' cannot be read as points in time")]
    Time { column: String },
}

/// Balance over time: rows are cut into windows by the time column, and each window is judged alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BalanceOverTime {
    /// Length of a window.
    pub window_micros: i64,
    /// Windows with rows.
    pub windows: usize,
    /// Windows with enough rows to be judged: 10 or more per partition. The figures below are theirs.
    pub judged_windows: usize,
    /// Median over the windows of the share of rows that the fullest partition takes.
    pub median_share_of_fullest: f64,
    /// Median over the windows of the effective partitions.
    pub median_effective_partitions: f64,
    /// Smallest of the windows' effective partitions.
    pub min_effective_partitions: f64,
}

/// What one candidate would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyBalanceReport {
    /// The candidate as text.
    pub partition_key: String,
    /// Rows per partition.
    pub rows_per_partition: Vec<u64>,
    /// Skew of those rows.
    pub skew: SkewFigures,
    /// What a perfect hash would give.
    pub noise_floor: NoiseFloor,
    /// Balance over time, where a time column was given and a window has enough rows.
    pub over_time: Option<BalanceOverTime>,
    /// The judgement.
    pub verdict: Verdict,
}

/// Counts the rows of one candidate, batch by batch. Memory: one counter per distinct key and per window and partition.
#[derive(Debug, Clone)]
pub struct KeyBalance {
    candidate: Candidate,
    /// Position of each part's column.
    columns: Vec<usize>,
    placement: Placement,
    time: Option<usize>,
    window_micros: i64,
    rows_per_partition: Vec<u64>,
    /// Rows by placement hash; keys that share it cannot be placed apart.
    rows_of_key: AHashMap<u64, u64>,
    windows: BTreeMap<i64, Vec<u64>>,
}

impl KeyBalance {
    /// A count for `candidate` over rows with the given columns. `time` is the position of the time column, if windows
    /// of `window_micros` are wanted.
    ///
    /// # Errors
    /// [`EvaluateError`] where the candidate names a column that there is not, or cuts one that holds no time.
    pub fn new(
        candidate: &Candidate,
        columns: &[Column],
        function: PlacementFunction,
        partitions: PartitionCount,
        time: Option<usize>,
        window_micros: i64,
    ) -> Result<Self, EvaluateError> {
        let mut positions = Vec::new();
        let mut types = Vec::new();
        for part in candidate.parts() {
            let found = columns.iter().enumerate().find(|(_, column)| column.name == part.column);
            let (position, column) = found.ok_or_else(|| EvaluateError::UnknownColumn {
                candidate: candidate.to_string(),
                column: part.column.clone(),
                known: columns.iter().map(|column| column.name.clone()).collect(),
            })?;
            if part.transform != Transform::Identity && !column.column_type.is_timestamp() {
                return Err(EvaluateError::NotTime {
                    candidate: candidate.to_string(),
                    column: part.column.clone(),
                    column_type: column.column_type,
                });
            }
            positions.push(position);
            types.push(match part.transform {
                Transform::Identity => column.column_type,
                Transform::Date => ColumnType::Date,
                Transform::Hour => ColumnType::Timestamp,
            });
        }
        Ok(Self {
            candidate: candidate.clone(),
            columns: positions,
            placement: Placement::new(function, partitions, types),
            time,
            window_micros: window_micros.max(1),
            rows_per_partition: vec![0; partitions.len()],
            rows_of_key: AHashMap::new(),
            windows: BTreeMap::new(),
        })
    }

    /// Counts the rows of a batch.
    ///
    /// # Errors
    /// [`EvaluateError`] where a column cannot be read as its type.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), EvaluateError> {
        let failed = |source| EvaluateError::Placement { candidate: self.candidate.to_string(), source };
        let parts = self.candidate.parts().iter().zip(&self.columns);
        let keys = parts.map(|(part, position)| {
            let array = batch.columns().get(*position);
            array
                .and_then(|array| transformed(array, part.transform))
                .ok_or_else(|| EvaluateError::Time { column: part.column.clone() })
        });
        let keys: Vec<ArrayRef> = keys.collect::<Result<_, _>>()?;
        let partitions = self.placement.assign(&keys).map_err(failed)?;
        for hash in self.placement.hash(&keys).map_err(failed)? {
            *self.rows_of_key.entry(hash).or_default() += 1;
        }
        let times = match self.time.and_then(|time| batch.columns().get(time)) {
            Some(array) => {
                Some(micros(array).ok_or_else(|| EvaluateError::Time { column: "time".to_owned() })?)
            }
            None => None,
        };
        let times = times.as_ref().map(|times| times.as_primitive::<TimestampMicrosecondType>());
        for (row, partition) in partitions.into_iter().enumerate() {
            if let Some(count) = self.rows_per_partition.get_mut(partition.index()) {
                *count += 1;
            }
            if let Some(times) = times
                && times.is_valid(row)
            {
                let window = times.value(row).div_euclid(self.window_micros);
                let counts =
                    self.windows.entry(window).or_insert_with(|| vec![0; self.rows_per_partition.len()]);
                if let Some(count) = counts.get_mut(partition.index()) {
                    *count += 1;
                }
            }
        }
        Ok(())
    }

    /// Adds the counts of another part of the same export.
    pub fn merge(&mut self, other: Self) {
        fn add(sum: &mut [u64], more: &[u64]) {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        add(&mut self.rows_per_partition, &other.rows_per_partition);
        for (hash, rows) in other.rows_of_key {
            *self.rows_of_key.entry(hash).or_default() += rows;
        }
        for (window, counts) in other.windows {
            match self.windows.entry(window) {
                std::collections::btree_map::Entry::Occupied(mut known) => add(known.get_mut(), &counts),
                std::collections::btree_map::Entry::Vacant(vacant) => {
                    vacant.insert(counts);
                }
            }
        }
    }

    /// The figures of the rows counted so far.
    #[must_use]
    pub fn finish(&self) -> KeyBalanceReport {
        let mut weights = KeyWeights::default();
        self.rows_of_key.values().for_each(|rows| weights.add(*rows));
        let skew = SkewFigures::of(&self.rows_per_partition);
        let noise_floor = NoiseFloor::of(&skew, &weights);
        let over_time = self.over_time();
        let verdict =
            Verdict::of(&skew, Some(&noise_floor), over_time.as_ref().map(|t| t.median_effective_partitions));
        KeyBalanceReport {
            partition_key: self.candidate.to_string(),
            rows_per_partition: self.rows_per_partition.clone(),
            skew,
            noise_floor,
            over_time,
            verdict,
        }
    }

    fn over_time(&self) -> Option<BalanceOverTime> {
        let figures = self.windows.values().map(|counts| SkewFigures::of(counts));
        let figures: Vec<SkewFigures> =
            figures.filter(|figures| are_enough_rows(figures.rows, figures.partitions)).collect();
        if figures.is_empty() {
            return None;
        }
        let median =
            |of: fn(&SkewFigures) -> f64| median(figures.iter().map(of).collect()).unwrap_or_default();
        Some(BalanceOverTime {
            window_micros: self.window_micros,
            windows: self.windows.len(),
            judged_windows: figures.len(),
            median_share_of_fullest: median(|figures| figures.share_of_fullest),
            median_effective_partitions: median(|figures| figures.effective_partitions),
            min_effective_partitions: figures
                .iter()
                .map(|figures| figures.effective_partitions)
                .fold(f64::INFINITY, f64::min),
        })
    }
}

fn micros(array: &ArrayRef) -> Option<ArrayRef> {
    let zone = match array.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => return None,
    };
    let instant = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone)).ok()?;
    cast(&instant, &DataType::Timestamp(TimeUnit::Microsecond, None)).ok()
}

fn transformed(array: &ArrayRef, transform: Transform) -> Option<ArrayRef> {
    if transform == Transform::Identity {
        return Some(Arc::clone(array));
    }
    let times = micros(array)?;
    let times = times.as_primitive::<TimestampMicrosecondType>();
    Some(match transform {
        Transform::Date => Arc::new(times.unary::<_, Date32Type>(|at| at.div_euclid(MICROS_PER_DAY) as i32)),
        _ => Arc::new(times.unary::<_, TimestampMicrosecondType>(|at| {
            at.div_euclid(MICROS_PER_HOUR).saturating_mul(MICROS_PER_HOUR)
        })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{AdEvents, ad_events_definition};

    fn balance(key: &str, batches: &[RecordBatch]) -> KeyBalance {
        let columns = ad_events_definition().unwrap().columns;
        let partitions = PartitionCount::new(16).unwrap();
        let candidate = key.parse().unwrap();
        let mut balance = KeyBalance::new(
            &candidate,
            &columns,
            PlacementFunction::Ydb,
            partitions,
            Some(1),
            MICROS_PER_HOUR,
        )
        .unwrap();
        for batch in batches {
            balance.add(batch).unwrap();
        }
        balance
    }

    fn events() -> Vec<RecordBatch> {
        let options = AdEvents { rows: 60_000, ..AdEvents::default() };
        options.batches(10_000).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn the_claims_of_the_ydb_documentation_come_out_in_numbers() {
        let events = events();
        let report = |key: &str| balance(key, &events).finish();
        let date = report("date(event_timestamp)");
        assert_eq!(date.verdict, Verdict::Moving);
        assert!(date.over_time.unwrap().median_share_of_fullest > 0.99);
        let hour = report("hour(event_timestamp)");
        assert_eq!(hour.verdict, Verdict::Moving);
        assert!(hour.skew.effective_partitions > 6.0);
        let campaign = report("campaign_id");
        assert_eq!(campaign.verdict, Verdict::HeavyKeys);
        assert!(campaign.skew.share_of_fullest > 0.8);
        for key in ["user_id", "user_id, event_timestamp"] {
            let even = report(key);
            assert_eq!(even.verdict, Verdict::Even, "{key}: {even:?}");
            assert!(even.over_time.unwrap().median_effective_partitions > 14.0, "{key}");
        }
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let events = events();
        let whole = balance("user_id", &events);
        let mut merged = balance("user_id", &events[..2]);
        merged.merge(balance("user_id", &events[2..]));
        assert_eq!(merged.finish(), whole.finish());
    }

    #[test]
    fn a_candidate_that_does_not_fit_is_refused() {
        let columns = ad_events_definition().unwrap().columns;
        let partitions = PartitionCount::new(4).unwrap();
        let refused = |key: &str| {
            KeyBalance::new(&key.parse().unwrap(), &columns, PlacementFunction::Ydb, partitions, None, 1)
                .unwrap_err()
        };
        assert!(matches!(refused("nope"), EvaluateError::UnknownColumn { .. }));
        assert!(matches!(refused("date(user_id)"), EvaluateError::NotTime { .. }));
    }
}
