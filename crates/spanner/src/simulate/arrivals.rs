//! Replays rows in arrival order: one export in its stored order, several merged by time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::Receiver;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::interleave_record_batch;
use arrow::datatypes::TimestampMicrosecondType;

use crate::simulate::error::SimulateError;
use crate::simulate::survey::{Order, Source};
use evenkeel_input::source::{OnUnreadable, read_ahead};
use evenkeel_model::units::Micros;
use evenkeel_model::values::{instants, row_bytes};

/// Window and time of rows that exist before the clock starts.
pub(super) const BEFORE: i64 = i64::MIN;

/// Rows per batch that the sort emits.
const SORTED_ROWS: usize = 1 << 16;
/// Constant arrival rate, for rows that do not arrive at their recorded times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// Arrival time of the first row.
    pub(super) from: i64,
    /// Microseconds between two rows.
    pub(super) between: f64,
}

/// Rows of one source, with their times.
pub(super) struct Arrived {
    pub(super) source: usize,
    pub(super) batch: RecordBatch,
    /// Arrival time of each row, in microseconds since 1970.
    pub(super) times: Vec<i64>,
    /// Window of each row, numbered since 1970.
    pub(super) windows: Vec<i64>,
    /// Size of the values of each row, in bytes.
    pub(super) bytes: Vec<u32>,
}

/// Rows that are replayed together.
pub(super) struct Block {
    pub(super) arrived: Vec<Arrived>,
    /// Replay order: positions in `arrived`, each with a range of rows.
    pub(super) order: Vec<(usize, Range<usize>)>,
}

/// Sends the rows of a source sorted by time; rows with equal times keep their stored order.
fn sorted(
    source: &Source<'_>,
    on_unreadable: OnUnreadable,
    time: usize,
    mut send: impl FnMut(Vec<RecordBatch>) -> bool,
) -> Result<(), SimulateError> {
    let (mut batches, mut rows): (Vec<RecordBatch>, Vec<(i64, usize, usize)>) = (Vec::new(), Vec::new());
    let (mut last, mut failed) = (BEFORE, None);
    source.export.read_blocks::<SimulateError>(on_unreadable, &source.projection, |block| {
        for batch in block {
            match times(&batch, Some(time), None, 0, &mut last) {
                Ok(times) => {
                    let number = batches.len();
                    rows.extend(times.into_iter().enumerate().map(|(row, micros)| (micros, number, row)));
                }
                Err(error) => failed = Some(error),
            }
            batches.push(batch);
        }
        failed.is_none()
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    // The sort key includes the batch and the row, so rows with equal times keep their order.
    rows.sort_unstable();
    let batches: Vec<&RecordBatch> = batches.iter().collect();
    for slice in rows.chunks(SORTED_ROWS) {
        let places: Vec<(usize, usize)> = slice.iter().map(|(_, batch, row)| (*batch, *row)).collect();
        if !send(vec![interleave_record_batch(&batches, &places)?]) {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads all sources, each in its own thread, and passes their rows to `each` in arrival order.
pub(super) fn replay(
    sources: &[Source<'_>],
    on_unreadable: OnUnreadable,
    rate: Option<Rate>,
    window: Micros,
    each: &mut dyn FnMut(Block) -> Result<(), SimulateError>,
) -> Result<(), SimulateError> {
    std::thread::scope(|scope| {
        let mut queues = Vec::new();
        let mut readers = Vec::new();
        for source in sources {
            // If the receiver is gone, the replay has failed and reports the error itself.
            let (receiver, reader) =
                read_ahead(scope, move |send| match source.time.filter(|_| source.order == Order::Time) {
                    Some(time) => sorted(source, on_unreadable, time, send),
                    None => source
                        .export
                        .read_blocks::<SimulateError>(on_unreadable, &source.projection, send)
                        .map(|_| ()),
                });
            readers.push(reader);
            let queue = Queue {
                receiver,
                time: source.time,
                batches: VecDeque::new(),
                rows: 0,
                last: BEFORE,
                ended: false,
            };
            queues.push(queue);
        }
        let mut clock = Clock { window, now: BEFORE };
        let replayed = (|| {
            loop {
                for queue in &mut queues {
                    queue.fill(rate)?;
                }
                let block = next_block(&mut queues, &mut clock);
                if block.order.is_empty() {
                    return Ok(());
                }
                each(block)?;
            }
        })();
        drop(queues);
        for reader in readers {
            let read = reader.join().unwrap_or(Err(SimulateError::Interrupted));
            if replayed.is_ok() {
                read?;
            }
        }
        replayed
    })
}

/// Buffered rows of one source.
struct Queue {
    receiver: Receiver<Vec<RecordBatch>>,
    time: Option<usize>,
    batches: VecDeque<(RecordBatch, Vec<i64>)>,
    /// Number of rows received so far.
    rows: u64,
    /// Arrival time of the last row received.
    last: i64,
    ended: bool,
}

impl Queue {
    /// Blocks until a row is buffered or the source has ended.
    fn fill(&mut self, rate: Option<Rate>) -> Result<(), SimulateError> {
        while self.batches.is_empty() && !self.ended {
            let Ok(batches) = self.receiver.recv() else {
                self.ended = true;
                return Ok(());
            };
            for batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
                let times = times(&batch, self.time, rate, self.rows, &mut self.last)?;
                self.rows += batch.num_rows() as u64;
                self.batches.push_back((batch, times));
            }
        }
        Ok(())
    }
}

/// Returns the arrival time of each row of a batch; a row without a time arrives with the row
/// before it.
fn times(
    batch: &RecordBatch,
    time: Option<usize>,
    rate: Option<Rate>,
    rows_before: u64,
    last: &mut i64,
) -> Result<Vec<i64>, SimulateError> {
    if let Some(Rate { from, between }) = rate {
        let at = |row: u64| from.saturating_add((row as f64 * between) as i64);
        return Ok((rows_before..rows_before + batch.num_rows() as u64).map(at).collect());
    }
    let Some(time) = time else { return Ok(vec![BEFORE; batch.num_rows()]) };
    let array = batch.columns().get(time).and_then(instants).ok_or(SimulateError::Columns)?;
    let micros = array.as_primitive::<TimestampMicrosecondType>().iter().map(|micros| {
        *last = micros.unwrap_or(*last);
        *last
    });
    Ok(micros.collect())
}

/// A clock that advances with the rows and never runs backwards.
struct Clock {
    window: Micros,
    now: i64,
}

impl Clock {
    fn window_of(&mut self, micros: i64) -> i64 {
        if micros != BEFORE {
            self.now = self.now.max(self.window.slice_of(micros));
        }
        self.now
    }
}

/// Returns the rows that can be ordered before one of the sources has to be read further.
fn next_block(queues: &mut [Queue], clock: &mut Clock) -> Block {
    let mut block = Block { arrived: Vec::new(), order: Vec::new() };
    // Per source: position of its current batch in `block.arrived`, and rows of it ordered so far.
    let mut open: Vec<Option<(usize, usize)>> = queues.iter().map(|_| None).collect();
    loop {
        if queues.iter().any(|queue| queue.batches.is_empty() && !queue.ended) {
            break;
        }
        let head = |(number, queue): (usize, &Queue)| {
            let row = open.get(number).copied().flatten().map_or(0, |(_, rows)| rows);
            queue.batches.front().and_then(|(_, times)| Some((*times.get(row)?, number)))
        };
        // At equal times, rows of the first source take precedence.
        let Some((_, number)) = queues.iter().enumerate().filter_map(head).min() else { break };
        let others = queues.iter().enumerate().filter(|(other, _)| *other != number).filter_map(head).min();
        let Some(queue) = queues.get_mut(number) else { break };
        let Some((batch, times)) = queue.batches.front() else { break };
        let first = match open.get(number).copied().flatten() {
            Some((_, rows)) => rows,
            None => {
                if let Some(slot) = open.get_mut(number) {
                    *slot = Some((block.arrived.len(), 0));
                }
                block.arrived.push(Arrived {
                    source: number,
                    batch: batch.clone(),
                    times: times.clone(),
                    windows: Vec::with_capacity(times.len()),
                    bytes: Vec::new(),
                });
                0
            }
        };
        let comes_first = |micros: &i64| others.is_none_or(|other| (*micros, number) <= other);
        let rest = times.get(first..).unwrap_or_default();
        let count = rest.iter().take_while(|micros| comes_first(micros)).count().max(1);
        let end = (first + count).min(times.len());
        let is_all = end == times.len();
        let Some((at, _)) = open.get(number).copied().flatten() else { break };
        if let Some(arrived) = block.arrived.get_mut(at) {
            let of_rows = arrived.times.get(first..end).unwrap_or_default();
            arrived.windows.extend(of_rows.iter().map(|micros| clock.window_of(*micros)));
        }
        block.order.push((at, first..end));
        if let Some(slot) = open.get_mut(number) {
            *slot = if is_all { None } else { Some((at, end)) };
        }
        if is_all {
            queue.batches.pop_front();
        }
    }
    // The rest of a batch stays buffered for the next block.
    for (queue, open) in queues.iter_mut().zip(open) {
        let (Some((at, rows)), Some((batch, times))) = (open, queue.batches.front_mut()) else { continue };
        if let Some(arrived) = block.arrived.get_mut(at) {
            arrived.batch = batch.slice(0, rows);
            arrived.times.truncate(rows);
        }
        *batch = batch.slice(rows, batch.num_rows() - rows);
        times.drain(..rows);
    }
    block.arrived.iter_mut().for_each(|arrived| arrived.bytes = row_bytes(&arrived.batch));
    block
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    use arrow::array::Int64Array;
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::*;

    fn queue(batches: &[Vec<i64>]) -> Queue {
        let (_, receiver) = sync_channel(1);
        let batch = |times: &Vec<i64>| {
            let column: arrow::array::ArrayRef = Arc::new(Int64Array::from(times.clone()));
            (RecordBatch::try_from_iter([("x", column)]).unwrap(), times.clone())
        };
        let batches = batches.iter().filter(|times| !times.is_empty()).map(batch).collect();
        Queue { receiver, time: None, batches, rows: 0, last: BEFORE, ended: true }
    }

    proptest! {
        #[test]
        fn rows_of_two_sources_come_by_their_times(
            a in proptest::collection::vec(proptest::collection::vec(0i64..50, 0..20), 0..5),
            b in proptest::collection::vec(proptest::collection::vec(0i64..50, 0..20), 0..5),
        ) {
            let sorted = |batches: &Vec<Vec<i64>>| {
                let mut all: Vec<i64> = batches.concat();
                all.sort_unstable();
                let mut rest = all.as_slice();
                batches.iter().map(|batch| {
                    let (batch, after) = rest.split_at(batch.len());
                    rest = after;
                    batch.to_vec()
                }).collect::<Vec<_>>()
            };
            let (a, b) = (sorted(&a), sorted(&b));
            let mut queues = [queue(&a), queue(&b)];
            let mut clock = Clock { window: Micros::new(10), now: BEFORE };
            let block = next_block(&mut queues, &mut clock);
            let came: Vec<(i64, usize)> = block.order.iter().flat_map(|(at, rows)| {
                let arrived = &block.arrived[*at];
                arrived.times[rows.clone()].iter().map(|micros| (*micros, arrived.source)).collect::<Vec<_>>()
            }).collect();
            let mut expected: Vec<(i64, usize)> = a.concat().into_iter().map(|micros| (micros, 0)).collect();
            expected.extend(b.concat().into_iter().map(|micros| (micros, 1)));
            expected.sort_unstable();
            prop_assert_eq!(came, expected);
            let windows: Vec<i64> = block.order.iter().flat_map(|(at, rows)| block.arrived[*at].windows[rows.clone()].to_vec()).collect();
            prop_assert_eq!(windows.is_sorted(), true);
        }
    }
}
