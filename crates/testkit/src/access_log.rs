//! The access log of Spanner's guide: many users, with about a millisecond between actions.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{GenerateError, START_MICROS};
use evenkeel_input::sink::{OutputFormat, PartFile, Sink, SinkError};

/// Number of rows per batch.
const BATCH_ROWS: u64 = 65_536;
/// Actions of users.
const ACTIONS: [&str; 4] = ["view", "search", "login", "buy"];

/// Parameters of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessLog {
    /// Number of rows.
    pub rows: u64,
    /// Number of users, all equally active.
    pub users: u64,
    /// Random seed; equal seeds give equal rows.
    pub seed: u64,
}

impl Default for AccessLog {
    fn default() -> Self {
        Self { rows: 1_000_000, users: 100_000, seed: 1 }
    }
}

impl AccessLog {
    /// Returns the columns of the log: `last_access`, `user_id`, `action`.
    #[must_use]
    pub fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("last_access", DataType::Timestamp(TimeUnit::Microsecond, None), false),
            Field::new("user_id", DataType::Int64, false),
            Field::new("action", DataType::Utf8, false),
        ]))
    }

    /// Generates the rows, ordered by time.
    pub fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
        let Self { rows, users, seed } = *self;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut at = START_MICROS;
        (0..rows.div_ceil(BATCH_ROWS)).map(move |batch| {
            let count = BATCH_ROWS.min(rows - batch * BATCH_ROWS) as usize;
            let (mut times, mut ids, mut actions) =
                (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
            for _ in 0..count {
                at += random.random_range(500..1500);
                times.push(at);
                ids.push(random.random_range(1..=users.max(1)).cast_signed());
                actions.push(ACTIONS.get(random.random_range(0..ACTIONS.len())).copied().unwrap_or_default());
            }
            RecordBatch::try_new(
                Self::schema(),
                vec![
                    Arc::new(TimestampMicrosecondArray::from(times)),
                    Arc::new(Int64Array::from(ids)),
                    Arc::new(StringArray::from(actions)),
                ],
            )
        })
    }

    /// Writes the log to a new Parquet file.
    ///
    /// # Errors
    /// [`GenerateError`] if the file cannot be written.
    pub fn write_file(&self, path: &Path) -> Result<(), GenerateError> {
        let failed = |source: SinkError| GenerateError::Write { path: path.to_owned(), source };
        let file = PartFile::create(path).map_err(|source| failed(source.into()))?;
        let mut sink =
            Sink::new(BufWriter::new(file.file()), OutputFormat::Parquet, &Self::schema()).map_err(failed)?;
        for batch in self.batches() {
            sink.write(&batch?).map_err(failed)?;
        }
        let mut out = sink.finish().map_err(failed)?;
        out.flush().map_err(|source| failed(source.into()))?;
        drop(out);
        file.publish().map_err(|source| failed(source.into()))
    }
}
