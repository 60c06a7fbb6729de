//! The rows of a merge that come before the keys that its inputs share.
//!
//! Often only the ends of portions overlap: a large one and a later, small one. Until the first key
//! of another input, rows need not be compared one by one:
//!
//! ```text
//! a  1 2 3 4 5 6 7 8            1 2 3 4 5 as they are; 6 6 7 7 8 9 merged
//! b            6 7   9
//! ```
//! Once streams are merged, they stay so.

use std::collections::VecDeque;

use arrow::array::RecordBatch;
use arrow::row::OwnedRow;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};

use evenkeel_store::merge::RowKeys;

/// Returns the rows of streams that are sorted by the columns `key`, in this order. `merge` merges
/// streams from the first key on that several of them may have. Rows that wait until then are
/// counted in `reservation`.
pub(super) fn merged<M>(
    streams: Vec<SendableRecordBatchStream>,
    key: Vec<usize>,
    reservation: MemoryReservation,
    merge: M,
) -> BoxStream<'static, Result<RecordBatch>>
where
    M: FnOnce(Vec<SendableRecordBatchStream>) -> Result<SendableRecordBatchStream> + Send + 'static,
{
    let step = Step::Begin(streams.into_iter().map(|rows| Input { ahead: None, rows }).collect());
    let state = (step, RowKeys::new(key), reservation, Some(merge));
    let rows = stream::try_unfold(state, |(mut step, mut keys, reservation, mut merge)| async move {
        loop {
            let (batch, next) = match step {
                Step::Begin(inputs) => (None, begin(inputs, &mut keys, &reservation).await?),
                Step::Lead(lead) => lead.next(&mut keys).await?,
                Step::Merge(inputs) => {
                    let Some(merge) = merge.take() else { return Ok(None) };
                    // The merge counts them from now on.
                    reservation.free();
                    (None, Step::Merged(merge(inputs.into_iter().map(Input::into_rows).collect())?))
                }
                Step::Merged(mut rows) => match rows.try_next().await? {
                    Some(batch) => (Some(batch), Step::Merged(rows)),
                    None => return Ok(None),
                },
                Step::Done => return Ok(None),
            };
            step = next;
            if let Some(batch) = batch {
                return Ok::<_, DataFusionError>(Some((batch, (step, keys, reservation, merge))));
            }
        }
    });
    rows.boxed()
}

/// A stream, and the rows that were read from it ahead.
struct Input {
    ahead: Option<RecordBatch>,
    rows: SendableRecordBatchStream,
}

impl Input {
    /// Returns the next batch with rows; `None` if there is none.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let mut next = self.ahead.take();
        while next.as_ref().is_none_or(|batch| batch.num_rows() == 0) {
            match self.rows.try_next().await? {
                Some(batch) => next = Some(batch),
                None => return Ok(None),
            }
        }
        Ok(next)
    }

    fn into_rows(self) -> SendableRecordBatchStream {
        let schema = self.rows.schema();
        let ahead = VecDeque::from_iter(self.ahead.map(Ok));
        Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(ahead).chain(self.rows)))
    }
}

enum Step {
    /// It is not known which stream begins first.
    Begin(Vec<Input>),
    Lead(Box<Lead>),
    Merge(Vec<Input>),
    Merged(SendableRecordBatchStream),
    Done,
}

/// A stream that begins before all others.
struct Lead {
    first: Input,
    others: Vec<Input>,
    /// Position of the stream among the others.
    position: usize,
    /// First key of the others; `None` if there are none.
    bound: Option<OwnedRow>,
}

impl Lead {
    /// Returns the next rows before the bound, and the step after them.
    async fn next(mut self: Box<Self>, keys: &mut RowKeys) -> Result<(Option<RecordBatch>, Step)> {
        let Some(batch) = self.first.next().await? else {
            return Ok((None, Step::Begin(self.others)));
        };
        let before = match &self.bound {
            Some(bound) => rows_before(keys, &batch, bound)?,
            None => batch.num_rows(),
        };
        if before == batch.num_rows() {
            return Ok((Some(batch), Step::Lead(self)));
        }
        self.first.ahead = Some(batch.slice(before, batch.num_rows() - before));
        let Self { first, mut others, position, .. } = *self;
        others.insert(position, first);
        Ok(((before > 0).then(|| batch.slice(0, before)), Step::Merge(others)))
    }
}

/// Finds the stream that begins first. Two that begin with the same key are merged at once.
async fn begin(inputs: Vec<Input>, keys: &mut RowKeys, reservation: &MemoryReservation) -> Result<Step> {
    let read_ahead = inputs.into_iter().map(|mut input| async move {
        input.ahead = input.next().await?;
        Ok::<_, DataFusionError>(input)
    });
    let mut inputs = futures::future::try_join_all(read_ahead).await?;
    inputs.retain(|input| input.ahead.is_some());
    let ahead = inputs.iter().filter_map(|input| input.ahead.as_ref());
    reservation.try_resize(ahead.map(RecordBatch::get_array_memory_size).sum())?;
    let mut firsts = Vec::new();
    for input in &inputs {
        firsts.extend(input.ahead.as_ref().map(|batch| keys.of_row(batch, 0)).transpose()?);
    }
    let Some((position, first)) = firsts.iter().enumerate().min_by_key(|(_, first)| *first) else {
        return Ok(Step::Done);
    };
    let others = firsts.iter().enumerate().filter(|(at, _)| *at != position);
    let bound = others.map(|(_, other)| other).min().cloned();
    if bound.as_ref() == Some(first) {
        return Ok(Step::Merge(inputs));
    }
    let first = inputs.remove(position);
    Ok(Step::Lead(Box::new(Lead { first, others: inputs, position, bound })))
}

/// Number of rows of a sorted batch whose keys are less than a bound.
fn rows_before(keys: &mut RowKeys, batch: &RecordBatch, bound: &OwnedRow) -> Result<usize> {
    let last = batch.num_rows().saturating_sub(1);
    if keys.of_row(batch, last)? < *bound {
        return Ok(batch.num_rows());
    }
    let (mut from, mut to) = (0, last);
    while from < to {
        let middle = usize::midpoint(from, to);
        if keys.of_row(batch, middle)? < *bound {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    Ok(from)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};
    use proptest::prelude::*;

    use super::*;

    /// A stream of sorted numbers, in batches of at most `size`, with empty ones between.
    fn sorted(numbers: &[i64], size: usize, name: &str) -> SendableRecordBatchStream {
        let batch = |numbers: &[i64]| {
            let columns: [(&str, ArrayRef); 2] = [
                ("name", Arc::new(StringArray::from_iter_values(numbers.iter().map(|_| name)))),
                ("k", Arc::new(Int64Array::from(numbers.to_vec()))),
            ];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let schema = batch(&[]).schema();
        let batches: Vec<_> =
            numbers.chunks(size).flat_map(|some| [Ok(batch(&[])), Ok(batch(some))]).collect();
        Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(batches)))
    }

    /// Rows as pairs of number and name.
    fn pairs(batches: &[RecordBatch]) -> Vec<(i64, String)> {
        let of_batch = |batch: &RecordBatch| {
            let numbers = batch.column(1).as_primitive::<Int64Type>().values().to_vec();
            let names: Vec<String> =
                batch.column(0).as_string::<i32>().iter().flatten().map(str::to_owned).collect();
            numbers.into_iter().zip(names).collect::<Vec<_>>()
        };
        batches.iter().flat_map(of_batch).collect()
    }

    /// Merges by sorting all rows, stably: ties go to the first stream. Notes how many rows that
    /// were.
    fn by_sorting(
        seen: &Arc<Mutex<usize>>,
    ) -> impl FnOnce(Vec<SendableRecordBatchStream>) -> Result<SendableRecordBatchStream> + Send + 'static
    {
        let seen = Arc::clone(seen);
        move |streams| {
            let schema = streams.first().unwrap().schema();
            let rows = stream::once(async move {
                let mut all = Vec::new();
                for rows in streams {
                    all.extend(pairs(&rows.try_collect::<Vec<_>>().await?));
                }
                *seen.lock().unwrap() = all.len();
                all.sort_by_key(|(number, _)| *number);
                let (numbers, names): (Vec<i64>, Vec<String>) = all.into_iter().unzip();
                let columns: [(&str, ArrayRef); 2] = [
                    ("name", Arc::new(StringArray::from(names))),
                    ("k", Arc::new(Int64Array::from(numbers))),
                ];
                Ok(RecordBatch::try_from_iter(columns)?)
            });
            Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
        }
    }

    fn reservation() -> MemoryReservation {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
        MemoryConsumer::new("rows ahead").register(&pool)
    }

    fn check(inputs: &[Vec<i64>], size: usize) -> usize {
        let names: Vec<String> = (0..inputs.len()).map(|at| format!("stream {at}")).collect();
        let streams = inputs.iter().zip(&names).map(|(numbers, name)| sorted(numbers, size, name)).collect();
        let seen = Arc::new(Mutex::new(0));
        let rows = merged(streams, vec![1], reservation(), by_sorting(&seen));
        let rows: Vec<RecordBatch> = futures::executor::block_on(rows.try_collect()).unwrap();
        let all = inputs.iter().zip(&names);
        let mut expected: Vec<(i64, String)> =
            all.flat_map(|(numbers, name)| numbers.iter().map(|number| (*number, name.clone()))).collect();
        expected.sort_by_key(|(number, _)| *number);
        assert_eq!(pairs(&rows), expected, "{inputs:?} in batches of {size}");
        *seen.lock().unwrap()
    }

    #[test]
    fn only_rows_from_the_first_shared_key_on_are_merged() {
        let range = |from: i64, to: i64| (from..to).collect::<Vec<_>>();
        assert_eq!(check(&[range(0, 100), range(90, 95)], 7), 15);
        assert_eq!(check(&[range(90, 95), range(0, 100)], 7), 15);
        assert_eq!(check(&[range(0, 100)], 7), 0);
        assert_eq!(check(&[range(50, 100), range(0, 50), range(200, 300)], 7), 0);
        assert_eq!(check(&[range(0, 10), range(20, 40), range(35, 50)], 7), 20);
        assert_eq!(check(&[range(0, 10), range(0, 10)], 7), 20);
        assert_eq!(check(&[range(0, 10), range(9, 10)], 100), 2);
        assert_eq!(check(&[Vec::new(), range(3, 9), Vec::new()], 2), 0);
        assert_eq!(check(&[], 2), 0);
    }

    #[test]
    fn an_error_of_a_stream_is_returned() {
        let schema = sorted(&[1], 1, "a").schema();
        let failing = stream::iter([DataFusionError::Execution("no rows".to_owned())]).map(Err);
        let failing: SendableRecordBatchStream = Box::pin(RecordBatchStreamAdapter::new(schema, failing));
        let streams = vec![sorted(&[1, 2], 1, "a"), failing];
        let rows = merged(streams, vec![1], reservation(), by_sorting(&Arc::default()));
        let error = futures::executor::block_on(rows.try_collect::<Vec<_>>()).unwrap_err();
        assert!(error.to_string().contains("no rows"), "{error}");
    }

    proptest! {
        #[test]
        fn rows_are_those_of_a_merge_of_all(
            mut inputs in proptest::collection::vec(proptest::collection::vec(0_i64..60, 0..30), 0..5),
            size in 1_usize..9,
        ) {
            inputs.iter_mut().for_each(|numbers| numbers.sort_unstable());
            check(&inputs, size);
        }
    }
}
