//! Thread that reads while earlier rows are processed.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use arrow::array::RecordBatch;

/// Reads blocks of batches in a thread of `scope`, and returns their receiver. `read` passes each
/// block to its callback, which waits while a block is unclaimed, and returns whether to continue:
/// not if the receiver is gone.
pub fn read_ahead<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    read: impl FnOnce(&mut dyn FnMut(Vec<RecordBatch>) -> bool) -> R + Send + 'scope,
) -> (Receiver<Vec<RecordBatch>>, ScopedJoinHandle<'scope, R>) {
    let (sender, receiver) = sync_channel(1);
    let reading = scope.spawn(move || read(&mut |block| sender.send(block).is_ok()));
    (receiver, reading)
}

#[cfg(test)]
#[path = "read_ahead_tests.rs"]
mod tests;
