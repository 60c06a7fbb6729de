//! Thread that reads while rows are counted.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;

use crate::evaluate::EvaluateError;
use crate::evaluate::pass::evaluator::Evaluator;
use evenkeel_input::source::{Unreadable, read_ahead};

/// Callback that receives blocks of batches and returns whether to continue.
type Blocks<'a> = &'a mut dyn FnMut(Vec<RecordBatch>) -> bool;

/// Reads rows in a separate thread, while they are counted in this one and its helpers. `read`
/// yields the rows of the projected columns.
pub(crate) fn read_into(
    evaluator: &mut Evaluator,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
    read: impl FnOnce(&[bool], Blocks<'_>) -> Result<Unreadable, EvaluateError> + Send,
) -> Result<Unreadable, EvaluateError> {
    let projection = evaluator.projection();
    std::thread::scope(|scope| {
        // If the receiver is gone, counting has failed, and reports that itself.
        let (receiver, reading) = read_ahead(scope, move |each| read(&projection, each));
        let counted = evaluator.add_all(
            || receiver.recv().ok(),
            |rows_read| {
                progress(rows_read);
                if stop.load(Ordering::Relaxed) { Err(EvaluateError::Interrupted) } else { Ok(()) }
            },
        );
        drop(receiver);
        let read = reading.join().unwrap_or(Err(EvaluateError::Interrupted));
        counted.and(read)
    })
}
