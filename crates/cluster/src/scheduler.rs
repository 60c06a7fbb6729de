//! Ballista's scheduler, configured to give up jobs rather than to repeat parts of them.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ballista_core::JobId;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::Result as BallistaResult;
use ballista_core::serde::protobuf as wire;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::protobuf::scheduler_grpc_server::{SchedulerGrpc, SchedulerGrpcServer};
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_core::utils::{GrpcServerConfig, create_grpc_server, create_grpc_server_incoming};
use ballista_scheduler::cluster::{
    BallistaCluster, BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot,
};
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::create_scheduler;
use ballista_scheduler::scheduler_server::{JobIdGenerator, SchedulerServer};
use ballista_scheduler::state::task_manager::JobInfoCache;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::service::interceptor::InterceptedService;
use tonic::{Request, Response, Status};

use crate::codec::Codec;
use crate::session;
use crate::{ClientSecurity, ClusterError, MESSAGE_BYTES, ServerSecurity};

/// Pseudo job that clients poll to get the number of executors.
pub(super) const EXECUTORS: &str = "@executors";
/// Time that results are kept after a job.
const RESULTS_KEPT: Duration = Duration::from_secs(3600);
/// Time that open requests may take when the scheduler stops.
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
    /// Handling of the jobs of an executor that is lost.
    pub lost: OnLostExecutor,
}

/// Default time that a client may be silent.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Handling of the jobs of an executor that is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLostExecutor {
    /// The jobs fail, and their clients run them again as a whole.
    #[default]
    FailJobs,
    /// Ballista repeats the parts that are lost. With Ballista 55.0, rows are then duplicated or
    /// the job hangs: this shows why the other variant is needed.
    RepeatParts,
}

impl OnLostExecutor {
    /// Returns how often a task or a stage may fail before its job does.
    fn failures(self) -> usize {
        match self {
            Self::FailJobs => 1,
            Self::RepeatParts => 4,
        }
    }
}

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
        let server = build(&options, &jobs).await.map_err(|e| failed(e.to_string()))?;
        let clearing = tokio::spawn(cancel_abandoned(server.clone(), jobs.clone(), options.client_timeout));
        let service = SchedulerGrpcServer::new(Front { server, jobs })
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

/// Times of jobs that Ballista does not keep.
#[derive(Debug, Clone, Default)]
struct Jobs(Arc<Mutex<HashMap<String, JobTimes>>>);

#[derive(Debug, Clone, Copy)]
struct JobTimes {
    /// Time when the job was submitted, in milliseconds since 1970.
    came: u128,
    /// Time when its client last polled it.
    asked: Instant,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, JobTimes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, job: &str, came: u128) {
        let mut jobs = self.lock();
        let oldest = now_millis().saturating_sub(24 * RESULTS_KEPT.as_millis());
        jobs.retain(|_, times| times.came > oldest);
        jobs.insert(job.to_owned(), JobTimes { came, asked: Instant::now() });
    }

    fn asked(&self, job: &str) {
        if let Some(times) = self.lock().get_mut(job) {
            times.asked = Instant::now();
        }
    }

    /// Whether no client has polled a job for longer than `timeout`.
    fn is_abandoned(&self, job: &str, timeout: Duration) -> bool {
        self.lock().get(job).is_some_and(|times| times.asked.elapsed() > timeout)
    }

    /// Whether an executor last heard of at `last_heard`, in milliseconds since 1970, can have
    /// worked on a job.
    fn can_have_met(&self, job: &str, last_heard: Option<u128>) -> bool {
        let came = self.lock().get(job).map(|times| times.came);
        match (last_heard, came) {
            (Some(last_heard), Some(came)) => came <= last_heard,
            _ => true,
        }
    }
}

/// Cancels jobs whose clients disappeared without cancelling them.
async fn cancel_abandoned(server: Server, jobs: Jobs, timeout: Duration) {
    loop {
        tokio::time::sleep(timeout / 6).await;
        for job in server.state.task_manager.get_running_job_cache().keys() {
            if jobs.is_abandoned(job.as_ref(), timeout) {
                log::warn!("no client has polled job {job} for {} s: it is cancelled", timeout.as_secs());
                let _ = server.cancel_job(job.clone()).await;
            }
        }
    }
}

fn now_millis() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis())
}

async fn build(options: &SchedulerOptions, jobs: &Jobs) -> BallistaResult<Server> {
    let config = Arc::new(SchedulerConfig {
        scheduling_policy: TaskSchedulingPolicy::PullStaged,
        bind_host: options.listen.ip().to_string(),
        bind_port: options.listen.port(),
        task_max_failures: options.lost.failures(),
        stage_max_failures: options.lost.failures(),
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
    let server = Arc::new(OnceLock::new());
    let guard = FailFast { inner: cluster.cluster_state(), server: Arc::clone(&server), jobs: jobs.clone() };
    let cluster = match options.lost {
        OnLostExecutor::FailJobs => BallistaCluster::new(Arc::new(guard), cluster.job_state()),
        OnLostExecutor::RepeatParts => cluster,
    };
    let built = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await?;
    let _ = server.set(built.clone());
    Ok(built)
}

struct JobIds;

#[async_trait::async_trait]
impl JobIdGenerator for JobIds {
    async fn next_id(&self) -> String {
        uuid::Uuid::new_v4().simple().to_string()
    }
}

/// Cluster state that cancels the jobs of an executor before it removes the executor. Ballista
/// would run a part of them again, although downstream tasks may already have read output of the
/// first run.
struct FailFast {
    inner: Arc<dyn ClusterState>,
    server: Arc<OnceLock<Server>>,
    jobs: Jobs,
}

impl FailFast {
    /// Whether an executor can have worked on a job: not if it was last heard of before the job was
    /// submitted.
    fn may_have_worked(&self, executor: &str, job: &str) -> bool {
        // Heartbeats have a resolution of one second.
        let beat = self.inner.get_executor_heartbeat(executor);
        self.jobs.can_have_met(job, beat.map(|beat| u128::from(beat.timestamp + 1) * 1000))
    }
}

#[async_trait::async_trait]
impl ClusterState for FailFast {
    async fn init(&self) -> BallistaResult<()> {
        self.inner.init().await
    }

    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        active_jobs: Arc<HashMap<JobId, JobInfoCache>>,
        executors: Option<HashSet<String>>,
    ) -> BallistaResult<Vec<BoundTask>> {
        self.inner.bind_schedulable_tasks(distribution, active_jobs, executors).await
    }

    async fn unbind_tasks(&self, executor_slots: Vec<ExecutorSlot>) -> BallistaResult<()> {
        self.inner.unbind_tasks(executor_slots).await
    }

    async fn register_executor(&self, metadata: ExecutorMetadata, spec: ExecutorData) -> BallistaResult<()> {
        self.inner.register_executor(metadata, spec).await
    }

    async fn save_executor_metadata(&self, metadata: ExecutorMetadata) -> BallistaResult<()> {
        self.inner.save_executor_metadata(metadata).await
    }

    async fn get_executor_metadata(&self, executor_id: &str) -> BallistaResult<ExecutorMetadata> {
        self.inner.get_executor_metadata(executor_id).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.inner.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> BallistaResult<()> {
        self.inner.save_executor_heartbeat(heartbeat).await
    }

    async fn remove_executor(&self, executor_id: &str) -> BallistaResult<()> {
        if let Some(server) = self.server.get() {
            let running = server.state.task_manager.get_running_job_cache();
            for job in running.keys().filter(|job| self.may_have_worked(executor_id, job.as_ref())) {
                log::warn!("executor {executor_id} is lost: job {job} is cancelled");
                let _ = server.cancel_job(job.clone()).await;
            }
        }
        self.inner.remove_executor(executor_id).await
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.inner.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, executor_id: &str) -> Option<ExecutorHeartbeat> {
        self.inner.get_executor_heartbeat(executor_id)
    }

    async fn cluster_state_events(&self) -> BallistaResult<ClusterStateEventStream> {
        self.inner.cluster_state_events().await
    }
}

/// Service for clients and executors: that of the scheduler, which also reports its executors.
#[derive(Clone)]
struct Front {
    server: Server,
    jobs: Jobs,
}

impl Front {
    /// Returns the number of live executors and their cores, as `2 8`.
    async fn executors(&self) -> Result<String, Status> {
        let all = self.server.state.executor_manager.get_executors_state().await;
        let all = all.map_err(|error| Status::internal(error.to_string()))?;
        let cores: u32 = all.iter().map(|(executor, ..)| executor.specification.vcores).sum();
        Ok(format!("{} {cores}", all.len()))
    }
}

#[tonic::async_trait]
impl SchedulerGrpc for Front {
    type ExecuteQueryPushStream = <Server as SchedulerGrpc>::ExecuteQueryPushStream;

    async fn get_job_status(
        &self,
        request: Request<wire::GetJobStatusParams>,
    ) -> Result<Response<wire::GetJobStatusResult>, Status> {
        if request.get_ref().job_id != EXECUTORS {
            self.jobs.asked(&request.get_ref().job_id);
            return SchedulerGrpc::get_job_status(&self.server, request).await;
        }
        let job_name = self.executors().await?;
        let status = wire::JobStatus { job_id: EXECUTORS.to_owned(), job_name, status: None };
        Ok(Response::new(wire::GetJobStatusResult { status: Some(status), flight_proxy: None }))
    }

    async fn execute_query(
        &self,
        request: Request<wire::ExecuteQueryParams>,
    ) -> Result<Response<wire::ExecuteQueryResult>, Status> {
        // Taken before the call: an executor may take its first task, and die, before the answer is
        // sent.
        let came = now_millis();
        let answer = SchedulerGrpc::execute_query(&self.server, request).await?;
        if let Some(wire::execute_query_result::Result::Success(success)) = &answer.get_ref().result {
            self.jobs.take(&success.job_id, came);
        }
        Ok(answer)
    }

    async fn poll_work(
        &self,
        request: Request<wire::PollWorkParams>,
    ) -> Result<Response<wire::PollWorkResult>, Status> {
        SchedulerGrpc::poll_work(&self.server, request).await
    }

    async fn register_executor(
        &self,
        request: Request<wire::RegisterExecutorParams>,
    ) -> Result<Response<wire::RegisterExecutorResult>, Status> {
        SchedulerGrpc::register_executor(&self.server, request).await
    }

    async fn heart_beat_from_executor(
        &self,
        request: Request<wire::HeartBeatParams>,
    ) -> Result<Response<wire::HeartBeatResult>, Status> {
        SchedulerGrpc::heart_beat_from_executor(&self.server, request).await
    }

    async fn update_task_status(
        &self,
        request: Request<wire::UpdateTaskStatusParams>,
    ) -> Result<Response<wire::UpdateTaskStatusResult>, Status> {
        SchedulerGrpc::update_task_status(&self.server, request).await
    }

    async fn create_update_session(
        &self,
        request: Request<wire::CreateUpdateSessionParams>,
    ) -> Result<Response<wire::CreateUpdateSessionResult>, Status> {
        SchedulerGrpc::create_update_session(&self.server, request).await
    }

    async fn remove_session(
        &self,
        request: Request<wire::RemoveSessionParams>,
    ) -> Result<Response<wire::RemoveSessionResult>, Status> {
        SchedulerGrpc::remove_session(&self.server, request).await
    }

    async fn execute_query_push(
        &self,
        request: Request<wire::ExecuteQueryParams>,
    ) -> Result<Response<Self::ExecuteQueryPushStream>, Status> {
        SchedulerGrpc::execute_query_push(&self.server, request).await
    }

    async fn get_job_metrics(
        &self,
        request: Request<wire::GetJobMetricsParams>,
    ) -> Result<Response<wire::GetJobMetricsResult>, Status> {
        SchedulerGrpc::get_job_metrics(&self.server, request).await
    }

    async fn executor_stopped(
        &self,
        request: Request<wire::ExecutorStoppedParams>,
    ) -> Result<Response<wire::ExecutorStoppedResult>, Status> {
        SchedulerGrpc::executor_stopped(&self.server, request).await
    }

    async fn cancel_job(
        &self,
        request: Request<wire::CancelJobParams>,
    ) -> Result<Response<wire::CancelJobResult>, Status> {
        SchedulerGrpc::cancel_job(&self.server, request).await
    }

    async fn clean_job_data(
        &self,
        request: Request<wire::CleanJobDataParams>,
    ) -> Result<Response<wire::CleanJobDataResult>, Status> {
        SchedulerGrpc::clean_job_data(&self.server, request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_jobs_that_came_before_an_executor_was_last_heard_of_can_have_met_it() {
        let jobs = Jobs::default();
        let now = now_millis();
        jobs.take("job", now);
        assert!(jobs.can_have_met("job", Some(now)) && jobs.can_have_met("job", Some(now + 1)));
        assert!(!jobs.can_have_met("job", Some(now - 1)));
        // If either time is unknown, it may have.
        assert!(jobs.can_have_met("job", None) && jobs.can_have_met("other", Some(0)));
        // Times of old jobs are dropped a day later.
        jobs.take("old", now - 25 * RESULTS_KEPT.as_millis());
        jobs.take("new", now);
        assert!(jobs.can_have_met("old", Some(0)));
    }

    #[test]
    fn a_job_is_abandoned_when_nobody_asks_for_it() {
        let jobs = Jobs::default();
        jobs.take("job", 0);
        std::thread::sleep(Duration::from_millis(30));
        assert!(jobs.is_abandoned("job", Duration::from_millis(20)));
        assert!(!jobs.is_abandoned("other", Duration::ZERO));
        jobs.asked("job");
        assert!(!jobs.is_abandoned("job", Duration::from_secs(20)));
    }
}
