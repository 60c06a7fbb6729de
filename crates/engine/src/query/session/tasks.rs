//! Planning and execution of a query apart from its caller, who can stop waiting at any time.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot};

use crate::query::error::QueryError;
use crate::query::limits::watch::Watch;
use crate::query::limits::{LimitExceeded, QueryMemory, RunningQueryGuard};
use crate::query::session::stoppable::Consumer;
use crate::query::threads;

/// Plans a query in a separate thread, with a stack for the deepest SQL.
pub(in crate::query) async fn plan_in_thread<T: Send + 'static>(
    watch: Option<&Watch>,
    pool: &Arc<dyn MemoryPool>,
    work: impl Future<Output = Result<T, QueryError>> + Send + 'static,
) -> Result<T, QueryError> {
    let runtime = tokio::runtime::Handle::current();
    let running = RunningQueryGuard::start();
    let (sender, receiver) = oneshot::channel();
    let plan = move || {
        let done = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(work)));
        // The receiver is gone if a limit was exceeded.
        let _ = sender.send(done.unwrap_or_else(|panic| Err(panic_error(panic.as_ref()).into())));
        drop(running);
    };
    threads::plan(plan).map_err(DataFusionError::IoError)?;
    let done = tokio::select! {
        done = receiver => done.unwrap_or_else(|_| Err(panic_error(&"it ended without a plan").into())),
        exceeded = exceeded(watch) => return Err(exceeded.into()),
    };
    done.map_err(|error| match error {
        QueryError::DataFusion(error) => QueryMemory::explained(pool, error).into(),
        other => other,
    })
}

/// Completes when a limit of the watch is exceeded.
async fn exceeded(watch: Option<&Watch>) -> LimitExceeded {
    match watch {
        Some(watch) => watch.exceeded().await,
        None => std::future::pending().await,
    }
}

/// Returns the error of a query in which the engine panicked.
fn panic_error(panic: &(dyn Any + Send)) -> DataFusionError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    DataFusionError::Execution(format!("the engine cannot run this query: {text}"))
}

/// Returns the error of a task that ended without a result.
fn task_error(error: tokio::task::JoinError) -> DataFusionError {
    match error.try_into_panic() {
        Ok(panic) => panic_error(panic.as_ref()),
        Err(error) => panic_error(&error.to_string()),
    }
}

/// Returns the batches of a query, computed in a separate task.
pub(in crate::query) fn run_in_task(
    mut batches: SendableRecordBatchStream,
    watch: Option<Watch>,
    pool: Arc<dyn MemoryPool>,
    consumer: Consumer,
) -> SendableRecordBatchStream {
    let schema = batches.schema();
    // Two: one is computed while the other is read.
    let (sender, receiver) = mpsc::channel(2);
    let running = RunningQueryGuard::start();
    let task = SpawnedTask::spawn(async move {
        while let Some(batch) = batches.next().await {
            let failed = batch.is_err();
            if sender.send(batch).await.is_err() || failed {
                break;
            }
        }
        drop(running);
    });
    let state = (receiver, Some(task), watch, pool, consumer);
    let received = stream::unfold(state, |(mut receiver, mut task, watch, pool, consumer)| async move {
        // Nothing follows an error.
        task.as_ref()?;
        let batch = tokio::select! {
            biased;
            exceeded = exceeded(watch.as_ref()) => Some(Err(DataFusionError::External(Box::new(exceeded)))),
            batch = receiver.recv() => batch,
        };
        let batch = match batch {
            Some(batch) => batch,
            None => match task.take()?.join().await {
                Ok(()) => return None,
                Err(error) => Err(task_error(error)),
            },
        };
        let batch = batch.map_err(|error| QueryMemory::explained(&pool, error));
        let task = task.filter(|_| batch.is_ok());
        Some((batch, (receiver, task, watch, pool, consumer)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, received))
}
