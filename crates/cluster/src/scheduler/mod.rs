//! Ballista's scheduler, configured to fail jobs rather than repeat parts of them.

mod front;
mod jobs;
mod lost;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::Result as BallistaResult;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_core::utils::{GrpcServerConfig, create_grpc_server, create_grpc_server_incoming};
use ballista_scheduler::cluster::{BallistaCluster, ClusterState};
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::create_scheduler;
use ballista_scheduler::scheduler_server::{JobIdGenerator, SchedulerServer};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::service::interceptor::InterceptedService;

use crate::codec::Codec;
pub(super) use crate::scheduler::front::EXECUTORS;
use crate::scheduler::front::Front;
use crate::scheduler::jobs::{Jobs, RunningJobs, cancel_abandoned};
use crate::scheduler::lost::FailFast;
use crate::session;
use crate::{ClientSecurity, ClusterError, MESSAGE_BYTES, ServerSecurity};

/// Time for which results are kept after a job.
const RESULTS_KEPT: Duration = Duration::from_secs(3600);
/// Time for open requests to finish when the scheduler stops.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Options of a scheduler.
#[derive(Debug, Clone)]
pub struct SchedulerOptions {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Protection of the server.
    pub security: ServerSecurity,
    /// Time without a heartbeat after which an executor counts as lost.
    pub executor_timeout: Duration,
    /// Security of connections to executors, which serve to stop tasks of abandoned jobs.
    pub client: ClientSecurity,
    /// Time without a poll by its client after which a job counts as abandoned and is cancelled.
    pub client_timeout: Duration,
}

/// Default of [`SchedulerOptions::client_timeout`].
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of times that a task or a stage may fail before its job does. Ballista 55.0 duplicates
/// rows or hangs if it repeats parts of a job, so clients run the whole job again.
const FAILURES: usize = 1;

type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// A scheduler that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct RunningScheduler {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
    clearing: JoinHandle<()>,
}

impl Drop for RunningScheduler {
    fn drop(&mut self) {
        self.clearing.abort();
    }
}

impl RunningScheduler {
    /// Starts a scheduler.
    ///
    /// # Errors
    /// [`ClusterError`] if it cannot listen, or a certificate is invalid.
    pub async fn start(options: SchedulerOptions) -> Result<Self, ClusterError> {
        let failed = |reason: String| ClusterError::Listen { address: options.listen.to_string(), reason };
        let grpc = GrpcServerConfig::default();
        let incoming =
            create_grpc_server_incoming(options.listen, &grpc).map_err(|e| failed(e.to_string()))?;
        let address = incoming.local_addr().map_err(|e| failed(e.to_string()))?;
        let jobs = Jobs::default();
        let (server, executors) = build(&options, &jobs).await.map_err(|e| failed(e.to_string()))?;
        let running = Arc::new(server.clone());
        let clearing = tokio::spawn(cancel_abandoned(running, jobs.clone(), options.client_timeout));
        let service = SchedulerGrpcServer::new(Front::new(server, executors, jobs))
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES);
        let service = InterceptedService::new(service, options.security.check());
        let mut builder = create_grpc_server(&grpc);
        if let Some(tls) = options.security.tls() {
            builder = builder.tls_config(tls).map_err(|e| failed(format!("the certificate: {e}")))?;
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = builder.add_service(service).serve_with_incoming_shutdown(incoming, async {
            let _ = stopped.await;
        });
        Ok(Self { address, stop: Some(stop), serving: tokio::spawn(serving), clearing })
    }

    /// Returns the address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting requests. Running jobs fail at their clients.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = tokio::time::timeout(STOP_GRACE, &mut self.serving).await;
        self.serving.abort();
    }
}

/// Builds the server, and the state that knows its executors.
async fn build(options: &SchedulerOptions, jobs: &Jobs) -> BallistaResult<(Server, Arc<dyn ClusterState>)> {
    let config = Arc::new(SchedulerConfig {
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        bind_host: options.listen.ip().to_string(),
        bind_port: options.listen.port(),
        task_max_failures: FAILURES,
        stage_max_failures: FAILURES,
        executor_timeout_seconds: options.executor_timeout.as_secs().max(1),
        expire_dead_executor_interval_seconds: (options.executor_timeout.as_secs() / 6).max(1),
        finished_job_data_clean_up_interval_seconds: RESULTS_KEPT.as_secs(),
        override_physical_codec: Some(Arc::new(Codec::default())),
        override_session_builder: Some(Arc::new(session::state_of)),
        override_config_producer: Some(Arc::new(session::base_config)),
        override_create_grpc_client_endpoint: Some(options.client.hook()),
        job_id_generator: Some(Arc::new(JobIds)),
        ..SchedulerConfig::default()
    });
    config.validate()?;
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let running = Arc::new(OnceLock::<Arc<dyn RunningJobs>>::new());
    let guard = FailFast::new(cluster.cluster_state(), Arc::clone(&running), jobs.clone());
    let executors: Arc<dyn ClusterState> = Arc::new(guard);
    let cluster = BallistaCluster::new(Arc::clone(&executors), cluster.job_state());
    let server: Server = create_scheduler(cluster, config).await?;
    let _ = running.set(Arc::new(server.clone()));
    Ok((server, executors))
}

struct JobIds;

#[async_trait::async_trait]
impl JobIdGenerator for JobIds {
    async fn next_id(&self) -> String {
        uuid::Uuid::new_v4().simple().to_string()
    }
}
