//! The system tables, named after the `.sys` views of YDB.
//!
//! `sys.partition_stats`: one row per partition. `sys.primary_index_portion_stats`: one row per
//! portion. Rows are counted as stored: a superseded row counts in addition to the newer one until
//! their portions are merged.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::error::ArrowError;

use evenkeel_model::table::KeyValue;
use evenkeel_store::log::{PortionEntry, Snapshot};

/// `partition_stats`: partition, rows, bytes, portions.
pub(in crate::query) fn partition_stats(snapshot: &Snapshot) -> Result<RecordBatch, ArrowError> {
    let partitions = snapshot.spec().partitions();
    let mut rows = vec![0u64; partitions.len()];
    let mut bytes = rows.clone();
    let mut counts = rows.clone();
    for portion in snapshot.portions() {
        let index = portion.partition.index();
        if let (Some(rows), Some(bytes), Some(count)) =
            (rows.get_mut(index), bytes.get_mut(index), counts.get_mut(index))
        {
            *rows += portion.data_rows();
            *bytes += portion.bytes;
            *count += 1;
        }
    }
    let ids = UInt32Array::from_iter_values(partitions.ids().map(|id| id.0));
    RecordBatch::try_from_iter([
        ("partition", Arc::new(ids) as ArrayRef),
        ("rows", Arc::new(UInt64Array::from(rows))),
        ("bytes", Arc::new(UInt64Array::from(bytes))),
        ("portions", Arc::new(UInt64Array::from(counts))),
    ])
}

/// `primary_index_portion_stats`: partition, portion, rows, bytes, `min_key`, `max_key`, version,
/// deletes. The last one counts the keys that a portion deletes; such a portion has no rows.
pub(in crate::query) fn portion_stats(snapshot: &Snapshot) -> Result<RecordBatch, ArrowError> {
    let types = snapshot.spec().primary_key_types();
    let portions = snapshot.portions();
    let key = |values: &[KeyValue]| {
        let parts: Vec<String> = values.iter().zip(&types).map(|(value, t)| value.display(*t)).collect();
        format!("({})", parts.join(", "))
    };
    let number = |figure: fn(&PortionEntry) -> u64| {
        Arc::new(UInt64Array::from_iter_values(portions.iter().map(|portion| figure(portion)))) as ArrayRef
    };
    let text = |part: &dyn Fn(&PortionEntry) -> String| {
        Arc::new(StringArray::from_iter_values(portions.iter().map(|portion| part(portion)))) as ArrayRef
    };
    RecordBatch::try_from_iter([
        (
            "partition",
            Arc::new(UInt32Array::from_iter_values(portions.iter().map(|portion| portion.partition.0)))
                as ArrayRef,
        ),
        ("portion", text(&|portion| portion.path.clone())),
        ("rows", number(PortionEntry::data_rows)),
        ("bytes", number(|portion| portion.bytes)),
        ("min_key", text(&|portion| key(&portion.key_range.min))),
        ("max_key", text(&|portion| key(&portion.key_range.max))),
        ("version", number(|portion| portion.sequence.version.0)),
        ("deletes", number(PortionEntry::deleted_keys)),
    ])
}
