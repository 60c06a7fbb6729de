//! Result of a job, fetched as a whole before any of it is shown: a job that fails midway is run
//! again, and half of its result is worthless.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;

use crate::ClusterError;

/// Size of the batches in memory, in bytes; further batches are spilled to disk.
const IN_MEMORY: usize = 64 << 20;

/// Batches of one schema, in the order of arrival.
pub(super) struct SpilledResult {
    schema: SchemaRef,
    in_memory: Vec<RecordBatch>,
    memory_left: usize,
    on_disk: Option<StreamWriter<BufWriter<File>>>,
}

fn failed(error: impl std::fmt::Display) -> ClusterError {
    ClusterError::File { path: std::env::temp_dir().display().to_string(), reason: error.to_string() }
}

/// Returns the bytes of the values: buffers of batches from the network are parts of larger ones.
fn memory_of(batch: &RecordBatch) -> usize {
    let bytes = |column: &ArrayRef| column.to_data().get_slice_memory_size();
    batch
        .columns()
        .iter()
        .map(|column| bytes(column).unwrap_or_else(|_| column.get_array_memory_size()))
        .sum()
}

impl SpilledResult {
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self::with_memory(schema, IN_MEMORY)
    }

    fn with_memory(schema: SchemaRef, memory_left: usize) -> Self {
        Self { schema, in_memory: Vec::new(), memory_left, on_disk: None }
    }

    pub(super) fn push(&mut self, batch: RecordBatch) -> Result<(), ClusterError> {
        let bytes = memory_of(&batch);
        if self.on_disk.is_none() && bytes <= self.memory_left {
            self.memory_left -= bytes;
            self.in_memory.push(batch);
            return Ok(());
        }
        let writer = match self.on_disk.as_mut() {
            Some(writer) => writer,
            None => {
                let file = tempfile::tempfile().map_err(failed)?;
                let writer = StreamWriter::try_new_buffered(file, batch.schema_ref()).map_err(failed)?;
                self.on_disk.insert(writer)
            }
        };
        writer.write(&batch).map_err(failed)
    }

    pub(super) fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    /// Returns all batches, after the last was pushed. They can be read repeatedly, one reader at a
    /// time.
    pub(super) fn batches(&mut self) -> Result<Batches, ClusterError> {
        let on_disk = match self.on_disk.as_mut() {
            None => None,
            Some(writer) => {
                writer.flush().map_err(failed)?;
                let mut file = writer.get_ref().get_ref().try_clone().map_err(failed)?;
                file.rewind().map_err(failed)?;
                Some(StreamReader::try_new(BufReader::new(file), None).map_err(failed)?)
            }
        };
        Ok(Batches { in_memory: self.in_memory.clone().into_iter(), on_disk })
    }
}

/// Batches of a [`SpilledResult`].
pub(super) struct Batches {
    in_memory: std::vec::IntoIter<RecordBatch>,
    on_disk: Option<StreamReader<BufReader<File>>>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.in_memory.next().map(Ok).or_else(|| self.on_disk.as_mut()?.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn what_finds_no_room_in_memory_comes_from_disk_in_its_order() {
        let batch = |first: i64| {
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 100));
            let texts: ArrayRef = Arc::new(
                (first..first + 100).map(|n| (n % 3 > 0).then(|| n.to_string())).collect::<StringArray>(),
            );
            RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap()
        };
        let batches: Vec<RecordBatch> = (0..20).map(|index| batch(index * 100)).collect();
        let bytes = batches[0..].iter().map(memory_of).max().unwrap();
        for memory in [0, bytes, 3 * bytes, 12 * bytes, 30 * bytes] {
            let mut fetched = SpilledResult::with_memory(batches[0].schema(), memory);
            batches.iter().for_each(|batch| fetched.push(batch.clone()).unwrap());
            assert_eq!(fetched.on_disk.is_none(), memory == 30 * bytes);
            for _ in 0..2 {
                let actual: Vec<RecordBatch> = fetched.batches().unwrap().map(Result::unwrap).collect();
                assert_eq!(actual, batches);
            }
        }
        assert_eq!(SpilledResult::new(batches[0].schema()).batches().unwrap().count(), 0);
    }
}
