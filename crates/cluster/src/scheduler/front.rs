//! Service of the scheduler.

use ballista_core::serde::protobuf as wire;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use tonic::{Request, Response, Status};

use crate::scheduler::Server;
use crate::scheduler::jobs::{Jobs, now_millis};

/// Pseudo job that clients poll to get the number of executors.
pub(crate) const EXECUTORS: &str = "@executors";

/// Service for clients and executors: that of the scheduler, which also reports its executors.
#[derive(Clone)]
pub(super) struct Front {
    server: Server,
    jobs: Jobs,
}

impl Front {
    pub(super) fn new(server: Server, jobs: Jobs) -> Self {
        Self { server, jobs }
    }

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
            self.jobs.poll(&request.get_ref().job_id);
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
        // The time before the call: an executor may take its first task, and die, before the answer is
        // sent.
        let submitted = now_millis();
        let answer = SchedulerGrpc::execute_query(&self.server, request).await?;
        if let Some(wire::execute_query_result::Result::Success(success)) = &answer.get_ref().result {
            self.jobs.add(&success.job_id, submitted);
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
