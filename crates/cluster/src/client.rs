//! Client of a cluster: submits jobs to the scheduler, polls them, fetches their results, and runs
//! a whole job again if a machine fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::client::BallistaClient;
use ballista_core::extension::{BallistaConfigGrpcEndpoint, SessionConfigHelperExt};
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, ExecuteQueryParams, GetJobStatusParams, PartitionLocation, execute_query_params::Query,
    execute_query_result, job_status,
};
use ballista_core::serde::scheduler::PartitionId;
use ballista_core::version::insert_version_header;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::TryStreamExt;
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

use crate::codec::Codec;
use crate::scheduler::EXECUTORS;
use crate::session::client_config;
use crate::spilled_result::SpilledResult;
use crate::task_error::TaskError;
use crate::{CONNECT_TIMEOUT, ClientSecurity, ClusterError, MESSAGE_BYTES};

/// Interval between polls of the state of a job.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// Time that a client waits for the first executor.
const WAIT_FOR_EXECUTORS: Duration = Duration::from_secs(30);
/// Time after which a waiting client logs that it waits.
const TELL_AFTER: Duration = Duration::from_secs(2);
/// Time after which a job that the scheduler does not know counts as lost: the scheduler was
/// restarted.
const UNKNOWN_FOR: Duration = Duration::from_secs(5);
/// Longest time that a cancellation may delay a client that exits.
const CANCEL_WITHIN: Duration = Duration::from_secs(2);

/// Limits on the time and number of attempts of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobOptions {
    /// Time limit of all attempts together.
    pub deadline: Duration,
    /// Number of attempts, at least 1.
    pub tries: u32,
    /// Pause before the second attempt; it doubles before each further one.
    pub pause: Duration,
}

impl Default for JobOptions {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(3600), tries: 3, pause: Duration::from_secs(2) }
    }
}

/// Size of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct ClusterSize {
    /// Number of registered executors.
    pub executors: usize,
    /// Number of tasks that all executors together run concurrently.
    pub cores: usize,
}

/// Result of a job.
pub(super) struct JobResult {
    pub(super) fetched: SpilledResult,
    /// Number of attempts.
    pub(super) tries: u32,
}

/// A client of a cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    url: String,
    security: ClientSecurity,
    options: JobOptions,
    scheduler: SchedulerGrpcClient<Channel>,
    /// Session for which executors keep known facts about stores and files.
    session: String,
    size: ClusterSize,
}

/// Creates a connection to a scheduler.
pub(super) async fn channel(url: &str, security: &ClientSecurity) -> Result<Channel, ClusterError> {
    let full = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let wrong = |reason: String| ClusterError::Url { url: url.to_owned(), reason };
    if full.starts_with("https://") && !security.is_encrypted() {
        return Err(wrong(
            "https:// is encrypted; name the certificates to check it against with --tls-ca, such as \
                --tls-ca ca.pem, or write http:// if the scheduler is not encrypted"
                .to_owned(),
        ));
    }
    let endpoint = Endpoint::from_shared(full).map_err(|error| wrong(error.to_string()))?;
    if !matches!(endpoint.uri().scheme_str(), Some("http" | "https")) || endpoint.uri().port().is_none() {
        return Err(wrong(
            "write http://HOST:PORT, such as http://127.0.0.1:50050, or https://HOST:PORT with --tls-ca"
                .to_owned(),
        ));
    }
    let endpoint = security.apply(endpoint).map_err(|error| wrong(reason_of(&error)))?;
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, endpoint.connect()).await;
    let refused = |reason: String| ClusterError::NoScheduler { url: url.to_owned(), reason };
    match connected {
        Ok(connected) => connected.map_err(|error| refused(reason_of(&error))),
        Err(_) => Err(refused(format!("nothing within {} s", CONNECT_TIMEOUT.as_secs()))),
    }
}

/// Returns the innermost cause of an error as text.
fn reason_of(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Converts the error status of the scheduler at `url`.
pub(super) fn refused(url: &str, status: &tonic::Status) -> ClusterError {
    let reason = status.message().split_whitespace().collect::<Vec<_>>().join(" ");
    match status.code() {
        tonic::Code::Unauthenticated => {
            let reason = format!(
                "{reason}; set the token of the scheduler with --token-file or \
                    EVENKEEL_CLUSTER_TOKEN"
            );
            ClusterError::Refused { url: url.to_owned(), reason }
        }
        _ if ["h2 protocol error", "operation was canceled"].iter().any(|sign| reason.contains(sign)) => {
            let reason =
                "it does not speak this protocol; if it is encrypted, write https:// and name --tls-ca";
            ClusterError::NoScheduler { url: url.to_owned(), reason: reason.to_owned() }
        }
        tonic::Code::Unavailable | tonic::Code::DeadlineExceeded | tonic::Code::Unknown => {
            ClusterError::NoScheduler { url: url.to_owned(), reason }
        }
        _ => ClusterError::Refused { url: url.to_owned(), reason },
    }
}

impl Cluster {
    /// Connects to the scheduler at `url`, and waits for the first executor.
    ///
    /// # Errors
    /// [`ClusterError`] if no scheduler answers, it refuses the client, or no executor registers.
    pub async fn connect(
        url: &str,
        security: ClientSecurity,
        options: JobOptions,
    ) -> Result<Self, ClusterError> {
        let scheduler = SchedulerGrpcClient::new(channel(url, &security).await?)
            .max_encoding_message_size(MESSAGE_BYTES)
            .max_decoding_message_size(MESSAGE_BYTES);
        let mut cluster = Self {
            url: url.to_owned(),
            security,
            options,
            scheduler,
            session: uuid::Uuid::new_v4().to_string(),
            size: ClusterSize { executors: 0, cores: 0 },
        };
        cluster.size = cluster.wait_for_executors().await?;
        Ok(cluster)
    }

    /// Waits until an executor has registered.
    async fn wait_for_executors(&self) -> Result<ClusterSize, ClusterError> {
        let waited = WAIT_FOR_EXECUTORS.min(self.options.deadline);
        let began = Instant::now();
        let mut told = false;
        loop {
            let found = self.ask_size().await;
            if began.elapsed() > TELL_AFTER && !told {
                told = true;
                let what = if found.is_ok() {
                    "no executor has registered"
                } else {
                    "the scheduler does not answer"
                };
                log::info!("{}: {what}; waiting for up to {} s", self.url, waited.as_secs());
            }
            match found {
                Ok(size) if size.executors > 0 => return Ok(size),
                // A restarted scheduler is back soon.
                Err(error)
                    if began.elapsed() > waited || !matches!(error, ClusterError::NoScheduler { .. }) =>
                {
                    return Err(error);
                }
                _ if began.elapsed() > waited => {
                    return Err(ClusterError::NoExecutor { url: self.url.clone(), within: waited });
                }
                _ => tokio::time::sleep(4 * ASK_EVERY).await,
            }
        }
    }

    /// Returns the size of the cluster at the time when the client connected.
    #[must_use]
    pub fn size(&self) -> ClusterSize {
        self.size
    }

    /// Returns the URL of the scheduler.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the settings of a session with `tasks` tasks per stage.
    pub(super) fn session_config(&self, tasks: usize) -> SessionConfig {
        client_config(&self.security, tasks)
    }

    /// Refuses a path that other machines cannot reach: one that is neither a URL of a store nor an
    /// existing path.
    pub(super) fn check_place(&self, path: &str) -> Result<(), ClusterError> {
        let is_url = path.contains("://") && !path.starts_with("file://");
        if is_url || std::path::Path::new(path).exists() {
            return Ok(());
        }
        Err(ClusterError::NotShared { url: self.url.clone(), path: path.to_owned() })
    }

    async fn ask_size(&self) -> Result<ClusterSize, ClusterError> {
        let asked = GetJobStatusParams { job_id: EXECUTORS.to_owned() };
        let answer =
            self.scheduler.clone().get_job_status(asked).await.map_err(|status| self.refused(&status))?;
        let text = answer.into_inner().status.map(|status| status.job_name).unwrap_or_default();
        let numbers: Vec<usize> = text.split(' ').filter_map(|number| number.parse().ok()).collect();
        match numbers.as_slice() {
            [executors, cores] => Ok(ClusterSize { executors: *executors, cores: *cores }),
            _ => Err(ClusterError::Refused {
                url: self.url.clone(),
                reason: "it is not a scheduler of evenkeel".to_owned(),
            }),
        }
    }

    fn refused(&self, status: &tonic::Status) -> ClusterError {
        refused(&self.url, status)
    }

    /// Runs a plan and fetches its whole result. If a machine fails, the whole plan is run again.
    pub(super) async fn run(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &SessionConfig,
    ) -> Result<JobResult, ClusterError> {
        let deadline = tokio::time::Instant::now() + self.options.deadline;
        let late = || ClusterError::Deadline { within: self.options.deadline };
        let mut pause = self.options.pause;
        let mut tries = 0;
        loop {
            tries += 1;
            let tried =
                tokio::time::timeout_at(deadline, self.run_once(plan, config)).await.map_err(|_| late())?;
            let told = match tried {
                Ok(fetched) => return Ok(JobResult { fetched, tries }),
                Err(Attempt::Ended(error)) => return Err(error),
                Err(Attempt::Failed(TaskError { message, again: false, too_large })) => {
                    return Err(ClusterError::Job { reason: message, too_large });
                }
                Err(Attempt::Failed(told)) => told,
            };
            if tries >= self.options.tries {
                return Err(ClusterError::Failed { tries, reason: told.message });
            }
            let (again, all) = (tries + 1, self.options.tries);
            log::info!("try {again} of {all} begins in {} s: {}", pause.as_secs_f32(), told.message);
            tokio::time::timeout_at(deadline, tokio::time::sleep(pause)).await.map_err(|_| late())?;
            pause *= 2;
            tokio::time::timeout_at(deadline, self.wait_for_executors()).await.map_err(|_| late())??;
        }
    }

    async fn run_once(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &SessionConfig,
    ) -> Result<SpilledResult, Attempt> {
        let codec = Codec::default();
        let node = PhysicalPlanNode::try_from_physical_plan(Arc::clone(plan), &codec)
            .map_err(|error| Attempt::Ended(error.into()))?;
        let mut encoded = Vec::new();
        node.try_encode(&mut encoded).map_err(|error| Attempt::Ended(error.into()))?;
        if encoded.len() > MESSAGE_BYTES / 4 {
            let reason = format!(
                "the plan takes {} MiB; compact the table, or name fewer inputs",
                encoded.len() >> 20
            );
            return Err(Attempt::Ended(ClusterError::Refused { url: self.url.clone(), reason }));
        }
        let mut request = Request::new(ExecuteQueryParams {
            session_id: self.session.clone(),
            settings: config.to_key_value_pairs(),
            operation_id: uuid::Uuid::new_v4().to_string(),
            query: Some(Query::PhysicalPlan(encoded)),
        });
        insert_version_header(request.metadata_mut());
        let answer =
            self.scheduler.clone().execute_query(request).await.map_err(|status| self.attempt(&status))?;
        let job = match answer.into_inner().result {
            Some(execute_query_result::Result::Success(success)) => success.job_id,
            other => {
                let message = format!("the scheduler refuses the plan: {other:?}");
                return Err(Attempt::Ended(ClusterError::Refused { url: self.url.clone(), reason: message }));
            }
        };
        let mut under_way = UnderWay { scheduler: self.scheduler.clone(), job: Some(job.clone()) };
        let locations = self.watch(&job).await?;
        let mut fetched = SpilledResult::new(plan.schema());
        for location in locations {
            self.fetch(location, &mut fetched).await?;
        }
        under_way.job = None;
        Ok(fetched)
    }

    /// Waits until a job is done, and returns the locations of its results in the order of
    /// partitions.
    async fn watch(&self, job: &str) -> Result<Vec<PartitionLocation>, Attempt> {
        let mut unknown_since = None;
        loop {
            let asked = GetJobStatusParams { job_id: job.to_owned() };
            let answer =
                self.scheduler.clone().get_job_status(asked).await.map_err(|status| self.attempt(&status))?;
            match answer.into_inner().status.and_then(|status| status.status) {
                Some(job_status::Status::Successful(done)) => {
                    let mut locations = done.partition_location;
                    locations
                        .sort_by_key(|location| location.partition_id.as_ref().map(|id| id.partition_id));
                    return Ok(locations);
                }
                Some(job_status::Status::Failed(failed)) => {
                    return Err(Attempt::Failed(TaskError::of_job(&failed.error)));
                }
                Some(_) => unknown_since = None,
                None => {
                    let since = *unknown_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > UNKNOWN_FOR {
                        let message = "the scheduler does not know the job; it was restarted".to_owned();
                        return Err(Attempt::Failed(TaskError::passing(message)));
                    }
                }
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    async fn fetch(&self, location: PartitionLocation, into: &mut SpilledResult) -> Result<(), Attempt> {
        let layout = location.layout();
        let (Some(executor), Some(partition)) = (location.executor_meta, location.partition_id) else {
            return Err(Attempt::Failed(TaskError::passing("a result has no place".to_owned())));
        };
        let lost = |error: String| {
            let message =
                format!("executor {}:{} does not return its results: {error}", executor.host, executor.port);
            Attempt::Failed(TaskError::passing(message))
        };
        let partition: PartitionId = partition.into();
        let endpoint = Arc::new(BallistaConfigGrpcEndpoint::new(self.security.hook()));
        let mut client = BallistaClient::try_new(
            &executor.host,
            u16::try_from(executor.port).unwrap_or_default(),
            MESSAGE_BYTES,
            self.security.is_encrypted(),
            Some(endpoint),
            3,
            500,
            64 << 20,
            16 << 20,
        )
        .await
        .map_err(|error| lost(error.to_string()))?;
        let fetched = client.fetch_partition(&executor.id, &partition, location.file_id, layout, true).await;
        let mut stream = fetched.map_err(|error| lost(error.to_string()))?;
        while let Some(batch) = stream.try_next().await.map_err(|error| lost(error.to_string()))? {
            into.push(batch).map_err(Attempt::Ended)?;
        }
        Ok(())
    }

    fn attempt(&self, status: &tonic::Status) -> Attempt {
        match self.refused(status) {
            ClusterError::NoScheduler { reason, .. } => {
                let message = format!("the scheduler at {} does not answer: {reason}", self.url);
                Attempt::Failed(TaskError::passing(message))
            }
            error => Attempt::Ended(error),
        }
    }
}

/// Outcome of a failed attempt.
enum Attempt {
    /// The job failed; it may be run again.
    Failed(TaskError),
    /// Another attempt is pointless.
    Ended(ClusterError),
}

/// A job that is cancelled if its client drops it before it is done.
struct UnderWay {
    scheduler: SchedulerGrpcClient<Channel>,
    job: Option<String>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Some(job_id) = self.job.take() else { return };
        let mut scheduler = self.scheduler.clone();
        let Ok(threads) = evenkeel_storage::handle() else { return };
        let (told, done) = std::sync::mpsc::channel();
        threads.spawn(async move {
            let _ = scheduler.cancel_job(CancelJobParams { job_id }).await;
            let _ = told.send(());
        });
        let _ = done.recv_timeout(CANCEL_WITHIN);
    }
}
