//! Jobs of lost executors.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use ballista_core::JobId;
use ballista_core::error::Result as BallistaResult;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::{BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::state::task_manager::JobInfoCache;

use crate::scheduler::jobs::{Jobs, RunningJobs};

/// Cluster state that cancels the jobs of an executor before it removes the executor. Ballista
/// would repeat a part of them, although downstream tasks may already have read output of the
/// first run.
pub(super) struct FailFast {
    inner: Arc<dyn ClusterState>,
    running: Arc<OnceLock<Arc<dyn RunningJobs>>>,
    jobs: Jobs,
}

impl FailFast {
    /// Guards `inner`. `running` is set once the server is built.
    pub(super) fn new(
        inner: Arc<dyn ClusterState>,
        running: Arc<OnceLock<Arc<dyn RunningJobs>>>,
        jobs: Jobs,
    ) -> Self {
        Self { inner, running, jobs }
    }

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
        if let Some(running) = self.running.get() {
            let affected =
                running.ids().into_iter().filter(|job| self.may_have_worked(executor_id, job.as_ref()));
            for job in affected {
                log::warn!("executor {executor_id} is lost: cancelling job {job}");
                running.cancel(job).await;
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
