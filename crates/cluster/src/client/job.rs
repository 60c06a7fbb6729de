//! One attempt of a job: submits its plan, polls it, and fetches its result.

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
use tonic::transport::Channel;

use crate::client::{Cluster, POLL_EVERY};
use crate::codec::Codec;
use crate::spilled_result::SpilledResult;
use crate::task_error::TaskError;
use crate::{ClusterError, MESSAGE_BYTES};

/// Time after which a job unknown to the scheduler counts as lost: the scheduler has been
/// restarted.
const UNKNOWN_FOR: Duration = Duration::from_secs(5);
/// Maximum time that cancelling a job may delay the exit of a client.
const CANCEL_WITHIN: Duration = Duration::from_secs(2);

/// Outcome of a failed attempt.
pub(super) enum Attempt {
    /// The job failed; it may be run again.
    Failed(TaskError),
    /// Another attempt is pointless.
    Ended(ClusterError),
}

impl Cluster {
    pub(super) async fn run_once(
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
            let reason =
                format!("the plan has {} MiB; compact the table, or name fewer inputs", encoded.len() >> 20);
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
        let mut under_way = RunningJob { scheduler: self.scheduler.clone(), job: Some(job.clone()) };
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
            let request = GetJobStatusParams { job_id: job.to_owned() };
            let answer = self
                .scheduler
                .clone()
                .get_job_status(request)
                .await
                .map_err(|status| self.attempt(&status))?;
            match answer.into_inner().status.and_then(|status| status.status) {
                Some(job_status::Status::Successful(done)) => {
                    let mut locations = done.partition_location;
                    locations
                        .sort_by_key(|location| location.partition_id.as_ref().map(|id| id.partition_id));
                    return Ok(locations);
                }
                Some(job_status::Status::Failed(failed)) => {
                    return Err(Attempt::Failed(TaskError::from_job(&failed.error)));
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
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    async fn fetch(&self, location: PartitionLocation, into: &mut SpilledResult) -> Result<(), Attempt> {
        let layout = location.layout();
        let (Some(executor), Some(partition)) = (location.executor_meta, location.partition_id) else {
            return Err(Attempt::Failed(TaskError::passing("a result has no location".to_owned())));
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

/// A job, which is cancelled if it is dropped before it is done.
struct RunningJob {
    scheduler: SchedulerGrpcClient<Channel>,
    job: Option<String>,
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        let Some(job_id) = self.job.take() else { return };
        let mut scheduler = self.scheduler.clone();
        let Ok(threads) = evenkeel_storage::handle() else { return };
        let (sender, done) = std::sync::mpsc::channel();
        threads.spawn(async move {
            let _ = scheduler.cancel_job(CancelJobParams { job_id }).await;
            let _ = sender.send(());
        });
        let _ = done.recv_timeout(CANCEL_WITHIN);
    }
}
