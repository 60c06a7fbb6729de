//! Batches of equal size from an export.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::bench::ingest::options::BenchError;
use evenkeel_input::source::{Export, OnUnreadable};

type Batch = Result<RecordBatch, BenchError>;

/// Reads the rows of the export in a separate thread, one batch ahead.
pub(super) fn batches(export: Arc<Export>, batch_rows: u64) -> Receiver<Batch> {
    let (sender, receiver) = channel(1);
    let batch_rows = usize::try_from(batch_rows).unwrap_or(usize::MAX).max(1);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = send_batches(&export, batch_rows, &sender) {
            // If the receiver is gone, there is nothing left to report to.
            let _ = sender.blocking_send(Err(error));
        }
    });
    receiver
}

/// Sends batches of `batch_rows` rows until the export ends or the receiver is gone; the last batch
/// may be smaller.
fn send_batches(export: &Export, batch_rows: usize, sender: &Sender<Batch>) -> Result<(), BenchError> {
    let (mut buffered, mut rows) = (Vec::new(), 0);
    let join = |buffered: &mut Vec<RecordBatch>| {
        let batch = concat_batches(export.schema(), buffered.iter()).map_err(BenchError::from);
        buffered.clear();
        batch
    };
    export.read::<BenchError>(OnUnreadable::Fail, |_, batch| {
        let mut begin = 0;
        while begin < batch.num_rows() {
            let taken = (batch_rows - rows).min(batch.num_rows() - begin);
            buffered.push(batch.slice(begin, taken));
            (begin, rows) = (begin + taken, rows + taken);
            if rows == batch_rows {
                rows = 0;
                if sender.blocking_send(join(&mut buffered)).is_err() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    })?;
    if !buffered.is_empty() {
        let _ = sender.blocking_send(join(&mut buffered));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;
    use evenkeel_input::source::{InputOptions, InputPath};

    use super::*;

    /// Returns the values of each batch of an export with the numbers 0 to `rows`.
    fn cut(rows: usize, batch_rows: u64) -> Vec<Vec<i64>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.csv");
        let lines: String = (0..rows).map(|row| format!("{row}\n")).collect();
        std::fs::write(&path, format!("n\n{lines}")).unwrap();
        let export = Export::open(&[InputPath::File(path)], InputOptions::default(), &Default::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut receiver = batches(Arc::new(export.unwrap()), batch_rows);
            let mut batches = Vec::new();
            while let Some(batch) = receiver.recv().await {
                let numbers: &Int64Array = batch.as_ref().unwrap().column(0).as_primitive::<Int64Type>();
                batches.push(numbers.values().to_vec());
            }
            batches
        })
    }

    #[test]
    fn batches_have_the_given_number_of_rows_and_the_last_one_the_rest() {
        for (rows, batch_rows) in [(1, 1), (10, 3), (9, 3), (5, 100), (20_000, 8_191)] {
            let all: Vec<i64> = (0..rows as i64).collect();
            let expected: Vec<&[i64]> = all.chunks(batch_rows as usize).collect();
            assert_eq!(cut(rows, batch_rows), expected, "{rows} rows by {batch_rows}");
        }
    }
}
