//! Words and subjects that findings share.

use crate::evaluate::figures::partition_key::PartitionKeyReport;
use evenkeel_model::finding::Subject;

pub(super) fn hash(key: &PartitionKeyReport) -> Subject {
    Subject::PartitionKey(key.partition_key.clone())
}

pub(super) fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}
