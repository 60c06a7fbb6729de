//! Service of the scheduler.

use std::sync::Arc;

use ballista_core::serde::protobuf as wire;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_scheduler::cluster::ClusterState;
use tonic::{Request, Response, Status};

use crate::scheduler::Server;
use crate::scheduler::jobs::{Jobs, now_millis};

/// Pseudo job that clients poll to get the number of executors.
pub(crate) const EXECUTORS: &str = "@executors";

type PushStream = <Server as SchedulerGrpc>::ExecuteQueryPushStream;

/// The scheduler's service for clients and executors, which also reports the executors.
///
/// The server is behind a trait object, as its events contain plans: to prove that a future that
/// borrows one can be sent to another thread, the compiler walks through all of their types for
/// each method.
#[derive(Clone)]
pub(super) struct Front {
    server: Arc<dyn SchedulerGrpc<ExecuteQueryPushStream = PushStream>>,
    executors: Arc<dyn ClusterState>,
    jobs: Jobs,
}

impl Front {
    pub(super) fn new(server: Server, executors: Arc<dyn ClusterState>, jobs: Jobs) -> Self {
        Self { server: Arc::new(server), executors, jobs }
    }

    /// Returns the number of live executors and their cores, as `2 8`.
    async fn executors(&self) -> String {
        let all = self.executors.registered_executor_metadata().await;
        let cores: u32 = all.iter().map(|executor| executor.specification.vcores).sum();
        format!("{} {cores}", all.len())
    }
}

#[tonic::async_trait]
impl SchedulerGrpc for Front {
    type ExecuteQueryPushStream = PushStream;

    async fn get_job_status(
        &self,
        request: Request<wire::GetJobStatusParams>,
    ) -> Result<Response<wire::GetJobStatusResult>, Status> {
        if request.get_ref().job_id != EXECUTORS {
            self.jobs.poll(&request.get_ref().job_id);
            return self.server.get_job_status(request).await;
        }
        let job_name = self.executors().await;
        let status = wire::JobStatus { job_id: EXECUTORS.to_owned(), job_name, status: None };
        Ok(Response::new(wire::GetJobStatusResult { status: Some(status), flight_proxy: None }))
    }

    async fn execute_query(
        &self,
        request: Request<wire::ExecuteQueryParams>,
    ) -> Result<Response<wire::ExecuteQueryResult>, Status> {
        // The time before the call: an executor may take its first task, and die, before the answer
        // is sent.
        let submitted = now_millis();
        let answer = self.server.execute_query(request).await?;
        if let Some(wire::execute_query_result::Result::Success(success)) = &answer.get_ref().result {
            self.jobs.add(&success.job_id, submitted);
        }
        Ok(answer)
    }

    async fn poll_work(
        &self,
        request: Request<wire::PollWorkParams>,
    ) -> Result<Response<wire::PollWorkResult>, Status> {
        self.server.poll_work(request).await
    }

    async fn register_executor(
        &self,
        request: Request<wire::RegisterExecutorParams>,
    ) -> Result<Response<wire::RegisterExecutorResult>, Status> {
        self.server.register_executor(request).await
    }

    async fn heart_beat_from_executor(
        &self,
        request: Request<wire::HeartBeatParams>,
    ) -> Result<Response<wire::HeartBeatResult>, Status> {
        self.server.heart_beat_from_executor(request).await
    }

    async fn update_task_status(
        &self,
        request: Request<wire::UpdateTaskStatusParams>,
    ) -> Result<Response<wire::UpdateTaskStatusResult>, Status> {
        self.server.update_task_status(request).await
    }

    async fn create_update_session(
        &self,
        request: Request<wire::CreateUpdateSessionParams>,
    ) -> Result<Response<wire::CreateUpdateSessionResult>, Status> {
        self.server.create_update_session(request).await
    }

    async fn remove_session(
        &self,
        request: Request<wire::RemoveSessionParams>,
    ) -> Result<Response<wire::RemoveSessionResult>, Status> {
        self.server.remove_session(request).await
    }

    async fn execute_query_push(
        &self,
        request: Request<wire::ExecuteQueryParams>,
    ) -> Result<Response<Self::ExecuteQueryPushStream>, Status> {
        self.server.execute_query_push(request).await
    }

    async fn get_job_metrics(
        &self,
        request: Request<wire::GetJobMetricsParams>,
    ) -> Result<Response<wire::GetJobMetricsResult>, Status> {
        self.server.get_job_metrics(request).await
    }

    async fn executor_stopped(
        &self,
        request: Request<wire::ExecutorStoppedParams>,
    ) -> Result<Response<wire::ExecutorStoppedResult>, Status> {
        self.server.executor_stopped(request).await
    }

    async fn cancel_job(
        &self,
        request: Request<wire::CancelJobParams>,
    ) -> Result<Response<wire::CancelJobResult>, Status> {
        self.server.cancel_job(request).await
    }

    async fn clean_job_data(
        &self,
        request: Request<wire::CleanJobDataParams>,
    ) -> Result<Response<wire::CleanJobDataResult>, Status> {
        self.server.clean_job_data(request).await
    }
}
