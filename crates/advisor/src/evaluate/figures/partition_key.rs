//! Figures of a candidate for the partition key.

use arrow::array::ArrayRef;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::interval::{Interval, Intervals};
use crate::evaluate::figures::over_time::{OverTime, Spread};
use crate::evaluate::figures::weights::NodeLoads;
use evenkeel_model::table::{Candidate, PlacementFunction};
use evenkeel_model::units::{PartitionCount, PartitionId};
use evenkeel_placement::placement::systems::Status;
use evenkeel_placement::placement::{Function, Placement};
use evenkeel_stats::sketch::DistinctKeys;
use evenkeel_stats::skew::{AtATime, BEYOND_CHANCE, NoiseFloor, SkewFigures, Verdict, leaves_empty};
use evenkeel_stats::throughput::Capacity;
use evenkeel_stats::windows::Window;

/// Key with many rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeavyHitter {
    /// Values in the order of the key. Empty for a key that did not stand out while rows were
    /// counted: [`crate::evaluate::advise`] reads the export again for these; an
    /// [`crate::evaluate::Evaluator`] alone cannot.
    pub key: Vec<Value>,
    /// Identity to find the key in the export, if its values are not known yet.
    #[serde(skip)]
    pub(crate) identity: Option<u64>,
    /// Rows of the key, at least; exact if `error` is 0.
    pub rows: u64,
    /// Maximum number of rows that it may have beyond `rows`.
    pub error: u64,
    /// Share of all rows, by `rows`.
    pub share: f64,
    /// 95 % interval of its share of the whole export, if only a sample was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_interval: Option<Interval>,
}

/// Causes of skew, as parts of the CV and in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkewCauses {
    /// CV that a perfect hash gives to as many keys of equal size.
    pub too_few_keys: f64,
    /// CV that unequal keys add to that.
    pub heavy_keys: f64,
    /// CV that remains for the hash function, beyond chance: 0 if the rows are within five standard
    /// deviations of the expectation for these keys.
    pub hash_function: f64,
    /// Causes in words.
    pub words: String,
}

/// Arrival of rows, batch by batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerBatch {
    /// Number of rows per batch of the simulated ingest.
    pub batch_rows: u64,
    /// Number of batches; a last one with fewer rows is not counted.
    pub batches: u64,
    /// Partitions that a batch writes to.
    pub partitions_written: Spread,
    /// Share of a batch's rows in its fullest partition.
    pub share_of_fullest: Spread,
}

/// Serializes a function as its name.
fn as_name<S: Serializer>(function: &Function, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(function)
}

/// Figures of a key under one placement function and number of partitions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacementReport {
    /// Placement function, serialized as its name.
    #[serde(serialize_with = "as_name")]
    pub function: Function,
    /// Degree to which the function is verified.
    pub status: Status,
    /// Number of rows of each partition, by partition number.
    pub rows_per_partition: Vec<u64>,
    /// Bytes of values per partition, before compression.
    pub bytes_per_partition: Vec<u64>,
    /// Skew of the rows.
    #[serde(flatten)]
    pub skew: SkewFigures,
    /// Skew that a perfect hash would give.
    #[serde(flatten)]
    pub noise_floor: NoiseFloor,
    /// Causes of the skew.
    pub causes: SkewCauses,
    /// Average number of partitions without a key under a perfect hash.
    pub empty_by_chance: f64,
    /// Share of the rows in the partition of the heaviest key.
    pub share_of_heaviest_partition: f64,
    /// Balance over time, if there is a time column and a window has enough rows.
    pub over_time: Option<OverTime>,
    /// Rate of inserts that the table can sustain.
    pub capacity: Capacity,
    /// Arrival of rows, if there is at least one whole batch.
    pub per_batch: Option<PerBatch>,
    /// Judgement of the placement.
    pub verdict: Verdict,
    /// Loads of nodes with weights, if these are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeLoads>,
    /// 95 % intervals of the figures of the whole export, if only a sample was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Intervals>,
    /// Displayed windows, in order of time.
    #[serde(skip)]
    pub windows: Vec<Window>,
    /// Placement that was evaluated.
    #[serde(skip)]
    pub(crate) placement: Placement,
}

impl PlacementReport {
    /// The verdict on all rows together, whenever they arrive.
    pub(crate) fn verdict_without_time(&self) -> Verdict {
        match self.verdict {
            Verdict::Moving => Verdict::from_skew(&self.skew, Some(&self.noise_floor), AtATime::Spread),
            verdict => verdict,
        }
    }
}

/// Report on a candidate for the partition key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionKeyReport {
    /// Parts of the key.
    pub partition_key: Vec<String>,
    /// Number of distinct values, counted or estimated.
    pub distinct: DistinctKeys,
    /// Rows with NULL in some part.
    pub null_rows: u64,
    /// Bytes of a key, on average.
    pub mean_key_bytes: f64,
    /// Length of the longest key, in bytes.
    pub max_key_bytes: u64,
    /// Reason why YDB does not accept it in a key, if its type is the reason.
    pub type_obstacle: Option<String>,
    /// Values with the most rows, in descending order.
    pub heavy_hitters: Vec<HeavyHitter>,
    /// All placements, in the requested order.
    pub placements: Vec<PlacementReport>,
    /// Functions that accept no such key, each with the reason.
    pub left_out: Vec<String>,
    /// Balance over time of the recommended placement, otherwise of the first.
    pub over_time: Option<OverTime>,
    /// Candidate that was evaluated.
    #[serde(skip)]
    pub candidate: Candidate,
}

impl PlacementReport {
    /// Whether all partitions have the same share of the hashes.
    #[must_use]
    pub fn has_even_ranges(&self) -> bool {
        self.placement.function().has_even_ranges()
    }

    /// Whether the function has few active partitions at any moment, by its own rule.
    pub(crate) fn has_active_partitions(&self) -> bool {
        matches!(self.placement.function(), Function::Ydb(PlacementFunction::YdbCloudLogs { .. }))
    }

    /// Whether the hash function leaves partitions empty that chance would fill, which does not
    /// depend on how many rows the keys have.
    #[must_use]
    pub fn leaves_empty(&self) -> bool {
        self.has_even_ranges() && leaves_empty(&self.skew, &self.noise_floor)
    }
}

impl PartitionKeyReport {
    /// Returns the placement over a number of partitions; the first one if there are several
    /// functions.
    #[must_use]
    pub fn over(&self, partitions: PartitionCount) -> Option<&PlacementReport> {
        self.placements.iter().find(|placement| placement.skew.partitions == partitions.len())
    }

    /// Returns the partition in every placement of the key that a row has.
    pub(crate) fn partitions_of(
        &self,
        key: &[ArrayRef],
        row: usize,
    ) -> Result<Vec<PartitionId>, EvaluateError> {
        let key: Vec<ArrayRef> = key.iter().map(|array| array.slice(row, 1)).collect();
        let of_placement = |report: &PlacementReport| {
            let placed = report.placement.assign(&key);
            let failed = |source| EvaluateError::Placement { key: self.candidate.to_string(), source };
            Ok(placed.map_err(failed)?.first().copied().unwrap_or(PartitionId(0)))
        };
        self.placements.iter().map(of_placement).collect()
    }

    /// Sets the partition of the heaviest key in every placement.
    pub(crate) fn place_heaviest(&mut self, partitions: &[PartitionId]) {
        for (report, partition) in self.placements.iter_mut().zip(partitions) {
            let rows = report.rows_per_partition.get(partition.index());
            report.share_of_heaviest_partition =
                rows.copied().unwrap_or(0) as f64 / report.skew.rows.max(1) as f64;
        }
    }
}

impl SkewCauses {
    /// Attributes the skew to its causes. If the weights of the keys are estimated, the expectation
    /// is too low to blame the function.
    #[must_use]
    pub fn new(skew: &SkewFigures, floor: &NoiseFloor, exact: bool, verdict: Verdict) -> Self {
        let beyond = floor.deviations > BEYOND_CHANCE && skew.cv > floor.expected_cv_weighted;
        let above = if beyond { skew.cv - floor.expected_cv_weighted } else { 0.0 };
        let hash_function = if exact { above } else { 0.0 };
        let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
        let mut words = format!(
            "the CV is {}; a perfect hash gives {} to {} equal keys in {} partitions",
            percent(skew.cv),
            percent(floor.expected_cv_equal_keys),
            floor.distinct_keys,
            skew.partitions,
        );
        if floor.cv_of_heavy_keys > 0.001 {
            words.push_str(&format!(
                ", and {} to these, which differ in rows",
                percent(floor.expected_cv_weighted)
            ));
        }
        words.push_str(&if hash_function > 0.0 {
            format!("; the other {} are the hash function's own", percent(hash_function))
        } else if above > 0.0 {
            "; keys are estimated here, so the rest is not explained".to_owned()
        } else if leaves_empty(skew, floor) {
            "; the hash function leaves partitions empty that chance would fill".to_owned()
        } else {
            match verdict {
                Verdict::Even | Verdict::Empty => "; chance explains it".to_owned(),
                Verdict::FewRows => format!("; {} rows are too few to say more", skew.rows),
                Verdict::HeavyKeys => "; keys with many rows are at fault, not the hash function".to_owned(),
                Verdict::FewKeys => {
                    "; the small number of keys is at fault, not the hash function".to_owned()
                }
                Verdict::Moving => {
                    "; in total chance explains it, but at any moment few partitions are active".to_owned()
                }
                Verdict::Uneven => "; at any moment the same few partitions are active".to_owned(),
            }
        });
        Self {
            too_few_keys: floor.expected_cv_equal_keys,
            heavy_keys: floor.cv_of_heavy_keys,
            hash_function,
            words,
        }
    }
}

#[cfg(test)]
#[path = "partition_key_tests.rs"]
mod tests;
