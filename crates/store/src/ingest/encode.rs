//! Encodes the rows of one partition as a portion.

use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat_batches;

use crate::ingest::buffer::StagedRows;
use crate::ingest::deletes::{split_marked, without_values};
use crate::ingest::error::IngestError;
use crate::ingest::options::IngestMode;
use crate::portion::{EncodedPortion, PortionEncoder, WRITE_BATCH_ROWS, key_value};
use crate::sort::{gather, sort_newest_wins};
use evenkeel_model::table::TableSpec;
use evenkeel_model::units::{ByteSize, PartitionId};

/// Bytes of rows gathered and encoded at a time.
const WRITE_BATCH_BYTES: usize = 8 << 20;

/// A partition's rows, encoded.
pub(super) struct Encoded {
    /// Rows, deletes, or both in this order; no key is in both.
    pub(super) portions: Vec<EncodedPortion>,
    /// Number of rows that later ones replaced.
    pub(super) replaced: u64,
    /// Seconds spent sorting and encoding.
    pub(super) seconds: f64,
}

/// Sorts and encodes rows of one partition; the row group being written holds `group_memory` at
/// most.
pub(super) fn encode(
    spec: &TableSpec,
    mode: IngestMode,
    partition: PartitionId,
    pieces: StagedRows,
    group_memory: ByteSize,
    has_marks: bool,
) -> Result<Encoded, IngestError> {
    let started = Instant::now();
    let failed = |source| IngestError::Sort { partition, source };
    let Some(first) = pieces.batches.first() else {
        return Err(crate::portion::PortionError::Empty { partition }.into());
    };
    let batch = concat_batches(&first.schema(), &pieces.batches).map_err(failed)?;
    let row_bytes = (pieces.bytes / batch.num_rows().max(1)).max(1);
    drop(pieces);
    let key: Vec<ArrayRef> =
        spec.primary_key().iter().filter_map(|index| batch.columns().get(*index).cloned()).collect();
    let sorted = sort_newest_wins(&key).map_err(failed)?;
    if let (IngestMode::Insert, Some(row)) = (mode, sorted.repeated.first()) {
        return Err(IngestError::RepeatedKey { key: key_of(spec, &batch, *row as usize) });
    }
    let chunk_rows = (WRITE_BATCH_BYTES / row_bytes).clamp(1, WRITE_BATCH_ROWS);
    let encoder = || {
        let encoder = PortionEncoder::new(spec, partition).for_rows(batch.num_rows());
        encoder.with_group_memory(group_memory)
    };
    let (mut rows_of, mut deletes_of) = (encoder(), encoder().for_deletes());
    for rows in gather(&batch, &sorted, chunk_rows) {
        let rows = rows.map_err(failed)?;
        if has_marks {
            let (rows, deletes) = split_marked(&rows).map_err(failed)?;
            rows_of.push(&rows)?;
            deletes_of.push(&without_values(spec, &deletes).map_err(failed)?)?;
        } else {
            rows_of.push(&rows)?;
        }
    }
    let encoders = [rows_of, deletes_of].into_iter().filter(|encoder| encoder.rows() > 0);
    let portions = encoders.map(PortionEncoder::finish).collect::<Result<_, _>>()?;
    Ok(Encoded { portions, replaced: sorted.replaced, seconds: started.elapsed().as_secs_f64() })
}

/// Returns the primary key of a row as text.
pub fn key_of(spec: &TableSpec, batch: &RecordBatch, row: usize) -> String {
    let parts = spec.primary_key().iter().zip(spec.primary_key_types()).map(|(index, column_type)| {
        let value = batch.columns().get(*index).and_then(|array| key_value(array, column_type, row));
        value.map_or("?".to_owned(), |value| value.display(column_type))
    });
    format!("({})", parts.collect::<Vec<_>>().join(", "))
}
