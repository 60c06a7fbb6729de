//! Figures for ranking one candidate, and whether it is even enough.

use crate::evaluate::candidates::workload::{Reach, StatementReport};
use crate::evaluate::figures::partition_key::{PartitionKeyReport, PlacementReport};
use crate::evaluate::figures::recommendation::RankedKey;
use crate::evaluate::nulls::can_be_filled_in;
use crate::evaluate::verdict::sizing::Needed;
use crate::evaluate::verdict::workload_cost::Workload;
use evenkeel_model::units::PartitionCount;
use evenkeel_stats::skew::{MIN_KEYS_PER_PARTITION, Verdict};

/// Multiple of the required rate that an even key must sustain.
const HEADROOM: f64 = 2.0;
/// Largest max/mean of a key that is even enough.
const TOLERABLE: f64 = 1.5;
/// Smallest number of values per partition that chance spreads well enough for an entity that is
/// read.
const FEW_KEYS_PER_PARTITION: u64 = 6;
/// Smallest number of values per partition with which unevenness is not due to a few values.
const SEVERAL_KEYS_PER_PARTITION: u64 = 20;
/// Largest max/mean of a key that is even enough if several values share each partition.
const TOLERABLE_OF_SEVERAL: f64 = 2.0;
/// Largest max/mean of a key that is even enough if many values share each partition.
const TOLERABLE_OF_MANY: f64 = 2.5;
/// Cost of a key with NULL rows, as a share of the partitions: the loader must fill in a value.
const FILLING_IN: f64 = 0.03;

/// Returns a candidate with its figures for ranking over a number of partitions; `None` if it was
/// not evaluated over that number.
pub(super) fn rank(
    key: &PartitionKeyReport,
    rows: u64,
    statements: &[StatementReport],
    partitions: PartitionCount,
    needed: &Needed,
    workload: &Workload<'_>,
) -> Option<RankedKey> {
    let placement = key.over(partitions)?;
    let visits = || {
        let visit = |statement: &StatementReport| {
            Some((statement.runs, statement.under(&key.partition_key)?.clone()))
        };
        statements.iter().filter_map(visit)
    };
    let runs: f64 = visits().map(|(runs, _)| runs).sum();
    let read: f64 = visits().map(|(runs, visit)| runs * visit.partitions_read as f64).sum();
    let mean_partitions_read = (runs > 0.0).then(|| read / runs);
    let obstacle = if !key.candidate.is_plain() {
        Some("it has a derived part; the export has no such column".to_owned())
    } else if !can_be_filled_in(key.null_rows, rows) {
        Some(format!("{} of {rows} rows have NULL in it", key.null_rows))
    } else {
        key.type_obstacle.clone()
    };
    let observed = mean_partitions_read.map(|read| read / partitions.len() as f64);
    let filling_in = if key.null_rows > 0 { FILLING_IN } else { 0.0 };
    Some(RankedKey {
        qualifies: obstacle.is_none() && qualifies(key, placement, needed),
        cost: workload.cost(&key.partition_key, placement.skew.max_over_mean, observed) + filling_in,
        partition_key: key.partition_key.clone(),
        verdict: placement.verdict,
        sustained_rate: placement.capacity.sustained,
        rate_if_even: placement.capacity.if_even,
        mean_partitions_read,
        mean_key_bytes: key.mean_key_bytes,
        null_rows: key.null_rows,
        statements_on_all: visits().filter(|(_, visit)| visit.reach == Reach::All).count(),
        obstacle,
    })
}

/// Whether the hottest partition of a key stays within the limits of rate and headroom.
pub(super) fn qualifies(key: &PartitionKeyReport, placement: &PlacementReport, needed: &Needed) -> bool {
    let skew = &placement.skew;
    if needed.rate.is_some_and(|rate| placement.capacity.sustained < rate) {
        return false;
    }
    if matches!(placement.verdict, Verdict::FewRows | Verdict::Even) {
        return true;
    }
    let has_headroom = needed.rate.is_some_and(|rate| placement.capacity.sustained >= HEADROOM * rate);
    let moves = placement.verdict == Verdict::Moving && !has_headroom;
    let verdict = placement.verdict_without_time();
    let tolerable = match key.distinct.estimate / skew.partitions.max(1) as u64 {
        MIN_KEYS_PER_PARTITION.. => TOLERABLE_OF_MANY,
        SEVERAL_KEYS_PER_PARTITION.. => TOLERABLE_OF_SEVERAL,
        // Chance alone makes it uneven: none of its values is heavy.
        FEW_KEYS_PER_PARTITION.. if verdict == Verdict::FewKeys => TOLERABLE_OF_SEVERAL,
        _ => TOLERABLE,
    };
    !moves && skew.max_over_mean <= tolerable && skew.empty_partitions == 0
}
