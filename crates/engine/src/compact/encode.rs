//! Encodes one sorted stream of rows into portions near the target size.

use std::sync::Arc;

use arrow::array::{BooleanArray, Int64Array, RecordBatch};
use arrow::compute::kernels::cmp::gt_eq;
use arrow::compute::{cast, filter_record_batch, partition};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use tokio::sync::mpsc;

use crate::compact::error::CompactionError;
use crate::compact::expiry::Expiry;
use evenkeel_model::table::{KeyValue, TableSpec};
use evenkeel_model::units::{ByteSize, PartitionId};
use evenkeel_store::ingest::split_marked;
use evenkeel_store::portion::{EncodedPortion, PortionEncoder};

/// Multiple of the target size at which a portion is cut between any two rows.
const PATIENCE: f64 = 1.25;

/// Settings for writing the rows of one run.
#[derive(Debug, Clone)]
pub(super) struct RunShape {
    pub(super) spec: Arc<TableSpec>,
    pub(super) partition: PartitionId,
    /// Size in bytes at which a portion is finished.
    pub(super) target: u64,
    /// Upper bound on the number of rows.
    pub(super) most_rows: usize,
    /// Maximum size of a row group in progress, in bytes.
    pub(super) group_memory: ByteSize,
    /// Expiry of the rows to leave out, if any.
    pub(super) expiry: Option<Expiry>,
    /// Whether the last column of the rows marks deletes, which become separate portions.
    pub(super) keeps_deletes: bool,
}

/// Counts of the rows received and expired.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowCounts {
    /// Rows received.
    pub(super) came: u64,
    /// Rows among them that had expired.
    pub(super) expired: u64,
}

/// Encodes the received rows, which are in key order, and sends finished portions on. Ends when
/// there are no more rows, or when the receiver of the portions is gone.
pub(super) fn encode_run(
    shape: &RunShape,
    mut rows: mpsc::Receiver<RecordBatch>,
    portions: &mpsc::Sender<EncodedPortion>,
) -> Result<RowCounts, CompactionError> {
    let merge_error =
        |error: ArrowError| CompactionError::Merge { partition: shape.partition, reason: error.to_string() };
    let mut counts = RowCounts::default();
    let fresh = || {
        let encoder = PortionEncoder::new(&shape.spec, shape.partition).for_rows(shape.most_rows);
        encoder.with_group_memory(shape.group_memory)
    };
    let mut encoder = fresh();
    let mut deletes = fresh().for_deletes();
    while let Some(batch) = rows.blocking_recv() {
        let batch = match shape.keeps_deletes {
            true => {
                let (batch, deleted) = split_marked(&batch).map_err(merge_error)?;
                deletes.push(&deleted)?;
                if deletes.bytes() >= shape.target {
                    let full = std::mem::replace(&mut deletes, fresh().for_deletes());
                    if portions.blocking_send(full.finish()?).is_err() {
                        return Ok(counts);
                    }
                }
                batch
            }
            false => batch,
        };
        counts.came += batch.num_rows() as u64;
        let kept = shape.alive(&batch).map_err(merge_error)?;
        counts.expired += (batch.num_rows() - kept.num_rows()) as u64;
        let mut rest = kept;
        if encoder.bytes() >= shape.target
            && let Some(cut) = shape.place_to_cut(&rest, encoder.bytes()).map_err(merge_error)?
        {
            encoder.push(&rest.slice(0, cut))?;
            rest = rest.slice(cut, rest.num_rows() - cut);
            let full = std::mem::replace(&mut encoder, fresh());
            if portions.blocking_send(full.finish()?).is_err() {
                return Ok(counts);
            }
        }
        encoder.push(&rest)?;
    }
    for encoder in [encoder, deletes].into_iter().filter(|encoder| encoder.rows() > 0) {
        // A missing receiver is not the encoder's fault: the task that stopped has the error.
        let _ = portions.blocking_send(encoder.finish()?);
    }
    Ok(counts)
}

impl RunShape {
    /// Returns the rows that have not expired.
    fn alive(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let Some(expiry) = &self.expiry else { return Ok(batch.clone()) };
        let column = self.spec.primary_key().get(expiry.column).and_then(|index| batch.columns().get(*index));
        let (Some(column), KeyValue::Int(oldest)) = (column, &expiry.oldest_kept) else {
            return Ok(batch.clone());
        };
        let numbers = match column.data_type() {
            DataType::Date32 => cast(&cast(column, &DataType::Int32)?, &DataType::Int64)?,
            _ => cast(column, &DataType::Int64)?,
        };
        let keep: BooleanArray = gt_eq(&numbers, &Int64Array::new_scalar(*oldest))?;
        if keep.true_count() == batch.num_rows() {
            Ok(batch.clone())
        } else {
            filter_record_batch(batch, &keep)
        }
    }

    /// Row before which a full portion ends: the first row whose leading key differs from the
    /// previous row's, so that the leading column alone distinguishes the portions. Without such a
    /// row, the portion grows to `PATIENCE` times the target.
    fn place_to_cut(&self, batch: &RecordBatch, bytes: u64) -> Result<Option<usize>, ArrowError> {
        let leading = self.spec.primary_key().first().and_then(|index| batch.columns().get(*index));
        let Some(leading) = leading.filter(|_| batch.num_rows() > 1) else { return Ok(None) };
        let same = partition(std::slice::from_ref(leading))?.ranges();
        let change = same.first().map(|range| range.end).filter(|end| *end < batch.num_rows());
        let overdue = bytes as f64 >= self.target as f64 * PATIENCE;
        Ok(change.or(overdue.then_some(1)))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{StringArray, TimestampMicrosecondArray, UInt64Array};

    use super::*;
    use evenkeel_model::table::{Column, ColumnType, PlacementFunction, TableDefinition};
    use evenkeel_model::units::PartitionCount;

    fn spec() -> Arc<TableSpec> {
        let definition = TableDefinition {
            name: "t".into(),
            columns: vec![
                Column::required("at", ColumnType::Timestamp),
                Column::required("id", ColumnType::Uint64),
                Column::nullable("text", ColumnType::Utf8),
            ],
            primary_key: vec!["at".into(), "id".into()],
            partition_key: vec!["id".into()],
            partitions: PartitionCount::ONE,
            placement: PlacementFunction::Ydb,
            ttl: None,
        };
        Arc::new(TableSpec::new(definition).unwrap())
    }

    /// Rows `from..to` in batches of 1000, with `ids` rows at each point in time.
    fn batches(from: i64, to: i64, ids: i64) -> Vec<RecordBatch> {
        let rows: Vec<i64> = (from..to).collect();
        let batch = |rows: &[i64]| {
            let at: TimestampMicrosecondArray = rows.iter().map(|row| Some(row / ids)).collect();
            let id: UInt64Array = rows.iter().map(|row| Some((row % ids) as u64)).collect();
            // Text that does not compress.
            let text: StringArray = rows
                .iter()
                .map(|row| Some(format!("{:x}", (*row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))))
                .collect();
            RecordBatch::try_new(
                Arc::clone(spec().schema()),
                vec![Arc::new(at), Arc::new(id), Arc::new(text)],
            )
            .unwrap()
        };
        rows.chunks(1000).map(batch).collect()
    }

    fn encoded(
        batches: Vec<RecordBatch>,
        target: u64,
        expiry: Option<Expiry>,
    ) -> (Vec<EncodedPortion>, RowCounts) {
        let shape = RunShape {
            spec: spec(),
            partition: PartitionId(0),
            target,
            most_rows: 50_000,
            group_memory: ByteSize::mib(48),
            expiry,
            keeps_deletes: false,
        };
        let (send, receive) = mpsc::channel(batches.len().max(1));
        batches.into_iter().for_each(|batch| send.blocking_send(batch).unwrap());
        drop(send);
        let (out, mut portions) = mpsc::channel(1000);
        let counts = encode_run(&shape, receive, &out).unwrap();
        drop(out);
        (std::iter::from_fn(|| portions.blocking_recv()).collect(), counts)
    }

    #[test]
    fn portions_are_cut_near_the_target_where_the_leading_key_changes() {
        let (portions, counts) = encoded(batches(0, 50_000, 7), 100_000, None);
        assert_eq!(counts, RowCounts { came: 50_000, expired: 0 });
        assert!(portions.len() > 3, "{}", portions.len());
        assert_eq!(portions.iter().map(|p| p.rows).sum::<u64>(), 50_000);
        for pair in portions.windows(2) {
            assert!(pair[0].key_range.max[0] < pair[1].key_range.min[0], "{:?}", pair[0].key_range.max);
            assert!(pair[0].bytes.len() > 50_000 && pair[0].bytes.len() < 200_000, "{}", pair[0].bytes.len());
        }
    }

    #[test]
    fn one_leading_key_is_cut_too_when_it_grows_too_large() {
        let (portions, _) = encoded(batches(0, 50_000, 50_000), 100_000, None);
        assert!(portions.len() > 2, "{}", portions.len());
        for pair in portions.windows(2) {
            assert!(pair[0].key_range.max < pair[1].key_range.min);
        }
    }

    #[test]
    fn expired_rows_are_left_out() {
        let expiry = Some(Expiry { column: 0, oldest_kept: KeyValue::Int(2500) });
        let (portions, counts) = encoded(batches(0, 4000, 1), 1 << 30, expiry.clone());
        assert_eq!(counts, RowCounts { came: 4000, expired: 2500 });
        assert_eq!(portions[0].rows, 1500);
        assert_eq!(portions[0].key_range.min[0], KeyValue::Int(2500));
        assert!(encoded(batches(0, 100, 1), 1 << 30, expiry).0.is_empty());
    }
}
