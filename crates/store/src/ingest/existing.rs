//! Insert mode: checks whether two portions share a primary key.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::row::{OwnedRow, RowConverter, Rows, SortField};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use crate::ingest::error::IngestError;
use crate::log::PortionEntry;
use crate::portion::{WRITE_BATCH_ROWS, key_value};
use evenkeel_model::table::TableSpec;
use evenkeel_storage::TableStorage;

/// Fails if two of the new portions share a key.
pub(super) async fn find_repeated_key(
    storage: &TableStorage,
    spec: &TableSpec,
    portions: &[PortionEntry],
) -> Result<(), IngestError> {
    for (index, portion) in portions.iter().enumerate() {
        let others = portions.iter().skip(index + 1);
        if let Some(key) = common_key(storage, spec, portion, others, &[]).await? {
            return Err(IngestError::RepeatedKey { key });
        }
    }
    Ok(())
}

/// Fails if a new portion shares a key with an existing one, unless a newer portion of `all`
/// deletes it.
pub(super) async fn find_common_key(
    storage: &TableStorage,
    spec: &TableSpec,
    portions: &[PortionEntry],
    existing: &[Arc<PortionEntry>],
    all: &[Arc<PortionEntry>],
) -> Result<(), IngestError> {
    let deletes: Vec<&PortionEntry> = all.iter().map(AsRef::as_ref).filter(|other| other.deletes).collect();
    for portion in portions {
        let others = existing.iter().map(AsRef::as_ref).filter(|other| !other.deletes);
        if let Some(key) = common_key(storage, spec, portion, others, &deletes).await? {
            return Err(IngestError::ExistingKey { key });
        }
    }
    Ok(())
}

/// Returns a key of `portion` that another portion also holds, without a delete in `deletes`. Only
/// portions of the same partition whose key ranges overlap are read: two files at a time, and
/// deletes.
async fn common_key(
    storage: &TableStorage,
    spec: &TableSpec,
    portion: &PortionEntry,
    others: impl Iterator<Item = &PortionEntry>,
    deletes: &[&PortionEntry],
) -> Result<Option<String>, IngestError> {
    let mut bytes = None;
    let overlaps = |other: &PortionEntry| {
        portion.partition == other.partition && portion.key_range.overlaps(&other.key_range)
    };
    let mut deleted: Vec<Peeked> = Vec::new();
    for other in others {
        if !overlaps(other) {
            continue;
        }
        let read = match &bytes {
            Some(read) => Bytes::clone(read),
            None => bytes.insert(storage.read(&portion.path).await?).clone(),
        };
        let ours = Keys::open(spec, &portion.path, read)?;
        let theirs = Keys::open(spec, &other.path, storage.read(&other.path).await?)?;
        let newer = deletes.iter().filter(|deletes| overlaps(deletes) && deletes.sequence > other.sequence);
        deleted.clear();
        for deletes in newer {
            let keys = Keys::open(spec, &deletes.path, storage.read(&deletes.path).await?)?;
            deleted.push(Peeked::new(keys)?);
        }
        if let Some(key) = first_common(spec, ours, theirs, &mut deleted)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// Returns the first key of both that is not among the deleted ones, which are in order, too.
fn first_common(
    spec: &TableSpec,
    mut a: Keys,
    mut b: Keys,
    deleted: &mut [Peeked],
) -> Result<Option<String>, IngestError> {
    let mut both = (a.next()?, b.next()?);
    while let (Some(left), Some(right)) = &both {
        match left.cmp(right) {
            Ordering::Less => both.0 = a.next()?,
            Ordering::Greater => both.1 = b.next()?,
            Ordering::Equal => {
                let mut is_deleted = false;
                for keys in &mut *deleted {
                    is_deleted |= keys.reaches(left)?;
                }
                if !is_deleted {
                    return Ok(Some(a.display_last(spec)));
                }
                both = (a.next()?, b.next()?);
            }
        }
    }
    Ok(None)
}

/// Keys of a portion of deletes, with the next one peeked.
struct Peeked {
    keys: Keys,
    next: Option<OwnedRow>,
}

impl Peeked {
    fn new(mut keys: Keys) -> Result<Self, IngestError> {
        let next = keys.next()?;
        Ok(Self { keys, next })
    }

    /// Advances to a key that is not before the last one; returns whether it exists.
    fn reaches(&mut self, key: &OwnedRow) -> Result<bool, IngestError> {
        while self.next.as_ref().is_some_and(|next| next < key) {
            self.next = self.keys.next()?;
        }
        Ok(self.next.as_ref() == Some(key))
    }
}

/// Reader of the keys of one portion, in order.
struct Keys {
    portion: String,
    reader: ParquetRecordBatchReader,
    /// Positions of the key columns within the batches, in key order.
    columns: Vec<usize>,
    converter: RowConverter,
    batch: Option<(Vec<ArrayRef>, Rows)>,
    next: usize,
}

impl Keys {
    fn open(spec: &TableSpec, portion: &str, bytes: Bytes) -> Result<Self, IngestError> {
        let failed = |reason: String| IngestError::Keys { portion: portion.to_owned(), reason };
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|e| failed(e.to_string()))?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), spec.primary_key().iter().copied());
        let reader = builder
            .with_projection(mask)
            .with_batch_size(WRITE_BATCH_ROWS)
            .build()
            .map_err(|e| failed(e.to_string()))?;
        // A projection keeps the order of the file.
        let mut in_file: Vec<usize> = spec.primary_key().to_vec();
        in_file.sort_unstable();
        let columns =
            spec.primary_key().iter().filter_map(|index| in_file.iter().position(|i| i == index)).collect();
        let fields = spec.primary_key_types().into_iter().map(|t| SortField::new(t.arrow_type())).collect();
        let converter = RowConverter::new(fields).map_err(|e| failed(e.to_string()))?;
        Ok(Self { portion: portion.to_owned(), reader, columns, converter, batch: None, next: 0 })
    }

    fn failed(&self, reason: impl std::fmt::Display) -> IngestError {
        IngestError::Keys { portion: self.portion.clone(), reason: reason.to_string() }
    }

    fn next(&mut self) -> Result<Option<OwnedRow>, IngestError> {
        loop {
            if let Some((_, rows)) = &self.batch
                && self.next < rows.num_rows()
            {
                self.next += 1;
                return Ok(Some(rows.row(self.next - 1).owned()));
            }
            let Some(batch) = self.reader.next() else { return Ok(None) };
            let batch: RecordBatch = batch.map_err(|error| self.failed(error))?;
            let columns: Vec<ArrayRef> =
                self.columns.iter().filter_map(|index| batch.columns().get(*index).cloned()).collect();
            let rows = self.converter.convert_columns(&columns).map_err(|error| self.failed(error))?;
            self.batch = Some((columns, rows));
            self.next = 0;
        }
    }

    /// Displays the key that [`Keys::next`] returned last.
    fn display_last(&self, spec: &TableSpec) -> String {
        let columns = self.batch.as_ref().map(|(columns, _)| columns.as_slice()).unwrap_or_default();
        let row = self.next.saturating_sub(1);
        let parts = columns.iter().zip(spec.primary_key_types()).map(|(array, column_type)| {
            key_value(array, column_type, row).map_or("?".to_owned(), |value| value.display(column_type))
        });
        format!("({})", parts.collect::<Vec<_>>().join(", "))
    }
}
