//! Runs the stages of a job on an executor: as Ballista does, but errors keep the messages meant
//! for people, and jobs can be cancelled.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arrow::error::ArrowError;
use ballista_core::JobId;
use ballista_core::error::BallistaError;
use ballista_core::serde::protobuf as wire;
use ballista_core::serde::protobuf::executor_grpc_server::ExecutorGrpc;
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use ballista_executor::executor::Executor;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;
use parquet::errors::ParquetError;
use tonic::{Code, Request, Response, Status};

use crate::task_error::TaskError;
use evenkeel_placement::placement::PlacementError;
use evenkeel_sql::{plain_message, plain_text};

/// Runs stages and reports their errors.
pub(super) struct Engine {
    inner: DefaultExecutionEngine,
    /// Location of this executor.
    place: Arc<str>,
    last: LastTask,
}

/// Time when the last task ended; `None` before the first.
pub(super) type LastTask = Arc<Mutex<Option<Instant>>>;

impl Engine {
    pub(super) fn at(place: &str, last: LastTask) -> Self {
        Self { inner: DefaultExecutionEngine::new(), place: place.into(), last }
    }
}

impl ExecutionEngine for Engine {
    fn create_query_stage_exec(
        &self,
        job_id: JobId,
        stage_id: usize,
        task_id: usize,
        global_output_partition_ids: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let stage = self.inner.create_query_stage_exec(
            job_id,
            stage_id,
            task_id,
            global_output_partition_ids,
            plan,
            work_dir,
            config,
        );
        let inner = stage.map_err(|error| with_place(error, &self.place))?;
        Ok(Arc::new(Stage { inner, place: Arc::clone(&self.place), last: Arc::clone(&self.last) }))
    }
}

#[derive(Debug)]
struct Stage {
    inner: Arc<dyn QueryStageExecutor>,
    place: Arc<str>,
    last: LastTask,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait::async_trait]
impl QueryStageExecutor for Stage {
    async fn execute_query_stage(
        &self,
        task_id: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<wire::ShuffleWritePartition>> {
        let done = self.inner.execute_query_stage(task_id, context).await;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        done.map_err(|error| with_place(error, &self.place))
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.inner.collect_plan_metrics()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<wire::RuntimeStatsReport> {
        self.inner.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<wire::WindowStateReport>> {
        self.inner.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<wire::TaskColumnStats> {
        self.inner.collect_column_stats()
    }
}

/// Packs the error of a task for transport to the client. Messages between parts of Ballista, such
/// as that an executor does not return results, stay as they are: the scheduler acts on them.
fn with_place(error: DataFusionError, place: &str) -> DataFusionError {
    let causes: Vec<&(dyn Error + 'static)> = causes(&error).collect();
    if causes.iter().filter_map(|cause| of_ballista(*cause)).any(is_of_scheduler) {
        return error;
    }
    let of_connection = causes.iter().filter_map(|cause| of_ballista(*cause)).any(is_of_connection);
    let again = of_connection || causes.iter().any(|cause| may_pass(*cause));
    let of_machine = of_connection || causes.iter().any(|cause| is_of_store(*cause));
    let too_large = |cause: &&(dyn Error + 'static)| {
        matches!(cause.downcast_ref(), Some(PlacementError::TooLarge { .. }))
    };
    let too_large = causes.iter().any(too_large);
    let mut before_store = causes.iter().take_while(|cause| !is_of_store(**cause));
    let message = match before_store.find(|cause| !is_of_libraries(**cause)) {
        Some(ours) => ours.to_string(),
        None => causes
            .iter()
            .rev()
            .find_map(|cause| message_of_engine(*cause))
            .unwrap_or_else(|| plain_message(&error)),
    };
    let message = if of_machine { format!("executor {place}: {message}") } else { message };
    TaskError { message, again, too_large }.pack()
}

/// Returns an error and all of its causes, including those that Ballista wraps.
fn causes(error: &DataFusionError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let first: &(dyn Error + 'static) = error;
    std::iter::successors(Some(first), |error| match error.downcast_ref() {
        Some(of_ballista) => wrapped(of_ballista),
        None => Error::source(*error),
    })
}

/// Returns the foreign error that an error of Ballista wraps, if any.
fn wrapped(error: &BallistaError) -> Option<&(dyn Error + 'static)> {
    match error {
        BallistaError::DataFusionError(inner) => Some(inner.as_ref()),
        BallistaError::ArrowError(inner) => Some(inner.as_ref()),
        BallistaError::IoError(inner) => Some(inner),
        _ => None,
    }
}

fn of_ballista<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a BallistaError> {
    cause.downcast_ref()
}

/// Whether the scheduler acts on an error: on results that are gone, and on cancelled tasks.
fn is_of_scheduler(error: &BallistaError) -> bool {
    matches!(error, BallistaError::FetchFailed(..) | BallistaError::Cancelled)
}

/// Whether an error concerns the connection to another process.
fn is_of_connection(error: &BallistaError) -> bool {
    match error {
        BallistaError::GrpcConnectionError(_)
        | BallistaError::GrpcActionError(_)
        | BallistaError::TonicError(_) => true,
        BallistaError::GrpcError(status) => {
            matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled)
        }
        BallistaError::TokioError(error) => error.is_cancelled(),
        _ => false,
    }
}

/// Returns the plain message of an error that is one of DataFusion or Arrow itself.
fn message_of_engine(error: &(dyn Error + 'static)) -> Option<String> {
    match (error.downcast_ref::<DataFusionError>(), error.downcast_ref::<ArrowError>()) {
        (Some(DataFusionError::External(_)), _) | (None, None) => None,
        (Some(engine_error), _) => Some(plain_message(engine_error)),
        (None, Some(arrow_error)) => Some(plain_text(&format!("Arrow error: {arrow_error}"))),
    }
}

/// Whether an error adds nothing to the engine's own message.
fn is_of_libraries(error: &(dyn Error + 'static)) -> bool {
    error.is::<DataFusionError>()
        || error.is::<ArrowError>()
        || error.is::<ParquetError>()
        || error.is::<BallistaError>()
}

/// Whether an error is about storage that another machine may be able to reach.
fn is_of_store(error: &(dyn Error + 'static)) -> bool {
    error.is::<object_store::Error>() || error.is::<std::io::Error>()
}

/// Whether a cause is about stores or machines, so that another attempt may succeed.
fn may_pass(cause: &(dyn Error + 'static)) -> bool {
    use object_store::Error as Store;
    use std::io::ErrorKind;
    match (cause.downcast_ref::<Store>(), cause.downcast_ref::<std::io::Error>()) {
        (Some(store), _) => !matches!(
            store,
            Store::NotFound { .. }
                | Store::PermissionDenied { .. }
                | Store::Unauthenticated { .. }
                | Store::InvalidPath { .. }
                | Store::NotSupported { .. }
                | Store::NotImplemented { .. }
        ),
        (None, Some(io)) => {
            // Damaged compression and truncated files are reported as invalid data, or as an early
            // end.
            !matches!(
                io.kind(),
                ErrorKind::NotFound
                    | ErrorKind::PermissionDenied
                    | ErrorKind::InvalidData
                    | ErrorKind::InvalidInput
                    | ErrorKind::UnexpectedEof
            )
        }
        (None, None) => false,
    }
}

/// Requests that the scheduler may send to an executor that pulls its work: to stop tasks of
/// abandoned jobs.
pub(super) struct TaskCancellation {
    pub(super) executor: Arc<Executor>,
}

#[tonic::async_trait]
impl ExecutorGrpc for TaskCancellation {
    async fn cancel_tasks(
        &self,
        request: Request<wire::CancelTasksParams>,
    ) -> std::result::Result<Response<wire::CancelTasksResult>, Status> {
        let mut cancelled = true;
        for task in request.into_inner().task_infos {
            let job = task.job_id.into();
            // A task that has ended in the meantime is unknown; that is not an error.
            let done = self.executor.cancel_task(job, task.stage_id as usize, task.task_id as usize).await;
            cancelled &= done.is_ok();
        }
        Ok(Response::new(wire::CancelTasksResult { cancelled }))
    }

    async fn remove_job_data(
        &self,
        _request: Request<wire::RemoveJobDataParams>,
    ) -> std::result::Result<Response<wire::RemoveJobDataResult>, Status> {
        Err(fetches_its_own())
    }

    async fn launch_task(
        &self,
        _request: Request<wire::LaunchTaskParams>,
    ) -> std::result::Result<Response<wire::LaunchTaskResult>, Status> {
        Err(fetches_its_own())
    }

    async fn launch_multi_task(
        &self,
        _request: Request<wire::LaunchMultiTaskParams>,
    ) -> std::result::Result<Response<wire::LaunchMultiTaskResult>, Status> {
        Err(fetches_its_own())
    }

    async fn stop_executor(
        &self,
        _request: Request<wire::StopExecutorParams>,
    ) -> std::result::Result<Response<wire::StopExecutorResult>, Status> {
        Err(fetches_its_own())
    }
}

fn fetches_its_own() -> Status {
    Status::unimplemented("this executor polls for its work")
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_input::source::SourceError;
    use evenkeel_store::ingest::IngestError;

    fn unpacked(error: DataFusionError) -> TaskError {
        TaskError::from_job(&format!("Job x failed: {:?}", with_place(error, "h:1")))
    }

    #[test]
    fn errors_are_told_as_here_and_those_of_machines_with_their_place() {
        let divided = unpacked(DataFusionError::ArrowError(Box::new(ArrowError::DivideByZero), None));
        assert_eq!((divided.message.as_str(), divided.again), ("Arrow error: Divide by zero error", false));
        let store = |source| DataFusionError::ObjectStore(Box::new(source)).context("while reading");
        let busy = unpacked(store(object_store::Error::Generic { store: "S3", source: "503".into() }));
        assert!(
            busy.again && busy.message.contains("h:1: Object Store error: Generic S3 error: 503"),
            "{busy:?}"
        );
        let denied = object_store::Error::PermissionDenied { path: "a/b".into(), source: "403".into() };
        let denied = unpacked(store(denied));
        assert!(!denied.again && denied.message.starts_with("executor h:1: "), "{denied:?}");
        let read = |kind| {
            let source = std::io::Error::from(kind);
            let error = IngestError::Source(SourceError::Read { file: "f.csv".into(), source });
            unpacked(DataFusionError::External(Box::new(error)))
        };
        let broken = read(std::io::ErrorKind::ConnectionReset);
        assert!(broken.again && broken.message.contains("h:1: f.csv: cannot read"), "{broken:?}");
        assert!(!read(std::io::ErrorKind::InvalidData).again);
        let absent = read(std::io::ErrorKind::NotFound);
        assert!(!absent.again && absent.message.starts_with("executor h:1: f.csv"), "{absent:?}");
        let connection = BallistaError::GrpcConnectionError("refused".into()).into_datafusion();
        let connection = unpacked(DataFusionError::Shared(Arc::new(connection)));
        assert!(connection.again && connection.message.starts_with("executor h:1: "), "{connection:?}");
        let general = unpacked(BallistaError::General("no column 'connected_at'".into()).into_datafusion());
        assert!(!general.again && general.message.ends_with("no column 'connected_at'"), "{general:?}");
        let gone = BallistaError::FetchFailed("e".into(), 1, 0, "gone".into()).into_datafusion();
        assert!(matches!(with_place(gone, "h:1"), DataFusionError::External(_)));
        let cast = || Box::new(ArrowError::CastError("no number".into()));
        let wrapped = DataFusionError::External(Box::new(BallistaError::ArrowError(cast())));
        for cast in [wrapped, DataFusionError::ArrowError(cast(), None)] {
            assert_eq!(unpacked(cast).message, "Arrow error: Cast error: no number");
        }
        // Writers of shuffles wrap the errors they get.
        let repeated = DataFusionError::External(Box::new(IngestError::RepeatedKey { key: "(9)".into() }));
        let wrapped = DataFusionError::External(Box::new(BallistaError::DataFusionError(Box::new(repeated))));
        let repeated = unpacked(DataFusionError::Shared(Arc::new(wrapped)));
        assert!(repeated.message.starts_with("the primary key (9) occurs twice"), "{repeated:?}");
    }

    #[test]
    fn what_ballista_tells_itself_is_left_alone() {
        let fetch = BallistaError::FetchFailed("e".into(), 1, 2, "gone".into());
        let error = DataFusionError::External(Box::new(BallistaError::from(DataFusionError::External(
            Box::new(fetch),
        ))));
        let left = BallistaError::from(with_place(error, "h:1"));
        assert!(matches!(left, BallistaError::FetchFailed(..)), "{left:?}");
    }
}
