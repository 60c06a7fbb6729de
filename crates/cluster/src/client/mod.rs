//! Client of a cluster: submits jobs to the scheduler, polls them, fetches their results, and runs
//! a whole job again if a machine fails.

mod channel;
mod job;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::serde::protobuf::GetJobStatusParams;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use tokio::runtime::Handle;
use tonic::transport::Channel;

pub(super) use crate::client::channel::{channel, refused};
use crate::client::job::Attempt;
use crate::scheduler::EXECUTORS;
use crate::session::client_config;
use crate::spilled_result::SpilledResult;
use crate::task_error::TaskError;
use crate::{ClientSecurity, ClusterError, MESSAGE_BYTES};

/// Interval between polls of the state of a job.
const POLL_EVERY: Duration = Duration::from_millis(50);
/// Time limit for the first executor to register.
const WAIT_FOR_EXECUTORS: Duration = Duration::from_secs(30);
/// Time after which a client logs that it is waiting.
const LOG_AFTER: Duration = Duration::from_secs(2);
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
    /// Runtime of the connection.
    runtime: Handle,
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
            runtime: Handle::current(),
        };
        cluster.size = cluster.wait_for_executors().await?;
        Ok(cluster)
    }

    /// Waits until an executor has registered.
    async fn wait_for_executors(&self) -> Result<ClusterSize, ClusterError> {
        let waited = WAIT_FOR_EXECUTORS.min(self.options.deadline);
        let began = Instant::now();
        let mut is_logged = false;
        loop {
            let size = self.poll_size().await;
            if began.elapsed() > LOG_AFTER && !is_logged {
                is_logged = true;
                let what =
                    if size.is_ok() { "no executor has registered" } else { "the scheduler does not answer" };
                log::info!("{}: {what}; waiting for up to {} s", self.url, waited.as_secs());
            }
            match size {
                Ok(size) if size.executors > 0 => return Ok(size),
                // A restarting scheduler is back soon.
                Err(error)
                    if began.elapsed() > waited || !matches!(error, ClusterError::NoScheduler { .. }) =>
                {
                    return Err(error);
                }
                _ if began.elapsed() > waited => {
                    return Err(ClusterError::NoExecutor { url: self.url.clone(), within: waited });
                }
                _ => tokio::time::sleep(4 * POLL_EVERY).await,
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

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
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

    async fn poll_size(&self) -> Result<ClusterSize, ClusterError> {
        let request = GetJobStatusParams { job_id: EXECUTORS.to_owned() };
        let answer =
            self.scheduler.clone().get_job_status(request).await.map_err(|status| self.refused(&status))?;
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
            let failure = match tried {
                Ok(fetched) => return Ok(JobResult { fetched, tries }),
                Err(Attempt::Ended(error)) => return Err(error),
                Err(Attempt::Failed(TaskError { message, again: false, too_large })) => {
                    return Err(ClusterError::Job { reason: message, too_large });
                }
                Err(Attempt::Failed(error)) => error,
            };
            if tries >= self.options.tries {
                return Err(ClusterError::Failed { tries, reason: failure.message });
            }
            let (again, all) = (tries + 1, self.options.tries);
            log::info!("attempt {again} of {all} starts in {} s: {}", pause.as_secs_f32(), failure.message);
            tokio::time::timeout_at(deadline, tokio::time::sleep(pause)).await.map_err(|_| late())?;
            pause *= 2;
            tokio::time::timeout_at(deadline, self.wait_for_executors()).await.map_err(|_| late())??;
        }
    }
}
