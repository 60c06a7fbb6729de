//! Rows of a query.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchReader, StructArray};
use arrow::datatypes::{Field, SchemaRef};
use arrow::error::ArrowError;
use datafusion::execution::SendableRecordBatchStream;
use evenkeel::query::{QueryError, QueryResult};
use evenkeel::report::{Layout, batches as text_of};
use futures::StreamExt;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use tokio::sync::Notify;

use crate::errors::{failed, of_query, usage};
use crate::waiting::{Droppable, is_main_thread, runtime, thread, wait};

/// Interval at which signals are noticed while another library reads rows.
const TICK: Duration = Duration::from_millis(100);

/// The rows of a query: an Arrow stream that can be read once.
#[pyclass(frozen, module = "evenkeel")]
pub(crate) struct Rows {
    schema: SchemaRef,
    state: Arc<Mutex<State>>,
}

/// Rows that are not read yet.
struct State {
    /// The first batches, if they were looked at.
    first: Vec<RecordBatch>,
    /// The rest; `None` once it is exhausted or read by another library.
    rest: Option<SendableRecordBatchStream>,
    /// Reason why there are no more rows to hand over.
    gone: Option<&'static str>,
    /// Whether a thread reads them.
    is_read: bool,
}

impl State {
    /// Fails if the rows cannot be read.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let problem = if self.is_read { Some("another thread reads this result") } else { self.gone };
        problem.map_or(Ok(()), |problem| Err(usage(py, format!("{problem}; run the query again"))))
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rows {
    pub(crate) fn new(result: QueryResult) -> Self {
        let state = State { first: Vec::new(), rest: Some(result.batches), gone: None, is_read: false };
        Self { schema: result.schema, state: Arc::new(Mutex::new(state)) }
    }

    fn take(&self, py: Python<'_>) -> PyResult<(Vec<RecordBatch>, Option<SendableRecordBatchStream>)> {
        let mut state = locked(&self.state);
        state.check(py)?;
        state.gone = Some("the rows of this result have been read");
        Ok((std::mem::take(&mut state.first), state.rest.take()))
    }
}

#[pymethods]
impl Rows {
    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    /// Hands the rows over without a copy.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        runtime(py)?;
        let (first, rest) = self.take(py)?;
        let reader = Reader::new(py, Arc::clone(&self.schema), first, rest)?;
        let field = Field::new_struct("", self.schema.fields().clone(), false)
            .with_metadata(self.schema.metadata().clone());
        let structs = reader.map(|batch| Ok(Arc::new(StructArray::from(batch?)) as ArrayRef));
        Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(structs, field.into())), requested_schema)?)
    }

    /// Reads all rows into memory, interruptible by Ctrl-C; they are handed over as before.
    fn collect(&self, py: Python<'_>) -> PyResult<()> {
        self.fetch(py, usize::MAX).map(|_| ())
    }

    /// The first rows as a table of text, and whether there are more.
    fn preview(&self, py: Python<'_>, rows: usize) -> PyResult<(String, bool)> {
        if let Some(gone) = locked(&self.state).gone {
            return Ok((format!("({gone})"), false));
        }
        let (batches, more) = self.fetch(py, rows.saturating_add(1))?;
        let mut left = rows;
        let mut shown = Vec::new();
        for batch in batches {
            let taken = batch.num_rows().min(left);
            shown.push(batch.slice(0, taken));
            left -= taken;
        }
        let text = text_of(Layout::Plain, &self.schema, &shown).map_err(|error| failed(py, error.into()))?;
        Ok((text, more))
    }
}

impl Rows {
    /// Reads batches until there are at least `rows` rows, keeps them, and returns them and whether
    /// there are as many.
    fn fetch(&self, py: Python<'_>, rows: usize) -> PyResult<(Vec<RecordBatch>, bool)> {
        {
            let mut state = locked(&self.state);
            state.check(py)?;
            state.is_read = true;
        }
        let state = Arc::clone(&self.state);
        let fetched = wait(py, &Droppable, None, move || async move {
            // Taken out, so that the lock is not held while rows are computed.
            let (mut first, mut rest) = {
                let mut state = locked(&state);
                (std::mem::take(&mut state.first), state.rest.take())
            };
            let mut read: usize = first.iter().map(RecordBatch::num_rows).sum();
            let mut failed = None;
            while read < rows
                && let Some(stream) = &mut rest
            {
                match stream.next().await {
                    Some(Ok(batch)) => {
                        read += batch.num_rows();
                        first.push(batch);
                    }
                    Some(Err(error)) => {
                        failed = Some(QueryError::from(error));
                        rest = None;
                    }
                    None => rest = None,
                }
            }
            let batches = first.clone();
            let mut state = locked(&state);
            state.first = first;
            state.rest = rest;
            failed.map_or(Ok((batches, read >= rows)), Err)
        });
        let mut state = locked(&self.state);
        state.is_read = false;
        if !matches!(fetched, Ok(Ok(_))) {
            state.gone = Some("the rows of this result were not read to their end");
        }
        fetched?.map_err(|error| of_query(py, error))
    }
}

/// Reads the rows of a query for another library. They are computed in a thread of their own, as
/// operators that do not yield may hold up every thread with timers.
struct Reader {
    schema: SchemaRef,
    first: std::vec::IntoIter<RecordBatch>,
    rest: Option<Receiver<Next>>,
    /// Ends the thread once the reader is dropped.
    dropped: Arc<Notify>,
    /// The process that has the thread.
    process: u32,
}

/// A batch, the error that ends the rows, or `None` after the last row.
type Next = Option<Result<RecordBatch, ArrowError>>;

/// Error for rows whose thread ended before they did.
fn broke_off() -> ArrowError {
    ArrowError::ExternalError("the query stopped in the middle of its rows".into())
}

impl Reader {
    fn new(
        py: Python<'_>,
        schema: SchemaRef,
        first: Vec<RecordBatch>,
        rest: Option<SendableRecordBatchStream>,
    ) -> PyResult<Self> {
        let handle = runtime(py)?.handle().clone();
        let (sender, receiver) = sync_channel(1);
        let is_running = rest.is_some();
        let dropped = Arc::new(Notify::new());
        let ended = Arc::clone(&dropped);
        if let Some(stream) = rest {
            thread("evenkeel-rows")
                .spawn(move || {
                    handle.block_on(async {
                        tokio::select! {
                            () = send(stream, &sender) => {}
                            () = ended.notified() => {}
                        }
                    });
                })
                .map_err(|error| failed(py, error.into()))?;
        }
        Ok(Self {
            schema,
            first: first.into_iter(),
            rest: is_running.then_some(receiver),
            dropped,
            process: std::process::id(),
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.dropped.notify_one();
    }
}

/// Sends the batches of a query until nobody wants more.
async fn send(mut stream: SendableRecordBatchStream, sender: &SyncSender<Next>) {
    while let Some(batch) = stream.next().await {
        let is_last = batch.is_err();
        if sender.send(Some(batch.map_err(arrow_error))).is_err() || is_last {
            return;
        }
    }
    let _ = sender.send(None);
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.first.next() {
            return Some(Ok(batch));
        }
        if self.process != std::process::id() {
            return Some(Err(ArrowError::ExternalError(
                "the query runs in the process that was forked".into(),
            )));
        }
        let rest = self.rest.as_ref()?;
        let next = match is_main_thread() {
            true => next_or_signal(rest),
            false => rest.recv().unwrap_or_else(|_| Some(Err(broke_off()))),
        };
        if !matches!(next, Some(Ok(_))) {
            self.rest = None;
            self.dropped.notify_one();
        }
        next
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn arrow_error(error: datafusion::error::DataFusionError) -> ArrowError {
    ArrowError::ExternalError(QueryError::from(error).into())
}

/// Waits for the next batch in the thread that gets signals. The reading library gets an error
/// after Ctrl-C, and Python the interrupt.
fn next_or_signal(rest: &Receiver<Next>) -> Next {
    loop {
        match rest.recv_timeout(TICK) {
            Ok(next) => return next,
            Err(RecvTimeoutError::Disconnected) => return Some(Err(broke_off())),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let signalled = Python::attach(|py| {
            let error = py.check_signals().err()?;
            if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                // Python raises it once the other library has returned.
                let _ = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
            } else {
                error.write_unraisable(py, None);
            }
            Some(())
        });
        if signalled.is_some() {
            return Some(Err(ArrowError::ExternalError("interrupted".into())));
        }
    }
}
