//! Executor: pulls tasks from the scheduler, and serves their output to other executors and to
//! clients.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::extension::SessionConfigExt;
use ballista_core::ids::new_instance_id;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::serde::protobuf::executor_grpc_server::ExecutorGrpcServer;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{ExecutorRegistration, ExecutorStoppedParams, GetJobStatusParams};
use ballista_core::serde::scheduler::{ExecutorOperatingSystemSpecification, ExecutorSpecification};
use ballista_core::serde::{BallistaCodec, BallistaLogicalExtensionCodec};
use ballista_core::utils::{GrpcServerConfig, create_grpc_server, create_grpc_server_incoming};
use ballista_core::{BALLISTA_PROTOCOL_VERSION, ConfigProducer, JobId, RuntimeProducer};
use ballista_executor::execution_engine::QueryStageExecutor;
use ballista_executor::execution_loop::poll_loop;
use ballista_executor::executor::Executor;
use ballista_executor::flight_service::BallistaFlightService;
use ballista_executor::health::ExecutorHealth;
use ballista_executor::metrics::ExecutorMetricsCollector;
use ballista_executor::runtime_cache::{DefaultSessionRuntimeCache, MemoryPoolPolicy};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use crate::client::refused;
use crate::codec::Codec;
use crate::engine::{Engine, LastTask, TaskCancellation};
use crate::scheduler::EXECUTORS;
use crate::session::{base_config, state_of};
use crate::{ClientSecurity, ClusterError, MESSAGE_BYTES, ServerSecurity};
use evenkeel_model::units::ByteSize;

/// Time for running tasks to finish when an executor stops.
const DRAIN: Duration = Duration::from_secs(60);
/// Time within which an executor without free cores polls again, and so has reported its last
/// results.
const LAST_POLL: Duration = Duration::from_secs(6);
/// Time within which an executor with a free core has reported its results, unless the scheduler is
/// unreachable.
const REPORTED_WITHIN: Duration = Duration::from_secs(2);
/// Time for other executors to finish reading when this one stops.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// Number of session environments to keep, with their caches of file footers.
const SESSIONS_KEPT: usize = 16;

/// Options of an executor.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// URL of the scheduler.
    pub scheduler: String,
    /// Address to serve results on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Name under which other machines reach the executor.
    pub host: String,
    /// Number of concurrent tasks.
    pub cores: usize,
    /// Memory budget of all tasks together. Beyond it, they spill to the working directory.
    pub memory: ByteSize,
    /// Directory for intermediate results; a subdirectory is created in it, and removed at the end.
    pub work_dir: Option<PathBuf>,
    /// Protection of the server.
    pub security: ServerSecurity,
    /// Security of connections to other processes.
    pub client: ClientSecurity,
}

type SchedulerClient = SchedulerGrpcClient<Channel>;

/// An executor that runs until it is stopped or dropped.
pub struct RunningExecutor {
    address: SocketAddr,
    cores: u32,
    executor: Arc<Executor>,
    scheduler: SchedulerClient,
    free: Arc<Semaphore>,
    last: LastTask,
    polling: JoinHandle<()>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
    stop: Option<oneshot::Sender<()>>,
    _work: tempfile::TempDir,
}

impl std::fmt::Debug for RunningExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningExecutor").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RunningExecutor {
    /// Starts an executor. It keeps polling if the scheduler is unreachable for a while.
    ///
    /// # Errors
    /// [`ClusterError`] if it cannot listen, no scheduler answers, or it has no working directory.
    pub async fn start(options: ExecutorOptions) -> Result<Self, ClusterError> {
        let failed = |reason: String| ClusterError::Listen { address: options.listen.to_string(), reason };
        let grpc = GrpcServerConfig::default();
        let incoming =
            create_grpc_server_incoming(options.listen, &grpc).map_err(|e| failed(e.to_string()))?;
        let address = incoming.local_addr().map_err(|e| failed(e.to_string()))?;
        let scheduler = connect(&options.scheduler, &options.client).await?;
        let work = work_dir(options.work_dir.as_deref())?;
        let last = LastTask::default();
        let executor = Arc::new(build(&options, address, work.path(), &last)?);

        let tasks = work.path().join("tasks").display().to_string();
        let flight = FlightServiceServer::new(BallistaFlightService::new(tasks))
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES);
        let flight = InterceptedService::new(flight, options.security.check());
        let orders = ExecutorGrpcServer::new(TaskCancellation { executor: Arc::clone(&executor) });
        let orders = InterceptedService::new(orders, options.security.check());
        let mut builder = create_grpc_server(&grpc);
        if let Some(tls) = options.security.tls() {
            builder = builder.tls_config(tls).map_err(|e| failed(format!("the certificate: {e}")))?;
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let served = builder.add_service(flight).add_service(orders);
        let serving = served.serve_with_incoming_shutdown(incoming, async {
            let _ = stopped.await;
        });
        let serving = tokio::spawn(serving);

        let cores = options.cores.max(1);
        let free = Arc::new(Semaphore::new(cores));
        let codec: BallistaCodec<LogicalPlanNode, PhysicalPlanNode> = BallistaCodec::new(
            Arc::new(BallistaLogicalExtensionCodec::default()),
            Arc::new(Codec::default()),
        );
        let polled = poll_loop(
            scheduler.clone(),
            Arc::clone(&executor),
            codec,
            None,
            Some(Arc::clone(&free)),
            ExecutorHealth::new(),
        );
        let polling = tokio::spawn(async move {
            if let Err(error) = polled.await {
                log::error!("the executor no longer accepts tasks: {error}");
            }
        });
        let cores = u32::try_from(cores).unwrap_or(u32::MAX);
        Ok(Self {
            address,
            cores,
            executor,
            scheduler,
            free,
            last,
            polling,
            serving,
            stop: Some(stop),
            _work: work,
        })
    }

    /// Returns the address on which results are served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting tasks, waits for running ones, notifies the scheduler and stops serving.
    /// Jobs whose results are on this executor fail, and their clients run them again.
    pub async fn stop(mut self) {
        let began = Instant::now();
        let all_free = Arc::clone(&self.free).acquire_many_owned(self.cores);
        // Held until the end: a free core would accept another task.
        let held = tokio::time::timeout(DRAIN, all_free).await;
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // As long as cores are free, results are reported many times a second.
        let is_reported = last.is_none_or(|ended| began.saturating_duration_since(ended) > REPORTED_WITHIN);
        if held.is_ok() && !is_reported {
            tokio::time::sleep(LAST_POLL).await;
        }
        self.polling.abort();
        let executor_id = self.executor.metadata.id.clone();
        let stopped = ExecutorStoppedParams { executor_id, reason: "stopped on request".to_owned() };
        let _ = tokio::time::timeout(STOP_GRACE, self.scheduler.executor_stopped(stopped)).await;
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = tokio::time::timeout(STOP_GRACE, &mut self.serving).await;
        self.serving.abort();
    }
}

impl Drop for RunningExecutor {
    fn drop(&mut self) {
        self.polling.abort();
        self.serving.abort();
    }
}

async fn connect(url: &str, security: &ClientSecurity) -> Result<SchedulerClient, ClusterError> {
    let channel = crate::client::channel(url, security).await?;
    let mut client = SchedulerGrpcClient::new(channel)
        .max_encoding_message_size(MESSAGE_BYTES)
        .max_decoding_message_size(MESSAGE_BYTES);
    // Check that it is a scheduler, and that it serves this executor.
    let request = GetJobStatusParams { job_id: EXECUTORS.to_owned() };
    client.get_job_status(request).await.map_err(|status| refused(url, &status))?;
    Ok(client)
}

fn work_dir(below: Option<&Path>) -> Result<tempfile::TempDir, ClusterError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("evenkeel-executor-");
    let made = match below {
        Some(below) => std::fs::create_dir_all(below).and_then(|()| builder.tempdir_in(below)),
        None => builder.tempdir(),
    };
    let made = made.and_then(|dir| {
        std::fs::create_dir(dir.path().join("tasks"))?;
        std::fs::create_dir(dir.path().join("spilled"))?;
        Ok(dir)
    });
    let place = below.map_or_else(std::env::temp_dir, Path::to_owned);
    made.map_err(|error| ClusterError::File { path: place.display().to_string(), reason: error.to_string() })
}

fn build(
    options: &ExecutorOptions,
    address: SocketAddr,
    work: &Path,
    last: &LastTask,
) -> Result<Executor, ClusterError> {
    let cores = options.cores.max(1);
    let port = u32::from(address.port());
    let place = format!("{}:{port}", options.host);
    let registration = ExecutorRegistration {
        id: new_instance_id(),
        host: Some(options.host.clone()),
        port,
        // Port for requests to stop tasks; work is pulled, not pushed.
        grpc_port: port,
        specification: Some(
            ExecutorSpecification::default().with_vcores(u32::try_from(cores).unwrap_or(u32::MAX)).into(),
        ),
        os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
        ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
    };
    let spilled = work.join("spilled");
    let base: RuntimeProducer =
        Arc::new(move |_| RuntimeEnvBuilder::new().with_temp_file_path(spilled.clone()).build_arc());
    let of_core = options.memory.as_usize() / cores;
    let policy: MemoryPoolPolicy = Arc::new(move |base: Arc<RuntimeEnv>, _: &SessionConfig, tasks: u32| {
        let pool = FairSpillPool::new(of_core * tasks.max(1) as usize);
        RuntimeEnvBuilder::from_runtime_env(&base).with_memory_pool(Arc::new(pool)).build_arc()
    });
    let producer: RuntimeProducer = {
        let (base, policy) = (Arc::clone(&base), Arc::clone(&policy));
        Arc::new(move |config: &SessionConfig| policy(base(config)?, config, 1))
    };
    let hook = options.client.hook();
    let config: ConfigProducer =
        Arc::new(move || base_config().with_ballista_override_create_grpc_client_endpoint(Arc::clone(&hook)));
    let functions = BallistaFunctionRegistry::from(&state_of(base_config())?);
    let tasks = work.join("tasks").display().to_string();
    Ok(Executor::new(
        registration,
        &tasks,
        producer,
        config,
        Arc::new(functions),
        Arc::new(Quiet),
        cores,
        Arc::new(Engine::at(&place, Arc::clone(last))),
    )
    .with_session_runtime_cache(Some(Arc::new(DefaultSessionRuntimeCache::new(
        base,
        policy,
        SESSIONS_KEPT,
    )))))
}

/// Discards metrics: logged plans would reveal the queries of users.
struct Quiet;

impl ExecutorMetricsCollector for Quiet {
    fn record_stage(&self, _job: &JobId, _stage: usize, _task: usize, _plan: Arc<dyn QueryStageExecutor>) {}
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
